package slack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"

	"github.com/parley-chat/parley/platforms"
	"github.com/parley-chat/parley/platforms/slack/slacktwin"
)

func TestSocketModeOutlivesEveryKindOfDisconnect(t *testing.T) {
	t.Parallel()
	for _, reason := range []string{"", "warning", "refresh_requested", "too_many_websockets", "something_new"} {
		t.Run("reason "+reason, func(t *testing.T) {
			w := newWorld(t, setup{socket: true})
			w.say("UALICE", "DALICE", "", "before")
			w.Disconnect(reason)
			w.await("the next socket", func() bool { return w.a.Ready() == nil && w.a.Link().Reconnects == 1 && w.Sockets() == 1 })
			w.say("UALICE", "DALICE", "", "after")
			w.await("both messages", func() bool { return len(w.inbox.all()) == 2 })
		})
	}
}

func TestLinkDisabledEndsWithASentence(t *testing.T) {
	w := newWorld(t, setup{socket: true})
	w.Disconnect("link_disabled")
	err := <-w.ended
	if err == nil || !strings.Contains(err.Error(), "Socket Mode is off") {
		t.Errorf("got %v", err)
	}
	if ready := w.a.Ready(); ready == nil || ready.Error() != err.Error() {
		t.Errorf("ready: got %v, want %v", ready, err)
	}
}

func TestWhatTheOperatorMustMendEndsTheStart(t *testing.T) {
	codes := []string{
		"link_disabled", "invalid_auth", "not_authed", "account_inactive", "token_revoked", "token_expired", "missing_scope",
		"not_allowed_token_type", "socket_mode_not_enabled", "user_removed_from_team", "team_disabled",
	}
	for _, code := range codes {
		w := newWorld(t, setup{socket: true, idle: true})
		w.Fault(slacktwin.Fault{Method: "apps.connections.open", Error: code, Times: -1})
		w.run()
		err := <-w.ended
		if err == nil || !strings.Contains(err.Error(), mend[code]) || mend[code] == "" || platforms.FailureOf(err) != platforms.Broken {
			t.Errorf("%s: got %v", code, err)
		}
		opens := 0
		for _, c := range w.Calls() {
			if c.Method == "apps.connections.open" {
				opens++
			}
		}
		if opens != 1 {
			t.Errorf("%s: opened %d times, want once", code, opens)
		}
	}
}

func TestAFailureToOpenIsTriedAgain(t *testing.T) {
	w := newWorld(t, setup{socket: true, idle: true})
	w.Fault(slacktwin.Fault{Method: "apps.connections.open", Status: 503})
	w.run()
	w.await("readiness", func() bool { return w.a.Ready() == nil })
	w.say("UALICE", "DALICE", "", "hello")
	if got := only[platforms.Message](w).Text; got != "hello" {
		t.Errorf("got %q", got)
	}
}

// line is a Slack whose sockets are pipes, so that time is the test's.
type line struct {
	t     *testing.T
	r     *receiver
	inbox chan string // payloads taken

	mu     sync.Mutex
	opens  []time.Time
	server []*websocket.Conn
	taking func(string) error
	opened func(n int) error // fails the nth apps.connections.open, from 0
	silent bool              // do not say hello
}

func newLine(t *testing.T) *line {
	l := &line{t: t, inbox: make(chan string, 1000)}
	h := &health{now: time.Now}
	l.r = &receiver{
		open:   l.open,
		dialer: &websocket.Dialer{NetDialContext: l.dial, HandshakeTimeout: helloWithin},
		take: func(_ context.Context, k kind, body []byte) error {
			if l.taking != nil {
				if err := l.taking(string(body)); err != nil {
					return err
				}
			}
			l.inbox <- string(k) + string(body)
			return nil
		},
		where:  func(kind, []byte) platforms.Conversation { return "one" },
		health: h,
		count:  &counter{},
		log:    slog.New(slog.DiscardHandler),
	}
	return l
}

func (l *line) open(context.Context) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(l.opens)
	l.opens = append(l.opens, time.Now())
	if l.opened != nil {
		if err := l.opened(n); err != nil {
			return "", err
		}
	}
	return "ws://slack.test/link?ticket=secret", nil
}

func (l *line) opensSoFar() []time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]time.Time(nil), l.opens...)
}

// dial serves one connection over a pipe.
func (l *line) dial(context.Context, string, string) (net.Conn, error) {
	near, far := net.Pipe()
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		upgrader := websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }}
		conn, err := upgrader.Upgrade(w, r, nil)
		if err != nil {
			l.t.Errorf("upgrade: %v", err)
			return
		}
		if !l.silent {
			_ = conn.WriteMessage(websocket.TextMessage, []byte(`{"type":"hello"}`))
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.server = append(l.server, conn)
	})}
	go func() { _ = server.Serve(&oneConn{conn: far}) }()
	return near, nil
}

// conn is the nth connection at Slack's end.
func (l *line) conn(n int) *websocket.Conn {
	l.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if n >= len(l.server) {
		l.t.Fatalf("there are %d sockets, want one more than %d", len(l.server), n)
	}
	return l.server[n]
}

// start runs the receiver; the function it returns ends it and returns its result.
func (l *line) start() (stop func() error) {
	ctx, cancel := context.WithCancel(l.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- l.r.run(ctx) }()
	synctest.Wait()
	return func() error {
		cancel()
		synctest.Wait()
		l.mu.Lock()
		for _, c := range l.server {
			_ = c.Close()
		}
		l.mu.Unlock()
		return <-ended
	}
}

// acks reads acknowledgements at Slack's end until the connection ends.
func acks(c *websocket.Conn) <-chan string {
	out := make(chan string, 100)
	go func() {
		defer close(out)
		for {
			var ack struct {
				ID string `json:"envelope_id"`
			}
			if err := c.ReadJSON(&ack); err != nil {
				return
			}
			out <- ack.ID
		}
	}()
	return out
}

func send(t *testing.T, c *websocket.Conn, v string) {
	t.Helper()
	if err := c.WriteMessage(websocket.TextMessage, []byte(v)); err != nil {
		t.Errorf("send: %v", err)
	}
	synctest.Wait()
}

func envelopeOf(id, typ, payload string) string {
	return fmt.Sprintf(`{"type":%q,"envelope_id":%q,"payload":%s,"accepts_response_payload":true}`, typ, id, payload)
}

// oneConn is a listener of one connection.
type oneConn struct {
	mu   sync.Mutex
	conn net.Conn
}

func (o *oneConn) Accept() (net.Conn, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.conn == nil {
		return nil, net.ErrClosed
	}
	c := o.conn
	o.conn = nil
	return c, nil
}
func (o *oneConn) Close() error   { return nil }
func (o *oneConn) Addr() net.Addr { return &net.UnixAddr{} }

func TestAnEnvelopeIsAcknowledgedWhenItIsKeptAndOnlyThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t)
		l.taking = func(body string) error {
			if strings.Contains(body, "full") {
				return errors.New("the disk is full")
			}
			return nil
		}
		stop := l.start()
		got := acks(l.conn(0))
		send(t, l.conn(0), envelopeOf("1", "events_api", `{"a":1}`))
		send(t, l.conn(0), envelopeOf("2", "events_api", `{"a":"full"}`))
		send(t, l.conn(0), envelopeOf("3", "interactive", `{}`))
		send(t, l.conn(0), envelopeOf("4", "slash_commands", `{}`))
		send(t, l.conn(0), envelopeOf("5", "something_new", `{}`))
		send(t, l.conn(0), `{"type":"events_api","envelope_id":"6"}`)
		send(t, l.conn(0), `not JSON`)
		send(t, l.conn(0), `{"type":7,"envelope_id":"7","payload":[]}`)
		send(t, l.conn(0), envelopeOf("8", "events_api", `"text"`))
		if err := stop(); err != nil {
			t.Errorf("run: %v", err)
		}
		var ids []string
		for id := range got {
			ids = append(ids, id)
		}
		if s := strings.Join(ids, " "); s != "1 3 4 5 6 7 8" {
			t.Errorf("acknowledged: got %s, want all but 2", s)
		}
		close(l.inbox)
		var kept []string
		for s := range l.inbox {
			kept = append(kept, s)
		}
		if s := strings.Join(kept, " "); s != `event{"a":1} interactive{} command{} event"text"` {
			t.Errorf("kept: got %s", s)
		}
	})
}

func TestARefreshOpensTheNextSocketFirstAndAcknowledgesOnTheOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t)
		slow := make(chan struct{})
		l.taking = func(body string) error {
			if strings.Contains(body, "slow") {
				<-slow
			}
			return nil
		}
		stop := l.start()
		old := acks(l.conn(0))
		time.Sleep(2 * time.Minute) // idle, but alive: the other end answers pings
		send(t, l.conn(0), envelopeOf("1", "events_api", `{"a":"slow"}`))
		before := time.Now()
		send(t, l.conn(0), `{"type":"disconnect","reason":"warning"}`)
		if opens := l.opensSoFar(); len(opens) != 2 || opens[1] != before {
			t.Fatalf("opens: got %v, want the second at once", opens)
		}
		fresh := acks(l.conn(1))
		send(t, l.conn(1), envelopeOf("2", "events_api", `{}`))
		close(slow)
		synctest.Wait()
		if id, ok := <-old; id != "1" || !ok {
			t.Errorf("on the old socket: got %q", id)
		}
		if _, ok := <-old; ok {
			t.Error("the old socket was not closed")
		}
		if id := <-fresh; id != "2" {
			t.Errorf("on the new socket: got %q", id)
		}
		if err := l.r.health.Ready(); err != nil {
			t.Errorf("ready: %v", err)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestWhatAReplacedSocketDoesIsNobodysConcern(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t)
		blocked := make(chan struct{})
		l.taking = func(string) error { <-blocked; return nil }
		stop := l.start()
		acks(l.conn(0))
		time.Sleep(2 * time.Minute)
		send(t, l.conn(0), envelopeOf("1", "events_api", `{}`)) // keeps the old socket open for a while
		send(t, l.conn(0), `{"type":"disconnect","reason":"refresh_requested"}`)
		acks(l.conn(1))
		_ = l.conn(0).Close()
		synctest.Wait()
		time.Sleep(time.Minute)
		if n := len(l.opensSoFar()); n != 2 {
			t.Errorf("opened %d sockets, want 2", n)
		}
		if err := l.r.health.Ready(); err != nil {
			t.Errorf("ready: %v", err)
		}
		close(blocked)
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestReconnectsWaitLongerEachTimeAndNeverLessThanSlackSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t)
		l.opened = func(n int) error {
			if n == 3 {
				return &platforms.Error{Failure: platforms.SlowDown, RetryAfter: 45 * time.Second}
			}
			return errors.New("no route")
		}
		stop := l.start()
		time.Sleep(10 * time.Minute)
		if l.r.health.Ready() == nil {
			t.Error("ready without a socket")
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
		opens := l.opensSoFar()
		if len(opens) < 15 || len(opens) > 50 {
			t.Errorf("%d attempts in ten minutes", len(opens))
		}
		for i := 1; i < len(opens); i++ {
			wait := opens[i].Sub(opens[i-1])
			least, most := min(mostWait, firstWait<<min(i-1, 10))/2, mostWait
			if i == 4 {
				least, most = 45*time.Second, 45*time.Second
			}
			if wait < least || wait > most {
				t.Errorf("wait %d: got %v, want %v to %v", i, wait, least, most)
			}
		}
	})
}

func TestAStormOfRefreshesIsNotAnsweredWithAStormOfSockets(t *testing.T) {
	for _, reason := range []string{"refresh_requested", "too_many_websockets"} {
		synctest.Test(t, func(t *testing.T) {
			l := newLine(t)
			stop := l.start()
			begin := time.Now()
			for n := 0; time.Since(begin) < 10*time.Minute; {
				l.mu.Lock()
				have := len(l.server)
				l.mu.Unlock()
				if have > n {
					acks(l.conn(n))
					send(t, l.conn(n), fmt.Sprintf(`{"type":"disconnect","reason":%q}`, reason))
					n++
				}
				time.Sleep(100 * time.Millisecond)
			}
			if n := len(l.opensSoFar()); n > 50 {
				t.Errorf("%s: %d sockets in ten minutes", reason, n)
			}
			if err := stop(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAWatchdogReplacesASocketThatFellSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t)
		stop := l.start()
		// Nobody reads at the other end, so no ping is answered.
		time.Sleep(silentFor - time.Second)
		if n := len(l.opensSoFar()); n != 1 {
			t.Fatalf("%d sockets too early", n)
		}
		time.Sleep(10 * time.Second)
		if n := len(l.opensSoFar()); n != 2 {
			t.Errorf("got %d sockets, want 2", n)
		}
		acks(l.conn(1))
		time.Sleep(10 * time.Minute)
		if n := len(l.opensSoFar()); n != 2 {
			t.Errorf("a socket that answers pings was replaced: got %d", n)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestASocketWithoutHelloIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t)
		l.silent = true
		stop := l.start()
		time.Sleep(helloWithin + time.Second)
		synctest.Wait()
		if err := l.r.health.Ready(); err == nil || !strings.Contains(err.Error(), "hello") {
			t.Errorf("got %v", err)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestTheEndWritesTheAcknowledgementsThatAreLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t)
		l.taking = func(string) error { time.Sleep(3 * time.Second); return nil }
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- l.r.run(ctx) }()
		synctest.Wait()
		got := acks(l.conn(0))
		send(t, l.conn(0), envelopeOf("1", "events_api", `{}`))
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if id, ok := <-got; !ok || id != "1" {
			t.Errorf("got %q", id)
		}
	})
}

func TestOneConversationIsKeptInOrder(t *testing.T) {
	w := newWorld(t, setup{socket: true})
	var payloads []string
	for i := range 200 {
		payloads = append(payloads, fmt.Sprint("message ", i))
	}
	root := w.say("UALICE", "CGENERAL", "", "<@UBOT> begin")
	for _, p := range payloads {
		if _, err := w.Say("UALICE", "CGENERAL", root, p); err != nil {
			t.Fatal(err)
		}
	}
	w.idle()
	w.await("all messages", func() bool { return len(w.inbox.all()) == 201 })
	var got []string
	for _, in := range w.taken()[1:] {
		got = append(got, in.(platforms.Message).Text)
	}
	a, _ := json.Marshal(got)
	b, _ := json.Marshal(payloads)
	if string(a) != string(b) {
		t.Errorf("got %s", a)
	}
}
