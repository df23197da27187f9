package playground

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/parley-chat/parley/platforms/slack/slacktwin"
)

// Limits of request bodies, in bytes. Files travel in base64, a third longer than they are.
const (
	maxBody = 256 << 10
	maxSay  = 24 << 20
)

// The requests of the page. Each names who acts; missing tells what a request lacks, in words, or nothing.
type (
	sayRequest struct {
		User    string   `json:"user"`
		Channel string   `json:"channel"`
		Thread  string   `json:"thread"`
		Text    string   `json:"text"`
		Files   []upload `json:"files"`
	}
	upload struct {
		Name      string `json:"name"`
		MediaType string `json:"mediaType"`
		Content   []byte `json:"content"`
	}
	editRequest struct {
		User    string `json:"user"`
		Channel string `json:"channel"`
		TS      string `json:"ts"`
		Text    string `json:"text"`
	}
	deleteRequest struct {
		User    string `json:"user"`
		Channel string `json:"channel"`
		TS      string `json:"ts"`
	}
	clickRequest struct {
		User    string `json:"user"`
		Channel string `json:"channel"`
		TS      string `json:"ts"`
		Action  string `json:"action"`
	}
	submitRequest struct {
		User   string                       `json:"user"`
		View   string                       `json:"view"`
		Values map[string]map[string]string `json:"values"` // by block id and action id
	}
	dismissRequest struct {
		User string `json:"user"`
		View string `json:"view"`
	}
	commandRequest struct {
		User    string `json:"user"`
		Channel string `json:"channel"`
		Command string `json:"command"`
		Text    string `json:"text"`
	}
	stopRequest struct {
		User    string `json:"user"`
		Channel string `json:"channel"`
		Thread  string `json:"thread"`
	}
)

func (r sayRequest) missing() string {
	if strings.TrimSpace(r.Text) == "" && len(r.Files) == 0 {
		return "text or a file is missing"
	}
	for _, f := range r.Files {
		if f.Name == "" {
			return "a file has no name"
		}
	}
	return absent("user", r.User, "channel", r.Channel)
}

func (r editRequest) missing() string {
	if strings.TrimSpace(r.Text) == "" {
		return "text is missing; to take a message back, delete it"
	}
	return absent("user", r.User, "channel", r.Channel, "ts", r.TS)
}

func (r deleteRequest) missing() string {
	return absent("user", r.User, "channel", r.Channel, "ts", r.TS)
}

func (r clickRequest) missing() string {
	return absent("user", r.User, "channel", r.Channel, "ts", r.TS, "action", r.Action)
}

func (r submitRequest) missing() string  { return absent("user", r.User, "view", r.View) }
func (r dismissRequest) missing() string { return absent("user", r.User, "view", r.View) }

func (r commandRequest) missing() string {
	if !strings.HasPrefix(r.Command, "/") {
		return "command must begin with a slash"
	}
	return absent("user", r.User, "channel", r.Channel)
}

func (r stopRequest) missing() string {
	return absent("user", r.User, "channel", r.Channel, "thread", r.Thread)
}

// absent names the first of name, value, name, value … whose value is empty.
func absent(pairs ...string) string {
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] == "" {
			return pairs[i] + " is missing"
		}
	}
	return ""
}

// said is the answer to a message: its ts. done is the answer to everything that has no other.
type (
	said struct {
		TS string `json:"ts"`
	}
	done      struct{}
	submitted struct {
		Errors map[string]string `json:"errors"` // by block id; empty: the form was taken
	}
)

func (p *Playground) say(_ context.Context, r sayRequest) (said, error) {
	var files []slacktwin.Upload
	for _, f := range r.Files {
		files = append(files, slacktwin.Upload{
			Name: f.Name, MediaType: cmp.Or(f.MediaType, "application/octet-stream"), Content: f.Content,
		})
	}
	ts, err := p.slack.Say(r.User, r.Channel, r.Thread, p.names().toWire(r.Text), files...)
	return said{ts}, err
}

func (p *Playground) edit(_ context.Context, r editRequest) (done, error) {
	return done{}, p.slack.EditMessage(r.User, r.Channel, r.TS, p.names().toWire(r.Text))
}

func (p *Playground) delete(_ context.Context, r deleteRequest) (done, error) {
	return done{}, p.slack.DeleteMessage(r.User, r.Channel, r.TS)
}

func (p *Playground) click(ctx context.Context, r clickRequest) (done, error) {
	return done{}, p.slack.Click(ctx, r.User, r.Channel, r.TS, r.Action)
}

func (p *Playground) submit(ctx context.Context, r submitRequest) (submitted, error) {
	err := p.slack.SubmitView(ctx, r.User, r.View, r.Values)
	if refused, ok := errors.AsType[*slacktwin.ViewErrors](err); ok {
		return submitted{refused.Errors}, nil
	}
	return submitted{map[string]string{}}, err
}

func (p *Playground) dismiss(ctx context.Context, r dismissRequest) (done, error) {
	return done{}, p.slack.CloseView(ctx, r.User, r.View)
}

func (p *Playground) command(ctx context.Context, r commandRequest) (done, error) {
	return done{}, p.slack.Command(ctx, r.User, r.Channel, r.Command, r.Text)
}

func (p *Playground) stop(_ context.Context, r stopRequest) (done, error) {
	return done{}, p.slack.StopSession(r.User, r.Channel, r.Thread)
}

func (p *Playground) names() names { return newNames(p.slack.Users(), p.slack.Channels()) }

// act is the handler of one kind of request: decode it within limit bytes, do it, answer. What the stand-in refuses is 422
// with its reason.
func act[Q interface{ missing() string }, A any](
	p *Playground, limit int64, do func(context.Context, Q) (A, error),
) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		q, status, err := read[Q](w, r, limit)
		if err != nil {
			refuse(w, status, err.Error())
			return
		}
		a, err := do(r.Context(), q)
		if err != nil {
			p.log.WarnContext(r.Context(), "playground: an action failed", "path", r.URL.Path, "error", err)
			refuse(w, http.StatusUnprocessableEntity, sentence(err))
			return
		}
		answer(w, http.StatusOK, a)
	}
}

// read reads the body of a request. The error is for the page, with its HTTP status.
func read[Q interface{ missing() string }](w http.ResponseWriter, r *http.Request, limit int64) (q Q, status int, err error) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return q, http.StatusUnsupportedMediaType, errors.New("the body must be application/json")
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	if _, long := errors.AsType[*http.MaxBytesError](err); long {
		return q, http.StatusRequestEntityTooLarge, fmt.Errorf("too large: at most %d KiB are accepted", limit>>10)
	}
	if err != nil {
		return q, http.StatusBadRequest, fmt.Errorf("the body could not be read: %w", err)
	}
	q, err = decode[Q](body)
	return q, http.StatusBadRequest, err
}

// decode reads exactly one JSON object with known fields only, and everything in it that is needed.
func decode[Q interface{ missing() string }](body []byte) (q Q, err error) {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(&q); err != nil {
		return q, fmt.Errorf("the body is not the JSON that is expected: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return q, errors.New("the body is not the JSON that is expected: there is more after the object")
	}
	if lack := q.missing(); lack != "" {
		return q, errors.New(lack)
	}
	return q, nil
}

func (p *Playground) unknown(w http.ResponseWriter, r *http.Request) {
	refuse(w, http.StatusNotFound, fmt.Sprintf("there is no %s %s", r.Method, r.URL.Path))
}

// answer writes a JSON answer. If the page is gone by then, nobody is left to tell.
func answer(w http.ResponseWriter, status int, body any) {
	text, err := json.Marshal(body)
	if err != nil {
		refuse(w, http.StatusInternalServerError, "the answer could not be written: "+err.Error())
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(text)
}

// refuse answers an error in words: {"error": "…"}.
func refuse(w http.ResponseWriter, status int, why string) {
	answer(w, status, map[string]string{"error": why})
}
