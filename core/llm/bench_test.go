package llm_test

import (
	"encoding/json"
	"strconv"
	"testing"

	"github.com/parley-chat/parley/core/llm"
)

// What the check of a tool's schema costs at each call: it is compiled anew, so that nothing is kept between calls.
func BenchmarkCompileSchema(b *testing.B) {
	parameters := json.RawMessage(deploySchema)
	for b.Loop() {
		if _, err := llm.CompileSchema(parameters); err != nil {
			b.Fatal(err)
		}
	}
}

// The check of a request grows with its messages: this is what a long history costs at each call.
func BenchmarkValidateRequest(b *testing.B) {
	for _, turns := range []int{10, 1_000, 10_000} {
		req := llm.Request{Tools: []llm.Tool{tool("deploy", deploySchema)}}
		for range turns / 2 {
			req.Messages = append(req.Messages, llm.UserText("hello"), llm.AssistantText("hello"))
		}
		req.Messages = append(req.Messages, llm.UserText("hello"))
		b.Run(strconv.Itoa(turns), func(b *testing.B) {
			for b.Loop() {
				if err := llm.ValidateRequest(req); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
