package platformtest

import (
	"context"
	"fmt"
	"strings"
)

// stopping are the clauses about ending and beginning anew.
func stopping() []Clause {
	return []Clause{
		{"stop ends the running turn, and the next message is answered", nil, StopInWords},
		{"the platform's own stop ends the running turn", func(a Abilities) bool { return a.Stop && a.Statuses }, StopByButton},
		{"stop with nothing to stop says so", nil, NothingToStop},
		{"stop takes back what waits for a decision", nil, StopTakesBack},
		{"reset forgets what was said and what waits", nil, Reset},
		{"status tells what the bot does", nil, StatusCommand},
		{"a command of the platform is answered", func(a Abilities) bool { return a.Commands }, PlatformCommand},
	}
}

// StopInWords says stop.
func StopInWords(ctx context.Context, s *Scene) error {
	model := NewGated()
	said, err := s.begin(ctx, Cast{Model: model}, Ada, "count to a million")
	if err != nil {
		return err
	}
	if _, err := receive(ctx, model.Began); err != nil {
		return fmt.Errorf("the turn does not begin: %w", err)
	}
	if _, err := s.reply(ctx, Ada, said.In, "stop"); err != nil {
		return err
	}
	if err := s.reads(ctx, said.In, "Stopped."); err != nil {
		return err
	}
	close(model.Go)
	return s.stays(ctx, said.In, "Stopped.")
}

// StopByButton presses the button that is there while the bot works.
func StopByButton(ctx context.Context, s *Scene) error {
	model := NewGated()
	said, err := s.begin(ctx, Cast{Model: model}, Ada, "count to a million")
	if err != nil {
		return err
	}
	if err := s.status(ctx, said.In, true); err != nil {
		return err
	}
	if err := s.World.(StopWorld).Stop(ctx, Ada, said.In); err != nil {
		return err
	}
	if err := s.reads(ctx, said.In, "Stopped."); err != nil {
		return err
	}
	close(model.Go)
	return s.stays(ctx, said.In, "Stopped.")
}

// NothingToStop says stop when nothing runs.
func NothingToStop(ctx context.Context, s *Scene) error {
	said, err := s.begin(ctx, Cast{}, Ada, "hello")
	if err != nil {
		return err
	}
	if err := s.reads(ctx, said.In, "echo: hello"); err != nil {
		return err
	}
	if _, err := s.reply(ctx, Ada, said.In, "stop"); err != nil {
		return err
	}
	return s.stays(ctx, said.In, "echo: hello", "nothing to stop")
}

// StopTakesBack stops a turn that waits for a decision.
func StopTakesBack(ctx context.Context, s *Scene) error {
	in, card, err := s.ask(ctx, Cast{}, Ada)
	if err != nil {
		return err
	}
	if _, err := s.reply(ctx, Ada, in, "stop"); err != nil {
		return err
	}
	if err := s.stays(ctx, in, "Cancelled", "cancelled"); err != nil {
		return err
	}
	return s.unpressable(in, card)
}

// Reset begins anew while something waits.
func Reset(ctx context.Context, s *Scene) error {
	in, card, err := s.ask(ctx, Cast{}, Ada)
	if err != nil {
		return err
	}
	if _, err := s.reply(ctx, Ada, in, "reset"); err != nil {
		return err
	}
	err = s.until(ctx, func() error {
		if all := texts(s.See(Ada, in)); !containsAll(all, "Cancelled", "I remember nothing") {
			return fmt.Errorf("Ada sees\n%s\nwant that the request is cancelled and all is forgotten", all)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := s.unpressable(in, card); err != nil {
		return err
	}
	return s.Ledger.times(0)
}

// unpressable checks that a card has no buttons any more.
func (s *Scene) unpressable(in Place, card Seen) error {
	for _, m := range s.answers(in) {
		if m.Ref == card.Ref && len(m.Buttons) > 0 {
			return fmt.Errorf("the card can still be pressed: %v", m.Buttons)
		}
	}
	return nil
}

// StatusCommand asks for the status while something waits.
func StatusCommand(ctx context.Context, s *Scene) error {
	in, _, err := s.ask(ctx, Cast{}, Ada)
	if err != nil {
		return err
	}
	if _, err := s.reply(ctx, Ada, in, "status"); err != nil {
		return err
	}
	return s.isAnswered(ctx, Ada, in, "Approvals waiting: 1", "Model: test.")
}

// PlatformCommand asks for the status by a command of the platform.
func PlatformCommand(ctx context.Context, s *Scene) error {
	in, _, err := s.ask(ctx, Cast{}, Ada)
	if err != nil {
		return err
	}
	place, err := s.World.(CommandWorld).Command(ctx, Ada, in, "approvals", "")
	if err != nil {
		return err
	}
	return s.isAnswered(ctx, Ada, place, "Waiting for a decision", "deploy")
}

// isAnswered waits until somebody sees a message of the bot that contains all of want, for them alone or for everybody.
func (s *Scene) isAnswered(ctx context.Context, who Person, in Place, want ...string) error {
	return s.until(ctx, func() error {
		for _, m := range s.See(who, in) {
			if m.From == TheBot && containsAll(m.Text, want...) {
				return nil
			}
		}
		return fmt.Errorf("%s sees\n%s\nwant an answer that contains %s", who, texts(s.See(who, in)), strings.Join(want, ", "))
	})
}
