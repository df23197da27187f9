package discord

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/parley-chat/parley/platforms"
)

const (
	// typeEvery keeps the indicator alive, which lasts 10 s and cannot be taken back (doc resources/channel).
	typeEvery = 8 * time.Second
	// typeFor is how long a bot is believed to work.
	typeFor = 10 * time.Minute
)

// typing keeps the indicators alive.
type typing struct {
	mu      sync.Mutex
	ctx     context.Context // nil while nothing is received
	running *sync.WaitGroup
	in      map[platforms.Conversation]context.CancelFunc
}

// begin says for how long indicators are kept alive, and who waits for that to end.
func (t *typing) begin(ctx context.Context, running *sync.WaitGroup) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ctx, t.running, t.in = ctx, running, map[platforms.Conversation]context.CancelFunc{}
}

func (t *typing) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ctx = nil
	for c, stop := range t.in {
		stop()
		delete(t.in, c)
	}
}

func (t *typing) stop(c platforms.Conversation) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if stop := t.in[c]; stop != nil {
		stop()
		delete(t.in, c)
	}
}

// SetStatus shows that the bot is typing while it works, ten minutes at most: in the thread, or in its channel as long as
// there is no thread. Waiting and idle show nothing.
func (a *Adapter) SetStatus(ctx context.Context, in platforms.Conversation, _ platforms.MessageRef, s platforms.Status) error {
	at, err := parseConversation(in)
	if err != nil {
		return failed("status", platforms.Refused, "no_conversation")
	}
	if s != platforms.Working {
		a.typing.stop(in)
		return nil
	}
	a.typing.keep(in, func(ctx context.Context) error { return a.typeOnce(ctx, at) })
	return a.typeOnce(ctx, at)
}

// keep has f called every 8 s until stop, unless it is already; it ends when f fails for good.
func (t *typing) keep(in platforms.Conversation, f func(context.Context) error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ctx == nil || t.in[in] != nil {
		return
	}
	ctx, stop := context.WithTimeout(t.ctx, typeFor)
	t.in[in] = stop
	t.running.Go(func() {
		defer stop()
		ticker := time.NewTicker(typeEvery)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			switch err := f(ctx); platforms.FailureOf(err) {
			case platforms.Refused, platforms.Broken, platforms.Malformed, platforms.Gone:
				return
			}
		}
	})
}

// typeOnce shows the indicator for 10 s.
func (a *Adapter) typeOnce(ctx context.Context, at address) error {
	where := at.place()
	if _, known := a.directory.get(where); at.Thread != "" && !known {
		where = at.Channel
	}
	return a.do(ctx, call{op: "type", method: http.MethodPost, path: "channels/" + where + "/typing", optional: true}, nil)
}
