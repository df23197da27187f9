package storetest_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/parley-chat/parley/conformance/storetest"
	"github.com/parley-chat/parley/store"
	"github.com/parley-chat/parley/store/memory"
)

func TestMain(m *testing.M) {
	flag.Parse()
	// The property fails here on purpose; no record of that is wanted.
	if err := flag.Set("rapid.nofailfile", "true"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	os.Exit(m.Run())
}

func TestEveryClauseHoldsOnASoundStore(t *testing.T) {
	storetest.Run(t, func(*testing.T) store.KV { return memory.New() })
}

func TestEveryClauseNoticesTheStoreThatBreaksIt(t *testing.T) {
	check := map[string]func(context.Context, store.KV) error{}
	for _, clause := range storetest.Clauses() {
		check[clause.Name] = clause.Check
	}
	proved := map[string]bool{}
	for _, m := range mutants() {
		clause, there := check[m.clause]
		if !there {
			t.Fatalf("there is no clause %q", m.clause)
		}
		proved[m.clause] = true
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			// Stores that hang use up this time, all others a thousandth of it.
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			err := clause(ctx, m.of(memory.New()))
			if err == nil {
				t.Errorf("the clause %q found nothing wrong", m.clause)
			}
			t.Log(err)
		})
	}
	for name := range check {
		if !proved[name] {
			t.Errorf("no broken store proves the clause %q", name)
		}
	}
}

func TestThePropertyNoticesBrokenStores(t *testing.T) {
	noticed := 0
	for _, m := range mutants() {
		if !m.property {
			continue
		}
		noticed++
		t.Run(m.name, func(t *testing.T) {
			var report reporter
			report.check(storetest.Property(t.Context(), m.of(memory.New())))
			if !report.failed {
				t.Error("the property holds on this store")
			}
		})
	}
	if noticed < 10 {
		t.Errorf("stores the property is tried on: got %d, want at least 10", noticed)
	}
}

func TestThePropertyHoldsOnASoundStore(t *testing.T) {
	var report reporter
	report.check(storetest.Property(t.Context(), memory.New()))
	if report.failed {
		t.Errorf("the property fails on a sound store:\n%s", report.text.String())
	}
}

func TestEveryDurableClauseNoticesTheStoreThatBreaksIt(t *testing.T) {
	// One in memory that Close leaves open stands in for one that is durable.
	sound := func(kv store.KV) func() (store.KV, error) {
		return func() (store.KV, error) { return broken{KV: kv, close: func(store.KV) error { return nil }}, nil }
	}
	forgetful := func() (store.KV, error) { return memory.New(), nil }
	cases := map[string]func() (store.KV, error){
		"what was committed is there after reopening":      forgetful,
		"what was given up is not there after reopening":   sound(mutant("keeps what was given up").of(memory.New())),
		"every concurrent update is there after reopening": forgetful,
	}
	for _, clause := range storetest.DurableClauses() {
		if err := clause.Check(t.Context(), sound(memory.New())); err != nil {
			t.Errorf("%s: on a sound store: %v", clause.Name, err)
		}
		open, there := cases[clause.Name]
		if !there {
			t.Errorf("%s: no broken store proves it", clause.Name)
			continue
		}
		if err := clause.Check(t.Context(), open); err == nil {
			t.Errorf("%s: the broken store passes", clause.Name)
		}
	}
	failing := func() (store.KV, error) { return nil, errors.New("no such disk") }
	for _, clause := range storetest.DurableClauses() {
		if err := clause.Check(t.Context(), failing); err == nil {
			t.Errorf("%s: passes although the store cannot be opened", clause.Name)
		}
	}
}

// mutant returns the broken store of that name.
func mutant(name string) mutation {
	for _, m := range mutants() {
		if m.name == name {
			return m
		}
	}
	panic("no broken store is named " + name)
}

// reporter takes the place of a test that may fail.
type reporter struct {
	failed bool
	text   strings.Builder
}

var _ rapid.TB = (*reporter)(nil)

// errStop is the panic by which FailNow leaves the property.
var errStop = errors.New("stop")

func (r *reporter) check(property func(*rapid.T)) {
	defer func() {
		if p := recover(); p != nil && p != errStop {
			panic(p)
		}
	}()
	rapid.Check(r, property)
}

func (r *reporter) Helper()                           {}
func (r *reporter) Name() string                      { return "reporter" }
func (r *reporter) Log(args ...any)                   { fmt.Fprintln(&r.text, args...) }
func (r *reporter) Logf(format string, args ...any)   { r.Log(fmt.Sprintf(format, args...)) }
func (r *reporter) Skip(args ...any)                  { r.Log(args...); r.SkipNow() }
func (r *reporter) Skipf(format string, args ...any)  { r.Logf(format, args...); r.SkipNow() }
func (r *reporter) SkipNow()                          { panic(errStop) }
func (r *reporter) Error(args ...any)                 { r.Log(args...); r.Fail() }
func (r *reporter) Errorf(format string, args ...any) { r.Logf(format, args...); r.Fail() }
func (r *reporter) Fatal(args ...any)                 { r.Error(args...); r.FailNow() }
func (r *reporter) Fatalf(format string, args ...any) { r.Errorf(format, args...); r.FailNow() }
func (r *reporter) Fail()                             { r.failed = true }
func (r *reporter) FailNow()                          { r.failed = true; panic(errStop) }
func (r *reporter) Failed() bool                      { return r.failed }
