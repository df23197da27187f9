// Package slack is Slack as a platform: its transports (signed HTTP requests, Socket Mode) and the translation between its
// payloads and the words of package platforms. It keeps nothing: what arrives is given to an Inbox before it is
// acknowledged, what goes out is called once and comes back as done or as a *platforms.Error. Order, retries, and what to
// answer are the bridge's.
//
// Conversations are "TEAM/CHANNEL/THREAD_TS", plain direct messages "TEAM/CHANNEL"; messages are "CHANNEL/TS"; people are
// "TEAM/USER" with their own team.
package slack

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	slackgo "github.com/slack-go/slack"

	"github.com/parley-chat/parley/platforms"
)

// Options say how to reach Slack. BotToken is required, and one of AppToken and SigningSecret.
type Options struct {
	BotToken string // xoxb-…
	// AppToken (xapp-…, scope connections:write) receives by Socket Mode, needing no public address.
	AppToken string
	// SigningSecret receives over HTTP. Beside an AppToken it keeps the routes working, for the time of a change over.
	SigningSecret string
	// APIURL is where the Web API is. Empty: https://slack.com/api/.
	APIURL string
	// Pacing makes calls wait before they would exceed Slack's limits. Off, for stand-ins and load tests, the limits show
	// as SlowDown.
	Pacing bool
	// HTTPClient makes the calls. Nil: one of our own with a timeout of 30 s. It should not retry.
	HTTPClient *http.Client
	// Logger is told of connections and of what the operator should mend. Nil: nobody is.
	Logger *slog.Logger
	// Now is the clock. Nil: time.Now.
	Now func() time.Time
}

// Adapter is one installation of the app in one workspace or organisation.
type Adapter struct {
	opt   Options
	base  *url.URL // of the Web API, with a slash at the end
	http  *http.Client
	api   *slackgo.Client
	log   *slog.Logger
	now   func() time.Time
	pace  *pacer // nil: no pacing
	gate  gate
	self  atomic.Pointer[identity] // nil until auth.test has answered
	count counter
	health

	noStream, noAgent, noReactions atomic.Bool // what turned out not to be granted
	warnedStop                     atomic.Bool
	shown                          reactions
	groups                         groups
	names                          names
}

var (
	_ platforms.Adapter      = (*Adapter)(nil)
	_ platforms.Finder       = (*Adapter)(nil)
	_ platforms.Notifier     = (*Adapter)(nil)
	_ platforms.ModalOpener  = (*Adapter)(nil)
	_ platforms.StatusSetter = (*Adapter)(nil)
	_ platforms.Streamer     = (*Adapter)(nil)
	_ platforms.StreamFinder = (*Adapter)(nil)
	_ platforms.Fetcher      = (*Adapter)(nil)
	_ platforms.Grouper      = (*Adapter)(nil)
	_ platforms.Directory    = (*Adapter)(nil)
	_ platforms.Server       = (*Adapter)(nil)
	_ platforms.Readiness    = (*Adapter)(nil)
)

// New checks the options. It does not talk to Slack; Run does.
func New(o Options) (*Adapter, error) {
	if o.BotToken == "" {
		return nil, errors.New("slack: the bot token is missing")
	}
	if o.AppToken == "" && o.SigningSecret == "" {
		return nil, errors.New("slack: the signing secret is missing (for HTTP), or the app-level token (for Socket Mode)")
	}
	base, err := apiBase(o.APIURL)
	if err != nil {
		return nil, err
	}
	a := &Adapter{opt: o, base: base, http: o.HTTPClient, log: o.Logger, now: o.Now}
	if a.http == nil {
		a.http = &http.Client{Timeout: 30 * time.Second}
	}
	if a.log == nil {
		a.log = slog.New(slog.DiscardHandler)
	}
	if a.now == nil {
		a.now = time.Now
	}
	if o.Pacing {
		a.pace = newPacer()
	}
	a.api = slackgo.New(o.BotToken,
		slackgo.OptionAppLevelToken(o.AppToken),
		slackgo.OptionAPIURL(base.String()),
		slackgo.OptionHTTPClient(a.http))
	a.health.now = a.now
	return a, nil
}

func apiBase(s string) (*url.URL, error) {
	if s == "" {
		s = slackgo.APIURL
	}
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, errors.New("slack: the address of the Web API is not an http or https URL")
	}
	if !strings.HasSuffix(u.Path, "/") {
		u.Path += "/"
	}
	return u, nil
}

// Platform is "slack".
func (a *Adapter) Platform() string { return "slack" }

// Capabilities: a growing message takes one edit per 3 s (doc ai/developing-agents); marks are found, not enforced.
func (a *Adapter) Capabilities() platforms.Capabilities {
	return platforms.Capabilities{EditEvery: 3 * time.Second}
}

// Render turns content into messages; render.go says how.
func (a *Adapter) Render(c platforms.Content) []platforms.Part { return render(c) }

// Run asks Slack who we are, and then receives: over Socket Mode if there is an app-level token, else over HTTP through
// Routes. Until Slack has answered, and after Run has ended, the routes answer 503.
func (a *Adapter) Run(ctx context.Context, inbox platforms.Inbox) error {
	err := a.receive(ctx, inbox)
	if err == nil || ctx.Err() != nil {
		a.health.trouble("slack: stopped")
		return nil
	}
	a.health.trouble(err.Error())
	return err
}

func (a *Adapter) receive(ctx context.Context, inbox platforms.Inbox) error {
	self, err := a.identify(ctx)
	if err != nil {
		return err
	}
	a.self.Store(&self)
	a.gate.open(inbox, self)
	defer a.gate.close()
	a.health.receiving(a.opt.AppToken == "")
	if a.opt.AppToken == "" {
		<-ctx.Done()
		return nil
	}
	return a.newReceiver().run(ctx)
}

// identifyWithin is how long Slack may be out of reach at the start.
const identifyWithin = 5 * time.Minute

// identify asks auth.test who we are, again and again while Slack cannot be reached.
func (a *Adapter) identify(ctx context.Context) (identity, error) {
	began := a.now()
	for attempt := 0; ; attempt++ {
		self, err := a.authTest(ctx)
		if err == nil {
			return self, nil
		}
		if platforms.FailureOf(err) == platforms.Broken || platforms.FailureOf(err) == platforms.Refused {
			return identity{}, startError("the bot token", err)
		}
		if a.now().Sub(began) > identifyWithin {
			return identity{}, fmt.Errorf("slack: Slack could not be reached for %s; check the network and the address of the Web API: %w",
				identifyWithin, err)
		}
		a.health.trouble("slack: Slack does not answer yet: " + err.Error())
		a.log.Warn("slack: auth.test failed, trying again", "error", err)
		if err := sleep(ctx, backoff(attempt, retryAfter(err))); err != nil {
			return identity{}, err
		}
	}
}

func (a *Adapter) authTest(ctx context.Context) (self identity, err error) {
	err = a.do(ctx, "auth.test", "", func(ctx context.Context) error {
		r, err := a.api.AuthTestContext(ctx)
		if err != nil {
			return err
		}
		self = identity{Team: r.TeamID, Enterprise: r.EnterpriseID, User: r.UserID, BotID: r.BotID}
		if self.Team == "" || self.User == "" {
			return errors.New("auth.test named no bot")
		}
		a.warnScopes(r.Header.Get("X-OAuth-Scopes"))
		return nil
	})
	return self, err
}

// scopes are what the bot token should have; what fails without each is said by Slack only when it fails.
func scopes() []string {
	return []string{
		"app_mentions:read", "channels:history", "groups:history", "im:history", "mpim:history", "chat:write",
		"reactions:write", "files:read", "commands",
	}
}

// warnScopes tells the operator which scopes are missing. granted is a list as Slack sends it, empty if it did not.
func (a *Adapter) warnScopes(granted string) {
	if granted == "" {
		return
	}
	var missing []string
	has := strings.FieldsFunc(granted, func(r rune) bool { return r == ',' || r == ' ' })
	for _, s := range scopes() {
		if !slices.Contains(has, s) {
			missing = append(missing, s)
		}
	}
	if len(missing) > 0 {
		a.log.Warn("slack: the bot token lacks scopes: add them in the app's settings and install it again", "missing", missing)
	}
}

// startError is the sentence with which a start ends. It names what to mend where that is known.
func startError(what string, err error) error {
	if hint, ok := mend[codeOf(err)]; ok {
		return fmt.Errorf("slack: Slack refuses %s: %s: %w", what, hint, err)
	}
	return fmt.Errorf("slack: Slack refuses %s: %w", what, err)
}

// gate is open while Run receives.
type gate struct {
	mu    sync.RWMutex
	inbox platforms.Inbox
	self  identity
}

func (g *gate) open(inbox platforms.Inbox, self identity) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inbox, g.self = inbox, self
}

// close waits for what is being taken.
func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inbox = nil
}

var errClosed = errors.New("slack: not receiving")

// acceptWithin bounds how long a delivery may take to become durable.
const acceptWithin = 10 * time.Second

// take makes what arrived durable, unless it is of no interest. Nil means that it may be acknowledged. It goes on when ctx
// is cancelled: Slack does not send a click again because it has stopped waiting.
func (a *Adapter) take(ctx context.Context, k kind, body []byte) error {
	a.gate.mu.RLock()
	defer a.gate.mu.RUnlock()
	if a.gate.inbox == nil {
		return errClosed
	}
	e := envelope{Kind: k, Self: a.gate.self, Body: body}
	r := interpret(e)
	if why, ok := r.isIgnored(); ok {
		a.count.add("ignored", why)
		return nil
	}
	raw, err := e.wrap()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), acceptWithin)
	defer cancel()
	err = a.gate.inbox.Accept(ctx, platforms.Delivery{Keys: r.keys, Conversation: r.conversation, Urgent: r.urgent, Raw: raw})
	if err != nil {
		a.count.add("failed", string(k))
		return fmt.Errorf("slack: accept: %w", err)
	}
	a.count.add("taken", string(k))
	return nil
}
