package main

import (
	"fmt"
	"net/http"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/parley-chat/parley/platforms/slack/slacktwin"
)

// sayMany lets a person begin n conversations at once, and returns them.
func (o *office) sayMany(n int) []*talk {
	o.t.Helper()
	var talks []*talk
	for i := range n {
		k := &talk{who: ada, channel: general}
		text := fmt.Sprintf("question %d", i)
		ts, err := o.twin.Say(k.who, k.channel, "", o.mention(text))
		if err != nil {
			o.t.Fatal(err)
		}
		k.thread, k.said = ts, []words{{ts: ts, answer: "echo: " + text}}
		talks = append(talks, k)
	}
	return talks
}

// awaitTaken waits until the bot has taken every message of the conversations.
func (o *office) awaitTaken(talks []*talk) {
	o.t.Helper()
	if err := o.twin.Idle(o.ctx); err != nil {
		o.t.Fatal("the bot did not take what was said:", err)
	}
	taken := o.taken()
	for _, k := range talks {
		if taken[k.thread].surely.IsZero() {
			o.t.Fatalf("the bot did not take %s", k.thread)
		}
	}
}

// awaitAnswers waits until every message has its answer in its conversation, whole.
func (o *office) awaitAnswers(talks []*talk) {
	o.t.Helper()
	answered := func(k *talk) bool {
		answers := o.answersIn(k)
		return !slices.ContainsFunc(k.said, func(w words) bool {
			return !slices.ContainsFunc(answers, func(a slacktwin.Message) bool { return a.Text == w.answer })
		})
	}
	all := func() bool { return !slices.ContainsFunc(talks, func(k *talk) bool { return !answered(k) }) }
	if !o.await(all) {
		o.t.Error("not every message was answered in time")
	}
}

func TestAStoppedBotFinishesWhatRunsAndLeavesTheRestToTheNext(t *testing.T) {
	t.Parallel()
	o := newOffice(t, overHTTP, time.Minute, "BOT_MODEL=echo", "BOT_ECHO_DELAY=1s", "BOT_TURNS=2", "BOT_DRAIN=20s")
	first := o.start().ready()
	talks := o.sayMany(8)
	o.awaitTaken(talks)
	before := len(o.said(general))
	if err := first.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for status, body := o.probe("/readyz"); status != http.StatusServiceUnavailable; status, body = o.probe("/readyz") {
		if status != http.StatusOK || o.ctx.Err() != nil {
			t.Fatalf("while it drains, /readyz answers %d %q, want 503", status, body)
		}
	}
	if status, body := o.probe("/healthz"); status != http.StatusOK {
		t.Errorf("while it drains, /healthz answers %d %q, want 200", status, body)
	}
	talks = append(talks, o.sayMany(2)...) // which it does not take
	first.mustEndWell()
	if n := len(o.said(general)) - before; n < 1 || n > 4 {
		t.Errorf("after it was stopped the bot said %d things, want those of 2 turns that ran and of 2 that had just ended", n)
	}
	if lanes, places := o.leftovers(); lanes == 0 || places != 0 {
		t.Errorf("left over are messages of %d conversations and replies to %d, want some and none", lanes, places)
	}
	o.env = append(o.env, "BOT_ECHO_DELAY=0s")
	second := o.start()
	o.awaitAnswers(talks)
	second.stop()
	o.checkTalks(talks, len(talks))
	o.checkAtRest()
}

func TestADrainEndsInTimeAndTheTurnItCutShortGoesOnInTheNextLife(t *testing.T) {
	t.Parallel()
	o := newOffice(t, overHTTP, time.Minute, "BOT_MODEL=echo", "BOT_ECHO_DELAY=1h", "BOT_DRAIN=500ms")
	first := o.start().ready()
	talks := o.sayMany(3)
	o.awaitTaken(talks)
	began := time.Now()
	first.stop()
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("the bot took %s to end, want little more than BOT_DRAIN", took)
	}
	if n := len(o.said(general)); n != 0 {
		t.Errorf("a bot whose turns were cut short said %d things, want none", n)
	}
	o.env = append(o.env, "BOT_ECHO_DELAY=0s")
	second := o.start()
	o.awaitAnswers(talks)
	second.stop()
	o.checkTalks(talks, len(talks))
	o.checkAtRest()
}

func TestTheProbesTellWhetherMessagesCanArrive(t *testing.T) {
	t.Parallel()
	for _, way := range []transport{overHTTP, overSocket} {
		t.Run(way.String(), func(t *testing.T) {
			t.Parallel()
			o := newOffice(t, way, time.Minute)
			o.twin.Fault(slacktwin.Fault{Method: "auth.test", Status: http.StatusServiceUnavailable, Times: 2})
			l := o.start()
			seen := o.until(l, "/healthz", http.StatusOK)
			if slices.Contains(seen, http.StatusServiceUnavailable) {
				t.Errorf("/healthz answered %v, want 200 from the start", seen)
			}
			if seen := o.until(l, "/readyz", http.StatusOK); !slices.Contains(seen, http.StatusServiceUnavailable) {
				t.Errorf("/readyz answered %v, want 503 as long as Slack does not answer", seen)
			}
			if way == overSocket {
				o.twin.Fault(slacktwin.Fault{Method: "apps.connections.open", Status: http.StatusServiceUnavailable, Times: 2})
				o.twin.Disconnect("")
				o.until(l, "/readyz", http.StatusServiceUnavailable)
				o.until(l, "/readyz", http.StatusOK)
			}
			l.stop()
		})
	}
}

// until asks a probe again and again until it answers as wanted, and returns all its answers.
func (o *office) until(l *life, path string, want int) (seen []int) {
	o.t.Helper()
	for o.ctx.Err() == nil {
		status, _ := o.probe(path)
		if seen = append(seen, status); status == want {
			return seen
		}
		select {
		case err := <-l.ended:
			o.t.Fatalf("the bot ended with %v before %s answered %d", err, path, want)
		case <-time.After(10 * time.Millisecond):
		}
	}
	o.t.Fatalf("%s never answered %d, but %v", path, want, seen)
	return nil
}
