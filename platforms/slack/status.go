package slack

import (
	"context"
	"sync"

	slackgo "github.com/slack-go/slack"

	"github.com/parley-chat/parley/platforms"
)

// SetStatus shows what the bot is doing: as the status of the agent session where the app has the agent feature, else as a
// reaction on the message that asked, eyes while working and an hourglass while waiting. A plain direct message has no
// session. What turns out not to be granted is not tried again until the next start.
func (a *Adapter) SetStatus(ctx context.Context, in platforms.Conversation, on platforms.MessageRef, s platforms.Status) error {
	where, err := parseConversation(in)
	if err != nil {
		return failed("status", platforms.Refused, "no_conversation")
	}
	if where.Thread != "" && !a.noAgent.Load() {
		err := a.setSession(ctx, where, s)
		switch {
		case err == nil:
			return nil
		case notGranted(err):
			if a.noAgent.CompareAndSwap(false, true) {
				a.log.Info("slack: no agent sessions here; the status is shown by reactions", "code", codeOf(err))
			}
		case platforms.FailureOf(err) != platforms.Refused:
			return err
		}
	}
	return a.react(ctx, on, s)
}

// notGranted tells that a method does not exist for this app, as opposed to a call that failed.
func notGranted(err error) bool {
	switch codeOf(err) {
	case "unknown_method", "method_deprecated", "feature_not_enabled", "missing_scope", "not_allowed_token_type":
		return true
	}
	return false
}

// sessionStatus is the status of an agent session: suspended while a person must decide, never processing without work
// .
func sessionStatus(s platforms.Status) string {
	switch s {
	case platforms.Working:
		return slackgo.AgentSessionStatusProcessing
	case platforms.Waiting:
		return slackgo.AgentSessionStatusSuspended
	}
	return slackgo.AgentSessionStatusActive
}

func (a *Adapter) setSession(ctx context.Context, where address, s platforms.Status) error {
	return a.do(ctx, "agents.sessions.setStatus", "", func(ctx context.Context) error {
		r, err := a.api.SetAgentSessionStatusContext(ctx, slackgo.AgentSessionSetStatusParameters{
			Status:    sessionStatus(s),
			ChannelID: where.Channel,
			ThreadTS:  where.Thread,
		})
		if err == nil {
			a.warn(r.Warn())
		}
		return err
	})
}

// warn tells the operator once why people see no stop button.
func (a *Adapter) warn(w *slackgo.Warning) {
	if w == nil {
		return
	}
	for _, code := range append(w.Codes, w.Warnings...) {
		if code == "missing_agent_session_stopped_event_subscription" && a.warnedStop.CompareAndSwap(false, true) {
			a.log.Warn("slack: people see no stop button: subscribe the app to the event agent_session_stopped")
		}
	}
}

const (
	eyes      = "eyes"
	hourglass = "hourglass_flowing_sand"
)

// reactions remembers which reaction stands on which message, so that no call is made for what is known.
type reactions struct {
	mu sync.Mutex
	on map[platforms.MessageRef]string
}

func (r *reactions) get(ref platforms.MessageRef) (name string, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	name, known = r.on[ref]
	return name, known
}

func (r *reactions) set(ref platforms.MessageRef, name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.on == nil {
		r.on = map[platforms.MessageRef]string{}
	}
	if name == "" {
		delete(r.on, ref)
		return
	}
	r.on[ref] = name
}

// react puts the reaction for s onto the message, and takes the other one away.
func (a *Adapter) react(ctx context.Context, on platforms.MessageRef, s platforms.Status) error {
	if on == "" || a.noReactions.Load() {
		return nil
	}
	channel, ts, err := parseRef(on)
	if err != nil {
		return failed("status", platforms.Refused, "no_message")
	}
	item := slackgo.NewRefToMessage(channel, ts)
	want := map[platforms.Status]string{platforms.Working: eyes, platforms.Waiting: hourglass}[s]
	has, known := a.shown.get(on)
	if known && has == want {
		return nil
	}
	if want != "" {
		if err := a.addReaction(ctx, want, item); err != nil {
			return a.withoutReactions(err)
		}
	}
	for _, name := range []string{eyes, hourglass} {
		if name == want || known && name != has || !known && want == eyes {
			continue // not there: what begins with work begins with nothing
		}
		if err := a.removeReaction(ctx, name, item); err != nil {
			return a.withoutReactions(err)
		}
	}
	a.shown.set(on, want)
	return nil
}

func (a *Adapter) addReaction(ctx context.Context, name string, item slackgo.ItemRef) error {
	err := a.do(ctx, "reactions.add", "", func(ctx context.Context) error { return a.api.AddReactionContext(ctx, name, item) })
	if codeOf(err) == "already_reacted" {
		return nil
	}
	return err
}

func (a *Adapter) removeReaction(ctx context.Context, name string, item slackgo.ItemRef) error {
	err := a.do(ctx, "reactions.remove", "", func(ctx context.Context) error { return a.api.RemoveReactionContext(ctx, name, item) })
	if codeOf(err) == "no_reaction" {
		return nil
	}
	return err
}

// withoutReactions ends the showing of reactions if the app may not react at all.
func (a *Adapter) withoutReactions(err error) error {
	if codeOf(err) != "missing_scope" {
		return err
	}
	if a.noReactions.CompareAndSwap(false, true) {
		a.log.Warn("slack: no status is shown: the bot token lacks the scope reactions:write")
	}
	return nil
}
