package memory_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/parley-chat/parley/conformance/storetest"
	"github.com/parley-chat/parley/store"
	"github.com/parley-chat/parley/store/memory"
)

func TestTheStoreKeepsTheContract(t *testing.T) {
	storetest.Run(t, func(*testing.T) store.KV { return memory.New() })
}

func FuzzWhatIsPutIsRead(f *testing.F) {
	f.Add([]byte("key"), []byte("value"))
	f.Add([]byte{}, []byte{})
	f.Add([]byte{0, 0xff}, []byte(nil))
	f.Fuzz(func(t *testing.T, key, value []byte) {
		s := memory.New()
		if err := storetest.RoundTrip(t.Context(), s, key, value); err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

func BenchmarkUpdate(b *testing.B) {
	for _, size := range []int{0, 1_000, 100_000} {
		b.Run(fmt.Sprintf("among %d keys", size), func(b *testing.B) {
			s := filled(b, size)
			random := rand.New(rand.NewPCG(1, 2))
			value := bytes.Repeat([]byte("v"), 200)
			b.ReportAllocs()
			for b.Loop() {
				err := s.Update(b.Context(), func(tx store.Tx) error { return tx.Put(key(random.IntN(size+1)), value) })
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkGet(b *testing.B) {
	const size = 100_000
	s := filled(b, size)
	random := rand.New(rand.NewPCG(1, 2))
	b.ReportAllocs()
	for b.Loop() {
		err := s.View(b.Context(), func(tx store.Tx) error {
			value, err := tx.Get(key(random.IntN(size)))
			if value == nil {
				return errors.New("missing")
			}
			return err
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}

func filled(b *testing.B, size int) *memory.Store {
	b.Helper()
	s := memory.New()
	b.Cleanup(func() { _ = s.Close() })
	err := s.Update(b.Context(), func(tx store.Tx) error {
		var errs []error
		for i := range size {
			errs = append(errs, tx.Put(key(i), []byte("value")))
		}
		return errors.Join(errs...)
	})
	if err != nil {
		b.Fatal(err)
	}
	return s
}

func key(i int) []byte { return binary.BigEndian.AppendUint64(nil, uint64(i)) }
