package markup

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Mrkdwn writes d in Slack's dialect (docs.slack.dev/messaging/formatting-message-text), for the text of a message or of a
// block of type mrkdwn. Nothing in it is live but the links: "&", "<" and ">" are escaped everywhere, so no text becomes a
// mention, a broadcast or a command.
//
// The dialect has no escape for its other marks. Two characters that nobody sees stand in: a zero width space next to a mark
// inside a word, where Slack would not take it for one, and inside a row of three backticks; a soft hyphen before a literal
// mark that would otherwise begin a format. Slack documents neither; both are reported to work.
func Mrkdwn(d Document) string {
	var b strings.Builder
	for i, l := range blockLines(d, 0) {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(l.text)
	}
	return b.String()
}

const (
	zeroWidthSpace = "\u200B"
	softHyphen     = "\u00AD"
	fence          = "```"
	rule           = "──────────"
	indent         = "    "
)

// line is a line of mrkdwn. Code and quotes are fixed: they keep their place at the margin, also inside lists and quotes,
// because Slack would show what stands before code and takes only what begins a line for a quote.
type line struct {
	text  string
	fixed bool
}

// blockLines are the lines of blocks; depth is how many lists are around them.
func blockLines(blocks []Block, depth int) []line {
	var lines []line
	for i, b := range blocks {
		if i > 0 && !follows(b, blocks[i-1], depth) {
			lines = append(lines, line{})
		}
		lines = append(lines, linesOf(b, depth)...)
	}
	return lines
}

// follows tells whether b stands right under the block before it, without a blank line: under a heading, and in an item
// what belongs to its line.
func follows(b, before Block, depth int) bool {
	if _, ok := before.(Heading); ok {
		return true
	}
	switch b.(type) {
	case List, Quote, Code, Table:
		return depth > 0
	default:
		return false
	}
}

func linesOf(b Block, depth int) []line {
	switch b := b.(type) {
	case Paragraph:
		return textLines(b.Text)
	case Heading:
		return textLines(b.Text.with(Bold))
	case Code:
		return fenced(strings.Split(b.Text, "\n"))
	case Quote:
		return quoted(blockLines(b.Blocks, depth))
	case List:
		return listLines(b, depth)
	case Table:
		return fenced(tableLines(b))
	default:
		return []line{{text: rule}}
	}
}

func textLines(t Text) []line {
	var lines []line
	for _, l := range t.lines() {
		s := inline(l)
		if strings.HasPrefix(s, "&gt;") {
			s = zeroWidthSpace + s // Slack takes an escaped > at the start of a line for a quote
		}
		lines = append(lines, line{text: s})
	}
	return lines
}

// fenced puts literal text between fences. The dialect has no place for a language.
func fenced(text []string) []line {
	lines := []line{{fence, true}}
	for _, s := range text {
		lines = append(lines, line{escape(breakFences(s)), true})
	}
	return append(lines, line{fence, true})
}

// breakFences keeps code from ending its fence.
func breakFences(s string) string {
	if !strings.Contains(s, fence) {
		return s
	}
	return strings.ReplaceAll(s, "``", "`"+zeroWidthSpace+"`") // which leaves two in a row at most
}

// quoted marks lines as a quote. There is one depth of quotes only.
func quoted(lines []line) []line {
	for i, l := range lines {
		if !l.fixed {
			lines[i] = line{strings.TrimRight("> "+l.text, " "), true}
		}
	}
	return lines
}

func listLines(l List, depth int) []line {
	var lines []line
	number := l.Start
	for i, item := range l.Items {
		if i > 0 && !l.Tight {
			lines = append(lines, line{})
		}
		mark := ""
		if !item.Continued {
			mark = bullet(l.Ordered, number, depth)
			number++
		}
		lines = append(lines, itemLines(item, mark, depth)...)
	}
	return lines
}

func bullet(ordered bool, number, depth int) string {
	switch {
	case ordered:
		return strconv.Itoa(number) + ". "
	case depth == 0:
		return "• "
	case depth == 1:
		return "◦ "
	default:
		return "▪ "
	}
}

func itemLines(item Item, mark string, depth int) []line {
	lines := blockLines(item.Blocks, depth+1)
	if mark != "" && (len(lines) == 0 || lines[0].fixed || startsWithList(item)) {
		lines = append([]line{{}}, lines...) // the mark stands on a line of its own
	}
	for i, l := range lines {
		switch {
		case l.fixed:
		case i == 0 && mark != "":
			lines[i].text = strings.TrimRight(mark+l.text, " ")
		case l.text != "":
			lines[i].text = indent + l.text
		}
	}
	return lines
}

func startsWithList(item Item) bool {
	if len(item.Blocks) == 0 {
		return false
	}
	_, ok := item.Blocks[0].(List)
	return ok
}

func tableLines(t Table) []string {
	var lines []string
	if t.Header != nil {
		lines = append(lines, t.line(t.Header), t.underline())
	}
	for _, row := range t.Rows {
		lines = append(lines, t.line(row))
	}
	return lines
}

const between = " | "

func (t Table) line(row []Text) string {
	cells := make([]string, len(row))
	for i, cell := range row {
		cells[i] = t.Columns[i].pad(cell.String())
	}
	return strings.TrimRight(strings.Join(cells, between), " ")
}

func (t Table) underline() string {
	dashes := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		dashes[i] = strings.Repeat("-", max(c.Width, 1))
	}
	return strings.Join(dashes, "-+-")
}

// escape writes s as literal text (docs.slack.dev/messaging/formatting-message-text, "Escaping text").
func escape(s string) string { return mrkdwnEscapes.Replace(s) }

var mrkdwnEscapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// inline writes the runs of one line.
func inline(t Text) string {
	w := inlineWriter{literal: literalMarks(t)}
	t = loosen(t)
	for i, r := range t {
		w.style(r.Style &^ Monospace)
		w.body(r, t[i+1:])
	}
	w.style(0)
	return w.String()
}

// loosen moves white space at the edges of a style out of it: Slack knows no mark next to white space.
func loosen(t Text) Text {
	var out Text
	add := func(r Run, s string, style Style) {
		if s != "" {
			out = append(out, Run{s, style, r.Link})
		}
	}
	for i, r := range t {
		if r.Style&Monospace != 0 {
			out = append(out, r)
			continue
		}
		word := strings.TrimSpace(r.Text)
		start := strings.Index(r.Text, word)
		var before, after Style
		if i > 0 {
			before = t[i-1].Style
		}
		if i+1 < len(t) {
			after = t[i+1].Style
		}
		if word == "" {
			add(r, r.Text, r.Style&before&after)
			continue
		}
		add(r, r.Text[:start], r.Style&before)
		add(r, word, r.Style)
		add(r, r.Text[start+len(word):], r.Style&after)
	}
	return out
}

// inlineWriter writes runs and keeps the marks that are open.
type inlineWriter struct {
	strings.Builder
	open    []Style
	last    rune // what was written last, of what people see; 0 at the start
	closed  bool // the last thing written is a closing mark
	literal string
}

// markOf is the mark around a style.
func markOf(s Style) byte {
	switch s {
	case Bold:
		return '*'
	case Italic:
		return '_'
	default:
		return '~'
	}
}

// style closes and opens marks until want is what is open.
func (w *inlineWriter) style(want Style) {
	keep := 0
	for keep < len(w.open) && w.open[keep]&want != 0 {
		want &^= w.open[keep]
		keep++
	}
	for len(w.open) > keep {
		w.WriteByte(markOf(w.open[len(w.open)-1]))
		w.open = w.open[:len(w.open)-1]
		w.closed = true
	}
	for _, s := range [...]Style{Bold, Italic, Strike} {
		if want&s == 0 {
			continue
		}
		w.joint()
		w.WriteByte(markOf(s))
		w.open = append(w.open, s)
		w.last = 0
	}
}

// joint separates an opening mark from a word or a mark right before it.
func (w *inlineWriter) joint() {
	if w.closed || isWord(w.last) {
		w.WriteString(zeroWidthSpace)
	}
	w.closed = false
}

func isWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// body writes the text of a run, within its link if it has one.
func (w *inlineWriter) body(r Run, rest Text) {
	if r.Text == "" {
		return
	}
	first, _ := utf8.DecodeRuneInString(r.Text)
	if w.closed && isWord(first) {
		w.WriteString(zeroWidthSpace)
	}
	w.closed = false
	if r.Style&Monospace != 0 {
		w.code(r)
		return
	}
	s := w.plain(r.Text, rest)
	if r.Link != "" && strings.TrimSpace(r.Text) != "" {
		s = anchor(r.Link, r.Text, s)
	}
	w.WriteString(s)
	w.last, _ = utf8.DecodeLastRuneInString(r.Text)
}

// anchor writes a link. label is text, written.
func anchor(link, text, label string) string {
	if text == link {
		return "<" + escape(link) + ">"
	}
	return "<" + escape(link) + "|" + label + ">"
}

// code writes inline code. Slack cannot show a backtick between single ones, so code with a backtick stands between three.
func (w *inlineWriter) code(r Run) {
	w.joint()
	tick, text := "`", r.Text
	if strings.Contains(text, "`") {
		tick, text = fence, breakFences(text)
		if text[0] == '`' {
			text = " " + text
		}
		if text[len(text)-1] == '`' {
			text += " "
		}
	}
	s := escape(text)
	if r.Link != "" {
		s = anchor(r.Link, r.Text, s)
	}
	w.WriteString(tick + s + tick)
	w.last, w.closed = 0, true
}

// literalMarks are the marks that could pair up in a line although they are text: those that occur at least twice, as text
// or as marks.
func literalMarks(t Text) string {
	var marks []byte
	for _, m := range []struct {
		mark  string
		style Style
	}{{"*", Bold}, {"_", Italic}, {"~", Strike}, {"`", Monospace}} {
		n, styled := 0, 0
		for _, r := range t {
			if r.Style&Monospace == 0 {
				n += strings.Count(r.Text, m.mark)
			}
			if r.Style&m.style != 0 {
				styled = 1
			}
		}
		if n > 0 && n+styled > 1 {
			marks = append(marks, m.mark[0])
		}
	}
	return string(marks)
}

// plain writes literal text. A mark that Slack would take for the beginning of a format gets a soft hyphen before it.
func (w *inlineWriter) plain(s string, rest Text) string {
	if w.literal == "" || !strings.ContainsAny(s, w.literal) {
		return escape(s)
	}
	var b strings.Builder
	before := w.last
	for i, r := range s {
		if strings.ContainsRune(w.literal, r) && !isWord(before) && !endsLine(s[i+1:], rest) {
			b.WriteString(softHyphen)
		}
		b.WriteRune(r)
		before = r
	}
	return escape(b.String())
}

// endsLine tells whether s, followed by rest, begins with white space or is empty.
func endsLine(s string, rest Text) bool {
	if s == "" && len(rest) > 0 {
		s = rest[0].Text
	}
	r, _ := utf8.DecodeRuneInString(s)
	return s == "" || unicode.IsSpace(r)
}
