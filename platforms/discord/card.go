package discord

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/bwmarrin/discordgo"

	"github.com/parley-chat/parley/platforms"
	"github.com/parley-chat/parley/platforms/markup"
)

// What a card gives to each of its parts, in UTF-16 units. The blocks get what the others leave of a message.
const (
	cardTitle  = 100
	cardText   = 350
	cardFacts  = 450
	cardFooter = 100
	cardName   = 40 // the name of a fact or a block
	leastBlock = 240

	mostFacts    = 10
	mostBlocks   = 6
	mostMentions = 10

	maxButtonLabel = 80
	buttonsPerRow  = 5
	maxButtons     = 25
)

// card is the card in one message, the last, so that a later card takes its place by one edit of that message. It is plain
// content and buttons: an embed would be dropped without a word where the bot may not embed. What is too long for the card
// is shown there with its beginning and a note, and whole in the messages before it, in code fences. Whoever edits a card
// puts the last part of the new one where the last part of the old one is and leaves the messages before it alone.
//
// A card shows at most 25 buttons, whose presses differ and fit into 100 characters. It names the others. Where a button is
// to be confirmed, the person is asked by a note that only they see.
func card(c platforms.Card) []post {
	b := cardBuilder{users: users(c.Mention)}
	b.mentions(len(c.Mention))
	b.title(c.Title)
	b.text(c.Text)
	b.facts(c.Facts)
	rows, foot := buttons(c.Buttons)
	foot = append(foot, b.footer(c.Footer)...)
	b.preformatted(c.Blocks, maxContent-markup.UTF16Units(join(append(b.lines, foot...)))-2)

	last := post{Content: join(append(b.lines, foot...)), Components: rows, Users: b.users}
	if strings.TrimSpace(last.Content) == "" {
		last.Content = noText
	}
	if len(b.whole) == 0 {
		return []post{last}
	}
	heading := markup.Heading{Level: 2, Text: literal("In full: " + c.Title)}
	return append(answer(append(markup.Document{heading}, b.whole...)), last)
}

func join(lines []string) string { return strings.Join(lines, "\n") }

// cardBuilder collects the lines of a card, and the whole of what they only begin to show.
type cardBuilder struct {
	lines []string
	users []string
	whole markup.Document
}

func (b *cardBuilder) add(line string) { b.lines = append(b.lines, line) }

// keep puts a text under its name into the messages before the card.
func (b *cardBuilder) keep(name, text string) {
	b.whole = append(b.whole, markup.Heading{Level: 3, Text: literal(name)}, markup.Preformatted(markup.Reveal(text)))
}

func (b *cardBuilder) title(title string) {
	short, whole := markup.Ellipsis(markup.Reveal(title), cardTitle)
	if s := markup.DiscordLiteral(short); s != "" {
		b.add("### " + s)
	}
	if !whole {
		b.keep("Title", title)
	}
}

// mentions calls people. n is how many are to be called.
func (b *cardBuilder) mentions(n int) {
	var names []string
	for _, id := range b.users {
		names = append(names, "<@"+id+">")
	}
	if more := n - len(names); more > 0 && n > mostMentions {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	if len(names) > 0 {
		b.add(strings.Join(names, " "))
	}
}

// users are those who can be called. A UserID is "USER", perhaps with something before a slash.
func users(ids []platforms.UserID) []string {
	var out []string
	for _, u := range ids {
		id := string(u)[strings.LastIndexByte(string(u), '/')+1:]
		if isSnowflake(id) && !slices.Contains(out, id) && len(out) < mostMentions {
			out = append(out, id)
		}
	}
	return out
}

func (b *cardBuilder) text(source string) {
	d := read(source)
	if len(d) == 0 {
		return
	}
	s, whole := shorten(d, cardText)
	b.add(s)
	if !whole {
		b.whole = append(b.whole, d...)
	}
}

func (b *cardBuilder) facts(facts []platforms.Fact) {
	shown := facts[:min(len(facts), mostFacts)]
	left := cardFacts
	for i, f := range shown {
		line := markup.Document{factLine(f)}
		s, whole := begin(line, left/(len(shown)-i)-1, 1, func(markup.Document) string { return "…" })
		b.add(s)
		left -= markup.UTF16Units(s) + 1
		if !whole {
			b.keep(f.Name, f.Value)
		}
	}
	if more := facts[len(shown):]; len(more) > 0 {
		b.add(fmt.Sprintf("-# %d more are in the messages above.", len(more)))
		for _, f := range more {
			b.keep(f.Name, f.Value)
		}
	}
}

// factLine is the name of a fact in bold, and its value.
func factLine(f platforms.Fact) markup.Paragraph {
	var text markup.Text
	for _, r := range name(f.Name + ":") {
		r.Style |= markup.Bold
		text = append(text, r)
	}
	value := strings.Join(strings.Fields(f.Value), " ")
	if value == "" {
		value = "–"
	}
	return markup.Paragraph{Text: append(append(text, markup.Run{Text: " "}), literal(value)...)}
}

// name is the name of a fact or a block, on one short line.
func name(s string) markup.Text {
	s, _ = markup.Ellipsis(markup.Reveal(s), cardName)
	return markup.Literal(s)
}

// preformatted shows the blocks in what is left of the message.
func (b *cardBuilder) preformatted(blocks []platforms.Block, left int) {
	n := min(len(blocks), mostBlocks, max(left/leastBlock, 0))
	for i, block := range blocks[:n] {
		code := markup.Preformatted(markup.Reveal(block.Text))
		var d markup.Document
		if title := name(block.Name); len(title) > 0 {
			d = append(d, markup.Heading{Level: 4, Text: title})
		}
		s, whole := shorten(append(d, code), left/(n-i)-1)
		b.add(s)
		left -= markup.UTF16Units(s) + 1
		if !whole {
			b.keep(block.Name, block.Text)
		}
	}
	if more := blocks[n:]; len(more) > 0 {
		if note := fmt.Sprintf("-# %d more are in the messages above.", len(more)); len(note) < left {
			b.add(note)
		}
		for _, block := range more {
			b.keep(block.Name, block.Text)
		}
	}
}

// footer is a small line at the end.
func (b *cardBuilder) footer(footer string) []string {
	short, whole := markup.Ellipsis(markup.Reveal(footer), cardFooter)
	if !whole {
		b.keep("Note", footer)
	}
	if s := markup.DiscordLiteral(short); s != "" {
		return []string{"-# " + s}
	}
	return nil
}

// buttons are the rows of buttons, and a line that names those that cannot be shown.
func buttons(all []platforms.Button) (rows []any, left []string) {
	var shown []discordgo.MessageComponent
	var others []string
	seen := map[string]bool{}
	for _, b := range all {
		id, ok := pressOf(b).customID()
		if !ok || len(shown) == maxButtons || seen[id] || !utf8.ValidString(id) {
			others = append(others, b.Label)
			continue
		}
		seen[id] = true
		shown = append(shown, element(b, id))
	}
	for row := range slices.Chunk(shown, buttonsPerRow) {
		rows = append(rows, discordgo.ActionsRow{Components: row})
	}
	if len(others) > 0 {
		s, _ := markup.Ellipsis(markup.Reveal("No button for: "+strings.Join(others, ", ")), cardFooter)
		left = []string{"-# " + markup.DiscordLiteral(s)}
	}
	return rows, left
}

func pressOf(b platforms.Button) press {
	p := press{Action: b.Action, Value: b.Value}
	switch {
	case strings.TrimSpace(b.Confirm) != "":
		p.Then = thenAsk
	case b.Form:
		p.Then = thenForm
	}
	return p
}

func element(b platforms.Button, id string) discordgo.Button {
	label := b.Label
	if strings.TrimSpace(label) == "" {
		label = b.Action
	}
	label, _ = markup.Ellipsis(markup.Reveal(label), maxButtonLabel)
	e := discordgo.Button{Label: label, Style: discordgo.SecondaryButton, CustomID: id}
	switch b.Style {
	case platforms.Primary:
		e.Style = discordgo.PrimaryButton
	case platforms.Danger:
		e.Style = discordgo.DangerButton
	}
	return e
}

// shorten is d in at most limit units. What does not fit is left out, and a line says so.
func shorten(d markup.Document, limit int) (s string, whole bool) {
	all := utf8.RuneCountInString(markup.Plain(d))
	return begin(d, limit, longestNote, func(shown markup.Document) string {
		return fmt.Sprintf("\n-# %d of %d characters. All of it is above.", utf8.RuneCountInString(markup.Plain(shown)), all)
	})
}

// longestNote is room for the line that says what was left out.
const longestNote = 80

// begin is d in at most limit units. If that is not all of it, note, of at most room units, ends it.
func begin(d markup.Document, limit, room int, note func(markup.Document) string) (s string, whole bool) {
	if s = markup.Discord(d); markup.UTF16Units(s) <= limit {
		return s, true
	}
	shown := markup.Begin(d, within(limit-room))
	return strings.TrimLeft(markup.Discord(shown)+note(shown), "\n"), false
}

// literal is s as it is. In a card nothing may look like something else, so what would hide or reorder text shows itself.
func literal(s string) markup.Text { return markup.Literal(markup.Reveal(s)) }
