package playground

import "sync"

// ticks counts changes and wakes whoever waits for the next one. Nobody is told what changed: a reader fetches what it
// shows, so that it cannot miss anything however slow it is.
type ticks struct {
	mu      sync.Mutex
	version uint64
	changed chan struct{} // closed at the next change
	ended   bool
}

func newTicks() *ticks { return &ticks{version: 1, changed: make(chan struct{})} }

// now returns the version, a channel that is closed once it is no longer true, and whether there will be another one.
func (t *ticks) now() (version uint64, changed <-chan struct{}, live bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.version, t.changed, !t.ended
}

// advance makes a new version.
func (t *ticks) advance() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return
	}
	t.version++
	close(t.changed)
	t.changed = make(chan struct{})
}

// end wakes everybody for the last time.
func (t *ticks) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return
	}
	t.ended = true
	close(t.changed)
}
