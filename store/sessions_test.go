package store_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-chat/parley/core/graph"
	"github.com/parley-chat/parley/store"
	"github.com/parley-chat/parley/store/memory"
)

func items(words ...string) []json.RawMessage {
	var out []json.RawMessage
	for _, w := range words {
		out = append(out, json.RawMessage(fmt.Sprintf("%q", w)))
	}
	return out
}

func list(keep int, add ...string) graph.SessionSave {
	return graph.SessionSave{Delta: graph.Delta{Logs: map[string]graph.LogDelta{"said": {Keep: keep, Add: items(add...)}}}, At: time.Unix(1, 0).UTC()}
}

func save(t *testing.T, r *store.Records, id string, s graph.SessionSave) {
	t.Helper()
	if err := r.Save(t.Context(), id, s); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, r *store.Records, id string) []string {
	t.Helper()
	rec, err := r.Load(t.Context(), id)
	if err != nil || rec == nil {
		t.Fatalf("no session %q: %v", id, err)
	}
	raws, err := rec.Logs["said"].Read(t.Context(), 0, rec.Logs["said"].Len())
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, raw := range raws {
		out = append(out, strings.Trim(string(raw), `"`))
	}
	return out
}

func TestASavedListIsWhatItKeepsAndAdds(t *testing.T) {
	r := store.NewRecords(memory.New())
	for _, tc := range []struct {
		save graph.SessionSave
		want string
	}{
		{list(0, "a", "b"), "a b"}, {list(2, "c"), "a b c"}, {list(3), "a b c"}, {list(1, "x"), "a x"},
		{list(0, "p", "q", "r", "s"), "p q r s"}, {list(2), "p q"}, {list(0), ""}, {list(0, "z"), "z"},
	} {
		save(t, r, "s", tc.save)
		if got := strings.Join(read(t, r, "s"), " "); got != tc.want {
			t.Errorf("got %q, want %q", got, tc.want)
		}
	}
}

func TestAListThatWouldHaveHolesIsRefused(t *testing.T) {
	r := store.NewRecords(memory.New())
	save(t, r, "s", list(0, "a"))
	if err := r.Save(t.Context(), "s", list(2, "c")); err == nil {
		t.Error("it was saved")
	}
	if got := read(t, r, "s"); !slices.Equal(got, []string{"a"}) {
		t.Errorf("the refused save left %v", got)
	}
}

func TestFieldsThatASaveDoesNotNameStay(t *testing.T) {
	r := store.NewRecords(memory.New())
	set := func(field, value string) graph.SessionSave {
		return graph.SessionSave{SchemaVersion: "v", Turn: "t-" + value, At: time.Unix(int64(len(value)), 0).UTC(),
			Delta: graph.Delta{Set: map[string]json.RawMessage{field: json.RawMessage(`"` + value + `"`)}}}
	}
	save(t, r, "s", set("a", "1"))
	save(t, r, "s", set("b", "22"))
	save(t, r, "s", set("a", "333"))
	rec, err := r.Load(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	if string(rec.Fields["a"]) != `"333"` || string(rec.Fields["b"]) != `"22"` {
		t.Errorf("the fields are %s", rec.Fields)
	}
	want := graph.SessionSummary{SessionID: "s", SchemaVersion: "v", Version: 3, Turn: "t-333", CreatedAt: time.Unix(1, 0).UTC(), UpdatedAt: time.Unix(3, 0).UTC()}
	if rec.SessionSummary != want {
		t.Errorf("got %+v, want %+v", rec.SessionSummary, want)
	}
}

func TestASaveForAnotherVersionIsAConflict(t *testing.T) {
	r := store.NewRecords(memory.New())
	version := func(n uint64, s graph.SessionSave) graph.SessionSave { s.ExpectedVersion = &n; return s }
	save(t, r, "s", version(0, list(0, "a")))
	save(t, r, "s", version(1, list(1, "b")))
	err := r.Save(t.Context(), "s", version(1, list(1, "c")))
	if graph.CategoryOf(err) != graph.SessionWriteConflict {
		t.Errorf("got %v", err)
	}
	if err := r.Save(t.Context(), "new", version(1, list(0))); graph.CategoryOf(err) != graph.SessionWriteConflict {
		t.Errorf("a session that is not there: %v", err)
	}
	if got := read(t, r, "s"); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("the conflict left %v", got)
	}
}

func TestALoadedListStaysAsItWas(t *testing.T) {
	r := store.NewRecords(memory.New())
	save(t, r, "s", list(0, "a", "b"))
	rec, err := r.Load(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	save(t, r, "s", list(2, "c"))
	if l := rec.Logs["said"]; l.Len() != 2 {
		t.Errorf("it grew to %d", l.Len())
	}
	if err := r.Delete(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	if got, err := rec.Logs["said"].Read(t.Context(), 0, 2); err == nil {
		t.Errorf("a list that is gone reads as %s", got)
	}
}

func TestSessionsDoNotTouchEachOther(t *testing.T) {
	r := store.NewRecords(memory.New())
	ids := []string{"a", "ab", "a\x00", "a\x00\x01", "a/b", "", "é"}
	for _, id := range ids {
		save(t, r, id, list(0, "of "+id+"."))
	}
	if err := r.Delete(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	for _, id := range ids[1:] {
		if got := read(t, r, id); len(got) != 1 {
			t.Errorf("%q holds %v", id, got)
		}
	}
	if rec, err := r.Load(t.Context(), "a"); rec != nil || err != nil {
		t.Errorf("the deleted one: %v, %v", rec, err)
	}
}

func TestRecordsOfALaterVersionAreRefused(t *testing.T) {
	kv := memory.New()
	r := store.NewRecords(kv)
	save(t, r, "s", list(0, "a"))
	if err := r.SaveInvocation(t.Context(), graph.Invocation{ID: "i"}); err != nil {
		t.Fatal(err)
	}
	overwrite(t, kv, `{"v":2,"r":{}}`)
	if _, err := r.Load(t.Context(), "s"); !errors.Is(err, store.ErrVersion) {
		t.Errorf("a session: %v", err)
	}
	if _, err := r.LoadInvocation(t.Context(), "i"); !errors.Is(err, store.ErrVersion) {
		t.Errorf("an invocation: %v", err)
	}
	if err := r.Save(t.Context(), "s", list(0)); !errors.Is(err, store.ErrVersion) {
		t.Errorf("saving over it: %v", err)
	}
	for _, err := range r.List(t.Context(), graph.SessionFilter{}) {
		if !errors.Is(err, store.ErrVersion) {
			t.Errorf("listing: %v", err)
		}
	}
}

// overwrite puts value at every key of the store.
func overwrite(t *testing.T, kv store.KV, value string) {
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
