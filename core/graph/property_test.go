package graph_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/parley-chat/parley/conformance/storetest/failing"
	"github.com/parley-chat/parley/core/graph"
	"github.com/parley-chat/parley/store"
	"github.com/parley-chat/parley/store/memory"
)

// step is one node of a random graph.
type step struct {
	add     int
	suspend string // "", "after" or "here"
}

// plan draws a chain of up to eight nodes, some of which suspend.
func plan(t *rapid.T) []step {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) step {
		return step{add: rapid.IntRange(0, 3).Draw(t, "add"), suspend: rapid.SampledFrom([]string{"", "", "after", "here"}).Draw(t, "suspend")}
	}), 1, 8).Draw(t, "plan")
}

// definitionOf makes the plan's graph. answered counts the signals that have come. With asked unset nothing suspends:
// the nodes take the answers as given.
func definitionOf(steps []step, asked bool) graph.Definition {
	answered := graph.Value("answered", 0)
	var nodes []graph.Node
	signals := 0
	for i, s := range steps {
		if s.suspend != "" {
			signals++
		}
		nodes = append(nodes, does("n"+strconv.Itoa(i), s.body(i, signals, answered, asked)))
	}
	d := chain(nodes...)
	d.Fields = append(d.Fields, answered)
	return d
}

func (s step) body(i, signals int, answered graph.Var[int], asked bool) graph.NodeFunc {
	return func(_ context.Context, st graph.State) (graph.Update, error) {
		waiting := s.suspend != "" && answered.Get(st) < signals
		switch {
		case waiting && asked && s.suspend == "here":
			return nil, graph.SuspendHere(graph.Descriptor{SignalID: "go"})
		case waiting && asked:
			return nil, graph.Suspend(graph.Descriptor{SignalID: "go"})
		}
		u := graph.Update{count.Set(count.Get(st)*10 + s.add)}
		if s.suspend == "after" { // what follows such a node sees the payload alone
			u = graph.Update{}
		}
		if waiting {
			u = append(u, answered.Set(signals))
		}
		for k := range s.add {
			if s.suspend != "after" {
				u = append(u, said.Add(fmt.Sprintf("%d.%d", i, k)))
			}
		}
		return u, nil
	}
}

// play invokes the plan in a session, answering every suspension, until it completes.
func play(ctx context.Context, c *graph.Compiled) (graph.Outcome, error) {
	req := graph.Request{SessionID: "s", InvocationID: "turn", Input: graph.Update{said.Add("in")}}
	out, err := c.Invoke(ctx, req)
	for n := 1; err == nil && out.Status == graph.Suspended; n++ {
		out, err = c.Invoke(ctx, graph.Request{
			Resume: "turn", TurnID: "signal " + strconv.Itoa(n),
			Payload: map[string]json.RawMessage{"answered": json.RawMessage(strconv.Itoa(n))},
		})
	}
	return out, err
}

func playOn(t *rapid.T, kv store.KV, d graph.Definition) (string, error) {
	c, err := graph.Compile(d, keeping(kv))
	if err != nil {
		t.Fatal(err)
	}
	out, err := play(context.Background(), c)
	if err != nil {
		return "", err
	}
	return rapidJSON(t, out.State), nil
}

func rapidJSON(t *rapid.T, s graph.State) string {
	state, err := s.JSON(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(state)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// Suspension does not perturb what an invocation comes to (suspension §10).
func TestSuspendedAndResumedEndsAsIfItHadNotSuspended(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		steps := plan(t)
		want, err := playOn(t, memory.New(), definitionOf(steps, false))
		if err != nil {
			t.Fatal(err)
		}
		got, err := playOn(t, memory.New(), definitionOf(steps, true))
		if err != nil || got != want {
			t.Fatalf("got %s (%v), want %s", got, err, want)
		}
	})
}

// A death of the process at any commit, before or after it took effect, changes nothing in what a random invocation and
// its session come to.
func TestARandomInvocationSurvivesADeathAtAnyCommit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := definitionOf(plan(t), true)
		fault := rapid.SampledFrom([]failing.Fault{failing.DieBefore, failing.DieAfter}).Draw(t, "fault")
		calm := memory.New()
		want, err := playOn(t, calm, d)
		if err != nil {
			t.Fatal(err)
		}
		kv := memory.New()
		dying := failing.New(kv, rapid.IntRange(1, 20).Draw(t, "commit"), fault)
		if _, err = playOn(t, dying, d); (err == nil) == dying.Reached() {
			t.Fatalf("died: %v, noticed: %v", dying.Reached(), err)
		}
		got, err := playOn(t, kv, d)
		if err != nil || got != want {
			t.Fatalf("got %s (%v), want %s", got, err, want)
		}
		if g, w := sessionOf(t, kv), sessionOf(t, calm); g != w {
			t.Fatalf("the session is %s, want %s", g, w)
		}
	})
}

func sessionOf(t *rapid.T, kv store.KV) string {
	rec, err := store.NewRecords(kv).Load(context.Background(), "s")
	if err != nil || rec == nil {
		t.Fatalf("no session: %v", err)
	}
	items, err := rec.Logs["said"].Read(context.Background(), 0, rec.Logs["said"].Len())
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%s %s", rec.Fields, items)
}
