package slack

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"

	slackgo "github.com/slack-go/slack"

	"github.com/parley-chat/parley/platforms"
)

// slowDownFor is how long to wait where Slack asks to slow down without saying for how long.
const slowDownFor = 5 * time.Second

// failures says what to do about Slack's errors. What is not listed was refused.
var failures = map[string]platforms.Failure{
	"ratelimited":            platforms.SlowDown,
	"rate_limited":           platforms.SlowDown,
	"message_limit_exceeded": platforms.SlowDown,

	"request_timeout":     platforms.Unknown,
	"service_unavailable": platforms.Unknown,
	"internal_error":      platforms.Unknown,
	"fatal_error":         platforms.Unknown,

	"msg_too_long":                      platforms.Malformed,
	"msg_blocks_too_long":               platforms.Malformed,
	"invalid_blocks":                    platforms.Malformed,
	"invalid_blocks_format":             platforms.Malformed,
	"invalid_arguments":                 platforms.Malformed,
	"invalid_metadata_format":           platforms.Malformed,
	"invalid_metadata_schema":           platforms.Malformed,
	"metadata_too_large":                platforms.Malformed,
	"no_text":                           platforms.Malformed,
	"markdown_text_conflict":            platforms.Malformed,
	"block_mismatch":                    platforms.Malformed,
	"view_too_large":                    platforms.Malformed,
	"duplicate_external_id":             platforms.Malformed,
	"invalid_json":                      platforms.Malformed,
	"json_not_object":                   platforms.Malformed,
	"invalid_form_data":                 platforms.Malformed,
	"invalid_post_type":                 platforms.Malformed,
	"invalid_charset":                   platforms.Malformed,
	"too_many_contact_cards":            platforms.Malformed,
	"cannot_parse_attachment":           platforms.Malformed,
	"attachment_payload_limit_exceeded": platforms.Malformed,

	"cant_update_message":            platforms.Gone,
	"edit_window_closed":             platforms.Gone,
	"message_not_found":              platforms.Gone,
	"message_not_in_streaming_state": platforms.Gone,
	"expired_trigger_id":             platforms.Gone,
	"exchanged_trigger_id":           platforms.Gone,
	"trigger_expired":                platforms.Gone,
	"trigger_exchanged":              platforms.Gone,
	"invalid_trigger_id":             platforms.Gone,
	"invalid_trigger":                platforms.Gone,

	"invalid_auth":              platforms.Broken,
	"not_authed":                platforms.Broken,
	"account_inactive":          platforms.Broken,
	"token_revoked":             platforms.Broken,
	"token_expired":             platforms.Broken,
	"missing_scope":             platforms.Broken,
	"not_allowed_token_type":    platforms.Broken,
	"no_permission":             platforms.Broken,
	"org_login_required":        platforms.Broken,
	"ekm_access_denied":         platforms.Broken,
	"enterprise_is_restricted":  platforms.Broken,
	"two_factor_setup_required": platforms.Broken,
	"team_disabled":             platforms.Broken,
	"user_removed_from_team":    platforms.Broken,
	"link_disabled":             platforms.Broken,
	"socket_mode_not_enabled":   platforms.Broken,
	"access_denied":             platforms.Broken,
}

// mend says to the operator what an error means that only they can end.
var mend = map[string]string{
	"invalid_auth":             "the token is wrong: copy it again from the app's settings",
	"not_authed":               "no token was sent: set it",
	"account_inactive":         "the app was removed from the workspace: install it again and set the new token",
	"token_revoked":            "the token was revoked: install the app again and set the new token",
	"token_expired":            "the token has expired: install the app again, without token rotation, and set the new token",
	"missing_scope":            "the token lacks a scope: add it in the app's settings (the app-level token needs connections:write) and install again",
	"not_allowed_token_type":   "the token is of the wrong type: the bot token begins with xoxb-, the app-level token with xapp-",
	"link_disabled":            "Socket Mode is off: switch it on in the app's settings, or do without the app-level token",
	"socket_mode_not_enabled":  "Socket Mode is off: switch it on in the app's settings, or do without the app-level token",
	"team_disabled":            "the workspace is disabled: ask its owner",
	"user_removed_from_team":   "the bot was removed from the workspace: install the app again",
	"no_permission":            "the workspace does not let the bot do this: ask its owner",
	"org_login_required":       "the organisation is being moved: try again later",
	"enterprise_is_restricted": "the organisation does not let the bot do this: ask its owner",
	"access_denied":            "the workspace does not let the bot do this: ask its owner",
}

// endsEverything tells whether an error means that no call with the token can succeed. missing_scope does not: it speaks of
// one method.
func endsEverything(code string) bool {
	switch code {
	case "invalid_auth", "not_authed", "account_inactive", "token_revoked", "token_expired", "team_disabled", "user_removed_from_team":
		return true
	}
	return false
}

// failed is an error of ours, about a call that was not made.
func failed(op string, f platforms.Failure, code string) *platforms.Error {
	return &platforms.Error{Failure: f, Op: "slack: " + op, Code: code}
}

// classify says what to do about what a call came to. sent tells whether the request may have reached Slack.
func classify(op string, err error, sent bool) *platforms.Error {
	e := &platforms.Error{Op: "slack: " + op}
	if limited, ok := errors.AsType[*slackgo.RateLimitedError](err); ok {
		e.Failure, e.Code, e.RetryAfter = platforms.SlowDown, "ratelimited", max(limited.RetryAfter, time.Second)
		return e
	}
	if status, ok := errors.AsType[slackgo.StatusCodeError](err); ok {
		return classifyStatus(e, status.Code)
	}
	if refused, ok := errors.AsType[slackgo.SlackErrorResponse](err); ok {
		return classifyCode(e, refused.Err)
	}
	e.Cause = cause(err)
	e.Failure = platforms.Unknown
	if !sent {
		e.Failure = platforms.Unreachable
	}
	return e
}

func classifyStatus(e *platforms.Error, status int) *platforms.Error {
	e.Code = "http_" + strconv.Itoa(status)
	switch {
	case status == http.StatusTooManyRequests:
		e.Failure, e.RetryAfter = platforms.SlowDown, slowDownFor
	case status >= 500 || status == http.StatusRequestTimeout:
		e.Failure = platforms.Unknown
	default:
		e.Failure = platforms.Refused
	}
	return e
}

func classifyCode(e *platforms.Error, code string) *platforms.Error {
	e.Code = code
	e.Failure = platforms.Refused
	if f, ok := failures[code]; ok {
		e.Failure = f
	}
	if e.Failure == platforms.SlowDown {
		e.RetryAfter = slowDownFor
	}
	return e
}

// cause is err without the address, which may be a secret (response_url, tickets), and without anything from a body.
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

// codeOf is Slack's word in an error of this package.
func codeOf(err error) string {
	if e, ok := errors.AsType[*platforms.Error](err); ok {
		return e.Code
	}
	return ""
}
