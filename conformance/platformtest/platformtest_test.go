package platformtest_test

import (
	"log/slog"
	"testing"
	"testing/synctest"

	"github.com/parley-chat/parley/conformance/platformtest"
	"github.com/parley-chat/parley/platforms"
)

func TestTheFakeIsAPlatform(t *testing.T) {
	w := newFakeWorld(nil)
	if err := platformtest.Undeclared(w.Place.Connect(), w); err != nil {
		t.Error(err)
	}
	for _, c := range platformtest.Clauses() {
		t.Run(c.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if err := c.Play(t.Context(), newFakeWorld(nil), platformtest.Logger(t)); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestTheSuiteNoticesBrokenAdapters(t *testing.T) {
	clauses := map[string]platformtest.Clause{}
	for _, c := range platformtest.Clauses() {
		clauses[c.Name] = c
	}
	for _, m := range mutants() {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			for _, name := range m.noticedBy {
				c, ok := clauses[name]
				if !ok {
					t.Fatalf("there is no clause %q", name)
				}
				synctest.Test(t, func(t *testing.T) {
					if c.Play(t.Context(), newFakeWorld(m.breaks), slog.New(slog.DiscardHandler)) == nil {
						t.Errorf("not noticed by %q", name)
					}
				})
			}
		})
	}
}

func TestEveryClauseHasANameOfItsOwn(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range platformtest.Clauses() {
		if seen[c.Name] || c.Name == "" || c.Check == nil {
			t.Errorf("the clause %q is there twice, or empty", c.Name)
		}
		seen[c.Name] = true
	}
	if len(seen) < 30 {
		t.Errorf("there are %d clauses, want at least 30", len(seen))
	}
}

// lessThanDeclared has no names, though its world says so.
type lessThanDeclared struct{ platforms.Adapter }

func TestAnAbilityThatIsNotThereIsNoticed(t *testing.T) {
	w := newFakeWorld(nil)
	err := platformtest.Undeclared(lessThanDeclared{w.Place.Connect()}, w)
	if err == nil {
		t.Error("got no error for a world that declares more than the adapter can")
	}
}
