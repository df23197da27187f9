// Package conformance runs the fixtures of the OpenArmature specification against this implementation: it reads the
// YAML cases of a directory, builds the graph, harness or chat harness that each describes from the real packages over
// a real back end, drives it, and compares what was observed with what the case expects.
//
// Observed means seen from outside: the calls that reached the session store, the requests that reached the engine,
// the nodes that ran and what they returned, the subscriptions a coordinator got, the callbacks of listeners. All of it
// goes into one journal, in order. An expectation or a named invariant is a function over that journal; there is none
// that merely holds. What a case asks for and this package does not know fails the case, with the path of the directive
// (conformance-adapter §9, harness_primitive_missing). Nothing is skipped.
//
// The vocabulary is that of conformance-adapter §4 and §5 as far as the engine goes today, and that of the headers of
// the harness and harness-chat suites. The fixtures themselves belong to the specification and live elsewhere.
package conformance
