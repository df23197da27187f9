package approvals

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// TextUnknown answers a click or a command that names a request nobody knows.
const TextUnknown = "I do not know this request. It may have been removed; ask again if it is still wanted. Nothing was run."

const (
	textStale = "What would run has changed since it was shown to you, so nothing was counted. " +
		"Please look at it again and decide on what it says now."
	textGroupsUnknown = "I could not find out just now whether you may decide this, so nothing was counted. " +
		"Please try again in a moment."
)

func (r Request) textNotPermitted() string { return "You may not decide this. " + r.sentenceWhoMay() }

func (r Request) textBot() string { return "Programs may not decide this. " + r.sentenceWhoMay() }

func (r Request) textExternal() string {
	return "You may not decide this: you are a guest here and not named for it. " + r.sentenceWhoMay()
}

func (r Request) textSelf() string {
	others := slices.DeleteFunc(slices.Clone(r.Deciders), matcher(r.Requester))
	if len(others) == 0 {
		return "You asked for this, so somebody else must approve it, but nobody else may."
	}
	return "You asked for this, so somebody else must approve it. " + capital(orList(r.named(others))) + " may."
}

func (r Request) textVoted() string {
	return fmt.Sprintf("You have approved this already. It has %s approvals.", r.count())
}

func (r Request) textCounted() string {
	return fmt.Sprintf("Your approval is counted: %s. It runs when all have approved.", r.count())
}

func (r Request) textExpired() string {
	return fmt.Sprintf("The time to decide this ran out at %s. Nothing was run; ask again if it is still wanted.",
		clock(r.ExpiresAt))
}

func (r Request) textNotDue() string {
	if r.ExpiresAt.IsZero() {
		return "This request does not expire."
	}
	return fmt.Sprintf("This request can be decided until %s.", clock(r.ExpiresAt))
}

func (r Request) textSettled() string {
	return "This is settled already. " + full(r.OutcomeLine())
}

func (r Request) sentenceWhoMay() string {
	if len(r.Deciders) == 0 {
		return "Nobody may: no approver is named in the settings."
	}
	return capital(orList(r.named(r.Deciders))) + " may."
}

// WhoMayDecide lists the deciders by the names known of them: "Ada or the members of Operators", and with a quorum
// "2 of Ada, Bo and Cy".
func (r Request) WhoMayDecide() string {
	if len(r.Deciders) == 0 {
		return "nobody"
	}
	if r.Quorum > 1 {
		return fmt.Sprintf("%d of %s", r.Quorum, andList(r.named(r.Deciders)))
	}
	return orList(r.named(r.Deciders))
}

// named puts each pattern into words.
func (r Request) named(patterns []Pattern) []string {
	names := make([]string, len(patterns))
	for i, p := range patterns {
		names[i] = cmp.Or(oneLine(r.Names[p.String()]), p.String())
		if p.OfGroup {
			names[i] = "the members of " + names[i]
		}
	}
	return names
}

// OutcomeLine says how the request ended, by whom and when, on one line without a full stop; "" while it is pending.
func (r Request) OutcomeLine() string {
	if r.Outcome == nil {
		return ""
	}
	switch r.Outcome.State {
	case Approved:
		return fmt.Sprintf("Approved by %s at %s", andList(r.approvers()), clock(r.Outcome.At))
	case Denied:
		return fmt.Sprintf("Denied by %s at %s", r.Outcome.By.label(), clock(r.Outcome.At)) + because(r.Outcome.Reason)
	case Expired:
		return fmt.Sprintf("No answer by %s%s", clock(r.ExpiresAt), r.halfway())
	}
	if r.Outcome.By.IsZero() {
		return "Cancelled at " + clock(r.Outcome.At) + because(r.Outcome.Reason)
	}
	return fmt.Sprintf("Cancelled by %s at %s", r.Outcome.By.label(), clock(r.Outcome.At)) + because(r.Outcome.Reason)
}

func (r Request) approvers() []string {
	names := make([]string, len(r.Votes))
	for i, v := range r.Votes {
		names[i] = v.By.label()
	}
	return names
}

// halfway tells of approvals that were given but were not enough.
func (r Request) halfway() string {
	if len(r.Votes) == 0 {
		return ""
	}
	return fmt.Sprintf(" (%s approvals)", r.count())
}

func (r Request) count() string { return fmt.Sprintf("%d of %d", len(r.Votes), r.Quorum) }

// ToolResult is what the model hears as the result of each call that did not run: the truth about who decided what, or
// that nobody did. It is empty for an approved request: then the tools run and speak for themselves.
func (r Request) ToolResult() string {
	if r.Outcome == nil {
		return "Not run yet: waiting for an approval."
	}
	o := *r.Outcome
	switch o.State {
	case Approved:
		return ""
	case Denied:
		return full("Not run: denied by " + o.By.label() + cmp.Or(because(o.Reason), ", who gave no reason"))
	case Expired:
		return fmt.Sprintf("Not run: no answer by %s%s. Nobody decided; this is not a denial.",
			clock(r.ExpiresAt), r.halfway())
	}
	if o.By.IsZero() {
		return full("Not run: the request was cancelled" + because(o.Reason))
	}
	return full("Not run: the request was cancelled by " + o.By.label() + because(o.Reason))
}

// because appends a reason, on one line.
func because(reason string) string {
	if reason = oneLine(reason); reason == "" {
		return ""
	}
	return ": " + reason
}

// full ends s with a full stop, unless it ends with a mark already.
func full(s string) string {
	if strings.HasSuffix(s, ".") || strings.HasSuffix(s, "!") || strings.HasSuffix(s, "?") {
		return s
	}
	return s + "."
}

func capital(s string) string {
	if after, found := strings.CutPrefix(s, "the "); found {
		return "The " + after
	}
	return s // a name is written as it is
}

// oneLine joins what a person or a platform gave into one line.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

func clock(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }

func orList(names []string) string  { return list(names, " or ") }
func andList(names []string) string { return list(names, " and ") }

// list writes "a", "a or b", "a, b or c".
func list(names []string, last string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	end := len(names) - 1
	return strings.Join(names[:end], ", ") + last + names[end]
}
