package graph_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/parley-chat/parley/core/graph"
	"github.com/parley-chat/parley/store"
	"github.com/parley-chat/parley/store/memory"
)

// A graph of one node that answers a greeting.
func Example() {
	greeting := graph.Value("greeting", "")
	words := graph.Append[string]("words")
	g, err := graph.Compile(graph.Definition{
		Fields: []graph.Field{greeting, words},
		Entry:  "answer",
		Nodes: []graph.Node{{Name: "answer", Run: func(_ context.Context, s graph.State) (graph.Update, error) {
			return graph.Update{words.Add(greeting.Get(s) + " yourself")}, nil
		}}},
		Edges: []graph.Edge{{From: "answer", To: graph.END}},
	}, graph.Options{})
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	out, err := g.Invoke(ctx, graph.Request{Input: graph.Update{greeting.Set("hello")}})
	if err != nil {
		panic(err)
	}
	said, err := words.Get(out.State).All(ctx)
	fmt.Println(out.Status, said, err)
	// Output: completed [hello yourself] <nil>
}

// A node waits for a decision. The invocation is kept in the store, so it may go on in another process.
func ExampleSuspend() {
	approved := graph.Value("approved", false)
	result := graph.Value("result", "")
	records := store.NewRecords(memory.New())
	g, err := graph.Compile(graph.Definition{
		Fields: []graph.Field{approved, result},
		Entry:  "ask",
		Nodes: []graph.Node{
			{Name: "ask", Run: func(context.Context, graph.State) (graph.Update, error) {
				return nil, graph.Suspend(graph.Descriptor{SignalID: "deploy-42"})
			}},
			{Name: "act", Run: func(_ context.Context, s graph.State) (graph.Update, error) {
				if !approved.Get(s) {
					return graph.Update{result.Set("left alone")}, nil
				}
				return graph.Update{result.Set("deployed")}, nil
			}},
		},
		Edges: []graph.Edge{{From: "ask", To: graph.To("act")}, {From: "act", To: graph.END}},
	}, graph.Options{Checkpoints: records})
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	out, err := g.Invoke(ctx, graph.Request{})
	fmt.Println(out.Status, out.Descriptor.SignalID, err)
	out, err = g.Invoke(ctx, graph.Request{Resume: out.InvocationID, Payload: map[string]json.RawMessage{"approved": json.RawMessage("true")}})
	fmt.Println(out.Status, result.Get(out.State), err)
	// Output:
	// suspended deploy-42 <nil>
	// completed deployed <nil>
}
