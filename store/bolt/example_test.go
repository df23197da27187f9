package bolt_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/parley-chat/parley/store"
	"github.com/parley-chat/parley/store/bolt"
)

func Example() {
	if err := example(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// session/1: hello
	// session/2: good evening
}

func example(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	s, err := bolt.Open(ctx, filepath.Join(dir, "bot.db"), bolt.Options{})
	if err != nil {
		return err
	}
	defer s.Close()
	err = s.Update(ctx, func(tx store.Tx) error {
		if err := tx.Put([]byte("session/2"), []byte("good evening")); err != nil {
			return err
		}
		return tx.Put([]byte("session/1"), []byte("hello"))
	})
	if err != nil {
		return err
	}
	return s.View(ctx, func(tx store.Tx) error {
		return tx.Scan([]byte("session/"), []byte("session0"), false, func(key, value []byte) bool {
			fmt.Printf("%s: %s\n", key, value)
			return true
		})
	})
}
