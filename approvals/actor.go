package approvals

import (
	"fmt"
	"strings"
)

// Principal is somebody on a platform: "slack:T1/U1". User is the platform's own id, opaque but for one thing: what
// follows its last "/" is the person, what stands before it is where their account lives.
type Principal struct {
	Platform string
	User     string
}

// ParsePrincipal reads "platform:user".
func ParsePrincipal(s string) (Principal, error) {
	platform, user, found := strings.Cut(s, ":")
	if !found || !validPlatform(platform) || user == "" {
		return Principal{}, fmt.Errorf("%q is not a person: write platform:user, like slack:T024/U061", s)
	}
	return Principal{Platform: platform, User: user}, nil
}

// String is the form ParsePrincipal reads; nobody is "".
func (p Principal) String() string {
	if p.IsZero() {
		return ""
	}
	return p.Platform + ":" + p.User
}

// IsZero reports whether p names nobody.
func (p Principal) IsZero() bool { return p == Principal{} }

// SamePerson compares the platform and the person, not the team: in one organisation the same person clicks under
// another team than they wrote under (as Slack does in a Grid). It errs on the side of "the same", so it may only be used to
// withhold something: a second vote, a self-approval. Nobody is the same as nobody.
func (p Principal) SamePerson(q Principal) bool {
	return p.Platform == q.Platform && p.person() == q.person() && p.person() != ""
}

func (p Principal) person() string {
	return p.User[strings.LastIndex(p.User, "/")+1:]
}

// MarshalText writes the form ParsePrincipal reads.
func (p Principal) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads what MarshalText wrote; "" is nobody.
func (p *Principal) UnmarshalText(text []byte) (err error) {
	*p = Principal{}
	if len(text) == 0 {
		return nil
	}
	*p, err = ParsePrincipal(string(text))
	return err
}

// Actor is somebody who did something, as far as it was known at that moment.
type Actor struct {
	Principal Principal `json:"principal"`
	Name      string    `json:"name,omitempty"`     // for display only; may be empty, may be anything
	External  bool      `json:"external,omitempty"` // not a member of the bot's own workspace or server
	Bot       bool      `json:"bot,omitempty"`      // a program

	// Groups are those of Request.NeedsGroups that were looked up and that the actor belongs to, in the same spelling.
	// Unresolved are those that could not be looked up. Both are facts of the moment and are not kept: a Vote keeps the
	// pattern that admitted it.
	Groups     []string `json:"-"`
	Unresolved []string `json:"-"`
}

// IsZero reports whether nobody is meant.
func (a Actor) IsZero() bool { return a.Principal.IsZero() }

// label is how texts name the actor: the name on one line, or else the id.
func (a Actor) label() string {
	if name := oneLine(a.Name); name != "" {
		return name
	}
	if a.IsZero() {
		return "somebody unknown"
	}
	return a.Principal.String()
}

// kept is the actor without the facts of the moment.
func (a Actor) kept() Actor {
	a.Groups, a.Unresolved = nil, nil
	return a
}
