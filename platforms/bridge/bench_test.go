package bridge_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-chat/parley/core/agent"
	"github.com/parley-chat/parley/core/chat"
	"github.com/parley-chat/parley/core/graph"
	"github.com/parley-chat/parley/core/harness"
	"github.com/parley-chat/parley/core/llm"
	"github.com/parley-chat/parley/core/llm/echo"
	"github.com/parley-chat/parley/platforms"
	"github.com/parley-chat/parley/platforms/bridge"
	"github.com/parley-chat/parley/store"
	"github.com/parley-chat/parley/store/bolt"
	"github.com/parley-chat/parley/store/memory"
)

// instant is a platform that takes no time: what is posted is there at once.
type instant struct {
	inbox   chan platforms.Inbox
	replies sync.Map // of chan struct{}, by conversation
}

var _ platforms.Adapter = (*instant)(nil)

func (i *instant) Platform() string                     { return "instant" }
func (i *instant) Capabilities() platforms.Capabilities { return platforms.Capabilities{} }

func (i *instant) Run(ctx context.Context, inbox platforms.Inbox) error {
	i.inbox <- inbox
	<-ctx.Done()
	return nil
}

func (i *instant) Read(raw []byte) (platforms.Inbound, error) {
	var m platforms.Message
	err := json.Unmarshal(raw, &m)
	return m, err
}

func (i *instant) Render(c platforms.Content) []platforms.Part {
	return []platforms.Part{platforms.Part(c.Markdown)}
}

func (i *instant) Post(_ context.Context, to platforms.Conversation, mark string, _ platforms.Part) (platforms.MessageRef, error) {
	i.replied(to) <- struct{}{}
	return platforms.MessageRef(mark), nil
}

func (i *instant) Edit(context.Context, platforms.MessageRef, platforms.Part) error { return nil }

func (i *instant) replied(in platforms.Conversation) chan struct{} {
	c, _ := i.replies.LoadOrStore(in, make(chan struct{}, 1))
	return c.(chan struct{})
}

// counted counts the commits of a store.
type counted struct {
	store.KV
	commits atomic.Int64
}

func (c *counted) Update(ctx context.Context, fn func(store.Tx) error) error {
	c.commits.Add(1)
	return c.KV.Update(ctx, fn)
}

// bench is a bot on the instant platform, with the model echo.
type bench struct {
	b       *testing.B
	kv      *counted
	records *store.Records
	where   *instant
	inbox   platforms.Inbox
	said    atomic.Int64
}

func newBench(b *testing.B, kv store.KV) *bench {
	b.Helper()
	w := &bench{b: b, kv: &counted{KV: kv}, where: &instant{inbox: make(chan platforms.Inbox, 1)}}
	w.records = store.NewRecords(w.kv)
	a, err := agent.New(agent.Options{Provider: echo.New(0)})
	if err != nil {
		b.Fatal(err)
	}
	engine, err := graph.Compile(a.Definition(), graph.Options{Sessions: w.records, SessionFields: []graph.Field{chat.Messages}, Checkpoints: w.records})
	if err != nil {
		b.Fatal(err)
	}
	h := harness.New(engine, harness.Sessioned, harness.Options{Coordinator: harness.Stored{Suspensions: w.records}})
	br := bridge.New(bridge.Options{Adapters: []platforms.Adapter{w.where}, Store: w.records.Bridge(), Chat: chat.New(h, chat.Options{}), Sessions: w.records})
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- br.Run(ctx) }()
	b.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			b.Error(err)
		}
		if err := w.kv.Close(); err != nil {
			b.Error(err)
		}
	})
	w.inbox = <-w.where.inbox
	return w
}

func openBolt(b *testing.B) store.KV {
	b.Helper()
	kv, err := bolt.Open(b.Context(), filepath.Join(b.TempDir(), "bench.db"), bolt.Options{})
	if err != nil {
		b.Fatal(err)
	}
	return kv
}

// turn says something in a conversation and waits for the reply.
func (w *bench) turn(in platforms.Conversation) {
	n := w.said.Add(1)
	ref := platforms.MessageRef(fmt.Sprintf("m%d", n))
	raw, err := json.Marshal(platforms.Message{Conversation: in, Ref: ref, From: platforms.User{ID: "ada", Name: "Ada"},
		Addressed: platforms.Direct, Text: "What is the state of things, and what comes next?", At: time.Unix(n, 0)})
	if err != nil {
		w.b.Error(err)
		return
	}
	replied := w.where.replied(in)
	if err := w.inbox.Accept(w.b.Context(), platforms.Delivery{Keys: []platforms.Key{platforms.Key(ref)}, Conversation: in, Raw: raw}); err != nil {
		w.b.Error(err)
		return
	}
	<-replied
}

// BenchmarkTurn is an event in, a turn, a reply out, all of it durable in a bolt file, in many conversations at a time.
func BenchmarkTurn(b *testing.B) {
	for _, sessions := range []int{1, 32, 256} {
		b.Run(fmt.Sprintf("sessions=%d", sessions), func(b *testing.B) {
			w := newBench(b, openBolt(b))
			b.ReportAllocs()
			b.ResetTimer()
			w.kv.commits.Store(0)
			var next atomic.Int64
			var talking sync.WaitGroup
			for s := range sessions {
				talking.Go(func() {
					for next.Add(1) <= int64(b.N) {
						w.turn(platforms.Conversation(fmt.Sprintf("c%d", s)))
					}
				})
			}
			talking.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "turns/s")
			b.ReportMetric(float64(w.kv.commits.Load())/float64(b.N), "commits/turn")
		})
	}
}

// BenchmarkTurnAfter is a turn in a conversation with a long history: what came before must cost nothing but the messages
// that the model is shown. In memory the cost of the disk does not hide the rest.
func BenchmarkTurnAfter(b *testing.B) {
	for _, kv := range []struct {
		name string
		open func(*testing.B) store.KV
	}{
		{"bolt", openBolt},
		{"memory", func(*testing.B) store.KV { return memory.New() }},
	} {
		for _, messages := range []int{10, 1_000, 10_000} {
			b.Run(fmt.Sprintf("store=%s/messages=%d", kv.name, messages), func(b *testing.B) {
				w := newBench(b, kv.open(b))
				w.remember("c", messages)
				b.ReportAllocs()
				for b.Loop() {
					w.turn("c")
					b.StopTimer()
					w.forgetAfter("c", messages)
					b.StartTimer()
				}
			})
		}
	}
}

// remember gives a conversation a history.
func (w *bench) remember(in platforms.Conversation, messages int) {
	w.b.Helper()
	var add []json.RawMessage
	for i := range messages {
		m := llm.UserText(fmt.Sprintf("Question %d: what is the state of things, and what comes next?", i))
		if i%2 == 1 {
			m = llm.AssistantText(fmt.Sprintf("Answer %d: things are as they were, and the same comes next.", i))
		}
		raw, err := json.Marshal(m)
		if err != nil {
			w.b.Fatal(err)
		}
		add = append(add, raw)
	}
	w.save(in, graph.LogDelta{Add: add})
}

// forgetAfter takes the history back to a number of messages.
func (w *bench) forgetAfter(in platforms.Conversation, messages int) {
	w.save(in, graph.LogDelta{Keep: messages})
}

func (w *bench) save(in platforms.Conversation, d graph.LogDelta) {
	w.b.Helper()
	session := bridge.Place{Platform: w.where.Platform(), Conversation: in}.Session()
	err := w.records.Save(w.b.Context(), session, graph.SessionSave{SchemaVersion: "1", At: time.Unix(0, 0),
		Delta: graph.Delta{Logs: map[string]graph.LogDelta{"messages": d}}})
	if err != nil {
		w.b.Fatal(err)
	}
}
