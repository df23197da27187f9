package chat_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-chat/parley/core/chat"
	"github.com/parley-chat/parley/core/graph"
	"github.com/parley-chat/parley/core/harness"
	"github.com/parley-chat/parley/core/llm"
	"github.com/parley-chat/parley/store"
	"github.com/parley-chat/parley/store/memory"
)

var approved = graph.Value("approved", false)

// bot is a chat over a graph whose nodes run in a row.
type bot struct {
	*chat.Chat
	records *store.Records
}

func newBot(t testing.TB, o chat.Options, nodes ...graph.NodeFunc) bot {
	t.Helper()
	return botOn(t, memory.New(), o, nodes...)
}

func botOn(t testing.TB, kv store.KV, o chat.Options, nodes ...graph.NodeFunc) bot {
	t.Helper()
	r := store.NewRecords(kv)
	d := graph.Definition{Fields: []graph.Field{chat.Messages, approved}, Entry: "n0"}
	for i, run := range nodes {
		to := graph.END
		if i+1 < len(nodes) {
			to = graph.To(fmt.Sprintf("n%d", i+1))
		}
		d.Nodes = append(d.Nodes, graph.Node{Name: fmt.Sprintf("n%d", i), Run: run})
		d.Edges = append(d.Edges, graph.Edge{From: fmt.Sprintf("n%d", i), To: to})
	}
	g, err := graph.Compile(d, graph.Options{Sessions: r, Checkpoints: r})
	if err != nil {
		t.Fatal(err)
	}
	h := harness.New(g, harness.Sessioned, harness.Options{Coordinator: harness.Stored{Suspensions: r}})
	return bot{chat.New(h, o), r}
}

func says(text string) graph.NodeFunc {
	return func(context.Context, graph.State) (graph.Update, error) {
		return graph.Update{chat.Messages.Add(llm.AssistantText(text))}, nil
	}
}

// echo answers with the last message.
func echo(ctx context.Context, s graph.State) (graph.Update, error) {
	last, err := chat.Messages.Get(s).Last(ctx, 1)
	if err != nil {
		return nil, err
	}
	return graph.Update{chat.Messages.Add(llm.AssistantText("echo: " + last[0].Content.Text()))}, nil
}

func waits(signal string) graph.NodeFunc {
	return func(context.Context, graph.State) (graph.Update, error) {
		return nil, graph.Suspend(graph.Descriptor{SignalID: signal})
	}
}

func fails(err error) graph.NodeFunc {
	return func(context.Context, graph.State) (graph.Update, error) { return nil, err }
}

func texts(messages []llm.Message) []string {
	var out []string
	for _, m := range messages {
		out = append(out, string(m.Role)+" "+m.Content.Text())
	}
	return out
}

func wantTexts(t testing.TB, got []llm.Message, want ...string) {
	t.Helper()
	if !slices.Equal(texts(got), want) {
		t.Errorf("got %q, want %q", texts(got), want)
	}
}

func (b bot) history(t testing.TB, session string) []llm.Message {
	t.Helper()
	rec, err := b.records.Load(t.Context(), session)
	if err != nil || rec == nil {
		t.Fatalf("no session %q: %v", session, err)
	}
	raws, err := rec.Logs["messages"].Read(t.Context(), 0, rec.Logs["messages"].Len())
	if err != nil {
		t.Fatal(err)
	}
	messages := make([]llm.Message, len(raws))
	for i, raw := range raws {
		if err := json.Unmarshal(raw, &messages[i]); err != nil {
			t.Fatal(err)
		}
	}
	return messages
}

func send(t testing.TB, b bot, session, text string, want graph.Status) chat.TurnOutcome {
	t.Helper()
	out := b.Send(t.Context(), session, llm.UserText(text), chat.SendOptions{})
	if out.Status != want {
		t.Fatalf("the turn is %s (%v), want %s", out.Status, out.Err, want)
	}
	return out
}

func TestRepliesAreWhatTheTurnAddedAfterTheMessage(t *testing.T) {
	b := newBot(t, chat.Options{}, echo, says("anything else?"))
	for i, text := range []string{"hi", "hi", "bye"} {
		out := send(t, b, "s", text, graph.Completed)
		wantTexts(t, out.Replies, "assistant echo: "+text, "assistant anything else?")
		want := harness.PathExistingSession
		if i == 0 {
			want = harness.PathNewSession
		}
		if out.Path != want || out.SessionID != "s" || out.InvocationID == "" {
			t.Errorf("message %d: path %s of session %q, want %s", i, out.Path, out.SessionID, want)
		}
	}
	if got := len(b.history(t, "s")); got != 9 {
		t.Errorf("the history has %d messages, want 9", got)
	}
}

func TestATurnThatSaysNothingHasNoRepliesAndIsCompleted(t *testing.T) {
	out := send(t, newBot(t, chat.Options{}, func(context.Context, graph.State) (graph.Update, error) { return nil, nil }), "s", "hi", graph.Completed)
	if out.Replies == nil || len(out.Replies) != 0 {
		t.Errorf("got %v, want an empty list", out.Replies)
	}
}

func TestWhatIsMalformedIsRefusedBeforeAnythingIsLoaded(t *testing.T) {
	for _, tc := range []struct {
		name, session string
		message       llm.Message
		category      string
		bucket        harness.Bucket
	}{
		{"no session", "", llm.UserText("hi"), harness.SessionIDUnresolved, harness.SessionTerminating},
		{"a role that does not exist", "s", llm.Message{Role: "robot", Content: llm.Text("hi")}, harness.ChatMessageShapeInvalid, harness.UserCorrectable},
		{"a tool result without its call", "s", llm.Message{Role: llm.ToolRole, Content: llm.Text("hi")}, harness.ChatMessageShapeInvalid, harness.UserCorrectable},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := chat.New(harness.New(mustNotRun{t}, harness.Sessioned, harness.Options{}), chat.Options{})
			out := c.Send(t.Context(), tc.session, tc.message, chat.SendOptions{})
			if out.Status != graph.Errored || out.Category != tc.category || out.Bucket != tc.bucket || out.Reply.Role != llm.System {
				t.Errorf("got %+v", out)
			}
		})
	}
}

type mustNotRun struct{ t *testing.T }

func (e mustNotRun) Invoke(context.Context, graph.Request) (graph.Outcome, error) {
	e.t.Error("the engine was invoked")
	return graph.Outcome{}, errors.New("no")
}

func TestErrorsBecomeRepliesByTheirBucket(t *testing.T) {
	for _, tc := range []struct {
		err    error
		bucket harness.Bucket
		reply  string
	}{
		{&graph.Error{Category: graph.SessionSaveFailed}, harness.SessionTerminating, "This conversation can't continue. Please start a new one."},
		{&llm.Error{Category: llm.Unavailable, Message: "secret host away"}, harness.RetryableTransient, "I had trouble responding. Try again in a moment."},
		{&llm.Error{Category: llm.RateLimit}, harness.RetryableTransient, "I had trouble responding. Try again in a moment."},
		{errors.New("whatever"), harness.RetryableTransient, "I had trouble responding. Try again in a moment."},
		{&llm.Error{Category: llm.InvalidRequest, Message: "too long."}, harness.UserCorrectable, "That request couldn't be processed: too long. Please adjust your message and try again."},
		{&llm.Error{Category: llm.Authentication}, harness.UserCorrectable, "That request couldn't be processed: provider_authentication. Please adjust your message and try again."},
		{&graph.Error{Category: graph.Cancelled}, harness.UserCorrectable, "Stopped."},
	} {
		t.Run(tc.err.Error(), func(t *testing.T) {
			b := newBot(t, chat.Options{}, fails(tc.err))
			out := send(t, b, "s", "hi", graph.Errored)
			if out.Bucket != tc.bucket || out.Reply.Content.Text() != tc.reply || out.Reply.Role != llm.System || !errors.Is(out.Err, tc.err) {
				t.Errorf("got %s %q (%v), want %s %q", out.Bucket, out.Reply.Content.Text(), out.Err, tc.bucket, tc.reply)
			}
			if rec, err := b.records.Load(t.Context(), "s"); rec != nil || err != nil {
				t.Errorf("the failed turn left a session: %v, %v", rec, err)
			}
		})
	}
}

func TestRepliesToErrorsCanBeWordedOtherwise(t *testing.T) {
	b := newBot(t, chat.Options{Reply: func(f *harness.Failure) string { return "¡" + f.Category + "!" }}, fails(&llm.Error{Category: llm.Unavailable}))
	if got := send(t, b, "s", "hi", graph.Errored).Reply.Content.Text(); got != "¡provider_unavailable!" {
		t.Errorf("got %q", got)
	}
}

func TestASuspendedTurnGivesItsPendingMessagesAndGoesOnWithTheSignal(t *testing.T) {
	b := newBot(t, chat.Options{}, says("may I?"), waits("go"), func(_ context.Context, s graph.State) (graph.Update, error) {
		return graph.Update{chat.Messages.Add(llm.AssistantText(fmt.Sprintf("approved: %v", approved.Get(s))))}, nil
	})
	var heard []chat.TurnOutcome
	unsubscribe := b.Subscribe("s", func(_ context.Context, out chat.TurnOutcome) error {
		heard = append(heard, out)
		return nil
	})
	b.Subscribe("other", func(context.Context, chat.TurnOutcome) error {
		t.Error("a listener of another session was called")
		return nil
	})
	out := send(t, b, "s", "deploy", graph.Suspended)
	wantTexts(t, out.PendingMessages, "assistant may I?")
	if out.Descriptor.SignalID != "go" || len(heard) != 0 {
		t.Errorf("waits for %q; listeners were called %d times", out.Descriptor.SignalID, len(heard))
	}
	done, err := b.Signal(t.Context(), chat.Signal{SignalID: "go", Payload: map[string]json.RawMessage{"approved": json.RawMessage("true")}})
	if err != nil || done.Status != graph.Completed || len(heard) != 1 {
		t.Fatalf("the signal came to %s (%v), listeners were called %d times", done.Status, err, len(heard))
	}
	wantTexts(t, done.Replies, "assistant approved: true")
	wantTexts(t, heard[0].Replies, "assistant approved: true")
	if heard[0].SessionID != "s" || heard[0].InvocationID != out.InvocationID || heard[0].Path != harness.PathSignalResume {
		t.Errorf("heard %+v", heard[0])
	}
	wantTexts(t, b.history(t, "s"), "user deploy", "assistant may I?", "assistant approved: true")

	unsubscribe()
	unsubscribe() // once more does no harm
	send(t, b, "s", "again", graph.Suspended)
	if _, err := b.Signal(t.Context(), chat.Signal{SignalID: "go"}); err != nil || len(heard) != 1 {
		t.Errorf("after unsubscribing: %v, %d calls", err, len(heard))
	}
}

func TestASignalThatResumesNothingIsAnErrorAndLeavesTheTurnAsItWas(t *testing.T) {
	b := newBot(t, chat.Options{}, waits("go"), says("done"))
	var heard []string
	b.SubscribeAll(func(_ context.Context, out chat.TurnOutcome) error {
		heard = append(heard, string(out.Status)+out.Category)
		return nil
	})
	suspended := send(t, b, "s", "hi", graph.Suspended)
	bad := map[string]json.RawMessage{"approved": json.RawMessage(`"perhaps"`)}
	for _, tc := range []struct {
		name   string
		signal chat.Signal
		want   string
		heard  bool
	}{
		{"nobody waits", chat.Signal{SignalID: "other", SessionID: "s"}, harness.SignalCorrelationFailed, false},
		{"it does not fit", chat.Signal{SignalID: "go", Payload: bad}, graph.SuspensionResumePayloadInvalid, true},
		{"there is no such invocation", chat.Signal{InvocationID: "nobody", SessionID: "s"}, graph.SuspensionRecordInvalid, true},
		{"the right one", chat.Signal{SignalID: "go"}, "", true},
		{"one too late", chat.Signal{InvocationID: suspended.InvocationID, SessionID: "s"}, graph.SuspensionRecordInvalid, true},
	} {
		heard = nil
		out, err := b.Signal(t.Context(), tc.signal)
		if err != nil || out.Category != tc.want {
			t.Errorf("%s: got %s %s (%v), want %q", tc.name, out.Status, out.Category, err, tc.want)
		}
		if want := string(out.Status) + tc.want; tc.heard && !slices.Equal(heard, []string{want}) || !tc.heard && len(heard) > 0 {
			t.Errorf("%s: listeners heard %v", tc.name, heard)
		}
	}
	wantTexts(t, b.history(t, "s"), "user hi", "assistant done")
}

func TestTheErrorOfAListenerReachesTheSenderAndTheSignalCanComeAgain(t *testing.T) {
	runs := 0
	b := newBot(t, chat.Options{}, waits("go"), func(context.Context, graph.State) (graph.Update, error) {
		runs++
		return graph.Update{chat.Messages.Add(llm.AssistantText("done"))}, nil
	})
	full := errors.New("the outbox is full")
	var heard [2]int
	b.Subscribe("s", func(context.Context, chat.TurnOutcome) error {
		if heard[0]++; heard[0] == 1 {
			return full
		}
		return nil
	})
	b.SubscribeAll(func(context.Context, chat.TurnOutcome) error { heard[1]++; return nil })
	suspended := send(t, b, "s", "hi", graph.Suspended)
	signal := chat.Signal{InvocationID: suspended.InvocationID, SessionID: "s", TurnID: "click"}
	for i, want := range []error{full, nil} {
		out, err := b.Signal(t.Context(), signal)
		if !errors.Is(err, want) || out.Status != graph.Completed || out.Recorded != (i == 1) {
			t.Errorf("delivery %d: %v, %s, recorded %v", i, err, out.Status, out.Recorded)
		}
		wantTexts(t, out.Replies, "assistant done")
	}
	if runs != 1 || heard != [2]int{2, 2} {
		t.Errorf("the node ran %d times, the listeners were called %v times", runs, heard)
	}
}

func TestAResumedTurnThatFailsIsHeard(t *testing.T) {
	b := newBot(t, chat.Options{}, waits("go"), fails(&llm.Error{Category: llm.Unavailable}))
	var heard []chat.TurnOutcome
	b.Subscribe("s", func(_ context.Context, out chat.TurnOutcome) error { heard = append(heard, out); return nil })
	send(t, b, "s", "hi", graph.Suspended)
	if _, err := b.Signal(t.Context(), chat.Signal{SignalID: "go"}); err != nil {
		t.Fatal(err)
	}
	if len(heard) != 1 || heard[0].Status != graph.Errored || heard[0].Category != "provider_unavailable" || heard[0].SessionID != "s" {
		t.Errorf("heard %+v", heard)
	}
}

func TestOutcomesThatNobodyHeardMayBeKeptForTheNextSend(t *testing.T) {
	for _, keep := range []bool{true, false} {
		for _, listens := range []bool{true, false} {
			t.Run(fmt.Sprintf("keep %v, listener %v", keep, listens), func(t *testing.T) {
				b := newBot(t, chat.Options{KeepForNextSend: keep}, waits("go"), says("done"))
				if listens {
					b.Subscribe("s", func(context.Context, chat.TurnOutcome) error { return nil })
				}
				for range 2 {
					send(t, b, "s", "hi", graph.Suspended)
					if _, err := b.Signal(t.Context(), chat.Signal{SignalID: "go"}); err != nil {
						t.Fatal(err)
					}
				}
				want := 0
				if keep && !listens {
					want = 1 // the first was handed to the second send
				}
				if got := send(t, b, "other", "hi", graph.Suspended).Resumed; len(got) != 0 {
					t.Errorf("another session got %d", len(got))
				}
				if _, err := b.Signal(t.Context(), chat.Signal{SignalID: "go"}); err != nil {
					t.Fatal(err)
				}
				got := send(t, b, "s", "and?", graph.Suspended).Resumed
				if len(got) != want {
					t.Fatalf("got %d, want %d", len(got), want)
				}
				if want > 0 {
					wantTexts(t, got[0].Replies, "assistant done")
				}
			})
		}
	}
}

func TestAMessageSentWhileATurnWaitsIsATurnOfItsOwn(t *testing.T) {
	gate := func(ctx context.Context, s graph.State) (graph.Update, error) {
		last, err := chat.Messages.Get(s).Last(ctx, 1)
		if err != nil || last[0].Content.Text() != "deploy" {
			return graph.Update{chat.Messages.Add(llm.AssistantText("waiting"))}, err
		}
		return nil, graph.Suspend(graph.Descriptor{SignalID: "go"})
	}
	b := newBot(t, chat.Options{}, gate, says("ok"))
	send(t, b, "s", "deploy", graph.Suspended)
	wantTexts(t, send(t, b, "s", "how long?", graph.Completed).Replies, "assistant waiting", "assistant ok")
	out, err := b.Signal(t.Context(), chat.Signal{SignalID: "go"})
	if err != nil {
		t.Fatal(err)
	}
	wantTexts(t, out.Replies, "assistant ok")
	wantTexts(t, b.history(t, "s"), "user deploy", "user how long?", "assistant waiting", "assistant ok", "assistant ok")
}

func TestTheSameTurnIsAnsweredFromItsRecord(t *testing.T) {
	runs := 0
	kv := memory.New()
	count := func(context.Context, graph.State) (graph.Update, error) {
		runs++
		return graph.Update{chat.Messages.Add(llm.AssistantText("hello"))}, nil
	}
	first := botOn(t, kv, chat.Options{}, count).Send(t.Context(), "s", llm.UserText("hi"), chat.SendOptions{TurnID: "event-1"})
	b := botOn(t, kv, chat.Options{}, count) // the next process
	other := b.Send(t.Context(), "s", llm.UserText("hi"), chat.SendOptions{TurnID: "event-2"})
	again := b.Send(t.Context(), "s", llm.UserText("hi"), chat.SendOptions{TurnID: "event-1"})
	if runs != 2 || first.Recorded || other.Recorded || !again.Recorded {
		t.Errorf("%d runs; recorded %v, %v, %v", runs, first.Recorded, other.Recorded, again.Recorded)
	}
	wantTexts(t, again.Replies, "assistant hello")
	if again.Path != first.Path || len(b.history(t, "s")) != 4 {
		t.Errorf("path %s, history %v", again.Path, texts(b.history(t, "s")))
	}
}

func TestTurnsOfOneSessionRunOneAfterTheOtherInTheOrderTheyCame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		running := 0
		b := newBot(t, chat.Options{}, func(ctx context.Context, s graph.State) (graph.Update, error) {
			if running++; running != 1 {
				t.Errorf("%d turns at a time", running)
			}
			time.Sleep(time.Second)
			running--
			return echo(ctx, s)
		})
		var turns sync.WaitGroup
		for i := range 5 {
			turns.Go(func() {
				out := b.Send(t.Context(), "s", llm.UserText(fmt.Sprint(i)), chat.SendOptions{})
				if len(out.Replies) != 1 || out.Replies[0].Content.Text() != fmt.Sprintf("echo: %d", i) {
					t.Errorf("turn %d: %v", i, out)
				}
			})
			synctest.Wait()
		}
		turns.Wait()
		var want []string
		for i := range 5 {
			want = append(want, fmt.Sprintf("user %d", i), fmt.Sprintf("assistant echo: %d", i))
		}
		wantTexts(t, b.history(t, "s"), want...)
	})
}

func TestTurnsOfDifferentSessionsRunSideBySide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBot(t, chat.Options{}, func(ctx context.Context, s graph.State) (graph.Update, error) {
			time.Sleep(time.Second)
			return echo(ctx, s)
		})
		begin := time.Now()
		var turns sync.WaitGroup
		for i := range 10 {
			turns.Go(func() { b.Send(t.Context(), fmt.Sprint(i), llm.UserText("hi"), chat.SendOptions{}) })
		}
		turns.Wait()
		if took := time.Since(begin); took != time.Second {
			t.Errorf("ten sessions took %s, want 1s", took)
		}
	})
}

func TestASignalWaitsForTheTurnThatRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := func(ctx context.Context, s graph.State) (graph.Update, error) {
			last, err := chat.Messages.Get(s).Last(ctx, 1)
			if err == nil && last[0].Content.Text() == "wait" {
				return nil, graph.Suspend(graph.Descriptor{SignalID: "go"})
			}
			time.Sleep(time.Second)
			return graph.Update{chat.Messages.Add(llm.AssistantText("slow"))}, err
		}
		b := newBot(t, chat.Options{}, slow, says("end"))
		send(t, b, "s", "wait", graph.Suspended)
		var turns sync.WaitGroup
		turns.Go(func() { b.Send(t.Context(), "s", llm.UserText("slow"), chat.SendOptions{}) })
		synctest.Wait()
		out, err := b.Signal(t.Context(), chat.Signal{SignalID: "go"})
		if err != nil {
			t.Fatal(err)
		}
		turns.Wait()
		wantTexts(t, out.Replies, "assistant end")
		wantTexts(t, b.history(t, "s"), "user wait", "user slow", "assistant slow", "assistant end", "assistant end")
	})
}

func TestWhoWaitsTooLongIsInterruptedAndCanComeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBot(t, chat.Options{}, func(ctx context.Context, s graph.State) (graph.Update, error) {
			time.Sleep(time.Minute)
			return echo(ctx, s)
		})
		var turns sync.WaitGroup
		turns.Go(func() { b.Send(t.Context(), "s", llm.UserText("long"), chat.SendOptions{}) })
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		out := b.Send(ctx, "s", llm.UserText("short"), chat.SendOptions{TurnID: "t"})
		if !out.Interrupted() || out.Bucket != harness.RetryableTransient {
			t.Errorf("got %s %s", out.Category, out.Bucket)
		}
		if _, err := b.Signal(ctx, chat.Signal{InvocationID: "i", SessionID: "s"}); err != nil {
			t.Errorf("a signal: %v", err)
		}
		turns.Wait()
		again := b.Send(t.Context(), "s", llm.UserText("short"), chat.SendOptions{TurnID: "t"})
		wantTexts(t, again.Replies, "assistant echo: short")
		wantTexts(t, b.history(t, "s"), "user long", "assistant echo: long", "user short", "assistant echo: short")
	})
}

func TestWhatNodesEmitReachesTheSender(t *testing.T) {
	b := newBot(t, chat.Options{}, func(ctx context.Context, s graph.State) (graph.Update, error) {
		for _, word := range strings.Fields("one two three") {
			graph.Emit(ctx, word)
		}
		return nil, nil
	})
	var got []any
	b.Send(t.Context(), "s", llm.UserText("hi"), chat.SendOptions{OnEmit: func(v any) { got = append(got, v) }})
	if !slices.Equal(got, []any{"one", "two", "three"}) {
		t.Errorf("got %v", got)
	}
}

func TestAStoppedTurnIsOverAndSaysSo(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	b := newBot(t, chat.Options{}, func(ctx context.Context, _ graph.State) (graph.Update, error) {
		cancel(graph.ErrCancelled)
		return nil, ctx.Err()
	})
	out := b.Send(ctx, "s", llm.UserText("hi"), chat.SendOptions{TurnID: "t"})
	if out.Category != graph.Cancelled || out.Reply.Content.Text() != "Stopped." || out.Interrupted() {
		t.Errorf("got %s %q", out.Category, out.Reply.Content.Text())
	}
	if again := b.Send(t.Context(), "s", llm.UserText("hi"), chat.SendOptions{TurnID: "t"}); !again.Recorded || again.Category != graph.Cancelled {
		t.Errorf("again: %+v", again)
	}
}
