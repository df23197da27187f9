package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/parley-chat/parley/core/chat"
	"github.com/parley-chat/parley/core/graph"
	"github.com/parley-chat/parley/core/harness"
	"github.com/parley-chat/parley/core/llm"
	"github.com/parley-chat/parley/store"
)

// bench is what one case runs on: its compiled graph over a fresh back end, and the journal of all that is observed.
type bench struct {
	parts    parts
	timeout  time.Duration
	journal  *journal
	fields   map[string]graph.Field
	lists    map[string]bool // fields with the append reducer
	records  *store.Records  // the back end itself: reading it leaves no trace in the journal
	compiled *graph.Compiled
	engine   harness.Engine
	// observed are the events of each observer of the case.
	observed map[string]*observations
	attached []graph.Observer // those of each invocation
}

// parts are what a case is built from. The tests of this package replace them by ones that misbehave.
type parts struct {
	engine      func(harness.Engine) harness.Engine
	outside     func(harness.Engine) harness.Engine // around the recording, where a harness stands
	backend     func(backend) backend
	coordinator func(harness.Coordinator) harness.Coordinator
	harness     func(handler, *bench) handler
	chat        func(chatter, *bench) chatter
}

// handler is a harness as its transport sees it.
type handler interface {
	Handle(ctx context.Context, t harness.Transmission) harness.Result
}

func itself[T any](v T) T              { return v }
func unchanged[T any](v T, _ *bench) T { return v }

// asBuilt are the real parts.
func asBuilt() parts {
	return parts{
		engine: itself[harness.Engine], outside: itself[harness.Engine], backend: itself[backend], coordinator: itself[harness.Coordinator],
		harness: unchanged[handler], chat: unchanged[chatter],
	}
}

// build compiles the case's graph. What is wrong with the case is a problem of its reader.
func (b *bench) build(c *mapping) {
	b.journal = &journal{}
	b.fields, b.lists = make(map[string]graph.Field), make(map[string]bool)
	kept := &recordedStore{next: b.parts.backend(b.faulty(c)), journal: b.journal}
	d := b.definition(c)
	o := graph.Options{Checkpoints: kept, NoAutoSave: !c.flag("auto_save", true), Observers: b.observers(c)}
	if c.has("session_store") {
		o.Sessions = kept
	}
	o.SessionFields = b.sessionFields(c)
	if c.has("checkpointer") {
		b.inMemory(c, "checkpointer")
	}
	if len(c.reader.problems) > 0 {
		return
	}
	var err error
	if b.compiled, err = graph.Compile(d, o); err != nil {
		c.reader.problem(fmt.Errorf("the graph does not compile: %w", err))
		return
	}
	b.engine = b.parts.outside(recordedEngine{next: b.parts.engine(b.compiled), journal: b.journal})
}

// faulty is the back end under test with what session_store.behavior tells it to raise. A name of a store is in_memory
// in every fixture; what it stands for is the back end that the runner was given.
func (b *bench) faulty(c *mapping) backend {
	s := faultyStore{backend: b.records}
	if !c.has("session_store") {
		return s
	}
	if _, named := c.values["session_store"].(string); named {
		b.inMemory(c, "session_store")
		return s
	}
	m := c.mapping("session_store")
	b.inMemory(m, "type")
	behavior := m.mapping("behavior")
	s.loadRaises, s.saveRaises = behavior.text("load_raises"), behavior.text("save_raises")
	return s
}

func (b *bench) inMemory(m *mapping, key string) {
	if name := m.text(key); name != "in_memory" {
		m.reader.problem(missing{m.at(key) + ": " + name})
	}
}

// sessionFields are those of a projected session (sessions §4.2), or nil.
func (b *bench) sessionFields(c *mapping) []graph.Field {
	if !c.has("session_state") {
		return nil
	}
	m := c.mapping("session_state")
	names, _ := m.value("fields")
	list, ok := names.([]any)
	if !ok {
		c.reader.problem(invalid(m.at("fields"), "want a list of names"))
	}
	fields := []graph.Field{}
	for _, v := range list {
		name, _ := v.(string)
		f, ok := b.fields[name]
		if !ok {
			c.reader.problem(invalid(m.at("fields"), "%s is not a declared field", show(v)))
			continue
		}
		fields = append(fields, f)
	}
	return fields
}

// coordinate returns the coordinator of a harness block. As with stores, in_memory is a name for the one under test:
// the coordinator over the engine's own records.
func (b *bench) coordinate(h *mapping) harness.Coordinator {
	if h.has("signal_coordinator") {
		b.inMemory(h, "signal_coordinator")
	}
	return recordedCoordinator{next: b.parts.coordinator(harness.Stored{Suspensions: b.records}), journal: b.journal}
}

// turn is one thing that a case did: an invocation, a transmission, a chat turn, a signal.
type turn struct {
	name     string
	session  string // the id the fixture names, if it names one
	events   []any  // what the journal got while it ran
	earlier  []any  // what the journal held before
	before   map[string]json.RawMessage
	after    map[string]json.RawMessage // the session in the back end, before and after; nil if there was none
	timedOut bool

	result   harness.Result   // of a transmission
	supplied string           // the session id that came with a transmission
	chat     chat.TurnOutcome // of a chat turn, or what a listener got of a resumed one
	sent     *llm.Message     // of a chat turn

	// outcome and err are what the engine returned last, as the recording saw it.
	outcome graph.Outcome
	err     error
	invoked bool // whether the engine was called at all
	// kept is the invocation's record in the back end after the turn, or nil.
	kept *graph.Invocation
}

// during runs one turn. It has the case's time limit: what blocks on a suspended turn is found out by it.
func (b *bench) during(ctx context.Context, name, session string, f func(ctx context.Context)) (*turn, error) {
	t := &turn{name: name, session: session}
	var err error
	if t.before, err = b.session(ctx, session); err != nil {
		return nil, err
	}
	mark := b.journal.length()
	t.earlier = b.journal.since(0)
	limited, cancel := context.WithTimeout(ctx, b.timeout)
	f(limited)
	t.timedOut = limited.Err() != nil
	cancel()
	t.events = b.journal.since(mark)
	if ends := of[returned](t.events); len(ends) > 0 {
		last := ends[len(ends)-1]
		t.invoked, t.outcome, t.err = true, last.out, last.err
	}
	if session == "" {
		t.session = t.outcome.SessionID
	}
	if t.after, err = b.session(ctx, t.session); err != nil || t.outcome.InvocationID == "" {
		return t, err
	}
	t.kept, err = b.records.LoadInvocation(ctx, t.outcome.InvocationID)
	return t, err
}

// session reads a session from the back end, past the journal.
func (b *bench) session(ctx context.Context, id string) (map[string]json.RawMessage, error) {
	if id == "" {
		return nil, nil
	}
	rec, err := b.records.Load(ctx, id)
	if err != nil || rec == nil {
		return nil, err
	}
	return sessionState(ctx, rec)
}

// status is the status of what the engine returned; an error is errored.
func (t *turn) status() graph.Status {
	if t.err != nil {
		return graph.Errored
	}
	return t.outcome.Status
}

func (t *turn) requests() []graph.Request {
	var out []graph.Request
	for _, e := range of[invoked](t.events) {
		out = append(out, e.req)
	}
	return out
}

// request is the one call of the engine in this turn.
func (t *turn) request() (graph.Request, error) {
	reqs := t.requests()
	if len(reqs) != 1 {
		return graph.Request{}, fmt.Errorf("the engine was invoked %d times, want once", len(reqs))
	}
	return reqs[0], nil
}

// nodes are the names of the nodes that ran, in order.
func (t *turn) nodes() []string {
	names := []string{}
	for _, e := range of[nodeStarted](t.events) {
		names = append(names, e.name)
	}
	return names
}

// said are the items that nodes of this turn added to the messages, in the order of the nodes.
func (t *turn) said() ([]any, error) {
	said := []any{}
	for _, e := range of[nodeReturned](t.events) {
		raw, ok := e.update["messages"]
		if !ok {
			continue
		}
		v, err := fromJSON(raw)
		if err != nil {
			return nil, err
		}
		items, ok := v.([]any)
		if !ok {
			return nil, fmt.Errorf("node %s adds %s to the messages", e.name, show(v))
		}
		said = append(said, items...)
	}
	return said, nil
}

func (t *turn) sessionCalls() int {
	return len(of[sessionLoaded](t.events)) + len(of[sessionSaved](t.events)) + len(of[sessionOther](t.events))
}

// subscription is the one that this turn registered, successfully.
func (t *turn) subscription() (harness.Subscription, error) {
	subs := of[subscribed](t.events)
	if len(subs) != 1 {
		return harness.Subscription{}, fmt.Errorf("%d subscriptions were registered, want 1", len(subs))
	}
	return subs[0].sub, subs[0].err
}

// isSubscribed checks that what the turn waits for is what was subscribed to (harness §5.3).
func (t *turn) isSubscribed() error {
	sub, err := t.subscription()
	if err != nil {
		return err
	}
	if t.status() != graph.Suspended || t.outcome.Descriptor == nil {
		return fmt.Errorf("the turn is %s, so there is nothing to wait for", t.status())
	}
	if sub.SignalID != t.outcome.Descriptor.SignalID || sub.InvocationID != t.outcome.InvocationID {
		return fmt.Errorf("subscribed signal %q for invocation %q, want %q for %q",
			sub.SignalID, sub.InvocationID, t.outcome.Descriptor.SignalID, t.outcome.InvocationID)
	}
	return nil
}

// didNotBlock checks that the call came back while its invocation lay suspended in the back end: no node was left
// running, and no signal had arrived.
func (b *bench) didNotBlock(ctx context.Context, t *turn) error {
	if t.timedOut {
		return fmt.Errorf("the call did not return within %s", b.timeout)
	}
	if t.status() != graph.Suspended {
		return fmt.Errorf("the turn is %s, want suspended", t.status())
	}
	if begun, ended := len(of[nodeStarted](t.events)), len(of[nodeReturned](t.events)); begun != ended {
		return fmt.Errorf("%d nodes began, %d returned", begun, ended)
	}
	return must(t.kept != nil && t.kept.Status == graph.Suspended, "the back end keeps %s, want a suspended record", show(t.kept))
}

// category is the concrete category of what the engine returned.
func (t *turn) category() string { return graph.CategoryOf(t.err) }

// descriptorIs compares a descriptor with a fixture's: metadata that is not asked for is not there.
func descriptorIs(got *graph.Descriptor, want any) error {
	if got == nil {
		return errors.New("there is no descriptor")
	}
	w, ok := want.(map[string]any)
	if !ok {
		return fmt.Errorf("want must be a mapping, is %s", show(want))
	}
	for key := range w {
		if !slices.Contains([]string{"signal_id", "metadata", "metadata_includes"}, key) {
			return missing{key}
		}
	}
	if got.SignalID != w["signal_id"] {
		return fmt.Errorf("signal_id: got %q, want %s", got.SignalID, show(w["signal_id"]))
	}
	var metadata any
	if len(got.Metadata) > 0 {
		var err error
		if metadata, err = fromJSON(got.Metadata); err != nil {
			return err
		}
	}
	if part, ok := w["metadata_includes"]; ok {
		return includes(metadata, part)
	}
	if !same(metadata, w["metadata"]) {
		return fmt.Errorf("metadata: got %s, want %s", show(metadata), show(w["metadata"]))
	}
	return nil
}

// stateIs compares a whole state.
func stateIs(ctx context.Context, got graph.State, want any) error {
	state, err := got.JSON(ctx)
	if err != nil {
		return err
	}
	return equal(state, want)
}

// truth compares a condition, nil meaning true, with a fixture's boolean.
func truth(holds error, want any) error {
	w, ok := want.(bool)
	switch {
	case !ok:
		return fmt.Errorf("want must be true or false, is %s", show(want))
	case w:
		return holds
	case holds == nil:
		return errors.New("it holds, and must not")
	default:
		return nil
	}
}

func must(ok bool, format string, args ...any) error {
	if ok {
		return nil
	}
	return fmt.Errorf(format, args...)
}
