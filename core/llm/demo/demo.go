// Package demo is a scripted model: the same conversation always gets the same answer. It is what people meet in the
// playground and what tests talk to. It knows two tools by name, deploy and time; what they do, and whether they may run,
// is others' business.
//
// The script, for the last message:
//   - a tool result is quoted, whatever it says;
//   - a user message with the word deploy calls the tool deploy;
//   - one with the word time calls the tool time;
//   - anything else is answered with what can be tried.
package demo

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/parley-chat/parley/core/llm"
)

var (
	_ llm.Provider = (*Provider)(nil)
	_ llm.Streamer = (*Provider)(nil)
)

// Provider is the scripted model. It keeps nothing between calls.
type Provider struct{}

// New makes the scripted model.
func New() *Provider { return &Provider{} }

// Ready is always nil.
func (p *Provider) Ready(context.Context) error { return nil }

// Complete plays the script. It checks the request and its own answer as a real provider would.
func (p *Provider) Complete(ctx context.Context, req llm.Request) (llm.Response, error) {
	if err := llm.ValidateRequest(req); err != nil {
		return llm.Response{}, err
	}
	if err := ctx.Err(); err != nil {
		return llm.Response{}, err
	}
	resp := llm.Response{Message: answer(req), Finish: llm.FinishStop}
	if len(resp.Message.ToolCalls) > 0 {
		resp.Finish = llm.FinishToolCalls
	}
	if err := llm.ValidateResponse(req, resp); err != nil {
		return llm.Response{}, err
	}
	raw, err := json.Marshal(map[string]any{"model": "demo", "message": resp.Message})
	if err != nil {
		return llm.Response{}, &llm.Error{Category: llm.InvalidResponse, Message: "the answer cannot be written", Cause: err}
	}
	resp.Raw = raw
	return resp, nil
}

// Stream gives the same answer word by word, without waiting in between.
func (p *Provider) Stream(ctx context.Context, req llm.Request, onText func(string)) (llm.Response, error) {
	resp, err := p.Complete(ctx, req)
	if err != nil {
		return llm.Response{}, err
	}
	for piece := range strings.SplitAfterSeq(resp.Message.Content.Text(), " ") {
		onText(piece)
	}
	return resp, nil
}

const help = "Hello! I am the demo model and know two tricks. Say \"deploy web to staging\" and I ask to deploy it, " +
	"which somebody has to approve; or ask me what time it is."

var (
	deployWord  = regexp.MustCompile(`(?i)\bdeploy\b`)
	timeWord    = regexp.MustCompile(`(?i)\btime\b`)
	stagingWord = regexp.MustCompile(`(?i)\bstaging\b`)
	// serviceWord finds what stands after deploy, past an article, and looks like an identifier.
	serviceWord = regexp.MustCompile(`(?i)\bdeploy\s+(?:(?:the|an?|our|my)\s+)?([a-z][a-z0-9]*(?:[._/-][a-z0-9]+)*)\b`)
)

// notServices are the words that follow deploy in plain English and name no service.
var notServices = []string{
	"a", "again", "an", "and", "for", "from", "in", "into", "it", "now", "on", "or", "our", "my", "please",
	"production", "staging", "that", "the", "this", "to", "today", "with",
}

func answer(req llm.Request) llm.Message {
	last := req.Messages[len(req.Messages)-1]
	if last.Role == llm.ToolRole {
		return quote(req.Messages)
	}
	text := last.Content.Text()
	switch {
	case deployWord.MatchString(text):
		return deploy(req, text)
	case timeWord.MatchString(text):
		return call(req, "time", "Let me look at the clock.", struct{}{})
	}
	return llm.AssistantText(help)
}

// quote passes the result on and claims nothing: a tool that was denied, cancelled or lost says so itself.
func quote(messages []llm.Message) llm.Message {
	last := messages[len(messages)-1]
	result := strings.TrimSpace(last.Content.Text())
	if result == "" {
		return llm.AssistantText(fmt.Sprintf("%s has ended and said nothing.", toolOf(messages, last.ToolCallID)))
	}
	return llm.AssistantText(fmt.Sprintf("The answer is in: %s said: %s", toolOf(messages, last.ToolCallID), result))
}

// toolOf is the name of the tool that the latest call with the id asked for.
func toolOf(messages []llm.Message, callID string) string {
	for _, m := range slices.Backward(messages) {
		for _, c := range m.ToolCalls {
			if c.ID == callID {
				return c.Name
			}
		}
	}
	return "the tool"
}

func deploy(req llm.Request, text string) llm.Message {
	arguments := struct {
		Service     string `json:"service"`
		Environment string `json:"environment"`
	}{serviceIn(text), "production"}
	if stagingWord.MatchString(text) {
		arguments.Environment = "staging"
	}
	why := fmt.Sprintf("You asked me to deploy %s to %s, so I need the deploy tool for it.", arguments.Service, arguments.Environment)
	return call(req, "deploy", why, arguments)
}

func serviceIn(text string) string {
	found := serviceWord.FindStringSubmatch(text)
	if found == nil || slices.Contains(notServices, strings.ToLower(found[1])) {
		return "web"
	}
	return found[1]
}

func call(req llm.Request, name, why string, arguments any) llm.Message {
	if !slices.ContainsFunc(req.Tools, func(t llm.Tool) bool { return t.Name == name }) {
		return llm.AssistantText(fmt.Sprintf("I would need the tool %s for that, but it is not offered to me here.", name))
	}
	encoded, err := json.Marshal(arguments)
	if err != nil {
		return llm.AssistantText(fmt.Sprintf("I could not write down the arguments for %s: %v", name, err))
	}
	m := llm.AssistantText(why)
	m.ToolCalls = []llm.ToolCall{{ID: callID(req.Messages), Name: name, Arguments: encoded}}
	return m
}

// callIDReach is how many messages back a call id looks: earlier calls among them make the chain unlike any other.
const callIDReach = 32

// callID is the same for the same conversation and another one for each place in it: the number of messages so far and
// a hash of the latest ones.
func callID(messages []llm.Message) string {
	hash := sha256.New()
	for _, m := range messages[max(0, len(messages)-callIDReach):] {
		fmt.Fprintf(hash, "%q %q %q %q\n", m.Role, m.Content.Text(), m.ToolCallID, idsOf(m.ToolCalls))
	}
	return fmt.Sprintf("call_%d_%x", len(messages), hash.Sum(nil)[:6])
}

func idsOf(calls []llm.ToolCall) []string {
	var ids []string
	for _, c := range calls {
		ids = append(ids, c.ID)
	}
	return ids
}
