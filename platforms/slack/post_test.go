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
	"strings"
	"testing"
	"time"

	"github.com/parley-chat/parley/platforms"
	"github.com/parley-chat/parley/platforms/slack/slacktwin"
)

func TestAPostIsAReplyWithAMarkThatCanBeFound(t *testing.T) {
	w := newWorld(t, setup{})
	root := w.say("UALICE", "CGENERAL", "", "hello")
	for i := range 5 {
		w.post(thread(root), fmt.Sprint("mark", i), fmt.Sprint("answer ", i, " https://example.com"))
	}
	got := w.Thread("CGENERAL", root)
	if len(got) != 6 || got[1].Text != "answer 0 https://example.com" || got[1].Blocks != nil {
		t.Fatalf("thread: got %+v", got)
	}
	for i, m := range got[1:] {
		ref, err := w.a.Find(t.Context(), thread(root), fmt.Sprint("mark", i))
		if err != nil || ref != messageRef("CGENERAL", m.TS) {
			t.Errorf("find %d: got %q, %v, want %s", i, ref, err, m.TS)
		}
	}
	if ref, err := w.a.Find(t.Context(), thread(root), "mark9"); ref != "" || err != nil {
		t.Errorf("find nothing: got %q, %v", ref, err)
	}
	for _, c := range w.Calls() {
		if c.Method == "chat.postMessage" && (c.Args["unfurl_links"] != "false" || c.Args["unfurl_media"] != "false" || c.Args["blocks"] != "") {
			t.Errorf("arguments: got %v", c.Args)
		}
	}
}

func TestAMarkIsFoundInAPlainDirectMessage(t *testing.T) {
	w := newWorld(t, setup{})
	w.say("UALICE", "DALICE", "", "hello")
	want := w.post("T0TWIN/DALICE", "m1", "hi")
	got, err := w.a.Find(t.Context(), "T0TWIN/DALICE", "m1")
	if got != want || err != nil {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

func TestAMarkIsFoundBehindManyPagesAndAForgedOneIsNot(t *testing.T) {
	pages := 0
	api := http.NewServeMux()
	api.HandleFunc("/conversations.replies", func(rw http.ResponseWriter, r *http.Request) {
		pages++
		if r.FormValue("cursor") == "" {
			fmt.Fprint(rw, `{"ok":true,"messages":[
				{"ts":"1.0","user":"UMALLORY","metadata":{"event_type":"parley_delivery","event_payload":{"mark":"m1"}}},
				{"ts":"2.0","user":7,"files":"none","metadata":{"event_type":"x","event_payload":[]}}
			],"response_metadata":{"next_cursor":"c1"}}`)
			return
		}
		fmt.Fprint(rw, `{"ok":true,"messages":[null,{"ts":"3.0","user":"UBOT","metadata":
			{"event_type":"parley_delivery","event_payload":{"mark":"m1"}}}]}`)
	})
	a := adapterOf(t, api)
	a.self.Store(&identity{Team: "T", User: "UBOT", BotID: "B"})
	got, err := a.Find(t.Context(), "T/C/1.0", "m1")
	if got != "C/3.0" || err != nil || pages != 2 {
		t.Errorf("got %q, %v after %d pages, want C/3.0 after 2", got, err, pages)
	}
}

func TestASearchWithoutEndIsNoProofOfAbsence(t *testing.T) {
	api := http.NewServeMux()
	api.HandleFunc("/conversations.history", func(rw http.ResponseWriter, r *http.Request) {
		fmt.Fprint(rw, `{"ok":true,"messages":[],"response_metadata":{"next_cursor":"more"}}`)
	})
	_, err := adapterOf(t, api).Find(t.Context(), "T/D1", "m1")
	if got := failure(err); got != "unknown_outcome too_many_messages" {
		t.Errorf("got %s", got)
	}
}

// adapterOf is an adapter whose Web API is h.
func adapterOf(t *testing.T, h http.Handler) *Adapter {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	a, err := New(Options{BotToken: "xoxb-secret", SigningSecret: "s", APIURL: server.URL, HTTPClient: server.Client()})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestAnEditReplacesTextAndBlocks(t *testing.T) {
	w := newWorld(t, setup{})
	root := w.say("UALICE", "CGENERAL", "", "hello")
	ref, err := w.a.Post(t.Context(), thread(root), "m1", cardOf("May I?", "approve"))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the same edit again is harmless
		if err := w.a.Edit(t.Context(), ref, partOf("approved by Bob")); err != nil {
			t.Fatal(err)
		}
	}
	m := w.Thread("CGENERAL", root)[1]
	if m.Text != "approved by Bob" || m.Blocks != nil || !strings.Contains(string(m.Metadata), "m1") {
		t.Errorf("got %+v, want the new text, no blocks, and the mark kept", m)
	}
}

func TestAReplyWhoseThreadIsGoneIsTakenBack(t *testing.T) {
	deleted := ""
	api := http.NewServeMux()
	api.HandleFunc("/chat.postMessage", func(rw http.ResponseWriter, r *http.Request) {
		fmt.Fprint(rw, `{"ok":true,"channel":"C1","ts":"9.0","message":{"ts":"9.0","text":"x"}}`)
	})
	api.HandleFunc("/chat.delete", func(rw http.ResponseWriter, r *http.Request) {
		deleted = r.FormValue("ts")
		fmt.Fprint(rw, `{"ok":true,"channel":"C1","ts":"9.0"}`)
	})
	ref, err := adapterOf(t, api).Post(t.Context(), "T/C1/1.0", "m", partOf("x"))
	if failure(err) != "refused thread_gone" || ref != "" || deleted != "9.0" {
		t.Errorf("got %q, %v, deleted %q", ref, err, deleted)
	}
}

func TestWhatAFailedPostCameToIsSaid(t *testing.T) {
	tests := map[string]struct {
		fault  slacktwin.Fault
		want   string
		after  time.Duration
		posted int
	}{
		"429 with Retry-After":         {slacktwin.Fault{Status: 429, Error: "ratelimited", RetryAfter: 7 * time.Second}, "slow_down ratelimited", 7 * time.Second, 0},
		"429 without Retry-After":      {slacktwin.Fault{Status: 429}, "slow_down http_429", slowDownFor, 0},
		"ratelimited with status 200":  {slacktwin.Fault{Error: "ratelimited"}, "slow_down ratelimited", slowDownFor, 0},
		"rate_limited with status 200": {slacktwin.Fault{Error: "rate_limited"}, "slow_down rate_limited", slowDownFor, 0},
		"503":                          {slacktwin.Fault{Status: 503}, "unknown_outcome http_503", 0, 0},
		"500 though it was done":       {slacktwin.Fault{Status: 500, Commit: true}, "unknown_outcome http_500", 0, 1},
		"a connection that broke":      {slacktwin.Fault{Drop: true}, "unknown_outcome ", 0, 0},
		"one that broke after it":      {slacktwin.Fault{Drop: true, Commit: true}, "unknown_outcome ", 0, 1},
		"internal_error though done":   {slacktwin.Fault{Error: "internal_error", Commit: true}, "unknown_outcome internal_error", 0, 1},
		"channel_not_found":            {slacktwin.Fault{Error: "channel_not_found"}, "refused channel_not_found", 0, 0},
		"an error nobody knows":        {slacktwin.Fault{Error: "new_in_2030"}, "refused new_in_2030", 0, 0},
		"restricted_action_read_only":  {slacktwin.Fault{Error: "restricted_action_read_only_channel"}, "refused restricted_action_read_only_channel", 0, 0},
		"msg_too_long":                 {slacktwin.Fault{Error: "msg_too_long"}, "malformed msg_too_long", 0, 0},
		"invalid_blocks":               {slacktwin.Fault{Error: "invalid_blocks"}, "malformed invalid_blocks", 0, 0},
		"missing_scope":                {slacktwin.Fault{Error: "missing_scope"}, "broken missing_scope", 0, 0},
		"token_revoked":                {slacktwin.Fault{Error: "token_revoked"}, "broken token_revoked", 0, 0},
		"404":                          {slacktwin.Fault{Status: 404}, "refused http_404", 0, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, setup{})
			root := w.say("UALICE", "CGENERAL", "", "hello")
			tt.fault.Method = "chat.postMessage"
			w.Fault(tt.fault)
			_, err := w.a.Post(t.Context(), thread(root), "m1", partOf("the secret text"))
			if got := failure(err); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if got := retryAfter(err); got != tt.after {
				t.Errorf("RetryAfter: got %v, want %v", got, tt.after)
			}
			if err != nil && (strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "xoxb")) {
				t.Errorf("the error tells too much: %v", err)
			}
			posts := 0
			for _, c := range w.Calls() {
				if c.Method == "chat.postMessage" {
					posts++
				}
			}
			if posts != 1 {
				t.Errorf("chat.postMessage was called %d times, want once: nothing is repeated blindly", posts)
			}
			if got := len(w.Thread("CGENERAL", root)) - 1; got != tt.posted {
				t.Errorf("posted: got %d, want %d", got, tt.posted)
			}
			ref, err := w.a.Find(t.Context(), thread(root), "m1")
			if err != nil || (ref != "") != (tt.posted > 0) {
				t.Errorf("find: got %q, %v", ref, err)
			}
		})
	}
}

func TestWhatCannotBeSentIsUnreachable(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	address := server.URL
	server.Close()
	a, err := New(Options{BotToken: "xoxb-secret", SigningSecret: "s", APIURL: address})
	if err != nil {
		t.Fatal(err)
	}
	_, err = a.Post(t.Context(), "T/C/1.0", "m", partOf("x"))
	if got := failure(err); got != "unreachable " {
		t.Errorf("nobody listens: got %q, %v", got, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = a.Post(ctx, "T/C/1.0", "m", partOf("x"))
	if got := failure(err); got != "unreachable " || !errors.Is(err, context.Canceled) {
		t.Errorf("a context that has ended: got %q, %v", got, err)
	}
}

func TestAnAnswerThatDoesNotComeInTimeIsUnknown(t *testing.T) {
	got := make(chan struct{})
	release := make(chan struct{})
	api := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		close(got)
		<-release
	})
	a := adapterOf(t, api)
	t.Cleanup(func() { close(release) })
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-got
		cancel()
	}()
	_, err := a.Post(ctx, "T/C/1.0", "m", partOf("x"))
	if f := failure(err); f != "unknown_outcome " {
		t.Errorf("got %q, %v", f, err)
	}
}

func TestAnOkThatNamesNoMessageIsUnknown(t *testing.T) {
	for _, body := range []string{`{"ok":true}`, `{}`, `<html>`, `{"ok":false}`, `null`, ``} {
		a := adapterOf(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { fmt.Fprint(rw, body) }))
		_, err := a.Post(t.Context(), "T/C/1.0", "m", partOf("x"))
		if f := platforms.FailureOf(err); err == nil || f != platforms.Unknown {
			t.Errorf("%s: got %v", body, err)
		}
	}
}

func TestPartsAndPlacesThatAreNone(t *testing.T) {
	a := adapterOf(t, http.NotFoundHandler())
	for _, to := range []platforms.Conversation{"", "T", "T//1", "T/C/1/2", "/C"} {
		if _, err := a.Post(t.Context(), to, "m", partOf("x")); failure(err) != "refused no_conversation" {
			t.Errorf("%q: got %v", to, err)
		}
	}
	for _, p := range []string{"", "{}", "[]", `{"text":7}`, "x"} {
		_, err := a.Post(t.Context(), "T/C/1", "m", platforms.Part(p))
		if platforms.FailureOf(err) != platforms.Malformed {
			t.Errorf("%q: got %v", p, err)
		}
	}
	for _, ref := range []platforms.MessageRef{"", "C", "/1", "C/"} {
		if err := a.Edit(t.Context(), ref, partOf("x")); failure(err) != "gone no_message" {
			t.Errorf("%q: got %v", ref, err)
		}
	}
}

func TestAnEditThatCannotBeIsGone(t *testing.T) {
	for _, code := range []string{"cant_update_message", "edit_window_closed", "message_not_found"} {
		w := newWorld(t, setup{})
		root := w.say("UALICE", "CGENERAL", "", "hello")
		ref := w.post(thread(root), "m", "x")
		w.Fault(slacktwin.Fault{Method: "chat.update", Error: code})
		if got := failure(w.a.Edit(t.Context(), ref, partOf("y"))); got != "gone "+code {
			t.Errorf("got %q", got)
		}
	}
}

func TestANoteFallsBackToTheResponseURL(t *testing.T) {
	w := newWorld(t, setup{})
	root := w.say("UALICE", "CGENERAL", "", "a question")
	ref, err := w.a.Post(t.Context(), thread(root), "m1", cardOf("May I?", "approve"))
	if err != nil {
		t.Fatal(err)
	}
	channel, ts, _ := parseRef(ref)
	if err := w.Click(t.Context(), "UBOB", channel, ts, "approve"); err != nil {
		t.Fatal(err)
	}
	to := only[platforms.Click](w).Reply
	for range 5 {
		w.Fault(slacktwin.Fault{Method: "chat.postEphemeral", Error: "user_not_in_channel"})
		if err := w.a.Notify(t.Context(), to, "you may not"); err != nil {
			t.Fatalf("notify: %v", err)
		}
	}
	got := w.Ephemerals("UBOB")
	if len(got) != 5 || got[0].Text != "you may not" || got[0].ThreadTS != root {
		t.Errorf("got %+v", got)
	}
	if m := w.Thread("CGENERAL", root)[1]; m.Blocks == nil {
		t.Error("the answer replaced the card")
	}
	w.Fault(slacktwin.Fault{Method: "chat.postEphemeral", Error: "user_not_in_channel"})
	err = w.a.Notify(t.Context(), to, "once too often")
	if got := failure(err); got != "refused http_404" || strings.Contains(err.Error(), "/response/") {
		t.Errorf("got %q, %v", got, err)
	}
	w.Fault(slacktwin.Fault{Method: "chat.postEphemeral", Status: 503})
	if got := failure(w.a.Notify(t.Context(), to, "x")); got != "unknown_outcome http_503" {
		t.Errorf("an uncertain note is not sent twice: got %q", got)
	}
}

func TestANoteGoesToSlackOnly(t *testing.T) {
	a := adapterOf(t, http.NotFoundHandler())
	to, _ := json.Marshal(reply{ResponseURL: "https://evil.example.com/x"})
	if got := failure(a.Notify(t.Context(), to, "x")); got != "refused foreign_response_url" {
		t.Errorf("got %q", got)
	}
	if got := failure(a.Notify(t.Context(), platforms.Reply("{}"), "x")); got != "refused no_response_url" {
		t.Errorf("got %q", got)
	}
}

func TestAModalBeyondSlacksLimitsIsMalformedAndALateOneGone(t *testing.T) {
	w := newWorld(t, setup{})
	good := platforms.Modal{Title: "Deny", Label: "Why?", Submit: "Deny", Action: "deny", Value: "r1"}
	to := reply{TriggerID: "1.2.3", Team: "T0TWIN", Channel: "CGENERAL", Thread: "1.0", User: "UBOB"}.pack()
	long := good
	long.Title = strings.Repeat("x", 25)
	if got := failure(w.a.OpenModal(t.Context(), to, long)); got != "malformed modal_too_long" {
		t.Errorf("a long title: got %q", got)
	}
	long = good
	long.Value = strings.Repeat("x", 3000)
	if got := failure(w.a.OpenModal(t.Context(), to, long)); got != "malformed modal_too_long" {
		t.Errorf("a long value: got %q", got)
	}
	if got := failure(w.a.OpenModal(t.Context(), platforms.Reply("{}"), good)); got != "refused no_trigger" {
		t.Errorf("no trigger: got %q", got)
	}
	for _, code := range []string{"expired_trigger_id", "exchanged_trigger_id", "trigger_expired", "trigger_exchanged"} {
		w.Fault(slacktwin.Fault{Method: "views.open", Error: code})
		if got := failure(w.a.OpenModal(t.Context(), to, good)); got != "gone "+code {
			t.Errorf("got %q", got)
		}
	}
}

func TestATokenThatStopsWorkingMakesUsNotReadyUntilItWorksAgain(t *testing.T) {
	w := newWorld(t, setup{})
	w.Fault(slacktwin.Fault{Method: "chat.postMessage", Error: "token_revoked"})
	_, _ = w.a.Post(t.Context(), "T0TWIN/DALICE", "", partOf("x"))
	if err := w.a.Ready(); err == nil || !strings.Contains(err.Error(), "revoked") {
		t.Errorf("got %v", err)
	}
	w.post("T0TWIN/DALICE", "", "y")
	if err := w.a.Ready(); err != nil {
		t.Errorf("got %v", err)
	}
	w.Fault(slacktwin.Fault{Method: "chat.postMessage", Error: "missing_scope"})
	_, _ = w.a.Post(t.Context(), "T0TWIN/DALICE", "", partOf("x"))
	if err := w.a.Ready(); err != nil {
		t.Errorf("a scope is not the token: got %v", err)
	}
}

func TestAWrongTokenEndsTheStartWithASentence(t *testing.T) {
	for _, socket := range []bool{false, true} {
		w := newWorld(t, setup{socket: socket, idle: true, options: func(o *Options) { o.BotToken = "xoxb-wrong" }})
		w.run()
		err := <-w.ended
		if err == nil || !strings.Contains(err.Error(), "the token is wrong") || strings.Contains(err.Error(), "xoxb-wrong") {
			t.Errorf("got %v", err)
		}
		if platforms.FailureOf(err) != platforms.Broken {
			t.Errorf("got %v", platforms.FailureOf(err))
		}
	}
}

func TestTheStartWaitsUntilSlackCanBeReached(t *testing.T) {
	w := newWorld(t, setup{idle: true})
	w.Fault(slacktwin.Fault{Method: "auth.test", Status: 503, Times: 2})
	w.run()
	w.await("trouble", func() bool { return strings.Contains(fmt.Sprint(w.a.Ready()), "503") })
	w.await("readiness", func() bool { return w.a.Ready() == nil })
}

func TestOptionsAreChecked(t *testing.T) {
	tests := map[string]struct {
		o    Options
		want string
	}{
		"nothing":               {Options{}, "bot token"},
		"no way to receive":     {Options{BotToken: "x"}, "signing secret"},
		"an address that isn't": {Options{BotToken: "x", AppToken: "y", APIURL: "slack.com/api"}, "address"},
		"enough":                {Options{BotToken: "x", AppToken: "y"}, ""},
	}
	for name, tt := range tests {
		_, err := New(tt.o)
		if got := fmt.Sprint(err); (err == nil) != (tt.want == "") || !strings.Contains(got, tt.want) && tt.want != "" {
			t.Errorf("%s: got %v, want %q", name, err, tt.want)
		}
	}
	a, err := New(Options{BotToken: "x", AppToken: "y"})
	if err != nil || a.base.String() != "https://slack.com/api/" || a.Routes() != nil {
		t.Errorf("defaults: got %v, %v", a.base, err)
	}
}

func TestMissingScopesAreToldAtTheStart(t *testing.T) {
	var logs bytes.Buffer
	a := adapterOf(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("X-OAuth-Scopes", "chat:write,app_mentions:read, im:history,mpim:history,groups:history,channels:history,commands")
		fmt.Fprint(rw, `{"ok":true,"team_id":"T","user_id":"U","bot_id":"B"}`)
	}))
	a.log = slog.New(slog.NewTextHandler(&logs, nil))
	if _, err := a.authTest(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(logs.String(), "[reactions:write files:read]") {
		t.Errorf("got %s", logs.String())
	}
}

func TestACardIsPressedAndChangesToItsOutcome(t *testing.T) {
	w := newWorld(t, setup{})
	root := w.say("UALICE", "CGENERAL", "", "<@UBOT> deploy")
	parts := w.a.Render(platforms.Content{Card: &platforms.Card{
		Title: "May I deploy?", Facts: []platforms.Fact{{Name: "target", Value: "<!channel> production"}},
		Buttons: []platforms.Button{
			{Label: "Approve", Action: "approve", Value: "r1", Style: platforms.Primary},
			{Label: "Deny", Action: "deny", Value: "r1", Confirm: "Really?"},
		},
	}})
	ref, err := w.a.Post(t.Context(), thread(root), "m1", parts[len(parts)-1])
	if err != nil {
		t.Fatal(err)
	}
	channel, ts, _ := parseRef(ref)
	if err := w.Click(t.Context(), "UBOB", channel, ts, "approve"); err != nil {
		t.Fatal(err)
	}
	taken := w.taken()
	click, ok := taken[len(taken)-1].(platforms.Click)
	if !ok || click.Action != "approve" || click.Value != "r1" || click.On != ref {
		t.Fatalf("got %+v", taken[len(taken)-1])
	}
	outcome := w.a.Render(platforms.Content{Card: &platforms.Card{Title: "Approved", Text: "by Bob"}})
	if err := w.a.Edit(t.Context(), ref, outcome[len(outcome)-1]); err != nil {
		t.Fatal(err)
	}
	if err := w.Click(t.Context(), "UBOB", channel, ts, "approve"); err == nil {
		t.Error("the buttons are still there")
	}
}

func TestWithPacingSlackNeverHasToSaySlowDown(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{
		twin:    func(o *slacktwin.Options) { o.Enforce = true },
		options: func(o *Options) { o.Pacing = true },
	})
	for i := range 7 { // the first five at once, the others a moment later
		w.post("T0TWIN/DALICE", fmt.Sprint("m", i), "one of many")
	}
	for _, c := range w.Calls() {
		if c.Status == http.StatusTooManyRequests {
			t.Errorf("%s was called too often", c.Method)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	for {
		_, err := w.a.Post(ctx, "T0TWIN/DALICE", "", partOf("too many for a second"))
		if err == nil {
			continue
		}
		if f := platforms.FailureOf(err); f != platforms.SlowDown || retryAfter(err) <= 0 {
			t.Errorf("got %v, %v", err, retryAfter(err))
		}
		return
	}
}
