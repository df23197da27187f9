package llm_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/parley-chat/parley/core/llm"
)

const deploySchema = `{
	"type": "object",
	"properties": {
		"service": {"type": "string", "minLength": 1},
		"environment": {"enum": ["staging", "production"]},
		"replicas": {"$ref": "#/$defs/count"},
		"labels": {"type": "object", "additionalProperties": {"type": "string"}}
	},
	"required": ["service", "environment"],
	"additionalProperties": false,
	"$defs": {"count": {"type": "integer", "minimum": 1}}
}`

func TestArgumentsThatFitTheSchemaPass(t *testing.T) {
	schema, err := llm.CompileSchema(json.RawMessage(deploySchema))
	if err != nil {
		t.Fatal(err)
	}
	for _, arguments := range []string{
		`{"service": "web", "environment": "staging"}`,
		`{"service": "web", "environment": "production", "replicas": 3, "labels": {"a/b": "c"}}`,
		`{"service": "web", "environment": "production", "replicas": 90071992547409931234}`,
	} {
		if err := schema.Validate(json.RawMessage(arguments)); err != nil {
			t.Errorf("Validate(%s) = %v, want nil", arguments, err)
		}
	}
}

func TestAModelIsToldWhatIsWrongWithItsArguments(t *testing.T) {
	schema, err := llm.CompileSchema(json.RawMessage(deploySchema))
	if err != nil {
		t.Fatal(err)
	}
	for arguments, wants := range map[string][]string{
		``:            {"not valid JSON"},
		`{"service":`: {"not valid JSON"},
		`{} {}`:       {"not valid JSON"},
		`null`:        {"not a JSON object"},
		`["web"]`:     {"not a JSON object"},
		`{"service": "web"}`: {
			"at the top: missing property 'environment'"},
		`{"service": "web", "environment": "moon"}`: {
			"/environment: value must be one of 'staging', 'production'"},
		`{"service": 7, "environment": "staging", "replicas": 1.5}`: {
			"/service: got number, want string", "/replicas: got number, want integer"},
		`{"service": "web", "environment": "staging", "labels": {"a/b": 1}}`: {
			"/labels/a~1b: got number, want string"},
		`{"service": "web", "environment": "staging", "force": true}`: {
			"additional properties 'force' not allowed"},
	} {
		err := schema.Validate(json.RawMessage(arguments))
		if err == nil {
			t.Errorf("Validate(%s) = nil, want an error", arguments)
			continue
		}
		for _, want := range wants {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("Validate(%s) = %q, want it to say %q", arguments, err, want)
			}
		}
	}
}

func TestALongListOfMistakesIsCutShort(t *testing.T) {
	schema, err := llm.CompileSchema(json.RawMessage(`{"type":"object","additionalProperties":{"type":"string"}}`))
	if err != nil {
		t.Fatal(err)
	}
	err = schema.Validate(json.RawMessage(`{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":1,"j":1}`))
	if err == nil || strings.Count(err.Error(), "got number") != 8 || !strings.HasSuffix(err.Error(), "and 2 more") {
		t.Errorf("Validate = %v, want eight mistakes and 2 more", err)
	}
}

func TestSchemasThatAreNoneAreRefused(t *testing.T) {
	for parameters, want := range map[string]string{
		``:                                     "not valid JSON",
		`{`:                                    "not valid JSON",
		`null`:                                 `{"type": "object"}`,
		`true`:                                 `{"type": "object"}`,
		`{}`:                                   `{"type": "object"}`,
		`{"type":"string"}`:                    `{"type": "object"}`,
		`{"type":"object","properties":7}`:     "not a valid JSON Schema",
		`{"type":"object","required":"a"}`:     "not a valid JSON Schema",
		`{"type":"object","$ref":"#/nowhere"}`: "not a valid JSON Schema",
		`{"type":"object","$ref":"file:///etc/hostname"}`:        "lies outside the schema",
		`{"type":"object","$ref":"https://example.com/a.json"}`:  "lies outside the schema",
		`{"type":"object","$schema":"https://example.com/meta"}`: "lies outside the schema",
	} {
		_, err := llm.CompileSchema(json.RawMessage(parameters))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("CompileSchema(%s) = %v, want an error that says %q", parameters, err, want)
		}
	}
}

func FuzzSchema(f *testing.F) {
	f.Add(deploySchema, `{"service":"web","environment":"staging"}`)
	f.Add(`{"type":"object","$ref":"#"}`, `{}`)
	f.Add(`{"type":"object","properties":{"a":{"$ref":"#"}}}`, `{"a":{"a":{}}}`)
	f.Add(`{"type":"object","$id":"http://a/b","patternProperties":{"^x":{"pattern":"(a+)+$"}}}`, `{"x":"aaaa"}`)
	f.Fuzz(func(t *testing.T, parameters, arguments string) {
		schema, err := llm.CompileSchema(json.RawMessage(parameters))
		if err != nil {
			return
		}
		if err := schema.Validate(json.RawMessage(arguments)); err == nil && !json.Valid([]byte(arguments)) {
			t.Errorf("invalid JSON %q passed", arguments)
		}
	})
}

// Validation reckons exactly, with as many digits as a number has. A number of ten characters once cost 35 ms, a longer
// exponent would have cost minutes.
func TestNumbersThatCannotBeReckonedWithAreRefused(t *testing.T) {
	schema, err := llm.CompileSchema(json.RawMessage(`{"type":"object","additionalProperties":{"minimum":1e-300,"multipleOf":1}}`))
	if err != nil {
		t.Fatal(err)
	}
	for arguments, fits := range map[string]bool{
		`{"a": 5}`:                                    true,
		`{"a": 1e300}`:                                true,
		`{"a": 12345678901234567890123456789}`:        true,
		`{"a": 1e1000000}`:                            false,
		`{"a": 1E+99999999999999999999}`:              false,
		`{"a": [{"b": 1e-99999999}]}`:                 false,
		`{"a": 1` + strings.Repeat("0", 1000) + `}`:   false,
		`{"a": 0.` + strings.Repeat("0", 1000) + `1}`: false,
	} {
		err := schema.Validate(json.RawMessage(arguments))
		if fits && err != nil || !fits && (err == nil || !strings.Contains(err.Error(), "too large or too precise")) {
			t.Errorf("Validate(%.40s) = %v, want fitting: %v", arguments, err, fits)
		}
	}
	if _, err := llm.CompileSchema(json.RawMessage(`{"type":"object","minProperties":1e1000000}`)); err == nil {
		t.Error("CompileSchema took 1e1000000, want an error")
	}
}
