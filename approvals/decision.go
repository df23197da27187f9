package approvals

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Decision is how a request ended, as it travels to the suspended turn: the payload of the signal whose id is the
// request's.
type Decision struct {
	State  State     `json:"state"`
	By     Principal `json:"by,omitzero"`
	ByName string    `json:"by_name,omitempty"`
	Reason string    `json:"reason,omitempty"`
	At     time.Time `json:"at"`
	Hash   Hash      `json:"hash"`
	// ToolResult is Request.ToolResult, so that whoever resumes the turn need not know how to put it; empty if approved.
	ToolResult string `json:"tool_result,omitempty"`
}

// Decision returns how the request ended; ok is false while it is pending.
func (r Request) Decision() (d Decision, ok bool) {
	if r.Outcome == nil {
		return Decision{}, false
	}
	return Decision{
		State: r.Outcome.State, By: r.Outcome.By.Principal, ByName: r.Outcome.By.Name, Reason: r.Outcome.Reason,
		At: r.Outcome.At, Hash: r.Hash, ToolResult: r.ToolResult(),
	}, true
}

// Permit is the last gate before a tool runs: nil only if the decision approves exactly these calls.
func (d Decision) Permit(calls []Call) error {
	if err := d.validate(); err != nil {
		return err
	}
	if d.State != Approved {
		return fmt.Errorf("approvals: not approved but %s", d.State)
	}
	hash, err := HashCalls(calls)
	if err != nil {
		return err
	}
	if hash != d.Hash {
		return fmt.Errorf("approvals: approved was %.12s…, and to be run is %.12s…", d.Hash, hash)
	}
	return nil
}

func (d Decision) validate() error {
	switch {
	case !d.State.Ended():
		return fmt.Errorf("approvals: a decision cannot be %q", d.State)
	case d.By.IsZero() && (d.State == Approved || d.State == Denied):
		return fmt.Errorf("approvals: a decision %s by nobody", d.State)
	case d.Hash == "":
		return errors.New("approvals: a decision about nothing: no hash")
	case d.State != Approved && d.ToolResult == "":
		return errors.New("approvals: a decision that does not say what the model hears")
	}
	return nil
}

// UnmarshalJSON reads a decision and checks it. On an error d is unchanged.
func (d *Decision) UnmarshalJSON(data []byte) error {
	type plain Decision
	var read plain
	if err := json.Unmarshal(data, &read); err != nil {
		return fmt.Errorf("approvals: decision: %w", err)
	}
	if err := Decision(read).validate(); err != nil {
		return err
	}
	*d = Decision(read)
	return nil
}
