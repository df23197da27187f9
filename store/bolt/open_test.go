package bolt_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/parley-chat/parley/store"
	"github.com/parley-chat/parley/store/bolt"
)

func TestANewStoreIsReadableByItsOwnerOnly(t *testing.T) {
	path := newPath(t)
	open(t, path)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode().Perm(); got != 0o600 {
		t.Errorf("mode of a new store: got %o, want 600", got)
	}
}

func TestAnEmptyFileBecomesAStore(t *testing.T) {
	path := newPath(t)
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := count(t, open(t, path), "/"); got != 0 {
		t.Errorf("keys: got %d, want 0", got)
	}
}

func TestAPathThatCannotBeAStoreIsRefusedInWords(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	cases := map[string]string{
		"":                                 "the path is empty",
		filepath.Join(dir, "no", "bot.db"): "its directory must exist",
		filepath.Join(file, "bot.db"):      "is not a directory",
		dir:                                "not a regular file",
	}
	for path, want := range cases {
		s, err := bolt.Open(t.Context(), path, bolt.Options{})
		if s != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Open(%q): got %v, %v; want an error with %q", path, s, err, want)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "no")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the missing directory: got %v, want it to be missing still", err)
	}
}

func TestAFileThatIsNoStoreIsRefusedAndLeftAsItIs(t *testing.T) {
	sound := soundFile(t)
	zero := func(at, n int) []byte {
		b := bytes.Clone(sound)
		clear(b[at : at+n])
		return b
	}
	page := os.Getpagesize()
	meta := newestMeta(sound, page)
	cases := map[string][]byte{
		"a text":                      []byte("to be, or not to be"),
		"a long text":                 bytes.Repeat([]byte("to be, or not to be\n"), 10_000),
		"zeros":                       make([]byte, 64<<10),
		"both heads gone":             zero(0, 2*page),
		"another version of bbolt":    otherVersion(sound, page),
		"cut to one page":             sound[:page],
		"cut to its heads":            sound[:2*page],
		"cut in the middle":           sound[:len(sound)/2/page*page],
		"its last byte cut off":       sound[:len(sound)-1],
		"list of free pages gone":     zero(int(meta.freelist)*page, page),
		"root gone":                   zero(int(meta.root)*page, page),
		"the file of another program": otherProgram(t),
	}
	for name, content := range cases {
		t.Run(name, func(t *testing.T) {
			path := newPath(t)
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
			s, err := bolt.Open(t.Context(), path, bolt.Options{LockTimeout: time.Millisecond})
			if s != nil || !errors.Is(err, bolt.ErrUnusable) || !strings.Contains(err.Error(), path) {
				t.Errorf("Open: got %v, %v; want %q for %s", s, err, bolt.ErrUnusable, path)
			}
			t.Log(err)
			if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, content) {
				t.Errorf("the file afterwards: changed %t, %v; want as it was", !bytes.Equal(got, content), err)
			}
		})
	}
}

// A kill in the middle of a commit can leave one of the two heads half written. The other one counts then.
func TestAStoreWithOneDamagedHeadOpensInTheStateBeforeIt(t *testing.T) {
	path, page := newPath(t), os.Getpagesize()
	content := soundFile(t)
	clear(content[newestMeta(content, page).at:][20:60])
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	s := open(t, path)
	if got, want := count(t, s, "key/"), soundKeys-1; got != want {
		t.Errorf("keys: got %d, want %d", got, want)
	}
	if err := s.Verify(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestVerifyFindsDamageThatOpenDoesNotLookFor(t *testing.T) {
	path := newPath(t)
	content := bytes.ReplaceAll(soundFile(t), []byte("key/00001"), []byte("zzz/00001")) // out of order
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	err := open(t, path).Verify(t.Context())
	if err == nil || !strings.Contains(err.Error(), "is damaged") {
		t.Errorf("Verify: got %v, want an error that says so", err)
	}
}

func TestAStoreThatIsOpenIsNotOpenedASecondTime(t *testing.T) {
	path := newPath(t)
	s := open(t, path)
	second, err := bolt.Open(t.Context(), path, bolt.Options{LockTimeout: time.Millisecond})
	if second != nil || !errors.Is(err, bolt.ErrLocked) {
		t.Fatalf("second Open: got %v, %v; want %q", second, err, bolt.ErrLocked)
	}
	for _, want := range []string{path, "another process", "stop that process", "name another file"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("second Open: got %q, want it to say %q", err, want)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, path)
}

func TestWaitingForTheLockEndsWithTheContext(t *testing.T) {
	path := newPath(t)
	open(t, path)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	s, err := bolt.Open(ended, path, bolt.Options{LockTimeout: time.Hour})
	if s != nil || !errors.Is(err, context.Canceled) || errors.Is(err, bolt.ErrLocked) {
		t.Errorf("Open: got %v, %v; want %v", s, err, context.Canceled)
	}
}

func TestOpenWaitsForAProcessThatLetsGo(t *testing.T) {
	path := newPath(t)
	child := startChild(t, "hold", path)
	child.expect(t, "open")
	type opened struct {
		s   *bolt.Store
		err error
	}
	got := make(chan opened)
	go func() {
		s, err := bolt.Open(t.Context(), path, bolt.Options{LockTimeout: time.Minute})
		got <- opened{s, err}
	}()
	child.kill(t)
	if o := <-got; o.err != nil {
		t.Errorf("Open after the other process was killed: %v", o.err)
	} else if err := o.s.Close(); err != nil {
		t.Error(err)
	}
}

const soundKeys = 1000

// soundFile returns the content of a store with soundKeys keys, of which the last came in a commit of its own.
func soundFile(t *testing.T) []byte {
	t.Helper()
	path := newPath(t)
	s := open(t, path)
	put := func(from, to int) {
		err := s.Update(t.Context(), func(tx store.Tx) error {
			for i := from; i < to; i++ {
				if err := tx.Put(fmt.Appendf(nil, "key/%05d", i), make([]byte, 100)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	put(0, soundKeys-1)
	put(soundKeys-1, soundKeys)
	var backup bytes.Buffer
	if _, err := s.WriteTo(&backup); err != nil { // for its length: the file itself grows ahead
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content[:backup.Len()]
}

// meta is where bbolt's newest meta page is and what it points to, in pages.
type meta struct {
	at             int
	root, freelist uint64
}

func newestMeta(content []byte, page int) meta {
	txid := func(at int) uint64 { return binary.NativeEndian.Uint64(content[at+64:]) }
	at := 0
	if txid(page) > txid(0) {
		at = page
	}
	return meta{at, binary.NativeEndian.Uint64(content[at+32:]), binary.NativeEndian.Uint64(content[at+48:])}
}

func otherVersion(content []byte, page int) []byte {
	content = bytes.Clone(content)
	for _, at := range []int{0, page} {
		binary.NativeEndian.PutUint32(content[at+20:], 77)
	}
	return content
}

func otherProgram(t *testing.T) []byte {
	t.Helper()
	path := newPath(t)
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(t *bbolt.Tx) error {
		_, err := t.CreateBucket([]byte("recipes"))
		return err
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}
