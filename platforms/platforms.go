// Package platforms is the seam between the bot and the places where people talk to it. It holds the small core that
// every platform must keep (receive, read, render, post, edit) and the abilities that only some have, as interfaces of
// their own. It knows no platform; a platform knows nothing behind this seam.
//
// The way in: an adapter verifies what arrives, wraps it unread into a Delivery and hands it to an Inbox. Only when the
// inbox has made it durable does the adapter acknowledge. Later the bridge asks the adapter to Read it: Delivery to
// Inbound, a pure translation.
//
// The way out: the bridge gives Content; Render turns it into Parts, each one message of that platform within all its
// limits, again purely; the outbox keeps the parts and calls Post or Edit, in order, until each is delivered.
package platforms

import (
	"context"
	"io"
	"net/http"
	"time"
)

// Conversation names one place where turns are strictly ordered: a thread, a direct message. It is made by an adapter
// and opaque everywhere else.
type Conversation string

// UserID names a person on their platform. Opaque, but printable: policies and audit records carry it.
type UserID string

// MessageRef finds one message again, to edit or answer it. Opaque outside its adapter, never empty for a message.
type MessageRef string

// Key identifies a delivery across redeliveries, within its platform.
type Key string

// Delivery is one thing that arrived, not yet read.
type Delivery struct {
	// Keys are the identities under which this may arrive again; the first is the stable event id. A delivery any of
	// whose keys is known already is a duplicate.
	Keys []Key
	// Conversation orders the delivery behind what arrived there before. Empty: it belongs to none.
	Conversation Conversation
	// Urgent deliveries (clicks, submissions, commands, stop, edits, deletions) do not wait for the turns before them.
	Urgent bool
	// Raw is the verified payload as it came. Adapter.Read must accept it in later versions too.
	Raw []byte
}

// Inbox takes deliveries.
type Inbox interface {
	// Accept returns nil once the delivery is durable, or was already. Only then may it be acknowledged; on an error it
	// must not be. It may be called concurrently, and again with the same delivery.
	Accept(ctx context.Context, d Delivery) error
}

// Adapter is what every platform must do. All methods may be called concurrently.
type Adapter interface {
	// Platform is the name under which this platform appears in settings, policies and session ids: "slack".
	Platform() string
	// Run receives until ctx ends, or until nothing can arrive any more, and then returns nil. It checks its credentials first; an error is a sentence for the
	// operator that says what to mend, and ends the platform.
	Run(ctx context.Context, inbox Inbox) error
	// Read translates the payload of a delivery. It has no effects. What is of no interest is an Ignored, never an
	// error; an error means that the payload cannot be understood at all.
	Read(raw []byte) (Inbound, error)
	// Render turns content into the messages that show it, in order, at least one, each within the platform's limits. It
	// has no effects and never cuts silently. What a model wrote is neutralised here.
	Render(c Content) []Part
	// Post sends one part. mark is an idempotency mark of at most 25 ASCII letters and digits: the adapter attaches it to
	// the message so that a Finder, or the platform itself, can tell whether the part was sent before. The error is an
	// *Error.
	Post(ctx context.Context, to Conversation, mark string, p Part) (MessageRef, error)
	// Edit replaces a message. The same edit again is harmless. The error is an *Error.
	Edit(ctx context.Context, at MessageRef, p Part) error
	// Capabilities tells what the platform can do, constant for the adapter's life.
	Capabilities() Capabilities
}

// Capabilities are the limits shared code must know. The zero value of a field means "not at all".
type Capabilities struct {
	// EditEvery is the shortest time between two edits of one growing message. Zero: growing messages are not edited.
	EditEvery time.Duration
	// Idempotent says that Post with a mark already used returns the earlier message instead of posting again.
	Idempotent bool
}

// Part is one message of a platform, rendered: an adapter's own JSON, kept in the outbox between Render and Post.
type Part []byte

// Content is what people are to see, before any platform's limits. Exactly one field is set.
type Content struct {
	// Markdown is CommonMark. Whoever wrote it, it is treated as if a model had: no broadcast, no mention that works.
	Markdown string
	// Card is a request to decide, or its outcome.
	Card *Card
}

// Card is a message with facts and buttons.
type Card struct {
	Title string
	// Text is short CommonMark of our own under the title. What a model or a person wrote goes into Facts or Blocks.
	Text   string
	Facts  []Fact
	Blocks []Block
	// Mention are people to be notified; the only mentions that work.
	Mention []UserID
	Buttons []Button
	// Footer is a small line at the end.
	Footer string
}

// Fact is a name and a short value, shown literally.
type Fact struct{ Name, Value string }

// Block is a longer literal text, shown as preformatted, never cut without saying so.
type Block struct{ Name, Text string }

// Style says how a button looks.
type Style string

const (
	Plain   Style = ""
	Primary Style = "primary"
	Danger  Style = "danger"
)

// Button is pressed to decide. Action says what the press means, Value is an opaque id; nothing else travels with it.
type Button struct {
	Label  string
	Action string
	Value  string
	Style  Style
	// Confirm asks once more before the press counts. Empty: it does not.
	Confirm string
	// Form says that the press is answered with a form, at once: some platforms show none after acknowledging a press.
	Form bool
}

// User is somebody who did something.
type User struct {
	ID   UserID
	Name string // for display, may be empty
	// External is set for people who are not members of the bot's own workspace or server: guests of a shared channel.
	External bool
	// Bot is set for other programs.
	Bot bool
}

// Inbound is what a delivery means: Message, Edited, Deleted, Click, Submission, Command, Stop, Notice or Ignored.
type Inbound interface{ inbound() }

// Addressed says how a message reached the bot.
type Addressed int

const (
	// Ambient: said in a thread, to nobody in particular. It is answered where the bot already talks.
	Ambient Addressed = iota
	// Mentioned: the bot was called by name.
	Mentioned
	// Direct: said in a direct message.
	Direct
)

// Message is somebody's words.
type Message struct {
	Conversation Conversation
	Ref          MessageRef
	From         User
	Addressed    Addressed
	Text         string // without the mention of the bot; CommonMark as far as the platform's form translates
	Files        []File
	At           time.Time
}

// Edited says that a message now reads differently; Deleted that it is gone.
type (
	Edited struct {
		Conversation Conversation
		Ref          MessageRef
		Text         string
	}
	Deleted struct {
		Conversation Conversation
		Ref          MessageRef
	}
)

// File is something attached to a message. Token is the adapter's own, for Fetcher.
type File struct {
	Name      string
	MediaType string
	Size      int64 // bytes, 0 if not said
	Token     string
	// Problem says why the file cannot be read, in words for the person who sent it. Empty: it can.
	Problem string
}

// Reply is an adapter's handle for answering the person who pressed, submitted or commanded, for a short while.
type Reply []byte

// Click is a pressed button.
type Click struct {
	Conversation Conversation
	By           User
	On           MessageRef
	Action       string
	Value        string
	Reply        Reply
}

// Submission is a filled modal. Value is the Modal's.
type Submission struct {
	Conversation Conversation
	By           User
	Action       string
	Value        string
	Text         string
	Reply        Reply
}

// Command is a slash command: Name without the slash.
type Command struct {
	Conversation Conversation // empty where the platform does not tell the thread
	By           User
	Name         string
	Args         string
	Reply        Reply
}

// Stop asks to end the work of a conversation.
type Stop struct {
	Conversation Conversation
	By           User
}

// Ignored is what nobody has to act on. Why is a constant for counting.
type Ignored struct{ Why string }

func (Message) inbound()    {}
func (Edited) inbound()     {}
func (Deleted) inbound()    {}
func (Click) inbound()      {}
func (Submission) inbound() {}
func (Command) inbound()    {}
func (Stop) inbound()       {}
func (Ignored) inbound()    {}

// The abilities. The bridge asks for each by type assertion, in one place.

// Finder looks up what an earlier, uncertain Post came to.
type Finder interface {
	// Find returns the message that carries the mark, or "" if there is none. The error is an *Error.
	Find(ctx context.Context, in Conversation, mark string) (MessageRef, error)
}

// Notifier shows a line to one person only.
type Notifier interface {
	// Notify answers a press, a submission or a command; text is CommonMark. The error is an *Error.
	Notify(ctx context.Context, to Reply, text string) error
}

// Modal is a form with one text field. Action and Value come back with its Submission.
type Modal struct {
	Title, Label, Submit string
	Action, Value        string
	Initial              string
	Optional             bool
}

// ModalOpener shows a form to the person behind a Reply, within 3 s of the press.
type ModalOpener interface {
	OpenModal(ctx context.Context, to Reply, m Modal) error
}

// Status is what the bot is doing in a conversation.
type Status string

const (
	Working Status = "working" // a turn has taken a while
	Waiting Status = "waiting" // for somebody's decision
	Idle    Status = "idle"
)

// StatusSetter shows what the bot is doing. on is the message that asked. The same status again is harmless.
type StatusSetter interface {
	SetStatus(ctx context.Context, in Conversation, on MessageRef, s Status) error
}

// Streamer shows an answer while it grows.
type Streamer interface {
	// OpenStream begins a message, which carries the mark at the latest when it is closed. ErrNoStream says that this
	// conversation, or this installation, cannot stream; the caller falls back to post and edit.
	OpenStream(ctx context.Context, in Conversation, to User, mark string) (Stream, error)
}

// Stream is a growing message, used by one goroutine.
type Stream interface {
	// Ref is the message, from the beginning: whoever must find it after a crash keeps it.
	Ref() MessageRef
	// Append adds CommonMark text.
	Append(ctx context.Context, text string) error
	// Close ends the message; what was appended stays. It returns the message for further edits.
	Close(ctx context.Context) (MessageRef, error)
}

// StreamFinder looks for the stream of a process that died before it could remember it.
type StreamFinder interface {
	// FindStream returns the newest message in the conversation that was opened as a stream and never closed, "" if there
	// is none. Only messages newer than after count, all of them if it is empty. The error is an *Error.
	FindStream(ctx context.Context, in Conversation, after MessageRef) (MessageRef, error)
}

// Fetcher reads files that people sent.
type Fetcher interface {
	// Fetch opens the file. The reader fails with an *Error after limit bytes. The caller closes it.
	Fetch(ctx context.Context, f File, limit int64) (io.ReadCloser, error)
}

// Grouper tells who belongs to a group of people.
type Grouper interface {
	// InGroup reports whether the user belongs to the group. An error means that nobody knows, which is no.
	InGroup(ctx context.Context, group string, user UserID) (bool, error)
}

// Directory tells what people are called.
type Directory interface {
	// Name is what others call the person, on one line, never empty without an error. It is for texts only, may be
	// remembered for a while, and is no proof of anything: people choose it.
	Name(ctx context.Context, user UserID) (string, error)
}

// Server is a platform that receives over HTTP.
type Server interface {
	// Routes are the handlers to mount, by path.
	Routes() map[string]http.Handler
}

// Known is a conversation in which the bot talks. What was said there after Since may not have arrived. Without a
// Conversation it means every place of the platform.
type Known struct {
	Conversation Conversation
	Since        time.Time
}

// Backfiller is a platform that sends nothing again: what it sent while nobody listened has to be looked up.
type Backfiller interface {
	// Backfill tells, before Run, where something may have been missed. Run then looks there and hands what it finds to
	// the inbox in its order, before anything newer of the same conversation. What was taken before may come again, under
	// the same keys.
	Backfill(known []Known)
}

// Readiness tells whether messages can arrive now; the error is a sentence for the operator.
type Readiness interface {
	Ready() error
}
