package discord

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/parley-chat/parley/platforms"
)

// Discord's error codes that mean something here (doc topics/opcodes-and-status-codes).
const (
	codeUnknownMember      = 10007
	codeUnknownChannel     = 10003
	codeUnknownMessage     = 10008
	codeUnknownWebhook     = 10015
	codeUnknownInteraction = 10062
	codeSlowMode           = 20016
	codeWriteLimit         = 20028
	codeOldEdits           = 30046
	codeUnauthorized       = 40001
	codeTooLarge           = 40005
	codeAcknowledged       = 40060
	codeNoAccess           = 50001
	codeEmpty              = 50006
	codeCannotWrite        = 50007
	codeNoPermission       = 50013
	codeSystemMessage      = 50021
	codeWrongChannel       = 50024
	codeInvalidToken       = 50027
	codeInvalidForm        = 50035
	codeArchived           = 50083
	codeInvalidJSON        = 50109
	codeThreadExists       = 160004
	codeThreadLocked       = 160005
	codeTooManyThreads     = 160006
	codeBlocked            = 200000
	codeTitleBlocked       = 200001
)

// failures says what to do about Discord's errors. What is not listed was refused.
//
// Blocked is not refused but malformed: whoever asked is told that something is missing, and what was blocked is not
// repeated. An edit that comes too often or too late becomes a new message. What is forbidden is refused and not broken,
// because nothing that was forbidden may be tried again and again (doc topics/rate-limits, invalid requests).
var failures = map[int]platforms.Failure{
	codeSlowMode:   platforms.SlowDown,
	codeWriteLimit: platforms.SlowDown,

	codeUnknownMessage:     platforms.Gone,
	codeUnknownWebhook:     platforms.Gone,
	codeUnknownInteraction: platforms.Gone,
	codeAcknowledged:       platforms.Gone,
	codeInvalidToken:       platforms.Gone,
	codeOldEdits:           platforms.Gone,

	codeTooLarge:     platforms.Malformed,
	codeEmpty:        platforms.Malformed,
	codeInvalidForm:  platforms.Malformed,
	codeInvalidJSON:  platforms.Malformed,
	codeBlocked:      platforms.Malformed,
	codeTitleBlocked: platforms.Malformed,

	codeUnauthorized: platforms.Broken,
}

// mend says to the operator what an error means that only they can end.
var mend = map[int]string{
	codeNoAccess:     "the bot cannot see a channel: give it View Channel and Read Message History there",
	codeNoPermission: "the bot lacks a permission in a channel: it needs Send Messages, Send Messages in Threads, Create Public Threads and Read Message History",
	codeBlocked:      "AutoMod of a server blocks what the bot says: exempt the bot's role",
	codeTitleBlocked: "AutoMod of a server blocks the title of a thread: exempt the bot's role",
	codeThreadLocked: "a thread is locked: unlock it, or give the bot Manage Threads",
}

// slowDownFor is how long to wait where Discord asks to slow down without saying for how long.
const slowDownFor = 5 * time.Second

// failed is an error of ours, about a call that was not made.
func failed(op string, f platforms.Failure, code string) *platforms.Error {
	return &platforms.Error{Failure: f, Op: "discord: " + op, Code: code}
}

// classify says what to do about what a call came to, if it failed.
func classify(op string, x *exchange, err error) *platforms.Error {
	if e, ok := errors.AsType[*platforms.Error](err); ok {
		mine := *e
		mine.Op = "discord: " + op
		return &mine
	}
	e := &platforms.Error{Op: "discord: " + op}
	switch {
	case x.status == 0:
		e.Failure, e.Cause = platforms.Unreachable, cause(err)
		if x.sent.Load() {
			e.Failure = platforms.Unknown
		}
		return e
	case x.code == 0:
		return classifyStatus(e, x, err)
	}
	e.Code = strconv.Itoa(x.code)
	e.Failure = platforms.Refused
	switch f, ok := failures[x.code]; {
	case ok:
		e.Failure = f
	case x.status == http.StatusTooManyRequests:
		e.Failure = platforms.SlowDown
	case x.status == http.StatusUnauthorized:
		e.Failure = platforms.Broken
	case x.status >= 500:
		e.Failure = platforms.Unknown
	}
	if e.Failure == platforms.SlowDown {
		e.RetryAfter = max(x.retryAfter, time.Second)
	}
	return e
}

func classifyStatus(e *platforms.Error, x *exchange, err error) *platforms.Error {
	e.Code = "http_" + strconv.Itoa(x.status)
	switch {
	case x.status < 300: // done, but the answer could not be read
		e.Failure, e.Cause = platforms.Unknown, cause(err)
	case x.status == http.StatusTooManyRequests:
		e.Failure, e.RetryAfter = platforms.SlowDown, x.retryAfter
	case x.status >= 500 || x.status == http.StatusRequestTimeout:
		e.Failure = platforms.Unknown
	case x.status == http.StatusUnauthorized:
		e.Failure = platforms.Broken
	case x.status == http.StatusRequestEntityTooLarge:
		e.Failure = platforms.Malformed
	default:
		e.Failure = platforms.Refused
	}
	return e
}

// cause is err without the address, which may hold a token, and without anything from a body.
func cause(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	for _, known := range []error{context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, known) {
			return known
		}
	}
	return errors.New("the answer could not be read")
}

// withoutAddress is err without the address of the call that failed.
func withoutAddress(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}

// startError is the sentence with which a start ends.
func startError(err error) error {
	return fmt.Errorf("discord: Discord refuses the bot token: copy it again from the application's page: %w", err)
}

// codeOf is Discord's code in an error of this package, 0 if there is none.
func codeOf(err error) int {
	e, ok := errors.AsType[*platforms.Error](err)
	if !ok {
		return 0
	}
	n, err := strconv.Atoi(e.Code)
	if err != nil {
		return 0
	}
	return n
}
