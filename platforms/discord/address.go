package discord

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/parley-chat/parley/platforms"
)

// directMessages stands for the guild in the addresses of direct messages, as it does in Discord's own links.
const directMessages = "@me"

// address is a Conversation taken apart. Thread is empty for a channel itself and for a direct message. A thread that was
// opened from a message has the message's id, so a conversation is known before its thread exists.
type address struct{ Guild, Channel, Thread string }

// conversation is "GUILD/CHANNEL", "GUILD/CHANNEL/THREAD" or "@me/CHANNEL".
func (a address) conversation() platforms.Conversation {
	s := a.Guild + "/" + a.Channel
	if a.Thread != "" {
		s += "/" + a.Thread
	}
	return platforms.Conversation(s)
}

// place is the channel in which the conversation goes on.
func (a address) place() string {
	if a.Thread != "" {
		return a.Thread
	}
	return a.Channel
}

var errNoConversation = errors.New("not a conversation of Discord")

func parseConversation(c platforms.Conversation) (address, error) {
	parts := strings.Split(string(c), "/")
	if len(parts) != 2 && len(parts) != 3 {
		return address{}, errNoConversation
	}
	if parts[0] != directMessages && !isSnowflake(parts[0]) {
		return address{}, errNoConversation
	}
	for _, p := range parts[1:] {
		if !isSnowflake(p) {
			return address{}, errNoConversation
		}
	}
	a := address{Guild: parts[0], Channel: parts[1]}
	if len(parts) == 3 {
		a.Thread = parts[2]
	}
	return a, nil
}

// messageRef is "CHANNEL/MESSAGE"; the channel is the one that holds the message, perhaps a thread.
func messageRef(channel, id string) platforms.MessageRef {
	return platforms.MessageRef(channel + "/" + id)
}

var errNoMessage = errors.New("not a message of Discord")

func parseRef(ref platforms.MessageRef) (channel, id string, err error) {
	channel, id, ok := strings.Cut(string(ref), "/")
	if !ok || !isSnowflake(channel) || !isSnowflake(id) {
		return "", "", errNoMessage
	}
	return channel, id, nil
}

// isSnowflake tells whether s is an id of Discord: a number of 64 bits, which may stand in a path as it is.
func isSnowflake(s string) bool {
	if s == "" || s[0] < '0' || s[0] > '9' {
		return false
	}
	_, err := strconv.ParseUint(s, 10, 64)
	return err == nil
}

// epoch is the beginning of Discord's time, in milliseconds of Unix (doc reference, snowflakes).
const epoch = 1_420_070_400_000

// timeOf is when an id was made; zero if it is none.
func timeOf(id string) time.Time {
	n, err := strconv.ParseUint(id, 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.UnixMilli(int64(n>>22) + epoch).UTC()
}

// snowflakeAt is the lowest id that could be made at that time.
func snowflakeAt(t time.Time) string {
	return strconv.FormatInt(max(t.UnixMilli()-epoch, 0)<<22, 10)
}

// laterID is the later of two ids. What is none is earlier than any.
func laterID(a, b string) string {
	x, errX := strconv.ParseUint(a, 10, 64)
	y, errY := strconv.ParseUint(b, 10, 64)
	if errX != nil || errY == nil && y > x {
		return b
	}
	return a
}

// isAfter tells whether id is later than other.
func isAfter(id, other string) bool { return id != other && laterID(id, other) == id }
