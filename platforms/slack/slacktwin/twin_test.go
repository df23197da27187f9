package slacktwin

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/slack-go/slack"
)

// world is a twin with a few people, a client of it, and a bot that listens.
type world struct {
	*Twin
	t     *testing.T
	api   *slack.Client
	bot   *listener
	clock *Clock
}

// newWorld makes a workspace with alice and bob in #general (with the bot), #quiet (without it) and a direct message of
// alice, on a clock that stands.
func newWorld(t *testing.T, change func(*Options)) *world {
	t.Helper()
	w := &world{t: t, clock: NewClock(time.Date(2026, 11, 3, 12, 0, 0, 0, time.UTC))}
	o := Options{Agent: true, Now: w.clock.Now, After: w.clock.After}
	if change != nil {
		change(&o)
	}
	w.Twin = New(o)
	t.Cleanup(func() {
		if err := w.Twin.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	w.AddUser(User{ID: "UALICE", Name: "Alice"})
	w.AddUser(User{ID: "UBOB", Name: "Bob"})
	w.AddChannel(Channel{ID: "CGENERAL", Name: "general", Members: []string{"UALICE", "UBOB", "UBOT"}})
	w.AddChannel(Channel{ID: "CQUIET", Name: "quiet", Members: []string{"UALICE"}})
	w.AddChannel(Channel{ID: "GSECRET", Name: "secret", Private: true, Members: []string{"UALICE"}})
	w.AddChannel(Channel{ID: "DALICE", IM: true, Members: []string{"UALICE", "UBOT"}})
	base, err := w.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w.api = slack.New("xoxb-twin", slack.OptionAPIURL(base+"/api/"), slack.OptionAppLevelToken("xapp-twin"),
		slack.OptionHTTPClient(&http.Client{Timeout: 10 * time.Second}))
	w.bot = newListener(t, "twin-signing-secret")
	return w
}

// listen connects the bot over HTTP. What was said before has been tried in vain by then.
func (w *world) listen() {
	w.t.Helper()
	w.idle()
	w.Connect(Callbacks{
		Events: w.bot.URL + "/events", Interactivity: w.bot.URL + "/interactivity", Commands: w.bot.URL + "/commands",
	})
}

func (w *world) idle() {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 10*time.Second)
	defer cancel()
	if err := w.Idle(ctx); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) say(user, channel, thread, text string, files ...Upload) string {
	w.t.Helper()
	ts, err := w.Say(user, channel, thread, text, files...)
	if err != nil {
		w.t.Fatalf("Say: %v", err)
	}
	return ts
}

func (w *world) post(channel string, options ...slack.MsgOption) string {
	w.t.Helper()
	_, ts, err := w.api.PostMessageContext(w.t.Context(), channel, options...)
	if err != nil {
		w.t.Fatalf("chat.postMessage: %v", err)
	}
	return ts
}

// received is one request at the bot.
type received struct {
	Path    string
	Header  http.Header
	Body    string
	Payload map[string]any
}

func (r received) event() map[string]any { e, _ := r.Payload["event"].(map[string]any); return e }

// listener is a bot that writes down what it hears. respond, if set, answers instead of an empty 200.
type listener struct {
	*httptest.Server
	mu      sync.Mutex
	heard   []received
	respond func(w http.ResponseWriter, r received)
}

func newListener(t testing.TB, secret string) *listener {
	l := &listener{}
	l.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		if got, want := r.Header.Get("X-Slack-Signature"), signature(secret, r.Header, body); got != want {
			t.Errorf("signature: got %q, want %q", got, want)
		}
		got := received{Path: r.URL.Path, Header: r.Header, Body: string(body), Payload: payloadOf(t, r, body)}
		l.mu.Lock()
		l.heard = append(l.heard, got)
		respond := l.respond
		l.mu.Unlock()
		if respond != nil {
			respond(w, got)
		}
	}))
	t.Cleanup(l.Close)
	return l
}

func signature(secret string, h http.Header, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(mac, "v0:%s:%s", h.Get("X-Slack-Request-Timestamp"), body)
	return fmt.Sprintf("v0=%x", mac.Sum(nil))
}

func payloadOf(t testing.TB, r *http.Request, body []byte) map[string]any {
	if r.Header.Get("Content-Type") != "application/json" {
		form, err := url.ParseQuery(string(body))
		if err != nil {
			t.Errorf("form: %v", err)
		}
		if !form.Has("payload") {
			return nil
		}
		body = []byte(form.Get("payload"))
	}
	var payload map[string]any
	if err := json.Unmarshal(body, &payload); err != nil {
		t.Errorf("payload: %v", err)
	}
	return payload
}

func (l *listener) answer(f func(w http.ResponseWriter, r received)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.respond = f
}

func (l *listener) all() []received {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.heard)
}

// events returns what was heard of a type of event.
func (l *listener) events(typ string) []received {
	return slices.DeleteFunc(l.all(), func(r received) bool { return r.event()["type"] != typ })
}

// call makes a raw Web API call and returns the status, the header and the decoded answer.
func (w *world) call(method, contentType, token, body string) (int, http.Header, map[string]any) {
	w.t.Helper()
	request, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, w.URL()+"/api/"+method,
		bytes.NewReader([]byte(body)))
	if err != nil {
		w.t.Fatal(err)
	}
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		w.t.Fatalf("%s: %v", method, err)
	}
	defer response.Body.Close()
	var answer map[string]any
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	_ = json.Unmarshal(raw, &answer) // some answers are no JSON, and that is what is tested
	return response.StatusCode, response.Header, answer
}

func (w *world) json(method string, arguments map[string]any) map[string]any {
	w.t.Helper()
	_, _, answer := w.call(method, "application/json; charset=utf-8", "xoxb-twin", string(encode(arguments)))
	return answer
}

func text(s string) slack.MsgOption { return slack.MsgOptionText(s, false) }

func code(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
