package slack

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/parley-chat/parley/platforms"
)

var self = identity{Team: "T1", Enterprise: "E1", User: "UBOT", BotID: "BBOT"}

// eventBody is an event_callback around an event.
func eventBody(event string) string {
	return `{"type":"event_callback","api_app_id":"A1","team_id":"T1","event_id":"Ev1","authorizations":[{"team_id":"T1"}],"event":` + event + `}`
}

func readingOf(k kind, body string) reading {
	return interpret(envelope{Kind: k, Self: self, Body: json.RawMessage(body)})
}

func TestWhichMessagesAreTaken(t *testing.T) {
	tests := map[string]struct {
		event string
		want  string // of the Inbound, as %T or as the reason it is ignored
	}{
		"direct message":                      {`{"type":"message","channel":"D1","channel_type":"im","user":"U1","ts":"1.0","text":"x"}`, "Message"},
		"direct message without channel_type": {`{"type":"message","channel":"D1","user":"U1","ts":"1.0","text":"x"}`, "Message"},
		"mention":                             {`{"type":"app_mention","channel":"C1","user":"U1","ts":"1.0","text":"<@UBOT> x"}`, "Message"},
		"message that mentions":               {`{"type":"message","channel":"C1","user":"U1","ts":"1.0","text":"hey <@UBOT|bot> x"}`, "Message"},
		"message that mentions another":       {`{"type":"message","channel":"C1","user":"U1","ts":"1.0","text":"<@UBOTX> x"}`, "not_addressed"},
		"top level":                           {`{"type":"message","channel":"C1","user":"U1","ts":"1.0","text":"x"}`, "not_addressed"},
		"parent of a thread":                  {`{"type":"message","channel":"C1","user":"U1","ts":"1.0","thread_ts":"1.0","text":"x"}`, "not_addressed"},
		"reply":                               {`{"type":"message","channel":"C1","user":"U1","ts":"2.0","thread_ts":"1.0","text":"x"}`, "Message"},
		"reply shown in the channel too":      {`{"type":"message","subtype":"thread_broadcast","channel":"C1","user":"U1","ts":"2.0","thread_ts":"1.0"}`, "Message"},
		"group direct message":                {`{"type":"message","channel":"G1","channel_type":"mpim","user":"U1","ts":"1.0","text":"x"}`, "not_addressed"},
		"file_share":                          {`{"type":"message","subtype":"file_share","channel":"D1","user":"U1","ts":"1.0","files":[{"id":"F1"}]}`, "Message"},
		"me_message":                          {`{"type":"message","subtype":"me_message","channel":"D1","user":"U1","ts":"1.0","text":"x"}`, "Message"},
		"ours by user":                        {`{"type":"message","channel":"D1","user":"UBOT","ts":"1.0","text":"x"}`, "own"},
		"ours by bot_id":                      {`{"type":"message","channel":"D1","bot_id":"BBOT","ts":"1.0","text":"x"}`, "own"},
		"another bot":                         {`{"type":"app_mention","channel":"C1","user":"U9","bot_id":"B9","ts":"1.0","text":"<@UBOT>"}`, "bot"},
		"bot_message":                         {`{"type":"message","subtype":"bot_message","channel":"D1","bot_id":"B9","ts":"1.0"}`, "subtype"},
		"Slackbot":                            {`{"type":"message","channel":"D1","user":"USLACKBOT","ts":"1.0","text":"x"}`, "slackbot"},
		"nobody":                              {`{"type":"message","channel":"D1","ts":"1.0","text":"x"}`, "no_user"},
		"channel_join":                        {`{"type":"message","subtype":"channel_join","channel":"C1","user":"U1","ts":"1.0"}`, "subtype"},
		"hidden":                              {`{"type":"message","hidden":true,"channel":"D1","user":"U1","ts":"1.0"}`, "hidden"},
		"no channel":                          {`{"type":"message","user":"U1","ts":"1.0"}`, "malformed"},
		"no ts":                               {`{"type":"message","channel":"D1","user":"U1"}`, "malformed"},
		"reaction_added":                      {`{"type":"reaction_added","user":"U1","item":{"channel":"C1"}}`, "event_type"},
		"an unknown event":                    {`{"type":"something_new","channel":{"id":"C1"}}`, "event_type"},
		"edit":                                {`{"type":"message","subtype":"message_changed","hidden":true,"channel":"D1","event_ts":"3.0","message":{"user":"U1","ts":"1.0","text":"y"},"previous_message":{"text":"x"}}`, "Edited"},
		"edit in a thread":                    {`{"type":"message","subtype":"message_changed","channel":"C1","message":{"user":"U1","ts":"2.0","thread_ts":"1.0","text":"y"}}`, "Edited"},
		"edit at the top level":               {`{"type":"message","subtype":"message_changed","channel":"C1","message":{"user":"U1","ts":"2.0","text":"y"},"previous_message":{"text":"x"}}`, "not_addressed"},
		"edit that takes the mention away":    {`{"type":"message","subtype":"message_changed","channel":"C1","message":{"user":"U1","ts":"2.0","text":"y"},"previous_message":{"text":"<@UBOT> x"}}`, "Edited"},
		"link preview":                        {`{"type":"message","subtype":"message_changed","channel":"D1","message":{"user":"U1","ts":"1.0","text":"x"},"previous_message":{"text":"x"}}`, "unchanged"},
		"edit of ours":                        {`{"type":"message","subtype":"message_changed","channel":"D1","message":{"user":"UBOT","ts":"1.0","text":"y"}}`, "own"},
		"edit of nothing":                     {`{"type":"message","subtype":"message_changed","channel":"D1","message":null}`, "malformed"},
		"deletion":                            {`{"type":"message","subtype":"message_deleted","channel":"D1","deleted_ts":"1.0","previous_message":{"user":"U1","text":"x"}}`, "Deleted"},
		"deletion of ours":                    {`{"type":"message","subtype":"message_deleted","channel":"C1","deleted_ts":"2.0","previous_message":{"bot_id":"BBOT","thread_ts":"1.0"}}`, "Deleted"},
		"deletion of another bot's":           {`{"type":"message","subtype":"message_deleted","channel":"C1","deleted_ts":"2.0","previous_message":{"bot_id":"B9","thread_ts":"1.0"}}`, "bot"},
		"deletion at the top level":           {`{"type":"message","subtype":"message_deleted","channel":"C1","deleted_ts":"2.0","previous_message":{"user":"U1"}}`, "not_addressed"},
		"deletion of who knows what":          {`{"type":"message","subtype":"message_deleted","channel":"C1","deleted_ts":"2.0"}`, "Deleted"},
		"deletion of a parent with replies":   {`{"type":"message","subtype":"message_changed","channel":"C1","message":{"subtype":"tombstone","user":"USLACKBOT","ts":"1.0","thread_ts":"1.0"},"previous_message":{"user":"U1","text":"<@UBOT> x","thread_ts":"1.0"}}`, "Deleted"},
		"deletion without ts":                 {`{"type":"message","subtype":"message_deleted","channel":"C1"}`, "malformed"},
		"stop button":                         {`{"type":"agent_session_stopped","channel":"C1","thread_ts":"1.0","user":"U1","streaming_message_ts":["2.0"],"event_ts":"3.0"}`, "Stop"},
		"stop button of nothing":              {`{"type":"agent_session_stopped","channel":"C1"}`, "malformed"},
		"fields of other types":               {`{"type":"message","channel":"D1","user":"U1","ts":"1.0","text":7,"files":{"a":1},"team":[],"hidden":"no","thread_ts":null}`, "Message"},
		"one odd file among files":            {`{"type":"message","channel":"D1","user":"U1","ts":"1.0","files":[7,{"id":9},{"id":"F1","size":"big"}]}`, "Message"},
		"an event that is a string":           {`"message"`, "event_type"},
		"no event":                            {`null`, "event_type"},
		"a list":                              {`[]`, "event_type"},
		"a channel that is an object":         {`{"type":"message","channel":{"id":"C1"},"user":"U1","ts":"1.0"}`, "malformed"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := readingOf(kindEvent, eventBody(tt.event))
			got := strings.TrimPrefix(fmt.Sprintf("%T", r.in), "platforms.")
			why, isIgnored := r.isIgnored()
			if isIgnored {
				got = why
			}
			if got != tt.want {
				t.Fatalf("got %s, want %s", got, tt.want)
			}
			if !isIgnored && (len(r.keys) != 2 || r.keys[0] != "e:A1/T1/Ev1" || r.conversation == "") {
				t.Errorf("keys: got %v, conversation %q", r.keys, r.conversation)
			}
		})
	}
}

func TestWhereAMessageBelongs(t *testing.T) {
	tests := map[string]struct {
		event string
		want  platforms.Conversation
	}{
		"top of a channel":       {`{"type":"app_mention","channel":"C1","user":"U1","ts":"1.0"}`, "T1/C1/1.0"},
		"reply":                  {`{"type":"app_mention","channel":"C1","user":"U1","ts":"2.0","thread_ts":"1.0"}`, "T1/C1/1.0"},
		"plain direct message":   {`{"type":"message","channel":"D1","channel_type":"im","user":"U1","ts":"1.0"}`, "T1/D1"},
		"thread of the pane":     {`{"type":"message","channel":"D1","channel_type":"im","user":"U1","ts":"2.0","thread_ts":"1.0"}`, "T1/D1/1.0"},
		"edit of a reply":        {`{"type":"message","subtype":"message_changed","channel":"C1","ts":"9.0","message":{"user":"U1","ts":"2.0","thread_ts":"1.0","text":"y"}}`, "T1/C1/1.0"},
		"deletion of a reply":    {`{"type":"message","subtype":"message_deleted","channel":"C1","ts":"9.0","deleted_ts":"2.0","previous_message":{"user":"U1","thread_ts":"1.0"}}`, "T1/C1/1.0"},
		"deletion of a question": {`{"type":"message","subtype":"message_deleted","channel":"C1","deleted_ts":"1.0","previous_message":{"user":"U1","text":"<@UBOT>"}}`, "T1/C1/1.0"},
	}
	for name, tt := range tests {
		if got := readingOf(kindEvent, eventBody(tt.event)).conversation; got != tt.want {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
}

func TestTheTwoEventsOfAMentionShareAKeyAndEditsDoNot(t *testing.T) {
	a := readingOf(kindEvent, eventBody(`{"type":"app_mention","channel":"C1","user":"U1","ts":"1.0"}`))
	b := readingOf(kindEvent, eventBody(`{"type":"message","channel":"C1","user":"U1","ts":"1.0","text":"<@UBOT>"}`))
	c := readingOf(kindEvent, eventBody(`{"type":"message","subtype":"message_changed","channel":"C1","event_ts":"5.0","message":{"user":"U1","ts":"1.0","text":"<@UBOT>"}}`))
	d := readingOf(kindEvent, eventBody(`{"type":"message","subtype":"message_changed","channel":"C1","event_ts":"6.0","message":{"user":"U1","ts":"1.0","text":"<@UBOT>"}}`))
	if a.keys[1] != "m:T1/C1/1.0" || b.keys[1] != a.keys[1] {
		t.Errorf("got %v and %v", a.keys, b.keys)
	}
	if c.keys[1] != "c:T1/C1/1.0/5.0" || d.keys[1] == c.keys[1] {
		t.Errorf("got %v and %v", c.keys, d.keys)
	}
}

func TestWhoSaidIt(t *testing.T) {
	tests := map[string]struct {
		fields string
		want   platforms.User
	}{
		"one of us":                       {``, platforms.User{ID: "T1/U1"}},
		"one of us, said":                 {`,"team":"T1","user_team":"T1"`, platforms.User{ID: "T1/U1"}},
		"one of our organisation":         {`,"user_team":"E1"`, platforms.User{ID: "T1/U1"}},
		"somebody of another workspace":   {`,"team":"T1","user_team":"T2"`, platforms.User{ID: "T2/U1", External: true}},
		"the same, by source_team":        {`,"source_team":"T2","team":"T1"`, platforms.User{ID: "T2/U1", External: true}},
		"the same, by team":               {`,"team":"T2"`, platforms.User{ID: "T2/U1", External: true}},
		"one of us, of whom types differ": {`,"user_team":7,"team":null`, platforms.User{ID: "T1/U1"}},
	}
	for name, tt := range tests {
		r := readingOf(kindEvent, eventBody(`{"type":"message","channel":"D1","user":"U1","ts":"1.0"`+tt.fields+`}`))
		if m, ok := r.in.(platforms.Message); !ok || m.From != tt.want {
			t.Errorf("%s: got %+v, want %+v", name, r.in, tt.want)
		}
	}
}

func TestAnEventOfAnotherInstallationIsNotOurs(t *testing.T) {
	body := func(auth string) string {
		return `{"type":"event_callback","team_id":"T9","authorizations":` + auth + `,"event":{"type":"message","channel":"D1","user":"U1","ts":"1.0"}}`
	}
	for auth, taken := range map[string]bool{
		`[{"team_id":"T1"}]`:                              true, // Slack Connect: the event happened in T9
		`[{"team_id":"T9"}]`:                              false,
		`[{"team_id":"T9","is_enterprise_install":true}]`: true,
		`[]`:     true,
		`null`:   true,
		`"none"`: true,
		`[7]`:    true,
	} {
		_, isIgnored := readingOf(kindEvent, body(auth)).isIgnored()
		if isIgnored == taken {
			t.Errorf("%s: taken %v, want %v", auth, !isIgnored, taken)
		}
	}
}

func TestWhatIsWrittenBecomesCommonMark(t *testing.T) {
	tests := map[string]string{
		"<@UBOT> hello":                                 "hello",
		"<@UBOT|bot>: hello":                            "hello",
		"  <@UBOT>, hello":                              "hello",
		"hey <@UBOT> do it":                             "hey do it",
		"hey <@UBOT>, do it":                            "hey , do it",
		"ask <@UBOT>":                                   "ask",
		"<@UBOT>":                                       "",
		"<@U2> and <@U3|carol>":                         "@U2 and @carol",
		"&lt;b&gt; &amp;amp; &amp;lt;":                  "<b> &amp; &lt;",
		"<https://a.example/x?a=1&amp;b=2>":             "https://a.example/x?a=1&b=2",
		"<https://a.example|the page>":                  "[the page](https://a.example)",
		"<https://a.example|a [b] &lt;c&gt;>":           `[a \[b\] <c>](https://a.example)`,
		"<https://a.example/(x)|x>":                     "[x](<https://a.example/(x)>)",
		"<http://a.example|a.example>":                  "a.example",
		"<https://a.example|https://a.example>":         "https://a.example",
		"<mailto:a@b.example|a@b.example>":              "a@b.example",
		"<mailto:a@b.example>":                          "a@b.example",
		"<#C1|general> <#C2> <#C3|>":                    "#general #C2 #C3",
		"<!here> <!channel|channel> <!subteam^S1|@ops>": "@here channel @ops",
		"<!subteam^S1> <!everyone>":                     "@S1 @everyone",
		"<!date^1392734382^{date}|Feb 18, 2014>":        "Feb 18, 2014",
		"<!date^1392734382^{date}>":                     "",
		"a <b":                                          "a <b",
		"a < b > c":                                     "a  b  c",
		"<>":                                            "",
		"<|x>":                                          "x",
		"```\nif a &lt; b {\n  c()\n}\n```":             "```\nif a < b {\n  c()\n}\n```",
		"line\n<@UBOT> line":                            "line\nline",
	}
	for in, want := range tests {
		if got, _ := commonMark(in, "UBOT"); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestWordsThatCommand(t *testing.T) {
	tests := map[string]struct {
		want   string // name and arguments
		urgent bool
	}{
		"stop":                                  {"stop", true},
		"<@UBOT> Stop":                          {"stop", true},
		"/stop":                                 {"stop", true},
		"stop it":                               {"", false},
		"please stop":                           {"", false},
		"status":                                {"status ", true},
		"/approvals":                            {"approvals ", true},
		"reset":                                 {"reset ", false},
		"reset everything":                      {"", false},
		"approve n8ex85xxcstr2i3pn9jq":          {"approve n8ex85xxcstr2i3pn9jq", true},
		"<@UBOT> /approve n8ex85xxcstr2i3pn9jq": {"approve n8ex85xxcstr2i3pn9jq", true},
		"approve":                               {"", false},
		"approve the budget":                    {"", false},
		"deny n8ex85xxcstr2i3pn9jq":             {"deny n8ex85xxcstr2i3pn9jq", true},
		"deny n8ex85xxcstr2i3pn9jq not on Friday": {"deny n8ex85xxcstr2i3pn9jq not on Friday", true},
		"deny it, it is Friday":                   {"", false},
		"deny":                                    {"", false},
		"denying it":                              {"", false},
		"":                                        {"", false},
	}
	for text, tt := range tests {
		body, _ := json.Marshal(map[string]string{"type": "message", "channel": "D1", "user": "U1", "ts": "1.0", "text": text})
		r := readingOf(kindEvent, eventBody(string(body)))
		got := ""
		switch in := r.in.(type) {
		case platforms.Stop:
			got = "stop"
		case platforms.Command:
			got = in.Name + " " + in.Args
			if in.Conversation != "T1/D1" || in.By.ID != "T1/U1" || len(in.Reply) == 0 {
				t.Errorf("%q: got %+v", text, in)
			}
		}
		if got != tt.want || r.urgent != tt.urgent {
			t.Errorf("%q: got %q, urgent %v; want %q, %v", text, got, r.urgent, tt.want, tt.urgent)
		}
		if r.keys[1] != "m:T1/D1/1.0" {
			t.Errorf("%q: keys %v", text, r.keys)
		}
	}
	r := readingOf(kindEvent, eventBody(`{"type":"message","channel":"C1","user":"U1","ts":"1.0","text":"stop"}`))
	if _, ok := r.isIgnored(); !ok {
		t.Errorf("a stop to nobody: got %+v", r.in)
	}
	r = readingOf(kindEvent, eventBody(`{"type":"message","channel":"D1","user":"U1","ts":"1.0","text":"stop","files":[{"id":"F1"}]}`))
	if _, ok := r.in.(platforms.Message); !ok {
		t.Errorf("a stop with a file: got %+v", r.in)
	}
}

func TestClicks(t *testing.T) {
	click := `{"type":"block_actions","trigger_id":"t1","response_url":"https://hooks.slack.com/x",
		"user":{"id":"U1","name":"ann","team_id":"T2"},"channel":{"id":"C1"},"container":{"message_ts":"2.0","channel_id":"C1","thread_ts":"1.0"},
		"message":{"ts":"2.0","thread_ts":"1.0"},
		"actions":[{"type":"static_select","action_id":"menu"},{"type":"button","action_id":"approve","value":"r1","action_ts":"3.0"}]}`
	r := readingOf(kindInteractive, click)
	c, ok := r.in.(platforms.Click)
	if !ok || c.Action != "approve" || c.Value != "r1" || c.On != "C1/2.0" || c.Conversation != "T1/C1/1.0" ||
		c.By != (platforms.User{ID: "T2/U1", Name: "ann", External: true}) || !r.urgent {
		t.Errorf("got %+v", r)
	}
	if len(r.keys) != 1 || r.keys[0] != "a:T1/C1/2.0/U1/approve/3.0" {
		t.Errorf("keys: got %v", r.keys)
	}
	var to reply
	if err := json.Unmarshal(c.Reply, &to); err != nil || to != (reply{
		ResponseURL: "https://hooks.slack.com/x", TriggerID: "t1", Team: "T1", Channel: "C1", Thread: "1.0", User: "U1",
	}) {
		t.Errorf("reply: got %+v, %v", to, err)
	}
	tests := map[string]struct{ body, want string }{
		"from the container alone":    {`{"type":"block_actions","user":{"id":"U1"},"container":{"message_ts":"2.0","channel_id":"D1"},"actions":[{"action_id":"a"}]}`, "T1/D1"},
		"at the top of a channel":     {`{"type":"block_actions","user":{"id":"U1"},"channel":{"id":"C1"},"message":{"ts":"2.0"},"actions":[{"action_id":"a"}]}`, "T1/C1/2.0"},
		"in a home tab":               {`{"type":"block_actions","user":{"id":"U1"},"view":{"id":"V1"},"actions":[{"action_id":"a","type":"button"}]}`, "no_message"},
		"no button":                   {`{"type":"block_actions","user":{"id":"U1"},"channel":{"id":"C1"},"message":{"ts":"2.0"},"actions":[{"action_id":"a","type":"overflow"}]}`, "no_button"},
		"no actions":                  {`{"type":"block_actions","user":{"id":"U1"},"actions":null}`, "no_button"},
		"actions of another type":     {`{"type":"block_actions","actions":{"a":1}}`, "no_button"},
		"no user":                     {`{"type":"block_actions","user":"U1","channel":{"id":"C1"},"message":{"ts":"2.0"},"actions":[{"action_id":"a"}]}`, "malformed"},
		"a shortcut":                  {`{"type":"shortcut"}`, "interaction_type"},
		"a closed view":               {`{"type":"view_closed","view":{}}`, "interaction_type"},
		"nothing":                     {`null`, "interaction_type"},
		"another app's view":          {`{"type":"view_submission","view":{"callback_id":"x"}}`, "foreign_view"},
		"a view with odd metadata":    {`{"type":"view_submission","user":{"id":"U1"},"view":{"callback_id":"parley_modal","private_metadata":"{"}}`, "malformed"},
		"a view without an action":    {`{"type":"view_submission","user":{"id":"U1"},"view":{"callback_id":"parley_modal","private_metadata":"{}"}}`, "malformed"},
		"a view with an empty answer": {`{"type":"view_submission","user":{"id":"U1"},"view":{"id":"V1","hash":"h","callback_id":"parley_modal","private_metadata":"{\"action\":\"deny\",\"reply\":{\"channel\":\"D1\",\"team\":\"T1\"}}","state":{"values":{"text":{"text":{"type":"plain_text_input","value":null}}}}}}`, "T1/D1"},
		"a view with odd values":      {`{"type":"view_submission","user":{"id":"U1"},"view":{"callback_id":"parley_modal","private_metadata":"{\"action\":\"deny\",\"reply\":{\"channel\":\"D1\",\"team\":\"T1\"}}","state":{"values":{"a":7,"text":{"b":[],"text":{"value":{"x":1}}}}}}}`, "T1/D1"},
	}
	for name, tt := range tests {
		r := readingOf(kindInteractive, tt.body)
		got := string(r.conversation)
		if why, ok := r.isIgnored(); ok {
			got = why
		}
		if got != tt.want {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
}

func TestCommands(t *testing.T) {
	tests := map[string]struct {
		body   string
		want   platforms.Command
		key    platforms.Key
		urgent bool
	}{
		"in a channel": {
			`{"command":"/status","text":" all &amp; more ","user_id":"U1","user_name":"ann","team_id":"T1","channel_id":"C1","trigger_id":"t1","response_url":"https://hooks.slack.com/x"}`,
			platforms.Command{By: platforms.User{ID: "T1/U1", Name: "ann"}, Name: "status", Args: "all & more"}, "t:T1/t1", true,
		},
		"in a direct message": {
			`{"command":"/reset","user_id":"U1","channel_id":"D1","trigger_id":"t1"}`,
			platforms.Command{Conversation: "T1/D1", By: platforms.User{ID: "T1/U1"}, Name: "reset"}, "t:T1/t1", false,
		},
		"in a thread, if Slack should ever say so": {
			`{"command":"/stop","user_id":"U1","channel_id":"C1","thread_ts":"1.0","trigger_id":"t1","text":null}`,
			platforms.Command{Conversation: "T1/C1/1.0", By: platforms.User{ID: "T1/U1"}, Name: "stop"}, "t:T1/t1", true,
		},
	}
	for name, tt := range tests {
		r := readingOf(kindCommand, tt.body)
		c, ok := r.in.(platforms.Command)
		c.Reply = nil
		if !ok || fmt.Sprintf("%+v", c) != fmt.Sprintf("%+v", tt.want) || r.keys[0] != tt.key || r.urgent != tt.urgent {
			t.Errorf("%s: got %+v %v urgent %v", name, r.in, r.keys, r.urgent)
		}
	}
	for _, body := range []string{`{}`, `null`, `[]`, `{"command":7,"user_id":"U1"}`, `{"command":"/x"}`, `{"command":"/","user_id":"U1"}`} {
		if why, ok := readingOf(kindCommand, body).isIgnored(); !ok || why != "malformed" {
			t.Errorf("%s: got %q", body, why)
		}
	}
	a := readingOf(kindCommand, `{"command":"/x","user_id":"U1","response_url":"a"}`)
	b := readingOf(kindCommand, `{"command":"/x","user_id":"U1","response_url":"b"}`)
	if a.keys[0] == b.keys[0] {
		t.Error("two commands without a trigger share a key")
	}
}

func TestReadTakesWhatWasWrappedAndNothingElse(t *testing.T) {
	a := &Adapter{}
	raw, err := envelope{Kind: kindEvent, Self: self, Body: json.RawMessage(eventBody(`{"type":"message","channel":"D1","user":"U1","ts":"1700000000.000100","text":"x"}`))}.wrap()
	if err != nil {
		t.Fatal(err)
	}
	in, err := a.Read(raw)
	m, ok := in.(platforms.Message)
	if err != nil || !ok || !m.At.Equal(time.Unix(1700000000, 100_000)) {
		t.Errorf("got %+v, %v", in, err)
	}
	for _, bad := range []string{"", "x", "null", "{}", `{"v":2,"kind":"event","body":{}}`, `{"v":1,"kind":"rumour","body":{}}`, `{"v":"1"}`} {
		if in, err := a.Read([]byte(bad)); err == nil {
			t.Errorf("%q: got %+v, want an error", bad, in)
		}
	}
	for _, odd := range []string{`{"v":1,"kind":"event"}`, `{"v":1,"kind":"event","body":null,"later":1}`} {
		if in, err := a.Read([]byte(odd)); err != nil {
			t.Errorf("%q: got %v", odd, err)
		} else if _, ok := in.(platforms.Ignored); !ok {
			t.Errorf("%q: got %+v", odd, in)
		}
	}
}

func TestAnEnvelopeWrittenByTheFirstVersionIsStillRead(t *testing.T) {
	const raw = `{"v":1,"kind":"event","self":{"team":"T1","user":"UBOT","bot":"BBOT"},"body":{"type":"event_callback","event":{"type":"app_mention","channel":"C1","user":"U1","text":"<@UBOT> hi","ts":"1700000000.000100"}}}`
	in, err := (&Adapter{}).Read([]byte(raw))
	want := platforms.Message{
		Conversation: "T1/C1/1700000000.000100", Ref: "C1/1700000000.000100", From: platforms.User{ID: "T1/U1"},
		Addressed: platforms.Mentioned, Text: "hi", At: time.Unix(1700000000, 100_000).UTC(),
	}
	if err != nil || fmt.Sprintf("%+v", in) != fmt.Sprintf("%+v", want) {
		t.Errorf("got %+v, %v\nwant %+v", in, err, want)
	}
}
