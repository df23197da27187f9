// Package approvals turns a request for permission into one decision. It holds the request as it is kept, the pure
// state machine that ends it exactly once, the rule of who may decide, and every sentence about it: what the card
// shows, what a person hears who pressed a button, what the model is told.
//
// Everything here is a value or a pure function: time, randomness and the membership of groups are arguments. It knows
// no store, no platform and no agent. Its caller keeps requests in a store, applies events inside a transaction (so
// that of two clicks the second sees what the first did), sends the Decision on as a signal, and renders the View.
//
// All texts are plain, not CommonMark: a surface that formats escapes them first.
package approvals

import (
	"fmt"
	"io"
	"strings"
)

// ID names a request: opaque, random, and the id of the signal that carries its decision. It is all that a button
// knows. Twenty letters and digits, so it is also a valid idempotency mark and can be typed ("approve <id>").
type ID string

// idAlphabet has 32 signs, without 0 and o, 1 and l: an id can be read aloud and typed.
const idAlphabet = "23456789abcdefghijkmnpqrstuvwxyz"

const idLength = 20

// NewID draws an id of 100 random bits. It panics if the source fails, as crypto/rand does: without randomness an id
// could be guessed.
func NewID(rand io.Reader) ID {
	random := make([]byte, idLength)
	if _, err := io.ReadFull(rand, random); err != nil {
		panic(fmt.Sprintf("approvals: no randomness for an id: %v", err))
	}
	for i, b := range random {
		random[i] = idAlphabet[int(b)%len(idAlphabet)] // 256 is a multiple of 32: no sign is likelier
	}
	return ID(random)
}

// ParseID reads an id that somebody typed: space around it and capitals do not matter.
func ParseID(s string) (ID, error) {
	id := ID(strings.ToLower(strings.TrimSpace(s)))
	if !id.valid() {
		return "", fmt.Errorf("%q is not the id of a request: it has %d letters and digits", s, idLength)
	}
	return id, nil
}

func (id ID) valid() bool {
	return len(id) == idLength && strings.Trim(string(id), idAlphabet) == ""
}

// State says how far a request is. It leaves Pending once and never returns.
type State string

const (
	Pending   State = "pending"
	Approved  State = "approved"
	Denied    State = "denied"
	Expired   State = "expired"   // nobody decided in time: no answer, which is not a denial
	Cancelled State = "cancelled" // taken back: stopped, or the asking message was deleted
)

// Ended reports whether s is one of the four ends.
func (s State) Ended() bool {
	return s == Approved || s == Denied || s == Expired || s == Cancelled
}
