// Package slacktwin is a Slack of our own: it speaks the wire protocols that Slack speaks (Web API, signed events with
// retries, interactivity, slash commands, response_url, Socket Mode, files, streams) and refuses what Slack refuses. Bots
// are tested against it, and the playground shows it in a browser.
//
// It knows nothing of this module: every limit, error and tier in it is transcribed from Slack's own documentation (named
// "doc x" below, the page docs.slack.dev/x) or from what others observed of the live service, so that a mistake in the bot
// is not repeated here. It keeps everything in memory and leaves users' clients (rendering, typing, search) to others.
package slacktwin

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"
)

// Options say who the bot is and how strict its Slack is. The zero value of each field has a default.
type Options struct {
	Team, TeamName string // T0TWIN, "Twin"
	BotUser        string // the bot's user id, UBOT
	BotName        string // "bot"
	AppID          string // A0TWIN
	BotToken       string // xoxb-twin
	AppToken       string // xapp-twin, for Socket Mode
	SigningSecret  string // twin-signing-secret

	// URL is where Handler is reached, without a slash at the end. It may be set later by SetURL.
	URL string
	// Agent grants the agent feature: agents.sessions.*, streams set a session's status, direct messages are threads.
	Agent bool
	// Enforce turns the rate limits of the methods' tiers on.
	Enforce bool
	// Unsubscribed are event types the app has no subscription for.
	Unsubscribed []string
	// Retries are the waits before each retry of an event. Slack's are at once, 1 min and 5 min.
	Retries []time.Duration

	// Now and After are the clock; After calls f once d has passed, unless stopped. See Clock for one that is moved by hand.
	Now   func() time.Time
	After func(d time.Duration, f func()) (stop func() bool)
	// Logger tells what happens, at debug level; never text or tokens.
	Logger *slog.Logger
	// Client delivers to the callbacks. It needs no timeout.
	Client *http.Client
}

// Callbacks are the app's request URLs. Where one is empty, its deliveries go to open sockets only.
type Callbacks struct{ Events, Interactivity, Commands string }

// Twin is one workspace with one app in it. All methods may be called concurrently.
type Twin struct {
	opt Options
	mu  sync.Mutex
}

// New returns a workspace with the bot in it and nobody else.
func New(o Options) *Twin { return &Twin{opt: o} }

// SetURL says where Handler is reached: "http://127.0.0.1:1234".
func (t *Twin) SetURL(base string) {}

// Listen serves Handler on addr ("127.0.0.1:0") until Close, and returns the URL.
func (t *Twin) Listen(addr string) (url string, err error) { return "", nil }

// Handler serves /api/METHOD, /files/, /upload/, /response/ and /socket.
func (t *Twin) Handler() http.Handler { return http.NotFoundHandler() }

// Connect sets the app's request URLs; deliveries under way are not affected.
func (t *Twin) Connect(c Callbacks) {}

// Close stops all deliveries, closes the sockets and waits for every goroutine.
func (t *Twin) Close() error { return nil }

// AddUser adds or replaces a person or a bot.
func (t *Twin) AddUser(u User) {}

// AddChannel adds or replaces a channel. Messages in it are kept.
func (t *Twin) AddChannel(c Channel) {}

// AddGroup sets the members of a user group.
func (t *Twin) AddGroup(id string, users ...string) {}

// Say posts as a person. The message is there at once; its events go to the bot by and by. Text is in Slack's wire form:
// <@U1> mentions, &, < and > are escaped. A threadTS of "" is the top level.
func (t *Twin) Say(user, channel, threadTS, text string, files ...Upload) (ts string, err error) {
	return "", nil
}

// EditMessage changes a message as its author.
func (t *Twin) EditMessage(user, channel, ts, text string) error { return nil }

// DeleteMessage deletes a message as its author.
func (t *Twin) DeleteMessage(user, channel, ts string) error { return nil }

// Click presses a live button and waits for the acknowledgement, at most 3 s.
func (t *Twin) Click(ctx context.Context, user, channel, ts, actionID string) error { return nil }

// SubmitView sends the form: values are by block_id and action_id. *ViewErrors are those of a response_action "errors".
func (t *Twin) SubmitView(ctx context.Context, user, viewID string, values map[string]map[string]string) error {
	return nil
}

// CloseView dismisses the form.
func (t *Twin) CloseView(ctx context.Context, user, viewID string) error { return nil }

// Command runs a slash command ("/status") and waits for its acknowledgement, at most 3 s.
func (t *Twin) Command(ctx context.Context, user, channel, command, text string) error { return nil }

// StopSession presses the native stop button of a thread.
func (t *Twin) StopSession(user, channel, threadTS string) error { return nil }

// Channels returns the channels in the order in which they were added.
func (t *Twin) Channels() []Channel { return nil }

// Users returns the users in the order in which they were added.
func (t *Twin) Users() []User { return nil }

// Messages returns all messages of a channel, replies too, in order of ts.
func (t *Twin) Messages(channel string) []Message { return nil }

// Thread returns the parent and its replies, in order of ts.
func (t *Twin) Thread(channel, ts string) []Message { return nil }

// Ephemerals returns what only this person sees, oldest first.
func (t *Twin) Ephemerals(user string) []Message { return nil }

// Views returns the open modals of a person, the topmost last.
func (t *Twin) Views(user string) []View { return nil }

// Statuses returns what the bot says it is doing, by thread; expired ones are not among them.
func (t *Twin) Statuses() []Status { return nil }

// File returns the content of a file.
func (t *Twin) File(id string) (f File, content []byte, ok bool) { return File{}, nil, false }

// Subscribe tells what changed, from now on. A change that waits to be read is not queued twice, so a slow reader loses
// nothing: it reads the state of what is named. cancel ends it and closes the channel.
func (t *Twin) Subscribe() (changes <-chan Change, cancel func()) { return nil, func() {} }

// Fault scripts one fault; faults apply in the order in which they were given.
func (t *Twin) Fault(f Fault) {}

// Deliveries returns the journal of delivery attempts.
func (t *Twin) Deliveries() []Delivery { return nil }

// Calls returns the journal of Web API calls.
func (t *Twin) Calls() []Call { return nil }

// Idle waits until every delivery that is due has been tried. Retries that are due later are not waited for.
func (t *Twin) Idle(ctx context.Context) error { return nil }

// Disconnect ends Socket Mode connections: "warning", "refresh_requested", "link_disabled", or "" for a broken line.
func (t *Twin) Disconnect(reason string) {}

// VerifyURL sends url_verification to the events URL and checks the echoed challenge.
func (t *Twin) VerifyURL(ctx context.Context) error { return nil }
