package approvals

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"
)

func fact(v View, name string) string {
	for _, f := range v.Facts {
		if f.Name == name {
			return f.Value
		}
	}
	return ""
}

func TestAPendingCardSaysWhatForWhomWhyWhoAndUntilWhen(t *testing.T) {
	r := opened(t, "slack:UADA,slack:UBO,slack:group:SOPS", 2)
	v := after(t, r, Approve{By: ada, At: noon, Hash: r.Hash}).View(noon)

	for name, want := range map[string]string{
		"For": "Cy", "May decide": "2 of Ada, Bo and the members of Operators", "Until": "2026-03-01 13:00 UTC",
		"Approvals": "1 of 2: Ada", "Cannot be approved": "",
	} {
		if got := fact(v, name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	if v.Title != "Approval needed: deploy" || v.Why != "The tests passed." || v.Outcome != "" || v.ID != r.ID || v.Hash != r.Hash {
		t.Errorf("got %+v", v)
	}
	want := CallView{Tool: "deploy", Arguments: "{\n  \"env\": \"<prod>\",\n  \"version\": \"v2\"\n}", Destructive: true}
	if len(v.Calls) != 1 || v.Calls[0] != want {
		t.Errorf("calls: got %+v, want %+v", v.Calls, want)
	}
	if !slices.Equal(v.Deciders, r.Deciders) {
		t.Errorf("deciders: got %v, want %v", v.Deciders, r.Deciders)
	}
	buttons := []Button{
		{Label: "Approve", Action: "approve", Primary: true, Confirm: "This may destroy something. Run deploy exactly as shown?"},
		{Label: "Deny", Action: "deny"},
		{Label: "Deny with a reason", Action: "deny_reason"},
	}
	if !slices.Equal(v.Buttons, buttons) {
		t.Errorf("buttons: got %+v, want %+v", v.Buttons, buttons)
	}
}

func TestASettledCardHasAnOutcomeAndNoButtons(t *testing.T) {
	r := opened(t, "slack:UADA", 1)
	at := noon.Add(time.Minute)
	for _, c := range []struct {
		name           string
		r              Request
		title, outcome string
	}{
		{"approved", after(t, r, Approve{By: ada, At: at, Hash: r.Hash}), "Approved: deploy", "Approved by Ada at 2026-03-01 12:01 UTC"},
		{"denied", after(t, r, Deny{By: ada, At: at, Reason: "no\nno"}), "Denied: deploy", "Denied by Ada at 2026-03-01 12:01 UTC: no no"},
		{"expired", after(t, r, Expire{At: noon.Add(2 * time.Hour)}), "No answer: deploy", "No answer by 2026-03-01 13:00 UTC"},
		{"cancelled", after(t, r, Cancel{By: cy, At: at}), "Cancelled: deploy", "Cancelled by Cy at 2026-03-01 12:01 UTC"},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := c.r.View(noon)
			if v.Title != c.title || v.Outcome != c.outcome {
				t.Errorf("got %q, %q, want %q, %q", v.Title, v.Outcome, c.title, c.outcome)
			}
			if v.Buttons != nil || v.Deciders != nil {
				t.Errorf("got the buttons %v for %v, want none", v.Buttons, v.Deciders)
			}
			if len(v.Calls) != 1 {
				t.Errorf("got the calls %v, want them to stay", v.Calls)
			}
		})
	}
	overdue := r.View(noon.Add(time.Hour))
	if overdue.Buttons != nil || overdue.Outcome != "The time to decide ran out at 2026-03-01 13:00 UTC" {
		t.Errorf("overdue: got %q and the buttons %v, want that time ran out, and none", overdue.Outcome, overdue.Buttons)
	}
}

func TestACardThatNobodyCanApproveSaysSo(t *testing.T) {
	for _, c := range []struct {
		deciders string
		quorum   int
		want     string
	}{
		{"", 1, "no approver is named in the settings"},
		{"slack:UCY,slack:T1/UCY", 1, "only the one who asked is named, and nobody approves their own request"},
		{"slack:UADA,slack:T1/UADA,slack:UCY", 2, "2 must approve, and only 1 may"},
		{"slack:UADA,slack:UBO", 2, ""},
		{"slack:group:SOPS", 5, ""},
	} {
		if got := fact(opened(t, c.deciders, c.quorum).View(noon), "Cannot be approved"); got != c.want {
			t.Errorf("%d of %q: got %q, want %q", c.quorum, c.deciders, got, c.want)
		}
	}
	if got := fact(opened(t, "", 1).View(noon), "May decide"); got != "nobody" {
		t.Errorf("got %q, want nobody", got)
	}
}

func TestOnlyDestructiveCallsAskOnceMore(t *testing.T) {
	var calls []Call
	for _, tool := range []string{"read", "list", "copy", "drop", "purge"} {
		calls = append(calls, Call{ID: tool, Tool: tool, Arguments: json.RawMessage(`{}`)})
	}
	open := func() View {
		r, err := New(testID, Ask{Calls: calls}, Policy{}, noon)
		if err != nil {
			t.Fatal(err)
		}
		return r.View(noon)
	}
	if got := open().Buttons[0].Confirm; got != "" {
		t.Errorf("harmless calls: got the question %q, want none", got)
	}
	calls[4].Destructive = true
	v := open()
	if got, want := v.Buttons[0].Confirm, "This may destroy something. Run read, list, copy and 2 more exactly as shown?"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if len(v.Calls) != 5 || fact(v, "For") != "" || fact(v, "Until") != "" {
		t.Errorf("got %+v, want five calls, and nothing about who asked or until when", v)
	}
}

func TestNothingInTheArgumentsHides(t *testing.T) {
	for in, want := range map[string]string{
		"{\"a\":\"\u202ednab\"}":     `\u202ednab`,
		"{\"a\":\"x\u200by\"}":       `x\u200by`,
		"{\"a\":\"x\u3164y\"}":       `x\u3164y`,
		"{\"a\":\"x\U000e0041y\"}":   `x\udb40\udc41y`,
		"{\"a\":\"x\u00a0y\"}":       `x\u00a0y`,
		"{\"a\":\"Zoë 世界 😀 a\\nb\"}": `Zoë 世界 😀 a\nb`,
	} {
		canonical, err := Canonical(json.RawMessage(in))
		if err != nil {
			t.Fatal(err)
		}
		if got := pretty(canonical); !strings.Contains(got, want) {
			t.Errorf("got %q, want it to contain %q", got, want)
		}
	}
}

func TestTheModelIsToldTheTruth(t *testing.T) {
	r := opened(t, "slack:UADA,slack:UBO", 2)
	at := noon.Add(time.Minute)
	half := after(t, r, Approve{By: ada, At: at, Hash: r.Hash})
	for _, c := range []struct {
		name string
		r    Request
		want string
	}{
		{"pending", r, "Not run yet: waiting for an approval."},
		{"approved", after(t, half, Approve{By: bo, At: at, Hash: r.Hash}), ""},
		{"denied", after(t, r, Deny{By: ada, At: at, Reason: "not today"}), "Not run: denied by Ada: not today."},
		{"denied with a question", after(t, r, Deny{By: ada, At: at, Reason: "why?"}), "Not run: denied by Ada: why?"},
		{"denied without a word", after(t, r, Deny{By: ada, At: at, Reason: " "}), "Not run: denied by Ada, who gave no reason."},
		{"denied without a name", after(t, r, Deny{By: person("T1/UADA", " "), At: at}), "Not run: denied by slack:T1/UADA, who gave no reason."},
		{"expired", after(t, r, Expire{At: noon.Add(2 * time.Hour)}), "Not run: no answer by 2026-03-01 13:00 UTC. Nobody decided; this is not a denial."},
		{"expired halfway", after(t, half, Expire{At: noon.Add(time.Hour)}),
			"Not run: no answer by 2026-03-01 13:00 UTC (1 of 2 approvals). Nobody decided; this is not a denial."},
		{"cancelled", after(t, r, Cancel{By: cy, At: at, Reason: "stopped"}), "Not run: the request was cancelled by Cy: stopped."},
		{"cancelled by nobody", after(t, r, Cancel{At: at}), "Not run: the request was cancelled."},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.r.ToolResult(); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
