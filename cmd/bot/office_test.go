package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/parley-chat/parley/core/graph"
	"github.com/parley-chat/parley/core/llm"
	"github.com/parley-chat/parley/platforms/bridge"
	"github.com/parley-chat/parley/platforms/slack/slacktwin"
	"github.com/parley-chat/parley/store"
	"github.com/parley-chat/parley/store/bolt"
)

// office is a stand-in Slack with people in it, and the place where the bot lives one life after the other: one store,
// one address. Slack is in the test's process; each life of the bot is a process of its own.
type office struct {
	t     *testing.T
	twin  *slacktwin.Twin
	dir   string
	addr  string   // where the bot listens, if it serves HTTP
	env   []string // of every life
	lives int
	ctx   context.Context // the deadline of the whole test

	mu      sync.Mutex
	changed chan struct{} // closed at the next change in Slack
	begun   chan struct{} // closed when the next life begins
}

// The people. Only the first two may approve.
const (
	grace, hedy       = "UGRACE", "UHEDY"
	ada, ben, mallory = "UADA", "UBEN", "UMALLORY"
	general           = "CGENERAL"
)

// transport is how Slack's deliveries reach the bot.
type transport bool

const (
	overHTTP   transport = false
	overSocket transport = true
)

func (w transport) String() string {
	if w == overSocket {
		return "Socket Mode"
	}
	return "HTTP"
}

// newOffice opens an office. A delivery that is not acknowledged comes again after a moment: Slack's minutes, compressed
// as the bot's downtime is.
func newOffice(t *testing.T, way transport, patience time.Duration, settings ...string) *office {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	retries := make([]time.Duration, 20*int(patience/time.Second))
	for i := range retries {
		retries[i] = 100 * time.Millisecond
	}
	twin := slacktwin.New(slacktwin.Options{Agent: true, Retries: retries})
	t.Cleanup(func() {
		if err := twin.Close(); err != nil {
			t.Error("closing the stand-in:", err)
		}
	})
	url, err := twin.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	everybody := []string{twin.Options().BotUser}
	for _, id := range []string{grace, hedy, ada, ben, mallory} {
		twin.AddUser(slacktwin.User{ID: id, Name: strings.ToLower(id[1:])})
		everybody = append(everybody, id)
	}
	twin.AddChannel(slacktwin.Channel{ID: general, Name: "general", Members: everybody})

	o := &office{t: t, twin: twin, dir: t.TempDir(), addr: freeAddress(t), ctx: ctx,
		changed: make(chan struct{}), begun: make(chan struct{})}
	secrets := twin.Options()
	o.env = append([]string{
		"SLACK_BOT_TOKEN=" + secrets.BotToken, "SLACK_SIGNING_SECRET=" + secrets.SigningSecret,
		"SLACK_API_URL=" + url + "/api/", "SLACK_PACING=off",
		"BOT_ADDR=" + o.addr, "BOT_STORE=bolt:" + o.path("bot.db"), "BOT_DEMO_LOG=" + o.path("deployed"),
		"BOT_APPROVERS=slack:" + grace + ",slack:" + hedy,
		"PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir(), "GOCOVERDIR=" + os.Getenv("GOCOVERDIR"),
	}, settings...)
	if way == overSocket {
		o.env = append(o.env, "SLACK_APP_TOKEN="+secrets.AppToken)
	} else {
		base := "http://" + o.addr
		twin.Connect(slacktwin.Callbacks{Events: base + "/slack/events", Interactivity: base + "/slack/interactivity",
			Commands: base + "/slack/commands"})
	}
	o.watch()
	t.Cleanup(o.inquest)
	return o
}

// freeAddress finds an address below the ports that the system gives to outgoing connections: there, one could take the
// bot's place while it is dead.
func freeAddress(t *testing.T) string {
	t.Helper()
	for range 100 {
		addr := fmt.Sprintf("127.0.0.1:%d", 10_000+rand.IntN(20_000))
		if l, err := net.Listen("tcp", addr); err == nil {
			l.Close()
			return addr
		}
	}
	t.Fatal("no free port found")
	return ""
}

func (o *office) path(name string) string { return filepath.Join(o.dir, name) }

// watch closes o.changed whenever something changed in Slack.
func (o *office) watch() {
	changes, cancel := o.twin.Subscribe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for range changes {
			o.stir()
		}
	}()
	o.t.Cleanup(func() {
		cancel()
		<-ended
	})
}

// stir tells everybody who waits for a change that there was one.
func (o *office) stir() {
	o.mu.Lock()
	defer o.mu.Unlock()
	close(o.changed)
	o.changed = make(chan struct{})
}

func (o *office) nextChange() <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.changed
}

func (o *office) nextLife() <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.begun
}

// await waits until what people see is as it should be, looking again at every change. It reports false at the deadline.
func (o *office) await(seen func() bool) bool {
	for {
		change := o.nextChange()
		if seen() {
			return true
		}
		select {
		case <-change:
		case <-o.ctx.Done():
			return false
		}
	}
}

// life is one process of the bot.
type life struct {
	office *office
	number int
	cmd    *exec.Cmd
	ended  chan error
}

// start begins a life.
func (o *office) start() *life {
	o.t.Helper()
	self, err := os.Executable()
	if err != nil {
		o.t.Fatal(err)
	}
	log, err := os.OpenFile(o.path("log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		o.t.Fatal(err)
	}
	defer log.Close()
	o.lives++
	fmt.Fprintf(log, "--- life %d\n", o.lives)
	l := &life{office: o, number: o.lives, cmd: &exec.Cmd{Path: self, Args: []string{"bot", "serve"}, Env: o.env, Stdout: log, Stderr: log},
		ended: make(chan error, 1)}
	if err := l.cmd.Start(); err != nil {
		o.t.Fatal("starting the bot:", err)
	}
	go func() { l.ended <- l.cmd.Wait() }()
	o.t.Cleanup(func() { _ = l.cmd.Process.Kill() })
	o.mu.Lock()
	defer o.mu.Unlock()
	close(o.begun)
	o.begun = make(chan struct{})
	return l
}

// ready waits until this life receives from Slack.
func (l *life) ready() *life {
	l.office.t.Helper()
	for l.office.ctx.Err() == nil {
		if status, _ := l.office.probe("/readyz"); status == http.StatusOK {
			return l
		}
		select {
		case err := <-l.ended:
			l.office.t.Fatalf("life %d ended before it was ready: %v", l.number, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
	l.office.t.Fatalf("life %d was not ready in time", l.number)
	return l
}

// probe asks the bot's own HTTP; a status of 0 is no answer.
func (o *office) probe(path string) (status int, body string) {
	req, err := http.NewRequestWithContext(o.ctx, http.MethodGet, "http://"+o.addr+path, nil)
	if err != nil {
		o.t.Fatal(err)
	}
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, ""
	}
	defer resp.Body.Close()
	said, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, ""
	}
	return resp.StatusCode, strings.TrimSpace(string(said))
}

// kill ends a life at once. One that had ended by itself is an error.
func (l *life) kill() {
	l.office.t.Helper()
	if err := l.cmd.Process.Kill(); err != nil {
		l.office.t.Fatalf("life %d could not be killed: %v", l.number, err)
	}
	err := <-l.ended
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		l.office.t.Fatalf("life %d had ended by itself: %v", l.number, err)
	}
}

// stop asks a life to end, and returns once it has. It must end well.
func (l *life) stop() {
	l.office.t.Helper()
	if err := l.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		l.office.t.Fatalf("life %d could not be stopped: %v", l.number, err)
	}
	l.mustEndWell()
}

func (l *life) mustEndWell() {
	l.office.t.Helper()
	select {
	case err := <-l.ended:
		if err != nil {
			l.office.t.Fatalf("life %d ended with %v, want exit code 0", l.number, err)
		}
	case <-l.office.ctx.Done():
		l.office.t.Fatalf("life %d did not end after it was asked to", l.number)
	}
}

// inquest looks for what a life said that none should, and tells the end of the log if the test failed.
func (o *office) inquest() {
	log, err := os.ReadFile(o.path("log"))
	if err != nil {
		return
	}
	for _, word := range []string{"DATA RACE", "panic:", "panicked", "set aside", "fatal error:"} {
		if bytes.Contains(log, []byte(word)) {
			o.t.Errorf("the bot's log says %q", word)
		}
	}
	if o.t.Failed() {
		const most = 12_000
		o.t.Logf("the end of the bot's log:\n%s", log[max(0, len(log)-most):])
	}
}

// inStore looks into the store, which no life may hold now.
func (o *office) inStore(look func(*store.Records) error) {
	o.t.Helper()
	kv, err := bolt.Open(o.ctx, o.path("bot.db"), bolt.Options{})
	if err != nil {
		o.t.Fatal("opening the store:", err)
	}
	defer kv.Close()
	if err := look(store.NewRecords(kv)); err != nil {
		o.t.Fatal("reading the store:", err)
	}
}

// leftovers counts the conversations with something in the inbox, and those with something in the outbox.
func (o *office) leftovers() (lanes, places int) {
	o.t.Helper()
	o.inStore(func(r *store.Records) error {
		return r.Bridge().View(o.ctx, func(tx bridge.Tx) error {
			l, err := tx.Lanes()
			if err != nil {
				return err
			}
			p, err := tx.Places()
			lanes, places = len(l), len(p)
			return err
		})
	})
	return lanes, places
}

// histories are what the bot remembers, by session.
func (o *office) histories() map[string][]llm.Message {
	o.t.Helper()
	histories := map[string][]llm.Message{}
	o.inStore(func(r *store.Records) error {
		for session, err := range r.List(o.ctx, graph.SessionFilter{}) {
			if err != nil {
				return err
			}
			record, err := r.Load(o.ctx, session.SessionID)
			if err != nil {
				return err
			}
			log := record.Logs["messages"]
			items, err := log.Read(o.ctx, 0, log.Len())
			if err != nil {
				return err
			}
			history := make([]llm.Message, len(items))
			for i, raw := range items {
				if err := json.Unmarshal(raw, &history[i]); err != nil {
					return err
				}
			}
			histories[session.SessionID] = history
		}
		return nil
	})
	return histories
}

// said are the bot's messages of a channel, in order.
func (o *office) said(channel string) []slacktwin.Message {
	var own []slacktwin.Message
	for _, m := range o.twin.Messages(channel) {
		if m.User == o.twin.Options().BotUser {
			own = append(own, m)
		}
	}
	return own
}

// saidIn are the bot's replies in a thread.
func (o *office) saidIn(channel, thread string) []slacktwin.Message {
	var own []slacktwin.Message
	for _, m := range o.twin.Thread(channel, thread) {
		if m.User == o.twin.Options().BotUser {
			own = append(own, m)
		}
	}
	return own
}

func (o *office) mention(text string) string {
	return "<@" + o.twin.Options().BotUser + "> " + text
}
