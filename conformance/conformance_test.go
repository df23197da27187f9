package conformance

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parley-chat/parley/store"
	"github.com/parley-chat/parley/store/memory"
)

// counter is a fixture of one node that adds to a list.
const counter = `
state:
  fields:
    seen: {type: list<int>, reducer: append, default: []}
entry: count
nodes:
  count: {update: {seen: [1]}}
edges:
  - {from: count, to: END}
session_store: in_memory
session_id: "s"
initial_state: {}
`

func runText(t testing.TB, yaml string) Report {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "001-a-case.yaml"), []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	report, err := Run(t.Context(), Options{Dirs: []string{dir}, Open: openMemory, Timeout: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func TestACaseFailsForTheReasonItHas(t *testing.T) {
	for _, tc := range []struct {
		name, yaml string
		want       string // "" passes
	}{
		{"what is expected is seen", counter + "expected: {final_state: {seen: [1]}}", ""},
		{"a number is compared by value", counter + "expected: {final_state: {seen: [1.0]}}", ""},
		{"another state", counter + "expected: {final_state: {seen: [1, 2]}}", `expected.final_state: got {"seen":[1]}, want {"seen":[1,2]}`},
		{"a field too few", counter + "expected: {final_state: {}}", `expected.final_state: got {"seen":[1]}, want {}`},
		{"an unknown expectation", counter + "expected: {mood: good}", "harness_primitive_missing: expected.mood"},
		{"an unknown part of an expectation", counter + "expected: {store_after: {colour: red}}", "harness_primitive_missing: expected.store_after.colour"},
		{"an unknown invariant", counter + "invariants: {all_is_well: true}", "harness_primitive_missing: invariants.all_is_well"},
		{"an invariant that must not hold and does", counter + "invariants: {node_never_invoked: false}", ""},
		{"an invariant that must hold and does not", counter + "invariants: {node_never_invoked: true}", "invariants.node_never_invoked: nodes ran: [count]"},
		{"an invariant that is no boolean", counter + "invariants: {node_never_invoked: 3}", "invariants.node_never_invoked: want must be true or false, is 3"},
		{"an unknown directive of the case", counter + "weather: fine", "harness_primitive_missing: weather"},
		{"an unknown directive of a node", strings.Replace(counter, "update: {seen: [1]}", "sings: loud", 1), "harness_primitive_missing: nodes.count.sings"},
		{"an unknown store", strings.Replace(counter, "in_memory", "on_paper", 1), "harness_primitive_missing: session_store: on_paper"},
		{"an unknown type", strings.Replace(counter, "list<int>", "list<complex>", 1), "harness_primitive_missing: state.fields.seen.type"},
		{"an unknown reducer", strings.Replace(counter, "append", "bounded_append", 1), "harness_primitive_missing: state.fields.seen.reducer"},
		{"a default that does not fit", strings.Replace(counter, "default: []", "default: [x]", 1), `fixture_schema_invalid: state.fields.seen.default: ["x"] does not fit the declared type`},
		{"a graph that does not compile", strings.Replace(counter, "to: END", "to: nowhere", 1), "the graph does not compile: graph: dangling_edge in nowhere"},
		{"an error that nobody expects", strings.Replace(counter, "update: {seen: [1]}", "raises: boom", 1), ": the invocation failed: graph: node_exception in count: boom"},
		{"an error that is expected", strings.Replace(counter, "update: {seen: [1]}", "raises: boom", 1) + "expected_error: {category: node_exception, raised_from: count}", ""},
		{"a suspension that nobody expects", strings.Replace(counter, "update: {seen: [1]}", "suspend_with_descriptor: {signal_id: x}", 1), ": the invocation is suspended"},
		{"a node that updates and suspends", strings.Replace(counter, "update: {seen: [1]}", "update: {}, suspend_with_descriptor: {signal_id: x}", 1),
			"fixture_schema_invalid: nodes.count: a node returns an update or suspends, not both"},
		{"a graph without an end", strings.Replace(counter, "to: END", "to: count", 1), ": the engine did not end the invocation within 200ms"},
		{"a list where a mapping belongs", strings.Replace(counter, "{update: {seen: [1]}}", "[]", 1), "fixture_schema_invalid: nodes.count: want a mapping, got []"},
		{"no YAML", "{", "fixture_schema_invalid: (file): "},
		{"two documents", counter + "---\n" + counter, "fixture_schema_invalid: (file): more than one document"},
		{"no case in the list", "cases: []", "fixture_schema_invalid: cases: there are none"},
		{"an unknown key beside the cases", "flavour: sweet\ncases: [{name: x, entry: a, nodes: {a: {}}, edges: [{from: a, to: END}]}]", "harness_primitive_missing: flavour"},
		{"an unknown invariant of the file", "invariants: {fine: true}\ncases: [{name: x, entry: a, nodes: {a: {}}, edges: [{from: a, to: END}]}]", "harness_primitive_missing: invariants.fine"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			report := runText(t, tc.yaml)
			if len(report.Cases) != 1 {
				t.Fatalf("%d cases ran, want 1", len(report.Cases))
			}
			got := strings.Join(report.Cases[0].Failures, "; ")
			if tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
				t.Errorf("got  %q\nwant %q", got, tc.want)
			}
		})
	}
}

func TestAConditionalEdgeGoesByTheStateAfterTheNode(t *testing.T) {
	report := runText(t, `
state: {fields: {n: {type: int, default: 0}}}
entry: first
nodes: {first: {update: {n: 2}}, yes: {update: {n: 3}}, no: {update: {n: 4}}}
edges:
  - {from: first, condition: {if_field: n, equals: 2, then: "yes", else: "no"}}
  - {from: "yes", to: END}
  - {from: "no", to: END}
expected: {final_state: {n: 3}, execution_order: [first, "yes"]}
`)
	if report.Failed() > 0 {
		t.Error(report.Cases[0].Failures)
	}
}

func TestASeededSessionIsLoaded(t *testing.T) {
	report := runText(t, counter+`
seeded_session: {state: {seen: [7, 8]}}
loaded_session_state: {seen: [7, 8]}
expected: {final_state: {seen: [7, 8, 1]}}
`)
	if report.Failed() > 0 {
		t.Error(report.Cases[0].Failures)
	}
}

func TestCasesOfOneFileShareNothing(t *testing.T) {
	one := "  - {name: x, state: {fields: {seen: {type: list, reducer: append}}}, entry: a, nodes: {a: {update: {seen: [1]}}}," +
		" edges: [{from: a, to: END}], session_store: in_memory, session_id: s, expected: {final_state: {seen: [1]}}}\n"
	report := runText(t, "cases:\n"+one+one)
	if report.Passed() != 2 || report.Failed() != 0 {
		t.Error(report.Cases)
	}
}

func TestTheReportEndsWithTheCount(t *testing.T) {
	r := Report{Cases: []Case{
		{Suite: "s", File: "001.yaml", Name: "good"},
		{Suite: "s", File: "002.yaml", Name: "bad", Failures: []string{"one", "two\nlines"}},
	}}
	for verbose, want := range map[bool]string{
		false: "FAIL s/002.yaml bad: one; two, lines\n1 passed, 1 failed\n",
		true:  "ok   s/001.yaml good\nFAIL s/002.yaml bad: one; two, lines\n1 passed, 1 failed\n",
	} {
		var got strings.Builder
		if err := r.Write(&got, verbose); err != nil || got.String() != want {
			t.Errorf("verbose %v: got %q and %v, want %q", verbose, got.String(), err, want)
		}
	}
}

func TestRunSaysWhatItCannotRead(t *testing.T) {
	if _, err := Run(t.Context(), Options{Dirs: []string{t.TempDir()}, Open: openMemory}); err == nil || !strings.Contains(err.Error(), "no fixtures") {
		t.Errorf("an empty directory: %v", err)
	}
	if _, err := Run(t.Context(), Options{Dirs: []string{"not/there"}, Open: openMemory}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no directory: %v", err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.yaml"), []byte(counter), 0o600); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("no room")
	_, err := Run(t.Context(), Options{Dirs: []string{dir}, Open: func(context.Context) (store.KV, error) { return nil, broken }})
	if !errors.Is(err, broken) {
		t.Errorf("no back end: %v", err)
	}
}

func ExampleRun() {
	dir, err := os.MkdirTemp("", "fixtures")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	if err := os.WriteFile(filepath.Join(dir, "001-count.yaml"), []byte(counter+"expected: {final_state: {seen: [1]}}"), 0o600); err != nil {
		panic(err)
	}
	report, err := Run(context.Background(), Options{
		Dirs: []string{dir},
		Open: func(context.Context) (store.KV, error) { return memory.New(), nil },
	})
	if err != nil {
		panic(err)
	}
	_ = report.Write(os.Stdout, false)
	// Output: 1 passed, 0 failed
}

func FuzzAFixtureOfAnyShapeEndsInAReport(f *testing.F) {
	f.Add([]byte(counter))
	f.Add([]byte(counter + "expected: {final_state: {seen: [1]}}\ninvariants: {node_never_invoked: true}"))
	f.Add([]byte("cases:\n  - {name: x, harness: {mode: sessioned}, transmissions: [{payload: {session_id: a}, expected: {invoke_args: {}}}]}"))
	f.Add([]byte("harness: {mode: sessioned}\nstate: {fields: {messages: {type: 'list[ChatMessage]', reducer: append}}}\nentry: a\nnodes: {a: {suspend_with_descriptor: {signal_id: s}}}\n" +
		"edges: [{from: a, to: END}]\nchat_turns: [{session_id: s, user_message: {role: user, content: hi}, subscribe_listener: l, expected: {replies: [], reply: {role: x}, final_state: {messages_count: 1}}}]\n" +
		"signal_arrivals: [{signal_id: s, signal_payload: {}, expected_listener_callback: {listener: l}}]\ninvariants: {listener_fires_exactly_once_per_resumed_turn: true}"))
	f.Add([]byte("session_state: {fields: [3]}\nobservers: [{}]\ninvocations: [{resume_invocation: '<x>'}]"))
	dir := f.TempDir()
	file := filepath.Join(dir, "fuzz.yaml")
	f.Fuzz(func(t *testing.T, raw []byte) {
		if err := os.WriteFile(file, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		report, err := Run(t.Context(), Options{Dirs: []string{file}, Open: openMemory, Timeout: 20 * time.Millisecond})
		if err != nil || len(report.Cases) == 0 {
			t.Errorf("%v, %d cases", err, len(report.Cases))
		}
	})
}
