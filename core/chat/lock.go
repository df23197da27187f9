package chat

import (
	"context"
	"sync"
)

// locks serialise the turns of each session (§5.3). The zero value is ready; a session without turns costs nothing.
type locks struct {
	mu    sync.Mutex
	queue map[string]*sessionLock
}

type sessionLock struct {
	holders int // who holds it or waits for it
	turn    chan struct{}
}

// lock waits for the session's turn, or for ctx.
func (l *locks) lock(ctx context.Context, sessionID string) (unlock func(), err error) {
	s := l.enter(sessionID)
	select {
	case s.turn <- struct{}{}:
		return func() {
			<-s.turn
			l.leave(sessionID, s)
		}, nil
	case <-ctx.Done():
		l.leave(sessionID, s)
		return nil, context.Cause(ctx)
	}
}

func (l *locks) enter(sessionID string) *sessionLock {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.queue == nil {
		l.queue = make(map[string]*sessionLock)
	}
	s := l.queue[sessionID]
	if s == nil {
		s = &sessionLock{turn: make(chan struct{}, 1)}
		l.queue[sessionID] = s
	}
	s.holders++
	return s
}

func (l *locks) leave(sessionID string, s *sessionLock) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.holders--; s.holders == 0 {
		delete(l.queue, sessionID)
	}
}
