package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/parley-chat/parley/approvals"
	"github.com/parley-chat/parley/platforms"
	"github.com/parley-chat/parley/platforms/slack"
)

func newApprovalID() string { return string(approvals.NewID(rand.Reader)) }

// flags parses a subcommand's arguments. Its error has been said already.
func flags(name, about string, args []string, stderr io.Writer, define func(*flag.FlagSet)) (*flag.FlagSet, error) {
	fs := flag.NewFlagSet("bot "+name, flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.Usage = func() {
		fmt.Fprintf(stderr, "%s\n\n", about)
		fs.PrintDefaults()
	}
	if define != nil {
		define(fs)
	}
	err := fs.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		return fs, errSaid
	}
	if err != nil {
		return fs, usageError{errSaid}
	}
	return fs, nil
}

// serve runs the bot on the platforms that are configured.
func serve(ctx context.Context, args []string, stderr io.Writer) error {
	_, err := flags("serve", "bot serve runs the bot. It takes its settings from the environment; see bot config.", args, stderr, nil)
	if err != nil {
		return err
	}
	s, err := readSettings(nil)
	if err != nil {
		return err
	}
	if !s.slackOn() {
		return errNoPlatform
	}
	logger := newLogger(s, stderr)
	adapter, err := newSlack(s, logger)
	if err != nil {
		return err
	}
	return serveOn(ctx, s, logger, adapter)
}

func newSlack(s settings, logger *slog.Logger) (*slack.Adapter, error) {
	return slack.New(slack.Options{
		BotToken: s.SlackBotToken, AppToken: s.SlackAppToken, SigningSecret: s.SlackSigningSecret,
		APIURL: s.SlackAPIURL, Pacing: s.pacing, Logger: logger,
	})
}

// serveOn runs the bot with the given platforms until ctx ends, and then drains it.
func serveOn(ctx context.Context, s settings, logger *slog.Logger, adapters ...platforms.Adapter) error {
	listener, err := net.Listen("tcp", s.Addr)
	if err != nil {
		return fmt.Errorf("listen on BOT_ADDR: %w", err)
	}
	b, err := build(ctx, s, logger, adapters...)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	b.explain(s)
	return errors.Join(b.run(ctx, listener, adapters), b.close())
}

// run serves HTTP and runs the bridge until ctx ends or the bridge fails. HTTP goes on while the bridge drains: the probes
// tell of it, and deliveries are answered 503, so that the platform sends them again.
func (b *bot) run(ctx context.Context, listener net.Listener, adapters []platforms.Adapter) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	server := &http.Server{
		Handler: b.routes(adapters), ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second,
		IdleTimeout: 2 * time.Minute, ErrorLog: slog.NewLogLogger(b.logger.Handler(), slog.LevelWarn),
	}
	var running sync.WaitGroup
	running.Go(func() {
		b.logger.Info("listening", "address", listener.Addr().String())
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			b.logger.Error("the HTTP server ended", "error", err)
			stop()
		}
	})
	running.Go(func() { b.housekeeping(ctx) })
	running.Go(func() {
		<-ctx.Done()
		b.logger.Info("draining: no new turns; running ones and waiting replies are finished")
	})
	err := b.bridge.Run(ctx)
	stop()
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if server.Shutdown(end) != nil { // of connections that never asked for anything, it would wait longer
		server.Close()
	}
	running.Wait()
	return err
}

// routes are the platforms' own and the probes. Liveness depends on nothing outside the process.
func (b *bot) routes(adapters []platforms.Adapter) http.Handler {
	mux := http.NewServeMux()
	for _, a := range adapters {
		if server, ok := a.(platforms.Server); ok {
			for path, handler := range server.Routes() {
				mux.Handle(path, handler)
			}
		}
	}
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := b.bridge.Ready(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ready")
	})
	return mux
}
