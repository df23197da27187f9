package agent_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/parley-chat/parley/conformance/storetest/failing"
	"github.com/parley-chat/parley/core/agent"
	"github.com/parley-chat/parley/core/chat"
	"github.com/parley-chat/parley/core/graph"
	"github.com/parley-chat/parley/store"
	"github.com/parley-chat/parley/store/memory"
)

// everyFault plays a scenario as often as it has commits and faults: the first life meets the fault at its k-th commit,
// the second goes on with what the first left.
func everyFault(t *testing.T, scenario func(t *testing.T, first, second store.KV)) {
	for _, fault := range failing.Faults() {
		for k := 1; ; k++ {
			kv := memory.New()
			f := failing.New(kv, k, fault)
			name := fmt.Sprintf("%s at commit %d", fault, k)
			t.Run(name, func(t *testing.T) { scenario(t, f, kv) })
			if !f.Reached() {
				if k < 3 {
					t.Fatalf("the scenario has %d commits, want a few", k-1)
				}
				break
			}
		}
	}
}

const unknown = "Outcome unknown"

func TestACallThatACrashCutShort(t *testing.T) {
	for name, test := range map[string]struct {
		effect agent.Effect
		settle bool
		most   int  // times that it may run
		told   bool // the model may hear that the outcome is unknown
	}{
		"once and for all, nobody knows":  {agent.Once, false, 1, true},
		"without an effect said, as once": {"", false, 1, true},
		"once, and somebody knows":        {agent.Once, true, 1, false},
		"idempotent runs again":           {agent.Idempotent, false, 2, false},
		"read only runs again":            {agent.ReadOnly, false, 2, false},
	} {
		t.Run(name, func(t *testing.T) {
			everyFault(t, func(t *testing.T, first, second store.KV) {
				var c counter
				tool := c.tool("count", test.effect)
				if test.settle {
					tool.Settle = c.settle
				}
				m := reporting(call("1", "count", `{"n":1}`))
				newHouse(t, first, agent.Options{Provider: m, Tools: []agent.Tool{tool}}).send("turn", "go")
				out := newHouse(t, second, agent.Options{Provider: m, Tools: []agent.Tool{tool}}).send("turn", "go")
				if first.(*failing.KV).Reached() && notSaid(out) {
					return // the turn had ended with the failure, and says so
				}
				c.check(t, reply(t, out), test.most, test.told)
			})
		})
	}
}

// notSaid reports whether a turn is recorded as failed: its store did, while its process lived.
func notSaid(out chat.TurnOutcome) bool { return out.Status == graph.Errored && out.Recorded }

func (c *counter) settle(_ context.Context, call agent.Call) (string, bool, error) {
	return "settled", c.times() > 0, nil
}

// check sees to it that what the model reports is the truth about how often the tool ran.
func (c *counter) check(t *testing.T, got string, most int, mayBeUnknown bool) {
	t.Helper()
	ran := c.times()
	switch {
	case ran > most:
		t.Errorf("the tool ran %d times, want at most %d", ran, most)
	case strings.Contains(got, unknown):
		if !mayBeUnknown {
			t.Errorf("the model hears %q, want the outcome", got)
		}
	case got != "[counted]" && got != "[settled]":
		t.Errorf("the model hears %q, want the result", got)
	case ran == 0:
		t.Errorf("the model hears %q, but the tool never ran", got)
	}
}

func TestAnApprovedCallThatACrashCutShort(t *testing.T) {
	for name, settle := range map[string]bool{"nobody knows": false, "somebody knows": true} {
		t.Run(name, func(t *testing.T) {
			everyFault(t, func(t *testing.T, first, second store.KV) {
				var c counter
				tool := c.gated("deploy")
				if settle {
					tool.Settle = c.settle
				}
				o := agent.Options{Provider: reporting(call("1", "deploy", `{"n":1}`)), Tools: []agent.Tool{tool}}
				play := func(kv store.KV) (chat.TurnOutcome, error) {
					h := newHouse(t, kv, o)
					waiting := h.send("turn", "go")
					if waiting.Status != graph.Suspended {
						return waiting, waiting.Err
					}
					return h.decide("decision", waiting, map[string]string{"state": "approved"})
				}
				if out, err := play(first); err == nil && out.Status == graph.Completed {
					c.check(t, reply(t, out), 1, !settle)
				}
				out, err := play(second)
				if notSaid(out) { // nothing waits, so nothing runs
					c.ran(t, 0)
					return
				}
				if err != nil {
					t.Fatalf("the next life ends with %v", err)
				}
				if out.Status == "" {
					return // it was told to the first
				}
				c.check(t, reply(t, out), 1, !settle)
			})
		})
	}
}

func TestAnInterruptedCallWhoseFateCannotBeLearntIsSaidToBeUnknown(t *testing.T) {
	var c counter
	tool := c.tool("count", agent.Once)
	asked := 0
	tool.Settle = func(context.Context, agent.Call) (string, bool, error) {
		asked++
		return "", false, context.DeadlineExceeded
	}
	m := reporting(call("1", "count", `{"n":1}`))
	for k := 1; asked == 0; k++ {
		kv := memory.New()
		f := failing.New(kv, k, failing.DieBefore)
		newHouse(t, f, agent.Options{Provider: m, Tools: []agent.Tool{tool}}).send("turn", "go")
		if !f.Reached() {
			t.Fatal("nobody was asked what became of the call")
		}
		got := reply(t, newHouse(t, kv, agent.Options{Provider: m, Tools: []agent.Tool{tool}}).send("turn", "go"))
		if asked > 0 && !strings.Contains(got, unknown) {
			t.Errorf("the model hears %q, want that the outcome is unknown", got)
		}
	}
}
