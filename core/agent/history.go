package agent

import (
	"slices"

	"github.com/parley-chat/parley/core/llm"
)

// awaiting is the result that stands for a call nobody has decided yet.
const awaiting = "Not run yet: waiting for an approval."

// WellFormed orders a history so that any provider takes it: every tool call is followed at once by a result for each
// of its calls, and no result stands without its call.
//
// A call that waited for a person gets its results only after other turns have come in between. It is then moved down
// to them: to the model it looks as if it had called just before the result came, which keeps the result the newest
// thing it knows. A call without results keeps its place and is answered with "waiting".
func WellFormed(history []llm.Message) []llm.Message {
	caller, firstResult := index(history)
	out := make([]llm.Message, 0, len(history))
	for i, m := range history {
		switch {
		case m.Role == llm.ToolRole:
			if call, ok := caller[m.ToolCallID]; ok && firstResult[call] == i {
				out = append(out, history[call])
				out = append(out, results(history, call)...)
			}
		case len(m.ToolCalls) > 0:
			if _, answered := firstResult[i]; !answered {
				out = append(out, m)
				out = append(out, results(history, i)...)
			}
		default:
			out = append(out, m)
		}
	}
	return out
}

// index finds, for every call id, the message that made it, and for every calling message its first result. A result
// before its call, or of a call that is not there, counts for nothing.
func index(history []llm.Message) (caller map[string]int, firstResult map[int]int) {
	caller, firstResult = make(map[string]int), make(map[int]int)
	for i, m := range history {
		for _, c := range m.ToolCalls {
			caller[c.ID] = i
		}
		if m.Role != llm.ToolRole {
			continue
		}
		if call, ok := caller[m.ToolCallID]; ok {
			if _, later := firstResult[call]; !later {
				firstResult[call] = i
			}
		}
	}
	return caller, firstResult
}

// results returns one result for each call of the message at i, in the order of the calls.
func results(history []llm.Message, i int) []llm.Message {
	var out []llm.Message
	for _, c := range history[i].ToolCalls {
		at := slices.IndexFunc(history[i:], func(m llm.Message) bool { return m.Role == llm.ToolRole && m.ToolCallID == c.ID })
		if at < 0 {
			out = append(out, llm.ToolResult(c.ID, awaiting))
			continue
		}
		out = append(out, history[i+at])
	}
	return out
}

// fromFirstUser drops what stands before the first message of a user: a window cut out of a longer history may begin in
// the middle of an exchange.
func fromFirstUser(history []llm.Message) []llm.Message {
	i := slices.IndexFunc(history, func(m llm.Message) bool { return m.Role == llm.User })
	return history[max(i, 0):]
}
