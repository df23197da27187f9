package discord

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/bwmarrin/discordgo"

	"github.com/parley-chat/parley/platforms"
)

// version is that of the API. discordgo writes another one into its addresses; the transport changes it.
const version = "10"

// userAgent is required in this form (doc reference).
const userAgent = "DiscordBot (https://github.com/parley-chat/parley, 1)"

// call is one call of the REST API.
type call struct {
	op     string // for errors: "post"
	method string
	path   string // without a slash at the beginning
	body   any    // as JSON; nil: none
	// optional calls are help, not record: they are left out while Discord holds too much against us.
	optional bool
}

// do makes a call: it waits for its turn, calls once, and says what to do about a failure. It never repeats a call. The
// answer is read into out, tolerantly, unless out is nil. The error is a *platforms.Error.
func (a *Adapter) do(ctx context.Context, c call, out any) error {
	if c.optional && a.invalid.recent(a.now()) > invalidMost {
		e := failed(c.op, platforms.SlowDown, "too_many_invalid")
		e.RetryAfter = slowDownFor
		return e
	}
	var body []byte
	if c.body != nil {
		var err error
		if body, err = json.Marshal(c.body); err != nil {
			return failed(c.op, platforms.Malformed, "no_json")
		}
	}
	var x exchange
	bucket := &discordgo.Bucket{Remaining: 1} // its own: discordgo keeps none and waits for none
	bucket.Lock()
	answer, err := a.api.RequestWithLockedBucket(c.method, discordgo.EndpointAPI+c.path, "application/json", body, bucket, 0,
		discordgo.WithContext(context.WithValue(ctx, exchangeKey{}, &x)),
		discordgo.WithRestRetries(0),
		discordgo.WithRetryOnRatelimit(false))
	if refused, ok := errors.AsType[*discordgo.RESTError](err); ok && x.status < 300 {
		answer, err = refused.ResponseBody, nil // a success that discordgo does not know, such as 202
	}
	if err == nil && out != nil {
		err = decode(answer, out)
	}
	if err == nil {
		return nil
	}
	e := classify(c.op, &x, err)
	a.tellOperator(e, &x)
	return e
}

// tellOperator logs what only the operator can mend, and our own mistakes: the fields only, never what is in them.
func (a *Adapter) tellOperator(e *platforms.Error, x *exchange) {
	if hint, ok := mend[x.code]; ok {
		a.log.Warn("discord: "+hint, "op", e.Op, "code", x.code)
	}
	if e.Failure == platforms.Malformed && x.code != codeBlocked {
		a.log.Error("discord: Discord does not accept what we sent", "op", e.Op, "code", e.Code, "fields", x.fields)
	}
}

// versioned is the end of an address that names a version of the API.
var versioned = regexp.MustCompile(`/v\d+$`)

// apiBase is where the REST API is: the address as it is if it ends in a version, else with what is missing of /api/v10.
func apiBase(s string) (*url.URL, error) {
	if s == "" {
		s = discordgo.EndpointDiscord
	}
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, errors.New("discord: the address of the API is not an http or https URL")
	}
	u.Path, u.RawQuery, u.Fragment = strings.TrimRight(u.Path, "/"), "", ""
	switch {
	case versioned.MatchString(u.Path):
	case strings.HasSuffix(u.Path, "/api"):
		u.Path += "/v" + version
	default:
		u.Path += "/api/v" + version
	}
	return u, nil
}

// gatewayInfo is the answer of GET /gateway/bot (doc events/gateway).
type gatewayInfo struct {
	URL    string `json:"url"`
	Shards int    `json:"shards"`
	Limit  struct {
		Total          int   `json:"total"`
		Remaining      int   `json:"remaining"`
		ResetAfter     int64 `json:"reset_after"` // milliseconds
		MaxConcurrency int   `json:"max_concurrency"`
	} `json:"session_start_limit"`
}

// gatewayBot asks how to connect. A server that does not know the question gets one shard and the usual limits.
func (a *Adapter) gatewayBot(ctx context.Context) (gatewayInfo, error) {
	var info gatewayInfo
	err := a.do(ctx, call{op: "gateway", method: http.MethodGet, path: "gateway/bot"}, &info)
	if e, ok := errors.AsType[*platforms.Error](err); ok && e.Failure == platforms.Refused {
		info, err = gatewayInfo{}, nil
	}
	info.Shards = max(info.Shards, 1)
	info.Limit.MaxConcurrency = max(info.Limit.MaxConcurrency, 1)
	if err != nil {
		return gatewayInfo{}, fmt.Errorf("discord: ask for the gateway: %w", err)
	}
	return info, nil
}
