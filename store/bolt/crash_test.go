package bolt_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"testing"

	"github.com/parley-chat/parley/store"
	"github.com/parley-chat/parley/store/bolt"
)

const (
	writers = 8
	window  = 50 // how many keys each writer keeps
)

// TestWhatWasAcknowledgedOutlivesAKill kills a process that writes, over and over, and looks at what is left each time.
func TestWhatWasAcknowledgedOutlivesAKill(t *testing.T) {
	path := newPath(t)
	var acknowledged [writers]int
	kills := 12
	if testing.Short() {
		kills = 3
	}
	for range kills {
		child := startChild(t, "write", path)
		before := acknowledged
		for range rand.IntN(500) {
			child.acknowledgement(t, &acknowledged)
		}
		child.kill(t)
		for child.acknowledgement(t, &acknowledged) { // what it had written when it died
		}
		s := open(t, path)
		if err := s.Verify(t.Context()); err != nil {
			t.Error(err)
		}
		for w := range writers {
			acknowledged[w] = checkWriter(t, s, w, acknowledged[w])
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		t.Logf("from %v to %v", before, acknowledged)
	}
}

// checkWriter returns the last number of a writer: the acknowledged one, or the next, whose acknowledgement was lost.
func checkWriter(t *testing.T, s *bolt.Store, w, acknowledged int) (last int) {
	t.Helper()
	err := s.View(t.Context(), func(tx store.Tx) (err error) {
		last, err = lastOf(tx, w)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if last < acknowledged || last > acknowledged+1 {
		t.Errorf("writer %d: got %d, want the acknowledged %d or one more", w, last, acknowledged)
	}
	if got, want := count(t, s, fmt.Sprintf("window/%d/", w)), min(last, window); got != want {
		t.Errorf("writer %d at %d: got a window of %d keys, want %d", w, last, got, want)
	}
	return last
}

// write is what the child does: several writers count upwards, each number an Update, and acknowledge it on standard
// output when it is committed. It never ends.
func write(ctx context.Context, s *bolt.Store) error {
	errs := make([]error, writers)
	var all sync.WaitGroup
	var out sync.Mutex
	for w := range writers {
		all.Go(func() {
			for errs[w] == nil {
				var n int
				errs[w] = s.Update(ctx, func(tx store.Tx) (err error) {
					n, err = step(tx, w)
					return err
				})
				if errs[w] == nil {
					out.Lock()
					fmt.Println(w, n)
					out.Unlock()
				}
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// step counts a writer's number up and moves its window of keys on.
func step(tx store.Tx, w int) (n int, err error) {
	n, err = lastOf(tx, w)
	if err != nil {
		return 0, err
	}
	n++
	key := func(n int) []byte { return fmt.Appendf(nil, "window/%d/%d", w, n) }
	value := make([]byte, n*37%2000)
	return n, errors.Join(tx.Put(lastKey(w), strconv.AppendInt(nil, int64(n), 10)), tx.Put(key(n), value), tx.Delete(key(n-window)))
}

func lastKey(w int) []byte { return fmt.Appendf(nil, "last/%d", w) }

func lastOf(tx store.Tx, w int) (int, error) {
	value, err := tx.Get(lastKey(w))
	if err != nil || value == nil {
		return 0, err
	}
	return strconv.Atoi(string(value))
}

// childEnv tells the test binary to be a child process instead of running the tests: what to do and with which file.
const (
	childTask = "BOLT_TEST_CHILD_TASK"
	childPath = "BOLT_TEST_CHILD_PATH"
)

func TestMain(m *testing.M) {
	if task := os.Getenv(childTask); task != "" {
		if err := beChild(context.Background(), task, os.Getenv(childPath)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func beChild(ctx context.Context, task, path string) error {
	s, err := bolt.Open(ctx, path, bolt.Options{})
	if err != nil {
		return err
	}
	switch task {
	case "write":
		return write(ctx, s)
	case "hold":
		fmt.Println("open")
		_, err := io.Copy(io.Discard, os.Stdin) // until it is killed
		return err
	default:
		return fmt.Errorf("no task %q", task)
	}
}

// child is a process that runs beChild.
type child struct {
	cmd   *exec.Cmd
	lines *bufio.Scanner
}

func startChild(t *testing.T, task, path string) *child {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe)
	cmd.Env = append(os.Environ(), childTask+"="+task, childPath+"="+path)
	cmd.Stderr = os.Stderr
	if _, err := cmd.StdinPipe(); err != nil { // left open for as long as this process lives
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Wait() }) // says that it was killed
	return &child{cmd, bufio.NewScanner(out)}
}

// kill ends the process by SIGKILL.
func (c *child) kill(t *testing.T) {
	t.Helper()
	if err := c.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
}

func (c *child) expect(t *testing.T, line string) {
	t.Helper()
	if !c.lines.Scan() || c.lines.Text() != line {
		t.Fatalf("child: got %q, %v; want %q", c.lines.Text(), c.lines.Err(), line)
	}
}

// acknowledgement reads one line of the child's, "writer number", into last. It reports whether there was one.
func (c *child) acknowledgement(t *testing.T, last *[writers]int) bool {
	t.Helper()
	if !c.lines.Scan() {
		return false
	}
	var w, n int
	if _, err := fmt.Sscan(c.lines.Text(), &w, &n); err != nil {
		t.Fatalf("child: %q: %v", c.lines.Text(), err)
	}
	if n != last[w]+1 {
		t.Errorf("writer %d acknowledged %d after %d", w, n, last[w])
	}
	last[w] = n
	return true
}
