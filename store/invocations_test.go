package store_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/parley-chat/parley/conformance/storetest/failing"
	"github.com/parley-chat/parley/core/graph"
	"github.com/parley-chat/parley/store"
	"github.com/parley-chat/parley/store/memory"
)

func suspended(id, signal string) graph.Invocation {
	return graph.Invocation{ID: id, SessionID: "s-" + id, Status: graph.Suspended, Descriptor: &graph.Descriptor{SignalID: signal}}
}

func keep(t *testing.T, r *store.Records, inv graph.Invocation) {
	t.Helper()
	if err := r.SaveInvocation(t.Context(), inv); err != nil {
		t.Fatal(err)
	}
}

func wantWaiting(t *testing.T, r *store.Records, signal, id string) {
	t.Helper()
	inv, session, err := r.SuspendedOn(t.Context(), signal)
	want := ""
	if id != "" {
		want = "s-" + id
	}
	if err != nil || inv != id || session != want {
		t.Errorf("signal %q wakes %q of %q (%v), want %q", signal, inv, session, err, id)
	}
}

func TestAnInvocationComesBackAsItWasKept(t *testing.T) {
	r := store.NewRecords(memory.New())
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	inv := graph.Invocation{
		ID: "i", CorrelationID: "c", SessionID: "s", Status: graph.Suspended, Turn: "t", Next: "n", Suspending: "g", Completed: true,
		Descriptor: &graph.Descriptor{SignalID: "go", Metadata: json.RawMessage(`{"k":1}`)}, Step: 3, StartedAt: at, UpdatedAt: at,
		State:  graph.Delta{Set: map[string]json.RawMessage{"a": json.RawMessage(`1`)}, Logs: map[string]graph.LogDelta{"l": {Keep: 2, Add: []json.RawMessage{[]byte(`"x"`)}}}},
		Stored: graph.LogLengths{"l": 2},
		Turns:  []graph.TurnRecord{{ID: "t", Status: graph.Errored, Error: &graph.Failure{Category: "c", Message: "m", Diagnostic: "d"}, Loaded: graph.LogLengths{"l": 2}}},
	}
	keep(t, r, inv)
	got, err := r.LoadInvocation(t.Context(), "i")
	if err != nil || !reflect.DeepEqual(*got, inv) {
		t.Errorf("got  %+v (%v)\nwant %+v", got, err, inv)
	}
	if got, err := r.LoadInvocation(t.Context(), "other"); got != nil || err != nil {
		t.Errorf("one that is not there: %v, %v", got, err)
	}
}

func TestTheIndexOfSignalsFollowsTheInvocations(t *testing.T) {
	r := store.NewRecords(memory.New())
	keep(t, r, suspended("i", "one"))
	wantWaiting(t, r, "one", "i")
	keep(t, r, suspended("i", "two")) // it suspended anew
	wantWaiting(t, r, "one", "")
	wantWaiting(t, r, "two", "i")
	running := suspended("i", "two")
	running.Status, running.Descriptor = graph.Running, nil
	keep(t, r, running)
	wantWaiting(t, r, "two", "")
	keep(t, r, suspended("i", "two"))
	for range 2 {
		if err := r.DeleteInvocation(t.Context(), "i"); err != nil {
			t.Fatal(err)
		}
	}
	wantWaiting(t, r, "two", "")
}

func TestASessionAndAnInvocationAreCommittedTogetherOrNotAtAll(t *testing.T) {
	for _, fault := range []failing.Fault{failing.FailBefore, failing.FailAfter} {
		kv := memory.New()
		r := store.NewRecords(failing.New(kv, 1, fault))
		err := r.Commit(t.Context(), "s", list(0, "a"), suspended("i", "go"))
		if !errors.Is(err, failing.ErrInjected) {
			t.Fatal(err)
		}
		session, _ := r.Load(t.Context(), "s")
		inv, _ := r.LoadInvocation(t.Context(), "i")
		if (session != nil) != (inv != nil) || (session != nil) != (fault == failing.FailAfter) {
			t.Errorf("%s: the session is there: %v, the invocation: %v", fault, session != nil, inv != nil)
		}
	}
	r := store.NewRecords(memory.New())
	if err := r.Commit(t.Context(), "s", list(3, "a"), suspended("i", "go")); err == nil {
		t.Error("a session that does not fit was committed")
	}
	wantWaiting(t, r, "go", "")
}

func TestOnlyInvocationsThatEndedLongAgoAreForgotten(t *testing.T) {
	kv := memory.New()
	r := store.NewRecords(kv)
	old, recent := time.Unix(100, 0).UTC(), time.Unix(300, 0).UTC()
	for id, inv := range map[string]graph.Invocation{
		"old done":    {Status: graph.Completed, UpdatedAt: old},
		"old failed":  {Status: graph.Errored, UpdatedAt: old},
		"old running": {Status: graph.Running, UpdatedAt: old},
		"old waiting": {Status: graph.Suspended, UpdatedAt: old, Descriptor: &graph.Descriptor{SignalID: "go"}},
		"new done":    {Status: graph.Completed, UpdatedAt: recent},
	} {
		inv.ID = id
		keep(t, r, inv)
	}
	if n, err := r.ForgetInvocations(t.Context(), time.Unix(200, 0)); n != 2 || err != nil {
		t.Errorf("%d were forgotten (%v), want 2", n, err)
	}
	for id, want := range map[string]bool{"old done": false, "old failed": false, "old running": true, "old waiting": true, "new done": true} {
		if inv, err := r.LoadInvocation(t.Context(), id); (inv != nil) != want || err != nil {
			t.Errorf("%s is there: %v (%v), want %v", id, inv != nil, err, want)
		}
	}
}

func TestForgettingSaysHowFarItCame(t *testing.T) {
	kv := memory.New()
	for _, id := range []string{"a", "b", "c"} {
		keep(t, store.NewRecords(kv), graph.Invocation{ID: id, Status: graph.Completed})
	}
	n, err := store.NewRecords(failing.New(kv, 2, failing.FailBefore)).ForgetInvocations(t.Context(), time.Now())
	if n != 1 || !errors.Is(err, failing.ErrInjected) {
		t.Errorf("got %d and %v, want 1 and the failure", n, err)
	}
}
