package graph

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// schema is the compiled set of fields.
type schema struct {
	version string
	fields  []*definition
	index   map[string]int
}

// State is an immutable record of all fields. It is made by the engine.
type State struct {
	schema *schema
	values []any
	dirty  []bool // written since the session was loaded
	// unsaved: there was no session to load, so the first save writes all of it.
	unsaved bool
}

func (s *schema) initial() State {
	st := State{schema: s, values: make([]any, len(s.fields)), dirty: make([]bool, len(s.fields))}
	for i, f := range s.fields {
		st.values[i] = f.initial()
	}
	return st
}

func (s State) value(def *definition) any {
	if s.schema == nil {
		return def.initial()
	}
	i, ok := s.schema.index[def.name]
	if !ok || s.schema.fields[i] != def {
		panic(fmt.Sprintf("graph: field %q is not declared in this graph", def.name))
	}
	return s.values[i]
}

// with returns a copy in which field i is v.
func (s State) with(i int, v any) State {
	s.values, s.dirty = slices.Clone(s.values), slices.Clone(s.dirty)
	s.values[i], s.dirty[i] = v, true
	return s
}

// apply merges an update through the reducers (graph-engine §3 step 2). The error is an *Error.
func (s State) apply(u Update) (State, error) {
	if len(u) == 0 {
		return s, nil
	}
	next := s
	next.values, next.dirty = slices.Clone(s.values), slices.Clone(s.dirty)
	for _, change := range u {
		i, ok := s.schema.index[change.name]
		if !ok || (change.field != nil && s.schema.fields[i] != change.field) {
			return s, &Error{Category: StateValidationError, Field: change.name, Message: fmt.Sprintf("field %q is not declared", change.name)}
		}
		def := s.schema.fields[i]
		v, err := def.merged(next.values[i], change.value)
		if err != nil {
			return s, &Error{Category: ReducerError, Field: def.name, Reducer: def.reducer,
				Message: fmt.Sprintf("field %q: %s: %v", def.name, def.reducer, err), Cause: err}
		}
		next.values[i], next.dirty[i] = v, true
	}
	return next, nil
}

// overlay replaces fields by whole values, past the reducers (suspension §6). Undeclared fields are dropped.
func (s State) overlay(payload map[string]json.RawMessage) (State, error) {
	for name, raw := range payload {
		i, ok := s.schema.index[name]
		if !ok {
			continue
		}
		v, err := s.schema.fields[i].decode(raw)
		if err != nil {
			return s, &Error{Category: SuspensionResumePayloadInvalid, Field: name,
				Message: fmt.Sprintf("field %q: %v", name, err), Cause: err}
		}
		s = s.with(i, v)
	}
	return s, nil
}

// JSON returns every field's value by name, reading stored lists whole.
func (s State) JSON(ctx context.Context) (map[string]json.RawMessage, error) {
	out := make(map[string]json.RawMessage)
	if s.schema == nil {
		return out, nil
	}
	for i, f := range s.schema.fields {
		raw, err := f.encode(ctx, s.values[i])
		if err != nil {
			return nil, fmt.Errorf("graph: field %q: %w", f.name, err)
		}
		out[f.name] = raw
	}
	return out, nil
}

// Delta is what changed since the session was loaded: plain fields whole, lists by what they keep and add.
type Delta struct {
	Set  map[string]json.RawMessage `json:"set,omitempty"`
	Logs map[string]LogDelta        `json:"logs,omitempty"`
}

// LogDelta turns a stored list into a new one: its first Keep items, then Add.
type LogDelta struct {
	Keep int               `json:"keep"`
	Add  []json.RawMessage `json:"add,omitempty"`
}

// delta collects the written fields for which include is true.
func (s State) delta(include func(i int) bool) (Delta, error) {
	var d Delta
	for i, f := range s.schema.fields {
		if !s.dirty[i] || !include(i) {
			continue
		}
		if f.log {
			ld, err := f.logDelta(s.values[i])
			if err != nil {
				return Delta{}, fmt.Errorf("graph: field %q: %w", f.name, err)
			}
			if d.Logs == nil {
				d.Logs = make(map[string]LogDelta)
			}
			d.Logs[f.name] = ld
			continue
		}
		raw, err := f.encode(nil, s.values[i])
		if err != nil {
			return Delta{}, fmt.Errorf("graph: field %q: %w", f.name, err)
		}
		if d.Set == nil {
			d.Set = make(map[string]json.RawMessage)
		}
		d.Set[f.name] = raw
	}
	return d, nil
}

// patch applies a recorded delta on top of the state: the inverse of delta.
func (s State) patch(d Delta) (State, error) {
	for name, raw := range d.Set {
		i, ok := s.schema.index[name]
		if !ok {
			continue
		}
		v, err := s.schema.fields[i].decode(raw)
		if err != nil {
			return s, fmt.Errorf("graph: recorded field %q: %w", name, err)
		}
		s = s.with(i, v)
	}
	for name, ld := range d.Logs {
		i, ok := s.schema.index[name]
		if !ok || !s.schema.fields[i].log {
			continue
		}
		stored, length := storedLog(s.values[i])
		v, err := s.schema.fields[i].fromLog(stored, min(ld.Keep, length), ld.Add)
		if err != nil {
			return s, fmt.Errorf("graph: recorded field %q: %w", name, err)
		}
		s = s.with(i, v)
	}
	return s, nil
}

// stored are the lengths of what lists have in the session.
func (s State) stored() LogLengths {
	l := LogLengths{}
	for i, f := range s.schema.fields {
		if f.log {
			_, l[f.name] = storedLog(s.values[i])
		}
	}
	return l
}

// after moves what a delta appends behind what other turns have appended since. then are the lengths of the stored lists
// when the delta began. A list that was replaced, or that the session has lost, is left as it is.
func (s State) after(d Delta, then LogLengths) Delta {
	now := s.stored()
	d.Logs = maps.Clone(d.Logs)
	for name, ld := range d.Logs {
		i, ok := s.schema.index[name]
		if !ok || ld.Keep != then[name] || now[name] <= ld.Keep {
			continue
		}
		if ld.Keep == 0 {
			// The other turn began the session, and saved the initial items with it.
			ld.Add = ld.Add[min(len(ld.Add), s.schema.fields[i].initial().(interface{ Len() int }).Len()):]
		}
		ld.Keep = now[name]
		d.Logs[name] = ld
	}
	return d
}

// backed is a list of any item type.
type backed interface{ backing() (Log, int) }

func (l List[T]) backing() (Log, int) { return l.stored, l.kept }

func storedLog(v any) (Log, int) { return v.(backed).backing() }
