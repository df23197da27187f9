package slack

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/parley-chat/parley/platforms"
	"github.com/parley-chat/parley/platforms/slack/slacktwin"
)

// world is the adapter in a workspace of the stand-in, with alice and bob in #general, alice's direct message, and eve of
// another company.
type world struct {
	*slacktwin.Twin
	t     *testing.T
	a     *Adapter
	inbox *inbox
	logs  *bytes.Buffer
	ended chan error // Run's result
	stop  context.CancelFunc
}

type setup struct {
	socket  bool
	twin    func(*slacktwin.Options)
	options func(*Options)
	idle    bool // do not start Run
}

func newWorld(t *testing.T, s setup) *world {
	t.Helper()
	to := slacktwin.Options{Retries: []time.Duration{0, 50 * time.Millisecond, 50 * time.Millisecond}}
	if s.twin != nil {
		s.twin(&to)
	}
	w := &world{Twin: slacktwin.New(to), t: t, inbox: &inbox{}, logs: &bytes.Buffer{}}
	t.Cleanup(func() {
		if err := w.Twin.Close(); err != nil {
			t.Errorf("close the twin: %v", err)
		}
	})
	w.AddUser(slacktwin.User{ID: "UALICE", Name: "Alice"})
	w.AddUser(slacktwin.User{ID: "UBOB", Name: "Bob"})
	w.AddUser(slacktwin.User{ID: "UEVE", Name: "Eve", Team: "T0OTHER"})
	w.AddUser(slacktwin.User{ID: "UROBOT", Name: "Robot", Bot: true})
	w.AddChannel(slacktwin.Channel{ID: "CGENERAL", Name: "general", Members: []string{"UALICE", "UBOB", "UEVE", "UROBOT", "UBOT"}})
	w.AddChannel(slacktwin.Channel{ID: "CPRIVATE", Name: "elsewhere", Members: []string{"UALICE"}})
	w.AddChannel(slacktwin.Channel{ID: "DALICE", IM: true, Members: []string{"UALICE", "UBOT"}})
	base, err := w.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o := Options{
		BotToken:      w.Twin.Options().BotToken,
		SigningSecret: w.Twin.Options().SigningSecret,
		APIURL:        base + "/api/",
		Logger:        slog.New(slog.NewTextHandler(w.logs, nil)),
		HTTPClient:    &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{}},
	}
	t.Cleanup(o.HTTPClient.CloseIdleConnections)
	if s.socket {
		o.SigningSecret, o.AppToken = "", w.Twin.Options().AppToken
	}
	if s.options != nil {
		s.options(&o)
	}
	if w.a, err = New(o); err != nil {
		t.Fatal(err)
	}
	if !s.socket {
		w.serve()
	}
	if !s.idle {
		w.run()
		w.await("readiness", func() bool { return w.a.Ready() == nil })
	}
	return w
}

// serve mounts the routes and tells the twin.
func (w *world) serve() {
	mux := http.NewServeMux()
	for path, handler := range w.a.Routes() {
		mux.Handle(path, handler)
	}
	server := httptest.NewServer(mux)
	w.t.Cleanup(server.Close)
	w.Connect(slacktwin.Callbacks{
		Events: server.URL + "/slack/events", Interactivity: server.URL + "/slack/interactivity", Commands: server.URL + "/slack/commands",
	})
}

func (w *world) run() {
	ctx, cancel := context.WithCancel(w.t.Context())
	w.stop = cancel
	w.ended = make(chan error, 1)
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		w.ended <- w.a.Run(ctx, w.inbox)
	}()
	w.t.Cleanup(func() {
		cancel()
		<-finished
	})
}

// await polls: what it waits for happens in another process as far as the test is concerned.
func (w *world) await(what string, done func() bool) {
	w.t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for !done() {
		if time.Now().After(deadline) {
			w.t.Fatalf("waited in vain for %s; ready: %v; logs:\n%s", what, w.a.Ready(), w.logs)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func (w *world) idle() {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 10*time.Second)
	defer cancel()
	if err := w.Idle(ctx); err != nil {
		w.t.Fatal(err)
	}
}

// say says something and waits until it has been delivered.
func (w *world) say(user, channel, thread, text string, files ...slacktwin.Upload) (ts string) {
	w.t.Helper()
	ts, err := w.Say(user, channel, thread, text, files...)
	if err != nil {
		w.t.Fatalf("say: %v", err)
	}
	w.idle()
	return ts
}

// post posts text and returns the message.
func (w *world) post(to platforms.Conversation, mark, text string) platforms.MessageRef {
	w.t.Helper()
	ref, err := w.a.Post(w.t.Context(), to, mark, partOf(text))
	if err != nil {
		w.t.Fatalf("post: %v", err)
	}
	return ref
}

func partOf(text string) platforms.Part {
	p, err := json.Marshal(map[string]string{"text": text})
	if err != nil {
		panic(err)
	}
	return p
}

// cardOf is a part with buttons.
func cardOf(text string, buttons ...string) platforms.Part {
	var elements []any
	for _, b := range buttons {
		elements = append(elements, map[string]any{
			"type": "button", "action_id": b, "value": "value of " + b, "text": map[string]any{"type": "plain_text", "text": b},
		})
	}
	p, err := json.Marshal(map[string]any{"text": text, "blocks": []any{map[string]any{"type": "actions", "elements": elements}}})
	if err != nil {
		panic(err)
	}
	return p
}

// thread is the conversation of a thread in #general.
func thread(ts string) platforms.Conversation { return platforms.Conversation("T0TWIN/CGENERAL/" + ts) }

// taken reads what is in the inbox.
func (w *world) taken() []platforms.Inbound {
	w.t.Helper()
	var all []platforms.Inbound
	for _, d := range w.inbox.all() {
		in, err := w.a.Read(d.Raw)
		if err != nil {
			w.t.Fatalf("read: %v", err)
		}
		all = append(all, in)
	}
	return all
}

// failure is what to do about err, or "" without one.
func failure(err error) string {
	if err == nil {
		return ""
	}
	if _, ok := errors.AsType[*platforms.Error](err); !ok {
		return fmt.Sprintf("%T", err)
	}
	return string(platforms.FailureOf(err)) + " " + codeOf(err)
}

// only returns the single delivery that was taken.
func only[T platforms.Inbound](w *world) T {
	w.t.Helper()
	got := w.taken()
	if len(got) != 1 {
		w.t.Fatalf("got %d deliveries, want one: %+v", len(got), got)
	}
	in, ok := got[0].(T)
	if !ok {
		w.t.Fatalf("got a %T, want a %T", got[0], in)
	}
	return in
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

func (i *inbox) attempts() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.tried
}

func contextFor(t *testing.T, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Context(), d)
}

func mustParse(t *testing.T, s string) *url.URL {
	t.Helper()
	u, err := url.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return u
}
