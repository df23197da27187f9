package approvals

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"unicode"
	"unicode/utf16"
)

// Call is one tool call as it will run.
type Call struct {
	ID   string `json:"id"` // the tool call's, from the model
	Tool string `json:"tool"`
	// Arguments are the effective ones, in the form that Canonical gives: what is shown, hashed and run.
	Arguments   json.RawMessage `json:"arguments"`
	Destructive bool            `json:"destructive,omitempty"` // asks once more before it is approved
}

// Hash identifies what would run, so that what runs is what was shown: the hexadecimal SHA-256 of the JSON array
// [[tool, arguments], …] with canonical arguments.
type Hash string

// HashCalls hashes what the calls would run, in order. The ids of the calls do not matter.
func HashCalls(calls []Call) (Hash, error) {
	what := make([][2]any, len(calls))
	for i, c := range calls {
		arguments, err := Canonical(c.Arguments)
		if err != nil {
			return "", fmt.Errorf("approvals: arguments of %s: %w", c.Tool, err)
		}
		what[i] = [2]any{c.Tool, arguments}
	}
	text, err := plainJSON(what)
	if err != nil {
		return "", fmt.Errorf("approvals: hash: %w", err)
	}
	sum := sha256.Sum256(text)
	return Hash(hex.EncodeToString(sum[:])), nil
}

// Canonical rewrites the arguments of a tool, a JSON object, so that equal arguments are equal bytes: no space between
// the tokens, keys in byte order, one way to write a string. Numbers stay as they were written, because rounding would
// change them. A key given twice is an error: which of the two counts would depend on the reader. So is nesting deeper
// than 100: laid out for people, it would grow with the square of its depth.
func Canonical(arguments json.RawMessage) (json.RawMessage, error) {
	if !json.Valid(arguments) {
		return nil, errors.New("not valid JSON")
	}
	d := json.NewDecoder(bytes.NewReader(arguments))
	d.UseNumber()
	value, err := readValue(d, maxDepth)
	if err != nil {
		return nil, err
	}
	if _, ok := value.(map[string]any); !ok {
		return nil, errors.New("not a JSON object")
	}
	return plainJSON(value)
}

const maxDepth = 100

// readValue reads one value of valid JSON, as json.Decoder does, but refuses keys given twice and deep nesting.
func readValue(d *json.Decoder, depth int) (any, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	delim, nested := token.(json.Delim)
	switch {
	case !nested:
		return token, nil
	case depth == 0:
		return nil, fmt.Errorf("nested deeper than %d", maxDepth)
	case delim == '{':
		return readObject(d, depth-1)
	}
	return readArray(d, depth-1)
}

func readObject(d *json.Decoder, depth int) (any, error) {
	object := map[string]any{}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, err
		}
		name := key.(string) // the decoder gives nothing else in this place
		if _, twice := object[name]; twice {
			return nil, fmt.Errorf("the key %q is given twice", name)
		}
		if object[name], err = readValue(d, depth); err != nil {
			return nil, err
		}
	}
	_, err := d.Token()
	return object, err
}

func readArray(d *json.Decoder, depth int) (any, error) {
	array := []any{}
	for d.More() {
		value, err := readValue(d, depth)
		if err != nil {
			return nil, err
		}
		array = append(array, value)
	}
	_, err := d.Token()
	return array, err
}

// plainJSON encodes without escaping <, > and &: people read it.
func plainJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// pretty lays arguments out for people. What cannot be seen, or turns the reading direction, is written as an escape:
// nobody approves what looks different from what it is.
func pretty(arguments json.RawMessage) string {
	var indented bytes.Buffer
	if err := json.Indent(&indented, arguments, "", "  "); err != nil {
		return string(arguments)
	}
	unseen := []*unicode.RangeTable{unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector}
	var b bytes.Buffer
	for _, r := range indented.String() {
		switch {
		case r == '\n' || unicode.IsPrint(r) && !unicode.In(r, unseen...):
			b.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// checkCalls returns the calls with canonical arguments, in a slice of their own.
func checkCalls(calls []Call) ([]Call, error) {
	if len(calls) == 0 {
		return nil, errors.New("approvals: a request without calls")
	}
	checked := slices.Clone(calls)
	for i, c := range checked {
		if c.Tool == "" {
			return nil, fmt.Errorf("approvals: call %d names no tool", i+1)
		}
		arguments, err := Canonical(c.Arguments)
		if err != nil {
			return nil, fmt.Errorf("approvals: arguments of %s: %w", c.Tool, err)
		}
		checked[i].Arguments = arguments
	}
	return checked, nil
}
