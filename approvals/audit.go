package approvals

import (
	"encoding/json"
	"fmt"
	"time"
)

// Kind says what an audit entry records.
type Kind string

const (
	KindRequested   Kind = "requested"
	KindCardPosted  Kind = "card_posted"
	KindVoteRefused Kind = "vote_refused" // Detail is the Code
	KindVoted       Kind = "voted"        // Detail is how many: "1 of 2"
	KindDecided     Kind = "decided"      // Detail is the State
	KindExecuted    Kind = "executed"     // a call began; Detail is its tool
	KindResult      Kind = "result"       // a call ended; Detail says how, in one word
)

// Surface is how somebody acted.
type Surface string

const (
	SurfaceText  Surface = "text"  // a message or slash command in chat
	SurfaceCLI   Surface = "cli"   // a subcommand of the bot
	SurfaceHTTP  Surface = "http"  // a signed or authorised request
	SurfaceTimer Surface = "timer" // nobody: the time had come
	SurfaceTurn  Surface = "turn"  // nobody: the agent's own doing
)

// Click is the surface of a pressed button: "slack click".
func Click(platform string) Surface { return Surface(platform + " click") }

// Entry is one line of the audit record, which only grows. It holds no arguments and no reasons: those are in the
// request's record, and Hash ties the two together.
type Entry struct {
	Version int       `json:"version"`
	Seq     uint64    `json:"seq"` // given by the store, rising
	At      time.Time `json:"at"`
	Request ID        `json:"request"`
	Kind    Kind      `json:"kind"`
	Actor   Actor     `json:"actor,omitzero"`
	Surface Surface   `json:"surface"`
	Detail  string    `json:"detail,omitempty"`
	Hash    Hash      `json:"hash"` // of what the request would run
}

// UnmarshalJSON reads an entry of a known version. On an error e is unchanged.
func (e *Entry) UnmarshalJSON(data []byte) error {
	type plain Entry
	var read plain
	if err := json.Unmarshal(data, &read); err != nil {
		return fmt.Errorf("approvals: audit entry: %w", err)
	}
	if read.Version != Version {
		return fmt.Errorf("approvals: audit entry version %d is unknown, this program reads version %d", read.Version, Version)
	}
	*e = Entry(read)
	return nil
}

// Entry makes an entry about the request, without its Seq.
func (r Request) Entry(k Kind, by Actor, from Surface, detail string, at time.Time) Entry {
	return Entry{
		Version: Version, At: moment(at), Request: r.ID, Kind: k,
		Actor: by.kept(), Surface: from, Detail: detail, Hash: r.Hash,
	}
}

// Trace returns what the audit keeps of an event; r and v are what Apply returned for it. An Expire or Cancel that
// changed nothing leaves no trace: nobody pressed anything.
func Trace(e Event, r Request, v Verdict, from Surface) []Entry {
	by, at, voting := origin(e)
	entry := func(k Kind, detail string) Entry { return r.Entry(k, by, from, detail, at) }
	_, approving := e.(Approve)
	switch {
	case v.Code == Decided && approving:
		return []Entry{entry(KindVoted, r.count()), entry(KindDecided, string(r.State))}
	case v.Code == Decided:
		return []Entry{entry(KindDecided, string(r.State))}
	case v.Code == Counted:
		return []Entry{entry(KindVoted, r.count())}
	case voting:
		return []Entry{entry(KindVoteRefused, string(v.Code))}
	}
	return nil
}

// origin tells who caused an event and when, and whether it was meant as a vote.
func origin(e Event) (by Actor, at time.Time, voting bool) {
	switch e := e.(type) {
	case Approve:
		return e.By, e.At, true
	case Deny:
		return e.By, e.At, true
	case Cancel:
		return e.By, e.At, false
	case Expire:
		return Actor{}, e.At, false
	}
	return Actor{}, time.Time{}, false
}
