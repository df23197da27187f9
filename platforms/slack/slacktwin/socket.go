package slacktwin

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// sockets are the Socket Mode connections, doc apis/events-api/using-socket-mode.
type sockets struct {
	tickets map[string]time.Time // of apps.connections.open, each for one connection
	open    []*socket
	next    int
}

// socket is one connection. Its fields but conn and writing are guarded by Twin.mu.
type socket struct {
	conn    *websocket.Conn
	writing sync.Mutex
	waiting map[string]chan json.RawMessage // acknowledgements, by envelope_id
	ready   bool                            // it has had its hello
	leaving bool                            // it was told to go
	gone    chan struct{}                   // closed when the connection has ended
}

// pingEvery is how often the twin pings, as Slack does every few seconds.
const pingEvery = 5 * time.Second

// patience is how long a write may take; the line is local.
const patience = 5 * time.Second

func (t *Twin) connectionsOpen(args) (map[string]any, error) {
	ticket := strings.ReplaceAll(newUUID(), "-", "")
	t.tickets[ticket] = t.opt.Now()
	base := "ws" + strings.TrimPrefix(t.url, "http")
	return map[string]any{"url": base + "/socket?ticket=" + ticket + "&app_id=" + t.opt.AppID}, nil
}

// serveSocket is one connection from its upgrade to its end. Origin https://api.slack.com is what clients send, and other
// origins are let in as well.
func (t *Twin) serveSocket(w http.ResponseWriter, r *http.Request) {
	if !t.redeem(r.URL.Query().Get("ticket")) {
		http.Error(w, "no such ticket", http.StatusForbidden)
		return
	}
	upgrader := websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }}
	conn, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return // it has answered
	}
	s := &socket{conn: conn, waiting: map[string]chan json.RawMessage{}, gone: make(chan struct{})}
	ended := make(chan struct{})
	defer close(ended)
	count, ok := t.admitSocket(s, ended)
	if !ok {
		s.hangUp()
		return
	}
	if count > maxSockets {
		s.write(map[string]any{"type": "disconnect", "reason": "too_many_websockets", "debug_info": debugInfo()})
		t.drop(s)
		return
	}
	s.write(map[string]any{
		"type": "hello", "num_connections": count, "debug_info": debugInfo(),
		"connection_info": map[string]any{"app_id": t.opt.AppID},
	})
	t.enroll(s)
	t.readAcks(s)
	t.drop(s)
}

func debugInfo() map[string]any {
	return map[string]any{"host": "twin", "build_number": 1, "approximate_connection_time": connectionTime}
}

func (t *Twin) redeem(ticket string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	at, ok := t.tickets[ticket]
	delete(t.tickets, ticket)
	return ok && !endsAfter(at, t.opt.Now(), ticketLife)
}

// admitSocket makes Close wait until ended is closed, and returns how many connections there are with this one.
func (t *Twin) admitSocket(s *socket, ended <-chan struct{}) (int, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.spawn(func() { <-ended }) {
		return 0, false
	}
	t.open = append(t.open, s)
	return len(t.open), true
}

// enroll lets envelopes go to a socket that has had its hello.
func (t *Twin) enroll(s *socket) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s.ready = true
	t.pingLater(s)
}

func (t *Twin) pingLater(s *socket) {
	t.after(pingEvery, func() {
		if !slices.Contains(t.open, s) {
			return
		}
		t.spawn(func() {
			_ = s.conn.WriteControl(websocket.PingMessage, []byte("Ping from twin"), time.Now().Add(patience))
		})
		t.pingLater(s)
	})
}

func (t *Twin) readAcks(s *socket) {
	for {
		_, frame, err := s.conn.ReadMessage()
		if err != nil {
			return
		}
		var ack struct {
			EnvelopeID string          `json:"envelope_id"`
			Payload    json.RawMessage `json:"payload"`
		}
		if err := json.Unmarshal(frame, &ack); err != nil {
			continue
		}
		if len(ack.Payload) > maxAckPayload {
			ack.Payload = nil
		}
		t.mu.Lock()
		waiting, ok := s.waiting[ack.EnvelopeID]
		delete(s.waiting, ack.EnvelopeID)
		t.mu.Unlock()
		if ok {
			waiting <- ack.Payload
		}
	}
}

// drop forgets a socket. It is called without mu.
func (t *Twin) drop(s *socket) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.Index(t.open, s)
	if i < 0 {
		return
	}
	t.open = slices.Delete(t.open, i, i+1)
	close(s.gone)
	s.hangUp()
}

func (s *socket) hangUp() { _ = s.conn.Close() }

// write sends one JSON frame. It may be called from any goroutine, with mu or without.
func (s *socket) write(v any) bool {
	s.writing.Lock()
	defer s.writing.Unlock()
	if err := s.conn.SetWriteDeadline(time.Now().Add(patience)); err != nil {
		return false
	}
	return s.conn.WriteMessage(websocket.TextMessage, encode(v)) == nil
}

// pick returns the socket whose turn it is; one that was told to go only if there is no other.
func (t *Twin) pick() *socket {
	ready := slices.DeleteFunc(slices.Clone(t.open), func(s *socket) bool { return !s.ready })
	staying := slices.DeleteFunc(slices.Clone(ready), func(s *socket) bool { return s.leaving })
	if len(staying) == 0 {
		staying = ready
	}
	if len(staying) == 0 {
		return nil
	}
	t.next++
	return staying[t.next%len(staying)]
}

// deliverSocket sends one envelope to any open socket and waits 3 s for its acknowledgement on that socket. It is called
// without mu.
func (t *Twin) deliverSocket(ctx context.Context, e *envelope, out *outcome) {
	ctx, done := t.within(ctx, ackTime)
	defer done()
	t.mu.Lock()
	s := t.pick()
	id := newUUID()
	acked := make(chan json.RawMessage, 1)
	if s != nil {
		s.waiting[id] = acked
	}
	t.mu.Unlock()
	if s == nil {
		out.Error, out.reason = "no_open_socket", "connection_failed"
		return
	}
	defer func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(s.waiting, id)
	}()
	frame := map[string]any{
		"type": e.kind, "envelope_id": id, "payload": json.RawMessage(e.body), "accepts_response_payload": e.accepts,
	}
	if e.kind == kindEvents {
		frame["retry_attempt"], frame["retry_reason"] = out.Attempt, out.Reason
	}
	if !s.write(frame) {
		out.Error, out.reason = "connection_failed", "connection_failed"
		return
	}
	select {
	case payload := <-acked:
		out.Acked, out.Status = true, http.StatusOK
		if e.accepts {
			out.answer = payload
		}
	case <-s.gone:
		out.Error, out.reason = "connection_failed", "connection_failed"
	case <-ctx.Done():
		out.Error, out.reason = "timeout", "timeout"
	}
}

// Sockets returns how many Socket Mode connections are open.
func (t *Twin) Sockets() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.open)
}

// Disconnect ends the Socket Mode connections that are open. "warning" and "refresh_requested" announce the end, which
// comes 10 s later unless the bot goes before; "link_disabled" and others announce it and hang up; "" is a broken line.
func (t *Twin) Disconnect(reason string) {
	t.mu.Lock()
	var leaving []*socket
	for _, s := range t.open {
		if s.leaving {
			continue
		}
		s.leaving = true
		leaving = append(leaving, s)
	}
	announced := reason == "warning" || reason == "refresh_requested"
	if announced {
		t.after(drainTime, func() {
			for _, s := range leaving {
				s.hangUp() // its reader drops it
			}
		})
	}
	t.mu.Unlock()
	for _, s := range leaving {
		if reason != "" {
			s.write(map[string]any{"type": "disconnect", "reason": reason, "debug_info": debugInfo()})
		}
		if !announced {
			s.hangUp()
		}
	}
}
