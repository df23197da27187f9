package slack

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"strconv"
	"time"

	slackgo "github.com/slack-go/slack"

	"github.com/parley-chat/parley/platforms"
)

// markEvent is the event_type of the metadata that carries a mark. Everybody in the workspace can read metadata.
const markEvent = "parley_delivery"

// rendered is a Part as render makes it.
type rendered struct {
	Text   string            `json:"text"`
	Blocks []json.RawMessage `json:"blocks"`
}

func parsePart(op string, p platforms.Part) (rendered, error) {
	var r rendered
	if err := json.Unmarshal(p, &r); err != nil {
		return rendered{}, failed(op, platforms.Malformed, "not_a_part")
	}
	if r.Text == "" && len(r.Blocks) == 0 {
		return rendered{}, failed(op, platforms.Malformed, "no_text")
	}
	return r, nil
}

// Post sends a part with the mark in its metadata. If the thread is gone Slack puts a reply into the channel instead, for
// all to see; such a message is taken back, and the error is Refused with the code "thread_gone".
func (a *Adapter) Post(ctx context.Context, to platforms.Conversation, mark string, p platforms.Part) (platforms.MessageRef, error) {
	const op = "chat.postMessage"
	where, err := parseConversation(to)
	if err != nil {
		return "", failed(op, platforms.Refused, "no_conversation")
	}
	part, err := parsePart(op, p)
	if err != nil {
		return "", err
	}
	options := []slackgo.MsgOption{
		slackgo.MsgOptionText(part.Text, false),
		slackgo.MsgOptionDisableLinkUnfurl(),
		slackgo.MsgOptionDisableMediaUnfurl(),
	}
	if len(part.Blocks) > 0 {
		options = append(options, slackgo.MsgOptionBlocks(rawBlocks(part.Blocks)...))
	}
	if where.Thread != "" {
		options = append(options, slackgo.MsgOptionTS(where.Thread))
	}
	if mark != "" {
		options = append(options, markOption(mark))
	}
	var channel, ts string
	var posted slackgo.Message
	err = a.do(ctx, op, where.Channel, func(ctx context.Context) (err error) {
		channel, ts, posted, err = a.api.PostMessageWithResponseContext(ctx, where.Channel, options...)
		if err == nil && ts == "" {
			return errors.New("chat.postMessage named no message")
		}
		return err
	})
	if err != nil {
		return "", err
	}
	channel = cmp.Or(channel, where.Channel)
	if where.Thread != "" && posted.Timestamp != "" && posted.ThreadTimestamp != where.Thread {
		return "", a.takeBack(ctx, channel, ts)
	}
	return messageRef(channel, ts), nil
}

func markOption(mark string) slackgo.MsgOption {
	return slackgo.MsgOptionMetadata(slackgo.SlackMetadata{EventType: markEvent, EventPayload: map[string]any{"mark": mark}})
}

// takeBack deletes a reply that landed outside its thread.
func (a *Adapter) takeBack(ctx context.Context, channel, ts string) error {
	err := a.do(ctx, "chat.delete", "", func(ctx context.Context) error {
		_, _, err := a.api.DeleteMessageContext(ctx, channel, ts)
		return err
	})
	e := failed("chat.postMessage", platforms.Refused, "thread_gone")
	if err != nil {
		e.Cause = err
	}
	return e
}

// Edit replaces a message, blocks included: a part without blocks removes them. A message that is still streaming, because
// a process died in between, is ended first.
func (a *Adapter) Edit(ctx context.Context, at platforms.MessageRef, p platforms.Part) error {
	const op = "chat.update"
	channel, ts, err := parseRef(at)
	if err != nil {
		return failed(op, platforms.Gone, "no_message")
	}
	part, err := parsePart(op, p)
	if err != nil {
		return err
	}
	err = a.update(ctx, channel, ts, part)
	if codeOf(err) != "streaming_state_conflict" {
		return err
	}
	if err := a.stopStream(ctx, channel, ts); err != nil && platforms.FailureOf(err) != platforms.Gone {
		return err
	}
	return a.update(ctx, channel, ts, part)
}

func (a *Adapter) update(ctx context.Context, channel, ts string, part rendered) error {
	return a.do(ctx, "chat.update", "", func(ctx context.Context) error {
		_, _, _, err := a.api.UpdateMessageContext(ctx, channel, ts,
			slackgo.MsgOptionText(part.Text, false),
			slackgo.MsgOptionBlocks(rawBlocks(part.Blocks)...))
		return err
	})
}

const (
	// findWithin is how far back a mark is looked for: a part is not kept undelivered for longer.
	findWithin = 7 * 24 * time.Hour
	// findPages bounds one search, at findPage messages a page.
	findPages = 50
	findPage  = 200
)

// Find looks for the mark among our own messages of the last 7 days in the thread, or in the direct message. Where there
// are more messages than 10,000 it fails as Unknown, code "too_many_messages", rather than call the mark absent.
func (a *Adapter) Find(ctx context.Context, in platforms.Conversation, mark string) (platforms.MessageRef, error) {
	oldest := strconv.FormatInt(a.now().Add(-findWithin).Unix(), 10) + ".000000"
	var found platforms.MessageRef
	err := a.eachOwn(ctx, in, oldest, func(ref platforms.MessageRef, m own) bool {
		if m.mark() == mark {
			found = ref
		}
		return found == ""
	})
	return found, err
}

// FindStream looks for a message of ours in the thread without a mark. Every part bears one, a stream only when it was
// closed.
func (a *Adapter) FindStream(ctx context.Context, in platforms.Conversation, after platforms.MessageRef) (platforms.MessageRef, error) {
	oldest := strconv.FormatInt(a.now().Add(-findWithin).Unix(), 10) + ".000000"
	if after != "" {
		_, ts, err := parseRef(after)
		if err != nil {
			return "", failed("find", platforms.Refused, "no_message")
		}
		oldest = ts
	}
	where, err := parseConversation(in)
	if err != nil {
		return "", failed("find", platforms.Refused, "no_conversation")
	}
	if where.Thread == "" { // where there are no streams
		return "", nil
	}
	var found platforms.MessageRef
	err = a.eachOwn(ctx, in, oldest, func(ref platforms.MessageRef, m own) bool {
		// Slack names the parent of a thread whatever its age.
		if m.mark() == "" && m.TS > oldest && m.TS != where.Thread {
			found = ref
		}
		return true
	})
	return found, err
}

// eachOwn calls fn for our own messages of a conversation that are newer than oldest, until it returns false.
func (a *Adapter) eachOwn(ctx context.Context, in platforms.Conversation, oldest string, fn func(platforms.MessageRef, own) bool) error {
	where, err := parseConversation(in)
	if err != nil {
		return failed("find", platforms.Refused, "no_conversation")
	}
	method := "conversations.history"
	args := url.Values{
		"channel":              {where.Channel},
		"include_all_metadata": {"true"},
		"limit":                {strconv.Itoa(findPage)},
		"oldest":               {oldest},
	}
	if where.Thread != "" {
		method = "conversations.replies"
		args.Set("ts", where.Thread)
	}
	self := a.self.Load()
	for range findPages {
		var p page
		if err := a.lookUp(ctx, method, args, &p); err != nil {
			return err
		}
		for _, m := range p.Messages {
			// Others can write the same metadata; theirs do not count.
			if (self == nil || self.own(m.posted)) && !fn(messageRef(where.Channel, m.TS), m) {
				return nil
			}
		}
		if p.Next.Cursor == "" {
			return nil
		}
		args.Set("cursor", p.Next.Cursor)
	}
	return failed(method, platforms.Unknown, "too_many_messages")
}

// page is a page of conversations.history or conversations.replies.
type page struct {
	Messages []own `json:"messages"`
	Next     struct {
		Cursor string `json:"next_cursor"`
	} `json:"response_metadata"`
}

// own is a message with its metadata.
type own struct {
	posted
	Metadata struct {
		EventType    string `json:"event_type"`
		EventPayload struct {
			Mark string `json:"mark"`
		} `json:"event_payload"`
	} `json:"metadata"`
}

// mark is what a part bears; "" if it is none of ours.
func (m own) mark() string {
	if m.Metadata.EventType != markEvent {
		return ""
	}
	return m.Metadata.EventPayload.Mark
}
