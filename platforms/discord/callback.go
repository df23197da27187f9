package discord

import (
	"cmp"
	"strings"

	"github.com/bwmarrin/discordgo"

	"github.com/parley-chat/parley/platforms/markup"
)

// callback is the first answer to an interaction, of which there is one and which must come within 3 s (doc
// interactions/receiving-and-responding).
type callback struct {
	Type discordgo.InteractionResponseType `json:"type"`
	Data *callbackData                     `json:"data,omitempty"`
}

type callbackData struct {
	Content         *string                `json:"content,omitempty"`
	Components      *[]any                 `json:"components,omitempty"`
	Flags           discordgo.MessageFlags `json:"flags,omitempty"`
	AllowedMentions *allowedMentions       `json:"allowed_mentions,omitempty"`
	CustomID        string                 `json:"custom_id,omitempty"` // of a form
	Title           string                 `json:"title,omitempty"`     // of a form
}

// allowedMentions says who may be called. It goes with everything that is sent: left out, Discord calls whoever is named in
// the text. Parse is never nil and always empty.
type allowedMentions struct {
	Parse       []string `json:"parse"`
	Users       []string `json:"users,omitempty"`
	RepliedUser bool     `json:"replied_user"`
}

func calling(users []string) *allowedMentions {
	return &allowedMentions{Parse: []string{}, Users: users}
}

// say is an immediate note. flags are those of the message: for its addressee only, or for all.
func say(content string, flags discordgo.MessageFlags, components ...any) callback {
	data := &callbackData{Content: &content, Flags: flags | discordgo.MessageFlagsSuppressEmbeds, AllowedMentions: calling(nil)}
	if len(components) > 0 {
		data.Components = &components
	}
	return callback{Type: discordgo.InteractionResponseChannelMessageWithSource, Data: data}
}

// acknowledge is the answer to an interaction that was kept, or that means nothing to us. hold tells that a form may be the
// answer instead, so that there is reason to wait for it a little.
//
// A press is deferred: nothing visible happens until its outcome is edited into the message. One that was asked about takes
// the question away. A command is deferred too, as a note to one person that is filled in later; what asks the bot something
// is shown to all, since the answer would make no sense without it.
func acknowledge(i interaction, kept bool) (c callback, hold bool) {
	const forOne = discordgo.MessageFlagsEphemeral
	p, known := parsePress(i.Data.CustomID)
	switch discordgo.InteractionType(i.Type) {
	case discordgo.InteractionMessageComponent:
		switch {
		case known && p.Then == thenAsk:
			return askAgain(i, p), false
		case !kept:
			return say("This button means nothing to me.", forOne), false
		case p.Then == thenOn:
			return replaced("You said yes."), false
		}
		return callback{Type: discordgo.InteractionResponseDeferredMessageUpdate}, p.Then == thenForm
	case discordgo.InteractionModalSubmit:
		if !kept {
			return say("This form means nothing to me.", forOne), false
		}
		return callback{Type: discordgo.InteractionResponseDeferredMessageUpdate}, false
	}
	switch {
	case !kept:
		return say("I do not know what to do with that.", forOne), false
	case i.Data.Name == "ask":
		return say(asked(i), 0), false
	case i.Data.Name == "stop":
		return say("Stopping what runs here.", forOne), false
	}
	return callback{Type: discordgo.InteractionResponseDeferredChannelMessageWithSource, Data: &callbackData{Flags: forOne}}, false
}

// askAgain asks once more, by a button that only this person sees. It holds which message the first button was on.
func askAgain(i interaction, p press) callback {
	pressed, _ := first(i.Message.Components, func(c component) bool { return c.CustomID == i.Data.CustomID })
	label, _ := markup.Ellipsis(cmp.Or(pressed.Label, p.Action), maxButtonLabel)
	p.Then, p.On = thenOn, i.Message.ID
	id, ok := p.customID()
	if !ok {
		return say("This button means nothing to me.", discordgo.MessageFlagsEphemeral)
	}
	row := discordgo.ActionsRow{Components: []discordgo.MessageComponent{
		discordgo.Button{Label: label, Style: discordgo.DangerButton, CustomID: id},
	}}
	text := "Are you sure? If so, press once more: **" + markup.DiscordLiteral(label) + "**. Otherwise dismiss this note."
	return say(text, discordgo.MessageFlagsEphemeral, row)
}

// replaced takes the place of the message whose button was pressed.
func replaced(content string) callback {
	return callback{
		Type: discordgo.InteractionResponseUpdateMessage,
		Data: &callbackData{Content: &content, Components: &[]any{}, AllowedMentions: calling(nil)},
	}
}

// asked shows what somebody asked by a command, as a quote, within the limit of a message.
func asked(i interaction) string {
	name, _ := markup.Ellipsis(i.by().Name, 100)
	head := "**" + markup.DiscordLiteral(cmp.Or(name, "Somebody")) + "** asks:\n"
	d := markup.Document{markup.Quote{Blocks: []markup.Block{markup.Paragraph{Text: markup.Literal(i.argument())}}}}
	fits := func(d markup.Document) bool { return markup.UTF16Units(head+markup.Discord(d)) <= maxContent-1 }
	s := markup.Discord(markup.Begin(d, fits))
	if !fits(d) {
		s += "…"
	}
	return strings.TrimSpace(head + s)
}
