package slack

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	slackgo "github.com/slack-go/slack"

	"github.com/parley-chat/parley/platforms"
)

// do makes one call of the Web API: it waits for its turn, calls once, and says what to do about a failure. It never
// repeats a call. The error is a *platforms.Error.
func (a *Adapter) do(ctx context.Context, method, channel string, call func(context.Context) error) error {
	if err := a.pace.wait(ctx, method, channel); err != nil {
		return err
	}
	return a.call(ctx, method, call)
}

// call is do for a call that has had its turn.
func (a *Adapter) call(ctx context.Context, method string, call func(context.Context) error) error {
	var sent atomic.Bool
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { sent.Store(true) }})
	err := call(traced)
	if err == nil {
		a.noteToken(method, "")
		return nil
	}
	e := classify(method, err, sent.Load())
	if e.Failure == platforms.SlowDown {
		a.pace.hold(method, e.RetryAfter)
	}
	a.noteToken(method, e.Code)
	return e
}

// noteToken makes readiness follow what a call said about the bot token; code is empty if it succeeded.
func (a *Adapter) noteToken(method, code string) {
	switch {
	case method == "apps.connections.open" || method == "response_url": // these use another
	case code == "":
		a.health.mended()
	case endsEverything(code):
		a.health.broke("slack: the bot token does not work (" + code + "): " + mend[code])
	}
}

// maxAnswer is the longest answer of the Web API that is read, in bytes.
const maxAnswer = 16 << 20

// lookUp calls a method that changes nothing, and reads its answer tolerantly: slack-go would fail on a whole page of other
// people's messages for one field of an unexpected type.
func (a *Adapter) lookUp(ctx context.Context, method string, args url.Values, out any) error {
	return a.do(ctx, method, "", func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.base.String()+method, strings.NewReader(args.Encode()))
		if err != nil {
			return err
		}
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.Header.Set("Authorization", "Bearer "+a.opt.BotToken)
		resp, err := a.http.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if err := checkStatus(resp); err != nil {
			return err
		}
		body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
		if err != nil {
			return err
		}
		var result slackgo.SlackResponse
		if err := decode(body, &result); err != nil {
			return err
		}
		if !result.Ok {
			return slackgo.SlackErrorResponse{Err: result.Error}
		}
		return decode(body, out)
	})
}

// checkStatus turns a bad status into slack-go's errors for it.
func checkStatus(resp *http.Response) error {
	if resp.StatusCode == http.StatusOK {
		return nil
	}
	seconds, err := strconv.Atoi(resp.Header.Get("Retry-After"))
	if resp.StatusCode == http.StatusTooManyRequests && err == nil {
		return &slackgo.RateLimitedError{RetryAfter: time.Duration(seconds) * time.Second}
	}
	return slackgo.StatusCodeError{Code: resp.StatusCode, Status: resp.Status}
}

// rawBlocks are blocks that are passed on as they were rendered.
func rawBlocks(blocks []json.RawMessage) []slackgo.Block {
	out := make([]slackgo.Block, len(blocks))
	for i, b := range blocks {
		out[i] = rawBlock(b)
	}
	return out
}

type rawBlock json.RawMessage

func (b rawBlock) BlockType() slackgo.MessageBlockType { return "" }
func (b rawBlock) ID() string                          { return "" }
func (b rawBlock) MarshalJSON() ([]byte, error)        { return json.RawMessage(b).MarshalJSON() }

// mayReceiveToken tells whether the bot token may be sent to an address: to the host of the Web API, and to Slack by https.
func (a *Adapter) mayReceiveToken(u *url.URL) bool {
	if u.Scheme == a.base.Scheme && strings.EqualFold(u.Host, a.base.Host) {
		return true
	}
	host := strings.ToLower(u.Hostname())
	for _, domain := range []string{"slack.com", "slack-gov.com"} {
		if u.Scheme == "https" && (host == domain || strings.HasSuffix(host, "."+domain)) {
			return true
		}
	}
	return false
}
