package platformtest

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/parley-chat/parley/core/llm"
)

// Deployer is a model that calls the tool deploy when it is told "deploy SERVICE", reports what the tool said, and echoes
// anything else.
type Deployer struct {
	// Services, if there are any, are what it deploys instead, one after the other.
	Services []string

	mu sync.Mutex
}

// service is what to deploy when it is told so.
func (d *Deployer) service(told string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.Services) == 0 {
		return told
	}
	next := d.Services[0]
	d.Services = d.Services[1:]
	return next
}

// Ready is always nil.
func (*Deployer) Ready(context.Context) error { return nil }

// Complete answers the last message.
func (d *Deployer) Complete(_ context.Context, req llm.Request) (llm.Response, error) {
	if err := llm.ValidateRequest(req); err != nil {
		return llm.Response{}, err
	}
	last := req.Messages[len(req.Messages)-1]
	text := last.Content.Text()
	service, wanted := strings.CutPrefix(text, "deploy ")
	switch {
	case last.Role == llm.ToolRole:
		return said("The tool says: " + text), nil
	case !wanted:
		return said("echo: " + text), nil
	}
	service = d.service(service)
	arguments, err := json.Marshal(map[string]string{"service": service})
	if err != nil {
		return llm.Response{}, err
	}
	m := llm.AssistantText("You want " + service + " deployed.")
	m.ToolCalls = []llm.ToolCall{{ID: fmt.Sprintf("call-%d", len(req.Messages)), Name: "deploy", Arguments: arguments}}
	return llm.Response{Message: m, Finish: llm.FinishToolCalls}, nil
}

func said(text string) llm.Response {
	return llm.Response{Message: llm.AssistantText(text), Finish: llm.FinishStop}
}

// Gated is a model that echoes each message when it is let go.
type Gated struct {
	// Began gets a value when a completion begins.
	Began chan struct{}
	// Go lets one completion end; closed, all of them.
	Go chan struct{}
}

// NewGated returns a model that waits.
func NewGated() Gated { return Gated{make(chan struct{}, 100), make(chan struct{})} }

// Ready is always nil.
func (Gated) Ready(context.Context) error { return nil }

// Complete waits, and echoes.
func (g Gated) Complete(ctx context.Context, req llm.Request) (llm.Response, error) {
	if err := pass(ctx, g.Began, struct{}{}); err != nil {
		return llm.Response{}, err
	}
	if _, err := receive(ctx, g.Go); err != nil {
		return llm.Response{}, err
	}
	return said("echo: " + req.Messages[len(req.Messages)-1].Content.Text()), nil
}

func pass[T any](ctx context.Context, to chan<- T, v T) error {
	select {
	case to <- v:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func receive[T any](ctx context.Context, from <-chan T) (v T, err error) {
	select {
	case v = <-from:
		return v, nil
	case <-ctx.Done():
		return v, ctx.Err()
	}
}

// Growing is a model that shows the first half of its answer and the second when it is let go.
type Growing struct {
	Go chan struct{} // closed to let every answer end
}

const (
	firstHalf  = "The first half, "
	secondHalf = "and the second."
)

// Ready is always nil.
func (Growing) Ready(context.Context) error { return nil }

// Complete is never called: the agent prefers Stream.
func (g Growing) Complete(ctx context.Context, req llm.Request) (llm.Response, error) {
	return g.Stream(ctx, req, func(string) {})
}

// Stream answers in two halves. What is said last it echoes.
func (g Growing) Stream(ctx context.Context, req llm.Request, onText func(string)) (llm.Response, error) {
	if text := req.Messages[len(req.Messages)-1].Content.Text(); strings.Contains(text, lastWord) {
		return said(text), nil
	}
	onText(firstHalf)
	if _, err := receive(ctx, g.Go); err != nil {
		return llm.Response{}, err
	}
	onText(secondHalf)
	return said(firstHalf + secondHalf), nil
}

// Scripted is a model that always says the same, echoes the last word, and keeps what it was asked.
type Scripted struct {
	Text string

	mu    sync.Mutex
	asked []llm.Request
}

// Ready is always nil.
func (*Scripted) Ready(context.Context) error { return nil }

// Complete says the text.
func (m *Scripted) Complete(_ context.Context, req llm.Request) (llm.Response, error) {
	if err := llm.ValidateRequest(req); err != nil {
		return llm.Response{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked = append(m.asked, req)
	if text := req.Messages[len(req.Messages)-1].Content.Text(); strings.Contains(text, lastWord) {
		return said(text), nil
	}
	return said(m.Text), nil
}

// History returns the messages of the first request.
func (m *Scripted) History() []llm.Message {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.asked) == 0 {
		return nil
	}
	return m.asked[0].Messages
}

// Asked returns the last of them.
func (m *Scripted) Asked() llm.Message {
	messages := m.History()
	if len(messages) == 0 {
		return llm.Message{}
	}
	return messages[len(messages)-1]
}
