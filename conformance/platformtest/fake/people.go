package fake

import (
	"time"

	"slices"

	"github.com/parley-chat/parley/platforms"
)

// File is one that somebody attaches.
type File struct {
	Name, MediaType string
	Content         []byte
}

// Say lets somebody say something in a conversation and delivers it: a mention twice, as two events of one message, as
// some platforms do. The words stop, reset and their like are commands.
func (p *Place) Say(from platforms.User, in platforms.Conversation, how platforms.Addressed, text string, files ...File) platforms.MessageRef {
	return p.SaidAt(now(), from, in, how, text, files...)
}

// SaidAt is Say for a message whose delivery comes late: it was said at the given time.
func (p *Place) SaidAt(at time.Time, from platforms.User, in platforms.Conversation, how platforms.Addressed, text string, files ...File) platforms.MessageRef {
	p.mu.Lock()
	defer p.mu.Unlock()
	ref := p.newRef()
	p.messages = append(p.messages, &Message{Ref: ref, In: in, From: from.ID, Shown: Shown{Text: text}})
	m := platforms.Message{Conversation: in, Ref: ref, From: from, Addressed: how, Text: text, At: at}
	for _, f := range files {
		token := string(ref) + "/" + f.Name
		p.files[token] = f.Content
		m.Files = append(m.Files, platforms.File{Name: f.Name, MediaType: f.MediaType, Size: int64(len(f.Content)), Token: token})
	}
	inbound, urgent := commanded(m)
	forms := 1
	if how == platforms.Mentioned {
		forms = 2
	}
	for range forms {
		p.send(ref, in, urgent, inbound, platforms.Key("about-"+ref))
	}
	p.changed()
	return ref
}

// commanded is what a message means: words, or a command.
func commanded(m platforms.Message) (platforms.Inbound, bool) {
	name, args, ok := platforms.TextCommand(m.Text)
	switch {
	case !ok || len(m.Files) > 0:
		return m, false
	case name == "stop":
		return platforms.Stop{Conversation: m.Conversation, By: m.From}, true
	}
	return platforms.Command{Conversation: m.Conversation, By: m.From, Name: name, Args: args}, name != "reset"
}

// Edit changes somebody's message, Delete takes it away.
func (p *Place) Edit(ref platforms.MessageRef, text string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := p.find(ref)
	if m == nil {
		return errNothing
	}
	m.Text, m.Edited = text, true
	p.send(ref, m.In, true, platforms.Edited{Conversation: m.In, Ref: ref, Text: text})
	p.changed()
	return nil
}

func (p *Place) Delete(ref platforms.MessageRef) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := p.find(ref)
	if m == nil {
		return errNothing
	}
	p.messages = slices.DeleteFunc(p.messages, func(x *Message) bool { return x == m })
	p.send(ref, m.In, true, platforms.Deleted{Conversation: m.In, Ref: ref})
	p.changed()
	return nil
}

// Press lets somebody press a button that the message has, or had: they may look at an old copy.
func (p *Place) Press(by platforms.User, ref platforms.MessageRef, action string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := p.find(ref)
	if m == nil {
		return errNothing
	}
	i := slices.IndexFunc(m.buttons, func(b platforms.Button) bool { return b.Action == action })
	if i < 0 {
		return errNothing
	}
	p.send(ref, m.In, true, platforms.Click{
		Conversation: m.In, By: by, On: ref, Action: action, Value: m.buttons[i].Value, Reply: replyTo(by.ID, m.In),
	})
	return nil
}

// Fill submits the form that somebody has open.
func (p *Place) Fill(by platforms.User, text string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	f, open := p.forms[by.ID]
	if !open {
		return errNothing
	}
	delete(p.forms, by.ID)
	p.send("", f.in, true, platforms.Submission{
		Conversation: f.in, By: by, Action: f.Action, Value: f.Value, Text: text, Reply: replyTo(by.ID, f.in),
	})
	return nil
}

// Command commands beside the conversation, whose answer is for that person alone.
func (p *Place) Command(by platforms.User, in platforms.Conversation, name, args string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.send("", in, name != "reset", platforms.Command{Conversation: in, By: by, Name: name, Args: args, Reply: replyTo(by.ID, in)})
}

// Stop presses the platform's own stop.
func (p *Place) Stop(by platforms.User, in platforms.Conversation) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.send("", in, true, platforms.Stop{Conversation: in, By: by})
}

// Redeliver delivers once more what arrived last.
func (p *Place) Redeliver() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last == nil {
		return errNothing
	}
	p.events = append(p.events, *p.last)
	p.wakeUp()
	return nil
}
