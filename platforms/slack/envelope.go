package slack

import (
	"encoding/json"
	"errors"
	"fmt"
)

// kind says which of Slack's three forms the body of an envelope has.
type kind string

const (
	kindEvent       kind = "event"       // an event_callback of the Events API
	kindInteractive kind = "interactive" // a click, a submitted view
	kindCommand     kind = "command"     // a slash command; a form became a JSON object with the same fields
)

// envelopeVersion is raised when an older program could no longer read what is written here.
const envelopeVersion = 1

// envelope is the Raw of a delivery: the verified payload as it came, and who we were when it came. With that, reading it
// needs nothing else. The form is kept in stores: fields may be added, none may change its meaning.
type envelope struct {
	Version int             `json:"v"`
	Kind    kind            `json:"kind"`
	Self    identity        `json:"self"`
	Body    json.RawMessage `json:"body"`
}

// identity is what auth.test says about the bot and its installation.
type identity struct {
	Team       string `json:"team"`
	Enterprise string `json:"enterprise,omitempty"`
	User       string `json:"user"`
	BotID      string `json:"bot,omitempty"`
}

// wrap returns the envelope as JSON. The body is JSON.
func (e envelope) wrap() ([]byte, error) {
	e.Version = envelopeVersion
	raw, err := json.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("slack: wrap: %w", err)
	}
	return raw, nil
}

// unwrap is the reverse of wrap.
func unwrap(raw []byte) (envelope, error) {
	var e envelope
	if err := json.Unmarshal(raw, &e); err != nil {
		return envelope{}, fmt.Errorf("slack: read: not an envelope: %w", err)
	}
	if e.Version != envelopeVersion {
		return envelope{}, fmt.Errorf("slack: read: an envelope of version %d, only %d is known", e.Version, envelopeVersion)
	}
	switch e.Kind {
	case kindEvent, kindInteractive, kindCommand:
		return e, nil
	}
	return envelope{}, fmt.Errorf("slack: read: an envelope of unknown kind %q", e.Kind)
}

// decode reads foreign JSON: a field of another type than ours counts as absent. It fails only on what
// is no JSON at all.
func decode(data []byte, v any) error {
	err := json.Unmarshal(data, v)
	if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return nil
	}
	return err
}
