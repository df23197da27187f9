package discord

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"github.com/bwmarrin/discordgo"

	"github.com/parley-chat/parley/platforms"
	"github.com/parley-chat/parley/platforms/markup"
)

const (
	// answerWithin is how long the first answer to an interaction may take to be sent. Discord takes it for 3 s.
	answerWithin = 5 * time.Second
	// formWithin is how long a press that leads to a form waits for it, from when it came, before it is deferred: a form
	// cannot come after that.
	formWithin = 2 * time.Second
	// replyFor is how long an interaction can be answered.
	replyFor = 15 * time.Minute
)

// pending is an interaction of this process. Its first answer is sent once, whoever sends it: mu is held meanwhile, so that
// what follows follows.
type pending struct {
	mu       sync.Mutex
	came     time.Time
	answered chan struct{} // closed when the first answer was sent
	filled   bool          // a deferred note was filled in
}

func (p *pending) isAnswered() bool {
	select {
	case <-p.answered:
		return true
	default:
		return false
	}
}

// pendings are the interactions of the last 15 minutes.
type pendings struct {
	mu      sync.Mutex
	all     map[string]*pending
	ctx     context.Context // ends with the receiving
	running *sync.WaitGroup
}

// begin says for how long answers may be awaited, and who waits for that to end.
func (p *pendings) begin(ctx context.Context, running *sync.WaitGroup) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ctx, p.running = ctx, running
}

// register notes an interaction before it is kept: what it leads to may come back at once.
func (p *pendings) register(i interaction, now time.Time) *pending {
	p.mu.Lock()
	defer p.mu.Unlock()
	if known := p.all[i.ID]; known != nil { // it came again
		return known
	}
	for id, old := range p.all {
		if now.Sub(old.came) > replyFor {
			delete(p.all, id)
		}
	}
	if p.all == nil {
		p.all = map[string]*pending{}
	}
	one := &pending{came: now, answered: make(chan struct{})}
	p.all[i.ID] = one
	return one
}

func (p *pendings) get(id string) *pending {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.all[id]
}

// acknowledge answers an interaction that was kept, or that means nothing. It returns at once.
func (a *Adapter) acknowledge(p *pending, i interaction, kept bool) {
	first, hold := acknowledge(i, kept)
	a.pendings.mu.Lock()
	defer a.pendings.mu.Unlock()
	ctx, running := a.pendings.ctx, a.pendings.running
	running.Go(func() {
		if hold {
			timer := time.NewTimer(formWithin - a.now().Sub(p.came))
			defer timer.Stop()
			select {
			case <-p.answered:
				return
			case <-timer.C:
			case <-ctx.Done():
			}
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.isAnswered() {
			return
		}
		if err := a.answer(ctx, p, i.ID, i.Token, first); err != nil {
			a.log.Warn("discord: an interaction could not be answered; what it asked for stands", "error", err)
		}
	})
}

// answer sends the first answer to an interaction. It counts as sent whatever came of it, unless it never left. p.mu is
// held; p may be nil.
func (a *Adapter) answer(ctx context.Context, p *pending, id, token string, c callback) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerWithin)
	defer cancel()
	err := a.do(ctx, call{op: "answer an interaction", method: http.MethodPost, path: "interactions/" + id + "/" + token + "/callback", body: c}, nil)
	if p != nil && (err == nil || platforms.FailureOf(err) != platforms.Unreachable && platforms.FailureOf(err) != platforms.SlowDown) {
		close(p.answered)
	}
	return err
}

// Notify shows text to the person behind the reply only, as long as Discord lets the interaction be answered: 15 minutes.
// After that the error is Gone.
func (a *Adapter) Notify(ctx context.Context, to platforms.Reply, text string) error {
	const op = "notify"
	r, err := parseReply(op, to)
	if err != nil {
		return err
	}
	posts := answer(read(text))
	p := a.pendings.get(r.ID)
	if p != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
	}
	if err := a.notifyFirst(ctx, p, r, posts[0].Content); err != nil {
		return err
	}
	for _, more := range posts[1:] {
		if err := a.followUp(ctx, r, more.Content); err != nil {
			return err
		}
	}
	return nil
}

// notifyFirst shows a note by the way that is open: as the first answer, in the place of a deferred one, or after it. Of an
// interaction of an earlier process it is not known whether it was answered.
func (a *Adapter) notifyFirst(ctx context.Context, p *pending, r reply, content string) error {
	note := say(content, discordgo.MessageFlagsEphemeral)
	if p != nil && !p.isAnswered() {
		return a.answer(ctx, p, r.ID, r.Token, note)
	}
	var err error
	if r.Original && (p == nil || !p.filled) {
		err = a.fillIn(ctx, r, content)
		if p != nil {
			p.filled = err == nil
		}
	} else {
		err = a.followUp(ctx, r, content)
	}
	if p == nil && platforms.FailureOf(err) == platforms.Gone {
		if a.answer(ctx, nil, r.ID, r.Token, note) == nil {
			return nil
		}
	}
	return err
}

// fillIn writes into the deferred note.
func (a *Adapter) fillIn(ctx context.Context, r reply, content string) error {
	body := callbackData{Content: &content, AllowedMentions: calling(nil)}
	path := "webhooks/" + r.App + "/" + r.Token + "/messages/@original"
	return a.do(ctx, call{op: "fill in a note", method: http.MethodPatch, path: path, body: body}, nil)
}

// followUp shows one more note.
func (a *Adapter) followUp(ctx context.Context, r reply, content string) error {
	body := say(content, discordgo.MessageFlagsEphemeral).Data
	return a.do(ctx, call{op: "follow up", method: http.MethodPost, path: "webhooks/" + r.App + "/" + r.Token, body: body}, nil)
}

// parseReply reads a reply. Its parts go into paths.
func parseReply(op string, to platforms.Reply) (reply, error) {
	var r reply
	if json.Unmarshal(to, &r) != nil || !isSnowflake(r.ID) || !isSnowflake(r.App) || !isToken(r.Token) {
		return reply{}, failed(op, platforms.Refused, "no_reply")
	}
	return r, nil
}

// isToken tells whether s may stand in a path as it is.
func isToken(s string) bool {
	for _, r := range s {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		if !letter && r != '-' && r != '_' && r != '.' && r != '=' && r != '~' && r != ':' {
			return false
		}
	}
	return s != "" && s != "." && s != ".."
}

// Limits of a form, in UTF-16 units (doc interactions/receiving-and-responding, components/reference).
const (
	maxFormTitle = 45
	maxFormLabel = 45
	maxFormText  = 4000
)

// OpenModal shows a form. Discord takes it within 3 s and only as the first answer: Button.Form keeps the press open for it.
// After that the error is Gone, and the person has to press again. A form beyond Discord's limits (title and label 45
// characters, text 4,000) is Malformed. The button that submits is Discord's own.
func (a *Adapter) OpenModal(ctx context.Context, to platforms.Reply, m platforms.Modal) error {
	const op = "open a form"
	r, err := parseReply(op, to)
	if err != nil {
		return err
	}
	id, ok := press{Action: m.Action, Value: m.Value}.customID()
	if !ok || tooLong(m.Title, maxFormTitle) || tooLong(m.Label, maxFormLabel) || tooLong(m.Initial, maxFormText) || m.Title == "" || m.Label == "" {
		return failed(op, platforms.Malformed, "form_too_long")
	}
	row := discordgo.ActionsRow{Components: []discordgo.MessageComponent{discordgo.TextInput{
		CustomID: formText, Label: m.Label, Style: discordgo.TextInputParagraph, Value: m.Initial, Required: !m.Optional, MaxLength: maxFormText,
	}}}
	form := callback{
		Type: discordgo.InteractionResponseModal,
		Data: &callbackData{CustomID: id, Title: m.Title, Components: &[]any{row}},
	}
	p := a.pendings.get(r.ID)
	if p == nil {
		return a.answer(ctx, nil, r.ID, r.Token, form)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.isAnswered() {
		return failed(op, platforms.Gone, "answered")
	}
	return a.answer(ctx, p, r.ID, r.Token, form)
}

// tooLong tells whether s has more than limit characters.
func tooLong(s string, limit int) bool { return markup.UTF16Units(s) > limit }
