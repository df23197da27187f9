package slacktwin

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// stream is a message that still grows. It lives 5 minutes, appended to or not.
type stream struct {
	started time.Time
	stopped bool           // by a person
	details map[string]int // characters of the details of each task so far
}

// expire ends a stream that has lived its time.
func (m *message) expire(now time.Time) {
	if m.Streaming && endsAfter(m.stream.started, now, streamLife) {
		m.Streaming = false
	}
}

func (t *Twin) chatStartStream(a args) (map[string]any, error) {
	r, err := t.botRoom(a["channel"])
	if err != nil {
		return nil, err
	}
	thread, err := threadOf(a, r)
	if err != nil {
		return nil, err
	}
	if thread == "" {
		return nil, refuse("invalid_thread_ts")
	}
	if err := t.checkRecipient(a, r); err != nil {
		return nil, err
	}
	if mode := a["task_display_mode"]; mode != "" && mode != "timeline" && mode != "plan" {
		return nil, refuse("invalid_arguments", "task_display_mode must be timeline or plan")
	}
	m := t.botMessage(content{markdown: true}, thread)
	m.stream = &stream{started: t.opt.Now(), details: map[string]int{}}
	add, err := t.readGrowth(a, m.stream)
	if err != nil {
		return nil, err
	}
	m.Streaming = true
	add(m)
	t.post(r, m)
	if t.opt.Agent {
		t.setSession(r.ID, thread, "processing", "")
	}
	return map[string]any{"channel": r.ID, "ts": m.TS}, nil
}

// checkRecipient: outside direct messages a stream names who asked, doc m/chat.startStream.
func (t *Twin) checkRecipient(a args, r *room) error {
	if r.IM {
		return nil
	}
	switch {
	case a["recipient_user_id"] == "":
		return refuse("missing_recipient_user_id")
	case a["recipient_team_id"] == "":
		return refuse("missing_recipient_team_id")
	}
	u, ok := t.users[a["recipient_user_id"]]
	switch {
	case !ok || u.Bot:
		return refuse("user_not_found")
	case u.Team != a["recipient_team_id"]:
		return refuse("team_not_found")
	}
	return nil
}

func (t *Twin) chatAppendStream(a args) (map[string]any, error) {
	r, m, err := t.streaming(a)
	if err != nil {
		return nil, err
	}
	if m.stream.stopped {
		return nil, refuse("stopped_by_user")
	}
	if !m.Streaming {
		return nil, refuse("message_not_in_streaming_state")
	}
	if a["markdown_text"] == "" && a["chunks"] == "" {
		return nil, refuse("no_text")
	}
	add, err := t.readGrowth(a, m.stream)
	if err != nil {
		return nil, err
	}
	add(m)
	t.messageChanged(m)
	return map[string]any{"channel": r.ID, "ts": m.TS}, nil
}

func (t *Twin) chatStopStream(a args) (map[string]any, error) {
	r, m, err := t.streaming(a)
	if err != nil {
		return nil, err
	}
	if !m.Streaming {
		return nil, refuse("message_not_in_streaming_state")
	}
	state := a["session_status"]
	if state != "" && !sessionState(state) {
		return nil, refuse("invalid_arguments", "session_status must be one of: active, processing, suspended, closed")
	}
	blocks, err := checkBlocks(a["blocks"], inStream, t.newID)
	if err != nil {
		return nil, err
	}
	metadata, err := checkMetadata(a["metadata"])
	if err != nil {
		return nil, err
	}
	add, err := t.readGrowth(a, m.stream)
	if err != nil {
		return nil, err
	}
	before := t.wire(m, false)
	add(m)
	m.Streaming = false
	m.Blocks = blocks
	if metadata != nil {
		m.Metadata = metadata
	}
	t.messageChanged(m)
	t.emitChanged(r, m, before)
	if t.opt.Agent {
		if state == "" {
			state = "active"
		}
		t.setSession(r.ID, m.ThreadTS, state, "")
	}
	return map[string]any{"channel": r.ID, "ts": m.TS, "message": t.wire(m, true)}, nil
}

// streaming returns a message of the bot that is, or was, a stream.
func (t *Twin) streaming(a args) (*room, *message, error) {
	r, err := t.botRoom(a["channel"])
	if err != nil {
		return nil, nil, err
	}
	m, err := t.ownMessage(r, a["ts"], "message_not_owned_by_app")
	if err != nil {
		return nil, nil, err
	}
	if m.stream == nil {
		return nil, nil, refuse("message_not_in_streaming_state")
	}
	return r, m, nil
}

// chunk is one piece of a stream, doc m/chat.appendStream.
type chunk struct {
	Type    string          `json:"type"`
	Text    string          `json:"text"`
	ID      string          `json:"id"`
	Title   string          `json:"title"`
	Status  string          `json:"status"`
	Details string          `json:"details"`
	Blocks  json.RawMessage `json:"blocks"`
}

// readGrowth checks markdown_text and chunks, and returns what adds them to the message.
func (t *Twin) readGrowth(a args, s *stream) (add func(*message), err error) {
	text := a["markdown_text"]
	if utf8.RuneCountInString(text) > maxMarkdownText {
		return nil, refuse("msg_too_long")
	}
	var raws []json.RawMessage
	if a["chunks"] != "" {
		if err := json.Unmarshal([]byte(a["chunks"]), &raws); err != nil {
			return nil, refuse("invalid_chunks")
		}
	}
	if text != "" && len(raws) > 0 {
		return nil, refuse("markdown_text_conflict")
	}
	details := map[string]int{}
	var kept []json.RawMessage
	var grown strings.Builder
	grown.WriteString(text)
	for i, raw := range raws {
		var c chunk
		if err := json.Unmarshal(raw, &c); err != nil {
			return nil, refuse("invalid_chunks", fmt.Sprintf("must be an object [json-pointer:/chunks/%d]", i))
		}
		if err := t.checkChunk(c, fmt.Sprintf("/chunks/%d", i), s.details[c.ID]+details[c.ID]); err != nil {
			return nil, err
		}
		if c.Type == "markdown_text" {
			grown.WriteString(c.Text)
			continue
		}
		details[c.ID] += utf8.RuneCountInString(c.Details)
		kept = append(kept, raw)
	}
	return func(m *message) {
		m.Text += grown.String()
		m.Chunks = append(m.Chunks, kept...)
		for id, n := range details {
			s.details[id] += n
		}
	}, nil
}

// checkChunk checks one chunk; before is how many characters of details its task has already.
func (t *Twin) checkChunk(c chunk, at string, before int) error {
	tooLong := func(field, s string, before int) error {
		if before+utf8.RuneCountInString(s) <= maxChunkText {
			return nil
		}
		return refuse("invalid_chunks",
			fmt.Sprintf("must be less than %d characters [json-pointer:%s/%s]", maxChunkText+1, at, field))
	}
	switch c.Type {
	case "markdown_text":
		if utf8.RuneCountInString(c.Text) > maxMarkdownText {
			return refuse("msg_too_long")
		}
		return nil
	case "task_update":
		if c.ID == "" || c.Title == "" {
			return refuse("invalid_chunks", "missing required field [json-pointer:"+at+"]")
		}
		switch c.Status {
		case "", "pending", "in_progress", "complete", "error":
		default:
			return refuse("invalid_chunks", "unknown status [json-pointer:"+at+"/status]")
		}
		if err := tooLong("title", c.Title, 0); err != nil {
			return err
		}
		return tooLong("details", c.Details, before)
	case "plan_update":
		return tooLong("title", c.Title, 0)
	case "blocks":
		_, err := checkBlocks(string(c.Blocks), inStream, t.newID)
		return err
	}
	return refuse("invalid_chunks", "unsupported type [json-pointer:"+at+"/type]")
}
