package playground

import (
	"slices"

	"github.com/parley-chat/parley/platforms/slack/slacktwin"
)

// The seeded people and channels. Ids are stable, so that settings and tests can name them.
const (
	Ada   = "U0ADA"   // may approve
	Grace = "U0GRACE" // a colleague
	Linus = "U0LINUS" // a colleague
	Noor  = "U0NOOR"  // a guest from another team

	General     = "C0GENERAL"
	Deployments = "C0DEPLOYMENTS"
	Random      = "C0RANDOM"

	guestTeam = "T0GUESTS"
)

// Approver is the seeded person meant to approve: the one to name in the bot's settings.
func Approver() string { return Ada }

// DirectMessage is the channel in which a seeded person talks to the bot.
func DirectMessage(user string) string { return "D" + user[1:] }

// Seed fills a workspace with people to write as, channels, and a direct message with the bot for each person. The guest
// is in the channels of the work only. Seeding again changes nothing.
func Seed(t *slacktwin.Twin) {
	people := []slacktwin.User{
		{ID: Ada, Name: "Ada"},
		{ID: Grace, Name: "Grace"},
		{ID: Linus, Name: "Linus"},
		{ID: Noor, Name: "Noor", Team: guestTeam, Guest: true},
	}
	bot := botOf(t).ID
	for _, p := range people {
		t.AddUser(p)
	}
	all := []string{Ada, Grace, Linus, Noor, bot}
	colleagues := slices.DeleteFunc(slices.Clone(all), func(id string) bool { return id == Noor })
	t.AddChannel(slacktwin.Channel{ID: General, Name: "general", Members: all})
	t.AddChannel(slacktwin.Channel{ID: Deployments, Name: "deployments", Members: all})
	t.AddChannel(slacktwin.Channel{ID: Random, Name: "random", Members: colleagues})
	for _, p := range people {
		t.AddChannel(slacktwin.Channel{ID: DirectMessage(p.ID), IM: true, Members: []string{p.ID, bot}})
	}
}

// botOf returns the workspace's own bot: the first one that is there.
func botOf(t *slacktwin.Twin) slacktwin.User {
	users := t.Users()
	i := slices.IndexFunc(users, func(u slacktwin.User) bool { return u.Bot })
	if i < 0 {
		return slacktwin.User{}
	}
	return users[i]
}
