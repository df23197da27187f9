package slacktwin

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"mime/multipart"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/slack-go/slack"
)

func TestBodiesAndTokensAreTakenAsSlackTakesThem(t *testing.T) {
	const form, js = "application/x-www-form-urlencoded", "application/json; charset=utf-8"
	tests := []struct {
		name, method, contentType, bearer, body string
		want                                    string // "" is accepted
	}{
		{"form with the token in a field", "chat.postMessage", form, "", "token=xoxb-twin&channel=CGENERAL&text=x", ""},
		{"form with a bearer", "chat.postMessage", form, "xoxb-twin", "channel=CGENERAL&text=x", ""},
		{"the header wins", "chat.postMessage", form, "xoxb-wrong", "token=xoxb-twin&channel=CGENERAL&text=x", "invalid_auth"},
		{"JSON with a bearer", "chat.postMessage", js, "xoxb-twin", `{"channel":"CGENERAL","text":"x"}`, ""},
		{"no token in JSON", "chat.postMessage", js, "", `{"token":"xoxb-twin","channel":"CGENERAL","text":"x"}`, "not_authed"},
		{"blocks as a list in JSON", "chat.postMessage", js, "xoxb-twin", `{"channel":"CGENERAL","blocks":[{"type":"divider"}]}`, ""},
		{"blocks as a string in JSON", "chat.postMessage", js, "xoxb-twin", `{"channel":"CGENERAL","blocks":"[{\"type\":\"divider\"}]"}`, ""},
		{"null is absent", "chat.postMessage", js, "xoxb-twin", `{"channel":"CGENERAL","text":"x","thread_ts":null}`, ""},
		{"no token", "auth.test", form, "", "", "not_authed"},
		{"an unknown token", "auth.test", form, "xoxb-other", "", "invalid_auth"},
		{"the app token may ask who it is", "auth.test", form, "xapp-twin", "", ""},
		{"the app token may not post", "chat.postMessage", form, "xapp-twin", "channel=CGENERAL&text=x", "not_allowed_token_type"},
		{"the bot token opens no socket", "apps.connections.open", form, "xoxb-twin", "", "not_allowed_token_type"},
		{"form-only methods do not see JSON", "users.info", js, "xoxb-twin", `{"user":"UALICE"}`, "user_not_found"},
		{"form-only methods see forms", "users.info", form, "xoxb-twin", `user=UALICE`, ""},
		{"broken JSON", "chat.postMessage", js, "xoxb-twin", `{"channel":`, "invalid_json"},
		{"JSON that is no object", "chat.postMessage", js, "xoxb-twin", `[1]`, "json_not_object"},
		{"another type", "chat.postMessage", "text/plain", "xoxb-twin", `x`, "invalid_post_type"},
		{"no type", "chat.postMessage", "", "xoxb-twin", `x`, "missing_post_type"},
		{"a broken form", "chat.postMessage", form, "xoxb-twin", `a=%zz`, "invalid_form_data"},
		{"PHP arrays", "chat.postMessage", form, "xoxb-twin", `a[1]=x`, "invalid_array_arg"},
		{"an unknown method", "chat.whistle", form, "xoxb-twin", ``, "unknown_method"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, nil)
			status, _, got := w.call(tt.method, tt.contentType, tt.bearer, tt.body)
			word, _ := got["error"].(string)
			if status != http.StatusOK || word != tt.want || (got["ok"] == true) != (tt.want == "") {
				t.Errorf("got %d %v, want %q", status, got, tt.want)
			}
		})
	}
}

func TestMultipartFormsAndQueriesAreRead(t *testing.T) {
	w := newWorld(t, nil)
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	for name, value := range map[string]string{"token": "xoxb-twin", "channel": "CGENERAL", "text": "multi"} {
		if err := form.WriteField(name, value); err != nil {
			t.Fatal(err)
		}
	}
	form.Close()
	if _, _, got := w.call("chat.postMessage", form.FormDataContentType(), "", body.String()); got["ok"] != true {
		t.Errorf("multipart: got %v", got)
	}
	request, err := http.NewRequest(http.MethodGet, w.URL()+"/api/users.info?user=UALICE", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer xoxb-twin")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var got map[string]any
	if err := json.NewDecoder(response.Body).Decode(&got); err != nil || got["ok"] != true {
		t.Errorf("GET: got %v, %v", got, err)
	}
}

func TestRevokedAndUninstalledBotsAreTold(t *testing.T) {
	w := newWorld(t, nil)
	w.listen()
	w.RevokeTokens()
	w.idle()
	if _, err := w.api.AuthTest(); code(err) != "token_revoked" {
		t.Errorf("got %v", err)
	}
	w.Uninstall()
	w.idle()
	if _, err := w.api.AuthTest(); code(err) != "account_inactive" {
		t.Errorf("got %v", err)
	}
	if len(w.bot.events("tokens_revoked")) != 1 || len(w.bot.events("app_uninstalled")) != 1 {
		t.Errorf("got %v", w.bot.all())
	}
}

func TestTimestampsOnlyGrow(t *testing.T) {
	w := newWorld(t, nil)
	last := ""
	for range 50 {
		ts := w.say("UALICE", "CGENERAL", "", "x")
		if ts <= last || !validTS(ts) {
			t.Fatalf("got %q after %q", ts, last)
		}
		last = ts
	}
}

func TestClosingLeavesNoGoroutine(t *testing.T) {
	before := runtime.NumGoroutine()
	t.Run("a busy twin", func(t *testing.T) {
		w := newWorld(t, nil)
		w.plugIn()
		w.plugIn()
		w.Subscribe()
		ts := w.post("CGENERAL", text("card"), slack.MsgOptionBlocks(buttons("approve", "v1")))
		for range 20 {
			w.say("UALICE", "CGENERAL", ts, "x")
		}
		w.Fault(Fault{Method: "auth.test", Delay: time.Hour})
		go func() { _, _ = w.api.AuthTest() }()
		waitFor(t, func() bool { return w.clock.waiting() > 3 })
		if err := w.Twin.Close(); err != nil {
			t.Error(err)
		}
		if _, err := w.Say("UALICE", "CGENERAL", "", "after the end"); err != nil {
			t.Error(err)
		}
	})
	http.DefaultClient.CloseIdleConnections()
	waitFor(t, func() bool { return runtime.NumGoroutine() <= before+1 })
}

func FuzzDecodeArgs(f *testing.F) {
	const form, js = "application/x-www-form-urlencoded", "application/json"
	f.Add("POST", form, "", []byte("channel=C1&text=a%20b&blocks=[]"), false)
	f.Add("POST", js, "", []byte(`{"channel":"C1","blocks":[{"type":"divider"}],"n":1,"null":null}`), false)
	f.Add("POST", js, "", []byte(`{"user":"U1"}`), true)
	f.Add("POST", "multipart/form-data; boundary=b", "", []byte("--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nx\r\n--b--"), false)
	f.Add("GET", "", "user=U1&cursor=x", []byte(nil), true)
	f.Add("POST", "text/plain", "a[0]=1", []byte("x"), false)
	f.Fuzz(func(t *testing.T, verb, contentType, query string, body []byte, formOnly bool) {
		a, err := decodeArgs(verb, contentType, query, body, formOnly)
		if a == nil {
			t.Fatal("the arguments are nil")
		}
		if _, ok := errors.AsType[*refusal](err); err != nil && !ok {
			t.Fatalf("not one of Slack's words: %T %v", err, err)
		}
		again, _ := decodeArgs(verb, contentType, query, body, formOnly)
		if err == nil && !maps.Equal(a, again) {
			t.Fatalf("got %v, then %v", a, again)
		}
		a.list("users")
		_, _ = readSpan(a, 100)
		_, _ = checkMetadata(a["metadata"])
		_, _ = checkAttachments(a["attachments"])
	})
}

func FuzzCheckBlocks(f *testing.F) {
	for _, seed := range []string{
		`[]`, `[{"type":"divider"}]`, `[{"type":"section","text":{"type":"mrkdwn","text":"x"},"accessory":{"type":"button"}}]`,
		`[{"type":"actions","elements":[{"type":"button","text":{"type":"plain_text","text":"x"},"confirm":{}}]}]`,
		`[{"type":"table","rows":[[{"type":"raw_text","text":"x"}]]},{"type":"rich_text","elements":[{"type":"rich_text_section"}]}]`,
		`[{"type":"input","label":{},"element":{"type":"static_select","option_groups":[{"options":[{}]}]}}]`,
	} {
		f.Add(seed, "message")
		f.Add(seed, "modal")
	}
	count := 0
	newID := func(prefix string) string { count++; return prefix + strings.Repeat("i", count%7+1) }
	f.Fuzz(func(t *testing.T, raw, where string) {
		blocks, err := checkBlocks(raw, surface(where), newID)
		if err != nil {
			if _, ok := errors.AsType[*refusal](err); !ok {
				t.Fatalf("not one of Slack's words: %v", err)
			}
			return
		}
		if len(blocks) > 0 && !json.Valid(blocks) {
			t.Fatalf("no JSON: %s", blocks)
		}
		_, _ = findAction(blocks, "go", "v")
	})
}
