package slacktwin

import (
	"encoding/json"
	"time"
)

// User is a person or a bot. Team is empty for the twin's own team; another one is a guest by Slack Connect.
type User struct {
	ID, Name, Team string
	Bot            bool
	Guest          bool
}

// Channel is a place to talk. IM is a direct message; its members are the person and the bot.
type Channel struct {
	ID, Name string
	Private  bool
	IM       bool
	Archived bool
	Members  []string
}

// Upload is a file that a person sends.
type Upload struct {
	Name, MediaType string
	Content         []byte
	// External files live elsewhere (is_external). Connect files show themselves to files.info only.
	External, Connect bool
}

// File is a stored file.
type File struct {
	ID, Name, Title, MediaType string
	User                       string
	Size                       int
	URL                        string // url_private
	Channels                   []string
	External, Connect          bool
	Created                    time.Time
}

// Reaction is an emoji and who set it.
type Reaction struct {
	Name  string
	Users []string
}

// Message is one message, as kept. Text and Blocks are as they were sent.
type Message struct {
	Channel, TS, ThreadTS string
	User                  string
	BotID                 string // set for the bot's messages
	Subtype               string
	Text                  string
	Markdown              bool // Text was sent as markdown_text
	Blocks                json.RawMessage
	Attachments           json.RawMessage
	Metadata              json.RawMessage
	Chunks                []json.RawMessage // of a stream, other than markdown_text
	Files                 []File
	Reactions             []Reaction
	ClientMsgID           string
	EditedBy, EditedTS    string
	Streaming             bool
	Replies               int      // of a parent
	ReplyUsers            []string // of a parent
	LatestReply           string   // of a parent
	Ephemeral             bool
	To                    string // who sees it, of an ephemeral one
}

// View is an open modal.
type View struct {
	ID, RootID, PreviousID, ExternalID, Hash, CallbackID string
	User                                                 string
	Type                                                 string // modal or home
	Title, Submit, Close                                 string
	PrivateMetadata                                      string
	NotifyOnClose                                        bool
	Blocks                                               json.RawMessage
}

// Status is what the bot shows in a thread. State is that of an agent session (processing, active, suspended, closed), Text
// that of assistant.threads.setStatus.
type Status struct {
	Channel, ThreadTS string
	State, Text       string
	Title             string
	At                time.Time
}

// ChangeKind says what a change is about.
type ChangeKind string

// The kinds of change.
const (
	MessageChanged   ChangeKind = "message"   // a message is new, changed or gone
	EphemeralChanged ChangeKind = "ephemeral" // User sees something new
	ViewChanged      ChangeKind = "view"      // a modal of User
	StatusChanged    ChangeKind = "status"    // of the thread TS
	DirectoryChanged ChangeKind = "directory" // users, channels
)

// Change names what is to be read anew.
type Change struct {
	Kind    ChangeKind
	Channel string
	TS      string
	Thread  string // the ts of the thread's parent; of a top-level message its own
	User    string
}

// Delivery is one attempt to deliver something to the bot.
type Delivery struct {
	Kind        string // events_api, interactive or slash_commands
	Type        string // of the event (message, app_mention) or of the interaction (block_actions)
	Subtype     string
	ID          string // event_id; empty but for events
	Channel, TS string // of the message that it is about
	Transport   string // http or socket
	Attempt     int    // 0 is the first, then the number of the retry
	Reason      string // of the retry: http_timeout, http_error, ...
	Status      int    // HTTP status of the answer; 200 for an acknowledged envelope
	Acked       bool
	Error       string // why not, as Slack would say it
	At          time.Time
	Took        time.Duration
	Body        []byte // the payload
}

// Call is one Web API call.
type Call struct {
	Method  string
	Args    map[string]string // without the token; JSON as text
	Status  int               // 0: the connection was closed without an answer
	OK      bool
	Error   string
	Warning string
	Channel string // of the answer
	TS      string // of the answer
	Faulted bool   // by a Fault
	At      time.Time
}
