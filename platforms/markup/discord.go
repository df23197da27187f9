package markup

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Discord writes d in Discord's dialect of Markdown, for the content of a message. Nothing in it is live but its own marks
// and addresses: what Discord would take for a mark is escaped, and what it would take for a mention, a channel, a command,
// a custom emoji or a time gets a zero width space after its first character. A link is shown with its address, since
// Discord would hide it behind the text.
//
// Discord knows headings of three levels, one level of quotes and no tables: a table stands in a fixed-width font.
func Discord(d Document) string {
	var b strings.Builder
	for i, l := range discordBlocks(d, 0) {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(l.text)
	}
	return discordLive.ReplaceAllStringFunc(b.String(), func(s string) string { return s[:1] + zeroWidthSpace + s[1:] })
}

// DiscordLiteral writes s as text in which nothing means anything.
func DiscordLiteral(s string) string {
	return Discord(some(Paragraph{Literal(s)}))
}

// discordLive is how everything begins that Discord replaces by something else, wherever it stands.
var discordLive = regexp.MustCompile(`(?i)@(?:everyone|here)|<(?:@[!&]?\d|#\d|a?:\w+:\d|t:-?\d|/[^<>:\n]+:\d|id:\w|sound:\d)`)

// discordBlocks are the lines of blocks; depth is how many lists are around them. Fixed lines stand at the margin.
func discordBlocks(blocks []Block, depth int) []line {
	var lines []line
	for i, b := range blocks {
		if i > 0 && !follows(b, blocks[i-1], depth) {
			lines = append(lines, line{})
		}
		lines = append(lines, discordLines(b, depth)...)
	}
	return lines
}

func discordLines(b Block, depth int) []line {
	switch b := b.(type) {
	case Paragraph:
		return discordText(b.Text)
	case Heading:
		return discordHeading(b)
	case Code:
		return discordFence(discordLanguage(b.Language), strings.Split(b.Text, "\n"))
	case Quote:
		return quoted(discordBlocks(b.Blocks, depth))
	case List:
		return discordList(b, depth)
	case Table:
		return discordFence("", tableLines(b))
	default:
		return []line{{text: rule}}
	}
}

func discordHeading(h Heading) []line {
	if h.Level > 3 {
		return discordText(h.Text.with(Bold))
	}
	lines := discordText(h.Text)
	for i, l := range lines {
		if l.text != "" {
			lines[i].text = strings.Repeat("#", max(h.Level, 1)) + " " + l.text
		}
	}
	return lines
}

// discordLanguage is a language as it may follow a fence: Discord takes anything else for the first line of the code.
func discordLanguage(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool {
		return r > unicode.MaxASCII || !isWord(r) && !strings.ContainsRune("+-_.#", r)
	}) {
		return ""
	}
	return s
}

func discordFence(language string, text []string) []line {
	lines := []line{{fence + language, true}}
	for _, s := range text {
		lines = append(lines, line{breakFences(s), true})
	}
	return append(lines, line{fence, true})
}

func discordList(l List, depth int) []line {
	var lines []line
	number := l.Start
	for i, item := range l.Items {
		if i > 0 && !l.Tight {
			lines = append(lines, line{})
		}
		mark := ""
		if !item.Continued {
			mark = "- "
			if l.Ordered {
				mark = strconv.Itoa(number) + ". "
			}
			number++
		}
		lines = append(lines, discordItem(item, mark, depth)...)
	}
	return lines
}

// discordItem is an item with its mark; what follows the first line is indented by two.
func discordItem(item Item, mark string, depth int) []line {
	lines := discordBlocks(item.Blocks, depth+1)
	if mark != "" && (len(lines) == 0 || lines[0].fixed || startsWithList(item)) {
		lines = append([]line{{}}, lines...) // the mark stands on a line of its own
	}
	for i, l := range lines {
		switch {
		case l.fixed:
		case i == 0 && mark != "":
			lines[i].text = strings.TrimRight(mark+l.text, " ")
		case l.text != "":
			lines[i].text = "  " + l.text
		}
	}
	return lines
}

func discordText(t Text) []line {
	var lines []line
	for _, l := range t.lines() {
		lines = append(lines, line{text: discordInline(l)})
	}
	return lines
}

// discordInline writes the runs of one line.
func discordInline(t Text) string {
	var w discordWriter
	t = loosen(t)
	for i, r := range t {
		w.style(r.Style &^ Monospace)
		w.run(r)
		if r.Link != "" && (i == len(t)-1 || t[i+1].Link != r.Link) {
			w.address(r, i > 0 && t[i-1].Link == r.Link)
		}
	}
	w.style(0)
	return w.String()
}

// discordWriter writes runs and keeps the marks that are open.
type discordWriter struct {
	strings.Builder
	open   []Style
	last   rune // what was written last of what people see; 0 at the start
	closed bool // the last thing written is a closing mark
}

func discordMark(s Style) string {
	switch s {
	case Bold:
		return "**"
	case Italic:
		return "_"
	default:
		return "~~"
	}
}

// style closes and opens marks until want is what is open.
func (w *discordWriter) style(want Style) {
	keep := 0
	for keep < len(w.open) && w.open[keep]&want != 0 {
		want &^= w.open[keep]
		keep++
	}
	for len(w.open) > keep {
		w.WriteString(discordMark(w.open[len(w.open)-1]))
		w.open = w.open[:len(w.open)-1]
		w.closed = true
	}
	for _, s := range [...]Style{Bold, Italic, Strike} {
		if want&s != 0 {
			w.joint()
			w.WriteString(discordMark(s))
			w.open = append(w.open, s)
		}
	}
}

// joint keeps a mark from what stands before it, with which it would mean something else.
func (w *discordWriter) joint() {
	if w.closed || isWord(w.last) {
		w.WriteString(zeroWidthSpace)
	}
	w.closed = false
	w.last = 0
}

func (w *discordWriter) run(r Run) {
	if r.Text == "" || whollyShown(r) {
		return
	}
	if r.Style&Monospace != 0 {
		w.code(r.Text)
		return
	}
	if first, _ := utf8.DecodeRuneInString(r.Text); w.closed && isWord(first) {
		w.WriteString(zeroWidthSpace)
	}
	w.closed = false
	w.WriteString(discordEscape(r.Text, strings.TrimSpace(w.String()) == ""))
	w.last, _ = utf8.DecodeLastRuneInString(r.Text)
}

// code writes inline code, between two backticks each if it has any.
func (w *discordWriter) code(text string) {
	tick := "`"
	if strings.Contains(text, "`") {
		tick, text = "``", strings.ReplaceAll(text, "``", "`"+zeroWidthSpace+"`")
		text = strings.ReplaceAll(text, "``", "`"+zeroWidthSpace+"`")
		if text[0] == '`' {
			text = " " + text
		}
		if text[len(text)-1] == '`' {
			text += " "
		}
	}
	if s := w.String(); strings.HasSuffix(s, "`") {
		w.WriteString(zeroWidthSpace)
	}
	w.WriteString(tick + text + tick)
	w.last, w.closed = 0, true
}

// whollyShown tells whether the text of a run is its link.
func whollyShown(r Run) bool {
	return r.Link != "" && r.Style&Monospace == 0 && shows(r.Text, r.Link) && !strings.HasPrefix(r.Link, "mailto:")
}

// address writes where the runs before lead. several tells that r is not the only one of them.
func (w *discordWriter) address(r Run, several bool) {
	link := discordAddress.Replace(r.Link)
	mail, isMail := strings.CutPrefix(link, "mailto:")
	switch {
	case isMail && shows(r.Text, r.Link) && !several:
		return
	case isMail: // which Discord does not make a link of
		link = discordEscape(mail, false)
	default:
		link = "<" + link + ">"
	}
	if !whollyShown(r) || several {
		link = " (" + link + ")"
	}
	w.WriteString(link)
	w.last, w.closed = '>', false
}

// discordAddress keeps an address from calling anybody.
var discordAddress = strings.NewReplacer("@everyone", "%40everyone", "@here", "%40here")

// discordEscape writes literal text. starts tells that it begins a line, where more characters mean something.
func discordEscape(s string, starts bool) string {
	var b strings.Builder
	for i, r := range s {
		if strings.ContainsRune("\\*_~`|[", r) || starts && beginsBlock(s[i:]) {
			b.WriteByte('\\')
		}
		if starts && isOrdinal(s[:i]) && r == '.' {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
		starts = starts && (unicode.IsSpace(r) || r >= '0' && r <= '9')
	}
	return b.String()
}

// beginsBlock tells whether a line that begins so is a quote, a heading, small print or an item.
func beginsBlock(s string) bool {
	switch s[0] {
	case '>', '#', '-', '+':
		return true
	}
	return false
}

// isOrdinal tells whether s is a number, with nothing but white space before it.
func isOrdinal(s string) bool {
	s = strings.TrimSpace(s)
	return s != "" && strings.Trim(s, "0123456789") == ""
}
