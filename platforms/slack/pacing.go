package slack

import (
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/parley-chat/parley/platforms"
)

// pace is how often a method may be called: burst at once, then perMinute. Together they stay below Slack's limit in every
// minute (design notes §8).
type pace struct{ perMinute, burst int }

var (
	tier2 = pace{perMinute: 14, burst: 6}
	tier3 = pace{perMinute: 40, burst: 10}
	tier4 = pace{perMinute: 80, burst: 20}

	// Of chat.postMessage: 1 per second and channel with short bursts, several hundred per minute and workspace.
	posts        = pace{perMinute: 240, burst: 30}
	channelPosts = pace{perMinute: 57, burst: 3}
)

func paceOf(method string) pace {
	switch method {
	case "chat.postMessage":
		return posts
	case "chat.startStream", "chat.stopStream", "reactions.remove", "usergroups.users.list":
		return tier2
	case "chat.appendStream", "chat.postEphemeral", "views.open", "files.info":
		return tier4
	}
	return tier3
}

func (p pace) limiter() *rate.Limiter {
	return rate.NewLimiter(rate.Limit(float64(p.perMinute)/60), p.burst)
}

// keptLimiters is how many channels are remembered before those that have long been quiet are forgotten.
const keptLimiters = 1000

// pacer makes calls wait until Slack will take them. A nil pacer lets everything through.
type pacer struct {
	mu       sync.Mutex
	methods  map[string]*rate.Limiter
	channels map[string]*rate.Limiter
	held     map[string]time.Time // methods that Slack asked to slow down, until when
}

func newPacer() *pacer {
	return &pacer{methods: map[string]*rate.Limiter{}, channels: map[string]*rate.Limiter{}, held: map[string]time.Time{}}
}

// wait returns when the method may be called. The error says that it was not called: SlowDown if ctx would not have lasted,
// Unreachable if ctx ended. channel matters to chat.postMessage only.
func (p *pacer) wait(ctx context.Context, method, channel string) *platforms.Error {
	if p == nil {
		return nil
	}
	for _, limiter := range p.limiters(method, channel) {
		r := limiter.Reserve()
		if err := sleep(ctx, r.Delay()); err != nil {
			r.Cancel()
			return notYet(method, err, r.Delay())
		}
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

// try reports whether the method may be called now, and counts the call if so.
func (p *pacer) try(method string) bool {
	if p == nil {
		return true
	}
	return p.heldFor(method) <= 0 && p.limiters(method, "")[0].Allow()
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

// limiters are those a call passes, the narrow one first: who waits there takes nobody's turn.
func (p *pacer) limiters(method, channel string) []*rate.Limiter {
	p.mu.Lock()
	defer p.mu.Unlock()
	m, ok := p.methods[method]
	if !ok {
		m = paceOf(method).limiter()
		p.methods[method] = m
	}
	if method != "chat.postMessage" {
		return []*rate.Limiter{m}
	}
	c, ok := p.channels[channel]
	if !ok {
		p.forgetQuiet()
		c = channelPosts.limiter()
		p.channels[channel] = c
	}
	return []*rate.Limiter{c, m}
}

// forgetQuiet drops the limiters that a new one would equal.
func (p *pacer) forgetQuiet() {
	if len(p.channels) < keptLimiters {
		return
	}
	for channel, limiter := range p.channels {
		if limiter.Tokens() >= float64(limiter.Burst()) {
			delete(p.channels, channel)
		}
	}
}

func notYet(method string, err error, d time.Duration) *platforms.Error {
	e := failed(method, platforms.Unreachable, "")
	e.Cause = err
	if err == errTooLong {
		e.Failure, e.RetryAfter = platforms.SlowDown, max(d, time.Second)
	}
	return e
}
