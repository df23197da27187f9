package discord

import (
	"encoding/json"
	"fmt"

	"github.com/parley-chat/parley/platforms"
	"github.com/parley-chat/parley/platforms/markup"
)

// post is a Part of Discord: one message as it is created or edited. What goes with every message (who may be called, no
// link previews) is added when it is sent.
type post struct {
	// Content is never empty, at most 2,000 UTF-16 units.
	Content string `json:"content"`
	// Components are at most five rows of five buttons. Answers have none.
	Components []any `json:"components,omitempty"`
	// Users are called, if the text mentions them.
	Users []string `json:"users,omitempty"`
}

const (
	// maxContent is the longest content, in UTF-16 units, the strictest reading of Discord's "characters".
	maxContent = 2000
	// maxTable is the widest table that is shown as one, in columns; wider ones wrap on a phone and become lists.
	maxTable = 60
	// noText stands for nothing, which Discord refuses (50006).
	noText = "(no text)"
)

// render turns content into messages: an answer into as few as hold it, a card into one, last, that may be preceded by
// messages with what is too long for it.
func render(c platforms.Content) []platforms.Part {
	posts := answer(read(c.Markdown))
	if c.Card != nil {
		posts = card(*c.Card)
	}
	parts := make([]platforms.Part, len(posts))
	for i, p := range posts {
		parts[i] = p.part()
	}
	return parts
}

// part is the message as JSON.
func (p post) part() platforms.Part {
	b, err := json.Marshal(p)
	if err != nil {
		// Strings and discordgo's structs of strings: there is no value that JSON cannot hold.
		panic(fmt.Sprintf("discord: render: %v", err))
	}
	return b
}

// read reads CommonMark as Discord can show it.
func read(source string) markup.Document {
	return markup.NarrowTables(markup.Parse(source), maxTable)
}

// answer is d in one message, or in as many as it takes, at least one.
func answer(d markup.Document) []post {
	var posts []post
	for _, part := range markup.Split(d, within(maxContent)) {
		if s := markup.Discord(part); s != "" {
			posts = append(posts, post{Content: s})
		}
	}
	if len(posts) == 0 {
		return []post{{Content: noText}}
	}
	return posts
}

// within tells whether a document takes at most limit UTF-16 units.
func within(limit int) func(markup.Document) bool {
	return func(d markup.Document) bool { return markup.UTF16Units(markup.Discord(d)) <= limit }
}
