package playground

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/parley-chat/parley/platforms/slack/slacktwin"
)

func someNames() names {
	return newNames(
		[]slacktwin.User{{ID: "U1", Name: "Ada"}, {ID: "U2", Name: "Ada B"}, {ID: "UBOT", Name: "Parley", Bot: true}, {ID: "U3"}},
		[]slacktwin.Channel{{ID: "C1", Name: "general"}, {ID: "C2", Name: "general-2"}, {ID: "D1", Name: "x", IM: true}})
}

func TestTypedTextBecomesWireForm(t *testing.T) {
	n := someNames()
	for name, c := range map[string]struct{ typed, wire string }{
		"a mention":                      {"@Parley hi", "<@UBOT> hi"},
		"in any case":                    {"hi @PARLEY!", "hi <@UBOT>!"},
		"the longest name":               {"@Ada B and @Ada", "<@U2> and <@U1>"},
		"no name":                        {"@Adam @nobody a@Ada.example", "@Adam @nobody a@Ada.example"},
		"everybody":                      {"@here @channel", "<!here> <!channel>"},
		"a channel":                      {"#general, #general-2 #generality", "<#C1>, <#C2> #generality"},
		"entities":                       {"a < b && <@U1>", "a &lt; b &amp;&amp; &lt;@U1&gt;"},
		"an address":                     {"(https://a.example/x?y=1&z=(2)).", "(<https://a.example/x?y=1&amp;z=(2)>)."},
		"no address":                     {"http:// https://", "http:// https://"},
		"code":                           {"`@Ada <x>` @Ada", "`@Ada &lt;x&gt;` <@U1>"},
		"a fence":                        {"```\n@Ada\n``` @Ada", "```\n@Ada\n``` <@U1>"},
		"a fence without end":            {"``` @Ada", "``` <@U1>"},
		"a backtick alone, a line apart": {"` @Ada\n`", "` <@U1>\n`"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := n.toWire(c.typed); got != c.wire {
				t.Errorf("%q: got %q, want %q", c.typed, got, c.wire)
			}
		})
	}
}

func TestWireFormBecomesTypedText(t *testing.T) {
	n := someNames()
	for name, c := range map[string]struct{ wire, typed string }{
		"a mention with a label":   {"<@UBOT|parley> hi", "@Parley hi"},
		"somebody unknown":         {"<@U9> and <@U8|Eve>", "@U9 and Eve"},
		"a link with a label":      {"<https://a.example|here>", "https://a.example"},
		"entities that are no tag": {"&lt;@U1&gt; &amp;lt;", "<@U1> &lt;"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := n.fromWire(c.wire); got != c.typed {
				t.Errorf("%q: got %q, want %q", c.wire, got, c.typed)
			}
		})
	}
}

// What is typed must not change by being sent and edited, but for the case of names.
func FuzzTypedTextSurvivesTheWire(f *testing.F) {
	for _, seed := range []string{"@Parley hi", "a<b>&amp;", "`@Ada`", "```\n<x>", "https://a.example/<b>|c", "@here@Ada", "\xff@Ada", "<@U1>"} {
		f.Add(seed)
	}
	n := someNames()
	f.Fuzz(func(t *testing.T, typed string) {
		wire := n.toWire(typed)
		if back := n.fromWire(wire); !strings.EqualFold(back, typed) {
			t.Errorf("%q went out as %q and came back as %q", typed, wire, back)
		}
	})
}

// Whatever arrives is refused in words or complete, and then survives being written again.
func FuzzRequestsAreCompleteOrRefused(f *testing.F) {
	for _, seed := range []string{
		`{"user":"U1","channel":"C1","text":"hi","files":[{"name":"a","mediaType":"text/plain","content":"aGk="}]}`,
		`{"user":"U1","channel":"C1","thread":"1.2","text":"x"}`, `{}`, `[]`, `null`, `{"user":null}`, `{"user":"a"}{`, ``, `{"files":[null]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		q, err := decode[sayRequest](body)
		if err != nil {
			if err.Error() == "" {
				t.Error("refused without a word")
			}
			return
		}
		if lack := q.missing(); lack != "" {
			t.Errorf("accepted although %s", lack)
		}
		text, err := json.Marshal(q)
		if err != nil {
			t.Fatalf("%+v cannot be written: %v", q, err)
		}
		if _, err := decode[sayRequest](text); err != nil {
			t.Errorf("%s was accepted, but not again as %s: %v", body, text, err)
		}
	})
}

func FuzzFormsAreCompleteOrRefused(f *testing.F) {
	for _, seed := range []string{`{"user":"U1","view":"V1","values":{"a":{"b":"c"}}}`, `{"user":"U1","view":"V1","values":null}`, `{"values":{"a":null}}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if q, err := decode[submitRequest](body); err == nil && (q.User == "" || q.View == "") {
			t.Errorf("accepted although incomplete: %+v", q)
		}
	})
}
