package slack_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"time"

	"github.com/parley-chat/parley/platforms"
	"github.com/parley-chat/parley/platforms/slack"
	"github.com/parley-chat/parley/platforms/slack/slacktwin"
)

// echo answers each message in its conversation. A real inbox makes the delivery durable first and reads it later.
type echo struct {
	a    *slack.Adapter
	done chan string
}

func (e *echo) Accept(ctx context.Context, d platforms.Delivery) error {
	in, err := e.a.Read(d.Raw)
	if err != nil {
		return err
	}
	if m, ok := in.(platforms.Message); ok {
		for _, part := range e.a.Render(platforms.Content{Markdown: "You said: " + m.Text}) {
			if _, err := e.a.Post(ctx, m.Conversation, "mark1", part); err != nil {
				return err
			}
		}
		e.done <- string(m.From.ID)
	}
	return nil
}

// A bot that answers over Socket Mode, in a Slack of its own.
func ExampleNew() {
	twin := slacktwin.New(slacktwin.Options{})
	defer twin.Close()
	server := httptest.NewServer(twin.Handler())
	defer server.Close()
	twin.SetURL(server.URL)
	twin.AddUser(slacktwin.User{ID: "UANN", Name: "Ann"})
	twin.AddChannel(slacktwin.Channel{ID: "DANN", IM: true, Members: []string{"UANN", "UBOT"}})

	a, err := slack.New(slack.Options{BotToken: "xoxb-twin", AppToken: "xapp-twin", APIURL: server.URL + "/api/"})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	bot := &echo{a: a, done: make(chan string, 1)}
	go func() { ended <- a.Run(ctx, bot) }()

	for a.Ready() != nil {
		time.Sleep(time.Millisecond) // until it is connected
	}
	if _, err := twin.Say("UANN", "DANN", "", "hello"); err != nil {
		fmt.Println(err)
	}
	fmt.Println(<-bot.done)
	fmt.Println(twin.Messages("DANN")[1].Text)
	cancel()
	fmt.Println(<-ended)
	// Output:
	// T0TWIN/UANN
	// You said: hello
	// <nil>
}
