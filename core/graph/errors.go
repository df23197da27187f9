package graph

import (
	"errors"
	"slices"
)

// Canonical categories of the engine (graph-engine §2 and §4, sessions §10, suspension §9).
const (
	NoDeclaredEntry        = "no_declared_entry"
	UnreachableNode        = "unreachable_node"
	DanglingEdge           = "dangling_edge"
	MultipleOutgoingEdges  = "multiple_outgoing_edges"
	NoOutgoingEdge         = "no_outgoing_edge"
	ConflictingReducers    = "conflicting_reducers"
	DuplicateNode          = "duplicate_node"
	MappingUndeclaredField = "mapping_references_undeclared_field"

	NodeException        = "node_exception"
	EdgeException        = "edge_exception"
	ReducerError         = "reducer_error"
	RoutingError         = "routing_error"
	StateValidationError = "state_validation_error"

	SessionLoadFailed              = "session_load_failed"
	SessionSaveFailed              = "session_save_failed"
	SessionStateMigrationMissing   = "session_state_migration_missing"
	SessionStateMigrationAmbiguous = "session_state_migration_chain_ambiguous"
	SessionStateMigrationFailed    = "session_state_migration_failed"
	SessionWriteConflict           = "session_write_conflict"
	SuspensionPersistenceFailed    = "suspension_persistence_failed"
	SuspensionRecordInvalid        = "suspension_record_invalid"
	SuspensionResumePayloadInvalid = "suspension_resume_payload_invalid"
	SuspensionInUnsupportedContext = "suspension_in_unsupported_context"
	CheckpointRecordInvalid        = "checkpoint_record_invalid"
	CheckpointSaveFailed           = "checkpoint_save_failed"

	// Cancelled: somebody asked for the end of this invocation (context cause ErrCancelled). It is over.
	Cancelled = "invocation_cancelled"
	// Interrupted: the context ended for another reason. Nothing was recorded; the same call goes on where it stopped.
	Interrupted = "invocation_interrupted"
)

// ErrCancelled is the context cause that ends an invocation for good. Any other end of the context only interrupts it.
var ErrCancelled = errors.New("cancelled")

// Error is what compiling and invoking return. Category is canonical; callers act on it, never on a text.
type Error struct {
	Category  string
	Node      string   // the node at fault, if one was
	Namespace []string // path of node names to it
	Field     string   // of reducer and validation errors
	Reducer   string
	State     State // the state at the point of failure (graph-engine §4)
	Message   string
	Cause     error
}

func (e *Error) Error() string {
	s := "graph: " + e.Category
	if e.Node != "" {
		s += " in " + e.Node
	}
	if e.Message != "" {
		s += ": " + e.Message
	} else if e.Cause != nil {
		s += ": " + e.Cause.Error()
	}
	return s
}

func (e *Error) Unwrap() error { return e.Cause }

// ErrorCategory is the concrete category: a node's or an edge's exception is named by its cause where that has a
// category of its own, such as provider_unavailable.
func (e *Error) ErrorCategory() string {
	if !slices.Contains([]string{NodeException, EdgeException}, e.Category) {
		return e.Category
	}
	if c, ok := errors.AsType[Categorized](e.Cause); ok {
		return c.ErrorCategory()
	}
	return e.Category
}

// Categorized is any error with a canonical category, such as those of a provider.
type Categorized interface {
	error
	ErrorCategory() string
}

// CategoryOf returns the concrete category of err, or "" if it has none.
func CategoryOf(err error) string {
	if c, ok := errors.AsType[Categorized](err); ok {
		return c.ErrorCategory()
	}
	return ""
}

// DiagnosticOf returns what a person may be told of err: the text of the innermost error that offers one, by a method
// Diagnostic() string, else the message of the engine's own error.
func DiagnosticOf(err error) string {
	type diagnostic interface {
		error
		Diagnostic() string
	}
	if d, ok := errors.AsType[diagnostic](err); ok {
		return d.Diagnostic()
	}
	if e, ok := errors.AsType[*Error](err); ok && e.Message != "" {
		return e.Message
	}
	return ""
}
