package agent_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/parley-chat/parley/core/agent"
	"github.com/parley-chat/parley/core/graph"
	"github.com/parley-chat/parley/core/llm"
	"github.com/parley-chat/parley/store/memory"
)

func TestAGatedCallWaitsAndSaysForWhat(t *testing.T) {
	var c, free counter
	destructive := c.gated("deploy")
	destructive.Destructive = true
	h := furnished(t, reporting(call("1", "deploy", `{"n":1}`), call("2", "count", `{"n":2}`)), destructive, free.tool("count", agent.ReadOnly))
	out, meta := h.asked("go")
	c.ran(t, 0)
	free.ran(t, 0) // what stands beside it waits with it
	want := []agent.ApprovalCall{{ID: "1", Tool: "deploy", Arguments: json.RawMessage(`{"n":1}`), Destructive: true}}
	if meta.Kind != agent.ApprovalKind || meta.Reason != "Let me see." || len(meta.Calls) != 1 || meta.Calls[0].Tool != "deploy" ||
		!slices.Equal(meta.Calls[0].Arguments, want[0].Arguments) || !meta.Calls[0].Destructive {
		t.Errorf("got the metadata %+v, want the calls %+v and the model's reason", meta, want)
	}
	if got := out.PendingMessages[len(out.PendingMessages)-1].Content.Text(); got != "I am waiting for an approval to run `deploy`." {
		t.Errorf("the pending message is %q", got)
	}
}

func TestAnApprovedCallRunsOnceUnderItsApproval(t *testing.T) {
	var c, free counter
	h := furnished(t, reporting(call("1", "deploy", `{"n":1}`), call("2", "count", `{"n":2}`)), c.gated("deploy"), free.tool("count", agent.ReadOnly))
	waiting, _ := h.asked("go")
	out, err := h.decide("decision", waiting, map[string]string{"state": "approved"})
	if err != nil {
		t.Fatal(err)
	}
	if got := reply(t, out); got != "[counted][counted]" {
		t.Errorf("got %q, want both results", got)
	}
	c.ran(t, 1)
	free.ran(t, 1)
	if c.calls[0].Approval != waiting.Descriptor.SignalID || free.calls[0].Approval != "" {
		t.Errorf("ran under %q and %q, want %q and nothing", c.calls[0].Approval, free.calls[0].Approval, waiting.Descriptor.SignalID)
	}
	if again, _ := h.decide("again", waiting, map[string]string{"state": "approved"}); again.Status == graph.Completed {
		t.Errorf("the same turn was resumed twice")
	}
	c.ran(t, 1)
}

func TestWhatIsNotPlainlyApprovedNeverRuns(t *testing.T) {
	refuse := func(json.RawMessage, []agent.Call) error { return errors.New("another hash") }
	for name, test := range map[string]struct {
		decision any
		permit   func(json.RawMessage, []agent.Call) error
		want     string
	}{
		"denied":                    {map[string]string{"state": "denied", "tool_result": "Not run: denied by Grace."}, nil, "[Not run: denied by Grace.]"},
		"expired":                   {map[string]string{"state": "expired", "tool_result": "Not run: no answer."}, nil, "[Not run: no answer.]"},
		"denied without a word":     {map[string]string{"state": "denied"}, nil, "[Not run: there is no valid approval.]"},
		"pending":                   {map[string]string{"state": "pending"}, nil, "[Not run: there is no valid approval.]"},
		"nothing":                   {nil, nil, "[Not run: there is no valid approval.]"},
		"a word":                    {"approved", nil, "[Not run: there is no valid approval.]"},
		"in capitals":               {map[string]string{"state": "APPROVED"}, nil, "[Not run: there is no valid approval.]"},
		"a number":                  {map[string]int{"state": 1}, nil, "[Not run: there is no valid approval.]"},
		"approved, but other calls": {map[string]string{"state": "approved"}, refuse, "[Not run: the approval is not for this call.]"},
		"cancelled":                 {map[string]string{"state": "cancelled", "tool_result": "Not run: cancelled."}, nil, "The request was cancelled."},
	} {
		t.Run(name, func(t *testing.T) {
			var c counter
			h := newHouse(t, memory.New(), agent.Options{
				Provider: reporting(call("1", "deploy", `{"n":1}`)), Tools: []agent.Tool{c.gated("deploy")}, Permit: test.permit})
			waiting, _ := h.asked("go")
			out, err := h.decide("decision", waiting, test.decision)
			if err != nil {
				t.Fatal(err)
			}
			if got := reply(t, out); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
			c.ran(t, 0)
		})
	}
}

func TestThePermitSeesTheCallsThatWereAskedFor(t *testing.T) {
	var c counter
	var seen []string
	permit := func(decision json.RawMessage, calls []agent.Call) error {
		for _, c := range calls {
			seen = append(seen, c.ID+" "+string(c.Arguments))
		}
		return nil
	}
	h := newHouse(t, memory.New(), agent.Options{
		Provider: reporting(call("1", "deploy", `{"n":1}`), call("2", "deploy", `{"n":2}`)), Tools: []agent.Tool{c.gated("deploy")}, Permit: permit})
	waiting, _ := h.asked("go")
	if _, err := h.decide("decision", waiting, map[string]string{"state": "approved"}); err != nil {
		t.Fatal(err)
	}
	if want := []string{`1 {"n":1}`, `2 {"n":2}`, `1 {"n":1}`, `2 {"n":2}`}; !slices.Equal(seen, want) {
		t.Errorf("the permit saw %q, want %q: all of them before each", seen, want)
	}
	c.ran(t, 2)
}

func TestOneApprovalDoesNotCoverTheNextCall(t *testing.T) {
	var c counter
	rounds := 0
	m := &model{answer: func(req llm.Request) (llm.Response, error) {
		if rounds++; rounds <= 2 {
			return calling(call("1", "deploy", `{"n":1}`)) // the same id again, too
		}
		return text("done")
	}}
	h := furnished(t, m, c.gated("deploy"))
	first, _ := h.asked("go")
	second, err := h.decide("decision", first, map[string]string{"state": "approved"})
	if err != nil || second.Status != graph.Suspended {
		t.Fatalf("got status %s, %v, want that the second call waits again", second.Status, err)
	}
	c.ran(t, 1)
	if second.Descriptor.SignalID == first.Descriptor.SignalID {
		t.Error("both calls wait for the same approval")
	}
	out, err := h.decide("decision 2", second, map[string]string{"state": "denied", "tool_result": "Not run: denied."})
	if err != nil {
		t.Fatal(err)
	}
	if got := reply(t, out); got != "done" {
		t.Errorf("got %q, want done", got)
	}
	c.ran(t, 1)
}

func TestTalkGoesOnWhileACallWaits(t *testing.T) {
	var c counter
	m := &model{answer: func(req llm.Request) (llm.Response, error) {
		switch last := req.Messages[len(req.Messages)-1]; {
		case last.Role == llm.ToolRole:
			return text("heard: " + last.Content.Text())
		case strings.HasPrefix(last.Content.Text(), "deploy"):
			return calling(call("1", "deploy", `{"n":1}`))
		default:
			return text("still here")
		}
	}}
	h := furnished(t, m, c.gated("deploy"))
	waiting, _ := h.asked("deploy")
	if got := h.says("hello?"); got != "still here" {
		t.Errorf("got %q meanwhile", got)
	}
	out, err := h.decide("decision", waiting, map[string]string{"state": "approved"})
	if err != nil {
		t.Fatal(err)
	}
	if got := reply(t, out); got != "heard: counted" {
		t.Errorf("got %q after the decision", got)
	}
	if got := h.says("and now?"); got != "still here" {
		t.Errorf("got %q afterwards", got)
	}
}
