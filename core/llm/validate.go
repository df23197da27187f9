package llm

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
)

// Validate reports whether the message keeps the rules of its role (llm-provider §3, §3.1; harness-chat §3.1). Its error
// is an *Error of category InvalidRequest, whose text names the field that is wrong.
func (m Message) Validate() error {
	if err := m.check(); err != nil {
		return &Error{Category: InvalidRequest, Message: err.Error()}
	}
	return nil
}

// ValidateRequest is what a provider checks before it sends anything (llm-provider §3, §4, §5): every message by itself,
// their order, tool results that answer an earlier call, and the tools. Its error is an *Error of category
// InvalidRequest.
func ValidateRequest(req Request) error {
	if err := cmp.Or(checkMessages(req.Messages), checkTools(req.Tools)); err != nil {
		return &Error{Category: InvalidRequest, Message: err.Error()}
	}
	return nil
}

// ValidateResponse is what a provider checks before it returns (llm-provider §3): the message's shape, and that each
// tool call names a tool of the request and carries arguments which fit that tool's schema. Its error is an *Error of
// category InvalidResponse.
//
// A response with finish reason error is a degraded answer and nothing in it is refused. An answer cut off by length or
// by a content filter may be empty.
func ValidateResponse(req Request, resp Response) error {
	if resp.Finish == FinishError {
		return nil
	}
	if err := checkResponse(req, resp); err != nil {
		return &Error{Category: InvalidResponse, Message: err.Error()}
	}
	return nil
}

func checkMessages(messages []Message) error {
	if len(messages) == 0 {
		return errors.New("there are no messages")
	}
	if first := messages[0].Role; first != System && first != User {
		return fmt.Errorf("the first message is of role %q, not system or user", first)
	}
	if last := messages[len(messages)-1].Role; last != User && last != ToolRole {
		return fmt.Errorf("the last message is of role %q, not user or tool", last)
	}
	called := map[string]bool{}
	for i, m := range messages {
		if err := m.check(); err != nil {
			return fmt.Errorf("messages[%d]: %w", i, err)
		}
		if m.Role == System && i > 0 {
			return fmt.Errorf("messages[%d]: a system message stands only at the beginning", i)
		}
		if m.Role == ToolRole && !called[m.ToolCallID] {
			return fmt.Errorf("messages[%d]: tool_call_id %q matches no earlier tool call", i, m.ToolCallID)
		}
		for _, call := range m.ToolCalls {
			called[call.ID] = true
		}
	}
	return nil
}

func checkTools(tools []Tool) error {
	names := map[string]bool{}
	for i, tool := range tools {
		if tool.Name == "" {
			return fmt.Errorf("tools[%d]: the name is missing", i)
		}
		if names[tool.Name] {
			return fmt.Errorf("tools[%d]: the name %q is taken by an earlier tool", i, tool.Name)
		}
		names[tool.Name] = true
		if _, err := CompileSchema(tool.Parameters); err != nil {
			return fmt.Errorf("tools[%d] %q: %w", i, tool.Name, err)
		}
	}
	return nil
}

func checkResponse(req Request, resp Response) error {
	switch resp.Finish {
	case FinishStop, FinishLength, FinishToolCalls, FinishContentFilter:
	default:
		return fmt.Errorf("the finish reason %q is not a known one", resp.Finish)
	}
	m := resp.Message
	if m.Role != Assistant {
		return fmt.Errorf("the answer is of role %q, not assistant", m.Role)
	}
	if resp.Finish == FinishToolCalls && len(m.ToolCalls) == 0 {
		return errors.New("the answer ends with tool calls but has none")
	}
	cutOff := resp.Finish == FinishLength || resp.Finish == FinishContentFilter
	if cutOff && len(m.Content) == 0 && len(m.ToolCalls) == 0 && m.ToolCallID == "" {
		return nil
	}
	if err := m.check(); err != nil {
		return err
	}
	for i, call := range m.ToolCalls {
		if err := checkCall(req.Tools, call); err != nil {
			return fmt.Errorf("tool_calls[%d]: %w", i, err)
		}
	}
	return nil
}

func checkCall(tools []Tool, call ToolCall) error {
	i := slices.IndexFunc(tools, func(t Tool) bool { return t.Name == call.Name })
	if i < 0 {
		return fmt.Errorf("there is no tool %q", call.Name)
	}
	schema, err := CompileSchema(tools[i].Parameters)
	if err != nil {
		return fmt.Errorf("tool %q: %w", call.Name, err)
	}
	return schema.Validate(call.Arguments)
}

func (m Message) check() error {
	if m.Role != Assistant && len(m.ToolCalls) > 0 {
		return fmt.Errorf("a message of role %q has no tool_calls", m.Role)
	}
	if m.Role != ToolRole && m.ToolCallID != "" {
		return fmt.Errorf("a message of role %q has no tool_call_id", m.Role)
	}
	switch m.Role {
	case System:
		return m.checkSystem()
	case User:
		return m.checkUser()
	case Assistant:
		return m.checkAssistant()
	case ToolRole:
		return m.checkTool()
	}
	return fmt.Errorf("role %q is none of system, user, assistant, tool", m.Role)
}

func (m Message) checkSystem() error {
	if len(m.Content) != 1 || m.Content[0].Type != TextBlock {
		return errors.New("the content of a system message is a string and not empty")
	}
	return m.Content.check(TextBlock)
}

func (m Message) checkUser() error {
	if len(m.Content) == 0 {
		return errors.New("the content of a user message is empty")
	}
	return m.Content.check(TextBlock, ImageBlock)
}

func (m Message) checkAssistant() error {
	if len(m.Content) == 0 && len(m.ToolCalls) == 0 {
		return errors.New("an assistant message has neither content nor tool_calls")
	}
	if err := m.Content.check(TextBlock, ThinkingBlock, RedactedThinkingBlock); err != nil {
		return err
	}
	ids := map[string]bool{}
	for i, call := range m.ToolCalls {
		if err := call.check(); err != nil {
			return fmt.Errorf("tool_calls[%d]: %w", i, err)
		}
		if ids[call.ID] {
			return fmt.Errorf("tool_calls[%d]: the id %q is taken by an earlier call", i, call.ID)
		}
		ids[call.ID] = true
	}
	return nil
}

// checkTool takes an empty result: §3 asks for a string and says not that it has text.
func (m Message) checkTool() error {
	if m.ToolCallID == "" {
		return errors.New("the tool_call_id of a tool message is missing")
	}
	if len(m.Content) > 1 || len(m.Content) == 1 && m.Content[0].Type != TextBlock {
		return errors.New("the content of a tool message is a string")
	}
	return nil
}

// check takes null arguments: a degraded response that entered a conversation has them (§3).
func (c ToolCall) check() error {
	if c.ID == "" {
		return errors.New("the id is missing")
	}
	if c.Name == "" {
		return errors.New("the name is missing")
	}
	if len(c.Arguments) == 0 {
		return nil
	}
	var arguments map[string]json.RawMessage
	if err := json.Unmarshal(c.Arguments, &arguments); err != nil {
		return errors.New("the arguments are not a JSON object")
	}
	return nil
}

func (c Content) check(allowed ...BlockType) error {
	for i, block := range c {
		if err := block.check(); err != nil {
			return fmt.Errorf("content[%d]: %w", i, err)
		}
		if !slices.Contains(allowed, block.Type) {
			return fmt.Errorf("content[%d]: a block of type %q has no place in a message of this role", i, block.Type)
		}
	}
	return nil
}

func (b Block) check() error {
	switch b.Type {
	case TextBlock:
		return present("text", b.Text)
	case ImageBlock:
		return b.checkImage()
	case ThinkingBlock:
		return cmp.Or(present("text", b.Text), present("signature", b.Signature))
	case RedactedThinkingBlock:
		return present("data", b.Data)
	}
	return fmt.Errorf("block type %q is none of text, image, thinking, redacted_thinking", b.Type)
}

// imageMediaType is an image type as IANA names them. It goes into a data URI, so nothing but a plain name may pass.
var imageMediaType = regexp.MustCompile(`(?i)^image/[a-z0-9][a-z0-9.+-]{0,63}$`)

func (b Block) checkImage() error {
	if !slices.Contains([]string{"", "auto", "low", "high"}, b.Detail) {
		return fmt.Errorf("detail %q is none of auto, low, high", b.Detail)
	}
	if b.Source == nil {
		return errors.New("the source of an image is missing")
	}
	if b.Source.URL != "" && b.Source.Base64Data != "" {
		return errors.New("the source of an image has both url and base64_data")
	}
	switch b.Source.Type {
	case "url":
		return present("source.url", b.Source.URL)
	case "inline":
		if !imageMediaType.MatchString(b.MediaType) {
			return fmt.Errorf("media_type %q of an inline image is not an image type like image/png", b.MediaType)
		}
		return present("source.base64_data", b.Source.Base64Data)
	}
	return fmt.Errorf("source type %q is none of url, inline", b.Source.Type)
}

func present(field, value string) error {
	if value == "" {
		return fmt.Errorf("%s is missing or empty", field)
	}
	return nil
}
