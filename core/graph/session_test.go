package graph_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/parley-chat/parley/core/graph"
	"github.com/parley-chat/parley/store"
	"github.com/parley-chat/parley/store/memory"
)

func TestASessionCarriesStateFromTurnToTurn(t *testing.T) {
	c := onMemory(t, chain(says("a"), does("add", func(_ context.Context, s graph.State) (graph.Update, error) {
		return graph.Update{count.Set(count.Get(s) + 1)}, nil
	})))
	mustInvoke(t, c, graph.Request{SessionID: "s"}, graph.Completed)
	mustInvoke(t, c, graph.Request{SessionID: "other"}, graph.Completed)
	out := mustInvoke(t, c, graph.Request{SessionID: "s"}, graph.Completed)
	wantState(t, out.Loaded, `{"count":1,"said":["a"]}`)
	wantState(t, out.State, `{"count":2,"said":["a","a"]}`)
}

func TestWithoutASessionIDTheStoreIsNotTouched(t *testing.T) {
	s := failingStore()
	c := compile(t, chain(says("a")), graph.Options{Sessions: s, Checkpoints: s})
	mustInvoke(t, c, graph.Request{}, graph.Completed)
	if len(s.calls) > 0 {
		t.Errorf("the session store was called: %v", s.calls)
	}
}

func TestASessionIDWithoutAStoreOnlyNames(t *testing.T) {
	c := compile(t, chain(says("a")), graph.Options{})
	out := mustInvoke(t, c, graph.Request{SessionID: "s"}, graph.Completed)
	wantSaid(t, out.State, "a")
	wantSaid(t, mustInvoke(t, c, graph.Request{SessionID: "s"}, graph.Completed).State, "a")
}

func TestAProjectedSessionKeepsItsFieldsAlone(t *testing.T) {
	o := keeping(memory.New())
	o.SessionFields = []graph.Field{said}
	c := compile(t, chain(does("a", func(context.Context, graph.State) (graph.Update, error) {
		return graph.Update{said.Add("a"), count.Set(7)}, nil
	})), o)
	mustInvoke(t, c, graph.Request{SessionID: "s"}, graph.Completed)
	out := mustInvoke(t, c, graph.Request{SessionID: "s"}, graph.Completed)
	wantState(t, out.Loaded, `{"count":0,"said":["a"]}`)
	rec, err := o.Sessions.Load(t.Context(), "s")
	if err != nil || rec.Fields["count"] != nil || rec.Logs["said"].Len() != 2 {
		t.Errorf("the record is %+v (%v)", rec, err)
	}
}

func TestAProjectedFieldComesBackWithASuspendedTurn(t *testing.T) {
	o := keeping(memory.New())
	o.SessionFields = []graph.Field{said}
	scratch := graph.Append[string]("scratch")
	d := chain(does("a", func(context.Context, graph.State) (graph.Update, error) {
		return graph.Update{said.Add("a"), count.Set(7), scratch.Add("draft")}, nil
	}), waits("gate", "go"), says("b"))
	d.Fields = append(d.Fields, scratch)
	c := compile(t, d, o)
	first := mustInvoke(t, c, graph.Request{SessionID: "s"}, graph.Suspended)
	out := mustInvoke(t, c, graph.Request{Resume: first.InvocationID}, graph.Completed)
	wantState(t, out.State, `{"count":7,"said":["a","b"],"scratch":["draft"]}`)
}

func TestWithoutAutoSaveOnlySaveSaves(t *testing.T) {
	o := keeping(memory.New())
	o.NoAutoSave = true
	var c *graph.Compiled
	c = compile(t, chain(does("a", func(ctx context.Context, s graph.State) (graph.Update, error) {
		u := graph.Update{said.Add("a")}
		if count.Get(s) == 1 {
			return u, c.Save(ctx, s, u...)
		}
		return u, nil
	})), o)
	mustInvoke(t, c, graph.Request{SessionID: "s"}, graph.Completed)
	if rec, _ := o.Sessions.Load(t.Context(), "s"); rec != nil {
		t.Errorf("it was saved: %+v", rec)
	}
	mustInvoke(t, c, graph.Request{SessionID: "s", Input: graph.Update{count.Set(1)}}, graph.Completed)
	wantState(t, mustInvoke(t, c, graph.Request{SessionID: "s", Input: graph.Update{count.Set(0)}}, graph.Completed).Loaded, `{"count":1,"said":["a"]}`)
}

// Saving in the middle and saving at the end write the same items once.
func TestASaveInTheMiddleIsPartOfTheSaveAtTheEnd(t *testing.T) {
	o := keeping(memory.New())
	var c *graph.Compiled
	c = compile(t, chain(says("a"), does("b", func(ctx context.Context, s graph.State) (graph.Update, error) {
		u := graph.Update{said.Add("b")}
		return u, errors.Join(c.Save(ctx, s), c.Save(ctx, s, u...))
	}), says("c")), o)
	for range 2 {
		mustInvoke(t, c, graph.Request{SessionID: "s"}, graph.Completed)
	}
	out := mustInvoke(t, c, graph.Request{SessionID: "s"}, graph.Completed)
	wantSaid(t, out.Loaded, "a", "b", "c", "a", "b", "c")
}

func TestAFailedSaveInTheMiddleIsTheNodesToHandle(t *testing.T) {
	s := failingStore()
	s.save = errBoom
	var c *graph.Compiled
	var got error
	c = compile(t, chain(does("a", func(ctx context.Context, st graph.State) (graph.Update, error) {
		got = c.Save(ctx, st)
		return graph.Update{said.Add("a")}, nil
	})), graph.Options{Sessions: s, Checkpoints: s})
	mustInvoke(t, c, graph.Request{SessionID: "s"}, graph.Completed)
	wantError(t, got, graph.SessionSaveFailed)
	if err := c.Save(t.Context(), graph.State{}); err != nil {
		t.Errorf("outside of an invocation: %v", err)
	}
}

func TestFailuresOfTheStoreHaveTheirCategories(t *testing.T) {
	for _, tc := range []struct {
		name string
		fail func(s *storeThatFails)
		want string
		said []string // of the state that the error leaves
	}{
		{"loading", func(s *storeThatFails) { s.load = errBoom }, graph.SessionLoadFailed, nil},
		{"saving at the end", func(s *storeThatFails) { s.commit = errBoom }, graph.SessionSaveFailed, []string{"a", "b"}},
		{"saving against another version", func(s *storeThatFails) {
			s.commit = &graph.Error{Category: graph.SessionWriteConflict}
		}, graph.SessionWriteConflict, []string{"a", "b"}},
		{"a checkpoint", func(s *storeThatFails) { s.invocation = errBoom }, graph.CheckpointSaveFailed, []string{"a"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := failingStore()
			c := compile(t, chain(says("a"), says("b")), graph.Options{Sessions: s, Checkpoints: s})
			tc.fail(s)
			req := graph.Request{SessionID: "s", InvocationID: "i"}
			out, err := c.Invoke(t.Context(), req)
			wantError(t, err, tc.want)
			if !errors.Is(err, errBoom) && tc.want != graph.SessionWriteConflict {
				t.Errorf("%v does not wrap its cause", err)
			}
			wantSaid(t, out.State, tc.said...)
			*s = storeThatFails{Records: s.Records}
			wantSaid(t, mustInvoke(t, c, req, graph.Completed).State, "a", "b")
		})
	}
}

func TestASessionOfAnotherSchemaVersionIsNotRead(t *testing.T) {
	kv := memory.New()
	mustInvoke(t, compile(t, chain(says("a")), keeping(kv)), graph.Request{SessionID: "s"}, graph.Completed)
	d := chain(says("a"))
	d.Version = "v2"
	c := compile(t, d, keeping(kv))
	_, err := c.Invoke(t.Context(), graph.Request{SessionID: "s"})
	wantError(t, err, graph.SessionStateMigrationMissing)
	mustInvoke(t, c, graph.Request{SessionID: "new"}, graph.Completed)
}

func TestASessionThatDoesNotFitTheGraphIsALoadFailure(t *testing.T) {
	kv := memory.New()
	mustInvoke(t, compile(t, chain(says("a")), keeping(kv)), graph.Request{SessionID: "s"}, graph.Completed)
	d := chain(does("a", func(context.Context, graph.State) (graph.Update, error) { return nil, nil }))
	d.Fields = []graph.Field{graph.Value("count", "text")}
	_, err := compile(t, d, keeping(kv)).Invoke(t.Context(), graph.Request{SessionID: "s"})
	wantError(t, err, graph.SessionLoadFailed)
}

func TestAFieldThatCameLaterBeginsAsItsInitial(t *testing.T) {
	kv := memory.New()
	mustInvoke(t, compile(t, chain(says("a")), keeping(kv)), graph.Request{SessionID: "s"}, graph.Completed)
	d := chain(says("b"))
	d.Fields = append(d.Fields, graph.Value("mood", "calm"), graph.Append("notes", "first"))
	c := compile(t, d, keeping(kv))
	for _, want := range []string{
		`{"count":0,"mood":"calm","notes":["first"],"said":["a"]}`,
		`{"count":0,"mood":"calm","notes":["first"],"said":["a","b"]}`,
	} {
		wantState(t, mustInvoke(t, c, graph.Request{SessionID: "s"}, graph.Completed).Loaded, want)
	}
}

func TestInitialItemsOfAListAreKeptOnce(t *testing.T) {
	kv := memory.New()
	notes := graph.Append("notes", "one", "two")
	d := chain(does("a", func(context.Context, graph.State) (graph.Update, error) { return graph.Update{notes.Add("three")}, nil }))
	d.Fields = []graph.Field{notes}
	c := compile(t, d, keeping(kv))
	req := graph.Request{SessionID: "s", InvocationID: "first"}
	mustInvoke(t, c, req, graph.Completed)
	second := mustInvoke(t, c, graph.Request{SessionID: "s"}, graph.Completed)
	wantState(t, second.State, `{"notes":["one","two","three","three"]}`)
	again := mustInvoke(t, c, req, graph.Completed)
	wantState(t, again.Loaded, `{"notes":["one","two"]}`)
	wantState(t, again.State, `{"notes":["one","two","three"]}`)
}

func TestDeletingASessionDeletesItsLists(t *testing.T) {
	kv := memory.New()
	c := compile(t, chain(says("a")), keeping(kv))
	mustInvoke(t, c, graph.Request{SessionID: "s"}, graph.Completed)
	r := store.NewRecords(kv)
	for range 2 { // deleting what is not there is no error
		if err := r.Delete(t.Context(), "s"); err != nil {
			t.Fatal(err)
		}
	}
	wantSaid(t, mustInvoke(t, c, graph.Request{SessionID: "s"}, graph.Completed).Loaded)
}

func TestASessionDeletedDuringATurnCanBeSavedByTheSameTurn(t *testing.T) {
	kv := memory.New()
	r := store.NewRecords(kv)
	deletes := false
	c := compile(t, chain(says("a"), does("b", func(ctx context.Context, _ graph.State) (graph.Update, error) {
		if deletes {
			return graph.Update{said.Add("b")}, r.Delete(ctx, "s")
		}
		return graph.Update{said.Add("b")}, nil
	}), says("c")), keeping(kv))
	mustInvoke(t, c, graph.Request{SessionID: "s"}, graph.Completed)
	deletes = true
	_, err := c.Invoke(t.Context(), graph.Request{SessionID: "s", InvocationID: "i"})
	wantError(t, err, graph.SessionSaveFailed)
	deletes = false
	mustInvoke(t, c, graph.Request{SessionID: "s", InvocationID: "i"}, graph.Completed)
	wantSaid(t, mustInvoke(t, c, graph.Request{SessionID: "s"}, graph.Completed).Loaded, "a", "b", "c")
}

func TestListingFiltersByTimeVersionAndPrefix(t *testing.T) {
	r := store.NewRecords(memory.New())
	at := func(minute int) time.Time { return time.Date(2026, 1, 1, 0, minute, 0, 0, time.UTC) }
	for _, s := range []struct {
		id, version string
		minute      int
	}{{"a/1", "v1", 1}, {"a/2", "v2", 2}, {"b/1", "v1", 3}, {"a\x00", "v1", 4}, {"a/1", "v1", 5}} {
		if err := r.Save(t.Context(), s.id, graph.SessionSave{SchemaVersion: s.version, At: at(s.minute)}); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct {
		name   string
		filter graph.SessionFilter
		want   []string
	}{
		{"everything in the order of ids", graph.SessionFilter{}, []string{"a\x00", "a/1", "a/2", "b/1"}},
		{"updated after", graph.SessionFilter{UpdatedAfter: at(3)}, []string{"a\x00", "a/1"}},
		{"created after", graph.SessionFilter{CreatedAfter: at(2)}, []string{"a\x00", "b/1"}},
		{"version", graph.SessionFilter{SchemaVersion: "v2"}, []string{"a/2"}},
		{"prefix", graph.SessionFilter{Prefix: "a/"}, []string{"a/1", "a/2"}},
		{"nothing", graph.SessionFilter{Prefix: "c"}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var got []string
			for s, err := range r.List(t.Context(), tc.filter) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, s.SessionID)
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
	for s := range r.List(t.Context(), graph.SessionFilter{}) {
		if s.SessionID == "a\x00" {
			break // stopping early is fine
		}
	}
}
