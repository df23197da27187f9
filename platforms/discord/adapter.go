// Package discord is Discord as a platform: its gateway, its REST API, its interactions, and the translation between its
// payloads and the words of package platforms. It keeps nothing durable: what arrives is given to an Inbox before anything
// else happens with it, what goes out is called once and comes back as done or as a *platforms.Error. Order, retries, and
// what to answer are the bridge's.
//
// Conversations are "GUILD/CHANNEL/THREAD", "GUILD/CHANNEL" where a channel is answered in itself, and "@me/CHANNEL" for
// direct messages; a thread that is opened from a message has the message's id. Messages are "CHANNEL/MESSAGE", people
// "USER", groups of people "GUILD/ROLE".
//
// Of discordgo little is trusted: types, constants, the framing of the gateway. gateway.go, link.go and transport.go say why
// and what is done instead.
package discord

import (
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bwmarrin/discordgo"

	"github.com/parley-chat/parley/platforms"
	"github.com/parley-chat/parley/platforms/pace"
)

// Answers says where a mention in a channel is answered.
type Answers string

const (
	// InThread opens a thread from the message; where that is not possible, the answer is a reply.
	InThread Answers = "thread"
	// InChannel answers in the channel itself.
	InChannel Answers = "channel"
)

// Channel is how one channel, with its threads, is treated.
type Channel struct {
	Answers Answers // empty: as everywhere else
	// OnlyMentioned: in its threads, too, the bot answers only what mentions it.
	OnlyMentioned bool
	// Muted: the bot takes no message there, nor in its threads. Buttons and commands work.
	Muted bool
}

// Options say how to reach Discord. Token is required.
type Options struct {
	Token string // of the bot
	// APIURL is where the REST API is: "https://discord.com", perhaps with a path, with or without /api/v10. Empty: there.
	APIURL string
	// PublicKey, 64 hexadecimal digits, receives interactions over HTTP. While the application's page names an endpoint,
	// none come by the gateway.
	PublicKey string
	// ApplicationID is needed only where the gateway does not tell it.
	ApplicationID string
	// MessageContent asks for the privileged intent: the bot follows its threads without being mentioned. It must be granted
	// at the application's page.
	MessageContent bool
	// Answers is where mentions are answered. Empty: InThread.
	Answers Answers
	// Channels are treated differently, by id.
	Channels map[string]Channel
	// Pacing makes calls wait before they would exceed Discord's limits. Off, for stand-ins and load tests, the limits show as
	// SlowDown.
	Pacing bool
	// HTTPClient makes the calls: its Transport, and its Timeout for each. Nil: one of our own with a timeout of 30 s.
	HTTPClient *http.Client
	// Logger is told of connections and of what the operator should mend. Nil: nobody is.
	Logger *slog.Logger
	// Now is the clock. Nil: time.Now.
	Now func() time.Time
}

// Adapter is one bot.
type Adapter struct {
	opt       Options
	publicKey ed25519.PublicKey // nil: no interactions over HTTP
	transport *transport
	api       *discordgo.Session // for REST only
	files     *http.Client
	log       *slog.Logger
	now       func() time.Time
	invalid   invalidCounter
	health    health
	count     counter

	gate       gate
	self       atomic.Pointer[identity] // nil until READY
	identifies *identifies
	directory  directory
	history    history
	sent       sent
	pendings   pendings
	typing     typing
	groups     groups
	unopened   unopened
}

var (
	_ platforms.Adapter      = (*Adapter)(nil)
	_ platforms.Finder       = (*Adapter)(nil)
	_ platforms.Notifier     = (*Adapter)(nil)
	_ platforms.ModalOpener  = (*Adapter)(nil)
	_ platforms.StatusSetter = (*Adapter)(nil)
	_ platforms.Fetcher      = (*Adapter)(nil)
	_ platforms.Grouper      = (*Adapter)(nil)
	_ platforms.Backfiller   = (*Adapter)(nil)
	_ platforms.Server       = (*Adapter)(nil)
	_ platforms.Readiness    = (*Adapter)(nil)
)

// New checks the options. It does not talk to Discord; Run does.
func New(o Options) (*Adapter, error) {
	if o.Token == "" {
		return nil, errors.New("discord: the bot token is missing")
	}
	api, err := apiBase(o.APIURL)
	if err != nil {
		return nil, err
	}
	a := &Adapter{opt: o, log: o.Logger, now: o.Now}
	if err := a.checkAnswers(); err != nil {
		return nil, err
	}
	if o.PublicKey != "" {
		key, err := hex.DecodeString(o.PublicKey)
		if err != nil || len(key) != ed25519.PublicKeySize {
			return nil, errors.New("discord: the public key is not one: it has 64 hexadecimal digits")
		}
		a.publicKey = key
	}
	if a.log == nil {
		a.log = slog.New(slog.DiscardHandler)
	}
	if a.now == nil {
		a.now = time.Now
	}
	a.transport = &transport{
		base: http.DefaultTransport, api: api, within: 30 * time.Second, invalid: &a.invalid, health: &a.health, now: a.now, warn: a.warnInvalid,
	}
	if c := o.HTTPClient; c != nil && c.Transport != nil {
		a.transport.base = c.Transport
	}
	if c := o.HTTPClient; c != nil && c.Timeout > 0 {
		a.transport.within = c.Timeout
	}
	if o.Pacing {
		a.transport.limits = newLimiter()
	}
	a.files = &http.Client{Transport: a.transport.base}
	if a.api, err = discordgo.New("Bot " + o.Token); err != nil {
		return nil, fmt.Errorf("discord: %w", err)
	}
	a.api.UserAgent, a.api.LogLevel = userAgent, -1
	a.api.Client = &http.Client{Transport: a.transport}
	return a, nil
}

func (a *Adapter) checkAnswers() error {
	all := []Answers{a.opt.Answers}
	for id, c := range a.opt.Channels {
		if !isSnowflake(id) {
			return fmt.Errorf("discord: %q is not the id of a channel", id)
		}
		all = append(all, c.Answers)
	}
	for _, where := range all {
		switch where {
		case "", InThread, InChannel:
		default:
			return fmt.Errorf("discord: answers go to a %q or to the %q, not to %q", InThread, InChannel, where)
		}
	}
	return nil
}

// answersIn is where mentions in the channel are answered.
func (a *Adapter) answersIn(channel string) Answers {
	for _, where := range []Answers{a.opt.Channels[channel].Answers, a.opt.Answers} {
		if where != "" {
			return where
		}
	}
	return InThread
}

// warnInvalid warns the operator early that Discord may block the address.
func (a *Adapter) warnInvalid(n int) {
	if n%invalidWarn == 0 {
		a.log.Warn("discord: many calls are refused; Discord blocks an address after 10,000 in 10 minutes", "refused", n)
	}
}

// Platform is "discord".
func (a *Adapter) Platform() string { return "discord" }

// Capabilities: a growing message takes an edit per second and a half, five in five seconds being the limit of a channel;
// marks are enforced for some minutes only.
func (a *Adapter) Capabilities() platforms.Capabilities {
	return platforms.Capabilities{EditEvery: 1500 * time.Millisecond}
}

// Render turns content into messages; render.go says how.
func (a *Adapter) Render(c platforms.Content) []platforms.Part { return render(c) }

// Run connects to the gateway and receives until ctx ends. With a public key, interactions come through Routes as well;
// before Discord has said who we are, and after Run has ended, the route answers 503.
func (a *Adapter) Run(ctx context.Context, inbox platforms.Inbox) error {
	err := a.receive(ctx, inbox)
	if err == nil || ctx.Err() != nil {
		a.health.stopped("discord: stopped")
		return nil
	}
	a.health.stopped(err.Error())
	return err
}

func (a *Adapter) receive(ctx context.Context, inbox platforms.Inbox) error {
	info, err := a.firstContact(ctx)
	if err != nil {
		return err
	}
	a.log.Info("discord: connecting", "shards", info.Shards, "message_content", a.opt.MessageContent)
	a.identifies = newIdentifies(info.Limit.MaxConcurrency)
	a.health.expect(info.Shards)

	var helping sync.WaitGroup // what goes on beside receiving
	defer helping.Wait()
	work, stopWork := context.WithCancel(ctx)
	defer stopWork()
	a.typing.begin(work, &helping)
	defer a.typing.end()
	helping.Go(func() { a.registerCommands(work) })

	a.pendings.begin(work, &helping)
	q := a.startCommitters(work, inbox, &helping)
	a.gate.open(work, inbox)
	defer a.gate.close()
	return a.runShards(ctx, q, info.Shards)
}

// runShards runs every shard until ctx ends, or until one has failed for good.
func (a *Adapter) runShards(ctx context.Context, q *queues, n int) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var running sync.WaitGroup
	for id := range n {
		s := &shard{a: a, q: q, id: id, count: n, identify: a.identifies.reserve(id)} // in order
		running.Go(func() {
			if err := s.run(ctx); err != nil {
				cancel(err)
			}
		})
	}
	running.Wait()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}

// contactWithin is how long Discord may be out of reach at the start.
const contactWithin = 5 * time.Minute

// firstContact asks how to connect, again and again while Discord cannot be reached.
func (a *Adapter) firstContact(ctx context.Context) (gatewayInfo, error) {
	began := a.now()
	for attempt := 0; ; attempt++ {
		info, err := a.gatewayBot(ctx)
		if err == nil {
			return info, nil
		}
		if platforms.FailureOf(err) == platforms.Broken {
			return gatewayInfo{}, startError(err)
		}
		if a.now().Sub(began) > contactWithin {
			return gatewayInfo{}, fmt.Errorf("discord: Discord could not be reached for %s; check the network and the address of the API: %w",
				contactWithin, err)
		}
		a.health.stopped("discord: Discord does not answer yet: " + err.Error())
		a.log.Warn("discord: Discord does not answer, trying again", "error", err)
		var after time.Duration
		if e, ok := errors.AsType[*platforms.Error](err); ok {
			after = e.RetryAfter
		}
		if err := pace.Sleep(ctx, pace.Backoff(attempt, after)); err != nil {
			return gatewayInfo{}, err
		}
	}
}
