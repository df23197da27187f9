package slack

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"

	slackgo "github.com/slack-go/slack"
)

// maxBody is the longest request that is read, in bytes. Slack's are far shorter.
const maxBody = 1 << 20

// Routes are /slack/events, /slack/interactivity and /slack/commands. They need the signing secret; without it there are
// none. With Socket Mode on they still verify and take what comes, so that an app can change over without a gap.
//
// A request is answered 200 when it is durable or of no interest, 401 when its signature is wrong or older than 5 minutes,
// 503 when it could not be kept, so that Slack sends it again. A retry is treated like a first attempt.
func (a *Adapter) Routes() map[string]http.Handler {
	if a.opt.SigningSecret == "" {
		return nil
	}
	return map[string]http.Handler{
		"/slack/events":        a.verified(a.serveEvents),
		"/slack/interactivity": a.verified(a.serveInteractivity),
		"/slack/commands":      a.verified(a.serveCommands),
	}
}

// verified passes on what Slack has signed (doc authentication/verifying-requests-from-slack).
func (a *Adapter) verified(serve func(w http.ResponseWriter, r *http.Request, body []byte)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && r.URL.Query().Get("ssl_check") == "1" {
			return // Slack looks at the certificate only, and signs nothing
		}
		if r.Method != http.MethodPost {
			w.Header().Set("Allow", http.MethodPost)
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if err != nil {
			status := http.StatusBadRequest
			if _, tooLong := errors.AsType[*http.MaxBytesError](err); tooLong {
				status = http.StatusRequestEntityTooLarge
			}
			w.WriteHeader(status)
			return
		}
		if !a.signed(r.Header, body) {
			a.count.add("refused", "signature")
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		serve(w, r, body)
	})
}

func (a *Adapter) signed(header http.Header, body []byte) bool {
	verifier, err := slackgo.NewSecretsVerifier(header, a.opt.SigningSecret)
	if err != nil {
		return false
	}
	if _, err := verifier.Write(body); err != nil {
		return false
	}
	return verifier.Ensure() == nil
}

func (a *Adapter) serveEvents(w http.ResponseWriter, r *http.Request, body []byte) {
	var outer struct {
		Type      string `json:"type"`
		Challenge string `json:"challenge"`
	}
	if err := decode(body, &outer); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	switch outer.Type {
	case "url_verification":
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		_, _ = io.WriteString(w, outer.Challenge)
	case "app_rate_limited":
		a.log.Warn("slack: Slack leaves out events: more than 30,000 in an hour")
		a.count.add("ignored", "app_rate_limited")
	default:
		a.acknowledge(w, r, kindEvent, body)
	}
}

func (a *Adapter) serveInteractivity(w http.ResponseWriter, r *http.Request, body []byte) {
	form, err := url.ParseQuery(string(body))
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if form.Get("ssl_check") == "1" {
		return
	}
	payload := []byte(form.Get("payload"))
	if !json.Valid(payload) {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	a.acknowledge(w, r, kindInteractive, payload)
}

func (a *Adapter) serveCommands(w http.ResponseWriter, r *http.Request, body []byte) {
	form, err := url.ParseQuery(string(body))
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if form.Get("ssl_check") == "1" {
		return
	}
	fields := map[string]string{}
	for name := range form {
		fields[name] = form.Get(name)
	}
	payload, err := json.Marshal(fields)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	a.acknowledge(w, r, kindCommand, payload)
}

// acknowledge takes a payload and answers 200 with nothing in it: a command shows no message, a view closes.
func (a *Adapter) acknowledge(w http.ResponseWriter, r *http.Request, k kind, payload []byte) {
	err := a.take(r.Context(), k, payload)
	switch {
	case err == nil:
		w.WriteHeader(http.StatusOK)
	case errors.Is(err, errClosed):
		w.WriteHeader(http.StatusServiceUnavailable)
	default:
		a.log.Error("slack: a delivery could not be kept; Slack is told to send it again", "kind", string(k), "error", err)
		w.WriteHeader(http.StatusServiceUnavailable)
	}
}
