package slack

import (
	"context"
	"encoding/json"
	"net/url"
	"unicode/utf16"

	slackgo "github.com/slack-go/slack"

	"github.com/parley-chat/parley/platforms"
)

// Notify shows text to the person behind the reply only: by chat.postEphemeral, or where that is refused (the bot or the
// person is no member) by the response_url, which lives for 30 minutes and 5 uses.
func (a *Adapter) Notify(ctx context.Context, to platforms.Reply, text string) error {
	var r reply
	if err := json.Unmarshal(to, &r); err != nil {
		return failed("notify", platforms.Refused, "no_reply")
	}
	for _, p := range a.Render(platforms.Content{Markdown: text}) {
		part, err := parsePart("notify", p)
		if err != nil {
			return err
		}
		if err := a.notify(ctx, r, part); err != nil {
			return err
		}
	}
	return nil
}

func (a *Adapter) notify(ctx context.Context, r reply, part rendered) error {
	if r.Channel == "" || r.User == "" {
		return a.respond(ctx, r, part)
	}
	err := a.postEphemeral(ctx, r, part)
	if err == nil || r.ResponseURL == "" || platforms.FailureOf(err) != platforms.Refused {
		return err
	}
	return a.respond(ctx, r, part)
}

func (a *Adapter) postEphemeral(ctx context.Context, r reply, part rendered) error {
	options := []slackgo.MsgOption{slackgo.MsgOptionText(part.Text, false)}
	if len(part.Blocks) > 0 {
		options = append(options, slackgo.MsgOptionBlocks(rawBlocks(part.Blocks)...))
	}
	if r.Thread != "" {
		options = append(options, slackgo.MsgOptionTS(r.Thread))
	}
	return a.do(ctx, "chat.postEphemeral", "", func(ctx context.Context) error {
		_, err := a.api.PostEphemeralContext(ctx, r.Channel, r.User, options...)
		return err
	})
}

func (a *Adapter) respond(ctx context.Context, r reply, part rendered) error {
	const op = "response_url"
	if r.ResponseURL == "" {
		return failed(op, platforms.Refused, "no_response_url")
	}
	if u, err := url.Parse(r.ResponseURL); err != nil || !a.mayReceiveToken(u) {
		return failed(op, platforms.Refused, "foreign_response_url")
	}
	m := slackgo.WebhookMessage{Text: part.Text, ResponseType: slackgo.ResponseTypeEphemeral, ThreadTimestamp: r.Thread}
	if len(part.Blocks) > 0 {
		m.Blocks = &slackgo.Blocks{BlockSet: rawBlocks(part.Blocks)}
	}
	return a.call(ctx, op, func(ctx context.Context) error {
		return slackgo.PostWebhookCustomHTTPContext(ctx, r.ResponseURL, a.http, &m)
	})
}

// Limits of a modal, in characters.
const (
	maxModalTitle = 24
	maxModalLabel = 2000
	maxModalText  = 3000
	maxModalState = 3000
)

// OpenModal shows a form. Slack takes it within 3 s of the press and once; after that the error is Gone, and the person has
// to press again. A form beyond Slack's limits (title and submit 24 characters, label 2,000, initial text 3,000) is
// Malformed.
func (a *Adapter) OpenModal(ctx context.Context, to platforms.Reply, m platforms.Modal) error {
	const op = "views.open"
	var r reply
	if err := json.Unmarshal(to, &r); err != nil || r.TriggerID == "" {
		return failed(op, platforms.Refused, "no_trigger")
	}
	trigger := r.TriggerID
	r.TriggerID = ""
	state, err := json.Marshal(modalState{Action: m.Action, Value: m.Value, Reply: r})
	if err != nil {
		return failed(op, platforms.Malformed, "no_json")
	}
	if m.Action == "" || tooLong(m.Title, maxModalTitle) || tooLong(m.Submit, maxModalTitle) || tooLong(m.Label, maxModalLabel) ||
		tooLong(m.Initial, maxModalText) || tooLong(string(state), maxModalState) {
		return failed(op, platforms.Malformed, "modal_too_long")
	}
	return a.do(ctx, op, "", func(ctx context.Context) error {
		_, err := a.api.OpenViewContext(ctx, trigger, modalView(m, string(state)))
		return err
	})
}

func modalView(m platforms.Modal, state string) slackgo.ModalViewRequest {
	field := slackgo.NewPlainTextInputBlockElement(nil, "text")
	field.Multiline = true
	field.InitialValue = m.Initial
	field.MaxLength = maxModalText
	input := slackgo.NewInputBlock("text", plain(m.Label), nil, field)
	input.Optional = m.Optional
	return slackgo.ModalViewRequest{
		Type:            slackgo.VTModal,
		CallbackID:      modalCallback,
		PrivateMetadata: state,
		Title:           plain(m.Title),
		Submit:          plain(m.Submit),
		Close:           plain("Cancel"),
		Blocks:          slackgo.Blocks{BlockSet: []slackgo.Block{input}},
	}
}

func plain(s string) *slackgo.TextBlockObject {
	return slackgo.NewTextBlockObject(slackgo.PlainTextType, s, false, false)
}

// tooLong tells whether s has more than limit characters. Characters are UTF-16 units, the
// strictest reading of the word.
func tooLong(s string, limit int) bool { return len(utf16.Encode([]rune(s))) > limit }
