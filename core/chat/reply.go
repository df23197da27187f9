package chat

import (
	"fmt"
	"strings"

	"github.com/parley-chat/parley/core/graph"
	"github.com/parley-chat/parley/core/harness"
)

// DefaultReply words an error for the people in the conversation (§10.1 to §10.3).
func DefaultReply(f *harness.Failure) string {
	switch {
	case f.Category == graph.Cancelled:
		return "Stopped."
	case f.Bucket == harness.SessionTerminating:
		return "This conversation can't continue. Please start a new one."
	case f.Bucket == harness.UserCorrectable:
		diagnostic := strings.TrimRight(strings.TrimSpace(f.Diagnostic), ".")
		if diagnostic == "" {
			diagnostic = f.Category
		}
		return fmt.Sprintf("That request couldn't be processed: %s. Please adjust your message and try again.", diagnostic)
	default:
		return "I had trouble responding. Try again in a moment."
	}
}
