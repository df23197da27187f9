package bridge

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"strings"
	"time"

	"github.com/parley-chat/parley/approvals"
	"github.com/parley-chat/parley/platforms"
)

// Store is where the bridge keeps what must survive: what arrived, what is to be said, what is being asked.
type Store interface {
	// View reads a consistent snapshot; Update writes all of it or nothing. fn may run more than once.
	View(ctx context.Context, fn func(Tx) error) error
	Update(ctx context.Context, fn func(Tx) error) error
}

// Tx is one transaction. Records that are not there are nil.
type Tx interface {
	// Known reports whether a delivery with this key was accepted before, and MarkKnown that it is now.
	Known(platform string, key platforms.Key) (bool, error)
	MarkKnown(platform string, key platforms.Key, at time.Time) error

	// AddEntry puts an entry at the end of its lane and sets its Seq; PutEntry replaces it, DeleteEntry ends it.
	AddEntry(e *Entry) error
	PutEntry(e Entry) error
	DeleteEntry(e Entry) error
	FirstEntry(l Lane) (*Entry, error)
	Entries(l Lane) ([]Entry, error)
	// SetAside keeps an entry that cannot be worked on, out of its lane, with the reason.
	SetAside(e Entry, why string) error
	// Park keeps an entry out of its lane until the bot talks in its place; Parked are those of a place, in order, and
	// DropParked ends one.
	Park(e Entry) error
	Parked(p Place) ([]Entry, error)
	DropParked(e Entry) error
	// Lanes are those with entries.
	Lanes() ([]Lane, error)

	Conversation(platform string, id platforms.Conversation) (*Conversation, error)
	PutConversation(c Conversation) error

	// The outbox works as the inbox does, by place.
	AddDelivery(d *Delivery) error
	PutDelivery(d Delivery) error
	DeleteDelivery(d Delivery) error
	FirstDelivery(p Place) (*Delivery, error)
	Places() ([]Place, error)
	// LastSeq is the highest Seq given so far.
	LastSeq() (uint64, error)

	Request(id approvals.ID) (*approvals.Request, error)
	PutRequest(r approvals.Request) error
	// PendingRequests are those of one place, or all of them if it is the zero Place, oldest first.
	PendingRequests(p Place) ([]approvals.Request, error)
	Audit(entries ...approvals.Entry) error
}

// Place is a conversation on a platform.
type Place struct {
	Platform     string
	Conversation platforms.Conversation
}

// Session is the id of the session in which the place's turns run: opaque to everything behind the bridge.
func (p Place) Session() string { return p.Platform + ":" + string(p.Conversation) }

// Lane is a queue of entries that are worked on strictly in order. Urgent ones have a lane of their own, beside that of
// the turns.
type Lane struct {
	Place
	Urgent bool
}

// Entry is one thing in the inbox. It stays until everything it led to is durable.
type Entry struct {
	Lane Lane   `json:"lane"`
	Seq  uint64 `json:"seq"`
	// Turn is the id under which the chat harness knows the turn this leads to.
	Turn string    `json:"turn"`
	At   time.Time `json:"at"`
	// Raw is a delivery's payload, Edited what its message reads since it was changed.
	Raw    []byte  `json:"raw,omitempty"`
	Edited *string `json:"edited,omitempty"`
	// Shown is a message that began to show the answer as it grew. It becomes the reply.
	Shown platforms.MessageRef `json:"shown,omitempty"`
	// Signal is a decision on its way to the turn that waits for it. Then there is no Raw.
	Signal approvals.ID `json:"signal,omitempty"`
}

// Delivery is one message, or a change of one, on its way out.
type Delivery struct {
	Place Place     `json:"place"`
	Seq   uint64    `json:"seq"`
	At    time.Time `json:"at"`
	// ID says what it is; the idempotency mark is derived from it.
	ID   string         `json:"id"`
	Part platforms.Part `json:"part"`
	// Replaces is a message to change. CardOf is the request whose card this is; with Change, the card as it is now known
	// is changed.
	Replaces platforms.MessageRef `json:"replaces,omitempty"`
	CardOf   approvals.ID         `json:"card_of,omitempty"`
	Change   bool                 `json:"change,omitempty"`
	// Growing: an earlier process, or a call that got no answer, may have begun to show this as a growing message with the
	// same mark.
	Growing bool `json:"growing,omitempty"`
	// OnlyBegun: if it turns out that none did, nothing is to be said.
	OnlyBegun bool `json:"only_begun,omitempty"`
	// Status is shown instead of a message, for the message that asked, if one is known.
	Status platforms.Status     `json:"status,omitempty"`
	Asked  platforms.MessageRef `json:"asked,omitempty"`
}

// Mark is the idempotency mark: 20 lower-case letters and digits.
func (d Delivery) Mark() string { return markOf(d.ID) }

func markOf(id string) string {
	sum := sha256.Sum256([]byte(id))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:]))[:20]
}

// Conversation is what the bridge remembers of a place where it talks.
type Conversation struct {
	Place     Place     `json:"place"`
	CreatedAt time.Time `json:"created_at"`
	// Last is the newest message that was delivered here. What a dead process had begun to say stands after it.
	Last platforms.MessageRef `json:"last,omitempty"`
	// Asked are the messages whose turns wait for a decision, by request.
	Asked map[approvals.ID]platforms.MessageRef `json:"asked,omitempty"`
}
