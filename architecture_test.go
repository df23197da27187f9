package parley_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/parley-chat/parley/"

// rooms say, for each part of the house, which other parts its code may know. A part is named by the beginning of its
// path; the longest that fits counts. Tests may know more: they build worlds. docs/design.md tells why.
var rooms = map[string][]string{
	"core/llm":                  {},
	"core/llm/":                 {"core/llm"},
	"core/graph":                {"core/llm"},
	"core/harness":              {"core/graph", "core/llm"},
	"core/chat":                 {"core/harness", "core/graph", "core/llm"},
	"core/agent":                {"core/chat", "core/graph", "core/llm"},
	"core/agent/demotools":      {"core/agent", "core/llm"},
	"approvals":                 {"core/llm"},
	"platforms":                 {"core/llm"},
	"platforms/markup":          {},
	"platforms/pace":            {},
	"platforms/bridge":          {"platforms", "core/chat", "core/graph", "core/llm", "approvals"},
	"platforms/slack":           {"platforms", "platforms/markup"},
	"platforms/discord":         {"platforms", "platforms/markup", "platforms/pace"},
	"platforms/slack/slacktwin": {},
	"platforms/console":         {"platforms"},
	"store":                     {"core/graph", "core/harness", "platforms", "platforms/bridge", "approvals"},
	"store/":                    {"store"},
	"playground":                {"platforms/slack/slacktwin"},
	"playground/browsertest":    {"*"},
	"conformance":               {"*"},
	"cmd/bot":                   {"*"},
}

func TestEveryRoomKnowsOnlyWhomItMay(t *testing.T) {
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && path != "." || d.Name() == "testdata") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		room := filepath.ToSlash(filepath.Dir(path))
		may, known := allowed(room)
		if !known {
			t.Errorf("%s: this room is not in the plan", path)
			return nil
		}
		for _, imported := range importsOf(t, path) {
			if !slices.Contains(may, "*") && !slices.Contains(may, imported) {
				t.Errorf("%s may not know %s", path, imported)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// allowed finds the longest entry that the room's path begins with.
func allowed(room string) (may []string, known bool) {
	longest := -1
	for name, list := range rooms {
		fits := room == name || strings.HasSuffix(name, "/") && strings.HasPrefix(room, name) ||
			strings.HasPrefix(room, name+"/") && slices.Contains(list, "*")
		if fits && len(name) > longest {
			may, longest = list, len(name)
		}
	}
	return may, longest >= 0
}

// importsOf are the parts of this module that a file imports.
func importsOf(t *testing.T, path string) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	var parts []string
	for _, spec := range file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		if part, ours := strings.CutPrefix(imported, module); ours {
			parts = append(parts, part)
		}
	}
	return parts
}
