package discord

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/bwmarrin/discordgo"

	"github.com/parley-chat/parley/platforms"
)

// message holds the fields of a message that are read here (doc resources/message), from the gateway or looked up.
// Pointers tell null from absent, which an update may be.
type message struct {
	ID          string          `json:"id"`
	ChannelID   string          `json:"channel_id"`
	GuildID     string          `json:"guild_id"`
	ChannelType *int            `json:"channel_type"`
	Type        int             `json:"type"`
	Author      *user           `json:"author"`
	Member      *member         `json:"member"`
	WebhookID   string          `json:"webhook_id"`
	Content     *string         `json:"content"`
	EditedAt    *string         `json:"edited_timestamp"`
	Timestamp   string          `json:"timestamp"`
	Nonce       json.RawMessage `json:"nonce"` // a string, or for others' messages a number
	Mentions    []user          `json:"mentions"`
	Roles       []string        `json:"mention_roles"`
	Attachments []attachment    `json:"attachments"`
	AnswerTo    *struct {
		Author user `json:"author"`
	} `json:"referenced_message"`
}

func (m message) text() string {
	if m.Content == nil {
		return ""
	}
	return *m.Content
}

// mark is the nonce with which a message of ours was sent, empty if none is told.
func (m message) mark() string { return strings.Trim(string(m.Nonce), `"`) }

func (m message) isValid() bool { return isSnowflake(m.ID) && isSnowflake(m.ChannelID) }

// publicThread is the type of the threads that are opened from messages.
const publicThread = int(discordgo.ChannelTypeGuildPublicThread)

// isThread tells whether a channel of this type is a thread. What has a parent may be in a category only.
func isThread(channelType int) bool {
	switch discordgo.ChannelType(channelType) {
	case discordgo.ChannelTypeGuildNewsThread, discordgo.ChannelTypeGuildPublicThread, discordgo.ChannelTypeGuildPrivateThread:
		return true
	}
	return false
}

func readMessage(e envelope) reading {
	m, ok := decodeMessage(e)
	if !ok {
		return ignored("malformed")
	}
	if why := e.Self.unwanted(m); why != "" {
		return ignored(why)
	}
	mentioned := e.Self.isMentioned(m)
	addressed, ok := e.addressed(m, mentioned)
	if !ok {
		return ignored("not_addressed")
	}
	text := commonMark(m.text(), m.Mentions, e.Self)
	if text == "" && len(m.Attachments) == 0 && addressed == platforms.Ambient {
		return ignored("no_content") // a sticker, or text that we are not given
	}
	place := e.address(m)
	r := reading{keys: []platforms.Key{key("m", m.ID)}, conversation: place.conversation()}
	from := m.Author.person(m.Member)
	if name, args, ok := platforms.TextCommand(text); ok && len(m.Attachments) == 0 {
		r.urgent = name != "reset" // which keeps its place behind the messages before it
		r.in = commandInText(r.conversation, from, name, args)
		return r
	}
	r.in = platforms.Message{
		Conversation: r.conversation,
		Ref:          messageRef(m.ChannelID, m.ID),
		From:         from,
		Addressed:    addressed,
		Text:         text,
		Files:        attached(m),
		At:           m.at(),
	}
	return r
}

// decodeMessage reads the body of an envelope as a message. One that was looked up does not tell its guild.
func decodeMessage(e envelope) (message, bool) {
	var m message
	if err := decode(e.Body, &m); err != nil || !m.isValid() || m.GuildID != "" && !isSnowflake(m.GuildID) {
		return message{}, false
	}
	if e.Where.Thread && !isSnowflake(e.Where.Parent) {
		return message{}, false
	}
	if m.GuildID == "" && isSnowflake(e.Where.Guild) {
		m.GuildID = e.Where.Guild
	}
	return m, true
}

// commandInText is a command said as a message. There is nothing by which to answer its author alone.
func commandInText(in platforms.Conversation, by platforms.User, name, args string) platforms.Inbound {
	if name == "stop" {
		return platforms.Stop{Conversation: in, By: by}
	}
	return platforms.Command{Conversation: in, By: by, Name: name, Args: args}
}

// readUpdate reads an edit. Discord sends MESSAGE_UPDATE for link previews too; those have no time of edit.
func readUpdate(e envelope) reading {
	m, ok := decodeMessage(e)
	switch {
	case !ok:
		return ignored("malformed")
	case m.EditedAt == nil || *m.EditedAt == "":
		return ignored("not_edited")
	case m.Content == nil || m.Author == nil:
		return ignored("partial")
	}
	if why := e.Self.unwanted(m); why != "" {
		return ignored(why)
	}
	if _, ok := e.addressed(m, e.Self.isMentioned(m)); !ok {
		return ignored("not_addressed")
	}
	r := reading{
		keys:         []platforms.Key{key("c", m.ID, *m.EditedAt)},
		conversation: e.address(m).conversation(),
		urgent:       true,
	}
	text := commonMark(m.text(), m.Mentions, e.Self)
	r.in = platforms.Edited{Conversation: r.conversation, Ref: messageRef(m.ChannelID, m.ID), Text: text}
	return r
}

// readDelete reads a deletion, of which Discord tells neither author nor text.
func readDelete(e envelope) reading {
	m, ok := decodeMessage(e)
	if !ok {
		return ignored("malformed")
	}
	r := reading{keys: []platforms.Key{key("d", m.ID)}, conversation: e.address(m).conversation(), urgent: true}
	r.in = platforms.Deleted{Conversation: r.conversation, Ref: messageRef(m.ChannelID, m.ID)}
	return r
}

// unwanted says why a message is not answered: ours, another program's, a notice of Discord's.
func (self identity) unwanted(m message) (why string) {
	switch {
	case m.Author == nil || m.Author.ID == "":
		return "no_user"
	case m.Author.ID == self.User:
		return "own"
	case m.WebhookID != "" || m.Author.Bot:
		return "bot"
	case m.Type != int(discordgo.MessageTypeDefault) && m.Type != int(discordgo.MessageTypeReply):
		return "message_type"
	}
	return ""
}

// isMentioned tells whether a message calls the bot: by its name, by the role that is its own, or by replying to it.
// @everyone does not.
func (self identity) isMentioned(m message) bool {
	return slices.ContainsFunc(m.Mentions, func(u user) bool { return u.ID == self.User }) ||
		self.Role != "" && slices.Contains(m.Roles, self.Role) ||
		m.AnswerTo != nil && m.AnswerTo.Author.ID == self.User
}

// addressed says how a message reached us. What is said in a channel without a mention did not.
func (e envelope) addressed(m message, mentioned bool) (platforms.Addressed, bool) {
	switch {
	case m.GuildID == "":
		return platforms.Direct, true
	case mentioned:
		return platforms.Mentioned, true
	case e.Where.Thread && !e.Where.Quiet:
		return platforms.Ambient, true
	}
	return 0, false
}

// address is where a message belongs: to its thread, in a channel to the thread that is opened from it, or to the channel.
func (e envelope) address(m message) address {
	switch {
	case m.GuildID == "":
		return address{Guild: directMessages, Channel: m.ChannelID}
	case e.Where.Thread:
		return address{Guild: m.GuildID, Channel: e.Where.Parent, Thread: m.ChannelID}
	case e.Where.InChannel:
		return address{Guild: m.GuildID, Channel: m.ChannelID}
	}
	return address{Guild: m.GuildID, Channel: m.ChannelID, Thread: m.ID}
}

// at is when a message was written.
func (m message) at() time.Time {
	if t, err := time.Parse(time.RFC3339, m.Timestamp); err == nil {
		return t.UTC()
	}
	return timeOf(m.ID)
}

func key(kind string, parts ...string) platforms.Key {
	return platforms.Key(kind + ":" + strings.Join(parts, "/"))
}
