package slacktwin_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/slack-go/slack"

	"github.com/parley-chat/parley/platforms/slack/slacktwin"
)

// Ann says something, the bot hears of it and answers in her thread.
func Example() {
	twin := slacktwin.New(slacktwin.Options{})
	defer twin.Close()
	base, err := twin.Listen("127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	twin.AddUser(slacktwin.User{ID: "UANN", Name: "Ann"})
	twin.AddChannel(slacktwin.Channel{ID: "CTEAM", Name: "team"})

	api := slack.New(twin.Options().BotToken, slack.OptionAPIURL(base+"/api/"))
	bot := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // a real one verifies, commits, and then answers 200
	}))
	defer bot.Close()
	twin.Connect(slacktwin.Callbacks{Events: bot.URL})

	ts, _ := twin.Say("UANN", "CTEAM", "", "hello everybody")
	if err := twin.Idle(context.Background()); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("acknowledged:", twin.Deliveries()[0].Acked)
	if _, _, err := api.PostMessage("CTEAM", slack.MsgOptionTS(ts), slack.MsgOptionText("hello Ann", false)); err != nil {
		fmt.Println(err)
		return
	}
	for _, m := range twin.Thread("CTEAM", ts) {
		fmt.Println(m.User+":", m.Text)
	}
	// Output:
	// acknowledged: true
	// UANN: hello everybody
	// UBOT: hello Ann
}
