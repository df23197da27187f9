package discord

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/parley-chat/parley/platforms"
)

// exchange is what is noted of one call on its way through the transport. It travels in the request's context.
type exchange struct {
	sent       atomic.Bool // the request may have reached Discord
	status     int         // 0: there was no answer
	code       int         // Discord's error code, 0 if it told none
	retryAfter time.Duration
	fields     []string // of the body that Discord does not accept
}

type exchangeKey struct{}

// transport is the one way of all REST calls, ours and discordgo's: it leads them to the server that is set, keeps them
// within Discord's limits, and notes what came of them. It takes the headers about limits away: discordgo's own limiter
// would sleep through contexts.
type transport struct {
	base    http.RoundTripper
	api     *url.URL // with the version, without a slash at the end
	within  time.Duration
	limits  *limiter // nil: no pacing
	invalid *invalidCounter
	health  *health
	now     func() time.Time
	warn    func(invalid int)
}

// maxAnswer and maxError are the longest answers that are read, in bytes.
const (
	maxAnswer = 16 << 20
	maxError  = 64 << 10
)

// RoundTrip sends a call of discordgo. What is not sent fails with a *platforms.Error.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	path, ok := apiPath(req)
	if !ok {
		return nil, failed("call", platforms.Malformed, "no_api_path")
	}
	x, _ := req.Context().Value(exchangeKey{}).(*exchange)
	if x == nil {
		x = &exchange{}
	}
	r := routeOf(req.Method, path)
	if t.health.tokenBroken() && !r.isInteraction() {
		return nil, failed("call", platforms.Broken, "401")
	}
	if err := t.limits.wait(req.Context(), r); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(req.Context(), t.within)
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { x.sent.Store(true) }})
	resp, err := t.base.RoundTrip(t.led(req.WithContext(traced), path))
	if err != nil {
		cancel()
		t.limits.done(r, 0, nil)
		return nil, err
	}
	x.status = resp.StatusCode
	resp.Body = &answerBody{Reader: io.LimitReader(resp.Body, maxAnswer), close: resp.Body.Close, cancel: cancel}
	if resp.StatusCode >= 400 {
		x.read(resp)
	}
	t.limits.done(r, resp.StatusCode, resp.Header)
	t.note(r, x, resp.Header)
	for name := range resp.Header {
		if strings.HasPrefix(name, "X-Ratelimit-") {
			resp.Header.Del(name)
		}
	}
	return resp, nil
}

// led is the request on its way to the server that is set, in the version that we speak.
func (t *transport) led(req *http.Request, path string) *http.Request {
	u := *t.api
	u.Path += path
	u.RawQuery = req.URL.RawQuery
	req.URL, req.Host = &u, u.Host
	return req
}

// note counts what Discord holds against us, and whether the token works.
func (t *transport) note(r route, x *exchange, h http.Header) {
	if isInvalid(x.status, h) {
		t.warn(t.invalid.add(t.now()))
	}
	if x.status == http.StatusUnauthorized && x.code != codeInvalidToken && !r.isInteraction() {
		t.health.broke("discord: the bot token does not work (401): copy it again from the application's page")
	}
}

// read reads what is wrong with a call; the body can be read again.
func (x *exchange) read(resp *http.Response) {
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxError))
	if err != nil {
		body = nil
	}
	_ = resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(body))
	var told struct {
		Code       int             `json:"code"`
		RetryAfter float64         `json:"retry_after"`
		Errors     json.RawMessage `json:"errors"`
	}
	if decode(body, &told) != nil {
		return
	}
	x.code = told.Code
	x.fields = fieldsOf(told.Errors)
	if resp.StatusCode != http.StatusTooManyRequests {
		return
	}
	x.retryAfter = retryAfter(resp.Header)
	if s := told.RetryAfter; s > 0 && s < 24*3600 {
		x.retryAfter = time.Duration(s * float64(time.Second))
	}
}

// fieldsOf are the paths in the errors of an answer, without what they say: that may repeat content.
func fieldsOf(errors json.RawMessage) []string {
	var paths []string
	var walk func(path string, raw json.RawMessage, depth int)
	walk = func(path string, raw json.RawMessage, depth int) {
		var object map[string]json.RawMessage
		if depth > 8 || len(paths) >= 10 || json.Unmarshal(raw, &object) != nil {
			return
		}
		for name, inner := range object {
			if name == "_errors" {
				paths = append(paths, path)
				continue
			}
			walk(strings.TrimPrefix(path+"."+name, "."), inner, depth+1)
		}
	}
	walk("", errors, 0)
	slices.Sort(paths)
	return paths
}

// answerBody is the body of an answer, whose time ends with it.
type answerBody struct {
	io.Reader
	close  func() error
	cancel context.CancelFunc
}

func (b *answerBody) Close() error {
	defer b.cancel()
	return b.close()
}
