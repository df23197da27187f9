// Package fake is a platform as simple as can be: what people see is a list of messages. Tests of shared code run on it,
// in the time of a synctest bubble, and the suite of all platforms holds it to what it holds real ones to.
//
// A Place is the platform and outlives the bot; an Adapter is the bot's connection to it for one life.
package fake

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/parley-chat/parley/platforms"
)

// Bot is who the bot is.
const Bot platforms.UserID = "bot"

// Place is the platform. All methods may be called concurrently.
type Place struct {
	mu       sync.Mutex
	messages []*Message
	notices  []Notice
	statuses []Status
	forms    map[platforms.UserID]form
	groups   map[string][]platforms.UserID
	names    map[platforms.UserID]string
	files    map[string][]byte

	events    []event // on their way to the bot
	wake      chan struct{}
	last      *event // that arrived
	delivered map[platforms.MessageRef]int
	count     int

	fails    []error // of the next posts
	failEdit []error
	lose     int // so many answers to posts
	watchers map[chan struct{}]bool
}

// Message is one that people see.
type Message struct {
	Ref    platforms.MessageRef
	In     platforms.Conversation
	From   platforms.UserID
	Edited bool
	Shown
	mark    string
	buttons []platforms.Button // the last there were: who looks at an old copy can still press them
}

// Shown is the content of a message of the bot, which is its Part.
type Shown struct {
	Text    string             `json:"text"`
	Buttons []platforms.Button `json:"buttons,omitempty"`
	// Calls are those whom it notifies.
	Calls []platforms.UserID `json:"calls,omitempty"`
}

// Notice is a line for one person.
type Notice struct {
	To   platforms.UserID
	In   platforms.Conversation
	Text string
}

// Status is what the bot did in a conversation.
type Status struct {
	In     platforms.Conversation
	Status platforms.Status
}

// form is an open form.
type form struct {
	platforms.Modal
	in platforms.Conversation
}

// event is something on its way to the bot.
type event struct {
	platforms.Delivery
	about platforms.MessageRef
}

// New returns a place where nobody has said anything.
func New() *Place {
	return &Place{
		forms: make(map[platforms.UserID]form), groups: make(map[string][]platforms.UserID),
		names: make(map[platforms.UserID]string), files: make(map[string][]byte), wake: make(chan struct{}, 1),
		delivered: make(map[platforms.MessageRef]int), watchers: make(map[chan struct{}]bool),
	}
}

// SetGroup says who belongs to a group; of a group that was not set nobody can tell. SetName says what somebody is called.
func (p *Place) SetGroup(group string, members ...platforms.UserID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.groups[group] = members
}

func (p *Place) SetName(user platforms.UserID, name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.names[user] = name
}

// FailPosts makes the next posts fail, one for each error; nil lets one pass. FailEdits does so with edits.
func (p *Place) FailPosts(errs ...error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fails = append(p.fails, errs...)
}

func (p *Place) FailEdits(errs ...error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failEdit = append(p.failEdit, errs...)
}

// LoseAnswer lets the next post succeed and report an unknown outcome.
func (p *Place) LoseAnswer() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lose++
}

// Messages are what everybody sees, in order.
func (p *Place) Messages() []Message {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []Message
	for _, m := range p.messages {
		all = append(all, *m)
	}
	return all
}

// Answers are the bot's.
func (p *Place) Answers() []Message {
	return slices.DeleteFunc(p.Messages(), func(m Message) bool { return m.From != Bot })
}

// Notices are what people were told alone.
func (p *Place) Notices() []Notice {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.notices)
}

// Statuses are what the bot said that it does.
func (p *Place) Statuses() []Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.statuses)
}

// HasForm reports whether somebody has a form open.
func (p *Place) HasForm(user platforms.UserID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, open := p.forms[user]
	return open
}

// Delivered counts the accepted deliveries about a message.
func (p *Place) Delivered(about platforms.MessageRef) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.delivered[about]
}

// Watch tells that something changed, from now on; several changes may be told as one.
func (p *Place) Watch() (changes <-chan struct{}, stop func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := make(chan struct{}, 1)
	p.watchers[c] = true
	return c, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.watchers, c)
	}
}

// changed tells those who watch. mu is held, here and in all below.
func (p *Place) changed() {
	for c := range maps.Keys(p.watchers) {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

// send puts something on its way to the bot.
func (p *Place) send(about platforms.MessageRef, in platforms.Conversation, urgent bool, what platforms.Inbound, alias ...platforms.Key) {
	p.count++
	keys := append([]platforms.Key{platforms.Key(fmt.Sprintf("event-%d", p.count))}, alias...)
	p.events = append(p.events, event{about: about, Delivery: platforms.Delivery{
		Keys: keys, Conversation: in, Urgent: urgent, Raw: pack(what),
	}})
	p.wakeUp()
}

func (p *Place) wakeUp() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// next is the first event on its way.
func (p *Place) next() (event, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.events) == 0 {
		return event{}, false
	}
	return p.events[0], true
}

// arrived takes it off.
func (p *Place) arrived(e event, accepted bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.events = p.events[1:]
	if accepted {
		p.last = &e
	}
	p.delivered[e.about]++
	p.changed()
}

func (p *Place) find(ref platforms.MessageRef) *Message {
	for _, m := range p.messages {
		if m.Ref == ref {
			return m
		}
	}
	return nil
}

func (p *Place) newRef() platforms.MessageRef {
	p.count++
	return platforms.MessageRef(fmt.Sprintf("message-%d", p.count))
}

var errNothing = errors.New("fake: there is nothing of the kind")

// now is when something is said.
func now() time.Time { return time.Now().UTC() }
