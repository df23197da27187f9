package slack

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/parley-chat/parley/platforms"
	"github.com/parley-chat/parley/platforms/slack/slacktwin"
)

// transports runs a test over HTTP and over Socket Mode.
func transports(t *testing.T, s setup, test func(t *testing.T, w *world)) {
	for _, socket := range []bool{false, true} {
		name := map[bool]string{false: "http", true: "socket"}[socket]
		t.Run(name, func(t *testing.T) {
			s.socket = socket
			test(t, newWorld(t, s))
		})
	}
}

func TestAMentionArrivesOnceThoughSlackSendsTwoEvents(t *testing.T) {
	transports(t, setup{}, func(t *testing.T, w *world) {
		ts := w.say("UALICE", "CGENERAL", "", "<@UBOT> what is &lt;up&gt;?")
		got := only[platforms.Message](w)
		want := platforms.Message{
			Conversation: platforms.Conversation("T0TWIN/CGENERAL/" + ts),
			Ref:          platforms.MessageRef("CGENERAL/" + ts),
			From:         platforms.User{ID: "T0TWIN/UALICE"},
			Addressed:    platforms.Mentioned,
			Text:         "what is <up>?",
			At:           timeOf(ts),
		}
		if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
			t.Errorf("got %+v\nwant %+v", got, want)
		}
		if n := w.inbox.attempts(); n != 2 {
			t.Errorf("got %d deliveries at the inbox, want the app_mention and the message", n)
		}
		for _, d := range w.Deliveries() {
			if !d.Acked {
				t.Errorf("%s was not acknowledged: %s", d.Type, d.Error)
			}
		}
	})
}

func TestWhatIsSaidInAThreadIsAmbientAndInDirectMessagesDirect(t *testing.T) {
	transports(t, setup{}, func(t *testing.T, w *world) {
		root := w.say("UALICE", "CGENERAL", "", "nothing for the bot")
		w.say("UEVE", "CGENERAL", root, "a reply")
		w.say("UALICE", "DALICE", "", "hello")
		got := w.taken()
		if len(got) != 2 {
			t.Fatalf("got %+v, want the reply and the direct message", got)
		}
		reply, _ := got[0].(platforms.Message)
		if reply.Addressed != platforms.Ambient || reply.Conversation != thread(root) || reply.From.ID != "T0OTHER/UEVE" || !reply.From.External {
			t.Errorf("the reply: got %+v", reply)
		}
		direct, _ := got[1].(platforms.Message)
		if direct.Addressed != platforms.Direct || direct.Conversation != "T0TWIN/DALICE" || direct.From.External {
			t.Errorf("the direct message: got %+v", direct)
		}
	})
}

func TestOtherBotsAndOurselvesAreAcknowledgedAndNotTaken(t *testing.T) {
	transports(t, setup{}, func(t *testing.T, w *world) {
		root := w.say("UALICE", "CGENERAL", "", "hi")
		w.post(thread(root), "m1", "my own words")
		w.say("UROBOT", "CGENERAL", root, "<@UBOT> loop with me")
		w.idle()
		if got := w.taken(); len(got) != 0 {
			t.Errorf("got %+v, want nothing", got)
		}
		counts := w.a.Counts()
		if counts["ignored own"] == 0 || counts["ignored bot"] == 0 {
			t.Errorf("counts: got %v, want own and bot", counts)
		}
		for _, d := range w.Deliveries() {
			if !d.Acked {
				t.Errorf("%s was not acknowledged: %s", d.Type, d.Error)
			}
		}
	})
}

func TestEditsAndDeletionsAreUrgentAndHaveTheirOwnKeys(t *testing.T) {
	transports(t, setup{}, func(t *testing.T, w *world) {
		ts := w.say("UALICE", "CGENERAL", "", "<@UBOT> deploy")
		if err := w.EditMessage("UALICE", "CGENERAL", ts, "<@UBOT> do not deploy"); err != nil {
			t.Fatal(err)
		}
		w.idle()
		if err := w.DeleteMessage("UALICE", "CGENERAL", ts); err != nil {
			t.Fatal(err)
		}
		w.idle()
		var edited *platforms.Edited
		var deleted *platforms.Deleted
		for i, in := range w.taken() {
			d := w.inbox.all()[i]
			switch in := in.(type) {
			case platforms.Edited:
				edited = &in
			case platforms.Deleted:
				deleted = &in
			default:
				continue
			}
			if !d.Urgent {
				t.Errorf("%T is not urgent", in)
			}
		}
		if edited == nil || edited.Text != "do not deploy" || edited.Ref != messageRef("CGENERAL", ts) || edited.Conversation != thread(ts) {
			t.Errorf("edited: got %+v", edited)
		}
		if deleted == nil || deleted.Ref != messageRef("CGENERAL", ts) || deleted.Conversation != thread(ts) {
			t.Errorf("deleted: got %+v", deleted)
		}
	})
}

func TestAClickAModalAndItsSubmission(t *testing.T) {
	transports(t, setup{}, func(t *testing.T, w *world) {
		root := w.say("UALICE", "CGENERAL", "", "a question")
		ref, err := w.a.Post(t.Context(), thread(root), "m1", cardOf("May I?", "approve", "deny_with_reason"))
		if err != nil {
			t.Fatal(err)
		}
		channel, ts, _ := parseRef(ref)
		if err := w.Click(t.Context(), "UBOB", channel, ts, "deny_with_reason"); err != nil {
			t.Fatal(err)
		}
		click := only[platforms.Click](w)
		if click.Conversation != thread(root) || click.On != ref || click.Action != "deny_with_reason" ||
			click.Value != "value of deny_with_reason" || click.By.ID != "T0TWIN/UBOB" || !w.inbox.all()[0].Urgent {
			t.Errorf("click: got %+v", click)
		}
		modal := platforms.Modal{Title: "Deny", Label: "Why?", Submit: "Deny", Action: "deny", Value: "r1", Optional: true}
		if err := w.a.OpenModal(t.Context(), click.Reply, modal); err != nil {
			t.Fatalf("open the modal: %v", err)
		}
		views := w.Views("UBOB")
		if len(views) != 1 || views[0].Title != "Deny" {
			t.Fatalf("views: got %+v", views)
		}
		values := map[string]map[string]string{"text": {"text": "too late in the day"}}
		if err := w.SubmitView(t.Context(), "UBOB", views[0].ID, values); err != nil {
			t.Fatalf("submit: %v", err)
		}
		sub, ok := w.taken()[1].(platforms.Submission)
		if !ok || sub.Action != "deny" || sub.Value != "r1" || sub.Text != "too late in the day" || sub.Conversation != thread(root) ||
			sub.By.ID != "T0TWIN/UBOB" {
			t.Errorf("submission: got %+v", w.taken()[1])
		}
		if err := w.a.Notify(t.Context(), sub.Reply, "noted"); err != nil {
			t.Fatalf("notify: %v", err)
		}
		if got := w.Ephemerals("UBOB"); len(got) != 1 || got[0].Text != "noted" || got[0].ThreadTS != root {
			t.Errorf("ephemeral: got %+v", got)
		}
	})
}

func TestASlashCommandArrivesAndIsAnsweredWhereTheBotIsNoMember(t *testing.T) {
	transports(t, setup{}, func(t *testing.T, w *world) {
		if err := w.Command(t.Context(), "UALICE", "CPRIVATE", "/approvals", "mine"); err != nil {
			t.Fatal(err)
		}
		got := only[platforms.Command](w)
		if got.Name != "approvals" || got.Args != "mine" || got.By.ID != "T0TWIN/UALICE" || got.Conversation != "" {
			t.Errorf("got %+v", got)
		}
		if err := w.a.Notify(t.Context(), got.Reply, "none"); err != nil {
			t.Fatalf("notify: %v", err)
		}
		if e := w.Ephemerals("UALICE"); len(e) != 1 || e[0].Text != "none" {
			t.Errorf("answer: got %+v", e)
		}
	})
}

func TestTheStopButtonOfAnAgentSession(t *testing.T) {
	transports(t, setup{twin: func(o *slacktwin.Options) { o.Agent = true }}, func(t *testing.T, w *world) {
		ts := w.say("UALICE", "CGENERAL", "", "hello")
		if err := w.a.SetStatus(t.Context(), thread(ts), messageRef("CGENERAL", ts), platforms.Working); err != nil {
			t.Fatal(err)
		}
		if err := w.StopSession("UALICE", "CGENERAL", ts); err != nil {
			t.Fatal(err)
		}
		w.idle()
		got := only[platforms.Stop](w)
		if got.Conversation != thread(ts) || got.By.ID != "T0TWIN/UALICE" || !w.inbox.all()[0].Urgent {
			t.Errorf("got %+v", got)
		}
	})
}

func TestWhatCouldNotBeKeptIsNotAcknowledgedAndComesAgain(t *testing.T) {
	w := newWorld(t, setup{})
	w.inbox.refuse = 1
	w.say("UALICE", "DALICE", "", "hello")
	w.await("the retry", func() bool { return len(w.inbox.all()) == 1 })
	w.idle()
	first := w.Deliveries()[0]
	if first.Acked || first.Status != http.StatusServiceUnavailable {
		t.Errorf("the first attempt: got %+v, want 503", first)
	}
}

func TestEveryFaultOfDeliveryIsSurvived(t *testing.T) {
	faults := map[string]slacktwin.Fault{
		"a duplicate":              {Event: "message", Duplicate: 2},
		"a lost acknowledgement":   {Event: "message", LoseAck: true},
		"another order":            {Event: "message", Hold: true},
		"a late acknowledgement":   {Event: "message", Delay: 20 * time.Millisecond, Late: true},
		"all of them acknowledged": {Event: "app_mention"},
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			transports(t, setup{}, func(t *testing.T, w *world) {
				w.Fault(fault)
				for _, text := range []string{"one", "two", "three"} {
					if _, err := w.Say("UALICE", "DALICE", "", text); err != nil {
						t.Fatal(err)
					}
				}
				w.await("three messages", func() bool { return len(w.inbox.all()) == 3 })
				w.idle()
				texts := map[string]int{}
				for _, in := range w.taken() {
					texts[in.(platforms.Message).Text]++
				}
				for _, text := range []string{"one", "two", "three"} {
					if texts[text] != 1 {
						t.Errorf("%q: got %d, want 1", text, texts[text])
					}
				}
			})
		})
	}
}

// signedRequest is a request as Slack signs it.
func (w *world) signedRequest(method, path, body string) *http.Request {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	w.Sign(r.Header, []byte(body))
	return r
}

func (w *world) answer(r *http.Request) (status int, body string) {
	w.t.Helper()
	rec := httptest.NewRecorder()
	handler, ok := w.a.Routes()[r.URL.Path]
	if !ok {
		w.t.Fatalf("no route %s", r.URL.Path)
	}
	handler.ServeHTTP(rec, r)
	b, err := io.ReadAll(rec.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return rec.Code, string(b)
}

func TestOnlyWhatSlackSignedIsHeard(t *testing.T) {
	w := newWorld(t, setup{})
	event := `{"type":"event_callback","event_id":"E1","event":{"type":"message","channel":"D1","channel_type":"im","user":"U1","ts":"1.0","text":"x"}}`
	old := strconv.FormatInt(time.Now().Add(-6*time.Minute).Unix(), 10)
	tests := map[string]struct {
		change func(*http.Request)
		want   int
	}{
		"a good signature":       {func(*http.Request) {}, 200},
		"no signature":           {func(r *http.Request) { r.Header.Del("X-Slack-Signature") }, 401},
		"no time":                {func(r *http.Request) { r.Header.Del("X-Slack-Request-Timestamp") }, 401},
		"another signature":      {func(r *http.Request) { r.Header.Set("X-Slack-Signature", "v0="+strings.Repeat("0", 64)) }, 401},
		"a signature of rubbish": {func(r *http.Request) { r.Header.Set("X-Slack-Signature", "rubbish") }, 401},
		"another time":           {func(r *http.Request) { r.Header.Set("X-Slack-Request-Timestamp", old) }, 401},
		"another body":           {func(r *http.Request) { r.Body = io.NopCloser(strings.NewReader(event + " ")) }, 401},
		"a body beyond 1 MiB": {func(r *http.Request) {
			r.Body = io.NopCloser(bytes.NewReader(make([]byte, maxBody+1)))
		}, 413},
		"a retry": {func(r *http.Request) { r.Header.Set("X-Slack-Retry-Num", "3") }, 200},
		"GET":     {func(r *http.Request) { r.Method = http.MethodGet }, 405},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			before := w.inbox.attempts()
			r := w.signedRequest(http.MethodPost, "/slack/events", event)
			tt.change(r)
			status, body := w.answer(r)
			if status != tt.want || body != "" {
				t.Errorf("got %d %q, want %d and nothing", status, body, tt.want)
			}
			if taken := w.inbox.attempts() > before; taken != (tt.want == 200) {
				t.Errorf("taken: got %v", taken)
			}
		})
	}
}

func TestWhatSlackAsksOfARequestURL(t *testing.T) {
	w := newWorld(t, setup{idle: true})
	tests := map[string]struct {
		path, body string
		want       int
		answer     string
	}{
		"url_verification before we know who we are": {"/slack/events", `{"type":"url_verification","challenge":"abc"}`, 200, "abc"},
		"app_rate_limited":                           {"/slack/events", `{"type":"app_rate_limited","minute_rate_limited":1}`, 200, ""},
		"an event before we know who we are":         {"/slack/events", `{"type":"event_callback","event":{}}`, 503, ""},
		"an event that is no JSON":                   {"/slack/events", `{`, 400, ""},
		"a click before we know who we are":          {"/slack/interactivity", `payload=%7B%7D`, 503, ""},
		"a click without a payload":                  {"/slack/interactivity", `x=1`, 400, ""},
		"ssl_check of interactivity":                 {"/slack/interactivity", `ssl_check=1`, 200, ""},
		"ssl_check of commands":                      {"/slack/commands", `ssl_check=1&token=x`, 200, ""},
		"a form that is none":                        {"/slack/commands", `%zz`, 400, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			status, body := w.answer(w.signedRequest(http.MethodPost, tt.path, tt.body))
			if status != tt.want || body != tt.answer {
				t.Errorf("got %d %q, want %d %q", status, body, tt.want, tt.answer)
			}
		})
	}
	t.Run("ssl_check by GET, which nobody signs", func(t *testing.T) {
		r := httptest.NewRequest(http.MethodGet, "/slack/commands?ssl_check=1", nil)
		if status, _ := w.answer(r); status != 200 {
			t.Errorf("got %d, want 200", status)
		}
	})
}

func TestTheTwinVerifiesTheURL(t *testing.T) {
	w := newWorld(t, setup{})
	if err := w.VerifyURL(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestAfterRunHasEndedNothingIsAcknowledged(t *testing.T) {
	w := newWorld(t, setup{})
	w.stop()
	if err := <-w.ended; err != nil {
		t.Fatalf("run: %v", err)
	}
	if err := w.a.Ready(); err == nil {
		t.Error("still ready")
	}
	status, _ := w.answer(w.signedRequest(http.MethodPost, "/slack/events",
		`{"type":"event_callback","event":{"type":"message","channel":"D1","channel_type":"im","user":"U1","ts":"1.0"}}`))
	if status != http.StatusServiceUnavailable {
		t.Errorf("got %d, want 503", status)
	}
}
