package slacktwin

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slack-go/slack"
)

func TestAMentionInAChannelComesTwiceUnderTwoEventIDs(t *testing.T) {
	w := newWorld(t, nil)
	w.listen()
	ts := w.say("UALICE", "CGENERAL", "", "<@UBOT> hello")
	w.idle()
	messages, mentions := w.bot.events("message"), w.bot.events("app_mention")
	if len(messages) != 1 || len(mentions) != 1 {
		t.Fatalf("got %d messages and %d mentions, want one each", len(messages), len(mentions))
	}
	m, a := messages[0], mentions[0]
	if m.Payload["event_id"] == a.Payload["event_id"] {
		t.Errorf("both have event_id %v", m.Payload["event_id"])
	}
	for _, field := range []string{"ts", "channel", "client_msg_id", "user", "text"} {
		if m.event()[field] != a.event()[field] || m.event()[field] == nil {
			t.Errorf("%s: got %v and %v, want them equal", field, m.event()[field], a.event()[field])
		}
	}
	if m.event()["ts"] != ts || m.event()["channel_type"] != "channel" || m.Payload["team_id"] != "T0TWIN" {
		t.Errorf("got %v", m.Payload)
	}
	authorizations, _ := m.Payload["authorizations"].([]any)
	if len(authorizations) != 1 || m.Payload["event_context"] == "" {
		t.Errorf("got %v", m.Payload)
	}
}

func TestOneEventWhereSlackSendsOne(t *testing.T) {
	tests := []struct{ name, user, channel, text, want string }{
		{"no mention", "UALICE", "CGENERAL", "hello", "message"},
		{"a direct message never sends app_mention", "UALICE", "DALICE", "<@UBOT> hello", "message"},
		{"somebody else's mention", "UALICE", "CGENERAL", "<@UBOB> hello", "message"},
		{"a mention with a label", "UALICE", "CGENERAL", "hi <@UBOT|bot>", "message app_mention"},
		{"a longer id", "UALICE", "CGENERAL", "hi <@UBOTTLE>", "message"},
		{"where the bot is not", "UALICE", "CQUIET", "<@UBOT> hello", ""},
		{"in private where the bot is not", "UALICE", "GSECRET", "<@UBOT> hello", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, nil)
			w.listen()
			w.say(tt.user, tt.channel, "", tt.text)
			w.idle()
			var got []string
			for _, r := range w.bot.all() {
				typ, _ := r.event()["type"].(string)
				got = append(got, typ)
			}
			if strings.Join(got, " ") != tt.want {
				t.Errorf("got %v, want %s", got, tt.want)
			}
		})
	}
}

func TestTheBotHearsItsOwnMessages(t *testing.T) {
	w := newWorld(t, nil)
	w.listen()
	w.post("CGENERAL", text("<@UBOT> I say"))
	w.idle()
	heard := w.bot.all()
	if len(heard) != 1 || heard[0].event()["bot_id"] != "BBOT" || heard[0].event()["user"] != "UBOT" {
		t.Errorf("got %v", heard)
	}
}

func TestEditsAndDeletionsAreHiddenEvents(t *testing.T) {
	w := newWorld(t, nil)
	ts := w.say("UALICE", "CGENERAL", "", "helo")
	w.listen()
	if err := w.EditMessage("UBOB", "CGENERAL", ts, "x"); err == nil {
		t.Error("bob edited alice's message")
	}
	if err := w.EditMessage("UALICE", "CGENERAL", ts, "hello"); err != nil {
		t.Fatal(err)
	}
	if err := w.DeleteMessage("UALICE", "CGENERAL", ts); err != nil {
		t.Fatal(err)
	}
	w.idle()
	heard := w.bot.all()
	if len(heard) != 2 {
		t.Fatalf("got %d events, want 2", len(heard))
	}
	changed, deleted := heard[0].event(), heard[1].event()
	inner, _ := changed["message"].(map[string]any)
	if changed["subtype"] != "message_changed" || changed["hidden"] != true || inner["text"] != "hello" || inner["ts"] != ts {
		t.Errorf("changed: got %v", changed)
	}
	if deleted["subtype"] != "message_deleted" || deleted["hidden"] != true || deleted["deleted_ts"] != ts {
		t.Errorf("deleted: got %v", deleted)
	}
	if deleted["ts"] == ts || deleted["ts"] == changed["ts"] {
		t.Error("the events share a ts")
	}
}

func TestADeletedParentStaysAsATombstone(t *testing.T) {
	w := newWorld(t, nil)
	root := w.say("UALICE", "CGENERAL", "", "q")
	w.post("CGENERAL", text("a"), slack.MsgOptionTS(root))
	if err := w.DeleteMessage("UALICE", "CGENERAL", root); err != nil {
		t.Fatal(err)
	}
	thread := w.Thread("CGENERAL", root)
	if len(thread) != 2 || thread[0].Subtype != "tombstone" || thread[0].Replies != 1 {
		t.Errorf("got %+v", thread)
	}
	lone := w.say("UALICE", "CGENERAL", "", "q2")
	if err := w.DeleteMessage("UALICE", "CGENERAL", lone); err != nil {
		t.Fatal(err)
	}
	_, _, response, err := w.api.PostMessageWithResponse("CGENERAL", text("late"), slack.MsgOptionTS(lone))
	if err != nil || response.ThreadTimestamp != "" {
		t.Errorf("a reply to a parent that is gone: got thread %q, %v, want it outside", response.ThreadTimestamp, err)
	}
}

func TestJoiningIsAnEventAndAMessage(t *testing.T) {
	w := newWorld(t, nil)
	w.listen()
	if err := w.Join("UBOT", "CQUIET"); err != nil {
		t.Fatal(err)
	}
	w.idle()
	joined := w.bot.events("member_joined_channel")
	if len(joined) != 1 || joined[0].event()["user"] != "UBOT" || joined[0].event()["channel"] != "CQUIET" {
		t.Errorf("got %v", joined)
	}
	if got := w.Messages("CQUIET"); len(got) != 1 || got[0].Subtype != "channel_join" {
		t.Errorf("got %+v", got)
	}
}

func TestAFailedEventIsTriedAgainAtOnceAfterOneAndFiveMinutes(t *testing.T) {
	w := newWorld(t, nil)
	w.listen()
	w.bot.answer(func(rw http.ResponseWriter, _ received) { rw.WriteHeader(http.StatusInternalServerError) })
	w.say("UALICE", "DALICE", "", "hello")
	steps := []struct {
		wait time.Duration
		want int
	}{{0, 2}, {time.Minute - 1, 2}, {1, 3}, {5*time.Minute - 1, 3}, {1, 4}, {time.Hour, 4}}
	for _, s := range steps {
		w.clock.Advance(s.wait)
		w.idle()
		if got := len(w.bot.all()); got != s.want {
			t.Fatalf("after %v: got %d attempts, want %d", s.wait, got, s.want)
		}
	}
	var numbers, reasons, ids []string
	for _, r := range w.bot.all() {
		numbers = append(numbers, r.Header.Get("X-Slack-Retry-Num"))
		reasons = append(reasons, r.Header.Get("X-Slack-Retry-Reason"))
		id, _ := r.Payload["event_id"].(string)
		ids = append(ids, id)
	}
	if !slices.Equal(numbers, []string{"", "1", "2", "3"}) {
		t.Errorf("x-slack-retry-num: got %q", numbers)
	}
	if !slices.Equal(reasons, []string{"", "http_error", "http_error", "http_error"}) {
		t.Errorf("x-slack-retry-reason: got %q", reasons)
	}
	if len(slices.Compact(ids)) != 1 {
		t.Errorf("event ids: got %q, want one", ids)
	}
	for i, d := range w.Deliveries() {
		if d.Attempt != i || d.Status != 500 || d.Acked || d.Transport != "http" {
			t.Errorf("journal %d: got %+v", i, d)
		}
	}
}

func TestNoRetryIsHonoured(t *testing.T) {
	w := newWorld(t, nil)
	w.listen()
	w.bot.answer(func(rw http.ResponseWriter, _ received) {
		rw.Header().Set("X-Slack-No-Retry", "1")
		rw.WriteHeader(http.StatusBadRequest)
	})
	w.say("UALICE", "DALICE", "", "hello")
	w.idle()
	w.clock.Advance(time.Hour)
	w.idle()
	if got := len(w.bot.all()); got != 1 {
		t.Errorf("got %d attempts, want 1", got)
	}
}

func TestAnAckAfterThreeSecondsIsNone(t *testing.T) {
	w := newWorld(t, nil)
	w.listen()
	arrived := make(chan struct{})
	first := make(chan struct{}, 1)
	first <- struct{}{}
	release := make(chan struct{})
	w.bot.answer(func(http.ResponseWriter, received) {
		select {
		case <-first:
			close(arrived)
			<-release
		default:
		}
	})
	w.say("UALICE", "DALICE", "", "hello")
	<-arrived
	w.clock.Advance(3 * time.Second)
	w.idle()
	close(release)
	got := w.Deliveries()
	if len(got) != 2 || got[0].Error != "http_timeout" || !got[1].Acked || got[1].Reason != "http_timeout" {
		t.Errorf("got %+v", got)
	}
}

func TestADeadCallbackIsAConnectionFailure(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.Retries = []time.Duration{time.Minute} })
	dead := httptest.NewServer(nil)
	dead.Close()
	w.Connect(Callbacks{Events: dead.URL})
	w.say("UALICE", "DALICE", "", "hello")
	w.idle()
	w.listen()
	w.clock.Advance(time.Minute)
	w.idle()
	heard := w.bot.all()
	if len(heard) != 1 || heard[0].Header.Get("X-Slack-Retry-Reason") != "connection_failed" {
		t.Errorf("got %v", heard)
	}
}

func TestMoreThanTwoRedirectsAreTooMany(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.Retries = []time.Duration{} })
	w.listen()
	w.bot.answer(func(rw http.ResponseWriter, r received) {
		rw.Header().Set("Location", "/events")
		rw.WriteHeader(http.StatusTemporaryRedirect)
	})
	w.say("UALICE", "DALICE", "", "hello")
	w.idle()
	if got := w.Deliveries(); len(got) != 1 || got[0].Error != "too_many_redirects" {
		t.Errorf("got %+v", got)
	}
	if got := len(w.bot.all()); got != 3 {
		t.Errorf("got %d requests, want the first and two redirects", got)
	}
}

func TestTheURLIsVerifiedByAChallenge(t *testing.T) {
	w := newWorld(t, nil)
	w.listen()
	if err := w.VerifyURL(t.Context()); err == nil {
		t.Error("an empty answer passed")
	}
	w.bot.answer(func(rw http.ResponseWriter, r received) {
		challenge, _ := r.Payload["challenge"].(string)
		_, _ = rw.Write([]byte(challenge))
	})
	if err := w.VerifyURL(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestSlackGoAcceptsTheSignature(t *testing.T) {
	twin := New(Options{SigningSecret: "s3cret"})
	defer twin.Close()
	h := http.Header{}
	twin.Sign(h, []byte("body"))
	verifier, err := slack.NewSecretsVerifier(h, "s3cret")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = verifier.Write([]byte("body"))
	if err := verifier.Ensure(); err != nil {
		t.Error(err)
	}
}

func TestEventsOfAThreadKeepTheirOrderAndOfOthersDoNotWait(t *testing.T) {
	w := newWorld(t, nil)
	w.listen()
	slow := make(chan struct{})
	w.bot.answer(func(_ http.ResponseWriter, r received) {
		if r.event()["channel"] == "DALICE" {
			<-slow
		}
	})
	root := w.say("UALICE", "CGENERAL", "", "1")
	w.say("UALICE", "DALICE", "", "stuck")
	for _, s := range []string{"2", "3", "4"} {
		w.say("UALICE", "CGENERAL", root, s)
	}
	waitFor(t, func() bool { return len(w.Deliveries()) == 4 })
	close(slow)
	w.idle()
	var got []string
	for _, d := range w.bot.events("message") {
		s, _ := d.event()["text"].(string)
		if s != "stuck" {
			got = append(got, s)
		}
	}
	if want := []string{"1", "2", "3", "4"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// waitFor waits until cond holds, by yielding; it fails the test after 10 s.
func waitFor(t *testing.T, cond func() bool) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for !cond() {
		if time.Now().After(deadline) {
			t.Fatal("it did not happen within 10 s")
		}
		time.Sleep(time.Millisecond)
	}
}

func TestFilesOfPeopleArriveAsFileShare(t *testing.T) {
	w := newWorld(t, nil)
	w.listen()
	w.say("UALICE", "DALICE", "", "look", Upload{Name: "a.txt", Content: []byte("abc")},
		Upload{Name: "b.txt", Content: []byte("b"), Connect: true}, Upload{Name: "c", Content: []byte("c"), External: true})
	w.idle()
	e := w.bot.all()[0].event()
	files, _ := e["files"].([]any)
	if e["subtype"] != "file_share" || len(files) != 3 {
		t.Fatalf("got %v", e)
	}
	plain, connect, external := files[0].(map[string]any), files[1].(map[string]any), files[2].(map[string]any)
	if link, _ := plain["url_private"].(string); !strings.HasPrefix(link, w.URL()+"/files/") {
		t.Errorf("url_private: got %v", plain["url_private"])
	}
	if connect["file_access"] != "check_file_info" || connect["url_private"] != nil {
		t.Errorf("connect: got %v", connect)
	}
	if external["is_external"] != true {
		t.Errorf("external: got %v", external)
	}
	id, _ := connect["id"].(string)
	info, _, _, err := w.api.GetFileInfo(id, 0, 0)
	if err != nil || info.URLPrivate == "" {
		t.Errorf("files.info of a connect file: got %+v, %v", info, err)
	}
}

func TestTheTwinWorksOnTheRealClockToo(t *testing.T) {
	w := newWorld(t, func(o *Options) {
		o.Now, o.After = nil, nil
		o.Retries = []time.Duration{5 * time.Millisecond}
	})
	w.listen()
	w.Fault(Fault{Event: "message", LoseAck: true})
	w.say("UALICE", "DALICE", "", "hello")
	waitFor(t, func() bool { return len(w.bot.all()) == 2 })
}

func TestChangesAreToldOnceAndNoneIsLost(t *testing.T) {
	w := newWorld(t, nil)
	changes, cancel := w.Subscribe()
	ts := w.say("UALICE", "CGENERAL", "", "hello")
	for range 100 {
		if err := w.EditMessage("UALICE", "CGENERAL", ts, "again"); err != nil {
			t.Fatal(err)
		}
	}
	other := w.say("UALICE", "CGENERAL", "", "other")
	var got []string
	for c := range changes {
		got = append(got, c.TS)
		if c.TS == other {
			cancel()
		}
	}
	if len(got) > 3 || got[0] != ts {
		t.Errorf("got %v, want what changed told at most twice", got)
	}
}

func TestCloseEndsDeliveriesUnderWay(t *testing.T) {
	w := newWorld(t, nil)
	w.listen()
	release := make(chan struct{})
	defer close(release)
	w.bot.answer(func(http.ResponseWriter, received) { <-release })
	w.say("UALICE", "DALICE", "", "hello")
	waitFor(t, func() bool { return len(w.bot.all()) == 1 })
	changes, _ := w.Subscribe()
	if err := w.Twin.Close(); err != nil {
		t.Error(err)
	}
	if _, ok := <-changes; ok {
		for range changes {
		}
	}
	if err := w.Idle(context.Background()); err == nil && len(w.Deliveries()) == 0 {
		t.Error("Idle says that all was delivered")
	}
}

func TestAnyPayloadCanBeSent(t *testing.T) {
	w := newWorld(t, nil)
	w.listen()
	w.bot.answer(func(rw http.ResponseWriter, r received) { _, _ = rw.Write([]byte("heard")) })
	for kind, payload := range map[string]string{
		"events_api": `{"type":"app_rate_limited"}`, "interactive": `{"type":"new"}`, "slash_commands": `{"ssl_check":"1"}`,
	} {
		got, err := w.SendPayload(t.Context(), kind, "any", []byte(payload))
		if err != nil || string(got) != "heard" {
			t.Errorf("%s: got %q, %v", kind, got, err)
		}
	}
	id := w.SendEvent(map[string]any{"type": "never_seen", "n": 1})
	w.idle()
	if got := w.bot.events("never_seen"); len(got) != 1 || got[0].Payload["event_id"] != id {
		t.Errorf("got %v", got)
	}
}
