package platforms_test

import (
	"testing"

	"github.com/parley-chat/parley/platforms"
)

func TestTextCommandsAreToldFromTalk(t *testing.T) {
	const id = "n8ex85xxcstr2i3pn9jq"
	for _, c := range []struct {
		text, name, args string
		ok               bool
	}{
		{"stop", "stop", "", true},
		{" /Status ", "status", "", true},
		{"help", "help", "", true},
		{"approve " + id, "approve", id, true},
		{"deny " + id, "deny", id, true},
		{"deny " + id + " not on a Friday", "deny", id + " not on a Friday", true},
		{"stop it", "stop", "", false},
		{"deny it because it is late", "deny", "it because it is late", false},
		{"approve " + id + " please", "approve", id + " please", false},
		{"approve", "approve", "", false},
		{"what does reset do?", "", "", false},
		{"", "", "", false},
	} {
		name, args, ok := platforms.TextCommand(c.text)
		if ok != c.ok || ok && (name != c.name || args != c.args) {
			t.Errorf("%q: got %q %q %v, want %q %q %v", c.text, name, args, ok, c.name, c.args, c.ok)
		}
	}
}
