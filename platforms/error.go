package platforms

import (
	"errors"
	"time"
)

// Failure says what to do about an error of a platform. Callers act on it, never on a text.
type Failure string

const (
	// SlowDown: not sent; send again after RetryAfter.
	SlowDown Failure = "slow_down"
	// Unknown: it may have been sent. Look it up before sending again.
	Unknown Failure = "unknown_outcome"
	// Refused: not sent and never will be, as it stands: the place is gone, closed to us or archived.
	Refused Failure = "refused"
	// Gone: what was to be edited cannot be any more; say it anew.
	Gone Failure = "gone"
	// Malformed: the platform does not accept the form. Our mistake; send it plainer.
	Malformed Failure = "malformed"
	// Broken: the installation is broken: credentials or permissions. Nothing will succeed until an operator acts.
	Broken Failure = "broken"
	// Unreachable: not sent, try again later.
	Unreachable Failure = "unreachable"
)

// Error is what an adapter returns. Its text holds no token and no content.
type Error struct {
	Failure    Failure
	Op         string // "slack: chat.postMessage"
	Code       string // the platform's own word
	RetryAfter time.Duration
	Cause      error
}

func (e *Error) Error() string {
	s := e.Op + ": " + string(e.Failure)
	if e.Code != "" {
		s += " (" + e.Code + ")"
	}
	if e.Cause != nil {
		s += ": " + e.Cause.Error()
	}
	return s
}

func (e *Error) Unwrap() error { return e.Cause }

// FailureOf returns what to do about err. An error of no known kind is Unknown: the careful reading.
func FailureOf(err error) Failure {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Failure
	}
	return Unknown
}

// ErrNoStream says that answers cannot be streamed here.
var ErrNoStream = errors.New("no streaming here")
