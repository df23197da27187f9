package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-chat/parley/core/agent"
	"github.com/parley-chat/parley/core/chat"
	"github.com/parley-chat/parley/core/graph"
	"github.com/parley-chat/parley/core/llm"
	"github.com/parley-chat/parley/store/memory"
)

func TestAnAnswerEndsTheTurn(t *testing.T) {
	m := &model{answer: func(llm.Request) (llm.Response, error) { return text("Hello.") }}
	h := newHouse(t, memory.New(), agent.Options{Provider: m, Instructions: "Be kind."})
	if got := h.says("hi"); got != "Hello." {
		t.Errorf("got %q, want Hello.", got)
	}
	got := m.requests()[0].Messages
	if len(got) != 2 || got[0].Role != llm.System || got[0].Content.Text() != "Be kind." {
		t.Errorf("the model was shown %v, want the instructions first", got)
	}
}

func TestToolsRunInOrderAndTheModelHearsThem(t *testing.T) {
	var c counter
	m := reporting(call("1", "count", `{"n":1}`), call("2", "count", `{"n":2}`))
	if got, want := furnished(t, m, c.tool("count", agent.ReadOnly)).says("count"), "[counted][counted]"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	c.ran(t, 2)
	if string(c.calls[0].Arguments) != `{"n":1}` || string(c.calls[1].Arguments) != `{"n":2}` {
		t.Errorf("got the calls %v, want n 1 and then 2", c.calls)
	}
}

func TestWhatCannotRunIsToldToTheModel(t *testing.T) {
	for name, test := range map[string]struct {
		calls []llm.ToolCall
		want  []string
		runs  int
	}{
		"an unknown tool":              {[]llm.ToolCall{call("1", "fly", `{}`)}, []string{`there is no tool "fly"`}, 0},
		"missing arguments":            {[]llm.ToolCall{call("1", "count", `{}`)}, []string{"the arguments do not fit", "n"}, 0},
		"wrong arguments":              {[]llm.ToolCall{call("1", "count", `{"n":"one"}`)}, []string{"the arguments do not fit"}, 0},
		"no arguments":                 {[]llm.ToolCall{call("1", "count", `null`)}, []string{"the arguments do not fit"}, 0},
		"one that cannot and one that": {[]llm.ToolCall{call("1", "fly", `{}`), call("2", "count", `{"n":1}`)}, []string{"no tool", "counted"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var c counter
			got := furnished(t, reporting(test.calls...), c.tool("count", agent.ReadOnly)).says("go")
			for _, want := range test.want {
				if !strings.Contains(got, want) {
					t.Errorf("the model reports %q, want it to contain %q", got, want)
				}
			}
			c.ran(t, test.runs)
		})
	}
}

func TestAToolThatFailsDoesNotEndTheTurn(t *testing.T) {
	schema := json.RawMessage(`{"type":"object"}`)
	for name, test := range map[string]struct {
		run  func(context.Context, agent.Call) (string, error)
		want string
	}{
		"an error": {func(context.Context, agent.Call) (string, error) { return "", errors.New("no such host") }, "[Error: no such host]"},
		"a panic":  {func(context.Context, agent.Call) (string, error) { panic("oops") }, "[Error: the tool failed: oops]"},
		"silence":  {func(context.Context, agent.Call) (string, error) { return "", nil }, "[(no output)]"},
	} {
		tool := agent.Tool{Tool: llm.Tool{Name: "try", Parameters: schema}, Effect: agent.ReadOnly, Run: test.run}
		if got := furnished(t, reporting(call("1", "try", "{}")), tool).says("go"); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

func TestASlowToolIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tool := agent.Tool{Tool: llm.Tool{Name: "wait", Parameters: json.RawMessage(`{"type":"object"}`)}, Effect: agent.ReadOnly,
			Run: func(ctx context.Context, _ agent.Call) (string, error) { <-ctx.Done(); return "", ctx.Err() }}
		h := newHouse(t, memory.New(), agent.Options{Provider: reporting(call("1", "wait", "{}")), Tools: []agent.Tool{tool}, ToolTimeout: time.Minute})
		begun := time.Now()
		if got, want := h.says("go"), "[Error: context deadline exceeded]"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if took := time.Since(begun); took != time.Minute {
			t.Errorf("the turn took %v, want a minute", took)
		}
	})
}

func TestALongResultIsCutAndSaysSo(t *testing.T) {
	const limit = 32 << 10
	for name, test := range map[string]struct {
		result string
		shown  int // bytes, -1: all
	}{
		"as long as may be": {strings.Repeat("x", limit), -1},
		"longer":            {strings.Repeat("x", limit+1), limit},
		"not within a sign": {strings.Repeat("é", limit), limit},
		"nor within a long": {"x" + strings.Repeat("😀", limit), limit - 3},
	} {
		tool := agent.Tool{Tool: llm.Tool{Name: "read", Parameters: json.RawMessage(`{"type":"object"}`)}, Effect: agent.ReadOnly,
			Run: func(context.Context, agent.Call) (string, error) { return test.result, nil }}
		want := "[" + test.result + "]"
		if test.shown >= 0 {
			want = fmt.Sprintf("[%s\n[cut: %d of %d bytes shown]]", test.result[:test.shown], test.shown, len(test.result))
		}
		if got := furnished(t, reporting(call("1", "read", "{}")), tool).says("go"); got != want {
			t.Errorf("%s: got %d bytes ending in %q, want %d ending in %q", name, len(got), end(got), len(want), end(want))
		}
	}
}

func end(s string) string { return s[max(0, len(s)-60):] }

func TestTheLastRoundOffersNoTools(t *testing.T) {
	var c counter
	m := &model{answer: func(llm.Request) (llm.Response, error) { return calling(call("1", "count", `{"n":1}`)) }}
	h := newHouse(t, memory.New(), agent.Options{Provider: m, Tools: []agent.Tool{c.tool("count", agent.ReadOnly)}, MaxRounds: 3})
	if got := h.says("go"); got != "Let me see." {
		t.Errorf("got %q, want the words without the calls", got)
	}
	c.ran(t, 2)
	asked := m.requests()
	if len(asked) != 3 || len(asked[1].Tools) != 1 || asked[2].Tools != nil {
		t.Errorf("got %d requests, want 3, the last without tools", len(asked))
	}
}

func TestAnEmptyAnswerDoesNotSpoilTheConversation(t *testing.T) {
	for finish, want := range map[llm.Finish]string{
		llm.FinishLength:        "used up the length",
		llm.FinishContentFilter: "content filter",
		llm.FinishStop:          "gave no answer",
	} {
		empty := true
		m := &model{answer: func(llm.Request) (llm.Response, error) {
			if empty {
				return llm.Response{Message: llm.AssistantText(""), Finish: finish}, nil
			}
			return text("Here I am.")
		}}
		h := furnished(t, m)
		if got := h.says("hi"); !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want it to contain %q", finish, got, want)
		}
		empty = false
		if got := h.says("are you there?"); got != "Here I am." {
			t.Errorf("%s: got %q in the next turn", finish, got)
		}
	}
}

func TestTheModelSeesTheNewestMessages(t *testing.T) {
	m := &model{answer: func(req llm.Request) (llm.Response, error) { return text("echo " + lastText(req)) }}
	h := newHouse(t, memory.New(), agent.Options{Provider: m, History: 4})
	for i := range 5 {
		h.says(fmt.Sprint(i))
	}
	asked := m.requests()
	var got []string
	for _, message := range asked[len(asked)-1].Messages {
		got = append(got, message.Content.Text())
	}
	if want := []string{"3", "echo 3", "4"}; !slices.Equal(got, want) {
		t.Errorf("the model was shown %q, want %q: the newest four, from the first of a user on", got, want)
	}
}

func lastText(req llm.Request) string { return req.Messages[len(req.Messages)-1].Content.Text() }

func TestAShortWindowNeverLosesWhatIsAnswered(t *testing.T) {
	var c counter
	var calls []llm.ToolCall
	for i := range 9 {
		calls = append(calls, call(fmt.Sprint(i), "count", `{"n":1}`))
	}
	h := newHouse(t, memory.New(), agent.Options{Provider: reporting(calls...), Tools: []agent.Tool{c.tool("count", agent.ReadOnly)}, History: 2})
	if got, want := h.says("go"), strings.Repeat("[counted]", 9); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestADecisionLongAfterItsCallIsReported(t *testing.T) {
	var c counter
	m := &model{answer: func(req llm.Request) (llm.Response, error) {
		if last := req.Messages[len(req.Messages)-1]; last.Role == llm.User && last.Content.Text() == "deploy" {
			return calling(call("1", "fly", `{}`), call("2", "deploy", `{"n":1}`))
		}
		return text("heard: " + lastText(req))
	}}
	h := newHouse(t, memory.New(), agent.Options{Provider: m, Tools: []agent.Tool{c.gated("deploy")}, History: 4})
	waiting, _ := h.asked("deploy")
	for i := range 6 {
		h.says(fmt.Sprint("meanwhile ", i))
	}
	out, err := h.decide("decision", waiting, map[string]string{"state": "approved"})
	if err != nil {
		t.Fatal(err)
	}
	if got := reply(t, out); got != "heard: counted" {
		t.Errorf("got %q, want heard: counted", got)
	}
	c.ran(t, 1)
}

// flaky fails so many times and then answers.
func flaky(times int, err error) *model {
	return &model{answer: func(llm.Request) (llm.Response, error) {
		if times > 0 {
			times--
			return llm.Response{}, err
		}
		return text("At last.")
	}}
}

func TestATransientFailureOfTheModelIsTriedAgain(t *testing.T) {
	unavailable := &llm.Error{Category: llm.Unavailable, Message: "busy"}
	for name, test := range map[string]struct {
		times int
		err   error
		takes time.Duration
		asks  int
		fails bool
	}{
		"once":                         {1, unavailable, 500 * time.Millisecond, 2, false},
		"twice":                        {2, unavailable, 2500 * time.Millisecond, 3, false},
		"three times is too often":     {3, unavailable, 2500 * time.Millisecond, 3, true},
		"the provider says how long":   {1, &llm.Error{Category: llm.RateLimit, RetryAfter: 7 * time.Second}, 7 * time.Second, 2, false},
		"the provider says too long":   {1, &llm.Error{Category: llm.RateLimit, RetryAfter: time.Hour}, 0, 1, true},
		"what will not pass":           {1, &llm.Error{Category: llm.Authentication}, 0, 1, true},
		"what the request is to blame": {1, &llm.Error{Category: llm.InvalidRequest}, 0, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := flaky(test.times, test.err)
				begun := time.Now()
				out := furnished(t, m).send("", "hi")
				if failed := out.Status != graph.Completed; failed != test.fails {
					t.Errorf("got status %s, %v, want failure %v", out.Status, out.Err, test.fails)
				}
				if took := time.Since(begun); took != test.takes || len(m.requests()) != test.asks {
					t.Errorf("asked %d times in %v, want %d in %v", len(m.requests()), took, test.asks, test.takes)
				}
			})
		})
	}
}

func TestAnAnswerThatBreaksOffIsAskedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := true
		m := &model{answer: func(llm.Request) (llm.Response, error) {
			if broken {
				broken = false
				return llm.Response{Message: llm.AssistantText("Hel"), Finish: llm.FinishError}, nil
			}
			return text("Hello.")
		}}
		if got := furnished(t, m).says("hi"); got != "Hello." {
			t.Errorf("got %q, want Hello.", got)
		}
	})
}

// streaming shows words one by one and can fail after them.
type streaming struct {
	*model
	words []string
	err   error
}

func (s *streaming) Stream(ctx context.Context, req llm.Request, onText func(string)) (llm.Response, error) {
	for _, w := range s.words {
		onText(w)
	}
	if s.err != nil {
		s.asked = append(s.asked, req)
		return llm.Response{}, s.err
	}
	return s.Complete(ctx, req)
}

func TestAnAnswerIsShownWhileItGrows(t *testing.T) {
	m := &streaming{model: &model{answer: func(llm.Request) (llm.Response, error) { return text("one two") }}, words: []string{"one ", "two"}}
	var shown []string
	out := furnished(t, m).chat.Send(t.Context(), session, llm.UserText("hi"), chat.SendOptions{OnEmit: func(v any) {
		if d, ok := v.(chat.Delta); ok {
			shown = append(shown, d.Text)
		}
	}})
	if got := reply(t, out); got != "one two" || !slices.Equal(shown, m.words) {
		t.Errorf("got %q and saw %q grow, want one two in two pieces", got, shown)
	}
}

func TestWhatWasShownIsNotAskedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &streaming{model: &model{}, words: []string{"one "}, err: &llm.Error{Category: llm.Unavailable, Message: "gone"}}
		if out := furnished(t, m).send("", "hi"); out.Status != graph.Errored || len(m.requests()) != 1 {
			t.Errorf("got status %s after %d requests, want an error after one", out.Status, len(m.requests()))
		}
	})
}

func TestAModelThatDoesNotAnswerIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, memory.New(), agent.Options{Provider: deaf{}, ModelTimeout: time.Minute})
		begun := time.Now()
		out := h.send("", "hi")
		if out.Category != string(llm.Unavailable) || time.Since(begun) != 3*time.Minute+2500*time.Millisecond {
			t.Errorf("got %q after %v, want unavailable after three tries of a minute", out.Category, time.Since(begun))
		}
	})
}

// deaf never answers.
type deaf struct{}

func (deaf) Ready(context.Context) error { return nil }
func (deaf) Complete(ctx context.Context, _ llm.Request) (llm.Response, error) {
	<-ctx.Done()
	return llm.Response{}, ctx.Err()
}

func TestStopEndsTheTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(graph.ErrCancelled) })
		out := furnished(t, deaf{}).chat.Send(ctx, session, llm.UserText("hi"), chat.SendOptions{})
		if out.Status != graph.Errored || out.Interrupted() {
			t.Errorf("got status %s, %q, want an error that is no interruption", out.Status, out.Category)
		}
	})
}

func TestMistakesInTheToolsAreFoundAtTheStart(t *testing.T) {
	var c counter
	noRun, noSchema := c.tool("a", ""), c.tool("a", "")
	noRun.Run = nil
	noSchema.Parameters = json.RawMessage(`{"type":12}`)
	for want, o := range map[string]agent.Options{
		"no provider":          {},
		"two tools are called": {Provider: deaf{}, Tools: []agent.Tool{c.tool("a", ""), c.tool("a", "")}},
		"has no Run":           {Provider: deaf{}, Tools: []agent.Tool{noRun}},
		"parameters":           {Provider: deaf{}, Tools: []agent.Tool{noSchema}},
	} {
		if _, err := agent.New(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error about %q", err, want)
		}
	}
}
