package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/parley-chat/parley/conformance"
	"github.com/parley-chat/parley/store"
	"github.com/parley-chat/parley/store/bolt"
	"github.com/parley-chat/parley/store/memory"
)

// runConformance runs fixtures and ends with the line "N passed, N failed".
func runConformance(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var backend string
	var verbose bool
	fs, err := flags("conformance", "bot conformance DIR... runs every OpenArmature fixture below the directories.", args, stderr, func(fs *flag.FlagSet) {
		fs.StringVar(&backend, "store", "memory", "`back end` that the fixtures run over: memory or bolt")
		fs.BoolVar(&verbose, "v", false, "print the cases that pass, too")
	})
	if err != nil {
		return err
	}
	if fs.NArg() == 0 {
		fs.Usage()
		return usageError{errors.New("conformance: name at least one directory with fixtures")}
	}
	open, cleanUp, err := caseStores(backend)
	if err != nil {
		return err
	}
	defer cleanUp()
	report, err := conformance.Run(ctx, conformance.Options{Dirs: fs.Args(), Open: open})
	if err != nil {
		return err
	}
	if err := report.Write(stdout, verbose); err != nil {
		return err
	}
	if report.Failed() > 0 {
		return errSaid
	}
	return nil
}

// caseStores opens a fresh store for every case.
func caseStores(backend string) (open func(context.Context) (store.KV, error), cleanUp func(), err error) {
	switch backend {
	case "memory":
		return func(context.Context) (store.KV, error) { return memory.New(), nil }, func() {}, nil
	case "bolt":
		dir, err := os.MkdirTemp("", "parley-conformance-")
		if err != nil {
			return nil, nil, err
		}
		n := 0
		open := func(ctx context.Context) (store.KV, error) {
			n++
			return bolt.Open(ctx, filepath.Join(dir, fmt.Sprintf("%d.db", n)), bolt.Options{})
		}
		return open, func() { _ = os.RemoveAll(dir) }, nil
	default:
		return nil, nil, usageError{fmt.Errorf("conformance: there is no back end %q: write memory or bolt", backend)}
	}
}
