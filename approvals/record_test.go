package approvals

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

func approvedByTwo(t testing.TB) Request {
	r := opened(t, "slack:UADA,slack:group:SOPS", 2)
	bo := bo
	bo.Groups = []string{"SOPS"}
	r.Cards = []Card{{Platform: "slack", Conversation: "T1/C1/1.0", Ref: "T1/C1/2.0", Mark: string(r.ID), Hash: r.Hash}}
	return after(t, r,
		Approve{By: ada, At: noon.Add(time.Minute), Hash: r.Hash},
		Approve{By: bo, At: noon.Add(2 * time.Minute), Hash: r.Hash})
}

func TestTheRecordKeepsItsForm(t *testing.T) {
	pending := opened(t, "slack:UADA", 1)
	denied := after(t, pending, Deny{By: ada, At: noon.Add(time.Minute), Reason: "not on a Sunday"})
	for name, r := range map[string]Request{
		"pending.json": pending, "approved.json": approvedByTwo(t), "denied.json": denied,
		"expired.json":   after(t, pending, Expire{At: noon.Add(time.Hour)}),
		"cancelled.json": after(t, pending, Cancel{At: noon.Add(time.Minute), Reason: "the asking message was deleted"}),
	} {
		t.Run(name, func(t *testing.T) {
			text := asJSON(t, r)
			golden(t, name, text)
			var back Request
			if err := json.Unmarshal([]byte(text), &back); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(back, r) {
				t.Errorf("read back: got\n%+v\nwant\n%+v", back, r)
			}
		})
	}
}

func TestDecisionsAndAuditEntriesKeepTheirForm(t *testing.T) {
	pending := opened(t, "slack:UADA", 1)
	deny := Deny{By: ada, At: noon.Add(time.Minute), Reason: "not on a Sunday"}
	denied, v := pending.Apply(deny)
	for name, r := range map[string]Request{
		"decision_approved.json": approvedByTwo(t), "decision_denied.json": denied,
		"decision_expired.json": after(t, pending, Expire{At: noon.Add(time.Hour)}),
	} {
		d, ok := r.Decision()
		if !ok {
			t.Fatalf("%s: no decision of a request that ended", name)
		}
		text := asJSON(t, d)
		golden(t, name, text)
		var back Decision
		if err := json.Unmarshal([]byte(text), &back); err != nil || back != d {
			t.Errorf("%s read back: got %+v, %v, want %+v", name, back, err, d)
		}
	}
	if d, ok := pending.Decision(); ok {
		t.Errorf("a pending request has the decision %+v", d)
	}
	entries := []Entry{pending.Entry(KindRequested, pending.Requester, SurfaceTurn, "", noon)}
	entries = append(entries, Trace(deny, denied, v, Click("slack"))...)
	for i := range entries {
		entries[i].Seq = uint64(i + 1)
	}
	text := asJSON(t, entries)
	golden(t, "audit.json", text)
	var back []Entry
	if err := json.Unmarshal([]byte(text), &back); err != nil || !reflect.DeepEqual(back, entries) {
		t.Errorf("audit read back: got %+v, %v, want %+v", back, err, entries)
	}
	later := strings.Replace(text, `"version": 1`, `"version": 2`, 1)
	if err := json.Unmarshal([]byte(later), &back); err == nil || !strings.Contains(err.Error(), "version 2 is unknown") {
		t.Errorf("a later entry: got %v, want an error that names the version", err)
	}
}

func TestTheAuditTellsEveryVote(t *testing.T) {
	r := opened(t, "slack:UADA,slack:UBO", 2)
	at := noon.Add(time.Minute)
	type line struct {
		kind   Kind
		actor  string
		detail string
	}
	for _, c := range []struct {
		name  string
		event Event
		want  []line
	}{
		{"a refused vote", Approve{By: guest, At: at, Hash: r.Hash}, []line{{KindVoteRefused, "Gus", "external"}}},
		{"a refused denial", Deny{By: cy, At: at}, []line{{KindVoteRefused, "Cy", "not_permitted"}}},
		{"a first vote", Approve{By: ada, At: at, Hash: r.Hash}, []line{{KindVoted, "Ada", "1 of 2"}}},
		{"the same again", Approve{By: ada, At: at, Hash: r.Hash}, []line{{KindVoteRefused, "Ada", "already_voted"}}},
		{"an expiry too early", Expire{At: at}, nil},
		{"the last vote", Approve{By: bo, At: at, Hash: r.Hash}, []line{{KindVoted, "Bo", "2 of 2"}, {KindDecided, "Bo", "approved"}}},
		{"a vote too late", Deny{By: bo, At: at}, []line{{KindVoteRefused, "Bo", "already_decided"}}},
		{"a stop too late", Cancel{By: cy, At: at}, nil},
	} {
		next, v := r.Apply(c.event)
		var got []line
		for _, e := range Trace(c.event, next, v, Click("slack")) {
			got = append(got, line{e.Kind, e.Actor.Name, e.Detail})
			if e.Request != r.ID || e.Hash != r.Hash || e.Surface != "slack click" || !e.At.Equal(at) {
				t.Errorf("%s: got the entry %+v, want it to carry request, hash, surface and time", c.name, e)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
		r = next
	}
	expiry := Expire{At: noon.Add(time.Hour)}
	ended, v := opened(t, "slack:UADA", 1).Apply(expiry)
	if got := Trace(expiry, ended, v, SurfaceTimer); len(got) != 1 || got[0].Detail != "expired" || !got[0].Actor.IsZero() {
		t.Errorf("an expiry: got %+v, want one entry of nobody", got)
	}
}

func TestARecordThatBreaksARuleIsNeitherReadNorWritten(t *testing.T) {
	pending, approved := opened(t, "slack:UADA,slack:UCY", 1), approvedByTwo(t)
	denied := after(t, pending, Deny{By: ada, At: noon})
	vote := func(by Actor, under string) []Vote {
		return []Vote{{By: by, At: noon, Under: patterns(t, under)[0]}}
	}
	for _, c := range []struct {
		name    string
		from    Request
		spoil   func(*Request)
		problem string
	}{
		{"an unknown version", pending, func(r *Request) { r.Version = 2 }, "record version 2 is unknown, this program reads version 1"},
		{"no version", pending, func(r *Request) { r.Version = 0 }, "record version 0 is unknown"},
		{"no id", pending, func(r *Request) { r.ID = "x" }, "is not the id"},
		{"no calls", pending, func(r *Request) { r.Calls = nil }, "without calls"},
		{"changed calls", pending, func(r *Request) {
			r.Calls = []Call{{Tool: "destroy", Arguments: json.RawMessage(`{}`)}}
		}, "is not that of the calls"},
		{"no quorum", pending, func(r *Request) { r.Quorum = 0 }, "at least one person"},
		{"no beginning", pending, func(r *Request) { r.CreatedAt = time.Time{} }, "no time of creation"},
		{"an end before the beginning", pending, func(r *Request) { r.ExpiresAt = r.CreatedAt }, "before it was made"},
		{"an unknown state", pending, func(r *Request) { r.State = "waved_through" }, "unknown state"},
		{"a pending outcome", pending, func(r *Request) { r.Outcome = approved.Outcome }, "yet it has an outcome"},
		{"pending with enough votes", pending, func(r *Request) { r.Votes = vote(ada, "slack:UADA") }, "enough people approved"},
		{"an end without outcome", approved, func(r *Request) { r.Outcome = nil }, "without an outcome"},
		{"an end with another outcome", approved, func(r *Request) { r.Outcome = denied.Outcome }, "without an outcome that says so"},
		{"an end at no time", denied, func(r *Request) { r.Outcome = &Outcome{State: Denied, By: ada} }, "at no time"},
		{"an approval without votes", approved, func(r *Request) { r.Votes = nil }, "0 of 2"},
		{"an approval with a vote too few", approved, func(r *Request) { r.Votes = r.Votes[:1] }, "1 of 2"},
		{"an approval by another", approved, func(r *Request) {
			r.Outcome = &Outcome{State: Approved, By: cy, At: noon}
		}, "not the last to vote"},
		{"a denial by nobody", denied, func(r *Request) { r.Outcome = &Outcome{State: Denied, At: noon} }, "by nobody"},
		{"a denial by a bot", denied, func(r *Request) { r.Outcome = &Outcome{State: Denied, By: robot, At: noon} }, "by nobody"},
		{"a denial after approval", denied, func(r *Request) { r.Votes = vote(ada, "slack:UADA") }, "1 of 1"},
		{"a person twice", approved, func(r *Request) { r.Votes = []Vote{r.Votes[0], r.Votes[0]} }, "voted twice"},
		{"a vote of a bot", approved, func(r *Request) { r.Votes = vote(robot, "slack:UADA") }, "a bot"},
		{"a vote of nobody", approved, func(r *Request) { r.Votes = vote(Actor{}, "slack:UADA") }, "no voter"},
		{"a vote of the requester", pending, func(r *Request) { r.Votes = vote(cy, "slack:UCY") }, "their own request"},
		{"a vote under no decider", approved, func(r *Request) { r.Votes = vote(bo, "slack:UBO") }, "which is no decider"},
		{"a vote under another's name", approved, func(r *Request) { r.Votes = vote(bo, "slack:UADA") }, "means others"},
		{"an external vote under a group", approved, func(r *Request) { r.Votes = vote(guest, "slack:group:SOPS") }, "means others"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := c.from
			c.spoil(&r)
			if text, err := json.Marshal(r); err == nil || !strings.Contains(err.Error(), c.problem) {
				t.Errorf("writing: got %s, %v, want an error that says %q", text, err, c.problem)
			}
			text, err := json.Marshal(record(r)) // as a faulty program would
			if err != nil {
				t.Fatal(err)
			}
			var back Request
			if err := json.Unmarshal(text, &back); err == nil || !strings.Contains(err.Error(), c.problem) {
				t.Errorf("reading: got %v, want an error that says %q", err, c.problem)
			}
			if !reflect.DeepEqual(back, Request{}) {
				t.Errorf("reading: got %+v beside the error", back)
			}
		})
	}
}

func TestARecordOfALaterVersionMayHaveAnyForm(t *testing.T) {
	var r Request
	err := json.Unmarshal([]byte(`{"version":7,"id":["another","form"]}`), &r)
	if err == nil || !strings.Contains(err.Error(), "record version 7 is unknown") {
		t.Errorf("got %v, want an error that names the version", err)
	}
}

func TestOnlyAnApprovalOfExactlyTheseCallsPermitsThem(t *testing.T) {
	r := approvedByTwo(t)
	approved, _ := r.Decision()
	denied, _ := after(t, opened(t, "slack:UADA", 1), Deny{By: ada, At: noon}).Decision()
	expired, _ := after(t, opened(t, "slack:UADA", 1), Expire{At: noon.Add(time.Hour)}).Decision()
	changed := slices.Clone(r.Calls)
	changed[0].Arguments = json.RawMessage(`{"env":"<prod>","version":"v3"}`)
	byNobody := approved
	byNobody.By = Principal{}
	for _, c := range []struct {
		name  string
		d     Decision
		calls []Call
		ok    bool
	}{
		{"approved", approved, r.Calls, true},
		{"approved, but something else", approved, changed, false},
		{"approved, but more", approved, append(changed, r.Calls...), false},
		{"approved, but nothing", approved, nil, false},
		{"approved by nobody", byNobody, r.Calls, false},
		{"denied", denied, r.Calls, false},
		{"expired", expired, r.Calls, false},
		{"not decided", Decision{}, r.Calls, false},
		{"pending", Decision{State: Pending, Hash: r.Hash}, r.Calls, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := c.d.Permit(c.calls); (err == nil) != c.ok {
				t.Errorf("got %v, want permitted: %v", err, c.ok)
			}
		})
	}
	for _, text := range []string{`{}`, `{"state":"pending"}`, `{"state":"approved","hash":"x"}`, `{"state":"denied","by":"slack:U1"}`,
		`{"state":"denied","by":"nonsense","hash":"x","tool_result":"no"}`, `{"state":"expired","hash":"x"}`, `[]`} {
		var d Decision
		if err := json.Unmarshal([]byte(text), &d); err == nil {
			t.Errorf("%s: got the decision %+v, want an error", text, d)
		}
	}
}

func FuzzRequestJSON(f *testing.F) {
	pending := opened(f, "slack:UADA,slack:group:SOPS", 1)
	for _, r := range []Request{
		pending, approvedByTwo(f), after(f, pending, Deny{By: ada, At: noon, Reason: "no"}),
		after(f, pending, Expire{At: noon.Add(time.Hour)}), after(f, pending, Cancel{At: noon}),
	} {
		f.Add([]byte(asJSON(f, r)))
	}
	f.Add([]byte(`{"version":2}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var r Request
		if json.Unmarshal(data, &r) != nil || r.Version == 0 { // null leaves a value as it is
			return
		}
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatalf("read but not written: %v", err)
		}
		var back Request
		if err := json.Unmarshal(text, &back); err != nil {
			t.Fatalf("written but not read: %v\n%s", err, text)
		}
		if again, err := json.Marshal(back); err != nil || string(again) != string(text) {
			t.Fatalf("written again: got %s, %v, want %s", again, err, text)
		}
		r.View(noon)
		r.Apply(Approve{By: ada, At: noon, Hash: r.Hash})
	})
}

func FuzzCanonical(f *testing.F) {
	for _, seed := range []string{`{}`, `{"b":1,"a":[1.0,{"c":"\u2028\ud800"}]}`, `{"a":1,"a":2}`, `[]`, "{\"\xff\":1}", `{"a":"\u202e"}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		once, err := Canonical(data)
		if err != nil {
			return
		}
		twice, err := Canonical(once)
		if err != nil || string(twice) != string(once) {
			t.Fatalf("twice: got %s, %v, want %s", twice, err, once)
		}
		// What is shown means the same as what runs.
		shown, err := Canonical(json.RawMessage(pretty(once)))
		if err != nil || string(shown) != string(once) {
			t.Fatalf("as shown: got %s, %v, want %s", shown, err, once)
		}
	})
}
