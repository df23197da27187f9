package discord

import (
	"errors"
	"maps"
	"slices"
	"sync"
)

// health is what readiness is made of.
type health struct {
	mu      sync.Mutex
	broken  string         // a sentence, if the token does not work
	problem string         // a sentence, if nothing is received at all
	shards  map[int]string // a sentence for each that is not connected
	opened  int            // connections that came to READY or RESUMED
}

// Ready tells whether messages can arrive now.
func (a *Adapter) Ready() error { return a.health.ready() }

// Connections is how many connections to the gateway have been made since the start.
func (a *Adapter) Connections() int {
	a.health.mu.Lock()
	defer a.health.mu.Unlock()
	return a.health.opened
}

func (h *health) ready() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.broken != "":
		return errors.New(h.broken)
	case h.problem != "":
		return errors.New(h.problem)
	case h.shards == nil:
		return errors.New("discord: not started")
	}
	for _, id := range slices.Sorted(maps.Keys(h.shards)) {
		return errors.New(h.shards[id])
	}
	return nil
}

// expect says how many shards are to connect.
func (h *health) expect(shards int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.problem, h.shards = "", map[int]string{}
	for id := range shards {
		h.shards[id] = "discord: connecting to the gateway"
	}
}

func (h *health) connected(shard int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.shards, shard)
	h.opened++
}

// trouble says that a shard receives nothing, and why.
func (h *health) trouble(shard int, sentence string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.shards[shard] = sentence
}

// stopped says that nothing is received, and why.
func (h *health) stopped(sentence string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.problem = sentence
}

// broke says that the token does not work, for good: Discord does not bring one back.
func (h *health) broke(sentence string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.broken = sentence
}

func (h *health) tokenBroken() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.broken != ""
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

// Counts are how many payloads were taken, ignored and failed since the start, by reason: "ignored own", "taken
// MESSAGE_CREATE".
func (a *Adapter) Counts() map[string]int64 {
	a.count.mu.Lock()
	defer a.count.mu.Unlock()
	return maps.Clone(a.count.n)
}
