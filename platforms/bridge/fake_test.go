package bridge_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-chat/parley/approvals"
	"github.com/parley-chat/parley/core/agent"
	"github.com/parley-chat/parley/core/chat"
	"github.com/parley-chat/parley/core/graph"
	"github.com/parley-chat/parley/core/harness"
	"github.com/parley-chat/parley/core/llm"
	"github.com/parley-chat/parley/core/llm/demo"
	"github.com/parley-chat/parley/platforms"
	"github.com/parley-chat/parley/platforms/bridge"
	"github.com/parley-chat/parley/store"
	"github.com/parley-chat/parley/store/memory"
)

// place is a platform as simple as can be: what people see is a list of messages. It outlives the bot, as a real one
// does.
type place struct {
	mu       sync.Mutex
	messages []*shown
	notices  []string
	statuses []platforms.Status
	fail     []error // for the next posts; nil means success
	lose     bool    // posts succeed and report an unknown outcome
	groups   map[string][]platforms.UserID
}

// shown is one message that people see.
type shown struct {
	in   platforms.Conversation
	mark string
	part part
}

// part is the fake's rendered message.
type part struct {
	Text    string             `json:"text"`
	Buttons []platforms.Button `json:"buttons,omitempty"`
}

// fake is the adapter to the place for one life of the bot.
type fake struct {
	place *place
	inbox chan platforms.Inbox
	done  chan struct{}
}

var (
	_ platforms.Adapter      = (*fake)(nil)
	_ platforms.Finder       = (*fake)(nil)
	_ platforms.Notifier     = (*fake)(nil)
	_ platforms.StatusSetter = (*fake)(nil)
	_ platforms.Grouper      = (*fake)(nil)
)

func newFake(p *place) *fake {
	return &fake{place: p, inbox: make(chan platforms.Inbox, 1), done: make(chan struct{})}
}

func (f *fake) Platform() string { return "fake" }
func (f *fake) Capabilities() platforms.Capabilities {
	return platforms.Capabilities{EditEvery: time.Second}
}

func (f *fake) Run(ctx context.Context, inbox platforms.Inbox) error {
	f.inbox <- inbox
	<-ctx.Done()
	return nil
}

// wire is the fake's payload.
type wire struct {
	Kind string          `json:"kind"`
	Body json.RawMessage `json:"body"`
}

func (f *fake) Read(raw []byte) (platforms.Inbound, error) {
	var w wire
	if err := json.Unmarshal(raw, &w); err != nil {
		return nil, err
	}
	switch w.Kind {
	case "message":
		return body[platforms.Message](w)
	case "edited":
		return body[platforms.Edited](w)
	case "deleted":
		return body[platforms.Deleted](w)
	case "click":
		return body[platforms.Click](w)
	case "command":
		return body[platforms.Command](w)
	case "stop":
		return body[platforms.Stop](w)
	}
	return nil, errors.New("unknown kind")
}

func body[T platforms.Inbound](w wire) (platforms.Inbound, error) {
	var v T
	err := json.Unmarshal(w.Body, &v)
	return v, err
}

func (f *fake) Render(c platforms.Content) []platforms.Part {
	p := part{Text: c.Markdown}
	if c.Card != nil {
		p.Text = c.Card.Title
		for _, fact := range c.Card.Facts {
			p.Text += "\n" + fact.Name + ": " + fact.Value
		}
		p.Buttons = c.Card.Buttons
	}
	raw, err := json.Marshal(p)
	if err != nil {
		panic(err)
	}
	return []platforms.Part{raw}
}

func (f *fake) Post(_ context.Context, to platforms.Conversation, mark string, raw platforms.Part) (platforms.MessageRef, error) {
	f.place.mu.Lock()
	defer f.place.mu.Unlock()
	if len(f.place.fail) > 0 {
		err := f.place.fail[0]
		f.place.fail = f.place.fail[1:]
		if err != nil {
			return "", err
		}
	}
	var p part
	if err := json.Unmarshal(raw, &p); err != nil {
		return "", &platforms.Error{Failure: platforms.Malformed, Op: "fake: post", Cause: err}
	}
	f.place.messages = append(f.place.messages, &shown{in: to, mark: mark, part: p})
	if f.place.lose {
		f.place.lose = false
		return "", &platforms.Error{Failure: platforms.Unknown, Op: "fake: post"}
	}
	return refOf(len(f.place.messages) - 1), nil
}

func refOf(i int) platforms.MessageRef { return platforms.MessageRef(fmt.Sprintf("m%d", i)) }

func (f *fake) Edit(_ context.Context, at platforms.MessageRef, raw platforms.Part) error {
	f.place.mu.Lock()
	defer f.place.mu.Unlock()
	for i, m := range f.place.messages {
		if refOf(i) == at {
			return json.Unmarshal(raw, &m.part)
		}
	}
	return &platforms.Error{Failure: platforms.Gone, Op: "fake: edit"}
}

func (f *fake) Find(_ context.Context, in platforms.Conversation, mark string) (platforms.MessageRef, error) {
	f.place.mu.Lock()
	defer f.place.mu.Unlock()
	for i, m := range f.place.messages {
		if m.in == in && m.mark == mark {
			return refOf(i), nil
		}
	}
	return "", nil
}

func (f *fake) Notify(_ context.Context, to platforms.Reply, text string) error {
	f.place.mu.Lock()
	defer f.place.mu.Unlock()
	f.place.notices = append(f.place.notices, string(to)+": "+text)
	return nil
}

func (f *fake) SetStatus(_ context.Context, _ platforms.Conversation, _ platforms.MessageRef, s platforms.Status) error {
	f.place.mu.Lock()
	defer f.place.mu.Unlock()
	f.place.statuses = append(f.place.statuses, s)
	return nil
}

func (f *fake) InGroup(_ context.Context, group string, user platforms.UserID) (bool, error) {
	members, known := f.place.groups[group]
	if !known {
		return false, errors.New("no such group")
	}
	return slices.Contains(members, user), nil
}

// world is a place, a store, and a bot that can be killed and started again.
type world struct {
	t        *testing.T
	place    *place
	kv       store.KV
	provider llm.Provider
	policy   approvals.Policy
	ran      []string // approvals under which deploy ran

	fake  *fake
	inbox platforms.Inbox
	kill  context.CancelFunc
	ended chan struct{}
	said  int
}

func newWorld(t *testing.T) *world {
	t.Helper()
	deciders, err := approvals.ParsePatterns("fake:grace, fake:group:ops")
	if err != nil {
		t.Fatal(err)
	}
	return &world{t: t, place: &place{}, kv: memory.New(), provider: demo.New(),
		policy: approvals.Policy{Deciders: deciders, Within: time.Hour}}
}

// start brings the bot up.
func (w *world) start() {
	w.t.Helper()
	w.fake = newFake(w.place)
	records := store.NewRecords(w.kv)
	a, err := agent.New(agent.Options{Provider: w.provider, Tools: []agent.Tool{w.deploy(), timeTool()},
		NewID: func() string { return string(approvals.NewID(rand.Reader)) }})
	if err != nil {
		w.t.Fatal(err)
	}
	engine, err := graph.Compile(a.Definition(), graph.Options{Sessions: records, SessionFields: []graph.Field{chat.Messages}, Checkpoints: records})
	if err != nil {
		w.t.Fatal(err)
	}
	h := harness.New(engine, harness.Sessioned, harness.Options{Coordinator: harness.Stored{Suspensions: records}})
	b := bridge.New(bridge.Options{
		Adapters: []platforms.Adapter{w.fake}, Store: records.Bridge(), Chat: chat.New(h, chat.Options{}), Sessions: records,
		Policy: w.policy, Logger: slog.New(slog.NewTextHandler(w.t.Output(), nil)), Drain: 5 * time.Second,
	})
	ctx, cancel := context.WithCancel(context.Background())
	w.kill, w.ended = cancel, make(chan struct{})
	go func() {
		defer close(w.ended)
		if err := b.Run(ctx); err != nil {
			w.t.Error("the bridge ended with an error:", err)
		}
	}()
	w.inbox = <-w.fake.inbox
}

// stop ends the bot and waits for it.
func (w *world) stop() {
	w.kill()
	<-w.ended
}

func (w *world) deploy() agent.Tool {
	return agent.Tool{
		Tool:     llm.Tool{Name: "deploy", Description: "deploys", Parameters: json.RawMessage(`{"type":"object"}`)},
		Approval: true,
		Run: func(_ context.Context, c agent.Call) (string, error) {
			w.ran = append(w.ran, c.Approval)
			return "it is up", nil
		},
		Settle: func(_ context.Context, c agent.Call) (string, bool, error) {
			return "it is up", slices.Contains(w.ran, c.Approval), nil
		},
	}
}

func timeTool() agent.Tool {
	return agent.Tool{
		Tool:   llm.Tool{Name: "time", Description: "tells", Parameters: json.RawMessage(`{"type":"object"}`)},
		Effect: agent.ReadOnly,
		Run:    func(context.Context, agent.Call) (string, error) { return "noon", nil },
	}
}

// deliver hands something to the bot as the platform would, until it is accepted.
func (w *world) deliver(key, kind string, urgent bool, in platforms.Conversation, v platforms.Inbound) {
	w.t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		w.t.Fatal(err)
	}
	raw, err := json.Marshal(wire{kind, b})
	if err != nil {
		w.t.Fatal(err)
	}
	d := platforms.Delivery{Keys: []platforms.Key{platforms.Key(key)}, Conversation: in, Urgent: urgent, Raw: raw}
	if err := w.inbox.Accept(context.Background(), d); err != nil {
		w.t.Fatal("not accepted:", err)
	}
}

// say lets somebody mention the bot, and returns the message.
func (w *world) say(who, text string) platforms.MessageRef {
	w.t.Helper()
	w.said++
	ref := platforms.MessageRef(fmt.Sprintf("said-%d", w.said))
	w.deliver("msg-"+string(ref), "message", false, "room", platforms.Message{
		Conversation: "room", Ref: ref, From: platforms.User{ID: platforms.UserID(who), Name: who},
		Addressed: platforms.Mentioned, Text: text,
	})
	return ref
}

// press lets somebody press a button of the newest card that has buttons.
func (w *world) press(who, action string) {
	w.t.Helper()
	w.place.mu.Lock()
	i := len(w.place.messages) - 1
	for ; i >= 0 && len(w.place.messages[i].part.Buttons) == 0; i-- {
	}
	if i < 0 {
		w.place.mu.Unlock()
		w.t.Fatal("there is no card with buttons")
	}
	value := w.place.messages[i].part.Buttons[0].Value
	w.place.mu.Unlock()
	w.said++
	w.deliver(fmt.Sprintf("click-%d", w.said), "click", true, "room", platforms.Click{
		Conversation: "room", By: platforms.User{ID: platforms.UserID(who), Name: who}, On: refOf(i),
		Action: action, Value: value, Reply: platforms.Reply(who),
	})
}

// texts are what people see in the room.
func (w *world) texts() []string {
	w.place.mu.Lock()
	defer w.place.mu.Unlock()
	var texts []string
	for _, m := range w.place.messages {
		texts = append(texts, m.part.Text)
	}
	return texts
}

func (w *world) notices() []string {
	w.place.mu.Lock()
	defer w.place.mu.Unlock()
	return slices.Clone(w.place.notices)
}

// sees checks that the room shows just these messages, each containing the given words.
func (w *world) sees(want ...string) {
	w.t.Helper()
	synctest.Wait()
	got := w.texts()
	ok := slices.EqualFunc(got, want, func(g, want string) bool { return strings.Contains(g, want) })
	if !ok {
		w.t.Fatalf("people see %d messages:\n%s\nwant %d containing:\n%s", len(got), strings.Join(got, "\n---\n"), len(want), strings.Join(want, "\n---\n"))
	}
}

// inBubble runs a test with a world whose time is its own.
func inBubble(t *testing.T, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer func() { w.stop() }()
		test(w)
	})
}
