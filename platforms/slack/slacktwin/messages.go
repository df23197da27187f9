package slacktwin

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
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

func reactionsJSON(rs []Reaction) []any {
	var out []any
	for _, r := range rs {
		out = append(out, map[string]any{"name": r.Name, "users": r.Users, "count": len(r.Users)})
	}
	return out
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

// span is the part of a conversation that history and replies are asked for, doc m/conversations.history.
type span struct {
	oldest, latest string
	inclusive      bool
	limit          int
	cursor         string // the ts behind which the page begins
	metadata       bool
}

func readSpan(a args, defaultLimit int) (span, error) {
	s := span{
		oldest: a["oldest"], latest: a["latest"], inclusive: a.boolean("inclusive"), limit: defaultLimit,
		metadata: a.boolean("include_all_metadata"),
	}
	var err error
	if s.oldest, err = boundary(s.oldest, "invalid_ts_oldest"); err != nil {
		return s, err
	}
	if s.latest, err = boundary(s.latest, "invalid_ts_latest"); err != nil {
		return s, err
	}
	if l := a["limit"]; l != "" && l != "0" {
		n, err := strconv.Atoi(l)
		if err != nil || n < 1 || n > maxPage {
			return s, refuse("invalid_limit")
		}
		s.limit = n
	}
	if c := a["cursor"]; c != "" {
		if s.cursor = readCursor(c); s.cursor == "" {
			return s, refuse("invalid_cursor")
		}
	}
	return s, nil
}

// boundary brings "", "0", "1700000000" and "1700000000.5" into the form of a ts, so that they compare as text.
func boundary(ts, code string) (string, error) {
	if ts == "" || ts == "0" || ts == "now" {
		return "", nil
	}
	seconds, micros, _ := strings.Cut(ts, ".")
	if !isDigits(seconds) || !isDigits(micros) || len(seconds) > 10 || len(micros) > 6 || seconds == "" {
		return "", refuse(code)
	}
	return strings.Repeat("0", 10-len(seconds)) + seconds + "." + micros + strings.Repeat("0", 6-len(micros)), nil
}

func (s span) has(ts string) bool {
	if ts == s.oldest || ts == s.latest {
		return s.inclusive
	}
	return ts > s.oldest && (s.latest == "" || ts < s.latest)
}

func (t *Twin) conversationsHistory(a args) (map[string]any, error) {
	r, s, err := t.readable(a, 100)
	if err != nil {
		return nil, err
	}
	var page []*message
	for _, m := range slices.Backward(r.messages) {
		shown := !m.isReply() || m.Subtype == "thread_broadcast"
		if shown && s.has(m.TS) && (s.cursor == "" || m.TS < s.cursor) {
			page = append(page, m)
		}
	}
	return t.page(nil, page, s), nil
}

func (t *Twin) conversationsReplies(a args) (map[string]any, error) {
	r, s, err := t.readable(a, maxPage)
	if err != nil {
		return nil, err
	}
	parent := r.find(a["ts"])
	if parent == nil {
		return nil, refuse("thread_not_found")
	}
	var page []*message
	for _, m := range r.threads[a["ts"]] {
		if s.has(m.TS) && m.TS > s.cursor {
			page = append(page, m)
		}
	}
	return t.page(parent, page, s), nil
}

func (t *Twin) readable(a args, limit int) (*room, span, error) {
	r, err := t.visibleRoom(a["channel"])
	if err != nil {
		return nil, span{}, err
	}
	if !r.has(t.opt.BotUser) {
		return nil, span{}, refuse("not_in_channel")
	}
	s, err := readSpan(a, limit)
	return r, s, err
}

// page renders one page; the parent of a thread is on every page of it.
func (t *Twin) page(parent *message, ms []*message, s span) map[string]any {
	next := ""
	if len(ms) > s.limit {
		ms = ms[:s.limit]
		next = writeCursor(ms[len(ms)-1].TS)
	}
	if parent != nil {
		ms = append([]*message{parent}, ms...)
	}
	list := []any{}
	for _, m := range ms {
		m.expire(t.opt.Now())
		j := t.wire(m, true)
		if s.metadata {
			setJSON(j, "metadata", m.Metadata)
		}
		list = append(list, j)
	}
	answer := map[string]any{"messages": list, "has_more": next != ""}
	if next != "" {
		answer["response_metadata"] = map[string]any{"next_cursor": next}
	}
	return answer
}

func (t *Twin) reactionsAdd(a args) (map[string]any, error) {
	m, err := t.reacted(a)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(m.Reactions, func(r Reaction) bool { return r.Name == a["name"] })
	if i < 0 {
		if len(m.Reactions) >= maxReactions {
			return nil, refuse("too_many_emoji")
		}
		m.Reactions = append(m.Reactions, Reaction{Name: a["name"]})
		i = len(m.Reactions) - 1
	}
	r := &m.Reactions[i]
	if slices.Contains(r.Users, t.opt.BotUser) {
		return nil, refuse("already_reacted")
	}
	r.Users = append(r.Users, t.opt.BotUser)
	t.messageChanged(m)
	return map[string]any{}, nil
}

func (t *Twin) reactionsRemove(a args) (map[string]any, error) {
	m, err := t.reacted(a)
	if err != nil {
		return nil, err
	}
	for i := range m.Reactions {
		r := &m.Reactions[i]
		u := slices.Index(r.Users, t.opt.BotUser)
		if r.Name != a["name"] || u < 0 {
			continue
		}
		r.Users = slices.Delete(r.Users, u, u+1)
		if len(r.Users) == 0 {
			m.Reactions = slices.Delete(m.Reactions, i, i+1)
		}
		t.messageChanged(m)
		return map[string]any{}, nil
	}
	return nil, refuse("no_reaction")
}

func (t *Twin) reactionsGet(a args) (map[string]any, error) {
	r, err := t.botRoom(a["channel"])
	if err != nil {
		return nil, err
	}
	m := r.find(a["timestamp"])
	if m == nil {
		return nil, refuse("message_not_found")
	}
	return map[string]any{"type": "message", "channel": r.ID, "message": t.wire(m, true)}, nil
}

var emojiName = regexp.MustCompile(`^[a-z0-9_+'\-]{1,100}(::skin-tone-[2-6])?$`)

// reacted returns the message that a reaction is about, doc m/reactions.add.
func (t *Twin) reacted(a args) (*message, error) {
	if !emojiName.MatchString(a["name"]) {
		return nil, refuse("invalid_name")
	}
	if a["channel"] == "" || a["timestamp"] == "" {
		return nil, refuse("no_item_specified")
	}
	r, err := t.botRoom(a["channel"])
	if err != nil {
		return nil, err
	}
	if !validTS(a["timestamp"]) {
		return nil, refuse("bad_timestamp")
	}
	m := r.find(a["timestamp"])
	if m == nil {
		return nil, refuse("message_not_found")
	}
	return m, nil
}

// endsAfter reports whether so much time has passed since then.
func endsAfter(then, now time.Time, d time.Duration) bool { return !now.Before(then.Add(d)) }
