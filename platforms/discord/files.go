package discord

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/parley-chat/parley/platforms"
)

// attachment is a file of a message (doc resources/message).
type attachment struct {
	ID        string `json:"id"`
	Name      string `json:"filename"`
	Title     string `json:"title"`
	MediaType string `json:"content_type"`
	Size      int64  `json:"size"`
	URL       string `json:"url"`
}

// fileToken is what a platforms.File holds for Fetch: the address, which expires, and where to ask for a fresh one.
type fileToken struct {
	Channel string `json:"channel"`
	Message string `json:"message"`
	ID      string `json:"id"`
	URL     string `json:"url"`
}

func attached(m message) []platforms.File {
	var files []platforms.File
	for _, f := range m.Attachments {
		files = append(files, f.file(m))
	}
	return files
}

func (f attachment) file(m message) platforms.File {
	out := platforms.File{Name: cmp.Or(f.Name, f.Title), MediaType: f.MediaType, Size: max(f.Size, 0)}
	if base, _, err := mime.ParseMediaType(f.MediaType); err == nil {
		out.MediaType = base // Discord adds the charset of texts
	}
	if !isSnowflake(f.ID) || f.URL == "" {
		out.Problem = "Discord does not say where it is."
		return out
	}
	token, err := json.Marshal(fileToken{Channel: m.ChannelID, Message: m.ID, ID: f.ID, URL: f.URL})
	if err != nil {
		panic("discord: a token of strings is no JSON: " + err.Error())
	}
	out.Token = string(token)
	return out
}

// fetchWithin bounds the reading of one file.
const fetchWithin = 5 * time.Minute

// Fetch opens a file. Its address needs no token of ours, expires after a day, and is asked for again then. Besides the
// failures of every call, the error is Refused with the code "too_large", "foreign_url", "no_url" or "gone".
func (a *Adapter) Fetch(ctx context.Context, f platforms.File, limit int64) (io.ReadCloser, error) {
	const op = "fetch"
	var token fileToken
	if f.Problem != "" || json.Unmarshal([]byte(f.Token), &token) != nil {
		return nil, failed(op, platforms.Refused, "no_url")
	}
	if f.Size > limit {
		return nil, failed(op, platforms.Refused, "too_large")
	}
	if !expired(token.URL, a.now()) {
		r, err := a.download(ctx, token.URL, limit)
		if e, ok := errors.AsType[*platforms.Error](err); !ok || e.Code != "http_403" && e.Code != "http_404" {
			return r, err
		}
	}
	fresh, err := a.freshURL(ctx, token)
	if err != nil {
		return nil, err
	}
	return a.download(ctx, fresh, limit)
}

// expired tells whether the address of a file has expired: its parameter ex is a time in hexadecimal (doc reference).
func expired(address string, now time.Time) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	seconds, err := strconv.ParseInt(u.Query().Get("ex"), 16, 64)
	return err == nil && !now.Before(time.Unix(seconds, 0))
}

// freshURL looks the message up again: its files come with addresses that work.
func (a *Adapter) freshURL(ctx context.Context, t fileToken) (string, error) {
	const op = "look up a file"
	if !isSnowflake(t.Channel) || !isSnowflake(t.Message) {
		return "", failed(op, platforms.Refused, "no_url")
	}
	var m message
	if err := a.do(ctx, call{op: op, method: http.MethodGet, path: "channels/" + t.Channel + "/messages/" + t.Message}, &m); err != nil {
		return "", err
	}
	for _, f := range m.Attachments {
		if f.ID == t.ID && f.URL != "" {
			return f.URL, nil
		}
	}
	return "", failed(op, platforms.Refused, "gone")
}

// isOurs tells whether files are read from an address: Discord's, and the server's that is set.
func (a *Adapter) isOurs(u *url.URL) bool {
	if u.Scheme == a.transport.api.Scheme && strings.EqualFold(u.Host, a.transport.api.Host) {
		return true
	}
	host := strings.ToLower(u.Hostname())
	for _, domain := range []string{"cdn.discordapp.com", "media.discordapp.net", "cdn.discord.com"} {
		if u.Scheme == "https" && host == domain {
			return true
		}
	}
	return false
}

var errForeignRedirect = errors.New("a redirect away from Discord")

func (a *Adapter) download(ctx context.Context, address string, limit int64) (io.ReadCloser, error) {
	const op = "fetch"
	u, err := url.Parse(address)
	if err != nil || !a.isOurs(u) {
		return nil, failed(op, platforms.Refused, "foreign_url")
	}
	ctx, cancel := context.WithTimeout(ctx, fetchWithin)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		cancel()
		return nil, failed(op, platforms.Refused, "no_url")
	}
	req.Header.Set("User-Agent", userAgent)
	client := *a.files
	client.CheckRedirect = func(req *http.Request, via []*http.Request) error {
		if !a.isOurs(req.URL) || len(via) > 3 {
			return errForeignRedirect
		}
		return nil
	}
	resp, err := client.Do(req)
	if err != nil {
		cancel()
		if errors.Is(err, errForeignRedirect) {
			return nil, failed(op, platforms.Refused, "foreign_url")
		}
		e := failed(op, platforms.Unreachable, "")
		e.Cause = cause(err)
		return nil, e
	}
	if err := badFile(resp, limit); err != nil {
		cancel()
		_ = resp.Body.Close()
		return nil, err
	}
	return &limited{from: resp.Body, left: limit, cancel: cancel}, nil
}

// badFile says why an answer is not the file.
func badFile(resp *http.Response, limit int64) error {
	const op = "fetch"
	switch {
	case resp.StatusCode == http.StatusOK && resp.ContentLength > limit:
		return failed(op, platforms.Refused, "too_large")
	case resp.StatusCode == http.StatusOK:
		return nil
	case resp.StatusCode == http.StatusTooManyRequests:
		e := failed(op, platforms.SlowDown, "http_429")
		e.RetryAfter = retryAfter(resp.Header)
		return e
	case resp.StatusCode >= 500:
		return failed(op, platforms.Unreachable, "http_"+strconv.Itoa(resp.StatusCode))
	}
	return failed(op, platforms.Refused, "http_"+strconv.Itoa(resp.StatusCode))
}

// limited reads up to left bytes and fails if there are more.
type limited struct {
	from   io.ReadCloser
	left   int64
	cancel context.CancelFunc
}

func (l *limited) Read(p []byte) (int, error) {
	if int64(len(p)) > l.left+1 {
		p = p[:l.left+1]
	}
	n, err := l.from.Read(p)
	if int64(n) > l.left {
		n = int(l.left)
		l.left = 0
		return n, failed("fetch", platforms.Refused, "too_large")
	}
	l.left -= int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		e := failed("fetch", platforms.Unreachable, "")
		e.Cause = cause(err)
		return n, e
	}
	return n, err
}

func (l *limited) Close() error {
	defer l.cancel()
	return l.from.Close()
}
