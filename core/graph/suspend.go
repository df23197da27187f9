package graph

import (
	"encoding/json"
	"errors"
)

// Descriptor names what a suspended invocation waits for (suspension §4). The engine keeps and returns it and looks at
// neither field.
type Descriptor struct {
	SignalID string          `json:"signal_id"`
	Metadata json.RawMessage `json:"metadata,omitempty"`
}

// Suspend is returned by a node as its error to pause the invocation. On resume it goes on after the node: the node is
// done. This value is the whole mechanism: the engine recognises it in the error that the node returned; middleware
// sees it pass as an error and must return it unchanged.
func Suspend(d Descriptor) error { return &suspension{descriptor: d, completed: true} }

// SuspendHere is Suspend with mark_node_completed=false: on resume the same node runs again, on the state that carries
// the signal payload (suspension §3).
func SuspendHere(d Descriptor) error { return &suspension{descriptor: d} }

type suspension struct {
	descriptor Descriptor
	completed  bool
}

// Error is seen only where a suspension was returned to somebody else than the engine.
func (s *suspension) Error() string {
	return SuspensionInUnsupportedContext + ": only a node of a running graph can suspend"
}

func (s *suspension) ErrorCategory() string { return SuspensionInUnsupportedContext }

func suspensionIn(err error) (*suspension, bool) {
	return errors.AsType[*suspension](err)
}
