package slack

import (
	"context"
	"errors"
	"strings"
	"time"
	"unicode/utf8"

	slackgo "github.com/slack-go/slack"

	"github.com/parley-chat/parley/platforms"
)

const (
	// streamFor is how long a stream is used. Slack ends it after about five minutes, whatever is appended;
	// what is appended then is lost.
	streamFor = 4 * time.Minute
	// appendEvery is the shortest time between two appends of one stream.
	appendEvery = time.Second
	// maxMarkdown is the longest markdown_text, here in bytes.
	maxMarkdown = 12_000
)

// OpenStream begins a streaming message in a thread, for one person. Plain direct messages, other programs, installations
// without streams and a spent budget (Slack starts about 20 a minute) get ErrNoStream. Slack takes the mark only when a
// stream is closed: until then Find does not see it.
func (a *Adapter) OpenStream(ctx context.Context, in platforms.Conversation, to platforms.User, mark string) (platforms.Stream, error) {
	where, err := parseConversation(in)
	team, user, ok := parseUser(to.ID)
	if err != nil || where.Thread == "" || !ok || to.Bot || a.noStream.Load() || !a.pace.try("chat.startStream") {
		return nil, platforms.ErrNoStream
	}
	s := &stream{a: a, channel: where.Channel, mark: mark, opened: a.now()}
	err = a.call(ctx, "chat.startStream", func(ctx context.Context) (err error) {
		_, s.ts, err = a.api.StartStreamContext(ctx, where.Channel,
			slackgo.MsgOptionTS(where.Thread),
			slackgo.MsgOptionRecipientUserID(user),
			slackgo.MsgOptionRecipientTeamID(team))
		if err == nil && s.ts == "" {
			return errors.New("chat.startStream named no message")
		}
		return err
	})
	if err != nil {
		return nil, a.cannotStream(err)
	}
	return s, nil
}

// cannotStream turns the failure to begin a stream into ErrNoStream, except where nothing else would succeed either or a
// message may stand already.
func (a *Adapter) cannotStream(err error) error {
	if notGranted(err) {
		if a.noStream.CompareAndSwap(false, true) {
			a.log.Info("slack: no streams here; answers are posted and edited", "code", codeOf(err))
		}
		return platforms.ErrNoStream
	}
	switch platforms.FailureOf(err) {
	case platforms.Broken, platforms.Unknown, platforms.Unreachable:
		return err
	}
	return platforms.ErrNoStream
}

// stream is one streaming message. Text that was not sent yet waits in tail; it goes with the next append or the end.
type stream struct {
	a           *Adapter
	channel, ts string
	mark        string
	opened      time.Time
	flushed     time.Time
	tail        string
	last        byte // of what was sent or waits, to see a sequence that two texts make together
	closed      bool
}

// Ref is the message that grows.
func (s *stream) Ref() platforms.MessageRef { return messageRef(s.channel, s.ts) }

// Append adds text. It is sent at most once a second and within Slack's limits, so it may wait for the next call; Close
// sends what is left. Four minutes after the start Append fails as Gone with the code "stream_too_old", and every time
// from then on: the caller closes the stream and goes on by editing its message, for which it has the whole text. So it
// does after any other error of Append: what was to be sent may or may not stand there, and is not sent again.
func (s *stream) Append(ctx context.Context, text string) error {
	const op = "chat.appendStream"
	if s.closed {
		return failed(op, platforms.Gone, "stream_closed")
	}
	if s.a.now().Sub(s.opened) >= streamFor {
		return failed(op, platforms.Gone, "stream_too_old")
	}
	s.add(text)
	if s.a.pace != nil && s.a.now().Sub(s.flushed) < appendEvery || !s.a.pace.try(op) {
		return nil
	}
	err := s.flush(ctx)
	if err == nil || platforms.FailureOf(err) == platforms.SlowDown {
		return nil // or the text waits
	}
	s.tail = ""
	return err
}

// add keeps text for sending, harmless.
func (s *stream) add(text string) {
	if text == "" {
		return
	}
	s.tail += harmless(text, s.last)
	s.last = text[len(text)-1]
}

// flush sends the beginning of the tail.
func (s *stream) flush(ctx context.Context) error {
	chunk, rest := cutText(s.tail, maxMarkdown)
	if chunk == "" {
		return nil
	}
	err := s.a.call(ctx, "chat.appendStream", func(ctx context.Context) error {
		_, _, err := s.a.api.AppendStreamContext(ctx, s.channel, s.ts, slackgo.MsgOptionMarkdownText(chunk))
		return err
	})
	if err != nil {
		return err
	}
	s.tail = rest
	s.flushed = s.a.now()
	return nil
}

// Close sends what is left and ends the message. The reference is good even with an error: the message stands, perhaps
// without its end, and can be edited. Closing again returns the same reference.
func (s *stream) Close(ctx context.Context) (platforms.MessageRef, error) {
	ref := messageRef(s.channel, s.ts)
	if s.closed {
		return ref, nil
	}
	for len(s.tail) > maxMarkdown {
		if err := s.a.pace.wait(ctx, "chat.appendStream", ""); err != nil {
			return ref, err
		}
		if err := s.flush(ctx); err != nil {
			return ref, err
		}
	}
	var options []slackgo.MsgOption
	if s.tail != "" {
		options = append(options, slackgo.MsgOptionMarkdownText(s.tail))
	}
	if s.mark != "" {
		options = append(options, markOption(s.mark))
	}
	err := s.a.stopStream(ctx, s.channel, s.ts, options...)
	if codeOf(err) == "message_not_in_streaming_state" && s.tail == "" {
		err = nil // it had ended by itself
	}
	s.closed = err == nil || platforms.FailureOf(err) == platforms.Gone
	return ref, err
}

func (a *Adapter) stopStream(ctx context.Context, channel, ts string, options ...slackgo.MsgOption) error {
	return a.do(ctx, "chat.stopStream", "", func(ctx context.Context) error {
		_, _, err := a.api.StopStreamContext(ctx, channel, ts, options...)
		return err
	})
}

// harmless breaks what Slack would still take for a broadcast or a mention in Markdown: <!here>, <@U1>, <#C1>. An
// invisible space after the bracket changes nothing else. before is the byte before text.
func harmless(text string, before byte) string {
	const gap = "\u200b"
	var b strings.Builder
	for i := range len(text) {
		c := text[i]
		if before == '<' && (c == '!' || c == '@' || c == '#') {
			b.WriteString(gap)
		}
		b.WriteByte(c)
		before = c
	}
	return b.String()
}

// cutText cuts s after at most limit bytes, not within a character.
func cutText(s string, limit int) (head, rest string) {
	if len(s) <= limit {
		return s, ""
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit], s[limit:]
}
