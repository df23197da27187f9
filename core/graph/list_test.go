package graph_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/parley-chat/parley/core/graph"
	"github.com/parley-chat/parley/store"
	"github.com/parley-chat/parley/store/memory"
)

// countedSessions counts the items that are read from lists.
type countedSessions struct {
	*store.Records
	items int
	fail  error
}

func (s *countedSessions) Load(ctx context.Context, id string) (*graph.SessionRecord, error) {
	rec, err := s.Records.Load(ctx, id)
	if rec != nil {
		for field, log := range rec.Logs {
			rec.Logs[field] = countedLog{log, s}
		}
	}
	return rec, err
}

type countedLog struct {
	graph.Log
	s *countedSessions
}

func (l countedLog) Read(ctx context.Context, from, to int) ([]json.RawMessage, error) {
	if l.s.fail != nil {
		return nil, l.s.fail
	}
	l.s.items += to - from
	return l.Log.Read(ctx, from, to)
}

// longSession returns sessions in which "s" has n items.
func longSession(t testing.TB, n int) *countedSessions {
	t.Helper()
	r := store.NewRecords(memory.New())
	d := graph.LogDelta{Add: make([]json.RawMessage, n)}
	for i := range d.Add {
		d.Add[i] = json.RawMessage(fmt.Sprintf("%q", fmt.Sprint(i)))
	}
	if err := r.Save(t.Context(), "s", graph.SessionSave{Delta: graph.Delta{Logs: map[string]graph.LogDelta{"said": d}}}); err != nil {
		t.Fatal(err)
	}
	return &countedSessions{Records: r}
}

func TestATurnReadsOnlyTheHistoryItAsksFor(t *testing.T) {
	for _, tc := range []struct {
		name string
		read func(ctx context.Context, l graph.List[string]) ([]string, error)
		want int
	}{
		{"nothing", func(context.Context, graph.List[string]) ([]string, error) { return nil, nil }, 0},
		{"its length", func(_ context.Context, l graph.List[string]) ([]string, error) { _ = l.Len(); return nil, nil }, 0},
		{"the last three", func(ctx context.Context, l graph.List[string]) ([]string, error) { return l.Last(ctx, 3) }, 2},
		{"what it added itself", func(ctx context.Context, l graph.List[string]) ([]string, error) { return l.Last(ctx, 1) }, 0},
		{"a piece of the middle", func(ctx context.Context, l graph.List[string]) ([]string, error) { return l.Slice(ctx, 100, 110) }, 10},
		{"everything", func(ctx context.Context, l graph.List[string]) ([]string, error) { return l.All(ctx) }, 10_000},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := longSession(t, 10_000)
			c := compile(t, chain(says("a"), does("read", func(ctx context.Context, st graph.State) (graph.Update, error) {
				_, err := tc.read(ctx, said.Get(st))
				return nil, err
			})), graph.Options{Sessions: s, Checkpoints: s.Records})
			out := mustInvoke(t, c, graph.Request{SessionID: "s"}, graph.Completed)
			if s.items != tc.want {
				t.Errorf("%d items were read, want %d", s.items, tc.want)
			}
			if got := said.Get(out.State).Len(); got != 10_001 {
				t.Errorf("the list has %d items, want 10001", got)
			}
		})
	}
}

func TestAListIsItsStoredItemsThenItsOwn(t *testing.T) {
	s := longSession(t, 5)
	var l graph.List[string]
	c := compile(t, chain(says("a"), says("b"), does("take", func(_ context.Context, st graph.State) (graph.Update, error) {
		l = said.Get(st)
		return nil, nil
	})), graph.Options{Sessions: s})
	mustInvoke(t, c, graph.Request{SessionID: "s"}, graph.Completed)
	all := []string{"0", "1", "2", "3", "4", "a", "b"}
	for from := -2; from <= 9; from++ {
		for to := -2; to <= 9; to++ {
			got, err := l.Slice(t.Context(), from, to)
			f, u := min(max(from, 0), 7), min(max(to, 0), 7)
			if want := all[f:max(f, u)]; err != nil || !slices.Equal(got, want) {
				t.Errorf("[%d:%d] is %v (%v), want %v", from, to, got, err, want)
			}
		}
	}
	for n := range 10 {
		if got, err := l.Last(t.Context(), n); err != nil || !slices.Equal(got, all[max(0, 7-n):]) {
			t.Errorf("the last %d are %v (%v)", n, got, err)
		}
	}
}

func TestAppendingLeavesTheOldListAsItWas(t *testing.T) {
	base := graph.ListOf("a").Append("b")
	one, two := base.Append("x"), base.Append("y", "z")
	for _, tc := range []struct {
		list graph.List[string]
		want string
	}{{base, "a b"}, {one, "a b x"}, {two, "a b y z"}, {graph.List[string]{}, ""}} {
		got, err := tc.list.All(t.Context())
		if err != nil || strings.Join(got, " ") != tc.want || tc.list.Len() != len(got) {
			t.Errorf("got %v (%v), want %s", got, err, tc.want)
		}
	}
}

func TestAHistoryThatCannotBeReadIsALoadFailure(t *testing.T) {
	s := longSession(t, 3)
	s.fail = errBoom
	c := compile(t, chain(does("read", func(ctx context.Context, st graph.State) (graph.Update, error) {
		_, err := said.Get(st).All(ctx)
		return nil, err
	})), graph.Options{Sessions: s})
	_, err := c.Invoke(t.Context(), graph.Request{SessionID: "s"})
	if got := graph.CategoryOf(err); got != graph.SessionLoadFailed {
		t.Errorf("got %v, want %s", err, graph.SessionLoadFailed)
	}
	s.fail = nil
	bad := graph.SessionSave{Delta: graph.Delta{Logs: map[string]graph.LogDelta{"said": {Add: []json.RawMessage{[]byte(`7`)}}}}}
	if err := s.Records.Save(t.Context(), "s", bad); err != nil {
		t.Fatal(err)
	}
	if _, err = c.Invoke(t.Context(), graph.Request{SessionID: "s"}); graph.CategoryOf(err) != graph.SessionLoadFailed {
		t.Errorf("an item that does not fit: %v", err)
	}
}
