// Package memory is a store.KV that lives as long as its process: for tests, the playground and trying things out. It
// keeps the whole contract but durability.
//
// Every committed state is an immutable tree. A View takes the tree of its moment and holds nobody up; an Update builds
// the next tree beside it and puts it in place when its fn succeeded. Updates run one after the other.
package memory

import (
	"context"
	"hash/maphash"
	"sync"
	"sync/atomic"

	"github.com/parley-chat/parley/store"
)

// Store is the store in memory. Make one with New.
type Store struct {
	seed   maphash.Seed
	root   atomic.Pointer[node]
	writer chan struct{} // holds a token while an Update runs

	open   sync.RWMutex // held for reading by every transaction, for writing by Close
	closed bool
}

var _ store.KV = (*Store)(nil)

// New returns an empty store.
func New() *Store {
	return &Store{seed: maphash.MakeSeed(), writer: make(chan struct{}, 1)}
}

// View implements store.KV.
func (s *Store) View(ctx context.Context, fn func(store.Tx) error) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.open.RUnlock()
	return fn(&tx{store: s, root: s.root.Load()})
}

// Update implements store.KV. fn runs once.
func (s *Store) Update(ctx context.Context, fn func(store.Tx) error) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.open.RUnlock()
	if err := s.takeTurn(ctx); err != nil {
		return err
	}
	defer func() { <-s.writer }()
	t := &tx{store: s, root: s.root.Load(), writable: true}
	if err := fn(t); err != nil {
		return err
	}
	s.root.Store(t.root)
	return nil
}

// Close implements store.KV. What was stored is gone.
func (s *Store) Close() error {
	s.open.Lock()
	defer s.open.Unlock()
	if s.closed {
		return store.ErrClosed
	}
	s.closed = true
	s.root.Store(nil)
	return nil
}

// begin keeps the store open until the caller calls s.open.RUnlock, which it must if there is no error.
func (s *Store) begin(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.open.RLock()
	if s.closed {
		s.open.RUnlock()
		return store.ErrClosed
	}
	return nil
}

// takeTurn waits until no other Update runs. The caller gives the turn back by receiving from s.writer.
func (s *Store) takeTurn(ctx context.Context) error {
	select {
	case s.writer <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := ctx.Err(); err != nil {
		<-s.writer
		return err
	}
	return nil
}

// tx is a transaction on the tree at root. Writes replace root; nobody else sees that.
type tx struct {
	store    *Store
	root     *node
	writable bool
	scans    int // Scans that are running
}

var _ store.Tx = (*tx)(nil)

func (t *tx) Get(key []byte) ([]byte, error) {
	if err := store.CheckKey(key); err != nil {
		return nil, err
	}
	return t.root.get(key), nil
}

func (t *tx) Put(key, value []byte) error {
	if err := t.mayWrite(key); err != nil {
		return err
	}
	t.root = t.root.put(&node{key: copied(key), value: copied(value), rank: maphash.Bytes(t.store.seed, key)})
	return nil
}

func (t *tx) Delete(key []byte) error {
	if err := t.mayWrite(key); err != nil {
		return err
	}
	t.root = t.root.without(key)
	return nil
}

func (t *tx) Scan(from, to []byte, reverse bool, fn func(key, value []byte) bool) error {
	t.scans++
	defer func() { t.scans-- }()
	if reverse {
		t.root.descend(from, to, fn)
		return nil
	}
	t.root.ascend(from, to, fn)
	return nil
}

func (t *tx) mayWrite(key []byte) error {
	if !t.writable {
		return store.ErrReadOnly
	}
	if t.scans > 0 {
		return store.ErrScanning
	}
	return store.CheckKey(key)
}

// copied returns a copy without spare capacity, so that appending to it never writes into what is stored. It is not
// nil, even for nil.
func copied(b []byte) []byte {
	c := make([]byte, len(b))
	copy(c, b)
	return c
}
