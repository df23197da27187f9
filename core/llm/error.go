package llm

import (
	"errors"
	"time"
)

// Category is a canonical provider error (llm-provider §7). Callers act on it, never on a text.
type Category string

const (
	Authentication          Category = "provider_authentication"
	Unavailable             Category = "provider_unavailable"
	InvalidModel            Category = "provider_invalid_model"
	ModelNotLoaded          Category = "provider_model_not_loaded"
	RateLimit               Category = "provider_rate_limit"
	InvalidResponse         Category = "provider_invalid_response"
	InvalidRequest          Category = "provider_invalid_request"
	UnsupportedContentBlock Category = "provider_unsupported_content_block"
)

// Error is what a provider returns. Message may be shown to a person: it carries no key and no request body.
type Error struct {
	Category   Category
	Message    string
	RetryAfter time.Duration // of a rate limit, when the provider said one
	Cause      error
}

func (e *Error) Error() string { return string(e.Category) + ": " + e.Message }
func (e *Error) Unwrap() error { return e.Cause }

// ErrorCategory is the category as a plain string: the form in which it crosses into the graph (graph-engine §4).
func (e *Error) ErrorCategory() string { return string(e.Category) }

// Diagnostic is what a person may be shown of this error.
func (e *Error) Diagnostic() string { return e.Message }

// CategoryOf returns the provider category in err's chain, or "".
func CategoryOf(err error) Category {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Category
	}
	return ""
}
