package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-chat/parley/core/chat"
	"github.com/parley-chat/parley/core/graph"
	"github.com/parley-chat/parley/core/harness"
	"github.com/parley-chat/parley/core/llm"
)

// mutant is an implementation that misbehaves in one way, and fixtures that must find it out.
type mutant struct {
	name   string
	broken func(p *parts)
	found  []string // prefixes of suite/file
}

// mutants are what the runner must not let pass. Each is the real thing with one wrapper around one part.
func mutants() []mutant {
	return []mutant{
		{"replies contain the history", replying(func(c *fakeChat, out *chat.TurnOutcome) {
			all, _ := chat.Messages.Get(out.FinalState).All(context.Background())
			out.Replies = all
		}), []string{"harness-chat/001", "harness-chat/002"}},
		{"replies are in the wrong order", replying(func(_ *fakeChat, out *chat.TurnOutcome) {
			out.Replies = slices.Clone(out.Replies)
			slices.Reverse(out.Replies)
		}), []string{"harness-chat/003"}},
		{"tool messages are left out of the replies", replying(func(_ *fakeChat, out *chat.TurnOutcome) {
			out.Replies = slices.DeleteFunc(slices.Clone(out.Replies), func(m llm.Message) bool { return m.Role == llm.ToolRole })
		}), []string{"harness-chat/003"}},
		{"tool calls become content blocks", replying(func(_ *fakeChat, out *chat.TurnOutcome) {
			for i, m := range out.Replies {
				for range m.ToolCalls {
					out.Replies[i].Content = append(m.Content, llm.Block{Type: "tool_call"})
				}
			}
		}), []string{"harness-chat/003"}},
		{"an empty list of replies is nil", replying(func(_ *fakeChat, out *chat.TurnOutcome) {
			out.Replies = nil
		}), []string{"harness-chat/001"}},
		{"pending messages are lost", suspending(func(out *chat.TurnOutcome) { out.PendingMessages = []llm.Message{} }),
			[]string{"harness-chat/005", "harness-chat/006"}},
		{"the descriptor is lost", suspending(func(out *chat.TurnOutcome) { out.Descriptor = graph.Descriptor{} }),
			[]string{"harness-chat/005", "harness-chat/006"}},
		{"a suspended outcome is told as completed", suspending(func(out *chat.TurnOutcome) {
			out.Status, out.Replies = graph.Completed, out.PendingMessages
		}), []string{"harness-chat/005", "harness-chat/006"}},
		{"chat puts errors in the wrong bucket", failing(func(out *chat.TurnOutcome) {
			out.Bucket = otherBucket(out.Bucket)
		}), []string{"harness-chat/007", "harness-chat/008", "harness-chat/009", "harness-chat/010"}},
		{"error replies are an assistant's", failing(func(out *chat.TurnOutcome) { out.Reply.Role = llm.Assistant }),
			[]string{"harness-chat/007", "harness-chat/008", "harness-chat/009", "harness-chat/010"}},
		{"error replies say nothing of the cause", failing(func(out *chat.TurnOutcome) {
			out.Reply = llm.SystemText("Something went wrong. Please adjust your message and try again in a moment: this conversation can't continue.")
		}), []string{"harness-chat/009"}},
		{"every message begins a new session", replying(func(_ *fakeChat, out *chat.TurnOutcome) { out.Path = harness.PathNewSession }),
			[]string{"harness-chat/002"}},
		{"the session is loaded before the message is validated", func(p *parts) {
			p.chat = func(c chatter, b *bench) chatter {
				return &fakeChat{chatter: c, before: func(ctx context.Context, session string) {
					_, _ = (&recordedStore{next: b.records, journal: b.journal}).Load(ctx, session)
				}}
			}
		}, []string{"harness-chat/010"}},
		{"invalid messages reach the graph", func(p *parts) {
			p.chat = func(c chatter, _ *bench) chatter { return &fakeChat{chatter: c, mend: true} }
		}, []string{"harness-chat/010"}},
		{"listeners fire twice", func(p *parts) {
			p.chat = func(c chatter, _ *bench) chatter { return &fakeChat{chatter: c, fires: 2} }
		}, []string{"harness-chat/006"}},
		{"listeners never fire", func(p *parts) {
			p.chat = func(c chatter, _ *bench) chatter { return &fakeChat{chatter: c, fires: -1} }
		}, []string{"harness-chat/006"}},
		{"listeners get an empty outcome", func(p *parts) {
			p.chat = func(c chatter, _ *bench) chatter { return &fakeChat{chatter: c, blank: true} }
		}, []string{"harness-chat/006"}},
		{"the next send returns the resumed turn as well", func(p *parts) {
			p.chat = func(c chatter, _ *bench) chatter { return &fakeChat{chatter: c, keeps: true} }
		}, []string{"harness-chat/006"}},
		{"chat watches the engine through a hook", outside(func(req *graph.Request) { req.OnEmit = func(any) {} }),
			[]string{"harness-chat/005"}},

		{"a suspension is told as a completion", afterEngine(func(out *graph.Outcome, err *error) {
			if out.Status == graph.Suspended {
				out.Status, out.Descriptor = graph.Completed, nil
			}
		}), []string{"harness/003", "harness/006", "harness-chat/005", "suspension/001", "suspension/012"}},
		{"an error is told as a completion", afterEngine(func(out *graph.Outcome, err *error) {
			if *err != nil {
				out.Status, *err = graph.Completed, nil
			}
		}), []string{"harness/005", "harness/008", "harness/009", "harness/010", "harness-chat/007", "harness-chat/008", "suspension/003"}},
		{"errors lose their category", afterEngine(func(out *graph.Outcome, err *error) {
			if *err != nil {
				*err = fmt.Errorf("it failed: %s", (*err).Error())
			}
		}), []string{"harness/005", "harness/008", "harness-chat/009", "suspension/003", "suspension/004", "sessions/006"}},
		{"the payload is dropped", inEngine(func(e harness.Engine, ctx context.Context, req graph.Request) (graph.Outcome, error) {
			req.Payload = nil
			return e.Invoke(ctx, req)
		}), []string{"harness/003", "harness/007", "suspension/001", "suspension/002", "suspension/003"}},
		{"the payload goes through the reducers", inEngine(func(e harness.Engine, ctx context.Context, req graph.Request) (graph.Outcome, error) {
			out, err := e.Invoke(ctx, req)
			if req.Payload["audit_log"] != nil && err == nil {
				out, err = reduced(ctx, e, req)
			}
			return out, err
		}), []string{"suspension/002"}},
		{"the suspended node runs again", again(), []string{"suspension/001"}},
		{"any session is served to a resumption of nothing", inEngine(func(e harness.Engine, ctx context.Context, req graph.Request) (graph.Outcome, error) {
			out, err := e.Invoke(ctx, req)
			if graph.CategoryOf(err) == graph.SuspensionRecordInvalid {
				req.Resume, req.Payload, req.InvocationID = "", nil, ""
				return e.Invoke(ctx, req)
			}
			return out, err
		}), []string{"suspension/004"}},
		{"a resumption gets a new invocation id", afterEngine(func(out *graph.Outcome, _ *error) { out.InvocationID = graph.NewID() }),
			[]string{"harness/003", "harness/007", "suspension/013"}},
		{"no subscription is registered", inEngine(func(e harness.Engine, ctx context.Context, req graph.Request) (graph.Outcome, error) {
			req.BeforeSuspend = nil
			return e.Invoke(ctx, req)
		}), []string{"harness/003", "harness/006", "harness/007"}},
		{"stateless turns get a session", inEngine(func(e harness.Engine, ctx context.Context, req graph.Request) (graph.Outcome, error) {
			if req.SessionID == "" && req.Resume == "" {
				req.SessionID = "made up"
			}
			return e.Invoke(ctx, req)
		}), []string{"harness/011", "sessions/003"}},
		{"sessions are forgotten between turns", inEngine(func(e harness.Engine, ctx context.Context, req graph.Request) (graph.Outcome, error) {
			if req.SessionID != "" {
				req.SessionID = graph.NewID()
			}
			return e.Invoke(ctx, req)
		}), []string{"harness/002", "harness-chat/002", "sessions/001", "sessions/004"}},
		{"an invocation is left running at its suspension", inStore(func(s *fakeStore) { s.neverSuspended = true }),
			[]string{"harness/003", "harness/006", "suspension/013", "harness-chat/005"}},
		{"no checkpoint is kept between nodes", inStore(func(s *fakeStore) { s.noRunning = true }),
			[]string{"harness-chat/005", "suspension/013"}},
		{"the session is not saved with a suspension", inStore(func(s *fakeStore) { s.noSessionAtSuspend = true }),
			[]string{"suspension/012"}},
		{"the session is never saved", inStore(func(s *fakeStore) { s.noSave = true }),
			[]string{"harness/001", "harness/002", "harness-chat/001", "harness-chat/002", "sessions/001", "sessions/006"}},
		{"the session is saved after a failed turn", inStore(func(s *fakeStore) { s.saveFailures = true }),
			[]string{"harness-chat/008", "sessions/006"}},
		{"the session is saved whatever the projection says", inStore(func(s *fakeStore) { s.extra = "scratch" }),
			[]string{"sessions/004"}},
		{"the session is saved without being asked to", inStore(func(s *fakeStore) { s.autoSave = true }), []string{"sessions/005"}},
		{"a failing load is taken for an empty session", func(p *parts) {
			p.backend = func(b backend) backend { return &fakeStore{backend: b, swallowLoad: true} }
		}, []string{"harness/008", "harness-chat/007"}},
		{"saving replaces the list", inStore(func(s *fakeStore) { s.replaceLists = true }),
			[]string{"harness-chat/002", "sessions/001"}},
		{"images are lost in the history", inStore(func(s *fakeStore) { s.noImages = true }), []string{"harness-chat/004"}},
		{"unknown blocks get into the history", inStore(func(s *fakeStore) { s.oddBlocks = true }), []string{"harness-chat/004"}},

		{"the harness resolves no session id", outside(func(req *graph.Request) { req.SessionID = "" }),
			[]string{"harness/001", "harness/002"}},
		{"the harness resolves a session id in stateless mode", outside(func(req *graph.Request) {
			if req.SessionID == "" && req.Resume == "" {
				req.SessionID = "made up"
			}
		}), []string{"harness/011"}},
		{"every transmission is a new session", handling(func(_ harness.Transmission, res *harness.Result) { res.Path = harness.PathNewSession }),
			[]string{"harness/002", "harness/003", "harness/007", "harness/008", "harness/011"}},
		{"every transmission continues a session", handling(func(_ harness.Transmission, res *harness.Result) { res.Path = harness.PathExistingSession }),
			[]string{"harness/001", "harness/004"}},
		{"the harness puts errors in the wrong bucket", handling(func(_ harness.Transmission, res *harness.Result) {
			if res.Failure != nil {
				f := *res.Failure
				f.Bucket = otherBucket(f.Bucket)
				res.Failure = &f
			}
		}), []string{"harness/005", "harness/008", "harness/009", "harness/010"}},
		{"the harness hides the diagnostic", handling(func(_ harness.Transmission, res *harness.Result) {
			if res.Failure != nil {
				f := *res.Failure
				f.Diagnostic = "an error occurred"
				res.Failure = &f
			}
		}), []string{"harness/010"}},
		{"all answers have the same shape", handling(func(_ harness.Transmission, res *harness.Result) { res.Shape = harness.ErrorResponse }),
			[]string{"harness/004", "harness/006"}},
		{"errors are answered as completions", handling(func(_ harness.Transmission, res *harness.Result) { res.Shape = harness.CompletionResponse }),
			[]string{"harness/005", "harness/006"}},
		{"the harness retries by itself", func(p *parts) {
			p.harness = func(h handler, _ *bench) handler {
				return handlerFunc(func(ctx context.Context, t harness.Transmission) harness.Result {
					if res := h.Handle(ctx, t); res.Failure == nil {
						return res
					}
					return h.Handle(ctx, t)
				})
			}
		}, []string{"harness/008"}},
		{"the harness makes session ids of its own", func(p *parts) {
			p.harness = func(h handler, _ *bench) handler {
				return handlerFunc(func(ctx context.Context, t harness.Transmission) harness.Result {
					if t.SessionID != "" {
						t.SessionID = graph.NewID()
					}
					return h.Handle(ctx, t)
				})
			}
		}, []string{"harness/002"}},
		{"the harness waits for the signal", func(p *parts) {
			p.harness = func(h handler, _ *bench) handler {
				return handlerFunc(func(ctx context.Context, t harness.Transmission) harness.Result {
					res := h.Handle(ctx, t)
					if res.Outcome.Status == graph.Suspended {
						<-ctx.Done()
					}
					return res
				})
			}
		}, []string{"harness/003", "harness/006"}},
		{"chat waits for the signal", func(p *parts) {
			p.chat = func(c chatter, _ *bench) chatter { return &fakeChat{chatter: c, blocks: true} }
		}, []string{"harness-chat/005"}},
		{"signals lead to another invocation", func(p *parts) {
			p.coordinator = func(c harness.Coordinator) harness.Coordinator { return lost{c} }
		}, []string{"harness/007", "harness-chat/006"}},
	}
}

func TestEveryMutantIsFoundOut(t *testing.T) {
	broken := make(map[string]bool)
	for _, m := range mutants() {
		t.Run(m.name, func(t *testing.T) {
			p := asBuilt()
			m.broken(&p)
			report := runSuite(t, Options{
				Dirs: []string{suite(t, "harness"), suite(t, "harness-chat"), suite(t, "suspension"), suite(t, "sessions")},
				Open: openMemory, Timeout: 100 * time.Millisecond, parts: &p,
			})
			for _, want := range m.found {
				if !slices.ContainsFunc(report.Cases, func(c Case) bool {
					return strings.HasPrefix(c.String(), want) && !c.Passed() && !onlyMissing(c)
				}) {
					t.Errorf("%s passes", want)
				}
			}
			for _, c := range report.Cases {
				for _, f := range c.Failures {
					broken[invariantIn(f)] = true
				}
			}
		})
	}
	if t.Failed() || t.Skipped() || len(broken) == 0 {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(invariants)) {
		if !broken[name] {
			t.Errorf("no mutant breaks the invariant %s: does it check anything?", name)
		}
	}
	for name := range fileInvariants {
		if !broken[name] && name != "resume_covers_completed_and_never_existed_cases" { // about the fixture, not about us
			t.Errorf("no mutant breaks the invariant %s of a file", name)
		}
	}
}

func TestInvariantsOverEventsAreBrokenByTheWrongEvents(t *testing.T) {
	suspended := &turn{outcome: graph.Outcome{Status: graph.Suspended, NodeName: "gate", Descriptor: &graph.Descriptor{SignalID: "s"}}}
	started := graph.Event{Phase: graph.PhaseStarted, NodeName: "gate"}
	paused := graph.Event{Phase: graph.PhaseSuspended, NodeName: "gate", Descriptor: &graph.Descriptor{SignalID: "s"}}
	completed := graph.Event{Phase: graph.PhaseCompleted, NodeName: "gate"}
	bare := graph.Event{Phase: graph.PhaseSuspended, NodeName: "gate"}
	wrong := map[string][]graph.Event{
		"no_completed_event_for_suspending_node": {started, paused, completed},
		"suspended_event_carries_descriptor":     {started, bare},
		"started_followed_by_suspended_in_order": {paused, started},
	}
	for name, check := range eventInvariants {
		if err := check(suspended, []graph.Event{started, paused}); err != nil {
			t.Errorf("%s does not hold for the right events: %v", name, err)
		}
		if wrong[name] == nil {
			t.Errorf("no events here break %s", name)
		} else if check(suspended, wrong[name]) == nil {
			t.Errorf("%s holds for the wrong events", name)
		}
	}
}

var invariantPath = regexp.MustCompile(`^(?:cases\[\d+\]\.)?invariants\.(\w+): `)

// invariantIn returns the name of the invariant that a failure is about, or "".
func invariantIn(failure string) string {
	if m := invariantPath.FindStringSubmatch(failure); m != nil {
		return m[1]
	}
	return ""
}

func otherBucket(b harness.Bucket) harness.Bucket {
	if b == harness.RetryableTransient {
		return harness.UserCorrectable
	}
	return harness.RetryableTransient
}

// fakeChat is a chat harness with a fault.
type fakeChat struct {
	chatter
	before func(ctx context.Context, session string)
	after  func(out *chat.TurnOutcome)
	mend   bool
	fires  int
	blank  bool
	keeps  bool
	blocks bool
	kept   []chat.TurnOutcome
}

func (c *fakeChat) Send(ctx context.Context, session string, m llm.Message, o chat.SendOptions) chat.TurnOutcome {
	if c.before != nil {
		c.before(ctx, session)
	}
	if c.mend && m.Validate() != nil {
		m = llm.UserText("mended")
	}
	out := c.chatter.Send(ctx, session, m, o)
	if c.after != nil {
		c.after(&out)
	}
	if c.keeps {
		out.Resumed = c.kept
	}
	if c.blocks && out.Status == graph.Suspended {
		<-ctx.Done()
	}
	return out
}

func (c *fakeChat) Signal(ctx context.Context, s chat.Signal) (chat.TurnOutcome, error) {
	out, err := c.chatter.Signal(ctx, s)
	c.kept = append(c.kept, out)
	return out, err
}

func (c *fakeChat) Subscribe(session string, l chat.Listener) func() {
	return c.chatter.Subscribe(session, func(ctx context.Context, out chat.TurnOutcome) error {
		if c.blank {
			out = chat.TurnOutcome{Status: graph.Completed, Replies: []llm.Message{}}
		}
		for range 1 + max(c.fires-1, 0) {
			if c.fires < 0 {
				break
			}
			if err := l(ctx, out); err != nil {
				return err
			}
		}
		return nil
	})
}

func inChat(when graph.Status, change func(c *fakeChat, out *chat.TurnOutcome)) func(p *parts) {
	return func(p *parts) {
		p.chat = func(c chatter, _ *bench) chatter {
			fake := &fakeChat{chatter: c}
			fake.after = func(out *chat.TurnOutcome) {
				if out.Status == when {
					change(fake, out)
				}
			}
			return fake
		}
	}
}

func replying(change func(c *fakeChat, out *chat.TurnOutcome)) func(p *parts) {
	return inChat(graph.Completed, change)
}

func suspending(change func(out *chat.TurnOutcome)) func(p *parts) {
	return inChat(graph.Suspended, func(_ *fakeChat, out *chat.TurnOutcome) { change(out) })
}

func failing(change func(out *chat.TurnOutcome)) func(p *parts) {
	return inChat(graph.Errored, func(_ *fakeChat, out *chat.TurnOutcome) { change(out) })
}

// fakeEngine is an engine with a fault.
type fakeEngine func(ctx context.Context, req graph.Request) (graph.Outcome, error)

func (f fakeEngine) Invoke(ctx context.Context, req graph.Request) (graph.Outcome, error) {
	return f(ctx, req)
}

// inEngine wraps the engine.
func inEngine(invoke func(e harness.Engine, ctx context.Context, req graph.Request) (graph.Outcome, error)) func(p *parts) {
	return func(p *parts) {
		p.engine = func(e harness.Engine) harness.Engine {
			return fakeEngine(func(ctx context.Context, req graph.Request) (graph.Outcome, error) { return invoke(e, ctx, req) })
		}
	}
}

// outside changes requests before they are recorded, as a harness would that makes wrong ones.
func outside(change func(req *graph.Request)) func(p *parts) {
	return func(p *parts) {
		p.outside = func(e harness.Engine) harness.Engine {
			return fakeEngine(func(ctx context.Context, req graph.Request) (graph.Outcome, error) {
				change(&req)
				return e.Invoke(ctx, req)
			})
		}
	}
}

func afterEngine(change func(out *graph.Outcome, err *error)) func(p *parts) {
	return inEngine(func(e harness.Engine, ctx context.Context, req graph.Request) (graph.Outcome, error) {
		out, err := e.Invoke(ctx, req)
		change(&out, &err)
		return out, err
	})
}

// reduced answers a resumption with what the reducers would have made of the payload.
func reduced(ctx context.Context, e harness.Engine, req graph.Request) (graph.Outcome, error) {
	return e.Invoke(ctx, graph.Request{Input: graph.Update{
		graph.RawChange("audit_log", req.Payload["audit_log"]), graph.RawChange("scalar_field", req.Payload["scalar_field"]),
	}})
}

// again makes a resumption run the suspended node once more.
func again() func(p *parts) {
	return func(p *parts) {
		p.backend = func(b backend) backend { return &fakeStore{backend: b, notCompleted: true} }
	}
}

// fakeStore is a store with a fault.
type fakeStore struct {
	backend
	neverSuspended, noRunning, noSessionAtSuspend, noSave, saveFailures, autoSave bool
	swallowLoad, replaceLists, noImages, oddBlocks, notCompleted                  bool
	extra                                                                         string
}

func inStore(set func(s *fakeStore)) func(p *parts) {
	return func(p *parts) {
		p.backend = func(b backend) backend {
			s := &fakeStore{backend: b}
			set(s)
			return s
		}
	}
}

func (s *fakeStore) Load(ctx context.Context, id string) (*graph.SessionRecord, error) {
	rec, err := s.backend.Load(ctx, id)
	if err != nil && s.swallowLoad {
		return nil, nil
	}
	return rec, err
}

func (s *fakeStore) Save(ctx context.Context, id string, save graph.SessionSave) error {
	if s.noSave {
		return nil
	}
	return s.backend.Save(ctx, id, s.mutated(save))
}

func (s *fakeStore) SaveInvocation(ctx context.Context, inv graph.Invocation) error {
	if s.noRunning && inv.Status == graph.Running {
		return fmt.Errorf("no space left")
	}
	inv.Completed = inv.Completed && !s.notCompleted
	if inv.SessionID != "" && (s.saveFailures && inv.Status == graph.Errored || s.autoSave && inv.Status == graph.Completed) {
		save := graph.SessionSave{At: time.Now()}
		save.Set = map[string]json.RawMessage{"x": json.RawMessage("1"), "step": json.RawMessage(`"C"`)}
		if err := s.backend.Save(ctx, inv.SessionID, save); err != nil {
			return err
		}
	}
	if s.neverSuspended && inv.Status == graph.Suspended {
		inv.Status = graph.Running
	}
	return s.backend.SaveInvocation(ctx, inv)
}

func (s *fakeStore) Commit(ctx context.Context, id string, save graph.SessionSave, inv graph.Invocation) error {
	inv.Completed = inv.Completed && !s.notCompleted
	if s.noSave || (s.noSessionAtSuspend && inv.Status == graph.Suspended) {
		return s.SaveInvocation(ctx, inv)
	}
	if s.neverSuspended && inv.Status == graph.Suspended {
		inv.Status = graph.Running
	}
	return s.backend.Commit(ctx, id, s.mutated(save), inv)
}

func (s *fakeStore) mutated(save graph.SessionSave) graph.SessionSave {
	save.Logs = maps.Clone(save.Logs)
	for field, d := range save.Logs {
		if s.replaceLists {
			d.Keep = 0
		}
		d.Add = slices.Clone(d.Add)
		for i := range d.Add {
			d.Add[i] = s.mutatedMessage(d.Add[i])
		}
		save.Logs[field] = d
	}
	if s.extra != "" {
		save.Set = maps.Clone(save.Set)
		if save.Set == nil {
			save.Set = make(map[string]json.RawMessage)
		}
		save.Set[s.extra] = json.RawMessage(`"kept"`)
	}
	return save
}

func (s *fakeStore) mutatedMessage(raw json.RawMessage) json.RawMessage {
	var m llm.Message
	if json.Unmarshal(raw, &m) != nil || len(m.Content) < 2 {
		return raw
	}
	if s.noImages {
		m.Content = m.Content[:1]
	}
	if s.oddBlocks {
		m.Content[1].Type = "hologram"
	}
	return asJSON(m)
}

type handlerFunc func(ctx context.Context, t harness.Transmission) harness.Result

func (f handlerFunc) Handle(ctx context.Context, t harness.Transmission) harness.Result {
	return f(ctx, t)
}

func handling(change func(t harness.Transmission, res *harness.Result)) func(p *parts) {
	return func(p *parts) {
		p.harness = func(h handler, _ *bench) handler {
			return handlerFunc(func(ctx context.Context, t harness.Transmission) harness.Result {
				res := h.Handle(ctx, t)
				change(t, &res)
				return res
			})
		}
	}
}

// lost is a coordinator that finds the wrong invocation.
type lost struct{ harness.Coordinator }

func (l lost) Correlate(ctx context.Context, signalID string) (harness.Subscription, error) {
	sub, err := l.Coordinator.Correlate(ctx, signalID)
	sub.InvocationID = "00000000-0000-4000-8000-000000000000"
	return sub, err
}
