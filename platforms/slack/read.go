package slack

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/parley-chat/parley/platforms"
)

// Read translates the Raw of a delivery. Whatever is absent, null or of another type in Slack's part of it is skipped; only
// what this package did not wrap is an error.
func (a *Adapter) Read(raw []byte) (platforms.Inbound, error) {
	e, err := unwrap(raw)
	if err != nil {
		return nil, err
	}
	return interpret(e).in, nil
}

// reading is everything that can be told about an envelope.
type reading struct {
	in           platforms.Inbound
	keys         []platforms.Key
	conversation platforms.Conversation
	urgent       bool
}

// ignored is a reading that nobody has to act on. why is a constant, for counting.
func ignored(why string) reading {
	return reading{in: platforms.Ignored{Why: why}}
}

func (r reading) isIgnored() (why string, ok bool) {
	i, ok := r.in.(platforms.Ignored)
	return i.Why, ok
}

// interpret reads an envelope. It is pure; the way in and Read share it, so that what is acknowledged without being kept is
// exactly what Read would call Ignored.
func interpret(e envelope) reading {
	switch e.Kind {
	case kindEvent:
		return readCallback(e)
	case kindInteractive:
		return readInteraction(e)
	case kindCommand:
		return readCommand(e)
	}
	return ignored("unknown_kind")
}

// person is a user as the bot sees them. team is the user's own, empty if Slack did not say. Whoever is of the bot's own
// organisation counts as of its workspace, so that one person has one id; everybody else is external.
func (self identity) person(team, id, name string) platforms.User {
	if team == "" || team == self.Enterprise {
		team = self.Team
	}
	return platforms.User{
		ID:       platforms.UserID(team + "/" + id),
		Name:     name,
		External: team != self.Team,
	}
}

func key(kind string, parts ...string) platforms.Key {
	k := kind + ":"
	for i, p := range parts {
		if i > 0 {
			k += "/"
		}
		k += p
	}
	return platforms.Key(k)
}

// digest identifies a payload that brought no id of its own.
func digest(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:16])
}
