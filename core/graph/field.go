package graph

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
)

// Field is a typed key of the state: Var, Log field or Map. It carries its name, its reducer and its JSON form.
type Field interface {
	// Name is the field's name in sessions, payloads and fixtures.
	Name() string
	definition() *definition
}

// definition is a field without its type: what the engine works on.
type definition struct {
	name    string
	reducer string
	log     bool // stored as a Log
	initial func() any
	// reduce merges an update into the prior value. The update is the field's update type, or raw JSON of it.
	reduce func(prior, update any) (any, error)
	// decode reads a whole value; it is the schema check of graph-engine §4.
	decode func(json.RawMessage) (any, error)
	encode func(context.Context, any) (json.RawMessage, error)
	// logDelta and fromLog are set for log fields.
	logDelta func(any) (LogDelta, error)
	fromLog  func(stored Log, keep int, add []json.RawMessage) (any, error)
}

// merged calls the reducer; a panic in it is an error like any other.
func (d *definition) merged(prior, update any) (v any, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return d.reduce(prior, update)
}

// Change is one field's part of an Update.
type Change struct {
	field *definition
	name  string
	value any
}

// Update is what a node returns: changes, applied in order, each through its field's reducer.
type Update []Change

// RawChange is a change to the named field, read from JSON when it is merged. A value of the wrong form is a
// reducer_error; an unknown field a state_validation_error.
func RawChange(field string, value json.RawMessage) Change {
	return Change{name: field, value: rawUpdate(value)}
}

// rawUpdate is an update still in its JSON form.
type rawUpdate json.RawMessage

// Var is a field whose new value replaces the old (last_write_wins).
type Var[T any] struct{ def *definition }

// Value declares a field that begins as initial.
func Value[T any](name string, initial T) Var[T] {
	return Custom(name, initial, "last_write_wins", func(_, update T) (T, error) { return update, nil })
}

// Custom declares a field with a reducer of its own. reduce must not change its arguments.
func Custom[T any](name string, initial T, reducer string, reduce func(prior, update T) (T, error)) Var[T] {
	return Var[T]{&definition{
		name: name, reducer: reducer,
		initial: func() any { return initial },
		reduce: func(prior, update any) (any, error) {
			u, err := as[T](update)
			if err != nil {
				return nil, err
			}
			return reduce(typed[T](prior), u)
		},
		decode: func(raw json.RawMessage) (any, error) { return decodeStrict[T](raw) },
		encode: func(_ context.Context, v any) (json.RawMessage, error) { return json.Marshal(v) },
	}}
}

// Merge declares a mapping field: keys of an update replace those of the prior value, the rest stays (merge).
func Merge[V any](name string) Var[map[string]V] {
	return Custom(name, map[string]V{}, "merge", func(prior, update map[string]V) (map[string]V, error) {
		merged := maps.Clone(prior)
		if merged == nil {
			merged = make(map[string]V, len(update))
		}
		maps.Copy(merged, update)
		return merged, nil
	})
}

func (v Var[T]) Name() string            { return v.def.name }
func (v Var[T]) definition() *definition { return v.def }

// Get returns the field's value. The caller must not change what it refers to.
func (v Var[T]) Get(s State) T { return typed[T](s.value(v.def)) }

// Set is a change with the given update.
func (v Var[T]) Set(update T) Change { return Change{field: v.def, name: v.def.name, value: update} }

// Sequence is a list field to whose end updates are added (append).
type Sequence[T any] struct{ def *definition }

// Append declares a list field. It is stored as a log: saving writes what was added, loading reads nothing.
func Append[T any](name string, initial ...T) Sequence[T] {
	return Sequence[T]{&definition{
		name: name, reducer: "append", log: true,
		initial: func() any { return ListOf(initial...) },
		reduce: func(prior, update any) (any, error) {
			items, err := itemsOf[T](update)
			if err != nil {
				return nil, err
			}
			return prior.(List[T]).Append(items...), nil
		},
		decode: func(raw json.RawMessage) (any, error) {
			items, err := itemsOf[T](rawUpdate(raw))
			return ListOf(items...), err
		},
		encode:   func(ctx context.Context, v any) (json.RawMessage, error) { return v.(List[T]).all(ctx) },
		logDelta: func(v any) (LogDelta, error) { return v.(List[T]).delta() },
		fromLog: func(stored Log, keep int, add []json.RawMessage) (any, error) {
			l := List[T]{stored: stored, kept: keep}
			for _, raw := range add {
				item, err := decodeStrict[T](raw)
				if err != nil {
					return nil, err
				}
				l.tail = append(l.tail, item)
			}
			return l, nil
		},
	}}
}

func (q Sequence[T]) Name() string            { return q.def.name }
func (q Sequence[T]) definition() *definition { return q.def }

// Get returns the list.
func (q Sequence[T]) Get(s State) List[T] { return s.value(q.def).(List[T]) }

// Add is a change that appends items.
func (q Sequence[T]) Add(items ...T) Change {
	return Change{field: q.def, name: q.def.name, value: items}
}

// typed is v as T. A nil in a field of an interface type is its nil: the state does not know which.
func typed[T any](v any) T {
	if v == nil {
		var none T
		return none
	}
	return v.(T)
}

// as takes an update as it is, or reads it from JSON.
func as[T any](update any) (T, error) {
	if raw, ok := update.(rawUpdate); ok {
		return decodeStrict[T](json.RawMessage(raw))
	}
	t, ok := update.(T)
	if !ok && (update != nil || !nullable[T]()) {
		return t, fmt.Errorf("got %T, want %T", update, t)
	}
	return t, nil
}

// itemsOf is as for lists: each item of a JSON list must fit, and null is no list.
func itemsOf[T any](update any) ([]T, error) {
	if _, ok := update.(rawUpdate); !ok {
		return as[[]T](update)
	}
	raws, err := as[[]json.RawMessage](update)
	if err != nil {
		return nil, err
	}
	if raws == nil {
		return nil, errors.New("null is not a list")
	}
	items := make([]T, len(raws))
	for i, raw := range raws {
		if items[i], err = decodeStrict[T](raw); err != nil {
			return nil, fmt.Errorf("item %d: %w", i, err)
		}
	}
	return items, nil
}

// decodeStrict reads one JSON value. Null is a value only of types that have a nil.
func decodeStrict[T any](raw json.RawMessage) (T, error) {
	var v T
	if err := json.Unmarshal(raw, &v); err != nil {
		return v, fmt.Errorf("%s does not fit: %w", kindOf(raw), err)
	}
	if bytes.Equal(bytes.TrimSpace(raw), []byte("null")) && !nullable[T]() {
		return v, errors.New("null is not a value here")
	}
	return v, nil
}

func nullable[T any]() bool {
	kind := reflect.TypeFor[T]().Kind()
	return kind == reflect.Interface || kind == reflect.Pointer || kind == reflect.Slice
}

// kindOf names a JSON value's kind without repeating the value: errors reach logs.
func kindOf(raw json.RawMessage) string {
	switch trimmed := bytes.TrimSpace(raw); {
	case len(trimmed) == 0:
		return "nothing"
	case trimmed[0] == '"':
		return "a string"
	case trimmed[0] == '{':
		return "an object"
	case trimmed[0] == '[':
		return "a list"
	case trimmed[0] == 't' || trimmed[0] == 'f':
		return "a boolean"
	case trimmed[0] == 'n':
		return "null"
	default:
		return "a number"
	}
}
