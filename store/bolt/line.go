package bolt

import (
	"context"
	"slices"
	"sync"
)

// line lets one goroutine at a time to its head, in the order of arrival. Unlike with a mutex, those who wait can give
// up, and the one at the head can see that nobody waits. The zero line is free.
type line struct {
	mu      sync.Mutex
	taken   bool
	waiting []chan struct{} // closed to let its owner to the head
}

// enter waits for the place at the head. After an error the caller does not have it.
func (l *line) enter(ctx context.Context) error {
	turn := l.stand()
	if turn == nil {
		return nil
	}
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
		return l.giveUp(ctx, turn)
	}
}

// stand takes the head if it is free, and otherwise returns the channel that tells when it is one's turn.
func (l *line) stand() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.taken {
		l.taken = true
		return nil
	}
	turn := make(chan struct{})
	l.waiting = append(l.waiting, turn)
	return turn
}

// giveUp leaves the line. Whoever was called to the head in the same moment has it: the others count on him.
func (l *line) giveUp(ctx context.Context, turn <-chan struct{}) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.IndexFunc(l.waiting, func(c chan struct{}) bool { return c == turn })
	if i < 0 {
		return nil
	}
	l.waiting = slices.Delete(l.waiting, i, i+1)
	return ctx.Err()
}

// handOver gives the head to the next one, if there is one; otherwise the caller keeps it.
func (l *line) handOver() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.next()
}

// leave gives the head to the next one, or frees it.
func (l *line) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.taken = l.next()
}

// next calls the first who waits; l.mu is held.
func (l *line) next() bool {
	if len(l.waiting) == 0 {
		return false
	}
	close(l.waiting[0])
	l.waiting = slices.Delete(l.waiting, 0, 1)
	return true
}
