package discord

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/bwmarrin/discordgo"
)

// ready is the part of READY that is read here.
type ready struct {
	User struct {
		ID string `json:"id"`
	} `json:"user"`
	Application struct {
		ID string `json:"id"`
	} `json:"application"`
	ResumeURL string `json:"resume_gateway_url"`
}

// event takes an event from discordgo, raw: what it makes of it is not used. It is called under discordgo's locks, one event
// after the other, and does nothing but remember and queue.
func (s *shard) event(from *discordgo.Session, e *discordgo.Event) {
	switch e.Type {
	case "READY":
		s.greeted(from, e.RawData)
	case "RESUMED":
		s.connected(from)
	case "GUILD_CREATE":
		var g guild
		if decode(e.RawData, &g) == nil && isSnowflake(g.ID) {
			s.a.directory.addGuild(g, s.a.identity().User)
			s.look(s.a.history.gapIn(g, s.since()))
		}
	case "CHANNEL_CREATE", "CHANNEL_UPDATE", "THREAD_CREATE", "THREAD_UPDATE":
		var c channel
		if decode(e.RawData, &c) == nil {
			s.a.directory.add(c)
		}
	case "CHANNEL_DELETE", "THREAD_DELETE":
		var c channel
		if decode(e.RawData, &c) == nil {
			s.a.directory.remove(c.ID)
		}
	case "THREAD_LIST_SYNC":
		s.addThreads(e.RawData)
	case "GUILD_ROLE_CREATE", "GUILD_ROLE_UPDATE":
		var g struct {
			Guild string `json:"guild_id"`
			Role  role   `json:"role"`
		}
		if decode(e.RawData, &g) == nil {
			s.a.directory.addRole(g.Guild, g.Role, s.a.identity().User)
		}
	case string(kindMessage), string(kindUpdate), string(kindDelete), string(kindInteraction):
		s.queue(kind(e.Type), e.RawData)
	case "MESSAGE_DELETE_BULK":
		s.queueDeletions(e.RawData)
	default:
		s.a.count.add("ignored", "event_type")
	}
}

// greeted begins a new session: nothing of what was missed will be sent.
func (s *shard) greeted(from *discordgo.Session, data json.RawMessage) {
	var r ready
	if decode(data, &r) != nil || !isSnowflake(r.User.ID) {
		s.a.log.Error("discord: READY does not say who we are")
		return
	}
	self := identity{User: r.User.ID, App: r.Application.ID}
	if self.App == "" {
		self.App = s.a.opt.ApplicationID
	}
	s.a.self.Store(&self)
	s.mu.Lock()
	if s.session == from {
		s.resumeURL = r.ResumeURL
		if s.resumeURL == "" {
			s.resumeURL = "general" // resumed where everything begins
		}
	}
	s.missed = s.latest
	if s.missed == "" {
		s.missed = s.a.history.beginning(s.a.now())
	}
	s.mu.Unlock()
	s.connected(from)
	s.look(s.a.history.gap(s.mine))
}

// identity is who we are, as READY said.
func (a *Adapter) identity() identity {
	if self := a.self.Load(); self != nil {
		return *self
	}
	return identity{App: a.opt.ApplicationID}
}

// connected tells that READY or RESUMED has come.
func (s *shard) connected(from *discordgo.Session) {
	if t := s.attemptOf(from); t != nil {
		t.readied.Do(func() { close(t.ready) })
	}
}

// since is the id after which something may have been missed when the session began.
func (s *shard) since() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.missed
}

// mine tells whether the events of a guild come to this shard. Direct messages come to the first (doc events/gateway).
func (s *shard) mine(guild string) bool {
	id, err := strconv.ParseUint(guild, 10, 64)
	if err != nil {
		return s.id == 0
	}
	return int((id>>22)%uint64(s.count)) == s.id
}

// look queues channels in which something may have been missed.
func (s *shard) look(channels []string) {
	for _, c := range channels {
		s.q.put(arrival{channel: c})
	}
}

func (s *shard) addThreads(data json.RawMessage) {
	var sync struct {
		Guild   string    `json:"guild_id"`
		Threads []channel `json:"threads"`
	}
	if decode(data, &sync) != nil {
		return
	}
	for _, c := range sync.Threads {
		c.Guild = sync.Guild
		s.a.directory.add(c)
	}
}

func (s *shard) queue(k kind, data json.RawMessage) {
	var head struct {
		ID      string `json:"id"`
		Channel string `json:"channel_id"`
	}
	if decode(data, &head) != nil {
		s.a.count.add("ignored", "malformed")
		return
	}
	if k == kindMessage || k == kindInteraction {
		s.mu.Lock()
		s.latest = laterID(s.latest, head.ID)
		s.mu.Unlock()
	}
	s.q.put(arrival{kind: k, channel: head.Channel, self: s.a.identity(), body: data})
}

// queueDeletions makes one deletion of each of many.
func (s *shard) queueDeletions(data json.RawMessage) {
	var all struct {
		IDs     []string `json:"ids"`
		Channel string   `json:"channel_id"`
		Guild   string   `json:"guild_id"`
	}
	if decode(data, &all) != nil {
		return
	}
	for _, id := range all.IDs {
		one, err := json.Marshal(map[string]string{"id": id, "channel_id": all.Channel, "guild_id": all.Guild})
		if err == nil {
			s.queue(kindDelete, one)
		}
	}
}

// startSlack is how long before the start something may have been said that nobody else has answered.
const startSlack = time.Minute
