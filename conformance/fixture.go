package conformance

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
)

// missing is the error of a directive that this runner does not know, or cannot serve with today's engine
// (conformance-adapter §9).
type missing struct{ path string }

func (m missing) Error() string { return "harness_primitive_missing: " + m.path }

// invalid is the error of a fixture that is broken itself (conformance-adapter §9).
func invalid(path, format string, args ...any) error {
	return fmt.Errorf("fixture_schema_invalid: %s: %s", path, fmt.Sprintf(format, args...))
}

// readDocument reads a YAML file as JSON values: objects, lists, strings, json.Number, booleans and nil.
func readDocument(file string) (map[string]any, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return parseDocument(raw)
}

func parseDocument(raw []byte) (doc map[string]any, err error) {
	// A parser that panics on a broken fixture has found the fixture broken.
	defer func() {
		if p := recover(); p != nil {
			doc, err = nil, invalid("(file)", "the YAML parser gave up: %v", p)
		}
	}()
	dec := yaml.NewDecoder(bytes.NewReader(raw))
	var v map[string]any
	if err := dec.Decode(&v); err != nil {
		return nil, invalid("(file)", "%v", err)
	}
	var more any
	if dec.Decode(&more) == nil {
		return nil, invalid("(file)", "more than one document")
	}
	asJSON, err := json.Marshal(v)
	if err != nil {
		return nil, invalid("(file)", "%v", err)
	}
	js := json.NewDecoder(bytes.NewReader(asJSON))
	js.UseNumber()
	if err := js.Decode(&doc); err != nil {
		return nil, invalid("(file)", "%v", err)
	}
	return doc, nil
}

// reader remembers what is wrong with a case and which of its keys were read.
type reader struct {
	opened   []*mapping
	problems []error
}

// mapping is an object of a fixture that knows its path and which of its keys were read.
type mapping struct {
	path   string
	values map[string]any
	read   map[string]bool
	within map[string]*mapping // those of its values that were opened
	reader *reader
}

func (r *reader) open(path string, values map[string]any) *mapping {
	m := &mapping{path: path, values: values, read: make(map[string]bool), within: make(map[string]*mapping), reader: r}
	r.opened = append(r.opened, m)
	return m
}

func (r *reader) problem(err error) { r.problems = append(r.problems, err) }

// unread returns an error for each key that nothing asked for, of every mapping but those given.
func (r *reader) unread(but ...*mapping) []error {
	var errs []error
	for _, m := range r.opened {
		if slices.Contains(but, m) {
			continue
		}
		for _, key := range m.keys() {
			if !m.read[key] {
				errs = append(errs, missing{m.at(key)})
			}
		}
	}
	return errs
}

func (m *mapping) at(key string) string { return strings.TrimPrefix(m.path+"."+key, ".") }
func (m *mapping) keys() []string       { return slices.Sorted(maps.Keys(m.values)) }

// value returns what is at key, or nil.
func (m *mapping) value(key string) (any, bool) {
	v, ok := m.values[key]
	m.read[key] = true
	return v, ok
}

func (m *mapping) has(key string) bool {
	_, ok := m.values[key]
	return ok
}

// text returns the string at key, or "" if there is none.
func (m *mapping) text(key string) string {
	v, ok := m.value(key)
	s, isText := v.(string)
	if ok && !isText {
		m.reader.problem(invalid(m.at(key), "want a string, got %s", show(v)))
	}
	return s
}

// flag returns the boolean at key, or otherwise.
func (m *mapping) flag(key string, otherwise bool) bool {
	v, ok := m.value(key)
	if !ok {
		return otherwise
	}
	b, isFlag := v.(bool)
	if !isFlag {
		m.reader.problem(invalid(m.at(key), "want true or false, got %s", show(v)))
	}
	return b
}

// mapping returns the object at key; an absent one, or null, is empty.
func (m *mapping) mapping(key string) *mapping {
	if opened, ok := m.within[key]; ok {
		return opened
	}
	v, _ := m.value(key)
	values, ok := v.(map[string]any)
	if !ok && v != nil {
		m.reader.problem(invalid(m.at(key), "want a mapping, got %s", show(v)))
	}
	m.within[key] = m.reader.open(m.at(key), values)
	return m.within[key]
}

// list returns the objects of the list at key.
func (m *mapping) list(key string) []*mapping {
	v, _ := m.value(key)
	items, ok := v.([]any)
	if !ok && v != nil {
		m.reader.problem(invalid(m.at(key), "want a list, got %s", show(v)))
	}
	var out []*mapping
	for i, item := range items {
		path := fmt.Sprintf("%s[%d]", m.at(key), i)
		values, ok := item.(map[string]any)
		if !ok && item != nil {
			m.reader.problem(invalid(path, "want a mapping, got %s", show(item)))
		}
		out = append(out, m.reader.open(path, values))
	}
	return out
}

// raws returns the object at key as JSON by name, or nil if there is none.
func (m *mapping) raws(key string) map[string]json.RawMessage {
	v, ok := m.value(key)
	if !ok {
		return nil
	}
	values, ok := v.(map[string]any)
	if !ok && v != nil {
		m.reader.problem(invalid(m.at(key), "want a mapping, got %s", show(v)))
	}
	out := make(map[string]json.RawMessage, len(values))
	for name, value := range values {
		out[name] = asJSON(value)
	}
	return out
}

// asJSON writes a value that came from JSON.
func asJSON(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("conformance: a value read from JSON has no JSON form: %v", err))
	}
	return raw
}

// fromJSON reads JSON the way fixtures are read.
func fromJSON(raw json.RawMessage) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	err := dec.Decode(&v)
	return v, err
}

// plain turns any value that has a JSON form into objects, lists and so on.
func plain(v any) (any, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return fromJSON(raw)
}

// same compares two JSON values; numbers by value.
func same(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, b, same)
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, same)
	case json.Number:
		b, ok := b.(json.Number)
		return ok && sameNumber(a, b)
	default:
		return a == b
	}
}

func sameNumber(a, b json.Number) bool {
	if a == b {
		return true
	}
	x, errX := a.Float64()
	y, errY := b.Float64()
	return errX == nil && errY == nil && x == y
}

// equal compares something observed with a fixture's value.
func equal(got, want any) error {
	g, err := plain(got)
	if err != nil {
		return err
	}
	if same(g, want) {
		return nil
	}
	return fmt.Errorf("got %s, want %s", show(g), show(want))
}

// includes checks that every key of want is in got with that value.
func includes(got, want any) error {
	g, err := plain(got)
	if err != nil {
		return err
	}
	have, _ := g.(map[string]any)
	wanted, ok := want.(map[string]any)
	if !ok {
		return fmt.Errorf("want must be a mapping, is %s", show(want))
	}
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(wanted)) {
		if v, ok := have[key]; !ok || !same(v, wanted[key]) {
			errs = append(errs, fmt.Errorf("%s: got %s, want %s", key, show(have[key]), show(wanted[key])))
		}
	}
	return errors.Join(errs...)
}

func show(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(raw)
}
