package discord

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/parley-chat/parley/platforms"
)

// groupsFor is how long the roles of a member are believed.
const groupsFor = time.Minute

// keptMembers is how many members are remembered before those no longer believed are forgotten.
const keptMembers = 1000

// groups remembers the roles of members for a minute, by guild and user.
type groups struct {
	mu   sync.Mutex
	seen map[string]membership
}

type membership struct {
	member bool
	roles  []string
	until  time.Time
}

// InGroup reports whether the user has the role, "GUILD/ROLE", by what Discord said within the last minute. The role that is
// the guild itself, @everyone, is every member's. The error is a *platforms.Error.
func (a *Adapter) InGroup(ctx context.Context, group string, user platforms.UserID) (bool, error) {
	guild, role, ok := strings.Cut(group, "/")
	if !ok || !isSnowflake(guild) || !isSnowflake(role) {
		return false, failed("look up a member", platforms.Refused, "no_role")
	}
	if !isSnowflake(string(user)) {
		return false, failed("look up a member", platforms.Refused, "no_user")
	}
	m, err := a.membership(ctx, guild, string(user))
	if err != nil {
		return false, err
	}
	return m.member && (role == guild || slices.Contains(m.roles, role)), nil
}

func (a *Adapter) membership(ctx context.Context, guild, user string) (membership, error) {
	id := guild + "/" + user
	if m, ok := a.groups.get(id, a.now()); ok {
		return m, nil
	}
	var told member
	err := a.do(ctx, call{op: "look up a member", method: http.MethodGet, path: "guilds/" + guild + "/members/" + user}, &told)
	if err != nil && codeOf(err) != codeUnknownMember {
		return membership{}, err
	}
	m := membership{member: err == nil, roles: told.Roles, until: a.now().Add(groupsFor)}
	a.groups.put(id, m, a.now())
	return m, nil
}

func (g *groups) get(id string, now time.Time) (membership, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	m, ok := g.seen[id]
	return m, ok && now.Before(m.until)
}

func (g *groups) put(id string, m membership, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.seen == nil {
		g.seen = map[string]membership{}
	}
	if len(g.seen) >= keptMembers {
		for id, old := range g.seen {
			if !now.Before(old.until) {
				delete(g.seen, id)
			}
		}
	}
	g.seen[id] = m
}
