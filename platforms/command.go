package platforms

import "strings"

// TextCommand reads the words that command instead of talking: exactly stop, reset, status, approvals or help; approve
// with the id of a request; deny with one, and perhaps a reason. A slash before them is allowed. Everything else, "deny it"
// among it, is talk.
func TextCommand(text string) (name, args string, ok bool) {
	first, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	name, args = strings.ToLower(strings.TrimPrefix(first, "/")), strings.TrimSpace(rest)
	switch name {
	case "stop", "reset", "status", "approvals", "help":
		return name, "", args == ""
	case "approve":
		return name, args, isRequestID(args)
	case "deny":
		id, _, _ := strings.Cut(args, " ")
		return name, args, isRequestID(id)
	}
	return "", "", false
}

// isRequestID recognises the form of a request's id as cards show it: 20 letters and digits. Whether there is such a
// request is found out later.
func isRequestID(s string) bool {
	return len(s) == 20 && strings.Trim(strings.ToLower(s), "abcdefghijklmnopqrstuvwxyz0123456789") == ""
}
