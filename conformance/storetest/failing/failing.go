// Package failing makes a store fail where a test wants it to: at the k-th Update, before or after it took effect, once
// or for good. A test that walks k through a scenario, and looks at what is left each time, has seen every place at
// which the process can die or a commit can be lost:
//
//	for k := 1; ; k++ {
//		kv := memory.New()
//		f := failing.New(kv, k, failing.DieAfter)
//		scenario(f)
//		if !f.Reached() {
//			break // the scenario has fewer than k Updates
//		}
//		scenario(kv) // the process starts again on what is left
//		check(kv)
//	}
package failing

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/parley-chat/parley/store"
)

// Fault is what happens at the k-th Update.
type Fault int

const (
	// FailBefore runs the Update's fn and then gives its writes up. It returns ErrInjected. All other calls succeed.
	FailBefore Fault = iota + 1
	// FailAfter commits the Update but returns an error that wraps ErrInjected and store.ErrUnknownOutcome, as after a
	// lost answer. All other calls succeed.
	FailAfter
	// DieBefore is the death of the process before the commit: as FailBefore, and every later call returns ErrDied.
	DieBefore
	// DieAfter is the death of the process after the commit, before anybody hears of it: as FailAfter, and every later call
	// returns ErrDied.
	DieAfter
)

// Faults returns every Fault.
func Faults() []Fault { return []Fault{FailBefore, FailAfter, DieBefore, DieAfter} }

func (f Fault) String() string {
	switch f {
	case FailBefore:
		return "fail before the commit"
	case FailAfter:
		return "fail after the commit"
	case DieBefore:
		return "die before the commit"
	case DieAfter:
		return "die after the commit"
	default:
		return fmt.Sprintf("Fault(%d)", int(f))
	}
}

var (
	// ErrInjected is wrapped by the error of the k-th Update.
	ErrInjected = errors.New("failing: failed on purpose")
	// ErrDied is returned by every call after the process has died.
	ErrDied = errors.New("failing: the process has died")
)

// KV is a store that fails once. Make one with New.
type KV struct {
	kv    store.KV
	at    int
	fault Fault

	mu      sync.Mutex
	updates int  // called so far
	dead    bool // with a Die fault, from the k-th Update on
}

var _ store.KV = (*KV)(nil)

// New returns a store on kv whose at-th Update, counted from 1, has the fault; at 0 there is none. Updates are counted in
// the order in which they are called, those whose fn fails among them.
func New(kv store.KV, at int, fault Fault) *KV { return &KV{kv: kv, at: at, fault: fault} }

// Updates returns how many Updates were called, not counting those after death.
func (f *KV) Updates() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.updates
}

// Reached reports whether the Update with the fault was called.
func (f *KV) Reached() bool { return f.at > 0 && f.Updates() >= f.at }

// View implements store.KV.
func (f *KV) View(ctx context.Context, fn func(store.Tx) error) error {
	if f.died() {
		return ErrDied
	}
	return f.kv.View(ctx, fn)
}

// Update implements store.KV.
func (f *KV) Update(ctx context.Context, fn func(store.Tx) error) error {
	fault, err := f.next()
	if err != nil {
		return err
	}
	switch fault {
	case FailBefore, DieBefore:
		return f.kv.Update(ctx, func(tx store.Tx) error {
			if err := fn(tx); err != nil {
				return err
			}
			return ErrInjected
		})
	case FailAfter, DieAfter:
		if err := f.kv.Update(ctx, fn); err != nil {
			return err
		}
		return fmt.Errorf("%w: %w", ErrInjected, store.ErrUnknownOutcome)
	default:
		return f.kv.Update(ctx, fn)
	}
}

// Close closes the store beneath, unless the process has died: then the store is what the next process finds.
func (f *KV) Close() error {
	if f.died() {
		return ErrDied
	}
	return f.kv.Close()
}

func (f *KV) died() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.dead
}

// next counts an Update and returns the fault it has, or 0.
func (f *KV) next() (Fault, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.dead {
		return 0, ErrDied
	}
	f.updates++
	if f.updates != f.at {
		return 0, nil
	}
	f.dead = f.fault == DieBefore || f.fault == DieAfter
	return f.fault, nil
}
