package main

import (
	"errors"
	"net"
	"net/http"
	"os"
	"os/exec"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/parley-chat/parley/platforms/slack/slacktwin"
)

// TestScripts runs the scripts of testdata/script: what whoever types "bot" sees. Each script has a stand-in Slack at
// $SLACK, and two free addresses, $ADDR and $ADDR2. Beside testscript's own commands there are
//
//	exits CODE PROGRAM ARG...   runs a program, which must end with exactly that code
//	ready ADDR                  waits until the bot there is ready
//	read NAME PATTERN           sets a variable to the first group of the pattern in the last output
//	fill FILE                   puts the values of variables into a file
//	occupy ADDR                 listens there until the script ends
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			twin := slacktwin.New(slacktwin.Options{})
			env.Defer(func() { twin.Close() })
			url, err := twin.Listen("127.0.0.1:0")
			env.Setenv("SLACK", url+"/api/")
			env.Setenv("TOKEN", twin.Options().BotToken)
			env.Setenv("ADDR", freeAddress(t))
			env.Setenv("ADDR2", freeAddress(t))
			return err
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "ready": ready, "read": read, "fill": fill, "occupy": occupy,
		},
	})
}

func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM ARG...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

func ready(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: ready ADDR")
	}
	for end := time.Now().Add(time.Minute); time.Now().Before(end); <-time.After(20 * time.Millisecond) {
		resp, err := http.Get("http://" + args[0] + "/readyz")
		if err != nil {
			continue
		}
		ts.Check(resp.Body.Close())
		if resp.StatusCode == http.StatusOK {
			return
		}
	}
	ts.Fatalf("the bot at %s was not ready in time", args[0])
}

func read(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: read NAME PATTERN")
	}
	pattern, err := regexp.Compile(args[1])
	ts.Check(err)
	found := pattern.FindStringSubmatch(ts.ReadFile("stdout"))
	if len(found) != 2 {
		ts.Fatalf("the output has no %q", args[1])
	}
	ts.Setenv(args[0], found[1])
}

func fill(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: fill FILE")
	}
	filled := os.Expand(ts.ReadFile(args[0]), ts.Getenv)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(filled), 0o600))
}

func occupy(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: occupy ADDR")
	}
	listener, err := net.Listen("tcp", args[0])
	ts.Check(err)
	ts.Defer(func() { listener.Close() })
}

func TestConfigListsEverySetting(t *testing.T) {
	var out strings.Builder
	if err := writeConfig(&out); err != nil {
		t.Fatal(err)
	}
	kind := reflect.TypeFor[environment]()
	for i := range kind.NumField() {
		name, about := kind.Field(i).Tag.Get("envconfig"), kind.Field(i).Tag.Get("desc")
		if name == "" || about == "" || !strings.Contains(out.String(), "\n"+name+" ") || !strings.Contains(out.String(), about) {
			t.Errorf("bot config does not say what %s %q is for", kind.Field(i).Name, name)
		}
	}
}
