package slack

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/parley-chat/parley/platforms"
)

// pace allows n calls in any stretch of time per. Slack counts by the minute, channels by the second;
// six stretches of 10 s make a minute with something to spare.
type pace struct {
	n   int
	per time.Duration
}

var (
	tier2 = pace{n: 3, per: 10 * time.Second}
	tier3 = pace{n: 8, per: 10 * time.Second}
	tier4 = pace{n: 16, per: 10 * time.Second}

	// Of chat.postMessage: 1 per second and channel with short bursts, several hundred per minute and workspace.
	posts        = pace{n: 45, per: 10 * time.Second}
	channelPosts = pace{n: 5, per: 5200 * time.Millisecond}
)

func paceOf(method string) pace {
	switch method {
	case "chat.postMessage":
		return posts
	case "chat.startStream", "chat.stopStream", "reactions.remove", "usergroups.users.list":
		return tier2
	case "chat.appendStream", "chat.postEphemeral", "views.open", "files.info", "users.info":
		return tier4
	}
	return tier3
}

// turns remembers when the last calls have their turn, at most n, in order.
type turns struct {
	pace
	taken []time.Time
}

// next is when another call may be made.
func (t *turns) next(now time.Time) time.Time {
	if len(t.taken) < t.n {
		return now
	}
	if at := t.taken[len(t.taken)-t.n].Add(t.per); at.After(now) {
		return at
	}
	return now
}

func (t *turns) take(at time.Time) {
	if len(t.taken) == t.n {
		t.taken = append(t.taken[:0], t.taken[1:]...)
	}
	t.taken = append(t.taken, at)
}

// keptChannels is how many channels are remembered before those that have been quiet are forgotten.
const keptChannels = 1000

// pacer makes calls wait until Slack will take them. A nil pacer lets everything through.
type pacer struct {
	mu       sync.Mutex
	methods  map[string]*turns
	channels map[string]*turns
	held     map[string]time.Time // methods that Slack asked to slow down, until when
}

func newPacer() *pacer {
	return &pacer{methods: map[string]*turns{}, channels: map[string]*turns{}, held: map[string]time.Time{}}
}

// wait returns when the method may be called. The error says that it was not called: SlowDown if ctx will not last so
// long, Unreachable if ctx has ended. channel matters to chat.postMessage only.
func (p *pacer) wait(ctx context.Context, method, channel string) error {
	if p == nil {
		return nil
	}
	if method == "chat.postMessage" {
		// The narrow gate first: who waits there takes nobody's turn.
		if err := p.waitFor(ctx, method, func() *turns { return p.ofChannel(channel) }); err != nil {
			return err
		}
	}
	if err := p.waitFor(ctx, method, func() *turns { return p.ofMethod(method) }); err != nil {
		return err
	}
	for {
		d := p.heldFor(method)
		if d <= 0 {
			return nil
		}
		if err := sleep(ctx, d); err != nil {
			return notYet(method, err, d)
		}
	}
}

// waitFor takes a turn and waits for it. A turn that would come too late is not taken.
func (p *pacer) waitFor(ctx context.Context, method string, of func() *turns) error {
	p.mu.Lock()
	now := time.Now()
	t := of()
	at := t.next(now)
	d := at.Sub(now)
	if deadline, ok := ctx.Deadline(); ok && deadline.Before(at) {
		p.mu.Unlock()
		return notYet(method, errTooLong, d)
	}
	t.take(at)
	p.mu.Unlock()
	if err := sleep(ctx, d); err != nil {
		return notYet(method, err, d)
	}
	return nil
}

// try reports whether the method may be called now, and takes the turn if so.
func (p *pacer) try(method string) bool {
	if p == nil {
		return true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	t := p.ofMethod(method)
	if now.Before(p.held[method]) || t.next(now).After(now) {
		return false
	}
	t.take(now)
	return true
}

// hold keeps the method from being called for d: a 429 holds for the method and the workspace.
func (p *pacer) hold(method string, d time.Duration) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if until := time.Now().Add(d); until.After(p.held[method]) {
		p.held[method] = until
	}
}

func (p *pacer) heldFor(method string) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Until(p.held[method])
}

func (p *pacer) ofMethod(method string) *turns {
	t, ok := p.methods[method]
	if !ok {
		t = &turns{pace: paceOf(method)}
		p.methods[method] = t
	}
	return t
}

func (p *pacer) ofChannel(channel string) *turns {
	t, ok := p.channels[channel]
	if ok {
		return t
	}
	if len(p.channels) >= keptChannels {
		p.forgetQuiet(time.Now())
	}
	t = &turns{pace: channelPosts}
	p.channels[channel] = t
	return t
}

// forgetQuiet drops the channels that a new one would equal.
func (p *pacer) forgetQuiet(now time.Time) {
	for channel, t := range p.channels {
		if last := t.taken[len(t.taken)-1]; now.Sub(last) >= t.per {
			delete(p.channels, channel)
		}
	}
}

func notYet(method string, err error, d time.Duration) error {
	e := failed(method, platforms.Unreachable, "")
	e.Cause = err
	if errors.Is(err, errTooLong) {
		e.Failure, e.RetryAfter = platforms.SlowDown, max(d, time.Second)
	}
	return e
}
