package main

import (
	"context"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/parley-chat/parley/playground"
	"github.com/parley-chat/parley/playground/browsertest"
)

// openPlayground runs what `bot playground` runs and opens its page in a browser.
func openPlayground(t *testing.T) *browsertest.Browser {
	t.Helper()
	b := browsertest.Start(t)
	page, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	st := &stage{page: page, keep: "memory:", logger: slog.New(slog.NewTextHandler(t.Output(), nil)), stdout: io.Discard}
	go func() { ended <- st.run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the playground ended with %v", err)
		}
	})
	b.Open("http://" + page.Addr().String() + "/#slack/" + playground.Grace + "/" + playground.Deployments)
	return b
}

// look keeps a picture of the page, if PARLEY_SCREENSHOTS names a directory for them.
func look(b *browsertest.Browser, name string) {
	if dir := os.Getenv("PARLEY_SCREENSHOTS"); dir != "" {
		b.Screenshot(filepath.Join(dir, name+".png"))
	}
}

// cardIsThere waits for a card and for the status that follows it: its line moves the buttons, and a press must not miss
// them.
func cardIsThere(b *browsertest.Browser) {
	b.WaitText("thread", "Approval needed")
	b.WaitText("status", "waits for a decision")
}

// The way of a person through the playground, from the first hello to a decided approval: the real bot, over real HTTP.
func TestAPersonTalksToTheBotAndAnotherOneApproves(t *testing.T) {
	b := openPlayground(t)

	b.Type("composer", "@Parley hello")
	b.ClickTestID("send")
	b.WaitText("thread", "deploy") // the friendly answer says what can be tried
	look(b, "1-hello")

	b.Type("composer", "@Parley deploy web")
	b.ClickTestID("send")
	cardIsThere(b)
	look(b, "2-card")

	b.ClickTestID("person-" + playground.Linus)
	cardIsThere(b)
	b.ClickTestID("thread button-approve")
	b.WaitText("thread ephemeral", "may not decide")
	look(b, "3-refused")

	b.ClickTestID("person-" + playground.Ada)
	cardIsThere(b)
	b.ClickTestID("thread button-approve")
	b.WaitText("thread", "Approved by")
	b.WaitText("thread", "web is deployed to production")
	b.WaitGone("thread button-approve")
	look(b, "4-approved")
}

func TestADenialWithAReasonReachesTheOneWhoAsked(t *testing.T) {
	b := openPlayground(t)
	b.Type("composer", "@Parley deploy billing")
	b.ClickTestID("send")
	cardIsThere(b)
	b.ClickTestID("person-" + playground.Ada)
	cardIsThere(b)
	b.ClickTestID("thread button-deny_reason")
	b.WaitText("modal", "Reason")
	look(b, "5-reason")
	b.Type("modal input-text", "not on a Friday")
	b.ClickTestID("modal-submit")
	b.WaitText("thread", "Denied by")
	b.WaitText("thread", "not on a Friday")
	look(b, "6-denied")
}
