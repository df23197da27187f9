package conformance

import (
	"context"
	"encoding/json"
	"iter"
	"maps"
	"sync"

	"github.com/parley-chat/parley/core/graph"
	"github.com/parley-chat/parley/core/harness"
)

// journal is everything that was observed of a case, in order.
type journal struct {
	mu     sync.Mutex
	events []any
}

func (j *journal) add(event any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.events = append(j.events, event)
}

func (j *journal) length() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.events)
}

// since returns the events after the first n.
func (j *journal) since(n int) []any {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.events[n:len(j.events):len(j.events)]
}

// of picks the events of one kind.
func of[E any](events []any) []E {
	var out []E
	for _, e := range events {
		if e, ok := e.(E); ok {
			out = append(out, e)
		}
	}
	return out
}

// What a journal holds.
type (
	// invoked and returned are the two ends of a call of the engine.
	invoked  struct{ req graph.Request }
	returned struct {
		out graph.Outcome
		err error
	}
	// nodeStarted and nodeReturned are the two ends of a node's body.
	nodeStarted struct {
		name string
		pre  graph.State
	}
	nodeReturned struct {
		name   string
		update map[string]json.RawMessage
		err    error
	}
	// sessionLoaded is a load of the session store; state is nil if there was no record.
	sessionLoaded struct {
		id    string
		state map[string]json.RawMessage
		err   error
	}
	// sessionSaved is a save, by itself or together with an invocation.
	sessionSaved struct {
		id  string
		err error
	}
	// sessionOther is any other call of the session store.
	sessionOther struct{ call string }
	// invocationSaved is a record that the checkpointer took, or refused.
	invocationSaved struct {
		inv graph.Invocation
		err error
	}
	subscribed struct {
		sub harness.Subscription
		err error
	}
	correlated struct {
		signalID string
		sub      harness.Subscription
		err      error
	}
)

// recordedEngine writes down what goes in and what comes out.
type recordedEngine struct {
	next    harness.Engine
	journal *journal
}

func (e recordedEngine) Invoke(ctx context.Context, req graph.Request) (graph.Outcome, error) {
	e.journal.add(invoked{req})
	out, err := e.next.Invoke(ctx, req)
	e.journal.add(returned{out, err})
	return out, err
}

// backend is what the engine is given to keep its records in.
type backend interface {
	graph.SessionStore
	graph.Checkpointer
	graph.Committer
}

// recordedStore writes down every call that reaches the store.
type recordedStore struct {
	next    backend
	journal *journal
}

func (s *recordedStore) Load(ctx context.Context, id string) (*graph.SessionRecord, error) {
	rec, err := s.next.Load(ctx, id)
	event := sessionLoaded{id: id, err: err}
	if err == nil && rec != nil {
		event.state, event.err = sessionState(ctx, rec)
	}
	s.journal.add(event)
	return rec, err
}

func (s *recordedStore) Save(ctx context.Context, id string, save graph.SessionSave) error {
	err := s.next.Save(ctx, id, save)
	s.journal.add(sessionSaved{id, err})
	return err
}

func (s *recordedStore) Delete(ctx context.Context, id string) error {
	s.journal.add(sessionOther{"delete"})
	return s.next.Delete(ctx, id)
}

func (s *recordedStore) List(ctx context.Context, f graph.SessionFilter) iter.Seq2[graph.SessionSummary, error] {
	s.journal.add(sessionOther{"list"})
	return s.next.List(ctx, f)
}

func (s *recordedStore) LoadInvocation(ctx context.Context, id string) (*graph.Invocation, error) {
	return s.next.LoadInvocation(ctx, id)
}

func (s *recordedStore) SaveInvocation(ctx context.Context, inv graph.Invocation) error {
	err := s.next.SaveInvocation(ctx, inv)
	s.journal.add(invocationSaved{inv, err})
	return err
}

func (s *recordedStore) DeleteInvocation(ctx context.Context, id string) error {
	return s.next.DeleteInvocation(ctx, id)
}

func (s *recordedStore) Commit(ctx context.Context, id string, save graph.SessionSave, inv graph.Invocation) error {
	err := s.next.Commit(ctx, id, save, inv)
	s.journal.add(sessionSaved{id, err})
	s.journal.add(invocationSaved{inv, err})
	return err
}

// sessionState reads a record whole.
func sessionState(ctx context.Context, rec *graph.SessionRecord) (map[string]json.RawMessage, error) {
	state := maps.Clone(rec.Fields)
	if state == nil {
		state = make(map[string]json.RawMessage)
	}
	for field, log := range rec.Logs {
		items, err := log.Read(ctx, 0, log.Len())
		if err != nil {
			return nil, err
		}
		if items == nil {
			items = []json.RawMessage{}
		}
		state[field] = asJSON(items)
	}
	return state, nil
}

// faultyStore raises what a fixture's session_store.behavior asks for.
type faultyStore struct {
	backend
	loadRaises, saveRaises string
}

func (s faultyStore) Load(ctx context.Context, id string) (*graph.SessionRecord, error) {
	if s.loadRaises != "" {
		return nil, &raised{category: s.loadRaises, message: "the store was told to fail"}
	}
	return s.backend.Load(ctx, id)
}

func (s faultyStore) Save(ctx context.Context, id string, save graph.SessionSave) error {
	if s.saveRaises != "" {
		return &raised{category: s.saveRaises, message: "the store was told to fail"}
	}
	return s.backend.Save(ctx, id, save)
}

func (s faultyStore) Commit(ctx context.Context, id string, save graph.SessionSave, inv graph.Invocation) error {
	if s.saveRaises != "" {
		return &raised{category: s.saveRaises, message: "the store was told to fail"}
	}
	return s.backend.Commit(ctx, id, save, inv)
}

// recordedCoordinator writes down subscriptions and correlations.
type recordedCoordinator struct {
	next    harness.Coordinator
	journal *journal
}

func (c recordedCoordinator) Subscribe(ctx context.Context, s harness.Subscription) error {
	err := c.next.Subscribe(ctx, s)
	c.journal.add(subscribed{s, err})
	return err
}

func (c recordedCoordinator) Correlate(ctx context.Context, signalID string) (harness.Subscription, error) {
	sub, err := c.next.Correlate(ctx, signalID)
	c.journal.add(correlated{signalID, sub, err})
	return sub, err
}

// Forget passes on what only some coordinators want to know.
func (c recordedCoordinator) Forget(signalID string) {
	if f, ok := c.next.(harness.Forgetter); ok {
		f.Forget(signalID)
	}
}

// raised is the error of a node or a store that a fixture tells to fail.
type raised struct{ category, message string }

func (e *raised) Error() string         { return e.category + ": " + e.message }
func (e *raised) ErrorCategory() string { return e.category }
func (e *raised) Diagnostic() string    { return e.message }
