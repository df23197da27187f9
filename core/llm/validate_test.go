package llm_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/parley-chat/parley/core/llm"
)

func image(source llm.ImageSource, mediaType, detail string) llm.Content {
	return llm.Content{{Type: llm.ImageBlock, Source: &source, MediaType: mediaType, Detail: detail}}
}

func calling(calls ...llm.ToolCall) llm.Message {
	return llm.Message{Role: llm.Assistant, ToolCalls: calls}
}

func call(id, name, arguments string) llm.ToolCall {
	return llm.ToolCall{ID: id, Name: name, Arguments: json.RawMessage(arguments)}
}

var (
	byURL    = llm.ImageSource{Type: "url", URL: "https://example.com/x.png"}
	inline   = llm.ImageSource{Type: "inline", Base64Data: "ABC123=="}
	thinking = llm.Block{Type: llm.ThinkingBlock, Text: "two and two", Signature: "sig"}
	redacted = llm.Block{Type: llm.RedactedThinkingBlock, Data: "opaque"}
	text     = llm.Block{Type: llm.TextBlock, Text: "four"}
)

func TestMessagesThatKeepTheRulesOfTheirRolePass(t *testing.T) {
	for name, m := range map[string]llm.Message{
		"a system text":                     llm.SystemText("be brief"),
		"a user text":                       llm.UserText("hi"),
		"a user with several texts":         {Role: llm.User, Content: llm.Content{text, text}},
		"an image by url":                   {Role: llm.User, Content: image(byURL, "", "")},
		"an image by data url":              {Role: llm.User, Content: image(llm.ImageSource{Type: "url", URL: "data:image/png;base64,AA"}, "", "low")},
		"an inline image":                   {Role: llm.User, Content: append(image(inline, "image/webp", "high"), text)},
		"an inline image, type in capitals": {Role: llm.User, Content: image(inline, "image/SVG+xml", "auto")},
		"an assistant text":                 llm.AssistantText("hello"),
		"thinking before text":              {Role: llm.Assistant, Content: llm.Content{thinking, redacted, text}},
		"thinking and a call":               {Role: llm.Assistant, Content: llm.Content{thinking}, ToolCalls: []llm.ToolCall{call("1", "time", `{}`)}},
		"calls without content":             calling(call("1", "time", `{}`), call("2", "time", ` {"zone": "UTC"} `)),
		"a call with null arguments":        calling(call("1", "time", `null`)),
		"a call without arguments":          calling(call("1", "time", ``)),
		"a tool result":                     llm.ToolResult("1", "noon"),
		"a tool result without output":      {Role: llm.ToolRole, ToolCallID: "1"},
	} {
		if err := m.Validate(); err != nil {
			t.Errorf("%s: Validate() = %v, want nil", name, err)
		}
	}
}

func TestMessagesThatBreakTheRulesOfTheirRoleAreRefused(t *testing.T) {
	for name, test := range map[string]struct {
		message llm.Message
		want    string
	}{
		"no role":      {llm.Message{Content: llm.Text("x")}, `role ""`},
		"unknown role": {llm.Message{Role: "developer", Content: llm.Text("x")}, `role "developer"`},

		"system without content":   {llm.Message{Role: llm.System}, "not empty"},
		"system with empty text":   {llm.Message{Role: llm.System, Content: llm.Content{{Type: llm.TextBlock}}}, "content[0]: text is missing"},
		"system with blocks":       {llm.Message{Role: llm.System, Content: llm.Content{text, text}}, "a string"},
		"system with an image":     {llm.Message{Role: llm.System, Content: image(byURL, "", "")}, "a string"},
		"system with a call":       {llm.Message{Role: llm.System, Content: llm.Text("x"), ToolCalls: []llm.ToolCall{call("1", "a", "{}")}}, "no tool_calls"},
		"system with tool_call_id": {llm.Message{Role: llm.System, Content: llm.Text("x"), ToolCallID: "1"}, "no tool_call_id"},

		"user without content":    {llm.UserText(""), "is empty"},
		"user with an empty text": {llm.Message{Role: llm.User, Content: llm.Content{text, {Type: llm.TextBlock}}}, "content[1]: text is missing"},
		"user with thinking":      {llm.Message{Role: llm.User, Content: llm.Content{thinking}}, `type "thinking" has no place`},
		"user with redacted":      {llm.Message{Role: llm.User, Content: llm.Content{redacted}}, `type "redacted_thinking" has no place`},
		"user with a call":        {llm.Message{Role: llm.User, Content: llm.Text("x"), ToolCalls: []llm.ToolCall{call("1", "a", "{}")}}, "no tool_calls"},
		"user with tool_call_id":  {llm.Message{Role: llm.User, Content: llm.Text("x"), ToolCallID: "1"}, "no tool_call_id"},
		"unknown block":           {llm.Message{Role: llm.User, Content: llm.Content{{Type: "audio"}}}, `block type "audio"`},

		"image without source":     {llm.Message{Role: llm.User, Content: llm.Content{{Type: llm.ImageBlock}}}, "source of an image is missing"},
		"image of unknown source":  {llm.Message{Role: llm.User, Content: image(llm.ImageSource{Type: "file"}, "", "")}, `source type "file"`},
		"image of both sources":    {llm.Message{Role: llm.User, Content: image(llm.ImageSource{Type: "url", URL: "a", Base64Data: "b"}, "", "")}, "both"},
		"image without url":        {llm.Message{Role: llm.User, Content: image(llm.ImageSource{Type: "url"}, "", "")}, "source.url"},
		"inline without data":      {llm.Message{Role: llm.User, Content: image(llm.ImageSource{Type: "inline"}, "image/png", "")}, "base64_data"},
		"inline without type":      {llm.Message{Role: llm.User, Content: image(inline, "", "")}, "media_type"},
		"inline of another type":   {llm.Message{Role: llm.User, Content: image(inline, "application/pdf", "")}, "media_type"},
		"inline with a sly type":   {llm.Message{Role: llm.User, Content: image(inline, "image/png;base64,AA", "")}, "media_type"},
		"image of unknown detail":  {llm.Message{Role: llm.User, Content: image(byURL, "", "ultra")}, "detail"},
		"assistant with nothing":   {llm.AssistantText(""), "neither content nor tool_calls"},
		"assistant with an image":  {llm.Message{Role: llm.Assistant, Content: image(byURL, "", "")}, "no place"},
		"assistant, tool_call_id":  {llm.Message{Role: llm.Assistant, Content: llm.Text("x"), ToolCallID: "1"}, "no tool_call_id"},
		"thinking without text":    {llm.Message{Role: llm.Assistant, Content: llm.Content{{Type: llm.ThinkingBlock, Signature: "s"}}}, "text is missing"},
		"thinking, no signature":   {llm.Message{Role: llm.Assistant, Content: llm.Content{{Type: llm.ThinkingBlock, Text: "t"}}}, "signature is missing"},
		"redacted without data":    {llm.Message{Role: llm.Assistant, Content: llm.Content{{Type: llm.RedactedThinkingBlock}}}, "data is missing"},
		"call without id":          {calling(call("", "a", "{}")), "tool_calls[0]: the id"},
		"call without name":        {calling(call("1", "", "{}")), "tool_calls[0]: the name"},
		"calls with the same id":   {calling(call("1", "a", "{}"), call("1", "b", "{}")), "tool_calls[1]"},
		"call with list arguments": {calling(call("1", "a", "[]")), "not a JSON object"},
		"call with cut arguments":  {calling(call("1", "a", `{"a":`)), "not a JSON object"},

		"tool without id":     {llm.Message{Role: llm.ToolRole, Content: llm.Text("x")}, "tool_call_id"},
		"tool with blocks":    {llm.Message{Role: llm.ToolRole, ToolCallID: "1", Content: llm.Content{text, text}}, "a string"},
		"tool with an image":  {llm.Message{Role: llm.ToolRole, ToolCallID: "1", Content: image(byURL, "", "")}, "a string"},
		"tool with tool call": {llm.Message{Role: llm.ToolRole, ToolCallID: "1", Content: llm.Text("x"), ToolCalls: []llm.ToolCall{call("1", "a", "{}")}}, "no tool_calls"},
	} {
		wantError(t, name, test.message.Validate(), llm.InvalidRequest, test.want)
	}
}

func TestRequestsInOrderPass(t *testing.T) {
	tools := []llm.Tool{tool("time", `{"type":"object"}`), tool("deploy", deploySchema)}
	for name, req := range map[string]llm.Request{
		"one user message":       {Messages: []llm.Message{llm.UserText("hi")}},
		"system, then user":      {Messages: []llm.Message{llm.SystemText("be brief"), llm.UserText("hi")}, Tools: tools},
		"two user messages":      {Messages: []llm.Message{llm.UserText("hi"), llm.UserText("there")}},
		"a call and its result":  {Messages: []llm.Message{llm.UserText("hi"), calling(call("1", "time", "{}")), llm.ToolResult("1", "noon")}},
		"a call not offered now": {Messages: []llm.Message{llm.UserText("hi"), calling(call("1", "old", "{}")), llm.ToolResult("1", "x")}, Tools: tools},
		"an id used again later": {Messages: []llm.Message{
			llm.UserText("hi"), calling(call("1", "time", "{}")), llm.ToolResult("1", "noon"),
			llm.UserText("again"), calling(call("1", "time", "{}")), llm.ToolResult("1", "one"),
		}},
	} {
		if err := llm.ValidateRequest(req); err != nil {
			t.Errorf("%s: ValidateRequest = %v, want nil", name, err)
		}
	}
}

func TestRequestsOutOfOrderAreRefused(t *testing.T) {
	hi := llm.UserText("hi")
	one := []llm.Message{hi}
	for name, test := range map[string]struct {
		req  llm.Request
		want string
	}{
		"no messages":             {llm.Request{}, "no messages"},
		"begins with assistant":   {llm.Request{Messages: []llm.Message{llm.AssistantText("x"), hi}}, "first message"},
		"begins with tool":        {llm.Request{Messages: []llm.Message{llm.ToolResult("1", "x"), hi}}, "first message"},
		"system alone":            {llm.Request{Messages: []llm.Message{llm.SystemText("x")}}, "last message"},
		"ends with assistant":     {llm.Request{Messages: []llm.Message{hi, llm.AssistantText("x")}}, "last message"},
		"system in the middle":    {llm.Request{Messages: []llm.Message{hi, llm.SystemText("x"), hi}}, "messages[1]"},
		"two system messages":     {llm.Request{Messages: []llm.Message{llm.SystemText("x"), llm.SystemText("x"), hi}}, "messages[1]"},
		"an invalid message":      {llm.Request{Messages: []llm.Message{hi, calling(), hi}}, "messages[1]"},
		"a result of no call":     {llm.Request{Messages: []llm.Message{hi, llm.ToolResult("1", "x")}}, `"1" matches no earlier`},
		"a result before a call":  {llm.Request{Messages: []llm.Message{hi, llm.ToolResult("1", "x"), calling(call("1", "a", "{}")), hi}}, "messages[1]"},
		"a tool without name":     {llm.Request{Messages: one, Tools: []llm.Tool{tool("", deploySchema)}}, "tools[0]"},
		"tools of the same name":  {llm.Request{Messages: one, Tools: []llm.Tool{tool("a", deploySchema), tool("a", deploySchema)}}, "tools[1]"},
		"a tool without schema":   {llm.Request{Messages: one, Tools: []llm.Tool{tool("a", "")}}, `tools[0] "a"`},
		"a tool, string schema":   {llm.Request{Messages: one, Tools: []llm.Tool{tool("a", `{"type":"string"}`)}}, "object"},
		"a tool, invalid schema":  {llm.Request{Messages: one, Tools: []llm.Tool{tool("a", `{"type":"object","properties":1}`)}}, "not a valid JSON Schema"},
		"messages before tools":   {llm.Request{Tools: []llm.Tool{tool("", "")}}, "no messages"},
		"an empty list of blocks": {llm.Request{Messages: []llm.Message{{Role: llm.User, Content: llm.Content{}}}}, "messages[0]"},
	} {
		wantError(t, name, llm.ValidateRequest(test.req), llm.InvalidRequest, test.want)
	}
}

func TestResponsesAreHeldToTheRequest(t *testing.T) {
	req := llm.Request{Messages: []llm.Message{llm.UserText("hi")}, Tools: []llm.Tool{tool("deploy", deploySchema)}}
	good := call("1", "deploy", `{"service":"web","environment":"staging"}`)
	for name, test := range map[string]struct {
		resp llm.Response
		want string // "" when the response passes
	}{
		"a text":                   {llm.Response{Message: llm.AssistantText("x"), Finish: llm.FinishStop}, ""},
		"a call":                   {llm.Response{Message: calling(good), Finish: llm.FinishToolCalls}, ""},
		"a call, said as stop":     {llm.Response{Message: calling(good), Finish: llm.FinishStop}, ""},
		"nothing, by a filter":     {llm.Response{Message: llm.AssistantText(""), Finish: llm.FinishContentFilter}, ""},
		"nothing, by length":       {llm.Response{Message: llm.AssistantText(""), Finish: llm.FinishLength}, ""},
		"nothing at all":           {llm.Response{Message: llm.AssistantText(""), Finish: llm.FinishStop}, "neither content nor tool_calls"},
		"no finish reason":         {llm.Response{Message: llm.AssistantText("x")}, "finish reason"},
		"a made-up finish reason":  {llm.Response{Message: llm.AssistantText("x"), Finish: "tired"}, "finish reason"},
		"of another role":          {llm.Response{Message: llm.UserText("x"), Finish: llm.FinishStop}, "role"},
		"an answer to a call":      {llm.Response{Message: llm.Message{Role: llm.Assistant, ToolCallID: "1"}, Finish: llm.FinishLength}, "tool_call_id"},
		"calls that are missing":   {llm.Response{Message: llm.AssistantText("x"), Finish: llm.FinishToolCalls}, "has none"},
		"an unknown tool":          {llm.Response{Message: calling(call("1", "rm", "{}")), Finish: llm.FinishToolCalls}, `no tool "rm"`},
		"null arguments":           {llm.Response{Message: calling(call("1", "deploy", "null")), Finish: llm.FinishToolCalls}, "not a JSON object"},
		"no arguments":             {llm.Response{Message: calling(call("1", "deploy", "")), Finish: llm.FinishToolCalls}, "not valid JSON"},
		"arguments out of schema":  {llm.Response{Message: calling(good, call("2", "deploy", `{"service":"web"}`)), Finish: llm.FinishToolCalls}, "tool_calls[1]: the arguments do not fit"},
		"cut arguments, by length": {llm.Response{Message: calling(call("1", "deploy", "")), Finish: llm.FinishLength}, "not valid JSON"},
		"ids used twice":           {llm.Response{Message: calling(good, good), Finish: llm.FinishToolCalls}, "taken"},
		"degraded: unknown tool":   {llm.Response{Message: calling(call("1", "rm", "{}")), Finish: llm.FinishError}, ""},
		"degraded: null arguments": {llm.Response{Message: calling(call("1", "deploy", "null")), Finish: llm.FinishError}, ""},
		"degraded: nameless call":  {llm.Response{Message: calling(call("", "", "")), Finish: llm.FinishError}, ""},
		"degraded: nothing at all": {llm.Response{Message: llm.AssistantText(""), Finish: llm.FinishError}, ""},
	} {
		err := llm.ValidateResponse(req, test.resp)
		if test.want == "" {
			if err != nil {
				t.Errorf("%s: ValidateResponse = %v, want nil", name, err)
			}
			continue
		}
		wantError(t, name, err, llm.InvalidResponse, test.want)
	}
}

func tool(name, parameters string) llm.Tool {
	return llm.Tool{Name: name, Description: "does " + name, Parameters: json.RawMessage(parameters)}
}

func wantError(t *testing.T, name string, err error, category llm.Category, text string) {
	t.Helper()
	if got := llm.CategoryOf(err); got != category {
		t.Errorf("%s: got %v of category %q, want category %q", name, err, got, category)
		return
	}
	if !strings.Contains(err.Error(), text) {
		t.Errorf("%s: got %q, want it to say %q", name, err, text)
	}
}
