package bolt_test

import (
	"path/filepath"
	"testing"

	"github.com/parley-chat/parley/conformance/storetest"
	"github.com/parley-chat/parley/store"
	"github.com/parley-chat/parley/store/bolt"
)

func TestTheStoreKeepsTheContract(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.KV { return open(t, filepath.Join(t.TempDir(), "bot.db")) })
	storetest.RunDurable(t, func(path string) (store.KV, error) { return bolt.Open(t.Context(), path, bolt.Options{}) })
}

func open(t testing.TB, path string) *bolt.Store {
	t.Helper()
	s, err := bolt.Open(t.Context(), path, bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}
