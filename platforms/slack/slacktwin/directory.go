package slacktwin

import (
	"maps"
	"slices"
	"strings"
)

// directory is who and what there is in the workspace.
type directory struct {
	users     map[string]User
	userOrder []string
	groups    map[string][]string
}

// AddUser adds or replaces a person or a bot.
func (t *Twin) AddUser(u User) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if u.Team == "" {
		u.Team = t.opt.Team
	}
	if _, ok := t.users[u.ID]; !ok {
		t.userOrder = append(t.userOrder, u.ID)
	}
	t.users[u.ID] = u
	t.changed(Change{Kind: DirectoryChanged, User: u.ID})
}

// AddChannel adds or replaces a channel, silently: nobody is told who joined. Messages in it are kept.
func (t *Twin) AddChannel(c Channel) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.addChannel(c)
}

func (t *Twin) addChannel(c Channel) *room {
	c.Members = slices.Clone(c.Members)
	r, ok := t.rooms[c.ID]
	if !ok {
		r = &room{threads: map[string][]*message{}}
		t.rooms[c.ID] = r
		t.roomOrder = append(t.roomOrder, c.ID)
	}
	r.Channel = c
	t.changed(Change{Kind: DirectoryChanged, Channel: c.ID})
	return r
}

// AddGroup sets the members of a user group.
func (t *Twin) AddGroup(id string, users ...string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.groups[id] = slices.Clone(users)
}

// Join makes somebody a member of a channel, as if they had clicked Join: the bot hears of it.
func (t *Twin) Join(user, channel string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	r, err := t.place(user, channel)
	if err != nil {
		return err
	}
	if r.has(user) {
		return personal("already_in_channel")
	}
	r.Members = append(r.Members, user)
	t.changed(Change{Kind: DirectoryChanged, Channel: channel})
	t.post(r, &message{Message: Message{
		User: user, Subtype: "channel_join", Text: "<@" + user + "> has joined the channel",
	}})
	t.emit(r, map[string]any{
		"type": "member_joined_channel", "user": user, "channel": channel, "channel_type": channel[:1],
		"team": t.users[user].Team, "event_ts": t.newTS(),
	})
	return nil
}

// Leave ends a membership. The bot hears of it unless it was its own.
func (t *Twin) Leave(user, channel string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	r, err := t.place(user, channel)
	if err != nil {
		return err
	}
	i := slices.Index(r.Members, user)
	if i < 0 {
		return personal("not_in_channel")
	}
	r.Members = slices.Delete(r.Members, i, i+1)
	t.changed(Change{Kind: DirectoryChanged, Channel: channel})
	t.emit(r, map[string]any{
		"type": "member_left_channel", "user": user, "channel": channel, "channel_type": channel[:1],
		"team": t.users[user].Team, "event_ts": t.newTS(),
	})
	return nil
}

// Channels returns the channels in the order in which they were added.
func (t *Twin) Channels() []Channel {
	t.mu.Lock()
	defer t.mu.Unlock()
	var cs []Channel
	for _, id := range t.roomOrder {
		c := t.rooms[id].Channel
		c.Members = slices.Clone(c.Members)
		cs = append(cs, c)
	}
	return cs
}

// Users returns the users in the order in which they were added, the bot first.
func (t *Twin) Users() []User {
	t.mu.Lock()
	defer t.mu.Unlock()
	var us []User
	for _, id := range t.userOrder {
		us = append(us, t.users[id])
	}
	return us
}

// place returns the room in which a person acts.
func (t *Twin) place(user, channel string) (*room, error) {
	if _, ok := t.users[user]; !ok {
		return nil, personal("user_not_found")
	}
	r, ok := t.rooms[channel]
	if !ok {
		return nil, personal("channel_not_found")
	}
	return r, nil
}

// personal is an error of something a person tried, with Slack's word for it.
type personal string

func (e personal) Error() string { return "slacktwin: " + string(e) }

// has reports whether somebody is a member. Without a list everybody is.
func (c *Channel) has(user string) bool { return c.Members == nil || slices.Contains(c.Members, user) }

// kind returns the channel_type of events: im, group or channel.
func (c *Channel) kind() string {
	switch {
	case c.IM:
		return "im"
	case c.Private:
		return "group"
	}
	return "channel"
}

// directMessage returns the channel of the bot and a person, made on first use.
func (t *Twin) directMessage(user string) *room {
	for _, id := range t.roomOrder {
		r := t.rooms[id]
		if r.IM && slices.Contains(r.Members, user) && slices.Contains(r.Members, t.opt.BotUser) {
			return r
		}
	}
	return t.addChannel(Channel{ID: t.newID("D"), IM: true, Members: []string{user, t.opt.BotUser}})
}

// partner returns the person of a direct message.
func (t *Twin) partner(c *Channel) string {
	for _, m := range c.Members {
		if m != t.opt.BotUser {
			return m
		}
	}
	return ""
}

// findRoom returns the room with an id, or a name with or without "#", or the direct message of a user.
func (t *Twin) findRoom(channel string) *room {
	if r, ok := t.rooms[channel]; ok {
		return r
	}
	if u, ok := t.users[channel]; ok && !u.Bot {
		return t.directMessage(channel)
	}
	name := strings.TrimPrefix(channel, "#")
	for _, id := range t.roomOrder {
		if r := t.rooms[id]; name != "" && r.Name == name {
			return r
		}
	}
	return nil
}

// botRoom returns the room in which the bot acts, doc m/chat.postMessage, errors.
func (t *Twin) botRoom(channel string) (*room, error) {
	r, err := t.visibleRoom(channel)
	if err != nil {
		return nil, err
	}
	if !r.has(t.opt.BotUser) {
		return nil, refuse("not_in_channel")
	}
	if r.Archived {
		return nil, refuse("is_archived")
	}
	return r, nil
}

// visibleRoom returns the room if the bot may know of it: private ones do not exist for strangers.
func (t *Twin) visibleRoom(channel string) (*room, error) {
	r := t.findRoom(channel)
	if r == nil || ((r.Private || r.IM) && !r.has(t.opt.BotUser)) {
		return nil, refuse("channel_not_found")
	}
	return r, nil
}

func (t *Twin) usersInfo(a args) (map[string]any, error) {
	u, ok := t.users[a["user"]]
	if !ok {
		return nil, refuse("user_not_found")
	}
	return map[string]any{"user": t.userJSON(u)}, nil
}

func (t *Twin) usersList(args) (map[string]any, error) {
	members := []any{}
	for _, id := range t.userOrder {
		members = append(members, t.userJSON(t.users[id]))
	}
	return map[string]any{"members": members, "response_metadata": map[string]any{"next_cursor": ""}}, nil
}

func (t *Twin) userJSON(u User) map[string]any {
	return map[string]any{
		"id": u.ID, "team_id": u.Team, "name": strings.ToLower(u.Name), "real_name": u.Name, "deleted": false,
		"is_bot": u.Bot, "is_app_user": false, "is_restricted": u.Guest, "is_ultra_restricted": false,
		"is_stranger": u.Team != t.opt.Team, "tz": "Etc/UTC", "updated": 1700000000,
		"profile": map[string]any{
			"display_name": u.Name, "real_name": u.Name, "display_name_normalized": u.Name,
			"real_name_normalized": u.Name, "team": u.Team,
		},
	}
}

func (t *Twin) usergroupUsers(a args) (map[string]any, error) {
	users, ok := t.groups[a["usergroup"]]
	if !ok {
		return nil, refuse("no_such_subteam")
	}
	return map[string]any{"users": append([]string{}, users...)}, nil
}

func (t *Twin) usergroupsList(args) (map[string]any, error) {
	groups := []any{}
	for _, id := range slices.Sorted(maps.Keys(t.groups)) {
		groups = append(groups, map[string]any{
			"id": id, "team_id": t.opt.Team, "is_usergroup": true, "name": id, "handle": strings.ToLower(id),
			"user_count": len(t.groups[id]),
		})
	}
	return map[string]any{"usergroups": groups}, nil
}

func (t *Twin) conversationsInfo(a args) (map[string]any, error) {
	r, err := t.visibleRoom(a["channel"])
	if err != nil {
		return nil, err
	}
	return map[string]any{"channel": t.channelJSON(&r.Channel)}, nil
}

func (t *Twin) conversationsOpen(a args) (map[string]any, error) {
	users := a.list("users")
	switch {
	case a["channel"] != "":
		r, err := t.visibleRoom(a["channel"])
		if err != nil {
			return nil, err
		}
		return map[string]any{"channel": t.channelJSON(&r.Channel)}, nil
	case len(users) == 0:
		return nil, refuse("users_list_not_supplied")
	case len(users) > 1:
		return nil, refuse("method_not_supported_for_channel_type")
	}
	u, ok := t.users[users[0]]
	if !ok {
		return nil, refuse("user_not_found")
	}
	if u.Bot {
		return nil, refuse("cannot_dm_bot")
	}
	return map[string]any{"channel": t.channelJSON(&t.directMessage(u.ID).Channel)}, nil
}

func (t *Twin) conversationsMembers(a args) (map[string]any, error) {
	r, err := t.visibleRoom(a["channel"])
	if err != nil {
		return nil, err
	}
	members := r.Members
	if members == nil {
		members = t.userOrder
	}
	return map[string]any{
		"members": slices.Clone(members), "response_metadata": map[string]any{"next_cursor": ""},
	}, nil
}

func (t *Twin) conversationsJoin(a args) (map[string]any, error) {
	r, err := t.visibleRoom(a["channel"])
	if err != nil {
		return nil, err
	}
	if r.IM || r.Private {
		return nil, refuse("method_not_supported_for_channel_type")
	}
	if r.Archived {
		return nil, refuse("is_archived")
	}
	if !r.has(t.opt.BotUser) {
		r.Members = append(r.Members, t.opt.BotUser)
		t.changed(Change{Kind: DirectoryChanged, Channel: r.ID})
	}
	return map[string]any{"channel": t.channelJSON(&r.Channel)}, nil
}

func (t *Twin) channelJSON(c *Channel) map[string]any {
	j := map[string]any{
		"id": c.ID, "is_im": c.IM, "is_channel": !c.IM && !c.Private, "is_group": c.Private && !c.IM, "is_mpim": false,
		"is_private": c.Private || c.IM, "is_archived": c.Archived, "is_member": c.has(t.opt.BotUser),
		"is_ext_shared": t.shared(c), "is_org_shared": false, "context_team_id": t.opt.Team, "created": 1700000000,
	}
	if c.IM {
		j["user"] = t.partner(c)
	} else {
		j["name"] = c.Name
		j["name_normalized"] = c.Name
		j["num_members"] = len(c.Members)
	}
	return j
}

// shared reports whether people of other workspaces are in the channel (Slack Connect).
func (t *Twin) shared(c *Channel) bool {
	return slices.ContainsFunc(c.Members, func(id string) bool {
		u, ok := t.users[id]
		return ok && u.Team != t.opt.Team
	})
}
