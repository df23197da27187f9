package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/parley-chat/parley/core/graph"
)

var (
	_ graph.SessionStore = (*Records)(nil)
	_ graph.Checkpointer = (*Records)(nil)
	_ graph.Committer    = (*Records)(nil)
)

// sessionHead is a session without the items of its lists.
type sessionHead struct {
	SchemaVersion string                     `json:"schema_version,omitempty"`
	Version       uint64                     `json:"version"`
	Turn          string                     `json:"turn,omitempty"`
	CreatedAt     time.Time                  `json:"created_at"`
	UpdatedAt     time.Time                  `json:"updated_at"`
	Fields        map[string]json.RawMessage `json:"fields,omitempty"`
	Logs          map[string]int             `json:"logs,omitempty"`
}

func (h sessionHead) summary(id string) graph.SessionSummary {
	return graph.SessionSummary{SessionID: id, SchemaVersion: h.SchemaVersion, Version: h.Version, Turn: h.Turn, CreatedAt: h.CreatedAt, UpdatedAt: h.UpdatedAt}
}

// Load returns the session's head; its lists are read when asked for.
func (r *Records) Load(ctx context.Context, sessionID string) (*graph.SessionRecord, error) {
	var head sessionHead
	var found bool
	err := r.kv.View(ctx, func(tx Tx) (err error) {
		head = sessionHead{}
		found, err = get(tx, kindSession.key(sessionID), &head)
		return err
	})
	if err != nil || !found {
		return nil, err
	}
	rec := &graph.SessionRecord{SessionSummary: head.summary(sessionID), Fields: head.Fields, Logs: make(map[string]graph.Log, len(head.Logs))}
	for field, n := range head.Logs {
		rec.Logs[field] = &sessionLog{records: r, sessionID: sessionID, field: field, length: n}
	}
	return rec, nil
}

// Save writes what changed: plain fields into the head, list items one record each.
func (r *Records) Save(ctx context.Context, sessionID string, save graph.SessionSave) error {
	return r.kv.Update(ctx, func(tx Tx) error { return saveSession(tx, sessionID, save) })
}

func saveSession(tx Tx, id string, save graph.SessionSave) error {
	var head sessionHead
	found, err := get(tx, kindSession.key(id), &head)
	if err != nil {
		return err
	}
	if save.ExpectedVersion != nil && *save.ExpectedVersion != head.Version {
		return &graph.Error{Category: graph.SessionWriteConflict,
			Message: fmt.Sprintf("the session is at version %d, expected %d", head.Version, *save.ExpectedVersion)}
	}
	if !found {
		head.CreatedAt = save.At
	}
	head.SchemaVersion, head.UpdatedAt, head.Turn = save.SchemaVersion, save.At, save.Turn
	head.Version++
	if head.Fields == nil {
		head.Fields = make(map[string]json.RawMessage, len(save.Set))
	}
	for field, raw := range save.Set {
		head.Fields[field] = raw
	}
	if head.Logs == nil {
		head.Logs = make(map[string]int, len(save.Logs))
	}
	for field, d := range save.Logs {
		if err := saveLog(tx, id, field, head.Logs[field], d); err != nil {
			return err
		}
		head.Logs[field] = d.Keep + len(d.Add)
	}
	return put(tx, kindSession.key(id), head)
}

// saveLog turns a list of length have into its first d.Keep items and d.Add.
func saveLog(tx Tx, id, field string, have int, d graph.LogDelta) error {
	if d.Keep > have {
		return fmt.Errorf("store: list %q has %d items, %d were to be kept", field, have, d.Keep)
	}
	base := kindSessionLog.key(id, field)
	for i, raw := range d.Add {
		if err := tx.Put(appendIndex(base[:len(base):len(base)], uint64(d.Keep+i)), raw); err != nil {
			return err
		}
	}
	for i := d.Keep + len(d.Add); i < have; i++ {
		if err := tx.Delete(appendIndex(base[:len(base):len(base)], uint64(i))); err != nil {
			return err
		}
	}
	return nil
}

// Delete removes a session and its lists.
func (r *Records) Delete(ctx context.Context, sessionID string) error {
	return r.kv.Update(ctx, func(tx Tx) error { return deleteSession(tx, sessionID) })
}

func deleteSession(tx Tx, id string) error {
	if err := deleteAll(tx, kindSessionLog.key(id)); err != nil {
		return err
	}
	return tx.Delete(kindSession.key(id))
}

// deleteAll removes every key that begins with prefix.
func deleteAll(tx Tx, prefix []byte) error {
	var keys [][]byte
	if err := scan(tx, prefix, func(rest, _ []byte) bool {
		keys = append(keys, append(prefix[:len(prefix):len(prefix)], rest...))
		return true
	}); err != nil {
		return err
	}
	for _, k := range keys {
		if err := tx.Delete(k); err != nil {
			return err
		}
	}
	return nil
}

// List yields summaries in the order of the ids, from one snapshot.
func (r *Records) List(ctx context.Context, f graph.SessionFilter) iter.Seq2[graph.SessionSummary, error] {
	return func(yield func(graph.SessionSummary, error) bool) {
		var found []graph.SessionSummary
		err := r.kv.View(ctx, func(tx Tx) error {
			found = nil
			var bad error
			err := scan(tx, []byte{byte(kindSession)}, func(rest, raw []byte) bool {
				var head sessionHead
				if bad = decode([]byte{byte(kindSession)}, raw, &head); bad != nil {
					return false
				}
				id := parts(rest)
				if len(id) != 1 {
					bad = errors.New("store: the key of a session is damaged")
					return false
				}
				if s := head.summary(id[0]); matches(f, s) {
					found = append(found, s)
				}
				return true
			})
			if err != nil {
				return err
			}
			return bad
		})
		if err != nil {
			yield(graph.SessionSummary{}, err)
			return
		}
		for _, s := range found {
			if !yield(s, nil) {
				return
			}
		}
	}
}

func matches(f graph.SessionFilter, s graph.SessionSummary) bool {
	return (f.UpdatedAfter.IsZero() || s.UpdatedAt.After(f.UpdatedAfter)) &&
		(f.CreatedAfter.IsZero() || s.CreatedAt.After(f.CreatedAfter)) &&
		(f.SchemaVersion == "" || f.SchemaVersion == s.SchemaVersion) &&
		strings.HasPrefix(s.SessionID, f.Prefix)
}

// sessionLog reads a stored list as long as it was when its session was loaded.
type sessionLog struct {
	records          *Records
	sessionID, field string
	length           int
}

func (l *sessionLog) Len() int { return l.length }

func (l *sessionLog) Read(ctx context.Context, from, to int) ([]json.RawMessage, error) {
	var items []json.RawMessage
	err := l.records.kv.View(ctx, func(tx Tx) error {
		items = make([]json.RawMessage, 0, to-from)
		base := kindSessionLog.key(l.sessionID, l.field)
		first := appendIndex(base[:len(base):len(base)], uint64(from))
		last := appendIndex(base[:len(base):len(base)], uint64(to))
		return tx.Scan(first, last, false, func(_, v []byte) bool {
			items = append(items, append(json.RawMessage(nil), v...))
			return true
		})
	})
	if err == nil && len(items) != to-from {
		err = fmt.Errorf("store: list %q of the session has lost items: it was deleted or shortened meanwhile", l.field)
	}
	return items, err
}
