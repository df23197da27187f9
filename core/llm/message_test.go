package llm_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/parley-chat/parley/core/llm"
)

func TestMessagesKeepTheirJSONForm(t *testing.T) {
	for _, form := range []string{
		`{"role":"user","content":"x"}`,
		`{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`,
		`{"role":"user","content":[{"type":"image","source":{"type":"url","url":"https://example.com/x.png"},"detail":"low"}]}`,
		`{"role":"user","content":[{"type":"image","source":{"type":"inline","base64_data":"AA=="},"media_type":"image/png"}]}`,
		`{"role":"assistant","content":[{"type":"thinking","text":"hm","signature":"s"},{"type":"text","text":"a"}]}`,
		`{"role":"assistant","content":[{"type":"redacted_thinking","data":"d"}]}`,
		`{"role":"assistant","content":[],"tool_calls":[{"id":"1","name":"time","arguments":{"zone":"UTC"}}]}`,
		`{"role":"assistant","content":"one moment","tool_calls":[{"id":"1","name":"time","arguments":null}]}`,
		`{"role":"tool","content":"noon","tool_call_id":"1"}`,
		`{"role":"user","content":[{"type":"audio"}]}`,
		`{"role":"user","content":[{"type":"text"}]}`,
		`{"role":"user","content":[{"type":"text","text":"x","signature":"s"}]}`,
	} {
		var m llm.Message
		if err := json.Unmarshal([]byte(form), &m); err != nil {
			t.Errorf("reading %s: %v", form, err)
			continue
		}
		got, err := json.Marshal(m)
		if err != nil || string(got) != form {
			t.Errorf("got %s, %v, want %s", got, err, form)
		}
	}
}

func TestFormsThatMeanTheSameAreReadAlike(t *testing.T) {
	for want, forms := range map[string][]string{
		`{"role":"user","content":"x"}`: {
			`{"role":"user","content":[{"type":"text","text":"x"}]}`,
			`{"content":"x","role":"user","tool_calls":null,"tool_call_id":""}`},
		`{"role":"assistant","content":[]}`: {
			`{"role":"assistant"}`, `{"role":"assistant","content":null}`, `{"role":"assistant","content":""}`},
	} {
		for _, form := range forms {
			var m llm.Message
			if err := json.Unmarshal([]byte(form), &m); err != nil {
				t.Errorf("reading %s: %v", form, err)
				continue
			}
			if got, err := json.Marshal(m); err != nil || string(got) != want {
				t.Errorf("%s became %s, %v, want %s", form, got, err, want)
			}
		}
	}
}

func TestContentThatIsNoContentIsRefused(t *testing.T) {
	for _, form := range []string{`{"content":7}`, `{"content":{}}`, `{"content":["x"]}`, `{"content":[{"type":7}]}`} {
		var m llm.Message
		if err := json.Unmarshal([]byte(form), &m); err == nil {
			t.Errorf("reading %s gave %+v, want an error", form, m)
		}
	}
}

func TestTextOfContentIsItsTextBlocks(t *testing.T) {
	content := llm.Content{thinking, {Type: llm.TextBlock, Text: "a"}, redacted, {Type: llm.TextBlock, Text: "b"}}
	if got := content.Text(); got != "a\nb" {
		t.Errorf("Text() = %q, want %q", got, "a\nb")
	}
}

// What was read once is written the same for ever: reading and writing again changes nothing, and a message is valid
// after the round trip exactly when it was before.
func FuzzMessage(f *testing.F) {
	for _, seed := range []string{
		`{"role":"user","content":"x"}`,
		`{"role":"user","content":[{"type":"text"}]}`,
		`{"role":"user","content":[{"type":"image","source":{"type":"inline","base64_data":"A"},"media_type":"image/png"}]}`,
		`{"role":"assistant","content":null,"tool_calls":[{"id":"1","name":"a","arguments":{"b":"<&>"}}]}`,
		`{"role":"assistant","content":[{"type":"thinking","text":"t","signature":"s"}]}`,
		`{"role":"tool","content":"\ud800","tool_call_id":"1"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var first, second llm.Message
		if json.Unmarshal(data, &first) != nil {
			return
		}
		once, err := json.Marshal(first)
		if err != nil {
			t.Fatalf("writing %+v: %v", first, err)
		}
		if err := json.Unmarshal(once, &second); err != nil {
			t.Fatalf("reading back %s: %v", once, err)
		}
		twice, err := json.Marshal(second)
		if err != nil || string(once) != string(twice) {
			t.Errorf("got %s, %v, want %s", twice, err, once)
		}
		if !reflect.DeepEqual(first.Validate(), second.Validate()) {
			t.Errorf("valid before: %v, after: %v", first.Validate(), second.Validate())
		}
	})
}
