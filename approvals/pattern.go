package approvals

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Pattern says who is meant by an entry of a settings list:
//
//	platform:USER             that person, unless they are external
//	platform:TEAM/USER        exactly that account, external or not
//	platform:group:GROUP      the members of a group of people, unless they are external
//	platform:group:TEAM/GROUP the same, of a group of that team
//
// There is no wildcard, and no pattern ever means a bot. The zero Pattern means nobody.
type Pattern struct {
	Platform string
	Team     string // empty in the short forms
	ID       string // of a person, or of a group
	OfGroup  bool
}

// Platform tells ParsePatterns about one platform that may be named.
type Platform struct {
	Name string
	// GroupPrefix is how ids of groups begin where ids of people never do, so that the word "group:" may be left out:
	// "S" for Slack. Empty: it may not.
	GroupPrefix string
}

// Mistake is one entry that cannot be understood.
type Mistake struct {
	Entry   string // as written
	Problem string
	Mend    string // what to write instead
}

func (m *Mistake) Error() string { return fmt.Sprintf("%q %s: %s", m.Entry, m.Problem, m.Mend) }

// ParsePatterns reads a comma-separated list. An empty list is no patterns, and no patterns mean nobody. If platforms
// are given, no others may be named. The error joins a *Mistake for every wrong entry; then there are no patterns at
// all.
func ParsePatterns(list string, platforms ...Platform) ([]Pattern, error) {
	if strings.TrimSpace(list) == "" {
		return nil, nil
	}
	var patterns []Pattern
	var mistakes []error
	for entry := range strings.SplitSeq(list, ",") {
		p, mistake := parsePattern(strings.TrimSpace(entry), platforms)
		switch {
		case mistake != nil:
			mistakes = append(mistakes, mistake)
		case !slices.Contains(patterns, p):
			patterns = append(patterns, p)
		}
	}
	if mistakes != nil {
		return nil, errors.Join(mistakes...)
	}
	return patterns, nil
}

func parsePattern(entry string, platforms []Platform) (Pattern, *Mistake) {
	wrong := func(problem, mend string) (Pattern, *Mistake) { return Pattern{}, &Mistake{entry, problem, mend} }

	if entry == "" {
		return wrong("is an empty entry", "remove the comma too many")
	}
	platform, rest, found := strings.Cut(entry, ":")
	if !found {
		return wrong("names no platform", "write platform:USER, like slack:U061F7AUR")
	}
	if !validPlatform(platform) {
		return wrong("does not begin with the name of a platform", "write it in small letters, like slack:U061F7AUR")
	}
	known := slices.IndexFunc(platforms, func(p Platform) bool { return p.Name == platform })
	if known < 0 && len(platforms) > 0 {
		return wrong("names an unknown platform", "use one of "+platformNames(platforms))
	}
	id, ofGroup := strings.CutPrefix(rest, "group:")
	team, id := cutTeam(id)
	if problem := idProblem(team, id); problem != "" {
		return wrong(problem, fmt.Sprintf("write %[1]s:USER, %[1]s:TEAM/USER or %[1]s:group:GROUP, with ids, not names", platform))
	}
	if known >= 0 && platforms[known].GroupPrefix != "" {
		ofGroup = ofGroup || strings.HasPrefix(id, platforms[known].GroupPrefix)
	}
	return Pattern{Platform: platform, Team: strings.TrimSuffix(team, "/"), ID: id, OfGroup: ofGroup}, nil
}

// cutTeam splits "T1/U1" into "T1/" and "U1"; without a "/" the team is empty.
func cutTeam(s string) (team, id string) {
	at := strings.Index(s, "/") + 1
	return s[:at], s[at:]
}

// idProblem finds what people write by mistake for an id: names, mentions, wildcards.
func idProblem(team, id string) string {
	switch {
	case team == "/":
		return "has no team before the /"
	case id == "":
		return "has no id at its end"
	case strings.ContainsAny(id, "/"):
		return "has more than one /"
	case strings.ContainsAny(team+id, "*?"):
		return "has a wildcard, and there are none"
	case strings.ContainsAny(team+id, "@<>#"):
		return "is a mention or a name"
	case strings.ContainsFunc(team+id, notInID):
		return "has a sign that no id has"
	}
	return ""
}

func notInID(r rune) bool {
	return r <= ' ' || r > '~' || strings.ContainsRune(`:,;"'`+"`"+`\()[]{}`, r)
}

func validPlatform(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '_'
	})
}

func platformNames(platforms []Platform) string {
	names := make([]string, len(platforms))
	for i, p := range platforms {
		names[i] = p.Name
	}
	return orList(names)
}

// String is the long form, which ParsePatterns reads without knowing any platform.
func (p Pattern) String() string {
	if p.ID == "" {
		return ""
	}
	if p.OfGroup {
		return p.Platform + ":group:" + p.id()
	}
	return p.Platform + ":" + p.id()
}

// id is the id with its team, if one is named.
func (p Pattern) id() string {
	if p.Team == "" {
		return p.ID
	}
	return p.Team + "/" + p.ID
}

// Group returns the group whose membership decides, in the spelling of Actor.Groups. ok is false for a person.
func (p Pattern) Group() (platform, group string, ok bool) {
	if !p.OfGroup {
		return "", "", false
	}
	return p.Platform, p.id(), true
}

// Matches reports whether the actor is meant.
func (p Pattern) Matches(a Actor) bool {
	switch {
	case p.ID == "" || a.Bot || p.Platform != a.Principal.Platform:
		return false
	case p.OfGroup:
		return !a.External && slices.Contains(a.Groups, p.id())
	case p.Team != "":
		return a.Principal.User == p.id()
	}
	return !a.External && a.Principal.person() == p.ID
}

// MarshalText writes the form ParsePatterns reads. A pattern that means nobody is not written.
func (p Pattern) MarshalText() ([]byte, error) {
	if p.ID == "" {
		return nil, errors.New("approvals: a pattern that means nobody")
	}
	return []byte(p.String()), nil
}

// UnmarshalText reads one pattern.
func (p *Pattern) UnmarshalText(text []byte) error {
	parsed, mistake := parsePattern(string(text), nil)
	if mistake != nil {
		return mistake
	}
	*p = parsed
	return nil
}
