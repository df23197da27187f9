package store

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Records are the typed records on top of a key-value space. It implements what the engine, the bridge and the
// operator's commands ask for; each of them declares its own interface.
type Records struct {
	kv KV
}

// NewRecords returns the records in kv. Closing kv is the caller's.
func NewRecords(kv KV) *Records { return &Records{kv: kv} }

// ErrVersion wraps the error of a record that a later version of this program wrote.
var ErrVersion = errors.New("store: the record has a version this program does not know")

// versioned is the envelope of every JSON record: {"v":1,"r":{…}}. Unknown versions are refused, older ones are
// migrated where the record is read.
type versioned struct {
	V int             `json:"v"`
	R json.RawMessage `json:"r"`
}

const recordVersion = 1

func put(tx Tx, key []byte, record any) error {
	r, err := json.Marshal(record)
	if err != nil {
		return fmt.Errorf("store: encode %c record: %w", key[0], err)
	}
	v, err := json.Marshal(versioned{V: recordVersion, R: r})
	if err != nil {
		return fmt.Errorf("store: encode %c record: %w", key[0], err)
	}
	return tx.Put(key, v)
}

// get reads a record into out and reports whether there was one.
func get(tx Tx, key []byte, out any) (bool, error) {
	raw, err := tx.Get(key)
	if err != nil || raw == nil {
		return false, err
	}
	return true, decode(key, raw, out)
}

func decode(key, raw []byte, out any) error {
	var v versioned
	if err := json.Unmarshal(raw, &v); err != nil {
		return fmt.Errorf("store: %c record is damaged: %w", key[0], err)
	}
	if v.V != recordVersion {
		return fmt.Errorf("%w: %c record, version %d", ErrVersion, key[0], v.V)
	}
	if err := json.Unmarshal(v.R, out); err != nil {
		return fmt.Errorf("store: %c record is damaged: %w", key[0], err)
	}
	return nil
}
