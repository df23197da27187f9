package bolt

import (
	"context"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/parley-chat/parley/store"
)

// BenchmarkUpdate compares the group commit with what bbolt itself offers, on the same file with the same writes: one
// small key of each writer's own. Read it together with the number of writers: one operation is one durable Update.
func BenchmarkUpdate(b *testing.B) {
	ways := []struct {
		name  string
		write func(s *Store, key, value []byte) error
	}{
		{"group", func(s *Store, key, value []byte) error {
			return s.Update(context.Background(), func(tx store.Tx) error { return tx.Put(key, value) })
		}},
		{"bbolt Update", func(s *Store, key, value []byte) error { return s.db.Update(putting(key, value)) }},
		{"bbolt Batch", func(s *Store, key, value []byte) error { return s.db.Batch(putting(key, value)) }},
	}
	for _, writers := range []int{1, 8, 64} {
		for _, way := range ways {
			b.Run(fmt.Sprintf("%s/%d writers", way.name, writers), func(b *testing.B) {
				s, err := Open(b.Context(), filepath.Join(b.TempDir(), "bot.db"), Options{})
				if err != nil {
					b.Fatal(err)
				}
				defer s.Close()
				before := commits(b, s)
				b.ReportAllocs()
				b.ResetTimer()
				share(b, writers, func(key, value []byte) error { return way.write(s, key, value) })
				b.ReportMetric(float64(b.N)/float64(commits(b, s)-before), "updates/commit")
			})
		}
	}
}

func putting(key, value []byte) func(*bbolt.Tx) error {
	return func(t *bbolt.Tx) error { return t.Bucket(bucketName()).Put(key, value) }
}

// share has so many writers make b.N writes between them.
func share(b *testing.B, writers int, write func(key, value []byte) error) {
	b.Helper()
	var next atomic.Int64
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			value := make([]byte, 200)
			for n := next.Add(1); n <= int64(b.N); n = next.Add(1) {
				if err := write(binary.BigEndian.AppendUint64(nil, uint64(n)), value); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "updates/s")
}

// commits returns the number of the last committed transaction.
func commits(b *testing.B, s *Store) (id int) {
	b.Helper()
	err := s.db.View(func(t *bbolt.Tx) error {
		id = t.ID()
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	return id
}
