package conformance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/parley-chat/parley/core/graph"
	"github.com/parley-chat/parley/store"
)

// Options say what to run, and on what.
type Options struct {
	// Dirs are walked for *.yaml files. A path to one file is fine as well.
	Dirs []string
	// Open returns a back end with nothing in it. Every case gets its own and closes it.
	Open func(ctx context.Context) (store.KV, error)
	// Timeout is the longest that one turn of a case may take; 10 seconds by default.
	Timeout time.Duration
	// Logger hears of each case; nothing by default.
	Logger *slog.Logger

	parts *parts // what tests of this package break
}

// Run runs every case of every fixture below the directories. Its error says that fixtures could not be found or read,
// or that no back end could be opened; what a case came to is in the report.
func Run(ctx context.Context, o Options) (Report, error) {
	o.Timeout = cmp.Or(o.Timeout, 10*time.Second)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.parts == nil {
		real := asBuilt()
		o.parts = &real
	}
	var report Report
	for _, dir := range o.Dirs {
		files, err := fixtures(dir)
		if err != nil {
			return report, err
		}
		for _, file := range files {
			cases, err := o.file(ctx, file)
			if err != nil {
				return report, err
			}
			report.Cases = append(report.Cases, cases...)
		}
	}
	return report, nil
}

// fixtures are the *.yaml files below dir, in lexical order.
func fixtures(dir string) ([]string, error) {
	var files []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(path, ".yaml") {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("conformance: %w", err)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("conformance: there are no fixtures (*.yaml) in %s", dir)
	}
	return files, nil
}

// file runs the cases of one fixture.
func (o Options) file(ctx context.Context, file string) ([]Case, error) {
	name := filepath.Base(file)
	report := Case{Suite: filepath.Base(filepath.Dir(file)), File: name}
	doc, err := readDocument(file)
	if err != nil {
		report.Name, report.Failures = "(file)", []string{err.Error()}
		return []Case{report}, nil
	}
	runs, err := o.document(ctx, strings.TrimSuffix(name, ".yaml"), doc)
	if err != nil {
		return nil, err
	}
	var cases []Case
	for _, r := range runs {
		c := report
		c.Name = r.name
		for _, failure := range r.failures {
			c.Failures = append(c.Failures, failure.Error())
		}
		o.Logger.DebugContext(ctx, "a case ended", "suite", c.Suite, "case", c.Name, "passed", c.Passed())
		cases = append(cases, c)
	}
	return cases, nil
}

// document runs the cases of a fixture: those of its list, or itself as one (conformance-adapter §4).
func (o Options) document(ctx context.Context, name string, doc map[string]any) ([]*run, error) {
	top := &reader{}
	file := top.open("", doc)
	cases := []*mapping{file}
	var whole *mapping
	if file.has("cases") {
		cases = file.list("cases")
		whole = file.mapping("invariants")
		if len(cases) == 0 {
			top.problem(invalid("cases", "there are none"))
			cases = []*mapping{file}
		}
	}
	var runs []*run
	for i, c := range cases {
		alone := c
		if c != file {
			// A reader of its own, so that one case's trouble is not another's.
			alone = (&reader{}).open(fmt.Sprintf("cases[%d]", i), c.values)
			for _, key := range c.keys() {
				c.value(key)
			}
		}
		r, err := o.run(ctx, cmp.Or(alone.text("name"), name), alone)
		if err != nil {
			return nil, err
		}
		runs = append(runs, r)
	}
	if whole == nil {
		return runs, nil
	}
	holdWhole(ctx, whole, runs)
	for _, err := range append(top.problems, top.unread()...) {
		for _, r := range runs {
			r.fail(err)
		}
	}
	return runs, nil
}

// run is one case under way, and then what it came to.
type run struct {
	*bench
	name     string
	c        *mapping
	turns    []*turn
	chatter  chatter // of a chat case
	failures []error
}

func (r *run) fail(err error) {
	if err != nil {
		r.failures = append(r.failures, err)
	}
}

// run runs one case on a back end of its own.
func (o Options) run(ctx context.Context, name string, c *mapping) (_ *run, err error) {
	kv, err := o.Open(ctx)
	if err != nil {
		return nil, fmt.Errorf("conformance: open a back end: %w", err)
	}
	defer func() {
		if closing := kv.Close(); err == nil && closing != nil {
			err = fmt.Errorf("conformance: close the back end: %w", closing)
		}
	}()
	r := &run{name: name, c: c, bench: &bench{parts: *o.parts, timeout: o.Timeout, records: store.NewRecords(kv)}}
	c.value("description")
	r.build(c)
	r.failures = slices.Concat(c.reader.problems, unknown(c), c.reader.unread(c))
	if len(r.failures) > 0 {
		// What it cannot be given in full is not run: it would only fail in confusing ways.
		return r, nil
	}
	if err := r.drive(ctx); err != nil {
		r.fail(err)
	}
	r.hold(ctx)
	r.failures = slices.Concat(c.reader.problems, c.reader.unread(), r.failures)
	return r, nil
}

// caseKeys are the keys that a case may have.
var caseKeys = []string{
	"auto_save", "chat_turns", "checkpointer", "correlation_id", "description", "edges", "entry", "expected", "expected_error",
	"expected_final_state", "harness", "initial_state", "invariants", "invocations", "loaded_session_state", "name", "nodes",
	"observers", "saved_session_assertions", "seeded_session", "session_id", "session_state", "session_store",
	"signal_arrivals", "state", "transmissions",
}

func unknown(c *mapping) []error {
	var errs []error
	for _, key := range c.keys() {
		if !slices.Contains(caseKeys, key) {
			errs = append(errs, missing{c.at(key)})
		}
	}
	return errs
}

// drive does what the case is made of.
func (r *run) drive(ctx context.Context) error {
	switch {
	case r.c.has("chat_turns"):
		return r.chatTurns(ctx)
	case r.c.has("transmissions"):
		return r.transmissions(ctx)
	default:
		return r.invocations(ctx)
	}
}

// expectation checks one key of an expected block.
type expectation func(ctx context.Context, r *run, t *turn, want any) error

// expect checks a block against a turn. A key that the table does not know fails the case.
func (r *run) expect(ctx context.Context, t *turn, block *mapping, table map[string]expectation) {
	for _, key := range block.keys() {
		want, _ := block.value(key)
		check, ok := table[key]
		if !ok {
			r.fail(missing{block.at(key)})
			continue
		}
		r.fail(within(block.at(key), check(ctx, r, t, want)))
	}
}

// within says where an error belongs.
func within(path string, err error) error {
	if err == nil {
		return nil
	}
	if m, ok := errors.AsType[missing](err); ok {
		return missing{strings.TrimSuffix(path+"."+m.path, ".")}
	}
	return fmt.Errorf("%s: %w", path, err)
}

// hold checks the named invariants of the case (conformance-adapter §5.9).
func (r *run) hold(ctx context.Context) {
	named := r.c.mapping("invariants")
	for _, name := range named.keys() {
		want, _ := named.value(name)
		check, ok := invariants[name]
		if !ok {
			r.fail(missing{named.at(name)})
			continue
		}
		r.fail(within(named.at(name), truth(check(ctx, r), want)))
	}
}

// holdWhole checks the invariants of a whole file. A broken one is every case's failure.
func holdWhole(ctx context.Context, named *mapping, runs []*run) {
	for _, name := range named.keys() {
		want, _ := named.value(name)
		err := error(missing{named.at(name)})
		if check, ok := fileInvariants[name]; ok {
			err = within(named.at(name), truth(check(ctx, runs), want))
		}
		for _, r := range runs {
			r.fail(err)
		}
	}
}

// statusIs is the three-way discriminator of outcomes.
func statusIs(got graph.Status, want any) error {
	return must(string(got) == want, "got %q, want %s", got, show(want))
}
