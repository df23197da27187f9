package bridge

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/parley-chat/parley/core/chat"
	"github.com/parley-chat/parley/platforms"
)

const (
	// statusAfter is how long a turn may take before it is shown that the bot is working.
	statusAfter = time.Second
	// firstShown is how much time the beginning of an answer gets to gather before it is shown.
	firstShown = 500 * time.Millisecond
	// streamEvery is the time between two pieces of a stream.
	streamEvery = 400 * time.Millisecond
	// growingLimit is how much of an answer is shown while it grows, in bytes; the rest comes with the whole.
	growingLimit = 3000
)

// live shows that a turn is under way: a status once it has taken a while, and the answer as it grows. All of it is
// help for those who wait; whatever fails is logged, and the settled outcome is what counts.
//
// The ladder for a growing answer: a stream, else a message that is edited, else nothing until it is whole.
type live struct {
	bridge *Bridge
	turn   *turn
	to     platforms.User
	stop   context.CancelFunc
	done   chan struct{}
	ended  sync.Once
	shown  platforms.MessageRef

	mu    sync.Mutex
	text  strings.Builder
	fresh chan struct{}
}

// watch begins to show a turn. end must be called.
func (b *Bridge) watch(ctx context.Context, t *turn, to platforms.User) *live {
	ctx, stop := context.WithCancel(ctx)
	l := &live{bridge: b, turn: t, to: to, stop: stop, shown: t.entry.Shown, done: make(chan struct{}), fresh: make(chan struct{}, 1)}
	go func() {
		defer close(l.done)
		var working sync.WaitGroup
		working.Go(func() { l.showWorking(ctx) })
		l.run(ctx)
		working.Wait()
	}()
	return l
}

// emit takes what the graph emits.
func (l *live) emit(v any) {
	d, ok := v.(chat.Delta)
	if !ok {
		return
	}
	l.mu.Lock()
	l.text.WriteString(d.Text)
	l.mu.Unlock()
	select {
	case l.fresh <- struct{}{}:
	default:
	}
}

func (l *live) soFar() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.TrimSpace(l.text.String())
}

// end stops showing and returns the message that shows the answer so far, if there is one. It may be called again.
func (l *live) end() platforms.MessageRef {
	l.ended.Do(func() {
		l.stop()
		<-l.done
	})
	return l.shown
}

func (l *live) run(ctx context.Context) {
	select {
	case <-l.fresh:
	case <-ctx.Done():
		return
	}
	rest(ctx, firstShown)
	if ctx.Err() != nil || l.shown != "" || !l.bridge.outbox.idle(l.turn.place) { // earlier replies come first
		return
	}
	if l.bridge.recovered(l.turn.entry) && l.begun(ctx) {
		return
	}
	if l.stream(ctx) {
		return
	}
	l.grow(ctx)
}

// begun reports whether an earlier process began to show the answer, or may have. Then nothing is shown before the whole.
func (l *live) begun(ctx context.Context) bool {
	ref, err := l.bridge.begun(ctx, l.turn.place, l.mark())
	if err != nil {
		l.failed("look for an answer that was begun", err)
		return true
	}
	if ref != "" {
		l.keep(ctx, ref)
	}
	return ref != ""
}

// showWorking says that the bot is working, once that has taken a while. How the turn leaves the conversation is said by a
// delivery behind its replies.
func (l *live) showWorking(ctx context.Context) {
	setter, ok := l.turn.adapter.(platforms.StatusSetter)
	if !ok {
		return
	}
	rest(ctx, statusAfter)
	if ctx.Err() != nil {
		return
	}
	l.turn.working = true
	if err := setter.SetStatus(ctx, l.turn.place.Conversation, l.turn.asked, platforms.Working); err != nil && ctx.Err() == nil {
		l.bridge.Logger.Debug("a status could not be shown", "platform", l.turn.place.Platform, "error", err)
	}
}

// withdraw takes back what people were shown of a turn that was interrupted and is tried again.
func (b *Bridge) withdraw(t *turn) {
	if !t.working {
		return
	}
	d := Delivery{Place: t.place, Status: platforms.Idle, Asked: t.asked}
	b.background.Go(func() { _ = b.showStatus(b.workContext(), d) }) // if it fails, the next try of the turn sees to it
}

// showStatus performs the delivery of a status. It is help: only what may soon go away is an error.
func (b *Bridge) showStatus(ctx context.Context, d Delivery) error {
	setter, ok := b.adapters[d.Place.Platform].(platforms.StatusSetter)
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	err := setter.SetStatus(ctx, d.Place.Conversation, d.Asked, d.Status)
	if err == nil {
		return nil
	}
	switch platforms.FailureOf(err) {
	case platforms.SlowDown, platforms.Unreachable:
		return err
	case platforms.Unknown:
		if !b.mayHaveSent(d) {
			return err
		}
	}
	b.Logger.Debug("a status could not be shown", "platform", d.Place.Platform, "error", err)
	return nil
}

func (l *live) mark() string { return markOf(l.turn.entry.Turn + "/0") }

// stream shows the answer as a stream and reports whether it could.
func (l *live) stream(ctx context.Context) bool {
	streamer, ok := l.turn.adapter.(platforms.Streamer)
	if !ok {
		return false
	}
	s, err := streamer.OpenStream(ctx, l.turn.place.Conversation, l.to, l.mark())
	if err != nil {
		l.failed("open a stream", err)
		return false
	}
	l.keep(ctx, s.Ref())
	defer func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 15*time.Second)
		defer cancel()
		_, err := s.Close(end)
		l.failed("close a stream", err)
	}()
	sent := 0
	for {
		text := l.soFar()
		if n := min(len(text), growingLimit); n > sent {
			piece := wholeRunes(text[sent:n])
			if err := s.Append(ctx, piece); err != nil {
				l.failed("append to a stream", err)
				return true
			}
			sent += len(piece)
		}
		if !l.more(ctx, streamEvery) {
			return true
		}
	}
}

// grow shows the answer as a message that is edited.
func (l *live) grow(ctx context.Context) {
	every := l.turn.adapter.Capabilities().EditEvery
	if every == 0 {
		return
	}
	ref, err := l.turn.adapter.Post(ctx, l.turn.place.Conversation, l.mark(), l.part())
	if err != nil {
		l.failed("post a growing answer", err)
		return
	}
	l.keep(ctx, ref)
	for l.more(ctx, every) {
		if err := l.turn.adapter.Edit(ctx, ref, l.part()); err != nil {
			l.failed("edit a growing answer", err)
			return
		}
	}
}

// keep remembers the growing message, for a turn whose process dies as well: what people have seen of the answer becomes
// the answer.
func (l *live) keep(ctx context.Context, ref platforms.MessageRef) {
	l.shown = ref
	e := l.turn.entry
	e.Shown = ref
	err := l.bridge.Store.Update(context.WithoutCancel(ctx), func(tx Tx) error { return tx.PutEntry(e) })
	l.failed("remember a growing answer", err)
}

// part is the growing answer as one message.
func (l *live) part() platforms.Part {
	text := l.soFar()
	return l.turn.adapter.Render(platforms.Content{Markdown: wholeRunes(text[:min(len(text), growingLimit)]) + " …"})[0]
}

// more waits for more text, at least for the given time, and reports whether there is any before the end.
func (l *live) more(ctx context.Context, pause time.Duration) bool {
	rest(ctx, pause)
	select {
	case <-l.fresh:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

func (l *live) failed(what string, err error) {
	if err == nil || errors.Is(err, platforms.ErrNoStream) || errors.Is(err, context.Canceled) {
		return
	}
	l.bridge.Logger.Debug("a growing answer could not be shown", "step", what, "platform", l.turn.place.Platform, "error", err)
}

// wholeRunes drops a rune that was cut at the end.
func wholeRunes(s string) string {
	for i := 1; i <= 4 && i <= len(s); i++ {
		if c := s[len(s)-i]; c < 0x80 {
			return s
		} else if c >= 0xc0 {
			if n := runeLen(c); n > i {
				return s[:len(s)-i]
			}
			return s
		}
	}
	return s
}

func runeLen(first byte) int {
	switch {
	case first >= 0xf0:
		return 4
	case first >= 0xe0:
		return 3
	default:
		return 2
	}
}
