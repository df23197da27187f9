package graph_test

import (
	"context"
	"encoding/json"
	"maps"
	"testing"

	"github.com/parley-chat/parley/core/graph"
)

func TestReducersMergeUpdates(t *testing.T) {
	max := graph.Custom("max", 0, "max", func(prior, update int) (int, error) { return max(prior, update), nil })
	tags := graph.Merge[int]("tags")
	any := graph.Value[any]("any", nil)
	d := chain()
	d.Fields = []graph.Field{said, count, max, tags, any}
	for _, tc := range []struct {
		name string
		u    graph.Update
		want string // what differs from the initial state
	}{
		{"nothing", nil, `{}`},
		{"last write wins", graph.Update{count.Set(1), count.Set(2)}, `{"count":2}`},
		{"append", graph.Update{said.Add("a"), said.Add(), said.Add("b", "c")}, `{"said":["a","b","c"]}`},
		{"merge", graph.Update{tags.Set(map[string]int{"a": 1, "b": 1}), tags.Set(map[string]int{"b": 2})}, `{"tags":{"a":1,"b":2}}`},
		{"a reducer of one's own", graph.Update{max.Set(3), max.Set(1)}, `{"max":3}`},
		{"from JSON", graph.Update{graph.RawChange("count", raw("4")), graph.RawChange("said", raw(`["x"]`)), graph.RawChange("tags", raw(`{"k":5}`))},
			`{"count":4,"said":["x"],"tags":{"k":5}}`},
		{"any value", graph.Update{graph.RawChange("any", raw(`{"a":[1,null]}`))}, `{"any":{"a":[1,null]}}`},
		{"null where it is a value", graph.Update{any.Set(1), graph.RawChange("any", raw(`null`))}, `{}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := d
			d.Nodes, d.Entry = []graph.Node{does("a", func(context.Context, graph.State) (graph.Update, error) { return tc.u, nil })}, "a"
			d.Edges = []graph.Edge{{From: "a", To: graph.END}}
			out := mustInvoke(t, onMemory(t, d), graph.Request{}, graph.Completed)
			want := map[string]json.RawMessage{"any": raw("null"), "count": raw("0"), "max": raw("0"), "said": raw("[]"), "tags": raw("{}")}
			var changed map[string]json.RawMessage
			if err := json.Unmarshal([]byte(tc.want), &changed); err != nil {
				t.Fatal(err)
			}
			maps.Copy(want, changed)
			w, err := json.Marshal(want)
			if err != nil {
				t.Fatal(err)
			}
			wantState(t, out.State, string(w))
		})
	}
}

func raw(s string) json.RawMessage { return json.RawMessage(s) }

func TestUpdatesOfTheWrongFormAreRefused(t *testing.T) {
	tags := graph.Merge[int]("tags")
	for _, tc := range []struct{ field, value string }{
		{"count", `"1"`}, {"count", `1.5`}, {"count", `null`}, {"count", `1 2`}, {"count", `1]`}, {"count", ``}, {"count", `[1]`},
		{"said", `"a"`}, {"said", `[1]`}, {"said", `[null]`}, {"said", `null`}, {"said", `{}`}, {"said", `["a"`}, {"said", `true`},
		{"tags", `[]`}, {"tags", `{"a":"b"}`}, {"tags", `null`},
	} {
		t.Run(tc.field+" "+tc.value, func(t *testing.T) {
			d := chain(does("a", func(context.Context, graph.State) (graph.Update, error) {
				return graph.Update{graph.RawChange(tc.field, raw(tc.value))}, nil
			}))
			d.Fields = append(d.Fields, tags)
			_, err := onMemory(t, d).Invoke(t.Context(), graph.Request{})
			wantError(t, err, graph.ReducerError)
		})
	}
}

func TestAMergeDoesNotChangeThePriorValue(t *testing.T) {
	tags := graph.Merge[int]("tags")
	d := chain(does("a", func(context.Context, graph.State) (graph.Update, error) {
		return graph.Update{tags.Set(map[string]int{"a": 1})}, nil
	}))
	d.Fields = append(d.Fields, tags)
	c := onMemory(t, d)
	first := mustInvoke(t, c, graph.Request{Input: graph.Update{tags.Set(map[string]int{"in": 1})}}, graph.Completed)
	second := mustInvoke(t, c, graph.Request{}, graph.Completed)
	if got := tags.Get(second.State); len(got) != 1 || len(tags.Get(first.State)) != 2 || len(tags.Get(second.Loaded)) != 0 {
		t.Errorf("the initial value was changed: %v", got)
	}
}

func TestReadingAFieldOfAnotherGraphIsAMistakeOfTheProgram(t *testing.T) {
	out := mustInvoke(t, onMemory(t, chain(says("a"))), graph.Request{}, graph.Completed)
	defer func() {
		if recover() == nil {
			t.Error("it went unnoticed")
		}
	}()
	graph.Value("count", 0).Get(out.State)
}

func TestTheZeroStateHasTheInitialValues(t *testing.T) {
	if got := graph.Value("x", 7).Get(graph.State{}); got != 7 {
		t.Errorf("got %d, want 7", got)
	}
	wantState(t, graph.State{}, `{}`)
}

func TestAStateWithoutAJSONFormIsAValidationError(t *testing.T) {
	fn := graph.Value[any]("fn", nil)
	d := chain(does("a", func(context.Context, graph.State) (graph.Update, error) {
		return graph.Update{fn.Set(func() {})}, nil
	}))
	d.Fields = append(d.Fields, fn)
	_, err := onMemory(t, d).Invoke(t.Context(), graph.Request{})
	wantError(t, err, graph.StateValidationError)
}
