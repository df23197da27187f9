package store

import (
	"context"
	"encoding/binary"
	"slices"
	"time"

	"github.com/parley-chat/parley/approvals"
	"github.com/parley-chat/parley/platforms"
	"github.com/parley-chat/parley/platforms/bridge"
)

const (
	kindKnown        kind = 'k' // platform, key
	kindEntry        kind = 'n' // platform, conversation, urgent, seq
	kindAside        kind = 'x' // seq
	kindParked       kind = 'w' // platform, conversation, seq
	kindDelivery     kind = 'o' // platform, conversation, seq
	kindConversation kind = 'c' // platform, conversation
	kindRequest      kind = 'r' // request id
	kindPending      kind = 'p' // platform, conversation, request id
	kindAudit        kind = 'a' // seq
	kindSeq          kind = 'q'
)

// Bridge is the bridge's view of the records.
type Bridge struct{ records *Records }

var _ bridge.Store = Bridge{}

// Bridge returns the records as the bridge sees them.
func (r *Records) Bridge() Bridge { return Bridge{r} }

func (b Bridge) View(ctx context.Context, fn func(bridge.Tx) error) error {
	return b.records.kv.View(ctx, func(tx Tx) error { return fn(bridgeTx{tx}) })
}

func (b Bridge) Update(ctx context.Context, fn func(bridge.Tx) error) error {
	return b.records.kv.Update(ctx, func(tx Tx) error { return fn(bridgeTx{tx}) })
}

type bridgeTx struct{ tx Tx }

var _ bridge.Tx = bridgeTx{}

func (t bridgeTx) Known(platform string, key platforms.Key) (bool, error) {
	v, err := t.tx.Get(kindKnown.key(platform, string(key)))
	return v != nil, err
}

func (t bridgeTx) MarkKnown(platform string, key platforms.Key, at time.Time) error {
	return t.tx.Put(kindKnown.key(platform, string(key)), binary.BigEndian.AppendUint64(nil, uint64(at.Unix())))
}

// seq gives the next number of the one sequence that orders entries, deliveries and audit.
func (t bridgeTx) seq() (uint64, error) {
	last, err := t.LastSeq()
	if err != nil {
		return 0, err
	}
	return last + 1, t.tx.Put(kindSeq.key(), binary.BigEndian.AppendUint64(nil, last+1))
}

func (t bridgeTx) LastSeq() (uint64, error) {
	v, err := t.tx.Get(kindSeq.key())
	if err != nil || len(v) != 8 {
		return 0, err
	}
	return binary.BigEndian.Uint64(v), nil
}

func lanePrefix(l bridge.Lane) []byte {
	beside := "turns"
	if l.Urgent {
		beside = "urgent"
	}
	return kindEntry.key(l.Platform, string(l.Conversation), beside)
}

func entryKey(e bridge.Entry) []byte { return appendIndex(lanePrefix(e.Lane), e.Seq) }

func (t bridgeTx) AddEntry(e *bridge.Entry) (err error) {
	if e.Seq, err = t.seq(); err != nil {
		return err
	}
	return t.PutEntry(*e)
}

func (t bridgeTx) PutEntry(e bridge.Entry) error    { return put(t.tx, entryKey(e), e) }
func (t bridgeTx) DeleteEntry(e bridge.Entry) error { return t.tx.Delete(entryKey(e)) }

func (t bridgeTx) FirstEntry(l bridge.Lane) (*bridge.Entry, error) {
	return first[bridge.Entry](t.tx, lanePrefix(l))
}

func (t bridgeTx) Entries(l bridge.Lane) ([]bridge.Entry, error) {
	return collect[bridge.Entry](t.tx, lanePrefix(l))
}

// aside is an entry that could not be worked on.
type aside struct {
	Entry bridge.Entry `json:"entry"`
	Why   string       `json:"why"`
}

func (t bridgeTx) SetAside(e bridge.Entry, why string) error {
	if err := put(t.tx, appendIndex(kindAside.key(), e.Seq), aside{e, why}); err != nil {
		return err
	}
	return t.DeleteEntry(e)
}

func parkedKey(e bridge.Entry) []byte {
	return appendIndex(placePrefix(kindParked, e.Lane.Place), e.Seq)
}

func (t bridgeTx) Park(e bridge.Entry) error {
	if err := put(t.tx, parkedKey(e), e); err != nil {
		return err
	}
	return t.DeleteEntry(e)
}

func (t bridgeTx) Parked(p bridge.Place) ([]bridge.Entry, error) {
	return collect[bridge.Entry](t.tx, placePrefix(kindParked, p))
}

func (t bridgeTx) DropParked(e bridge.Entry) error { return t.tx.Delete(parkedKey(e)) }

func (t bridgeTx) Lanes() ([]bridge.Lane, error) {
	var lanes []bridge.Lane
	err := eachGroup(t.tx, kindEntry, func(p []string) {
		lanes = append(lanes, bridge.Lane{Place: bridge.Place{Platform: p[0], Conversation: platforms.Conversation(p[1])}, Urgent: p[2] == "urgent"})
	})
	return lanes, err
}

func (t bridgeTx) Conversation(platform string, id platforms.Conversation) (*bridge.Conversation, error) {
	return record[bridge.Conversation](t.tx, kindConversation.key(platform, string(id)))
}

func (t bridgeTx) PutConversation(c bridge.Conversation) error {
	return put(t.tx, kindConversation.key(c.Place.Platform, string(c.Place.Conversation)), c)
}

func placePrefix(k kind, p bridge.Place) []byte { return k.key(p.Platform, string(p.Conversation)) }

func deliveryKey(d bridge.Delivery) []byte {
	return appendIndex(placePrefix(kindDelivery, d.Place), d.Seq)
}

func (t bridgeTx) AddDelivery(d *bridge.Delivery) (err error) {
	if d.Seq, err = t.seq(); err != nil {
		return err
	}
	return t.PutDelivery(*d)
}

func (t bridgeTx) PutDelivery(d bridge.Delivery) error    { return put(t.tx, deliveryKey(d), d) }
func (t bridgeTx) DeleteDelivery(d bridge.Delivery) error { return t.tx.Delete(deliveryKey(d)) }

func (t bridgeTx) FirstDelivery(p bridge.Place) (*bridge.Delivery, error) {
	return first[bridge.Delivery](t.tx, placePrefix(kindDelivery, p))
}

func (t bridgeTx) Places() ([]bridge.Place, error) {
	var places []bridge.Place
	err := eachGroup(t.tx, kindDelivery, func(p []string) {
		places = append(places, bridge.Place{Platform: p[0], Conversation: platforms.Conversation(p[1])})
	})
	return places, err
}

func (t bridgeTx) Request(id approvals.ID) (*approvals.Request, error) {
	return record[approvals.Request](t.tx, kindRequest.key(string(id)))
}

func (t bridgeTx) PutRequest(r approvals.Request) error {
	pending := kindPending.key(r.Platform, r.Conversation, string(r.ID))
	index := t.tx.Delete(pending)
	if !r.State.Ended() {
		index = t.tx.Put(pending, nil)
	}
	if index != nil {
		return index
	}
	return put(t.tx, kindRequest.key(string(r.ID)), r)
}

func (t bridgeTx) PendingRequests(p bridge.Place) ([]approvals.Request, error) {
	prefix := []byte{byte(kindPending)}
	if p != (bridge.Place{}) {
		prefix = placePrefix(kindPending, p)
	}
	var ids []approvals.ID
	err := scan(t.tx, prefix, func(rest, _ []byte) bool {
		last := parts(rest)
		ids = append(ids, approvals.ID(last[len(last)-1]))
		return true
	})
	if err != nil {
		return nil, err
	}
	var pending []approvals.Request
	for _, id := range ids {
		r, err := t.Request(id)
		if err != nil {
			return nil, err
		}
		if r != nil {
			pending = append(pending, *r)
		}
	}
	slices.SortStableFunc(pending, func(a, b approvals.Request) int { return a.CreatedAt.Compare(b.CreatedAt) })
	return pending, nil
}

func (t bridgeTx) Audit(entries ...approvals.Entry) error {
	for _, e := range entries {
		seq, err := t.seq()
		if err != nil {
			return err
		}
		e.Seq = seq
		if err := put(t.tx, appendIndex(kindAudit.key(), seq), e); err != nil {
			return err
		}
	}
	return nil
}

// record reads one record, or nil.
func record[T any](tx Tx, key []byte) (*T, error) {
	var v T
	found, err := get(tx, key, &v)
	if err != nil || !found {
		return nil, err
	}
	return &v, nil
}

// first reads the first record under a prefix, or nil.
func first[T any](tx Tx, prefix []byte) (*T, error) {
	var v *T
	var bad error
	err := scan(tx, prefix, func(_, raw []byte) bool {
		v = new(T)
		bad = decode(prefix, raw, v)
		return false
	})
	if err == nil {
		err = bad
	}
	if err != nil {
		return nil, err
	}
	return v, nil
}

// collect reads every record under a prefix, in order.
func collect[T any](tx Tx, prefix []byte) ([]T, error) {
	var all []T
	var bad error
	err := scan(tx, prefix, func(_, raw []byte) bool {
		var v T
		bad = decode(prefix, raw, &v)
		all = append(all, v)
		return bad == nil
	})
	if err == nil {
		err = bad
	}
	return all, err
}

// eachGroup calls fn once for every group of keys of a kind that differ only in their number.
func eachGroup(tx Tx, k kind, fn func(parts []string)) error {
	var last string
	return scan(tx, []byte{byte(k)}, func(rest, _ []byte) bool {
		group := rest[:max(0, len(rest)-8)]
		if string(group) != last {
			last = string(group)
			fn(parts(group))
		}
		return true
	})
}

// ForgetKeys removes the marks of deliveries that were accepted before the given time and returns how many.
func (r *Records) ForgetKeys(ctx context.Context, before time.Time) (int, error) {
	var old [][]byte
	prefix := []byte{byte(kindKnown)}
	err := r.kv.View(ctx, func(tx Tx) error {
		old = nil
		return scan(tx, prefix, func(rest, v []byte) bool {
			if len(v) == 8 && int64(binary.BigEndian.Uint64(v)) < before.Unix() {
				old = append(old, slices.Concat(prefix, rest))
			}
			return true
		})
	})
	if err != nil || len(old) == 0 {
		return 0, err
	}
	return len(old), r.kv.Update(ctx, func(tx Tx) error {
		for _, key := range old {
			if err := tx.Delete(key); err != nil {
				return err
			}
		}
		return nil
	})
}

// ForgetParked removes entries that were parked before the given time and returns how many: nobody called the bot to where
// they were said.
func (r *Records) ForgetParked(ctx context.Context, before time.Time) (int, error) {
	n := 0
	err := r.kv.Update(ctx, func(tx Tx) error {
		n = 0
		parked, err := collect[bridge.Entry](tx, []byte{byte(kindParked)})
		for _, e := range parked {
			if err == nil && e.At.Before(before) {
				n++
				err = bridgeTx{tx}.DropParked(e)
			}
		}
		return err
	})
	return n, err
}
