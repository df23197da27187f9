package platformtest

import (
	"context"
	"fmt"
	"time"

	"github.com/parley-chat/parley/core/llm/echo"
)

// talking are the clauses about what is answered, where and how often.
func talking() []Clause {
	return []Clause{
		{"a mention is answered once, in the conversation it began", nil, MentionAnswered},
		{"an answer stays in its conversation", nil, AnswerStaysThere},
		{"a mention without words gets a word", nil, EmptyMention},
		{"a delivery that comes again is not answered again", nil, Redelivery},
		{"a mention that arrives in several forms is answered once", severalForms, SeveralForms},
		{"the messages of a conversation are answered in order", nil, InOrder},
		{"a direct message is answered where it was written", nil, DirectMessage},
		{"a reply without a mention is answered where the bot talks", nil, AmbientReply},
		{"talk among people is not answered", nil, TalkAmongPeople},
		{"another program is not answered", nil, OtherPrograms},
		{"the bot does not answer itself", nil, OwnMessages},
		{"a message edited before its turn is read as edited", nil, EditedBefore},
		{"a message deleted before its turn is not answered", nil, DeletedBefore},
		{"a message edited after its turn began stays as it was", nil, EditedAfter},
	}
}

func severalForms(a Abilities) bool { return a.Forms > 1 }

// MentionAnswered mentions the bot.
func MentionAnswered(ctx context.Context, s *Scene) error {
	said, err := s.begin(ctx, Cast{}, Ada, "hello")
	if err != nil {
		return err
	}
	return s.stays(ctx, said.In, "echo: hello")
}

// AnswerStaysThere looks for an answer everywhere else.
func AnswerStaysThere(ctx context.Context, s *Scene) error {
	one, err := s.begin(ctx, Cast{}, Ada, "one")
	if err != nil {
		return err
	}
	two, err := s.mention(ctx, Grace, "two")
	if err != nil {
		return err
	}
	if err := s.stays(ctx, one.In, "echo: one"); err != nil {
		return err
	}
	return s.stays(ctx, two.In, "echo: two")
}

// EmptyMention calls the bot and says nothing.
func EmptyMention(ctx context.Context, s *Scene) error {
	said, err := s.begin(ctx, Cast{}, Ada, "")
	if err != nil {
		return err
	}
	return s.stays(ctx, said.In, "I am here")
}

// Redelivery delivers a message again, at once and to the next life of the bot.
func Redelivery(ctx context.Context, s *Scene) error {
	said, err := s.begin(ctx, Cast{}, Ada, "hello")
	if err != nil {
		return err
	}
	if err := s.reads(ctx, said.In, "echo: hello"); err != nil {
		return err
	}
	if err := s.delivered(ctx, said, 1); err != nil {
		return err
	}
	for range 2 {
		if err := s.Redeliver(ctx); err != nil {
			return err
		}
	}
	if err := s.Restart(ctx); err != nil {
		return err
	}
	if err := s.Redeliver(ctx); err != nil {
		return err
	}
	return s.stays(ctx, said.In, "echo: hello")
}

// SeveralForms waits for all forms of a mention.
func SeveralForms(ctx context.Context, s *Scene) error {
	said, err := s.begin(ctx, Cast{}, Ada, "hello")
	if err != nil {
		return err
	}
	if err := s.delivered(ctx, said, s.Abilities().Forms); err != nil {
		return err
	}
	return s.stays(ctx, said.In, "echo: hello")
}

// InOrder says several things without waiting.
func InOrder(ctx context.Context, s *Scene) error {
	said, err := s.begin(ctx, Cast{Model: echo.New(20 * time.Millisecond)}, Ada, "line 1")
	if err != nil {
		return err
	}
	want := []string{"echo: line 1"}
	for i := 2; i <= 5; i++ {
		text := fmt.Sprintf("line %d", i)
		if _, err := s.reply(ctx, []Person{Ada, Grace}[i%2], said.In, text); err != nil {
			return err
		}
		want = append(want, "echo: "+text)
	}
	return s.stays(ctx, said.In, want...)
}

// DirectMessage writes to the bot alone, twice.
func DirectMessage(ctx context.Context, s *Scene) error {
	if err := s.Start(ctx, Cast{}); err != nil {
		return err
	}
	said, err := s.Say(ctx, Ada, Words{Direct: true, Text: "psst"})
	if err != nil {
		return err
	}
	if err := s.readsAs(ctx, Ada, said.In, "echo: psst"); err != nil {
		return err
	}
	if _, err := s.Say(ctx, Ada, Words{In: said.In, Direct: true, Text: "still there?"}); err != nil {
		return err
	}
	return s.readsAs(ctx, Ada, said.In, "echo: psst", "echo: still there?")
}

// AmbientReply goes on without a mention.
func AmbientReply(ctx context.Context, s *Scene) error {
	said, err := s.begin(ctx, Cast{}, Ada, "hello")
	if err != nil {
		return err
	}
	if err := s.reads(ctx, said.In, "echo: hello"); err != nil {
		return err
	}
	if _, err := s.reply(ctx, Grace, said.In, "and me?"); err != nil {
		return err
	}
	return s.stays(ctx, said.In, "echo: hello", "echo: and me?")
}

// TalkAmongPeople has people talk to each other, and then call the bot.
func TalkAmongPeople(ctx context.Context, s *Scene) error {
	if err := s.Start(ctx, Cast{}); err != nil {
		return err
	}
	said, err := s.Say(ctx, Ada, Words{Text: "lunch?"})
	if err != nil {
		return err
	}
	if _, err := s.reply(ctx, Grace, said.In, "at noon"); err != nil {
		return err
	}
	return s.stays(ctx, said.In)
}

// OtherPrograms has a program call the bot.
func OtherPrograms(ctx context.Context, s *Scene) error {
	said, err := s.begin(ctx, Cast{}, Robot, "beep")
	if err != nil {
		return err
	}
	return s.stays(ctx, said.In)
}

// OwnMessages looks for answers to answers, where nobody else is.
func OwnMessages(ctx context.Context, s *Scene) error {
	if err := s.Start(ctx, Cast{}); err != nil {
		return err
	}
	want := []string{}
	in := Place("")
	for i := range 3 {
		text := fmt.Sprintf("line %d", i)
		said, err := s.Say(ctx, Ada, Words{In: in, Direct: true, Text: text})
		if err != nil {
			return err
		}
		in, want = said.In, append(want, "echo: "+text)
		if err := s.readsAs(ctx, Ada, in, want...); err != nil {
			return err
		}
	}
	return nil
}

// EditedBefore edits a message while the one before it is answered.
func EditedBefore(ctx context.Context, s *Scene) error {
	return whileBusy(ctx, s, func(second Said) error {
		return s.Edit(ctx, Ada, second, "second, mended")
	}, "echo: first", "echo: second, mended")
}

// DeletedBefore deletes a message while the one before it is answered.
func DeletedBefore(ctx context.Context, s *Scene) error {
	return whileBusy(ctx, s, func(second Said) error { return s.Delete(ctx, Ada, second) }, "echo: first")
}

// whileBusy lets something happen to a message that waits for its turn.
func whileBusy(ctx context.Context, s *Scene, happens func(second Said) error, want ...string) error {
	model := NewGated()
	first, err := s.begin(ctx, Cast{Model: model}, Ada, "first")
	if err != nil {
		return err
	}
	if _, err := receive(ctx, model.Began); err != nil {
		return fmt.Errorf("the first turn does not begin: %w", err)
	}
	second, err := s.reply(ctx, Ada, first.In, "second")
	if err != nil {
		return err
	}
	if err := s.delivered(ctx, second, 1); err != nil {
		return err
	}
	if err := happens(second); err != nil {
		return err
	}
	if err := s.delivered(ctx, second, 2); err != nil {
		return err
	}
	if err := s.settled(ctx, first.In); err != nil {
		return err
	}
	close(model.Go)
	return s.stays(ctx, first.In, want...)
}

// EditedAfter edits the message that is being answered.
func EditedAfter(ctx context.Context, s *Scene) error {
	model := NewGated()
	said, err := s.begin(ctx, Cast{Model: model}, Ada, "as it was")
	if err != nil {
		return err
	}
	if _, err := receive(ctx, model.Began); err != nil {
		return fmt.Errorf("the turn does not begin: %w", err)
	}
	if err := s.Edit(ctx, Ada, said, "as it is"); err != nil {
		return err
	}
	if err := s.settled(ctx, said.In); err != nil {
		return err
	}
	close(model.Go)
	return s.stays(ctx, said.In, "echo: as it was")
}
