package platformtest_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/parley-chat/parley/conformance/platformtest"
	"github.com/parley-chat/parley/conformance/platformtest/fake"
	"github.com/parley-chat/parley/platforms"
)

// fakeWorld is the suite's world on the fake. Rooms are conversations that begin with the reference of their first message.
type fakeWorld struct {
	*fake.Place
	// breaks makes an adapter wrong. Nil: it stays right.
	breaks func(*fake.Adapter) platforms.Adapter
}

var (
	_ platformtest.World        = (*fakeWorld)(nil)
	_ platformtest.StatusWorld  = (*fakeWorld)(nil)
	_ platformtest.FormWorld    = (*fakeWorld)(nil)
	_ platformtest.GroupWorld   = (*fakeWorld)(nil)
	_ platformtest.CommandWorld = (*fakeWorld)(nil)
	_ platformtest.StopWorld    = (*fakeWorld)(nil)
)

func newFakeWorld(breaks func(*fake.Adapter) platforms.Adapter) *fakeWorld {
	w := &fakeWorld{Place: fake.New(), breaks: breaks}
	w.SetGroup("ops", userOf(platformtest.Hedy).ID)
	for _, p := range []platformtest.Person{platformtest.Ada, platformtest.Grace, platformtest.Hedy, platformtest.Mallory} {
		w.SetName(userOf(p).ID, string(p))
	}
	return w
}

// userOf is a person as the platform tells of them: without their name.
func userOf(p platformtest.Person) platforms.User {
	return platforms.User{ID: platforms.UserID(strings.ToLower(string(p))), Bot: p == platformtest.Robot}
}

func personOf(id platforms.UserID) platformtest.Person {
	switch id {
	case fake.Bot:
		return platformtest.TheBot
	case everybody:
		return platformtest.Everybody
	}
	return platformtest.Person(strings.ToUpper(string(id[:1])) + string(id[1:]))
}

const everybody platforms.UserID = "everybody"

func (w *fakeWorld) Abilities() platformtest.Abilities {
	return platformtest.Abilities{
		Forms: 2, Files: true, Growing: true, Notices: true, Names: true, Statuses: true, Modals: true, Groups: true, Commands: true, Stop: true,
	}
}

func (w *fakeWorld) Connect(*slog.Logger) (platformtest.Line, error) {
	a := w.Place.Connect()
	if w.breaks == nil {
		return platformtest.Line{Adapter: a, Cut: a.Cut}, nil
	}
	return platformtest.Line{Adapter: w.breaks(a), Cut: a.Cut}, nil
}

func (w *fakeWorld) Setting(who platformtest.Person) string { return "fake:" + string(userOf(who).ID) }
func (w *fakeWorld) Group() string                          { return "fake:group:ops" }

func (w *fakeWorld) Say(_ context.Context, who platformtest.Person, words platformtest.Words) (platformtest.Said, error) {
	in, how := platforms.Conversation(words.In), platforms.Ambient
	switch {
	case words.Direct:
		how = platforms.Direct
	case words.Mention:
		how = platforms.Mentioned
	}
	if in == "" {
		in = platforms.Conversation("room-" + string(who) + "-" + words.Text)
	}
	var files []fake.File
	for _, f := range words.Files {
		files = append(files, fake.File(f))
	}
	ref := w.Place.Say(userOf(who), in, how, words.Text, files...)
	return platformtest.Said{In: platformtest.Place(in), Ref: string(ref), Mention: words.Mention}, nil
}

func (w *fakeWorld) Edit(_ context.Context, _ platformtest.Person, what platformtest.Said, text string) error {
	return w.Place.Edit(platforms.MessageRef(what.Ref), text)
}

func (w *fakeWorld) Delete(_ context.Context, _ platformtest.Person, what platformtest.Said) error {
	return w.Place.Delete(platforms.MessageRef(what.Ref))
}

func (w *fakeWorld) Press(_ context.Context, who platformtest.Person, _ platformtest.Place, on platformtest.Seen, action string) error {
	return w.Place.Press(userOf(who), platforms.MessageRef(on.Ref), action)
}

func (w *fakeWorld) HasForm(who platformtest.Person) bool { return w.Place.HasForm(userOf(who).ID) }

func (w *fakeWorld) Fill(_ context.Context, who platformtest.Person, text string) error {
	return w.Place.Fill(userOf(who), text)
}

func (w *fakeWorld) Command(_ context.Context, who platformtest.Person, in platformtest.Place, name, args string) (platformtest.Place, error) {
	w.Place.Command(userOf(who), platforms.Conversation(in), name, args)
	return in, nil
}

func (w *fakeWorld) Stop(_ context.Context, who platformtest.Person, in platformtest.Place) error {
	w.Place.Stop(userOf(who), platforms.Conversation(in))
	return nil
}

func (w *fakeWorld) See(who platformtest.Person, in platformtest.Place) []platformtest.Seen {
	var seen []platformtest.Seen
	for _, m := range w.Messages() {
		if m.In != platforms.Conversation(in) {
			continue
		}
		s := platformtest.Seen{Ref: string(m.Ref), From: personOf(m.From), Text: m.Text, Edited: m.Edited}
		for _, b := range m.Buttons {
			s.Buttons = append(s.Buttons, b.Action)
		}
		for _, id := range m.Calls {
			s.Notifies = append(s.Notifies, personOf(id))
		}
		seen = append(seen, s)
	}
	for _, n := range w.Notices() {
		if n.In == platforms.Conversation(in) && n.To == userOf(who).ID {
			seen = append(seen, platformtest.Seen{From: platformtest.TheBot, Text: n.Text, OnlyYou: true})
		}
	}
	return seen
}

func (w *fakeWorld) Delivered(what platformtest.Said) int {
	return w.Place.Delivered(platforms.MessageRef(what.Ref))
}

func (w *fakeWorld) Redeliver(context.Context) error { return w.Place.Redeliver() }

func (w *fakeWorld) Fault(f platformtest.Fault) {
	slow := &platforms.Error{Failure: platforms.SlowDown, Op: "fake: post", RetryAfter: time.Second}
	switch f {
	case platformtest.LoseAnswer:
		w.LoseAnswer()
	case platformtest.SlowPost:
		w.FailPosts(slow)
	case platformtest.SlowEdit:
		w.FailEdits(slow)
	}
}

func (w *fakeWorld) Shouts() []string { return []string{"@everybody", "@mallory"} }

func (w *fakeWorld) Statuses(in platformtest.Place) []bool {
	var statuses []bool
	for _, s := range w.Place.Statuses() {
		if s.In == platforms.Conversation(in) {
			statuses = append(statuses, s.Status == platforms.Working)
		}
	}
	return statuses
}

var errBroken = errors.New("broken on purpose")

// callsIn are those whom careless text calls on the fake.
func callsIn(text string) []platforms.UserID {
	var calls []platforms.UserID
	for _, id := range []platforms.UserID{everybody, "mallory"} {
		if strings.Contains(text, "@"+string(id)) && !slices.Contains(calls, id) {
			calls = append(calls, id)
		}
	}
	return calls
}
