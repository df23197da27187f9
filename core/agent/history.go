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
// to the last of them: to the model it looks as if it had called just before the result came, which keeps the result the
// newest thing it knows. A call without results keeps its place and is answered with "waiting".
func WellFormed(history []llm.Message) []llm.Message {
	p := pair(history)
	out := make([]llm.Message, 0, len(history))
	for i, m := range history {
		at := i
		if m.Role == llm.ToolRole {
			call, ok := p.callOf[i]
			if !ok || p.last[call] != i {
				continue
			}
			at = call
		} else if _, answered := p.last[i]; answered {
			continue // it stands before its results
		}
		out = append(out, history[at])
		for n, c := range history[at].ToolCalls {
			out = append(out, p.result(history, place{at, n}, c.ID))
		}
	}
	return out
}

// place is one call: the message and which of its calls.
type place struct{ message, call int }

// pairs are calls and their results, by where they stand. A result before its call, a second one, and one of a call that
// is not there count for nothing.
type pairs struct {
	resultOf map[place]int
	callOf   map[int]int // from results to messages that call
	last     map[int]int // from messages that call to the last of their results
}

// pair finds for each result the latest call before it with the same id that has none: ids may be used again.
func pair(history []llm.Message) pairs {
	p := pairs{make(map[place]int), make(map[int]int), make(map[int]int)}
	open := make(map[string][]place)
	for i, m := range history {
		for n, c := range m.ToolCalls {
			open[c.ID] = append(open[c.ID], place{i, n})
		}
		waiting := open[m.ToolCallID]
		if m.Role != llm.ToolRole || len(waiting) == 0 {
			continue
		}
		call := waiting[len(waiting)-1]
		open[m.ToolCallID] = waiting[:len(waiting)-1]
		p.resultOf[call], p.callOf[i], p.last[call.message] = i, call.message, i
	}
	return p
}

func (p pairs) result(history []llm.Message, at place, callID string) llm.Message {
	if i, ok := p.resultOf[at]; ok {
		return history[i]
	}
	return llm.ToolResult(callID, awaiting)
}

// recent is what the model is shown of a history: the newest messages, from the first of a user on. More than limit are
// taken if otherwise there would be none, or the newest would be results of calls that are not among them.
func recent(last func(n int) ([]llm.Message, error), limit int) ([]llm.Message, error) {
	for n := limit; ; n *= 2 {
		history, err := last(n)
		if err != nil {
			return nil, err
		}
		if window := fromFirstUser(history); len(history) < n || whole(window) {
			return WellFormed(window), nil
		}
	}
}

// whole reports whether a window begins with a user and has the calls of the results at its end.
func whole(window []llm.Message) bool {
	if len(window) == 0 || window[0].Role != llm.User {
		return false
	}
	calls := pair(window).callOf
	for i := len(window) - 1; window[i].Role == llm.ToolRole; i-- {
		if _, ok := calls[i]; !ok {
			return false
		}
	}
	return true
}

// fromFirstUser drops what stands before the first message of a user: a window cut out of a longer history may begin in
// the middle of an exchange.
func fromFirstUser(history []llm.Message) []llm.Message {
	i := slices.IndexFunc(history, func(m llm.Message) bool { return m.Role == llm.User })
	return history[max(i, 0):]
}
