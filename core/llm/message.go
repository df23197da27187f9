// Package llm holds the one message shape of the whole house: what people wrote, what a model answered, which tools
// it asked for. It mirrors OpenArmature llm-provider §3 (messages), §4 (tools), §5 (the provider) and §7 (errors).
//
// It knows no wire format: each provider is a package of its own below this one, and its SDK's types stay there.
package llm

import (
	"encoding/json"
	"errors"
	"strings"
)

// Role discriminates messages (llm-provider §3).
type Role string

const (
	System    Role = "system"
	User      Role = "user"
	Assistant Role = "assistant"
	ToolRole  Role = "tool"
)

// Message is one entry of a conversation (llm-provider §3, harness-chat §3: the same shape on every level).
type Message struct {
	Role       Role       `json:"role"`
	Content    Content    `json:"content"`
	ToolCalls  []ToolCall `json:"tool_calls,omitempty"`
	ToolCallID string     `json:"tool_call_id,omitempty"`
}

// Content is an ordered sequence of blocks. A text-only content is exactly one text block; its JSON form is the plain
// string, which llm-provider §3.1.1 declares equivalent. Nil is empty content, allowed beside tool calls only; its
// JSON form is an empty array.
type Content []Block

// BlockType discriminates content blocks (llm-provider §3.1).
type BlockType string

const (
	TextBlock             BlockType = "text"
	ImageBlock            BlockType = "image"
	ThinkingBlock         BlockType = "thinking"
	RedactedThinkingBlock BlockType = "redacted_thinking"
)

// Block is one typed piece of content. Only the fields of its Type are set.
type Block struct {
	Type      BlockType    `json:"type"`
	Text      string       `json:"text,omitempty"`       // text, and of thinking the reasoning itself
	Source    *ImageSource `json:"source,omitempty"`     // image
	MediaType string       `json:"media_type,omitempty"` // image: required when the source is inline
	Detail    string       `json:"detail,omitempty"`     // image: auto (default), low, high
	Signature string       `json:"signature,omitempty"`  // thinking: the provider's proof, passed back verbatim
	Data      string       `json:"data,omitempty"`       // redacted_thinking: opaque, passed back verbatim
}

// ImageSource says where an image is: by URL or inline, never both (llm-provider §3.1.3).
type ImageSource struct {
	Type       string `json:"type"` // url or inline
	URL        string `json:"url,omitempty"`
	Base64Data string `json:"base64_data,omitempty"`
}

// ToolCall is a model's request to run a tool (llm-provider §3). ID is the provider's, kept verbatim. Arguments is a
// JSON object, or null when a degraded response (finish_reason "error") could not be parsed.
type ToolCall struct {
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// Text is the content of one text block. The empty string gives empty content.
func Text(s string) Content {
	if s == "" {
		return nil
	}
	return Content{{Type: TextBlock, Text: s}}
}

// Text joins the text blocks of the content; other blocks say nothing here.
func (c Content) Text() string {
	if len(c) == 1 && c[0].Type == TextBlock {
		return c[0].Text
	}
	var b strings.Builder
	for _, block := range c {
		if block.Type != TextBlock {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(block.Text)
	}
	return b.String()
}

// MarshalJSON writes a single text block as a string, anything else as an array. A block that breaks the rules (no
// text, or fields of another type) keeps its array, so that reading it again breaks the same rule.
func (c Content) MarshalJSON() ([]byte, error) {
	if len(c) == 1 && c[0].Text != "" && c[0] == (Block{Type: TextBlock, Text: c[0].Text}) {
		return json.Marshal(c[0].Text)
	}
	if c == nil {
		return []byte("[]"), nil
	}
	return json.Marshal([]Block(c))
}

// UnmarshalJSON reads a string, null (which is empty content) or an array of blocks. Unknown block types are kept, so
// that validation can name them.
func (c *Content) UnmarshalJSON(data []byte) error {
	var s string
	if json.Unmarshal(data, &s) == nil {
		*c = Text(s)
		return nil
	}
	var blocks []Block
	if err := json.Unmarshal(data, &blocks); err != nil {
		return errors.New("content is neither a string nor a list of blocks")
	}
	if len(blocks) == 0 {
		blocks = nil
	}
	*c = blocks
	return nil
}

// UserText, AssistantText, SystemText and ToolResult make the messages that code writes most often.
func UserText(s string) Message      { return Message{Role: User, Content: Text(s)} }
func AssistantText(s string) Message { return Message{Role: Assistant, Content: Text(s)} }
func SystemText(s string) Message    { return Message{Role: System, Content: Text(s)} }

// ToolResult answers the call with the given id. An empty result is said as "(no output)": providers refuse an empty
// tool message, and a model should hear that nothing came.
func ToolResult(callID, result string) Message {
	if result == "" {
		result = "(no output)"
	}
	return Message{Role: ToolRole, ToolCallID: callID, Content: Text(result)}
}
