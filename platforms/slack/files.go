package slack

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"time"

	"github.com/parley-chat/parley/platforms"
)

// file is a file as Slack tells of it (doc reference/objects/file-object).
type file struct {
	ID         string `json:"id"`
	Name       string `json:"name"`
	Title      string `json:"title"`
	MediaType  string `json:"mimetype"`
	Mode       string `json:"mode"`
	Access     string `json:"file_access"`
	URLPrivate string `json:"url_private"`
	IsExternal bool   `json:"is_external"`
	Size       int64  `json:"size"`
}

// fileToken is what a platforms.File holds for Fetch. Without a URL, Slack has to be asked for it (Slack Connect).
type fileToken struct {
	ID  string `json:"id,omitempty"`
	URL string `json:"url,omitempty"`
}

func attached(files []file) []platforms.File {
	var out []platforms.File
	for _, f := range files {
		out = append(out, f.attachment())
	}
	return out
}

func (f file) attachment() platforms.File {
	name := f.Name
	if name == "" {
		name = f.Title
	}
	a := platforms.File{Name: name, MediaType: f.MediaType, Size: max(f.Size, 0), Problem: f.problem()}
	if a.Problem != "" {
		return a
	}
	token, err := json.Marshal(fileToken{ID: f.ID, URL: f.URLPrivate})
	if err != nil {
		panic("slack: a token of strings is no JSON: " + err.Error())
	}
	a.Token = string(token)
	return a
}

// problem says why a file cannot be read, empty if it can.
func (f file) problem() string {
	switch {
	case f.IsExternal || f.Mode == "external":
		return "It is kept outside Slack, where I cannot read it."
	case f.Mode == "tombstone":
		return "It was deleted."
	case f.Mode == "hidden_by_limit":
		return "Slack hides it because the workspace is over its limit."
	case f.Access == "access_denied":
		return "Slack does not let me see it."
	case f.Access == "check_file_info" && f.ID != "":
		return ""
	case f.URLPrivate == "":
		return "Slack does not say where it is."
	}
	return ""
}

// fetchWithin bounds the reading of one file.
const fetchWithin = 5 * time.Minute

// Fetch opens a file with the bot token, which is sent to the host of the Web API and to Slack only. Besides the failures
// of every call, the error is Refused with the code "too_large", "sign_in_page" (the scope files:read is missing),
// "foreign_url", "external" or "no_url".
func (a *Adapter) Fetch(ctx context.Context, f platforms.File, limit int64) (io.ReadCloser, error) {
	const op = "fetch"
	var token fileToken
	if f.Problem != "" || json.Unmarshal([]byte(f.Token), &token) != nil {
		return nil, failed(op, platforms.Refused, "no_url")
	}
	if f.Size > limit {
		return nil, failed(op, platforms.Refused, "too_large")
	}
	if token.URL == "" {
		found, err := a.fileInfo(ctx, token.ID)
		if err != nil {
			return nil, err
		}
		token.URL, f.MediaType = found.URLPrivate, found.MediaType
	}
	u, err := url.Parse(token.URL)
	if err != nil || !a.mayReceiveToken(u) {
		return nil, failed(op, platforms.Refused, "foreign_url")
	}
	return a.download(ctx, u, f.MediaType, limit)
}

func (a *Adapter) fileInfo(ctx context.Context, id string) (file, error) {
	var info struct {
		File file `json:"file"`
	}
	if err := a.lookUp(ctx, "files.info", url.Values{"file": {id}}, &info); err != nil {
		return file{}, err
	}
	if info.File.IsExternal || info.File.Mode == "external" {
		return file{}, failed("files.info", platforms.Refused, "external")
	}
	if info.File.URLPrivate == "" {
		return file{}, failed("files.info", platforms.Refused, "no_url")
	}
	return info.File, nil
}

var errForeignRedirect = errors.New("a redirect away from Slack")

func (a *Adapter) download(ctx context.Context, u *url.URL, mediaType string, limit int64) (io.ReadCloser, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchWithin)
	var resp *http.Response
	err := a.call(ctx, "fetch", func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
		if err != nil {
			return err
		}
		req.Header.Set("Authorization", "Bearer "+a.opt.BotToken)
		if resp, err = a.fileClient().Do(req); err != nil {
			return err
		}
		if err := checkStatus(resp); err != nil {
			return errors.Join(err, resp.Body.Close())
		}
		return nil
	})
	if err == nil && isSignIn(resp, mediaType) {
		err = errors.Join(failed("fetch", platforms.Refused, "sign_in_page"), resp.Body.Close())
	}
	if err == nil && resp.ContentLength > limit {
		err = errors.Join(failed("fetch", platforms.Refused, "too_large"), resp.Body.Close())
	}
	if err != nil {
		cancel()
		return nil, readable(err)
	}
	return &limited{from: resp.Body, left: limit, cancel: cancel}, nil
}

// readable says of a failed download that it can be tried again: nothing was sent that could have happened twice.
func readable(err error) error {
	e, ok := errors.AsType[*platforms.Error](err)
	if !ok {
		return err
	}
	if errors.Is(e, errForeignRedirect) {
		return failed("fetch", platforms.Refused, "sign_in_page")
	}
	if e.Failure == platforms.Unknown {
		e.Failure = platforms.Unreachable
	}
	return e
}

// fileClient follows redirects within Slack only, and lets a long file take its time.
func (a *Adapter) fileClient() *http.Client {
	c := *a.http
	c.Timeout = 0
	c.CheckRedirect = func(req *http.Request, via []*http.Request) error {
		if !a.mayReceiveToken(req.URL) || len(via) > 3 {
			return errForeignRedirect
		}
		return nil
	}
	return &c
}

// isSignIn tells whether Slack sent a page to sign in at, with status 200, instead of the file.
func isSignIn(resp *http.Response, mediaType string) bool {
	if resp.Request != nil && resp.Request.URL.Query().Get("redir") != "" {
		return true
	}
	got, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	return got == "text/html" && mediaType != "text/html"
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
