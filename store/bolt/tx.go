package bolt

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/bbolt"

	"github.com/parley-chat/parley/store"
)

// tx is what one fn sees of a bbolt transaction. It writes straight into it and remembers what was there before.
type tx struct {
	bucket   *bbolt.Bucket
	writable bool
	scans    int // Scans that are running
	before   []entry
}

// entry is a key and what it had before a write; a nil value means that it was not there.
type entry struct{ key, value []byte }

var _ store.Tx = (*tx)(nil)

func (t *tx) Get(key []byte) ([]byte, error) {
	if err := store.CheckKey(key); err != nil {
		return nil, err
	}
	return t.bucket.Get(key), nil
}

func (t *tx) Put(key, value []byte) error {
	if err := t.mayWrite(key); err != nil {
		return err
	}
	t.remember(key)
	// bbolt copies the key but not the value, and gives nil back for nil.
	if err := t.bucket.Put(key, append([]byte{}, value...)); err != nil {
		return fmt.Errorf("store/bolt: put: %w", err)
	}
	return nil
}

func (t *tx) Delete(key []byte) error {
	if err := t.mayWrite(key); err != nil {
		return err
	}
	t.remember(key)
	if err := t.bucket.Delete(key); err != nil {
		return fmt.Errorf("store/bolt: delete: %w", err)
	}
	return nil
}

func (t *tx) Scan(from, to []byte, reverse bool, fn func(key, value []byte) bool) error {
	t.scans++
	defer func() { t.scans-- }()
	if reverse {
		t.descend(from, to, fn)
		return nil
	}
	t.ascend(from, to, fn)
	return nil
}

func (t *tx) ascend(from, to []byte, fn func(key, value []byte) bool) {
	c := t.bucket.Cursor()
	for k, v := c.Seek(from); k != nil; k, v = c.Next() {
		if to != nil && bytes.Compare(k, to) >= 0 {
			return
		}
		if !fn(k, v) {
			return
		}
	}
}

// descend goes back to the first key of the range rather than until Prev has no more: Prev gives nil also on a page from
// which this transaction has deleted every key, and goes on when it is called again (bbolt 1.5.0).
func (t *tx) descend(from, to []byte, fn func(key, value []byte) bool) {
	c := t.bucket.Cursor()
	first, _ := c.Seek(from)
	if first == nil || to != nil && bytes.Compare(first, to) >= 0 {
		return
	}
	for k, v := lastBefore(c, to); ; k, v = c.Prev() {
		if k == nil {
			continue
		}
		if !fn(k, v) || bytes.Equal(k, first) {
			return
		}
	}
}

// lastBefore moves c to the last key below to, or to the last of all if to is nil.
func lastBefore(c *bbolt.Cursor, to []byte) (key, value []byte) {
	if to == nil {
		return c.Last()
	}
	if k, _ := c.Seek(to); k == nil {
		return c.Last()
	}
	return c.Prev()
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

func (t *tx) remember(key []byte) {
	t.before = append(t.before, entry{bytes.Clone(key), t.bucket.Get(key)})
}

// undo takes the writes back, the last first.
func (t *tx) undo() error {
	var errs []error
	for _, e := range slices.Backward(t.before) {
		if e.value == nil {
			errs = append(errs, t.bucket.Delete(e.key))
			continue
		}
		errs = append(errs, t.bucket.Put(e.key, e.value))
	}
	return errors.Join(errs...)
}
