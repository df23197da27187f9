package playground_test

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/parley-chat/parley/platforms/slack/slacktwin"
	"github.com/parley-chat/parley/playground"
)

// place is a seeded stand-in with a scripted bot connected to it, and the playground over it.
type place struct {
	t    *testing.T
	twin *slacktwin.Twin
	page *playground.Playground
	bot  *bot
}

func newPlace(t *testing.T) *place {
	t.Helper()
	twin := slacktwin.New(slacktwin.Options{BotName: "Parley", Agent: true})
	base, err := twin.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatalf("listen: %v", err)
	}
	t.Cleanup(func() {
		if err := twin.Close(); err != nil {
			t.Errorf("close the stand-in: %v", err)
		}
	})
	b := &bot{t: t, base: base}
	server := httptest.NewServer(b)
	t.Cleanup(server.Close)
	twin.Connect(slacktwin.Callbacks{
		Events: server.URL + "/events", Interactivity: server.URL + "/interactivity", Commands: server.URL + "/commands",
	})
	playground.Seed(twin)
	page := playground.New(playground.Options{Slack: twin, Approvers: []string{playground.Approver()}})
	t.Cleanup(page.Close)
	return &place{t: t, twin: twin, page: page, bot: b}
}

// bot keeps what it is told and answers as scripted.
type bot struct {
	t    *testing.T
	base string

	mu     sync.Mutex
	heard  []string // "/commands /status of U0ADA"
	answer string   // to interactions and commands
}

func (b *bot) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		b.t.Errorf("the bot was sent no form: %v", err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch r.URL.Path {
	case "/commands":
		b.heard = append(b.heard, r.Form.Get("command")+" "+r.Form.Get("text")+" by "+r.Form.Get("user_id"))
	case "/interactivity":
		b.heard = append(b.heard, b.interaction(r.Form.Get("payload")))
	default:
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, b.answer)
}

func (b *bot) interaction(payload string) string {
	var p struct {
		Type string `json:"type"`
		User struct {
			ID string `json:"id"`
		} `json:"user"`
		TriggerID string `json:"trigger_id"`
		Actions   []struct {
			ActionID string `json:"action_id"`
			Value    string `json:"value"`
		} `json:"actions"`
	}
	if err := json.Unmarshal([]byte(payload), &p); err != nil {
		b.t.Errorf("the bot was sent no interaction: %v", err)
	}
	if p.Type != "block_actions" {
		return p.Type + " by " + p.User.ID
	}
	if p.Actions[0].ActionID == "form" {
		b.call("views.open", map[string]any{"trigger_id": p.TriggerID, "view": json.RawMessage(form)})
	}
	return "press of " + p.Actions[0].ActionID + "=" + p.Actions[0].Value + " by " + p.User.ID
}

func (b *bot) answers(body string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answer = body
}

func (b *bot) last() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.heard) == 0 {
		return ""
	}
	return b.heard[len(b.heard)-1]
}

// call calls the stand-in's Web API and returns the ts it answers.
func (b *bot) call(method string, args map[string]any) string {
	b.t.Helper()
	body, err := json.Marshal(args)
	if err != nil {
		b.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(b.t.Context(), http.MethodPost, b.base+"/api/"+method, bytes.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer xoxb-twin")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		b.t.Fatalf("%s: %v", method, err)
	}
	defer func() { _ = res.Body.Close() }()
	var answer struct {
		OK        bool   `json:"ok"`
		Error     string `json:"error"`
		TS        string `json:"ts"`
		MessageTS string `json:"message_ts"`
	}
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil || !answer.OK {
		b.t.Fatalf("%s: %v, error %q", method, err, answer.Error)
	}
	return cmp.Or(answer.TS, answer.MessageTS)
}

const (
	form = `{"type":"modal","title":{"type":"plain_text","text":"Why not?"},"submit":{"type":"plain_text","text":"Deny"},
		"blocks":[{"type":"input","block_id":"why","label":{"type":"plain_text","text":"Reason"},
		"element":{"type":"plain_text_input","action_id":"reason"}}]}`
	buttons = `[{"type":"actions","elements":[
		{"type":"button","action_id":"approve","value":"r1","text":{"type":"plain_text","text":"Approve"}},
		{"type":"button","action_id":"form","value":"r1","text":{"type":"plain_text","text":"Deny…"}}]}]`
)

// request is sent to the playground from its own page.
func (p *place) request(method, path, body string, change ...func(*http.Request)) *httptest.ResponseRecorder {
	p.t.Helper()
	r := httptest.NewRequestWithContext(p.t.Context(), method, path, strings.NewReader(body))
	r.Host = "127.0.0.1:8080"
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Origin", "http://127.0.0.1:8080")
	}
	for _, c := range change {
		c(r)
	}
	w := httptest.NewRecorder()
	p.page.Handler().ServeHTTP(w, r)
	return w
}

// act posts and wants success; the answer is decoded into out unless it is nil.
func (p *place) act(what string, body map[string]any, out any) {
	p.t.Helper()
	w := p.post(what, body)
	if w.Code != http.StatusOK {
		p.t.Fatalf("%s answered %d: %s", what, w.Code, w.Body)
	}
	if out == nil {
		return
	}
	if err := json.Unmarshal(w.Body.Bytes(), out); err != nil {
		p.t.Fatalf("%s answered no JSON: %v", what, err)
	}
}

func (p *place) post(what string, body map[string]any) *httptest.ResponseRecorder {
	p.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		p.t.Fatal(err)
	}
	return p.request(http.MethodPost, "/api/slack/"+what, string(text))
}

// refused posts and wants an error in words.
func (p *place) refused(what string, body map[string]any, status int, words string) {
	p.t.Helper()
	w := p.post(what, body)
	if w.Code != status || !strings.Contains(problem(p.t, w), words) {
		p.t.Errorf("%s answered %d %s, want %d and %q", what, w.Code, w.Body, status, words)
	}
}

// problem is the text of an error answer.
func problem(t *testing.T, w *httptest.ResponseRecorder) string {
	t.Helper()
	var answer struct {
		Error string `json:"error"`
	}
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || answer.Error == "" {
		t.Errorf("answered %d %q, want an error in JSON: %v", w.Code, w.Body, err)
	}
	return answer.Error
}

func (p *place) say(user, channel, thread, text string) (ts string) {
	p.t.Helper()
	var answer struct {
		TS string `json:"ts"`
	}
	p.act("say", map[string]any{"user": user, "channel": channel, "thread": thread, "text": text}, &answer)
	return answer.TS
}

// seen is the part of a state that the tests look at.
type seen struct {
	Version  uint64 `json:"version"`
	As       string `json:"as"`
	Platform struct {
		ID string `json:"id"`
	} `json:"platform"`
	Bot      struct{ ID, Name string } `json:"bot"`
	People   []someone                 `json:"people"`
	Channels []struct {
		ID, Latest string
		Direct     bool
		Empty      bool
	} `json:"channels"`
	Channel  string    `json:"channel"`
	Messages []message `json:"messages"`
	Earlier  int       `json:"earlier"`
	Thread   *struct {
		TS       string    `json:"ts"`
		Messages []message `json:"messages"`
	} `json:"thread"`
	Private []message `json:"private"`
	Modal   *struct {
		ID, Title, Submit string
	} `json:"modal"`
	Statuses []struct{ Thread, State string } `json:"statuses"`
}

type someone struct {
	ID, Name, Direct string
	Guest, Approver  bool
}

type message struct {
	TS, Thread, User, Text, Source string
	Bot, Mine, Edited              bool
	Replies                        int
	Files                          []struct {
		ID, Name    string
		Image, Here bool
		Size        int
	}
}

func (p *place) see(as, channel, thread string) seen {
	p.t.Helper()
	q := url.Values{"as": {as}, "channel": {channel}, "thread": {thread}}
	w := p.request(http.MethodGet, "/api/slack/state?"+q.Encode(), "")
	if w.Code != http.StatusOK {
		p.t.Fatalf("state of %s in %s: %d %s", as, channel, w.Code, w.Body)
	}
	var s seen
	if err := json.Unmarshal(w.Body.Bytes(), &s); err != nil {
		p.t.Fatalf("state: %v", err)
	}
	return s
}

func TestThePageAndItsPartsAreServed(t *testing.T) {
	p := newPlace(t)
	for path, kind := range map[string]string{
		"/": "text/html", "/app.js": "text/javascript", "/style.css": "text/css", "/icon.svg": "image/svg+xml",
	} {
		w := p.request(http.MethodGet, path, "")
		if got := w.Header().Get("Content-Type"); w.Code != http.StatusOK || !strings.HasPrefix(got, kind) {
			t.Errorf("%s: got %d %q, want 200 %q", path, w.Code, got, kind)
		}
		policy := w.Header().Get("Content-Security-Policy")
		if !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") {
			t.Errorf("%s: the policy is %q", path, policy)
		}
	}
	if w := p.request(http.MethodGet, "/nothing", ""); w.Code != http.StatusNotFound {
		t.Errorf("/nothing: got %d, want 404", w.Code)
	}
}

func TestThePlatformsAreListed(t *testing.T) {
	w := newPlace(t).request(http.MethodGet, "/api/platforms", "")
	var answer struct {
		Platforms []struct{ ID, Name, Workspace string } `json:"platforms"`
	}
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
		t.Fatal(err)
	}
	if len(answer.Platforms) != 1 || answer.Platforms[0].ID != "slack" || answer.Platforms[0].Workspace != "Parley Playground" {
		t.Errorf("got %+v, want Slack alone", answer.Platforms)
	}
}

func TestTheFirstStateIsThatOfTheFirstPersonWhoAsksInTheirFirstChannel(t *testing.T) {
	s := newPlace(t).see("", "", "")
	if s.As != playground.Grace || s.Channel != playground.General || s.Bot.Name != "Parley" || s.Platform.ID != "slack" {
		t.Errorf("got as %q in %q with bot %+v", s.As, s.Channel, s.Bot)
	}
	want := []someone{
		{ID: playground.Ada, Name: "Ada", Direct: "D0ADA", Approver: true},
		{ID: playground.Grace, Name: "Grace", Direct: "D0GRACE"},
		{ID: playground.Linus, Name: "Linus", Direct: "D0LINUS"},
		{ID: playground.Noor, Name: "Noor", Direct: "D0NOOR", Guest: true},
	}
	if !slices.Equal(s.People, want) {
		t.Errorf("people: got %+v, want %+v", s.People, want)
	}
}

func TestPeopleSeeTheirOwnChannelsOnly(t *testing.T) {
	p := newPlace(t)
	ids := func(user string) (list []string) {
		for _, c := range p.see(user, "", "").Channels {
			list = append(list, c.ID)
		}
		return list
	}
	if got, want := ids(playground.Grace), []string{"C0GENERAL", "C0DEPLOYMENTS", "C0RANDOM", "D0GRACE"}; !slices.Equal(got, want) {
		t.Errorf("Grace sees %v, want %v", got, want)
	}
	if got, want := ids(playground.Noor), []string{"C0GENERAL", "C0DEPLOYMENTS", "D0NOOR"}; !slices.Equal(got, want) {
		t.Errorf("the guest sees %v, want %v", got, want)
	}
	for _, query := range []string{"as=U0NOOR&channel=C0RANDOM", "as=U0GRACE&channel=D0ADA", "as=U0NOBODY", "as=UBOT"} {
		if w := p.request(http.MethodGet, "/api/slack/state?"+query, ""); w.Code != http.StatusNotFound {
			t.Errorf("%s: got %d, want 404", query, w.Code)
		}
	}
}

func TestSeedingAgainChangesNothing(t *testing.T) {
	p := newPlace(t)
	p.say(playground.Ada, playground.General, "", "hello")
	before := p.see(playground.Ada, playground.General, "")
	playground.Seed(p.twin)
	after := p.see(playground.Ada, playground.General, "")
	if !slices.Equal(before.People, after.People) || len(after.Messages) != 1 || len(after.Channels) != len(before.Channels) {
		t.Errorf("before %+v, after %+v", before, after)
	}
}

func TestWhatIsSaidGoesOutInWireFormAndComesBackAsTyped(t *testing.T) {
	p := newPlace(t)
	const typed = "@Parley is 1 < 2 & `@Ada`? ask @grace in #random"
	ts := p.say(playground.Ada, playground.General, "", typed)
	m := p.see(playground.Ada, playground.General, "").Messages[0]
	if want := "<@UBOT> is 1 &lt; 2 &amp; `@Ada`? ask <@U0GRACE> in <#C0RANDOM>"; m.Text != want || m.TS != ts || !m.Mine {
		t.Errorf("on the wire: got %+v, want %q", m, want)
	}
	if want := strings.Replace(typed, "@grace", "@Grace", 1); m.Source != want {
		t.Errorf("to edit: got %q, want %q", m.Source, want)
	}
	if m := p.see(playground.Grace, playground.General, "").Messages[0]; m.Mine || m.Source != "" {
		t.Errorf("for somebody else: got %+v, want nothing to edit", m)
	}
}

func TestOnesOwnMessageCanBeEditedAndDeleted(t *testing.T) {
	p := newPlace(t)
	ts := p.say(playground.Ada, playground.General, "", "frist")
	at := map[string]any{"user": playground.Ada, "channel": playground.General, "ts": ts}
	with := func(key, value string) map[string]any {
		changed := map[string]any{key: value}
		for k, v := range at {
			if k != key {
				changed[k] = v
			}
		}
		return changed
	}

	p.act("edit", with("text", "first, @Grace"), nil)
	if m := p.see(playground.Ada, playground.General, "").Messages[0]; m.Text != "first, <@U0GRACE>" || !m.Edited {
		t.Errorf("after the edit: got %+v", m)
	}
	p.refused("edit", map[string]any{"user": playground.Grace, "channel": playground.General, "ts": ts, "text": "mine"},
		http.StatusUnprocessableEntity, "Only the author can edit")
	p.refused("delete", with("user", playground.Grace), http.StatusUnprocessableEntity, "Only the author can delete")
	p.act("delete", at, nil)
	if s := p.see(playground.Ada, playground.General, ""); len(s.Messages) != 0 {
		t.Errorf("after the deletion: got %+v", s.Messages)
	}
	p.refused("delete", at, http.StatusUnprocessableEntity, "This message is gone.")
}

func TestRepliesAreInTheirThreadAndCounted(t *testing.T) {
	p := newPlace(t)
	ts := p.say(playground.Ada, playground.General, "", "who is there?")
	p.say(playground.Grace, playground.General, ts, "me")
	p.bot.call("chat.postMessage", map[string]any{"channel": playground.General, "thread_ts": ts, "text": "and me"})
	s := p.see(playground.Ada, playground.General, ts)
	if len(s.Messages) != 1 || s.Messages[0].Replies != 2 {
		t.Fatalf("the channel shows %+v, want one message with 2 replies", s.Messages)
	}
	if s.Thread == nil || len(s.Thread.Messages) != 3 || !s.Thread.Messages[2].Bot || s.Thread.Messages[1].Thread != ts {
		t.Errorf("the thread shows %+v", s.Thread)
	}
	if latest := s.Channels[0].Latest; latest != s.Thread.Messages[2].TS {
		t.Errorf("the newest is %q, want the bot's reply", latest)
	}
	if s := p.see(playground.Ada, playground.General, "1.000001"); s.Thread != nil {
		t.Errorf("a thread that is not there: got %+v", s.Thread)
	}
}

func TestLongChannelsShowTheirEndFirst(t *testing.T) {
	p := newPlace(t)
	for range 7 {
		p.say(playground.Ada, playground.Random, "", "again")
	}
	w := p.request(http.MethodGet, "/api/slack/state?as=U0ADA&channel=C0RANDOM&limit=3", "")
	var s seen
	if err := json.Unmarshal(w.Body.Bytes(), &s); err != nil || len(s.Messages) != 3 || s.Earlier != 4 {
		t.Errorf("got %d messages and %d earlier (%v), want 3 and 4", len(s.Messages), s.Earlier, err)
	}
	for _, limit := range []string{"0", "-1", "many", "100000"} {
		w := p.request(http.MethodGet, "/api/slack/state?limit="+limit, "")
		if w.Code != http.StatusBadRequest || !strings.Contains(problem(t, w), "limit must be") {
			t.Errorf("limit %s: got %d %s, want 400", limit, w.Code, w.Body)
		}
	}
}

func TestWhatIsForOnePersonIsShownToNobodyElse(t *testing.T) {
	p := newPlace(t)
	p.bot.call("chat.postEphemeral", map[string]any{"channel": playground.General, "user": playground.Grace, "text": "psst"})
	if got := p.see(playground.Grace, playground.General, "").Private; len(got) != 1 || got[0].Text != "psst" {
		t.Errorf("Grace sees %+v, want the note", got)
	}
	if got := p.see(playground.Ada, playground.General, "").Private; len(got) != 0 {
		t.Errorf("Ada sees %+v, want nothing", got)
	}
	if got := p.see(playground.Grace, playground.Random, "").Private; len(got) != 0 {
		t.Errorf("elsewhere Grace sees %+v, want nothing", got)
	}
}

func TestAPressReachesTheBotAsThatPerson(t *testing.T) {
	p := newPlace(t)
	ts := p.bot.call("chat.postMessage", map[string]any{
		"channel": playground.General, "text": "?", "blocks": json.RawMessage(buttons),
	})
	press := map[string]any{"user": playground.Noor, "channel": playground.General, "ts": ts, "action": "approve"}
	p.act("click", press, nil)
	if got, want := p.bot.last(), "press of approve=r1 by U0NOOR"; got != want {
		t.Errorf("the bot heard %q, want %q", got, want)
	}
	press["action"] = "nothing"
	p.refused("click", press, http.StatusUnprocessableEntity, `there is no "nothing" to press`)
}

func TestAFormIsShownSentAndClosed(t *testing.T) {
	p := newPlace(t)
	ts := p.bot.call("chat.postMessage", map[string]any{
		"channel": playground.General, "text": "?", "blocks": json.RawMessage(buttons),
	})
	open := func() string {
		p.act("click", map[string]any{"user": playground.Ada, "channel": playground.General, "ts": ts, "action": "form"}, nil)
		modal := p.see(playground.Ada, playground.General, "").Modal
		if modal == nil || modal.Title != "Why not?" || modal.Submit != "Deny" {
			t.Fatalf("the form is %+v", modal)
		}
		return modal.ID
	}
	id := open()
	if modal := p.see(playground.Grace, playground.General, "").Modal; modal != nil {
		t.Errorf("Grace sees %+v, want no form", modal)
	}

	values := map[string]any{"why": map[string]any{"reason": "no"}}
	var answer struct {
		Errors map[string]string `json:"errors"`
	}
	p.bot.answers(`{"response_action":"errors","errors":{"why":"Say more."}}`)
	p.act("submit", map[string]any{"user": playground.Ada, "view": id, "values": values}, &answer)
	if answer.Errors["why"] != "Say more." {
		t.Errorf("errors: got %v", answer.Errors)
	}
	p.bot.answers("")
	answer.Errors = nil
	p.act("submit", map[string]any{"user": playground.Ada, "view": id, "values": values}, &answer)
	if len(answer.Errors) != 0 || p.bot.last() != "view_submission by U0ADA" {
		t.Errorf("errors %v, the bot heard %q", answer.Errors, p.bot.last())
	}
	if modal := p.see(playground.Ada, playground.General, "").Modal; modal != nil {
		t.Errorf("after it was sent the form is %+v", modal)
	}

	p.act("dismiss", map[string]any{"user": playground.Ada, "view": open()}, nil)
	if modal := p.see(playground.Ada, playground.General, "").Modal; modal != nil {
		t.Errorf("after it was closed the form is %+v", modal)
	}
	p.refused("submit", map[string]any{"user": playground.Ada, "view": id, "values": values}, http.StatusUnprocessableEntity, "")
}

func TestACommandReachesTheBotAndItsAnswerThePersonAlone(t *testing.T) {
	p := newPlace(t)
	p.bot.answers(`{"text":"all is well"}`)
	p.act("command", map[string]any{
		"user": playground.Linus, "channel": playground.Random, "command": "/status", "text": "now",
	}, nil)
	if got, want := p.bot.last(), "/status now by U0LINUS"; got != want {
		t.Errorf("the bot heard %q, want %q", got, want)
	}
	if got := p.see(playground.Linus, playground.Random, "").Private; len(got) != 1 || got[0].Text != "all is well" {
		t.Errorf("Linus sees %+v, want the answer", got)
	}
}

func TestTheBotsStatusIsShownAndCanBeStopped(t *testing.T) {
	p := newPlace(t)
	ts := p.say(playground.Ada, playground.General, "", "work")
	stop := map[string]any{"user": playground.Ada, "channel": playground.General, "thread": ts}
	p.refused("stop", stop, http.StatusUnprocessableEntity, "there is no stop button")
	p.bot.call("agents.sessions.setStatus", map[string]any{
		"channel_id": playground.General, "thread_ts": ts, "status": "processing",
	})
	s := p.see(playground.Ada, playground.General, "")
	if len(s.Statuses) != 1 || s.Statuses[0].Thread != ts || s.Statuses[0].State != "processing" {
		t.Errorf("the status is %+v", s.Statuses)
	}
	p.act("stop", stop, nil)
	if err := p.twin.Idle(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(p.twin.Deliveries(), func(d slacktwin.Delivery) bool { return d.Type == "agent_session_stopped" }) {
		t.Error("the bot was not told to stop")
	}
}

func TestFilesComeBackAsTheyWereAndNeverRun(t *testing.T) {
	p := newPlace(t)
	files := []map[string]any{
		{"name": "dot.png", "mediaType": "image/png", "content": []byte("\x89PNG")},
		{"name": "evil.svg", "mediaType": "image/svg+xml", "content": []byte("<svg onload=alert(1)>")},
		{"name": "page.html", "mediaType": "text/html; charset=utf-8", "content": []byte("<script>")},
		{"name": "raw", "mediaType": "", "content": []byte{0, 1}},
	}
	p.act("say", map[string]any{"user": playground.Ada, "channel": playground.General, "text": "", "files": files}, nil)
	got := p.see(playground.Grace, playground.General, "").Messages[0].Files
	if len(got) != len(files) {
		t.Fatalf("got %d files, want %d", len(got), len(files))
	}
	for i, f := range got {
		w := p.request(http.MethodGet, "/api/slack/files/"+f.ID, "")
		if want := files[i]["content"].([]byte); w.Code != http.StatusOK || !bytes.Equal(w.Body.Bytes(), want) {
			t.Errorf("%s: got %d %q, want %q", f.Name, w.Code, w.Body, want)
		}
		kind, as := w.Header().Get("Content-Type"), w.Header().Get("Content-Disposition")
		if image := f.Name == "dot.png"; image != f.Image || image != (kind == "image/png") || image == strings.HasPrefix(as, "attachment") {
			t.Errorf("%s: image %t, sent as %q, %q", f.Name, f.Image, kind, as)
		}
		if policy := w.Header().Get("Content-Security-Policy"); !strings.Contains(policy, "sandbox") {
			t.Errorf("%s: the policy is %q", f.Name, policy)
		}
	}
	if w := p.request(http.MethodGet, "/api/slack/files/F0", ""); w.Code != http.StatusNotFound {
		t.Errorf("no such file: got %d, want 404", w.Code)
	}
}

func TestBadRequestsAreRefusedInWords(t *testing.T) {
	p := newPlace(t)
	long := `{"user":"` + strings.Repeat("x", 300<<10) + `"}`
	for name, c := range map[string]struct {
		what, body string
		status     int
		words      string
	}{
		"no JSON":            {"say", "hello", 400, "not the JSON that is expected"},
		"empty":              {"say", "", 400, "not the JSON that is expected"},
		"an unknown field":   {"say", `{"usr":"U0ADA"}`, 400, `unknown field "usr"`},
		"another type":       {"say", `{"user":7}`, 400, "not the JSON that is expected"},
		"more after it":      {"delete", `{"user":"a","channel":"b","ts":"c"} {}`, 400, "more after the object"},
		"nothing to say":     {"say", `{"user":"U0ADA","channel":"C0GENERAL","text":" "}`, 400, "text or a file is missing"},
		"a file unnamed":     {"say", `{"user":"a","channel":"b","files":[{"content":"AA=="}]}`, 400, "a file has no name"},
		"broken base64":      {"say", `{"user":"a","channel":"b","files":[{"name":"x","content":"?"}]}`, 400, "not the JSON"},
		"nobody":             {"say", `{"channel":"C0GENERAL","text":"x"}`, 400, "user is missing"},
		"nowhere":            {"say", `{"user":"U0ADA","text":"x"}`, 400, "channel is missing"},
		"an empty edit":      {"edit", `{"user":"a","channel":"b","ts":"c","text":""}`, 400, "text is missing"},
		"no message":         {"delete", `{"user":"a","channel":"b"}`, 400, "ts is missing"},
		"no button":          {"click", `{"user":"a","channel":"b","ts":"c"}`, 400, "action is missing"},
		"no form":            {"submit", `{"user":"a"}`, 400, "view is missing"},
		"no form to close":   {"dismiss", `{"user":"a"}`, 400, "view is missing"},
		"no slash":           {"command", `{"user":"a","channel":"b","command":"status"}`, 400, "begin with a slash"},
		"no thread":          {"stop", `{"user":"a","channel":"b"}`, 400, "thread is missing"},
		"too long":           {"click", long, 413, "at most 256 KiB"},
		"an unknown person":  {"say", `{"user":"U0NOBODY","channel":"C0GENERAL","text":"x"}`, 422, "There is no such person."},
		"an unknown channel": {"say", `{"user":"U0ADA","channel":"C0X","text":"x"}`, 422, "There is no such channel."},
		"not a member":       {"say", `{"user":"U0NOOR","channel":"C0RANDOM","text":"x"}`, 422, "not in that channel"},
		"an unknown path":    {"dance", `{}`, 404, "there is no POST /api/slack/dance"},
	} {
		t.Run(name, func(t *testing.T) {
			w := p.request(http.MethodPost, "/api/slack/"+c.what, c.body)
			if got := problem(t, w); w.Code != c.status || !strings.Contains(got, c.words) {
				t.Errorf("got %d %q, want %d %q", w.Code, got, c.status, c.words)
			}
		})
	}
	if got := p.see(playground.Ada, playground.General, "").Messages; len(got) != 0 {
		t.Errorf("something was said: %+v", got)
	}
}

func TestOnlyJSONIsPostedAndOnlyPostsAct(t *testing.T) {
	p := newPlace(t)
	w := p.request(http.MethodPost, "/api/slack/say", `{}`, func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") })
	if got := problem(t, w); w.Code != http.StatusUnsupportedMediaType || !strings.Contains(got, "application/json") {
		t.Errorf("text/plain: got %d %q", w.Code, got)
	}
	w = p.request(http.MethodGet, "/api/slack/say", "")
	if got := problem(t, w); w.Code != http.StatusNotFound || got != "there is no GET /api/slack/say" {
		t.Errorf("GET: got %d %q", w.Code, got)
	}
}

func TestOnlyThisMachinesBrowserAndOnlyThePageItselfMayAct(t *testing.T) {
	p := newPlace(t)
	const body = `{"user":"U0ADA","channel":"C0GENERAL","text":"x"}`
	header := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	host := func(h string) func(*http.Request) {
		return func(r *http.Request) { r.Host = h; r.Header.Set("Origin", "http://"+h) }
	}
	for name, c := range map[string]struct {
		change func(*http.Request)
		status int
	}{
		"its own page":                   {host("127.0.0.1:8080"), 200},
		"localhost":                      {host("localhost:8080"), 200},
		"a name under localhost":         {host("parley.localhost:8080"), 200},
		"IPv6":                           {host("[::1]:8080"), 200},
		"a program without a browser":    {func(r *http.Request) { r.Header.Del("Origin") }, 200},
		"a name that was made to point":  {host("rebound.example:8080"), 403},
		"a name that only looks like it": {host("localhost.example"), 403},
		"another machine":                {host("192.168.0.7:8080"), 403},
		"no host":                        {host(""), 403},
		"another site":                   {header("Origin", "https://example.com"), 403},
		"another port":                   {header("Origin", "http://127.0.0.1:9090"), 403},
		"a sandboxed page":               {header("Origin", "null"), 403},
		"what the browser calls foreign": {header("Sec-Fetch-Site", "cross-site"), 403},
	} {
		t.Run(name, func(t *testing.T) {
			w := p.request(http.MethodPost, "/api/slack/say", body, c.change)
			if w.Code != c.status {
				t.Errorf("got %d %s, want %d", w.Code, w.Body, c.status)
			}
			if w.Code == http.StatusForbidden {
				problem(t, w)
			}
		})
	}
	w := p.request(http.MethodGet, "/api/slack/state", "", func(r *http.Request) { r.Host = "rebound.example" })
	if w.Code != http.StatusForbidden {
		t.Errorf("reading by a rebound name: got %d, want 403", w.Code)
	}
}

func TestEveryChangeTicksOnTheStreamOfEvents(t *testing.T) {
	p := newPlace(t)
	server := httptest.NewServer(p.page.Handler())
	defer server.Close()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/api/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	if got := res.Header.Get("Content-Type"); got != "text/event-stream" {
		t.Errorf("content type: got %q", got)
	}

	lines := bufio.NewScanner(res.Body)
	tick := func() string {
		for lines.Scan() {
			if version, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				return version
			}
		}
		return ""
	}
	first := tick()
	if first == "" {
		t.Fatalf("the stream ended at once: %v", lines.Err())
	}
	p.bot.call("chat.postMessage", map[string]any{"channel": playground.General, "text": "news"})
	if next := tick(); next == "" || next == first {
		t.Errorf("after a message: got version %q, want another one than %q", next, first)
	}
	p.page.Close()
	for tick() != "" {
		continue // versions that were still under way
	}
	if err := lines.Err(); err != nil {
		t.Errorf("the stream broke: %v, want an end", err)
	}
}
