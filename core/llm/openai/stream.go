package openai

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/openai/openai-go/v3/packages/ssestream"

	"github.com/parley-chat/parley/core/llm"
)

// Stream performs one completion and passes the text on as it comes. The response is read from a body put together from
// the events in the shape that Complete receives, so that both are the same in form; that body is its Raw.
//
// A stream that ends before the model said why is Unavailable: the text so far is not an answer.
func (p *Provider) Stream(ctx context.Context, req llm.Request, onText func(string)) (llm.Response, error) {
	body, err := p.encode(req, true)
	if err != nil {
		return llm.Response{}, err
	}
	var res *http.Response
	if err := p.client.Post(ctx, "chat/completions", body, &res); err != nil {
		return llm.Response{}, classify(ctx, err, hasImage(req))
	}
	defer res.Body.Close()
	if media, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); media == "application/json" {
		return whole(ctx, req, res.Body, onText)
	}
	events := ssestream.NewDecoder(res)
	answer, err := assemble(events, onText)
	if broken := events.Err(); broken != nil {
		return llm.Response{}, classify(ctx, broken, false)
	}
	if err != nil {
		return llm.Response{}, err
	}
	return receive(req, answer)
}

// whole is an answer in one piece, from a server that does not stream.
func whole(ctx context.Context, req llm.Request, body io.Reader, onText func(string)) (llm.Response, error) {
	answer, err := io.ReadAll(body)
	if err != nil {
		return llm.Response{}, classify(ctx, err, false)
	}
	resp, err := receive(req, answer)
	if err != nil {
		return llm.Response{}, err
	}
	if text := resp.Message.Content.Text(); text != "" {
		onText(text)
	}
	return resp, nil
}

// chunk is one event of a stream.
type chunk struct {
	ID                string          `json:"id"`
	Created           json.RawMessage `json:"created"`
	Model             string          `json:"model"`
	SystemFingerprint string          `json:"system_fingerprint"`
	Choices           []chunkChoice   `json:"choices"`
	Usage             json.RawMessage `json:"usage"`
	Error             json.RawMessage `json:"error"`
}

type chunkChoice struct {
	Index int `json:"index"`
	Delta struct {
		Content   string      `json:"content"`
		Refusal   string      `json:"refusal"`
		ToolCalls []deltaCall `json:"tool_calls"`
	} `json:"delta"`
	FinishReason string `json:"finish_reason"`
}

type deltaCall struct {
	Index    int          `json:"index"`
	ID       string       `json:"id"`
	Function wireFunction `json:"function"`
}

// assembly is the chat completion that grows from the chunks.
type assembly struct {
	id, model, fingerprint string
	created, usage         json.RawMessage
	content, refusal       strings.Builder
	calls                  []*growingCall
	finish                 string
}

type growingCall struct {
	index     int
	id, name  string
	arguments strings.Builder
}

// assemble reads events to the end and returns the body they amount to.
func assemble(events ssestream.Decoder, onText func(string)) ([]byte, error) {
	var whole assembly
	for events.Next() {
		data := bytes.TrimSpace(events.Event().Data)
		if bytes.Equal(data, []byte("[DONE]")) {
			break
		}
		var c chunk
		if err := json.Unmarshal(data, &c); err != nil {
			return nil, malformed("an event of the stream is not a JSON chunk", err)
		}
		if len(c.Error) > 0 && string(c.Error) != "null" {
			return nil, &llm.Error{Category: llm.Unavailable, Message: "the provider broke off its answer"}
		}
		whole.add(c, onText)
	}
	if whole.finish == "" {
		return nil, &llm.Error{Category: llm.Unavailable, Message: "the answer ended early"}
	}
	return whole.body()
}

func (a *assembly) add(c chunk, onText func(string)) {
	a.id, a.model = cmp.Or(a.id, c.ID), cmp.Or(a.model, c.Model)
	a.fingerprint = cmp.Or(a.fingerprint, c.SystemFingerprint)
	if a.created == nil {
		a.created = c.Created
	}
	if len(c.Usage) > 0 && string(c.Usage) != "null" {
		a.usage = c.Usage
	}
	for _, choice := range c.Choices {
		if choice.Index != 0 {
			continue
		}
		a.say(choice.Delta.Content, choice.Delta.Refusal, onText)
		for _, delta := range choice.Delta.ToolCalls {
			a.call(delta).grow(delta)
		}
		a.finish = cmp.Or(choice.FinishReason, a.finish)
	}
}

// say passes on what will be the text of the response: the content, or a refusal where there is none.
func (a *assembly) say(content, refusal string, onText func(string)) {
	a.content.WriteString(content)
	a.refusal.WriteString(refusal)
	if piece := cmp.Or(content, refusal); piece != "" && (content != "" || a.content.Len() == 0) {
		onText(piece)
	}
}

// call finds the call that a piece belongs to, by its index. Some servers give every call the index 0: there a new id
// begins a new call.
func (a *assembly) call(delta deltaCall) *growingCall {
	for i := len(a.calls) - 1; i >= 0; i-- {
		known := a.calls[i]
		if known.index == delta.Index && (delta.ID == "" || known.id == "" || known.id == delta.ID) {
			return known
		}
	}
	a.calls = append(a.calls, &growingCall{index: delta.Index})
	return a.calls[len(a.calls)-1]
}

func (g *growingCall) grow(delta deltaCall) {
	g.id = cmp.Or(g.id, delta.ID)
	g.name = cmp.Or(g.name, delta.Function.Name)
	g.arguments.WriteString(delta.Function.Arguments)
}

// body writes the chat completion in the form of an answer in one piece.
func (a *assembly) body() ([]byte, error) {
	message := map[string]any{"role": "assistant", "content": nil}
	if a.content.Len() > 0 {
		message["content"] = a.content.String()
	}
	if a.refusal.Len() > 0 {
		message["refusal"] = a.refusal.String()
	}
	var calls []wireCall
	for _, c := range a.calls {
		function := wireFunction{Name: c.name, Arguments: c.arguments.String()}
		calls = append(calls, wireCall{ID: c.id, Type: "function", Function: function})
	}
	if calls != nil {
		message["tool_calls"] = calls
	}
	completion := map[string]any{
		"id": a.id, "object": "chat.completion", "model": a.model,
		"choices": []any{map[string]any{"index": 0, "message": message, "finish_reason": a.finish}},
	}
	if a.created != nil {
		completion["created"] = a.created
	}
	if a.fingerprint != "" {
		completion["system_fingerprint"] = a.fingerprint
	}
	if a.usage != nil {
		completion["usage"] = a.usage
	}
	body, err := marshal(completion)
	if err != nil {
		return nil, malformed("the stream does not amount to a chat completion", err)
	}
	return body, nil
}
