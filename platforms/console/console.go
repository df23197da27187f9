// Package console is the terminal as a platform: one conversation, one person, lines in and lines out. An approval is
// decided by typing "approve <id>" or "deny <id> <reason>".
package console

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/parley-chat/parley/platforms"
)

// Name is the platform's name in session ids and policies.
const Name = "console"

const conversation platforms.Conversation = "terminal"

// Adapter reads lines from one reader and writes to one writer.
type Adapter struct {
	in   io.Reader
	user platforms.User

	mu   sync.Mutex
	out  io.Writer
	next int
}

var (
	_ platforms.Adapter  = (*Adapter)(nil)
	_ platforms.Notifier = (*Adapter)(nil)
)

// New returns the terminal of one person.
func New(in io.Reader, out io.Writer, user platforms.User) *Adapter {
	return &Adapter{in: in, out: out, user: user}
}

func (a *Adapter) Platform() string                     { return Name }
func (a *Adapter) Capabilities() platforms.Capabilities { return platforms.Capabilities{} }

// line is what a delivery holds.
type line struct {
	Text string    `json:"text"`
	Ref  string    `json:"ref"`
	At   time.Time `json:"at"`
}

// Run reads lines until the input or ctx ends; both are a good end. A read from a terminal cannot be interrupted, so its
// goroutine ends only with the next line; there is one in a process.
func (a *Adapter) Run(ctx context.Context, inbox platforms.Inbox) error {
	lines := make(chan string)
	failed := make(chan error, 1)
	go func() {
		defer close(lines)
		scanner := bufio.NewScanner(a.in)
		scanner.Buffer(nil, 1<<20)
		for scanner.Scan() {
			select {
			case lines <- scanner.Text():
			case <-ctx.Done():
				return
			}
		}
		failed <- scanner.Err()
	}()
	for {
		select {
		case <-ctx.Done():
			return nil
		case text, more := <-lines:
			if !more {
				return ended(ctx, failed)
			}
			if err := a.accept(ctx, inbox, text); err != nil {
				return err
			}
		}
	}
}

func ended(ctx context.Context, failed <-chan error) error {
	select {
	case err := <-failed:
		if err != nil {
			return fmt.Errorf("console: read: %w", err)
		}
	case <-ctx.Done():
	}
	return nil
}

func (a *Adapter) accept(ctx context.Context, inbox platforms.Inbox, text string) error {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	l := line{Text: text, Ref: a.ref(), At: time.Now().UTC()}
	raw, err := json.Marshal(l)
	if err != nil {
		return fmt.Errorf("console: %w", err)
	}
	key := platforms.Key(l.Ref + "@" + l.At.Format(time.RFC3339Nano))
	name, _, isCommand := platforms.TextCommand(text)
	urgent := isCommand && name != "reset" // which keeps its place behind the messages before it
	return inbox.Accept(ctx, platforms.Delivery{Keys: []platforms.Key{key}, Conversation: conversation, Urgent: urgent, Raw: raw})
}

func (a *Adapter) ref() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.next++
	return strconv.Itoa(a.next)
}

// Read translates a line.
func (a *Adapter) Read(raw []byte) (platforms.Inbound, error) {
	var l line
	if err := json.Unmarshal(raw, &l); err != nil {
		return nil, fmt.Errorf("console: read: %w", err)
	}
	switch name, args, isCommand := platforms.TextCommand(l.Text); {
	case isCommand && name == "stop":
		return platforms.Stop{Conversation: conversation, By: a.user}, nil
	case isCommand:
		return platforms.Command{Conversation: conversation, By: a.user, Name: name, Args: args}, nil
	}
	return platforms.Message{
		Conversation: conversation, Ref: platforms.MessageRef(l.Ref), From: a.user,
		Addressed: platforms.Direct, Text: l.Text, At: l.At,
	}, nil
}

// Render shows text as it is and a card as lines; buttons become the commands that do the same.
func (a *Adapter) Render(c platforms.Content) []platforms.Part {
	if c.Card == nil {
		return []platforms.Part{platforms.Part(c.Markdown)}
	}
	return []platforms.Part{platforms.Part(cardText(*c.Card))}
}

func cardText(c platforms.Card) string {
	var b strings.Builder
	fmt.Fprintf(&b, "── %s\n", c.Title)
	if c.Text != "" {
		fmt.Fprintln(&b, c.Text)
	}
	for _, f := range c.Facts {
		fmt.Fprintf(&b, "   %s: %s\n", f.Name, f.Value)
	}
	for _, block := range c.Blocks {
		fmt.Fprintf(&b, "   %s:\n      %s\n", block.Name, strings.ReplaceAll(block.Text, "\n", "\n      "))
	}
	for _, button := range c.Buttons {
		if button.Action == "approve" || button.Action == "deny" {
			fmt.Fprintf(&b, "   %s: type %s %s\n", button.Label, button.Action, button.Value)
		}
	}
	return strings.TrimRight(b.String(), "\n")
}

// Post prints a part. The terminal forgets nothing and is never in doubt.
func (a *Adapter) Post(_ context.Context, _ platforms.Conversation, _ string, p platforms.Part) (platforms.MessageRef, error) {
	return platforms.MessageRef("out-" + a.ref()), a.print(string(p))
}

// Edit prints the new form: what is on a terminal cannot be changed.
func (a *Adapter) Edit(_ context.Context, _ platforms.MessageRef, p platforms.Part) error {
	return a.print(string(p))
}

// Notify prints too: there is only one person.
func (a *Adapter) Notify(_ context.Context, _ platforms.Reply, text string) error {
	return a.print(text)
}

func (a *Adapter) print(text string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, err := fmt.Fprintf(a.out, "%s\n\n", printable(text)); err != nil {
		return &platforms.Error{Failure: platforms.Unreachable, Op: "console: write", Cause: err}
	}
	return nil
}

// printable takes control characters out, so that what a model wrote cannot steer the terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return r
		}
		if r < ' ' || r == 0x7f || (r >= 0x80 && r < 0xa0) {
			return -1
		}
		return r
	}, s)
}
