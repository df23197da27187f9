package graph

import (
	"context"
	"encoding/json"
	"fmt"
)

// Log is the stored form of a field with the append reducer. Its items are read only when asked for, so that loading a
// session costs the same however long its history is.
type Log interface {
	// Len is the number of items when the session was loaded.
	Len() int
	// Read returns items [from, to); 0 <= from <= to <= Len.
	Read(ctx context.Context, from, to int) ([]json.RawMessage, error)
}

// List is an immutable list: the first items of a stored log, then items held in memory. The zero List is empty.
type List[T any] struct {
	stored Log
	kept   int // how many items of stored this list begins with
	tail   []T
}

// ListOf returns a list of items held in memory.
func ListOf[T any](items ...T) List[T] { return List[T]{tail: items} }

// Len is the number of items.
func (l List[T]) Len() int { return l.kept + len(l.tail) }

// Append returns the list with items after it. The receiver stays as it is.
func (l List[T]) Append(items ...T) List[T] {
	l.tail = append(l.tail[:len(l.tail):len(l.tail)], items...)
	return l
}

// Slice returns items [from, to), reading from the store what is not in memory. Bounds outside the list are clamped.
func (l List[T]) Slice(ctx context.Context, from, to int) ([]T, error) {
	from, to = max(from, 0), min(to, l.Len())
	if from >= to {
		return nil, nil
	}
	if from >= l.kept {
		return l.tail[from-l.kept : to-l.kept : to-l.kept], nil
	}
	raws, err := l.stored.Read(ctx, from, min(to, l.kept))
	if err != nil {
		return nil, &Error{Category: SessionLoadFailed, Message: "the history could not be read", Cause: err}
	}
	items := make([]T, 0, to-from)
	for i, raw := range raws {
		var item T
		if err := json.Unmarshal(raw, &item); err != nil {
			return nil, &Error{Category: SessionLoadFailed, Message: fmt.Sprintf("item %d of the history is damaged", from+i), Cause: err}
		}
		items = append(items, item)
	}
	if to > l.kept {
		items = append(items, l.tail[:to-l.kept]...)
	}
	return items, nil
}

// All returns every item.
func (l List[T]) All(ctx context.Context) ([]T, error) { return l.Slice(ctx, 0, l.Len()) }

// Last returns the last n items, or fewer if there are fewer.
func (l List[T]) Last(ctx context.Context, n int) ([]T, error) {
	return l.Slice(ctx, l.Len()-n, l.Len())
}

// delta is what the list adds to, or takes from, its stored beginning.
func (l List[T]) delta() (LogDelta, error) {
	d := LogDelta{Keep: l.kept}
	for _, item := range l.tail {
		raw, err := json.Marshal(item)
		if err != nil {
			return LogDelta{}, err
		}
		d.Add = append(d.Add, raw)
	}
	return d, nil
}

// all is the list as one JSON array, without what it shares with the store.
func (l List[T]) all(ctx context.Context) (json.RawMessage, error) {
	items, err := l.All(ctx)
	if err != nil {
		return nil, err
	}
	if items == nil {
		items = []T{}
	}
	return json.Marshal(items)
}
