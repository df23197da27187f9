package slack

import (
	"strings"
	"unicode/utf16"

	slackgo "github.com/slack-go/slack"

	"github.com/parley-chat/parley/platforms/markup"
)

// The limits of Block Kit, in characters; here a character is a UTF-16 unit, the strictest reading of the word.
const (
	maxHeader      = 150
	maxFields      = 10
	maxButtons     = 25
	maxButtonText  = 75
	maxButtonValue = 2000
	maxID          = 255 // action_id and block_id
	maxConfirmText = 300
	maxConfirmWord = 30
)

func header(title string) slackgo.Block {
	return slackgo.NewHeaderBlock(plainText(title, maxHeader))
}

// section shows mrkdwn of at most 3,000 characters.
func section(text string) slackgo.Block {
	return slackgo.NewSectionBlock(mrkdwnText(text), nil, nil)
}

// fields shows at most ten pieces of mrkdwn of at most 2,000 characters, in two columns.
func fields(texts []string) slackgo.Block {
	objects := make([]*slackgo.TextBlockObject, len(texts))
	for i, s := range texts {
		objects[i] = mrkdwnText(s)
	}
	return slackgo.NewSectionBlock(nil, objects, nil)
}

// small shows mrkdwn in small print.
func small(text string) slackgo.Block {
	return slackgo.NewContextBlock("", mrkdwnText(text))
}

// mrkdwnText is verbatim: Slack finds no links, channels or names in it beyond those that are written as such.
func mrkdwnText(s string) *slackgo.TextBlockObject {
	return slackgo.NewTextBlockObject(slackgo.MarkdownType, s, false, true)
}

// plainText is s on one line, shortened to limit characters, shown literally.
func plainText(s string, limit int) *slackgo.TextBlockObject {
	s, _ = ellipsis(s, limit)
	return slackgo.NewTextBlockObject(slackgo.PlainTextType, s, false, false)
}

// ellipsis is s on one line and of at most limit characters, and whether that is all of it.
func ellipsis(s string, limit int) (short string, whole bool) {
	s = strings.Join(strings.Fields(s), " ")
	if markup.UTF16Units(s) <= limit {
		return s, true
	}
	units := 1 // the ellipsis
	for i, r := range s {
		units += max(utf16.RuneLen(r), 1)
		if units > limit {
			return s[:i] + "…", false
		}
	}
	return s, true
}
