package platformtest

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"log/slog"

	"time"

	"github.com/parley-chat/parley/approvals"
	"github.com/parley-chat/parley/core/agent"
	"github.com/parley-chat/parley/core/chat"
	"github.com/parley-chat/parley/core/graph"
	"github.com/parley-chat/parley/core/harness"
	"github.com/parley-chat/parley/core/llm"
	"github.com/parley-chat/parley/platforms"
	"github.com/parley-chat/parley/platforms/bridge"
	"github.com/parley-chat/parley/store"
)

// BotOptions make a bot. Store and Provider are required.
type BotOptions struct {
	Store    store.KV // outlives the bot
	Provider llm.Provider
	Tools    []agent.Tool
	Policy   approvals.Policy
	Logger   *slog.Logger
}

// Bot is one life of the whole bot: bridge, chat harness, agent and records, as `bot serve` puts them together.
type Bot struct {
	line  Line
	life  *life
	stop  context.CancelFunc
	ended chan error // Run's result, once
}

// drain is how long a bot that is stopped gets. Turns that wait for the suite would wait for ever.
const drain = 500 * time.Millisecond

// StartBot starts a bot on a line and returns when messages can arrive.
func StartBot(ctx context.Context, line Line, o BotOptions) (*Bot, error) {
	life := newLife(o.Store)
	records := store.NewRecords(life)
	a, err := agent.New(agent.Options{Provider: life.provider(o.Provider), Tools: o.Tools, Permit: permit,
		NewID: func() string { return string(approvals.NewID(rand.Reader)) }})
	if err != nil {
		return nil, err
	}
	engine, err := graph.Compile(a.Definition(), graph.Options{
		Sessions: records, SessionFields: []graph.Field{chat.Messages}, Checkpoints: records, Logger: o.Logger,
	})
	if err != nil {
		return nil, err
	}
	h := harness.New(engine, harness.Sessioned, harness.Options{Coordinator: harness.Stored{Suspensions: records}})
	b := bridge.New(bridge.Options{
		Adapters: []platforms.Adapter{line.Adapter}, Store: records.Bridge(), Chat: chat.New(h, chat.Options{}), Sessions: records,
		Policy: o.Policy, Drain: drain, About: "Model: test.", Logger: o.Logger,
	})
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	bot := &Bot{line: line, life: life, stop: stop, ended: make(chan error, 1)}
	go func() { bot.ended <- b.Run(running) }()
	return bot, bot.ready(ctx, b)
}

// ready waits until the bridge is. Readiness has no event to wait for.
func (b *Bot) ready(ctx context.Context, of *bridge.Bridge) error {
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for of.Ready() != nil {
		select {
		case <-tick.C:
		case err := <-b.ended:
			b.ended <- nil
			return errors.Join(errors.New("the bot ended at its start"), err)
		case <-ctx.Done():
			return errors.Join(errors.New("the bot does not become ready"), of.Ready(), b.Kill())
		}
	}
	return nil
}

// Wait waits until the bot has ended by itself, because nobody can say anything any more.
func (b *Bot) Wait() error {
	err := <-b.ended
	b.die()
	return err
}

// Stop ends the bot as SIGTERM does and waits for it.
func (b *Bot) Stop() error {
	b.stop()
	err := <-b.ended
	b.life.end()
	b.line.Cut()
	return err
}

// Kill ends the bot as the death of its process does: from now on nothing it does reaches the store or the platform. Then
// it waits for what is left of it.
func (b *Bot) Kill() error {
	b.die()
	b.stop()
	return <-b.ended
}

// die is the moment of a kill.
func (b *Bot) die() {
	b.life.end()
	b.line.Cut()
}

// permit is the last word before an approved call runs, as in the bot.
func permit(raw json.RawMessage, calls []agent.Call) error {
	var d approvals.Decision
	if err := json.Unmarshal(raw, &d); err != nil {
		return err
	}
	asked := make([]approvals.Call, len(calls))
	for i, c := range calls {
		asked[i] = approvals.Call{ID: c.ID, Tool: c.Tool, Arguments: c.Arguments}
	}
	return d.Permit(asked)
}

// life is what a process has and loses: its way to the store and to the model.
type life struct {
	store.KV
	ctx context.Context // ends with it
	end context.CancelFunc
}

func newLife(kv store.KV) *life {
	l := &life{KV: kv}
	l.ctx, l.end = context.WithCancel(context.Background())
	return l
}

var errDead = errors.New("platformtest: the bot is dead")

func (l *life) View(ctx context.Context, fn func(store.Tx) error) error {
	if l.ctx.Err() != nil {
		return errDead
	}
	return l.KV.View(ctx, fn)
}

func (l *life) Update(ctx context.Context, fn func(store.Tx) error) error {
	if l.ctx.Err() != nil {
		return errDead
	}
	return l.KV.Update(ctx, func(tx store.Tx) error {
		if err := fn(tx); err != nil {
			return err
		}
		if l.ctx.Err() != nil {
			return errDead
		}
		return nil
	})
}

// Close leaves the store to the next life.
func (l *life) Close() error { return nil }

// provider is p for as long as the bot lives.
func (l *life) provider(p llm.Provider) llm.Provider {
	if s, ok := p.(llm.Streamer); ok {
		return mortalStreamer{mortal{p, l.ctx}, s}
	}
	return mortal{p, l.ctx}
}

type mortal struct {
	llm.Provider
	life context.Context
}

func (m mortal) Complete(ctx context.Context, req llm.Request) (llm.Response, error) {
	ctx, done := m.within(ctx)
	defer done()
	return m.Provider.Complete(ctx, req)
}

func (m mortal) within(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	undo := context.AfterFunc(m.life, cancel)
	return ctx, func() { undo(); cancel() }
}

type mortalStreamer struct {
	mortal
	llm.Streamer
}

func (m mortalStreamer) Stream(ctx context.Context, req llm.Request, onText func(string)) (llm.Response, error) {
	ctx, done := m.within(ctx)
	defer done()
	return m.Streamer.Stream(ctx, req, onText)
}
