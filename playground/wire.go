package playground

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/parley-chat/parley/platforms/slack/slacktwin"
)

// names are what a person can type for what Slack's wire form says by id: "@Ada" for <@U0ADA>. Slack's own clients do the
// same (docs.slack.dev/messaging/formatting-message-text).
type names struct {
	typed map[string]string // "@Ada" → "<@U0ADA>"
	order []string          // typed forms, the longest first
	wire  map[string]string // "@U0ADA" → "@Ada"
}

func newNames(users []slacktwin.User, channels []slacktwin.Channel) names {
	n := names{typed: map[string]string{}, wire: map[string]string{}}
	add := func(typed, id string) {
		if _, taken := n.typed[typed]; taken {
			return
		}
		n.typed[typed] = "<" + id + ">"
		n.wire[id] = typed
	}
	for _, u := range users {
		if u.Name != "" {
			add("@"+u.Name, "@"+u.ID)
		}
	}
	for _, c := range channels {
		if c.Name != "" && !c.IM {
			add("#"+c.Name, "#"+c.ID)
		}
	}
	for _, all := range []string{"here", "channel", "everyone"} {
		add("@"+all, "!"+all)
	}
	for typed := range n.typed {
		n.order = append(n.order, typed)
	}
	slices.SortFunc(n.order, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b))
	})
	return n
}

// toWire turns what a person typed into Slack's wire form: &, < and > escaped, names and addresses made into <…>, code
// left alone.
func (n names) toWire(text string) string {
	var out strings.Builder
	for i := 0; i < len(text); {
		size, wire := n.next(text, i)
		out.WriteString(wire)
		i += size
	}
	return out.String()
}

// next returns how many bytes at i belong together, at least one, and what they are on the wire.
func (n names) next(text string, i int) (size int, wire string) {
	rest := text[i:]
	if size := codeLen(rest); size > 0 {
		return size, escape(rest[:size])
	}
	if !wordBefore(text, i) {
		if typed := n.match(rest); typed != "" {
			return len(typed), n.typed[typed]
		}
		if url := address(rest); url != "" {
			return len(url), "<" + escape(url) + ">"
		}
	}
	return 1, escape(rest[:1])
}

// match returns the known name that text begins with, or "".
func (n names) match(text string) string {
	if text[0] != '@' && text[0] != '#' {
		return ""
	}
	for _, typed := range n.order {
		if len(text) >= len(typed) && strings.EqualFold(text[:len(typed)], typed) && !wordAt(text, len(typed)) {
			return typed
		}
	}
	return ""
}

// codeLen returns the length of the code that text begins with: a fence, or a span within a line. 0: none.
func codeLen(text string) int {
	if strings.HasPrefix(text, "```") {
		if end := strings.Index(text[3:], "```"); end >= 0 {
			return 3 + end + 3
		}
		return 3
	}
	if !strings.HasPrefix(text, "`") {
		return 0
	}
	line, _, _ := strings.Cut(text[1:], "\n")
	if end := strings.IndexByte(line, '`'); end > 0 {
		return 1 + end + 1
	}
	return 0
}

var addressForm = regexp.MustCompile("^https?://[^\\s<>|\"`]+")

// address returns the web address that text begins with, without the punctuation of the sentence around it, or "".
func address(text string) string {
	const sentence = ".,;:!?'*_~"
	url := strings.TrimRight(addressForm.FindString(text), sentence)
	for strings.HasSuffix(url, ")") && strings.Count(url, "(") < strings.Count(url, ")") {
		url = strings.TrimRight(strings.TrimSuffix(url, ")"), sentence)
	}
	if strings.HasSuffix(url, ":/") || strings.HasSuffix(url, "//") || !strings.Contains(url, "://") {
		return ""
	}
	return url
}

func wordBefore(text string, i int) bool {
	r, _ := utf8.DecodeLastRuneInString(text[:i])
	return i > 0 && isWord(r)
}

func wordAt(text string, i int) bool {
	r, _ := utf8.DecodeRuneInString(text[i:])
	return i < len(text) && isWord(r)
}

func isWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' }

var (
	escaper   = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")
	unescaper = strings.NewReplacer("&amp;", "&", "&lt;", "<", "&gt;", ">")
	reference = regexp.MustCompile(`<([^<>|]+)(?:\|([^<>]*))?>`)
)

func escape(text string) string { return escaper.Replace(text) }

// fromWire is what a person would have typed for a text in wire form: what an edit begins with.
func (n names) fromWire(text string) string {
	return unescaper.Replace(reference.ReplaceAllStringFunc(text, func(whole string) string {
		part := reference.FindStringSubmatch(whole)
		if typed, known := n.wire[part[1]]; known {
			return escape(typed)
		}
		if strings.HasPrefix(part[1], "@") || strings.HasPrefix(part[1], "#") || strings.HasPrefix(part[1], "!") {
			return cmp.Or(part[2], part[1])
		}
		return part[1]
	}))
}
