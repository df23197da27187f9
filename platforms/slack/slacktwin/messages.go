package slacktwin

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// conversations is everything that was said.
type conversations struct {
	rooms      map[string]*room
	roomOrder  []string
	ephemerals []*message
}

// room is a channel with its messages, in order of ts. threads has the replies by the parent's ts.
type room struct {
	Channel
	messages []*message
	threads  map[string][]*message
}

type message struct {
	Message
	stream *stream
}

func (r *room) find(ts string) *message {
	i, ok := slices.BinarySearchFunc(r.messages, ts, func(m *message, ts string) int { return strings.Compare(m.TS, ts) })
	if !ok {
		return nil
	}
	return r.messages[i]
}

// Say posts as a person. The message is there at once; its events go to the bot by and by. Text is in Slack's wire form:
// <@U1> is a mention, and &, < and > are escaped. A threadTS of "" is the top level.
func (t *Twin) Say(user, channel, threadTS, text string, files ...Upload) (ts string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r, err := t.place(user, channel)
	if err != nil {
		return "", err
	}
	switch {
	case !r.has(user):
		return "", personal("not_in_channel")
	case r.Archived:
		return "", personal("is_archived")
	case text == "" && len(files) == 0:
		return "", personal("no_text")
	}
	if threadTS != "" {
		parent := r.find(threadTS)
		if parent == nil || parent.isReply() {
			return "", personal("thread_not_found")
		}
	}
	m := &message{Message: Message{User: user, ThreadTS: threadTS, Text: text, ClientMsgID: newUUID()}}
	if text != "" {
		m.Blocks = richText(text)
	}
	if t.users[user].Bot {
		m.BotID = botID(user)
	}
	for _, f := range files {
		m.Files = append(m.Files, t.addUpload(user, r, f))
	}
	if len(files) > 0 {
		m.Subtype = "file_share"
	}
	t.post(r, m)
	return m.TS, nil
}

// EditMessage changes a message as its author.
func (t *Twin) EditMessage(user, channel, ts, text string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	r, err := t.place(user, channel)
	if err != nil {
		return err
	}
	m := r.find(ts)
	if m == nil {
		return personal("message_not_found")
	}
	if m.User != user {
		return personal("cant_update_message")
	}
	t.edit(r, m, func() { m.Text, m.Blocks = text, richText(text) })
	return nil
}

// DeleteMessage deletes a message as its author. A parent with replies stays as a tombstone.
func (t *Twin) DeleteMessage(user, channel, ts string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	r, err := t.place(user, channel)
	if err != nil {
		return err
	}
	m := r.find(ts)
	if m == nil {
		return personal("message_not_found")
	}
	if m.User != user {
		return personal("cant_delete_message")
	}
	t.remove(r, m)
	return nil
}

// Messages returns all messages of a channel, replies too, in order of ts.
func (t *Twin) Messages(channel string) []Message {
	t.mu.Lock()
	defer t.mu.Unlock()
	r, ok := t.rooms[channel]
	if !ok {
		return nil
	}
	return t.copies(r.messages)
}

// Thread returns the parent and its replies, in order of ts.
func (t *Twin) Thread(channel, ts string) []Message {
	t.mu.Lock()
	defer t.mu.Unlock()
	r, ok := t.rooms[channel]
	if !ok {
		return nil
	}
	return t.copies(r.thread(ts))
}

// Ephemerals returns what only this person sees, oldest first.
func (t *Twin) Ephemerals(user string) []Message {
	t.mu.Lock()
	defer t.mu.Unlock()
	var ms []*message
	for _, m := range t.ephemerals {
		if m.To == user {
			ms = append(ms, m)
		}
	}
	return t.copies(ms)
}

func (t *Twin) copies(ms []*message) []Message {
	var out []Message
	for _, m := range ms {
		m.expire(t.opt.Now())
		c := m.Message
		c.Files = slices.Clone(c.Files)
		c.ReplyUsers = slices.Clone(c.ReplyUsers)
		c.Chunks = slices.Clone(c.Chunks)
		c.Reactions = slices.Clone(c.Reactions)
		for i := range c.Reactions {
			c.Reactions[i].Users = slices.Clone(c.Reactions[i].Users)
		}
		out = append(out, c)
	}
	return out
}

func (m *Message) isReply() bool { return m.ThreadTS != "" && m.ThreadTS != m.TS }

// top returns the ts of the parent, of a top-level message its own.
func (m *Message) top() string {
	if m.ThreadTS != "" {
		return m.ThreadTS
	}
	return m.TS
}

func (r *room) thread(ts string) []*message {
	parent := r.find(ts)
	if parent == nil {
		return nil
	}
	return append([]*message{parent}, r.threads[ts]...)
}

// post puts a message into a room under a new ts and tells everybody, the bot too.
func (t *Twin) post(r *room, m *message) {
	m.Channel, m.TS = r.ID, t.newTS()
	r.messages = append(r.messages, m)
	if m.isReply() {
		r.threads[m.ThreadTS] = append(r.threads[m.ThreadTS], m)
		t.countReplies(r, m.ThreadTS)
	}
	t.messageChanged(m)
	t.emitMessage(r, m)
}

// countReplies brings the parent up to date with its replies.
func (t *Twin) countReplies(r *room, ts string) {
	parent := r.find(ts)
	if parent == nil {
		return
	}
	parent.ThreadTS, parent.Replies, parent.ReplyUsers, parent.LatestReply = ts, 0, nil, ""
	for _, m := range r.threads[ts] {
		parent.Replies++
		parent.LatestReply = m.TS
		if !slices.Contains(parent.ReplyUsers, m.User) {
			parent.ReplyUsers = append(parent.ReplyUsers, m.User)
		}
	}
	if parent.Replies == 0 {
		parent.ThreadTS = ""
	}
	t.messageChanged(parent)
}

// edit applies change and tells the bot by message_changed.
func (t *Twin) edit(r *room, m *message, change func()) {
	before := t.wire(m, false)
	change()
	m.EditedBy, m.EditedTS = m.User, t.newTS()
	t.messageChanged(m)
	t.emitChanged(r, m, before)
}

func (t *Twin) emitChanged(r *room, m *message, before map[string]any) {
	ts := t.newTS()
	t.emit(r, map[string]any{
		"type": "message", "subtype": "message_changed", "hidden": true, "channel": r.ID, "channel_type": r.kind(),
		"ts": ts, "event_ts": ts, "message": t.wire(m, false), "previous_message": before,
	})
}

// remove deletes a message, or leaves a tombstone where replies would lose their parent.
func (t *Twin) remove(r *room, m *message) {
	before := t.wire(m, false)
	if !m.isReply() && len(r.threads[m.TS]) > 0 {
		m.Message = Message{
			Channel: m.Channel, TS: m.TS, ThreadTS: m.TS, User: "USLACKBOT", Subtype: "tombstone",
			Text: "This message was deleted.",
		}
		m.stream = nil
		t.countReplies(r, m.TS)
		t.emitChanged(r, m, before)
		return
	}
	r.messages = slices.DeleteFunc(r.messages, func(x *message) bool { return x == m })
	if m.isReply() {
		r.threads[m.ThreadTS] = slices.DeleteFunc(r.threads[m.ThreadTS], func(x *message) bool { return x == m })
		t.countReplies(r, m.ThreadTS)
	}
	t.messageChanged(m)
	ts := t.newTS()
	t.emit(r, map[string]any{
		"type": "message", "subtype": "message_deleted", "hidden": true, "channel": r.ID, "channel_type": r.kind(),
		"ts": ts, "event_ts": ts, "deleted_ts": m.TS, "previous_message": before,
	})
}

func (t *Twin) messageChanged(m *message) {
	t.changed(Change{Kind: MessageChanged, Channel: m.Channel, TS: m.TS, Thread: m.top()})
}

// wire returns a message as it is on the wire. all adds what only the Web API tells: replies and reactions.
func (t *Twin) wire(m *message, all bool) map[string]any {
	j := map[string]any{"type": "message", "ts": m.TS, "text": m.Text, "user": m.User, "team": t.teamOf(m.User)}
	set(j, "subtype", m.Subtype)
	set(j, "thread_ts", m.ThreadTS)
	set(j, "client_msg_id", m.ClientMsgID)
	setJSON(j, "blocks", m.Blocks)
	setJSON(j, "attachments", m.Attachments)
	if m.isReply() {
		if parent := t.rooms[m.Channel].find(m.ThreadTS); parent != nil {
			j["parent_user_id"] = parent.User
		}
	}
	if m.BotID != "" {
		j["bot_id"] = m.BotID
		j["app_id"] = t.opt.AppID
		j["bot_profile"] = map[string]any{
			"id": m.BotID, "app_id": t.opt.AppID, "user_id": m.User, "name": t.users[m.User].Name, "team_id": t.opt.Team,
		}
	}
	if m.EditedTS != "" {
		j["edited"] = map[string]any{"user": m.EditedBy, "ts": m.EditedTS}
	}
	if len(m.Files) > 0 {
		j["files"] = t.filesJSON(m.Files)
		j["upload"] = m.Subtype == "file_share"
	}
	if all {
		t.addCounts(j, m)
	}
	return j
}

func (t *Twin) addCounts(j map[string]any, m *message) {
	if m.Replies > 0 {
		j["reply_count"] = m.Replies
		j["reply_users"] = m.ReplyUsers
		j["reply_users_count"] = len(m.ReplyUsers)
		j["latest_reply"] = m.LatestReply
		j["is_locked"] = false
		j["subscribed"] = true
	}
	if len(m.Reactions) > 0 {
		j["reactions"] = reactionsJSON(m.Reactions)
	}
	if m.Streaming {
		j["streaming_state"] = "in_progress"
	}
}

func (t *Twin) teamOf(user string) string {
	if u, ok := t.users[user]; ok {
		return u.Team
	}
	return t.opt.Team
}

func set(j map[string]any, key, value string) {
	if value != "" {
		j[key] = value
	}
}

func setJSON(j map[string]any, key string, value json.RawMessage) {
	if len(value) > 0 {
		j[key] = value
	}
}

// botID returns the bot_id of a bot user: UBOT has BBOT.
func botID(user string) string { return "B" + strings.TrimPrefix(user, "U") }

func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
