package openai

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/parley-chat/parley/core/llm"
)

// The body of a request (llm-provider §8.1). Optional fields that are not set are not sent.
type wireRequest struct {
	Model         string             `json:"model"`
	Messages      []wireMessage      `json:"messages"`
	Tools         []wireTool         `json:"tools,omitempty"`
	Temperature   *float64           `json:"temperature,omitempty"`
	MaxTokens     *int               `json:"max_tokens,omitempty"`
	TopP          *float64           `json:"top_p,omitempty"`
	Seed          *int               `json:"seed,omitempty"`
	Stream        bool               `json:"stream,omitempty"`
	StreamOptions *wireStreamOptions `json:"stream_options,omitempty"`
}

type wireStreamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

type wireMessage struct {
	Role       llm.Role   `json:"role"`
	Content    any        `json:"content"` // a string, null or []wirePart
	ToolCalls  []wireCall `json:"tool_calls,omitempty"`
	ToolCallID string     `json:"tool_call_id,omitempty"`
}

type wirePart struct {
	Type     string     `json:"type"`
	Text     string     `json:"text,omitempty"`
	ImageURL *wireImage `json:"image_url,omitempty"`
}

type wireImage struct {
	URL    string `json:"url"`
	Detail string `json:"detail,omitempty"`
}

type wireCall struct {
	ID       string       `json:"id"`
	Type     string       `json:"type"`
	Function wireFunction `json:"function"`
}

type wireFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type wireTool struct {
	Type     string       `json:"type"`
	Function wireToolSpec `json:"function"`
}

type wireToolSpec struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
}

func wireRequestOf(model string, req llm.Request, stream bool) wireRequest {
	wire := wireRequest{
		Model:       model,
		Temperature: req.Config.Temperature,
		MaxTokens:   req.Config.MaxTokens,
		TopP:        req.Config.TopP,
		Seed:        req.Config.Seed,
		Stream:      stream,
	}
	if stream {
		wire.StreamOptions = &wireStreamOptions{IncludeUsage: true}
	}
	for _, m := range req.Messages {
		wire.Messages = append(wire.Messages, wireMessageOf(m))
	}
	for _, t := range req.Tools {
		wire.Tools = append(wire.Tools, wireTool{Type: "function", Function: wireToolSpec(t)})
	}
	return wire
}

func wireMessageOf(m llm.Message) wireMessage {
	wire := wireMessage{Role: m.Role, Content: wireContentOf(m), ToolCallID: m.ToolCallID}
	for _, call := range m.ToolCalls {
		function := wireFunction{Name: call.Name, Arguments: compact(call.Arguments)}
		wire.ToolCalls = append(wire.ToolCalls, wireCall{ID: call.ID, Type: "function", Function: function})
	}
	return wire
}

// wireContentOf writes a single text as a string and several blocks as an array. An assistant that only calls tools has
// null; other empty content, such as a message of nothing but thinking, has the empty string.
func wireContentOf(m llm.Message) any {
	content := slices.DeleteFunc(slices.Clone(m.Content), func(b llm.Block) bool {
		return b.Type == llm.ThinkingBlock || b.Type == llm.RedactedThinkingBlock
	})
	if len(content) == 0 && len(m.ToolCalls) > 0 {
		return nil
	}
	if len(content) == 0 {
		return ""
	}
	if len(content) == 1 && content[0].Type == llm.TextBlock {
		return content[0].Text
	}
	var parts []wirePart
	for _, block := range content {
		parts = append(parts, wirePartOf(block))
	}
	return parts
}

func wirePartOf(b llm.Block) wirePart {
	if b.Type != llm.ImageBlock {
		return wirePart{Type: "text", Text: b.Text}
	}
	address := b.Source.URL
	if b.Source.Type == "inline" {
		address = "data:" + b.MediaType + ";base64," + b.Source.Base64Data
	}
	return wirePart{Type: "image_url", ImageURL: &wireImage{URL: address, Detail: b.Detail}}
}

// compact writes arguments the way models do. Null, which a degraded answer may have left in a conversation, becomes an
// object again: servers read what they are given here.
func compact(arguments json.RawMessage) string {
	var b bytes.Buffer
	if err := json.Compact(&b, arguments); err != nil || b.String() == "null" {
		return "{}"
	}
	return b.String()
}

// marshal keeps <, > and & as they are: escaped they are the same JSON and more tokens.
func marshal(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(v)
	return bytes.TrimSpace(b.Bytes()), err
}

// imageTypes are the media types that OpenAI documents for inline images.
var imageTypes = []string{"image/png", "image/jpeg", "image/webp", "image/gif"}

// checkImages refuses what is known before sending to be unsupported (llm-provider §7).
func checkImages(messages []llm.Message) error {
	for i, m := range messages {
		for _, b := range m.Content {
			inline := b.Type == llm.ImageBlock && b.Source.Type == "inline"
			if inline && !slices.Contains(imageTypes, strings.ToLower(b.MediaType)) {
				message := fmt.Sprintf("messages[%d]: an image of type %s is none of %s", i, b.MediaType, strings.Join(imageTypes, ", "))
				return &llm.Error{Category: llm.UnsupportedContentBlock, Message: message}
			}
		}
	}
	return nil
}

func hasImage(req llm.Request) bool {
	return slices.ContainsFunc(req.Messages, func(m llm.Message) bool {
		return slices.ContainsFunc(m.Content, func(b llm.Block) bool { return b.Type == llm.ImageBlock })
	})
}

// The body of an answer (llm-provider §8.2), as far as it is normalized. The rest stays in Raw.
type wireResponse struct {
	Choices []wireChoice `json:"choices"`
	Usage   *wireUsage   `json:"usage"`
}

type wireChoice struct {
	Message      *wireAnswer `json:"message"`
	FinishReason string      `json:"finish_reason"`
}

type wireAnswer struct {
	Content   string     `json:"content"`
	Refusal   string     `json:"refusal"`
	ToolCalls []wireCall `json:"tool_calls"`
}

type wireUsage struct {
	PromptTokens     *int `json:"prompt_tokens"`
	CompletionTokens *int `json:"completion_tokens"`
	TotalTokens      *int `json:"total_tokens"`
}

func responseOf(body []byte) (llm.Response, error) {
	var wire wireResponse
	if err := json.Unmarshal(body, &wire); err != nil {
		return llm.Response{}, malformed("the answer is not a JSON chat completion", err)
	}
	if len(wire.Choices) == 0 || wire.Choices[0].Message == nil {
		return llm.Response{}, malformed("the answer has no message", nil)
	}
	choice := wire.Choices[0]
	if choice.FinishReason == "" {
		return llm.Response{}, malformed("the answer does not say why it ends", nil)
	}
	finish := finishOf(choice.FinishReason)
	return llm.Response{
		Message: messageOf(*choice.Message, finish),
		Finish:  finish,
		Usage:   usageOf(wire.Usage),
		Raw:     bytes.TrimSpace(body),
	}, nil
}

func malformed(message string, cause error) error {
	return &llm.Error{Category: llm.InvalidResponse, Message: message, Cause: cause}
}

func finishOf(reason string) llm.Finish {
	switch finish := llm.Finish(reason); finish {
	case llm.FinishStop, llm.FinishLength, llm.FinishToolCalls, llm.FinishContentFilter:
		return finish
	case "function_call": // what tool_calls was called once
		return llm.FinishToolCalls
	}
	return llm.FinishError
}

// messageOf takes a refusal for the text when there is no other: it is what the model says to the person.
func messageOf(wire wireAnswer, finish llm.Finish) llm.Message {
	m := llm.AssistantText(cmp.Or(wire.Content, wire.Refusal))
	for _, call := range wire.ToolCalls {
		arguments := argumentsOf(call.Function.Arguments, finish)
		m.ToolCalls = append(m.ToolCalls, llm.ToolCall{ID: call.ID, Name: call.Function.Name, Arguments: arguments})
	}
	return m
}

// argumentsOf parses the arguments of a call. What is no object becomes null, which passes in a degraded answer only; the
// bytes stay in Raw. Nothing at all is how some servers write a call without arguments.
func argumentsOf(written string, finish llm.Finish) json.RawMessage {
	if strings.TrimSpace(written) == "" && finish != llm.FinishError {
		return json.RawMessage("{}")
	}
	var object map[string]json.RawMessage
	if json.Unmarshal([]byte(written), &object) != nil || object == nil {
		return json.RawMessage("null")
	}
	return json.RawMessage(strings.TrimSpace(written))
}

func usageOf(wire *wireUsage) llm.Usage {
	if wire == nil {
		return llm.Usage{}
	}
	return llm.Usage{
		PromptTokens:     count(wire.PromptTokens),
		CompletionTokens: count(wire.CompletionTokens),
		TotalTokens:      count(wire.TotalTokens),
	}
}

// count drops what is no count: an answer is not worth losing over its bill.
func count(n *int) *int {
	if n == nil || *n < 0 {
		return nil
	}
	return n
}

// findModel looks for a model in the answer to GET /models. Local servers say beside the id whether it is loaded; hosted
// ones say nothing, and then a listed model serves.
func findModel(body []byte, model string) error {
	var list struct {
		Data []struct {
			ID     string          `json:"id"`
			Status json.RawMessage `json:"status"` // a string, or an object with a value
			State  string          `json:"state"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &list); err != nil || list.Data == nil {
		return malformed("the list of models is not one", err)
	}
	for _, entry := range list.Data {
		if entry.ID != model {
			continue
		}
		if state := cmp.Or(stateOf(entry.Status), entry.State); notServing(state) {
			return &llm.Error{Category: llm.ModelNotLoaded, Message: fmt.Sprintf("the model %s is known but not loaded", model)}
		}
		return nil
	}
	return &llm.Error{Category: llm.InvalidModel, Message: fmt.Sprintf("the provider has no model %s", model)}
}

func stateOf(status json.RawMessage) string {
	var text string
	if json.Unmarshal(status, &text) == nil {
		return text
	}
	var object struct {
		Value string `json:"value"`
	}
	if json.Unmarshal(status, &object) != nil {
		return ""
	}
	return object.Value
}

func notServing(state string) bool {
	switch strings.ToLower(strings.ReplaceAll(state, "-", "_")) {
	case "not_loaded", "unloaded", "loading", "sleeping", "failed":
		return true
	}
	return false
}
