package slacktwin

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/slack-go/slack"
)

func TestScriptedFaultsOfCalls(t *testing.T) {
	tests := []struct {
		name   string
		fault  Fault
		check  func(error) bool
		posted int
	}{
		{"a refused token", Fault{Error: "token_revoked"}, func(err error) bool { return code(err) == "token_revoked" }, 0},
		{"429 with Retry-After", Fault{Status: 429, Error: "ratelimited", RetryAfter: 7 * time.Second}, func(err error) bool {
			limited, ok := errors.AsType[*slack.RateLimitedError](err)
			return ok && limited.RetryAfter == 7*time.Second
		}, 0},
		{"429 without", Fault{Status: 429}, func(err error) bool {
			status, ok := errors.AsType[slack.StatusCodeError](err)
			return ok && status.Code == 429
		}, 0},
		{"503 before", Fault{Status: 503}, isStatus(503), 0},
		{"503 after it was posted", Fault{Status: 503, Commit: true}, isStatus(503), 1},
		{"the line breaks before", Fault{Drop: true}, func(err error) bool { return err != nil }, 0},
		{"the answer is lost", Fault{Drop: true, Commit: true}, func(err error) bool { return err != nil }, 1},
		{"an error though it was posted", Fault{Error: "internal_error", Commit: true}, func(err error) bool {
			return code(err) == "internal_error"
		}, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, nil)
			tt.fault.Method = "chat.postMessage"
			w.Fault(tt.fault)
			_, _, err := w.api.PostMessage("CGENERAL", text("hello"))
			if !tt.check(err) {
				t.Errorf("got %T %v", err, err)
			}
			if got := len(w.Messages("CGENERAL")); got != tt.posted {
				t.Errorf("got %d messages, want %d", got, tt.posted)
			}
			call := w.Calls()[0]
			if call.OK || !call.Faulted || call.Args["text"] != "hello" || call.Args["token"] != "" {
				t.Errorf("journal: got %+v", call)
			}
			if _, _, err := w.api.PostMessage("CGENERAL", text("hello")); err != nil {
				t.Errorf("after the fault: %v", err)
			}
		})
	}
}

func isStatus(want int) func(error) bool {
	return func(err error) bool {
		status, ok := errors.AsType[slack.StatusCodeError](err)
		return ok && status.Code == want
	}
}

func TestFaultsSkipAndRepeat(t *testing.T) {
	w := newWorld(t, nil)
	w.Fault(Fault{Method: "auth.test", Skip: 1, Times: 2, Error: "internal_error"})
	var got []string
	for range 4 {
		_, err := w.api.AuthTest()
		got = append(got, code(err))
	}
	if want := []string{"", "internal_error", "internal_error", ""}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	w.Fault(Fault{Method: "*", Times: -1, Error: "fatal_error"})
	for range 3 {
		if _, err := w.api.AuthTest(); code(err) != "fatal_error" {
			t.Errorf("got %v", err)
		}
	}
	w.ClearFaults()
	if _, err := w.api.AuthTest(); err != nil {
		t.Errorf("after ClearFaults: %v", err)
	}
}

func TestADelayWaitsOnTheTwinsClock(t *testing.T) {
	for _, late := range []bool{false, true} {
		w := newWorld(t, nil)
		w.Fault(Fault{Method: "chat.postMessage", Delay: time.Minute, Late: late})
		answered := make(chan error, 1)
		go func() {
			_, _, err := w.api.PostMessage("CGENERAL", text("hello"))
			answered <- err
		}()
		waitFor(t, func() bool { return w.clock.waiting() > 0 })
		if got := len(w.Messages("CGENERAL")); (got == 1) != late {
			t.Errorf("late=%v: got %d messages before the time", late, got)
		}
		w.clock.Advance(time.Minute)
		if err := <-answered; err != nil {
			t.Error(err)
		}
	}
}

func (c *Clock) waiting() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.timers)
}

func TestScriptedFaultsOfDeliveries(t *testing.T) {
	tests := []struct {
		name  string
		fault Fault
		want  string // the texts in the order of their arrival, with the number of the retry
	}{
		{"duplicates", Fault{Duplicate: 2}, "a0 a0 a0 b0"},
		{"out of order", Fault{Hold: true}, "b0 a0"},
		{"lost", Fault{Lose: true}, "b0"},
		{"the acknowledgement is lost", Fault{LoseAck: true}, "a0 a1 b0"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, nil)
			w.listen()
			tt.fault.Event = "message"
			w.Fault(tt.fault)
			w.say("UALICE", "DALICE", "", "a")
			if !tt.fault.Hold {
				w.idle()
			}
			w.say("UALICE", "DALICE", "", "b")
			waitFor(t, func() bool { return len(w.bot.all()) > 0 })
			w.idle()
			got := ""
			for _, r := range w.bot.all() {
				num := r.Header.Get("X-Slack-Retry-Num")
				if num == "" {
					num = "0"
				}
				got += fmt.Sprint(r.event()["text"], num, " ")
			}
			if got != tt.want+" " {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestAClickCanBeLost(t *testing.T) {
	w := newWorld(t, nil)
	ts := w.post("CGENERAL", text("card"), slack.MsgOptionBlocks(buttons("approve", "v1")))
	w.listen()
	w.Fault(Fault{Event: "block_actions", Lose: true})
	w.Fault(Fault{Event: "block_actions", LoseAck: true})
	w.Fault(Fault{Event: "block_actions", Duplicate: 1})
	for i, want := range []struct {
		fails bool
		heard int
	}{{true, 0}, {true, 1}, {false, 3}} {
		err := w.Click(t.Context(), "UBOB", "CGENERAL", ts, "approve")
		if (err != nil) != want.fails || len(w.bot.all()) != want.heard {
			t.Errorf("click %d: got %v and %d heard, want %+v", i, err, len(w.bot.all()), want)
		}
	}
}
