package graph_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/parley-chat/parley/core/graph"
	"github.com/parley-chat/parley/store"
	"github.com/parley-chat/parley/store/memory"
)

func payload(raw string) map[string]json.RawMessage {
	var p map[string]json.RawMessage
	if err := json.Unmarshal([]byte(raw), &p); err != nil {
		panic(err)
	}
	return p
}

func TestASuspendedTurnSaysWhatItWaitsFor(t *testing.T) {
	c := onMemory(t, chain(says("a"), does("gate", func(context.Context, graph.State) (graph.Update, error) {
		return graph.Update{said.Add("ignored")}, graph.Suspend(graph.Descriptor{SignalID: "go", Metadata: json.RawMessage(`{"kind":"approval"}`)})
	}), says("b")))
	out := mustInvoke(t, c, graph.Request{SessionID: "s"}, graph.Suspended)
	if out.Descriptor == nil || out.Descriptor.SignalID != "go" || string(out.Descriptor.Metadata) != `{"kind":"approval"}` {
		t.Errorf("the descriptor is %+v", out.Descriptor)
	}
	if out.NodeName != "gate" || !slices.Equal(out.Namespace, []string{"gate"}) || out.InvocationID == "" || out.CorrelationID == "" {
		t.Errorf("the outcome is %+v", out)
	}
	wantSaid(t, out.State, "a")
}

func TestAResumptionGoesOnAfterTheNodeOrAtIt(t *testing.T) {
	for _, tc := range []struct {
		name    string
		suspend func(graph.Descriptor) error
		want    []string
		runs    int
	}{
		{"after the node by default", graph.Suspend, []string{"before", "after"}, 1},
		{"at the node with SuspendHere", graph.SuspendHere, []string{"before", "7", "after"}, 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			runs := 0
			c := onMemory(t, chain(says("before"), does("gate", func(_ context.Context, s graph.State) (graph.Update, error) {
				runs++
				if count.Get(s) == 7 {
					return graph.Update{said.Add("7")}, nil
				}
				return nil, tc.suspend(graph.Descriptor{SignalID: "go"})
			}), says("after")))
			first := mustInvoke(t, c, graph.Request{SessionID: "s"}, graph.Suspended)
			out := mustInvoke(t, c, graph.Request{Resume: first.InvocationID, Payload: payload(`{"count": 7}`)}, graph.Completed)
			if out.InvocationID != first.InvocationID || out.CorrelationID != first.CorrelationID || out.SessionID != "s" {
				t.Errorf("ids changed: %+v, then %+v", first, out)
			}
			wantSaid(t, out.State, tc.want...)
			if runs != tc.runs {
				t.Errorf("the node ran %d times, want %d", runs, tc.runs)
			}
		})
	}
}

func TestANodeMaySuspendAgainAndAgain(t *testing.T) {
	c := onMemory(t, chain(does("gate", func(_ context.Context, s graph.State) (graph.Update, error) {
		if count.Get(s) < 3 {
			return nil, graph.SuspendHere(graph.Descriptor{SignalID: "more"})
		}
		return graph.Update{said.Add("enough")}, nil
	})))
	out := mustInvoke(t, c, graph.Request{}, graph.Suspended)
	for _, n := range []string{`{"count":1}`, `{"count":2}`} {
		out = mustInvoke(t, c, graph.Request{Resume: out.InvocationID, Payload: payload(n)}, graph.Suspended)
	}
	out = mustInvoke(t, c, graph.Request{Resume: out.InvocationID, Payload: payload(`{"count":3}`)}, graph.Completed)
	wantState(t, out.State, `{"count":3,"said":["enough"]}`)
}

func TestASuspensionOfTheLastNodeEndsWithTheSignal(t *testing.T) {
	c := onMemory(t, chain(says("a"), waits("gate", "go")))
	first := mustInvoke(t, c, graph.Request{SessionID: "s"}, graph.Suspended)
	out := mustInvoke(t, c, graph.Request{Resume: first.InvocationID, Payload: payload(`{"count":1}`)}, graph.Completed)
	wantState(t, out.State, `{"count":1,"said":["a"]}`)
}

func TestTheEdgeOfASuspendedNodeSeesThePayload(t *testing.T) {
	d := chain(waits("gate", "go"), says("no"), says("yes"))
	d.Edges[0] = graph.Edge{From: "gate", Choose: func(_ context.Context, s graph.State) (graph.Target, error) {
		if count.Get(s) == 1 {
			return graph.To("yes"), nil
		}
		return graph.To("no"), nil
	}}
	c := onMemory(t, d)
	first := mustInvoke(t, c, graph.Request{}, graph.Suspended)
	wantSaid(t, mustInvoke(t, c, graph.Request{Resume: first.InvocationID, Payload: payload(`{"count":1}`)}, graph.Completed).State, "yes")
}

func TestThePayloadReplacesFieldsPastTheReducers(t *testing.T) {
	for _, tc := range []struct{ name, payload, want string }{
		{"a value", `{"count": 9}`, `{"count":9,"said":["a"]}`},
		{"a list", `{"said": ["x", "y"]}`, `{"count":0,"said":["x","y"]}`},
		{"a list by nothing", `{"said": []}`, `{"count":0,"said":[]}`},
		{"fields that are not declared are dropped", `{"other": 1, "count": 2}`, `{"count":2,"said":["a"]}`},
		{"nothing", `{}`, `{"count":0,"said":["a"]}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := onMemory(t, chain(says("a"), waits("gate", "go")))
			first := mustInvoke(t, c, graph.Request{SessionID: "s"}, graph.Suspended)
			out := mustInvoke(t, c, graph.Request{Resume: first.InvocationID, Payload: payload(tc.payload)}, graph.Completed)
			wantState(t, out.State, tc.want)
			// The session has it too.
			next := mustInvoke(t, c, graph.Request{SessionID: "s"}, graph.Suspended)
			wantState(t, next.Loaded, tc.want)
		})
	}
}

func TestAPayloadThatDoesNotFitLeavesTheTurnSuspended(t *testing.T) {
	for _, bad := range []string{`{"count": "x"}`, `{"count": 1.5}`, `{"count": null}`, `{"said": "x"}`, `{"said": [1]}`, `{"said": [null]}`, `{"said": null}`} {
		t.Run(bad, func(t *testing.T) {
			c := onMemory(t, chain(waits("gate", "go"), says("after")))
			first := mustInvoke(t, c, graph.Request{}, graph.Suspended)
			_, err := c.Invoke(t.Context(), graph.Request{Resume: first.InvocationID, Payload: payload(bad)})
			wantError(t, err, graph.SuspensionResumePayloadInvalid)
			out := mustInvoke(t, c, graph.Request{Resume: first.InvocationID, Payload: payload(`{"count": 1}`)}, graph.Completed)
			wantState(t, out.State, `{"count":1,"said":["after"]}`)
		})
	}
}

func TestOnlyASuspendedInvocationCanBeResumed(t *testing.T) {
	kv := memory.New()
	c := compile(t, chain(waits("gate", "go"), says("after")), keeping(kv))
	fails := compile(t, chain(does("a", func(context.Context, graph.State) (graph.Update, error) { return nil, errBoom })), keeping(kv))
	first := mustInvoke(t, c, graph.Request{}, graph.Suspended)
	mustInvoke(t, c, graph.Request{Resume: first.InvocationID}, graph.Completed)
	if _, err := fails.Invoke(t.Context(), graph.Request{InvocationID: "failed"}); err == nil {
		t.Fatal("it did not fail")
	}
	cancelled := mustInvoke(t, c, graph.Request{}, graph.Suspended)
	if err := store.NewRecords(kv).DeleteInvocation(t.Context(), cancelled.InvocationID); err != nil {
		t.Fatal(err)
	}
	for name, id := range map[string]string{
		"resumed already": first.InvocationID, "failed": "failed", "never there": "nobody", "deleted": cancelled.InvocationID,
	} {
		t.Run(name, func(t *testing.T) {
			_, err := c.Invoke(t.Context(), graph.Request{Resume: id})
			wantError(t, err, graph.SuspensionRecordInvalid)
		})
	}
}

func TestASuspensionWithoutACheckpointerIsAnError(t *testing.T) {
	c := compile(t, chain(waits("gate", "go")), graph.Options{})
	_, err := c.Invoke(t.Context(), graph.Request{})
	wantError(t, err, graph.SuspensionPersistenceFailed)
}

func TestASuspensionOutsideOfANodeHasItsCategory(t *testing.T) {
	if got := graph.CategoryOf(graph.Suspend(graph.Descriptor{})); got != graph.SuspensionInUnsupportedContext {
		t.Errorf("got %q", got)
	}
}

func TestBeforeSuspendMayRefuse(t *testing.T) {
	c := onMemory(t, chain(waits("gate", "go")))
	_, err := c.Invoke(t.Context(), graph.Request{InvocationID: "i", BeforeSuspend: func(_ context.Context, o graph.Outcome) error {
		if o.Descriptor.SignalID != "go" || o.InvocationID != "i" {
			t.Errorf("asked about %+v", o)
		}
		return &told{category: "harness_signal_subscription_failed", text: "the bus is down"}
	}})
	if graph.CategoryOf(err) != "harness_signal_subscription_failed" {
		t.Errorf("got %v", err)
	}
	_, err = c.Invoke(t.Context(), graph.Request{Resume: "i"})
	wantError(t, err, graph.SuspensionRecordInvalid)
	_, err = c.Invoke(t.Context(), graph.Request{BeforeSuspend: func(context.Context, graph.Outcome) error { return errBoom }})
	wantError(t, err, graph.SuspensionPersistenceFailed)
}

// A subscription that could not be made because the process was shutting down must not end the turn for good.
func TestATurnInterruptedWhileItSubscribesGoesOn(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := onMemory(t, chain(waits("gate", "go")))
	_, err := c.Invoke(ctx, graph.Request{InvocationID: "i", BeforeSuspend: func(ctx context.Context, _ graph.Outcome) error {
		cancel()
		return ctx.Err()
	}})
	wantError(t, err, graph.Interrupted)
	mustInvoke(t, c, graph.Request{InvocationID: "i"}, graph.Suspended)
}

// What other turns of the session say between a suspension and its resumption stays, in its order, and the resumed turn's
// own comes after.
func TestWhatOthersSaidInTheMeantimeStays(t *testing.T) {
	d := chain(says("ask"), waits("gate", "go"), says("done"))
	d.Nodes = append(d.Nodes, says("other"))
	d.Edges = append(d.Edges, graph.Edge{From: "other", To: graph.END})
	start := graph.Node{Name: "start", Run: func(context.Context, graph.State) (graph.Update, error) { return nil, nil }}
	d.Nodes, d.Entry = append(d.Nodes, start), "start"
	d.Edges = append(d.Edges, graph.Edge{From: "start", Choose: func(_ context.Context, s graph.State) (graph.Target, error) {
		if count.Get(s) == 0 {
			return graph.To("ask"), nil
		}
		return graph.To("other"), nil
	}})
	c := onMemory(t, d)
	first := mustInvoke(t, c, graph.Request{SessionID: "s"}, graph.Suspended)
	for range 2 {
		mustInvoke(t, c, graph.Request{SessionID: "s", Input: graph.Update{count.Set(5)}}, graph.Completed)
	}
	out := mustInvoke(t, c, graph.Request{Resume: first.InvocationID}, graph.Completed)
	wantSaid(t, out.State, "ask", "other", "other", "done")
	if got := said.Get(out.Loaded).Len(); got != 3 {
		t.Errorf("the resumed turn began with %d items, want 3", got)
	}
	if got := count.Get(out.State); got != 5 {
		t.Errorf("a field that the suspended turn left alone is %d, want what the other turns wrote", got)
	}
}

func TestAFieldThatTheSuspendedTurnWroteComesBackWithIt(t *testing.T) {
	c := onMemory(t, chain(does("gate", func(_ context.Context, s graph.State) (graph.Update, error) {
		if count.Get(s) != 42 {
			return nil, nil
		}
		return nil, graph.Suspend(graph.Descriptor{SignalID: "go"})
	}), says("after")))
	first := mustInvoke(t, c, graph.Request{SessionID: "s", Input: graph.Update{count.Set(42)}}, graph.Suspended)
	mustInvoke(t, c, graph.Request{SessionID: "s", Input: graph.Update{count.Set(1)}}, graph.Completed)
	out := mustInvoke(t, c, graph.Request{Resume: first.InvocationID}, graph.Completed)
	if got := count.Get(out.State); got != 42 {
		t.Errorf("got %d, want 42", got)
	}
}

// storeThatFails refuses what a test tells it to.
type storeThatFails struct {
	*store.Records
	save, commit, invocation, load error
	calls                          []string
}

func (s *storeThatFails) Load(ctx context.Context, id string) (*graph.SessionRecord, error) {
	s.calls = append(s.calls, "load")
	if s.load != nil {
		return nil, s.load
	}
	return s.Records.Load(ctx, id)
}

func (s *storeThatFails) Save(ctx context.Context, id string, save graph.SessionSave) error {
	s.calls = append(s.calls, "save")
	if s.save != nil {
		return s.save
	}
	return s.Records.Save(ctx, id, save)
}

func (s *storeThatFails) SaveInvocation(ctx context.Context, inv graph.Invocation) error {
	if s.invocation != nil {
		return s.invocation
	}
	return s.Records.SaveInvocation(ctx, inv)
}

func (s *storeThatFails) Commit(ctx context.Context, id string, save graph.SessionSave, inv graph.Invocation) error {
	s.calls = append(s.calls, "commit")
	if s.commit != nil {
		return s.commit
	}
	return s.Records.Commit(ctx, id, save, inv)
}

func failingStore() *storeThatFails {
	return &storeThatFails{Records: store.NewRecords(memory.New())}
}

func TestASuspensionThatCannotBeKeptIsAnErrorAndLeavesNothingToResume(t *testing.T) {
	s := failingStore()
	c := compile(t, chain(says("a"), waits("gate", "go")), graph.Options{Sessions: s, Checkpoints: s})
	s.commit = errBoom
	_, err := c.Invoke(t.Context(), graph.Request{SessionID: "s", InvocationID: "i"})
	wantError(t, err, graph.SuspensionPersistenceFailed)
	if !errors.Is(err, errBoom) {
		t.Errorf("%v does not wrap its cause", err)
	}
	s.commit = nil
	_, err = c.Invoke(t.Context(), graph.Request{Resume: "i"})
	wantError(t, err, graph.SuspensionRecordInvalid)
	if rec, err := s.Records.Load(t.Context(), "s"); rec != nil || err != nil {
		t.Errorf("the session was saved: %v, %v", rec, err)
	}
}
