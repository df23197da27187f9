package slacktwin

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slack-go/slack"
)

func TestSlackGoPostsUpdatesAndDeletes(t *testing.T) {
	w := newWorld(t, nil)
	root := w.say("UALICE", "CGENERAL", "", "hello")
	_, _, response, err := w.api.PostMessageWithResponse("CGENERAL", text("hi"), slack.MsgOptionTS(root),
		slack.MsgOptionMetadata(slack.SlackMetadata{EventType: "mark", EventPayload: map[string]any{"id": "m1"}}))
	if err != nil {
		t.Fatal(err)
	}
	if got := response.ThreadTimestamp; got != root {
		t.Errorf("thread_ts: got %q, want %q", got, root)
	}
	if _, _, got, err := w.api.UpdateMessage("CGENERAL", response.Timestamp, text("hi there")); err != nil || got != "hi there" {
		t.Errorf("update: got %q, %v", got, err)
	}
	thread := w.Thread("CGENERAL", root)
	if len(thread) != 2 || thread[1].Text != "hi there" || thread[0].Replies != 1 || thread[1].EditedTS == "" {
		t.Errorf("thread: got %+v", thread)
	}
	if !strings.Contains(string(thread[1].Metadata), "m1") {
		t.Errorf("an update without metadata lost it: %s", thread[1].Metadata)
	}
	if _, _, err := w.api.DeleteMessage("CGENERAL", response.Timestamp); err != nil {
		t.Errorf("delete: %v", err)
	}
	if got := w.Thread("CGENERAL", root); len(got) != 1 || got[0].Replies != 0 {
		t.Errorf("after delete: got %+v", got)
	}
}

func TestSlackGoPostsToAPersonByOpeningADirectMessage(t *testing.T) {
	w := newWorld(t, nil)
	channel, _, err := w.api.PostMessage("UBOB", text("psst"))
	if err != nil || !strings.HasPrefix(channel, "D") {
		t.Fatalf("got %q, %v", channel, err)
	}
	opened, _, _, err := w.api.OpenConversation(&slack.OpenConversationParameters{Users: []string{"UBOB"}})
	if err != nil || opened.ID != channel {
		t.Errorf("conversations.open: got %+v, %v, want %s", opened, err, channel)
	}
}

func TestAnUpdateWithTextAloneTakesTheBlocksAway(t *testing.T) {
	w := newWorld(t, nil)
	ts := w.post("CGENERAL", text("card"), slack.MsgOptionBlocks(buttons("approve", "v1")))
	if _, _, _, err := w.api.UpdateMessage("CGENERAL", ts, text("done")); err != nil {
		t.Fatal(err)
	}
	if got := w.Messages("CGENERAL")[0].Blocks; got != nil {
		t.Errorf("blocks: got %s, want none", got)
	}
}

func TestSlackGoShowsEphemeralsToOnePerson(t *testing.T) {
	w := newWorld(t, nil)
	if _, err := w.api.PostEphemeral("CGENERAL", "UALICE", text("only you")); err != nil {
		t.Fatal(err)
	}
	if got := w.Ephemerals("UALICE"); len(got) != 1 || got[0].Text != "only you" {
		t.Errorf("alice: got %+v", got)
	}
	if got := w.Ephemerals("UBOB"); len(got) != 0 {
		t.Errorf("bob: got %+v", got)
	}
	if got := w.Messages("CGENERAL"); len(got) != 0 {
		t.Errorf("the channel: got %+v", got)
	}
}

func TestSlackGoReadsHistoryByPages(t *testing.T) {
	w := newWorld(t, nil)
	var sent []string
	for i := range 7 {
		sent = append(sent, w.say("UALICE", "CGENERAL", "", fmt.Sprint("m", i)))
	}
	w.say("UALICE", "CGENERAL", sent[0], "a reply is not history")
	var got []string
	cursor, pages := "", 0
	for {
		page, err := w.api.GetConversationHistory(&slack.GetConversationHistoryParameters{
			ChannelID: "CGENERAL", Limit: 3, Cursor: cursor, Oldest: sent[0],
		})
		if err != nil {
			t.Fatal(err)
		}
		pages++
		for _, m := range page.Messages {
			got = append(got, m.Timestamp)
		}
		if cursor = page.ResponseMetaData.NextCursor; cursor == "" {
			break
		}
	}
	slices.Reverse(got)
	if !slices.Equal(got, sent[1:]) || pages != 2 {
		t.Errorf("got %v in %d pages, want %v in 2", got, pages, sent[1:])
	}
}

func TestSlackGoFindsRepliesWithMetadata(t *testing.T) {
	w := newWorld(t, nil)
	root := w.say("UALICE", "CGENERAL", "", "hello")
	for i := range 5 {
		w.post("CGENERAL", text("r"), slack.MsgOptionTS(root), slack.MsgOptionMetadata(slack.SlackMetadata{
			EventType: "mark", EventPayload: map[string]any{"id": fmt.Sprint(i)},
		}))
	}
	for _, all := range []bool{true, false} {
		var ids []string
		cursor, more := "", true
		for more {
			var page []slack.Message
			var err error
			page, more, cursor, err = w.api.GetConversationReplies(&slack.GetConversationRepliesParameters{
				ChannelID: "CGENERAL", Timestamp: root, Limit: 2, Cursor: cursor, IncludeAllMetadata: all,
			})
			if err != nil {
				t.Fatal(err)
			}
			if page[0].Timestamp != root {
				t.Errorf("first of the page: got %s, want the parent", page[0].Timestamp)
			}
			for _, m := range page[1:] {
				id, _ := m.Metadata.EventPayload["id"].(string)
				ids = append(ids, id)
			}
		}
		want := []string{"0", "1", "2", "3", "4"}
		if !all {
			want = []string{"", "", "", "", ""}
		}
		if !slices.Equal(ids, want) {
			t.Errorf("include_all_metadata=%v: got %q, want %q", all, ids, want)
		}
	}
}

func TestSlackGoAsksWhoAndWhere(t *testing.T) {
	w := newWorld(t, nil)
	w.AddGroup("SDEPLOY", "UALICE", "UBOB")
	w.AddUser(User{ID: "WEVE", Name: "Eve", Team: "T1OTHER", Guest: true})
	auth, err := w.api.AuthTest()
	if err != nil || auth.UserID != "UBOT" || auth.TeamID != "T0TWIN" || auth.BotID != "BBOT" {
		t.Errorf("auth.test: got %+v, %v", auth, err)
	}
	eve, err := w.api.GetUserInfo("WEVE")
	if err != nil || eve.TeamID != "T1OTHER" || !eve.IsRestricted || eve.RealName != "Eve" {
		t.Errorf("users.info: got %+v, %v", eve, err)
	}
	members, err := w.api.GetUserGroupMembers("SDEPLOY")
	if err != nil || !slices.Equal(members, []string{"UALICE", "UBOB"}) {
		t.Errorf("usergroups.users.list: got %v, %v", members, err)
	}
	info, err := w.api.GetConversationInfo(&slack.GetConversationInfoInput{ChannelID: "CQUIET"})
	if err != nil || info.Name != "quiet" || info.IsMember {
		t.Errorf("conversations.info: got %+v, %v", info, err)
	}
	im, err := w.api.GetConversationInfo(&slack.GetConversationInfoInput{ChannelID: "DALICE"})
	if err != nil || !im.IsIM || im.User != "UALICE" {
		t.Errorf("conversations.info of a direct message: got %+v, %v", im, err)
	}
}

func TestSlackGoReacts(t *testing.T) {
	w := newWorld(t, nil)
	ref := slack.NewRefToMessage("CGENERAL", w.say("UALICE", "CGENERAL", "", "hello"))
	steps := []struct {
		do   func(string, slack.ItemRef) error
		name string
		want string
	}{
		{w.api.AddReaction, "eyes", ""},
		{w.api.AddReaction, "eyes", "already_reacted"},
		{w.api.RemoveReaction, "check", "no_reaction"},
		{w.api.AddReaction, "NOT A NAME", "invalid_name"},
		{w.api.RemoveReaction, "eyes", ""},
		{w.api.RemoveReaction, "eyes", "no_reaction"},
	}
	for i, s := range steps {
		if got := code(s.do(s.name, ref)); got != s.want {
			t.Errorf("step %d: got %q, want %q", i, got, s.want)
		}
	}
}

func TestSlackGoUploadsInThreeStepsAndDownloadsWithItsToken(t *testing.T) {
	w := newWorld(t, nil)
	root := w.say("UALICE", "CGENERAL", "", "send it")
	sent, err := w.api.UploadFile(slack.UploadFileParameters{
		Filename: "out.txt", Title: "Result", Content: "forty-two", FileSize: 9, Channel: "CGENERAL", ThreadTimestamp: root,
	})
	if err != nil {
		t.Fatal(err)
	}
	thread := w.Thread("CGENERAL", root)
	if len(thread) != 2 || len(thread[1].Files) != 1 || thread[1].Files[0].Title != "Result" {
		t.Fatalf("thread: got %+v", thread)
	}
	info, _, _, err := w.api.GetFileInfo(sent.ID, 0, 0)
	if err != nil || info.Size != 9 || info.Mimetype == "" {
		t.Fatalf("files.info: got %+v, %v", info, err)
	}
	var got bytes.Buffer
	if err := w.api.GetFile(info.URLPrivateDownload, &got); err != nil || got.String() != "forty-two" {
		t.Errorf("download: got %q, %v", got.String(), err)
	}
	stranger := slack.New("xoxb-stranger", slack.OptionAPIURL(w.URL()+"/api/"))
	if err := stranger.GetFile(info.URLPrivate, &got); err == nil || !strings.Contains(err.Error(), "sign-in") {
		t.Errorf("a stranger's download: got %v, want the sign-in page", err)
	}
	response, err := http.Get(info.URLPrivate)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	page, _ := io.ReadAll(response.Body)
	if response.StatusCode != 200 || !bytes.Contains(page, []byte("Sign in")) {
		t.Errorf("without a token: got %d %q", response.StatusCode, page)
	}
}

func TestSlackGoStreams(t *testing.T) {
	w := newWorld(t, nil)
	root := w.say("UALICE", "CGENERAL", "", "tell me")
	to := []slack.MsgOption{
		slack.MsgOptionTS(root), slack.MsgOptionRecipientUserID("UALICE"), slack.MsgOptionRecipientTeamID("T0TWIN"),
	}
	_, ts, err := w.api.StartStream("CGENERAL", append(to, slack.MsgOptionMarkdownText("**one**"))...)
	if err != nil {
		t.Fatal(err)
	}
	if got := w.Statuses(); len(got) != 1 || got[0].State != "processing" {
		t.Errorf("status: got %+v, want processing", got)
	}
	_, _, err = w.api.AppendStream("CGENERAL", ts, slack.MsgOptionChunks(
		slack.NewMarkdownTextChunk(", two"), slack.NewTaskUpdateChunk("t1", "Think")))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := w.api.UpdateMessage("CGENERAL", ts, text("no")); code(err) != "streaming_state_conflict" {
		t.Errorf("update of a stream: got %v", err)
	}
	if _, _, err := w.api.StopStream("CGENERAL", ts, slack.MsgOptionMarkdownText("."),
		slack.MsgOptionBlocks(buttons("more", "1"))); err != nil {
		t.Fatal(err)
	}
	m := w.Thread("CGENERAL", root)[1]
	if m.Text != "**one**, two." || m.Streaming || len(m.Chunks) != 1 || m.Blocks == nil {
		t.Errorf("got %+v", m)
	}
	if got := w.Statuses()[0].State; got != "active" {
		t.Errorf("status: got %s, want active", got)
	}
	if _, _, err := w.api.AppendStream("CGENERAL", ts, slack.MsgOptionMarkdownText("x")); code(err) != "message_not_in_streaming_state" {
		t.Errorf("append after stop: got %v", err)
	}
}

func TestAStreamLivesFiveMinutesAndCanBeUpdatedThen(t *testing.T) {
	w := newWorld(t, nil)
	root := w.say("UALICE", "DALICE", "", "tell me")
	_, ts, err := w.api.StartStream("DALICE", slack.MsgOptionTS(root))
	if err != nil {
		t.Fatal(err)
	}
	w.clock.Advance(5*time.Minute - time.Second)
	if _, _, err := w.api.AppendStream("DALICE", ts, slack.MsgOptionMarkdownText("x")); err != nil {
		t.Errorf("at 4:59: %v", err)
	}
	w.clock.Advance(time.Second)
	if _, _, err := w.api.AppendStream("DALICE", ts, slack.MsgOptionMarkdownText("y")); code(err) != "message_not_in_streaming_state" {
		t.Errorf("at 5:00: got %v", err)
	}
	if _, _, err := w.api.StopStream("DALICE", ts); code(err) != "message_not_in_streaming_state" {
		t.Errorf("stop at 5:00: got %v", err)
	}
	if _, _, _, err := w.api.UpdateMessage("DALICE", ts, text("the rest")); err != nil {
		t.Errorf("update at 5:00: %v", err)
	}
}

func TestSlackGoShowsWhatItIsDoing(t *testing.T) {
	w := newWorld(t, nil)
	root := w.say("UALICE", "DALICE", "", "work")
	set, err := w.api.SetAgentSessionStatus(slack.AgentSessionSetStatusParameters{
		Status: "processing", ChannelID: "DALICE", ThreadTS: root, Title: "Work",
	})
	if err != nil || set.Status != "processing" || set.Title != "Work" {
		t.Errorf("agents.sessions.setStatus: got %+v, %v", set, err)
	}
	if _, err := w.api.RenameAgentSession(slack.AgentSessionRenameParameters{
		Title: "Play", ChannelID: "DALICE", ThreadTS: root,
	}); err != nil {
		t.Errorf("agents.sessions.rename: %v", err)
	}
	if err := w.api.SetAssistantThreadsStatus(slack.AssistantThreadsSetStatusParameters{
		ChannelID: "DALICE", ThreadTS: root, Status: "is thinking",
	}); err != nil {
		t.Errorf("assistant.threads.setStatus: %v", err)
	}
	got := w.Statuses()
	if len(got) != 1 || got[0].State != "processing" || got[0].Text != "is thinking" || got[0].Title != "Play" {
		t.Errorf("got %+v", got)
	}
	w.clock.Advance(2 * time.Minute)
	if got := w.Statuses()[0].Text; got != "" {
		t.Errorf("after 2 min: got %q, want the assistant status gone", got)
	}
	w.clock.Advance(time.Hour)
	if got := w.Statuses()[0].State; got != "active" {
		t.Errorf("after 1 h: got %q, want active", got)
	}
}

func TestStopEndsTheStreamsAndTellsTheBot(t *testing.T) {
	w := newWorld(t, nil)
	w.listen()
	root := w.say("UALICE", "DALICE", "", "tell me")
	if err := w.StopSession("UALICE", "DALICE", root); err == nil {
		t.Error("there was a stop button before anything ran")
	}
	_, ts, err := w.api.StartStream("DALICE", slack.MsgOptionTS(root))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.StopSession("UALICE", "DALICE", root); err != nil {
		t.Fatal(err)
	}
	w.idle()
	if _, _, err := w.api.AppendStream("DALICE", ts, slack.MsgOptionMarkdownText("x")); code(err) != "stopped_by_user" {
		t.Errorf("append: got %v, want stopped_by_user", err)
	}
	stops := w.bot.events("agent_session_stopped")
	if len(stops) != 1 {
		t.Fatalf("got %d agent_session_stopped, want 1", len(stops))
	}
	e := stops[0].event()
	if e["thread_ts"] != root || e["user"] != "UALICE" || fmt.Sprint(e["streaming_message_ts"]) != "["+ts+"]" {
		t.Errorf("got %v", e)
	}
	if got := w.Statuses()[0].State; got != "processing" {
		t.Errorf("the state is the bot's to change: got %q", got)
	}
}

func TestSetStatusWarnsOfTheMissingSubscription(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.Unsubscribed = []string{"agent_session_stopped"} })
	root := w.say("UALICE", "DALICE", "", "work")
	got, err := w.api.SetAgentSessionStatus(slack.AgentSessionSetStatusParameters{
		Status: "processing", ChannelID: "DALICE", ThreadTS: root,
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"missing_agent_session_stopped_event_subscription"}
	if !slices.Equal(got.ResponseMetadata.Warnings, want) {
		t.Errorf("got %v, want %v", got.ResponseMetadata.Warnings, want)
	}
	if err := w.StopSession("UALICE", "DALICE", root); err == nil {
		t.Error("there is a stop button without a subscription")
	}
}

func TestWithoutTheAgentFeatureThereAreNoSessions(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.Agent = false })
	root := w.say("UALICE", "DALICE", "", "work")
	_, err := w.api.SetAgentSessionStatus(slack.AgentSessionSetStatusParameters{
		Status: "processing", ChannelID: "DALICE", ThreadTS: root,
	})
	if code(err) != "feature_not_enabled" {
		t.Errorf("got %v", err)
	}
}

// buttons is an actions block with one button.
func buttons(actionID, value string) *slack.ActionBlock {
	return slack.NewActionBlock("act", slack.NewButtonBlockElement(actionID, value,
		slack.NewTextBlockObject("plain_text", "Press", false, false)))
}
