package slack

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"

	"github.com/parley-chat/parley/platforms"
)

// checkReading holds what every reading promises.
func checkReading(t *testing.T, k kind, body []byte) {
	e := envelope{Kind: k, Self: self, Body: body}
	r := interpret(e)
	if r.in == nil {
		t.Fatal("nothing was read")
	}
	if _, ok := r.isIgnored(); !ok && len(r.keys) == 0 {
		t.Errorf("%T has no key", r.in)
	}
	for _, k := range r.keys {
		if k == "" {
			t.Errorf("%T has an empty key", r.in)
		}
	}
	if m, ok := r.in.(platforms.Message); ok && (m.Ref == "" || m.Conversation == "" || m.From.ID == "" || m.Conversation != r.conversation) {
		t.Errorf("a message without a place: %+v", m)
	}
	if !json.Valid(body) {
		return
	}
	raw, err := e.wrap()
	if err != nil {
		t.Fatalf("wrap: %v", err)
	}
	in, err := (&Adapter{}).Read(raw)
	if err != nil {
		t.Fatalf("read: %v", err)
	}
	_, was := r.isIgnored()
	if _, is := in.(platforms.Ignored); was != is {
		t.Errorf("taken as %T, read as %T", r.in, in)
	}
}

func FuzzReadEvent(f *testing.F) {
	for _, event := range []string{
		`{"type":"message","channel":"D1","channel_type":"im","user":"U1","ts":"1.0","text":"<@UBOT> &lt;a|b&gt; <http://x|y>","files":[{"id":"F1"}]}`,
		`{"type":"message","subtype":"message_changed","channel":"C1","message":{"user":"U1","ts":"2.0","thread_ts":"1.0","text":"y"},"previous_message":{"text":"x"}}`,
		`{"type":"message","subtype":"message_deleted","channel":"C1","deleted_ts":"2.0","previous_message":{"user":"U1"}}`,
		`{"type":"agent_session_stopped","channel":"C1","thread_ts":"1.0","user":"U1"}`,
		`{"type":"app_mention","channel":"C1","user":"U1","ts":"1.0","text":"deny x y"}`,
	} {
		f.Add([]byte(eventBody(event)))
	}
	f.Fuzz(func(t *testing.T, body []byte) { checkReading(t, kindEvent, body) })
}

func FuzzReadInteraction(f *testing.F) {
	f.Add([]byte(`{"type":"block_actions","user":{"id":"U1"},"channel":{"id":"C1"},"message":{"ts":"2.0"},"actions":[{"action_id":"a","type":"button"}]}`))
	f.Add([]byte(`{"type":"view_submission","user":{"id":"U1"},"view":{"callback_id":"parley_modal","private_metadata":"{\"action\":\"deny\"}","state":{"values":{"text":{"text":{"value":"x"}}}}}}`))
	f.Fuzz(func(t *testing.T, body []byte) { checkReading(t, kindInteractive, body) })
}

func FuzzReadCommand(f *testing.F) {
	f.Add([]byte(`{"command":"/reset","user_id":"U1","channel_id":"D1","trigger_id":"t1","text":"<x>"}`))
	f.Fuzz(func(t *testing.T, body []byte) { checkReading(t, kindCommand, body) })
}

func FuzzReadEnvelope(f *testing.F) {
	f.Add([]byte(`{"v":1,"kind":"event","self":{"team":"T1","user":"UBOT"},"body":` + eventBody(`{"type":"message"}`) + `}`))
	f.Add([]byte(`{"v":1,"kind":"command","body":{"command":"/x","user_id":"U"}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		in, err := (&Adapter{}).Read(raw)
		if (in == nil) == (err == nil) {
			t.Errorf("got %v and %v", in, err)
		}
	})
}

func FuzzCommonMark(f *testing.F) {
	for _, s := range []string{"<@UBOT> <http://a|b> &lt;", "<<>>|<!date^1^x|y>", "< <@UBOT|", "<!subteam^S1>"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		text, mentioned := commonMark(s, "UBOT")
		if strings.Contains(s, "<@UBOT>") && !strings.Contains(strings.SplitN(s, "<@UBOT>", 2)[0], "<") && !mentioned {
			t.Errorf("%q: the mention was not seen", s)
		}
		if len(text) > 4*len(s)+16 {
			t.Errorf("%q grew to %q", s, text)
		}
	})
}

// FuzzHTTP sends signed bodies to every route: nothing panics, and nothing is acknowledged unless it was kept or is of no
// interest.
func FuzzHTTP(f *testing.F) {
	f.Add("/slack/events", []byte(eventBody(`{"type":"message","channel":"D1","user":"U1","ts":"1.0"}`)), true)
	f.Add("/slack/events", []byte(`{"type":"url_verification","challenge":"x"}`), true)
	f.Add("/slack/interactivity", []byte("payload="+url.QueryEscape(`{"type":"block_actions"}`)), true)
	f.Add("/slack/commands", []byte("command=%2Freset&user_id=U1"), true)
	f.Add("/slack/commands", []byte("ssl_check=1"), false)
	a, err := New(Options{BotToken: "xoxb", SigningSecret: "secret"})
	if err != nil {
		f.Fatal(err)
	}
	box := &inbox{}
	a.self.Store(&self)
	a.gate.open(box, self)
	f.Fuzz(func(t *testing.T, path string, body []byte, signed bool) {
		handler, ok := a.Routes()[path]
		if !ok {
			return
		}
		r := httptest.NewRequest(http.MethodPost, path, bytes.NewReader(body))
		if signed {
			sign(r.Header, "secret", body)
		}
		rec := httptest.NewRecorder()
		before := box.attempts()
		handler.ServeHTTP(rec, r)
		taken := box.attempts() > before
		switch rec.Code {
		case http.StatusOK:
			if !signed {
				t.Error("an unsigned request was acknowledged")
			}
		case http.StatusUnauthorized, http.StatusBadRequest:
			if taken {
				t.Errorf("taken and answered %d", rec.Code)
			}
		default:
			t.Errorf("answered %d", rec.Code)
		}
	})
}

func sign(h http.Header, secret string, body []byte) {
	at := strconv.FormatInt(time.Now().Unix(), 10)
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte("v0:" + at + ":"))
	mac.Write(body)
	h.Set("X-Slack-Request-Timestamp", at)
	h.Set("X-Slack-Signature", "v0="+hex.EncodeToString(mac.Sum(nil)))
}

// FuzzFrame hands frames to the receiver: nothing panics, and every envelope with an id is acknowledged or refused by the
// inbox.
func FuzzFrame(f *testing.F) {
	f.Add([]byte(`{"type":"events_api","envelope_id":"1","payload":{"type":"event_callback"}}`))
	f.Add([]byte(`{"type":"disconnect","reason":"warning"}`))
	f.Add([]byte(`{"type":"hello","payload":7}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		l := newLine(t)
		l.r.queues = make([]chan arrival, committers)
		for i := range l.r.queues {
			l.r.queues[i] = make(chan arrival, 1)
		}
		s := &socket{hello: make(chan struct{}), told: make(chan why, 1)}
		var fr frame
		if err := decode(data, &fr); err != nil {
			return
		}
		if !l.r.handle(t.Context(), s, fr) {
			t.Error("the reading ended")
		}
		queuedNow := 0
		for _, q := range l.r.queues {
			queuedNow += len(q)
		}
		if about := fr.Type == "hello" || fr.Type == "disconnect"; about == (queuedNow == 1) {
			t.Errorf("type %q: %d queued", fr.Type, queuedNow)
		}
	})
}
