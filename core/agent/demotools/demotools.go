// Package demotools are the tools of the playground: deploy, which needs an approval and can be watched doing exactly
// one thing per approval, and time, which needs none.
package demotools

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/parley-chat/parley/core/agent"
	"github.com/parley-chat/parley/core/llm"
)

// Time tells the time in UTC by the given clock.
func Time(now func() time.Time) agent.Tool {
	return agent.Tool{
		Tool: llm.Tool{
			Name: "time", Description: "Tells the current date and time in UTC.",
			Parameters: json.RawMessage(`{"type":"object","properties":{},"additionalProperties":false}`),
		},
		Effect: agent.ReadOnly,
		Run: func(context.Context, agent.Call) (string, error) {
			return now().UTC().Format("Monday, 2 January 2006, 15:04 UTC"), nil
		},
	}
}

// Deploy pretends to deploy a service. Each execution appends one line to the file at log, if it is not empty: the id of
// the approval, a space, and the arguments as JSON. After a crash it is settled by looking for that line.
func Deploy(log string) agent.Tool {
	return agent.Tool{
		Tool: llm.Tool{
			Name: "deploy", Description: "Deploys a service to an environment.",
			Parameters: json.RawMessage(`{
				"type": "object",
				"properties": {
					"service": {"type": "string", "minLength": 1, "maxLength": 100},
					"environment": {"type": "string", "enum": ["staging", "production"]}
				},
				"required": ["service", "environment"],
				"additionalProperties": false
			}`),
		},
		Approval: true,
		Effect:   agent.Once,
		Run: func(_ context.Context, c agent.Call) (string, error) {
			if err := record(log, c); err != nil {
				return "", err
			}
			return deployed(c), nil
		},
		Settle: func(_ context.Context, c agent.Call) (string, bool, error) {
			done, err := recorded(log, c.Approval)
			return deployed(c), done, err
		},
	}
}

func deployed(c agent.Call) string {
	var args struct{ Service, Environment string }
	if err := json.Unmarshal(c.Arguments, &args); err != nil {
		return "deployed"
	}
	return fmt.Sprintf("%s is deployed to %s", args.Service, args.Environment)
}

// record appends the line of one execution and waits until it is on the disk.
func record(log string, c agent.Call) error {
	if log == "" {
		return nil
	}
	f, err := os.OpenFile(log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open the log of deployments: %w", err)
	}
	_, err = fmt.Fprintf(f, "%s %s\n", c.Approval, c.Arguments)
	return errors.Join(err, f.Sync(), f.Close())
}

// recorded reports whether the log has a line of the approval.
func recorded(log, approval string) (bool, error) {
	f, err := os.Open(log)
	if log == "" || errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read the log of deployments: %w", err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if id, _, _ := strings.Cut(lines.Text(), " "); id == approval {
			return true, nil
		}
	}
	return false, lines.Err()
}
