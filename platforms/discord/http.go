package discord

import (
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/bwmarrin/discordgo"
)

const (
	// maxBody is the longest request that is read, in bytes. Discord's are far shorter.
	maxBody = 1 << 20
	// fresh is how far the time of a request may be from ours.
	fresh = 5 * time.Minute
)

// Routes are /discord/interactions. It needs the public key; without it there are none. While the application's page names
// the endpoint, interactions come here and not by the gateway; messages come by the gateway always.
//
// A request is answered 200 with the answer to a ping, 202 when it is durable or of no interest (its answer is sent by the
// REST API), 401 when its signature is wrong or its time more than 5 minutes from ours, and 503 when it could not be kept.
func (a *Adapter) Routes() map[string]http.Handler {
	if a.publicKey == nil {
		return nil
	}
	return map[string]http.Handler{"/discord/interactions": http.HandlerFunc(a.serveInteraction)}
}

func (a *Adapter) serveInteraction(w http.ResponseWriter, r *http.Request) {
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
	var i interaction
	if err := decode(body, &i); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if discordgo.InteractionType(i.Type) == discordgo.InteractionPing {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"type":1}`)
		return
	}
	a.serveKept(w, body)
}

// signed tells whether Discord has signed a request, lately (doc interactions/overview).
func (a *Adapter) signed(h http.Header, body []byte) bool {
	at := h.Get("X-Signature-Timestamp")
	seconds, err := strconv.ParseInt(at, 10, 64)
	if err != nil || a.now().Sub(time.Unix(seconds, 0)).Abs() > fresh {
		return false
	}
	signature, err := hex.DecodeString(h.Get("X-Signature-Ed25519"))
	return err == nil && len(signature) == ed25519.SignatureSize && ed25519.Verify(a.publicKey, append([]byte(at), body...), signature)
}

func (a *Adapter) serveKept(w http.ResponseWriter, body []byte) {
	a.gate.mu.RLock()
	defer a.gate.mu.RUnlock()
	if a.gate.inbox == nil || a.self.Load() == nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	err := a.take(a.gate.ctx, a.gate.inbox, arrival{kind: kindInteraction, self: a.identity(), body: body})
	if err != nil {
		a.log.Error("discord: an interaction could not be kept", "error", err)
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	w.WriteHeader(http.StatusAccepted)
}
