package approvals

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// after applies the events and wants each to be accepted.
func after(t testing.TB, r Request, events ...Event) Request {
	t.Helper()
	for _, e := range events {
		next, v := r.Apply(e)
		if !v.Accepted() {
			t.Fatalf("%#v was refused: %s: %s", e, v.Code, v.Text)
		}
		r = next
	}
	return r
}

func TestEveryEventInEveryState(t *testing.T) {
	one := opened(t, "slack:UADA,slack:UBO,slack:UCY,slack:group:SOPS", 1)
	two := opened(t, "slack:UADA,slack:UBO,slack:T9/UGUEST", 2)
	nobody := opened(t, "", 1)
	own := one
	own.SelfApproval = true
	eternal := one
	eternal.ExpiresAt = time.Time{}

	at := noon.Add(10 * time.Minute)
	late := noon.Add(time.Hour)
	yes := func(by Actor) Approve { return Approve{By: by, At: at, Hash: one.Hash} }
	no := func(by Actor) Deny { return Deny{By: by, At: at, Reason: " too risky\n"} }
	stop := Cancel{By: cy, At: at, Reason: "stopped"}

	half := after(t, two, yes(ada))
	approved, denied := after(t, one, yes(ada)), after(t, one, no(ada))
	expired, cancelled := after(t, one, Expire{At: late}), after(t, one, stop)

	operator := person("T1/UDEE", "Dee")
	operator.Groups = []string{"SOPS"}
	unclear := person("T1/UDEE", "Dee")
	unclear.Unresolved = []string{"SOPS"}
	elsewhere := person("T2/UADA", "Ada")
	ownElsewhere := person("T2/UCY", "Cy")
	adaOnDiscord := Actor{Principal: Principal{"discord", "UADA"}}
	guestInGroup := guest
	guestInGroup.Groups = []string{"SOPS"}

	for _, c := range []struct {
		name  string
		from  Request
		event Event
		code  Code
		state State
		says  string
	}{
		{"one approval of one decides", one, yes(ada), Decided, Approved, "Approved by Ada at 2026-03-01 12:10 UTC."},
		{"a group member's approval decides", one, yes(operator), Decided, Approved, "Approved by Dee at"},
		{"the first of two is counted", two, yes(ada), Counted, Pending, "1 of 2"},
		{"the second of two decides", half, yes(bo), Decided, Approved, "Approved by Ada and Bo at"},
		{"an external person named exactly counts", half, yes(guest), Decided, Approved, "Approved by Ada and Gus at"},
		{"a second vote of one person is none", half, yes(ada), AlreadyVoted, Pending, "already. It has 1 of 2"},
		{"nor is it under another team", half, yes(elsewhere), AlreadyVoted, Pending, "already. It has 1 of 2"},
		{"somebody not named may not approve", two, yes(operator), NotPermitted, Pending, "Ada, Bo or slack:T9/UGUEST may."},
		{"nobody may where nobody is named", nobody, yes(ada), NotPermitted, Pending, "no approver is named"},
		{"a member's membership must be known", one, yes(person("T1/UDEE", "Dee")), NotPermitted, Pending, "the members of Operators may."},
		{"an unclear membership is a no for now", one, yes(unclear), GroupsUnknown, Pending, "try again"},
		{"an external person not named may not approve", one, yes(guest), ExternalPerson, Pending, "a guest here"},
		{"not even as a member of a group", one, yes(guestInGroup), ExternalPerson, Pending, "a guest here"},
		{"the same id on another platform is somebody else", one, yes(adaOnDiscord), NotPermitted, Pending, "may not decide"},
		{"a bot may not approve", one, yes(robot), BotActor, Pending, "Programs may not"},
		{"nobody in person may not approve", one, yes(Actor{}), NotPermitted, Pending, "may not decide"},
		{"the requester may not approve", one, yes(cy), OwnRequest, Pending, "somebody else must approve it. Ada, Bo or the members"},
		{"nor under another team", one, yes(ownElsewhere), OwnRequest, Pending, "somebody else"},
		{"the requester may approve if the policy says so", own, yes(cy), Decided, Approved, "Approved by Cy"},
		{"an approval of something else is none", one, Approve{By: ada, At: at, Hash: "other"}, StaleHash, Pending, "has changed"},
		{"an approval of nothing is none", one, Approve{By: ada, At: at}, StaleHash, Pending, "has changed"},
		{"an approval in the last moment counts", one, Approve{By: ada, At: late.Add(-1), Hash: one.Hash}, Decided, Approved, "Approved"},
		{"an approval when time has run out is too late", one, Approve{By: ada, At: late, Hash: one.Hash}, TimeRanOut, Pending, "ran out at 2026-03-01 13:00 UTC"},
		{"an approval without an end is never too late", eternal, Approve{By: ada, At: late.AddDate(9, 0, 0), Hash: one.Hash}, Decided, Approved, "Approved"},

		{"one denial decides", two, no(bo), Decided, Denied, "Denied by Bo at 2026-03-01 12:10 UTC: too risky."},
		{"a denial after approving is a change of mind", half, no(ada), Decided, Denied, "Denied by Ada"},
		{"a requester who may decide may deny", one, no(cy), Decided, Denied, "Denied by Cy"},
		{"a denial needs no reason", one, Deny{By: ada, At: at}, Decided, Denied, "Denied by Ada at 2026-03-01 12:10 UTC."},
		{"somebody not named may not deny", two, no(operator), NotPermitted, Pending, "may not decide"},
		{"an external person not named may not deny", one, no(guest), ExternalPerson, Pending, "a guest here"},
		{"a bot may not deny", one, no(robot), BotActor, Pending, "Programs may not"},
		{"an unclear membership may not deny", one, no(unclear), GroupsUnknown, Pending, "try again"},
		{"a denial when time has run out is too late", one, Deny{By: ada, At: late}, TimeRanOut, Pending, "ran out"},

		{"it expires when the time has run out", one, Expire{At: late}, Decided, Expired, "No answer by 2026-03-01 13:00 UTC."},
		{"it expires with half of its votes", half, Expire{At: late}, Decided, Expired, "No answer by 2026-03-01 13:00 UTC (1 of 2 approvals)."},
		{"it does not expire before", one, Expire{At: late.Add(-1)}, NotDue, Pending, "can be decided until 2026-03-01 13:00 UTC"},
		{"it never expires without an end", eternal, Expire{At: late.AddDate(9, 0, 0)}, NotDue, Pending, "does not expire"},

		{"it is cancelled by anybody", one, stop, Decided, Cancelled, "Cancelled by Cy at 2026-03-01 12:10 UTC: stopped."},
		{"it is cancelled by nobody in person", half, Cancel{At: at}, Decided, Cancelled, "Cancelled at 2026-03-01 12:10 UTC."},
		{"it is cancelled even when time has run out", one, Cancel{At: late, By: cy}, Decided, Cancelled, "Cancelled by Cy"},

		{"approved, then approved", approved, yes(bo), AlreadyDecided, Approved, "settled already. Approved by Ada at"},
		{"approved, then approved again by the same", approved, yes(ada), AlreadyDecided, Approved, "settled already. Approved by Ada at"},
		{"approved, then denied", approved, no(bo), AlreadyDecided, Approved, "settled already. Approved by Ada at"},
		{"approved, then expired", approved, Expire{At: late}, AlreadyDecided, Approved, "settled already"},
		{"approved, then cancelled", approved, stop, AlreadyDecided, Approved, "settled already"},
		{"denied, then approved", denied, yes(bo), AlreadyDecided, Denied, "settled already. Denied by Ada at 2026-03-01 12:10 UTC: too risky."},
		{"denied, then denied", denied, no(bo), AlreadyDecided, Denied, "Denied by Ada"},
		{"denied, then expired", denied, Expire{At: late}, AlreadyDecided, Denied, "Denied by Ada"},
		{"denied, then cancelled", denied, stop, AlreadyDecided, Denied, "Denied by Ada"},
		{"expired, then approved", expired, yes(ada), TimeRanOut, Expired, "ran out"},
		{"expired, then denied", expired, no(ada), TimeRanOut, Expired, "ran out"},
		{"expired, then expired", expired, Expire{At: late}, TimeRanOut, Expired, "ran out"},
		{"expired, then cancelled", expired, stop, TimeRanOut, Expired, "ran out"},
		{"cancelled, then approved", cancelled, yes(ada), AlreadyDecided, Cancelled, "settled already. Cancelled by Cy"},
		{"cancelled, then denied", cancelled, no(ada), AlreadyDecided, Cancelled, "Cancelled by Cy"},
		{"cancelled, then expired", cancelled, Expire{At: late}, AlreadyDecided, Cancelled, "Cancelled by Cy"},
		{"cancelled, then cancelled", cancelled, stop, AlreadyDecided, Cancelled, "Cancelled by Cy"},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := asJSON(t, c.from)
			got, v := c.from.Apply(c.event)
			if v.Code != c.code || got.State != c.state {
				t.Errorf("got %s, now %s, want %s, now %s", v.Code, got.State, c.code, c.state)
			}
			if !strings.Contains(v.Text, c.says) {
				t.Errorf("got the text %q, want it to say %q", v.Text, c.says)
			}
			if now := asJSON(t, c.from); now != before {
				t.Errorf("the request before was changed: got\n%s\nwant\n%s", now, before)
			}
			if !v.Accepted() && asJSON(t, got) != before {
				t.Errorf("a refused event changed the request: got\n%s\nwant\n%s", asJSON(t, got), before)
			}
			if err := got.Validate(); err != nil {
				t.Errorf("the request after: %v", err)
			}
		})
	}
}

func TestTheVerdictCountsApprovals(t *testing.T) {
	r := opened(t, "slack:UADA,slack:UBO", 2)
	_, v := r.Apply(Approve{By: ada, At: noon, Hash: r.Hash})
	if v.Approvals != 1 || v.Quorum != 2 {
		t.Errorf("got %d of %d, want 1 of 2", v.Approvals, v.Quorum)
	}
}

func TestARequesterAloneIsToldThatNobodyElseMay(t *testing.T) {
	r := opened(t, "slack:UCY", 1)
	_, v := r.Apply(Approve{By: cy, At: noon, Hash: r.Hash})
	if v.Code != OwnRequest || !strings.Contains(v.Text, "nobody else may") {
		t.Errorf("got %s %q, want self, and that nobody else may", v.Code, v.Text)
	}
}

func TestTwoFuturesOfOneRequestDoNotMix(t *testing.T) {
	r := opened(t, "slack:group:SOPS", 9)
	member := func(name string) Approve {
		by := person("T1/U"+name, name)
		by.Groups = []string{"SOPS"}
		return Approve{By: by, At: noon, Hash: r.Hash}
	}
	for _, name := range []string{"A", "B", "C", "D", "E"} { // at each length, whatever room append leaves
		withX, withY := after(t, r, member("X")), after(t, r, member("Y"))
		last := len(r.Votes)
		if x, y := withX.Votes[last].By.Name, withY.Votes[last].By.Name; x != "X" || y != "Y" {
			t.Errorf("after %d votes: got %s and %s, want X and Y", last, x, y)
		}
		r = after(t, r, member(name))
	}
}

func TestOnlyGroupsThatDecideAreLookedUp(t *testing.T) {
	r := opened(t, "slack:UADA,slack:group:SOPS,slack:group:T1/SDEV,discord:group:7", 1)
	dee := person("T1/UDEE", "Dee")
	member := dee
	member.Groups = []string{"SOPS"}
	for _, c := range []struct {
		name string
		r    Request
		by   Actor
		want []string
	}{
		{"somebody not named", r, dee, []string{"SOPS", "T1/SDEV"}},
		{"somebody of another platform", r, Actor{Principal: Principal{"discord", "1"}}, []string{"7"}},
		{"somebody named", r, ada, nil},
		{"somebody whose membership is known", r, member, nil},
		{"a bot", r, robot, nil},
		{"an external person", r, guest, nil},
		{"somebody too late", after(t, r, Cancel{At: noon}), dee, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.r.NeedsGroups(c.by); !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
