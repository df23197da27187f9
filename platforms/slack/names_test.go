package slack

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/parley-chat/parley/platforms"
	"github.com/parley-chat/parley/platforms/slack/slacktwin"
)

// handClock is a clock that is moved by hand.
type handClock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *handClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *handClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// infos counts the calls of users.info.
func (w *world) infos() int {
	n := 0
	for _, c := range w.Calls() {
		if c.Method == "users.info" {
			n++
		}
	}
	return n
}

func TestPeopleAreNamedAsTheWorkspaceDoes(t *testing.T) {
	w := newWorld(t, setup{})
	w.AddUser(slacktwin.User{ID: "UODD", Name: "  Two\nlines\u202e and\tmore  "})
	w.AddUser(slacktwin.User{ID: "ULONG", Name: fmt.Sprintf("%0200d", 0)})
	for id, want := range map[platforms.UserID]string{
		"T0TWIN/UALICE": "Alice",
		"UBOB":          "Bob",
		"T0OTHER/UEVE":  "Eve",
		"UODD":          "Two lines and more",
		"ULONG":         fmt.Sprintf("%079d…", 0),
	} {
		if got, err := w.a.Name(t.Context(), id); err != nil || got != want {
			t.Errorf("%s: got %q, %v, want %q", id, got, err, want)
		}
	}
}

func TestANameIsRememberedForAnHour(t *testing.T) {
	clock := &handClock{now: time.Now()}
	w := newWorld(t, setup{options: func(o *Options) { o.Now = clock.Now }})
	name := func(want string, calls int) {
		t.Helper()
		if got, err := w.a.Name(t.Context(), "UALICE"); err != nil || got != want || w.infos() != calls {
			t.Errorf("got %q, %v after %d calls, want %q after %d", got, err, w.infos(), want, calls)
		}
	}
	name("Alice", 1)
	w.AddUser(slacktwin.User{ID: "UALICE", Name: "Alicia"})
	clock.advance(59 * time.Minute)
	name("Alice", 1)
	clock.advance(time.Minute)
	name("Alicia", 2)
}

func TestANameThatCannotBeHadIsNotAskedForAgainAtOnce(t *testing.T) {
	clock := &handClock{now: time.Now()}
	w := newWorld(t, setup{options: func(o *Options) { o.Now = clock.Now }})
	for _, calls := range []int{1, 1, 2} {
		if calls == 2 {
			clock.advance(time.Minute)
		}
		if got, err := w.a.Name(t.Context(), "UNOBODY"); err == nil || w.infos() != calls {
			t.Errorf("got %q, %v after %d calls, want an error after %d", got, err, w.infos(), calls)
		}
	}
	if _, err := w.a.Name(t.Context(), "T1/"); err == nil || w.infos() != 2 {
		t.Errorf("got %v after %d calls for nobody, want an error without a call", err, w.infos())
	}
}

func TestWithoutTheScopeNobodyIsAskedFor(t *testing.T) {
	w := newWorld(t, setup{})
	w.Fault(slacktwin.Fault{Method: "users.info", Error: "missing_scope", Times: -1})
	for _, id := range []platforms.UserID{"UALICE", "UBOB"} {
		if _, err := w.a.Name(t.Context(), id); codeOf(err) != "missing_scope" || w.infos() != 1 {
			t.Errorf("%s: got %v after %d calls, want missing_scope after one", id, err, w.infos())
		}
	}
	if err := w.a.Ready(); err != nil {
		t.Errorf("got %v, want that the bot goes on without names", err)
	}
}

func TestALookUpThatIsGivenUpIsNotHeldAgainstTheName(t *testing.T) {
	w := newWorld(t, setup{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.a.Name(ctx, "UALICE"); err == nil {
		t.Error("got no error for a look-up that was given up")
	}
	if got, err := w.a.Name(t.Context(), "UALICE"); err != nil || got != "Alice" {
		t.Errorf("got %q, %v, want Alice", got, err)
	}
}

func TestNamesDoNotGrowWithoutEnd(t *testing.T) {
	var n names
	start := time.Now()
	for i := range 3 * keptNames {
		n.put(fmt.Sprint(i), calledName{name: "x", until: start.Add(time.Hour)}, start)
	}
	if len(n.seen) > keptNames {
		t.Errorf("%d names are kept, want at most %d", len(n.seen), keptNames)
	}
	n.put("old", calledName{name: "x", until: start}, start)
	for i := len(n.seen); i < keptNames; i++ {
		n.put(fmt.Sprint("new", i), calledName{name: "x", until: start.Add(time.Hour)}, start)
	}
	n.put("last", calledName{name: "x", until: start.Add(time.Hour)}, start)
	if _, ok := n.seen["old"]; ok || len(n.seen) != keptNames {
		t.Errorf("kept %d names, the old one: %v, want %d without it", len(n.seen), ok, keptNames)
	}
}
