package bridge

import (
	"cmp"
	"context"
	"maps"
	"sync"
	"time"

	"github.com/parley-chat/parley/approvals"
	"github.com/parley-chat/parley/platforms"
)

// namesWithin is how long names are looked for. They are help: a decision does not wait longer for them.
const namesWithin = 2 * time.Second

// named fills in what a person is called, if their platform tells. Otherwise they keep the name they came with.
func (b *Bridge) named(ctx context.Context, a approvals.Actor) approvals.Actor {
	ctx, cancel := context.WithTimeout(ctx, namesWithin)
	defer cancel()
	a.Name = cmp.Or(b.nameOf(ctx, a.Principal.Platform, platforms.UserID(a.Principal.User)), a.Name)
	return a
}

// withNames fills in what the requester and the people of the policy are called, all of it within namesWithin.
func (b *Bridge) withNames(ctx context.Context, requester approvals.Actor, p *approvals.Policy) approvals.Actor {
	ctx, cancel := context.WithTimeout(ctx, namesWithin)
	defer cancel()
	found := make([]string, len(p.Deciders))
	var looking sync.WaitGroup
	for i, decider := range p.Deciders {
		if !decider.OfGroup && p.Names[decider.String()] == "" {
			looking.Go(func() { found[i] = b.nameOf(ctx, decider.Platform, platforms.UserID(userID(decider))) })
		}
	}
	if !requester.IsZero() {
		requester = b.named(ctx, requester)
	}
	looking.Wait()
	names := make(map[string]string)
	maps.Copy(names, p.Names)
	for i, decider := range p.Deciders {
		if found[i] != "" {
			names[decider.String()] = found[i]
		}
	}
	p.Names = names
	return requester
}

// nameOf is what a platform calls a person, or "".
func (b *Bridge) nameOf(ctx context.Context, platform string, user platforms.UserID) string {
	directory, ok := b.adapters[platform].(platforms.Directory)
	if !ok {
		return ""
	}
	name, err := directory.Name(ctx, user)
	if err != nil {
		b.Logger.Debug("a name could not be looked up", "platform", platform, "error", err)
		return ""
	}
	return name
}
