package graph_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-chat/parley/core/graph"
	"github.com/parley-chat/parley/store/memory"
)

// diary is an observer that writes down what it sees.
type diary struct {
	mu    sync.Mutex
	lines []string
}

func (d *diary) write(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, fmt.Sprintf(format, args...))
}

func (d *diary) read() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.lines)
}

func (d *diary) observer(name string, phases ...graph.Phase) graph.Observer {
	return graph.Observer{Phases: phases, Observe: func(_ context.Context, e graph.Event) {
		d.write("%s: %d %s %s", name, e.Step, e.NodeName, e.Phase)
	}}
}

func drain(t *testing.T, c *graph.Compiled) {
	t.Helper()
	if sum := c.Drain(t.Context()); sum != (graph.DrainSummary{}) {
		t.Errorf("the drain left %+v", sum)
	}
}

func wantLines(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestObserversSeeEveryEventInOrderOneAfterTheOther(t *testing.T) {
	var d diary
	o := graph.Options{Observers: []graph.Observer{d.observer("one"), d.observer("two")}}
	c := compile(t, chain(says("a"), says("b")), o)
	mustInvoke(t, c, graph.Request{Observers: []graph.Observer{d.observer("call")}}, graph.Completed)
	drain(t, c)
	wantLines(t, d.read(),
		"one: 0 a started", "two: 0 a started", "call: 0 a started", "one: 0 a completed", "two: 0 a completed", "call: 0 a completed",
		"one: 1 b started", "two: 1 b started", "call: 1 b started", "one: 1 b completed", "two: 1 b completed", "call: 1 b completed")
}

func TestAnObserverHearsOnlyThePhasesItWants(t *testing.T) {
	var d diary
	o := keeping(memory.New())
	o.Observers = []graph.Observer{d.observer("ends", graph.PhaseCompleted), d.observer("pauses", graph.PhaseSuspended), d.observer("nothing", "x")}
	c := compile(t, chain(says("a"), waits("gate", "go")), o)
	mustInvoke(t, c, graph.Request{}, graph.Suspended)
	drain(t, c)
	wantLines(t, d.read(), "ends: 0 a completed", "pauses: 1 gate suspended")
}

func TestAnEventCarriesWhatHappened(t *testing.T) {
	var events []graph.Event
	var ids []graph.Identity
	d := chain(says("a"), does("b", func(context.Context, graph.State) (graph.Update, error) { return nil, errBoom }))
	c := compile(t, d, graph.Options{Observers: []graph.Observer{{Observe: func(ctx context.Context, e graph.Event) {
		events, ids = append(events, e), append(ids, graph.IdentityFrom(ctx))
	}}}})
	_, err := c.Invoke(t.Context(), graph.Request{SessionID: "s", InvocationID: "i"})
	wantError(t, err, graph.NodeException)
	drain(t, c)
	if len(events) != 4 {
		t.Fatalf("%d events, want 4", len(events))
	}
	wantSaid(t, events[0].PreState)
	wantSaid(t, *events[1].PostState, "a")
	wantSaid(t, events[2].PreState, "a")
	if events[0].PostState != nil || events[3].PostState != nil || events[3].Err == nil || events[3].Err.Category != graph.NodeException {
		t.Errorf("the last event is %+v", events[3])
	}
	for i, id := range ids {
		if id.InvocationID != "i" || id.SessionID != "s" || id.Node != events[i].NodeName {
			t.Errorf("event %d has the identity %+v", i, id)
		}
	}
}

func TestAPanickingObserverDisturbsNobody(t *testing.T) {
	var d diary
	c := compile(t, chain(says("a")), graph.Options{Observers: []graph.Observer{
		{Observe: func(context.Context, graph.Event) { panic("oh") }}, d.observer("after"),
	}})
	mustInvoke(t, c, graph.Request{}, graph.Completed)
	drain(t, c)
	wantLines(t, d.read(), "after: 0 a started", "after: 0 a completed")
}

func TestASlowObserverDoesNotHoldUpTheGraph(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d diary
		c := compile(t, chain(says("a"), says("b")), graph.Options{Observers: []graph.Observer{{Observe: func(_ context.Context, e graph.Event) {
			time.Sleep(time.Minute)
			d.write("%s %s", e.NodeName, e.Phase)
		}}}})
		begin := time.Now()
		mustInvoke(t, c, graph.Request{}, graph.Completed)
		if took := time.Since(begin); took != 0 {
			t.Errorf("the invocation took %s", took)
		}
		drain(t, c)
		if took := time.Since(begin); took != 4*time.Minute {
			t.Errorf("the drain took %s, want 4m", took)
		}
		wantLines(t, d.read(), "a started", "a completed", "b started", "b completed")
	})
}

func TestADrainWithADeadlineDropsTheRestAndLeavesTheGraphUsable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d diary
		slow := true
		c := compile(t, chain(says("a"), says("b"), says("c")), graph.Options{Observers: []graph.Observer{{Observe: func(ctx context.Context, e graph.Event) {
			if slow {
				select {
				case <-time.After(2 * time.Second):
				case <-ctx.Done(): // an observer that minds its context ends at once
					return
				}
			}
			d.write("%s %s", e.NodeName, e.Phase)
		}}}})
		mustInvoke(t, c, graph.Request{}, graph.Completed)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		begin := time.Now()
		sum := c.Drain(ctx)
		if want := (graph.DrainSummary{Undelivered: 5, TimeoutReached: true}); sum != want || time.Since(begin) != 3*time.Second {
			t.Errorf("got %+v after %s, want %+v after 3s", sum, time.Since(begin), want)
		}
		wantLines(t, d.read(), "a started")
		synctest.Wait()
		slow = false
		mustInvoke(t, c, graph.Request{}, graph.Completed)
		drain(t, c)
		wantLines(t, d.read(), "a started", "a started", "a completed", "b started", "b completed", "c started", "c completed")
	})
}

// An observer that never returns costs its own queue, and not the drains after.
func TestADrainIsNotHeldUpByAQueueThatWasGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck := make(chan struct{})
		defer close(stuck)
		c := compile(t, chain(says("a")), graph.Options{Observers: []graph.Observer{{Observe: func(context.Context, graph.Event) { <-stuck }}}})
		mustInvoke(t, c, graph.Request{}, graph.Completed)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if sum := c.Drain(ctx); sum.Undelivered != 2 || !sum.TimeoutReached {
			t.Errorf("got %+v, want 2 undelivered", sum)
		}
		drain(t, c)
	})
}

func TestADrainOfARunningInvocationThatIsUpToDateLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release, done := make(chan struct{}), make(chan struct{})
		var d diary
		c := compile(t, chain(does("a", func(context.Context, graph.State) (graph.Update, error) { <-release; return nil, nil })),
			graph.Options{Observers: []graph.Observer{d.observer("o")}})
		go func() {
			defer close(done)
			_, _ = c.Invoke(t.Context(), graph.Request{})
		}()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if sum := c.Drain(ctx); sum.Undelivered != 0 || !sum.TimeoutReached {
			t.Errorf("got %+v, want none undelivered", sum)
		}
		close(release)
		<-done
	})
}

func TestADrainWithoutInvocationsReturnsAtOnce(t *testing.T) {
	drain(t, compile(t, chain(says("a")), graph.Options{}))
}
