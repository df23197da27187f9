package slack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"github.com/parley-chat/parley/platforms"
)

// The receiver of Socket Mode. It keeps one socket, two while one takes over from the other. Each socket
// has one goroutine that only reads; what it reads goes to one of a few committers, always the same for one conversation,
// so that what was read in order is kept in order. A committer makes it durable and then acknowledges it on the socket it
// came from; if it could not be kept it is not acknowledged, and Slack sends it again.

const (
	helloWithin  = 15 * time.Second // for dialing, and again for Slack's hello
	silentFor    = 60 * time.Second // without a frame or a pong, a socket is dead
	pingEvery    = 20 * time.Second
	writeWithin  = 10 * time.Second
	retireWithin = 10 * time.Second // for the acknowledgements that are left
	steadyAfter  = time.Minute      // a socket that lived so long was a good one: the next attempt begins anew

	committers = 8
	queued     = 64 // envelopes that wait for one committer
	maxFrame   = 8 << 20
)

type receiver struct {
	open   func(ctx context.Context) (url string, err error)
	dialer *websocket.Dialer
	take   func(ctx context.Context, k kind, body []byte) error
	where  func(k kind, body []byte) platforms.Conversation
	health *health
	count  *counter
	log    *slog.Logger

	queues  []chan arrival
	running sync.WaitGroup // sockets
}

func (a *Adapter) newReceiver() *receiver {
	return &receiver{
		open:   a.openConnection,
		dialer: &websocket.Dialer{Proxy: websocket.DefaultDialer.Proxy, HandshakeTimeout: helloWithin},
		take:   a.take,
		where: func(k kind, body []byte) platforms.Conversation {
			return interpret(envelope{Kind: k, Self: *a.self.Load(), Body: body}).conversation
		},
		health: &a.health,
		count:  &a.count,
		log:    a.log,
	}
}

// openConnection asks for the address of a socket. The address is a secret.
func (a *Adapter) openConnection(ctx context.Context) (url string, err error) {
	err = a.do(ctx, "apps.connections.open", "", func(ctx context.Context) error {
		_, url, err = a.api.StartSocketModeContext(ctx)
		if err == nil && url == "" {
			return errors.New("apps.connections.open named no address")
		}
		return err
	})
	return url, err
}

// run keeps a socket open until ctx ends. An error is a sentence: nothing but the operator can mend it.
func (r *receiver) run(ctx context.Context) error {
	defer r.startCommitters()()
	defer r.running.Wait()
	sockets, cancel := context.WithCancel(ctx)
	defer cancel()

	var current *socket
	defer func() { r.retire(current) }()
	for attempt := 0; ; {
		next, err := r.connect(sockets)
		if platforms.FailureOf(err) == platforms.Broken {
			return startError("Socket Mode", err)
		}
		if ctx.Err() != nil {
			r.retire(next)
			return nil
		}
		if err != nil {
			r.troubled(current, err)
			if !r.pause(ctx, current, attempt, retryAfter(err)) {
				return nil
			}
			attempt++
			continue
		}
		r.health.connected()
		r.retire(current)
		current = next
		reason := r.watch(ctx, current)
		switch {
		case reason == ended:
			return nil
		case reason == disabled:
			return startError("Socket Mode", errDisabled)
		case time.Since(current.opened) >= steadyAfter:
			attempt = 0
			if reason == refresh {
				continue // the next socket opens before this one closes
			}
		}
		if reason == died {
			r.troubled(nil, current.err)
		}
		if !r.pause(ctx, current, attempt, 0) {
			return nil
		}
		attempt++
	}
}

// troubled tells of a failure. As long as a socket is still open, messages arrive.
func (r *receiver) troubled(current *socket, err error) {
	r.log.Warn("slack: Socket Mode is interrupted", "error", err)
	if current == nil || current.isDone() {
		r.health.trouble("slack: no connection by Socket Mode: " + err.Error())
	}
}

// pause waits before the next attempt and reports whether there is to be one. A socket that is still open may die
// meanwhile; that changes nothing but readiness.
func (r *receiver) pause(ctx context.Context, current *socket, attempt int, atLeast time.Duration) bool {
	timer := time.NewTimer(backoff(attempt, atLeast))
	defer timer.Stop()
	var done <-chan struct{}
	if current != nil {
		done = current.done
	}
	for {
		select {
		case <-timer.C:
			return true
		case <-ctx.Done():
			return false
		case <-done:
			r.health.trouble("slack: no connection by Socket Mode: the socket was closed")
			done = nil
		}
	}
}

// why says how the use of a socket ended.
type why int

const (
	ended    why = iota // ctx did
	died                // the connection
	refresh             // Slack asks for a new one
	crowded             // Slack counts too many sockets
	disabled            // Socket Mode was switched off
)

// watch pings the socket until something happens to it. Only the current socket is watched: what a replaced one reports
// is nobody's concern.
func (r *receiver) watch(ctx context.Context, s *socket) why {
	ticker := time.NewTicker(pingEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return ended
		case <-s.done:
			select {
			case reason := <-s.told: // before it died
				return reason
			default:
				return died
			}
		case reason := <-s.told:
			return reason
		case <-ticker.C:
			s.ping()
		}
	}
}

// connect opens a socket and waits for Slack's hello.
func (r *receiver) connect(ctx context.Context) (*socket, error) {
	address, err := r.open(ctx)
	if err != nil {
		return nil, err
	}
	dialing, cancel := context.WithTimeout(ctx, helloWithin)
	defer cancel()
	conn, resp, err := r.dialer.DialContext(dialing, address, nil)
	if resp != nil {
		_ = resp.Body.Close()
	}
	if err != nil {
		return nil, dialError(err)
	}
	s := &socket{
		conn:   conn,
		opened: time.Now(),
		hello:  make(chan struct{}),
		told:   make(chan why, 1),
		done:   make(chan struct{}),
	}
	r.running.Go(func() { r.read(ctx, s) })
	timer := time.NewTimer(helloWithin)
	defer timer.Stop()
	select {
	case <-s.hello:
		return s, nil
	case reason := <-s.told:
		err = errors.New("Slack closed it at once")
		if reason == disabled {
			err = errDisabled
		}
	case <-s.done:
		err = s.err
	case <-timer.C:
		err = errors.New("Slack said no hello")
	case <-ctx.Done():
		err = ctx.Err()
	}
	r.retire(s)
	return nil, fmt.Errorf("slack: socket: %w", err)
}

// dialError leaves out the address, which holds a ticket.
func dialError(err error) error {
	if errors.Is(err, websocket.ErrBadHandshake) {
		return errors.New("slack: socket: Slack refused the connection")
	}
	return fmt.Errorf("slack: socket: %w", cause(err))
}

// errDisabled says that somebody switched Socket Mode off.
var errDisabled = failed("socket", platforms.Broken, "link_disabled")

// socket is one connection. All its channels belong to it alone.
type socket struct {
	conn    *websocket.Conn
	opened  time.Time
	writing sync.Mutex
	left    sync.WaitGroup // envelopes read and not yet dealt with

	reading sync.Mutex // guards retired, and the read deadline that goes with it
	retired bool

	hello chan struct{} // closed at hello
	told  chan why      // what Slack said about the socket, the first of it
	done  chan struct{} // closed when nothing more is read
	err   error         // why, after done
}

func (s *socket) isDone() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

// frame is an envelope of Socket Mode (doc apis/events-api/using-socket-mode).
type frame struct {
	Type       string          `json:"type"`
	EnvelopeID string          `json:"envelope_id"`
	Reason     string          `json:"reason"`
	Payload    json.RawMessage `json:"payload"`
}

// arrival is a payload on its way to a committer.
type arrival struct {
	from    *socket
	kind    kind
	id      string
	payload []byte
}

// read reads one socket until it ends.
func (r *receiver) read(ctx context.Context, s *socket) {
	defer close(s.done)
	s.conn.SetReadLimit(maxFrame)
	s.conn.SetPongHandler(func(string) error { return s.alive() })
	s.conn.SetPingHandler(func(data string) error {
		_ = s.conn.WriteControl(websocket.PongMessage, []byte(data), time.Now().Add(writeWithin))
		return s.alive()
	})
	for {
		if err := s.alive(); err != nil {
			s.err = err
			return
		}
		_, data, err := s.conn.ReadMessage()
		if err != nil {
			s.err = err
			return
		}
		r.health.frame()
		var f frame
		if err := decode(data, &f); err != nil {
			r.count.add("ignored", "no_envelope")
			continue
		}
		if !r.handle(ctx, s, f) {
			s.err = ctx.Err()
			return
		}
	}
}

// alive gives the socket more time before the watchdog, the read deadline, takes it for dead.
func (s *socket) alive() error {
	s.reading.Lock()
	defer s.reading.Unlock()
	if s.retired {
		return errRetired
	}
	return s.conn.SetReadDeadline(time.Now().Add(silentFor))
}

// handle deals with a frame, and reports whether to read on.
func (r *receiver) handle(ctx context.Context, s *socket, f frame) bool {
	switch f.Type {
	case "hello":
		select {
		case <-s.hello:
		default:
			close(s.hello)
		}
		return true
	case "disconnect":
		s.tell(reasonOf(f.Reason))
		r.log.Info("slack: Slack will close the socket", "reason", f.Reason)
		return true
	}
	a := arrival{from: s, id: f.EnvelopeID, payload: f.Payload}
	switch f.Type {
	case "events_api":
		a.kind = kindEvent
	case "interactive":
		a.kind = kindInteractive
	case "slash_commands":
		a.kind = kindCommand
	}
	return r.queue(ctx, a)
}

// tell notes what Slack said, the first time.
func (s *socket) tell(reason why) {
	select {
	case s.told <- reason:
	default:
	}
}

func reasonOf(reason string) why {
	switch reason {
	case "link_disabled":
		return disabled
	case "warning", "refresh_requested":
		return refresh
	}
	return crowded // or something new: wait, then open another
}

// queue hands an arrival to its committer. While that one is behind, the socket is not read.
func (r *receiver) queue(ctx context.Context, a arrival) bool {
	n := 0
	if a.kind != "" {
		h := fnv.New32a()
		_, _ = h.Write([]byte(r.where(a.kind, a.payload)))
		n = int(h.Sum32() % committers)
	}
	a.from.left.Add(1)
	select {
	case r.queues[n] <- a:
		return true
	case <-ctx.Done():
		a.from.left.Done()
		return false
	}
}

// startCommitters starts them; the function it returns lets them finish what is queued and waits for them.
func (r *receiver) startCommitters() (stop func()) {
	var running sync.WaitGroup
	r.queues = make([]chan arrival, committers)
	for i := range r.queues {
		q := make(chan arrival, queued)
		r.queues[i] = q
		running.Go(func() {
			for a := range q {
				r.commit(a)
			}
		})
	}
	return func() {
		for _, q := range r.queues {
			close(q)
		}
		running.Wait()
	}
}

// commit makes an arrival durable and acknowledges it. What is of a type that nobody knows is acknowledged only.
func (r *receiver) commit(a arrival) {
	defer a.from.left.Done()
	switch {
	case a.kind == "":
		r.count.add("ignored", "envelope_type")
	case !json.Valid(a.payload):
		r.count.add("ignored", "no_payload")
	default:
		if err := r.take(context.Background(), a.kind, a.payload); err != nil {
			r.log.Error("slack: a delivery could not be kept; Slack will send it again", "kind", string(a.kind), "error", err)
			return
		}
	}
	if a.id == "" {
		return
	}
	if err := a.from.ack(a.id); err != nil {
		r.log.Warn("slack: an acknowledgement was lost; Slack will send the delivery again", "error", err)
	}
}

func (s *socket) ack(id string) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	if err := s.conn.SetWriteDeadline(time.Now().Add(writeWithin)); err != nil {
		return err
	}
	return s.conn.WriteJSON(struct {
		EnvelopeID string `json:"envelope_id"`
	}{id})
}

// ping asks for a sign of life. If it cannot be sent, the read deadline will tell.
func (s *socket) ping() {
	_ = s.conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(writeWithin))
}

var errRetired = errors.New("the socket is not needed any more")

// stopReading ends the reading, and reports whether that was not done before.
func (s *socket) stopReading() bool {
	s.reading.Lock()
	defer s.reading.Unlock()
	if s.retired {
		return false
	}
	s.retired = true
	_ = s.conn.SetReadDeadline(time.Now())
	return true
}

// retire stops reading a socket, writes the acknowledgements that are left, and closes it. It does not wait for that; run
// does. nil is no socket.
func (r *receiver) retire(s *socket) {
	if s == nil || !s.stopReading() {
		return
	}
	r.running.Go(func() {
		<-s.done
		written := make(chan struct{})
		go func() {
			s.left.Wait()
			close(written)
		}()
		timer := time.NewTimer(retireWithin)
		defer timer.Stop()
		select {
		case <-written:
			_ = s.conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""),
				time.Now().Add(time.Second))
		case <-timer.C:
		}
		_ = s.conn.Close()
		<-written
	})
}
