package platformtest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/parley-chat/parley/conformance/platformtest/fake"
	"github.com/parley-chat/parley/platforms"
)

// mutant is an adapter that is broken in one way, and the clauses that must notice.
type mutant struct {
	name      string
	breaks    func(*fake.Adapter) platforms.Adapter
	noticedBy []string
}

func mutants() []mutant {
	return []mutant{
		{"posts outside the conversation", func(a *fake.Adapter) platforms.Adapter { return misplaced{a} },
			[]string{"a mention is answered once, in the conversation it began", "an answer stays in its conversation"}},
		{"posts everything twice", func(a *fake.Adapter) platforms.Adapter { return twice{a} },
			[]string{"a mention is answered once, in the conversation it began", "a direct message is answered where it was written"}},
		{"drops the later parts of a long answer", func(a *fake.Adapter) platforms.Adapter { return firstPart{a} },
			[]string{"a long answer comes in parts, in order, with whole code"}},
		{"cuts a long answer without regard to code", func(a *fake.Adapter) platforms.Adapter { return chopper{a} },
			[]string{"a long answer comes in parts, in order, with whole code"}},
		{"lets what a model writes call people", func(a *fake.Adapter) platforms.Adapter { return loud{a} },
			[]string{"what a model writes calls nobody", "what a model writes into a request calls nobody"}},
		{"calls everybody with every card", func(a *fake.Adapter) platforms.Adapter { return toEverybody{a} },
			[]string{"a card calls those who may decide and nobody else"}},
		{"posts changes anew", func(a *fake.Adapter) platforms.Adapter { return editsAnew{a} },
			[]string{"what is approved runs once, and its answer follows", "a growing answer becomes the whole one"}},
		{"ignores changes of its own messages", func(a *fake.Adapter) platforms.Adapter { return noEdits{a} },
			[]string{"what is denied does not run, and the answer says who denied it", "a growing answer becomes the whole one"}},
		{"leaves the buttons of decided cards", func(a *fake.Adapter) platforms.Adapter { return &oldButtons{Adapter: a} },
			[]string{"what is approved runs once, and its answer follows", "stop takes back what waits for a decision"}},
		{"reads its own messages", func(a *fake.Adapter) platforms.Adapter { return &readsOwn{Adapter: a} },
			[]string{"the bot does not answer itself"}},
		{"reads programs as people", func(a *fake.Adapter) platforms.Adapter { return rereads{a, asPerson} },
			[]string{"another program is not answered"}},
		{"reads all talk as addressed to it", func(a *fake.Adapter) platforms.Adapter { return rereads{a, asMention} },
			[]string{"talk among people is not answered"}},
		{"ignores what people change", func(a *fake.Adapter) platforms.Adapter { return rereads{a, noChanges} },
			[]string{"a message edited before its turn is read as edited"}},
		{"ignores what people delete", func(a *fake.Adapter) platforms.Adapter { return rereads{a, noDeletions} },
			[]string{"a message deleted before its turn is not answered", "a request is taken back when its message is deleted"}},
		{"loses what is urgent about clicks", func(a *fake.Adapter) platforms.Adapter { return patient{a} },
			[]string{"stop ends the running turn, and the next message is answered", "a message deleted before its turn is not answered"}},
		{"gives every delivery a key of its own", func(a *fake.Adapter) platforms.Adapter { return &freshKeys{Adapter: a} },
			[]string{"a delivery that comes again is not answered again", "a mention that arrives in several forms is answered once"}},
		{"knows only the keys of events", func(a *fake.Adapter) platforms.Adapter { return oneKey{a} },
			[]string{"a mention that arrives in several forms is answered once"}},
		{"accepts and forgets", func(a *fake.Adapter) platforms.Adapter { return &forgetful{Adapter: a} },
			[]string{"the messages of a conversation are answered in order"}},
		{"finds nothing", func(a *fake.Adapter) platforms.Adapter { return findsNothing{a} },
			[]string{"a lost answer is not said twice", "a card whose answer was lost can be pressed"}},
		{"finds anything", func(a *fake.Adapter) platforms.Adapter { return &findsAny{Adapter: a} },
			[]string{"a platform that asks to slow down gets everything in order"}},
		{"tells everybody what is for one", func(a *fake.Adapter) platforms.Adapter { return indiscreet{a} },
			[]string{"who may not decide is told so, alone", "nobody approves their own request", "who presses second is told who decided"}},
		{"tells nobody", func(a *fake.Adapter) platforms.Adapter { return silent{a} },
			[]string{"who may not decide is told so, alone", "a command of the platform is answered"}},
		{"calls a slow platform a refusal", func(a *fake.Adapter) platforms.Adapter { return impatient{a} },
			[]string{"a platform that asks to slow down gets everything in order"}},
		{"opens no forms", func(a *fake.Adapter) platforms.Adapter { return noForms{a} },
			[]string{"a denial can have a reason, which is told"}},
		{"takes everybody for a member", func(a *fake.Adapter) platforms.Adapter { return everyMember{a} },
			[]string{"a member of a group that may decide may decide"}},
		{"shows ids for names", func(a *fake.Adapter) platforms.Adapter { return nameless{a} },
			[]string{"a card names people as they are called"}},
		{"reads no files", func(a *fake.Adapter) platforms.Adapter { return noFiles{a} },
			[]string{"an image and a text reach the model"}},
		{"drops files", func(a *fake.Adapter) platforms.Adapter { return rereads{a, withoutFiles} },
			[]string{"an image and a text reach the model", "a file that cannot be read is named to the model"}},
		{"never ends a status", func(a *fake.Adapter) platforms.Adapter { return alwaysWorking{a} },
			[]string{"a turn that takes a while shows that the bot works, until it ends", "a status that a kill left behind is taken back"}},
		{"leaves what does not fit out of cards", func(a *fake.Adapter) platforms.Adapter { return bareCards{a} },
			[]string{"a card says what would run, for whom, who may decide and until when"}},
		{"escapes what needs no escape", func(a *fake.Adapter) platforms.Adapter { return escaper{a} },
			[]string{"an answer reads as it was written"}},
	}
}

// shownIn is what a part of the fake shows.
func shownIn(p platforms.Part) (s fake.Shown) {
	if err := json.Unmarshal(p, &s); err != nil {
		panic(err)
	}
	return s
}

type misplaced struct{ *fake.Adapter }

func (m misplaced) Post(ctx context.Context, _ platforms.Conversation, mark string, p platforms.Part) (platforms.MessageRef, error) {
	return m.Adapter.Post(ctx, "elsewhere", mark, p)
}

type twice struct{ *fake.Adapter }

func (m twice) Post(ctx context.Context, to platforms.Conversation, mark string, p platforms.Part) (platforms.MessageRef, error) {
	ref, err := m.Adapter.Post(ctx, to, mark, p)
	if err == nil {
		_, err = m.Adapter.Post(ctx, to, mark, p)
	}
	return ref, err
}

type firstPart struct{ *fake.Adapter }

func (m firstPart) Render(c platforms.Content) []platforms.Part { return m.Adapter.Render(c)[:1] }

type chopper struct{ *fake.Adapter }

func (m chopper) Render(c platforms.Content) (parts []platforms.Part) {
	if c.Card != nil || len(c.Markdown) < fake.Longest {
		return m.Adapter.Render(c)
	}
	for piece := range slices.Chunk(strings.SplitAfter(c.Markdown, "\n"), 47) {
		parts = append(parts, fake.Pack(fake.Shown{Text: strings.Join(piece, "")}))
	}
	return parts
}

type loud struct{ *fake.Adapter }

func (m loud) Render(c platforms.Content) (parts []platforms.Part) {
	for _, p := range m.Adapter.Render(c) {
		s := shownIn(p)
		s.Calls = append(s.Calls, callsIn(s.Text)...)
		parts = append(parts, fake.Pack(s))
	}
	return parts
}

type toEverybody struct{ *fake.Adapter }

func (m toEverybody) Render(c platforms.Content) []platforms.Part {
	if c.Card != nil {
		card := *c.Card
		card.Mention = append(slices.Clone(card.Mention), everybody)
		c.Card = &card
	}
	return m.Adapter.Render(c)
}

type editsAnew struct{ *fake.Adapter }

func (m editsAnew) Edit(ctx context.Context, at platforms.MessageRef, p platforms.Part) error {
	for _, shown := range m.Place().Messages() {
		if shown.Ref == at {
			_, err := m.Adapter.Post(ctx, shown.In, "", p)
			return err
		}
	}
	return errBroken
}

type noEdits struct{ *fake.Adapter }

func (noEdits) Edit(context.Context, platforms.MessageRef, platforms.Part) error { return nil }

// oldButtons keeps the buttons of the first form of a message.
type oldButtons struct{ *fake.Adapter }

func (m *oldButtons) Edit(ctx context.Context, at platforms.MessageRef, p platforms.Part) error {
	s := shownIn(p)
	for _, shown := range m.Place().Messages() {
		if shown.Ref == at && len(s.Buttons) == 0 {
			s.Buttons = shown.Buttons
		}
	}
	return m.Adapter.Edit(ctx, at, fake.Pack(s))
}

// readsOwn reads its own messages, the first few: a bot that answers itself never ends.
type readsOwn struct {
	*fake.Adapter
	n atomic.Int64
}

func (m *readsOwn) Read(raw []byte) (platforms.Inbound, error) { return fake.Unpack(raw) }

func (m *readsOwn) Run(ctx context.Context, inbox platforms.Inbox) error {
	return m.Receive(ctx, inbox, func(raw []byte) (platforms.Inbound, error) {
		if m.n.Add(1) > 10 {
			return m.Adapter.Read(raw)
		}
		return m.Read(raw)
	})
}

// rereads changes what is read.
type rereads struct {
	*fake.Adapter
	change func(platforms.Inbound) platforms.Inbound
}

func (m rereads) Read(raw []byte) (platforms.Inbound, error) {
	in, err := m.Adapter.Read(raw)
	if err != nil {
		return nil, err
	}
	return m.change(in), nil
}

func asPerson(in platforms.Inbound) platforms.Inbound {
	if m, ok := in.(platforms.Message); ok {
		m.From.Bot = false
		return m
	}
	return in
}

func asMention(in platforms.Inbound) platforms.Inbound {
	if m, ok := in.(platforms.Message); ok {
		m.Addressed = platforms.Mentioned
		return m
	}
	return in
}

func withoutFiles(in platforms.Inbound) platforms.Inbound {
	if m, ok := in.(platforms.Message); ok {
		m.Files = nil
		return m
	}
	return in
}

func noChanges(in platforms.Inbound) platforms.Inbound {
	if _, ok := in.(platforms.Edited); ok {
		return platforms.Ignored{Why: "broken"}
	}
	return in
}

func noDeletions(in platforms.Inbound) platforms.Inbound {
	if _, ok := in.(platforms.Deleted); ok {
		return platforms.Ignored{Why: "broken"}
	}
	return in
}

// inboxFunc is an inbox.
type inboxFunc func(context.Context, platforms.Delivery) error

func (f inboxFunc) Accept(ctx context.Context, d platforms.Delivery) error { return f(ctx, d) }

type patient struct{ *fake.Adapter }

func (m patient) Run(ctx context.Context, inbox platforms.Inbox) error {
	return m.Adapter.Run(ctx, inboxFunc(func(ctx context.Context, d platforms.Delivery) error {
		d.Urgent = false
		return inbox.Accept(ctx, d)
	}))
}

type freshKeys struct {
	*fake.Adapter
	n atomic.Int64
}

func (m *freshKeys) Run(ctx context.Context, inbox platforms.Inbox) error {
	return m.Adapter.Run(ctx, inboxFunc(func(ctx context.Context, d platforms.Delivery) error {
		d.Keys = []platforms.Key{platforms.Key(fmt.Sprintf("fresh-%p-%d", m, m.n.Add(1)))}
		return inbox.Accept(ctx, d)
	}))
}

type oneKey struct{ *fake.Adapter }

func (m oneKey) Run(ctx context.Context, inbox platforms.Inbox) error {
	return m.Adapter.Run(ctx, inboxFunc(func(ctx context.Context, d platforms.Delivery) error {
		d.Keys = d.Keys[:1]
		return inbox.Accept(ctx, d)
	}))
}

// forgetful acknowledges every fifth delivery without keeping it.
type forgetful struct {
	*fake.Adapter
	n atomic.Int64
}

func (m *forgetful) Run(ctx context.Context, inbox platforms.Inbox) error {
	return m.Adapter.Run(ctx, inboxFunc(func(ctx context.Context, d platforms.Delivery) error {
		if m.n.Add(1)%5 == 0 {
			return nil
		}
		return inbox.Accept(ctx, d)
	}))
}

type findsNothing struct{ *fake.Adapter }

func (findsNothing) Find(context.Context, platforms.Conversation, string) (platforms.MessageRef, error) {
	return "", nil
}

// findsAny reports slow posts as unknown, and then finds them in any message of ours.
type findsAny struct{ *fake.Adapter }

func (m *findsAny) Post(ctx context.Context, to platforms.Conversation, mark string, p platforms.Part) (platforms.MessageRef, error) {
	ref, err := m.Adapter.Post(ctx, to, mark, p)
	if err != nil {
		return "", errBroken
	}
	return ref, nil
}

func (m *findsAny) Find(context.Context, platforms.Conversation, string) (platforms.MessageRef, error) {
	return m.Place().Messages()[0].Ref, nil
}

type indiscreet struct{ *fake.Adapter }

func (m indiscreet) Notify(ctx context.Context, to platforms.Reply, text string) error {
	var who struct{ In platforms.Conversation }
	if err := json.Unmarshal(to, &who); err != nil {
		return err
	}
	_, err := m.Adapter.Post(ctx, who.In, "", fake.Pack(fake.Shown{Text: text}))
	return err
}

type silent struct{ *fake.Adapter }

func (silent) Notify(context.Context, platforms.Reply, string) error { return errBroken }

type impatient struct{ *fake.Adapter }

func (m impatient) Post(ctx context.Context, to platforms.Conversation, mark string, p platforms.Part) (platforms.MessageRef, error) {
	ref, err := m.Adapter.Post(ctx, to, mark, p)
	if err != nil && platforms.FailureOf(err) == platforms.SlowDown {
		err = &platforms.Error{Failure: platforms.Refused, Op: "broken", Cause: err}
	}
	return ref, err
}

type noForms struct{ *fake.Adapter }

func (noForms) OpenModal(context.Context, platforms.Reply, platforms.Modal) error { return errBroken }

type everyMember struct{ *fake.Adapter }

func (everyMember) InGroup(context.Context, string, platforms.UserID) (bool, error) { return true, nil }

type nameless struct{ *fake.Adapter }

func (nameless) Name(_ context.Context, user platforms.UserID) (string, error) {
	return string(user), nil
}

type noFiles struct{ *fake.Adapter }

func (noFiles) Fetch(context.Context, platforms.File, int64) (io.ReadCloser, error) {
	return nil, errBroken
}

type alwaysWorking struct{ *fake.Adapter }

func (m alwaysWorking) SetStatus(ctx context.Context, in platforms.Conversation, on platforms.MessageRef, _ platforms.Status) error {
	return m.Adapter.SetStatus(ctx, in, on, platforms.Working)
}

type bareCards struct{ *fake.Adapter }

func (m bareCards) Render(c platforms.Content) []platforms.Part {
	if c.Card != nil {
		card := *c.Card
		card.Blocks = nil
		c.Card = &card
	}
	return m.Adapter.Render(c)
}

type escaper struct{ *fake.Adapter }

func (m escaper) Render(c platforms.Content) (parts []platforms.Part) {
	for _, p := range m.Adapter.Render(c) {
		s := shownIn(p)
		s.Text = strings.ReplaceAll(s.Text, "&", "&amp;")
		parts = append(parts, fake.Pack(s))
	}
	return parts
}
