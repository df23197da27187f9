package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/parley-chat/parley/approvals"
	"github.com/parley-chat/parley/platforms"
	"github.com/parley-chat/parley/platforms/console"
)

// runChat talks in the terminal. Whoever sits there may approve: there is nobody else.
func runChat(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	_, err := flags("chat", "bot chat talks to the agent in this terminal. It keeps what BOT_STORE says; by default, nothing.", args, stderr, nil)
	if err != nil {
		return err
	}
	s, err := readSettings(func(e *environment) {
		if _, set := os.LookupEnv("BOT_STORE"); !set {
			e.Store = "memory:"
		}
	})
	if err != nil {
		return err
	}
	s.approvers = []approvals.Pattern{{Platform: console.Name, ID: "you"}}
	s.selfApproval = true
	logger := newLogger(s, stderr)
	adapter := console.New(stdin, stdout, platforms.User{ID: "you", Name: "you"})
	b, err := build(ctx, s, logger, adapter)
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "Talking to %s. Try: hello, what time is it?, deploy web. Commands: status, approvals, approve ID, deny ID, reset, stop. Ctrl-D ends.\n\n", s.Model)
	return errors.Join(b.bridge.Run(ctx), b.close())
}
