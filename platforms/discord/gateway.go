package discord

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/bwmarrin/discordgo"
	"github.com/gorilla/websocket"

	"github.com/parley-chat/parley/platforms"
	"github.com/parley-chat/parley/platforms/pace"
)

// The supervisor of the gateway. discordgo's own reconnecting waits for ever where nothing comes, resumes for ever what is
// invalid, and identifies until the token is reset; so it is off. Each shard has a session, of which the supervisor opens one
// connection at a time and decides what follows when it ends: resume, a new session after a pause, or the end of it all. A
// session that does not open in time may be deadlocked: its connection is closed, the session is left to itself (one
// goroutine) and another one is made.

const (
	openWithin    = 15 * time.Second // for dialing, HELLO, and READY or RESUMED
	letGoWithin   = 3 * time.Second  // for discordgo to notice that a connection has ended; it sleeps for one
	steadyAfter   = 30 * time.Second // a connection that lived so long was a good one
	mostFailures  = 3                // in a row, after which a session is given up
	identifyEvery = 5 * time.Second  // and shard of a row (doc events/gateway)
	identifyMost  = 800              // in 24 h; Discord resets the token at 1,000
)

// fatal says what an operator must mend after a close code that would only come again (doc
// topics/opcodes-and-status-codes).
var fatal = map[int]string{
	4004: "the bot token does not work: copy it again from the application's page",
	4010: "it does not accept the shard: this is a mistake of ours, please report it",
	4011: "the bot is in so many servers that it needs more shards: start it again",
	4012: "it does not speak this version of the gateway any more: update",
	4013: "it does not know what we want to receive: this is a mistake of ours, please report it",
	4014: "the privileged intent Message Content is not granted: switch it on at the application's page under Bot, or do without it",
}

// shard is one of the bot's sessions with Discord. Its run has one goroutine; what discordgo calls has others.
type shard struct {
	a         *Adapter
	q         *queues
	id, count int
	identify  time.Time // when its first turn to identify is

	session   *discordgo.Session // nil: the next connection begins with IDENTIFY
	resumeURL string             // of the session

	mu      sync.Mutex
	current *attempt // the connection that is being opened or is open
	latest  string   // the latest id of a message or an interaction that came
	missed  string   // what came after that id may have been missed, when the session began; empty: nothing
}

// attempt is one connection of a session.
type attempt struct {
	resuming bool
	resume   string        // where to, if resuming
	ready    chan struct{} // closed at READY or RESUMED
	let      chan struct{} // closed when discordgo has noticed the end
	readied  sync.Once
	letGo    sync.Once

	mu   sync.Mutex
	link *link
	over bool // no link may begin any more
}

// hold makes l the connection of the attempt, unless that is over.
func (t *attempt) hold(l *link) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.over {
		t.link = l
	}
	return !t.over
}

// end closes the connection, or prevents it. It returns why it ended, if it had begun.
func (t *attempt) end() (why ending, began bool) {
	t.mu.Lock()
	t.over = true
	l := t.link
	t.mu.Unlock()
	if l == nil {
		return ending{Err: errOurEnd}, false
	}
	l.end(ending{Err: errOurEnd})
	return l.reason(), true
}

// run keeps the shard connected until ctx ends. An error is a sentence: nothing but the operator can mend it.
func (s *shard) run(ctx context.Context) error {
	defer s.leave()
	for failures, pauses := 0, 0; ; {
		if s.session == nil {
			if err := s.turnToIdentify(ctx); ctx.Err() != nil {
				return nil
			} else if err != nil {
				return startError(err)
			}
			if err := s.newSession(); err != nil {
				return fmt.Errorf("discord: make a session: %w", err)
			}
		}
		why, lived, reached := s.connection(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if hint, ok := fatal[why.Code]; ok {
			return fmt.Errorf("discord: Discord closed the connection (code %d): %s", why.Code, hint)
		}
		s.a.health.trouble(s.id, "discord: no connection to the gateway: "+why.Error())
		s.a.log.Warn("discord: the connection to the gateway ended", "shard", s.id, "code", why.Code, "error", why)
		failures++
		pauses++
		if reached {
			failures = 0
		}
		if lived >= steadyAfter {
			pauses = 0
		}
		if !reached && !s.known() || failures >= mostFailures || why.Invalid && !why.Resumable || why.Code == 4007 || why.Code == 4009 {
			s.forget()
			failures = 0
		}
		pause := pace.Backoff(pauses, 0)
		if why.Invalid {
			pause = max(pause, s.a.invalidPause())
		}
		if pace.Sleep(ctx, pause) != nil {
			return nil
		}
	}
}

// invalidPause is how long to wait after Discord called a session invalid: a random time (doc events/gateway).
func (a *Adapter) invalidPause() time.Duration { return time.Second + rand.N(2*time.Second) }

// turnToIdentify waits until this shard may identify, within Discord's pace and budget.
func (s *shard) turnToIdentify(ctx context.Context) error {
	at := s.identify
	if s.identify = (time.Time{}); at.IsZero() {
		at = s.a.identifies.reserve(s.id)
	}
	if err := pace.Sleep(ctx, time.Until(at)); err != nil {
		return err
	}
	return s.a.withinBudget(ctx, s.id)
}

// identifies hands out turns to identify: one per 5 s for each row of shards, and not too many a day.
type identifies struct {
	mu   sync.Mutex
	rows int // max_concurrency
	row  map[int]*pace.Turns
	day  pace.Turns
}

func newIdentifies(rows int) *identifies {
	return &identifies{rows: rows, row: map[int]*pace.Turns{}, day: pace.Turns{N: identifyMost, Per: 24 * time.Hour}}
}

// reserve returns when the shard may identify.
func (i *identifies) reserve(shard int) time.Time {
	i.mu.Lock()
	defer i.mu.Unlock()
	row := i.row[shard%i.rows]
	if row == nil {
		row = &pace.Turns{N: 1, Per: identifyEvery + 100*time.Millisecond}
		i.row[shard%i.rows] = row
	}
	at := row.Next(i.day.Next(time.Now()))
	row.Take(at)
	i.day.Take(at)
	return at
}

// withinBudget waits as long as few IDENTIFYs are left, so that Discord does not reset the token. It fails if the token does
// not work.
func (a *Adapter) withinBudget(ctx context.Context, shard int) error {
	for attempt := 0; ; attempt++ {
		info, err := a.gatewayBot(ctx)
		left := info.Limit.Remaining - max(info.Limit.Total/20, 1)
		if err == nil && (info.Limit.Total == 0 || left >= 0) {
			return nil
		}
		if platforms.FailureOf(err) == platforms.Broken {
			return err
		}
		d := pace.Backoff(attempt, 0)
		if err == nil {
			d = max(min(time.Duration(info.Limit.ResetAfter)*time.Millisecond, 5*time.Minute), time.Second)
			err = errors.New("too few connections are left today; Discord would reset the token")
		}
		a.health.trouble(shard, "discord: no connection to the gateway: "+err.Error())
		a.log.Warn("discord: waiting before a new session", "shard", shard, "error", err)
		if err := pace.Sleep(ctx, d); err != nil {
			return err
		}
	}
}

// newSession makes a session that begins with IDENTIFY. All that discordgo would do by itself is off.
func (s *shard) newSession() error {
	session, err := discordgo.New("Bot " + s.a.opt.Token)
	if err != nil {
		return err
	}
	session.ShouldReconnectOnError = false
	session.ShouldReconnectVoiceOnSessionError = false
	session.ShouldRetryOnRateLimit = false
	session.MaxRestRetries = 0
	session.StateEnabled = false
	session.SyncEvents = true
	session.Compress = false
	session.LogLevel = -1 // what it would log is seen by the link; some of it holds the token
	session.UserAgent = userAgent
	session.Client = &http.Client{Transport: s.a.transport}
	session.Dialer = &websocket.Dialer{
		HandshakeTimeout:  openWithin,
		Proxy:             s.lead,
		NetDialContext:    s.dial,
		NetDialTLSContext: s.dialTLS,
	}
	session.ShardID, session.ShardCount = s.id, s.count
	session.Identify.Intents = s.a.intents()
	session.AddHandler(func(from *discordgo.Session, e *discordgo.Event) { s.event(from, e) })
	session.AddHandler(func(from *discordgo.Session, _ *discordgo.Disconnect) {
		if t := s.attemptOf(from); t != nil {
			t.letGo.Do(func() { close(t.let) })
		}
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.session, s.resumeURL = session, ""
	return nil
}

// intents are what is received (doc events/gateway).
func (a *Adapter) intents() discordgo.Intent {
	intents := discordgo.IntentsGuilds | discordgo.IntentsGuildMessages | discordgo.IntentsDirectMessages
	if a.opt.MessageContent {
		intents |= discordgo.IntentMessageContent
	}
	return intents
}

// attemptOf is the connection of a session, unless it was given up.
func (s *shard) attemptOf(session *discordgo.Session) *attempt {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.session != session {
		return nil
	}
	return s.current
}

// known tells whether READY was seen: then there is something to resume.
func (s *shard) known() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.resumeURL != ""
}

// forget gives the session up.
func (s *shard) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.session, s.current = nil, nil
}

// leave ends the connection without waiting for discordgo.
func (s *shard) leave() {
	s.mu.Lock()
	t := s.current
	s.session, s.current = nil, nil
	s.mu.Unlock()
	if t != nil {
		_, _ = t.end()
	}
}

// connection opens a connection of the session and returns when it has ended. lived is how long it was up, reached
// whether it came to READY or RESUMED.
func (s *shard) connection(ctx context.Context) (why ending, lived time.Duration, reached bool) {
	t := &attempt{ready: make(chan struct{}), let: make(chan struct{})}
	s.mu.Lock()
	t.resuming, t.resume = s.resumeURL != "", s.resumeURL
	s.current = t
	session := s.session
	s.mu.Unlock()

	opened := make(chan error, 1)
	go func() { opened <- session.Open() }() // not waited for: it may never return
	timer := time.NewTimer(openWithin)
	defer timer.Stop()
	for !reached {
		select {
		case <-t.ready:
			reached = true
		case err := <-opened:
			if err == nil {
				opened = nil // READY has yet to come
				continue
			}
			why, began := t.end()
			if !began || errors.Is(why.Err, errOurEnd) && why.Code == 0 {
				why.Err = withoutAddress(err)
			}
			return why, 0, false
		case <-t.ended():
			return s.ended(t, session, 0, false)
		case <-timer.C:
			_, _ = t.end()
			s.forget() // it may be deadlocked
			return ending{Err: errors.New("Discord did not greet us in time")}, 0, false
		case <-ctx.Done():
			return ending{Err: ctx.Err()}, 0, false
		}
	}
	since := time.Now()
	s.a.health.connected(s.id)
	select {
	case <-t.ended():
	case <-ctx.Done():
		return ending{Err: ctx.Err()}, 0, true
	}
	return s.ended(t, session, time.Since(since), true)
}

// ended is closed when the link of the attempt has ended. While there is none, it is a channel that is never closed.
func (t *attempt) ended() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.link == nil {
		return nil
	}
	return t.link.done
}

// ended waits until discordgo has noticed the end, so that the session can be opened again; if it does not, the session is
// given up.
func (s *shard) ended(t *attempt, session *discordgo.Session, lived time.Duration, reached bool) (ending, time.Duration, bool) {
	why, _ := t.end()
	timer := time.NewTimer(letGoWithin)
	defer timer.Stop()
	select {
	case <-t.let:
	case <-timer.C:
		s.forget()
	}
	return why, lived, reached
}

// lead is called by the dialer before it dials, with the request: it asks for our version of the gateway, and leads a
// resumption to where Discord wants it. It never names a proxy; dialTLS knows about that.
func (s *shard) lead(req *http.Request) (*url.URL, error) {
	s.mu.Lock()
	t := s.current
	s.mu.Unlock()
	if t != nil && t.resuming {
		if u, err := url.Parse(t.resume); err == nil && u.Host != "" && (u.Scheme == "wss") == (req.URL.Scheme == "https") {
			req.URL.Host, req.Host = u.Host, u.Host
			req.URL.Path = u.Path
			if u.Path == "" {
				req.URL.Path = "/"
			}
		}
	}
	req.URL.RawQuery = "v=" + version + "&encoding=json"
	return nil, nil
}

// dial connects in the clear, for stand-ins.
func (s *shard) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return s.hold(conn)
}

func (s *shard) dialTLS(ctx context.Context, network, addr string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	raw, err := dialThroughProxy(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	conn := tls.Client(raw, &tls.Config{ServerName: host, MinVersion: tls.VersionTLS12})
	if err := conn.HandshakeContext(ctx); err != nil {
		_ = raw.Close()
		return nil, err
	}
	return s.hold(conn)
}

// hold makes conn the link of the current attempt.
func (s *shard) hold(conn net.Conn) (net.Conn, error) {
	s.mu.Lock()
	t := s.current
	s.mu.Unlock()
	l := newLink(conn)
	if t == nil || !t.hold(l) {
		_ = conn.Close()
		return nil, errEndedLink
	}
	return l, nil
}
