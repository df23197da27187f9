package slack

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	slackgo "github.com/slack-go/slack"

	"github.com/parley-chat/parley/platforms"
	"github.com/parley-chat/parley/platforms/markup"
)

// What a card gives to each of its parts, in bytes of mrkdwn. Together they stay below the 10,000 characters at which Slack
// begins to refuse messages for their blocks (msg_blocks_too_long), and each section below 3,000, each field below 2,000.
const (
	cardText   = 2900
	cardFacts  = 3000
	cardFact   = 1900
	cardBlocks = 2500
	cardFooter = 500
	cardName   = 60 // characters of the name of a fact or a block

	mostFacts    = 20
	mostBlocks   = 8
	mostMentions = 40
)

// card is the card in one message, the last, so that a later card takes its place by one edit of that message. What is too
// long for the card is shown there with its beginning and a note, and whole in the messages before it, in code fences.
// Whoever edits a card puts the last part of the new one where the last part of the old one is and leaves the messages
// before it alone, however many the new one has: the notes still point at them.
//
// A card shows at most 25 buttons, whose actions differ, with values of at most 2,000 characters. It names the others.
func card(c platforms.Card) []message {
	b := cardBuilder{}
	b.title(c.Title)
	b.mentions(c.Mention)
	b.text(c.Text)
	b.facts(c.Facts)
	b.preformatted(c.Blocks)
	b.buttons(c.Buttons)
	b.footer(c.Footer)

	last := message{Text: summary(c), Blocks: slackgo.Blocks{BlockSet: b.blocks}}
	if len(b.whole) == 0 {
		return []message{last}
	}
	heading := markup.Heading{Level: 1, Text: literal("In full: " + c.Title)}
	return append(answer(append(markup.Document{heading}, b.whole...)), last)
}

// cardBuilder collects the blocks of a card, and the whole of what they only begin to show.
type cardBuilder struct {
	blocks []slackgo.Block
	whole  markup.Document
}

func (b *cardBuilder) add(block slackgo.Block) { b.blocks = append(b.blocks, block) }

// keep puts a text under its name into the messages before the card.
func (b *cardBuilder) keep(name, text string) {
	b.whole = append(b.whole, markup.Heading{Level: 2, Text: literal(name)}, markup.Preformatted(reveal(text)))
}

func (b *cardBuilder) title(title string) {
	title = reveal(title)
	if strings.TrimSpace(title) == "" {
		return
	}
	b.add(header(title))
	if _, whole := ellipsis(title, maxHeader); !whole {
		b.keep("Title", title)
	}
}

func (b *cardBuilder) mentions(users []platforms.UserID) {
	if s := mentions(users); s != "" {
		b.add(section(s))
	}
}

func (b *cardBuilder) text(source string) {
	d := read(source)
	if len(d) == 0 {
		return
	}
	s, whole := shorten(d, cardText)
	b.add(section(s))
	if !whole {
		b.whole = append(b.whole, d...)
	}
}

func (b *cardBuilder) facts(facts []platforms.Fact) {
	shown := facts[:min(len(facts), mostFacts)]
	limit := factLimit(shown)
	var texts []string
	for _, f := range shown {
		s, whole := shorten(markup.Document{factLine(f, "\n")}, limit)
		texts = append(texts, s)
		if !whole {
			b.keep(f.Name, f.Value)
		}
	}
	for row := range slices.Chunk(texts, maxFields) {
		b.add(fields(row))
	}
	if more := facts[len(shown):]; len(more) > 0 {
		b.add(small(fmt.Sprintf("%d more are in the messages above.", len(more))))
		for _, f := range more {
			b.keep(f.Name, f.Value)
		}
	}
}

// factLimit is how many bytes a fact may take: as many as it likes if there is room for all of them, else its share.
func factLimit(facts []platforms.Fact) int {
	all := 0
	for _, f := range facts {
		all += len(markup.Mrkdwn(markup.Document{factLine(f, "\n")}))
	}
	if all <= cardFacts {
		return cardFact
	}
	return min(cardFact, max(cardFacts/len(facts), 2*longestNote))
}

// factLine is the name of a fact in bold, and its value.
func factLine(f platforms.Fact, between string) markup.Paragraph {
	var text markup.Text
	for _, r := range name(f.Name) {
		r.Style |= markup.Bold
		text = append(text, r)
	}
	value := literal(f.Value)
	if len(value) == 0 {
		value = literal("–")
	}
	if len(text) > 0 {
		text = append(text, markup.Run{Text: between})
	}
	return markup.Paragraph{Text: append(text, value...)}
}

// name is the name of a fact or a block, on one short line.
func name(s string) markup.Text {
	s, _ = ellipsis(reveal(s), cardName)
	return markup.Literal(s)
}

func (b *cardBuilder) preformatted(blocks []platforms.Block) {
	shown := blocks[:min(len(blocks), mostBlocks)]
	for _, block := range shown {
		code := markup.Preformatted(reveal(block.Text))
		var d markup.Document
		if n := name(block.Name); len(n) > 0 {
			d = append(d, markup.Heading{Level: 3, Text: n})
		}
		s, whole := shorten(append(d, code), cardBlocks/len(shown))
		b.add(section(s))
		if !whole {
			b.keep(block.Name, block.Text)
		}
	}
	if more := blocks[len(shown):]; len(more) > 0 {
		b.add(small(fmt.Sprintf("%d more are in the messages above.", len(more))))
		for _, block := range more {
			b.keep(block.Name, block.Text)
		}
	}
}

func (b *cardBuilder) buttons(buttons []platforms.Button) {
	var elements []slackgo.BlockElement
	var left []string
	seen := map[string]bool{}
	for _, button := range buttons {
		if len(elements) == maxButtons || seen[button.Action] || !possible(button) {
			left = append(left, button.Label)
			continue
		}
		seen[button.Action] = true
		elements = append(elements, element(button))
		if _, whole := ellipsis(reveal(button.Confirm), maxConfirmText); !whole {
			b.keep(button.Label, button.Confirm)
		}
	}
	if len(elements) > 0 {
		b.add(slackgo.NewActionBlock(blockID(buttons), elements...))
	}
	if len(left) > 0 {
		s, _ := shorten(markup.Document{markup.Paragraph{Text: literal("No button for: " + strings.Join(left, ", "))}}, cardFooter)
		b.add(small(s))
	}
}

// possible tells whether Slack takes the button.
func possible(b platforms.Button) bool {
	return b.Action != "" && utf8.ValidString(b.Action) && utf8.ValidString(b.Value) &&
		markup.UTF16Units(b.Action) <= maxID && markup.UTF16Units(b.Value) <= maxButtonValue
}

// blockID names the block of buttons after what they decide: another request, another block.
func blockID(buttons []platforms.Button) string {
	h := sha256.New()
	for _, b := range buttons {
		h.Write([]byte(b.Value))
		h.Write([]byte{0})
	}
	return "decide-" + hex.EncodeToString(h.Sum(nil)[:16])
}

func element(b platforms.Button) slackgo.BlockElement {
	label := b.Label
	if strings.TrimSpace(label) == "" {
		label = b.Action
	}
	e := slackgo.NewButtonBlockElement(b.Action, b.Value, plainText(label, maxButtonText))
	switch b.Style {
	case platforms.Primary:
		e.Style = slackgo.StylePrimary
	case platforms.Danger:
		e.Style = slackgo.StyleDanger
	}
	if strings.TrimSpace(b.Confirm) != "" {
		e.Confirm = slackgo.NewConfirmationBlockObject(
			plainText("Are you sure?", maxConfirmWord),
			plainText(reveal(b.Confirm), maxConfirmText),
			plainText(label, maxConfirmWord),
			plainText("Cancel", maxConfirmWord))
		e.Confirm.Style = e.Style
	}
	return e
}

func (b *cardBuilder) footer(footer string) {
	text := literal(footer)
	if len(text) == 0 {
		return
	}
	s, whole := shorten(markup.Document{markup.Paragraph{Text: text}}, cardFooter)
	b.add(small(s))
	if !whole {
		b.keep("Note", footer)
	}
}

// summary is the card in words: who is asked, the title, the text, the facts.
func summary(c platforms.Card) string {
	var d markup.Document
	if title := literal(c.Title); len(title) > 0 {
		d = append(d, markup.Heading{Level: 1, Text: title})
	}
	d = append(d, read(c.Text)...)
	var facts markup.List
	for _, f := range c.Facts {
		facts.Items = append(facts.Items, markup.Item{Blocks: []markup.Block{factLine(f, ": ")}})
	}
	if facts.Tight = true; len(facts.Items) > 0 {
		d = append(d, facts)
	}
	who := mentions(c.Mention)
	switch {
	case len(d) == 0 && who == "":
		return noText
	case len(d) == 0:
		return who
	case who != "":
		who += "\n"
	}
	s, _ := begin(d, maxText-len(who), func(markup.Document) string { return "…" })
	return who + s
}

// shorten is d in mrkdwn of at most limit bytes. What does not fit is left out, and a line says so.
func shorten(d markup.Document, limit int) (s string, whole bool) {
	all := utf8.RuneCountInString(markup.Plain(d))
	return begin(d, limit, func(shown markup.Document) string {
		return fmt.Sprintf("_%d of %d characters. All of it is above._", utf8.RuneCountInString(markup.Plain(shown)), all)
	})
}

// longestNote is room for the line that says what was left out, in bytes.
const longestNote = 80

// begin is d in mrkdwn of at most limit bytes. If that is not all of it, note makes the last line from what is shown.
func begin(d markup.Document, limit int, note func(markup.Document) string) (s string, whole bool) {
	if s = markup.Mrkdwn(d); len(s) <= limit {
		return s, true
	}
	shown := markup.Begin(d, within(limit-longestNote))
	return markup.Mrkdwn(shown) + "\n" + note(shown), false
}

// userPattern is what Slack's ids of people look like.
var userPattern = regexp.MustCompile(`^[UW][A-Z0-9]{1,30}$`)

// mentions notifies people. A UserID is "T1/U1" or "U1"; what is neither notifies nobody.
func mentions(users []platforms.UserID) string {
	var names []string
	for _, u := range users {
		id := string(u)[strings.LastIndexByte(string(u), '/')+1:]
		name := "<@" + id + ">"
		if userPattern.MatchString(id) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if more := len(names) - mostMentions; more > 0 {
		names = append(names[:mostMentions], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, " ")
}

// literal is s as it is. In a card nothing may look like something else, so what would hide or reorder text shows itself.
func literal(s string) markup.Text { return markup.Literal(reveal(s)) }

// reveal writes characters that nobody sees, or that reorder what people see, as their code points.
func reveal(s string) string {
	if !strings.ContainsFunc(s, hides) {
		return s
	}
	var b strings.Builder
	for _, r := range strings.ReplaceAll(s, "\r\n", "\n") {
		if hides(r) {
			fmt.Fprintf(&b, "[U+%04X]", r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// hides tells whether r is a control, a bidirectional override or invisible. Joiners that words and emoji need are not.
func hides(r rune) bool {
	switch {
	case r == '\n', r == '\t':
		return false
	case r == 0x00AD, r == 0x061C, r == 0x180E, r == 0x200B, r == 0xFEFF:
		return true
	case 0x202A <= r && r <= 0x202E, 0x2060 <= r && r <= 0x206F, 0xFFF9 <= r && r <= 0xFFFB, 0xE0000 <= r && r <= 0xE007F:
		return true
	}
	return unicode.IsControl(r)
}
