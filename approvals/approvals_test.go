package approvals

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func person(user, name string) Actor {
	return Actor{Principal: Principal{"slack", user}, Name: name}
}

var (
	ada   = person("T1/UADA", "Ada")
	bo    = person("T1/UBO", "Bo")
	cy    = person("T1/UCY", "Cy")
	guest = Actor{Principal: Principal{"slack", "T9/UGUEST"}, Name: "Gus", External: true}
	robot = Actor{Principal: Principal{"slack", "T1/UADA"}, Name: "robot", Bot: true}
)

const testID = ID("abcdefghijkmnpqrstuv")

func patterns(t testing.TB, list string) []Pattern {
	t.Helper()
	p, err := ParsePatterns(list)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// opened is a request of Cy's that expires at one o'clock.
func opened(t testing.TB, deciders string, quorum int) Request {
	t.Helper()
	ask := Ask{
		SessionID: "slack:T1/C1/1.0", InvocationID: "inv-1", TurnID: "Ev1", Platform: "slack", Conversation: "T1/C1/1.0",
		Calls: []Call{{
			ID: "call_1", Tool: "deploy", Arguments: json.RawMessage(`{"version": "v2", "env":"<prod>"}`), Destructive: true,
		}},
		Reason:    "The tests passed.",
		Requester: cy,
	}
	names := map[string]string{"slack:UADA": "Ada", "slack:UBO": "Bo", "slack:UCY": "Cy", "slack:group:SOPS": "Operators"}
	r, err := New(testID, ask, Policy{Deciders: patterns(t, deciders), Names: names, Quorum: quorum, Within: time.Hour}, noon)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func asJSON(t testing.TB, v any) string {
	t.Helper()
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b) + "\n"
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
	}
}

func TestAnIDHasTwentyUnmistakableSigns(t *testing.T) {
	all := make([]byte, 0, 260)
	for b := range 260 {
		all = append(all, byte(b))
	}
	source, seen := bytes.NewReader(all), map[rune]int{}
	for range 13 {
		id := NewID(source)
		if len(id) != 20 {
			t.Errorf("got %q of length %d, want 20", id, len(id))
		}
		if parsed, err := ParseID(" " + strings.ToUpper(string(id)) + "\n"); err != nil || parsed != id {
			t.Errorf("ParseID of %q typed in capitals: got %q, %v", id, parsed, err)
		}
		for _, r := range id {
			seen[r]++
		}
	}
	if len(seen) != 32 {
		t.Errorf("got %d different signs of all bytes, want 32", len(seen))
	}
	for _, confusing := range "0o1l" {
		if seen[confusing] > 0 {
			t.Errorf("an id contains %q", confusing)
		}
	}
}

func TestNewIDDoesNotGoOnWithoutRandomness(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("got an id from a broken source, want a panic")
		}
	}()
	NewID(iotest.ErrReader(errors.New("broken")))
}

func TestWhatIsNoIDIsRefused(t *testing.T) {
	for _, s := range []string{"", "abc", "abcdefghijkmnpqrstu0", "abcdefghijkmnpqrstuvw", "abcdefghij mnpqrstuv"} {
		if id, err := ParseID(s); err == nil {
			t.Errorf("ParseID(%q): got %q, want an error", s, id)
		}
	}
}

func TestAPrincipalIsReadAsItIsPrinted(t *testing.T) {
	for _, s := range []string{"slack:T1/U1", "slack:U1", "discord:123", "matrix:@ada:example.org"} {
		p, err := ParsePrincipal(s)
		if err != nil || p.String() != s {
			t.Errorf("ParsePrincipal(%q): got %q, %v", s, p, err)
		}
	}
	for _, s := range []string{"", "U1", "slack:", ":U1", "Slack:U1", "sl ack:U1"} {
		if p, err := ParsePrincipal(s); err == nil {
			t.Errorf("ParsePrincipal(%q): got %q, want an error", s, p)
		}
	}
}

func TestTheSamePersonIsKnownUnderAnotherTeam(t *testing.T) {
	for _, c := range []struct {
		a, b Principal
		want bool
	}{
		{Principal{"slack", "T1/U1"}, Principal{"slack", "T2/U1"}, true},
		{Principal{"slack", "T1/U1"}, Principal{"slack", "U1"}, true},
		{Principal{"slack", "T1/U1"}, Principal{"slack", "T1/U2"}, false},
		{Principal{"slack", "1"}, Principal{"discord", "1"}, false},
		{Principal{}, Principal{}, false},
		{Principal{"slack", "T1/"}, Principal{"slack", "T1/"}, false},
	} {
		if got := c.a.SamePerson(c.b); got != c.want {
			t.Errorf("%q and %q the same person: got %v, want %v", c.a, c.b, got, c.want)
		}
	}
}

func TestArgumentsHaveOneForm(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"keys are sorted and space goes", "{ \"b\" : 1,\n\"a\":[ {\"d\":null,\"c\":true} ] }", `{"a":[{"c":true,"d":null}],"b":1}`},
		{"numbers stay as they were written", `{"n":9007199254740993,"m":1.50,"k":1E400}`, `{"k":1E400,"m":1.50,"n":9007199254740993}`},
		{"strings are written in one way", `{"s":"\u0041\/<&>\u00e9"}`, `{"s":"A/<&>é"}`},
		{"nothing is an object too", `{}`, `{}`},
		{"empty lists stay", `{"a":[],"b":{}}`, `{"a":[],"b":{}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Canonical(json.RawMessage(c.in))
			if err != nil || string(got) != c.want {
				t.Errorf("got %s, %v, want %s", got, err, c.want)
			}
		})
	}
	for _, in := range []string{``, `null`, `[]`, `"x"`, `{`, `{} {}`, `{"a":1,"a":2}`, `{"x":[{"a":1,"\u0061":2}]}`} {
		if got, err := Canonical(json.RawMessage(in)); err == nil {
			t.Errorf("Canonical(%s): got %s, want an error", in, got)
		}
	}
	nested := func(lists int) json.RawMessage {
		return json.RawMessage(`{"a":` + strings.Repeat("[", lists) + strings.Repeat("]", lists) + `}`)
	}
	if _, err := Canonical(nested(maxDepth - 1)); err != nil {
		t.Errorf("nested %d deep: got %v, want no error", maxDepth, err)
	}
	if _, err := Canonical(nested(maxDepth)); err == nil || !strings.Contains(err.Error(), "nested deeper than 100") {
		t.Errorf("nested %d deep: got %v, want an error that says so", maxDepth+1, err)
	}
}

func TestTheHashIsOfWhatRuns(t *testing.T) {
	call := func(id, tool, arguments string) []Call {
		return []Call{{ID: id, Tool: tool, Arguments: json.RawMessage(arguments)}}
	}
	base := call("1", "deploy", `{"a":1,"b":2}`)
	for _, c := range []struct {
		name  string
		calls []Call
		same  bool
	}{
		{"the spelling of the arguments does not matter", call("1", "deploy", `{"b":2, "a":1}`), true},
		{"the id of the call does not matter", call("2", "deploy", `{"a":1,"b":2}`), true},
		{"another tool is something else", call("1", "destroy", `{"a":1,"b":2}`), false},
		{"another argument is something else", call("1", "deploy", `{"a":1,"b":3}`), false},
		{"a number is not a string", call("1", "deploy", `{"a":1,"b":"2"}`), false},
		{"twice is something else", append(slices.Clone(base), base...), false},
		{"none is something else", nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			want, err := HashCalls(base)
			if err != nil {
				t.Fatal(err)
			}
			got, err := HashCalls(c.calls)
			if err != nil || (got == want) != c.same {
				t.Errorf("got %s, %v, against %s, want the same: %v", got, err, want, c.same)
			}
		})
	}
	if _, err := HashCalls(call("1", "deploy", `{"a":1,"a":2}`)); err == nil {
		t.Error("ambiguous arguments were hashed")
	}
}

func TestTheHashCanBeComputedElsewhere(t *testing.T) {
	got, err := HashCalls([]Call{{Tool: "deploy", Arguments: json.RawMessage(`{"env": "<prod>"}`)}})
	// printf '[["deploy",{"env":"<prod>"}]]' | sha256sum
	const want = "f6985568c7760f670be7d7850de1e93edf232381107c39b0ca854c12ef082fae"
	if err != nil || got != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
}

func TestARequestNeedsCallsAndTerms(t *testing.T) {
	good := []Call{{ID: "1", Tool: "deploy", Arguments: json.RawMessage(`{}`)}}
	for _, c := range []struct {
		name  string
		id    ID
		calls []Call
		p     Policy
	}{
		{"no calls", testID, nil, Policy{}},
		{"no tool", testID, []Call{{Arguments: json.RawMessage(`{}`)}}, Policy{}},
		{"no arguments", testID, []Call{{Tool: "deploy"}}, Policy{}},
		{"no id", "", good, Policy{}},
		{"a negative quorum", testID, good, Policy{Quorum: -1}},
		{"an end before the beginning", testID, good, Policy{Within: -time.Second}},
		{"a pattern that means nobody", testID, good, Policy{Deciders: []Pattern{{}}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if r, err := New(c.id, Ask{Calls: c.calls}, c.p, noon); err == nil {
				t.Errorf("got %+v, want an error", r)
			}
		})
	}
	r, err := New(testID, Ask{Calls: good}, Policy{}, noon)
	if err != nil {
		t.Fatal(err)
	}
	if r.Quorum != 1 || !r.ExpiresAt.IsZero() || r.State != Pending || r.Version != Version {
		t.Errorf("got %+v, want a pending request of one vote that never expires", r)
	}
}
