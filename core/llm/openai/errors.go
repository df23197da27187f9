package openai

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/openai/openai-go/v3/option"

	"github.com/parley-chat/parley/core/llm"
)

const (
	maxAnswer     = 16 << 20 // bytes of an answer, or of all events of a stream
	maxErrorBody  = 64 << 10 // bytes of an error's body that are looked at
	maxErrorText  = 500      // bytes of a provider's own words that are kept
	maxRetryAfter = 24 * time.Hour
)

var errTooLarge = fmt.Errorf("the answer is larger than %d bytes", maxAnswer)

// refusal is an answer that is not 2xx. Its words are the provider's and for operators, without the key; people are
// shown the status and the code only.
type refusal struct {
	status     int
	code       string // the provider's short name for the error, if it looks like one
	words      string
	retryAfter time.Duration
}

func (r *refusal) Error() string {
	return strings.TrimSpace(fmt.Sprintf("HTTP %d %s %s", r.status, r.code, r.words))
}

// unreachable is a request that got no answer.
type unreachable struct{ cause error }

func (u *unreachable) Error() string { return u.cause.Error() }
func (u *unreachable) Unwrap() error { return u.cause }

// guard stands between the SDK and the wire: it bounds what is read, and turns refusals and failures into errors that
// hold neither the request nor its address.
func guard(key string, now func() time.Time) option.Middleware {
	return func(req *http.Request, next option.MiddlewareNext) (*http.Response, error) {
		res, err := next(req)
		if err != nil {
			return nil, &unreachable{withoutAddress(err)}
		}
		if res.StatusCode >= 200 && res.StatusCode < 300 {
			res.Body = &boundedBody{ReadCloser: res.Body, left: maxAnswer}
			return res, nil
		}
		defer res.Body.Close()
		body, _ := io.ReadAll(io.LimitReader(res.Body, maxErrorBody)) // cut off, the status still says enough
		return nil, refusalOf(res.StatusCode, body, key, retryAfter(res.Header, now()))
	}
}

func withoutAddress(err error) error {
	if address, ok := errors.AsType[*url.Error](err); ok {
		return address.Err
	}
	return err
}

// boundedBody fails, rather than ends, when there is more than may be read.
type boundedBody struct {
	io.ReadCloser
	left int64
}

func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, errTooLarge
	}
	return n, err
}

// classify is the error table of llm-provider §8.3. Images says whether the request had any, for only then can a 400 be
// about one.
func classify(ctx context.Context, err error, images bool) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return fmt.Errorf("openai: %w", ctx.Err())
	}
	if ctx.Err() != nil {
		return &llm.Error{Category: llm.Unavailable, Message: "the provider did not answer in time", Cause: ctx.Err()}
	}
	if r, ok := errors.AsType[*refusal](err); ok {
		return r.classified(images)
	}
	if errors.Is(err, errTooLarge) {
		return &llm.Error{Category: llm.InvalidResponse, Message: errTooLarge.Error(), Cause: err}
	}
	message := "the provider could not be reached"
	if u, ok := errors.AsType[*unreachable](err); !ok {
		message = "the connection to the provider broke off"
	} else if timeout, ok := errors.AsType[interface {
		error
		Timeout() bool
	}](u); ok && timeout.Timeout() {
		message = "the provider did not answer in time"
	}
	return &llm.Error{Category: llm.Unavailable, Message: message, Cause: err}
}

func (r *refusal) classified(images bool) *llm.Error {
	category, what := r.category(images)
	message := fmt.Sprintf("%s (HTTP %d)", what, r.status)
	if r.code != "" {
		message = fmt.Sprintf("%s (HTTP %d, %s)", what, r.status, r.code)
	}
	return &llm.Error{Category: category, Message: message, RetryAfter: r.retryAfter, Cause: r}
}

// category is a row of the table and what a person is told about it. Servers differ in how they say that a model is
// missing, still loading or blind, so three rows read the words.
func (r *refusal) category(images bool) (llm.Category, string) {
	words := strings.ToLower(r.code + " " + r.words)
	switch r.status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return llm.Authentication, "the provider does not accept the key"
	case http.StatusTooManyRequests:
		return llm.RateLimit, "the provider asks to slow down"
	case http.StatusRequestTimeout:
		return llm.Unavailable, "the provider did not answer in time"
	case http.StatusNotFound:
		if modelWords.MatchString(words) {
			return llm.InvalidModel, "the provider does not know the model"
		}
	case http.StatusServiceUnavailable:
		if loadWords.MatchString(words) {
			return llm.ModelNotLoaded, "the provider has not loaded the model yet"
		}
	case http.StatusBadRequest, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity:
		if images && blockWords.MatchString(words) {
			return llm.UnsupportedContentBlock, "the model does not take this image"
		}
	}
	if r.status >= 500 {
		return llm.Unavailable, "the provider has trouble of its own"
	}
	return llm.InvalidRequest, "the provider refused the request"
}

var (
	modelWords = regexp.MustCompile(`\bmodel\b|model_?not_?found`) // and not the path /models
	loadWords  = regexp.MustCompile(`model.*\b(?:un)?load(?:ed|ing)?\b|\bloading\b.*model|model_?(?:not_?loaded|loading)`)
	blockWords = regexp.MustCompile(`image|vision|multi-?modal|media[ _-]?type|mime`)
	shortName  = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]{0,63}$`)
)

// refusalOf reads the body of an error. Servers write it in several ways: an object under "error", its members at the
// top, a string, or plain text.
func refusalOf(status int, body []byte, key string, after time.Duration) *refusal {
	var top struct {
		Error json.RawMessage `json:"error"`
		wireError
	}
	if json.Unmarshal(body, &top) != nil {
		return &refusal{status: status, words: tidy(plain(body), key), retryAfter: after}
	}
	inner := top.wireError
	if json.Unmarshal(top.Error, &inner) != nil {
		_ = json.Unmarshal(top.Error, &inner.Message) // or a string, or nothing of use
	}
	code := cmp.Or(inner.Code.name(), inner.Type.name())
	words := strings.TrimSpace(string(inner.Type) + " " + string(inner.Message))
	return &refusal{status: status, code: tidy(code, key), words: tidy(words, key), retryAfter: after}
}

// wireError holds the members of an error. Each may be of any type: a code is a number here and a name there.
type wireError struct {
	Message looseText `json:"message"`
	Type    looseText `json:"type"`
	Code    looseText `json:"code"`
}

// looseText is the JSON value of a field as text: a string as it is, anything else as it is written.
type looseText string

func (l *looseText) UnmarshalJSON(data []byte) error {
	var s string
	if json.Unmarshal(data, &s) != nil {
		s = string(data)
	}
	*l = looseText(s)
	return nil
}

// name is the text if it is a short name that a person may be shown.
func (l looseText) name() string {
	if !shortName.MatchString(string(l)) {
		return ""
	}
	return string(l)
}

// plain is a body that is no JSON, if it is not a page for browsers.
func plain(body []byte) string {
	text := strings.TrimSpace(string(body))
	if strings.HasPrefix(text, "<") {
		return ""
	}
	return text
}

// tidy takes the key out of a provider's words (some repeat it) and bounds them.
func tidy(text, key string) string {
	if key != "" {
		text = strings.ReplaceAll(text, key, "[key]")
	}
	text = strings.ToValidUTF8(text, "�")
	if len(text) <= maxErrorText {
		return text
	}
	cut := maxErrorText
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}

// retryAfter reads how long the provider asks to wait: milliseconds in retry-after-ms, seconds or a date in Retry-After.
// Zero means that it did not say; a day is the most.
func retryAfter(header http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(header.Get("Retry-After-Ms"), 64); err == nil {
		return bounded(ms / 1000)
	}
	value := header.Get("Retry-After")
	if seconds, err := strconv.ParseFloat(value, 64); err == nil {
		return bounded(seconds)
	}
	if date, err := http.ParseTime(value); err == nil {
		return bounded(date.Sub(now).Seconds())
	}
	return 0
}

func bounded(seconds float64) time.Duration {
	if !(seconds > 0) { // also what is no number
		return 0
	}
	if seconds > maxRetryAfter.Seconds() {
		return maxRetryAfter
	}
	return time.Duration(seconds * float64(time.Second))
}
