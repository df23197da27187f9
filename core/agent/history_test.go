package agent_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/parley-chat/parley/core/agent"
	"github.com/parley-chat/parley/core/llm"
)

// sketch writes a history in short: "u hi", "a text", "c text id id" (calls), "t id result", as one string.
func sketch(lines ...string) (history []llm.Message) {
	for _, line := range lines {
		words := strings.Fields(line)
		switch words[0] {
		case "u":
			history = append(history, llm.UserText(words[1]))
		case "a":
			history = append(history, llm.AssistantText(words[1]))
		case "t":
			history = append(history, llm.ToolResult(words[1], words[2]))
		case "c":
			m := llm.AssistantText(words[1])
			for _, id := range words[2:] {
				m.ToolCalls = append(m.ToolCalls, llm.ToolCall{ID: id, Name: "tool"})
			}
			history = append(history, m)
		}
	}
	return history
}

func sketched(history []llm.Message) (lines []string) {
	for _, m := range history {
		text := m.Content.Text()
		switch {
		case m.Role == llm.User:
			lines = append(lines, "u "+text)
		case m.Role == llm.ToolRole && strings.HasPrefix(text, "Not run yet"):
			lines = append(lines, "t "+m.ToolCallID+" waiting")
		case m.Role == llm.ToolRole:
			lines = append(lines, "t "+m.ToolCallID+" "+text)
		case len(m.ToolCalls) > 0:
			line := "c " + text
			for _, c := range m.ToolCalls {
				line += " " + c.ID
			}
			lines = append(lines, line)
		default:
			lines = append(lines, "a "+text)
		}
	}
	return lines
}

func TestAHistoryIsMadeWellFormed(t *testing.T) {
	for name, test := range map[string]struct{ history, want []string }{
		"nothing":                    {nil, nil},
		"talk stays":                 {[]string{"u hi", "a hello", "u bye"}, []string{"u hi", "a hello", "u bye"}},
		"a call and its result stay": {[]string{"u hi", "c look 1", "t 1 r"}, []string{"u hi", "c look 1", "t 1 r"}},
		"a call that waits is answered": {
			[]string{"u hi", "c look 1", "a pending", "u bye"}, []string{"u hi", "c look 1", "t 1 waiting", "a pending", "u bye"}},
		"a late result takes its call along": {
			[]string{"u hi", "c look 1", "a pending", "u bye", "a goodbye", "t 1 r"},
			[]string{"u hi", "a pending", "u bye", "a goodbye", "c look 1", "t 1 r"}},
		"of several results the last takes the call along": {
			[]string{"u hi", "c look 1 2", "t 1 refused", "a pending", "u bye", "a goodbye", "t 2 r"},
			[]string{"u hi", "a pending", "u bye", "a goodbye", "c look 1 2", "t 1 refused", "t 2 r"}},
		"one of several results is missing": {
			[]string{"u hi", "c look 1 2", "t 1 r", "u bye"}, []string{"u hi", "c look 1 2", "t 1 r", "t 2 waiting", "u bye"}},
		"results stand in the order of the calls": {
			[]string{"u hi", "c look 1 2", "t 2 s", "t 1 r"}, []string{"u hi", "c look 1 2", "t 1 r", "t 2 s"}},
		"a result without its call is dropped": {[]string{"u hi", "t 1 r", "u bye"}, []string{"u hi", "u bye"}},
		"a result before its call is none":     {[]string{"u hi", "t 1 r", "c look 1"}, []string{"u hi", "c look 1", "t 1 waiting"}},
		"a second result is dropped":           {[]string{"u hi", "c look 1", "t 1 r", "t 1 s"}, []string{"u hi", "c look 1", "t 1 r"}},
		"an id may be used again": {
			[]string{"u hi", "c look 1", "t 1 r", "u more", "c again 1", "t 1 s"},
			[]string{"u hi", "c look 1", "t 1 r", "u more", "c again 1", "t 1 s"}},
		"an id may be used again while the first call waits": {
			[]string{"u hi", "c look 1", "u more", "c again 1", "t 1 s", "u and", "t 1 r"},
			[]string{"u hi", "u more", "c again 1", "t 1 s", "u and", "c look 1", "t 1 r"}},
	} {
		if got := sketched(agent.WellFormed(sketch(test.history...))); !slices.Equal(got, test.want) {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

// histories draws anything that may stand in a log, sound or not. Texts are numbered.
var histories = rapid.Custom(func(t *rapid.T) []llm.Message {
	ids := []string{"1", "2", "3"}
	history := []llm.Message{llm.UserText("text 0")}
	for i := range rapid.IntRange(0, 20).Draw(t, "length") {
		text := fmt.Sprintf("text %d", i+1)
		switch rapid.IntRange(0, 4).Draw(t, "kind") {
		case 0:
			history = append(history, llm.UserText(text))
		case 1:
			history = append(history, llm.AssistantText(text))
		case 2, 3:
			history = append(history, llm.ToolResult(rapid.SampledFrom(ids).Draw(t, "id"), text))
		case 4:
			m := llm.AssistantText(text)
			for _, id := range rapid.SliceOfNDistinct(rapid.SampledFrom(ids), 1, 3, rapid.ID).Draw(t, "ids") {
				m.ToolCalls = append(m.ToolCalls, llm.ToolCall{ID: id, Name: "tool", Arguments: []byte("{}")})
			}
			history = append(history, m)
		}
	}
	return history
})

func TestAnyHistoryIsMadeWellFormed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		history := histories.Draw(t, "history")
		out := agent.WellFormed(history)
		if err := sound(out); err != nil {
			t.Fatalf("%v:\n%s\nfrom\n%s", err, strings.Join(sketched(out), "\n"), strings.Join(sketched(history), "\n"))
		}
		if want, got := words(history), words(out); !slices.Equal(got, want) {
			t.Fatalf("got the texts %q, want %q", got, want)
		}
		if again := agent.WellFormed(out); !slices.Equal(sketched(again), sketched(out)) {
			t.Fatalf("made well-formed again it changes: %q, want %q", sketched(again), sketched(out))
		}
		if newest := history[len(history)-1]; newest.Role == llm.User && out[len(out)-1].Content.Text() != newest.Content.Text() {
			t.Fatalf("the newest is %q, want the user's %q", out[len(out)-1].Content.Text(), newest.Content.Text())
		}
	})
}

func TestTheNewestResultStaysTheNewest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		history := agent.WellFormed(histories.Draw(t, "history"))
		call := llm.AssistantText("late")
		call.ToolCalls = []llm.ToolCall{{ID: "late", Name: "tool"}}
		at := rapid.IntRange(1, len(history)).Draw(t, "where the call stands")
		history = append(slices.Insert(history, at, call), llm.ToolResult("late", "at last"))
		out := agent.WellFormed(history)
		if last := out[len(out)-1]; last.ToolCallID != "late" || len(out[len(out)-2].ToolCalls) != 1 {
			t.Fatalf("got %q at the end, want the call and its result", sketched(out))
		}
	})
}

// words are the texts of people and models, sorted.
func words(history []llm.Message) (texts []string) {
	for _, m := range history {
		if m.Role != llm.ToolRole {
			texts = append(texts, m.Content.Text())
		}
	}
	slices.Sort(texts)
	return texts
}

// sound says which call is not followed by its results, or which result by no call.
func sound(history []llm.Message) error {
	var due []string
	for i, m := range history {
		switch {
		case m.Role == llm.ToolRole && (len(due) == 0 || due[0] != m.ToolCallID):
			return fmt.Errorf("message %d is a result of %q, due are those of %q", i, m.ToolCallID, due)
		case m.Role == llm.ToolRole:
			due = due[1:]
		case len(due) > 0:
			return fmt.Errorf("message %d comes before the results of %q", i, due)
		}
		for _, c := range m.ToolCalls {
			due = append(due, c.ID)
		}
	}
	if len(due) > 0 {
		return fmt.Errorf("the results of %q are missing", due)
	}
	return nil
}
