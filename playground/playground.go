// Package playground serves one web page that looks and feels like a small Slack and acts on a stand-in of it: people
// write, click and fill in forms there, and whatever bot is connected to the stand-in answers over its real protocols.
//
// It knows what the stand-in shows and how to turn it into JSON for the page; the page itself (HTML, CSS and JavaScript
// modules, no build step) is embedded. It knows no bot: who is connected, and how, is for others. As the page may act as
// anybody, it is served to this machine only: see guard.
//
// A further platform gets an entry in /api/platforms and its own paths beside /api/slack/; the page shows one tab for each.
package playground

import (
	"context"
	"embed"
	"io/fs"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/parley-chat/parley/platforms/slack/slacktwin"
)

//go:embed page
var files embed.FS

// Options say what is shown. Slack is required.
type Options struct {
	Slack *slacktwin.Twin
	// Workspace is the name at the top of the page. Empty: "Parley Playground".
	Workspace string
	// Approvers are the users marked as such in the list of people. It is a label and permits nothing.
	Approvers []string
	// Commands are the slash commands that the page offers, with a line about each. Nil: those of Parley.
	Commands []Command
	// Logger tells of requests that failed; never text. Nil: nothing is logged.
	Logger *slog.Logger
}

// Command is a slash command: Name with the slash.
type Command struct {
	Name  string `json:"name"`
	About string `json:"about"`
}

// heartbeat is the time between two signs of life on a stream of events; it lets both ends notice a dead line.
const heartbeat = 15 * time.Second

// Playground is the page and what is behind it. All methods may be called concurrently.
type Playground struct {
	slack     *slacktwin.Twin
	opt       Options
	log       *slog.Logger
	ticks     *ticks
	handler   http.Handler
	heartbeat time.Duration

	close    func()
	watching sync.WaitGroup
}

// New returns a playground over a stand-in that the caller keeps and closes. Close it before the stand-in.
func New(o Options) *Playground {
	if o.Workspace == "" {
		o.Workspace = "Parley Playground"
	}
	if o.Commands == nil {
		o.Commands = []Command{
			{"/status", "what the bot is doing"},
			{"/approvals", "what waits for a decision"},
			{"/reset", "begin a new conversation"},
		}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	p := &Playground{slack: o.Slack, opt: o, log: o.Logger, ticks: newTicks(), heartbeat: heartbeat}
	p.handler = guard(p.routes())
	p.watch()
	return p
}

// Handler serves the page at /, its JSON API and the live events under /api/.
func (p *Playground) Handler() http.Handler { return p.handler }

// Close ends the streams of events and waits for what New started. Closing again is harmless.
func (p *Playground) Close() {
	p.close()
	p.watching.Wait()
}

// watch counts the stand-in's changes until Close.
func (p *Playground) watch() {
	ctx, cancel := context.WithCancel(context.Background())
	changes, unsubscribe := p.slack.Subscribe()
	p.close = cancel
	p.watching.Go(func() {
		defer p.ticks.end()
		defer unsubscribe()
		for {
			select {
			case <-ctx.Done():
				return
			case _, open := <-changes:
				if !open {
					return
				}
				p.ticks.advance()
			}
		}
	})
}

func (p *Playground) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/platforms", p.platforms)
	mux.HandleFunc("GET /api/events", p.events)
	mux.HandleFunc("GET /api/slack/state", p.state)
	mux.HandleFunc("GET /api/slack/files/{id}", p.file)
	mux.HandleFunc("POST /api/slack/say", act(p, maxSay, p.say))
	mux.HandleFunc("POST /api/slack/edit", act(p, maxBody, p.edit))
	mux.HandleFunc("POST /api/slack/delete", act(p, maxBody, p.delete))
	mux.HandleFunc("POST /api/slack/click", act(p, maxBody, p.click))
	mux.HandleFunc("POST /api/slack/submit", act(p, maxBody, p.submit))
	mux.HandleFunc("POST /api/slack/dismiss", act(p, maxBody, p.dismiss))
	mux.HandleFunc("POST /api/slack/command", act(p, maxBody, p.command))
	mux.HandleFunc("POST /api/slack/stop", act(p, maxBody, p.stop))
	mux.HandleFunc("/api/", p.unknown)
	mux.Handle("/", http.FileServerFS(page()))
	return mux
}

// page is the embedded directory; it exists since the compiler put it there.
func page() fs.FS {
	sub, err := fs.Sub(files, "page")
	if err != nil {
		panic(err)
	}
	return sub
}
