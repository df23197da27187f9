package agent

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/parley-chat/parley/core/llm"
)

// Effect says what running a tool again would do: it decides what happens to a call that a crash cut short.
type Effect string

const (
	// Once: running it again would do it again. After a crash its outcome is unknown, and said so, unless Settle knows.
	Once Effect = "once"
	// Idempotent: running it again with the same call changes nothing more.
	Idempotent Effect = "idempotent"
	// ReadOnly: it changes nothing.
	ReadOnly Effect = "read_only"
)

// Tool is something the agent can do.
type Tool struct {
	llm.Tool
	// Approval demands that a person agrees before each call runs.
	Approval bool
	// Destructive marks what cannot be undone; people are asked once more.
	Destructive bool
	// Effect is Once if empty.
	Effect Effect
	// Run does it. The result is for the model; an error is told to the model too and does not end the turn.
	Run func(ctx context.Context, c Call) (string, error)
	// Settle is asked about a call that a crash cut short: whether it was done, and with what result. Nil: nobody knows.
	Settle func(ctx context.Context, c Call) (result string, done bool, err error)
}

// Call is one call of a tool. Its arguments are valid by the tool's schema.
type Call struct {
	ID        string          `json:"id"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
	// Approval is the id under which a person agreed; empty if none had to.
	Approval string `json:"approval,omitempty"`
	// Gated says that the call runs only if a person agrees.
	Gated bool `json:"gated,omitempty"`
}

// tools are the declared tools by name, with their compiled schemas.
type tools struct {
	byName  map[string]Tool
	schemas map[string]*llm.Schema
	offered []llm.Tool
}

func compileTools(declared []Tool) (*tools, error) {
	ts := &tools{byName: make(map[string]Tool), schemas: make(map[string]*llm.Schema)}
	for _, t := range declared {
		if _, twice := ts.byName[t.Name]; twice {
			return nil, fmt.Errorf("agent: two tools are called %q", t.Name)
		}
		if t.Run == nil {
			return nil, fmt.Errorf("agent: tool %q has no Run", t.Name)
		}
		schema, err := llm.CompileSchema(t.Parameters)
		if err != nil {
			return nil, fmt.Errorf("agent: tool %q: parameters: %w", t.Name, err)
		}
		ts.byName[t.Name], ts.schemas[t.Name] = t, schema
		ts.offered = append(ts.offered, t.Tool)
	}
	return ts, nil
}

// check turns a model's request into a call, or says to the model why it cannot run.
func (ts *tools) check(c llm.ToolCall) (Call, error) {
	t, ok := ts.byName[c.Name]
	if !ok {
		return Call{}, fmt.Errorf("there is no tool %q", c.Name)
	}
	if err := ts.schemas[c.Name].Validate(c.Arguments); err != nil {
		return Call{}, fmt.Errorf("the arguments do not fit: %w", err)
	}
	return Call{ID: c.ID, Tool: c.Name, Arguments: c.Arguments, Gated: t.Approval}, nil
}
