package slack

import (
	"encoding/json"
	"fmt"

	slackgo "github.com/slack-go/slack"

	"github.com/parley-chat/parley/platforms"
	"github.com/parley-chat/parley/platforms/markup"
)

// message is a Part of Slack: what chat.postMessage and chat.update are given, with unfurl_links and unfurl_media off.
type message struct {
	// Text is mrkdwn, never empty, at most 4,000 bytes. Beside blocks it is what notifications and screen readers say.
	Text string `json:"text"`
	// Blocks are at most 50. Answers have none: the text of a message is shown whole and takes every edit, where a section
	// folds itself and each block adds a limit.
	Blocks slackgo.Blocks `json:"blocks,omitzero"`
}

const (
	// maxText is the longest text of a message, in bytes of UTF-8: chat.update refuses more (msg_too_long).
	maxText = 4000
	// maxPart is the longest text of one message of several.
	maxPart = 3900
	// maxTable is the widest table that is shown as one, in columns; wider ones wrap in a thread's pane and become lists.
	maxTable = 80
	// noText stands for nothing, which Slack refuses (no_text).
	noText = "(no text)"
)

// render turns content into messages: an answer into as few as hold it, a card into one, last, that may be preceded by
// messages with what is too long for it.
func render(c platforms.Content) []platforms.Part {
	messages := answer(read(c.Markdown))
	if c.Card != nil {
		messages = card(*c.Card)
	}
	parts := make([]platforms.Part, len(messages))
	for i, m := range messages {
		parts[i] = m.part()
	}
	return parts
}

// part is the message as JSON.
func (m message) part() platforms.Part {
	p, err := json.Marshal(m)
	if err != nil {
		// Strings and slack-go's structs of strings: there is no value that JSON cannot hold.
		panic(fmt.Sprintf("slack: render: %v", err))
	}
	return p
}

// read reads CommonMark as Slack can show it.
func read(source string) markup.Document {
	return markup.NarrowTables(markup.Parse(source), maxTable)
}

// answer is d in one message, or in as many as it takes, at least one.
func answer(d markup.Document) []message {
	if len(d) == 0 {
		return []message{{Text: noText}}
	}
	if s := markup.Mrkdwn(d); len(s) <= maxText {
		return []message{{Text: s}}
	}
	var messages []message
	for _, part := range markup.Split(d, within(maxPart)) {
		messages = append(messages, message{Text: markup.Mrkdwn(part)})
	}
	return messages
}

// within tells whether a document takes at most limit bytes of mrkdwn.
func within(limit int) func(markup.Document) bool {
	return func(d markup.Document) bool { return len(markup.Mrkdwn(d)) <= limit }
}
