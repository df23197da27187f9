package platformtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/png"
	"regexp"
	"strings"

	"github.com/parley-chat/parley/core/llm"
)

// answering are the clauses about the form of answers and of what people attach.
func answering() []Clause {
	files := func(a Abilities) bool { return a.Files }
	return []Clause{
		{"a long answer comes in parts, in order, with whole code", nil, LongAnswer},
		{"what a model writes calls nobody", nil, HostileAnswer},
		{"an answer reads as it was written", nil, PlainAnswer},
		{"an image and a text reach the model", files, FilesReachTheModel},
		{"a file that cannot be read is named to the model", files, UnknownFile},
		{"an answer without a word is said", nil, EmptyAnswer},
	}
}

var (
	lineOfCode = regexp.MustCompile(`line (\d+) of`)
	fence      = regexp.MustCompile("(?m)^```")
)

// LongAnswer has the bot answer with 600 lines of code and text.
func LongAnswer(ctx context.Context, s *Scene) error {
	const lines = 600
	said, err := s.begin(ctx, Cast{Model: &Scripted{Text: longText(lines)}}, Ada, "tell me all")
	if err != nil {
		return err
	}
	last := fmt.Sprintf("line %d of", lines-1)
	err = s.until(ctx, func() error {
		if !strings.Contains(texts(s.answers(said.In)), last) {
			return errors.New("the end of the answer does not come")
		}
		return nil
	})
	if err != nil {
		return err
	}
	parts := s.answers(said.In)
	if err := inOrder(texts(parts), lines); err != nil {
		return err
	}
	for i, part := range parts {
		if fences := len(fence.FindAllString(part.Text, -1)); fences%2 != 0 {
			return fmt.Errorf("part %d of %d tears a block of code: it has %d fences", i+1, len(parts), fences)
		}
	}
	return nil
}

// longText is numbered lines, thirty at a time as code.
func longText(lines int) string {
	var b strings.Builder
	for i := range lines {
		if i%60 == 30 {
			b.WriteString("\n```\n")
		}
		fmt.Fprintf(&b, "line %d of a long story, which goes on and on, says more than it must, and ends late\n", i)
		if i%60 == 59 {
			b.WriteString("```\n\n")
		}
	}
	return b.String()
}

func inOrder(text string, lines int) error {
	found := lineOfCode.FindAllStringSubmatch(text, -1)
	for i, m := range found {
		if m[1] != fmt.Sprint(i) {
			return fmt.Errorf("line %s stands where line %d belongs", m[1], i)
		}
	}
	if len(found) != lines {
		return fmt.Errorf("%d lines are seen, want %d", len(found), lines)
	}
	return nil
}

// HostileAnswer has a model write whatever would call people.
func HostileAnswer(ctx context.Context, s *Scene) error {
	text := "calm words"
	for _, shout := range s.Shouts() {
		text += "\n\n" + shout + "\n\n> " + shout + "\n\n- [" + shout + "](https://example.com/)\n\n`" + shout + "`\n\n```\n" + shout + "\n```\n"
	}
	said, err := s.begin(ctx, Cast{Model: &Scripted{Text: text}}, Ada, "shout")
	if err != nil {
		return err
	}
	if err := s.reads(ctx, said.In, "calm words"); err != nil {
		return err
	}
	for _, m := range s.answers(said.In) {
		if len(m.Notifies) > 0 {
			return fmt.Errorf("the answer calls %v:\n%s", m.Notifies, m.Text)
		}
	}
	return s.stays(ctx, said.In, "calm words")
}

// PlainAnswer has the bot say back signs that platforms use for themselves.
func PlainAnswer(ctx context.Context, s *Scene) error {
	const signs = `1 < 2 && 3 > 2; naïve "quotes" – 日本語 😀`
	said, err := s.begin(ctx, Cast{Model: &Scripted{Text: signs}}, Ada, "signs")
	if err != nil {
		return err
	}
	return s.stays(ctx, said.In, signs)
}

// EmptyAnswer has a model say nothing.
func EmptyAnswer(ctx context.Context, s *Scene) error {
	said, err := s.begin(ctx, Cast{Model: &Scripted{}}, Ada, "well?")
	if err != nil {
		return err
	}
	return s.stays(ctx, said.In, "")
}

// FilesReachTheModel attaches an image and a text.
func FilesReachTheModel(ctx context.Context, s *Scene) error {
	var picture bytes.Buffer
	if err := png.Encode(&picture, image.NewGray(image.Rect(0, 0, 2, 2))); err != nil {
		return err
	}
	content, err := s.attach(ctx,
		File{"dot.png", "image/png", picture.Bytes()},
		File{"notes.txt", "text/plain", []byte("remember the milk")})
	if err != nil {
		return err
	}
	images := 0
	for _, block := range content {
		if block.Type == llm.ImageBlock && block.Source != nil && block.Source.Base64Data != "" {
			images++
		}
	}
	if images != 1 {
		return fmt.Errorf("the model is shown %d images, want 1", images)
	}
	if text := content.Text(); !containsAll(text, "look", "notes.txt", "remember the milk") {
		return fmt.Errorf("the model reads %q, want the words and the file notes.txt", text)
	}
	return nil
}

// UnknownFile attaches what the bot does not read.
func UnknownFile(ctx context.Context, s *Scene) error {
	content, err := s.attach(ctx, File{"disk.iso", "application/octet-stream", []byte{0, 1, 2}})
	if err != nil {
		return err
	}
	if text := content.Text(); len(content) != 2 || !containsAll(text, "look", "disk.iso", "not shown") {
		return fmt.Errorf("the model reads %q, want the words, and that disk.iso is not shown", text)
	}
	return nil
}

// attach says something with files and returns what the model is shown of it.
func (s *Scene) attach(ctx context.Context, files ...File) (llm.Content, error) {
	model := &Scripted{Text: "seen"}
	if err := s.Start(ctx, Cast{Model: model}); err != nil {
		return nil, err
	}
	said, err := s.Say(ctx, Ada, Words{Mention: true, Text: "look", Files: files})
	if err != nil {
		return nil, err
	}
	if err := s.reads(ctx, said.In, "seen"); err != nil {
		return nil, err
	}
	return model.Asked().Content, nil
}
