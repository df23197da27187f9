// Package agent is what runs inside a turn: a tool loop with an approval gate, as a graph.
//
//	respond ── calls? ──► ask ──► gate ══ suspended until somebody decides ══► act ─┐
//	   ▲  │                                                                     ▲  │ │
//	   │  └─ calls that need no approval ───────────────────────────────────────┘  │ │
//	   └────────────────────────── no call left ◄──────────────────────────────────┴─┘
//
// respond asks the model; ask composes the pending message; gate suspends; act runs one call and comes again for the
// next, so that each call has a checkpoint before and after it. The graph is built from the rooms below and can be
// replaced by another that declares chat.Messages.
package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/parley-chat/parley/core/chat"
	"github.com/parley-chat/parley/core/graph"
	"github.com/parley-chat/parley/core/llm"
)

// The agent's own fields. They last one invocation: a session keeps the messages only.
var (
	// Pending are the calls of the last answer that have not run, in order.
	Pending = graph.Value[[]Call]("pending_calls", nil)
	// Asked are all calls of that answer: what a decision was asked for.
	Asked = graph.Value[[]Call]("asked_calls", nil)
	// Gate is the id of the signal, and the approval, that the pending calls wait for.
	Gate = graph.Value("gate", "")
	// Decision is what the signal carries: the payload of the resumption.
	Decision = graph.Value[json.RawMessage]("decision", nil)
	// Rounds counts the answers of the model in this invocation.
	Rounds = graph.Value("rounds", 0)
)

// Options make an agent.
type Options struct {
	Provider llm.Provider
	Tools    []Tool
	// Instructions are the system message. Empty: none.
	Instructions string
	// History is how many of the newest messages the model sees; 100 by default.
	History int
	// MaxRounds is how many answers a turn may take; in the last, no tool is offered. 16 by default.
	MaxRounds int
	// ModelTimeout and ToolTimeout limit one call; 5 minutes by default.
	ModelTimeout time.Duration
	ToolTimeout  time.Duration
	// NewID makes the ids of approvals.
	NewID func() string
	// Permit is the last word before an approved call runs: it checks the decision against what is to be run. Nil: the
	// decision's state decides alone.
	Permit func(decision json.RawMessage, calls []Call) error
	// Config is passed to the provider.
	Config llm.Config
}

// Agent holds what its nodes need.
type Agent struct {
	Options
	tools *tools
}

// New checks the options and the tools' schemas.
func New(o Options) (*Agent, error) {
	if o.Provider == nil {
		return nil, errors.New("agent: no provider")
	}
	ts, err := compileTools(o.Tools)
	if err != nil {
		return nil, err
	}
	setDefault(&o.History, 100)
	setDefault(&o.MaxRounds, 16)
	setDefault(&o.ModelTimeout, 5*time.Minute)
	setDefault(&o.ToolTimeout, 5*time.Minute)
	if o.NewID == nil {
		o.NewID = graph.NewID
	}
	return &Agent{Options: o, tools: ts}, nil
}

func setDefault[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}

// Definition is the agent's graph. Compile it with SessionFields chat.Messages.
func (a *Agent) Definition() graph.Definition {
	return graph.Definition{
		Version: "1",
		Fields:  []graph.Field{chat.Messages, Pending, Asked, Gate, Decision, Rounds},
		Entry:   "respond",
		Nodes: []graph.Node{
			{Name: "respond", Run: a.respond},
			{Name: "ask", Run: a.ask},
			{Name: "gate", Run: a.gate},
			{Name: "act", Run: a.act},
			{Name: "close", Run: a.close},
		},
		Edges: []graph.Edge{
			{From: "respond", Choose: afterRespond},
			{From: "ask", To: graph.To("gate")},
			{From: "gate", To: graph.To("act")},
			{From: "act", Choose: afterAct},
			{From: "close", To: graph.END},
		},
	}
}

// respond asks the model and takes its answer apart.
func (a *Agent) respond(ctx context.Context, s graph.State) (graph.Update, error) {
	req, err := a.request(ctx, s)
	if err != nil {
		return nil, err
	}
	resp, err := a.complete(ctx, req)
	if err != nil {
		return nil, err
	}
	if req.Tools == nil { // what was not offered is not called
		resp.Message.ToolCalls = nil
	}
	messages := []llm.Message{spoken(resp)}
	var pending []Call
	for _, tc := range resp.Message.ToolCalls {
		call, err := a.tools.check(tc)
		if err != nil {
			messages = append(messages, llm.ToolResult(tc.ID, "Not run: "+err.Error()))
			continue
		}
		pending = append(pending, call)
	}
	return graph.Update{chat.Messages.Add(messages...), Pending.Set(pending), Asked.Set(pending),
		Decision.Set(nil), Rounds.Set(Rounds.Get(s) + 1)}, nil
}

// spoken is what a response adds to the history. A message with neither words nor calls would make every later request
// invalid (llm-provider §3), so words say that there are none.
func spoken(resp llm.Response) llm.Message {
	m := resp.Message
	if len(m.Content) > 0 || len(m.ToolCalls) > 0 {
		return m
	}
	why := "(The model gave no answer.)"
	switch resp.Finish {
	case llm.FinishLength:
		why = "(The model gave no answer: it used up the length it may have.)"
	case llm.FinishContentFilter:
		why = "(The model gave no answer: its content filter kept it back.)"
	}
	return llm.AssistantText(why)
}

func afterRespond(ctx context.Context, s graph.State) (graph.Target, error) {
	pending := Pending.Get(s)
	if len(pending) > 0 && needsGate(pending) {
		return graph.To("ask"), nil
	}
	if len(pending) > 0 {
		return graph.To("act"), nil
	}
	last, err := chat.Messages.Get(s).Last(ctx, 1)
	if err != nil {
		return graph.Target{}, err
	}
	if len(last) == 1 && last[0].Role == llm.ToolRole { // every call was refused: the model hears why
		return graph.To("respond"), nil
	}
	return graph.END, nil
}

func needsGate(calls []Call) bool {
	for _, c := range calls {
		if c.Gated {
			return true
		}
	}
	return false
}

// request is what the model is shown.
func (a *Agent) request(ctx context.Context, s graph.State) (llm.Request, error) {
	log := chat.Messages.Get(s)
	messages, err := recent(func(n int) ([]llm.Message, error) { return log.Last(ctx, n) }, a.History)
	if err != nil {
		return llm.Request{}, err
	}
	if a.Instructions != "" {
		messages = append([]llm.Message{llm.SystemText(a.Instructions)}, messages...)
	}
	req := llm.Request{Messages: messages, Config: a.Config}
	if Rounds.Get(s) < a.MaxRounds-1 {
		req.Tools = a.tools.offered
	}
	return req, nil
}

// ask composes the pending message (harness-chat §8.1) and fixes the id of the approval before anything waits for it.
func (a *Agent) ask(_ context.Context, s graph.State) (graph.Update, error) {
	text := "I am waiting for an approval to run " + toolNames(Pending.Get(s)) + "."
	return graph.Update{chat.Messages.Add(llm.AssistantText(text)), Gate.Set(a.NewID())}, nil
}

func toolNames(calls []Call) string {
	names, seen := "", map[string]bool{}
	for _, c := range calls {
		if !c.Gated || seen[c.Tool] {
			continue
		}
		if seen[c.Tool] = true; names != "" {
			names += ", "
		}
		names += "`" + c.Tool + "`"
	}
	return names
}

// ApprovalKind is the kind in the metadata of a descriptor that asks for an approval.
const ApprovalKind = "approval"

// ApprovalMetadata is the metadata of such a descriptor.
type ApprovalMetadata struct {
	Kind   string         `json:"kind"`
	Calls  []ApprovalCall `json:"calls"`
	Reason string         `json:"reason,omitempty"`
}

// ApprovalCall is one call to agree to, exactly as it will run.
type ApprovalCall struct {
	ID          string          `json:"id"`
	Tool        string          `json:"tool"`
	Arguments   json.RawMessage `json:"arguments"`
	Destructive bool            `json:"destructive,omitempty"`
}

// gate waits for somebody's decision.
func (a *Agent) gate(ctx context.Context, s graph.State) (graph.Update, error) {
	meta := ApprovalMetadata{Kind: ApprovalKind}
	for _, c := range Pending.Get(s) {
		if c.Gated {
			meta.Calls = append(meta.Calls, ApprovalCall{c.ID, c.Tool, c.Arguments, a.tools.byName[c.Tool].Destructive})
		}
	}
	var err error
	if meta.Reason, err = reason(ctx, s, meta.Calls); err != nil {
		return nil, err
	}
	raw, err := json.Marshal(meta)
	if err != nil {
		return nil, fmt.Errorf("agent: descriptor: %w", err)
	}
	return nil, graph.Suspend(graph.Descriptor{SignalID: Gate.Get(s), Metadata: raw})
}

// reason is what the model said when it asked for the calls.
func reason(ctx context.Context, s graph.State, calls []ApprovalCall) (string, error) {
	recent, err := chat.Messages.Get(s).Last(ctx, 2+len(calls)+len(Pending.Get(s)))
	for _, m := range recent {
		for _, tc := range m.ToolCalls {
			if tc.ID == calls[0].ID {
				return m.Content.Text(), err
			}
		}
	}
	return "", err
}
