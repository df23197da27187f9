package markup

import (
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// UTF16Units is the length of s in UTF-16 code units, which is how some platforms count characters.
func UTF16Units(s string) int {
	n := 0
	for _, r := range s {
		n += max(utf16.RuneLen(r), 1)
	}
	return n
}

// Split cuts d into documents that fit, in order. Their visible text, one after the other, is that of d, save for white
// space at the breaks. fits renders a document and measures it in whatever unit a platform counts; a beginning of what fits
// must fit as well, and so must a paragraph of as many x as there are characters in what fits.
//
// What can stay whole does: a block that fits into a message of its own is never broken, and a heading, or a line that
// ends in a colon, goes along with what follows it. What must be broken is broken between items and rows, else at a line
// end, else between sentences, else between words, and only then inside a word, never inside a character.
//
// fits must hold for every document of one character, nested as deep as Parse allows. A block of which not even that fits
// comes out whole.
func Split(d Document, fits func(Document) bool) []Document {
	asked := bounded(fits)
	r := room{here: asked, alone: asked}
	var parts []Document
	for rest := []Block(d); len(rest) > 0; {
		head, tail := r.cut(rest)
		if len(head) == 0 {
			head, tail = rest[:1], rest[1:]
		}
		parts = append(parts, head)
		rest = tail
	}
	return parts
}

// Begin is the longest beginning of d that fits, broken where Split would break it. It is empty if nothing fits.
func Begin(d Document, fits func(Document) bool) Document {
	r := room{
		here:  bounded(fits),
		alone: func([]Block) bool { return false }, // no message comes after this one
	}
	head, _ := r.cut(d)
	return head
}

// bounded is fits, which is not asked about what is too large for certain: rendering all that is left of a long document
// for every part of it would take quadratic time.
func bounded(fits func(Document) bool) func([]Block) bool {
	most := 1024
	for most < unlimited && fits(Document{Paragraph{Text{{Text: strings.Repeat("x", most)}}}}) {
		most *= 2
	}
	return func(blocks []Block) bool {
		return (most >= unlimited || spare(blocks, most) >= 0) && fits(blocks)
	}
}

// unlimited is more than any platform takes in a message, in characters.
const unlimited = 1 << 20

// spare is how much is left of most characters after the visible ones of blocks. It is negative, and the counting ends, as
// soon as there are more.
func spare(blocks []Block, most int) int {
	for _, b := range blocks {
		switch b := b.(type) {
		case Paragraph:
			most = spareText(b.Text, most)
		case Heading:
			most = spareText(b.Text, most)
		case Code:
			most = spareRunes(b.Text, most)
		case Quote:
			most = spare(b.Blocks, most)
		case List:
			for _, item := range b.Items {
				if most = spare(item.Blocks, most); most < 0 {
					break
				}
			}
		case Table:
			most = spareRows(b, most)
		}
		if most < 0 {
			break
		}
	}
	return most
}

func spareRows(t Table, most int) int {
	for _, row := range t.all() {
		for _, cell := range row {
			if most = spareText(cell, most); most < 0 {
				return most
			}
		}
	}
	return most
}

func spareText(t Text, most int) int {
	for _, r := range t {
		if most = spareRunes(r.Text, most); most < 0 {
			break
		}
	}
	return most
}

func spareRunes(s string, most int) int {
	for _, r := range s {
		if most < 0 {
			break
		}
		if !unicode.IsSpace(r) {
			most--
		}
	}
	return most
}

// room is the space that is left in a message.
type room struct {
	here  func([]Block) bool // do the blocks fit, behind what is there already?
	alone func([]Block) bool // would they fit into a message of their own?
}

// within is the room inside a block: wrap puts the block around its content. The content shares this message with what
// stands before it, or has a message of its own.
func (r room) within(here, alone func([]Block) []Block) room {
	return room{
		here:  func(inner []Block) bool { return r.here(here(inner)) },
		alone: func(inner []Block) bool { return r.alone(alone(inner)) },
	}
}

// after is the room behind blocks.
func (r room) after(blocks []Block) room {
	return r.within(
		func(next []Block) []Block { return join(blocks, next) },
		func(next []Block) []Block { return next },
	)
}

// cut divides blocks into a beginning that fits and the rest. The beginning is empty if nothing fits.
func (r room) cut(blocks []Block) (head, tail []Block) {
	n := longest(len(blocks), func(n int) bool { return r.here(blocks[:n]) })
	if n == len(blocks) {
		return blocks, nil
	}
	if n > 0 && r.alone(blocks[n:n+1]) {
		if m := keepIntroduction(blocks, n); r.alone(blocks[m : n+1]) {
			n = m
		}
		return blocks[:n], blocks[n:]
	}
	first, rest := r.after(blocks[:n]).breakBlock(blocks[n])
	if len(first) == 0 {
		n = keepIntroduction(blocks, n)
		return blocks[:n], blocks[n:]
	}
	return join(blocks[:n], first), join(rest, blocks[n+1:])
}

// join is two slices in one, which shares its memory with neither.
func join[T any](a, b []T) []T {
	return append(append(make([]T, 0, len(a)+len(b)), a...), b...)
}

// keepIntroduction moves a break before what introduces the block behind it, unless nothing stands before that.
func keepIntroduction(blocks []Block, n int) int {
	m := n
	for m > 0 && introduces(blocks[m-1]) {
		m--
	}
	if m == 0 {
		return n
	}
	return m
}

func introduces(b Block) bool {
	switch b := b.(type) {
	case Heading:
		return true
	case Paragraph:
		return strings.HasSuffix(b.Text.String(), ":")
	default:
		return false
	}
}

// breakBlock divides a block that does not fit. first is empty if nothing of it fits.
func (r room) breakBlock(b Block) (first, rest []Block) {
	switch b := b.(type) {
	case Paragraph:
		head, tail := b.Text.cut(func(t Text) bool { return r.here([]Block{Paragraph{t}}) })
		return some(Paragraph{head}), some(Paragraph{tail})
	case Heading:
		head, tail := b.Text.cut(func(t Text) bool { return r.here([]Block{Heading{b.Level, t}}) })
		return some(Heading{b.Level, head}), some(Heading{b.Level, tail})
	case Code:
		return r.breakCode(b)
	case Quote:
		wrap := func(inner []Block) []Block { return []Block{Quote{inner}} }
		head, tail := r.within(wrap, wrap).cut(b.Blocks)
		if len(head) == 0 {
			return nil, []Block{b}
		}
		return wrap(head), wrap(tail)
	case List:
		return r.breakList(b)
	case Table:
		return r.breakTable(b)
	default:
		return nil, []Block{b}
	}
}

func (r room) breakCode(c Code) (first, rest []Block) {
	with := func(s string) []Block { return []Block{Code{c.Language, s}} }
	n := longest(len(c.Text), func(n int) bool { return r.here(with(c.Text[:character(c.Text, n)])) })
	n = character(c.Text, n)
	if n == 0 {
		return nil, []Block{c}
	}
	end := lineEnd(c.Text, n)
	if end == 0 {
		return with(c.Text[:n]), with(c.Text[n:])
	}
	tail := strings.TrimLeft(c.Text[end:], "\n")
	if tail == "" {
		return with(c.Text[:end]), nil
	}
	return with(c.Text[:end]), with(tail)
}

// lineEnd is where to end a part of code of at most n bytes: at the last blank line in its second half, else at the last
// line end. It is 0 if there is none.
func lineEnd(code string, n int) int {
	window := code[:min(n+1, len(code))]
	if blank := strings.LastIndex(window, "\n\n"); blank > n/2 {
		return blank
	}
	return max(strings.LastIndexByte(window, '\n'), 0)
}

func (r room) breakList(l List) (first, rest []Block) {
	n := longest(len(l.Items), func(n int) bool { return r.here([]Block{l.of(l.Items[:n])}) })
	if n == len(l.Items) {
		return []Block{l}, nil
	}
	broken := l.Items[n]
	if n > 0 && r.alone([]Block{l.from(n, l.Items[n:n+1])}) {
		return []Block{l.of(l.Items[:n])}, []Block{l.from(n, l.Items[n:])}
	}
	head, tail := r.within(
		func(inner []Block) []Block {
			return []Block{l.of(join(l.Items[:n], []Item{{inner, broken.Continued}}))}
		},
		func(inner []Block) []Block { return []Block{l.from(n, []Item{{inner, true}})} },
	).cut(broken.Blocks)
	if len(head) > 0 {
		items := join([]Item{{tail, true}}, l.Items[n+1:])
		return []Block{l.of(join(l.Items[:n], []Item{{head, broken.Continued}}))}, []Block{l.from(n, items)}
	}
	if n > 0 {
		return []Block{l.of(l.Items[:n])}, []Block{l.from(n, l.Items[n:])}
	}
	return nil, []Block{l}
}

// of is the list with these items at its beginning.
func (l List) of(items []Item) List {
	l.Items = items
	return l
}

// from is the list with these items, which begin with item n or with the rest of it, and go on counting.
func (l List) from(n int, items []Item) List {
	numbered := l.Items[:n]
	if items[0].Continued {
		numbered = l.Items[:n+1]
	}
	for _, item := range numbered {
		if !item.Continued {
			l.Start++
		}
	}
	l.Items = items
	return l
}

func (r room) breakTable(t Table) (first, rest []Block) {
	upTo := func(n int) Table {
		head := t
		head.Rows = t.Rows[:n]
		return head
	}
	n := longest(len(t.Rows), func(n int) bool { return r.here([]Block{upTo(n)}) })
	if n == len(t.Rows) && n > 0 {
		return []Block{t}, nil
	}
	if n > 0 {
		tail := t
		tail.Header, tail.Rows = nil, t.Rows[n:]
		return []Block{upTo(n)}, []Block{tail}
	}
	if len(t.Rows) > 0 && r.alone([]Block{upTo(1)}) {
		return nil, []Block{t}
	}
	return r.cut(t.paragraphs())
}

// cut divides t where fits allows it. head is empty if not even a character fits.
func (t Text) cut(fits func(Text) bool) (head, tail Text) {
	s := t.String()
	n := longest(len(s), func(n int) bool { return fits(t.first(character(s, n))) })
	n = character(s, n)
	if n == 0 {
		return nil, t
	}
	at := breakAt(s, n)
	if head = t.first(at).trim(); at < n && !fits(head) {
		at, head = n, t.first(n).trim()
	}
	return head, t.from(at).trim()
}

// breakAt is the best place to break s after at most n bytes: a line end or the end of a sentence in the second half, else
// the end of a word behind the first quarter, else n.
func breakAt(s string, n int) int {
	if n >= len(s) {
		return len(s)
	}
	_, size := utf8.DecodeRuneInString(s[n:])
	window := s[:n+size] // with the character that decides whether n is the end of a word
	if end := strings.LastIndexByte(window, '\n'); end > n/2 {
		return end
	}
	if end := sentenceEnd(window, n/2); end > 0 {
		return end
	}
	if end := strings.LastIndexFunc(window, unicode.IsSpace); end > n/4 {
		return end
	}
	return n
}

// sentenceEnd is where the last sentence of s ends, if that is behind least; else 0.
func sentenceEnd(s string, least int) int {
	for end := len(s); end > least; {
		r, size := utf8.DecodeLastRuneInString(s[:end])
		start := end - size
		switch {
		case strings.ContainsRune("。！？", r) && end < len(s):
			return end
		case unicode.IsSpace(r) && start > least && endsSentence(s[:start]):
			return start
		}
		end = start
	}
	return 0
}

func endsSentence(s string) bool {
	s = strings.TrimRight(s, `"')]*”’`)
	return strings.HasSuffix(s, ".") || strings.HasSuffix(s, "!") || strings.HasSuffix(s, "?")
}

// longestCluster bounds, in bytes, how far character looks back.
const longestCluster = 64

// character is the last place at or before n where s can be divided without tearing a character from the marks that belong
// to it: accents, emoji modifiers, joined emoji.
func character(s string, n int) int {
	if n >= len(s) {
		return len(s)
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	whole := n
	for whole > 0 && n-whole < longestCluster {
		next, _ := utf8.DecodeRuneInString(s[whole:])
		before, size := utf8.DecodeLastRuneInString(s[:whole])
		if !joins(next) && before != zeroWidthJoiner {
			return whole
		}
		whole -= size
	}
	return n
}

const zeroWidthJoiner = '\u200D'

func joins(r rune) bool {
	return r == zeroWidthJoiner || unicode.In(r, unicode.Mn, unicode.Me, unicode.Mc) || 0x1F3FB <= r && r <= 0x1F3FF
}

// longest is the largest n up to limit for which ok holds, if ok holds up to some number and not beyond. ok(0) is not
// asked. It asks about numbers up to twice the answer only, since large ones can be dear.
func longest(limit int, ok func(int) bool) int {
	low, step := 0, 1
	for low+step <= limit && ok(low+step) {
		low += step
		step *= 2
	}
	for high := min(low+step, limit+1); high-low > 1; {
		if middle := low + (high-low)/2; ok(middle) {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}
