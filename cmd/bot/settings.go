package main

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"reflect"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/kelseyhightower/envconfig"

	"github.com/parley-chat/parley/approvals"
)

// environment is every setting as it stands in the environment. It is the one place that documents them: `bot config`
// prints it.
type environment struct {
	SlackBotToken      string `envconfig:"SLACK_BOT_TOKEN" secret:"true" desc:"bot token (xoxb-…); Slack is on when it is set"`
	SlackAppToken      string `envconfig:"SLACK_APP_TOKEN" secret:"true" desc:"app-level token (xapp-…); Socket Mode when set, HTTP otherwise"`
	SlackSigningSecret string `envconfig:"SLACK_SIGNING_SECRET" secret:"true" desc:"signing secret; needed for HTTP"`
	SlackAPIURL        string `envconfig:"SLACK_API_URL" default:"https://slack.com/api/" desc:"address of the Web API"`
	SlackPacing        string `envconfig:"SLACK_PACING" default:"on" desc:"wait within Slack's limits before each call: on, or off for stand-ins and load tests"`

	Addr  string `envconfig:"BOT_ADDR" default:":8080" desc:"address to listen on: /slack/…, /healthz, /readyz"`
	Store string `envconfig:"BOT_STORE" default:"bolt:bot.db" desc:"where everything is kept: bolt:FILE or memory:"`
	Model string `envconfig:"BOT_MODEL" default:"demo" desc:"demo, echo or openai:NAME"`

	OpenAIKey     string `envconfig:"OPENAI_API_KEY" secret:"true" desc:"key for openai:NAME; may be empty for a server of your own"`
	OpenAIBaseURL string `envconfig:"OPENAI_BASE_URL" desc:"any server that speaks OpenAI's chat completions; OpenAI's own if empty"`

	Approvers    string `envconfig:"BOT_APPROVERS" desc:"who may approve, comma-separated: slack:USER, slack:TEAM/USER, slack:group:ID; nobody if empty"`
	SelfApproval string `envconfig:"BOT_SELF_APPROVAL" default:"off" desc:"whether approvers may approve what they asked for themselves: on or off"`
	ApprovalTTL  string `envconfig:"BOT_APPROVAL_TTL" default:"24h" desc:"how long a request waits before it ends without an answer; 0 for ever"`

	Instructions string `envconfig:"BOT_INSTRUCTIONS" desc:"system message for the model"`
	History      string `envconfig:"BOT_HISTORY" default:"100" desc:"how many of the newest messages the model sees"`
	Turns        string `envconfig:"BOT_TURNS" default:"256" desc:"how many turns run at a time, over all conversations"`
	Drain        string `envconfig:"BOT_DRAIN" default:"20s" desc:"how long running turns and waiting replies are given at shutdown"`
	LogLevel     string `envconfig:"BOT_LOG_LEVEL" default:"info" desc:"debug, info, warn or error"`
	LogFormat    string `envconfig:"BOT_LOG_FORMAT" default:"text" desc:"text or json"`

	EchoDelay string `envconfig:"BOT_ECHO_DELAY" default:"0s" desc:"how long the echo model takes"`
	DemoLog   string `envconfig:"BOT_DEMO_LOG" desc:"file to which the demo tool deploy appends a line per execution"`
}

// settings are the environment, understood.
type settings struct {
	environment
	pacing       bool
	store        storeSetting
	model        modelSetting
	approvers    []approvals.Pattern
	selfApproval bool
	approvalTTL  time.Duration
	history      int
	turns        int
	drain        time.Duration
	echoDelay    time.Duration
	logLevel     slog.Level
}

type storeSetting struct{ kind, path string }
type modelSetting struct{ kind, name string }

// mistakes collects what is wrong, so that one message can name all of it.
type mistakes []string

func (m *mistakes) add(name, problem string) { *m = append(*m, name+" "+problem) }

// settingsError says which settings are wrong and how to mend each.
type settingsError struct{ mistakes mistakes }

func (e *settingsError) Error() string {
	return "the settings cannot be used:\n  - " + strings.Join(e.mistakes, "\n  - ")
}

// readSettings reads the environment and checks it at once; override, if not nil, has the last word before the check.
// Its error is a *settingsError.
func readSettings(override func(*environment)) (settings, error) {
	var s settings
	if err := envconfig.Process("", &s.environment); err != nil {
		return s, &settingsError{mistakes{err.Error()}}
	}
	if override != nil {
		override(&s.environment)
	}
	var m mistakes
	s.pacing = onOff(&m, "SLACK_PACING", s.SlackPacing)
	s.selfApproval = onOff(&m, "BOT_SELF_APPROVAL", s.SelfApproval)
	s.approvalTTL = duration(&m, "BOT_APPROVAL_TTL", s.ApprovalTTL)
	s.drain = duration(&m, "BOT_DRAIN", s.Drain)
	s.echoDelay = duration(&m, "BOT_ECHO_DELAY", s.EchoDelay)
	s.history = number(&m, "BOT_HISTORY", s.History, 2, 10_000)
	s.turns = number(&m, "BOT_TURNS", s.Turns, 1, 100_000)
	s.store = s.checkStore(&m)
	s.model = s.checkModel(&m)
	s.approvers = s.checkApprovers(&m)
	if err := s.logLevel.UnmarshalText([]byte(s.LogLevel)); err != nil {
		m.add("BOT_LOG_LEVEL", fmt.Sprintf("is %q: write debug, info, warn or error", s.LogLevel))
	}
	if s.LogFormat != "text" && s.LogFormat != "json" {
		m.add("BOT_LOG_FORMAT", fmt.Sprintf("is %q: write text or json", s.LogFormat))
	}
	if _, _, err := net.SplitHostPort(s.Addr); err != nil {
		m.add("BOT_ADDR", fmt.Sprintf("is %q: write HOST:PORT or :PORT", s.Addr))
	}
	address(&m, "OPENAI_BASE_URL", s.OpenAIBaseURL)
	s.checkSlack(&m)
	if len(m) > 0 {
		return s, &settingsError{m}
	}
	return s, nil
}

func onOff(m *mistakes, name, value string) bool {
	if value != "on" && value != "off" {
		m.add(name, fmt.Sprintf("is %q: write on or off", value))
	}
	return value == "on"
}

func duration(m *mistakes, name, value string) time.Duration {
	d, err := time.ParseDuration(value)
	if err != nil || d < 0 {
		m.add(name, fmt.Sprintf("is %q: write a length of time, like 30s or 24h", value))
	}
	return d
}

func number(m *mistakes, name, value string, least, most int) int {
	n, err := strconv.Atoi(value)
	if err != nil || n < least || n > most {
		m.add(name, fmt.Sprintf("is %q: write a whole number from %d to %d", value, least, most))
	}
	return n
}

func address(m *mistakes, name, value string) {
	if value == "" {
		return
	}
	u, err := url.Parse(value)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		m.add(name, fmt.Sprintf("is %q: write an address like https://host/path/", value))
	}
}

func (s *settings) checkStore(m *mistakes) storeSetting {
	kind, path, _ := strings.Cut(s.Store, ":")
	if (kind == "bolt" && path != "") || (kind == "memory" && path == "") {
		return storeSetting{kind, path}
	}
	m.add("BOT_STORE", fmt.Sprintf("is %q: write bolt:FILE or memory:", s.Store))
	return storeSetting{}
}

func (s *settings) checkModel(m *mistakes) modelSetting {
	kind, name, _ := strings.Cut(s.Model, ":")
	switch {
	case (kind == "demo" || kind == "echo") && name == "":
	case kind == "openai" && name != "":
		if s.OpenAIKey == "" && s.OpenAIBaseURL == "" {
			m.add("OPENAI_API_KEY", "is missing: BOT_MODEL asks for OpenAI; set the key, or OPENAI_BASE_URL for a server of your own")
		}
	default:
		m.add("BOT_MODEL", fmt.Sprintf("is %q: write demo, echo or openai:NAME", s.Model))
	}
	return modelSetting{kind, name}
}

func (s *settings) checkApprovers(m *mistakes) []approvals.Pattern {
	patterns, err := approvals.ParsePatterns(s.Approvers,
		approvals.Platform{Name: "slack", GroupPrefix: "S"}, approvals.Platform{Name: "console"})
	if err != nil {
		for line := range strings.SplitSeq(err.Error(), "\n") {
			m.add("BOT_APPROVERS", line)
		}
	}
	return patterns
}

func (s *settings) slackOn() bool { return s.SlackBotToken != "" }

// checkSlack looks at the form of the tokens only; whether they are right is asked of Slack at the start.
func (s *settings) checkSlack(m *mistakes) {
	address(m, "SLACK_API_URL", s.SlackAPIURL)
	if !s.slackOn() {
		if s.SlackAppToken != "" || s.SlackSigningSecret != "" {
			m.add("SLACK_BOT_TOKEN", "is missing: set the bot token (xoxb-…) of the app's page OAuth & Permissions")
		}
		return
	}
	if strings.HasPrefix(s.SlackBotToken, "xapp-") || strings.HasPrefix(s.SlackBotToken, "xoxp-") {
		m.add("SLACK_BOT_TOKEN", "is another kind of token: set the bot token (xoxb-…) of the app's page OAuth & Permissions")
	}
	if strings.HasPrefix(s.SlackAppToken, "xoxb-") || strings.HasPrefix(s.SlackAppToken, "xoxp-") {
		m.add("SLACK_APP_TOKEN", "is another kind of token: set an app-level token (xapp-…) with connections:write")
	}
	if s.SlackAppToken == "" && s.SlackSigningSecret == "" {
		m.add("SLACK_SIGNING_SECRET", "is missing: set it (Basic Information) for HTTP, or SLACK_APP_TOKEN for Socket Mode")
	}
}

// writeConfig prints every setting, its value, where it came from and what it is for. Secrets are masked.
func writeConfig(w io.Writer) error {
	var env environment
	if err := envconfig.Process("", &env); err != nil {
		return err
	}
	table := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(table, "SETTING\tVALUE\tFROM\tMEANING")
	v := reflect.ValueOf(env)
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name := f.Tag.Get("envconfig")
		value, from := v.Field(i).String(), "default"
		if _, set := os.LookupEnv(name); set {
			from = "environment"
		}
		if f.Tag.Get("secret") != "" && value != "" {
			value = "(set)"
		}
		if value == "" {
			value = "(empty)"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", name, value, from, f.Tag.Get("desc"))
	}
	return table.Flush()
}
