package harness_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/parley-chat/parley/core/graph"
	"github.com/parley-chat/parley/core/harness"
	"github.com/parley-chat/parley/core/llm"
	"github.com/parley-chat/parley/store"
	"github.com/parley-chat/parley/store/memory"
)

func TestEveryTransmissionHasExactlyOnePath(t *testing.T) {
	input := graph.Update{}
	type tx = harness.Transmission
	for _, tc := range []struct {
		name string
		mode harness.Mode
		tx   tx
		path harness.Path
		err  string
	}{
		{"no id begins a session", harness.Sessioned, tx{}, harness.PathNewSession, ""},
		{"an id continues one", harness.Sessioned, tx{SessionID: "s"}, harness.PathExistingSession, ""},
		{"the intent begins one under a given id", harness.Sessioned, tx{Intent: harness.NewSession, SessionID: "s"}, harness.PathNewSession, ""},
		{"a continuation needs an id", harness.Sessioned, tx{Intent: harness.ExistingSession}, "", harness.SessionIDUnresolved},
		{"an invocation is resumed", harness.Sessioned, tx{InvocationID: "i"}, harness.PathSignalResume, ""},
		{"a signal resumes", harness.Sessioned, tx{Intent: harness.SignalResume, SignalID: "g"}, harness.PathSignalResume, ""},
		{"a signal without a name", harness.Sessioned, tx{Intent: harness.SignalResume}, "", harness.SignalCorrelationFailed},
		{"a message with a signal", harness.Sessioned, tx{Intent: harness.ExistingSession, SessionID: "s", SignalID: "g"}, "", harness.PathClassificationAmbiguous},
		{"a signal with input", harness.Sessioned, tx{SignalID: "g", Input: input}, "", harness.PathClassificationAmbiguous},
		{"stateless is stateless", harness.Stateless, tx{}, harness.PathStateless, ""},
		{"stateless with an id all the same", harness.Stateless, tx{SessionID: "s", Intent: harness.ExistingSession}, harness.PathStateless, ""},
		{"a signal of a stateless turn", harness.Stateless, tx{InvocationID: "i"}, harness.PathSignalResume, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			path, err := harness.New(nil, tc.mode, harness.Options{}).Classify(tc.tx)
			if path != tc.path || graph.CategoryOf(err) != tc.err {
				t.Errorf("got %q, %v; want %q, %q", path, err, tc.path, tc.err)
			}
		})
	}
}

// specified are the categories that the specifications name, with the bucket that they, or our reading of them, give.
func specified() map[harness.Bucket][]string {
	return map[harness.Bucket][]string{
		harness.SessionTerminating: {
			"session_load_failed", "session_save_failed", "session_state_migration_chain_ambiguous", "session_state_migration_missing",
			"session_state_migration_failed", "state_validation_error", "suspension_persistence_failed", "harness_session_id_unresolved",
			"checkpoint_record_invalid",
		},
		harness.RetryableTransient: {
			"provider_unavailable", "provider_rate_limit", "provider_rate_limited", "provider_timeout", "provider_model_not_loaded",
			"harness_signal_subscription_failed", "session_write_conflict", "checkpoint_save_failed", "invocation_interrupted",
			"node_exception", "edge_exception", "reducer_error", "routing_error",
		},
		harness.UserCorrectable: {
			"provider_invalid_request", "provider_invalid_response", "provider_authentication", "provider_invalid_model",
			"provider_unsupported_content_block", "suspension_resume_payload_invalid", "suspension_record_invalid",
			"suspension_in_unsupported_context", "harness_signal_correlation_failed", "harness_path_classification_ambiguous",
			"chat_message_shape_invalid", "invocation_cancelled",
		},
	}
}

func TestEveryCategoryIsInExactlyOneBucket(t *testing.T) {
	known := make(map[string]harness.Bucket)
	for bucket, categories := range specified() {
		for _, c := range categories {
			if other, twice := known[c]; twice {
				t.Errorf("%s is in %s and in %s", c, other, bucket)
			}
			known[c] = bucket
			if got := harness.BucketOf(c); got != bucket {
				t.Errorf("%s is in %s, want %s", c, got, bucket)
			}
			f := harness.Categorize(&harness.Error{Category: c, Message: "why"})
			says := map[bool]int{true: 1}
			if n := says[f.InterventionRequired()] + says[f.RetrySafe()] + says[f.ActionRequired()]; n != 1 || f.Diagnostic != "why" || f.Category != c {
				t.Errorf("%s becomes %+v and says %d things to its caller", c, f, n)
			}
		}
	}
	if got := harness.BucketOf("something_new"); got != harness.RetryableTransient {
		t.Errorf("an unknown category is in %s", got)
	}
	if f := harness.Categorize(errors.New("plain")); f.Category != graph.NodeException || f.Bucket != harness.RetryableTransient {
		t.Errorf("an error without a category becomes %+v", f)
	}
	if f := harness.Categorize(&graph.Error{Category: graph.NodeException, Cause: &llm.Error{Category: llm.InvalidRequest, Message: "too long"}}); f.Category != "provider_invalid_request" || f.Diagnostic != "too long" {
		t.Errorf("a node's failure does not show its cause: %+v", f)
	}
}

var approved = graph.Value("approved", false)

// gated is a graph that waits for the signal "go" and then goes on.
func gated(t *testing.T, r *store.Records) *graph.Compiled {
	t.Helper()
	g, err := graph.Compile(graph.Definition{
		Fields: []graph.Field{approved}, Entry: "gate",
		Nodes: []graph.Node{
			{Name: "gate", Run: func(context.Context, graph.State) (graph.Update, error) {
				return nil, graph.Suspend(graph.Descriptor{SignalID: "go"})
			}},
			{Name: "after", Run: func(context.Context, graph.State) (graph.Update, error) { return nil, nil }},
		},
		Edges: []graph.Edge{{From: "gate", To: graph.To("after")}, {From: "after", To: graph.END}},
	}, graph.Options{Sessions: r, Checkpoints: r})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func coordinators(r *store.Records) map[string]harness.Coordinator {
	return map[string]harness.Coordinator{"stored": harness.Stored{Suspensions: r}, "in memory": &harness.InMemory{}}
}

func TestASignalFindsTheTurnThatWaitsForIt(t *testing.T) {
	for name := range coordinators(nil) {
		t.Run(name, func(t *testing.T) {
			r := store.NewRecords(memory.New())
			h := harness.New(gated(t, r), harness.Sessioned, harness.Options{Coordinator: coordinators(r)[name]})
			for _, session := range []string{"one", "two"} { // the signal id may be used again once its turn is over
				res := h.Handle(t.Context(), harness.Transmission{SessionID: session})
				if res.Shape != harness.SuspendedAcknowledgment || res.Failure != nil {
					t.Fatalf("%s: %+v", session, res.Failure)
				}
				sub, err := h.Correlate(t.Context(), "go")
				if err != nil || sub.InvocationID != res.Outcome.InvocationID || sub.SessionID != session {
					t.Errorf("%s: correlated with %+v (%v)", session, sub, err)
				}
				done := h.Handle(t.Context(), harness.Transmission{SignalID: "go", Signal: map[string]json.RawMessage{"approved": json.RawMessage("true")}})
				if done.Shape != harness.CompletionResponse || done.Path != harness.PathSignalResume || !approved.Get(done.Outcome.State) || done.Outcome.SessionID != session {
					t.Errorf("%s: got %+v", session, done)
				}
				if _, err := h.Correlate(t.Context(), "go"); graph.CategoryOf(err) != harness.SignalCorrelationFailed {
					t.Errorf("%s: something waits still: %v", session, err)
				}
			}
		})
	}
}

func TestTwoTurnsCannotWaitForOneSignal(t *testing.T) {
	for name := range coordinators(nil) {
		t.Run(name, func(t *testing.T) {
			r := store.NewRecords(memory.New())
			h := harness.New(gated(t, r), harness.Sessioned, harness.Options{Coordinator: coordinators(r)[name]})
			first := h.Handle(t.Context(), harness.Transmission{SessionID: "one"})
			second := h.Handle(t.Context(), harness.Transmission{SessionID: "two"})
			if second.Failure == nil || second.Failure.Category != harness.SignalSubscriptionFailed {
				t.Errorf("the second: %+v", second)
			}
			if sub, err := h.Correlate(t.Context(), "go"); err != nil || sub.InvocationID != first.Outcome.InvocationID {
				t.Errorf("the signal leads to %+v (%v)", sub, err)
			}
		})
	}
}

func TestWhatCannotBeWokenDoesNotSuspend(t *testing.T) {
	r := store.NewRecords(memory.New())
	for name, c := range map[string]harness.Coordinator{"no coordinator": nil, "a coordinator that fails": failingCoordinator{}} {
		t.Run(name, func(t *testing.T) {
			h := harness.New(gated(t, r), harness.Sessioned, harness.Options{Coordinator: c})
			res := h.Handle(t.Context(), harness.Transmission{SessionID: "s"})
			if res.Failure == nil || res.Failure.Category != harness.SignalSubscriptionFailed || res.Shape != harness.ErrorResponse {
				t.Errorf("got %+v", res)
			}
			res = h.Handle(t.Context(), harness.Transmission{SignalID: "go"})
			if res.Failure == nil || res.Failure.Category != harness.SignalCorrelationFailed {
				t.Errorf("the signal: %+v", res)
			}
		})
	}
}

type failingCoordinator struct{}

func (failingCoordinator) Subscribe(context.Context, harness.Subscription) error {
	return errors.New("the bus is down")
}

func (failingCoordinator) Correlate(context.Context, string) (harness.Subscription, error) {
	return harness.Subscription{}, errors.New("the bus is down")
}

func TestASuspensionNeedsASignalID(t *testing.T) {
	for name, c := range coordinators(store.NewRecords(memory.New())) {
		err := c.Subscribe(t.Context(), harness.Subscription{InvocationID: "i"})
		if graph.CategoryOf(err) != harness.SignalSubscriptionFailed {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// recorded answers every call with what it got.
type recorded struct{ reqs []graph.Request }

func (e *recorded) Invoke(_ context.Context, req graph.Request) (graph.Outcome, error) {
	e.reqs = append(e.reqs, req)
	return graph.Outcome{Status: graph.Completed}, nil
}

func TestWhatReachesTheEngine(t *testing.T) {
	signal := map[string]json.RawMessage{"a": json.RawMessage("1")}
	for _, tc := range []struct {
		name string
		mode harness.Mode
		tx   harness.Transmission
		want func(graph.Request) bool
	}{
		{"a new session gets an id", harness.Sessioned, harness.Transmission{}, func(r graph.Request) bool { return r.SessionID == "minted" }},
		{"a given id is kept", harness.Sessioned, harness.Transmission{Intent: harness.NewSession, SessionID: "s"}, func(r graph.Request) bool { return r.SessionID == "s" }},
		{"a turn id is the invocation's", harness.Sessioned, harness.Transmission{SessionID: "s", TurnID: "t"}, func(r graph.Request) bool { return r.TurnID == "t" && r.InvocationID == "t" }},
		{"stateless has no session", harness.Stateless, harness.Transmission{SessionID: "s"}, func(r graph.Request) bool { return r.SessionID == "" }},
		{"a signal resumes and names no session", harness.Sessioned, harness.Transmission{InvocationID: "i", SessionID: "s", Signal: signal, TurnID: "t"},
			func(r graph.Request) bool {
				return r.Resume == "i" && r.SessionID == "" && r.InvocationID == "" && r.TurnID == "t" && len(r.Payload) == 1
			}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e := &recorded{}
			h := harness.New(e, tc.mode, harness.Options{NewSessionID: func() string { return "minted" }})
			if res := h.Handle(t.Context(), tc.tx); res.Failure != nil || len(e.reqs) != 1 || !tc.want(e.reqs[0]) {
				t.Errorf("got %+v, %+v", res, e.reqs)
			}
		})
	}
}
