package graph_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/parley-chat/parley/core/graph"
	"github.com/parley-chat/parley/store"
	"github.com/parley-chat/parley/store/memory"
)

// The fields of most graphs here: a list of what nodes said, and a number.
var (
	said  = graph.Append[string]("said")
	count = graph.Value("count", 0)
)

// says is a node that adds its name to the list.
func says(name string) graph.Node {
	return graph.Node{Name: name, Run: func(context.Context, graph.State) (graph.Update, error) {
		return graph.Update{said.Add(name)}, nil
	}}
}

// does is a node with the given body.
func does(name string, run graph.NodeFunc) graph.Node { return graph.Node{Name: name, Run: run} }

// waits is a node that suspends.
func waits(name, signalID string) graph.Node {
	return does(name, func(context.Context, graph.State) (graph.Update, error) {
		return nil, graph.Suspend(graph.Descriptor{SignalID: signalID})
	})
}

// chain is a graph of nodes one after the other.
func chain(nodes ...graph.Node) graph.Definition {
	d := graph.Definition{Fields: []graph.Field{said, count}, Nodes: nodes}
	if len(nodes) > 0 {
		d.Entry = nodes[0].Name
	}
	for i, n := range nodes {
		to := graph.END
		if i+1 < len(nodes) {
			to = graph.To(nodes[i+1].Name)
		}
		d.Edges = append(d.Edges, graph.Edge{From: n.Name, To: to})
	}
	return d
}

func compile(t testing.TB, d graph.Definition, o graph.Options) *graph.Compiled {
	t.Helper()
	c, err := graph.Compile(d, o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// keeping are options that keep sessions and invocations in kv.
func keeping(kv store.KV) graph.Options {
	r := store.NewRecords(kv)
	return graph.Options{Sessions: r, Checkpoints: r}
}

// onMemory compiles over an empty store.
func onMemory(t testing.TB, d graph.Definition) *graph.Compiled {
	t.Helper()
	return compile(t, d, keeping(memory.New()))
}

func stateJSON(t testing.TB, s graph.State) string {
	t.Helper()
	state, err := s.JSON(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(state)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func wantState(t testing.TB, s graph.State, want string) {
	t.Helper()
	if got := stateJSON(t, s); got != want {
		t.Errorf("the state is %s, want %s", got, want)
	}
}

func wantSaid(t testing.TB, s graph.State, want ...string) {
	t.Helper()
	got, err := said.Get(s).All(t.Context())
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("said %v (%v), want %v", got, err, want)
	}
}

// wantError checks the engine's own category of err, and returns the error.
func wantError(t testing.TB, err error, category string) *graph.Error {
	t.Helper()
	e, ok := errors.AsType[*graph.Error](err)
	if !ok || e.Category != category {
		t.Fatalf("got %v, want %s", err, category)
	}
	return e
}

func mustInvoke(t testing.TB, c *graph.Compiled, req graph.Request, want graph.Status) graph.Outcome {
	t.Helper()
	out, err := c.Invoke(t.Context(), req)
	if err != nil || out.Status != want {
		t.Fatalf("the outcome is %s (%v), want %s", out.Status, err, want)
	}
	return out
}

func TestCompileRefusesWhatCannotRun(t *testing.T) {
	a, b := says("a"), says("b")
	end := graph.Edge{From: "a", To: graph.END}
	for _, tc := range []struct {
		name string
		d    graph.Definition
		o    graph.Options
		want string
	}{
		{"no entry", graph.Definition{Nodes: []graph.Node{a}, Edges: []graph.Edge{end}}, graph.Options{}, graph.NoDeclaredEntry},
		{"an entry that is no node", graph.Definition{Entry: "x", Nodes: []graph.Node{a}, Edges: []graph.Edge{end}}, graph.Options{}, graph.DanglingEdge},
		{"an edge to nowhere", graph.Definition{Entry: "a", Nodes: []graph.Node{a}, Edges: []graph.Edge{{From: "a", To: graph.To("x")}}}, graph.Options{}, graph.DanglingEdge},
		{"an edge from nowhere", graph.Definition{Entry: "a", Nodes: []graph.Node{a}, Edges: []graph.Edge{end, {From: "x", To: graph.END}}}, graph.Options{}, graph.DanglingEdge},
		{"two edges from a node", graph.Definition{Entry: "a", Nodes: []graph.Node{a}, Edges: []graph.Edge{end, end}}, graph.Options{}, graph.MultipleOutgoingEdges},
		{"no edge from a node", graph.Definition{Entry: "a", Nodes: []graph.Node{a}}, graph.Options{}, graph.NoOutgoingEdge},
		{"a node that nothing leads to", graph.Definition{Entry: "a", Nodes: []graph.Node{a, b}, Edges: []graph.Edge{end, {From: "b", To: graph.END}}}, graph.Options{}, graph.UnreachableNode},
		{"two nodes of one name", graph.Definition{Entry: "a", Nodes: []graph.Node{a, a}, Edges: []graph.Edge{end}}, graph.Options{}, graph.DuplicateNode},
		{"two reducers for one field", func() graph.Definition {
			d := chain(a)
			d.Fields = append(d.Fields, graph.Value("said", ""))
			return d
		}(), graph.Options{}, graph.ConflictingReducers},
		{"a session field that is not declared", chain(a), graph.Options{SessionFields: []graph.Field{graph.Value("other", 1)}}, graph.MappingUndeclaredField},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := graph.Compile(tc.d, tc.o)
			wantError(t, err, tc.want)
		})
	}
}

func TestANodeMayBeNamedEND(t *testing.T) {
	out := mustInvoke(t, onMemory(t, chain(says("a"), says("END"))), graph.Request{}, graph.Completed)
	wantSaid(t, out.State, "a", "END")
}

func TestAConditionalEdgeSeesTheStateAfterItsNode(t *testing.T) {
	d := chain(says("a"), says("b"), says("c"))
	d.Edges[0] = graph.Edge{From: "a", Choose: func(ctx context.Context, s graph.State) (graph.Target, error) {
		if words, err := said.Get(s).All(ctx); err != nil || !slices.Equal(words, []string{"a"}) {
			t.Errorf("the edge sees %v (%v)", words, err)
		}
		return graph.To("c"), nil
	}}
	out := mustInvoke(t, onMemory(t, d), graph.Request{}, graph.Completed)
	wantSaid(t, out.State, "a", "c")
}

func TestALoopRunsUntilItsEdgeLeavesIt(t *testing.T) {
	d := chain(does("step", func(_ context.Context, s graph.State) (graph.Update, error) {
		return graph.Update{count.Set(count.Get(s) + 1)}, nil
	}))
	d.Edges[0] = graph.Edge{From: "step", Choose: func(_ context.Context, s graph.State) (graph.Target, error) {
		if count.Get(s) < 5 {
			return graph.To("step"), nil
		}
		return graph.END, nil
	}}
	out := mustInvoke(t, onMemory(t, d), graph.Request{}, graph.Completed)
	wantState(t, out.State, `{"count":5,"said":[]}`)
}

var errBoom = errors.New("boom")

func TestAFailureSaysWhereAndKeepsTheStateOfThatPoint(t *testing.T) {
	choose := func(to graph.Target, err error) graph.Definition {
		d := chain(says("a"), says("b"))
		d.Edges[0] = graph.Edge{From: "a", Choose: func(context.Context, graph.State) (graph.Target, error) { return to, err }}
		return d
	}
	panics := func(string) graph.Definition {
		d := chain(says("a"), says("b"))
		d.Edges[0] = graph.Edge{From: "a", Choose: func(context.Context, graph.State) (graph.Target, error) { panic("edge") }}
		return d
	}
	reducer := graph.Custom("picky", 0, "picky", func(_, update int) (int, error) {
		if update == 13 {
			panic("thirteen")
		}
		return 0, errBoom
	})
	reduces := func(value int) graph.Definition {
		d := chain(says("a"), does("b", func(context.Context, graph.State) (graph.Update, error) {
			return graph.Update{said.Add("lost"), reducer.Set(value)}, nil
		}))
		d.Fields = append(d.Fields, reducer)
		return d
	}
	returns := func(u graph.Update, err error) graph.Definition {
		return chain(says("a"), does("b", func(context.Context, graph.State) (graph.Update, error) { return u, err }))
	}
	for _, tc := range []struct {
		name     string
		d        graph.Definition
		category string
		node     string
		cause    error
		said     []string
	}{
		{"a node fails", returns(graph.Update{said.Add("lost")}, errBoom), graph.NodeException, "b", errBoom, []string{"a"}},
		{"a node panics", chain(says("a"), does("b", func(context.Context, graph.State) (graph.Update, error) { panic("node") })), graph.NodeException, "b", nil, []string{"a"}},
		{"an edge fails", choose(graph.END, errBoom), graph.EdgeException, "a", errBoom, []string{"a"}},
		{"an edge panics", panics(""), graph.EdgeException, "a", nil, []string{"a"}},
		{"an edge leads nowhere", choose(graph.To("x"), nil), graph.RoutingError, "a", nil, []string{"a"}},
		{"a reducer fails", reduces(1), graph.ReducerError, "b", errBoom, []string{"a"}},
		{"a reducer panics", reduces(13), graph.ReducerError, "b", nil, []string{"a"}},
		{"an update has the wrong form", returns(graph.Update{graph.RawChange("said", json.RawMessage(`"x"`))}, nil), graph.ReducerError, "b", nil, []string{"a"}},
		{"an update has a field that is not declared", returns(graph.Update{graph.RawChange("other", json.RawMessage(`1`))}, nil), graph.StateValidationError, "b", nil, []string{"a"}},
		{"an update has another graph's field of the same name", returns(graph.Update{graph.Append[string]("said").Add("x")}, nil), graph.StateValidationError, "b", nil, []string{"a"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			out, err := onMemory(t, tc.d).Invoke(t.Context(), graph.Request{})
			e := wantError(t, err, tc.category)
			if e.Node != tc.node || !slices.Equal(e.Namespace, []string{tc.node}) {
				t.Errorf("at %q %v, want %q", e.Node, e.Namespace, tc.node)
			}
			if tc.cause != nil && !errors.Is(err, tc.cause) {
				t.Errorf("%v does not wrap %v", err, tc.cause)
			}
			if out.Status != graph.Errored {
				t.Errorf("the outcome is %s", out.Status)
			}
			wantSaid(t, e.State, tc.said...)
			wantSaid(t, out.State, tc.said...)
		})
	}
}

func TestAReducerErrorNamesFieldReducerAndNode(t *testing.T) {
	d := chain(does("a", func(context.Context, graph.State) (graph.Update, error) {
		return graph.Update{graph.RawChange("said", json.RawMessage(`{"secret": 1}`))}, nil
	}))
	_, err := onMemory(t, d).Invoke(t.Context(), graph.Request{})
	e := wantError(t, err, graph.ReducerError)
	if e.Field != "said" || e.Reducer != "append" || e.Node != "a" {
		t.Errorf("got field %q, reducer %q, node %q", e.Field, e.Reducer, e.Node)
	}
	if strings.Contains(err.Error(), "secret") {
		t.Errorf("the error repeats the value: %v", err)
	}
}

func TestInputIsMergedThroughTheReducers(t *testing.T) {
	c := onMemory(t, chain(says("a")))
	out := mustInvoke(t, c, graph.Request{Input: graph.Update{said.Add("in"), count.Set(3), count.Set(4)}}, graph.Completed)
	wantState(t, out.State, `{"count":4,"said":["in","a"]}`)
	_, err := c.Invoke(t.Context(), graph.Request{Input: graph.Update{graph.RawChange("count", json.RawMessage(`"x"`))}})
	wantError(t, err, graph.ReducerError)
}

func TestNodesSeeTheIdentityOfTheirInvocation(t *testing.T) {
	var got graph.Identity
	c := onMemory(t, chain(does("a", func(ctx context.Context, _ graph.State) (graph.Update, error) {
		got = graph.IdentityFrom(ctx)
		return nil, nil
	})))
	mustInvoke(t, c, graph.Request{SessionID: "s", InvocationID: "i", CorrelationID: "c", TurnID: "t"}, graph.Completed)
	if want := (graph.Identity{InvocationID: "i", CorrelationID: "c", SessionID: "s", TurnID: "t", Node: "a"}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	out := mustInvoke(t, c, graph.Request{}, graph.Completed)
	if out.InvocationID == "" || out.CorrelationID != out.InvocationID || got.TurnID != out.InvocationID {
		t.Errorf("ids that were not given: %+v, %+v", out, got)
	}
	if (graph.IdentityFrom(context.Background()) != graph.Identity{}) {
		t.Error("there is an identity outside of an invocation")
	}
}

func TestWhatANodeEmitsReachesTheCaller(t *testing.T) {
	c := onMemory(t, chain(does("a", func(ctx context.Context, _ graph.State) (graph.Update, error) {
		graph.Emit(ctx, "first")
		graph.Emit(ctx, "second")
		return nil, nil
	})))
	var got []any
	mustInvoke(t, c, graph.Request{OnEmit: func(v any) { got = append(got, v) }}, graph.Completed)
	if !slices.Equal(got, []any{"first", "second"}) {
		t.Errorf("got %v", got)
	}
	mustInvoke(t, c, graph.Request{}, graph.Completed) // nobody watches
	graph.Emit(context.Background(), "outside")
}

func TestNewIDIsARandomUUID(t *testing.T) {
	a, b := graph.NewID(), graph.NewID()
	if a == b || len(a) != 36 || a[14] != '4' || !strings.ContainsRune("89ab", rune(a[19])) {
		t.Errorf("got %s and %s", a, b)
	}
}

// A cancelled invocation is over; an interrupted one is not.
func TestACancelledTurnIsRecordedAndAnInterruptedOneGoesOn(t *testing.T) {
	for _, tc := range []struct {
		name     string
		cause    error
		category string
		again    graph.Status
	}{
		{"cancelled", graph.ErrCancelled, graph.Cancelled, graph.Errored},
		{"interrupted", errors.New("shutting down"), graph.Interrupted, graph.Completed},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			runs := 0
			c := onMemory(t, chain(says("a"), does("b", func(ctx context.Context, _ graph.State) (graph.Update, error) {
				if runs++; runs == 1 {
					cancel(tc.cause)
					return nil, context.Cause(ctx)
				}
				return graph.Update{said.Add("b")}, nil
			})))
			req := graph.Request{SessionID: "s", InvocationID: "i"}
			_, err := c.Invoke(ctx, req)
			wantError(t, err, tc.category)
			out, err := c.Invoke(t.Context(), req)
			if out.Status != tc.again || out.Recorded != (tc.again == graph.Errored) {
				t.Errorf("invoked again it is %s (%v), recorded %v; want %s", out.Status, err, out.Recorded, tc.again)
			}
			if tc.again == graph.Completed {
				wantSaid(t, out.State, "a", "b")
			}
		})
	}
}

func TestATurnWhoseContextEndedBeforeItBeganLeavesNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c := onMemory(t, chain(says("a")))
	_, err := c.Invoke(ctx, graph.Request{InvocationID: "i"})
	if err == nil {
		t.Fatal("it ran")
	}
	mustInvoke(t, c, graph.Request{InvocationID: "i"}, graph.Completed)
}

func TestCategoriesAndDiagnosticsComeFromTheCause(t *testing.T) {
	cause := &told{category: "provider_unavailable", text: "the model is away"}
	_, err := onMemory(t, chain(does("a", func(context.Context, graph.State) (graph.Update, error) { return nil, cause }))).
		Invoke(t.Context(), graph.Request{})
	wantError(t, err, graph.NodeException)
	if got := graph.CategoryOf(err); got != "provider_unavailable" {
		t.Errorf("the category is %q", got)
	}
	if got := graph.DiagnosticOf(err); got != "the model is away" {
		t.Errorf("the diagnostic is %q", got)
	}
	if graph.CategoryOf(errBoom) != "" || graph.DiagnosticOf(errBoom) != "" {
		t.Error("an error without a category has one")
	}
}

type told struct{ category, text string }

func (e *told) Error() string         { return e.category + ": " + e.text }
func (e *told) ErrorCategory() string { return e.category }
func (e *told) Diagnostic() string    { return e.text }
