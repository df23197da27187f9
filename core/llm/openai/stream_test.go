package openai_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/parley-chat/parley/core/llm"
	"github.com/parley-chat/parley/core/llm/openai"
)

// events is the body of a stream: one event each, and [DONE].
func events(chunks ...string) string {
	return "data: " + strings.Join(append(chunks, "[DONE]"), "\n\ndata: ") + "\n\n"
}

func delta(content, finish string) string {
	return fmt.Sprintf(`{"id":"cc","object":"chat.completion.chunk","created":1700000000,"model":"test-model","choices":[{"index":0,"delta":%s,"finish_reason":%s}]}`, content, finish)
}

const usage = `{"id":"cc","object":"chat.completion.chunk","created":1700000000,"model":"test-model","choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7}}`

func stream(t *testing.T, e *endpoint) (llm.Response, []string, error) {
	t.Helper()
	if e.header == nil {
		e.header = http.Header{"Content-Type": {"text/event-stream"}}
	}
	var pieces []string
	resp, err := serve(t, e).Stream(t.Context(), hi, func(piece string) { pieces = append(pieces, piece) })
	return resp, pieces, err
}

func TestAStreamIsTheAnswerThatCompleteWouldGive(t *testing.T) {
	for name, test := range map[string]struct {
		chunks []string
		whole  string
		pieces []string
	}{
		"text": {
			[]string{delta(`{"role":"assistant","content":""}`, `null`), delta(`{"content":"Hel"}`, `null`), delta(`{"content":"lo."}`, `null`), delta(`{}`, `"stop"`), usage},
			completion(`{"role":"assistant","content":"Hello."}`, "stop"), []string{"Hel", "lo."},
		},
		"text, ended with its last piece": {
			[]string{delta(`{"content":"Hi"}`, `"length"`), usage},
			completion(`{"role":"assistant","content":"Hi"}`, "length"), []string{"Hi"},
		},
		"errors that are null and other choices": {
			[]string{`{"error":null,"choices":[{"index":0,"delta":{"content":"a"}},{"index":1,"delta":{"content":"b"},"finish_reason":"length"}]}`, delta(`{"content":null}`, `"stop"`), usage},
			completion(`{"content":"a"}`, "stop"), []string{"a"},
		},
		"a refusal": {
			[]string{delta(`{"refusal":"I "}`, `null`), delta(`{"refusal":"won't."}`, `"stop"`), usage},
			completion(`{"content":null,"refusal":"I won't."}`, "stop"), []string{"I ", "won't."},
		},
		"calls in pieces, mixed": {
			[]string{
				delta(`{"content":"wait"}`, `null`),
				delta(`{"tool_calls":[{"index":0,"id":"call_a","type":"function","function":{"name":"get_weather","arguments":""}}]}`, `null`),
				delta(`{"tool_calls":[{"index":1,"id":"call_b","type":"function","function":{"name":"noop","arguments":"{"}}]}`, `null`),
				delta(`{"tool_calls":[{"index":0,"function":{"arguments":"{\"city\":"}},{"index":1,"function":{"arguments":"}"}}]}`, `null`),
				delta(`{"tool_calls":[{"index":0,"function":{"arguments":"\"Rome\"}"}}]}`, `null`),
				delta(`{}`, `"tool_calls"`), usage,
			},
			completion(`{"content":"wait","tool_calls":[{"id":"call_a","type":"function","function":{"name":"get_weather","arguments":"{\"city\":\"Rome\"}"}},
				{"id":"call_b","type":"function","function":{"name":"noop","arguments":"{}"}}]}`, "tool_calls"), []string{"wait"},
		},
		"whole calls of one index": {
			[]string{
				delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"noop","arguments":"{}"}}]}`, `null`),
				delta(`{"tool_calls":[{"index":0,"id":"b","function":{"name":"noop","arguments":"{}"}}]}`, `"tool_calls"`), usage,
			},
			completion(`{"tool_calls":[{"id":"a","type":"function","function":{"name":"noop","arguments":"{}"}},
				{"id":"b","type":"function","function":{"name":"noop","arguments":"{}"}}]}`, "tool_calls"), nil,
		},
		"degraded": {
			[]string{delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"get_weather","arguments":"{\"ci"}}]}`, `"error"`), usage},
			completion(`{"tool_calls":[{"id":"a","type":"function","function":{"name":"get_weather","arguments":"{\"ci"}}]}`, "error"), nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := &endpoint{body: events(test.chunks...)}
			got, pieces, err := stream(t, e)
			if err != nil {
				t.Fatal(err)
			}
			want, err := serve(t, &endpoint{body: test.whole}).Complete(t.Context(), hi)
			if err != nil {
				t.Fatal(err)
			}
			raw := got.Raw
			got.Raw, want.Raw = nil, nil
			if !reflect.DeepEqual(got, want) {
				t.Errorf("got %+v, want %+v", got, want)
			}
			if !reflect.DeepEqual(pieces, test.pieces) {
				t.Errorf("got pieces %q, want %q", pieces, test.pieces)
			}
			var body struct{ ID, Object, Model string }
			if err := json.Unmarshal(raw, &body); err != nil || body.ID != "cc" || body.Object != "chat.completion" || body.Model != "test-model" {
				t.Errorf("got raw %s, want a chat completion", raw)
			}
			if !strings.Contains(e.got, `"stream":true`) || !strings.Contains(e.got, `"stream_options":{"include_usage":true}`) {
				t.Errorf("sent %s, want a stream with usage", e.got)
			}
		})
	}
}

func TestAStreamWithoutUsageHasNone(t *testing.T) {
	resp, _, err := stream(t, &endpoint{body: events(delta(`{"content":"x"}`, `"stop"`))})
	if err != nil || resp.Usage != (llm.Usage{}) {
		t.Errorf("got %+v, %v, want nils", resp.Usage, err)
	}
}

func TestAServerThatDoesNotStreamIsUnderstood(t *testing.T) {
	e := &endpoint{body: completion(`{"content":"all at once"}`, "stop"), header: http.Header{"Content-Type": {"application/json; charset=utf-8"}}}
	resp, pieces, err := stream(t, e)
	if err != nil || resp.Message.Content.Text() != "all at once" || !reflect.DeepEqual(pieces, []string{"all at once"}) {
		t.Errorf("got %+v in %q, %v, want the answer in one piece", resp.Message, pieces, err)
	}
}

func TestStreamsThatGoWrong(t *testing.T) {
	text := delta(`{"content":"x"}`, `null`)
	for name, test := range map[string]struct {
		body string
		want llm.Category
	}{
		"nothing":               {``, llm.Unavailable},
		"done at once":          {events(), llm.Unavailable},
		"ends early":            {"data: " + text + "\n\n", llm.Unavailable},
		"done without a reason": {events(text), llm.Unavailable},
		"an error in between":   {events(text, `{"error":{"message":"boom","type":"server_error"}}`), llm.Unavailable},
		"no JSON":               {events(text, `{"choices":`), llm.InvalidResponse},
		"choices of numbers":    {events(`{"choices":7}`), llm.InvalidResponse},
		"an empty answer":       {events(delta(`{}`, `"stop"`)), llm.InvalidResponse},
		"arguments cut off":     {events(delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"noop","arguments":"{"}}]}`, `"tool_calls"`)), llm.InvalidResponse},
		"an unknown tool":       {events(delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"rm","arguments":"{}"}}]}`, `"tool_calls"`)), llm.InvalidResponse},
		"more than can be read": {strings.Repeat("data: "+delta(`{"content":"`+strings.Repeat("x", 1<<20)+`"}`, `null`)+"\n\n", 17), llm.InvalidResponse},
	} {
		t.Run(name, func(t *testing.T) {
			resp, _, err := stream(t, &endpoint{body: test.body})
			wantCategory(t, err, test.want)
			if !reflect.DeepEqual(resp, llm.Response{}) {
				t.Errorf("got %+v beside the error, want nothing", resp)
			}
		})
	}
}

func TestTextArrivesWhileTheStreamIsOpen(t *testing.T) {
	heard := make(chan struct{})
	provider := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: "+delta(`{"content":"first"}`, `null`)+"\n\n")
		w.(http.Flusher).Flush()
		select {
		case <-heard:
		case <-r.Context().Done():
			return
		}
		_, _ = io.WriteString(w, events(delta(`{"content":" last"}`, `"stop"`)))
	}))
	resp, err := provider.Stream(t.Context(), hi, func(piece string) {
		if piece == "first" {
			close(heard)
		}
	})
	if got := resp.Message.Content.Text(); err != nil || got != "first last" {
		t.Errorf("got %q, %v, want %q", got, err, "first last")
	}
}

func TestGivingUpEndsAStream(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	provider := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: "+delta(`{"content":"x"}`, `null`)+"\n\n")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	_, err := provider.Stream(ctx, hi, func(string) { cancel() })
	if !errors.Is(err, context.Canceled) || llm.CategoryOf(err) != "" {
		t.Errorf("got %v, want context.Canceled without a category", err)
	}
}

func TestAConnectionThatBreaksInAStreamIsUnavailable(t *testing.T) {
	_, err := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: "+delta(`{"content":"x"}`, `null`)+"\n\n")
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	})).Stream(t.Context(), hi, func(string) {})
	wantCategory(t, err, llm.Unavailable)
}

// Whatever a server sends, Complete and Stream answer with a checked response or an *llm.Error, and never panic.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte(completion(`{"role":"assistant","content":"Hi."}`, "stop")), false)
	f.Add([]byte(completion(`{"tool_calls":[{"id":"1","function":{"name":"noop","arguments":"{}"}}]}`, "tool_calls")), false)
	f.Add([]byte(events(delta(`{"content":"x"}`, `"stop"`), usage)), true)
	f.Add([]byte(events(delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"noop","arguments":"{}"}}]}`, `"tool_calls"`))), true)
	f.Fuzz(func(t *testing.T, body []byte, streamed bool) {
		provider := openai.New(openai.Options{Model: "m", BaseURL: "http://127.0.0.1/v1", HTTPClient: &http.Client{Transport: canned(body)}})
		var text strings.Builder
		call := provider.Complete
		if streamed {
			call = func(ctx context.Context, req llm.Request) (llm.Response, error) {
				return provider.Stream(ctx, req, func(piece string) { text.WriteString(piece) })
			}
		}
		resp, err := call(t.Context(), hi)
		if err != nil {
			if llm.CategoryOf(err) == "" {
				t.Errorf("got %v, want an *llm.Error", err)
			}
			return
		}
		if err := llm.ValidateResponse(hi, resp); err != nil || !json.Valid(resp.Raw) {
			t.Errorf("got %+v, which is no response: %v", resp, err)
		}
		if got := resp.Message.Content.Text(); streamed && text.String() != got && !strings.HasSuffix(text.String(), got) {
			t.Errorf("streamed %q, want %q", text.String(), got)
		}
	})
}

// canned answers with one body, without a network.
type canned []byte

func (c canned) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Request: req, Body: io.NopCloser(strings.NewReader(string(c)))}, nil
}
