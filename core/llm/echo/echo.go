// Package echo is a model that says back what it was told, after a delay if one is wanted. It is for trying out the
// plumbing and for load tests: it needs no key and no network, and calls no tools.
package echo

import (
	"context"
	"encoding/json"
	"time"

	"github.com/parley-chat/parley/core/llm"
)

var _ llm.Provider = (*Provider)(nil)

// Provider answers "echo: " and the text of the last user message.
type Provider struct {
	delay time.Duration
}

// New makes a provider that waits for delay before each answer. Calls wait side by side.
func New(delay time.Duration) *Provider { return &Provider{delay: delay} }

// Ready is always nil.
func (p *Provider) Ready(context.Context) error { return nil }

// Complete answers the last user message. It checks the request as a real provider would; while it waits it obeys the
// context and then returns the context's error.
func (p *Provider) Complete(ctx context.Context, req llm.Request) (llm.Response, error) {
	if err := llm.ValidateRequest(req); err != nil {
		return llm.Response{}, err
	}
	if err := p.wait(ctx); err != nil {
		return llm.Response{}, err
	}
	answer := "echo: " + lastUserText(req.Messages)
	raw, err := json.Marshal(map[string]string{"model": "echo", "content": answer})
	if err != nil {
		return llm.Response{}, &llm.Error{Category: llm.InvalidResponse, Message: "the echo cannot be written", Cause: err}
	}
	return llm.Response{Message: llm.AssistantText(answer), Finish: llm.FinishStop, Raw: raw}, nil
}

func (p *Provider) wait(ctx context.Context) error {
	if p.delay <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(p.delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func lastUserText(messages []llm.Message) string {
	for i := len(messages) - 1; i >= 0; i-- {
		if messages[i].Role == llm.User {
			return messages[i].Content.Text()
		}
	}
	return ""
}
