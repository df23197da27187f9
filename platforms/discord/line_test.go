package discord

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/parley-chat/parley/platforms"
)

const (
	botID     = "100000000000000002"
	appID     = "100000000000000001"
	guildID   = "200000000000000000"
	channelID = "300000000000000000"
	alice     = "400000000000000001"
)

// line is a Discord whose every word is scripted: what the stand-in does not do on purpose, and what it is too polite for.
type line struct {
	t      *testing.T
	server *httptest.Server
	a      *Adapter
	inbox  *inbox
	logs   *safeBuffer
	ended  chan error

	mu      sync.Mutex
	calls   []restCall
	answers map[string]func(w http.ResponseWriter, body []byte) // by "METHOD /path"
	links   []*far
	script  func(n int, f *far) // of the nth connection, from 0
	hooked  hooks
	limit   map[string]any // session_start_limit
}

type restCall struct {
	route string
	body  string
	at    time.Time
}

// far is the far end of one connection.
type far struct {
	l        *line
	conn     *websocket.Conn
	query    string
	path     string
	writing  sync.Mutex
	mu       sync.Mutex
	got      []int // opcodes
	lost     chan struct{}
	closed   int // the close code that came
	interval time.Duration
	noAcks   bool
}

type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func newLine(t *testing.T, change func(*Options)) *line {
	t.Helper()
	l := &line{t: t, inbox: &inbox{}, logs: &safeBuffer{}, answers: map[string]func(http.ResponseWriter, []byte){}}
	l.server = httptest.NewServer(l)
	t.Cleanup(l.server.Close)
	client := &http.Client{Transport: &http.Transport{}, Timeout: 10 * time.Second}
	t.Cleanup(client.CloseIdleConnections)
	o := Options{Token: "secret-token", APIURL: l.server.URL, HTTPClient: client, Logger: slog.New(slog.NewTextHandler(l.logs, nil))}
	if change != nil {
		change(&o)
	}
	var err error
	if l.a, err = New(o); err != nil {
		t.Fatal(err)
	}
	return l
}

// start runs the adapter until the test ends; stop ends it earlier.
func (l *line) start() (stop func()) {
	ctx, cancel := context.WithCancel(l.t.Context())
	l.ended = make(chan error, 1)
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		l.ended <- l.a.Run(ctx, l.inbox)
	}()
	stop = func() {
		cancel()
		select {
		case <-finished:
		case <-time.After(10 * time.Second):
			l.t.Error("the adapter does not end")
		}
	}
	l.t.Cleanup(stop)
	return stop
}

func (l *line) await(what string, done func() bool) {
	l.t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !done() {
		if time.Now().After(deadline) {
			l.t.Fatalf("waited in vain for %s; ready: %v; logs:\n%s", what, l.a.Ready(), l.logs)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func (l *line) ready() {
	l.t.Helper()
	l.await("readiness", func() bool { return l.a.Ready() == nil })
}

// on scripts the answer to a call.
func (l *line) on(route string, f func(w http.ResponseWriter, body []byte)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.answers[route] = f
}

func (l *line) callsTo(part string) []restCall {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []restCall
	for _, c := range l.calls {
		if strings.Contains(c.route, part) {
			found = append(found, c)
		}
	}
	return found
}

func (l *line) conn(n int) *far {
	l.t.Helper()
	var f *far
	l.await(fmt.Sprint("connection ", n), func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		if n < len(l.links) {
			f = l.links[n]
		}
		return f != nil
	})
	return f
}

func (l *line) connections() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.links)
}

func (l *line) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if path, ok := strings.CutPrefix(r.URL.Path, "/api/v10"); ok {
		l.rest(w, r, path)
		return
	}
	l.gateway(w, r)
}

func (l *line) rest(w http.ResponseWriter, r *http.Request, path string) {
	body, _ := io.ReadAll(r.Body)
	route := r.Method + " " + path
	if r.URL.RawQuery != "" {
		route += "?" + r.URL.RawQuery
	}
	l.mu.Lock()
	l.calls = append(l.calls, restCall{route, string(body), time.Now()})
	answer := l.answers[r.Method+" "+path]
	limit := l.limit
	l.mu.Unlock()
	address := strings.Replace(l.server.URL, "http://", "ws://", 1)
	switch {
	case answer != nil:
		answer(w, body)
	case path == "/gateway":
		respond(w, 200, map[string]any{"url": address + "/gateway"})
	case path == "/gateway/bot":
		respond(w, 200, map[string]any{"url": address + "/gateway", "shards": 1, "session_start_limit": limit})
	case path == "/applications/"+appID+"/commands" && r.Method == http.MethodGet:
		respond(w, 200, slashCommands())
	case r.Method == http.MethodGet && strings.HasSuffix(path, "/messages"):
		respond(w, 200, []any{})
	default:
		respond(w, 404, map[string]any{"code": 0, "message": "404: Not Found"})
	}
}

func respond(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

func (l *line) gateway(w http.ResponseWriter, r *http.Request) {
	upgrader := websocket.Upgrader{}
	conn, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		l.t.Errorf("upgrade: %v", err)
		return
	}
	defer conn.Close()
	f := &far{l: l, conn: conn, query: r.URL.RawQuery, path: r.URL.Path, lost: make(chan struct{}), interval: 41250 * time.Millisecond}
	l.mu.Lock()
	n := len(l.links)
	l.links = append(l.links, f)
	script := l.script
	l.mu.Unlock()
	if script != nil {
		script(n, f)
	} else {
		f.hello()
	}
	f.listen(n)
}

func (f *far) send(v any) {
	f.writing.Lock()
	defer f.writing.Unlock()
	_ = f.conn.WriteJSON(v)
}

func (f *far) hello() {
	f.send(map[string]any{"op": 10, "d": map[string]any{"heartbeat_interval": f.interval.Milliseconds()}})
}

func (f *far) dispatch(seq int, event string, data any) {
	f.send(map[string]any{"op": 0, "s": seq, "t": event, "d": data})
}

func (f *far) greet() {
	f.dispatch(1, "READY", map[string]any{
		"v": 10, "user": map[string]any{"id": botID}, "application": map[string]any{"id": appID}, "session_id": "s1",
		"resume_gateway_url": strings.Replace(f.l.server.URL, "http://", "ws://", 1) + "/resume",
	})
}

// ops are the opcodes that came.
func (f *far) ops() []int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]int(nil), f.got...)
}

func (f *far) listen(n int) {
	defer close(f.lost)
	for {
		var p struct {
			Op   int             `json:"op"`
			Data json.RawMessage `json:"d"`
		}
		if err := f.conn.ReadJSON(&p); err != nil {
			if c, ok := errors.AsType[*websocket.CloseError](err); ok {
				f.mu.Lock()
				f.closed = c.Code
				f.mu.Unlock()
			}
			return
		}
		f.mu.Lock()
		f.got = append(f.got, p.Op)
		f.mu.Unlock()
		switch p.Op {
		case 1:
			if !f.noAcks {
				f.send(map[string]any{"op": 11})
			}
		case 2:
			if f.l.identified(n, f) {
				f.greet()
			}
		case 6:
			if f.l.resumed(n, f) {
				f.dispatch(9, "RESUMED", map[string]any{})
			}
		}
	}
}

// hooks are what the far end does at IDENTIFY and RESUME of the nth connection; true greets as usual.
type hooks struct {
	identify, resume func(n int, f *far) bool
}

func (l *line) identified(n int, f *far) bool {
	if h := l.hooks().identify; h != nil {
		return h(n, f)
	}
	return true
}

func (l *line) resumed(n int, f *far) bool {
	if h := l.hooks().resume; h != nil {
		return h(n, f)
	}
	return true
}

func (l *line) hooks() hooks {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.hooked
}

// said is a message of a person.
func said(id, channel, text string, more ...map[string]any) map[string]any {
	m := map[string]any{
		"id": id, "channel_id": channel, "guild_id": guildID, "channel_type": 0, "type": 0, "content": text,
		"author": map[string]any{"id": alice, "username": "alice"}, "timestamp": "2026-01-02T03:04:05.000000+00:00",
	}
	for _, extra := range more {
		for k, v := range extra {
			if v == nil {
				delete(m, k)
				continue
			}
			m[k] = v
		}
	}
	return m
}

func mentioning(id, channel, text string) map[string]any {
	return said(id, channel, "<@"+botID+"> "+text, map[string]any{"mentions": []any{map[string]any{"id": botID}}})
}

// inbox keeps what it is given, once per key. refuse makes it fail so many times first.
type inbox struct {
	mu     sync.Mutex
	kept   []platforms.Delivery
	keys   map[platforms.Key]bool
	tried  int
	refuse int
	hook   func(platforms.Delivery) // before anything else
}

func (i *inbox) Accept(_ context.Context, d platforms.Delivery) error {
	if i.hook != nil {
		i.hook(d)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.tried++
	if i.refuse != 0 {
		i.refuse--
		return errors.New("the disk is full")
	}
	if i.keys == nil {
		i.keys = map[platforms.Key]bool{}
	}
	known := false
	for _, k := range d.Keys {
		known = known || i.keys[k]
		i.keys[k] = true
	}
	if !known {
		i.kept = append(i.kept, d)
	}
	return nil
}

func (i *inbox) all() []platforms.Delivery {
	i.mu.Lock()
	defer i.mu.Unlock()
	return append([]platforms.Delivery(nil), i.kept...)
}

// texts are the texts of the messages that were taken.
func (l *line) texts() []string {
	l.t.Helper()
	var all []string
	for _, d := range l.inbox.all() {
		in, err := l.a.Read(d.Raw)
		if err != nil {
			l.t.Fatalf("read: %v", err)
		}
		if m, ok := in.(platforms.Message); ok {
			all = append(all, m.Text)
		}
	}
	return all
}
