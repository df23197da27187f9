package markup

import (
	"strings"
	"unicode"

	"golang.org/x/text/width"
)

// columns is the width of s in a fixed-width font: two for East Asian wide characters and most emoji, none for marks that
// combine with what stands before them.
func columns(s string) int {
	n := 0
	for _, r := range s {
		n += runeColumns(r)
	}
	return n
}

func runeColumns(r rune) int {
	if r < 0x300 {
		return 1
	}
	if unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf) {
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// all is the rows with the header, if there is one.
func (t Table) all() [][]Text {
	if t.Header == nil {
		return t.Rows
	}
	return append([][]Text{t.Header}, t.Rows...)
}

// width is how wide the table is in a fixed-width font, with separators of three.
func (t Table) width() int {
	n := 3 * max(len(t.Columns)-1, 0)
	for _, c := range t.Columns {
		n += c.Width
	}
	return n
}

// leadsAway tells whether a cell has a link that its text does not show.
func (t Table) leadsAway() bool {
	for _, row := range t.all() {
		for _, cell := range row {
			for _, r := range cell {
				if r.Link != "" && !shows(r.Text, r.Link) {
					return true
				}
			}
		}
	}
	return false
}

// shows tells whether text is the link itself as people write it.
func shows(text, link string) bool {
	return text == link || "http://"+text == link || "mailto:"+text == link
}

// NarrowTables is d with every table wider than limit, and every table whose cells hold links, as a list: an item for each
// row, in it a line for each cell, headed by the name of its column. limit is in columns of a fixed-width font.
func NarrowTables(d Document, limit int) Document {
	return narrow(d, limit)
}

func narrow(blocks []Block, limit int) []Block {
	out := make([]Block, len(blocks))
	for i, b := range blocks {
		out[i] = b
		switch b := b.(type) {
		case Table:
			if b.width() > limit || b.leadsAway() {
				out[i] = b.records()
			}
		case Quote:
			out[i] = Quote{narrow(b.Blocks, limit)}
		case List:
			items := make([]Item, len(b.Items))
			for j, item := range b.Items {
				items[j] = Item{narrow(item.Blocks, limit), item.Continued}
			}
			b.Items = items
			out[i] = b
		}
	}
	return out
}

// records is the table as a list of its rows. A table without rows becomes a paragraph of its names.
func (t Table) records() Block {
	if len(t.Rows) == 0 {
		return Paragraph{rowText(t.Header).with(Bold)}
	}
	list := List{Tight: true}
	for _, row := range t.Rows {
		if record := t.record(row); len(record) > 0 {
			list.Items = append(list.Items, Item{Blocks: []Block{Paragraph{record}}})
		}
	}
	return list
}

func (t Table) record(row []Text) Text {
	var record Text
	for i, cell := range row {
		if len(cell) == 0 {
			continue
		}
		if len(record) > 0 {
			record = append(record, Run{Text: "\n"})
		}
		if i < len(t.Header) && len(t.Header[i]) > 0 {
			record = append(record, t.Header[i].with(Bold)...)
			record = append(record, Run{Text: ": "})
		}
		record = append(record, cell...)
	}
	return record
}

// paragraphs is the table as a paragraph for each row: what is left when not even a row fits into a message.
func (t Table) paragraphs() []Block {
	var blocks []Block
	for _, row := range t.all() {
		blocks = append(blocks, some(Paragraph{rowText(row)})...)
	}
	return blocks
}

// rowText is the cells of a row on one line.
func rowText(row []Text) Text {
	var t Text
	for i, cell := range row {
		if i > 0 {
			t = append(t, Run{Text: "  "})
		}
		t = append(t, cell...)
	}
	return t.trim()
}

// pad sets s in a column.
func (c Column) pad(s string) string {
	space := max(c.Width-columns(s), 0)
	left := 0
	switch c.Align {
	case Right:
		left = space
	case Center:
		left = space / 2
	}
	return strings.Repeat(" ", left) + s + strings.Repeat(" ", space-left)
}
