package bolt_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/parley-chat/parley/conformance/storetest"
	"github.com/parley-chat/parley/store"
	"github.com/parley-chat/parley/store/bolt"
)

func TestTheStoreKeepsTheContract(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.KV { return open(t, newPath(t)) })
	storetest.RunDurable(t, func(path string) (store.KV, error) { return bolt.Open(t.Context(), path, bolt.Options{}) })
}

func FuzzWhatIsPutIsRead(f *testing.F) {
	s := open(f, filepath.Join(f.TempDir(), "bot.db"))
	f.Add([]byte("key"), []byte("value"))
	f.Add([]byte{}, []byte{})
	f.Add([]byte{0, 0xff}, []byte(nil))
	f.Fuzz(func(t *testing.T, key, value []byte) {
		if err := storetest.RoundTrip(t.Context(), s, key, value); err != nil {
			t.Error(err)
		}
	})
}

func TestABackupMadeWhileWritingIsAConsistentStore(t *testing.T) {
	s := open(t, newPath(t))
	var backup bytes.Buffer
	var all sync.WaitGroup
	defer all.Wait()
	writing, stop := context.WithCancel(t.Context())
	defer stop()
	begun := make(chan struct{})
	all.Go(func() { writePairs(t, writing, s, begun) })
	<-begun
	n, err := s.WriteTo(&backup)
	if err != nil || n != int64(backup.Len()) {
		t.Fatalf("WriteTo: got %d, %v; want %d, nil", n, err, backup.Len())
	}

	path := newPath(t)
	if err := os.WriteFile(path, backup.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	restored := open(t, path)
	if err := restored.Verify(t.Context()); err != nil {
		t.Error(err)
	}
	if size, err := restored.Size(); err != nil || size != n {
		t.Errorf("Size of the restored store: got %d, %v; want %d, nil", size, err, n)
	}
	left, right := count(t, restored, "left/"), count(t, restored, "right/")
	if left == 0 || left != right {
		t.Errorf("keys in the restored store: got %d left and %d right, want as many, and some", left, right)
	}
}

// writePairs writes keys by pairs, one pair an Update, until ctx ends. It closes begun when the first 100 are there.
func writePairs(t *testing.T, ctx context.Context, s *bolt.Store, begun chan<- struct{}) {
	for i := 0; ; i++ {
		err := s.Update(ctx, func(tx store.Tx) error {
			value := make([]byte, 500)
			return errors.Join(tx.Put(fmt.Appendf(nil, "left/%d", i), value), tx.Put(fmt.Appendf(nil, "right/%d", i), value))
		})
		if i == 100 {
			close(begun)
		}
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			t.Error(err)
			return
		}
	}
}

func TestAClosedStoreHasNoSizeAndNoBackup(t *testing.T) {
	s := open(t, newPath(t))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	_, sizeErr := s.Size()
	_, backupErr := s.WriteTo(new(bytes.Buffer))
	for op, err := range map[string]error{"Size": sizeErr, "WriteTo": backupErr, "Verify": s.Verify(t.Context())} {
		if !errors.Is(err, store.ErrClosed) {
			t.Errorf("%s: got %v, want %v", op, err, store.ErrClosed)
		}
	}
}

func TestABackupToAWriterThatFailsReturnsItsError(t *testing.T) {
	s := open(t, newPath(t))
	if _, err := s.WriteTo(failingWriter{}); err == nil {
		t.Error("WriteTo: got no error")
	}
}

type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func newPath(t testing.TB) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "bot.db")
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

// count returns how many keys begin with prefix, which ends in a slash.
func count(t *testing.T, s *bolt.Store, prefix string) (n int) {
	t.Helper()
	err := s.View(t.Context(), func(tx store.Tx) error {
		end := prefix[:len(prefix)-1] + "0" // what follows the slash
		return tx.Scan([]byte(prefix), []byte(end), false, func(_, _ []byte) bool {
			n++
			return true
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}
