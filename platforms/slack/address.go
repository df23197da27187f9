package slack

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/parley-chat/parley/platforms"
)

// address is a Conversation taken apart. Thread is empty in a plain direct message.
type address struct{ Team, Channel, Thread string }

// conversation is "TEAM/CHANNEL/THREAD", or "TEAM/CHANNEL" for a plain direct message.
func (a address) conversation() platforms.Conversation {
	if a.Thread == "" {
		return platforms.Conversation(a.Team + "/" + a.Channel)
	}
	return platforms.Conversation(a.Team + "/" + a.Channel + "/" + a.Thread)
}

var errNoConversation = errors.New("not a conversation of Slack")

func parseConversation(c platforms.Conversation) (address, error) {
	parts := strings.Split(string(c), "/")
	if len(parts) != 2 && len(parts) != 3 {
		return address{}, errNoConversation
	}
	for _, p := range parts {
		if p == "" {
			return address{}, errNoConversation
		}
	}
	a := address{Team: parts[0], Channel: parts[1]}
	if len(parts) == 3 {
		a.Thread = parts[2]
	}
	return a, nil
}

// messageRef is "CHANNEL/TS".
func messageRef(channel, ts string) platforms.MessageRef {
	return platforms.MessageRef(channel + "/" + ts)
}

var errNoMessage = errors.New("not a message of Slack")

func parseRef(ref platforms.MessageRef) (channel, ts string, err error) {
	channel, ts, ok := strings.Cut(string(ref), "/")
	if !ok || channel == "" || ts == "" {
		return "", "", errNoMessage
	}
	return channel, ts, nil
}

// parseUser takes "TEAM/USER" apart.
func parseUser(id platforms.UserID) (team, user string, ok bool) {
	team, user, ok = strings.Cut(string(id), "/")
	return team, user, ok && team != "" && user != ""
}

// isDirect tells from its id whether a channel is a direct message of two.
func isDirect(channel string) bool { return strings.HasPrefix(channel, "D") }

// timeOf is the time in a timestamp, "seconds.micros"; zero if it is none.
func timeOf(ts string) time.Time {
	seconds, micros, _ := strings.Cut(ts, ".")
	s, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil || s < 0 || s > 1<<33 {
		return time.Time{}
	}
	us, err := strconv.ParseInt(micros, 10, 64)
	if err != nil || us < 0 || us > 999_999 {
		us = 0
	}
	return time.Unix(s, us*1000).UTC()
}
