package playground_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/parley-chat/parley/platforms/slack/slacktwin"
	"github.com/parley-chat/parley/playground"
)

func Example() {
	slack := slacktwin.New(slacktwin.Options{BotName: "Parley"})
	defer func() { _ = slack.Close() }()
	playground.Seed(slack)
	page := playground.New(playground.Options{Slack: slack, Approvers: []string{playground.Approver()}})
	defer page.Close()

	server := httptest.NewServer(page.Handler())
	defer server.Close()
	res, err := http.Get(server.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = res.Body.Close() }()
	fmt.Println(res.Status, res.Header.Get("Content-Type"))
	// Output: 200 OK text/html; charset=utf-8
}
