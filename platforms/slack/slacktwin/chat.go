package slacktwin

import (
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// content is what the methods that write messages share.
type content struct {
	text                          string
	markdown                      bool
	blocks, attachments, metadata json.RawMessage
}

// readContent checks text, markdown_text, blocks, attachments and metadata, doc m/chat.postMessage.
func (t *Twin) readContent(a args, where surface) (content, error) {
	var c content
	markdown, hasMarkdown := a["markdown_text"], a["markdown_text"] != ""
	switch {
	case hasMarkdown && (a["text"] != "" || a["blocks"] != ""):
		return c, refuse("markdown_text_conflict")
	case utf8.RuneCountInString(markdown) > maxMarkdownText:
		return c, refuse("msg_too_long")
	}
	blocks, err := checkBlocks(a["blocks"], where, t.newID)
	if err != nil {
		return c, err
	}
	attachments, err := checkAttachments(a["attachments"])
	if err != nil {
		return c, err
	}
	metadata, err := checkMetadata(a["metadata"])
	if err != nil {
		return c, err
	}
	c = content{text: a["text"], blocks: blocks, attachments: attachments, metadata: metadata}
	if hasMarkdown {
		c.text, c.markdown = markdown, true
	}
	if strings.TrimSpace(c.text) == "" && blocks == nil && attachments == nil {
		return c, refuse("no_text")
	}
	return c, nil
}

func checkAttachments(raw string) (json.RawMessage, error) {
	if raw == "" || raw == "[]" {
		return nil, nil
	}
	var list []map[string]any
	if err := json.Unmarshal([]byte(raw), &list); err != nil {
		return nil, refuse("invalid_attachments")
	}
	if len(list) > maxAttachments {
		return nil, refuse("too_many_attachments")
	}
	return json.RawMessage(raw), nil
}

func checkMetadata(raw string) (json.RawMessage, error) {
	if raw == "" {
		return nil, nil
	}
	var m struct {
		Type    string         `json:"event_type"`
		Payload map[string]any `json:"event_payload"`
	}
	if err := json.Unmarshal([]byte(raw), &m); err != nil {
		return nil, refuse("invalid_metadata_format")
	}
	if m.Type == "" && m.Payload == nil {
		return nil, nil // how metadata is taken away
	}
	if m.Type == "" || m.Payload == nil {
		return nil, refuse("invalid_metadata_schema")
	}
	if len(raw) > maxMetadata {
		return nil, refuse("metadata_too_large")
	}
	return json.RawMessage(raw), nil
}

// threadOf checks the thread_ts of a new message: "" where the message goes to the top level. A parent that is gone is no
// error: the reply lands outside.
func threadOf(a args, r *room) (string, error) {
	ts, given := a["thread_ts"]
	if !given {
		return "", nil
	}
	if !validTS(ts) {
		return "", refuse("invalid_thread_ts")
	}
	parent := r.find(ts)
	if parent == nil {
		return "", nil
	}
	if parent.isReply() {
		return "", refuse("invalid_thread_ts")
	}
	return ts, nil
}

func (t *Twin) chatPostMessage(a args) (map[string]any, error) {
	r, err := t.botRoom(a["channel"])
	if err != nil {
		return nil, err
	}
	c, err := t.readContent(a, inMessage)
	if err != nil {
		return nil, err
	}
	thread, err := threadOf(a, r)
	if err != nil {
		return nil, err
	}
	answer := map[string]any{"channel": r.ID}
	text, cut := cutText(c.text)
	if cut {
		answer["warning"] = "message_truncated"
	}
	parts := []string{text}
	if c.blocks == nil && c.attachments == nil && !c.markdown {
		parts = splitText(text)
	}
	first := t.botMessage(c, thread)
	first.Text = parts[0]
	if thread != "" && a.boolean("reply_broadcast") {
		first.Subtype = "thread_broadcast"
	}
	t.post(r, first)
	for _, part := range parts[1:] {
		t.post(r, t.botMessage(content{text: part}, thread))
	}
	t.endAssistantStatus(r.ID, thread)
	answer["ts"] = first.TS
	answer["message"] = t.wire(first, true)
	return answer, nil
}

func (t *Twin) botMessage(c content, thread string) *message {
	return &message{Message: Message{
		User: t.opt.BotUser, BotID: botID(t.opt.BotUser), ThreadTS: thread, Text: c.text, Markdown: c.markdown,
		Blocks: c.blocks, Attachments: c.attachments, Metadata: c.metadata,
	}}
}

// cutText shortens what is beyond Slack's limit, doc m/chat.postMessage, truncating content.
func cutText(text string) (string, bool) {
	if utf8.RuneCountInString(text) <= maxText {
		return text, false
	}
	return string([]rune(text)[:maxText]), true
}

// splitText does what Slack may do with a text of more than 4,000 characters: several messages, of which the caller
// learns one ts.
func splitText(text string) []string {
	rest := []rune(text)
	var parts []string
	for len(rest) > bestText {
		n := bestText
		for i := n; i > bestText/2; i-- {
			if rest[i] == '\n' {
				n = i
				break
			}
		}
		parts = append(parts, string(rest[:n]))
		rest = rest[n:]
	}
	return append(parts, string(rest))
}

func (t *Twin) chatUpdate(a args) (map[string]any, error) {
	r, err := t.botRoom(a["channel"])
	if err != nil {
		return nil, err
	}
	m, err := t.ownMessage(r, a["ts"], "cant_update_message")
	if err != nil {
		return nil, err
	}
	if m.Streaming {
		return nil, refuse("streaming_state_conflict")
	}
	if len(a["text"]) > maxUpdateText {
		return nil, refuse("msg_too_long")
	}
	c, err := t.readContent(a, inMessage)
	if err != nil {
		return nil, err
	}
	t.edit(r, m, func() {
		m.Text, m.Markdown, m.Blocks, m.Attachments = c.text, c.markdown, c.blocks, c.attachments
		if a["metadata"] != "" {
			m.Metadata = c.metadata
		}
	})
	return map[string]any{"channel": r.ID, "ts": m.TS, "text": m.Text, "message": t.wire(m, true)}, nil
}

// ownMessage returns a message of the bot; code is the error where it is somebody else's.
func (t *Twin) ownMessage(r *room, ts, code string) (*message, error) {
	m := r.find(ts)
	if m == nil {
		return nil, refuse("message_not_found")
	}
	if m.User != t.opt.BotUser {
		return nil, refuse(code)
	}
	m.expire(t.opt.Now())
	return m, nil
}

func (t *Twin) chatDelete(a args) (map[string]any, error) {
	r, err := t.botRoom(a["channel"])
	if err != nil {
		return nil, err
	}
	m, err := t.ownMessage(r, a["ts"], "cant_delete_message")
	if err != nil {
		return nil, err
	}
	t.remove(r, m)
	return map[string]any{"channel": r.ID, "ts": a["ts"]}, nil
}

func (t *Twin) chatPostEphemeral(a args) (map[string]any, error) {
	r, err := t.botRoom(a["channel"])
	if err != nil {
		return nil, err
	}
	if _, ok := t.users[a["user"]]; !ok || !r.has(a["user"]) {
		return nil, refuse("user_not_in_channel")
	}
	c, err := t.readContent(a, inMessage)
	if err != nil {
		return nil, err
	}
	thread, err := threadOf(a, r)
	if err != nil {
		return nil, err
	}
	m := t.whisper(r, a["user"], thread, c)
	return map[string]any{"message_ts": m.TS}, nil
}

// whisper shows something to one person only.
func (t *Twin) whisper(r *room, user, thread string, c content) *message {
	m := t.botMessage(c, thread)
	m.Text, _ = cutText(m.Text)
	m.Channel, m.TS, m.Ephemeral, m.To = r.ID, t.newTS(), true, user
	t.ephemerals = append(t.ephemerals, m)
	t.changed(Change{Kind: EphemeralChanged, Channel: r.ID, TS: m.TS, Thread: m.top(), User: user})
	return m
}

func (t *Twin) chatGetPermalink(a args) (map[string]any, error) {
	r, err := t.visibleRoom(a["channel"])
	if err != nil {
		return nil, err
	}
	m := r.find(a["message_ts"])
	if m == nil {
		return nil, refuse("message_not_found")
	}
	link := t.url + "/archives/" + r.ID + "/p" + strings.Replace(m.TS, ".", "", 1)
	return map[string]any{"channel": r.ID, "permalink": link}, nil
}
