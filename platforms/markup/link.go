package markup

import (
	"fmt"
	"net/url"
	"strings"
	"unicode"
)

// safeLink returns target as a link that people may follow: see Run.Link. What would end or divide a link in some dialect
// is percent-encoded.
func safeLink(target string) (string, bool) {
	if strings.ContainsFunc(target, func(r rune) bool { return unicode.IsControl(r) || r == '\uFFFD' }) {
		return "", false
	}
	var b strings.Builder
	for _, r := range strings.TrimSpace(target) {
		if unicode.IsSpace(r) || strings.ContainsRune("<>|\"`\\^{}", r) || isInvisible(r) {
			for _, c := range []byte(string(r)) {
				fmt.Fprintf(&b, "%%%02X", c)
			}
			continue
		}
		b.WriteRune(r)
	}
	scheme, rest, _ := strings.Cut(b.String(), ":")
	safe := strings.ToLower(scheme) + ":" + rest
	if len(safe)+4*strings.Count(safe, "&") > maxLink || !leads(safe) {
		return "", false
	}
	return safe, true
}

// leads tells whether link is one that may be followed from a chat.
func leads(link string) bool {
	u, err := url.Parse(link)
	if err != nil {
		return false
	}
	switch u.Scheme {
	case "http", "https":
		return u.Host != ""
	case "mailto":
		return u.Opaque != ""
	default:
		return false
	}
}

// isInvisible tells whether r is a mark that changes how its neighbours look or are ordered.
func isInvisible(r rune) bool { return unicode.Is(unicode.Cf, r) }
