package slack_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-chat/parley/conformance/platformtest"
	"github.com/parley-chat/parley/platforms/slack"
	"github.com/parley-chat/parley/platforms/slack/slacktwin"
)

func TestSlackIsAPlatformOverHTTP(t *testing.T) {
	platformtest.Run(t, func(t *testing.T) platformtest.World { return newWorkspace(t, false) })
}

func TestSlackIsAPlatformOverSocketMode(t *testing.T) {
	platformtest.Run(t, func(t *testing.T) platformtest.World { return newWorkspace(t, true) })
}

// workspace is the world of Slack: the cast in #common of the stand-in's workspace, each with a direct message.
type workspace struct {
	twin   *slacktwin.Twin
	base   string
	socket bool
}

var (
	_ platformtest.World        = (*workspace)(nil)
	_ platformtest.StatusWorld  = (*workspace)(nil)
	_ platformtest.FormWorld    = (*workspace)(nil)
	_ platformtest.GroupWorld   = (*workspace)(nil)
	_ platformtest.CommandWorld = (*workspace)(nil)
	_ platformtest.StopWorld    = (*workspace)(nil)
)

const common = "CCOMMON"

func newWorkspace(t *testing.T, socket bool) *workspace {
	t.Helper()
	soon := slices.Repeat([]time.Duration{50 * time.Millisecond}, 200)
	twin := slacktwin.New(slacktwin.Options{Agent: true, Retries: soon})
	t.Cleanup(func() {
		if err := twin.Close(); err != nil {
			t.Error("close the twin:", err)
		}
	})
	members := []string{"UBOT"}
	for _, p := range []platformtest.Person{platformtest.Ada, platformtest.Grace, platformtest.Hedy, platformtest.Mallory} {
		twin.AddUser(slacktwin.User{ID: userOf(p), Name: string(p)})
		twin.AddChannel(slacktwin.Channel{ID: directOf(p), IM: true, Members: []string{userOf(p), "UBOT"}})
		members = append(members, userOf(p))
	}
	twin.AddUser(slacktwin.User{ID: userOf(platformtest.Robot), Name: "Robot", Bot: true})
	twin.AddChannel(slacktwin.Channel{ID: common, Name: "common", Members: append(members, userOf(platformtest.Robot))})
	twin.AddGroup("SOPS", userOf(platformtest.Hedy))
	base, err := twin.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return &workspace{twin: twin, base: base, socket: socket}
}

func userOf(p platformtest.Person) string   { return "U" + strings.ToUpper(string(p)) }
func directOf(p platformtest.Person) string { return "D" + strings.ToUpper(string(p)) }

func personOf(user string) platformtest.Person {
	if user == "UBOT" {
		return platformtest.TheBot
	}
	name := strings.ToLower(strings.TrimPrefix(user, "U"))
	return platformtest.Person(strings.ToUpper(name[:1]) + name[1:])
}

func (w *workspace) Abilities() platformtest.Abilities {
	return platformtest.Abilities{
		Forms: 2, // message and app_mention
		Files: true, Growing: true, Notices: true, Names: true, Statuses: true, Modals: true, Groups: true, Commands: true, Stop: true,
	}
}

// Connect makes an adapter and, for HTTP, a server for it to listen on.
func (w *workspace) Connect(logger *slog.Logger) (platformtest.Line, error) {
	wire := &cuttable{Transport: &http.Transport{}}
	o := slack.Options{
		BotToken: w.twin.Options().BotToken, SigningSecret: w.twin.Options().SigningSecret, APIURL: w.base + "/api/",
		HTTPClient: &http.Client{Timeout: 10 * time.Second, Transport: wire}, Logger: logger,
	}
	if w.socket {
		o.SigningSecret, o.AppToken = "", w.twin.Options().AppToken
	}
	a, err := slack.New(o)
	if err != nil {
		return platformtest.Line{}, err
	}
	if w.socket {
		return platformtest.Line{Adapter: a, Cut: func() { wire.cut(); w.twin.Disconnect("") }}, nil
	}
	mux := http.NewServeMux()
	for path, handler := range a.Routes() {
		mux.Handle(path, handler)
	}
	server := httptest.NewServer(mux)
	w.twin.Connect(slacktwin.Callbacks{
		Events: server.URL + "/slack/events", Interactivity: server.URL + "/slack/interactivity", Commands: server.URL + "/slack/commands",
	})
	return platformtest.Line{Adapter: a, Cut: func() { wire.cut(); server.CloseClientConnections(); server.Close() }}, nil
}

// cuttable is a way out that can be cut.
type cuttable struct {
	*http.Transport
	mu    sync.Mutex
	isCut bool
}

func (c *cuttable) RoundTrip(r *http.Request) (*http.Response, error) {
	c.mu.Lock()
	isCut := c.isCut
	c.mu.Unlock()
	if isCut {
		return nil, errors.New("the line is cut")
	}
	return c.Transport.RoundTrip(r)
}

func (c *cuttable) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.isCut = true
	c.CloseIdleConnections()
}

func (w *workspace) Setting(who platformtest.Person) string { return "slack:" + userOf(who) }
func (w *workspace) Group() string                          { return "slack:group:SOPS" }

// place is "CHANNEL/THREAD", or "CHANNEL" for a direct message.
func place(channel, thread string) platformtest.Place {
	if thread == "" {
		return platformtest.Place(channel)
	}
	return platformtest.Place(channel + "/" + thread)
}

func parts(p platformtest.Place) (channel, thread string) {
	channel, thread, _ = strings.Cut(string(p), "/")
	return channel, thread
}

func (w *workspace) Say(_ context.Context, who platformtest.Person, words platformtest.Words) (platformtest.Said, error) {
	channel, thread := parts(words.In)
	switch {
	case words.In != "":
	case words.Direct:
		channel = directOf(who)
	default:
		channel = common
	}
	var files []slacktwin.Upload
	for _, f := range words.Files {
		files = append(files, slacktwin.Upload{Name: f.Name, MediaType: f.MediaType, Content: f.Content})
	}
	ts, err := w.twin.Say(userOf(who), channel, thread, wire(words.Text, words.Mention), files...)
	if err != nil {
		return platformtest.Said{}, err
	}
	if thread == "" && channel == common {
		thread = ts
	}
	return platformtest.Said{In: place(channel, thread), Ref: channel + "/" + ts, Mention: words.Mention}, nil
}

// wire is what a client sends of typed words.
func wire(text string, mention bool) string {
	text = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(text)
	if mention {
		text = strings.TrimSpace("<@UBOT> " + text)
	}
	return text
}

func (w *workspace) Edit(_ context.Context, who platformtest.Person, what platformtest.Said, text string) error {
	channel, ts, _ := strings.Cut(what.Ref, "/")
	return w.twin.EditMessage(userOf(who), channel, ts, wire(text, what.Mention))
}

func (w *workspace) Delete(_ context.Context, who platformtest.Person, what platformtest.Said) error {
	channel, ts, _ := strings.Cut(what.Ref, "/")
	return w.twin.DeleteMessage(userOf(who), channel, ts)
}

func (w *workspace) Press(ctx context.Context, who platformtest.Person, _ platformtest.Place, on platformtest.Seen, action string) error {
	channel, ts, _ := strings.Cut(on.Ref, "/")
	return w.twin.Click(ctx, userOf(who), channel, ts, action)
}

func (w *workspace) HasForm(who platformtest.Person) bool { return len(w.twin.Views(userOf(who))) > 0 }

func (w *workspace) Fill(ctx context.Context, who platformtest.Person, text string) error {
	open := w.twin.Views(userOf(who))
	if len(open) == 0 {
		return errors.New("no form is open")
	}
	var blocks []struct {
		ID      string `json:"block_id"`
		Element struct {
			ActionID string `json:"action_id"`
		} `json:"element"`
	}
	if err := json.Unmarshal(open[len(open)-1].Blocks, &blocks); err != nil {
		return err
	}
	values := map[string]map[string]string{blocks[0].ID: {blocks[0].Element.ActionID: text}}
	return w.twin.SubmitView(ctx, userOf(who), open[len(open)-1].ID, values)
}

// Command commands in the channel: Slack does not tell the thread, and shows the answer at the channel's end.
func (w *workspace) Command(ctx context.Context, who platformtest.Person, in platformtest.Place, name, args string) (platformtest.Place, error) {
	channel, _ := parts(in)
	return place(channel, ""), w.twin.Command(ctx, userOf(who), channel, "/"+name, args)
}

func (w *workspace) Stop(_ context.Context, who platformtest.Person, in platformtest.Place) error {
	channel, thread := parts(in)
	return w.twin.StopSession(userOf(who), channel, thread)
}

func (w *workspace) See(who platformtest.Person, in platformtest.Place) []platformtest.Seen {
	channel, thread := parts(in)
	var messages []slacktwin.Message
	if thread == "" {
		messages = w.twin.Messages(channel)
	} else {
		messages = w.twin.Thread(channel, thread)
	}
	for _, m := range w.twin.Ephemerals(userOf(who)) {
		if m.Channel == channel && m.ThreadTS == thread {
			messages = append(messages, m)
		}
	}
	slices.SortFunc(messages, func(a, b slacktwin.Message) int { return cmp.Compare(a.TS, b.TS) })
	var seen []platformtest.Seen
	for _, m := range messages {
		seen = append(seen, look(m))
	}
	return seen
}

// look is a message as a client shows it.
func look(m slacktwin.Message) platformtest.Seen {
	seen := platformtest.Seen{
		Ref: m.Channel + "/" + m.TS, From: personOf(m.User), OnlyYou: m.Ephemeral, Edited: m.EditedTS != "",
		Notifies: called(m.Text),
	}
	var blocks any
	if len(m.Blocks) > 0 && m.BotID != "" {
		if err := json.Unmarshal(m.Blocks, &blocks); err != nil {
			seen.Text = "unreadable blocks: " + err.Error()
			return seen
		}
	}
	texts := read(blocks, &seen)
	if len(texts) == 0 {
		texts = []string{m.Text}
	}
	seen.Text = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&").Replace(strings.Join(texts, "\n"))
	slices.Sort(seen.Notifies)
	seen.Notifies = slices.Compact(seen.Notifies)
	return seen
}

// read gathers the texts of blocks, and their buttons and calls.
func read(v any, seen *platformtest.Seen) (texts []string) {
	switch v := v.(type) {
	case []any:
		for _, element := range v {
			texts = append(texts, read(element, seen)...)
		}
	case map[string]any:
		text, isText := v["text"].(string)
		switch {
		case v["type"] == "button":
			action, _ := v["action_id"].(string)
			seen.Buttons = append(seen.Buttons, action)
		case isText:
			if v["type"] == "mrkdwn" {
				seen.Notifies = append(seen.Notifies, called(text)...)
			}
			texts = append(texts, text)
		default:
			for _, key := range []string{"text", "fields", "elements"} {
				texts = append(texts, read(v[key], seen)...)
			}
		}
	}
	return texts
}

var calls = regexp.MustCompile(`<(?:@([A-Z0-9]+)|!(?:channel|here|everyone|subteam\^[A-Z0-9]+))(?:\|[^<>]*)?>`)

// called are those whom mrkdwn notifies.
func called(mrkdwn string) []platformtest.Person {
	var people []platformtest.Person
	for _, m := range calls.FindAllStringSubmatch(mrkdwn, -1) {
		if m[1] == "" {
			people = append(people, platformtest.Everybody)
			continue
		}
		people = append(people, personOf(m[1]))
	}
	return people
}

func (w *workspace) Shouts() []string {
	return []string{
		"<!channel>", "<!here>", "<!everyone|all>", "<@UMALLORY>", "<@UMALLORY|mal>", "<!subteam^SOPS>", "@channel", "@here", "@Mallory",
		"&lt;!channel&gt;", "<<!channel>>",
	}
}

func (w *workspace) Watch() (<-chan struct{}, func()) {
	all, cancel := w.twin.Subscribe()
	changes := make(chan struct{}, 1)
	tick := time.NewTicker(20 * time.Millisecond) // deliveries and calls are told by nobody
	stopped := make(chan struct{})
	go func() {
		defer tick.Stop()
		for {
			select {
			case _, more := <-all:
				if !more {
					return
				}
			case <-tick.C:
			case <-stopped:
				return
			}
			select {
			case changes <- struct{}{}:
			default:
			}
		}
	}()
	return changes, sync.OnceFunc(func() { close(stopped); cancel() })
}

func (w *workspace) Delivered(what platformtest.Said) int {
	n := 0
	for _, d := range w.twin.Deliveries() {
		if d.Channel+"/"+d.TS == what.Ref && d.Acked {
			n++
		}
	}
	return n
}

func (w *workspace) Redeliver(ctx context.Context) error {
	for _, d := range slices.Backward(w.twin.Deliveries()) {
		if d.Kind == "events_api" && d.Subtype == "" && strings.Contains(string(d.Body), `"client_msg_id"`) {
			_, err := w.twin.SendPayload(ctx, d.Kind, d.Type, d.Body)
			return err
		}
	}
	return errors.New("nothing was delivered")
}

func (w *workspace) Fault(f platformtest.Fault) {
	slow := slacktwin.Fault{Method: "chat.postMessage", Status: http.StatusTooManyRequests, Error: "ratelimited", RetryAfter: time.Second}
	switch f {
	case platformtest.LoseAnswer:
		w.twin.Fault(slacktwin.Fault{Method: "chat.postMessage", Commit: true, Drop: true})
	case platformtest.SlowPost:
		w.twin.Fault(slow)
	case platformtest.SlowEdit:
		slow.Method = "chat.update"
		w.twin.Fault(slow)
	default:
		panic(fmt.Sprintf("unknown fault %d", f))
	}
}

func (w *workspace) Statuses(in platformtest.Place) []bool {
	channel, thread := parts(in)
	var statuses []bool
	for _, c := range w.twin.Calls() {
		if c.Method == "agents.sessions.setStatus" && c.OK && c.Args["channel_id"] == channel && c.Args["thread_ts"] == thread {
			statuses = append(statuses, c.Args["status"] == "processing")
		}
	}
	return statuses
}
