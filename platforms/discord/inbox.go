package discord

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"sync"
	"time"

	"github.com/parley-chat/parley/platforms"
	"github.com/parley-chat/parley/platforms/pace"
)

// The way in. Handlers of the gateway only queue; a few committers make durable what is queued, always the same for one
// channel, so that what came in order is kept in order. Interactions have committers of their own: their answer is due in
// 3 s. Discord sends nothing twice, so what could not be kept is tried again until it is; while a queue is full, the gateway
// is not read.

const (
	committers   = 8
	clickers     = 4
	queued       = 256 // arrivals that wait for one committer
	acceptWithin = 10 * time.Second
)

// arrival is something on its way to the inbox.
type arrival struct {
	kind    kind // "": only look up what was missed in the channel
	channel string
	guild   string // of a message that was looked up
	self    identity
	body    json.RawMessage
}

type queues struct {
	a        *Adapter
	ctx      context.Context // ends with the receiving
	inbox    platforms.Inbox
	messages []chan arrival
	clicks   []chan arrival
}

// startCommitters starts them. They end when ctx does, after what is queued; running waits for them.
func (a *Adapter) startCommitters(ctx context.Context, inbox platforms.Inbox, running *sync.WaitGroup) *queues {
	q := &queues{a: a, ctx: ctx, inbox: inbox}
	for i := range committers + clickers {
		c := make(chan arrival, queued)
		if i < committers {
			q.messages = append(q.messages, c)
		} else {
			q.clicks = append(q.clicks, c)
		}
		running.Go(func() { q.work(c) })
	}
	return q
}

// put queues an arrival, waiting for room. What comes after the end is not queued.
func (q *queues) put(n arrival) {
	to := q.messages
	if n.kind == kindInteraction {
		to = q.clicks
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(n.channel))
	select {
	case to[h.Sum32()%uint32(len(to))] <- n:
	case <-q.ctx.Done():
		q.a.count.add("failed", "stopping")
	}
}

func (q *queues) work(from <-chan arrival) {
	for {
		select {
		case n := <-from:
			q.commit(n)
			continue
		case <-q.ctx.Done():
		}
		select {
		case n := <-from:
			q.commit(n)
		default:
			return
		}
	}
}

// commit keeps an arrival, after what was missed before it. It tries until it can, or once more after the end.
func (q *queues) commit(n arrival) {
	if n.kind != kindInteraction {
		q.catchUp(n.channel)
	}
	if n.kind != "" {
		q.keep(n)
	}
}

func (q *queues) keep(n arrival) {
	for attempt := 0; ; attempt++ {
		last := q.ctx.Err() != nil
		err := q.a.take(q.ctx, q.inbox, n)
		if err == nil {
			return
		}
		q.a.count.add("failed", string(n.kind))
		q.a.log.Error("discord: an arrival could not be kept; trying again", "kind", string(n.kind), "last", last, "error", err)
		if last {
			return
		}
		_ = pace.Sleep(q.ctx, pace.Backoff(attempt, 0))
	}
}

// gate is open while Run receives: for interactions that come over HTTP.
type gate struct {
	mu    sync.RWMutex
	inbox platforms.Inbox
	ctx   context.Context
}

func (g *gate) open(ctx context.Context, inbox platforms.Inbox) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inbox, g.ctx = inbox, ctx
}

// close waits for what is being taken.
func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inbox = nil
}

// take makes an arrival durable, unless it is of no interest. Nothing else happens with it before.
func (a *Adapter) take(ctx context.Context, inbox platforms.Inbox, n arrival) error {
	if n.kind == kindInteraction {
		return a.takeInteraction(ctx, inbox, n)
	}
	return a.takeMessage(ctx, inbox, n)
}

func (a *Adapter) takeMessage(ctx context.Context, inbox platforms.Inbox, n arrival) error {
	e := envelope{Kind: n.kind, Self: n.self, Where: where{Guild: n.guild}, Body: n.body}
	m, ok := decodeMessage(e)
	if !ok {
		a.count.add("ignored", "malformed")
		return nil
	}
	if n.kind == kindMessage {
		if why := n.self.unwanted(m); why != "" {
			if why == "own" {
				a.sent.note(m.mark(), messageRef(m.ChannelID, m.ID))
			}
			a.count.add("ignored", why)
			return nil
		}
	}
	w, ok, err := a.whereIs(ctx, m)
	if err != nil {
		return fmt.Errorf("discord: look where a message is: %w", err)
	}
	if !ok {
		a.count.add("ignored", "closed_channel")
		return nil
	}
	e.Where, e.Self.Role = w, a.directory.role(m.GuildID)
	r := interpret(e)
	if why, ok := r.isIgnored(); ok {
		a.count.add("ignored", why)
		return nil
	}
	if n.kind == kindDelete && !a.history.isActive(r.conversation) {
		a.count.add("ignored", "inactive") // it is not known to be a message that was taken
		return nil
	}
	if err := a.accept(ctx, inbox, e, r); err != nil {
		return err
	}
	if n.kind == kindMessage {
		a.history.took(m, r.conversation)
	}
	return nil
}

// accept gives to the inbox what was read. It goes on when ctx is cancelled: Discord does not send it again.
func (a *Adapter) accept(ctx context.Context, inbox platforms.Inbox, e envelope, r reading) error {
	raw, err := e.wrap()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), acceptWithin)
	defer cancel()
	err = inbox.Accept(ctx, platforms.Delivery{Keys: r.keys, Conversation: r.conversation, Urgent: r.urgent, Raw: raw})
	if err != nil {
		return fmt.Errorf("discord: accept: %w", err)
	}
	a.count.add("taken", string(e.Kind))
	return nil
}

// takeInteraction keeps an interaction and then answers it, at once, beside what comes next.
func (a *Adapter) takeInteraction(ctx context.Context, inbox platforms.Inbox, n arrival) error {
	var i interaction
	if decode(n.body, &i) != nil || !isSnowflake(i.ID) || !isToken(i.Token) {
		a.count.add("ignored", "malformed")
		return nil
	}
	e := envelope{Kind: kindInteraction, Self: n.self, Body: n.body}
	e.Where.InChannel = a.answersIn(i.address().Channel) == InChannel
	r := interpret(e)
	why, ignored := r.isIgnored()
	p := a.pendings.register(i, a.now())
	if ignored {
		a.count.add("ignored", why)
	} else if err := a.accept(ctx, inbox, e, r); err != nil {
		return err
	}
	a.acknowledge(p, i, !ignored)
	return nil
}
