package markup

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
)

// Reveal writes characters that nobody sees, or that reorder what people see, as their code points. It is for text in which
// nothing may look like something else.
func Reveal(s string) string {
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

// Ellipsis is s on one line and of at most limit UTF-16 units, and whether that is all of it.
func Ellipsis(s string, limit int) (short string, whole bool) {
	s = strings.Join(strings.Fields(s), " ")
	if UTF16Units(s) <= limit {
		return s, true
	}
	units := 1 // the ellipsis
	for i, r := range s {
		units += max(utf16.RuneLen(r), 1)
		if units > limit {
			return s[:i] + "…", false
		}
	}
	return s, true
}
