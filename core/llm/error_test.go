package llm_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/parley-chat/parley/core/llm"
)

func TestAnErrorIsFoundByItsCategoryAndItsCause(t *testing.T) {
	cause := errors.New("connection refused")
	err := fmt.Errorf("agent: respond: %w", &llm.Error{Category: llm.Unavailable, Message: "not reached", Cause: cause})
	if got := llm.CategoryOf(err); got != llm.Unavailable {
		t.Errorf("CategoryOf = %q, want %q", got, llm.Unavailable)
	}
	if !errors.Is(err, cause) {
		t.Errorf("%v hides its cause", err)
	}
	if got := llm.CategoryOf(cause); got != "" {
		t.Errorf("CategoryOf(%v) = %q, want none", cause, got)
	}
}

func TestAnErrorSaysItsCategoryToTheGraphAndItsMessageToPeople(t *testing.T) {
	err := &llm.Error{Category: llm.RateLimit, Message: "slow down"}
	if got := [2]string{err.ErrorCategory(), err.Diagnostic()}; got != [2]string{"provider_rate_limit", "slow down"} {
		t.Errorf("got %q, want the category and the message", got)
	}
}

func TestAnEmptyToolResultSaysThatNothingCame(t *testing.T) {
	if got := llm.ToolResult("1", "").Content.Text(); got != "(no output)" {
		t.Errorf("got %q, want (no output)", got)
	}
}
