package openai_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-chat/parley/core/llm"
	"github.com/parley-chat/parley/core/llm/openai"
)

const key = "sk-very-secret"

// endpoint is a server that answers every request alike and keeps the last one.
type endpoint struct {
	status int
	header http.Header
	body   string

	requests atomic.Int32
	path     string
	bearer   string
	got      string
}

func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.requests.Add(1)
	body, _ := io.ReadAll(r.Body)
	e.path, e.bearer, e.got = r.URL.Path, r.Header.Get("Authorization"), string(body)
	w.Header().Set("Content-Type", "application/json")
	for name, values := range e.header {
		w.Header()[name] = values
	}
	w.WriteHeader(cmp.Or(e.status, http.StatusOK))
	_, _ = io.WriteString(w, e.body)
}

// serve starts a server for the handler and gives a provider that is bound to it.
func serve(t *testing.T, handler http.Handler) *openai.Provider {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return openai.New(openai.Options{
		Model: "test-model", APIKey: key, BaseURL: server.URL + "/v1", HTTPClient: server.Client(),
		Now: func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) },
	})
}

func completion(message, finish string) string {
	return fmt.Sprintf(`{"id":"cc","object":"chat.completion","created":1700000000,"model":"test-model",
		"choices":[{"index":0,"message":%s,"finish_reason":%q}],
		"usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7}}`, message, finish)
}

var (
	weather = llm.Tool{Name: "get_weather", Description: "Get current weather for a city.", Parameters: json.RawMessage(
		`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"],"additionalProperties":false}`)}
	noop = llm.Tool{Name: "noop", Description: "Does nothing.", Parameters: json.RawMessage(`{"type":"object"}`)}
	hi   = llm.Request{Messages: []llm.Message{llm.UserText("Hi")}, Tools: []llm.Tool{weather, noop}}
)

func TestRequestsAreWrittenAsTheWireWantsThem(t *testing.T) {
	image := func(source llm.ImageSource, mediaType, detail string) llm.Block {
		return llm.Block{Type: llm.ImageBlock, Source: &source, MediaType: mediaType, Detail: detail}
	}
	text := func(s string) llm.Block { return llm.Block{Type: llm.TextBlock, Text: s} }
	user := func(blocks ...llm.Block) llm.Request {
		return llm.Request{Messages: []llm.Message{{Role: llm.User, Content: blocks}}}
	}
	for name, test := range map[string]struct {
		req  llm.Request
		want string
	}{
		"system and user": {
			llm.Request{Messages: []llm.Message{llm.SystemText("Be brief."), llm.UserText("a < b & c")}},
			`{"model":"test-model","messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"a < b & c"}]}`,
		},
		"a call and its result": {
			llm.Request{Messages: []llm.Message{
				llm.UserText("Weather?"),
				{Role: llm.Assistant, ToolCalls: []llm.ToolCall{{ID: "call_xyz", Name: "get_weather", Arguments: json.RawMessage(`{ "city": "Rome" }`)}}},
				llm.ToolResult("call_xyz", "sunny"),
			}, Tools: []llm.Tool{weather}},
			`{"model":"test-model","messages":[{"role":"user","content":"Weather?"},
			{"role":"assistant","content":null,"tool_calls":[{"id":"call_xyz","type":"function","function":{"name":"get_weather","arguments":"{\"city\":\"Rome\"}"}}]},
			{"role":"tool","content":"sunny","tool_call_id":"call_xyz"}],
			"tools":[{"type":"function","function":{"name":"get_weather","description":"Get current weather for a city.","parameters":` + string(weather.Parameters) + `}}]}`,
		},
		"a call with null arguments and words": {
			llm.Request{Messages: []llm.Message{
				llm.UserText("Weather?"),
				{Role: llm.Assistant, Content: llm.Text("wait"), ToolCalls: []llm.ToolCall{{ID: "1", Name: "noop", Arguments: json.RawMessage(`null`)}}},
				{Role: llm.ToolRole, ToolCallID: "1"},
			}},
			`{"model":"test-model","messages":[{"role":"user","content":"Weather?"},
			{"role":"assistant","content":"wait","tool_calls":[{"id":"1","type":"function","function":{"name":"noop","arguments":"{}"}}]},
			{"role":"tool","content":"","tool_call_id":"1"}]}`,
		},
		"runtime config": {
			llm.Request{Messages: hi.Messages, Config: llm.Config{Temperature: new(0.7), MaxTokens: new(100), TopP: new(0.95), Seed: new(42)}},
			`{"model":"test-model","messages":[{"role":"user","content":"Hi"}],"temperature":0.7,"max_tokens":100,"top_p":0.95,"seed":42}`,
		},
		"runtime config of zeros": {
			llm.Request{Messages: hi.Messages, Config: llm.Config{Temperature: new(0.0), Seed: new(0)}},
			`{"model":"test-model","messages":[{"role":"user","content":"Hi"}],"temperature":0,"seed":0}`,
		},
		"images in their order": {
			user(text("a"), image(llm.ImageSource{Type: "url", URL: "https://example.com/x.png"}, "", "high"), text("b"),
				image(llm.ImageSource{Type: "inline", Base64Data: "ABC123=="}, "image/jpeg", "")),
			`{"model":"test-model","messages":[{"role":"user","content":[{"type":"text","text":"a"},
			{"type":"image_url","image_url":{"url":"https://example.com/x.png","detail":"high"}},{"type":"text","text":"b"},
			{"type":"image_url","image_url":{"url":"data:image/jpeg;base64,ABC123=="}}]}]}`,
		},
		"several texts": {
			user(text("a"), text("b")),
			`{"model":"test-model","messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}]}`,
		},
		"thinking is left out": {
			llm.Request{Messages: []llm.Message{
				llm.UserText("What?"),
				{Role: llm.Assistant, Content: llm.Content{{Type: llm.ThinkingBlock, Text: "hm", Signature: "s"}, text("42.")}},
				llm.UserText("Sure?"),
				{Role: llm.Assistant, Content: llm.Content{{Type: llm.RedactedThinkingBlock, Data: "d"}}},
				llm.UserText("Well?"),
			}},
			`{"model":"test-model","messages":[{"role":"user","content":"What?"},{"role":"assistant","content":"42."},
			{"role":"user","content":"Sure?"},{"role":"assistant","content":""},{"role":"user","content":"Well?"}]}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := fmt.Sprintf("%+v", test.req)
			e := &endpoint{body: completion(`{"role":"assistant","content":"ok"}`, "stop")}
			if _, err := serve(t, e).Complete(t.Context(), test.req); err != nil {
				t.Fatal(err)
			}
			wantJSON(t, e.got, test.want)
			if e.path != "/v1/chat/completions" || e.bearer != "Bearer "+key {
				t.Errorf("sent to %s with %q, want /v1/chat/completions with the key", e.path, e.bearer)
			}
			if strings.Contains(e.got, `\u003c`) {
				t.Errorf("got %s, want < unescaped", e.got)
			}
			if after := fmt.Sprintf("%+v", test.req); after != before {
				t.Errorf("the request became %s, want it unchanged: %s", after, before)
			}
		})
	}
}

func TestAnswersAreRead(t *testing.T) {
	calls := func(finish string, functions ...string) string {
		var list []string
		for i, f := range functions {
			list = append(list, fmt.Sprintf(`{"id":"call_%d","type":"function","function":%s}`, i, f))
		}
		return completion(`{"role":"assistant","content":null,"tool_calls":[`+strings.Join(list, ",")+`]}`, finish)
	}
	called := func(arguments ...string) llm.Message {
		m := llm.Message{Role: llm.Assistant}
		for i, a := range arguments {
			m.ToolCalls = append(m.ToolCalls, llm.ToolCall{ID: fmt.Sprintf("call_%d", i), Name: "get_weather", Arguments: json.RawMessage(a)})
		}
		return m
	}
	for name, test := range map[string]struct {
		body    string
		message llm.Message
		finish  llm.Finish
	}{
		"a text":                    {completion(`{"role":"assistant","content":"Hi."}`, "stop"), llm.AssistantText("Hi."), llm.FinishStop},
		"a text cut off":            {completion(`{"role":"assistant","content":"Hi"}`, "length"), llm.AssistantText("Hi"), llm.FinishLength},
		"nothing, by a filter":      {completion(`{"role":"assistant","content":null}`, "content_filter"), llm.AssistantText(""), llm.FinishContentFilter},
		"an unknown finish reason":  {completion(`{"role":"assistant","content":"Hi"}`, "tired"), llm.AssistantText("Hi"), llm.FinishError},
		"a refusal":                 {completion(`{"role":"assistant","content":null,"refusal":"I will not."}`, "stop"), llm.AssistantText("I will not."), llm.FinishStop},
		"reasoning is not taken":    {completion(`{"role":"assistant","content":"4","reasoning_content":"2+2"}`, "stop"), llm.AssistantText("4"), llm.FinishStop},
		"a call":                    {calls("tool_calls", `{"name":"get_weather","arguments":"{\"city\":\"Rome\"}"}`), called(`{"city":"Rome"}`), llm.FinishToolCalls},
		"a call of the old name":    {calls("function_call", `{"name":"get_weather","arguments":"{\"city\":\"Rome\"}"}`), called(`{"city":"Rome"}`), llm.FinishToolCalls},
		"a call without arguments":  {completion(`{"role":"assistant","tool_calls":[{"id":"1","function":{"name":"noop","arguments":""}}]}`, "tool_calls"), llm.Message{Role: llm.Assistant, ToolCalls: []llm.ToolCall{{ID: "1", Name: "noop", Arguments: json.RawMessage("{}")}}}, llm.FinishToolCalls},
		"degraded: calls as far as": {calls("error", `{"name":"get_weather","arguments":"{\"city\":\"Rome\"}"}`, `{"name":"get_weather","arguments":"{\"city\":\"Oslo\",\"extra\":1}"}`, `{"name":"get_weather","arguments":"{\"city\":\"Lon"}`, `{"name":"get_weather","arguments":""}`, `{"name":"get_weather","arguments":"[]"}`), called(`{"city":"Rome"}`, `{"city":"Oslo","extra":1}`, `null`, `null`, `null`), llm.FinishError},
	} {
		t.Run(name, func(t *testing.T) {
			resp, err := serve(t, &endpoint{body: test.body}).Complete(t.Context(), hi)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(resp.Message, test.message) || resp.Finish != test.finish {
				t.Errorf("got %+v (%s), want %+v (%s)", resp.Message, resp.Finish, test.message, test.finish)
			}
			if string(resp.Raw) != test.body {
				t.Errorf("got raw %s, want %s", resp.Raw, test.body)
			}
			if want := (llm.Usage{PromptTokens: new(5), CompletionTokens: new(2), TotalTokens: new(7)}); !reflect.DeepEqual(resp.Usage, want) {
				t.Errorf("got usage %+v, want 5, 2, 7", resp.Usage)
			}
		})
	}
}

func TestUsageThatIsNotReportedIsNil(t *testing.T) {
	for name, usage := range map[string]string{"absent": `null`, "negative": `{"prompt_tokens":-1}`} {
		body := `{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}],"usage":` + usage + `}`
		resp, err := serve(t, &endpoint{body: body}).Complete(t.Context(), hi)
		if err != nil || resp.Usage != (llm.Usage{}) {
			t.Errorf("%s: got %+v, %v, want nils", name, resp.Usage, err)
		}
	}
}

func TestAnswersThatAreNoneAreInvalidResponses(t *testing.T) {
	for name, body := range map[string]string{
		"nothing":               ``,
		"a page":                `<html>welcome</html>`,
		"cut off":               `{"choices":[{"message":{"content":"x"`,
		"a list":                `[]`,
		"null":                  `null`,
		"no choices":            `{"id":"x","object":"chat.completion"}`,
		"empty choices":         `{"choices":[]}`,
		"no message":            `{"choices":[{"finish_reason":"stop"}]}`,
		"no finish reason":      `{"choices":[{"message":{"content":"x"},"finish_reason":null}]}`,
		"content of numbers":    completion(`{"content":7}`, "stop"),
		"an empty message":      completion(`{"role":"assistant","content":null}`, "stop"),
		"calls that are none":   completion(`{"content":"x"}`, "tool_calls"),
		"a call without id":     completion(`{"tool_calls":[{"function":{"name":"noop","arguments":"{}"}}]}`, "tool_calls"),
		"a call of no tool":     completion(`{"tool_calls":[{"id":"1","function":{"name":"rm","arguments":"{}"}}]}`, "tool_calls"),
		"arguments cut off":     completion(`{"tool_calls":[{"id":"1","function":{"name":"noop","arguments":"{\"a\":"}}]}`, "tool_calls"),
		"arguments, no object":  completion(`{"tool_calls":[{"id":"1","function":{"name":"noop","arguments":"7"}}]}`, "tool_calls"),
		"arguments, no fit":     completion(`{"tool_calls":[{"id":"1","function":{"name":"get_weather","arguments":"{}"}}]}`, "tool_calls"),
		"more than can be read": `{"choices":[],"padding":"` + strings.Repeat("x", 17<<20) + `"}`,
	} {
		t.Run(name, func(t *testing.T) {
			_, err := serve(t, &endpoint{body: body}).Complete(t.Context(), hi)
			wantCategory(t, err, llm.InvalidResponse)
		})
	}
}

func TestErrorsAreClassified(t *testing.T) {
	picture := llm.Request{Messages: []llm.Message{{Role: llm.User, Content: llm.Content{
		{Type: llm.ImageBlock, Source: &llm.ImageSource{Type: "url", URL: "https://example.com/x.png"}}}}}}
	for name, test := range map[string]struct {
		status int
		body   string
		req    llm.Request
		want   llm.Category
		code   string
	}{
		"401": {401, `{"error":{"type":"invalid_request_error","code":"invalid_api_key","message":"Incorrect API key provided: sk-very-secret"}}`, hi, llm.Authentication, "invalid_api_key"},
		"403": {403, `{"error":{"message":"Country not supported","code":null}}`, hi, llm.Authentication, ""},

		"404 of OpenAI": {404, `{"error":{"type":"invalid_request_error","code":"model_not_found","message":"The model 'no-such-model' does not exist"}}`, hi, llm.InvalidModel, "model_not_found"},
		"404 of vLLM":   {404, "{\"object\":\"error\",\"message\":\"The model `x` does not exist.\",\"type\":\"NotFoundError\",\"param\":null,\"code\":404}", hi, llm.InvalidModel, "NotFoundError"},
		"404 of Ollama": {404, `{"error":{"message":"model \"x\" not found, try pulling it first","type":"api_error","param":null,"code":null}}`, hi, llm.InvalidModel, "api_error"},
		"404, a string": {404, `{"error":"model 'x' not found"}`, hi, llm.InvalidModel, ""},
		"404, no model": {404, `{"error":{"message":"Invalid URL (POST /v1/v1/chat/completions)"}}`, hi, llm.InvalidRequest, ""},
		"404, a page":   {404, `404 page not found`, hi, llm.InvalidRequest, ""},
		"404, a path":   {404, `Cannot POST /v1/models`, hi, llm.InvalidRequest, ""},

		"503 of a local server": {503, `{"error":{"type":"model_not_loaded","message":"Model 'test-model' is configured but not loaded into memory"}}`, hi, llm.ModelNotLoaded, "model_not_loaded"},
		"503 of llama.cpp":      {503, `{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}`, hi, llm.ModelNotLoaded, "unavailable_error"},
		"503 of TGI":            {503, `{"error":"Model x is currently loading","estimated_time":20}`, hi, llm.ModelNotLoaded, ""},
		"503, overloaded":       {503, `{"error":{"message":"That model is currently overloaded with other requests."}}`, hi, llm.Unavailable, ""},
		"503, empty":            {503, ``, hi, llm.Unavailable, ""},

		"429":          {429, `{"error":{"type":"rate_limit_error","message":"Rate limit exceeded"}}`, hi, llm.RateLimit, "rate_limit_error"},
		"500":          {500, `{"error":{"type":"server_error","message":"Internal server error"}}`, hi, llm.Unavailable, "server_error"},
		"502, a page":  {502, `<html><body>Bad Gateway</body></html>`, hi, llm.Unavailable, ""},
		"504":          {504, `{}`, hi, llm.Unavailable, ""},
		"408":          {408, `{}`, hi, llm.Unavailable, ""},
		"304":          {304, ``, hi, llm.InvalidRequest, ""},
		"413":          {413, `[]`, hi, llm.InvalidRequest, ""},
		"400":          {400, `{"error":{"code":"context_length_exceeded","message":"too long"}}`, hi, llm.InvalidRequest, "context_length_exceeded"},
		"400, sly":     {400, `{"error":{"code":"<b>@everyone</b>","type":7,"message":{"a":1}}}`, hi, llm.InvalidRequest, ""},
		"400, no body": {400, ``, hi, llm.InvalidRequest, ""},

		"400 about an image":      {400, `{"error":{"message":"This model does not support image inputs.","code":"image_content_not_supported"}}`, picture, llm.UnsupportedContentBlock, "image_content_not_supported"},
		"400 about a media type":  {400, `{"error":{"message":"Unsupported media type"}}`, picture, llm.UnsupportedContentBlock, ""},
		"400 of a text model":     {400, `{"object":"error","message":"x is not a multimodal model","type":"BadRequestError","code":400}`, picture, llm.UnsupportedContentBlock, "BadRequestError"},
		"400 beside an image":     {400, `{"error":{"message":"temperature out of range"}}`, picture, llm.InvalidRequest, ""},
		"400 with image in words": {400, `{"error":{"message":"unknown parameter image"}}`, hi, llm.InvalidRequest, ""},
	} {
		t.Run(name, func(t *testing.T) {
			e := &endpoint{status: test.status, body: test.body}
			provider := serve(t, e)
			_, err := provider.Complete(t.Context(), test.req)
			wantCategory(t, err, test.want)
			wantNoKey(t, err)
			if test.code != "" && !strings.Contains(err.Error(), test.code) {
				t.Errorf("got %q, want it to name %s", err, test.code)
			}
			if strings.ContainsAny(err.Error(), "<@{") {
				t.Errorf("got %q, want no words of the provider", err)
			}
			if got := e.requests.Load(); got != 1 {
				t.Errorf("sent %d requests, want 1", got)
			}
			_, streamed := provider.Stream(t.Context(), test.req, func(string) { t.Error("an error became text") })
			wantCategory(t, streamed, test.want)
		})
	}
}

func TestTheProvidersWordsAreTheCause(t *testing.T) {
	_, err := serve(t, &endpoint{status: 400, body: `{"error":{"message":"bad key sk-very-secret: ` + strings.Repeat("ä", 400) + `"}}`}).Complete(t.Context(), hi)
	cause := errors.Unwrap(err)
	if cause == nil || !strings.Contains(cause.Error(), "bad key [key]: ää") || len(cause.Error()) > 600 {
		t.Errorf("got cause %v, want the words, without the key, cut short", cause)
	}
}

func TestRetryAfterIsExposed(t *testing.T) {
	for name, test := range map[string]struct {
		header http.Header
		want   time.Duration
	}{
		"none":          {nil, 0},
		"seconds":       {http.Header{"Retry-After": {"30"}}, 30 * time.Second},
		"parts of one":  {http.Header{"Retry-After": {"0.5"}}, 500 * time.Millisecond},
		"milliseconds":  {http.Header{"Retry-After-Ms": {"1500"}, "Retry-After": {"2"}}, 1500 * time.Millisecond},
		"a date":        {http.Header{"Retry-After": {"Fri, 02 Jan 2026 03:04:25 GMT"}}, 20 * time.Second},
		"a date passed": {http.Header{"Retry-After": {"Fri, 02 Jan 2026 03:00:00 GMT"}}, 0},
		"negative":      {http.Header{"Retry-After": {"-5"}}, 0},
		"no number":     {http.Header{"Retry-After": {"NaN"}}, 0},
		"for ever":      {http.Header{"Retry-After": {"1e300"}}, 24 * time.Hour},
		"nonsense":      {http.Header{"Retry-After": {"soon"}}, 0},
	} {
		_, err := serve(t, &endpoint{status: 429, header: test.header, body: `{}`}).Complete(t.Context(), hi)
		provider, ok := errors.AsType[*llm.Error](err)
		if !ok || provider.Category != llm.RateLimit || provider.RetryAfter != test.want {
			t.Errorf("%s: got %+v, want a rate limit of %v", name, err, test.want)
		}
	}
}

func TestWhatCannotBeReachedIsUnavailable(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	provider := openai.New(openai.Options{Model: "m", APIKey: key, BaseURL: server.URL + "/v1?token=" + key})
	_, err := provider.Complete(t.Context(), hi)
	wantCategory(t, err, llm.Unavailable)
	wantNoKey(t, err)
	wantCategory(t, provider.Ready(t.Context()), llm.Unavailable)
	_, err = provider.Stream(t.Context(), hi, func(string) {})
	wantCategory(t, err, llm.Unavailable)
}

func TestAConnectionThatBreaksOffIsUnavailable(t *testing.T) {
	broken := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "1000")
		_, _ = io.WriteString(w, `{"choices":`)
	})
	_, err := serve(t, broken).Complete(t.Context(), hi)
	wantCategory(t, err, llm.Unavailable)
}

// silent answers nothing until the caller is gone.
func silent() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // or the server does not notice that the caller is gone
		<-r.Context().Done()
	})
}

func TestATimeoutIsUnavailable(t *testing.T) {
	server := httptest.NewServer(silent())
	t.Cleanup(server.Close)
	provider := openai.New(openai.Options{Model: "m", BaseURL: server.URL, HTTPClient: &http.Client{Timeout: 20 * time.Millisecond}})
	_, err := provider.Complete(t.Context(), hi)
	wantCategory(t, err, llm.Unavailable)
	if !strings.Contains(err.Error(), "in time") {
		t.Errorf("got %q, want it to say that time ran out", err)
	}
}

func TestADeadlineIsUnavailableAndTheContexts(t *testing.T) {
	server := httptest.NewServer(silent())
	t.Cleanup(server.Close)
	provider := openai.New(openai.Options{Model: "m", BaseURL: server.URL})
	for name, call := range map[string]func(context.Context) error{
		"complete": func(ctx context.Context) error { _, err := provider.Complete(ctx, hi); return err },
		"stream":   func(ctx context.Context) error { _, err := provider.Stream(ctx, hi, func(string) {}); return err },
		"ready":    provider.Ready,
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		err := call(ctx)
		cancel()
		if llm.CategoryOf(err) != llm.Unavailable || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: got %v, want %s and the deadline", name, err, llm.Unavailable)
		}
	}
}

func TestACallerWhoGivesUpGetsTheContextsError(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // or the server does not notice that the caller is gone
		cancel()
		<-r.Context().Done()
	})
	_, err := serve(t, handler).Complete(ctx, hi)
	if !errors.Is(err, context.Canceled) || llm.CategoryOf(err) != "" {
		t.Errorf("got %v, want context.Canceled without a category", err)
	}
}

func TestNothingIsSentForAWrongRequest(t *testing.T) {
	inline := llm.Block{Type: llm.ImageBlock, MediaType: "image/tiff", Source: &llm.ImageSource{Type: "inline", Base64Data: "AA=="}}
	for name, test := range map[string]struct {
		req  llm.Request
		want llm.Category
	}{
		"no messages":           {llm.Request{}, llm.InvalidRequest},
		"a number that is none": {llm.Request{Messages: hi.Messages, Config: llm.Config{Temperature: new(nan())}}, llm.InvalidRequest},
		"an image of no use":    {llm.Request{Messages: []llm.Message{{Role: llm.User, Content: llm.Content{inline}}}}, llm.UnsupportedContentBlock},
	} {
		e := &endpoint{}
		provider := serve(t, e)
		_, err := provider.Complete(t.Context(), test.req)
		_, streamed := provider.Stream(t.Context(), test.req, func(string) {})
		if llm.CategoryOf(err) != test.want || llm.CategoryOf(streamed) != test.want || e.requests.Load() != 0 {
			t.Errorf("%s: got %v and %v after %d requests, want %s after none", name, err, streamed, e.requests.Load(), test.want)
		}
	}
}

func nan() float64 {
	zero := 0.0
	return zero / zero
}

func TestWrongOptionsAreReportedByEveryCall(t *testing.T) {
	for name, options := range map[string]openai.Options{
		"no model":       {BaseURL: "http://localhost/v1"},
		"no scheme":      {Model: "m", BaseURL: "localhost:8080/v1"},
		"another scheme": {Model: "m", BaseURL: "ftp://localhost/v1"},
		"no URL":         {Model: "m", BaseURL: "http://[::1"},
	} {
		provider := openai.New(options)
		_, err := provider.Complete(t.Context(), hi)
		_, streamed := provider.Stream(t.Context(), hi, func(string) {})
		for _, err := range []error{err, streamed, provider.Ready(t.Context())} {
			if llm.CategoryOf(err) != llm.InvalidRequest {
				t.Errorf("%s: got %v, want category %s", name, err, llm.InvalidRequest)
			}
		}
	}
}

func TestTheEnvironmentIsNotRead(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "from-the-environment")
	t.Setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
	t.Setenv("OPENAI_ORG_ID", "from-the-environment")
	var header http.Header
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header = r.Header.Clone()
		_, _ = io.WriteString(w, completion(`{"content":"x"}`, "stop"))
	}))
	t.Cleanup(server.Close)
	if _, err := openai.New(openai.Options{Model: "m", BaseURL: server.URL + "/v1/"}).Complete(t.Context(), hi); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(fmt.Sprint(header), "from-the-environment") || header.Get("Authorization") != "" {
		t.Errorf("sent %v, want nothing from the environment and no key", header)
	}
}

func TestReadyLooksForTheModel(t *testing.T) {
	for name, test := range map[string]struct {
		status int
		body   string
		want   llm.Category
	}{
		"listed":                     {200, `{"object":"list","data":[{"id":"other"},{"id":"test-model","object":"model"}]}`, ""},
		"listed and loaded":          {200, `{"data":[{"id":"test-model","status":"loaded"}]}`, ""},
		"listed, loaded, as object":  {200, `{"data":[{"id":"test-model","status":{"value":"loaded"}}]}`, ""},
		"not loaded":                 {200, `{"data":[{"id":"test-model","status":"not_loaded"}]}`, llm.ModelNotLoaded},
		"not loaded, as state":       {200, `{"data":[{"id":"test-model","state":"not-loaded"}]}`, llm.ModelNotLoaded},
		"not loaded, as object":      {200, `{"data":[{"id":"test-model","status":{"value":"unloaded"}}]}`, llm.ModelNotLoaded},
		"not listed":                 {200, `{"data":[{"id":"gpt-4o-mini"}]}`, llm.InvalidModel},
		"no models":                  {200, `{"data":[]}`, llm.InvalidModel},
		"no list":                    {200, `{"hello":"world"}`, llm.InvalidResponse},
		"a page":                     {200, `<html>`, llm.InvalidResponse},
		"key refused":                {401, `{"error":{"message":"Invalid API key"}}`, llm.Authentication},
		"still loading":              {503, `{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}`, llm.ModelNotLoaded},
		"an endpoint without models": {404, `404 page not found`, llm.InvalidRequest},
		"down":                       {500, ``, llm.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			e := &endpoint{status: test.status, body: test.body}
			err := serve(t, e).Ready(t.Context())
			if test.want == "" && err != nil {
				t.Errorf("got %v, want nil", err)
			}
			if test.want != "" {
				wantCategory(t, err, test.want)
			}
			if e.path != "/v1/models" || e.bearer != "Bearer "+key {
				t.Errorf("asked %s with %q, want /v1/models with the key", e.path, e.bearer)
			}
		})
	}
}

func TestCallsGoSideBySide(t *testing.T) {
	const calls = 8
	arrived, release := make(chan struct{}, calls), make(chan struct{})
	provider := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		<-release
		_, _ = io.WriteString(w, completion(`{"content":"x"}`, "stop"))
	}))
	done := make(chan error, calls)
	for range calls {
		go func() {
			_, err := provider.Complete(t.Context(), hi)
			done <- err
		}()
	}
	for range calls {
		<-arrived
	}
	close(release)
	for range calls {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func wantJSON(t *testing.T, got, want string) {
	t.Helper()
	var g, w any
	if err := errors.Join(json.Unmarshal([]byte(got), &g), json.Unmarshal([]byte(want), &w)); err != nil {
		t.Fatalf("got %s, want %s: %v", got, want, err)
	}
	if !reflect.DeepEqual(g, w) {
		t.Errorf("got %s, want %s", got, want)
	}
}

func wantCategory(t *testing.T, err error, want llm.Category) {
	t.Helper()
	if got := llm.CategoryOf(err); got != want {
		t.Errorf("got %v of category %q, want category %q", err, got, want)
	}
}

// wantNoKey looks at an error as every way of printing it would.
func wantNoKey(t *testing.T, err error) {
	t.Helper()
	for ; err != nil; err = errors.Unwrap(err) {
		for _, form := range []string{"%v", "%+v", "%#v"} {
			if printed := fmt.Sprintf(form, err); strings.Contains(printed, key) {
				t.Errorf("%s shows the key: %s", form, printed)
			}
		}
	}
}
