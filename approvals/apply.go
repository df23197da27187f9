package approvals

import (
	"slices"
	"strings"
	"time"
)

// Event is what may happen to a request: Approve, Deny, Expire or Cancel.
type Event interface {
	apply(Request) (Request, Verdict)
}

// Approve is somebody's yes to what Hash identifies: what they were shown.
type Approve struct {
	By   Actor
	At   time.Time
	Hash Hash
}

// Deny is somebody's no. One is enough, whatever the quorum. Reason may be empty.
type Deny struct {
	By     Actor
	At     time.Time
	Reason string
}

// Expire ends a request whose time has run out.
type Expire struct{ At time.Time }

// Cancel takes a request back. It can make nothing run, so it asks for no permission: who may stop a conversation is
// the caller's to say. By may be zero (the asking message was deleted), Reason empty.
type Cancel struct {
	By     Actor
	At     time.Time
	Reason string
}

// Code says what came of an event.
type Code string

const (
	Decided Code = "decided" // the event ended the request
	Counted Code = "counted" // an approval that is not yet enough

	// The others changed nothing.
	NotPermitted   Code = "not_permitted"
	OwnRequest     Code = "self"
	ExternalPerson Code = "external"
	BotActor       Code = "bot"
	GroupsUnknown  Code = "groups_unknown" // whether the actor may decide could not be found out
	AlreadyDecided Code = "already_decided"
	TimeRanOut     Code = "expired"
	StaleHash      Code = "stale_hash"
	AlreadyVoted   Code = "already_voted"
	NotDue         Code = "not_due" // an Expire before the time
)

// Verdict is the answer to one event.
type Verdict struct {
	Code Code
	// Approvals have been given, of Quorum needed.
	Approvals, Quorum int
	// Text is for the person who acted: plain, never empty.
	Text string
}

// Accepted reports whether the event changed the request.
func (v Verdict) Accepted() bool { return v.Code == Decided || v.Code == Counted }

// Apply returns the request after the event, and what to tell the one who caused it. A request ends once; no event
// changes it afterwards. The new request must be durable before anybody hears of it.
func (r Request) Apply(e Event) (Request, Verdict) {
	if r.State == Pending {
		return e.apply(r)
	}
	if r.State == Expired {
		return r, r.verdict(TimeRanOut, r.textExpired())
	}
	return r, r.verdict(AlreadyDecided, r.textSettled())
}

func (e Approve) apply(r Request) (Request, Verdict) {
	under, refusal := r.admit(e.By, e.At)
	switch {
	case refusal != nil:
		return r, *refusal
	case !r.SelfApproval && e.By.Principal.SamePerson(r.Requester.Principal):
		return r, r.verdict(OwnRequest, r.textSelf())
	case r.votedAmong(e.By, r.Votes):
		return r, r.verdict(AlreadyVoted, r.textVoted())
	case e.Hash != r.Hash:
		return r, r.verdict(StaleHash, textStale)
	}
	// Clip, so that append never writes into the votes of the request before.
	r.Votes = append(slices.Clip(r.Votes), Vote{By: e.By.kept(), At: moment(e.At), Under: under})
	if len(r.Votes) < r.Quorum {
		return r, r.verdict(Counted, r.textCounted())
	}
	return r.end(Approved, e.By, "", e.At)
}

func (e Deny) apply(r Request) (Request, Verdict) {
	if _, refusal := r.admit(e.By, e.At); refusal != nil {
		return r, *refusal
	}
	return r.end(Denied, e.By, e.Reason, e.At)
}

func (e Expire) apply(r Request) (Request, Verdict) {
	if !r.Due(e.At) {
		return r, r.verdict(NotDue, r.textNotDue())
	}
	return r.end(Expired, Actor{}, "", e.At)
}

func (e Cancel) apply(r Request) (Request, Verdict) {
	return r.end(Cancelled, e.By, e.Reason, e.At)
}

// admit returns the pattern under which the actor may decide now, or the refusal. Whatever is not clearly permitted is
// refused.
func (r Request) admit(by Actor, at time.Time) (Pattern, *Verdict) {
	refuse := func(c Code, text string) (Pattern, *Verdict) {
		v := r.verdict(c, text)
		return Pattern{}, &v
	}
	if r.Due(at) {
		return refuse(TimeRanOut, r.textExpired())
	}
	if by.Bot {
		return refuse(BotActor, r.textBot())
	}
	if i := slices.IndexFunc(r.Deciders, matcher(by)); i >= 0 {
		return r.Deciders[i], nil
	}
	if by.External {
		return refuse(ExternalPerson, r.textExternal())
	}
	if slices.ContainsFunc(r.NeedsGroups(by), func(g string) bool { return slices.Contains(by.Unresolved, g) }) {
		return refuse(GroupsUnknown, textGroupsUnknown)
	}
	return refuse(NotPermitted, r.textNotPermitted())
}

func (r Request) votedAmong(a Actor, votes []Vote) bool {
	return slices.ContainsFunc(votes, func(v Vote) bool { return v.By.Principal.SamePerson(a.Principal) })
}

func (r Request) end(s State, by Actor, reason string, at time.Time) (Request, Verdict) {
	r.State = s
	r.Outcome = &Outcome{State: s, By: by.kept(), Reason: strings.TrimSpace(reason), At: moment(at)}
	return r, r.verdict(Decided, full(r.OutcomeLine()))
}

func (r Request) verdict(c Code, text string) Verdict {
	return Verdict{Code: c, Approvals: len(r.Votes), Quorum: r.Quorum, Text: text}
}
