package discord

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/parley-chat/parley/platforms"
	"github.com/parley-chat/parley/platforms/pace"
)

// The gateway sends nothing again once a session is lost. After every new session the adapter looks up what was said
// meanwhile: where it has taken something before, where the caller says that the bot talks, and where a server tells that
// there is something newer. What it finds takes the same way as what the gateway sends, before anything newer of the same
// channel; what was taken before is found out by the inbox.

const (
	mostRemembered = 50_000 // conversations and channels
	pageSize       = 100    // messages (doc resources/message)
	mostPages      = 50
	lookAttempts   = 6
)

// history remembers where something was taken last.
type history struct {
	mu     sync.Mutex
	since  string // the caller's word on everywhere
	heard  map[string]place
	due    map[string]string // channels to look through, and after which message
	active map[platforms.Conversation]struct{}
}

// place is a channel in which something was taken.
type place struct{ guild, last string }

var _ platforms.Backfiller = (*Adapter)(nil)

// Backfill tells where the bot talked before it was started. It is called before Run.
func (a *Adapter) Backfill(known []platforms.Known) {
	for _, k := range known {
		after := snowflakeAt(k.Since)
		if k.Conversation == "" {
			a.history.everywhere(after)
			continue
		}
		at, err := parseConversation(k.Conversation)
		if err != nil {
			continue
		}
		a.history.add(at.place(), place{at.Guild, after}, k.Conversation)
		if at.Thread != "" { // its channel is where one is mentioned
			a.history.add(at.Channel, place{at.Guild, after}, k.Conversation)
		}
	}
}

func (h *history) everywhere(after string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.since = after
}

// took notes a message that was taken.
func (h *history) took(m message, in platforms.Conversation) {
	h.add(m.ChannelID, place{m.GuildID, m.ID}, in)
}

// add remembers a channel with the latest of its messages, and a conversation. Of too many, it forgets any.
func (h *history) add(channel string, p place, in platforms.Conversation) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.heard == nil {
		h.heard, h.active = map[string]place{}, map[platforms.Conversation]struct{}{}
	}
	p.last = laterID(p.last, h.heard[channel].last)
	h.heard[channel], h.active[in] = p, struct{}{}
	shrink(h.heard)
	shrink(h.active)
}

func shrink[K comparable, V any](m map[K]V) {
	for k := range m {
		if len(m) <= mostRemembered {
			return
		}
		delete(m, k)
	}
}

// isActive tells whether something of the conversation was taken, as far as is remembered.
func (h *history) isActive(c platforms.Conversation) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, ok := h.active[c]
	return ok
}

// beginning is the id after which something may have been missed before the first session.
func (h *history) beginning(now time.Time) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.since != "" {
		return h.since
	}
	return snowflakeAt(now.Add(-startSlack))
}

// gap makes every channel due in which something was taken, as far as its guild is ours, and returns them.
func (h *history) gap(ours func(guild string) bool) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var channels []string
	for id, p := range h.heard {
		if ours(p.guild) {
			h.owe(id, p.last)
			channels = append(channels, id)
		}
	}
	return channels
}

// gapIn makes due what is newer than after in a guild, as the guild tells it, and returns the channels.
func (h *history) gapIn(g guild, after string) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var channels []string
	for _, c := range append(g.Channels, g.Threads...) {
		_, owed := h.due[c.ID]
		if owed || after == "" || !isSnowflake(c.ID) || !isSnowflake(c.Last) {
			continue
		}
		from := laterID(after, h.heard[c.ID].last)
		if h.heard[c.ID].last == "" {
			from = after
		}
		if isAfter(c.Last, from) {
			h.owe(c.ID, from)
			channels = append(channels, c.ID)
		}
	}
	return channels
}

// owe makes a channel due, from the earliest message on.
func (h *history) owe(channel, after string) {
	if h.due == nil {
		h.due = map[string]string{}
	}
	if was, ok := h.due[channel]; ok && isAfter(after, was) {
		return
	}
	h.due[channel] = after
}

func (h *history) dueIn(channel string) (after string, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	after, ok = h.due[channel]
	return after, ok
}

// settle ends what is due in a channel, unless more of it has become due.
func (h *history) settle(channel, after string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.due[channel] == after {
		delete(h.due, channel)
	}
}

// catchUp takes what was missed in a channel, if something may have been. What cannot be looked up now stays due: the next
// message there tries again.
func (q *queues) catchUp(channel string) {
	after, ok := q.a.history.dueIn(channel)
	if !ok || q.ctx.Err() != nil {
		return
	}
	from := after
	for attempt := 0; ; attempt++ {
		last, err := q.takeAfter(channel, from)
		switch {
		case err == nil:
			q.a.history.settle(channel, after)
			return
		case platforms.FailureOf(err) == platforms.Refused: // it is gone, or closed to us
			q.a.count.add("ignored", "closed_channel")
			q.a.history.settle(channel, after)
			return
		case attempt == lookAttempts || pace.Sleep(q.ctx, pace.Backoff(attempt, 0)) != nil:
			q.a.log.Error("discord: what was missed in a channel cannot be looked up yet", "channel", channel, "error", err)
			return
		}
		from = last
	}
}

// takeAfter takes the messages of a channel after one, oldest first, and returns the last that was taken.
func (q *queues) takeAfter(channel, after string) (last string, err error) {
	c, ok, err := q.a.channelOf(q.ctx, channel)
	if err != nil || !ok {
		return after, err
	}
	for range mostPages {
		found, err := q.a.messagesAfter(q.ctx, channel, after)
		if err != nil {
			return after, err
		}
		for _, m := range found {
			q.keep(arrival{kind: kindMessage, channel: channel, guild: c.Guild, self: q.a.identity(), body: m.raw})
			after = m.ID
		}
		if len(found) < pageSize {
			return after, nil
		}
	}
	q.a.log.Warn("discord: too much was said while nobody listened; only the beginning is looked at", "channel", channel)
	return after, nil
}

// foundMessage is a message that was looked up, with its payload.
type foundMessage struct {
	message
	raw json.RawMessage
}

// messagesAfter looks up the next messages after one, oldest first.
func (a *Adapter) messagesAfter(ctx context.Context, channel, after string) ([]foundMessage, error) {
	return a.messages(ctx, channel, fmt.Sprintf("?after=%s&limit=%d", after, pageSize))
}

// messages looks up messages of a channel, oldest first. Without a query they are the latest 50.
func (a *Adapter) messages(ctx context.Context, channel, query string) ([]foundMessage, error) {
	var raws []json.RawMessage
	err := a.do(ctx, call{op: "look up messages", method: http.MethodGet, path: "channels/" + channel + "/messages" + query}, &raws)
	if err != nil {
		return nil, err
	}
	var found []foundMessage
	for _, raw := range raws {
		m := foundMessage{raw: raw}
		if decode(raw, &m.message) == nil && m.isValid() {
			found = append(found, m)
		}
	}
	slices.SortFunc(found, func(x, y foundMessage) int { return compareIDs(x.ID, y.ID) })
	return found, nil
}

func compareIDs(x, y string) int {
	a, _ := strconv.ParseUint(x, 10, 64)
	b, _ := strconv.ParseUint(y, 10, 64)
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}
