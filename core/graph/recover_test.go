package graph_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/parley-chat/parley/conformance/storetest/failing"
	"github.com/parley-chat/parley/core/graph"
	"github.com/parley-chat/parley/store"
	"github.com/parley-chat/parley/store/memory"
)

func TestATurnThatEndedIsAnsweredFromItsRecord(t *testing.T) {
	ends := map[string]struct {
		node   graph.Node
		status graph.Status
	}{
		"completed": {says("end"), graph.Completed},
		"suspended": {waits("end", "go"), graph.Suspended},
		"errored": {does("end", func(context.Context, graph.State) (graph.Update, error) {
			return nil, &told{category: "provider_unavailable", text: "away"}
		}), graph.Errored},
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			kv, runs := memory.New(), 0
			d := chain(does("a", func(context.Context, graph.State) (graph.Update, error) {
				runs++
				return graph.Update{said.Add("a"), count.Set(runs)}, nil
			}), end.node)
			c := compile(t, d, keeping(kv))
			req := graph.Request{SessionID: "s", InvocationID: "turn", Input: graph.Update{said.Add("in")}}
			first, err := c.Invoke(t.Context(), req)
			check := func(when string) {
				t.Helper()
				again, againErr := compile(t, d, keeping(kv)).Invoke(t.Context(), req)
				if again.Status != end.status || !again.Recorded || runs != 1 {
					t.Errorf("%s: the outcome is %s, recorded %v, and the node ran %d times", when, again.Status, again.Recorded, runs)
				}
				if again.InvocationID != first.InvocationID || again.NodeName != first.NodeName || again.SessionID != "s" {
					t.Errorf("%s: got %+v, want %+v", when, again, first)
				}
				if graph.CategoryOf(againErr) != graph.CategoryOf(err) || graph.DiagnosticOf(againErr) != graph.DiagnosticOf(err) {
					t.Errorf("%s: got %v, want %v", when, againErr, err)
				}
				if first.Descriptor != nil && again.Descriptor.SignalID != first.Descriptor.SignalID {
					t.Errorf("%s: it waits for %v, want %v", when, again.Descriptor, first.Descriptor)
				}
				if end.status != graph.Errored {
					if got, want := tail(t, again), tail(t, first); !slices.Equal(got, want) {
						t.Errorf("%s: the turn added %v, want %v", when, got, want)
					}
				}
			}
			check("at once")
			if end.status == graph.Completed {
				// Another turn makes the session longer.
				if _, err := c.Invoke(t.Context(), graph.Request{SessionID: "s", InvocationID: "next"}); err != nil {
					t.Fatal(err)
				}
				runs = 1
				check("after another turn")
			}
			if err := store.NewRecords(kv).Delete(t.Context(), "s"); err != nil {
				t.Fatal(err)
			}
			check("after the session was deleted")
		})
	}
}

// tail is what a turn added to the list.
func tail(t testing.TB, out graph.Outcome) []string {
	t.Helper()
	l := said.Get(out.State)
	items, err := l.Slice(t.Context(), said.Get(out.Loaded).Len(), l.Len())
	if err != nil {
		t.Fatal(err)
	}
	return items
}

func TestAResumptionIsAnsweredFromItsRecordByItsTurnID(t *testing.T) {
	runs := 0
	c := onMemory(t, chain(says("a"), waits("gate", "go"), does("b", func(context.Context, graph.State) (graph.Update, error) {
		runs++
		return graph.Update{said.Add("b")}, nil
	})))
	first := mustInvoke(t, c, graph.Request{SessionID: "s", TurnID: "message", InvocationID: "message"}, graph.Suspended)
	resume := graph.Request{Resume: first.InvocationID, TurnID: "click", Payload: payload(`{"count":1}`)}
	for i := range 3 {
		out := mustInvoke(t, c, resume, graph.Completed)
		if out.Recorded != (i > 0) || runs != 1 {
			t.Errorf("time %d: recorded %v, the node ran %d times", i, out.Recorded, runs)
		}
		if got := tail(t, out); !slices.Equal(got, []string{"b"}) {
			t.Errorf("time %d: the turn added %v, want b", i, got)
		}
	}
	again := mustInvoke(t, c, graph.Request{SessionID: "s", TurnID: "message", InvocationID: "message"}, graph.Suspended)
	if !again.Recorded || !slices.Equal(tail(t, again), []string{"a"}) {
		t.Errorf("the first turn is answered with %v, recorded %v", tail(t, again), again.Recorded)
	}
	_, err := c.Invoke(t.Context(), graph.Request{Resume: first.InvocationID, TurnID: "second click"})
	wantError(t, err, graph.SuspensionRecordInvalid)
}

func TestAnotherTurnUnderAKnownInvocationIsRefused(t *testing.T) {
	c := onMemory(t, chain(says("a")))
	mustInvoke(t, c, graph.Request{InvocationID: "i", TurnID: "one"}, graph.Completed)
	_, err := c.Invoke(t.Context(), graph.Request{InvocationID: "i", TurnID: "two"})
	wantError(t, err, graph.SuspensionRecordInvalid)
}

// A turn was interrupted, another one ran in its session, then the first went on: it must not cut off what the other
// one said, nor overwrite what it wrote.
func TestATurnThatGoesOnKeepsWhatAnotherSaidMeanwhile(t *testing.T) {
	for _, existed := range []bool{false, true} {
		t.Run(fmt.Sprintf("session existed: %v", existed), func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			stop := false
			c := onMemory(t, chain(says("a"), does("b", func(ctx context.Context, s graph.State) (graph.Update, error) {
				if stop {
					cancel()
					return nil, ctx.Err()
				}
				return graph.Update{said.Add("b")}, nil
			})))
			if existed {
				mustInvoke(t, c, graph.Request{SessionID: "s"}, graph.Completed)
			}
			stop = true
			_, err := c.Invoke(ctx, graph.Request{SessionID: "s", InvocationID: "first", Input: graph.Update{said.Add("mine")}})
			wantError(t, err, graph.Interrupted)
			stop = false
			other := mustInvoke(t, c, graph.Request{SessionID: "s", Input: graph.Update{said.Add("other"), count.Set(3)}}, graph.Completed)
			before, _ := said.Get(other.State).All(t.Context())
			out := mustInvoke(t, c, graph.Request{SessionID: "s", InvocationID: "first"}, graph.Completed)
			wantSaid(t, out.State, append(before, "mine", "a", "b")...)
			if got := tail(t, out); !slices.Equal(got, []string{"mine", "a", "b"}) {
				t.Errorf("the turn added %v", got)
			}
			if count.Get(out.State) != 3 {
				t.Errorf("the other turn's field is %d, want 3", count.Get(out.State))
			}
			wantState(t, mustInvoke(t, c, graph.Request{SessionID: "s"}, graph.Completed).Loaded, stateJSON(t, out.State))
		})
	}
}

// A node saved the session and the turn was interrupted after that: going on, the turn's own save is not taken for
// another turn's.
func TestATurnThatGoesOnDoesNotRepeatWhatItSavedItself(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var c *graph.Compiled
	c = onMemory(t, chain(says("a"), does("b", func(ctx context.Context, s graph.State) (graph.Update, error) {
		return graph.Update{said.Add("b")}, c.Save(ctx, s, said.Add("b"))
	}), does("c", func(ctx2 context.Context, s graph.State) (graph.Update, error) {
		if ctx.Err() == nil {
			cancel()
			return nil, ctx.Err()
		}
		return graph.Update{said.Add("c")}, nil
	})))
	_, err := c.Invoke(ctx, graph.Request{SessionID: "s", InvocationID: "i"})
	wantError(t, err, graph.Interrupted)
	wantSaid(t, mustInvoke(t, c, graph.Request{SessionID: "s", InvocationID: "i"}, graph.Completed).State, "a", "b", "c")
	wantSaid(t, mustInvoke(t, c, graph.Request{SessionID: "s"}, graph.Completed).Loaded, "a", "b", "c")
}

// process is one run of the program: the graph compiled on a store, and what its nodes do to the outside.
type process struct {
	*graph.Compiled
	outside *outside
}

// outside is the world, which no death of a process undoes.
type outside struct {
	effects []string            // what the node "act" did, by turn
	runs    map[string]int      // of each node, by turn
	untold  map[string][]string // nodes that ran again and were not told, by turn
}

// start is the program starting on what the store holds.
func (o *outside) start(t *testing.T, kv store.KV, unlike graph.Options) process {
	node := func(name string, run graph.NodeFunc) graph.Node {
		return does(name, func(ctx context.Context, s graph.State) (graph.Update, error) {
			id := graph.IdentityFrom(ctx)
			key := id.TurnID + "/" + name
			if o.runs[key]++; o.runs[key] > 1 && !id.Recovered {
				o.untold[id.TurnID] = append(o.untold[id.TurnID], name)
			}
			return run(ctx, s)
		})
	}
	speak := func(name string) graph.Node { return node(name, says(name).Run) }
	d := chain(speak("hear"), speak("ask"), node("gate", waits("gate", "go").Run), node("act", func(ctx context.Context, s graph.State) (graph.Update, error) {
		id := graph.IdentityFrom(ctx)
		if id.Recovered && slices.Contains(o.effects, id.TurnID) {
			return graph.Update{said.Add("acted")}, nil // it was done before the process died
		}
		o.effects = append(o.effects, id.TurnID)
		return graph.Update{said.Add("acted")}, nil
	}), speak("tell"))
	d.Edges[0] = graph.Edge{From: "hear", Choose: func(_ context.Context, s graph.State) (graph.Target, error) {
		if count.Get(s) == 1 {
			return graph.To("tell"), nil
		}
		return graph.To("ask"), nil
	}}
	opts := keeping(kv)
	opts.Sessions = unlikeSessions(opts.Sessions, unlike)
	return process{compile(t, d, opts), o}
}

func unlikeSessions(s graph.SessionStore, unlike graph.Options) graph.SessionStore {
	if unlike.NoAutoSave { // a store that cannot commit sessions and invocations at once
		return struct{ graph.SessionStore }{s}
	}
	return s
}

// script is what reaches the program, in order; each step is repeated until it has an answer, as an inbox would.
func (p process) script(ctx context.Context) ([]graph.Outcome, error) {
	var outs []graph.Outcome
	for _, req := range []graph.Request{
		{SessionID: "s", InvocationID: "m1", Input: graph.Update{said.Add("do it"), count.Set(0)}},
		{SessionID: "s", InvocationID: "m2", Input: graph.Update{said.Add("how is it?"), count.Set(1)}},
		{Resume: "m1", TurnID: "click", Payload: payload(`{"count": 2}`)},
		{SessionID: "s", InvocationID: "m3", Input: graph.Update{said.Add("thanks"), count.Set(1)}},
	} {
		out, err := p.Invoke(ctx, req)
		if err != nil {
			return outs, err
		}
		outs = append(outs, out)
	}
	return outs, nil
}

// The process dies at every commit of the script in turn, before and after it took effect, and starts again: everything
// ends as if it had not died, and what was done to the outside was done once.
func TestACrashAtAnyCommitChangesNothing(t *testing.T) {
	plain := &outside{runs: map[string]int{}, untold: map[string][]string{}}
	want, err := plain.start(t, memory.New(), graph.Options{}).script(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	wantSaid(t, want[3].State, "do it", "hear", "ask", "how is it?", "hear", "tell", "acted", "tell", "thanks", "hear", "tell")
	for _, together := range []bool{true, false} {
		for _, fault := range []failing.Fault{failing.DieBefore, failing.DieAfter} {
			t.Run(fmt.Sprintf("%s, one commit: %v", fault, together), func(t *testing.T) {
				places := 0
				for k := 1; ; k++ {
					kv := memory.New()
					o := &outside{runs: map[string]int{}, untold: map[string][]string{}}
					dying := failing.New(kv, k, fault)
					unlike := graph.Options{NoAutoSave: !together}
					_, err := o.start(t, dying, unlike).script(t.Context())
					if !dying.Reached() {
						break
					}
					places = k
					if err == nil {
						t.Fatalf("at commit %d nobody noticed", k)
					}
					got, err := o.start(t, kv, unlike).script(t.Context())
					if err != nil {
						t.Fatalf("at commit %d the script does not end: %v", k, err)
					}
					sameEnds(t, k, got, want)
					o.check(t, k)
				}
				if places < 9 {
					t.Errorf("the script has %d commits", places)
				}
			})
		}
	}
}

func sameEnds(t *testing.T, k int, got, want []graph.Outcome) {
	t.Helper()
	for i := range want {
		if got[i].Status != want[i].Status || got[i].InvocationID != want[i].InvocationID {
			t.Errorf("at commit %d: step %d ended %s, want %s", k, i, got[i].Status, want[i].Status)
		}
		if g, w := tail(t, got[i]), tail(t, want[i]); !slices.Equal(g, w) {
			t.Errorf("at commit %d: step %d added %v, want %v", k, i, g, w)
		}
	}
	last := len(want) - 1
	if g, w := stateJSON(t, got[last].State), stateJSON(t, want[last].State); g != w {
		t.Errorf("at commit %d: got %s, want %s", k, g, w)
	}
}

// check looks at the outside after a crash. Only the entry of a new invocation may run again without being told.
func (o *outside) check(t *testing.T, k int) {
	t.Helper()
	if !slices.Equal(o.effects, []string{"click"}) {
		t.Errorf("at commit %d: the effects are %v, want one of the click", k, o.effects)
	}
	again := 0
	for key, runs := range o.runs {
		again += runs - 1
		if runs > 2 {
			t.Errorf("at commit %d: %s ran %d times", k, key, runs)
		}
	}
	if again > 1 {
		t.Errorf("at commit %d: %d nodes ran again, want at most the one that was running", k, again)
	}
	for turn, nodes := range o.untold {
		if !slices.Equal(nodes, []string{"hear"}) {
			t.Errorf("at commit %d: in %s the nodes %v ran again and were not told", k, turn, nodes)
		}
	}
}

// A commit fails once and the process lives on: the same turn, sent again, ends as it would have; only a suspension that
// could not be kept is an error for good, and leaves nothing to resume.
func TestACommitThatFailsOnceIsMendedByTheSameTurn(t *testing.T) {
	for _, fault := range []failing.Fault{failing.FailBefore, failing.FailAfter} {
		t.Run(fault.String(), func(t *testing.T) {
			refused := 0
			for k := 1; ; k++ {
				o := &outside{runs: map[string]int{}, untold: map[string][]string{}}
				once := failing.New(memory.New(), k, fault)
				p := o.start(t, once, graph.Options{})
				_, err := p.script(t.Context())
				if !once.Reached() {
					break
				}
				if err == nil || !errors.Is(err, failing.ErrInjected) {
					t.Fatalf("at commit %d: %v", k, err)
				}
				got, err := p.script(t.Context())
				if graph.CategoryOf(err) == graph.SuspensionPersistenceFailed {
					refused++
					_, err = p.Invoke(t.Context(), graph.Request{Resume: "m1"})
					wantError(t, err, graph.SuspensionRecordInvalid)
					continue
				}
				if err != nil || len(got) != 4 {
					t.Fatalf("at commit %d the script does not end: %v", k, err)
				}
				wantSaid(t, got[3].State, "do it", "hear", "ask", "how is it?", "hear", "tell", "acted", "tell", "thanks", "hear", "tell")
				o.check(t, k)
			}
			if refused != 1 {
				t.Errorf("%d commits were suspensions, want 1", refused)
			}
		})
	}
}

func TestADamagedRecordIsToldAndNotOverwritten(t *testing.T) {
	kv := memory.New()
	c := compile(t, chain(says("a")), keeping(kv))
	mustInvoke(t, c, graph.Request{InvocationID: "i"}, graph.Completed)
	damage(t, kv, "")
	_, err := c.Invoke(t.Context(), graph.Request{InvocationID: "i"})
	wantError(t, err, graph.CheckpointRecordInvalid)
	damage(t, kv, `{"v":99,"r":{}}`)
	_, err = c.Invoke(t.Context(), graph.Request{InvocationID: "i"})
	if !errors.Is(err, store.ErrVersion) || !strings.Contains(err.Error(), "record of the invocation") {
		t.Errorf("got %v, want %v", err, store.ErrVersion)
	}
}

// damage writes value over every record.
func damage(t *testing.T, kv store.KV, value string) {
	t.Helper()
	err := kv.Update(t.Context(), func(tx store.Tx) error {
		var keys [][]byte
		if err := tx.Scan(nil, nil, false, func(k, _ []byte) bool { keys = append(keys, slices.Clone(k)); return true }); err != nil {
			return err
		}
		for _, k := range keys {
			if err := tx.Put(k, []byte(value)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
