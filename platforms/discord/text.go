package discord

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

// entity is everything that Discord writes between < and > and shows as something else (doc reference, message formatting).
var entity = regexp.MustCompile(`<(?:@[!&]?\d+|#\d+|a?:\w+:\d+|t:-?\d+(?::[a-zA-Z])?|/[^<>:\n]+:\d+)>`)

// commonMark turns what a person wrote, in Discord's form, into CommonMark: mentions, channels, emoji, times. The mention of
// the bot is left out together with the space around it. The marks of Discord's Markdown are nearly CommonMark's.
func commonMark(s string, mentions []user, self identity) string {
	var b strings.Builder
	for {
		at := entity.FindStringIndex(s)
		if at == nil {
			b.WriteString(s)
			return strings.TrimSpace(b.String())
		}
		b.WriteString(s[:at[0]])
		inner := s[at[0]+1 : at[1]-1]
		s = s[at[1]:]
		if self.isNamed(inner) {
			s = joinAround(b.String(), s)
			continue
		}
		b.WriteString(reference(inner, mentions))
	}
}

// isNamed tells whether what stands between < and > mentions the bot.
func (self identity) isNamed(inner string) bool {
	return inner == "@"+self.User || inner == "@!"+self.User || self.Role != "" && inner == "@&"+self.Role
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

// reference is the text of what stands between < and >.
func reference(inner string, mentions []user) string {
	switch {
	case strings.HasPrefix(inner, "@&"):
		return "@" + inner[2:]
	case strings.HasPrefix(inner, "@"):
		id := strings.TrimPrefix(inner[1:], "!")
		for _, u := range mentions {
			if name := u.person(nil).Name; u.ID == id && name != "" {
				return "@" + name
			}
		}
		return "@" + id
	case strings.HasPrefix(inner, "#"):
		return inner
	case strings.HasPrefix(inner, "/"):
		name, _, _ := strings.Cut(inner, ":")
		return name
	case strings.HasPrefix(inner, "t:"):
		return moment(inner)
	}
	_, name, _ := strings.Cut(inner, ":") // an emoji
	name, _, _ = strings.Cut(name, ":")
	return ":" + name + ":"
}

// moment is the time in "t:SECONDS" or "t:SECONDS:STYLE".
func moment(inner string) string {
	seconds, err := strconv.ParseInt(strings.Split(inner, ":")[1], 10, 64)
	if err != nil || seconds < -1<<40 || seconds > 1<<40 {
		return inner
	}
	return time.Unix(seconds, 0).UTC().Format("2006-01-02 15:04:05 UTC")
}
