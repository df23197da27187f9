// Command bot lets people talk to an agent in chat threads and decide, in the same thread, what it may do.
//
// This file is the door: it finds the subcommand and turns its end into an exit code. Everything is built by hand in
// build.go; reading that is reading the architecture.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
)

const usage = `bot lets people talk to an agent in chat threads and approve what it wants to do.

Usage:

  bot serve                 run on the real platforms; settings come from the environment (see bot config)
  bot playground            try it in a browser: no token, no key, no server
  bot chat                  try it in this terminal
  bot conformance DIR...    run OpenArmature conformance fixtures
  bot config                print every setting, its value and where it came from
  bot version               print the version

bot SUBCOMMAND -h tells more. Exit codes: 0 done, 1 failed, 2 called or set up wrongly.
`

// Exit codes.
const (
	done   = 0
	failed = 1
	misuse = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is main with everything it touches as arguments.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		fmt.Fprint(stderr, usage)
		return misuse
	}
	name, args := args[0], args[1:]
	var err error
	switch name {
	case "serve":
		err = serve(ctx, args, stderr)
	case "playground":
		err = runPlayground(ctx, args, stdout, stderr)
	case "chat":
		err = runChat(ctx, args, stdin, stdout, stderr)
	case "conformance":
		err = runConformance(ctx, args, stdout, stderr)
	case "config":
		err = writeConfig(stdout)
	case "version":
		_, err = fmt.Fprintln(stdout, version())
	case "help", "-h", "-help", "--help":
		_, err = fmt.Fprint(stdout, usage)
	default:
		fmt.Fprintf(stderr, "bot: there is no subcommand %q\n\n%s", name, usage)
		return misuse
	}
	return exitCode(err, stderr)
}

// usageError is an error of whoever called: exit code 2. An empty one has been said already.
type usageError struct{ error }

var (
	errSaid   = errors.New("")
	errHelped = errors.New("") // who asked for help got it
)

func exitCode(err error, stderr io.Writer) int {
	if err == nil || errors.Is(err, errHelped) {
		return done
	}
	if err.Error() != "" {
		fmt.Fprintf(stderr, "bot: %v\n", err)
	}
	if _, wrong := errors.AsType[*settingsError](err); wrong {
		return misuse
	}
	if _, wrong := errors.AsType[usageError](err); wrong {
		return misuse
	}
	return failed
}

// version is what the build knows of itself.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "parley (unknown build)"
	}
	v := info.Main.Version
	if v == "" {
		v = "(devel)"
	}
	return fmt.Sprintf("parley %s %s", v, info.GoVersion)
}
