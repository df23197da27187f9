package chat_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/parley-chat/parley/core/chat"
	"github.com/parley-chat/parley/core/graph"
	"github.com/parley-chat/parley/core/llm"
	"github.com/parley-chat/parley/store"
	"github.com/parley-chat/parley/store/bolt"
	"github.com/parley-chat/parley/store/memory"
)

func stores(b *testing.B) map[string]store.KV {
	kv, err := bolt.Open(b.Context(), filepath.Join(b.TempDir(), "bench.db"), bolt.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = kv.Close() })
	return map[string]store.KV{"memory": memory.New(), "bolt": kv}
}

// BenchmarkSend is a whole turn of one node that reads the last twenty messages, as an agent does, and answers.
func BenchmarkSend(b *testing.B) {
	for name, kv := range stores(b) {
		b.Run(name, func(b *testing.B) {
			bot := botOn(b, kv, chat.Options{}, recent)
			n := 0
			b.ReportAllocs()
			for b.Loop() {
				n++
				sendOnce(b, bot, fmt.Sprint(n))
			}
		})
	}
}

// BenchmarkSendWithHistory is the same turn in conversations of several lengths, loading included.
func BenchmarkSendWithHistory(b *testing.B) {
	for name, kv := range stores(b) {
		for _, history := range []int{10, 1_000, 10_000} {
			b.Run(fmt.Sprintf("%s/history=%d", name, history), func(b *testing.B) {
				bot := botOn(b, kv, chat.Options{}, recent)
				session := fmt.Sprintf("%d", history)
				converse(b, bot.records, session, history)
				b.ReportAllocs()
				for b.Loop() {
					sendOnce(b, bot, session)
				}
			})
		}
	}
}

func BenchmarkSendInManySessions(b *testing.B) {
	for name, kv := range stores(b) {
		for _, sessions := range []int{1, 32, 256} {
			b.Run(fmt.Sprintf("%s/sessions=%d", name, sessions), func(b *testing.B) {
				bot := botOn(b, kv, chat.Options{}, recent)
				share(b, sessions, func(i int) { sendOnce(b, bot, fmt.Sprintf("m%d", i)) })
			})
		}
	}
}

// share runs b.N turns in n sessions at a time.
func share(b *testing.B, n int, turn func(session int)) {
	work := make(chan struct{}, b.N)
	for range b.N {
		work <- struct{}{}
	}
	close(work)
	done := make(chan struct{})
	b.ResetTimer()
	for i := range n {
		go func() {
			defer func() { done <- struct{}{} }()
			for range work {
				turn(i)
			}
		}()
	}
	for range n {
		<-done
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "turns/s")
}

func recent(ctx context.Context, s graph.State) (graph.Update, error) {
	if _, err := chat.Messages.Get(s).Last(ctx, 20); err != nil {
		return nil, err
	}
	return graph.Update{chat.Messages.Add(llm.AssistantText("an answer of about the usual length, which is a sentence or two"))}, nil
}

func sendOnce(b *testing.B, bot bot, session string) {
	out := bot.Send(b.Context(), session, llm.UserText("a question of about the usual length"), chat.SendOptions{})
	if out.Status != graph.Completed {
		b.Error(out.Err)
	}
}

// converse gives a session a history of n messages.
func converse(b *testing.B, r *store.Records, session string, n int) {
	b.Helper()
	raw, err := json.Marshal(llm.UserText("something that was said a while ago"))
	if err != nil {
		b.Fatal(err)
	}
	d := graph.LogDelta{Add: make([]json.RawMessage, n)}
	for i := range d.Add {
		d.Add[i] = raw
	}
	if err := r.Save(b.Context(), session, graph.SessionSave{Delta: graph.Delta{Logs: map[string]graph.LogDelta{"messages": d}}}); err != nil {
		b.Fatal(err)
	}
}
