package llm_test

import (
	"encoding/json"
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
