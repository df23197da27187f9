package bolt

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
	bbolterrors "go.etcd.io/bbolt/errors"
)

var (
	// ErrLocked is returned by Open if the file is open already.
	ErrLocked = errors.New("another process has the file open")
	// ErrUnusable is returned by Open for a file that is no store, or a damaged one.
	ErrUnusable = errors.New("the file is not a usable store")
)

// Options are the choices of Open. The zero value is right.
type Options struct {
	// LockTimeout is how long Open waits for another process to let go of the file. Default: 5 s.
	LockTimeout time.Duration
}

const lockRetry = 50 * time.Millisecond

// Open opens the store in the file at path. A file that does not exist, or is empty, becomes an empty store that only
// its owner may read (mode 0600); its directory must exist.
//
// Only one process can have the file open. While another has it, Open waits, at most for Options.LockTimeout and as long
// as ctx lives, and then returns ErrLocked. For a file that is something else, or damaged, it returns ErrUnusable
// and leaves it as it is.
func Open(ctx context.Context, path string, opts Options) (*Store, error) {
	if err := checkPlace(path); err != nil {
		return nil, err
	}
	db, err := openLocked(ctx, path, cmp.Or(opts.LockTimeout, 5*time.Second))
	if err != nil {
		return nil, err
	}
	return &Store{db: db, commit: (*bbolt.Tx).Commit}, nil
}

// checkPlace finds the mistakes in path for which the words of the system are poor.
func checkPlace(path string) error {
	if path == "" {
		return errors.New("store/bolt: open: the path is empty; name a file, such as bot.db")
	}
	dir, err := os.Stat(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("store/bolt: open %s: its directory must exist, make it first: %w", path, err)
	}
	if !dir.IsDir() {
		return fmt.Errorf("store/bolt: open %s: %s is not a directory", path, filepath.Dir(path))
	}
	if file, err := os.Stat(path); err == nil && !file.Mode().IsRegular() {
		return fmt.Errorf("store/bolt: open %s: %w: it is not a regular file (%s); name a file", path, ErrUnusable,
			file.Mode().Type())
	}
	return nil
}

// openLocked opens the file as soon as its lock is free.
func openLocked(ctx context.Context, path string, timeout time.Duration) (*bbolt.DB, error) {
	wait, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for {
		db, err := openOnce(path)
		if !errors.Is(err, bbolterrors.ErrTimeout) {
			return db, err
		}
		select {
		case <-time.After(lockRetry):
		case <-wait.Done():
			if err := ctx.Err(); err != nil {
				return nil, fmt.Errorf("store/bolt: open %s: waiting for its lock: %w", path, err)
			}
			return nil, fmt.Errorf("store/bolt: open %s: %w and did not close it within %s: stop that process "+
				"(is the bot running already?) or name another file", path, ErrLocked, timeout)
		}
	}
}

// openOnce opens the file, or returns bbolt's ErrTimeout at once if it is locked. bbolt panics on some damage, and
// reading the mapping of a truncated file faults; both become errors here.
func openOnce(path string) (db *bbolt.DB, err error) {
	var file *os.File
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if damage := recover(); damage != nil {
			if _, fault := damage.(runtime.Error); fault {
				damage = "it points to places that it does not have, as if it was cut short"
			}
			db, err = nil, fmt.Errorf("store/bolt: open %s: %w: %v; restore a backup", path, ErrUnusable, damage)
			_ = file.Close() // it was only read
		}
	}()
	db, err = bbolt.Open(path, 0o600, &bbolt.Options{
		Timeout:         lockRetry, // one attempt: bbolt gives up when the next would come too late
		FreelistType:    bbolt.FreelistMapType,
		InitialMmapSize: mapAhead(),
		NoStatistics:    true,
		OpenFile: func(name string, flag int, mode os.FileMode) (*os.File, error) {
			f, err := os.OpenFile(name, flag, mode)
			file = f
			return f, err
		},
	})
	if err != nil {
		return nil, explain(path, err)
	}
	if err := prepare(db); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// explain tells damage, for which bbolt has words of its own, from what the system refuses.
func explain(path string, err error) error {
	if _, system := errors.AsType[syscall.Errno](err); system || errors.Is(err, bbolterrors.ErrTimeout) {
		return fmt.Errorf("store/bolt: open %s: %w", path, err)
	}
	return fmt.Errorf("store/bolt: open %s: %w: %w; name another file or restore a backup", path, ErrUnusable, err)
}

// mapAhead returns the bytes of address space to map at first. What is mapped need not be mapped anew, with all Views
// ended, when the file grows. On Windows the file would be made as long as its mapping.
func mapAhead() int {
	if strconv.IntSize < 64 || runtime.GOOS == "windows" {
		return 0
	}
	return 1 << 30
}

// prepare makes a new file an empty store and turns away what is none.
func prepare(db *bbolt.DB) error {
	ours, err := inspect(db)
	if err != nil || ours {
		return err
	}
	err = db.Update(func(t *bbolt.Tx) error {
		_, err := t.CreateBucket(bucketName())
		return err
	})
	if err != nil {
		return fmt.Errorf("store/bolt: new store in %s: %w", db.Path(), err)
	}
	return syncDir(filepath.Dir(db.Path()))
}

// inspect reports whether the file has our bucket, and only that. It writes nothing.
func inspect(db *bbolt.DB) (ours bool, err error) {
	err = db.View(func(t *bbolt.Tx) error {
		info, err := os.Stat(db.Path())
		if err != nil {
			return fmt.Errorf("store/bolt: open: %w", err)
		}
		if info.Size() < t.Size() {
			return fmt.Errorf("store/bolt: open %s: %w: it was cut short, %d of %d bytes are left; restore a backup",
				db.Path(), ErrUnusable, info.Size(), t.Size())
		}
		return t.ForEach(func(name []byte, _ *bbolt.Bucket) error {
			if !bytes.Equal(name, bucketName()) {
				return fmt.Errorf("store/bolt: open %s: %w: it is the bbolt file of another program (bucket %q); "+
					"name another file", db.Path(), ErrUnusable, name)
			}
			ours = true
			return nil
		})
	})
	return ours, err
}

// syncDir makes the name of a new file outlive a power cut. Windows cannot sync a directory, and need not.
func syncDir(path string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	dir, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("store/bolt: new store: %w", err)
	}
	if err := errors.Join(dir.Sync(), dir.Close()); err != nil {
		return fmt.Errorf("store/bolt: new store: sync of %s: %w", path, err)
	}
	return nil
}
