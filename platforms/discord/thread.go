package discord

import (
	"context"
	"net/http"
	"strings"
	"sync"

	"github.com/parley-chat/parley/platforms/markup"
)

const (
	maxThreadName = 100
	// archiveAfter is after how many minutes without a message a thread leaves the list.
	archiveAfter = 1440
	// someName is what a thread is called whose message tells nothing.
	someName = "Conversation"
)

// place returns the channel in which a conversation goes on. A thread that may not exist yet is opened. Where that is not
// possible, for lack of permission or of room, it is the thread's channel.
func (a *Adapter) place(ctx context.Context, at address) (string, error) {
	if at.Thread == "" {
		return at.Channel, nil
	}
	if _, known := a.directory.get(at.Thread); known {
		return at.Thread, nil
	}
	if a.unopened.has(at) {
		return at.Channel, nil
	}
	err := a.openThread(ctx, at, a.threadName(ctx, at))
	if codeOf(err) == codeTitleBlocked {
		err = a.openThread(ctx, at, someName)
	}
	switch codeOf(err) {
	case codeThreadExists, codeUnknownMessage: // or it was not opened from a message
		return at.Thread, nil
	case codeTooManyThreads, codeNoPermission, codeNoAccess, codeWrongChannel, codeSystemMessage:
		a.log.Warn("discord: a thread could not be opened; the answer goes into the channel", "channel", at.Channel, "code", codeOf(err))
		a.unopened.add(at)
		return at.Channel, nil
	}
	if err != nil {
		return "", err
	}
	a.directory.add(channel{ID: at.Thread, Guild: at.Guild, Parent: at.Channel, Type: publicThread})
	return at.Thread, nil
}

// openThread opens a thread from its message; it gets the message's id (doc resources/channel).
func (a *Adapter) openThread(ctx context.Context, at address, name string) error {
	body := struct {
		Name         string `json:"name"`
		ArchiveAfter int    `json:"auto_archive_duration"`
	}{name, archiveAfter}
	path := "channels/" + at.Channel + "/messages/" + at.Thread + "/threads"
	return a.do(ctx, call{op: "open a thread", method: http.MethodPost, path: path, body: body}, nil)
}

// threadName is the beginning of the message from which a thread is opened.
func (a *Adapter) threadName(ctx context.Context, at address) string {
	var m message
	c := call{op: "look up a message", method: http.MethodGet, path: "channels/" + at.Channel + "/messages/" + at.Thread}
	if a.do(ctx, c, &m) != nil {
		return someName
	}
	self := a.identity()
	self.Role = a.directory.role(at.Guild)
	text := markup.Plain(markup.Parse(commonMark(m.text(), m.Mentions, self)))
	if name, _ := markup.Ellipsis(text, maxThreadName); strings.TrimSpace(name) != "" {
		return name
	}
	return someName
}

// unarchive takes a thread out of the archive, which works unless it is locked.
func (a *Adapter) unarchive(ctx context.Context, thread string) error {
	body := map[string]bool{"archived": false}
	return a.do(ctx, call{op: "take a thread out of the archive", method: http.MethodPatch, path: "channels/" + thread, body: body}, nil)
}

// unopened remembers the conversations whose thread could not be opened, and in which of them something was posted.
type unopened struct {
	mu  sync.Mutex
	all map[address]bool
}

func (u *unopened) add(at address) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.all == nil {
		u.all = map[address]bool{}
	}
	u.all[at] = false
	shrink(u.all)
}

func (u *unopened) has(at address) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	_, ok := u.all[at]
	return ok
}

func (u *unopened) isFirst(at address) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return !u.all[at]
}

func (u *unopened) posted(at address) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.all[at] = true
}
