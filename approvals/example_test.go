package approvals_test

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"time"

	"github.com/parley-chat/parley/approvals"
)

func Example() {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	deciders, err := approvals.ParsePatterns("slack:U1ADA, slack:T2/U2BO")
	if err != nil {
		panic(err)
	}
	request, err := approvals.New(approvals.NewID(rand.Reader), approvals.Ask{
		Calls:     []approvals.Call{{ID: "call_1", Tool: "deploy", Arguments: json.RawMessage(`{"env":"prod"}`)}},
		Requester: approvals.Actor{Principal: approvals.Principal{Platform: "slack", User: "T1/U3CY"}, Name: "Cy"},
	}, approvals.Policy{Deciders: deciders, Within: time.Hour}, now)
	if err != nil {
		panic(err)
	}

	seen := request.View(now).Hash
	press := func(by approvals.Actor) {
		var verdict approvals.Verdict
		request, verdict = request.Apply(approvals.Approve{By: by, At: now.Add(time.Minute), Hash: seen})
		fmt.Printf("%s: %s\n", verdict.Code, verdict.Text)
	}
	ada := approvals.Actor{Principal: approvals.Principal{Platform: "slack", User: "T1/U1ADA"}, Name: "Ada"}
	press(request.Requester)
	press(ada)
	press(ada)

	decision, _ := request.Decision()
	fmt.Println("may run:", decision.Permit(request.Calls) == nil)
	// Output:
	// not_permitted: You may not decide this. slack:U1ADA or slack:T2/U2BO may.
	// decided: Approved by Ada at 2026-03-01 12:01 UTC.
	// already_decided: This is settled already. Approved by Ada at 2026-03-01 12:01 UTC.
	// may run: true
}

func ExampleParsePatterns() {
	slack := approvals.Platform{Name: "slack", GroupPrefix: "S"}
	patterns, err := approvals.ParsePatterns("slack:U061, slack:S0OPS", slack)
	fmt.Println(patterns, err)

	_, err = approvals.ParsePatterns("@ada, slack:U061, slack:*", slack)
	fmt.Println(err)
	// Output:
	// [slack:U061 slack:group:S0OPS] <nil>
	// "@ada" names no platform: write platform:USER, like slack:U061F7AUR
	// "slack:*" has a wildcard, and there are none: write slack:USER, slack:TEAM/USER or slack:group:GROUP, with ids, not names
}

func ExampleRequest_NeedsGroups() {
	operators, err := approvals.ParsePatterns("slack:group:S0OPS")
	if err != nil {
		panic(err)
	}
	request := approvals.Request{State: approvals.Pending, Deciders: operators}
	who := approvals.Actor{Principal: approvals.Principal{Platform: "slack", User: "T1/U061"}}

	for _, group := range request.NeedsGroups(who) {
		fmt.Println("look up", group)
		who.Groups = append(who.Groups, group) // if the platform says that who belongs to it
	}
	fmt.Println(operators[0].Matches(who))
	// Output:
	// look up S0OPS
	// true
}
