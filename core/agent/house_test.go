package agent_test

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"testing"

	"github.com/parley-chat/parley/core/agent"
	"github.com/parley-chat/parley/core/chat"
	"github.com/parley-chat/parley/core/graph"
	"github.com/parley-chat/parley/core/harness"
	"github.com/parley-chat/parley/core/llm"
	"github.com/parley-chat/parley/store"
	"github.com/parley-chat/parley/store/memory"
)

// model answers by a function of the request, and keeps the requests.
type model struct {
	answer func(req llm.Request) (llm.Response, error)

	mu    sync.Mutex
	asked []llm.Request
}

func (*model) Ready(context.Context) error { return nil }

func (m *model) Complete(_ context.Context, req llm.Request) (llm.Response, error) {
	m.mu.Lock()
	m.asked = append(m.asked, req)
	m.mu.Unlock()
	if err := llm.ValidateRequest(req); err != nil {
		return llm.Response{}, err
	}
	return m.answer(req)
}

func (m *model) requests() []llm.Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.asked)
}

func text(s string) (llm.Response, error) {
	return llm.Response{Message: llm.AssistantText(s), Finish: llm.FinishStop}, nil
}

func calling(calls ...llm.ToolCall) (llm.Response, error) {
	m := llm.AssistantText("Let me see.")
	m.ToolCalls = calls
	return llm.Response{Message: m, Finish: llm.FinishToolCalls}, nil
}

func call(id, tool, arguments string) llm.ToolCall {
	return llm.ToolCall{ID: id, Name: tool, Arguments: json.RawMessage(arguments)}
}

// reporting is a model that makes the calls when a user speaks and reports the results when they are there.
func reporting(calls ...llm.ToolCall) *model {
	return &model{answer: func(req llm.Request) (llm.Response, error) {
		last := req.Messages[len(req.Messages)-1]
		if last.Role != llm.ToolRole {
			return calling(calls...)
		}
		report := ""
		for _, m := range req.Messages[max(0, len(req.Messages)-len(calls)):] {
			report += "[" + m.Content.Text() + "]"
		}
		return text(report)
	}}
}

// house is an agent with everything around it, over a store that outlives it.
type house struct {
	t    *testing.T
	chat *chat.Chat
}

func newHouse(t *testing.T, kv store.KV, o agent.Options) house {
	t.Helper()
	a, err := agent.New(o)
	if err != nil {
		t.Fatal(err)
	}
	records := store.NewRecords(kv)
	engine, err := graph.Compile(a.Definition(), graph.Options{Sessions: records, SessionFields: []graph.Field{chat.Messages}, Checkpoints: records})
	if err != nil {
		t.Fatal(err)
	}
	h := harness.New(engine, harness.Sessioned, harness.Options{Coordinator: harness.Stored{Suspensions: records}})
	return house{t, chat.New(h, chat.Options{})}
}

// furnished is a house with a model and tools, in memory.
func furnished(t *testing.T, m llm.Provider, tools ...agent.Tool) house {
	return newHouse(t, memory.New(), agent.Options{Provider: m, Tools: tools})
}

const session = "session"

// send says something and returns what came of it.
func (h house) send(turn, said string) chat.TurnOutcome {
	return h.chat.Send(h.t.Context(), session, llm.UserText(said), chat.SendOptions{TurnID: turn})
}

// says says something and returns the last words of the answer.
func (h house) says(said string) string {
	h.t.Helper()
	return reply(h.t, h.send("", said))
}

func reply(t *testing.T, out chat.TurnOutcome) string {
	t.Helper()
	if out.Status != graph.Completed {
		t.Fatalf("got status %s, category %q, error %v, want completed", out.Status, out.Category, out.Err)
	}
	return out.Replies[len(out.Replies)-1].Content.Text()
}

// decide resumes a suspended turn with a decision and returns what came of it.
func (h house) decide(turn string, waiting chat.TurnOutcome, decision any) (result chat.TurnOutcome, err error) {
	h.t.Helper()
	raw, err := json.Marshal(decision)
	if err != nil {
		h.t.Fatal(err)
	}
	unsubscribe := h.chat.Subscribe(session, func(_ context.Context, out chat.TurnOutcome) error {
		result = out
		return nil
	})
	defer unsubscribe()
	_, err = h.chat.Signal(h.t.Context(), chat.Signal{
		InvocationID: waiting.InvocationID, SessionID: session, TurnID: turn, Payload: map[string]json.RawMessage{"decision": raw},
	})
	return result, err
}

// asked sends and expects a suspended turn.
func (h house) asked(said string) (chat.TurnOutcome, agent.ApprovalMetadata) {
	h.t.Helper()
	out := h.send("turn", said)
	if out.Status != graph.Suspended {
		h.t.Fatalf("got status %s, %v, want suspended", out.Status, out.Err)
	}
	var meta agent.ApprovalMetadata
	if err := json.Unmarshal(out.Descriptor.Metadata, &meta); err != nil {
		h.t.Fatal(err)
	}
	return out, meta
}

// counter is a tool that counts, and knows what it has done.
type counter struct {
	mu    sync.Mutex
	calls []agent.Call
}

func (c *counter) tool(name string, effect agent.Effect) agent.Tool {
	return agent.Tool{
		Tool: llm.Tool{Name: name, Description: "Counts.", Parameters: json.RawMessage(
			`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}`)},
		Effect: effect,
		Run: func(_ context.Context, call agent.Call) (string, error) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.calls = append(c.calls, call)
			return "counted", nil
		},
	}
}

func (c *counter) gated(name string) agent.Tool {
	t := c.tool(name, agent.Once)
	t.Approval = true
	return t
}

func (c *counter) times() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.calls)
}

func (c *counter) ran(t *testing.T, want int) {
	t.Helper()
	if got := c.times(); got != want {
		t.Errorf("the tool ran %d times, want %d", got, want)
	}
}
