package slack

import (
	"cmp"
	"strings"

	"github.com/parley-chat/parley/platforms"
)

// callback is the outer form of an event (doc apis/events-api).
type callback struct {
	Type           string          `json:"type"`
	AppID          string          `json:"api_app_id"`
	EventID        string          `json:"event_id"`
	Event          event           `json:"event"`
	Authorizations []authorization `json:"authorizations"`
}

type authorization struct {
	TeamID              string `json:"team_id"`
	IsEnterpriseInstall bool   `json:"is_enterprise_install"`
}

// event holds the fields of all events that are read here.
type event struct {
	posted
	Type        string  `json:"type"`
	Channel     string  `json:"channel"`
	ChannelType string  `json:"channel_type"`
	EventTS     string  `json:"event_ts"`
	DeletedTS   string  `json:"deleted_ts"`
	Message     *posted `json:"message"`          // of message_changed
	Previous    *posted `json:"previous_message"` // of message_changed and message_deleted
}

// posted is a message, as an event or within one.
type posted struct {
	Subtype    string `json:"subtype"`
	Hidden     bool   `json:"hidden"`
	User       string `json:"user"`
	BotID      string `json:"bot_id"`
	Text       string `json:"text"`
	TS         string `json:"ts"`
	ThreadTS   string `json:"thread_ts"`
	Team       string `json:"team"`
	UserTeam   string `json:"user_team"`
	SourceTeam string `json:"source_team"`
	Files      []file `json:"files"`
}

func readCallback(e envelope) reading {
	var c callback
	if err := decode(e.Body, &c); err != nil {
		return ignored("malformed")
	}
	if c.Type != "event_callback" {
		return ignored("no_event")
	}
	if len(c.Authorizations) > 0 {
		// The outer team_id says where the event happened, which in Slack Connect may be elsewhere.
		auth := c.Authorizations[0]
		if auth.TeamID != "" && auth.TeamID != e.Self.Team && !auth.IsEnterpriseInstall {
			return ignored("other_installation")
		}
	}
	r := readEvent(e.Self, c.Event)
	if _, ok := r.isIgnored(); ok {
		return r
	}
	if c.EventID != "" {
		r.keys = append([]platforms.Key{key("e", c.AppID, e.Self.Team, c.EventID)}, r.keys...)
	}
	return r
}

func readEvent(self identity, ev event) reading {
	switch ev.Type {
	case "message", "app_mention":
		return readPosted(self, ev)
	case "agent_session_stopped":
		return readStopped(self, ev)
	}
	return ignored("event_type")
}

// readPosted decides which messages are taken.
func readPosted(self identity, ev event) reading {
	if ev.Channel == "" {
		return ignored("malformed")
	}
	switch ev.Subtype {
	case "", "file_share", "thread_broadcast", "me_message":
		return readMessage(self, ev)
	case "message_changed":
		return readChanged(self, ev)
	case "message_deleted":
		return readDeleted(self, ev)
	}
	return ignored("subtype")
}

func readMessage(self identity, ev event) reading {
	switch {
	case ev.TS == "":
		return ignored("malformed")
	case ev.Hidden:
		return ignored("hidden")
	}
	if why := self.unwanted(ev.posted); why != "" {
		return ignored(why)
	}
	text, mentioned := commonMark(ev.Text, self.User)
	addressed, ok := self.addressed(ev, ev.posted, mentioned || ev.Type == "app_mention")
	if !ok {
		return ignored("not_addressed")
	}
	where := self.address(ev, ev.posted)
	r := reading{
		keys:         []platforms.Key{key("m", self.Team, ev.Channel, ev.TS)},
		conversation: where.conversation(),
	}
	from := self.author(ev.posted)
	if name, args, ok := platforms.TextCommand(text); ok && len(ev.Files) == 0 {
		r.urgent = name != "reset" // which keeps its place behind the messages before it
		r.in = commandInText(where, from, name, args)
		return r
	}
	r.in = platforms.Message{
		Conversation: r.conversation,
		Ref:          messageRef(ev.Channel, ev.TS),
		From:         from,
		Addressed:    addressed,
		Text:         text,
		Files:        attached(ev.Files),
		At:           timeOf(ev.TS),
	}
	return r
}

// commandInText is a command said as a message.
func commandInText(where address, by platforms.User, name, args string) platforms.Inbound {
	if name == "stop" {
		return platforms.Stop{Conversation: where.conversation(), By: by}
	}
	_, user, _ := parseUser(by.ID)
	return platforms.Command{
		Conversation: where.conversation(),
		By:           by,
		Name:         name,
		Args:         args,
		Reply:        reply{Team: where.Team, Channel: where.Channel, Thread: where.Thread, User: user}.pack(),
	}
}

// readChanged reads an edit. Slack sends message_changed for link previews and for our own edits too; those are nothing.
func readChanged(self identity, ev event) reading {
	m := ev.Message
	if m == nil || m.TS == "" {
		return ignored("malformed")
	}
	if m.Subtype == "tombstone" { // a deleted message that has replies
		return readGone(self, ev, m.TS)
	}
	if why := self.unwanted(*m); why != "" {
		return ignored(why)
	}
	text, mentioned := commonMark(m.Text, self.User)
	if p := ev.Previous; p != nil {
		if p.Text == m.Text {
			return ignored("unchanged")
		}
		_, before := commonMark(p.Text, self.User)
		mentioned = mentioned || before
	}
	if _, ok := self.addressed(ev, *m, mentioned); !ok {
		return ignored("not_addressed")
	}
	r := self.change(ev, *m, m.TS)
	r.in = platforms.Edited{Conversation: r.conversation, Ref: messageRef(ev.Channel, m.TS), Text: text}
	return r
}

func readDeleted(self identity, ev event) reading {
	if ev.DeletedTS == "" {
		return ignored("malformed")
	}
	return readGone(self, ev, ev.DeletedTS)
}

// readGone reads a deletion, of our own messages too: a deleted prompt is withdrawn.
func readGone(self identity, ev event, ts string) reading {
	var was posted
	if ev.Previous != nil {
		was = *ev.Previous
	}
	was.TS = ts
	if !self.own(was) {
		if why := self.unwanted(was); why != "" && ev.Previous != nil {
			return ignored(why)
		}
		_, mentioned := commonMark(was.Text, self.User)
		if _, ok := self.addressed(ev, was, mentioned); !ok && ev.Previous != nil {
			return ignored("not_addressed")
		}
	}
	r := self.change(ev, was, ts)
	r.in = platforms.Deleted{Conversation: r.conversation, Ref: messageRef(ev.Channel, ts)}
	return r
}

// change is what edits and deletions share. Their key is not the message's: they are no redelivery of it.
func (self identity) change(ev event, m posted, ts string) reading {
	return reading{
		keys:         []platforms.Key{key("c", self.Team, ev.Channel, ts, cmp.Or(ev.EventTS, ev.TS))},
		conversation: self.address(ev, m).conversation(),
		urgent:       true,
	}
}

// readStopped reads the press on Slack's own stop button (doc reference/events/agent_session_stopped).
func readStopped(self identity, ev event) reading {
	if ev.Channel == "" || ev.ThreadTS == "" {
		return ignored("malformed")
	}
	where := address{Team: self.Team, Channel: ev.Channel, Thread: ev.ThreadTS}
	return reading{
		keys:         []platforms.Key{key("s", self.Team, ev.Channel, ev.ThreadTS, ev.EventTS)},
		conversation: where.conversation(),
		urgent:       true,
		in:           platforms.Stop{Conversation: where.conversation(), By: self.author(ev.posted)},
	}
}

// unwanted says why a message is not answered: ours, another bot's, Slack's. Bot messages usually have no subtype.
func (self identity) unwanted(m posted) (why string) {
	switch {
	case self.own(m):
		return "own"
	case m.BotID != "":
		return "bot"
	case strings.HasPrefix(m.User, "USLACK"):
		return "slackbot"
	case m.User == "":
		return "no_user"
	}
	return ""
}

func (self identity) own(m posted) bool {
	return m.User != "" && m.User == self.User || m.BotID != "" && m.BotID == self.BotID
}

// addressed says how a message reached us. What is said at the top of a channel without a mention did not.
func (self identity) addressed(ev event, m posted, mentioned bool) (platforms.Addressed, bool) {
	switch {
	case direct(ev):
		return platforms.Direct, true
	case mentioned:
		return platforms.Mentioned, true
	case m.ThreadTS != "" && m.ThreadTS != m.TS:
		return platforms.Ambient, true
	}
	return 0, false
}

func direct(ev event) bool { return ev.ChannelType == "im" || isDirect(ev.Channel) }

// address is where a message belongs: to its thread, in a channel to the thread that it may begin.
func (self identity) address(ev event, m posted) address {
	a := address{Team: self.Team, Channel: ev.Channel, Thread: m.ThreadTS}
	if a.Thread == "" && !direct(ev) {
		a.Thread = m.TS
	}
	return a
}

func (self identity) author(m posted) platforms.User {
	return self.person(cmp.Or(m.UserTeam, m.SourceTeam, m.Team), m.User, "")
}
