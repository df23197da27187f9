package demo_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/parley-chat/parley/core/llm"
	"github.com/parley-chat/parley/core/llm/demo"
)

var tools = []llm.Tool{
	{Name: "deploy", Description: "deploys a service", Parameters: json.RawMessage(`{
		"type": "object",
		"properties": {"service": {"type": "string"}, "environment": {"enum": ["staging", "production"]}},
		"required": ["service", "environment"],
		"additionalProperties": false
	}`)},
	{Name: "time", Description: "tells the time", Parameters: json.RawMessage(`{"type": "object", "additionalProperties": false}`)},
}

func Example() {
	ctx := context.Background()
	req := llm.Request{Messages: []llm.Message{llm.UserText("please deploy web to staging")}, Tools: tools}
	resp, err := demo.New().Complete(ctx, req)
	if err != nil {
		fmt.Println(err)
		return
	}
	call := resp.Message.ToolCalls[0]
	fmt.Println(resp.Finish, call.Name, string(call.Arguments))

	req.Messages = append(req.Messages, resp.Message, llm.ToolResult(call.ID, "denied by Ada: not on a Friday"))
	resp, err = demo.New().Complete(ctx, req)
	fmt.Println(resp.Message.Content.Text(), err)
	// Output:
	// tool_calls deploy {"service":"web","environment":"staging"}
	// The answer is in: deploy said: denied by Ada: not on a Friday <nil>
}

func TestAUserMessageWithTheWordDeployCallsDeploy(t *testing.T) {
	for said, want := range map[string]string{
		"deploy":                              `{"service":"web","environment":"production"}`,
		"Deploy!":                             `{"service":"web","environment":"production"}`,
		"DEPLOY payments":                     `{"service":"payments","environment":"production"}`,
		"deploy payments-api.v2 to Staging":   `{"service":"payments-api.v2","environment":"staging"}`,
		"please deploy the checkout service.": `{"service":"checkout","environment":"production"}`,
		"deploy billing.":                     `{"service":"billing","environment":"production"}`,
		"deploy to staging":                   `{"service":"web","environment":"staging"}`,
		"deploy staging":                      `{"service":"web","environment":"staging"}`,
		"deploy it now":                       `{"service":"web","environment":"production"}`,
		"deploy the":                          `{"service":"web","environment":"production"}`,
		"deploy 42":                           `{"service":"web","environment":"production"}`,
		"deploy <script>":                     `{"service":"web","environment":"production"}`,
		"is it time to deploy?":               `{"service":"web","environment":"production"}`,
		"now\ndeploy\nsearch":                 `{"service":"search","environment":"production"}`,
	} {
		resp := complete(t, llm.UserText(said))
		if resp.Finish != llm.FinishToolCalls || len(resp.Message.ToolCalls) != 1 {
			t.Errorf("%q: got %+v, want one call", said, resp)
			continue
		}
		call := resp.Message.ToolCalls[0]
		if call.Name != "deploy" || string(call.Arguments) != want {
			t.Errorf("%q: got %s %s, want deploy %s", said, call.Name, call.Arguments, want)
		}
		if resp.Message.Content.Text() == "" {
			t.Errorf("%q: got a call without a reason", said)
		}
	}
}

func TestAUserMessageWithTheWordTimeCallsTime(t *testing.T) {
	for _, said := range []string{"what time is it?", "Time!"} {
		resp := complete(t, llm.UserText(said))
		if len(resp.Message.ToolCalls) != 1 {
			t.Errorf("%q: got %+v, want one call", said, resp)
			continue
		}
		if call := resp.Message.ToolCalls[0]; call.Name != "time" || string(call.Arguments) != "{}" {
			t.Errorf("%q: got %s %s, want time {}", said, call.Name, call.Arguments)
		}
	}
}

func TestAnythingElseIsAnsweredWithWhatCanBeTried(t *testing.T) {
	for _, said := range []string{"hello", "redeploying is a deployment", "sometimes", "deploying"} {
		resp := complete(t, llm.UserText(said))
		got := resp.Message.Content.Text()
		if resp.Finish != llm.FinishStop || !strings.Contains(got, "deploy web") || !strings.Contains(got, "time") {
			t.Errorf("%q: got %q (%s), want what can be tried", said, got, resp.Finish)
		}
	}
}

func TestOnlyTheLatestUserMessageCounts(t *testing.T) {
	first := complete(t, llm.UserText("deploy web"))
	id := first.Message.ToolCalls[0].ID
	resp := complete(t, llm.UserText("deploy web"), first.Message, llm.ToolResult(id, "awaiting approval"), llm.UserText("thanks"))
	if len(resp.Message.ToolCalls) != 0 {
		t.Errorf("got %+v, want no call", resp.Message)
	}
}

func TestAToolResultIsQuotedAndNotPraised(t *testing.T) {
	first := complete(t, llm.UserText("deploy web"))
	for _, result := range []string{
		"deployed web to production", "denied by Ada", "no answer within 1 h", "cancelled", "the outcome is unknown",
	} {
		resp := complete(t, llm.UserText("deploy web"), first.Message, llm.ToolResult(first.Message.ToolCalls[0].ID, result))
		if got, want := resp.Message.Content.Text(), "The answer is in: deploy said: "+result; got != want || resp.Finish != llm.FinishStop {
			t.Errorf("got %q (%s), want %q", got, resp.Finish, want)
		}
	}
	resp := complete(t, llm.UserText("deploy web"), first.Message,
		llm.Message{Role: llm.ToolRole, ToolCallID: first.Message.ToolCalls[0].ID})
	if got, want := resp.Message.Content.Text(), "deploy has ended and said nothing."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestTheResultOfSeveralCallsIsQuotedUnderItsOwnTool(t *testing.T) {
	calls := llm.Message{Role: llm.Assistant, ToolCalls: []llm.ToolCall{
		{ID: "a", Name: "deploy", Arguments: json.RawMessage(`{}`)}, {ID: "b", Name: "time", Arguments: json.RawMessage(`{}`)}}}
	resp := complete(t, llm.UserText("both"), calls, llm.ToolResult("b", "noon"), llm.ToolResult("a", "denied"))
	if got, want := resp.Message.Content.Text(), "The answer is in: deploy said: denied"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAToolThatIsNotOfferedIsNotCalled(t *testing.T) {
	for _, name := range []string{"deploy", "time"} {
		resp, err := demo.New().Complete(t.Context(), llm.Request{Messages: []llm.Message{llm.UserText(name)}})
		if err != nil || len(resp.Message.ToolCalls) != 0 || !strings.Contains(resp.Message.Content.Text(), "tool "+name) {
			t.Errorf("%s: got %+v, %v, want words about the missing tool", name, resp.Message, err)
		}
	}
}

func TestAToolWithOtherArgumentsIsNotCalledWithTheWrongOnes(t *testing.T) {
	_, err := demo.New().Complete(t.Context(), llm.Request{
		Messages: []llm.Message{llm.UserText("deploy")},
		Tools:    []llm.Tool{{Name: "deploy", Parameters: json.RawMessage(`{"type":"object","required":["region"]}`)}},
	})
	if got := llm.CategoryOf(err); got != llm.InvalidResponse {
		t.Errorf("got %v, want category %s", err, llm.InvalidResponse)
	}
}

func TestCallIDsRepeatWithTheConversationAndWithNothingElse(t *testing.T) {
	first := complete(t, llm.UserText("deploy web"))
	if again := complete(t, llm.UserText("deploy web")); !reflect.DeepEqual(first, again) {
		t.Errorf("got %+v, then %+v, want the same", first, again)
	}
	// A caller that forgets the beginning must not see an id again either.
	seen := map[string]bool{}
	messages := []llm.Message{llm.UserText("deploy web")}
	for range 50 {
		resp := complete(t, messages...)
		id := resp.Message.ToolCalls[0].ID
		if seen[id] {
			t.Fatalf("id %s came twice", id)
		}
		seen[id] = true
		messages = append(messages, resp.Message, llm.ToolResult(id, "denied"), llm.UserText("deploy web"))
		messages = messages[max(0, len(messages)-7):]
	}
}

func TestAStreamIsTheSameAnswerInPieces(t *testing.T) {
	for _, said := range []string{"hello", "deploy web", "what time is it?"} {
		req := llm.Request{Messages: []llm.Message{llm.UserText(said)}, Tools: tools}
		var pieces []string
		got, err := demo.New().Stream(t.Context(), req, func(piece string) { pieces = append(pieces, piece) })
		if err != nil {
			t.Fatal(err)
		}
		if want := complete(t, req.Messages...); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: got %+v, want %+v", said, got, want)
		}
		if joined := strings.Join(pieces, ""); joined != got.Message.Content.Text() || len(pieces) < 3 {
			t.Errorf("%q: got pieces %q, want the text in words", said, pieces)
		}
	}
}

func TestAWrongRequestIsRefused(t *testing.T) {
	req := llm.Request{Messages: []llm.Message{llm.AssistantText("hello")}}
	_, err := demo.New().Complete(t.Context(), req)
	_, streamed := demo.New().Stream(t.Context(), req, func(string) { t.Error("a refused request was answered") })
	if llm.CategoryOf(err) != llm.InvalidRequest || llm.CategoryOf(streamed) != llm.InvalidRequest {
		t.Errorf("got %v and %v, want category %s", err, streamed, llm.InvalidRequest)
	}
}

func TestTheDemoModelIsAlwaysReady(t *testing.T) {
	if err := demo.New().Ready(t.Context()); err != nil {
		t.Errorf("got %v, want nil", err)
	}
}

func TestAnEndedContextIsObeyed(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := demo.New().Complete(ctx, llm.Request{Messages: []llm.Message{llm.UserText("x")}}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}

func complete(t *testing.T, messages ...llm.Message) llm.Response {
	t.Helper()
	resp, err := demo.New().Complete(t.Context(), llm.Request{Messages: messages, Tools: tools})
	if err != nil {
		t.Fatal(err)
	}
	if !json.Valid(resp.Raw) {
		t.Errorf("raw is not JSON: %s", resp.Raw)
	}
	return resp
}
