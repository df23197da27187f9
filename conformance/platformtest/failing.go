package platformtest

import (
	"context"
	"errors"
	"fmt"

	"github.com/parley-chat/parley/approvals"
)

// failing are the clauses about lost answers, slow platforms and deaths.
func failing() []Clause {
	return []Clause{
		{"a lost answer is not said twice", nil, LostAnswer},
		{"a card whose answer was lost can be pressed", nil, LostCard},
		{"a platform that asks to slow down gets everything in order", nil, SlowDown},
		{"a kill in the middle of a turn does not answer twice, or never", nil, KillInATurn},
		{"a kill while an approved call runs does not run it twice", nil, KillInACall},
		{"what is said while the bot is away is answered when it is back", nil, SaidWhileAway},
		{"a conversation is remembered after a restart", nil, RememberedAfterRestart},
	}
}

// LostAnswer loses the outcome of a post.
func LostAnswer(ctx context.Context, s *Scene) error {
	if err := s.Start(ctx, Cast{}); err != nil {
		return err
	}
	s.Fault(LoseAnswer)
	said, err := s.mention(ctx, Ada, "hello")
	if err != nil {
		return err
	}
	return s.stays(ctx, said.In, "echo: hello")
}

// LostCard loses the outcome of the post of a card.
func LostCard(ctx context.Context, s *Scene) error {
	if err := s.Start(ctx, Cast{Model: &Deployer{}}); err != nil {
		return err
	}
	s.Fault(LoseAnswer)
	said, err := s.mention(ctx, Ada, "deploy web")
	if err != nil {
		return err
	}
	if err := s.press(ctx, Grace, said.In, approvals.ActionApprove); err != nil {
		return err
	}
	if err := s.stays(ctx, said.In, "Approved", "deployed"); err != nil {
		return err
	}
	return s.Ledger.times(1)
}

// SlowDown refuses posts for a while.
func SlowDown(ctx context.Context, s *Scene) error {
	if err := s.Start(ctx, Cast{}); err != nil {
		return err
	}
	s.Fault(SlowPost)
	s.Fault(SlowPost)
	said, err := s.mention(ctx, Ada, "one")
	if err != nil {
		return err
	}
	for _, text := range []string{"two", "three"} {
		if _, err := s.reply(ctx, Ada, said.In, text); err != nil {
			return err
		}
	}
	return s.stays(ctx, said.In, "echo: one", "echo: two", "echo: three")
}

// KillInATurn kills the bot while the model thinks.
func KillInATurn(ctx context.Context, s *Scene) error {
	model := NewGated()
	said, err := s.begin(ctx, Cast{Model: model}, Ada, "hello")
	if err != nil {
		return err
	}
	if _, err := receive(ctx, model.Began); err != nil {
		return fmt.Errorf("the turn does not begin: %w", err)
	}
	if err := s.Kill(); err != nil {
		return err
	}
	if err := s.Start(ctx, Cast{}); err != nil {
		return err
	}
	return s.stays(ctx, said.In, "echo: hello")
}

// KillInACall kills the bot when the deployment is done and nobody has heard of it.
func KillInACall(ctx context.Context, s *Scene) error {
	began, goOn := s.Ledger.Hold()
	in, card, err := s.ask(ctx, Cast{}, Ada)
	if err != nil {
		return err
	}
	if err := s.Press(ctx, Grace, in, card, approvals.ActionApprove); err != nil {
		return err
	}
	if _, err := receive(ctx, began); err != nil {
		return fmt.Errorf("the call does not begin: %w", err)
	}
	s.bot.die()
	close(goOn)
	if err := s.Kill(); err != nil {
		return err
	}
	if err := s.Start(ctx, Cast{Model: &Deployer{}}); err != nil {
		return err
	}
	if err := s.stays(ctx, in, "Approved", "deployed"); err != nil {
		return err
	}
	return s.Ledger.times(1)
}

// SaidWhileAway says something to a bot that is not there.
func SaidWhileAway(ctx context.Context, s *Scene) error {
	said, err := s.begin(ctx, Cast{}, Ada, "hello")
	if err != nil {
		return err
	}
	if err := s.reads(ctx, said.In, "echo: hello"); err != nil {
		return err
	}
	if err := s.Stop(); err != nil {
		return err
	}
	if _, err := s.reply(ctx, Ada, said.In, "where are you?"); err != nil {
		return err
	}
	if err := s.Start(ctx, Cast{}); err != nil {
		return err
	}
	return s.reads(ctx, said.In, "echo: hello", "echo: where are you?")
}

// RememberedAfterRestart goes on in a conversation of an earlier life.
func RememberedAfterRestart(ctx context.Context, s *Scene) error {
	said, err := s.begin(ctx, Cast{}, Ada, "hello")
	if err != nil {
		return err
	}
	if err := s.reads(ctx, said.In, "echo: hello"); err != nil {
		return err
	}
	model := &Scripted{Text: "I remember"}
	if err := errors.Join(s.Stop(), s.Start(ctx, Cast{Model: model})); err != nil {
		return err
	}
	if _, err := s.reply(ctx, Ada, said.In, "again"); err != nil {
		return err
	}
	if err := s.reads(ctx, said.In, "echo: hello", "I remember"); err != nil {
		return err
	}
	if got := model.History(); len(got) != 3 {
		return fmt.Errorf("the model is shown %d messages, want the two of before and the new one", len(got))
	}
	return nil
}
