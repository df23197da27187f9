// Package platformtest is the suite that every platform must pass. It plays people who talk to the whole bot (adapter,
// bridge, chat harness, agent, records) through a stand-in that speaks the platform's protocol, and looks at nothing but
// what they see:
//
//	func TestThePlatformKeepsItsPromises(t *testing.T) {
//		platformtest.Run(t, func(t *testing.T) platformtest.World { return newWorld(t) })
//	}
//
// Each clause is a function that says as an error what it found wrong. So the suite is itself proved: its own tests run it
// on adapters that are broken in one way each, and the right clause must notice.
//
// What a platform cannot do is declared by its world and must fit its adapter; the clauses about it are then left out, and
// no other clause asks for less.
package platformtest

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/parley-chat/parley/platforms"
)

// patience is how long a clause may take. It ends those that wait for what never comes.
const patience = 40 * time.Second

// Clause is one sentence of what people may expect.
type Clause struct {
	// Name is a sentence.
	Name string
	// Needs reports whether the clause is about a platform with such abilities. Nil: about every one.
	Needs func(Abilities) bool
	// Check returns what is wrong, or nil. The scene is fresh and nobody else's, without a bot.
	Check func(ctx context.Context, s *Scene) error
}

// Clauses returns all of them.
func Clauses() []Clause {
	var all []Clause
	for _, about := range [][]Clause{talking(), answering(), growing(), stopping(), approving(), deciding(), failing()} {
		all = append(all, about...)
	}
	return all
}

// Fits reports whether the clause is about such a platform.
func (c Clause) Fits(a Abilities) bool { return c.Needs == nil || c.Needs(a) }

// Play plays the clause in a world of its own.
func (c Clause) Play(ctx context.Context, w World, logger *slog.Logger) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	s := NewScene(w, logger)
	if err := c.Check(ctx, s); err != nil {
		_ = s.Close() // what went wrong first is what counts
		return err
	}
	return s.Close()
}

// Run plays every clause side by side, each in a world of its own, which open makes.
func Run(t *testing.T, open func(t *testing.T) World) {
	t.Run("the world declares what its adapter can do", func(t *testing.T) { declared(t, open(t)) })
	for _, c := range Clauses() {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			w := open(t)
			if !c.Fits(w.Abilities()) {
				t.Skip("the platform has nothing of the kind")
			}
			if err := c.Play(t.Context(), w, Logger(t)); err != nil {
				t.Error(err)
			}
		})
	}
}

// Logger logs what goes wrong into the test's output.
func Logger(t *testing.T) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// declared checks that no ability of the adapter is kept from the suite, and none is made up.
func declared(t *testing.T, w World) {
	line, err := w.Connect(Logger(t))
	if err != nil {
		t.Fatal(err)
	}
	defer line.Cut()
	if err := Undeclared(line.Adapter, w); err != nil {
		t.Error(err)
	}
}

// Undeclared says which ability the adapter and the world do not agree on.
func Undeclared(a platforms.Adapter, w World) error {
	has := w.Abilities()
	_, streams := a.(platforms.Streamer)
	for _, ability := range []struct {
		name        string
		adapter     bool
		world       bool
		counterpart bool
	}{
		{name: "files", adapter: is[platforms.Fetcher](a), world: has.Files, counterpart: true},
		{name: "names", adapter: is[platforms.Directory](a), world: has.Names, counterpart: true},
		{name: "growing answers", adapter: streams || a.Capabilities().EditEvery > 0, world: has.Growing, counterpart: true},
		{name: "notices", adapter: is[platforms.Notifier](a), world: has.Notices, counterpart: true},
		{name: "statuses", adapter: is[platforms.StatusSetter](a), world: has.Statuses, counterpart: is[StatusWorld](w)},
		{name: "forms", adapter: is[platforms.ModalOpener](a), world: has.Modals, counterpart: is[FormWorld](w)},
		{name: "groups", adapter: is[platforms.Grouper](a), world: has.Groups, counterpart: is[GroupWorld](w)},
	} {
		switch {
		case ability.adapter != ability.world:
			return fmt.Errorf("%s: the adapter has them: %v, the world declares them: %v", ability.name, ability.adapter, ability.world)
		case ability.world && !ability.counterpart:
			return fmt.Errorf("%s: the world declares them and does not show them", ability.name)
		}
	}
	return nil
}

func is[T any](v any) bool {
	_, ok := v.(T)
	return ok
}
