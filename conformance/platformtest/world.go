package platformtest

import (
	"context"
	"log/slog"

	"github.com/parley-chat/parley/platforms"
)

// Person is one of the cast that every world has.
type Person string

// The cast. All are members of the world's common room.
const (
	Ada     Person = "Ada"     // asks
	Grace   Person = "Grace"   // is named as an approver
	Hedy    Person = "Hedy"    // belongs to the group of approvers, where there are groups
	Mallory Person = "Mallory" // may decide nothing
	Robot   Person = "Robot"   // another program
	TheBot  Person = "TheBot"  // the one that is tested

	// Everybody is who a broadcast calls.
	Everybody Person = "everybody"
)

// Place is a conversation as people know it: a thread, a direct message. Opaque to the suite.
type Place string

// Words are what a person says.
type Words struct {
	// In is where. Empty, without Direct: they begin a new conversation in the common room.
	In Place
	// Direct: to the bot alone.
	Direct bool
	// Mention calls the bot by name.
	Mention bool
	Text    string
	Files   []File
}

// File is what a person attaches.
type File struct {
	Name, MediaType string
	Content         []byte
}

// Said finds a person's message again.
type Said struct {
	In      Place
	Ref     string
	Mention bool
}

// Seen is one message as a person sees it.
type Seen struct {
	Ref  string
	From Person
	// Text is all that can be read, in the platform's own form, with its escapes undone: code stands between ``` lines.
	Text string
	// Buttons are the actions of those that can be pressed, by what they mean (approvals.ActionApprove, …).
	Buttons []string
	// OnlyYou: nobody else sees it.
	OnlyYou bool
	Edited  bool
	// Notifies are those whom the message calls.
	Notifies []Person
}

// Fault is a mishap on the way out.
type Fault int

const (
	// LoseAnswer: the next post is done, and the bot does not hear of it.
	LoseAnswer Fault = iota + 1
	// SlowPost and SlowEdit: the next one is refused; the bot is to wait for a second.
	SlowPost
	SlowEdit
)

// Line is the bot's connection for one life.
type Line struct {
	Adapter platforms.Adapter
	// Cut ends the connection at once, in both directions, as the death of the process does. It may be called again.
	Cut func()
}

// World is a platform with the cast in it, through a stand-in that speaks its protocol. It outlives the bot. All methods
// may be called concurrently.
type World interface {
	// Abilities say what there is on this platform. An adapter may not have more.
	Abilities() Abilities
	// Connect makes an adapter for a new life of the bot. What the platform delivers goes to the newest line.
	Connect(logger *slog.Logger) (Line, error)
	// Setting is how settings name a person as an approver: "slack:U1".
	Setting(who Person) string

	Say(ctx context.Context, who Person, w Words) (Said, error)
	Edit(ctx context.Context, who Person, what Said, text string) error
	Delete(ctx context.Context, who Person, what Said) error
	// Press presses a button. It returns when the platform has delivered that.
	Press(ctx context.Context, who Person, in Place, on Seen, action string) error

	// See returns what a person sees in a conversation, in order.
	See(who Person, in Place) []Seen
	// Watch tells that somebody sees something new, or that something was delivered, from now on. Several changes may be
	// told as one.
	Watch() (changes <-chan struct{}, stop func())
	// Delivered counts the acknowledged deliveries about a person's message: its forms, repetitions, edits.
	Delivered(what Said) int
	// Redeliver delivers the last message or event once more.
	Redeliver(ctx context.Context) error
	// Fault makes a mishap happen once.
	Fault(f Fault)
	// Shouts are texts that would call somebody, or everybody, if the platform were given them as they are.
	Shouts() []string
}

// Abilities are what only some platforms have. A clause that needs one is left out where the world does not have it.
type Abilities struct {
	// Forms is as how many deliveries a mention arrives.
	Forms    int
	Files    bool // people attach files, the adapter is a Fetcher
	Growing  bool // answers are seen while they grow
	Notices  bool // a line for one person only
	Names    bool // the adapter knows people's names
	Statuses bool // the world is a StatusWorld
	Modals   bool // the world is a FormWorld
	Groups   bool // the world is a GroupWorld
	Commands bool // the world is a CommandWorld
	Stop     bool // the world is a StopWorld
}

// StatusWorld shows what the bot is doing.
type StatusWorld interface {
	// Statuses are the changes so far in a conversation: true when the bot begins to work, false when it ends.
	Statuses(in Place) []bool
}

// FormWorld has forms.
type FormWorld interface {
	HasForm(who Person) bool
	// Fill writes into the open form and submits it.
	Fill(ctx context.Context, who Person, text string) error
}

// GroupWorld has groups of people.
type GroupWorld interface {
	// Group is how settings name the group of which Hedy is the only member.
	Group() string
}

// CommandWorld has commands that are not said as messages.
type CommandWorld interface {
	// Command commands in the conversation, or in the room it is in, and returns where the answer will be seen.
	Command(ctx context.Context, who Person, in Place, name, args string) (Place, error)
}

// StopWorld has a button of its own that stops the bot's work.
type StopWorld interface {
	Stop(ctx context.Context, who Person, in Place) error
}
