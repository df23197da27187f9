package slacktwin

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

type threadKey struct{ channel, ts string }

// session is what the bot shows of its work in a thread: the state of an agent session, and the text of the older
// assistant status.
type session struct {
	state    string
	stateAt  time.Time
	text     string
	textAt   time.Time
	title    string
	existing bool // an agent session was created
}

// expire ends what Slack ends by itself: processing after 1 h, the text after 2 min.
func (s *session) expire(now time.Time) {
	if s.state == "processing" && endsAfter(s.stateAt, now, sessionLife) {
		s.state = "active"
	}
	if s.text != "" && endsAfter(s.textAt, now, assistantLife) {
		s.text = ""
	}
}

// Statuses returns what the bot says it is doing, by thread; expired ones are not among them.
func (t *Twin) Statuses() []Status {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []Status
	for key, s := range t.sessions {
		s.expire(t.opt.Now())
		if s.state == "" && s.text == "" && s.title == "" {
			continue
		}
		at := s.stateAt
		if s.textAt.After(at) {
			at = s.textAt
		}
		out = append(out, Status{
			Channel: key.channel, ThreadTS: key.ts, State: s.state, Text: s.text, Title: s.title, At: at,
		})
	}
	slices.SortFunc(out, func(a, b Status) int {
		return cmp.Or(cmp.Compare(a.Channel, b.Channel), cmp.Compare(a.ThreadTS, b.ThreadTS))
	})
	return out
}

func (t *Twin) session(channel, thread string) *session {
	key := threadKey{channel, thread}
	s, ok := t.sessions[key]
	if !ok {
		s = &session{}
		t.sessions[key] = s
	}
	s.expire(t.opt.Now())
	return s
}

// setSession sets the state, and the title if this creates the session.
func (t *Twin) setSession(channel, thread, state, title string) *session {
	s := t.session(channel, thread)
	if !s.existing {
		s.existing = true
		if title != "" {
			s.title = title
		}
	}
	s.state, s.stateAt = state, t.opt.Now()
	t.statusChanged(channel, thread)
	return s
}

func (t *Twin) statusChanged(channel, thread string) {
	t.changed(Change{Kind: StatusChanged, Channel: channel, TS: thread, Thread: thread})
}

func sessionState(s string) bool {
	return slices.Contains([]string{"active", "processing", "suspended", "closed"}, s)
}

// sessionThread checks what all methods of sessions and assistants name: a thread the bot can reach.
func (t *Twin) sessionThread(a args) (*room, string, error) {
	if !t.opt.Agent {
		return nil, "", refuse("feature_not_enabled")
	}
	r, err := t.botRoom(a["channel_id"])
	if err != nil {
		return nil, "", err
	}
	ts := a["thread_ts"]
	if !validTS(ts) {
		return nil, "", refuse("invalid_thread_ts")
	}
	if m := r.find(ts); m == nil || m.isReply() {
		return nil, "", refuse("thread_not_found")
	}
	return r, ts, nil
}

func (t *Twin) sessionsSetStatus(a args) (map[string]any, error) {
	r, thread, err := t.sessionThread(a)
	if err != nil {
		return nil, err
	}
	if !sessionState(a["status"]) {
		return nil, refuse("invalid_arguments", "status must be one of: active, processing, suspended, closed")
	}
	if utf8.RuneCountInString(a["title"]) > maxSessionTitle {
		return nil, refuse("invalid_arguments", "title must be less than 201 characters")
	}
	if user := a["initiator_user_id"]; user != "" && !r.has(user) {
		return nil, refuse("user_not_in_channel")
	}
	s := t.setSession(r.ID, thread, a["status"], a["title"])
	answer := map[string]any{"status": s.state, "agent_status": s.state}
	set(answer, "title", s.title)
	if !t.subscribed("agent_session_stopped", r) {
		answer["warning"] = "missing_agent_session_stopped_event_subscription"
	}
	return answer, nil
}

func (t *Twin) sessionsRename(a args) (map[string]any, error) {
	r, thread, err := t.sessionThread(a)
	if err != nil {
		return nil, err
	}
	n := utf8.RuneCountInString(a["title"])
	if n < 1 || n > maxSessionTitle {
		return nil, refuse("invalid_arguments", "title must be 1 to 200 characters")
	}
	s := t.session(r.ID, thread)
	if !s.existing {
		return nil, refuse("session_not_found")
	}
	s.title = a["title"]
	t.statusChanged(r.ID, thread)
	return map[string]any{"title": s.title}, nil
}

func (t *Twin) assistantSetStatus(a args) (map[string]any, error) {
	r, thread, err := t.sessionThread(a)
	if err != nil {
		return nil, err
	}
	if len(a.commaList("loading_messages")) > maxLoading {
		return nil, refuse("invalid_arguments", "no more than 10 items allowed [json-pointer:/loading_messages]")
	}
	s := t.session(r.ID, thread)
	s.text, s.textAt = a["status"], t.opt.Now()
	t.statusChanged(r.ID, thread)
	return map[string]any{}, nil
}

// commaList reads JSON or text parted by commas.
func (a args) commaList(name string) []string {
	var list []string
	if err := json.Unmarshal([]byte(a[name]), &list); err == nil {
		return list
	}
	if a[name] == "" {
		return nil
	}
	return strings.Split(a[name], ",")
}

// endAssistantStatus: a post of the bot into the thread clears the older status, doc m/assistant.threads.setStatus.
func (t *Twin) endAssistantStatus(channel, thread string) {
	s, ok := t.sessions[threadKey{channel, thread}]
	if !ok || s.text == "" {
		return
	}
	s.text = ""
	t.statusChanged(channel, thread)
}

func (t *Twin) assistantSetTitle(a args) (map[string]any, error) {
	r, thread, err := t.sessionThread(a)
	if err != nil {
		return nil, err
	}
	if a["title"] == "" {
		return nil, refuse("invalid_arguments", "missing required field: title")
	}
	t.session(r.ID, thread).title = a["title"]
	t.statusChanged(r.ID, thread)
	return map[string]any{}, nil
}

func (t *Twin) assistantSetPrompts(a args) (map[string]any, error) {
	if !t.opt.Agent {
		return nil, refuse("feature_not_enabled")
	}
	if _, err := t.botRoom(a["channel_id"]); err != nil {
		return nil, err
	}
	var prompts []struct {
		Title   string `json:"title"`
		Message string `json:"message"`
	}
	if err := json.Unmarshal([]byte(a["prompts"]), &prompts); err != nil {
		return nil, refuse("invalid_arguments", "must be an array [json-pointer:/prompts]")
	}
	if len(prompts) == 0 || len(prompts) > maxPrompts {
		return nil, refuse("invalid_arguments", "1 to 4 items allowed [json-pointer:/prompts]")
	}
	for _, p := range prompts {
		if p.Title == "" || p.Message == "" {
			return nil, refuse("invalid_arguments", "missing required field [json-pointer:/prompts]")
		}
	}
	return map[string]any{}, nil
}

// StopSession presses the native stop button of a thread, doc reference/events/agent_session_stopped. Slack stops the
// thread's streams; the state of the session is the bot's to change. The error says that there is no button: the session
// is not processing, or the app has no subscription.
func (t *Twin) StopSession(user, channel, threadTS string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	r, err := t.place(user, channel)
	if err != nil {
		return err
	}
	if !t.subscribed("agent_session_stopped", r) || t.session(channel, threadTS).state != "processing" {
		return personal("there is no stop button")
	}
	stopped := []string{}
	for _, m := range r.thread(threadTS) {
		m.expire(t.opt.Now())
		if m.Streaming {
			m.Streaming, m.stream.stopped = false, true
			stopped = append(stopped, m.TS)
			t.messageChanged(m)
		}
	}
	t.emit(r, map[string]any{
		"type": "agent_session_stopped", "channel": channel, "thread_ts": threadTS, "user": user,
		"streaming_message_ts": stopped, "event_ts": t.newTS(),
	})
	return nil
}
