package slack

import (
	"encoding/json"
	"strings"

	"github.com/parley-chat/parley/platforms"
)

// render shows content as plain text.
func render(c platforms.Content) []platforms.Part {
	text := c.Markdown
	if c.Card != nil {
		text = c.Card.Title + "\n" + c.Card.Text
	}
	text = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(text)
	p, err := json.Marshal(map[string]string{"text": text})
	if err != nil {
		panic(err)
	}
	return []platforms.Part{p}
}
