package chat_test

import (
	"context"
	"fmt"

	"github.com/parley-chat/parley/core/chat"
	"github.com/parley-chat/parley/core/graph"
	"github.com/parley-chat/parley/core/harness"
	"github.com/parley-chat/parley/core/llm"
	"github.com/parley-chat/parley/store"
	"github.com/parley-chat/parley/store/memory"
)

// A bot that greets, and remembers how often it was spoken to.
func ExampleChat_Send() {
	records := store.NewRecords(memory.New())
	g, err := graph.Compile(graph.Definition{
		Fields: []graph.Field{chat.Messages},
		Entry:  "greet",
		Nodes: []graph.Node{{Name: "greet", Run: func(_ context.Context, s graph.State) (graph.Update, error) {
			n := chat.Messages.Get(s).Len()
			return graph.Update{chat.Messages.Add(llm.AssistantText(fmt.Sprintf("Hello. This conversation has %d messages.", n)))}, nil
		}}},
		Edges: []graph.Edge{{From: "greet", To: graph.END}},
	}, graph.Options{Sessions: records, Checkpoints: records})
	if err != nil {
		panic(err)
	}
	h := harness.New(g, harness.Sessioned, harness.Options{Coordinator: harness.Stored{Suspensions: records}})
	bot := chat.New(h, chat.Options{})
	for _, turn := range []string{"event-1", "event-2", "event-2"} { // the last is a redelivery
		out := bot.Send(context.Background(), "conversation", llm.UserText("hi"), chat.SendOptions{TurnID: turn})
		fmt.Println(out.Status, out.Replies[0].Content.Text(), out.Recorded)
	}
	// Output:
	// completed Hello. This conversation has 1 messages. false
	// completed Hello. This conversation has 3 messages. false
	// completed Hello. This conversation has 3 messages. true
}
