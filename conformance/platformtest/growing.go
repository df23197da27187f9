package platformtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// growing are the clauses about what is seen of a turn while it runs.
func growing() []Clause {
	grows := func(a Abilities) bool { return a.Growing }
	statuses := func(a Abilities) bool { return a.Statuses }
	return []Clause{
		{"a growing answer becomes the whole one", grows, GrowingAnswer},
		{"a growing answer that a kill cut short becomes the whole one", grows, GrowingThroughAKill},
		{"an answer at once shows no status", statuses, NoStatus},
		{"a turn that takes a while shows that the bot works, until it ends", statuses, StatusWhileWorking},
		{"a status that a kill left behind is taken back", statuses, StatusThroughAKill},
	}
}

// GrowingAnswer looks at an answer while it grows and when it has grown.
func GrowingAnswer(ctx context.Context, s *Scene) error {
	model := Growing{make(chan struct{})}
	said, err := s.begin(ctx, Cast{Model: model}, Ada, "slowly")
	if err != nil {
		return err
	}
	if err := s.reads(ctx, said.In, strings.TrimSpace(firstHalf)); err != nil {
		return err
	}
	close(model.Go)
	return s.stays(ctx, said.In, firstHalf+secondHalf)
}

// GrowingThroughAKill kills the bot while its answer grows.
func GrowingThroughAKill(ctx context.Context, s *Scene) error {
	model := Growing{make(chan struct{})}
	said, err := s.begin(ctx, Cast{Model: model}, Ada, "slowly")
	if err != nil {
		return err
	}
	if err := s.reads(ctx, said.In, strings.TrimSpace(firstHalf)); err != nil {
		return err
	}
	if err := s.Kill(); err != nil {
		return err
	}
	close(model.Go)
	if err := s.Start(ctx, Cast{Model: model}); err != nil {
		return err
	}
	return s.stays(ctx, said.In, firstHalf+secondHalf)
}

// NoStatus gets an answer at once.
func NoStatus(ctx context.Context, s *Scene) error {
	said, err := s.begin(ctx, Cast{}, Ada, "hello")
	if err != nil {
		return err
	}
	if err := s.stays(ctx, said.In, "echo: hello"); err != nil {
		return err
	}
	if got := s.World.(StatusWorld).Statuses(said.In); slices.Contains(got, true) {
		return fmt.Errorf("statuses %v are shown, want none", got)
	}
	return nil
}

// StatusWhileWorking keeps a turn waiting until it is seen that the bot works.
func StatusWhileWorking(ctx context.Context, s *Scene) error {
	model := NewGated()
	said, err := s.begin(ctx, Cast{Model: model}, Ada, "think hard")
	if err != nil {
		return err
	}
	if err := s.status(ctx, said.In, true); err != nil {
		return err
	}
	close(model.Go)
	if err := s.stays(ctx, said.In, "echo: think hard"); err != nil {
		return err
	}
	return s.status(ctx, said.In, false)
}

// StatusThroughAKill kills the bot while it is seen to work.
func StatusThroughAKill(ctx context.Context, s *Scene) error {
	model := NewGated()
	said, err := s.begin(ctx, Cast{Model: model}, Ada, "think hard")
	if err != nil {
		return err
	}
	if err := s.status(ctx, said.In, true); err != nil {
		return err
	}
	if err := s.Kill(); err != nil {
		return err
	}
	if err := s.Start(ctx, Cast{}); err != nil {
		return err
	}
	if err := s.reads(ctx, said.In, "echo: think hard"); err != nil {
		return err
	}
	return s.status(ctx, said.In, false)
}

// status waits until the newest status in a conversation says whether the bot works.
func (s *Scene) status(ctx context.Context, in Place, works bool) error {
	return s.until(ctx, func() error {
		got := s.World.(StatusWorld).Statuses(in)
		switch {
		case len(got) == 0:
			return errors.New("no status is shown")
		case got[len(got)-1] != works:
			return fmt.Errorf("statuses %v are shown, want %v at the end", got, works)
		}
		return nil
	})
}
