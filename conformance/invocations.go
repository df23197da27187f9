package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/parley-chat/parley/core/graph"
	"github.com/parley-chat/parley/store"
)

// invocations drives the cases that invoke the engine itself: one after the other from the list, or the one that the
// case's own keys describe (conformance-adapter §4.1, §4.3).
func (r *run) invocations(ctx context.Context) error {
	list := []*mapping{r.c}
	if r.c.has("invocations") {
		list = r.c.list("invocations")
	}
	if r.c.has("seeded_session") {
		if err := r.seed(ctx); err != nil {
			return err
		}
	}
	for _, in := range list {
		if err := r.invocation(ctx, in); err != nil {
			return err
		}
	}
	return nil
}

// seed puts a session into the back end before anything runs.
func (r *run) seed(ctx context.Context) error {
	m := r.c.mapping("seeded_session")
	save := graph.SessionSave{SchemaVersion: m.text("schema_version"), At: time.Now().UTC()}
	for name, raw := range m.raws("state") {
		if _, ok := r.fields[name]; !ok {
			return invalid(m.at("state."+name), "the field is not declared")
		}
		items, isList := m.values["state"].(map[string]any)[name].([]any)
		if isList && r.lists[name] {
			d := graph.LogDelta{}
			for _, item := range items {
				d.Add = append(d.Add, asJSON(item))
			}
			if save.Logs == nil {
				save.Logs = make(map[string]graph.LogDelta)
			}
			save.Logs[name] = d
			continue
		}
		if save.Set == nil {
			save.Set = make(map[string]json.RawMessage)
		}
		save.Set[name] = raw
	}
	return r.records.Save(ctx, r.c.text("session_id"), save)
}

// invocation invokes the engine once and checks what is expected of it.
func (r *run) invocation(ctx context.Context, in *mapping) error {
	req := graph.Request{
		SessionID: in.text("session_id"), CorrelationID: in.text("correlation_id"),
		Resume: r.placeholder(in, "resume_invocation"), Payload: in.raws("signal_payload"),
		Input: changesOf(in.raws("initial_state")), Observers: r.attached,
	}
	if len(r.c.reader.problems) > 0 {
		return nil
	}
	name := ""
	if in != r.c {
		name = in.text("name")
	}
	t, err := r.during(ctx, name, req.SessionID, func(ctx context.Context) { _, _ = r.engine.Invoke(ctx, req) })
	if err != nil {
		return err
	}
	r.turns = append(r.turns, t)
	if t.timedOut {
		return fmt.Errorf("%s: the engine did not end the invocation within %s", in.path, r.timeout)
	}
	r.expect(ctx, t, in.mapping("expected"), invocationExpectations)
	r.expectBeside(ctx, t, in)
	return nil
}

// expectBeside checks expectations that stand beside expected instead of in it, and that an error was asked for if one
// came.
func (r *run) expectBeside(ctx context.Context, t *turn, in *mapping) {
	for _, key := range in.keys() {
		check, ok := besideExpectations[key]
		if field, cut := strings.CutPrefix(key, "loaded_invoke_state_for_"); cut {
			check, ok = loadedField(field), true
		}
		if ok {
			want, _ := in.value(key)
			r.fail(within(in.at(key), check(ctx, r, t, want)))
		}
	}
	outcome := in.mapping("expected").has("outcome")
	if t.err != nil && !in.has("expected_error") && !outcome {
		r.fail(fmt.Errorf("%s: the invocation failed: %w", in.path, t.err))
	}
	if t.err == nil && t.outcome.Status != graph.Completed && !outcome {
		r.fail(fmt.Errorf("%s: the invocation is %s", in.path, t.outcome.Status))
	}
}

// placeholder returns the text at key, or the invocation id that it stands for.
func (r *run) placeholder(m *mapping, key string) string {
	text := m.text(key)
	id, err := r.resolve(text)
	if err != nil {
		m.reader.problem(within(m.at(key), err))
	}
	return id
}

// resolve finds the invocation that a placeholder such as "<from previous suspended outcome>" or "<from NAME suspended
// outcome>" names (conformance-adapter §5.7). Any other text stands for itself.
func (r *run) resolve(v any) (string, error) {
	text, ok := v.(string)
	if !ok {
		return "", fmt.Errorf("want a string, got %s", show(v))
	}
	phrase, isPlaceholder := strings.CutPrefix(text, "<")
	if !isPlaceholder {
		return text, nil
	}
	var is func(t *turn) bool
	name, named := strings.CutSuffix(strings.TrimPrefix(phrase, "from "), " suspended outcome>")
	switch {
	case phrase == "from previous suspended outcome>":
		is = func(t *turn) bool { return t.status() == graph.Suspended }
	case phrase == "invocation_id from initial completed invoke>":
		is = func(t *turn) bool { return t.status() == graph.Completed }
	case named:
		is = func(t *turn) bool { return t.name == name && t.status() == graph.Suspended }
	default:
		return "", missing{text}
	}
	for _, t := range slices.Backward(r.turns) {
		if t.invoked && is(t) {
			return t.outcome.InvocationID, nil
		}
	}
	return "", fmt.Errorf("no turn before fits %s", text)
}

// invocationExpectations are the expected keys of conformance-adapter §5.6 and §5.8.
var invocationExpectations = map[string]expectation{
	"outcome": func(_ context.Context, _ *run, t *turn, want any) error { return statusIs(t.status(), want) },
	"final_state": func(ctx context.Context, _ *run, t *turn, want any) error {
		return stateWhen(ctx, t, graph.Completed, want)
	},
	"suspended_state": func(ctx context.Context, _ *run, t *turn, want any) error {
		return stateWhen(ctx, t, graph.Suspended, want)
	},
	"final_state_at_error": func(ctx context.Context, _ *run, t *turn, want any) error {
		return stateWhen(ctx, t, graph.Errored, want)
	},
	"descriptor": func(_ context.Context, _ *run, t *turn, want any) error {
		return descriptorIs(t.outcome.Descriptor, want)
	},
	"suspending_node": func(_ context.Context, _ *run, t *turn, want any) error { return equal(t.outcome.NodeName, want) },
	"execution_order": func(_ context.Context, _ *run, t *turn, want any) error { return equal(t.nodes(), want) },
	"error":           errorIs,
	"no_session_load": func(_ context.Context, _ *run, t *turn, want any) error {
		return truth(must(len(of[sessionLoaded](t.events)) == 0, "the store was asked to load"), want)
	},
	"no_session_save": func(ctx context.Context, r *run, t *turn, want any) error { return truth(r.notSaved(ctx, t), want) },
	"store_untouched": func(_ context.Context, _ *run, t *turn, want any) error {
		return truth(must(t.sessionCalls() == 0, "the store was called %d times", t.sessionCalls()), want)
	},
	"no_auto_save_on_end": func(_ context.Context, _ *run, t *turn, want any) error {
		return truth(t.noSaveAfterLastNode(), want)
	},
	"store_after":               storeAfter,
	"saved_session_assertions":  savedSession,
	"checkpointer_assertions":   checkpointed,
	"observer_events":           observerEvents,
	"observer_event_invariants": observerInvariants,
}

// besideExpectations may stand beside expected.
var besideExpectations = map[string]expectation{
	"loaded_session_state": func(_ context.Context, _ *run, t *turn, want any) error {
		loads := of[sessionLoaded](t.events)
		if len(loads) != 1 {
			return fmt.Errorf("the session was loaded %d times, want once", len(loads))
		}
		return equal(loads[0].state, want)
	},
	"expected_final_state": func(ctx context.Context, _ *run, t *turn, want any) error {
		return stateWhen(ctx, t, graph.Completed, want)
	},
	"saved_session_assertions": savedSession,
	"expected_error":           errorIs,
}

func loadedField(field string) expectation {
	return func(ctx context.Context, _ *run, t *turn, want any) error {
		state, err := t.outcome.Loaded.JSON(ctx)
		if err != nil {
			return err
		}
		return equal(state[field], want)
	}
}

// stateWhen compares the state of an outcome that ended as status.
func stateWhen(ctx context.Context, t *turn, status graph.Status, want any) error {
	if t.status() != status {
		return fmt.Errorf("the outcome is %s, want %s: %w", t.status(), status, cmpErr(t.err))
	}
	return stateIs(ctx, t.outcome.State, want)
}

func cmpErr(err error) error {
	if err == nil {
		return errors.New("there was no error")
	}
	return err
}

// errorIs compares an error's category and the node that it came from.
func errorIs(_ context.Context, _ *run, t *turn, want any) error {
	w, ok := want.(map[string]any)
	if !ok {
		return fmt.Errorf("want must be a mapping, is %s", show(want))
	}
	if t.err == nil {
		return errors.New("the invocation did not fail")
	}
	for _, key := range slices.Sorted(maps.Keys(w)) {
		switch key {
		case "category":
			if t.category() != w[key] {
				return fmt.Errorf("category: got %q, want %s", t.category(), show(w[key]))
			}
		case "raised_from":
			failure, ok := errors.AsType[*graph.Error](t.err)
			if !ok || failure.Node != w[key] {
				return fmt.Errorf("raised_from: got %q, want %s", failure.Node, show(w[key]))
			}
		default:
			return missing{key}
		}
	}
	return nil
}

// notSaved checks both ends: no save was called, and the back end holds no session that was not there before.
func (r *run) notSaved(ctx context.Context, t *turn) error {
	if n := len(of[sessionSaved](t.events)); n > 0 {
		return fmt.Errorf("the session was saved %d times", n)
	}
	for s, err := range r.records.List(ctx, graph.SessionFilter{}) {
		if err != nil {
			return err
		}
		if t.before == nil {
			return fmt.Errorf("the back end holds session %s", s.SessionID)
		}
	}
	return nil
}

// noSaveAfterLastNode checks that nothing saved the session once the last node's body had ended.
func (t *turn) noSaveAfterLastNode() error {
	saved := false
	for _, e := range t.events {
		switch e.(type) {
		case nodeReturned:
			saved = false
		case sessionSaved:
			saved = true
		}
	}
	return must(!saved, "the session was saved after the last node")
}

// storeAfter reads the back end after the invocation.
func storeAfter(ctx context.Context, r *run, _ *turn, want any) error {
	w, ok := want.(map[string]any)
	if !ok {
		return fmt.Errorf("want must be a mapping, is %s", show(want))
	}
	for _, key := range slices.Sorted(maps.Keys(w)) {
		if err := r.storeAfterPart(ctx, w, key); err != nil {
			return within(key, err)
		}
	}
	return nil
}

func (r *run) storeAfterPart(ctx context.Context, w map[string]any, key string) error {
	id, _ := w["load_returns_for_session_id"].(string)
	if key == "load_returns_none_for_session_id" {
		id, _ = w[key].(string)
	}
	rec, err := r.records.Load(ctx, id)
	if err != nil {
		return err
	}
	switch key {
	case "load_returns_none_for_session_id":
		return must(rec == nil, "there is a record")
	case "load_returns_for_session_id":
		return must(rec != nil, "there is no record")
	case "loaded_schema_version":
		if rec == nil {
			return errors.New("there is no record")
		}
		return equal(rec.SchemaVersion, w[key])
	case "loaded_state":
		state, err := r.session(ctx, id)
		if err != nil {
			return err
		}
		return equal(state, w[key])
	}
	return missing{}
}

// savedSession compares what this invocation wrote, as a load returns it.
func savedSession(ctx context.Context, r *run, t *turn, want any) error {
	w, ok := want.(map[string]any)
	if !ok {
		return fmt.Errorf("want must be a mapping, is %s", show(want))
	}
	if len(of[sessionSaved](t.events)) == 0 {
		return errors.New("the invocation saved no session")
	}
	for _, key := range slices.Sorted(maps.Keys(w)) {
		if err := savedPart(ctx, r, t, key, w[key]); err != nil {
			return within(key, err)
		}
	}
	return nil
}

func savedPart(ctx context.Context, r *run, t *turn, key string, want any) error {
	switch key {
	case "state":
		return equal(t.after, want)
	case "schema_version":
		rec, err := r.records.Load(ctx, t.session)
		if err != nil || rec == nil {
			return errors.Join(err, errors.New("there is no record"))
		}
		return equal(rec.SchemaVersion, want)
	case "excludes_fields":
		names, ok := want.([]any)
		if !ok {
			return fmt.Errorf("want must be a list, is %s", show(want))
		}
		for _, name := range names {
			if s, _ := name.(string); t.after[s] != nil {
				return fmt.Errorf("the record has %s", show(name))
			}
		}
		return nil
	}
	return missing{}
}

// checkpointed reads the record of the invocation from the back end.
func checkpointed(ctx context.Context, r *run, t *turn, want any) error {
	w, ok := want.(map[string]any)
	if !ok {
		return fmt.Errorf("want must be a mapping, is %s", show(want))
	}
	inv, err := r.records.LoadInvocation(ctx, t.outcome.InvocationID)
	if err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(w)) {
		switch key {
		case "paused_invocation_record_exists":
			err = truth(must(inv != nil && inv.Status == graph.Suspended, "there is no suspended record"), w[key])
		case "record_type":
			err = must(inv != nil && string(inv.Status) == w[key], "got %s, want %s", show(inv), show(w[key]))
		default:
			err = missing{}
		}
		if err != nil {
			return within(key, err)
		}
	}
	return nil
}

// observations are what one recording observer saw.
type observations struct {
	mu     sync.Mutex
	events []graph.Event
}

func (o *observations) observe(_ context.Context, e graph.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.events = append(o.events, e)
}

func (o *observations) all() []graph.Event {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.events)
}

// observers builds those of the case (conformance-adapter §5.5) and returns the ones attached to the graph.
func (b *bench) observers(c *mapping) []graph.Observer {
	b.observed = make(map[string]*observations)
	var attached []graph.Observer
	for _, m := range c.list("observers") {
		name, behavior, target, where := m.text("name"), m.text("behavior"), m.text("target"), m.text("attach")
		if behavior != "record" {
			c.reader.problem(missing{m.at("behavior") + ": " + behavior})
			continue
		}
		if target != "outer" {
			c.reader.problem(missing{m.at("target") + ": " + target})
		}
		seen := &observations{}
		b.observed[name] = seen
		switch where {
		case "graph":
			attached = append(attached, graph.Observer{Observe: seen.observe})
		case "invocation":
			b.attached = append(b.attached, graph.Observer{Observe: seen.observe})
		default:
			c.reader.problem(missing{m.at("attach") + ": " + where})
		}
	}
	return attached
}

// drained returns an observer's events once all are delivered.
func (r *run) drained(ctx context.Context, observer string) ([]graph.Event, error) {
	seen, ok := r.observed[observer]
	if !ok {
		return nil, fmt.Errorf("no observer is named %q", observer)
	}
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	if sum := r.compiled.Drain(ctx); sum.TimeoutReached {
		return nil, fmt.Errorf("%d events were not delivered in time", sum.Undelivered)
	}
	return seen.all(), nil
}

func observerEvents(ctx context.Context, r *run, _ *turn, want any) error {
	w, ok := want.(map[string]any)
	if !ok {
		return fmt.Errorf("want must be a mapping, is %s", show(want))
	}
	for _, name := range slices.Sorted(maps.Keys(w)) {
		wanted, ok := w[name].([]any)
		if !ok {
			return fmt.Errorf("%s must be a list, is %s", name, show(w[name]))
		}
		got, err := r.drained(ctx, name)
		if err != nil {
			return err
		}
		if len(got) != len(wanted) {
			return fmt.Errorf("%s saw %d events, want %d", name, len(got), len(wanted))
		}
		for i := range got {
			if err := eventIs(got[i], wanted[i]); err != nil {
				return within(fmt.Sprintf("%s[%d]", name, i), err)
			}
		}
	}
	return nil
}

// eventIs compares the fields of an event that the fixture cares about.
func eventIs(got graph.Event, want any) error {
	w, ok := want.(map[string]any)
	if !ok {
		return fmt.Errorf("want must be a mapping, is %s", show(want))
	}
	for _, key := range slices.Sorted(maps.Keys(w)) {
		var err error
		switch key {
		case "phase":
			err = equal(got.Phase, w[key])
		case "node_name":
			err = equal(got.NodeName, w[key])
		case "namespace":
			err = equal(got.Namespace, w[key])
		case "step":
			err = equal(got.Step, w[key])
		case "attempt_index":
			err = equal(got.AttemptIndex, w[key])
		case "descriptor":
			err = descriptorIs(got.Descriptor, w[key])
		default:
			err = missing{}
		}
		if err != nil {
			return within(key, err)
		}
	}
	return nil
}

// observerInvariants checks predicates over the events of every observer of the case (conformance-adapter §5.9).
func observerInvariants(ctx context.Context, r *run, t *turn, want any) error {
	w, ok := want.(map[string]any)
	if !ok {
		return fmt.Errorf("want must be a mapping, is %s", show(want))
	}
	for _, name := range slices.Sorted(maps.Keys(w)) {
		check, ok := eventInvariants[name]
		if !ok {
			return missing{name}
		}
		for observer := range r.observed {
			events, err := r.drained(ctx, observer)
			if err != nil {
				return err
			}
			if err := truth(check(t, events), w[name]); err != nil {
				return within(name, err)
			}
		}
	}
	return nil
}

// eventInvariants are predicates over what an observer saw of a turn that suspended.
var eventInvariants = map[string]func(t *turn, events []graph.Event) error{
	"no_completed_event_for_suspending_node": func(t *turn, events []graph.Event) error {
		return must(!slices.ContainsFunc(events, func(e graph.Event) bool {
			return e.NodeName == t.outcome.NodeName && e.Phase == graph.PhaseCompleted
		}), "there is a completed event of %s", t.outcome.NodeName)
	},
	"suspended_event_carries_descriptor": func(t *turn, events []graph.Event) error {
		return must(slices.ContainsFunc(events, func(e graph.Event) bool {
			return e.Phase == graph.PhaseSuspended && e.Descriptor != nil && t.outcome.Descriptor != nil &&
				e.Descriptor.SignalID == t.outcome.Descriptor.SignalID
		}), "no suspended event carries the descriptor")
	},
	"started_followed_by_suspended_in_order": func(t *turn, events []graph.Event) error {
		var phases []graph.Phase
		for _, e := range events {
			if e.NodeName == t.outcome.NodeName {
				phases = append(phases, e.Phase)
			}
		}
		return must(slices.Equal(phases, []graph.Phase{graph.PhaseStarted, graph.PhaseSuspended}),
			"%s went through %v, want started, suspended", t.outcome.NodeName, phases)
	},
}

var _ backend = (*store.Records)(nil)
