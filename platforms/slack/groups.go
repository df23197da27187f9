package slack

import (
	"context"
	"sync"
	"time"

	"github.com/parley-chat/parley/platforms"
)

// groupsFor is how long a list of members is believed.
const groupsFor = time.Minute

// groups remembers the members of user groups for a minute.
type groups struct {
	mu   sync.Mutex
	seen map[string]membership
}

type membership struct {
	users map[string]bool
	until time.Time
}

// InGroup reports whether the user belongs to the user group, "S…", by what Slack said within the last minute. People of
// other workspaces belong to none. The error is a *platforms.Error; it needs the scope usergroups:read.
func (a *Adapter) InGroup(ctx context.Context, group string, user platforms.UserID) (bool, error) {
	team, id, ok := parseUser(user)
	if !ok {
		return false, failed("usergroups.users.list", platforms.Refused, "no_user")
	}
	self := a.self.Load()
	if self == nil {
		return false, failed("usergroups.users.list", platforms.Unreachable, "not_started")
	}
	if self.person(team, id, "").External {
		return false, nil
	}
	users, err := a.members(ctx, group)
	if err != nil {
		return false, err
	}
	return users[id], nil
}

func (a *Adapter) members(ctx context.Context, group string) (map[string]bool, error) {
	if users, ok := a.groups.get(group, a.now()); ok {
		return users, nil
	}
	users := map[string]bool{}
	err := a.do(ctx, "usergroups.users.list", "", func(ctx context.Context) error {
		ids, err := a.api.GetUserGroupMembersContext(ctx, group)
		for _, id := range ids {
			users[id] = true
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	a.groups.put(group, membership{users: users, until: a.now().Add(groupsFor)})
	return users, nil
}

func (g *groups) get(group string, now time.Time) (map[string]bool, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	m, ok := g.seen[group]
	return m.users, ok && now.Before(m.until)
}

func (g *groups) put(group string, m membership) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.seen == nil {
		g.seen = map[string]membership{}
	}
	g.seen[group] = m
}
