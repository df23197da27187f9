// Package slacktwin is a Slack of our own: it speaks the wire protocols that Slack speaks (Web API, signed events with
// retries, interactivity, slash commands, response_url, Socket Mode, files, streams) and refuses what Slack refuses. Bots
// are tested against it, and the playground shows it in a browser.
//
// It knows nothing of this module: every limit, error and tier in it is transcribed from Slack's own documentation ("doc
// x" below is the page docs.slack.dev/x) or from what others observed of the live service, so that a mistake in the bot
// is not repeated here. Where two sources disagree it keeps the stricter one. It holds everything in memory and leaves
// what a person's client does (rendering, typing, search) to others.
package slacktwin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Options say who the bot is and how strict its Slack is. The zero value of each field has a default.
type Options struct {
	Team, TeamName string // T0TWIN, "Twin"
	BotUser        string // the bot's user id, UBOT
	BotName        string // "bot"
	AppID          string // A0TWIN
	BotToken       string // xoxb-twin
	AppToken       string // xapp-twin, for Socket Mode
	SigningSecret  string // twin-signing-secret

	// URL is where Handler is reached, without a slash at the end. Listen and SetURL set it too; without any of them it is
	// taken from the first request.
	URL string
	// Agent grants the agent feature: agents.sessions.*, and streams that set a session's status.
	Agent bool
	// Enforce turns the rate limits on. Sizes and forms are always enforced.
	Enforce bool
	// Unsubscribed are event types the app gets nothing of: "agent_session_stopped", "message.channels".
	Unsubscribed []string
	// Retries are the waits before each retry of an event. Nil is Slack's schedule: at once, 1 min, 5 min.
	Retries []time.Duration

	// Now and After are the clock; After calls f once d has passed, unless stopped. Clock is one that is moved by hand.
	Now   func() time.Time
	After func(d time.Duration, f func()) (stop func() bool)
	// Logger tells what happens, at debug level; never text or tokens.
	Logger *slog.Logger
	// Client delivers to the callbacks. It needs no timeout.
	Client *http.Client
}

// Callbacks are the app's request URLs. Where one is empty, its deliveries go to open sockets only.
type Callbacks struct{ Events, Interactivity, Commands string }

// Twin is one workspace with one app in it. All exported methods may be called concurrently. The others expect mu to be
// held, unless their comment says otherwise.
type Twin struct {
	opt     Options
	seed    string // makes ids differ between two twins that one bot sees
	methods map[string]method
	client  *http.Client

	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	url     string
	timers  map[int64]func() bool
	servers []*http.Server
	count   int64  // of ids
	lastTS  string // of any message or event: they only grow

	directory
	conversations
	interactions
	fileStore
	delivering
	sockets
	sessions map[threadKey]*session
	subs     map[*subscriber]struct{}
	hits     map[string][]time.Time
	faults   []*Fault
	calls    []Call
	journal  []Delivery
	invalid  string // the error of every call with the bot token, after RevokeTokens or Uninstall
}

// New returns a workspace with the bot in it and nobody else. Close it.
func New(o Options) *Twin {
	o.setDefaults()
	ctx, cancel := context.WithCancel(context.Background())
	t := &Twin{
		opt:      o,
		seed:     strings.ToUpper(strconv.FormatInt(o.Now().UnixMilli(), 36)),
		client:   deliveryClient(o.Client),
		ctx:      ctx,
		cancel:   cancel,
		url:      strings.TrimSuffix(o.URL, "/"),
		timers:   map[int64]func() bool{},
		sessions: map[threadKey]*session{},
		subs:     map[*subscriber]struct{}{},
		hits:     map[string][]time.Time{},
	}
	t.methods = t.webMethods()
	t.directory.users = map[string]User{}
	t.directory.groups = map[string][]string{}
	t.conversations.rooms = map[string]*room{}
	t.interactions.triggers = map[string]*trigger{}
	t.interactions.responses = map[string]*responseURL{}
	t.interactions.views = map[string][]*view{}
	t.fileStore.files = map[string]*file{}
	t.fileStore.uploads = map[string]*file{}
	t.delivering.lanes = map[string][]*envelope{}
	t.sockets.tickets = map[string]time.Time{}
	t.AddUser(User{ID: o.BotUser, Name: o.BotName, Team: o.Team, Bot: true})
	return t
}

func (o *Options) setDefaults() {
	o.Team = cmp.Or(o.Team, "T0TWIN")
	o.TeamName = cmp.Or(o.TeamName, "Twin")
	o.BotUser = cmp.Or(o.BotUser, "UBOT")
	o.BotName = cmp.Or(o.BotName, "bot")
	o.AppID = cmp.Or(o.AppID, "A0TWIN")
	o.BotToken = cmp.Or(o.BotToken, "xoxb-twin")
	o.AppToken = cmp.Or(o.AppToken, "xapp-twin")
	o.SigningSecret = cmp.Or(o.SigningSecret, "twin-signing-secret")
	if o.Retries == nil {
		o.Retries = []time.Duration{0, time.Minute, 5 * time.Minute}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.After == nil {
		o.After = func(d time.Duration, f func()) func() bool { return time.AfterFunc(d, f).Stop }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Client == nil {
		o.Client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	}
}

// Options returns the options in force, defaults filled in: tokens and secret for the bot's settings.
func (t *Twin) Options() Options { return t.opt }

// SetURL says where Handler is reached: "http://127.0.0.1:1234".
func (t *Twin) SetURL(base string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.url = strings.TrimSuffix(base, "/")
}

// URL returns where Handler is reached; the Web API is at URL + "/api/".
func (t *Twin) URL() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.url
}

// Listen serves Handler on addr ("127.0.0.1:0") until Close, and returns the URL.
func (t *Twin) Listen(addr string) (url string, err error) {
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return "", fmt.Errorf("slacktwin: listen: %w", err)
	}
	server := &http.Server{Handler: t.Handler(), ReadHeaderTimeout: 10 * time.Second}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return "", errors.Join(errClosed, ln.Close())
	}
	t.url = "http://" + ln.Addr().String()
	t.servers = append(t.servers, server)
	t.running.Go(func() {
		if err := server.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
			t.opt.Logger.Error("slacktwin: serve", "error", err)
		}
	})
	return t.url, nil
}

// Connect sets the app's request URLs. Deliveries under way are not affected; retries go to the new ones.
func (t *Twin) Connect(c Callbacks) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.callbacks = c
}

var errClosed = errors.New("slacktwin: closed")

// Close stops all deliveries, closes the sockets and the servers of Listen, and waits for every goroutine.
func (t *Twin) Close() error {
	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		t.running.Wait()
		return nil
	}
	t.closed = true
	t.cancel()
	for _, stop := range t.timers {
		stop()
	}
	for _, s := range t.open {
		s.hangUp()
	}
	servers := t.servers
	t.mu.Unlock()

	var errs []error
	for _, s := range servers {
		errs = append(errs, s.Close())
	}
	t.running.Wait()
	t.client.CloseIdleConnections()
	return errors.Join(errs...)
}

// spawn runs f in a goroutine that Close waits for, and reports whether it will run. f is called without mu.
func (t *Twin) spawn(f func()) bool {
	if t.closed {
		return false
	}
	t.running.Go(f)
	return true
}

// after runs f with mu held once d has passed, unless the twin is closed before or the timer is stopped.
func (t *Twin) after(d time.Duration, f func()) (stop func()) {
	t.count++
	n := t.count
	halt := t.opt.After(d, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if _, ok := t.timers[n]; !ok || t.closed {
			return
		}
		delete(t.timers, n)
		f()
	})
	t.timers[n] = halt
	return func() {
		delete(t.timers, n)
		halt()
	}
}

// within returns a context that ends with ctx, with the twin, or after d on the twin's clock, with cause errTimeout then.
// It expects mu not to be held; so does the returned function, which must be called.
func (t *Twin) within(ctx context.Context, d time.Duration) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	undo := context.AfterFunc(t.ctx, func() { cancel(errClosed) })
	t.mu.Lock()
	defer t.mu.Unlock()
	stop := t.after(d, func() { cancel(errTimeout) })
	return ctx, func() {
		undo()
		cancel(nil)
		t.mu.Lock()
		defer t.mu.Unlock()
		stop()
	}
}

var errTimeout = errors.New("time is up")

// sleep waits for d on the twin's clock and reports whether it passed. It expects mu not to be held.
func (t *Twin) sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	ctx, done := t.within(ctx, d)
	defer done()
	<-ctx.Done()
	return errors.Is(context.Cause(ctx), errTimeout)
}

// newID returns an id that is unique in this twin and unlikely in another.
func (t *Twin) newID(prefix string) string {
	t.count++
	return prefix + t.seed + strings.ToUpper(strconv.FormatInt(t.count, 36))
}

// newTS returns the next timestamp: seconds and six digits, always greater than the one before.
func (t *Twin) newTS() string {
	ts := formatTS(t.opt.Now())
	if ts <= t.lastTS {
		ts = formatTS(parseTS(t.lastTS).Add(time.Microsecond))
	}
	t.lastTS = ts
	return ts
}

func formatTS(at time.Time) string { return fmt.Sprintf("%010d.%06d", at.Unix(), at.Nanosecond()/1000) }

func parseTS(ts string) time.Time {
	seconds, micros, _ := strings.Cut(ts, ".")
	s, _ := strconv.ParseInt(seconds, 10, 64)
	us, _ := strconv.ParseInt(micros, 10, 64)
	return time.Unix(s, us*1000)
}

// validTS reports whether ts has the form of a message's timestamp.
func validTS(ts string) bool {
	seconds, micros, ok := strings.Cut(ts, ".")
	return ok && len(seconds) == 10 && len(micros) == 6 && isDigits(seconds) && isDigits(micros)
}

func isDigits(s string) bool { return strings.Trim(s, "0123456789") == "" }
