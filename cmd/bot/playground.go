package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/parley-chat/parley/approvals"
	"github.com/parley-chat/parley/platforms"
	"github.com/parley-chat/parley/platforms/slack/slacktwin"
	"github.com/parley-chat/parley/playground"
)

// runPlayground runs the bot against a stand-in Slack on this machine, and a page in which to be its people. The bot is
// the real one, over real HTTP.
func runPlayground(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var addr, keep string
	var verbose bool
	err := onlyFlags("playground", "bot playground opens a small Slack with the bot in it, for a browser on this machine.", args, stderr, func(fs *flag.FlagSet) {
		fs.StringVar(&addr, "addr", "127.0.0.1:8484", "`address` of the page; only this machine can open it")
		fs.StringVar(&keep, "store", "memory:", "where the bot keeps things: bolt:FILE or memory:")
		fs.BoolVar(&verbose, "v", false, "print the bot's log")
	})
	if err != nil {
		return err
	}
	logger := slog.New(slog.DiscardHandler)
	if verbose {
		logger = slog.New(slog.NewTextHandler(stderr, nil))
	}
	page, err := net.Listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("open the page's address: %w; choose another with -addr", err)
	}
	return (&stage{page: page, keep: keep, logger: logger, stdout: stdout}).run(ctx)
}

// stage is the playground with everything on it.
type stage struct {
	page   net.Listener
	keep   string
	logger *slog.Logger
	stdout io.Writer
}

func (st *stage) run(ctx context.Context) (err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	hook, err := net.Listen("tcp", "127.0.0.1:0") // where the bot listens
	if err != nil {
		return errors.Join(err, st.page.Close())
	}
	twin := slacktwin.New(slacktwin.Options{TeamName: "Playground", BotName: "Parley", BotUser: "UPARLEY", Agent: true})
	defer func() { err = errors.Join(err, twin.Close()) }()
	api, err := twin.Listen("127.0.0.1:0")
	if err != nil {
		return errors.Join(err, st.page.Close(), hook.Close())
	}
	playground.Seed(twin)
	base := "http://" + hook.Addr().String()
	twin.Connect(slacktwin.Callbacks{Events: base + "/slack/events", Interactivity: base + "/slack/interactivity", Commands: base + "/slack/commands"})

	s, err := playgroundSettings(api, st.keep)
	if err != nil {
		return errors.Join(err, st.page.Close(), hook.Close())
	}
	adapter, err := newSlack(s, st.logger)
	if err != nil {
		return errors.Join(err, st.page.Close(), hook.Close())
	}
	b, err := build(ctx, s, st.logger, adapter)
	if err != nil {
		return errors.Join(err, st.page.Close(), hook.Close())
	}
	defer func() { err = errors.Join(err, b.close()) }()

	show := playground.New(playground.Options{Slack: twin, Approvers: []string{playground.Approver()}, Logger: st.logger})
	server := &http.Server{Handler: show.Handler(), ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(st.page) }()
	fmt.Fprintf(st.stdout, "The playground is open:\n\n  http://%s/\n\nModel: %s. Ctrl-C ends it.\n", st.page.Addr(), s.Model)

	err = b.run(ctx, hook, []platforms.Adapter{adapter})
	show.Close()
	end, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	if shut := server.Shutdown(end); shut != nil {
		server.Close()
	}
	if ended := <-served; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	return err
}

// playgroundSettings are the settings of the environment with Slack turned to the stand-in.
func playgroundSettings(api, keep string) (settings, error) {
	s, err := readSettings(func(e *environment) {
		e.Store, e.SlackBotToken, e.SlackAppToken, e.SlackSigningSecret = keep, "xoxb-twin", "", "twin-signing-secret"
		e.SlackAPIURL, e.SlackPacing = api+"/api/", "off"
	})
	if err != nil {
		return s, err
	}
	s.drain = min(s.drain, 2*time.Second)
	approver, err := approvals.ParsePatterns("slack:" + playground.Approver())
	if err != nil {
		return s, err
	}
	s.approvers = append(s.approvers, approver...)
	return s, nil
}
