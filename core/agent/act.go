package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/parley-chat/parley/core/chat"
	"github.com/parley-chat/parley/core/graph"
	"github.com/parley-chat/parley/core/llm"
)

// resultLimit is how much of a result the model is given, in bytes.
const resultLimit = 32 << 10

// decision is what the agent reads of a decision: whether it may run, and what the model hears if not.
type decision struct {
	State      string `json:"state"`
	ToolResult string `json:"tool_result"`
}

const (
	approved  = "approved"
	cancelled = "cancelled"
)

func decisionIn(s graph.State) decision {
	var d decision
	if raw := Decision.Get(s); raw != nil && json.Unmarshal(raw, &d) != nil {
		return decision{}
	}
	return d
}

// act runs the first pending call, if it may, and adds its result. The checkpoint before it is the record of the
// intent; after a crash in between, the call is settled, not simply run again.
func (a *Agent) act(ctx context.Context, s graph.State) (graph.Update, error) {
	pending := Pending.Get(s)
	call := pending[0]
	result := a.permit(s, &call)
	if result == "" {
		result = a.run(ctx, call)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return graph.Update{chat.Messages.Add(llm.ToolResult(call.ID, clip(result))), Pending.Set(pending[1:])}, nil
}

// permit decides whether a call may run and fills in under which approval. Otherwise it returns what the model hears.
// Whatever is not plainly an approval of exactly these calls is a no.
func (a *Agent) permit(s graph.State, call *Call) string {
	if !call.Gated {
		return ""
	}
	d := decisionIn(s)
	if d.State != approved {
		if d.ToolResult == "" {
			return "Not run: there is no valid approval."
		}
		return d.ToolResult
	}
	if a.Permit != nil {
		if err := a.Permit(Decision.Get(s), gated(s)); err != nil {
			return "Not run: the approval is not for this call."
		}
	}
	call.Approval = Gate.Get(s)
	return ""
}

// gated are the calls that the current decision is about: those that ran already were taken off the front, so they are
// read from the answer that asked for them.
func gated(s graph.State) []Call {
	var calls []Call
	for _, c := range Asked.Get(s) {
		if c.Gated {
			calls = append(calls, c)
		}
	}
	return calls
}

// run executes a call, or settles one that a crash cut short.
func (a *Agent) run(ctx context.Context, call Call) string {
	t := a.tools.byName[call.Tool]
	ctx, cancel := context.WithTimeout(ctx, a.ToolTimeout)
	defer cancel()
	if graph.IdentityFrom(ctx).Recovered && (t.Effect == Once || t.Effect == "") {
		result, known := settle(ctx, t, call)
		if known {
			return result
		}
	}
	result, err := execute(ctx, t, call)
	if err != nil {
		return "Error: " + err.Error()
	}
	return result
}

// settle finds out what became of an interrupted call. Known is false only if it certainly did not run.
func settle(ctx context.Context, t Tool, call Call) (result string, known bool) {
	if t.Settle == nil {
		return "Outcome unknown: the bot was restarted while this ran. It may or may not have taken effect; check before trying again.", true
	}
	result, done, err := t.Settle(ctx, call)
	if err != nil {
		return "Outcome unknown: the bot was restarted while this ran, and asking what became of it failed: " + err.Error(), true
	}
	return result, done
}

// execute calls the tool; a panic in it is an error like any other.
func execute(ctx context.Context, t Tool, call Call) (result string, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the tool failed: %v", p)
		}
	}()
	return t.Run(ctx, call)
}

// clip shortens a result that is too long for a model, and says so.
func clip(s string) string {
	if len(s) <= resultLimit {
		return s
	}
	cut := resultLimit
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return fmt.Sprintf("%s\n[cut: %d of %d bytes shown]", s[:cut], cut, len(s))
}

func afterAct(_ context.Context, s graph.State) (graph.Target, error) {
	if len(Pending.Get(s)) > 0 {
		return graph.To("act"), nil
	}
	if decisionIn(s).State == cancelled {
		return graph.To("close"), nil
	}
	return graph.To("respond"), nil
}

// close ends a turn whose request was taken back: nobody waits for a model's word on it.
func (a *Agent) close(context.Context, graph.State) (graph.Update, error) {
	return graph.Update{chat.Messages.Add(llm.AssistantText("The request was cancelled."))}, nil
}
