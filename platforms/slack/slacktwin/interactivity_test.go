package slacktwin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/slack-go/slack"
)

func TestAClickArrivesAsBlockActions(t *testing.T) {
	w := newWorld(t, nil)
	root := w.say("UALICE", "CGENERAL", "", "deploy")
	ts := w.post("CGENERAL", text("card"), slack.MsgOptionTS(root), slack.MsgOptionBlocks(buttons("approve", "v1")))
	w.listen()
	if err := w.Click(t.Context(), "UBOB", "CGENERAL", ts, "deny"); err == nil {
		t.Error("a button that is not there was pressed")
	}
	if err := w.Click(t.Context(), "UBOB", "CGENERAL", ts, "approve"); err != nil {
		t.Fatal(err)
	}
	heard := w.bot.all()
	if len(heard) != 1 || heard[0].Path != "/interactivity" {
		t.Fatalf("got %v", heard)
	}
	var p slack.InteractionCallback
	raw, err := json.Marshal(heard[0].Payload)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &p); err != nil {
		t.Fatalf("slack-go cannot read it: %v", err)
	}
	a := p.ActionCallback.BlockActions[0]
	if p.Type != "block_actions" || a.ActionID != "approve" || a.BlockID != "act" || a.Value != "v1" || a.Type != "button" {
		t.Errorf("got %+v", p)
	}
	if p.User.ID != "UBOB" || p.User.TeamID != "T0TWIN" || p.Team.ID != "T0TWIN" || p.Channel.ID != "CGENERAL" ||
		p.Container.MessageTs != ts || p.Container.ThreadTs != root || p.Message.Timestamp != ts || p.TriggerID == "" ||
		p.ResponseURL == "" || len(p.Message.Blocks.BlockSet) != 1 {
		t.Errorf("got %+v", p)
	}
}

func TestAClickThatIsNotAckedFailsForThePerson(t *testing.T) {
	w := newWorld(t, nil)
	ts := w.post("CGENERAL", text("card"), slack.MsgOptionBlocks(buttons("approve", "v1")))
	if err := w.Click(t.Context(), "UBOB", "CGENERAL", ts, "approve"); err == nil {
		t.Error("a click with nobody listening was acked")
	}
	w.listen()
	w.bot.answer(func(rw http.ResponseWriter, _ received) { rw.WriteHeader(http.StatusBadGateway) })
	if err := w.Click(t.Context(), "UBOB", "CGENERAL", ts, "approve"); err == nil || !strings.Contains(err.Error(), "502") {
		t.Errorf("got %v, want the 502", err)
	}
	release := make(chan struct{})
	w.bot.answer(func(http.ResponseWriter, received) {
		w.clock.Advance(3 * time.Second)
		<-release
	})
	if err := w.Click(t.Context(), "UBOB", "CGENERAL", ts, "approve"); err == nil || !strings.Contains(err.Error(), "timeout") {
		t.Errorf("got %v, want a timeout", err)
	}
	close(release)
	if got := len(w.bot.all()); got != 2 {
		t.Errorf("got %d requests, want 2: clicks are not sent again", got)
	}
}

// press clicks and returns the interaction the bot got.
func (w *world) press(ts string) map[string]any {
	w.t.Helper()
	if err := w.Click(w.t.Context(), "UBOB", "CGENERAL", ts, "approve"); err != nil {
		w.t.Fatal(err)
	}
	heard := w.bot.all()
	return heard[len(heard)-1].Payload
}

func modal() slack.ModalViewRequest {
	return slack.ModalViewRequest{
		Type: "modal", Title: slack.NewTextBlockObject("plain_text", "Why?", false, false), CallbackID: "deny",
		Submit: slack.NewTextBlockObject("plain_text", "Deny", false, false), PrivateMetadata: "p1", NotifyOnClose: true,
		Blocks: slack.Blocks{BlockSet: []slack.Block{slack.NewInputBlock("reason",
			slack.NewTextBlockObject("plain_text", "Reason", false, false), nil,
			slack.NewPlainTextInputBlockElement(nil, "text"))}},
	}
}

func TestSlackGoOpensAndFillsAForm(t *testing.T) {
	w := newWorld(t, nil)
	ts := w.post("CGENERAL", text("card"), slack.MsgOptionBlocks(buttons("approve", "v1")))
	w.listen()
	trigger, _ := w.press(ts)["trigger_id"].(string)
	opened, err := w.api.OpenView(trigger, modal())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.api.OpenView(trigger, modal()); code(err) != "exchanged_trigger_id" {
		t.Errorf("second use: got %v", err)
	}
	late, _ := w.press(ts)["trigger_id"].(string)
	w.clock.Advance(3 * time.Second)
	if _, err := w.api.OpenView(late, modal()); code(err) != "expired_trigger_id" {
		t.Errorf("after 3 s: got %v", err)
	}
	if _, err := w.api.UpdateView(modal(), "", "stale", opened.ID); code(err) != "hash_conflict" {
		t.Errorf("stale hash: got %v", err)
	}
	updated, err := w.api.UpdateView(modal(), "", opened.Hash, opened.ID)
	if err != nil || updated.ID != opened.ID || updated.Hash == opened.Hash {
		t.Errorf("update: got %+v, %v", updated, err)
	}

	form := map[string]map[string]string{"reason": {"text": "too risky"}}
	var refused *ViewErrors
	if err := w.SubmitView(t.Context(), "UBOB", opened.ID, nil); !errors.As(err, &refused) {
		t.Errorf("an empty required field: got %v", err)
	}
	w.bot.answer(func(rw http.ResponseWriter, _ received) {
		_, _ = io.WriteString(rw, `{"response_action":"errors","errors":{"reason":"say more"}}`)
	})
	err = w.SubmitView(t.Context(), "UBOB", opened.ID, form)
	if !errors.As(err, &refused) || refused.Errors["reason"] != "say more" || len(w.Views("UBOB")) != 1 {
		t.Errorf("errors: got %v", err)
	}
	w.bot.answer(nil)
	if err := w.SubmitView(t.Context(), "UBOB", opened.ID, form); err != nil {
		t.Fatal(err)
	}
	if got := w.Views("UBOB"); len(got) != 0 {
		t.Errorf("views: got %+v, want none", got)
	}
	heard := w.bot.all()
	raw, _ := json.Marshal(heard[len(heard)-1].Payload)
	var p slack.InteractionCallback
	if err := json.Unmarshal(raw, &p); err != nil {
		t.Fatal(err)
	}
	if p.Type != "view_submission" || p.View.PrivateMetadata != "p1" || p.View.CallbackID != "deny" ||
		p.View.State.Values["reason"]["text"].Value != "too risky" {
		t.Errorf("got %+v", p)
	}
}

func TestResponseActionsPushUpdateAndClear(t *testing.T) {
	w := newWorld(t, nil)
	ts := w.post("CGENERAL", text("card"), slack.MsgOptionBlocks(buttons("approve", "v1")))
	w.listen()
	trigger, _ := w.press(ts)["trigger_id"].(string)
	if _, err := w.api.OpenView(trigger, modal()); err != nil {
		t.Fatal(err)
	}
	form := map[string]map[string]string{"reason": {"text": "x"}}
	next, _ := json.Marshal(modal())
	steps := []struct {
		action string
		want   int
		fails  bool
	}{{"push", 2, false}, {"push", 3, false}, {"push", 3, true}, {"update", 3, false}, {"dance", 3, true}, {"clear", 0, false}}
	for i, s := range steps {
		w.bot.answer(func(rw http.ResponseWriter, _ received) {
			fmt.Fprintf(rw, `{"response_action":%q,"view":%s}`, s.action, next)
		})
		stack := w.Views("UBOB")
		err := w.SubmitView(t.Context(), "UBOB", stack[len(stack)-1].ID, form)
		if (err != nil) != s.fails || len(w.Views("UBOB")) != s.want {
			t.Errorf("step %d %s: got %d views, %v, want %d", i, s.action, len(w.Views("UBOB")), err, s.want)
		}
	}
}

func TestClosingAFormIsTold(t *testing.T) {
	w := newWorld(t, nil)
	ts := w.post("CGENERAL", text("card"), slack.MsgOptionBlocks(buttons("approve", "v1")))
	w.listen()
	trigger, _ := w.press(ts)["trigger_id"].(string)
	opened, err := w.api.OpenView(trigger, modal())
	if err != nil {
		t.Fatal(err)
	}
	if err := w.CloseView(t.Context(), "UBOB", opened.ID); err != nil {
		t.Fatal(err)
	}
	heard := w.bot.all()
	if got := heard[len(heard)-1].Payload["type"]; got != "view_closed" || len(w.Views("UBOB")) != 0 {
		t.Errorf("got %v", got)
	}
}

// respond uses a response_url and returns the status.
func respond(t *testing.T, url any, body string) int {
	t.Helper()
	link, _ := url.(string)
	response, err := http.Post(link, "application/json", bytes.NewReader([]byte(body)))
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	return response.StatusCode
}

func TestAResponseURLWorksFiveTimesInThirtyMinutes(t *testing.T) {
	w := newWorld(t, nil)
	ts := w.post("CGENERAL", text("card"), slack.MsgOptionBlocks(buttons("approve", "v1")))
	w.listen()
	link := w.press(ts)["response_url"]
	bodies := []string{
		`{"text":"whisper"}`, `{"text":"aloud","response_type":"in_channel"}`, `{"text":"new","replace_original":true}`,
		`{"text":""}`, `{"text":"4"}`, `{"delete_original":true}`, `{"text":"6"}`,
	}
	want := []int{200, 200, 200, 400, 200, 200, 404}
	for i, body := range bodies {
		if got := respond(t, link, body); got != want[i] {
			t.Errorf("%s: got %d, want %d", body, got, want[i])
		}
	}
	if got := w.Ephemerals("UBOB"); len(got) != 2 || got[0].Text != "whisper" {
		t.Errorf("ephemerals: got %+v", got)
	}
	if got := w.Messages("CGENERAL"); len(got) != 1 || got[0].Text != "aloud" {
		t.Errorf("messages: got %+v", got)
	}
}

func TestAResponseURLExpires(t *testing.T) {
	w := newWorld(t, nil)
	ts := w.post("CGENERAL", text("card"), slack.MsgOptionBlocks(buttons("approve", "v1")))
	w.listen()
	link := w.press(ts)["response_url"]
	w.clock.Advance(30*time.Minute - 1)
	if got := respond(t, link, `{"text":"in time"}`); got != 200 {
		t.Errorf("just before: got %d", got)
	}
	w.clock.Advance(1)
	if got := respond(t, link, `{"text":"too late"}`); got != 404 {
		t.Errorf("after 30 min: got %d", got)
	}
}

func TestButtonsOfEphemeralsWorkForTheirPerson(t *testing.T) {
	w := newWorld(t, nil)
	ts, err := w.api.PostEphemeral("CGENERAL", "UBOB", text("choose"), slack.MsgOptionBlocks(buttons("approve", "v1")))
	if err != nil {
		t.Fatal(err)
	}
	w.listen()
	if err := w.Click(t.Context(), "UALICE", "CGENERAL", ts, "approve"); err == nil {
		t.Error("alice pressed what only bob sees")
	}
	payload := w.press(ts)
	container, _ := payload["container"].(map[string]any)
	if container["is_ephemeral"] != true || payload["message"] != nil {
		t.Errorf("got %v", payload)
	}
	if got := respond(t, payload["response_url"], `{"delete_original":true}`); got != 200 || len(w.Ephemerals("UBOB")) != 0 {
		t.Errorf("delete_original: got %d, %+v", got, w.Ephemerals("UBOB"))
	}
}

func TestMenusAndFeedbackAreChosen(t *testing.T) {
	w := newWorld(t, nil)
	answer := w.json("chat.postMessage", map[string]any{"channel": "CGENERAL", "text": "rate", "blocks": []any{
		map[string]any{"type": "context_actions", "elements": []any{map[string]any{
			"type": "feedback_buttons", "action_id": "fb",
			"positive_button": map[string]any{"text": plain("Good"), "value": "up"},
			"negative_button": map[string]any{"text": plain("Bad"), "value": "down"},
		}}},
		map[string]any{"type": "actions", "elements": []any{map[string]any{
			"type": "static_select", "action_id": "menu",
			"options": []any{map[string]any{"text": plain("One"), "value": "1"}},
		}}},
	}})
	ts, _ := answer["ts"].(string)
	w.listen()
	for _, choice := range [][2]string{{"fb", "down"}, {"menu", "1"}} {
		if err := w.Choose(t.Context(), "UBOB", "CGENERAL", ts, choice[0], choice[1]); err != nil {
			t.Error(err)
		}
	}
	if err := w.Choose(t.Context(), "UBOB", "CGENERAL", ts, "menu", "2"); err == nil {
		t.Error("an option that is not there was chosen")
	}
	if got := len(w.bot.all()); got != 2 {
		t.Errorf("got %d interactions, want 2", got)
	}
}

func plain(s string) map[string]any { return map[string]any{"type": "plain_text", "text": s} }

func TestACommandIsAFormAndItsAnswerIsShown(t *testing.T) {
	w := newWorld(t, nil)
	w.listen()
	w.bot.answer(func(rw http.ResponseWriter, r received) {
		if !strings.Contains(r.Body, "command=%2Fstatus") || !strings.Contains(r.Body, "text=now") {
			t.Errorf("got %s", r.Body)
		}
		_, _ = io.WriteString(rw, `{"text":"all is well"}`)
	})
	if err := w.Command(t.Context(), "UALICE", "CGENERAL", "/status", "now"); err != nil {
		t.Fatal(err)
	}
	if got := w.Ephemerals("UALICE"); len(got) != 1 || got[0].Text != "all is well" {
		t.Errorf("got %+v", got)
	}
}
