package discord

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"github.com/parley-chat/parley/platforms"
)

// channel is a channel or a thread (doc resources/channel).
type channel struct {
	ID     string `json:"id"`
	Guild  string `json:"guild_id"`
	Parent string `json:"parent_id"` // of a thread its channel; of a channel perhaps a category
	Type   int    `json:"type"`
	Last   string `json:"last_message_id"` // perhaps of a message that is gone
}

// guild is the part of GUILD_CREATE and of role events that is read here.
type guild struct {
	ID       string    `json:"id"`
	Channels []channel `json:"channels"`
	Threads  []channel `json:"threads"`
	Roles    []role    `json:"roles"`
}

type role struct {
	ID   string `json:"id"`
	Tags struct {
		Bot string `json:"bot_id"`
	} `json:"tags"`
}

// directory remembers what Discord tells of channels, threads and the bot's roles. What it does not know is looked up.
type directory struct {
	mu       sync.Mutex
	channels map[string]channel
	roles    map[string]string // the bot's managed role, by guild
}

// addGuild remembers a guild. self is the bot's user.
func (d *directory) addGuild(g guild, self string) {
	for _, c := range append(g.Channels, g.Threads...) {
		c.Guild = g.ID
		d.add(c)
	}
	for _, r := range g.Roles {
		d.addRole(g.ID, r, self)
	}
}

func (d *directory) add(c channel) {
	if !isSnowflake(c.ID) {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.channels == nil {
		d.channels = map[string]channel{}
	}
	d.channels[c.ID] = c
}

func (d *directory) addRole(guild string, r role, self string) {
	if r.Tags.Bot == "" || r.Tags.Bot != self {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.roles == nil {
		d.roles = map[string]string{}
	}
	d.roles[guild] = r.ID
}

func (d *directory) remove(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.channels, id)
}

func (d *directory) get(id string) (channel, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	c, ok := d.channels[id]
	return c, ok
}

func (d *directory) role(guild string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.roles[guild]
}

// channelOf tells about a channel from memory, else from Discord. ok is false for one that is gone or closed to us.
func (a *Adapter) channelOf(ctx context.Context, id string) (c channel, ok bool, err error) {
	if c, ok := a.directory.get(id); ok {
		return c, true, nil
	}
	err = a.do(ctx, call{op: "look up a channel", method: http.MethodGet, path: "channels/" + id}, &c)
	switch {
	case err != nil && platforms.FailureOf(err) == platforms.Refused:
		return channel{}, false, nil
	case err != nil:
		return channel{}, false, err
	case c.ID != id:
		return channel{}, false, errors.New("discord: another channel than the one asked for")
	}
	a.directory.add(c)
	return c, true, nil
}

// whereIs tells what a message does not tell about its channel. ok is false where nothing is to be taken from. An error means
// that nobody knows now.
func (a *Adapter) whereIs(ctx context.Context, m message) (w where, ok bool, err error) {
	if m.GuildID == "" {
		return where{}, true, nil
	}
	c := channel{ID: m.ChannelID}
	if m.ChannelType != nil {
		c.Type = *m.ChannelType
	}
	if m.ChannelType == nil || isThread(c.Type) {
		if c, ok, err = a.channelOf(ctx, m.ChannelID); err != nil || !ok {
			return where{}, false, err
		}
	}
	w = where{Guild: m.GuildID}
	base := c.ID
	if isThread(c.Type) {
		w.Thread, w.Parent, base = true, c.Parent, c.Parent
	}
	w.InChannel = a.answersIn(base) == InChannel
	w.Quiet = a.opt.Channels[base].OnlyMentioned
	return w, !a.opt.Channels[base].Muted, nil
}
