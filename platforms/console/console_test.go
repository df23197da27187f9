package console_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/parley-chat/parley/approvals"
	"github.com/parley-chat/parley/conformance/platformtest"
	"github.com/parley-chat/parley/core/agent"
	"github.com/parley-chat/parley/platforms"
	"github.com/parley-chat/parley/platforms/console"
	"github.com/parley-chat/parley/store/memory"
)

var you = platforms.User{ID: "you", Name: "you"}

// screen is what a terminal shows.
type screen struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

// take returns what is new.
func (s *screen) take() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.b.Reset()
	return s.b.String()
}

// session is somebody at the terminal of a whole bot.
type session struct {
	t      *testing.T
	in     *io.PipeWriter
	screen *screen
	bot    *platformtest.Bot
	ledger platformtest.Ledger
}

func sitDown(t *testing.T) *session {
	t.Helper()
	r, w := io.Pipe()
	s := &session{t: t, in: w, screen: &screen{}}
	line := platformtest.Line{Adapter: console.New(r, s.screen, you), Cut: func() { r.Close() }}
	var err error
	s.bot, err = platformtest.StartBot(t.Context(), line, platformtest.BotOptions{
		Store: memory.New(), Provider: &platformtest.Deployer{}, Tools: []agent.Tool{s.ledger.Deploy()}, Logger: platformtest.Logger(t),
		Policy: approvals.Policy{Deciders: []approvals.Pattern{{Platform: console.Name, ID: "you"}}, SelfApproval: true, Within: time.Hour},
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// types types a line and returns what the terminal then shows.
func (s *session) types(line string) string {
	s.t.Helper()
	if _, err := io.WriteString(s.in, line+"\n"); err != nil {
		s.t.Fatal(err)
	}
	synctest.Wait()
	return s.screen.take()
}

// leaves closes the input and waits for the bot's end.
func (s *session) leaves() {
	s.t.Helper()
	s.in.Close()
	if err := s.bot.Wait(); err != nil {
		s.t.Error("the bot ended with", err)
	}
}

var request = regexp.MustCompile(`type approve ([0-9a-z]{20})`)

func TestATalkInTheTerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sitDown(t)
		defer s.leaves()
		if got, want := s.types("hello"), "echo: hello\n\n"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if got := s.types("   "); got != "" {
			t.Errorf("got %q for nothing, want nothing", got)
		}
		card := s.types("deploy web")
		for _, want := range []string{"── Approval needed: deploy", "For: you", `"service": "web"`, "Approve: type approve ", "Deny: type deny "} {
			if !strings.Contains(card, want) {
				t.Errorf("the card lacks %q:\n%s", want, card)
			}
		}
		id := request.FindStringSubmatch(card)
		if id == nil {
			t.Fatal("the card does not say what to type")
		}
		if got := s.types("approvals"); !strings.Contains(got, id[1]) {
			t.Errorf("got %q, want the request", got)
		}
		if got := s.types("approve " + id[1]); !strings.Contains(got, "Approved by you") || !strings.Contains(got, `deployed {"service":"web"}`) {
			t.Errorf("got %q, want that it is approved and deployed", got)
		}
		if got := s.types("/status"); !strings.Contains(got, "I am idle here") {
			t.Errorf("got %q, want the status", got)
		}
		if got := s.types("Stop"); !strings.Contains(got, "nothing to stop") {
			t.Errorf("got %q, want that there is nothing to stop", got)
		}
		if n := len(s.ledger.Done()); n != 1 {
			t.Errorf("deployed %d times, want once", n)
		}
	})
}

func TestADenialInTheTerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sitDown(t)
		defer s.leaves()
		id := request.FindStringSubmatch(s.types("deploy web"))
		if id == nil {
			t.Fatal("the card does not say what to type")
		}
		if got := s.types("deny " + id[1] + " not today"); !strings.Contains(got, "Denied by you") || !strings.Contains(got, "not today") {
			t.Errorf("got %q, want who denied it and why", got)
		}
		if n := len(s.ledger.Done()); n != 0 {
			t.Errorf("deployed %d times, want never", n)
		}
	})
}

func TestWhatWasTypedBeforeTheEndIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sitDown(t)
		if _, err := io.WriteString(s.in, "one\ntwo\nthree without an end"); err != nil {
			t.Fatal(err)
		}
		s.leaves()
		if got, want := s.screen.take(), "echo: one\n\necho: two\n\necho: three without an end\n\n"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// inbox keeps what it is given.
type inbox struct {
	kept []platforms.Delivery
	err  error
}

func (i *inbox) Accept(_ context.Context, d platforms.Delivery) error {
	i.kept = append(i.kept, d)
	return i.err
}

func TestALineIsReadAsWhatItMeans(t *testing.T) {
	const id = "abcdefghijkmnpqrstuv"
	for line, test := range map[string]struct {
		want   platforms.Inbound
		urgent bool
	}{
		"hello":             {platforms.Message{Conversation: "terminal", Ref: "1", From: you, Addressed: platforms.Direct, Text: "hello"}, false},
		"stop it":           {platforms.Message{Conversation: "terminal", Ref: "1", From: you, Addressed: platforms.Direct, Text: "stop it"}, false},
		" /STOP ":           {platforms.Stop{Conversation: "terminal", By: you}, true},
		"reset":             {platforms.Command{Conversation: "terminal", By: you, Name: "reset"}, false},
		"status":            {platforms.Command{Conversation: "terminal", By: you, Name: "status"}, true},
		"approve " + id:     {platforms.Command{Conversation: "terminal", By: you, Name: "approve", Args: id}, true},
		"deny " + id + " x": {platforms.Command{Conversation: "terminal", By: you, Name: "deny", Args: id + " x"}, true},
	} {
		var in inbox
		a := console.New(strings.NewReader(line+"\n\n  \n"), io.Discard, you)
		if err := a.Run(t.Context(), &in); err != nil || len(in.kept) != 1 {
			t.Fatalf("%q: got %d deliveries, %v, want one", line, len(in.kept), err)
		}
		d := in.kept[0]
		got, err := a.Read(d.Raw)
		if m, ok := got.(platforms.Message); ok {
			m.At = time.Time{}
			got = m
		}
		if err != nil || !reflect.DeepEqual(got, test.want) {
			t.Errorf("%q: got %+v, %v, want %+v", line, got, err, test.want)
		}
		if d.Urgent != test.urgent || len(d.Keys) != 1 || d.Conversation != "terminal" {
			t.Errorf("%q: got urgent %v in %q under %v, want urgent %v in the terminal under a key", line, d.Urgent, d.Conversation, d.Keys, test.urgent)
		}
	}
}

func TestEachLineHasAKeyOfItsOwn(t *testing.T) {
	var in inbox
	if err := console.New(strings.NewReader("same\nsame\n"), io.Discard, you).Run(t.Context(), &in); err != nil {
		t.Fatal(err)
	}
	if len(in.kept) != 2 || in.kept[0].Keys[0] == in.kept[1].Keys[0] {
		t.Errorf("got %+v, want two keys", in.kept)
	}
}

func TestWhatEndsTheTerminalWithAnError(t *testing.T) {
	broken := errors.New("broken")
	for name, test := range map[string]struct {
		in    io.Reader
		inbox inbox
	}{
		"a read that fails":       {iotest.ErrReader(broken), inbox{}},
		"a line that is not kept": {strings.NewReader("hello\n"), inbox{err: broken}},
	} {
		if err := console.New(test.in, io.Discard, you).Run(t.Context(), &test.inbox); !errors.Is(err, broken) {
			t.Errorf("%s: got %v, want %v", name, err, broken)
		}
	}
	if err := console.New(strings.NewReader(strings.Repeat("x", 2<<20)), io.Discard, you).Run(t.Context(), &inbox{}); err == nil {
		t.Error("a line of 2 MiB: got no error")
	}
}

func TestTheEndOfTheContextEndsTheTerminal(t *testing.T) {
	r, w := io.Pipe()
	defer w.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := console.New(r, io.Discard, you).Run(ctx, &inbox{}); err != nil {
		t.Errorf("got %v, want nil", err)
	}
}

func TestNothingSteersTheTerminal(t *testing.T) {
	for text, want := range map[string]string{
		"plain\n\ttext":           "plain\n\ttext",
		"\x1b[2Jcleared\x07":      "[2Jcleared",
		"a\rb\bc\x7fd\x00":        "abcd",
		"\u009b31mred\u0085":      "31mred",
		"naïve – 日本語 😀":           "naïve – 日本語 😀",
		"not UTF-8: \xff\xfe end": "not UTF-8: \ufffd\ufffd end",
	} {
		var s screen
		a := console.New(strings.NewReader(""), &s, you)
		show := map[string]func() error{
			"post": func() error {
				_, err := a.Post(t.Context(), "terminal", "", a.Render(platforms.Content{Markdown: text})[0])
				return err
			},
			"edit":   func() error { return a.Edit(t.Context(), "out-1", platforms.Part(text)) },
			"notify": func() error { return a.Notify(t.Context(), nil, text) },
		}
		for how, do := range show {
			if err := do(); err != nil {
				t.Fatal(err)
			}
			if got := s.take(); got != want+"\n\n" {
				t.Errorf("%s of %q: got %q, want %q", how, text, got, want)
			}
		}
	}
}

// torn is a terminal that is gone.
type torn struct{}

func (torn) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestATerminalThatIsGoneIsUnreachable(t *testing.T) {
	_, err := console.New(strings.NewReader(""), torn{}, you).Post(t.Context(), "terminal", "", platforms.Part("hello"))
	if got := platforms.FailureOf(err); got != platforms.Unreachable {
		t.Errorf("got %v, want unreachable", err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"text":"hello","ref":"1","at":"2026-01-01T00:00:00Z"}`))
	f.Add([]byte(`{"text":"deny abcdefghijkmnpqrstuv because"}`))
	f.Add([]byte(`[]`))
	a := console.New(strings.NewReader(""), io.Discard, you)
	f.Fuzz(func(t *testing.T, raw []byte) {
		in, err := a.Read(raw)
		if (in == nil) == (err == nil) {
			t.Errorf("got %v and %v, want one of them", in, err)
		}
	})
}
