package slack

import (
	"cmp"
	"context"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parley-chat/parley/platforms"
)

const (
	// namesFor is how long a name is believed, and noNameFor how long one that could not be had is not asked for again.
	namesFor  = time.Hour
	noNameFor = time.Minute
	// keptNames is how many names are remembered before those that are no longer believed, or else all, are forgotten.
	keptNames = 2000
	// longestName is the longest name that is shown, in characters.
	longestName = 80
)

// names remembers what people are called.
type names struct {
	missing atomic.Bool // the app may not ask

	mu   sync.Mutex
	seen map[string]calledName
}

// calledName is what users.info said of somebody.
type calledName struct {
	name  string
	err   error
	until time.Time
}

// Name is what the workspace calls a person, "TEAM/USER" or "USER": their display name, else their full name. It needs the
// scope users:read. Names are remembered for an hour. The error is a *platforms.Error.
func (a *Adapter) Name(ctx context.Context, user platforms.UserID) (string, error) {
	const op = "users.info"
	id := string(user)[strings.LastIndexByte(string(user), '/')+1:]
	if id == "" {
		return "", failed(op, platforms.Refused, "no_user")
	}
	if n, ok := a.names.get(id, a.now()); ok {
		return n.name, n.err
	}
	if a.names.missing.Load() {
		return "", failed(op, platforms.Refused, "missing_scope")
	}
	name, err := a.askName(ctx, id)
	if ctx.Err() != nil {
		return name, err // which says nothing about the name
	}
	lasts := namesFor
	if err != nil {
		lasts = noNameFor
	}
	a.names.put(id, calledName{name: name, err: err, until: a.now().Add(lasts)}, a.now())
	return name, err
}

func (a *Adapter) askName(ctx context.Context, id string) (string, error) {
	const op = "users.info"
	var info struct {
		User struct {
			Name     string `json:"name"`
			RealName string `json:"real_name"`
			Profile  struct {
				DisplayName string `json:"display_name"`
				RealName    string `json:"real_name"`
			} `json:"profile"`
		} `json:"user"`
	}
	err := a.lookUp(ctx, op, url.Values{"user": {id}}, &info)
	if notGranted(err) && a.names.missing.CompareAndSwap(false, true) {
		a.log.Warn("slack: people are shown by their ids: the bot token lacks the scope users:read")
	}
	if err != nil {
		return "", err
	}
	u := info.User
	name := cmp.Or(oneName(u.Profile.DisplayName), oneName(u.Profile.RealName), oneName(u.RealName), oneName(u.Name))
	if name == "" {
		return "", failed(op, platforms.Refused, "no_name")
	}
	return name, nil
}

// oneName is a name on one line, of a length that fits, without what nobody sees.
func oneName(s string) string {
	s = strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && hides(r) {
			return -1
		}
		return r
	}, s)
	s, _ = ellipsis(s, longestName)
	return s
}

func (n *names) get(id string, now time.Time) (calledName, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	c, ok := n.seen[id]
	return c, ok && now.Before(c.until)
}

func (n *names) put(id string, c calledName, now time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.seen) >= keptNames {
		n.forget(now)
	}
	if n.seen == nil {
		n.seen = map[string]calledName{}
	}
	n.seen[id] = c
}

// forget makes room.
func (n *names) forget(now time.Time) {
	for id, c := range n.seen {
		if !now.Before(c.until) {
			delete(n.seen, id)
		}
	}
	if len(n.seen) >= keptNames {
		clear(n.seen)
	}
}
