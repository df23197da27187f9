package demotools_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parley-chat/parley/core/agent"
	"github.com/parley-chat/parley/core/agent/demotools"
	"github.com/parley-chat/parley/core/llm"
)

var web = agent.Call{Tool: "deploy", Arguments: json.RawMessage(`{"service":"web","environment":"staging"}`), Approval: "approval1"}

func TestTheTimeIsToldInUTC(t *testing.T) {
	clock := func() time.Time { return time.Date(2026, 3, 4, 23, 30, 0, 0, time.FixedZone("east", 7200)) }
	got, err := demotools.Time(clock).Run(t.Context(), agent.Call{})
	if want := "Wednesday, 4 March 2026, 21:30 UTC"; err != nil || got != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

func TestADeploymentLeavesOneLine(t *testing.T) {
	log := filepath.Join(t.TempDir(), "deployments")
	deploy := demotools.Deploy(log)
	if !deploy.Approval || deploy.Effect != agent.Once {
		t.Errorf("deploy needs an approval: %v, and has the effect %q; want true and once", deploy.Approval, deploy.Effect)
	}
	got, err := deploy.Run(t.Context(), web)
	if want := "web is deployed to staging"; err != nil || got != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	other := web
	other.Approval = "approval2"
	if _, err := deploy.Run(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	written, err := os.ReadFile(log)
	want := `approval1 {"service":"web","environment":"staging"}` + "\n" + `approval2 {"service":"web","environment":"staging"}` + "\n"
	if err != nil || string(written) != want {
		t.Errorf("the log is %q, %v, want %q", written, err, want)
	}
}

func TestADeploymentIsSettledByItsLine(t *testing.T) {
	log := filepath.Join(t.TempDir(), "deployments")
	deploy := demotools.Deploy(log)
	for _, step := range []struct {
		name string
		do   func() error
		done bool
	}{
		{"before there is a log", func() error { return nil }, false},
		{"with another's line", func() error { return os.WriteFile(log, []byte("approval11 {}\nxapproval1 {}\n"), 0o600) }, false},
		{"with its line", func() error { _, err := deploy.Run(t.Context(), web); return err }, true},
	} {
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		result, done, err := deploy.Settle(t.Context(), web)
		if err != nil || done != step.done || result != "web is deployed to staging" {
			t.Errorf("%s: got %q, done %v, %v, want done %v", step.name, result, done, err, step.done)
		}
	}
}

func TestWithoutALogNothingIsWritten(t *testing.T) {
	deploy := demotools.Deploy("")
	if _, err := deploy.Run(t.Context(), web); err != nil {
		t.Error(err)
	}
	if _, done, err := deploy.Settle(t.Context(), web); done || err != nil {
		t.Errorf("got done %v, %v, want that it was not done", done, err)
	}
}

func TestALogThatCannotBeWrittenIsAnError(t *testing.T) {
	deploy := demotools.Deploy(t.TempDir()) // a directory
	if _, err := deploy.Run(t.Context(), web); err == nil || !strings.Contains(err.Error(), "log of deployments") {
		t.Errorf("got %v, want an error about the log", err)
	}
	if _, _, err := deploy.Settle(t.Context(), web); err == nil {
		t.Error("got no error for a log that cannot be read")
	}
}

func TestWhatMayBeDeployed(t *testing.T) {
	schema, err := llm.CompileSchema(demotools.Deploy("").Parameters)
	if err != nil {
		t.Fatal(err)
	}
	for arguments, fits := range map[string]bool{
		`{"service":"web","environment":"staging"}`:              true,
		`{"service":"web","environment":"production"}`:           true,
		`{"service":"web","environment":"moon"}`:                 false,
		`{"service":"","environment":"staging"}`:                 false,
		`{"service":"web"}`:                                      false,
		`{"service":"web","environment":"staging","force":true}`: false,
	} {
		if err := schema.Validate(json.RawMessage(arguments)); (err == nil) != fits {
			t.Errorf("%s: got %v, want that it fits: %v", arguments, err, fits)
		}
	}
}
