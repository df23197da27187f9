package slacktwin

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
)

var errRedirects = errors.New("too many redirects")

// deliveryClient returns a copy of c that follows at most two redirects, doc apis/events-api.
func deliveryClient(c *http.Client) *http.Client {
	client := *c
	client.CheckRedirect = func(_ *http.Request, via []*http.Request) error {
		if len(via) > maxRedirects {
			return errRedirects
		}
		return nil
	}
	return &client
}

// deliverHTTP posts one envelope to a callback, signed, and waits 3 s. It is called without mu.
func (t *Twin) deliverHTTP(ctx context.Context, to string, e *envelope, out *outcome) {
	ctx, done := t.within(ctx, ackTime)
	defer done()
	response, err := t.send(ctx, to, e, out.Attempt, out.Reason)
	if err != nil {
		out.reason = reasonOf(causeOf(ctx, err))
		out.Error = out.reason
		return
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxBody))
	if err != nil {
		out.reason = reasonOf(causeOf(ctx, err))
		out.Error = out.reason
		return
	}
	out.Status = response.StatusCode
	if response.StatusCode/100 == 2 {
		out.Acked, out.answer = true, answer
		return
	}
	out.reason, out.Error = "http_error", "http_error"
	out.final = response.Header.Get("X-Slack-No-Retry") == "1"
}

// causeOf returns why ctx ended, if it did, else err.
func causeOf(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

func (t *Twin) send(ctx context.Context, to string, e *envelope, attempt int, reason string) (*http.Response, error) {
	body, contentType, err := e.overHTTP()
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", contentType)
	request.Header.Set("User-Agent", "Slackbot 1.0 (+https://api.slack.com/robots)")
	if attempt > 0 {
		request.Header.Set("X-Slack-Retry-Num", strconv.Itoa(attempt))
		request.Header.Set("X-Slack-Retry-Reason", reason)
	}
	t.Sign(request.Header, body)
	return t.client.Do(request)
}

// overHTTP returns the body: events are JSON, interactions JSON in the form field payload, commands a form.
func (e *envelope) overHTTP() (body []byte, contentType string, err error) {
	const form = "application/x-www-form-urlencoded"
	switch e.kind {
	case kindEvents:
		return e.body, "application/json", nil
	case kindInteractive:
		return []byte(url.Values{"payload": {string(e.body)}}.Encode()), form, nil
	}
	var fields map[string]string
	if err := json.Unmarshal(e.body, &fields); err != nil {
		return nil, "", fmt.Errorf("slacktwin: command: %w", err)
	}
	values := url.Values{}
	for k, v := range fields {
		values.Set(k, v)
	}
	return []byte(values.Encode()), form, nil
}

// Sign adds Slack's headers to a request with that body, doc authentication/verifying-requests-from-slack: for requests
// that a test makes itself.
func (t *Twin) Sign(h http.Header, body []byte) {
	timestamp := strconv.FormatInt(t.opt.Now().Unix(), 10)
	mac := hmac.New(sha256.New, []byte(t.opt.SigningSecret))
	mac.Write([]byte("v0:" + timestamp + ":"))
	mac.Write(body)
	h.Set("X-Slack-Request-Timestamp", timestamp)
	h.Set("X-Slack-Signature", "v0="+hex.EncodeToString(mac.Sum(nil)))
}
