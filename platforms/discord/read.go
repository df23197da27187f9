package discord

import (
	"cmp"

	"github.com/parley-chat/parley/platforms"
)

// Read translates the Raw of a delivery. Whatever is absent, null, unknown or of another type in Discord's part of it is
// skipped; only what this package did not wrap is an error.
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

// interpret reads an envelope. It is pure; the way in and Read share it, so that what is not kept is exactly what Read
// would call Ignored.
func interpret(e envelope) reading {
	switch e.Kind {
	case kindMessage:
		return readMessage(e)
	case kindUpdate:
		return readUpdate(e)
	case kindDelete:
		return readDelete(e)
	case kindInteraction:
		return readInteraction(e)
	}
	return ignored("unknown_kind")
}

// user is a person, a bot or a webhook (doc resources/user).
type user struct {
	ID         string `json:"id"`
	Username   string `json:"username"`
	GlobalName string `json:"global_name"`
	Bot        bool   `json:"bot"`
}

// member is a user in a guild (doc resources/guild). Messages leave its User out.
type member struct {
	User  user     `json:"user"`
	Nick  string   `json:"nick"`
	Roles []string `json:"roles"`
}

// person is a user as the bot sees them. Nobody is external: whoever writes in a guild is a member of it.
func (u user) person(m *member) platforms.User {
	name := cmp.Or(u.GlobalName, u.Username)
	if m != nil {
		name = cmp.Or(m.Nick, name)
	}
	return platforms.User{ID: platforms.UserID(u.ID), Name: name, Bot: u.Bot}
}
