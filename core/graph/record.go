package graph

import (
	"context"
	"encoding/json"
	"iter"
	"time"
)

// SessionStore keeps named state across invocations (sessions §5). All methods may be called concurrently.
type SessionStore interface {
	// Load returns the record, or nil if there is none. What it returns stays as it was when loaded.
	Load(ctx context.Context, sessionID string) (*SessionRecord, error)
	// Save writes what changed; the rest of the record stays. It creates the record if there is none.
	Save(ctx context.Context, sessionID string, save SessionSave) error
	// Delete removes the record and all of its lists. Deleting what is not there is no error.
	Delete(ctx context.Context, sessionID string) error
	// List yields summaries in the order of their ids.
	List(ctx context.Context, filter SessionFilter) iter.Seq2[SessionSummary, error]
}

// SessionRecord is a stored session (sessions §2). Lists are read when asked for.
type SessionRecord struct {
	SessionSummary
	Fields map[string]json.RawMessage
	Logs   map[string]Log
}

// SessionSummary is a session without its state (sessions §5.4).
type SessionSummary struct {
	SessionID     string
	SchemaVersion string
	Version       uint64 // counts saves, from 1
	Turn          string // the id of the turn that saved last
	CreatedAt     time.Time
	UpdatedAt     time.Time
}

// SessionSave is what one save changes.
type SessionSave struct {
	SchemaVersion string
	Delta
	Turn string // the id of the turn that saves
	At   time.Time
	// ExpectedVersion, if set, must be the record's version (0: no record), else session_write_conflict (sessions §8.2).
	ExpectedVersion *uint64
}

// SessionFilter narrows a listing; zero fields do not.
type SessionFilter struct {
	UpdatedAfter  time.Time
	CreatedAfter  time.Time
	SchemaVersion string
	Prefix        string // of the session id
}

// Checkpointer keeps the record of each invocation: where it is, how it ended, what it waits for. All methods may be
// called concurrently.
type Checkpointer interface {
	// LoadInvocation returns the record, or nil if there is none.
	LoadInvocation(ctx context.Context, id string) (*Invocation, error)
	SaveInvocation(ctx context.Context, inv Invocation) error
	// DeleteInvocation removes the record: a suspended invocation is thereby cancelled (suspension §12).
	DeleteInvocation(ctx context.Context, id string) error
}

// Committer is the ability of a store that keeps sessions and invocations to write both at once. With it the end of a
// turn, and a suspension (suspension §8.6), is one commit.
type Committer interface {
	Commit(ctx context.Context, sessionID string, save SessionSave, inv Invocation) error
}

// Status is how far an invocation is, or how it ended.
type Status string

const (
	Running   Status = "running"
	Completed Status = "completed"
	Errored   Status = "errored"
	Suspended Status = "suspended"
)

// Invocation is the durable record of one invocation across all its turns.
type Invocation struct {
	ID            string `json:"id"`
	CorrelationID string `json:"correlation_id"`
	SessionID     string `json:"session_id,omitempty"`
	Status        Status `json:"status"`
	// Turn is the id of the call that is running, or ran last.
	Turn string `json:"turn"`
	// Next is the node at which a running invocation goes on.
	Next string `json:"next,omitempty"`
	// Suspending is the node that suspended; Completed says whether it counts as done (suspension §3).
	Suspending string      `json:"suspending,omitempty"`
	Completed  bool        `json:"completed,omitempty"`
	Descriptor *Descriptor `json:"descriptor,omitempty"`
	// Step is the number of node executions so far.
	Step int `json:"step"`
	// State is the checkpoint: what the running turn changed since its session was loaded; of a suspended invocation, what
	// the session does not keep and the fields that the invocation wrote.
	State Delta `json:"state"`
	// Stored are the lengths of the session's lists when the running turn loaded it.
	Stored LogLengths `json:"stored,omitempty"`
	// Turns are the calls that came to an end, oldest first.
	Turns     []TurnRecord `json:"turns,omitempty"`
	StartedAt time.Time    `json:"started_at"`
	UpdatedAt time.Time    `json:"updated_at"`
}

// TurnRecord is what one call of Invoke came to. The same call again is answered from it.
type TurnRecord struct {
	ID         string      `json:"id"`
	Status     Status      `json:"status"`
	Delta      Delta       `json:"delta"`
	Loaded     LogLengths  `json:"loaded,omitempty"`
	Descriptor *Descriptor `json:"descriptor,omitempty"`
	Node       string      `json:"node,omitempty"`
	Error      *Failure    `json:"error,omitempty"`
}

// LogLengths are lengths of lists by field.
type LogLengths map[string]int

// Failure is an error as it is kept.
type Failure struct {
	Category   string `json:"category"`
	Message    string `json:"message,omitempty"`
	Diagnostic string `json:"diagnostic,omitempty"`
}

func (i *Invocation) turn(id string) *TurnRecord {
	for k := range i.Turns {
		if i.Turns[k].ID == id {
			return &i.Turns[k]
		}
	}
	return nil
}
