// Package bolt is the store.KV of a bot on one machine: one bbolt file, held by one process.
//
// Updates that come at the same time share one commit, and with it the two disk syncs that a commit costs; see group.
// Views read the last committed state and wait for nobody.
//
// The file is mapped into memory, 1 GiB of address space ahead on 64-bit systems. When it outgrows its mapping, the
// Update that needs the space waits until the Views of that moment have ended, so an fn that waits in View for an Update
// may wait for ever.
package bolt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"go.etcd.io/bbolt"
	bbolterrors "go.etcd.io/bbolt/errors"

	"github.com/parley-chat/parley/store"
)

// Store is an open file. Make one with Open.
type Store struct {
	db     *bbolt.DB
	commit func(*bbolt.Tx) error // (*bbolt.Tx).Commit, but in tests of failure
	closed atomic.Bool

	line   line   // who has the place at its head may touch what follows
	group  *group // the transaction that is open, if any
	broken error  // why nothing can be written any more
}

var _ store.KV = (*Store)(nil)

// bucketName is the one bucket of the file.
func bucketName() []byte { return []byte("parley") }

// View implements store.KV.
func (s *Store) View(ctx context.Context, fn func(store.Tx) error) error {
	if s.closed.Load() {
		return store.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.read(func(t *bbolt.Tx) error {
		return fn(&tx{bucket: t.Bucket(bucketName())})
	})
}

// Close implements store.KV. Updates that wait for their turn when it is called return store.ErrClosed.
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return store.ErrClosed
	}
	if err := s.db.Close(); err != nil {
		return fmt.Errorf("store/bolt: close: %w", err)
	}
	return nil
}

// WriteTo writes a copy of the store, as it is at this moment, to w and returns its length in bytes. The copy is itself
// a file that Open takes. Views and Updates go on meanwhile; the file grows by what they change, so w should not be slow.
func (s *Store) WriteTo(w io.Writer) (n int64, err error) {
	err = s.read(func(t *bbolt.Tx) error {
		n, err = t.WriteTo(w)
		return err
	})
	if err != nil {
		return n, fmt.Errorf("store/bolt: backup: %w", err)
	}
	return n, nil
}

// Size returns the length in bytes that a copy made by WriteTo has now. The file itself may be longer: it grows ahead.
func (s *Store) Size() (n int64, err error) {
	err = s.read(func(t *bbolt.Tx) error {
		n = t.Size()
		return nil
	})
	return n, err
}

// Verify reads the whole file and returns the first damage found in its structure, if any. No Update is committed
// meanwhile.
func (s *Store) Verify(ctx context.Context) error {
	if s.closed.Load() {
		return store.ErrClosed
	}
	if err := s.line.enter(ctx); err != nil {
		return err
	}
	defer s.line.leave()
	s.endGroup()
	return s.read(func(t *bbolt.Tx) error {
		var damage error
		for err := range t.Check() { // to its end, for the goroutine behind it
			if damage == nil {
				damage = fmt.Errorf("store/bolt: %s is damaged: %w", s.db.Path(), err)
			}
		}
		return damage
	})
}

// read runs fn in a read transaction of bbolt.
func (s *Store) read(fn func(*bbolt.Tx) error) error {
	err := s.db.View(fn)
	if errors.Is(err, bbolterrors.ErrDatabaseNotOpen) {
		return store.ErrClosed
	}
	return err
}
