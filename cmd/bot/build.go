package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/parley-chat/parley/approvals"
	"github.com/parley-chat/parley/core/agent"
	"github.com/parley-chat/parley/core/agent/demotools"
	"github.com/parley-chat/parley/core/chat"
	"github.com/parley-chat/parley/core/graph"
	"github.com/parley-chat/parley/core/harness"
	"github.com/parley-chat/parley/core/llm"
	"github.com/parley-chat/parley/core/llm/demo"
	"github.com/parley-chat/parley/core/llm/echo"
	"github.com/parley-chat/parley/core/llm/openai"
	"github.com/parley-chat/parley/platforms"
	"github.com/parley-chat/parley/platforms/bridge"
	"github.com/parley-chat/parley/store"
	"github.com/parley-chat/parley/store/bolt"
	"github.com/parley-chat/parley/store/memory"
)

// bot is everything that runs, built from the settings and the platforms.
type bot struct {
	bridge  *bridge.Bridge
	records *store.Records
	kv      store.KV
	logger  *slog.Logger
}

// build constructs the bot from bottom to top. Nothing runs yet; close releases what it opened.
func build(ctx context.Context, s settings, logger *slog.Logger, adapters ...platforms.Adapter) (*bot, error) {
	kv, err := openStore(ctx, s.store)
	if err != nil {
		return nil, err
	}
	records := store.NewRecords(kv)

	provider := newProvider(s)
	a, err := agent.New(agent.Options{
		Provider: provider, Tools: newTools(s), Instructions: s.Instructions, History: s.history,
		NewID: newApprovalID, Permit: permit,
	})
	if err != nil {
		kv.Close()
		return nil, err
	}
	engine, err := graph.Compile(a.Definition(), graph.Options{
		Sessions: records, SessionFields: []graph.Field{chat.Messages}, Checkpoints: records, Logger: logger,
	})
	if err != nil {
		kv.Close()
		return nil, err
	}
	h := harness.New(engine, harness.Sessioned, harness.Options{Coordinator: harness.Stored{Suspensions: records}})
	b := bridge.New(bridge.Options{
		Adapters: adapters, Store: records.Bridge(), Chat: chat.New(h, chat.Options{}), Sessions: records,
		Policy: approvals.Policy{Deciders: s.approvers, SelfApproval: s.selfApproval, Within: s.approvalTTL},
		Turns:  s.turns, Drain: s.drain, About: "Model: " + s.Model + ".", Logger: logger,
	})
	return &bot{bridge: b, records: records, kv: kv, logger: logger}, nil
}

func (b *bot) close() error { return b.kv.Close() }

func openStore(ctx context.Context, s storeSetting) (store.KV, error) {
	if s.kind == "memory" {
		return memory.New(), nil
	}
	return bolt.Open(ctx, s.path, bolt.Options{})
}

func newProvider(s settings) llm.Provider {
	switch s.model.kind {
	case "echo":
		return echo.New(s.echoDelay)
	case "openai":
		return openai.New(openai.Options{Model: s.model.name, APIKey: s.OpenAIKey, BaseURL: s.OpenAIBaseURL})
	default:
		return demo.New()
	}
}

// newTools are the tools the agent has. A model of one's own gets none that only pretend.
func newTools(s settings) []agent.Tool {
	tools := []agent.Tool{demotools.Time(time.Now)}
	if s.model.kind == "demo" {
		tools = append(tools, demotools.Deploy(s.DemoLog))
	}
	return tools
}

// permit is the last word before an approved call runs: what was approved is what will run, by its hash.
func permit(raw json.RawMessage, calls []agent.Call) error {
	var d approvals.Decision
	if err := json.Unmarshal(raw, &d); err != nil {
		return err
	}
	asked := make([]approvals.Call, len(calls))
	for i, c := range calls {
		asked[i] = approvals.Call{ID: c.ID, Tool: c.Tool, Arguments: c.Arguments}
	}
	return d.Permit(asked)
}

func newLogger(s settings, w io.Writer) *slog.Logger {
	o := &slog.HandlerOptions{Level: s.logLevel}
	if s.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, o))
	}
	return slog.New(slog.NewTextHandler(w, o))
}

// parkedFor is how long a mention may come after what was said behind it: longer than platforms send again.
const parkedFor = 30 * time.Minute

// housekeeping forgets, every hour until ctx ends, the marks by which repeated deliveries and turns are recognised: a
// platform repeats within a day, a week is kept.
func (b *bot) housekeeping(ctx context.Context) {
	const week = 7 * 24 * time.Hour
	tick := time.NewTicker(time.Hour)
	defer tick.Stop()
	for {
		before := time.Now().Add(-week)
		if _, err := b.records.ForgetKeys(ctx, before); err != nil {
			b.logger.Warn("old marks could not be forgotten", "error", err)
		}
		if _, err := b.records.ForgetParked(ctx, time.Now().Add(-parkedFor)); err != nil {
			b.logger.Warn("old talk could not be forgotten", "error", err)
		}
		if _, err := b.records.ForgetInvocations(ctx, before); err != nil {
			b.logger.Warn("old turns could not be forgotten", "error", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// explain adds what an operator sees at the start.
func (b *bot) explain(s settings) {
	b.logger.Info("starting", "model", s.Model, "store", s.Store, "approvers", len(s.approvers))
	if len(s.approvers) == 0 {
		b.logger.Warn("BOT_APPROVERS is empty: nobody may approve, so nothing that needs an approval will run")
	}
}

var errNoPlatform = usageError{fmt.Errorf("no platform is configured: set SLACK_BOT_TOKEN, or try `bot playground`")}
