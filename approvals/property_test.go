package approvals

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// somebody is an actor of the property test, with what the policy below says about them, written by hand: the test
// must not ask the code under test who may do what.
type somebody struct {
	Actor
	person           string
	mayDeny, mayVote bool
}

// cast are the people around a request of Cy's whose deciders are castDeciders.
func cast() []somebody {
	member, unclear, guestMember := person("T1/UDEE", "Dee"), person("T1/UEVE", "Eve"), person("T9/UFAY", "Fay")
	member.Groups, unclear.Unresolved = []string{"SOPS"}, []string{"SOPS"}
	guestMember.Groups, guestMember.External = []string{"SOPS"}, true
	botMember := robot
	botMember.Groups = []string{"SOPS"}
	return []somebody{
		{ada, "ada", true, true},
		{person("T2/UADA", "Ada"), "ada", true, true}, // the same, clicking under another team
		{bo, "bo", true, true},
		{person("T2/UBO", "Bo"), "bo", false, false}, // Bo is named exactly, as of T1
		{cy, "cy", true, false},                      // named, but it is their own request
		{guest, "gus", true, true},                   // external, but named exactly
		{Actor{Principal: Principal{"slack", "T9/UADA"}, External: true}, "another ada", false, false},
		{member, "dee", true, true},
		{unclear, "eve", false, false},
		{guestMember, "fay", false, false},
		{botMember, "robot", false, false},
		{Actor{Principal: Principal{"discord", "UADA"}}, "other", false, false},
		{Actor{}, "nobody", false, false},
	}
}

const castDeciders = "slack:UADA,slack:T1/UBO,slack:UCY,slack:T9/UGUEST,slack:group:SOPS"

// step draws an event, and says whether it asks for the right thing.
func step(t *rapid.T, r Request, people []somebody) (Event, somebody, bool) {
	who := rapid.SampledFrom(people).Draw(t, "who")
	at := noon.Add(time.Duration(rapid.IntRange(0, 80).Draw(t, "minute")) * time.Minute)
	switch rapid.SampledFrom([]string{"approve", "approve", "approve", "approve", "stale", "deny", "expire", "cancel"}).Draw(t, "event") {
	case "approve":
		return Approve{By: who.Actor, At: at, Hash: r.Hash}, who, true
	case "stale":
		return Approve{By: who.Actor, At: at, Hash: "of something else"}, who, false
	case "deny":
		return Deny{By: who.Actor, At: at, Reason: "no"}, who, true
	case "expire":
		return Expire{At: at}, somebody{}, true
	}
	return Cancel{By: who.Actor, At: at}, who, true
}

func TestNoInterleavingBreaksARequest(t *testing.T) {
	people := cast()
	reached := map[State]int{}
	rapid.Check(t, func(rt *rapid.T) {
		r := opened(t, castDeciders, rapid.IntRange(1, 4).Draw(rt, "quorum"))
		voters := map[string]bool{} // by our own count
		var ended *Outcome

		for range rapid.IntRange(1, 25).Draw(rt, "steps") {
			if rapid.Bool().Draw(rt, "restart") {
				r = reread(rt, r)
			}
			e, who, honest := step(rt, r, people)
			before := r
			var v Verdict
			r, v = r.Apply(e)

			if v.Text == "" {
				rt.Fatalf("%#v was answered with silence: %+v", e, v)
			}
			if !v.Accepted() && !reflect.DeepEqual(r, before) {
				rt.Fatalf("%#v was refused (%s) and yet changed the request", e, v.Code)
			}
			if ended != nil && (v.Accepted() || !reflect.DeepEqual(r.Outcome, ended)) {
				rt.Fatalf("after the end %+v, %#v gave %s and %+v", ended, e, v.Code, r.Outcome)
			}
			if v.Accepted() {
				checkAccepted(rt, e, who, honest, voters)
			} else if ended == nil {
				checkRefused(rt, e, who, honest, voters)
			}
			if v.Code == Decided {
				ended = r.Outcome
			}
			checkEnd(rt, r, ended, voters)
		}
		reached[r.State]++
	})
	for _, s := range []State{Pending, Approved, Denied, Expired, Cancelled} {
		if reached[s] == 0 {
			t.Errorf("no run came to %s: the test does not test it", s)
		}
	}
}

func overdue(at time.Time) bool { return !at.Before(noon.Add(time.Hour)) }

// checkAccepted counts an accepted event, which must have been allowed.
func checkAccepted(t *rapid.T, e Event, who somebody, honest bool, voters map[string]bool) {
	switch e := e.(type) {
	case Approve:
		if !who.mayVote || !honest || voters[who.person] || overdue(e.At) {
			t.Fatalf("%s's approval was accepted: %+v", who.person, e)
		}
		voters[who.person] = true
	case Deny:
		if !who.mayDeny || overdue(e.At) {
			t.Fatalf("%s's denial was accepted: %+v", who.person, e)
		}
	case Expire:
		if !overdue(e.At) {
			t.Fatalf("it expired before its time: %+v", e)
		}
	}
}

// checkRefused finds what should have been accepted: a machine that refuses everything is safe, and useless.
func checkRefused(t *rapid.T, e Event, who somebody, honest bool, voters map[string]bool) {
	switch e := e.(type) {
	case Approve:
		if who.mayVote && honest && !voters[who.person] && !overdue(e.At) {
			t.Fatalf("%s's approval was refused: %+v", who.person, e)
		}
	case Deny:
		if who.mayDeny && !overdue(e.At) {
			t.Fatalf("%s's denial was refused: %+v", who.person, e)
		}
	case Expire:
		if overdue(e.At) {
			t.Fatalf("it did not expire: %+v", e)
		}
	case Cancel:
		t.Fatalf("a pending request was not cancelled: %+v", e)
	}
}

// checkEnd wants an outcome exactly if there was an end, a decider of every decision, and what it permits to follow.
func checkEnd(t *rapid.T, r Request, ended *Outcome, voters map[string]bool) {
	if (r.Outcome != nil) != (ended != nil) || (r.State == Pending) != (ended == nil) {
		t.Fatalf("state %s with outcome %+v, want the outcome %+v", r.State, r.Outcome, ended)
	}
	d, ok := r.Decision()
	if ok != (ended != nil) {
		t.Fatalf("state %s has a decision: %v", r.State, ok)
	}
	if (r.State == Approved || r.State == Denied) && r.Outcome.By.IsZero() {
		t.Fatalf("%s by nobody", r.State)
	}
	if (r.State == Approved) != (len(voters) >= r.Quorum) {
		t.Fatalf("%s with the votes of %v, of %d needed", r.State, voters, r.Quorum)
	}
	if permitted := d.Permit(r.Calls) == nil; permitted != (r.State == Approved) {
		t.Fatalf("%s, and the calls are permitted: %v", r.State, permitted)
	}
	if open := r.View(noon).Buttons != nil; open != (ended == nil) {
		t.Fatalf("%s, and the card has buttons: %v", r.State, open)
	}
}

// reread is a restart: only what was stored is left.
func reread(t *rapid.T, r Request) Request {
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatalf("write: %v", err)
	}
	var back Request
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatalf("read: %v", err)
	}
	if !reflect.DeepEqual(back, r) {
		t.Fatalf("read back: got %+v, want %+v", back, r)
	}
	return back
}
