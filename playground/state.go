package playground

import (
	"cmp"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strconv"

	"github.com/parley-chat/parley/platforms/slack/slacktwin"
)

// defaultLimit and maxLimit bound how many top-level messages a state shows; the page asks for more as it needs them.
const (
	defaultLimit = 100
	maxLimit     = 5000
)

// platform is one entry of the page's tabs.
type platform struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Workspace string `json:"workspace"`
}

// view is all that the page shows of Slack to one person at one moment.
type view struct {
	Version  uint64    `json:"version"` // what is seen is at least as new
	Platform platform  `json:"platform"`
	As       string    `json:"as"`
	Bot      person    `json:"bot"`
	People   []person  `json:"people"` // the bot is not among them
	Channels []channel `json:"channels"`
	Commands []Command `json:"commands"`
	Channel  string    `json:"channel"`
	Messages []message `json:"messages"` // the top level, oldest first
	Earlier  int       `json:"earlier"`  // so many more before them
	Thread   *thread   `json:"thread"`   // nil: none was asked for, or it is gone
	Private  []message `json:"private"`  // what only this person sees, in this channel
	Modal    *modal    `json:"modal"`    // the topmost
	Statuses []status  `json:"statuses"` // of this channel
}

type person struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Bot      bool   `json:"bot,omitempty"`
	Guest    bool   `json:"guest,omitempty"`
	Approver bool   `json:"approver,omitempty"`
	Direct   string `json:"direct,omitempty"` // the direct message with the bot
}

type channel struct {
	ID       string   `json:"id"`
	Name     string   `json:"name"`
	Direct   bool     `json:"direct,omitempty"`
	Private  bool     `json:"private,omitempty"`
	Archived bool     `json:"archived,omitempty"`
	Members  []string `json:"members"` // null: everybody
	Latest   string   `json:"latest"`  // the newest ts that somebody else wrote, replies too
	Empty    bool     `json:"empty"`
}

type thread struct {
	TS       string    `json:"ts"`
	Messages []message `json:"messages"`
}

type message struct {
	TS          string               `json:"ts"`
	Thread      string               `json:"thread,omitempty"` // the parent's ts, of a reply
	User        string               `json:"user"`
	Bot         bool                 `json:"bot,omitempty"`
	Mine        bool                 `json:"mine,omitempty"`
	Subtype     string               `json:"subtype,omitempty"`
	Text        string               `json:"text"`
	Source      string               `json:"source,omitempty"` // of one's own: what was typed
	Markdown    bool                 `json:"markdown,omitempty"`
	Blocks      json.RawMessage      `json:"blocks,omitempty"`
	Attachments json.RawMessage      `json:"attachments,omitempty"`
	Chunks      []json.RawMessage    `json:"chunks,omitempty"`
	Files       []file               `json:"files,omitempty"`
	Reactions   []slacktwin.Reaction `json:"reactions,omitempty"`
	Edited      bool                 `json:"edited,omitempty"`
	Streaming   bool                 `json:"streaming,omitempty"`
	Replies     int                  `json:"replies,omitempty"`
	ReplyUsers  []string             `json:"replyUsers,omitempty"`
	LatestReply string               `json:"latestReply,omitempty"`
	Ephemeral   bool                 `json:"ephemeral,omitempty"`
}

type file struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	Size  int    `json:"size"`
	Image bool   `json:"image,omitempty"`
	Here  bool   `json:"here"` // its content can be fetched
}

type modal struct {
	ID     string          `json:"id"`
	Hash   string          `json:"hash"`
	Title  string          `json:"title"`
	Submit string          `json:"submit"`
	Close  string          `json:"close"`
	Blocks json.RawMessage `json:"blocks"`
}

type status struct {
	Thread string `json:"thread"`
	State  string `json:"state"`
	Text   string `json:"text"`
	Title  string `json:"title"`
}

func (p *Playground) platforms(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, map[string][]platform{"platforms": {p.platform()}})
}

func (p *Playground) platform() platform {
	return platform{ID: "slack", Name: "Slack", Workspace: p.opt.Workspace}
}

// state answers what a person sees: ?as=USER&channel=ID&thread=TS&limit=N. Without as it is the first person, without
// channel their first one.
func (p *Playground) state(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	limit, err := limitOf(q.Get("limit"))
	if err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	v, err := p.view(q.Get("as"), q.Get("channel"), q.Get("thread"), limit)
	if err != nil {
		refuse(w, http.StatusNotFound, err.Error())
		return
	}
	answer(w, http.StatusOK, v)
}

func limitOf(given string) (int, error) {
	if given == "" {
		return defaultLimit, nil
	}
	n, err := strconv.Atoi(given)
	if err != nil || n < 1 || n > maxLimit {
		return 0, fmt.Errorf("limit must be a number from 1 to %d", maxLimit)
	}
	return n, nil
}

// view reads the stand-in. The version is read first: a change made meanwhile makes a newer one.
func (p *Playground) view(as, in, threadTS string, limit int) (view, error) {
	version, _, _ := p.ticks.now()
	users, all := p.slack.Users(), p.slack.Channels()
	as, err := p.personOf(users, as)
	if err != nil {
		return view{}, err
	}
	mine := slices.DeleteFunc(slices.Clone(all), func(c slacktwin.Channel) bool { return !has(c, as) })
	in, err = channelOf(mine, in)
	if err != nil {
		return view{}, err
	}

	read := reader{as: as, names: newNames(users, all)}
	top := read.messages(p.slack.Messages(in), topLevel)
	v := view{
		Version: version, Platform: p.platform(), As: as, Commands: p.opt.Commands, Channel: in,
		Bot:      p.person(botOf(p.slack), nil),
		People:   p.people(users, all),
		Channels: p.channels(mine, as),
		Messages: top[max(0, len(top)-limit):],
		Earlier:  max(0, len(top)-limit),
		Private:  read.messages(p.slack.Ephemerals(as), func(m slacktwin.Message) bool { return m.Channel == in }),
		Modal:    topmost(p.slack.Views(as)),
		Statuses: statusesIn(p.slack.Statuses(), in),
	}
	if replies := p.threadOf(in, threadTS); len(replies) > 0 {
		v.Thread = &thread{TS: threadTS, Messages: read.messages(replies, everything)}
	}
	return v, nil
}

func (p *Playground) threadOf(channel, ts string) []slacktwin.Message {
	if ts == "" {
		return nil
	}
	return p.slack.Thread(channel, ts)
}

// personOf returns the person asked for, or else the first one, rather not an approver: who asks for something must not
// be the one to approve it.
func (p *Playground) personOf(users []slacktwin.User, id string) (string, error) {
	people := slices.DeleteFunc(slices.Clone(users), func(u slacktwin.User) bool { return u.Bot || id != "" && u.ID != id })
	if len(people) == 0 && id == "" {
		return "", fmt.Errorf("nobody is there to write as")
	}
	if len(people) == 0 {
		return "", fmt.Errorf("there is no person %q", id)
	}
	first := slices.IndexFunc(people, func(u slacktwin.User) bool { return !slices.Contains(p.opt.Approvers, u.ID) })
	return people[max(first, 0)].ID, nil
}

// channelOf returns the channel asked for, or the first one; "" if there is none at all.
func channelOf(mine []slacktwin.Channel, id string) (string, error) {
	if id == "" && len(mine) > 0 {
		return mine[0].ID, nil
	}
	if id == "" || slices.ContainsFunc(mine, func(c slacktwin.Channel) bool { return c.ID == id }) {
		return id, nil
	}
	return "", fmt.Errorf("this person is in no channel %q", id)
}

func (p *Playground) people(users []slacktwin.User, channels []slacktwin.Channel) []person {
	list := []person{}
	for _, u := range users {
		if !u.Bot {
			list = append(list, p.person(u, channels))
		}
	}
	return list
}

func (p *Playground) person(u slacktwin.User, channels []slacktwin.Channel) person {
	direct := slices.IndexFunc(channels, func(c slacktwin.Channel) bool { return c.IM && slices.Contains(c.Members, u.ID) })
	v := person{
		ID: u.ID, Name: cmp.Or(u.Name, u.ID), Bot: u.Bot, Guest: u.Guest || u.Team != "" && !u.Bot && u.Team != botOf(p.slack).Team,
		Approver: slices.Contains(p.opt.Approvers, u.ID),
	}
	if direct >= 0 {
		v.Direct = channels[direct].ID
	}
	return v
}

func (p *Playground) channels(mine []slacktwin.Channel, as string) []channel {
	private := p.slack.Ephemerals(as)
	list := []channel{}
	for _, c := range mine {
		said := p.slack.Messages(c.ID)
		latest := ""
		for _, m := range slices.Concat(said, private) {
			if m.Channel == c.ID && m.User != as {
				latest = max(latest, m.TS)
			}
		}
		list = append(list, channel{
			ID: c.ID, Name: c.Name, Direct: c.IM, Private: c.Private, Archived: c.Archived, Members: c.Members,
			Latest: latest, Empty: len(said) == 0,
		})
	}
	return list
}

// reader turns messages into what one person sees of them.
type reader struct {
	as    string
	names names
}

func (r reader) messages(all []slacktwin.Message, which func(slacktwin.Message) bool) []message {
	list := []message{}
	for _, m := range all {
		if which(m) {
			list = append(list, r.message(m))
		}
	}
	return list
}

func (r reader) message(m slacktwin.Message) message {
	v := message{
		TS: m.TS, User: m.User, Bot: m.BotID != "", Subtype: m.Subtype, Text: m.Text, Markdown: m.Markdown,
		Blocks: m.Blocks, Attachments: m.Attachments, Chunks: m.Chunks, Reactions: m.Reactions,
		Edited: m.EditedTS != "", Streaming: m.Streaming, Ephemeral: m.Ephemeral,
		Replies: m.Replies, ReplyUsers: m.ReplyUsers, LatestReply: m.LatestReply,
	}
	if m.ThreadTS != m.TS {
		v.Thread = m.ThreadTS
	}
	if m.User == r.as && m.BotID == "" && !m.Ephemeral {
		v.Mine, v.Source = true, r.names.fromWire(m.Text)
	}
	for _, f := range m.Files {
		v.Files = append(v.Files, file{
			ID: f.ID, Name: cmp.Or(f.Title, f.Name, f.ID), Size: f.Size, Image: shownAs(f.MediaType) != "", Here: !f.External,
		})
	}
	return v
}

// has tells whether a person is in a channel. Without a list everybody is.
func has(c slacktwin.Channel, user string) bool {
	return c.Members == nil || slices.Contains(c.Members, user)
}

// topLevel tells the messages of the channel's own list: parents, messages without a thread, replies also sent to it.
func topLevel(m slacktwin.Message) bool {
	return m.ThreadTS == "" || m.ThreadTS == m.TS || m.Subtype == "thread_broadcast"
}

func everything(slacktwin.Message) bool { return true }

func topmost(views []slacktwin.View) *modal {
	for _, v := range slices.Backward(views) {
		if v.Type == "modal" || v.Type == "" {
			return &modal{ID: v.ID, Hash: v.Hash, Title: v.Title, Submit: v.Submit, Close: v.Close, Blocks: v.Blocks}
		}
	}
	return nil
}

func statusesIn(all []slacktwin.Status, channel string) []status {
	list := []status{}
	for _, s := range all {
		if s.Channel == channel {
			list = append(list, status{Thread: s.ThreadTS, State: s.State, Text: s.Text, Title: s.Title})
		}
	}
	return list
}

// file answers the content of a file: images as such, everything else as a download, so that nothing uploaded runs.
func (p *Playground) file(w http.ResponseWriter, r *http.Request) {
	f, content, ok := p.slack.File(r.PathValue("id"))
	if !ok || f.External {
		refuse(w, http.StatusNotFound, "there is no such file")
		return
	}
	h := w.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	h.Set("Content-Type", cmp.Or(shownAs(f.MediaType), "application/octet-stream"))
	if shownAs(f.MediaType) == "" {
		h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": cmp.Or(f.Name, f.ID)}))
	}
	if _, err := w.Write(content); err != nil {
		p.log.DebugContext(r.Context(), "playground: the page left before its file", "error", err)
	}
}

// shownAs returns the type under which the page may show a file as an image, or "".
func shownAs(mediaType string) string {
	parsed, _, err := mime.ParseMediaType(mediaType)
	if err != nil || !slices.Contains([]string{"image/png", "image/jpeg", "image/gif", "image/webp"}, parsed) {
		return ""
	}
	return parsed
}
