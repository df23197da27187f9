package slacktwin

import (
	"regexp"
	"slices"
)

func (t *Twin) reactionsAdd(a args) (map[string]any, error) {
	m, err := t.reacted(a)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(m.Reactions, func(r Reaction) bool { return r.Name == a["name"] })
	if i < 0 {
		if len(m.Reactions) >= maxReactions {
			return nil, refuse("too_many_emoji")
		}
		m.Reactions = append(m.Reactions, Reaction{Name: a["name"]})
		i = len(m.Reactions) - 1
	}
	r := &m.Reactions[i]
	if slices.Contains(r.Users, t.opt.BotUser) {
		return nil, refuse("already_reacted")
	}
	r.Users = append(r.Users, t.opt.BotUser)
	t.messageChanged(m)
	return map[string]any{}, nil
}

func (t *Twin) reactionsRemove(a args) (map[string]any, error) {
	m, err := t.reacted(a)
	if err != nil {
		return nil, err
	}
	for i := range m.Reactions {
		r := &m.Reactions[i]
		u := slices.Index(r.Users, t.opt.BotUser)
		if r.Name != a["name"] || u < 0 {
			continue
		}
		r.Users = slices.Delete(r.Users, u, u+1)
		if len(r.Users) == 0 {
			m.Reactions = slices.Delete(m.Reactions, i, i+1)
		}
		t.messageChanged(m)
		return map[string]any{}, nil
	}
	return nil, refuse("no_reaction")
}

func (t *Twin) reactionsGet(a args) (map[string]any, error) {
	r, err := t.botRoom(a["channel"])
	if err != nil {
		return nil, err
	}
	m := r.find(a["timestamp"])
	if m == nil {
		return nil, refuse("message_not_found")
	}
	return map[string]any{"type": "message", "channel": r.ID, "message": t.wire(m, true)}, nil
}

var emojiName = regexp.MustCompile(`^[a-z0-9_+'\-]{1,100}(::skin-tone-[2-6])?$`)

// reacted returns the message that a reaction is about, doc m/reactions.add.
func (t *Twin) reacted(a args) (*message, error) {
	if !emojiName.MatchString(a["name"]) {
		return nil, refuse("invalid_name")
	}
	if a["channel"] == "" || a["timestamp"] == "" {
		return nil, refuse("no_item_specified")
	}
	r, err := t.botRoom(a["channel"])
	if err != nil {
		return nil, err
	}
	if !validTS(a["timestamp"]) {
		return nil, refuse("bad_timestamp")
	}
	m := r.find(a["timestamp"])
	if m == nil {
		return nil, refuse("message_not_found")
	}
	return m, nil
}

func reactionsJSON(rs []Reaction) []any {
	var out []any
	for _, r := range rs {
		out = append(out, map[string]any{"name": r.Name, "users": r.Users, "count": len(r.Users)})
	}
	return out
}
