// Package markup knows CommonMark and the dialects that chat platforms made of it. Parse turns CommonMark into a small
// Document of blocks and runs; Mrkdwn writes a document in Slack's dialect; Split cuts a document into documents that
// each fit into one message, whatever a platform means by fitting.
//
// Everything here is pure: no settings, no clock, no network, no state. Nothing here knows a platform's limits, its
// message format or its transport; that is the adapters' part. Every function may be called concurrently and accepts any
// text, however malformed or hostile, without a panic and without losing a visible character.
//
// Splitting works on documents and not on rendered text, so an escape, an entity, a link or a code fence cannot be torn:
// each part is rendered on its own, with its own fences and marks.
package markup

import (
	"strings"
	"unicode"
)

// Document is what a reader is to see: blocks, one under the other.
type Document []Block

// Block is a Paragraph, Heading, Code, Quote, List, Table or Rule.
type Block interface{ block() }

type (
	// Paragraph is running text. Line ends in it are kept.
	Paragraph struct{ Text Text }

	// Heading is a title of level 1 to 6.
	Heading struct {
		Level int
		Text  Text
	}

	// Code is preformatted text without its final line end.
	Code struct {
		Language string // as after the opening fence, may be empty; one word
		Text     string
	}

	// Quote is what somebody else said.
	Quote struct{ Blocks []Block }

	// List is a list of items. A tight one has no blank lines between them.
	List struct {
		Ordered bool
		Start   int // the number of the first item, if ordered
		Tight   bool
		Items   []Item
	}

	// Table is a table. Header is nil where a table goes on that began in an earlier part.
	Table struct {
		Columns []Column
		Header  []Text
		Rows    [][]Text
	}

	// Rule is a line across.
	Rule struct{}
)

func (Paragraph) block() {}
func (Heading) block()   {}
func (Code) block()      {}
func (Quote) block()     {}
func (List) block()      {}
func (Table) block()     {}
func (Rule) block()      {}

// Item is one item of a list.
type Item struct {
	Blocks []Block
	// Continued is set for the rest of an item that began in an earlier part: it has no bullet or number of its own.
	Continued bool
}

// Column is how a column of a table is set.
type Column struct {
	Align Align
	// Width is the widest cell in columns of a fixed-width font. It stays when a table is split, so that the parts line up.
	Width int
}

// Align is the side to which the cells of a column are set.
type Align int

const (
	Left Align = iota
	Center
	Right
)

// Text is a line of runs.
type Text []Run

// Run is text of one look. Text is literal: no character of it means anything but itself.
type Run struct {
	Text  string
	Style Style
	// Link is where the run leads, empty for nowhere. It is an absolute http, https or mailto URL of at most 2,000 bytes,
	// counting five for each "&", without white space, controls or any of <>|"`\^{}.
	Link string
}

// Style is a set of looks.
type Style uint8

const (
	Bold Style = 1 << iota
	Italic
	Strike
	Monospace
)

// Literal is s as it is, without the white space around it.
func Literal(s string) Text {
	s = strings.TrimSpace(clean(s))
	if s == "" {
		return nil
	}
	return Text{{Text: s}}
}

// Preformatted is s as it is, in a fixed-width font.
func Preformatted(s string) Code {
	return Code{Text: strings.TrimRight(clean(s), "\n")}
}

// clean makes s valid UTF-8 with \n as its only line end. What cannot be shown is shown as U+FFFD.
func clean(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if !strings.ContainsFunc(s, isStray) {
		return s
	}
	s = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(s)
	return strings.Map(func(r rune) rune {
		if isStray(r) {
			return '\uFFFD'
		}
		return r
	}, s)
}

func isStray(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }

// String is the text alone.
func (t Text) String() string {
	if len(t) == 1 {
		return t[0].Text
	}
	var b strings.Builder
	for _, r := range t {
		b.WriteString(r.Text)
	}
	return b.String()
}

// first is the first n bytes of t.
func (t Text) first(n int) Text {
	for i, r := range t {
		if n < len(r.Text) {
			head := append(Text(nil), t[:i]...)
			if n > 0 {
				r.Text = r.Text[:n]
				head = append(head, r)
			}
			return head
		}
		n -= len(r.Text)
	}
	return t
}

// from is t without its first n bytes.
func (t Text) from(n int) Text {
	for i, r := range t {
		if n < len(r.Text) {
			r.Text = r.Text[n:]
			return append(Text{r}, t[i+1:]...)
		}
		n -= len(r.Text)
	}
	return nil
}

// trim is t without white space around it.
func (t Text) trim() Text {
	s := t.String()
	end := len(strings.TrimRightFunc(s, unicode.IsSpace))
	start := end - len(strings.TrimLeftFunc(s[:end], unicode.IsSpace))
	if start == 0 && end == len(s) {
		return t
	}
	return t.first(end).from(start)
}

// lines is t, line by line.
func (t Text) lines() []Text {
	var lines []Text
	var line Text
	for _, r := range t {
		for {
			before, after, more := strings.Cut(r.Text, "\n")
			if before != "" {
				line = append(line, Run{before, r.Style, r.Link})
			}
			if !more {
				break
			}
			lines = append(lines, line)
			line, r.Text = nil, after
		}
	}
	return append(lines, line)
}

// with is t with a style added to all of it.
func (t Text) with(s Style) Text {
	styled := make(Text, len(t))
	for i, r := range t {
		r.Style |= s
		styled[i] = r
	}
	return styled
}

// Plain is the visible text of a document without any marks: blocks, rows and items one a line, the cells of a row
// separated by two spaces. Bullets, numbers, rules and the targets of links are not text.
func Plain(d Document) string {
	var lines []string
	plain(d, &lines)
	return strings.Join(lines, "\n")
}

func plain(blocks []Block, lines *[]string) {
	for _, b := range blocks {
		switch b := b.(type) {
		case Paragraph:
			*lines = append(*lines, b.Text.String())
		case Heading:
			*lines = append(*lines, b.Text.String())
		case Code:
			*lines = append(*lines, b.Text)
		case Quote:
			plain(b.Blocks, lines)
		case List:
			for _, item := range b.Items {
				plain(item.Blocks, lines)
			}
		case Table:
			for _, row := range b.all() {
				*lines = append(*lines, rowText(row).String())
			}
		}
	}
}
