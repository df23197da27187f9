package llm_test

import (
	"encoding/json"
	"fmt"

	"github.com/parley-chat/parley/core/llm"
)

func ExampleMessage_Validate() {
	m := llm.UserText("What is on the picture?")
	m.Content = append(m.Content, llm.Block{
		Type:   llm.ImageBlock,
		Source: &llm.ImageSource{Type: "url", URL: "https://example.com/cat.png"},
	})
	fmt.Println(m.Validate())

	m.Role = llm.Assistant
	fmt.Println(m.Validate())
	// Output:
	// <nil>
	// provider_invalid_request: content[1]: a block of type "image" has no place in a message of this role
}

func ExampleValidateRequest() {
	err := llm.ValidateRequest(llm.Request{Messages: []llm.Message{
		llm.UserText("What time is it?"),
		llm.ToolResult("call_1", "12:00"),
	}})
	fmt.Println(llm.CategoryOf(err))
	fmt.Println(err)
	// Output:
	// provider_invalid_request
	// provider_invalid_request: messages[1]: tool_call_id "call_1" matches no earlier tool call
}

func ExampleCompileSchema() {
	schema, err := llm.CompileSchema(json.RawMessage(`{
		"type": "object",
		"properties": {"replicas": {"type": "integer", "minimum": 1}},
		"required": ["replicas"]
	}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(schema.Validate(json.RawMessage(`{"replicas": 2}`)))
	fmt.Println(schema.Validate(json.RawMessage(`{"replicas": "two"}`)))
	// Output:
	// <nil>
	// the arguments do not fit the tool's schema: /replicas: got string, want integer
}
