package llm

import (
	"context"
	"encoding/json"
)

// Tool is a function a model may ask for (llm-provider §4). Parameters is a JSON Schema whose type is object.
type Tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
}

// Provider is one model behind one endpoint (llm-provider §5): stateless, bound to a single model, and neither
// retrying nor looping on tool calls. All methods may be called concurrently.
type Provider interface {
	// Ready reports whether the next Complete is expected to succeed. Its error is an *Error.
	Ready(ctx context.Context) error
	// Complete performs one completion. It does not keep or change the request. Its error is an *Error, or the
	// context's.
	Complete(ctx context.Context, req Request) (Response, error)
}

// Streamer is the ability of a provider to show an answer while it grows. The response is the same that Complete would
// have returned; onText is called in order, from one goroutine, with the pieces of its text.
type Streamer interface {
	Stream(ctx context.Context, req Request, onText func(string)) (Response, error)
}

// Request is what complete() takes (llm-provider §5). The last message is of a user or a tool.
type Request struct {
	Messages []Message
	Tools    []Tool
	Config   Config
}

// Config is the RuntimeConfig of llm-provider §6. A nil field is not sent.
type Config struct {
	Temperature *float64 `json:"temperature,omitempty"`
	MaxTokens   *int     `json:"max_tokens,omitempty"`
	TopP        *float64 `json:"top_p,omitempty"`
	Seed        *int     `json:"seed,omitempty"`
}

// Finish says why a model stopped (llm-provider §6).
type Finish string

const (
	FinishStop          Finish = "stop"
	FinishLength        Finish = "length"
	FinishToolCalls     Finish = "tool_calls"
	FinishContentFilter Finish = "content_filter"
	FinishError         Finish = "error"
)

// Response is one answer (llm-provider §6). Raw is the provider's parsed body, verbatim.
type Response struct {
	Message Message
	Finish  Finish
	Usage   Usage
	Raw     json.RawMessage
}

// Usage counts tokens; nil means the provider did not say.
type Usage struct {
	PromptTokens     *int `json:"prompt_tokens"`
	CompletionTokens *int `json:"completion_tokens"`
	TotalTokens      *int `json:"total_tokens"`
}
