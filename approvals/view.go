package approvals

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// What a button means. It travels with the id of the request, and nothing else does.
const (
	ActionApprove    = "approve"
	ActionDeny       = "deny"
	ActionDenyReason = "deny_reason" // asks for the reason first
)

// View is what a card shows, in the order of the fields. All of it is plain text to be shown literally; Why and what is
// in Calls come from a model, names from people.
type View struct {
	ID    ID
	State State
	Hash  Hash // of what the card shows: goes back with Approve
	// Title and Facts are short.
	Title string
	Facts []Fact
	// Why is what the model said, as long as it liked to be; may be empty.
	Why string
	// Calls are what will run, exactly and in full.
	Calls []CallView
	// Outcome is set once the request ended, or its time ran out.
	Outcome string
	// Deciders are those to be called, as long as there is something to decide.
	Deciders []Pattern
	// Buttons are there only while somebody may still press them.
	Buttons []Button
}

// Fact is a name and a short value.
type Fact struct{ Name, Value string }

// CallView is one call: Arguments is JSON laid out on lines.
type CallView struct {
	Tool        string
	Arguments   string
	Destructive bool
}

// Button offers a choice. Confirm, if set, asks once more before the press counts.
type Button struct {
	Label   string
	Action  string
	Primary bool
	Confirm string
}

// View returns what a card shows of the request at the given time.
func (r Request) View(now time.Time) View {
	v := View{
		ID: r.ID, State: r.State, Hash: r.Hash,
		Title: r.title(), Facts: r.facts(), Why: strings.TrimSpace(r.Reason), Outcome: r.OutcomeLine(),
	}
	for _, c := range r.Calls {
		v.Calls = append(v.Calls, CallView{Tool: c.Tool, Arguments: pretty(c.Arguments), Destructive: c.Destructive})
	}
	switch {
	case r.State != Pending:
	case r.Due(now):
		v.Outcome = "The time to decide ran out at " + clock(r.ExpiresAt)
	default:
		v.Deciders = slices.Clone(r.Deciders)
		v.Buttons = r.buttons()
	}
	return v
}

func (r Request) title() string {
	prefix := map[State]string{
		Pending: "Approval needed", Approved: "Approved", Denied: "Denied", Expired: "No answer", Cancelled: "Cancelled",
	}
	return prefix[r.State] + ": " + r.tools()
}

// tools names at most three of the tools: it also has to fit into a dialog.
func (r Request) tools() string {
	const most = 3
	var names []string
	for _, c := range r.Calls {
		names = append(names, oneLine(c.Tool))
	}
	if len(names) > most {
		names = append(names[:most], fmt.Sprintf("%d more", len(names)-most))
	}
	return andList(names)
}

func (r Request) facts() []Fact {
	var facts []Fact
	if !r.Requester.IsZero() {
		facts = append(facts, Fact{"For", r.Requester.label()})
	}
	facts = append(facts, Fact{"May decide", r.WhoMayDecide()})
	if hint := r.Deadlock(); hint != "" && r.State == Pending {
		facts = append(facts, Fact{"Cannot be approved", hint})
	}
	if !r.ExpiresAt.IsZero() {
		facts = append(facts, Fact{"Until", clock(r.ExpiresAt)})
	}
	if r.Quorum > 1 {
		facts = append(facts, Fact{"Approvals", r.approvals()})
	}
	return facts
}

func (r Request) approvals() string {
	if len(r.Votes) == 0 {
		return r.count()
	}
	return r.count() + ": " + andList(r.approvers())
}

// Deadlock says why nobody can ever approve this, if so: it would otherwise wait for nothing. Groups may have any
// number of members.
func (r Request) Deadlock() string {
	people := map[Principal]bool{}
	for _, p := range r.Deciders {
		if p.OfGroup {
			return ""
		}
		person := Principal{Platform: p.Platform, User: p.ID}
		if r.SelfApproval || !person.SamePerson(r.Requester.Principal) {
			people[person] = true
		}
	}
	switch {
	case len(people) >= r.Quorum:
		return ""
	case len(r.Deciders) == 0:
		return "no approver is named in the settings"
	case len(people) == 0:
		return "only the one who asked is named, and nobody approves their own request"
	}
	return fmt.Sprintf("%d must approve, and only %d may", r.Quorum, len(people))
}

func (r Request) buttons() []Button {
	return []Button{
		{Label: "Approve", Action: ActionApprove, Primary: true, Confirm: r.confirm()},
		{Label: "Deny", Action: ActionDeny},
		{Label: "Deny with a reason", Action: ActionDenyReason},
	}
}

func (r Request) confirm() string {
	if !slices.ContainsFunc(r.Calls, func(c Call) bool { return c.Destructive }) {
		return ""
	}
	return "This may destroy something. Run " + r.tools() + " exactly as shown?"
}
