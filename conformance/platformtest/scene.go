package platformtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/parley-chat/parley/approvals"
	"github.com/parley-chat/parley/core/agent"
	"github.com/parley-chat/parley/core/llm"
	"github.com/parley-chat/parley/core/llm/echo"
	"github.com/parley-chat/parley/store"
	"github.com/parley-chat/parley/store/memory"
)

// Scene is a world, what the bot keeps, and at most one living bot: what a clause plays on.
type Scene struct {
	World
	Logger *slog.Logger
	// Ledger is the world outside that the tool deploy changes.
	Ledger Ledger

	kv   store.KV
	bot  *Bot
	last Cast
}

// NewScene sets the scene. Close it.
func NewScene(w World, logger *slog.Logger) *Scene {
	return &Scene{World: w, Logger: logger, kv: memory.New()}
}

// Close ends the bot.
func (s *Scene) Close() error { return errors.Join(s.Stop(), s.kv.Close()) }

// Cast is how the bot of a scene is to be. The zero value: a model that echoes, and Grace approves within an hour.
type Cast struct {
	Model llm.Provider
	// Deciders are entries of the setting; nil names Grace. Nobody leaves the setting empty.
	Deciders []string
	Nobody   bool
	Within   time.Duration
}

// Start brings the bot up.
func (s *Scene) Start(ctx context.Context, c Cast) error {
	s.last = c
	if c.Model == nil {
		c.Model = echo.New(0)
	}
	if c.Deciders == nil && !c.Nobody {
		c.Deciders = []string{s.Setting(Grace)}
	}
	if c.Within == 0 {
		c.Within = time.Hour
	}
	deciders, err := approvals.ParsePatterns(strings.Join(c.Deciders, ","))
	if err != nil {
		return err
	}
	line, err := s.Connect(s.Logger)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	s.bot, err = StartBot(ctx, line, BotOptions{
		Store: s.kv, Provider: c.Model, Tools: []agent.Tool{s.Ledger.Deploy()},
		Policy: approvals.Policy{Deciders: deciders, Within: c.Within}, Logger: s.Logger,
	})
	return err
}

// Stop ends the bot as an operator does, if it lives.
func (s *Scene) Stop() error {
	b := s.bot
	if s.bot = nil; b == nil {
		return nil
	}
	return b.Stop()
}

// Kill ends it without a word.
func (s *Scene) Kill() error {
	b := s.bot
	s.bot = nil
	return b.Kill()
}

// Restart stops the bot and starts it again as it was.
func (s *Scene) Restart(ctx context.Context) error {
	if err := s.Stop(); err != nil {
		return err
	}
	return s.Start(ctx, s.last)
}

// begin starts a bot and a conversation with it.
func (s *Scene) begin(ctx context.Context, c Cast, who Person, text string) (Said, error) {
	if err := s.Start(ctx, c); err != nil {
		return Said{}, err
	}
	return s.mention(ctx, who, text)
}

func (s *Scene) mention(ctx context.Context, who Person, text string) (Said, error) {
	return s.Say(ctx, who, Words{Mention: true, Text: text})
}

func (s *Scene) reply(ctx context.Context, who Person, in Place, text string) (Said, error) {
	return s.Say(ctx, who, Words{In: in, Text: text})
}

// until waits until ok returns nil; it is asked again whenever somebody sees something new.
func (s *Scene) until(ctx context.Context, ok func() error) error {
	changes, stop := s.Watch()
	defer stop()
	for {
		err := ok()
		if err == nil {
			return nil
		}
		select {
		case <-changes:
		case <-ctx.Done():
			return fmt.Errorf("in vain: %w", err)
		}
	}
}

// answers are the bot's messages for everybody in a conversation of the common room, without what it tells settled.
func (s *Scene) answers(in Place) []Seen { return s.answersTo(Mallory, in) }

func (s *Scene) answersTo(who Person, in Place) []Seen {
	return slices.DeleteFunc(s.See(who, in), func(m Seen) bool {
		return m.From != TheBot || m.OnlyYou || strings.Contains(m.Text, ofStatus)
	})
}

// ofStatus is in what the command status is answered with, for one person or, where there is no such thing, for all.
const ofStatus = "Messages waiting:"

// reads waits until the bot's messages in a conversation are as many as wanted and each contains what is wanted of it.
func (s *Scene) reads(ctx context.Context, in Place, want ...string) error {
	return s.readsAs(ctx, Mallory, in, want...)
}

func (s *Scene) readsAs(ctx context.Context, who Person, in Place, want ...string) error {
	return s.until(ctx, func() error {
		got := s.answersTo(who, in)
		if slices.EqualFunc(got, want, func(m Seen, part string) bool { return strings.Contains(m.Text, part) }) {
			return nil
		}
		return fmt.Errorf("the bot's messages are\n%s\nwant %d that contain %q", texts(got), len(want), want)
	})
}

// stays is reads, and then sees to it that nothing more comes: something said afterwards is answered next.
func (s *Scene) stays(ctx context.Context, in Place, want ...string) error {
	if err := s.reads(ctx, in, want...); err != nil {
		return err
	}
	if _, err := s.Say(ctx, Ada, Words{In: in, Mention: true, Text: lastWord}); err != nil {
		return err
	}
	return s.reads(ctx, in, append(slices.Clip(want), lastWord)...)
}

// lastWord is what every model here says back.
const lastWord = "enough said"

func texts(seen []Seen) string {
	var all []string
	for _, m := range seen {
		all = append(all, m.Text)
	}
	return strings.Join(all, "\n---\n")
}

// told waits until a person, and nobody else, is told something that contains all of want.
func (s *Scene) told(ctx context.Context, who Person, in Place, want ...string) error {
	err := s.until(ctx, func() error {
		private := slices.DeleteFunc(s.See(who, in), func(m Seen) bool { return !m.OnlyYou })
		for _, m := range private {
			if containsAll(m.Text, want...) {
				return nil
			}
		}
		return fmt.Errorf("%s alone is told\n%s\nwant something that contains %q", who, texts(private), want)
	})
	if err != nil {
		return err
	}
	for _, other := range []Person{Ada, Grace, Hedy, Mallory} {
		for _, m := range s.See(other, in) {
			if other != who && m.From == TheBot && containsAll(m.Text, want...) {
				return fmt.Errorf("%s reads what was for %s only: %s", other, who, m.Text)
			}
		}
	}
	return nil
}

func containsAll(text string, parts ...string) bool {
	return !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(text, part) })
}

// card waits for the newest message with buttons.
func (s *Scene) card(ctx context.Context, in Place) (card Seen, err error) {
	err = s.until(ctx, func() error {
		for _, m := range slices.Backward(s.answers(in)) {
			if len(m.Buttons) > 0 {
				card = m
				return nil
			}
		}
		return fmt.Errorf("nothing can be pressed; the bot's messages are\n%s", texts(s.answers(in)))
	})
	return card, err
}

// press presses a button of the newest message that has some.
func (s *Scene) press(ctx context.Context, who Person, in Place, action string) error {
	card, err := s.card(ctx, in)
	if err != nil {
		return err
	}
	return s.Press(ctx, who, in, card, action)
}

// ask begins a conversation with somebody asking for a deployment, and returns its card.
func (s *Scene) ask(ctx context.Context, c Cast, who Person) (Place, Seen, error) {
	if c.Model == nil {
		c.Model = &Deployer{}
	}
	said, err := s.begin(ctx, c, who, "deploy web")
	if err != nil {
		return "", Seen{}, err
	}
	card, err := s.card(ctx, said.In)
	return said.In, card, err
}

// delivered waits until so many deliveries about a message were acknowledged.
func (s *Scene) delivered(ctx context.Context, what Said, n int) error {
	return s.until(ctx, func() error {
		if got := s.Delivered(what); got < n {
			return fmt.Errorf("%d deliveries about the message, want %d", got, n)
		}
		return nil
	})
}

// settled waits until the bot has worked on everything urgent that was delivered about a conversation: what is asked
// afterwards, and as urgent, is answered.
func (s *Scene) settled(ctx context.Context, in Place) error {
	if _, err := s.reply(ctx, Hedy, in, "status"); err != nil {
		return err
	}
	return s.until(ctx, func() error {
		for _, m := range s.See(Hedy, in) {
			if m.From == TheBot && strings.Contains(m.Text, ofStatus) {
				return nil
			}
		}
		return errors.New("a command is not answered")
	})
}

// Ledger is what deployments leave behind, whatever becomes of the bot.
type Ledger struct {
	mu    sync.Mutex
	done  []agent.Call
	began chan struct{} // nil: nobody holds it
	goOn  chan struct{}
}

// Hold makes the first deployment wait when it is done, before anybody hears of it, until goOn is closed.
func (l *Ledger) Hold() (began <-chan struct{}, goOn chan<- struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.began, l.goOn = make(chan struct{}, 1), make(chan struct{})
	return l.began, l.goOn
}

// write adds a line, and waits if somebody holds the ledger.
func (l *Ledger) write(ctx context.Context, c agent.Call) error {
	l.mu.Lock()
	l.done = append(l.done, c)
	began, goOn := l.began, l.goOn
	l.began = nil
	l.mu.Unlock()
	if began == nil {
		return nil
	}
	began <- struct{}{}
	_, err := receive(ctx, goOn)
	return err
}

// Deploy is a tool that needs an approval and writes into the ledger.
func (l *Ledger) Deploy() agent.Tool {
	return agent.Tool{
		Tool: llm.Tool{Name: "deploy", Description: "Deploys a service.", Parameters: json.RawMessage(
			`{"type":"object","properties":{"service":{"type":"string"}},"required":["service"],"additionalProperties":false}`)},
		Approval: true,
		Effect:   agent.Once,
		Run:      func(ctx context.Context, c agent.Call) (string, error) { return deployed(c), l.write(ctx, c) },
		Settle: func(_ context.Context, c agent.Call) (string, bool, error) {
			return deployed(c), slices.ContainsFunc(l.Done(), func(d agent.Call) bool { return d.Approval == c.Approval }), nil
		},
	}
}

func deployed(c agent.Call) string { return "deployed " + string(c.Arguments) }

// Done are the deployments so far.
func (l *Ledger) Done() []agent.Call {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.done)
}

// times checks how often something was deployed.
func (l *Ledger) times(want int) error {
	if got := len(l.Done()); got != want {
		return fmt.Errorf("deployed %d times, want %d", got, want)
	}
	return nil
}
