package main

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain lets this test binary be the bot: whoever runs it under the name "bot" gets main. So the tests need no
// toolchain, and the bot they kill is built with the race detector whenever they are.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"bot": main})
}
