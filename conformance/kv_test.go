package conformance

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/parley-chat/parley/store"
)

// newKV returns a small store in memory: a map under a lock. The suites of the real back ends are elsewhere.
func newKV() store.KV { return &mapKV{} }

type mapKV struct {
	mu      sync.RWMutex
	entries map[string]string
}

func (kv *mapKV) View(ctx context.Context, fn func(store.Tx) error) error {
	kv.mu.RLock()
	defer kv.mu.RUnlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	return fn(&mapTx{entries: kv.entries, readOnly: true})
}

func (kv *mapKV) Update(ctx context.Context, fn func(store.Tx) error) error {
	kv.mu.Lock()
	defer kv.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	tx := &mapTx{entries: maps.Clone(kv.entries)}
	if tx.entries == nil {
		tx.entries = make(map[string]string)
	}
	if err := fn(tx); err != nil {
		return err
	}
	kv.entries = tx.entries
	return nil
}

func (kv *mapKV) Close() error { return nil }

type mapTx struct {
	entries  map[string]string
	readOnly bool
}

func (tx *mapTx) Get(key []byte) ([]byte, error) {
	v, ok := tx.entries[string(key)]
	if !ok {
		return nil, nil
	}
	return append([]byte{}, v...), nil
}

func (tx *mapTx) Put(key, value []byte) error {
	if tx.readOnly {
		return store.ErrReadOnly
	}
	tx.entries[string(key)] = string(value)
	return nil
}

func (tx *mapTx) Delete(key []byte) error {
	if tx.readOnly {
		return store.ErrReadOnly
	}
	delete(tx.entries, string(key))
	return nil
}

func (tx *mapTx) Scan(from, to []byte, reverse bool, fn func(key, value []byte) bool) error {
	keys := slices.Sorted(maps.Keys(tx.entries))
	if reverse {
		slices.Reverse(keys)
	}
	for _, k := range keys {
		if k < string(from) || (to != nil && k >= string(to)) {
			continue
		}
		if !fn([]byte(k), []byte(tx.entries[k])) {
			return nil
		}
	}
	return nil
}
