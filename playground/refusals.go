package playground

import (
	"cmp"
	"strings"
)

// sentences are Slack's words for what people may not do, in words for people.
var sentences = map[string]string{
	"user_not_found":      "There is no such person.",
	"channel_not_found":   "There is no such channel.",
	"not_in_channel":      "This person is not in that channel.",
	"is_archived":         "This channel is archived.",
	"no_text":             "There is nothing to send.",
	"thread_not_found":    "The message that this thread began with is gone.",
	"message_not_found":   "This message is gone.",
	"cant_update_message": "Only the author can edit a message.",
	"cant_delete_message": "Only the author can delete a message.",
	"view_not_found":      "This form is closed already.",
	"dispatch_failed":     "The bot could not take this.",
	"operation_timeout":   "The bot did not answer in time.",
}

// sentence says an error of the stand-in to the person who acted. What is known only by its code is shown as it is.
func sentence(err error) string {
	text := strings.TrimPrefix(err.Error(), "slacktwin: ")
	code, detail, _ := strings.Cut(text, ": ")
	said := cmp.Or(sentences[code], text)
	if detail == "" || said == text {
		return said
	}
	return said + " (" + detail + ")"
}
