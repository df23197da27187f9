package slacktwin

import (
	"slices"
	"strconv"
	"strings"
)

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
