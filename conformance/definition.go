package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/parley-chat/parley/core/chat"
	"github.com/parley-chat/parley/core/graph"
	"github.com/parley-chat/parley/core/llm"
)

// definition builds the graph of a case. What cannot be built is a problem of the reader.
func (b *bench) definition(c *mapping) graph.Definition {
	state := c.mapping("state")
	d := graph.Definition{Version: state.text("schema_version"), Entry: c.text("entry")}
	fields := state.mapping("fields")
	for _, name := range fields.keys() {
		spec := fields.mapping(name)
		field, err := declare(name, spec)
		if err != nil {
			c.reader.problem(err)
			continue
		}
		d.Fields = append(d.Fields, field)
		b.fields[name], b.lists[name] = field, spec.values["reducer"] == "append"
	}
	nodes := c.mapping("nodes")
	for _, name := range nodes.keys() {
		d.Nodes = append(d.Nodes, graph.Node{Name: name, Run: b.body(name, nodes.mapping(name))})
	}
	for _, e := range c.list("edges") {
		d.Edges = append(d.Edges, edge(e))
	}
	return d
}

// declare makes a typed field (conformance-adapter §5.2).
func declare(name string, spec *mapping) (graph.Field, error) {
	typ, reducer := strings.ReplaceAll(spec.text("type"), " ", ""), "last_write_wins"
	if spec.has("reducer") {
		reducer = spec.text("reducer")
	}
	initial, _ := spec.value("default")
	if name == chat.Messages.Name() && typ == "list[ChatMessage]" && reducer == "append" && isEmptyList(initial) {
		return chat.Messages, nil
	}
	element, isList := elementOf(typ, "list")
	switch {
	case reducer == "append" && isList:
		return sequence(name, element, spec, initial)
	case reducer == "append":
		return nil, invalid(spec.at("reducer"), "append is for lists, not for %q", typ)
	case reducer == "merge" && (typ == "dict" || typ == "dict<string,any>"):
		return graph.Merge[any](name), noDefault(spec, initial)
	case reducer == "last_write_wins":
		return variable(name, typ, spec, initial)
	}
	return nil, missing{spec.at("reducer")}
}

// elementOf takes list, list<T> and list[T] apart; the element of a bare list is any.
func elementOf(typ, container string) (element string, ok bool) {
	rest, ok := strings.CutPrefix(typ, container)
	if !ok {
		return "", false
	}
	if rest == "" {
		return "any", true
	}
	if (rest[0] == '<' && strings.HasSuffix(rest, ">")) || (rest[0] == '[' && strings.HasSuffix(rest, "]")) {
		return rest[1 : len(rest)-1], true
	}
	return "", false
}

func isEmptyList(v any) bool {
	items, ok := v.([]any)
	return v == nil || ok && len(items) == 0
}

func noDefault(spec *mapping, initial any) error {
	if m, ok := initial.(map[string]any); initial != nil && (!ok || len(m) > 0) {
		return missing{spec.at("default")}
	}
	return nil
}

// sequence declares a list with the append reducer.
func sequence(name, element string, spec *mapping, initial any) (graph.Field, error) {
	switch element {
	case "int":
		return appendTo[int](name, spec, initial)
	case "float":
		return appendTo[float64](name, spec, initial)
	case "bool":
		return appendTo[bool](name, spec, initial)
	case "string", "str":
		return appendTo[string](name, spec, initial)
	case "any":
		return appendTo[any](name, spec, initial)
	case "ChatMessage":
		return appendTo[llm.Message](name, spec, initial)
	}
	return nil, missing{spec.at("type")}
}

func appendTo[T any](name string, spec *mapping, initial any) (graph.Field, error) {
	items, err := defaultOf[[]T](spec, initial)
	return graph.Append(name, items...), err
}

// variable declares a field whose new value replaces the old.
func variable(name, typ string, spec *mapping, initial any) (graph.Field, error) {
	switch typ {
	case "int":
		return valueOf[int](name, spec, initial)
	case "float":
		return valueOf[float64](name, spec, initial)
	case "bool":
		return valueOf[bool](name, spec, initial)
	case "string", "str":
		return valueOf[string](name, spec, initial)
	case "any":
		return valueOf[any](name, spec, initial)
	case "dict":
		return valueOf[map[string]any](name, spec, initial)
	}
	element, isList := elementOf(typ, "list")
	switch {
	case isList && element == "any":
		return valueOf[[]any](name, spec, initial)
	case isList && element == "int":
		return valueOf[[]int](name, spec, initial)
	case isList && element == "bool":
		return valueOf[[]bool](name, spec, initial)
	case isList && (element == "string" || element == "str"):
		return valueOf[[]string](name, spec, initial)
	}
	return nil, missing{spec.at("type")}
}

func valueOf[T any](name string, spec *mapping, initial any) (graph.Field, error) {
	v, err := defaultOf[T](spec, initial)
	return graph.Value(name, v), err
}

func defaultOf[T any](spec *mapping, initial any) (T, error) {
	var v T
	if initial == nil {
		return v, nil
	}
	if err := json.Unmarshal(asJSON(initial), &v); err != nil {
		return v, invalid(spec.at("default"), "%s does not fit the declared type", show(initial))
	}
	return v, nil
}

// body is a node that does what its directives say (conformance-adapter §5.1) and writes down that it ran.
func (b *bench) body(name string, n *mapping) graph.NodeFunc {
	update := n.raws("update")
	if n.has("update_pure") {
		update = n.raws("update_pure")
	}
	failure := raises(n)
	suspension := suspends(n)
	save := n.flag("explicit_save_session", false)
	if suspension != nil && update != nil {
		n.reader.problem(invalid(n.path, "a node returns an update or suspends, not both"))
	}
	run := func(ctx context.Context, s graph.State) (graph.Update, error) {
		if failure != nil {
			return nil, failure
		}
		if suspension != nil {
			return nil, graph.Suspend(*suspension)
		}
		changes := changesOf(update)
		if save {
			return changes, b.compiled.Save(ctx, s, changes...)
		}
		return changes, nil
	}
	return func(ctx context.Context, s graph.State) (graph.Update, error) {
		b.journal.add(nodeStarted{name, s})
		u, err := run(ctx, s)
		b.journal.add(nodeReturned{name, update, err})
		return u, err
	}
}

func changesOf(values map[string]json.RawMessage) graph.Update {
	var u graph.Update
	for field, raw := range values {
		u = append(u, graph.RawChange(field, raw))
	}
	return u
}

// raises reads the error a node ends with: a text, or a category with a text.
func raises(n *mapping) error {
	if !n.has("raises") {
		return nil
	}
	v, _ := n.value("raises")
	if text, ok := v.(string); ok {
		return errors.New(text)
	}
	m := n.mapping("raises")
	return &raised{category: m.text("category"), message: m.text("message")}
}

func suspends(n *mapping) *graph.Descriptor {
	if !n.has("suspend_with_descriptor") {
		return nil
	}
	m := n.mapping("suspend_with_descriptor")
	d := &graph.Descriptor{SignalID: m.text("signal_id")}
	if metadata, ok := m.value("metadata"); ok {
		d.Metadata = asJSON(metadata)
	}
	return d
}

// edge reads a static edge or a condition on a field (conformance-adapter §5.3).
func edge(e *mapping) graph.Edge {
	from := e.text("from")
	if !e.has("condition") {
		return graph.Edge{From: from, To: target(e.text("to"))}
	}
	c := e.mapping("condition")
	field, then, otherwise := c.text("if_field"), target(c.text("then")), target(c.text("else"))
	wanted, _ := c.value("equals")
	return graph.Edge{From: from, Choose: func(ctx context.Context, s graph.State) (graph.Target, error) {
		state, err := s.JSON(ctx)
		if err != nil {
			return graph.Target{}, err
		}
		value, ok := state[field]
		if !ok {
			return graph.Target{}, fmt.Errorf("the condition reads field %q, which is not declared", field)
		}
		if equal(value, wanted) == nil {
			return then, nil
		}
		return otherwise, nil
	}}
}

func target(name string) graph.Target {
	if name == "END" {
		return graph.END
	}
	return graph.To(name)
}
