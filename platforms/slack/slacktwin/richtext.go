package slacktwin

import (
	"encoding/json"
	"regexp"
	"strings"
)

var markupPattern = regexp.MustCompile(`<[^<>\n]+>`)

// richText returns the blocks that Slack's own editor sends with a text: one rich_text block.
func richText(text string) json.RawMessage {
	var elements []any
	rest := 0
	for _, at := range markupPattern.FindAllStringIndex(text, -1) {
		elements = appendText(elements, text[rest:at[0]])
		elements = append(elements, richElement(text[at[0]+1:at[1]-1]))
		rest = at[1]
	}
	elements = appendText(elements, text[rest:])
	return encode([]any{map[string]any{
		"type": "rich_text", "block_id": "said",
		"elements": []any{map[string]any{"type": "rich_text_section", "elements": elements}},
	}})
}

func appendText(elements []any, text string) []any {
	if text == "" {
		return elements
	}
	return append(elements, map[string]any{"type": "text", "text": unescape(text)})
}

// richElement reads the inside of <...>, doc messaging/formatting-message-text.
func richElement(inner string) map[string]any {
	target, label, _ := strings.Cut(inner, "|")
	switch {
	case strings.HasPrefix(target, "@"):
		return map[string]any{"type": "user", "user_id": target[1:]}
	case strings.HasPrefix(target, "#"):
		return map[string]any{"type": "channel", "channel_id": target[1:]}
	case strings.HasPrefix(target, "!subteam^"):
		return map[string]any{"type": "usergroup", "usergroup_id": strings.TrimPrefix(target, "!subteam^")}
	case strings.HasPrefix(target, "!"):
		return map[string]any{"type": "broadcast", "range": target[1:]}
	}
	link := map[string]any{"type": "link", "url": unescape(target)}
	set(link, "text", unescape(label))
	return link
}

func unescape(s string) string {
	return strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&").Replace(s)
}
