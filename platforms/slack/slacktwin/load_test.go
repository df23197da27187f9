package slacktwin

import (
	"fmt"
	"sync"
	"testing"

	"github.com/slack-go/slack"
)

func TestEverybodyAtOnce(t *testing.T) {
	w := newWorld(t, nil)
	w.listen()
	card := w.post("CGENERAL", text("card"), slack.MsgOptionBlocks(buttons("approve", "v1")))
	changes, cancel := w.Subscribe()
	w.Fault(Fault{Event: "message", Skip: 10, Times: 5, Duplicate: 1})
	w.Fault(Fault{Event: "message", Skip: 20, Times: 5, Hold: true})
	w.Fault(Fault{Method: "chat.postMessage", Skip: 10, Times: 3, Status: 503, Commit: true})
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			root := w.say("UALICE", "CGENERAL", "", fmt.Sprint("thread ", g))
			for range 10 {
				w.say("UBOB", "CGENERAL", root, "<@UBOT> hello")
				_, _, _ = w.api.PostMessage("CGENERAL", text("yes"), slack.MsgOptionTS(root))
				if err := w.Click(t.Context(), "UBOB", "CGENERAL", card, "approve"); err != nil {
					t.Error(err)
				}
				w.Thread("CGENERAL", root)
				w.Deliveries()
				w.Calls()
			}
		})
	}
	wg.Go(func() {
		for range changes {
		}
	})
	waitFor(t, func() bool { return len(w.Messages("CGENERAL")) == 1+8*21 })
	w.idle()
	cancel()
	wg.Wait()
	w.idle()
	events := map[string]bool{}
	for _, d := range w.Deliveries() {
		if d.Kind == kindEvents && d.Acked {
			events[d.ID] = true
		}
	}
	if want := 1 + 8*(1+10*3); len(events) != want {
		t.Errorf("got %d events acknowledged, want %d", len(events), want)
	}
}

// BenchmarkSayAndAnswer is one message of a person, its event over HTTP, and one post of the bot into the thread.
func BenchmarkSayAndAnswer(b *testing.B) {
	w := New(Options{})
	defer w.Close()
	base, err := w.Listen("127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	w.AddUser(User{ID: "UALICE", Name: "Alice"})
	w.AddChannel(Channel{ID: "CGENERAL", Name: "general"})
	bot := newListener(b, "twin-signing-secret")
	w.Connect(Callbacks{Events: bot.URL})
	api := slack.New("xoxb-twin", slack.OptionAPIURL(base+"/api/"))
	for b.Loop() {
		ts, err := w.Say("UALICE", "CGENERAL", "", "hello")
		if err != nil {
			b.Fatal(err)
		}
		if _, _, err := api.PostMessage("CGENERAL", text("hi"), slack.MsgOptionTS(ts)); err != nil {
			b.Fatal(err)
		}
	}
	if err := w.Idle(b.Context()); err != nil {
		b.Fatal(err)
	}
}
