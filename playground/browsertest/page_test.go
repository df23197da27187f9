package browsertest_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"

	"github.com/parley-chat/parley/platforms/slack/slacktwin"
	"github.com/parley-chat/parley/playground"
	"github.com/parley-chat/parley/playground/browsertest"
)

// slack is a seeded stand-in and the playground over it, with this test as its bot.
type slack struct {
	t     *testing.T
	base  string
	twin  *slacktwin.Twin
	web   *httptest.Server // the page
	press chan interaction // what people pressed and sent
}

// interaction is what the bot is told of a press or a form.
type interaction struct {
	Type string `json:"type"`
	User struct {
		ID string `json:"id"`
	} `json:"user"`
	TriggerID string `json:"trigger_id"`
	Message   struct {
		TS string `json:"ts"`
	} `json:"message"`
	Actions []struct {
		ActionID string `json:"action_id"`
	} `json:"actions"`
	View struct {
		State struct {
			Values map[string]map[string]struct {
				Value string `json:"value"`
			} `json:"values"`
		} `json:"state"`
	} `json:"view"`
}

func newSlack(t *testing.T) *slack {
	t.Helper()
	s := &slack{t: t, press: make(chan interaction, 10)}
	s.twin = slacktwin.New(slacktwin.Options{BotName: "Parley", Agent: true})
	base, err := s.twin.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.base = base
	t.Cleanup(func() {
		if err := s.twin.Close(); err != nil {
			t.Errorf("close the stand-in: %v", err)
		}
	})
	bot := httptest.NewServer(http.HandlerFunc(s.hear))
	t.Cleanup(bot.Close)
	s.twin.Connect(slacktwin.Callbacks{Interactivity: bot.URL + "/interactivity", Commands: bot.URL + "/commands"})
	playground.Seed(s.twin)
	pg := playground.New(playground.Options{Slack: s.twin, Approvers: []string{playground.Approver()}})
	s.web = httptest.NewServer(pg.Handler())
	t.Cleanup(s.web.Close)
	t.Cleanup(pg.Close) // first, as it ends the streams for which the server waits
	return s
}

// hear takes presses and forms; a form with a short reason is refused, a command is answered at once.
func (s *slack) hear(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Path == "/commands" {
		_, _ = io.WriteString(w, `{"text":"Nothing waits for a decision."}`)
		return
	}
	var i interaction
	if err := json.Unmarshal([]byte(r.FormValue("payload")), &i); err != nil {
		s.t.Errorf("an interaction that is none: %v", err)
	}
	if i.Type == "view_submission" && len(i.View.State.Values["why"]["reason"].Value) < 5 {
		_, _ = io.WriteString(w, `{"response_action":"errors","errors":{"why":"Say a little more."}}`)
		return
	}
	s.press <- i
}

// pressed waits for the next press.
func (s *slack) pressed() interaction {
	s.t.Helper()
	select {
	case i := <-s.press:
		return i
	case <-time.After(30 * time.Second):
		s.t.Fatal("nobody pressed anything within 30 s")
		return interaction{}
	}
}

// call does something as the bot and returns its ts.
func (s *slack) call(method string, args map[string]any) string {
	s.t.Helper()
	body, err := json.Marshal(args)
	if err != nil {
		s.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.base+"/api/"+method, bytes.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer xoxb-twin")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatalf("%s: %v", method, err)
	}
	defer func() { _ = res.Body.Close() }()
	var answer struct {
		OK    bool   `json:"ok"`
		Error string `json:"error"`
		TS    string `json:"ts"`
	}
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil || !answer.OK {
		s.t.Fatalf("%s: %v, error %q", method, err, answer.Error)
	}
	return answer.TS
}

// top is the ts of the newest top-level message of a channel.
func (s *slack) top(channel string) string {
	s.t.Helper()
	ts := ""
	for _, m := range s.twin.Messages(channel) {
		if m.ThreadTS == "" || m.ThreadTS == m.TS {
			ts = m.TS
		}
	}
	if ts == "" {
		s.t.Fatalf("nothing was said in %s", channel)
	}
	return ts
}

const card = `[
	{"type":"header","text":{"type":"plain_text","text":"Approve: deploy"}},
	{"type":"section","fields":[{"type":"mrkdwn","text":"*Service*\nweb"}]},
	{"type":"rich_text","elements":[{"type":"rich_text_preformatted","elements":[{"type":"text","text":"{\"service\":\"<b>web\"}"}]}]},
	{"type":"actions","elements":[
		{"type":"button","action_id":"approve","value":"r1","style":"primary","text":{"type":"plain_text","text":"Approve"}},
		{"type":"button","action_id":"deny","value":"r1","text":{"type":"plain_text","text":"Deny…"},
			"confirm":{"title":{"type":"plain_text","text":"Really?"},"text":{"type":"plain_text","text":"It will not run."},
			"confirm":{"type":"plain_text","text":"Deny"},"deny":{"type":"plain_text","text":"Back"}}}]},
	{"type":"context","elements":[{"type":"mrkdwn","text":"<@U0ADA> may decide"}]}]`

func TestPeopleTalkToABotAndDecideInAThread(t *testing.T) {
	s := newSlack(t)
	b := browsertest.Start(t)
	b.Open(s.web.URL)

	// The newcomer is told how to begin.
	b.ClickTestID("channel-" + playground.Deployments)
	b.ClickTestID("person-" + playground.Grace)
	b.ClickText("starter", "deploy web")
	b.ClickTestID("send")
	b.WaitText("message", "@Parley deploy web")
	root := s.top(playground.Deployments)
	if got := s.twin.Thread(playground.Deployments, root)[0]; got.User != playground.Grace || got.Text != "<@UBOT> deploy web" {
		t.Fatalf("said was %q by %s", got.Text, got.User)
	}

	// A message to the bot opens its thread; closed, the count opens it again.
	b.WaitText("thread message", "deploy web")
	b.ClickTestID("thread-close")
	b.WaitGone("thread")
	s.call("agents.sessions.setStatus", map[string]any{
		"channel_id": playground.Deployments, "thread_ts": root, "status": "processing",
	})
	b.WaitText("status", "Parley is working…")
	s.call("chat.postMessage", map[string]any{
		"channel": playground.Deployments, "thread_ts": root, "markdown_text": "I **can** do `that`: <script>alert(1)</script>",
	})
	question := s.call("chat.postMessage", map[string]any{
		"channel": playground.Deployments, "thread_ts": root, "text": "Approve: deploy", "blocks": json.RawMessage(card),
	})
	s.call("agents.sessions.setStatus", map[string]any{
		"channel_id": playground.Deployments, "thread_ts": root, "status": "suspended",
	})
	b.WaitText("open-thread", "2 replies")
	b.WaitText("status", "Parley waits for a decision.")
	b.ClickTestID("open-thread")
	b.WaitText("thread message", "I can do that: <script>alert(1)</script>")
	b.WaitText("thread message", `{"service":"<b>web"}`)

	// Somebody who may not is told so, and nobody else sees it.
	b.ClickTestID("thread button-approve")
	if got := s.pressed(); got.User.ID != playground.Grace || got.Actions[0].ActionID != "approve" || got.Message.TS != question {
		t.Fatalf("pressed was %+v", got)
	}
	s.call("chat.postEphemeral", map[string]any{
		"channel": playground.Deployments, "user": playground.Grace, "thread_ts": root, "text": "You may not decide this.",
	})
	b.WaitText("thread ephemeral", "Only visible to you")
	b.WaitText("thread ephemeral", "You may not decide this.")
	b.ClickTestID("person-" + playground.Ada)
	b.WaitText("thread message", "Approve: deploy")
	b.WaitGone("ephemeral")

	// The one who may is asked once more where the button says so, and once only.
	b.ClickTestID("thread button-deny")
	b.WaitText("confirm", "It will not run.")
	b.ClickTestID("confirm-cancel")
	b.WaitGone("confirm")
	b.ClickTestID("thread button-approve")
	if got := s.pressed(); got.User.ID != playground.Ada || got.Actions[0].ActionID != "approve" {
		t.Fatalf("pressed was %+v, want Ada's approval and no denial", got)
	}
	s.call("chat.update", map[string]any{
		"channel": playground.Deployments, "ts": question, "text": "Approved", "blocks": json.RawMessage(
			`[{"type":"section","text":{"type":"mrkdwn","text":":white_check_mark: *Approved* by <@U0ADA>"}}]`),
	})
	b.WaitText("thread message", "Approved by @Ada")
	b.WaitGone("button-approve")

	// People go on in the thread.
	b.Type("thread-composer", "thanks!\n")
	b.WaitText("thread message", "thanks!")
	if all := s.twin.Thread(playground.Deployments, root); all[len(all)-1].Text != "thanks!" || all[len(all)-1].User != playground.Ada {
		t.Errorf("the thread ends with %+v", all[len(all)-1])
	}
}

func TestAFormIsFilledInCorrectedAndSent(t *testing.T) {
	s := newSlack(t)
	s.call("chat.postMessage", map[string]any{"channel": playground.General, "text": "?", "blocks": json.RawMessage(
		`[{"type":"actions","elements":[{"type":"button","action_id":"deny","value":"r1","text":{"type":"plain_text","text":"Deny…"}}]}]`)})
	b := browsertest.Start(t)
	b.Open(s.web.URL)
	open := func() {
		b.ClickTestID("message button-deny")
		s.call("views.open", map[string]any{"trigger_id": s.pressed().TriggerID, "view": json.RawMessage(
			`{"type":"modal","title":{"type":"plain_text","text":"Deny deploy"},"submit":{"type":"plain_text","text":"Deny"},
			"blocks":[{"type":"input","block_id":"why","label":{"type":"plain_text","text":"Why?"},
			"element":{"type":"plain_text_input","action_id":"reason"}}]}`)})
		b.WaitText("modal", "Deny deploy")
	}

	open()
	b.ClickTestID("modal-submit")
	b.WaitText("modal-error", "Please complete this required field.")
	b.Type("input-reason", "no")
	b.ClickTestID("modal-submit")
	b.WaitText("modal-error", "Say a little more.")
	b.Type("input-reason", ", not on a Friday")
	b.ClickTestID("modal-submit")
	if got := s.pressed().View.State.Values["why"]["reason"].Value; got != "no, not on a Friday" {
		t.Errorf("sent was %q", got)
	}
	b.WaitGone("modal")

	open()
	b.Press(kb.Escape)
	b.WaitGone("modal")
}

func TestAPersonWritesEditsDeletesAndSendsFiles(t *testing.T) {
	s := newSlack(t)
	b := browsertest.Start(t)
	b.Open(s.web.URL + "/#slack/" + playground.Linus + "/" + playground.Random)

	// The name of the bot is completed by the keyboard alone.
	b.Type("composer", "hello @p")
	b.WaitText("offer-UBOT", "Parley")
	b.Press(kb.Tab)
	b.Press("!")
	b.Press(kb.Enter)
	b.WaitText("message", "hello @Parley !")
	if got := s.twin.Thread(playground.Random, s.top(playground.Random))[0].Text; got != "hello <@UBOT> !" {
		t.Errorf("said was %q", got)
	}

	b.Hover("message", "hello")
	b.ClickTestID("message edit")
	b.Press("?")
	b.ClickTestID("edit-save")
	b.WaitText("message", "hello @Parley !? (edited)")

	b.Hover("message", "hello")
	b.ClickTestID("message delete")
	b.ClickTestID("confirm-ok")
	b.WaitGone("message")

	note := filepath.Join(t.TempDir(), "note.txt")
	if err := os.WriteFile(note, []byte("so it is"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.Attach("files", note)
	b.ClickTestID("send")
	b.WaitText("message", "note.txt 8 bytes")

	b.Type("composer", "/nonsense\n")
	b.WaitText("composer", "/nonsense")
	b.WaitText("", "/nonsense is no command here.")
	b.Type("composer", strings.Repeat(kb.Backspace, len("/nonsense"))+"/approvals")
	b.Press(kb.Escape)
	b.Press(kb.Enter)
	b.WaitText("ephemeral", "Nothing waits for a decision.")
}

func TestAnUnreadDotShowsWhereSomethingWasSaid(t *testing.T) {
	s := newSlack(t)
	b := browsertest.Start(t)
	b.Open(s.web.URL)
	b.WaitText("channel-"+playground.General, "general")
	if _, err := s.twin.Say(playground.Linus, playground.Random, "", "over here"); err != nil {
		t.Fatal(err)
	}
	b.WaitCount("channel-"+playground.Random+" unread", 1)
	b.ClickTestID("channel-" + playground.Random)
	b.WaitText("message", "over here")
	b.WaitCount("unread", 0)
}

func TestAPageThatLostItsConnectionCatchesUp(t *testing.T) {
	s := newSlack(t)
	b := browsertest.Start(t)
	b.Open(s.web.URL)
	b.WaitText("channel-"+playground.General, "general")
	s.web.CloseClientConnections()
	if _, err := s.twin.Say(playground.Grace, playground.General, "", "are you back?"); err != nil {
		t.Fatal(err)
	}
	b.WaitText("message", "are you back?")
	if _, err := s.twin.Say(playground.Grace, playground.General, "", "and still there?"); err != nil {
		t.Fatal(err)
	}
	b.WaitText("message", "and still there?")
}

// A message shows what it says; nothing in it becomes an element of the page that runs or loads something. The page's
// policy would complain on the console, which fails the test.
func TestWhatIsWrittenIsShownAndNeverRun(t *testing.T) {
	s := newSlack(t)
	b := browsertest.Start(t)
	b.Open(s.web.URL)
	for name, c := range map[string]struct {
		args map[string]any
		want string
	}{
		"mrkdwn": {
			map[string]any{"text": "*bold* _it_ ~gone~ `a*b*` &lt;b&gt; <https://a.example|there> <@U0ADA> <#C0RANDOM> <!here> 2*3*4"},
			"bold it gone a*b* <b> there @Ada #random @here 2*3*4",
		},
		"a quote and a fence": {map[string]any{"text": "&gt; said\nso\n```\n*raw*\n```"}, "said so *raw*"},
		"markup in mrkdwn":    {map[string]any{"text": `<javascript:alert(1)|click> "><img src=x onerror=alert(1)>`}, `click ">img src=x onerror=alert(1)`},
		"Markdown": {
			map[string]any{"markdown_text": "# Head\n\n1. one\n   - **two**\n2. *three* ~~four~~\n\n|a|b|\n|-|-|\n|`x`|y\\|z|"},
			"Head one two three four a b x y|z",
		},
		"markup in Markdown": {
			map[string]any{"markdown_text": `<img src=x onerror=alert(1)> [click](javascript:alert(1)) ![pic](https://a.example/p.png)`},
			"<img src=x onerror=alert(1)> click pic",
		},
		"quotes without end": {map[string]any{"markdown_text": strings.Repeat(">", 9000) + " deep"}, "> deep"},
		"lists without end":  {map[string]any{"markdown_text": strings.Repeat("- ", 4000) + "low"}, "- low"},
		"stars without end":  {map[string]any{"markdown_text": strings.Repeat("*a **b ", 1000) + "end"}, "b end"},
		"a block unknown here": {
			map[string]any{"text": "v", "blocks": json.RawMessage(`[{"type":"actions","elements":[{"type":"static_select",
				"action_id":"s","placeholder":{"type":"plain_text","text":"p"},
				"options":[{"text":{"type":"plain_text","text":"o"},"value":"o"}]}]}]`)},
			"A “static_select” element, which this page cannot show",
		},
		"rich text": {
			map[string]any{"text": "r", "blocks": json.RawMessage(`[{"type":"rich_text","elements":[
				{"type":"rich_text_section","elements":[{"type":"text","text":"<i>","style":{"bold":true}},{"type":"user","user_id":"U0ADA"}]},
				{"type":"rich_text_list","style":"bullet","elements":[{"type":"rich_text_section","elements":[{"type":"text","text":"one"}]}]},
				{"type":"rich_text_quote","elements":[{"type":"text","text":"two"}]}]}]`)},
			"<i>@Ada one two",
		},
	} {
		c.args["channel"] = playground.General
		s.call("chat.postMessage", c.args)
		t.Log(name)
		b.WaitText("message content", c.want)
	}
}
