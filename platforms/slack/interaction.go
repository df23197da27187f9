package slack

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/parley-chat/parley/platforms"
)

// interaction is a payload of interactivity (doc reference/interaction-payloads).
type interaction struct {
	Type        string `json:"type"`
	TriggerID   string `json:"trigger_id"`
	ResponseURL string `json:"response_url"`
	User        struct {
		ID       string `json:"id"`
		Name     string `json:"name"`
		Username string `json:"username"`
		TeamID   string `json:"team_id"`
	} `json:"user"`
	Channel struct {
		ID string `json:"id"`
	} `json:"channel"`
	Container struct {
		ChannelID string `json:"channel_id"`
		MessageTS string `json:"message_ts"`
		ThreadTS  string `json:"thread_ts"`
	} `json:"container"`
	Message struct {
		TS       string `json:"ts"`
		ThreadTS string `json:"thread_ts"`
	} `json:"message"`
	Actions []action `json:"actions"`
	View    view     `json:"view"`
}

type action struct {
	Type     string `json:"type"`
	ActionID string `json:"action_id"`
	ActionTS string `json:"action_ts"`
	Value    string `json:"value"`
}

type view struct {
	ID              string `json:"id"`
	Hash            string `json:"hash"`
	CallbackID      string `json:"callback_id"`
	PrivateMetadata string `json:"private_metadata"`
	State           struct {
		Values map[string]map[string]struct {
			Value string `json:"value"`
		} `json:"values"`
	} `json:"state"`
}

// reply is what a platforms.Reply holds: every way to answer one person.
type reply struct {
	ResponseURL string `json:"response_url,omitempty"`
	TriggerID   string `json:"trigger_id,omitempty"`
	Team        string `json:"team,omitempty"`
	Channel     string `json:"channel,omitempty"`
	Thread      string `json:"thread_ts,omitempty"`
	User        string `json:"user,omitempty"`
}

func (r reply) pack() platforms.Reply {
	b, err := json.Marshal(r)
	if err != nil {
		panic("slack: a reply of strings is no JSON: " + err.Error())
	}
	return b
}

// conversation is the place the reply belongs to, empty if Slack did not tell the thread.
func (r reply) conversation() platforms.Conversation {
	if r.Channel == "" || r.Thread == "" && !isDirect(r.Channel) {
		return ""
	}
	return address{Team: r.Team, Channel: r.Channel, Thread: r.Thread}.conversation()
}

func readInteraction(e envelope) reading {
	var i interaction
	if err := decode(e.Body, &i); err != nil {
		return ignored("malformed")
	}
	switch i.Type {
	case "block_actions":
		return readClick(e.Self, i)
	case "view_submission":
		return readSubmission(e.Self, i)
	}
	return ignored("interaction_type")
}

func readClick(self identity, i interaction) reading {
	n := slices.IndexFunc(i.Actions, func(a action) bool { return a.ActionID != "" && (a.Type == "button" || a.Type == "") })
	channel := cmp.Or(i.Channel.ID, i.Container.ChannelID)
	ts := cmp.Or(i.Message.TS, i.Container.MessageTS)
	switch {
	case n < 0:
		return ignored("no_button")
	case channel == "" || ts == "":
		return ignored("no_message")
	case i.User.ID == "":
		return ignored("malformed")
	}
	pressed := i.Actions[n]
	r := reply{
		ResponseURL: i.ResponseURL,
		TriggerID:   i.TriggerID,
		Team:        self.Team,
		Channel:     channel,
		Thread:      cmp.Or(i.Message.ThreadTS, i.Container.ThreadTS),
		User:        i.User.ID,
	}
	if r.Thread == "" && !isDirect(channel) {
		r.Thread = ts
	}
	return reading{
		keys:         []platforms.Key{key("a", self.Team, channel, ts, i.User.ID, pressed.ActionID, pressed.ActionTS)},
		conversation: r.conversation(),
		urgent:       true,
		in: platforms.Click{
			Conversation: r.conversation(),
			By:           i.by(self),
			On:           messageRef(channel, ts),
			Action:       pressed.ActionID,
			Value:        pressed.Value,
			Reply:        r.pack(),
		},
	}
}

func (i interaction) by(self identity) platforms.User {
	return self.person(i.User.TeamID, i.User.ID, cmp.Or(i.User.Name, i.User.Username))
}

// modalCallback marks our own modals; others' are none of our business.
const modalCallback = "parley_modal"

// modalState is the private_metadata of a modal. It holds no secret that the person at the form does not have already.
type modalState struct {
	Action string `json:"action"`
	Value  string `json:"value,omitempty"`
	Reply  reply  `json:"reply"`
}

func readSubmission(self identity, i interaction) reading {
	if i.View.CallbackID != modalCallback {
		return ignored("foreign_view")
	}
	var state modalState
	if err := decode([]byte(i.View.PrivateMetadata), &state); err != nil || state.Action == "" || i.User.ID == "" {
		return ignored("malformed")
	}
	r := state.Reply
	r.TriggerID = i.TriggerID
	r.User = i.User.ID
	return reading{
		keys:         []platforms.Key{key("v", self.Team, i.View.ID, i.View.Hash)},
		conversation: r.conversation(),
		urgent:       true,
		in: platforms.Submission{
			Conversation: r.conversation(),
			By:           i.by(self),
			Action:       state.Action,
			Value:        state.Value,
			Text:         i.View.text(),
			Reply:        r.pack(),
		},
	}
}

// text is what was written into the one field of a modal.
func (v view) text() string {
	for _, block := range slices.Sorted(maps.Keys(v.State.Values)) {
		for _, input := range slices.Sorted(maps.Keys(v.State.Values[block])) {
			if s := v.State.Values[block][input].Value; s != "" {
				return s
			}
		}
	}
	return ""
}

// command is a slash command (doc interactivity/implementing-slash-commands).
type command struct {
	Command     string `json:"command"`
	Text        string `json:"text"`
	UserID      string `json:"user_id"`
	UserName    string `json:"user_name"`
	TeamID      string `json:"team_id"`
	ChannelID   string `json:"channel_id"`
	ThreadTS    string `json:"thread_ts"`
	TriggerID   string `json:"trigger_id"`
	ResponseURL string `json:"response_url"`
}

func readCommand(e envelope) reading {
	var c command
	if err := decode(e.Body, &c); err != nil {
		return ignored("malformed")
	}
	name := strings.TrimPrefix(c.Command, "/")
	if name == "" || c.UserID == "" {
		return ignored("malformed")
	}
	r := reply{
		ResponseURL: c.ResponseURL,
		TriggerID:   c.TriggerID,
		Team:        e.Self.Team,
		Channel:     c.ChannelID,
		Thread:      c.ThreadTS,
		User:        c.UserID,
	}
	args, _ := commonMark(c.Text, "")
	return reading{
		keys:         []platforms.Key{key("t", e.Self.Team, cmp.Or(c.TriggerID, digest(e.Body)))},
		conversation: r.conversation(),
		urgent:       name != "reset" || r.conversation() == "", // a reset keeps its place behind the messages before it
		in: platforms.Command{
			Conversation: r.conversation(),
			By:           e.Self.person(c.TeamID, c.UserID, c.UserName),
			Name:         name,
			Args:         args,
			Reply:        r.pack(),
		},
	}
}
