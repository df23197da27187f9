package fake

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/parley-chat/parley/platforms"
	"github.com/parley-chat/parley/platforms/markup"
)

// Name is the platform's.
const Name = "fake"

// Longest is the longest message, in bytes.
const Longest = 4000

// Adapter is the bot's connection to a place for one life.
type Adapter struct {
	place *Place
	cut   context.Context // ends when the line is cut
	Cut   func()          // ends it at once, in both directions; it may be called again

	mu    sync.Mutex
	ready bool
}

var (
	_ platforms.Adapter      = (*Adapter)(nil)
	_ platforms.Finder       = (*Adapter)(nil)
	_ platforms.Notifier     = (*Adapter)(nil)
	_ platforms.ModalOpener  = (*Adapter)(nil)
	_ platforms.StatusSetter = (*Adapter)(nil)
	_ platforms.Fetcher      = (*Adapter)(nil)
	_ platforms.Grouper      = (*Adapter)(nil)
	_ platforms.Directory    = (*Adapter)(nil)
	_ platforms.Readiness    = (*Adapter)(nil)
)

// Connect returns a new connection.
func (p *Place) Connect() *Adapter {
	a := &Adapter{place: p}
	a.cut, a.Cut = context.WithCancel(context.Background())
	return a
}

// Place is where it leads.
func (a *Adapter) Place() *Place { return a.place }

func (a *Adapter) Platform() string { return Name }

// Capabilities: a growing message takes an edit a second.
func (a *Adapter) Capabilities() platforms.Capabilities {
	return platforms.Capabilities{EditEvery: time.Second}
}

// Run hands on what arrives, one after the other; what is not accepted is tried again.
func (a *Adapter) Run(ctx context.Context, inbox platforms.Inbox) error {
	return a.Receive(ctx, inbox, a.Read)
}

// Receive is Run with another way to read: a broken adapter that reads wrongly needs it.
func (a *Adapter) Receive(ctx context.Context, inbox platforms.Inbox, read func([]byte) (platforms.Inbound, error)) error {
	a.setReady(true)
	defer a.setReady(false)
	for {
		e, some := a.place.next()
		if !some {
			select {
			case <-a.place.wake:
			case <-ctx.Done():
				a.place.wakeUp() // it may have been for the next
				return nil
			}
			continue
		}
		if ctx.Err() != nil || a.cut.Err() != nil {
			<-ctx.Done()
			return nil
		}
		if in, err := read(e.Raw); err == nil && is[platforms.Ignored](in) {
			a.place.arrived(e, false)
			continue
		}
		if err := inbox.Accept(ctx, e.Delivery); err != nil {
			a.rest(ctx)
			continue
		}
		a.place.arrived(e, true)
	}
}

func is[T any](v any) bool {
	_, ok := v.(T)
	return ok
}

// rest waits before what was not accepted is delivered again.
func (a *Adapter) rest(ctx context.Context) {
	timer := time.NewTimer(50 * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

func (a *Adapter) setReady(ready bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ready = ready
}

// Ready reports whether Run receives.
func (a *Adapter) Ready() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.ready {
		return errors.New("fake: not receiving")
	}
	return nil
}

// wire is a payload.
type wire struct {
	Kind string          `json:"kind"`
	Body json.RawMessage `json:"body"`
}

func pack(in platforms.Inbound) []byte {
	body, err := json.Marshal(in)
	if err == nil {
		body, err = json.Marshal(wire{fmt.Sprintf("%T", in), body})
	}
	if err != nil {
		panic("fake: an inbound is no JSON: " + err.Error())
	}
	return body
}

// Read translates a payload. Our own messages are ignored.
func (a *Adapter) Read(raw []byte) (platforms.Inbound, error) {
	in, err := Unpack(raw)
	if m, ok := in.(platforms.Message); ok && m.From.ID == Bot {
		return platforms.Ignored{Why: "own"}, nil
	}
	return in, err
}

// Unpack translates a payload, whoever it is of.
func Unpack(raw []byte) (platforms.Inbound, error) {
	var w wire
	if err := json.Unmarshal(raw, &w); err != nil {
		return nil, fmt.Errorf("fake: read: %w", err)
	}
	switch w.Kind {
	case "platforms.Message":
		return body[platforms.Message](w)
	case "platforms.Edited":
		return body[platforms.Edited](w)
	case "platforms.Deleted":
		return body[platforms.Deleted](w)
	case "platforms.Click":
		return body[platforms.Click](w)
	case "platforms.Submission":
		return body[platforms.Submission](w)
	case "platforms.Command":
		return body[platforms.Command](w)
	case "platforms.Stop":
		return body[platforms.Stop](w)
	}
	return nil, fmt.Errorf("fake: read: unknown kind %q", w.Kind)
}

func body[T platforms.Inbound](w wire) (platforms.Inbound, error) {
	var v T
	err := json.Unmarshal(w.Body, &v)
	return v, err
}

// Render shows CommonMark in the dialect of markup.Mrkdwn, in as many messages as it takes, and a card as lines.
func (a *Adapter) Render(c platforms.Content) []platforms.Part {
	if c.Card != nil {
		return []platforms.Part{Pack(card(*c.Card))}
	}
	fits := func(d markup.Document) bool { return len(markup.Mrkdwn(d)) <= Longest }
	var parts []platforms.Part
	for _, d := range markup.Split(markup.Parse(c.Markdown), fits) {
		parts = append(parts, Pack(Shown{Text: html.UnescapeString(markup.Mrkdwn(d))}))
	}
	if parts == nil {
		parts = []platforms.Part{Pack(Shown{Text: "(no text)"})}
	}
	return parts
}

func card(c platforms.Card) Shown {
	s := Shown{Text: c.Title, Buttons: c.Buttons, Calls: c.Mention}
	for _, f := range c.Facts {
		s.Text += "\n" + f.Name + ": " + f.Value
	}
	for _, b := range c.Blocks {
		s.Text += "\n" + b.Name + ":\n" + b.Text
	}
	s.Text += "\n" + c.Footer
	return s
}

// Pack is a part that shows just this.
func Pack(s Shown) platforms.Part {
	raw, err := json.Marshal(s)
	if err != nil {
		panic("fake: a part is no JSON: " + err.Error())
	}
	return raw
}

// offline is the error of every call on a line that is cut.
func (a *Adapter) offline() error {
	if a.cut.Err() == nil {
		return nil
	}
	return &platforms.Error{Failure: platforms.Unreachable, Op: "fake: call", Code: "cut"}
}

// Post shows a message. The bot hears of it, too, as of everybody's.
func (a *Adapter) Post(_ context.Context, to platforms.Conversation, mark string, raw platforms.Part) (platforms.MessageRef, error) {
	shown, err := parse(raw)
	if err != nil || a.offline() != nil {
		return "", errors.Join(err, a.offline())
	}
	p := a.place
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := take(&p.fails); err != nil {
		return "", err
	}
	m := &Message{Ref: p.newRef(), In: to, From: Bot, Shown: shown, mark: mark, buttons: shown.Buttons}
	p.messages = append(p.messages, m)
	p.send(m.Ref, to, false, platforms.Message{
		Conversation: to, Ref: m.Ref, From: platforms.User{ID: Bot}, Addressed: platforms.Direct, Text: shown.Text, At: now(),
	})
	p.changed()
	if p.lose > 0 {
		p.lose--
		return "", &platforms.Error{Failure: platforms.Unknown, Op: "fake: post"}
	}
	return m.Ref, nil
}

func parse(raw platforms.Part) (Shown, error) {
	var s Shown
	if err := json.Unmarshal(raw, &s); err != nil {
		return Shown{}, &platforms.Error{Failure: platforms.Malformed, Op: "fake: part", Cause: err}
	}
	return s, nil
}

// take removes the first error.
func take(errs *[]error) error {
	if len(*errs) == 0 {
		return nil
	}
	err := (*errs)[0]
	*errs = (*errs)[1:]
	return err
}

// Edit replaces a message.
func (a *Adapter) Edit(_ context.Context, at platforms.MessageRef, raw platforms.Part) error {
	shown, err := parse(raw)
	if err != nil || a.offline() != nil {
		return errors.Join(err, a.offline())
	}
	p := a.place
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := take(&p.failEdit); err != nil {
		return err
	}
	m := p.find(at)
	if m == nil {
		return &platforms.Error{Failure: platforms.Gone, Op: "fake: edit"}
	}
	m.Shown, m.Edited = shown, true
	if len(shown.Buttons) > 0 {
		m.buttons = shown.Buttons
	}
	p.changed()
	return nil
}

// Find looks for a mark.
func (a *Adapter) Find(_ context.Context, in platforms.Conversation, mark string) (platforms.MessageRef, error) {
	p := a.place
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.messages {
		if m.In == in && m.mark == mark && mark != "" {
			return m.Ref, a.offline()
		}
	}
	return "", a.offline()
}

// answer is what a Reply holds.
type answer struct {
	To platforms.UserID       `json:"to"`
	In platforms.Conversation `json:"in"`
}

func replyTo(user platforms.UserID, in platforms.Conversation) platforms.Reply {
	raw, err := json.Marshal(answer{user, in})
	if err != nil {
		panic("fake: a reply is no JSON: " + err.Error())
	}
	return raw
}

func (a *Adapter) whom(to platforms.Reply) (who answer, err error) {
	if err := json.Unmarshal(to, &who); err != nil {
		return who, &platforms.Error{Failure: platforms.Refused, Op: "fake: reply", Cause: err}
	}
	return who, a.offline()
}

// Notify tells one person.
func (a *Adapter) Notify(_ context.Context, to platforms.Reply, text string) error {
	who, err := a.whom(to)
	if err != nil {
		return err
	}
	a.place.mu.Lock()
	defer a.place.mu.Unlock()
	a.place.notices = append(a.place.notices, Notice{who.To, who.In, text})
	a.place.changed()
	return nil
}

// OpenModal shows a form.
func (a *Adapter) OpenModal(_ context.Context, to platforms.Reply, m platforms.Modal) error {
	who, err := a.whom(to)
	if err != nil {
		return err
	}
	a.place.mu.Lock()
	defer a.place.mu.Unlock()
	a.place.forms[who.To] = form{m, who.In}
	a.place.changed()
	return nil
}

// SetStatus shows what the bot does.
func (a *Adapter) SetStatus(_ context.Context, in platforms.Conversation, _ platforms.MessageRef, s platforms.Status) error {
	if err := a.offline(); err != nil {
		return err
	}
	a.place.mu.Lock()
	defer a.place.mu.Unlock()
	a.place.statuses = append(a.place.statuses, Status{in, s})
	a.place.changed()
	return nil
}

// Fetch opens a file.
func (a *Adapter) Fetch(_ context.Context, f platforms.File, limit int64) (io.ReadCloser, error) {
	a.place.mu.Lock()
	defer a.place.mu.Unlock()
	content, ok := a.place.files[f.Token]
	if !ok || int64(len(content)) > limit {
		return nil, &platforms.Error{Failure: platforms.Refused, Op: "fake: fetch"}
	}
	return io.NopCloser(bytes.NewReader(content)), a.offline()
}

// InGroup tells of groups that were set.
func (a *Adapter) InGroup(_ context.Context, group string, user platforms.UserID) (bool, error) {
	a.place.mu.Lock()
	defer a.place.mu.Unlock()
	members, known := a.place.groups[group]
	if !known {
		return false, &platforms.Error{Failure: platforms.Refused, Op: "fake: group", Code: "no_such_group"}
	}
	return slices.Contains(members, user), a.offline()
}

// Name tells of names that were set.
func (a *Adapter) Name(_ context.Context, user platforms.UserID) (string, error) {
	a.place.mu.Lock()
	defer a.place.mu.Unlock()
	name, known := a.place.names[user]
	if !known {
		return "", &platforms.Error{Failure: platforms.Refused, Op: "fake: name", Code: "no_such_user"}
	}
	return name, a.offline()
}
