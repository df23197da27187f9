package echo_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-chat/parley/core/llm"
	"github.com/parley-chat/parley/core/llm/echo"
)

func Example() {
	resp, err := echo.New(0).Complete(context.Background(), llm.Request{
		Messages: []llm.Message{llm.UserText("is anybody there?")},
	})
	fmt.Println(resp.Message.Content.Text(), resp.Finish, err)
	// Output: echo: is anybody there? stop <nil>
}

func TestTheLastUserMessageIsSaidBack(t *testing.T) {
	source := &llm.ImageSource{Type: "url", URL: "https://example.com/x.png"}
	for name, test := range map[string]struct {
		messages []llm.Message
		want     string
	}{
		"the last of several": {[]llm.Message{llm.UserText("one"), llm.AssistantText("echo: one"), llm.UserText("two")}, "echo: two"},
		"past a tool result": {[]llm.Message{llm.UserText("one"),
			{Role: llm.Assistant, ToolCalls: []llm.ToolCall{{ID: "1", Name: "a"}}}, llm.ToolResult("1", "x")}, "echo: one"},
		"the text beside an image": {[]llm.Message{{Role: llm.User, Content: llm.Content{
			{Type: llm.ImageBlock, Source: source}, {Type: llm.TextBlock, Text: "look"}}}}, "echo: look"},
		"an image alone": {[]llm.Message{{Role: llm.User, Content: llm.Content{{Type: llm.ImageBlock, Source: source}}}}, "echo: "},
	} {
		resp, err := echo.New(0).Complete(t.Context(), llm.Request{Messages: test.messages})
		if got := resp.Message.Content.Text(); err != nil || got != test.want || !json.Valid(resp.Raw) {
			t.Errorf("%s: got %q, raw %s, %v, want %q", name, got, resp.Raw, err, test.want)
		}
	}
}

func TestARequestWithoutMessagesIsRefused(t *testing.T) {
	_, err := echo.New(time.Hour).Complete(t.Context(), llm.Request{})
	if got := llm.CategoryOf(err); got != llm.InvalidRequest {
		t.Errorf("got %v, want category %s", err, llm.InvalidRequest)
	}
}

func TestTheAnswerComesAfterTheDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		_, err := echo.New(3*time.Second).Complete(t.Context(), llm.Request{Messages: []llm.Message{llm.UserText("x")}})
		if took := time.Since(start); err != nil || took != 3*time.Second {
			t.Errorf("answered after %v with %v, want 3s", took, err)
		}
	})
}

func TestWaitingEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		_, err := echo.New(time.Hour).Complete(ctx, llm.Request{Messages: []llm.Message{llm.UserText("x")}})
		if took := time.Since(start); !errors.Is(err, context.DeadlineExceeded) || took != time.Second {
			t.Errorf("ended after %v with %v, want the deadline after 1s", took, err)
		}
	})
}

func TestAnEndedContextIsObeyedWithoutADelay(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := echo.New(0).Complete(ctx, llm.Request{Messages: []llm.Message{llm.UserText("x")}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}
