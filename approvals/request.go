package approvals

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Version is the version of the records that this package writes, and the only one it reads.
const Version = 1

// Request asks for permission to run some calls. It is a value: Apply returns a new one and leaves the old as it was.
// Its JSON form is the stored record; one that breaks a rule of this package is neither written nor read.
type Request struct {
	Version int `json:"version"`
	ID      ID  `json:"id"`

	// Where it comes from and goes back to; opaque here.
	SessionID    string `json:"session_id"`
	InvocationID string `json:"invocation_id"`
	TurnID       string `json:"turn_id"`
	Platform     string `json:"platform"`
	Conversation string `json:"conversation"`

	// What is asked.
	Calls     []Call `json:"calls"` // decided together, at least one
	Hash      Hash   `json:"hash"`  // HashCalls of them
	Reason    string `json:"reason,omitempty"`
	Requester Actor  `json:"requester,omitzero"` // zero if no person asked

	// Who may decide: a snapshot, so that a later setting does not change what was promised on the card.
	Deciders     []Pattern         `json:"deciders"`        // none: nobody
	Names        map[string]string `json:"names,omitempty"` // display names of deciders by Pattern.String, for texts only
	Quorum       int               `json:"quorum"`          // how many distinct people must approve, at least 1
	SelfApproval bool              `json:"self_approval,omitempty"`

	CreatedAt time.Time `json:"created_at"`
	ExpiresAt time.Time `json:"expires_at,omitzero"` // zero: never

	// How it went.
	State   State    `json:"state"`
	Votes   []Vote   `json:"votes,omitempty"`
	Outcome *Outcome `json:"outcome,omitempty"` // set exactly if State.Ended

	Cards []Card `json:"cards,omitempty"` // kept for the caller
}

// Vote is one counted approval. Under is the pattern that admitted it.
type Vote struct {
	By    Actor     `json:"by"`
	At    time.Time `json:"at"`
	Under Pattern   `json:"under"`
}

// Outcome is how a request ended. By is the decider, the last one where several were needed (Votes has them all); it
// is zero when a request expired, and may be when it was cancelled.
type Outcome struct {
	State  State     `json:"state"`
	By     Actor     `json:"by,omitzero"`
	Reason string    `json:"reason,omitempty"`
	At     time.Time `json:"at"`
}

// Card is a message that shows the request. Nothing here reads it; the caller needs it to change the card later, and
// Hash is what a click on it says to have seen.
type Card struct {
	Platform     string `json:"platform"`
	Conversation string `json:"conversation"`
	Ref          string `json:"ref,omitempty"` // empty until it is posted
	Mark         string `json:"mark,omitempty"`
	Hash         Hash   `json:"hash,omitempty"`
}

// Ask is what is asked, of whom nothing is said yet. The fields are Request's.
type Ask struct {
	SessionID    string
	InvocationID string
	TurnID       string
	Platform     string
	Conversation string
	Calls        []Call
	Reason       string
	Requester    Actor
}

// Policy says who may decide, how many must and by when. The zero value lets nobody.
type Policy struct {
	Deciders     []Pattern
	Names        map[string]string // see Request.Names
	Quorum       int               // 0 means 1
	SelfApproval bool
	Within       time.Duration // from the asking; 0 means that the request never expires
}

// New opens a request under a policy. It fails if the arguments of a call are not a JSON object, or the policy makes
// no sense.
func New(id ID, ask Ask, p Policy, now time.Time) (Request, error) {
	if p.Within < 0 {
		return Request{}, fmt.Errorf("approvals: a request cannot expire %v before it is made", -p.Within)
	}
	calls, err := checkCalls(ask.Calls)
	if err != nil {
		return Request{}, err
	}
	hash, err := HashCalls(calls)
	if err != nil {
		return Request{}, err
	}
	r := Request{
		Version: Version, ID: id,
		SessionID: ask.SessionID, InvocationID: ask.InvocationID, TurnID: ask.TurnID,
		Platform: ask.Platform, Conversation: ask.Conversation,
		Calls: calls, Hash: hash, Reason: ask.Reason, Requester: ask.Requester.kept(),
		Deciders: slices.Clone(p.Deciders), Names: maps.Clone(p.Names), Quorum: p.Quorum, SelfApproval: p.SelfApproval,
		CreatedAt: moment(now), State: Pending,
	}
	if r.Quorum == 0 {
		r.Quorum = 1
	}
	if p.Within > 0 {
		r.ExpiresAt = r.CreatedAt.Add(p.Within)
	}
	return r, r.Validate()
}

// moment is t in the form that survives JSON.
func moment(t time.Time) time.Time { return t.UTC().Round(0) }

// NeedsGroups returns the groups whose membership decides whether the actor may vote. The caller looks each up and
// puts it into the actor's Groups if the actor belongs to it, or into Unresolved if nobody can tell, before Apply.
// There are none if the answer is clear without.
func (r Request) NeedsGroups(a Actor) []string {
	if r.State != Pending || a.Bot || a.External || slices.ContainsFunc(r.Deciders, matcher(a)) {
		return nil
	}
	var groups []string
	for _, p := range r.Deciders {
		platform, group, ok := p.Group()
		if ok && platform == a.Principal.Platform && !slices.Contains(groups, group) {
			groups = append(groups, group)
		}
	}
	return groups
}

func matcher(a Actor) func(Pattern) bool {
	return func(p Pattern) bool { return p.Matches(a) }
}

// Due reports whether the time to decide has run out.
func (r Request) Due(now time.Time) bool {
	return r.State == Pending && !r.ExpiresAt.IsZero() && !now.Before(r.ExpiresAt)
}

// Validate tells which rule of this package the record breaks, if any. Above all: an end has its decider, and an
// approval has enough votes of people who were admitted.
func (r Request) Validate() error {
	if r.Version != Version {
		return fmt.Errorf("approvals: record version %d is unknown, this program reads version %d", r.Version, Version)
	}
	if !r.ID.valid() {
		return fmt.Errorf("approvals: %q is not the id of a request", r.ID)
	}
	checks := []func() error{r.checkCalls, r.checkTerms, r.checkVotes, r.checkOutcome}
	for _, check := range checks {
		if err := check(); err != nil {
			return fmt.Errorf("approvals: request %s: %w", r.ID, err)
		}
	}
	return nil
}

func (r Request) checkCalls() error {
	if _, err := checkCalls(r.Calls); err != nil {
		return err
	}
	hash, err := HashCalls(r.Calls)
	if err != nil {
		return err
	}
	if hash != r.Hash {
		return fmt.Errorf("the hash %q is not that of the calls, %q", r.Hash, hash)
	}
	return nil
}

func (r Request) checkTerms() error {
	switch {
	case r.Quorum < 1:
		return fmt.Errorf("a quorum of %d: at least one person must approve", r.Quorum)
	case slices.ContainsFunc(r.Deciders, func(p Pattern) bool { return p.ID == "" }):
		return errors.New("a decider that means nobody")
	case r.CreatedAt.IsZero():
		return errors.New("no time of creation")
	case !r.ExpiresAt.IsZero() && !r.ExpiresAt.After(r.CreatedAt):
		return errors.New("expires before it was made")
	}
	return nil
}

func (r Request) checkVotes() error {
	for i, v := range r.Votes {
		switch {
		case v.By.IsZero():
			return fmt.Errorf("vote %d has no voter", i+1)
		case r.votedAmong(v.By, r.Votes[:i]):
			return fmt.Errorf("%s voted twice", v.By.Principal)
		case v.By.Bot:
			return fmt.Errorf("%s voted, a bot", v.By.Principal)
		case !r.SelfApproval && v.By.Principal.SamePerson(r.Requester.Principal):
			return fmt.Errorf("%s voted on their own request", v.By.Principal)
		case !slices.Contains(r.Deciders, v.Under):
			return fmt.Errorf("%s voted under %s, which is no decider", v.By.Principal, v.Under)
		case !v.Under.Matches(v.admitted()):
			return fmt.Errorf("%s voted under %s, which means others", v.By.Principal, v.Under)
		}
	}
	return nil
}

// admitted is the voter with the membership that was looked up then, which only the pattern remembers.
func (v Vote) admitted() Actor {
	voter := v.By
	if _, group, ok := v.Under.Group(); ok {
		voter.Groups = []string{group}
	}
	return voter
}

func (r Request) checkOutcome() error {
	reached := len(r.Votes) >= r.Quorum
	switch {
	case r.State == Pending && r.Outcome != nil:
		return errors.New("pending, yet it has an outcome")
	case r.State == Pending && reached:
		return errors.New("pending, yet enough people approved")
	case r.State == Pending:
		return nil
	case !r.State.Ended():
		return fmt.Errorf("unknown state %q", r.State)
	case r.Outcome == nil || r.Outcome.State != r.State:
		return fmt.Errorf("%s, without an outcome that says so", r.State)
	case r.Outcome.At.IsZero():
		return fmt.Errorf("%s at no time", r.State)
	case reached != (r.State == Approved):
		return fmt.Errorf("%s with %d of %d approvals", r.State, len(r.Votes), r.Quorum)
	case r.State == Approved && !r.Outcome.By.Principal.SamePerson(r.Votes[len(r.Votes)-1].By.Principal):
		return errors.New("approved by somebody who was not the last to vote")
	case r.State == Denied && (r.Outcome.By.Bot || r.Outcome.By.IsZero()):
		return errors.New("denied by nobody")
	}
	return nil
}

// record is Request without its methods.
type record Request

// MarshalJSON writes the record. It refuses one that could not be read back.
func (r Request) MarshalJSON() ([]byte, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	return json.Marshal(record(r))
}

// UnmarshalJSON reads a record of a known version and checks it. On an error r is unchanged.
func (r *Request) UnmarshalJSON(data []byte) error {
	var head struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return fmt.Errorf("approvals: record: %w", err)
	}
	if head.Version != Version { // before the rest is read: it may have another form
		return Request{Version: head.Version}.Validate()
	}
	var read record
	if err := json.Unmarshal(data, &read); err != nil {
		return fmt.Errorf("approvals: record: %w", err)
	}
	calls, err := checkCalls(read.Calls)
	if err != nil {
		return err
	}
	read.Calls = calls // json.Marshal escapes <, > and & in them
	if err := Request(read).Validate(); err != nil {
		return err
	}
	*r = Request(read)
	return nil
}
