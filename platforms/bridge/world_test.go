package bridge_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-chat/parley/approvals"
	"github.com/parley-chat/parley/conformance/platformtest/fake"
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

const room platforms.Conversation = "room"

// world is a place, a store, and a bot that can be killed and started again.
type world struct {
	t        *testing.T
	place    *fake.Place
	kv       store.KV
	provider llm.Provider
	policy   approvals.Policy
	ran      []string // approvals under which deploy ran

	// change makes another adapter of the fake's. Nil: it stays as it is.
	change func(*fake.Adapter) platforms.Adapter

	kill  context.CancelFunc
	ended chan struct{}
}

func newWorld(t *testing.T) *world {
	t.Helper()
	deciders, err := approvals.ParsePatterns("fake:grace, fake:group:ops")
	if err != nil {
		t.Fatal(err)
	}
	return &world{t: t, place: fake.New(), kv: memory.New(), provider: demo.New(),
		policy: approvals.Policy{Deciders: deciders, Within: time.Hour}}
}

// start brings the bot up.
func (w *world) start() {
	w.t.Helper()
	var adapter platforms.Adapter = w.place.Connect()
	if w.change != nil {
		adapter = w.change(w.place.Connect())
	}
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
		Adapters: []platforms.Adapter{adapter}, Store: records.Bridge(), Chat: chat.New(h, chat.Options{}), Sessions: records,
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

// user is somebody by name.
func user(name string) platforms.User {
	return platforms.User{ID: platforms.UserID(name), Name: name}
}

// say lets somebody mention the bot, and returns the message.
func (w *world) say(who, text string) platforms.MessageRef {
	return w.place.Say(user(who), room, platforms.Mentioned, text)
}

// press lets somebody press a button of the newest card that has buttons.
func (w *world) press(who, action string) {
	w.t.Helper()
	synctest.Wait()
	for _, m := range slices.Backward(w.place.Answers()) {
		if len(m.Buttons) > 0 {
			w.pressOn(m.Ref, who, action)
			return
		}
	}
	w.t.Fatal("there is no card with buttons")
}

func (w *world) pressOn(card platforms.MessageRef, who, action string) {
	w.t.Helper()
	if err := w.place.Press(user(who), card, action); err != nil {
		w.t.Fatal(err)
	}
}

// redeliver delivers what came last once more.
func (w *world) redeliver() {
	w.t.Helper()
	if err := w.place.Redeliver(); err != nil {
		w.t.Fatal(err)
	}
}

// texts are what people see in the room.
func (w *world) texts() []string {
	var texts []string
	for _, m := range w.place.Answers() {
		texts = append(texts, m.Text)
	}
	return texts
}

func (w *world) notices() []string {
	var notices []string
	for _, n := range w.place.Notices() {
		notices = append(notices, string(n.To)+": "+n.Text)
	}
	return notices
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
