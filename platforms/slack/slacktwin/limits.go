package slacktwin

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Limits of messages. Characters are code points.
const (
	bestText        = 4_000  // characters; a text beyond may be split, doc m/chat.postMessage (and observed)
	maxText         = 40_000 // characters; cut beyond, doc m/chat.postMessage
	maxUpdateText   = 4_000  // bytes, doc m/chat.update (the unit is observed)
	maxMarkdownText = 12_000 // characters, doc m/chat.postMessage, m/chat.startStream
	maxAttachments  = 100    // doc m/chat.postMessage
	maxMetadata     = 16_384 // bytes
	maxReactions    = 50     // kinds on one message
	maxPage         = 999    // messages of conversations.history and .replies
	maxFiles        = 10     // of one completed upload
	maxFileSize     = 1 << 30
	maxBody         = 8 << 20 // bytes of a request that the twin reads at all
)

// Limits of blocks, in characters or items; the pages are those of doc reference/block-kit and the types of
// slackapi/node-slack-sdk and slackapi/python-slack-sdk.
const (
	maxMessageBlocks  = 50
	maxViewBlocks     = 100
	maxBlockChars     = 11_340 // of all blocks but markdown: 11,341 were refused (observed: slackapi/bolt-js#2867)
	maxAllBlockChars  = 12_000 // with markdown blocks (slackapi/bolt-js#2509)
	maxMarkdownBlocks = 12_000 // of all markdown blocks together
	maxSectionText    = 3_000
	maxSectionFields  = 10
	maxFieldText      = 2_000
	maxHeaderText     = 150
	maxContextItems   = 10
	maxContextText    = 3_000
	maxActions        = 25
	maxContextActions = 5
	maxButtonText     = 75
	maxValue          = 2_000
	maxURL            = 3_000
	maxAccessibility  = 75
	maxID             = 255 // action_id, block_id, callback_id, external_id
	maxOptionText     = 75
	maxOptionValue    = 150
	maxSelectOptions  = 100
	maxRadioOptions   = 10
	maxOverflow       = 5
	maxConfirmTitle   = 100
	maxConfirmText    = 300
	maxConfirmButton  = 30
	maxAltText        = 2_000
	maxPlaceholder    = 150
	maxInputLabel     = 2_000
	maxInputText      = 3_000
	maxModalTitle     = 24
	maxPrivate        = 3_000
	maxViewSize       = 250 * 1024 // bytes
	maxViewStack      = 3
	maxTableRows      = 100
	maxTableCells     = 20
	maxTableChars     = 10_000
	maxDataTableRows  = 201 // with the header
	maxDataTableChars = 20_000
	maxCardActions    = 3
	maxCardTitle      = 150
	maxCardBody       = 200
	maxPlanTasks      = 50
	maxChunkText      = 256 // of task_update and plan_update
	maxPrompts        = 4   // assistant.threads.setSuggestedPrompts
	maxLoading        = 10  // doc m/assistant.threads.setStatus
	maxSessionTitle   = 200
)

// Limits in time and number.
const (
	ackTime        = 3 * time.Second // doc apis/events-api, interactivity/handling-user-interaction
	triggerLife    = 3 * time.Second
	responseLife   = 30 * time.Minute
	responseUses   = 5
	streamLife     = 5 * time.Minute // observed: slackapi/node-slack-sdk#2702
	sessionLife    = time.Hour       // of "processing", doc ai/agent-sessions
	assistantLife  = 2 * time.Minute // of the old status
	maxRedirects   = 2
	maxSockets     = 10
	maxAckPayload  = 20_480 // bytes; larger ones are dropped silently
	ticketLife     = 30 * time.Second
	drainTime      = 10 * time.Second // between a disconnect warning and the end
	connectionTime = 18_060           // seconds, told by hello
)

// tier is how often a method may be called, doc apis/web-api/rate-limits.
type tier int

const (
	tier1   tier = 1   // per minute
	tier2   tier = 20  // per minute
	tier3   tier = 50  // per minute
	tier4   tier = 100 // per minute
	special tier = -1  // 1/s in a channel with bursts, several hundred a minute in the workspace
	free    tier = 0
)

const (
	channelBurst    = 5   // posts at once in one channel before 1/s holds
	workspaceMinute = 300 // posts a minute in the workspace
)

// limit counts one call and returns how long to wait if it is one too many.
func (t *Twin) limit(name string, m method, a args) time.Duration {
	now := t.opt.Now()
	switch m.tier {
	case free:
		return 0
	case special:
		channel := cmp.Or(a["channel"], a["channel_id"])
		wait := max(
			t.over(name+" "+channel, now, channelBurst, channelBurst*time.Second),
			t.over(name, now, workspaceMinute, time.Minute))
		if wait == 0 {
			t.hit(name+" "+channel, now)
			t.hit(name, now)
		}
		return wait
	}
	wait := t.over(name, now, int(m.tier), time.Minute)
	if wait == 0 {
		t.hit(name, now)
	}
	return wait
}

// over returns how long to wait until fewer than n calls lie within the window.
func (t *Twin) over(key string, now time.Time, n int, window time.Duration) time.Duration {
	hits := slices.DeleteFunc(t.hits[key], func(at time.Time) bool { return endsAfter(at, now, window) })
	t.hits[key] = hits
	if len(hits) < n {
		return 0
	}
	return hits[len(hits)-n].Add(window).Sub(now)
}

func (t *Twin) hit(key string, now time.Time) { t.hits[key] = append(t.hits[key], now) }

// wholeSeconds rounds up, as Retry-After has no fractions.
func wholeSeconds(d time.Duration) int { return int(math.Ceil(d.Seconds())) }

// endsAfter reports whether so much time has passed since then.
func endsAfter(then, now time.Time, d time.Duration) bool { return !now.Before(then.Add(d)) }
