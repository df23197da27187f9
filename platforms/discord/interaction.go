package discord

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/bwmarrin/discordgo"

	"github.com/parley-chat/parley/platforms"
	"github.com/parley-chat/parley/platforms/markup"
)

// interaction is a press, a submitted form or a slash command (doc interactions/receiving-and-responding).
type interaction struct {
	ID        string `json:"id"`
	App       string `json:"application_id"`
	Type      int    `json:"type"`
	Token     string `json:"token"`
	GuildID   string `json:"guild_id"`
	ChannelID string `json:"channel_id"`
	Channel   struct {
		Type   int    `json:"type"`
		Parent string `json:"parent_id"`
	} `json:"channel"`
	Member  *member `json:"member"` // in a guild
	User    *user   `json:"user"`   // in a direct message
	Message struct {
		ID         string      `json:"id"`
		Components []component `json:"components"`
	} `json:"message"`
	Data struct {
		Name       string      `json:"name"`
		CustomID   string      `json:"custom_id"`
		Options    []option    `json:"options"`
		Components []component `json:"components"`
	} `json:"data"`
}

// component is a component of a message or of a submitted form, whatever its type.
type component struct {
	CustomID   string      `json:"custom_id"`
	Label      string      `json:"label"`
	Value      string      `json:"value"`
	Components []component `json:"components"`
	Inner      *component  `json:"component"` // of a label
}

type option struct {
	Name  string          `json:"name"`
	Value json.RawMessage `json:"value"`
}

// first returns the first component, however deep, for which ok holds.
func first(all []component, ok func(component) bool) (component, bool) {
	for _, c := range all {
		if ok(c) {
			return c, true
		}
		inner := c.Components
		if c.Inner != nil {
			inner = append(inner[:len(inner):len(inner)], *c.Inner)
		}
		if found, ok := first(inner, ok); ok {
			return found, true
		}
	}
	return component{}, false
}

// then is what a press leads to first.
type then string

const (
	thenNothing then = ""     // it counts
	thenForm    then = "form" // it will be answered with a form
	thenAsk     then = "ask"  // the person is asked once more
	thenOn      then = "on="  // they have been asked; the id of the message with the first button follows
)

// press is what a custom_id says: "ACTION:VALUE", perhaps with ";" and what comes next.
type press struct {
	Action, Value string
	Then          then
	On            string // with thenOn
}

// maxCustomID is the longest custom_id, in UTF-16 units (doc components/reference).
const maxCustomID = 100

// customID writes a press; ok is false if Discord would not take it, or it could not be read again.
func (p press) customID() (id string, ok bool) {
	id = p.Action + ":" + p.Value
	if p.Then != thenNothing {
		id += ";" + string(p.Then) + p.On
	}
	return id, p.Action != "" && !strings.Contains(p.Action, ":") && !strings.Contains(p.Value, ";") &&
		markup.UTF16Units(id) <= maxCustomID
}

func parsePress(id string) (press, bool) {
	action, rest, ok := strings.Cut(id, ":")
	value, next, _ := strings.Cut(rest, ";")
	p := press{Action: action, Value: value, Then: then(next)}
	if on, found := strings.CutPrefix(next, string(thenOn)); found {
		p.Then, p.On = thenOn, on
		ok = ok && isSnowflake(on)
	}
	switch p.Then {
	case thenNothing, thenForm, thenAsk, thenOn:
		return p, ok && action != ""
	}
	return press{}, false
}

// reply is what a platforms.Reply holds: what it takes to answer an interaction, for 15 minutes.
type reply struct {
	ID    string `json:"id"`
	App   string `json:"app"`
	Token string `json:"token"`
	// Original tells that there will be a first answer to fill in: the deferred one to a command.
	Original bool `json:"original,omitempty"`
}

func (r reply) pack() platforms.Reply {
	b, err := json.Marshal(r)
	if err != nil {
		panic("discord: a reply of strings is no JSON: " + err.Error())
	}
	return b
}

func (i interaction) reply(original bool) platforms.Reply {
	return reply{ID: i.ID, App: i.App, Token: i.Token, Original: original}.pack()
}

// by is who did it: member.user in a guild, user in a direct message.
func (i interaction) by() platforms.User {
	switch {
	case i.Member != nil && i.Member.User.ID != "":
		return i.Member.User.person(i.Member)
	case i.User != nil:
		return i.User.person(nil)
	}
	return platforms.User{}
}

// address is where it was done. In a channel whose answers go into threads it is not known which thread is meant: then
// it is the channel itself.
func (i interaction) address() address {
	switch {
	case i.GuildID == "":
		return address{Guild: directMessages, Channel: i.ChannelID}
	case isThread(i.Channel.Type) && isSnowflake(i.Channel.Parent):
		return address{Guild: i.GuildID, Channel: i.Channel.Parent, Thread: i.ChannelID}
	}
	return address{Guild: i.GuildID, Channel: i.ChannelID}
}

func (i interaction) isValid() bool {
	return isSnowflake(i.ID) && isSnowflake(i.ChannelID) && (i.GuildID == "" || isSnowflake(i.GuildID)) && i.by().ID != "" && isToken(i.Token)
}

func readInteraction(e envelope) reading {
	var i interaction
	if err := decode(e.Body, &i); err != nil || !i.isValid() {
		return ignored("malformed")
	}
	i.App = cmp.Or(i.App, e.Self.App)
	r := reading{keys: []platforms.Key{key("i", i.ID)}, conversation: i.address().conversation(), urgent: true}
	switch discordgo.InteractionType(i.Type) {
	case discordgo.InteractionMessageComponent:
		return readClick(i, r)
	case discordgo.InteractionModalSubmit:
		return readSubmission(i, r)
	case discordgo.InteractionApplicationCommand:
		return readCommand(i, r, e.Where)
	}
	return ignored("interaction_type")
}

func readClick(i interaction, r reading) reading {
	p, ok := parsePress(i.Data.CustomID)
	switch {
	case !ok || !isSnowflake(i.Message.ID):
		return ignored("foreign_component")
	case p.Then == thenAsk:
		return ignored("asks_again")
	}
	r.in = platforms.Click{
		Conversation: r.conversation,
		By:           i.by(),
		On:           messageRef(i.ChannelID, cmp.Or(p.On, i.Message.ID)),
		Action:       p.Action,
		Value:        p.Value,
		Reply:        i.reply(false),
	}
	return r
}

// formText is the custom_id of the one field of our forms.
const formText = "text"

func readSubmission(i interaction, r reading) reading {
	p, ok := parsePress(i.Data.CustomID)
	if !ok {
		return ignored("foreign_form")
	}
	field, _ := first(i.Data.Components, func(c component) bool { return c.CustomID == formText })
	r.in = platforms.Submission{
		Conversation: r.conversation,
		By:           i.by(),
		Action:       p.Action,
		Value:        p.Value,
		Text:         field.Value,
		Reply:        i.reply(false),
	}
	return r
}

// readCommand reads a slash command. Asking is talking: it makes a message, whose place is the channel where it was done.
func readCommand(i interaction, r reading, w where) reading {
	c := platforms.Command{Conversation: r.conversation, By: i.by(), Name: i.Data.Name, Args: i.argument(), Reply: i.reply(true)}
	inThread := i.GuildID == "" || isThread(i.Channel.Type)
	switch c.Name {
	case "":
		return ignored("malformed")
	case "ask":
		return readAsk(i, r, w)
	case "stop":
		r.in = platforms.Stop{Conversation: r.conversation, By: c.By}
		return r
	case "reset":
		r.urgent = false // it keeps its place behind the messages before it
	case "status", "approvals":
		if !inThread && !w.InChannel {
			c.Conversation, r.conversation = "", "" // of all the threads of the channel
		}
	}
	r.in = c
	return r
}

func readAsk(i interaction, r reading, _ where) reading {
	text := commonMark(i.argument(), nil, identity{})
	if text == "" {
		return ignored("no_content")
	}
	r.urgent = false
	r.in = platforms.Message{
		Conversation: r.conversation,
		Ref:          messageRef(i.ChannelID, i.ID),
		From:         i.by(),
		Addressed:    platforms.Mentioned,
		Text:         text,
		At:           timeOf(i.ID),
	}
	return r
}

// argument is the first option that is a text.
func (i interaction) argument() string {
	for _, o := range i.Data.Options {
		var s string
		if json.Unmarshal(o.Value, &s) == nil && s != "" {
			return s
		}
	}
	return ""
}
