package bolt

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.etcd.io/bbolt"
	bbolterrors "go.etcd.io/bbolt/errors"

	"github.com/parley-chat/parley/store"
)

var errDisk = errors.New("disk on fire")

func TestUpdatesThatWaitShareOneCommit(t *testing.T) {
	s := newStore(t)
	count := countCommits(s)
	errs := s.inOneGroup(t, func(i int, tx store.Tx) error { return tx.Put(fmt.Appendf(nil, "%02d", i), nil) })
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
	if *count != 1 {
		t.Errorf("commits of %d waiting Updates: got %d, want 1", len(errs), *count)
	}
	if got := keysOf(t, s); len(got) != len(errs) {
		t.Errorf("keys: got %q, want %d of them", got, len(errs))
	}
}

func TestAMemberThatFailsTakesBackItsOwnWritesOnly(t *testing.T) {
	s := newStore(t)
	count := countCommits(s)
	errs := s.inOneGroup(t, func(i int, tx store.Tx) error {
		last := []byte("last")
		err := errors.Join(tx.Put(last, fmt.Append(nil, i)), tx.Put(last, nil), tx.Put(fmt.Appendf(nil, "%02d", i), nil))
		if err != nil {
			return err
		}
		switch i % 3 {
		case 1:
			return errDisk
		case 2:
			panic(errDisk)
		default:
			return tx.Delete(last)
		}
	})
	var want []string
	for i, err := range errs {
		if i%3 == 0 {
			want = append(want, fmt.Sprintf("%02d", i))
		} else if !errors.Is(err, errDisk) {
			t.Errorf("Update %d: got %v, want %v", i, err, errDisk)
		}
	}
	if got := keysOf(t, s); !slices.Equal(got, want) {
		t.Errorf("keys: got %q, want %q", got, want)
	}
	if *count != 1 {
		t.Errorf("commits: got %d, want 1", *count)
	}
}

func TestNothingIsCommittedForUpdatesThatWriteNothing(t *testing.T) {
	s := newStore(t)
	count := countCommits(s)
	errs := s.inOneGroup(t, func(i int, tx store.Tx) error {
		if i == 0 {
			return errors.Join(tx.Put([]byte("a"), nil), errDisk)
		}
		_, err := tx.Get([]byte("a"))
		return err
	})
	if err := errors.Join(errs[1:]...); err != nil || !errors.Is(errs[0], errDisk) {
		t.Errorf("errors: got %v and %v, want %v and none", errs[0], err, errDisk)
	}
	if *count != 0 {
		t.Errorf("commits: got %d, want 0", *count)
	}
}

func TestAFailedCommitThatHadNoEffectIsToldToAllAndForgotten(t *testing.T) {
	s := newStore(t)
	s.commit = func(t *bbolt.Tx) error { return errors.Join(errDisk, t.Rollback()) }
	errs := s.inOneGroup(t, func(i int, tx store.Tx) error {
		if i == 3 {
			return errors.New("judged by what was never committed")
		}
		return tx.Put(fmt.Appendf(nil, "%02d", i), nil)
	})
	for i, err := range errs {
		if !errors.Is(err, errDisk) || errors.Is(err, store.ErrUnknownOutcome) {
			t.Errorf("Update %d: got %v, want %v of known outcome", i, err, errDisk)
		}
	}
	s.commit = (*bbolt.Tx).Commit
	if err := putOne(t.Context(), s, "a", nil); err != nil {
		t.Errorf("the next Update: %v", err)
	}
	if got := keysOf(t, s); !slices.Equal(got, []string{"a"}) {
		t.Errorf("keys: got %q, want only the later one", got)
	}
}

func TestACommitThatMayHaveHadEffectIsOfUnknownOutcomeAndTheLast(t *testing.T) {
	s := newStore(t)
	s.commit = func(t *bbolt.Tx) error { return errors.Join(t.Commit(), errDisk) }
	for i, err := range s.inOneGroup(t, func(i int, tx store.Tx) error { return tx.Put([]byte{'a'}, nil) }) {
		if !errors.Is(err, errDisk) || !errors.Is(err, store.ErrUnknownOutcome) {
			t.Errorf("Update %d: got %v, want %v of unknown outcome", i, err, errDisk)
		}
	}
	s.commit = (*bbolt.Tx).Commit
	err := putOne(t.Context(), s, "b", nil)
	if err == nil || errors.Is(err, store.ErrUnknownOutcome) || !strings.Contains(err.Error(), "restart") {
		t.Errorf("the next Update: got %v, want an error that says to restart", err)
	}
	if got := keysOf(t, s); !slices.Equal(got, []string{"a"}) {
		t.Errorf("keys that a View sees: got %q, want \"a\"", got)
	}
	if err := s.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}

func TestAPanicInACommitReachesOneAndTheOthersKnowNothing(t *testing.T) {
	s := newStore(t)
	s.commit = func(t *bbolt.Tx) error { panic(errors.Join(errDisk, t.Rollback())) }
	panics := 0
	for i, err := range s.inOneGroup(t, func(i int, tx store.Tx) error { return tx.Put([]byte{'a'}, nil) }) {
		switch {
		case errors.Is(err, errDisk):
			panics++
		case !errors.Is(err, store.ErrUnknownOutcome):
			t.Errorf("Update %d: got %v, want an unknown outcome", i, err)
		}
	}
	if panics != 1 {
		t.Errorf("Updates that panicked: got %d, want 1", panics)
	}
	if err := putOne(t.Context(), s, "b", nil); err == nil {
		t.Error("the next Update: got no error, want one that says to restart")
	}
}

func TestAFullFileRefusesWhatDoesNotFitAndGoesOn(t *testing.T) {
	s := newStore(t)
	if err := putOne(t.Context(), s, "a", nil); err != nil {
		t.Fatal(err)
	}
	s.db.MaxSize = 1 << 20
	err := putOne(t.Context(), s, "b", make([]byte, 2<<20))
	if !errors.Is(err, bbolterrors.ErrMaxSizeReached) || errors.Is(err, store.ErrUnknownOutcome) {
		t.Errorf("Update that does not fit: got %v, want %v of known outcome", err, bbolterrors.ErrMaxSizeReached)
	}
	s.db.MaxSize = 0
	if err := putOne(t.Context(), s, "c", make([]byte, 2<<20)); err != nil {
		t.Errorf("Update when there is space again: %v", err)
	}
	if got := keysOf(t, s); !slices.Equal(got, []string{"a", "c"}) {
		t.Errorf("keys: got %q, want \"a\" and \"c\"", got)
	}
	if err := s.Verify(t.Context()); err != nil {
		t.Error(err)
	}
}

// Whoever is called to the head of the line in the moment in which his context ends must not leave the group behind.
func TestTheGroupIsCommittedWhenItsLastMemberComesTooLate(t *testing.T) {
	s := newStore(t)
	if err := errors.Join(s.line.enter(t.Context()), s.openGroup()); err != nil {
		t.Fatal(err)
	}
	g := s.group
	if err := g.run(func(tx store.Tx) error { return tx.Put([]byte("a"), nil) }); err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.join(ended, func(store.Tx) error { panic("fn was run") }); !errors.Is(err, context.Canceled) {
		t.Errorf("the late member: got %v, want %v", err, context.Canceled)
	}
	<-g.done
	if got := keysOf(t, s); g.outcome != nil || !slices.Equal(got, []string{"a"}) {
		t.Errorf("the group: got %v, keys %q; want nil, \"a\"", g.outcome, got)
	}
}

func TestVerifyEndsTheGroupItFinds(t *testing.T) {
	s := newStore(t)
	var all sync.WaitGroup
	var updated, verified error
	_ = s.Update(t.Context(), func(store.Tx) error { // its outcome is that of the group
		all.Go(func() { updated = putOne(t.Context(), s, "a", nil) })
		s.line.await(1)
		all.Go(func() { verified = s.Verify(t.Context()) })
		s.line.await(2)
		return nil
	})
	all.Wait()
	if err := errors.Join(updated, verified); err != nil {
		t.Error(err)
	}
	if got := keysOf(t, s); !slices.Equal(got, []string{"a"}) {
		t.Errorf("keys: got %q, want \"a\"", got)
	}
}

func TestTheLineCallsInOrderAndForgetsWhoGaveUp(t *testing.T) {
	var l line
	if err := l.enter(t.Context()); err != nil {
		t.Fatal(err)
	}
	first, second, third := l.stand(), l.stand(), l.stand()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.giveUp(ended, second); !errors.Is(err, context.Canceled) {
		t.Errorf("giving up while waiting: got %v, want %v", err, context.Canceled)
	}
	if !l.handOver() || !called(first) || called(third) {
		t.Error("the head did not go to the first who waits")
	}
	if err := l.giveUp(ended, first); err != nil {
		t.Errorf("giving up when called: got %v, want nil", err)
	}
	l.leave()
	if !called(third) || called(second) {
		t.Error("the head did not go to the third, after the second gave up")
	}
	if l.handOver() {
		t.Error("the head was handed over although nobody waits")
	}
	l.leave()
	if l.stand() != nil {
		t.Error("the line is not free after the last left it")
	}
}

func called(turn <-chan struct{}) bool {
	select {
	case <-turn:
		return true
	default:
		return false
	}
}

// inOneGroup runs fn(0) to fn(9) as Updates that all wait while another, which writes nothing, is running, and returns
// their errors. A panic with an error counts as that error.
func (s *Store) inOneGroup(t *testing.T, fn func(i int, tx store.Tx) error) []error {
	t.Helper()
	errs := make([]error, 10)
	var all sync.WaitGroup
	_ = s.Update(t.Context(), func(store.Tx) error { // its outcome is that of the group
		for i := range errs {
			all.Go(func() {
				defer func() {
					if p := recover(); p != nil {
						errs[i] = p.(error)
					}
				}()
				errs[i] = s.Update(t.Context(), func(tx store.Tx) error { return fn(i, tx) })
			})
			s.line.await(i + 1)
		}
		return nil
	})
	all.Wait()
	return errs
}

// await returns when n wait.
func (l *line) await(n int) {
	for {
		l.mu.Lock()
		waiting := len(l.waiting)
		l.mu.Unlock()
		if waiting == n {
			return
		}
		runtime.Gosched()
	}
}

func countCommits(s *Store) *int {
	n := new(int)
	s.commit = func(t *bbolt.Tx) error {
		*n++
		return t.Commit()
	}
	return n
}

func newStore(t *testing.T) *Store {
	t.Helper()
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "bot.db"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func putOne(ctx context.Context, s *Store, key string, value []byte) error {
	return s.Update(ctx, func(tx store.Tx) error { return tx.Put([]byte(key), value) })
}

func keysOf(t *testing.T, s *Store) (keys []string) {
	t.Helper()
	err := s.View(t.Context(), func(tx store.Tx) error {
		return tx.Scan(nil, nil, false, func(key, _ []byte) bool {
			keys = append(keys, string(key))
			return true
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return keys
}
