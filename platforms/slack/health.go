package slack

import (
	"errors"
	"maps"
	"sync"
	"time"
)

// Link tells how the connection of Socket Mode is doing.
type Link struct {
	Connected  bool
	LastFrame  time.Time // zero before the first
	Reconnects int       // connections after the first
}

// health is what readiness is made of.
type health struct {
	now func() time.Time

	mu      sync.Mutex
	live    bool   // receiving over HTTP, or connected
	broken  string // a sentence, if the token does not work
	problem string // a sentence, if not live
	link    Link
	opened  int // sockets
}

// Ready tells whether messages can arrive now.
func (h *health) Ready() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.broken != "":
		return errors.New(h.broken)
	case h.live:
		return nil
	case h.problem != "":
		return errors.New(h.problem)
	}
	return errors.New("slack: not started")
}

// Link tells how the connection of Socket Mode is doing; over HTTP it is zero.
func (h *health) Link() Link {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.link
}

func (h *health) broke(sentence string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.broken = sentence
}

func (h *health) mended() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.broken = ""
}

// receiving says that we know who we are; overHTTP, that this is all it takes.
func (h *health) receiving(overHTTP bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.live = overHTTP
	h.problem = "slack: connecting by Socket Mode"
}

// trouble says that nothing arrives, and why.
func (h *health) trouble(sentence string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.live = false
	h.link.Connected = false
	h.problem = sentence
}

// connected says that a socket took over.
func (h *health) connected() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.link.Reconnects = h.opened
	h.opened++
	h.live = true
	h.link.Connected = true
	h.link.LastFrame = h.now()
}

func (h *health) frame() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.link.LastFrame = h.now()
}

// counter counts what came in, by kind of outcome and its constant reason.
type counter struct {
	mu sync.Mutex
	n  map[string]int64
}

func (c *counter) add(outcome, of string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = map[string]int64{}
	}
	c.n[outcome+" "+of]++
}

// Counts are how many payloads were taken, ignored and failed since the start, by reason: "ignored own", "taken event".
func (a *Adapter) Counts() map[string]int64 {
	a.count.mu.Lock()
	defer a.count.mu.Unlock()
	return maps.Clone(a.count.n)
}
