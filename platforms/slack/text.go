package slack

import (
	"slices"
	"strings"
)

// unescape undoes the three escapes of mrkdwn (doc messaging/formatting-message-text).
func unescape(s string) string {
	return strings.NewReplacer("&amp;", "&", "&lt;", "<", "&gt;", ">").Replace(s)
}

// commonMark turns what a person wrote, in Slack's form, into CommonMark: entities, links, mentions, dates. The mention of
// bot is left out together with the space around it. mentioned tells whether there was one.
func commonMark(s, bot string) (text string, mentioned bool) {
	var b strings.Builder
	for s != "" {
		before, rest, found := strings.Cut(s, "<")
		b.WriteString(unescape(before))
		if !found {
			break
		}
		inner, after, closed := strings.Cut(rest, ">")
		if !closed {
			b.WriteString("<" + unescape(rest))
			break
		}
		s = after
		target, label, _ := strings.Cut(inner, "|")
		if bot != "" && target == "@"+bot {
			mentioned = true
			s = joinAround(b.String(), s)
			continue
		}
		b.WriteString(reference(target, unescape(label)))
	}
	return strings.TrimSpace(b.String()), mentioned
}

// joinAround is what follows a mention that is left out: without the punctuation of an address at the beginning of the
// text, without a second space in the middle.
func joinAround(before, after string) string {
	if strings.TrimSpace(before) == "" {
		return strings.TrimLeft(after, " \u00a0,:")
	}
	if strings.HasSuffix(before, " ") || strings.HasSuffix(before, "\n") {
		return strings.TrimLeft(after, " \u00a0")
	}
	return after
}

// reference is the text of <target|label>.
func reference(target, label string) string {
	if target == "" {
		return label
	}
	switch name := target[1:]; target[0] {
	case '@':
		return "@" + orName(strings.TrimPrefix(label, "@"), name)
	case '#':
		return "#" + orName(strings.TrimPrefix(label, "#"), name)
	case '!':
		return special(name, label)
	}
	return link(unescape(target), label)
}

func orName(label, name string) string {
	if label != "" {
		return label
	}
	return name
}

// special is the text of <!name|label>: broadcasts, groups, dates.
func special(name, label string) string {
	if label != "" {
		return label
	}
	kind, rest, _ := strings.Cut(name, "^")
	if kind == "subteam" {
		return "@" + rest
	}
	if kind == "date" {
		return ""
	}
	return "@" + kind
}

// link is a CommonMark link, or the address alone where the label adds nothing.
func link(url, label string) string {
	if label == "" || label == url {
		return strings.TrimPrefix(url, "mailto:")
	}
	if slices.Contains([]string{"http://" + label, "https://" + label, "mailto:" + label, "tel:" + label}, url) {
		return label
	}
	label = strings.NewReplacer(`\`, `\\`, "[", `\[`, "]", `\]`).Replace(label)
	if strings.ContainsAny(url, "() ") {
		url = "<" + url + ">"
	}
	return "[" + label + "](" + url + ")"
}
