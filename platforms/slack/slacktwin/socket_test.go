package slacktwin

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/slack-go/slack"
	"github.com/slack-go/slack/slackevents"
	"github.com/slack-go/slack/socketmode"
)

// plug is a Socket Mode client of the test's own: it reads when it is told to.
type plug struct {
	t    *testing.T
	conn *websocket.Conn
}

// plugIn opens a connection and reads its hello.
func (w *world) plugIn() (*plug, map[string]any) {
	w.t.Helper()
	_, link, err := w.api.StartSocketModeContext(w.t.Context())
	if err != nil {
		w.t.Fatalf("apps.connections.open: %v", err)
	}
	conn, response, err := websocket.DefaultDialer.Dial(link, http.Header{"Origin": {"https://api.slack.com"}})
	if err != nil {
		w.t.Fatalf("dial: %v", err)
	}
	response.Body.Close()
	w.t.Cleanup(func() { conn.Close() })
	p := &plug{w.t, conn}
	first := p.read()
	if first["type"] == "hello" {
		waitFor(w.t, func() bool { return w.readySockets() == w.Sockets() })
	}
	return p, first
}

func (t *Twin) readySockets() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := 0
	for _, s := range t.open {
		if s.ready {
			n++
		}
	}
	return n
}

func (p *plug) read() map[string]any {
	p.t.Helper()
	_ = p.conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	var frame map[string]any
	if err := p.conn.ReadJSON(&frame); err != nil {
		p.t.Fatalf("read: %v", err)
	}
	return frame
}

func (p *plug) ack(frame map[string]any, payload any) {
	p.t.Helper()
	answer := map[string]any{"envelope_id": frame["envelope_id"]}
	if payload != nil {
		answer["payload"] = payload
	}
	if err := p.conn.WriteJSON(answer); err != nil {
		p.t.Fatalf("ack: %v", err)
	}
}

// ended reports whether the connection is over.
func (p *plug) ended() bool {
	_ = p.conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	_, _, err := p.conn.ReadMessage()
	return err != nil && !strings.Contains(err.Error(), "timeout")
}

func TestSlackGosSocketModeClientWorks(t *testing.T) {
	w := newWorld(t, nil)
	client := socketmode.New(w.api)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- client.RunContext(ctx) }()
	heard := make(chan string, 10)
	go func() {
		for e := range client.Events {
			switch e.Type {
			case socketmode.EventTypeHello:
				heard <- "hello"
			case socketmode.EventTypeEventsAPI:
				_ = client.Ack(*e.Request)
				if m, ok := e.Data.(slackevents.EventsAPIEvent).InnerEvent.Data.(*slackevents.MessageEvent); ok {
					heard <- m.Text
				}
			}
		}
	}()
	if got := <-heard; got != "hello" {
		t.Fatalf("got %q", got)
	}
	waitFor(t, func() bool { return w.readySockets() == 1 })
	w.say("UALICE", "DALICE", "", "over the wire")
	if got := <-heard; got != "over the wire" {
		t.Errorf("got %q", got)
	}
	w.idle()
	if d := w.Deliveries(); len(d) != 1 || d[0].Transport != "socket" || !d[0].Acked {
		t.Errorf("got %+v", d)
	}
	cancel()
	<-done
}

func TestHelloTellsTheAppAndTheConnections(t *testing.T) {
	w := newWorld(t, nil)
	_, first := w.plugIn()
	_, second := w.plugIn()
	info, _ := second["connection_info"].(map[string]any)
	debug, _ := second["debug_info"].(map[string]any)
	if first["num_connections"] != 1.0 || second["num_connections"] != 2.0 || info["app_id"] != "A0TWIN" ||
		debug["approximate_connection_time"] != 18060.0 {
		t.Errorf("got %v and %v", first, second)
	}
}

func TestATicketOpensOneConnection(t *testing.T) {
	w := newWorld(t, nil)
	_, link, err := w.api.StartSocketModeContext(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []bool{true, false} {
		conn, response, err := websocket.DefaultDialer.Dial(link, nil)
		if (err == nil) != want {
			t.Errorf("dial %d: got %v", i, err)
		}
		if err == nil {
			conn.Close()
		}
		response.Body.Close()
	}
}

func TestAnEnvelopeThatIsNotAckedComesAgain(t *testing.T) {
	w := newWorld(t, nil)
	p, _ := w.plugIn()
	w.say("UALICE", "DALICE", "", "hello")
	first := p.read()
	if first["type"] != "events_api" || first["retry_attempt"] != 0.0 || first["accepts_response_payload"] != false {
		t.Errorf("got %v", first)
	}
	w.clock.Advance(3 * time.Second)
	second := p.read()
	if second["retry_attempt"] != 1.0 || second["retry_reason"] != "timeout" {
		t.Errorf("got %v", second)
	}
	p.ack(second, nil)
	w.idle()
	if d := w.Deliveries(); len(d) != 2 || d[0].Acked || !d[1].Acked || d[0].ID != d[1].ID {
		t.Errorf("got %+v", d)
	}
}

func TestAnAckOnAnotherSocketDoesNotCount(t *testing.T) {
	w := newWorld(t, nil)
	a, _ := w.plugIn()
	w.say("UALICE", "DALICE", "", "hello")
	frame := a.read()
	b, _ := w.plugIn()
	b.ack(frame, nil)
	w.clock.Advance(3 * time.Second)
	waitFor(t, func() bool { return len(w.Deliveries()) == 1 })
	if d := w.Deliveries()[0]; d.Acked {
		t.Errorf("got %+v", d)
	}
}

func TestEnvelopesGoToAnyOpenSocket(t *testing.T) {
	w := newWorld(t, nil)
	a, _ := w.plugIn()
	b, _ := w.plugIn()
	for range 2 {
		w.say("UALICE", "DALICE", "", "hello")
	}
	// One lane: the second goes out when the first is acknowledged, on the other socket.
	heard := make(chan bool, 2)
	for _, p := range []*plug{a, b} {
		go func() {
			p.ack(p.read(), nil)
			heard <- true
		}()
	}
	<-heard
	<-heard
	w.idle()
}

func TestWithNoSocketOpenARetryIsTheOnlyCopy(t *testing.T) {
	w := newWorld(t, nil)
	w.say("UALICE", "DALICE", "", "anybody?")
	w.idle()
	p, _ := w.plugIn()
	w.clock.Advance(time.Minute)
	frame := p.read()
	if frame["retry_attempt"] != 2.0 {
		t.Errorf("got %v", frame)
	}
	p.ack(frame, nil)
	w.idle()
}

func TestDisconnectAnnouncesAndHangsUp(t *testing.T) {
	tests := []struct {
		reason string
		drains bool
	}{{"warning", true}, {"refresh_requested", true}, {"link_disabled", false}, {"", false}}
	for _, tt := range tests {
		t.Run("reason "+tt.reason, func(t *testing.T) {
			w := newWorld(t, nil)
			old, _ := w.plugIn()
			w.Disconnect(tt.reason)
			if tt.reason != "" {
				if got := old.read(); got["type"] != "disconnect" || got["reason"] != tt.reason {
					t.Errorf("got %v", got)
				}
			}
			if tt.drains {
				next, _ := w.plugIn()
				w.say("UALICE", "DALICE", "", "to the new one")
				next.ack(next.read(), nil)
				w.idle()
				w.clock.Advance(10 * time.Second)
			}
			if !old.ended() {
				t.Error("the connection is still there")
			}
			want := 0
			if tt.drains {
				want = 1
			}
			waitFor(t, func() bool { return w.Sockets() == want })
		})
	}
}

func TestAnEleventhSocketIsTooMany(t *testing.T) {
	w := newWorld(t, nil)
	for range 10 {
		w.plugIn()
	}
	p, first := w.plugIn()
	if first["type"] != "disconnect" || first["reason"] != "too_many_websockets" || !p.ended() {
		t.Errorf("got %v", first)
	}
	waitFor(t, func() bool { return w.Sockets() == 10 })
}

func TestAnAckMayCarryAnAnswerBelowTwentyKilobytes(t *testing.T) {
	w := newWorld(t, nil)
	p, _ := w.plugIn()
	for _, tt := range []struct {
		answer string
		want   int
	}{{"short", 1}, {strings.Repeat("x", maxAckPayload), 1}, {"again", 2}} {
		acked := make(chan struct{})
		go func() {
			defer close(acked)
			frame := p.read()
			if frame["type"] != "slash_commands" || frame["accepts_response_payload"] != true {
				t.Errorf("got %v", frame)
			}
			p.ack(frame, map[string]any{"text": tt.answer})
		}()
		if err := w.Command(t.Context(), "UALICE", "CGENERAL", "/status", ""); err != nil {
			t.Fatal(err)
		}
		<-acked
		if got := len(w.Ephemerals("UALICE")); got != tt.want {
			t.Errorf("%d bytes: got %d answers, want %d", len(tt.answer), got, tt.want)
		}
	}
}

func TestClicksTravelBySocketWithoutRetries(t *testing.T) {
	w := newWorld(t, nil)
	ts := w.post("CGENERAL", text("card"), slack.MsgOptionBlocks(buttons("approve", "v1")))
	w.idle()
	p, _ := w.plugIn()
	go func() {
		frame := p.read()
		payload, _ := frame["payload"].(map[string]any)
		if frame["type"] != "interactive" || payload["type"] != "block_actions" || frame["retry_attempt"] != nil {
			t.Errorf("got %v", frame)
		}
		p.ack(frame, nil)
	}()
	if err := w.Click(t.Context(), "UBOB", "CGENERAL", ts, "approve"); err != nil {
		t.Error(err)
	}
}

func TestTheTwinPings(t *testing.T) {
	w := newWorld(t, nil)
	p, _ := w.plugIn()
	pinged := make(chan string, 10)
	p.conn.SetPingHandler(func(s string) error { pinged <- s; return nil })
	go func() { _, _, _ = p.conn.ReadMessage() }()
	w.clock.Advance(11 * time.Second)
	for range 2 {
		<-pinged
	}
}
