package discord

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"

	"github.com/bwmarrin/discordgo"

	"github.com/parley-chat/parley/platforms"
)

// rendered is a Part as render makes it.
type rendered struct {
	Content    string            `json:"content"`
	Components []json.RawMessage `json:"components"`
	Users      []string          `json:"users"`
}

func parsePart(op string, p platforms.Part) (rendered, error) {
	var r rendered
	if err := json.Unmarshal(p, &r); err != nil {
		return rendered{}, failed(op, platforms.Malformed, "not_a_part")
	}
	if r.Content == "" {
		return rendered{}, failed(op, platforms.Malformed, "no_content")
	}
	return r, nil
}

// outgoing is a message as it is created (doc resources/message). Everything that protects people goes with each one: who
// may be called, no previews of links, and the nonce that keeps Discord from taking it twice.
type outgoing struct {
	Content         string                 `json:"content"`
	Components      []json.RawMessage      `json:"components,omitempty"`
	AllowedMentions *allowedMentions       `json:"allowed_mentions"`
	Flags           discordgo.MessageFlags `json:"flags"`
	Nonce           string                 `json:"nonce,omitempty"`
	EnforceNonce    bool                   `json:"enforce_nonce,omitempty"`
	Reference       *messageReference      `json:"message_reference,omitempty"`
}

type messageReference struct {
	Message      string `json:"message_id"`
	FailIfAbsent bool   `json:"fail_if_not_exists"`
}

// Post sends a part with the mark as its nonce, which Discord enforces for some minutes: within them the same mark returns
// the earlier message. Where the conversation is a thread that does not exist yet it is opened from its message; where it
// cannot be, the part goes into the channel, the first of them as a reply.
func (a *Adapter) Post(ctx context.Context, to platforms.Conversation, mark string, p platforms.Part) (platforms.MessageRef, error) {
	const op = "post"
	at, err := parseConversation(to)
	if err != nil {
		return "", failed(op, platforms.Refused, "no_conversation")
	}
	part, err := parsePart(op, p)
	if err != nil {
		return "", err
	}
	m := outgoing{
		Content:         part.Content,
		Components:      part.Components,
		AllowedMentions: calling(part.Users),
		Flags:           discordgo.MessageFlagsSuppressEmbeds,
		Nonce:           mark,
		EnforceNonce:    mark != "",
	}
	in, err := a.place(ctx, at)
	if err != nil {
		return "", err
	}
	if in != at.place() && a.unopened.isFirst(at) {
		m.Reference = &messageReference{Message: at.Thread}
	}
	created, err := a.create(ctx, in, m)
	if codeOf(err) == codeUnknownChannel && at.Thread != "" && in == at.Thread {
		a.directory.remove(at.Thread) // it is not there any more: open it anew
		if in, err = a.place(ctx, at); err == nil {
			created, err = a.create(ctx, in, m)
		}
	}
	if err != nil {
		return "", err
	}
	if in != at.place() {
		a.unopened.posted(at)
	}
	ref := messageRef(cmp.Or(created.ChannelID, in), created.ID)
	a.sent.note(mark, ref)
	if mark != "" && strings.TrimSpace(created.text()) != strings.TrimSpace(m.Content) {
		// The nonce led to a message that was sent earlier, as the beginning of a growing one.
		return ref, a.Edit(ctx, ref, p)
	}
	return ref, nil
}

// create sends a message to a channel; to an archived thread once more after taking it out of the archive.
func (a *Adapter) create(ctx context.Context, in string, m outgoing) (message, error) {
	var created message
	c := call{op: "post", method: http.MethodPost, path: "channels/" + in + "/messages", body: m}
	err := a.do(ctx, c, &created)
	if codeOf(err) == codeArchived && a.unarchive(ctx, in) == nil {
		err = a.do(ctx, c, &created)
	}
	if err == nil && !isSnowflake(created.ID) {
		e := failed("post", platforms.Unknown, "no_message")
		return message{}, e
	}
	return created, err
}

// edited is the change of a message. What is left out stays as it was, so nothing is.
type edited struct {
	Content         string            `json:"content"`
	Components      []json.RawMessage `json:"components"`
	AllowedMentions *allowedMentions  `json:"allowed_mentions"`
}

// Edit replaces a message, buttons included: a part without buttons removes them. A thread in the archive is taken out of it
// first. A message that Discord does not let be edited any more is Gone.
func (a *Adapter) Edit(ctx context.Context, at platforms.MessageRef, p platforms.Part) error {
	const op = "edit"
	channel, id, err := parseRef(at)
	if err != nil {
		return failed(op, platforms.Gone, "no_message")
	}
	part, err := parsePart(op, p)
	if err != nil {
		return err
	}
	m := edited{Content: part.Content, Components: part.Components, AllowedMentions: calling(part.Users)}
	if m.Components == nil {
		m.Components = []json.RawMessage{}
	}
	c := call{op: op, method: http.MethodPatch, path: "channels/" + channel + "/messages/" + id, body: m}
	err = a.do(ctx, c, nil)
	if codeOf(err) == codeArchived && a.unarchive(ctx, channel) == nil {
		err = a.do(ctx, c, nil)
	}
	if codeOf(err) == codeArchived { // it can be said anew: a message takes the thread out of the archive
		e := failed(op, platforms.Gone, "50083")
		return e
	}
	return err
}

// Find looks for the mark among the messages of ours that this process has seen, and among the last 100 of the conversation.
// Discord tells the nonce of a message when it is sent and, as far as is known, not in what is looked up later. So this
// finds what an uncertain Post of this process came to. After a restart it may not, and need not for some minutes: then
// Discord enforces the nonce, and Post with the same mark returns the earlier message. Later than that, a part that was sent
// just before the process died is sent again.
func (a *Adapter) Find(ctx context.Context, in platforms.Conversation, mark string) (platforms.MessageRef, error) {
	at, err := parseConversation(in)
	if err != nil {
		return "", failed("find", platforms.Refused, "no_conversation")
	}
	if ref := a.sent.get(mark); ref != "" {
		return ref, nil
	}
	for _, channel := range []string{at.Thread, at.Channel} {
		if channel == "" {
			continue
		}
		found, err := a.messages(ctx, channel, "?limit=100")
		if codeOf(err) == codeUnknownChannel {
			continue
		}
		if err != nil {
			return "", err
		}
		for _, m := range found {
			if m.mark() == mark && m.Author != nil && m.Author.ID == a.identity().User {
				return messageRef(channel, m.ID), nil
			}
		}
	}
	return "", nil
}

// keptMarks is how many marks are remembered.
const keptMarks = 4096

// sent remembers which message carries which mark, the latest of them.
type sent struct {
	mu    sync.Mutex
	refs  map[string]platforms.MessageRef
	order []string
}

func (s *sent) note(mark string, ref platforms.MessageRef) {
	if mark == "" || mark == "null" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refs == nil {
		s.refs = map[string]platforms.MessageRef{}
	}
	if _, known := s.refs[mark]; !known {
		if len(s.order) >= keptMarks {
			delete(s.refs, s.order[0])
			s.order = append(s.order[:0], s.order[1:]...)
		}
		s.order = append(s.order, mark)
	}
	s.refs[mark] = ref
}

func (s *sent) get(mark string) platforms.MessageRef {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refs[mark]
}
