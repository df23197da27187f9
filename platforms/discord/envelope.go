package discord

import (
	"encoding/json"
	"errors"
	"fmt"
)

// kind is the name of the event that the body of an envelope is, as the gateway calls it.
type kind string

const (
	kindMessage     kind = "MESSAGE_CREATE"
	kindUpdate      kind = "MESSAGE_UPDATE"
	kindDelete      kind = "MESSAGE_DELETE"
	kindInteraction kind = "INTERACTION_CREATE"
)

// envelopeVersion is raised when an older program could no longer read what is written here.
const envelopeVersion = 1

// envelope is the Raw of a delivery: the payload as it came, and what was known when it came. With that, reading it needs
// nothing else. The form is kept in stores: fields may be added, none may change its meaning.
type envelope struct {
	Version int             `json:"v"`
	Kind    kind            `json:"kind"`
	Self    identity        `json:"self"`
	Where   where           `json:"where"`
	Body    json.RawMessage `json:"body"`
}

// identity is what READY says about the bot, and GUILD_CREATE about its role.
type identity struct {
	User string `json:"user"`
	App  string `json:"app,omitempty"`
	Role string `json:"role,omitempty"` // the bot's managed role in the guild of the event
}

// where is what a payload does not tell about its channel, or not always.
type where struct {
	Guild  string `json:"guild,omitempty"`  // of messages that were looked up; events tell it themselves
	Thread bool   `json:"thread,omitempty"` // the channel is a thread
	Parent string `json:"parent,omitempty"` // the channel of a thread
	// InChannel: what is said in this channel is answered there, not in a thread.
	InChannel bool `json:"in_channel,omitempty"`
	// Quiet: in a thread, only what mentions the bot is for it.
	Quiet bool `json:"quiet,omitempty"`
}

// wrap returns the envelope as JSON. The body is JSON.
func (e envelope) wrap() ([]byte, error) {
	e.Version = envelopeVersion
	raw, err := json.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("discord: wrap: %w", err)
	}
	return raw, nil
}

// unwrap is the reverse of wrap.
func unwrap(raw []byte) (envelope, error) {
	var e envelope
	if err := json.Unmarshal(raw, &e); err != nil {
		return envelope{}, fmt.Errorf("discord: read: not an envelope: %w", err)
	}
	if e.Version != envelopeVersion {
		return envelope{}, fmt.Errorf("discord: read: an envelope of version %d, only %d is known", e.Version, envelopeVersion)
	}
	switch e.Kind {
	case kindMessage, kindUpdate, kindDelete, kindInteraction:
		return e, nil
	}
	return envelope{}, fmt.Errorf("discord: read: an envelope of unknown kind %q", e.Kind)
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
