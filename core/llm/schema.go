package llm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// Schema is a compiled JSON Schema of a tool's arguments. It may be used concurrently.
type Schema struct {
	compiled *jsonschema.Schema
}

// schemaURL is where a schema stands while it is compiled. Nothing is ever fetched from there.
const schemaURL = "tool:///parameters"

// maxViolations bounds how many mistakes one error names: a model mends a few at a time.
const maxViolations = 8

// CompileSchema compiles a tool's parameters (llm-provider §4): a JSON Schema, of draft 2020-12 unless it names another
// with $schema, whose type is object. References reach within the schema only; files and addresses are refused.
func CompileSchema(parameters json.RawMessage) (*Schema, error) {
	doc, err := decode(parameters)
	if err != nil {
		return nil, fmt.Errorf("the parameters are %w", err)
	}
	if object, ok := doc.(map[string]any); !ok || object["type"] != "object" {
		return nil, errors.New(`the parameters are not a JSON Schema of {"type": "object"}`)
	}
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(closedLoader{})
	if err := compiler.AddResource(schemaURL, doc); err != nil {
		return nil, fmt.Errorf("the parameters cannot be read: %w", err)
	}
	compiled, err := compiler.Compile(schemaURL)
	if err != nil {
		return nil, fmt.Errorf("the parameters are not a valid JSON Schema: %w", err)
	}
	return &Schema{compiled: compiled}, nil
}

// closedLoader keeps $ref from reading files or the network: schemas may come from people and from other servers.
type closedLoader struct{}

func (closedLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("%s lies outside the schema", url)
}

// Validate checks arguments against the schema. Its error names every place that is wrong and what belongs there, in
// words a model can act on: at most eight of them, each as a JSON Pointer with what was wanted.
func (s *Schema) Validate(arguments json.RawMessage) error {
	doc, err := decode(arguments)
	if err != nil {
		return fmt.Errorf("the arguments are %w; send one JSON object", err)
	}
	if _, ok := doc.(map[string]any); !ok {
		return errors.New("the arguments are not a JSON object; send one JSON object")
	}
	err = s.compiled.Validate(doc)
	if violation, ok := errors.AsType[*jsonschema.ValidationError](err); ok {
		return errors.New("the arguments do not fit the tool's schema: " + describe(violation))
	}
	return err
}

var (
	errNotJSON    = errors.New("not valid JSON")
	errWildNumber = errors.New("holding a number too large or too precise to reckon with")
)

// decode reads one JSON value with its numbers as they are written.
func decode(data json.RawMessage) (any, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return nil, errNotJSON
	}
	if !tame(doc) {
		return nil, errWildNumber
	}
	return doc, nil
}

// maxNumberLength and maxExponent bound the numbers of schemas and arguments. Validation reckons exactly, so that a
// number of ten characters, 1e99999999, could cost minutes; a double needs no more than these.
const (
	maxNumberLength = 400
	maxExponent     = 400
)

func tame(doc any) bool {
	switch v := doc.(type) {
	case map[string]any:
		for _, member := range v {
			if !tame(member) {
				return false
			}
		}
	case []any:
		return !slices.ContainsFunc(v, func(member any) bool { return !tame(member) })
	case json.Number:
		return tameNumber(string(v))
	}
	return true
}

func tameNumber(number string) bool {
	i := strings.IndexAny(number, "eE")
	if len(number) > maxNumberLength || i < 0 {
		return len(number) <= maxNumberLength
	}
	exponent, err := strconv.Atoi(number[i+1:])
	return err == nil && -maxExponent <= exponent && exponent <= maxExponent
}

// describe lists the innermost violations, where the mistake itself is: "/replicas: got string, want integer".
func describe(violation *jsonschema.ValidationError) string {
	printer := message.NewPrinter(language.English)
	var found []string
	var walk func(*jsonschema.ValidationError)
	walk = func(v *jsonschema.ValidationError) {
		if len(v.Causes) == 0 {
			found = append(found, pointer(v.InstanceLocation)+": "+v.ErrorKind.LocalizedString(printer))
		}
		for _, cause := range v.Causes {
			walk(cause)
		}
	}
	walk(violation)
	if more := len(found) - maxViolations; more > 0 {
		found = append(found[:maxViolations], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(found, "; ")
}

func pointer(location []string) string {
	if len(location) == 0 {
		return "at the top"
	}
	escape := strings.NewReplacer("~", "~0", "/", "~1")
	var b strings.Builder
	for _, step := range location {
		b.WriteString("/" + escape.Replace(step))
	}
	return b.String()
}
