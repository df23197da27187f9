package slacktwin

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slack-go/slack"
)

// n returns n characters.
func n(n int) string { return strings.Repeat("x", n) }

// many returns n copies.
func many(n int, v any) []any { return slices.Repeat([]any{v}, n) }

func obj(pairs ...any) map[string]any {
	o := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		o[pairs[i].(string)] = pairs[i+1]
	}
	return o
}

func mrkdwn(s string) map[string]any { return obj("type", "mrkdwn", "text", s) }

func section(s string) map[string]any { return obj("type", "section", "text", mrkdwn(s)) }

func button(changes ...any) map[string]any {
	b := obj("type", "button", "text", plain("Go"), "action_id", "go", "value", "v")
	for i := 0; i < len(changes); i += 2 {
		b[changes[i].(string)] = changes[i+1]
	}
	return b
}

func actions(elements ...any) map[string]any { return obj("type", "actions", "elements", elements) }

func option(text, value string) map[string]any { return obj("text", plain(text), "value", value) }

func selectOf(typ string, options []any) map[string]any {
	return obj("type", typ, "action_id", "s", "options", options)
}

func confirmOf(title, text, yes, no string) map[string]any {
	return obj("title", plain(title), "text", mrkdwn(text), "confirm", plain(yes), "deny", plain(no))
}

func buttonsOf(count int) []any {
	var out []any
	for i := range count {
		out = append(out, button("action_id", fmt.Sprint("a", i)))
	}
	return out
}

func rows(count, cells int, text string) []any {
	return many(count, many(cells, obj("type", "raw_text", "text", text)))
}

// TestEachLimitOfBlocksIsKept: for every limit what just fits, and what is one too much.
func TestEachLimitOfBlocksIsKept(t *testing.T) {
	manySections := func(count, size int) []any { return many(count, section(n(size))) }
	tests := []struct {
		name string
		fits any // a block, or a list of blocks
		too  any
		want string // invalid_blocks by default
	}{
		{name: "blocks in a message", fits: many(50, obj("type", "divider")), too: many(51, obj("type", "divider"))},
		{name: "section text", fits: section(n(3000)), too: section(n(3001))},
		{name: "section text is not empty", fits: section("x"), too: section("")},
		{name: "fields", fits: obj("type", "section", "fields", many(10, mrkdwn("f"))),
			too: obj("type", "section", "fields", many(11, mrkdwn("f")))},
		{name: "field text", fits: obj("type", "section", "fields", many(1, mrkdwn(n(2000)))),
			too: obj("type", "section", "fields", many(1, mrkdwn(n(2001))))},
		{name: "header", fits: obj("type", "header", "text", plain(n(150))), too: obj("type", "header", "text", plain(n(151)))},
		{name: "header is plain text", fits: obj("type", "header", "text", plain("h")), too: obj("type", "header", "text", mrkdwn("h"))},
		{name: "context elements", fits: obj("type", "context", "elements", many(10, mrkdwn("c"))),
			too: obj("type", "context", "elements", many(11, mrkdwn("c")))},
		{name: "actions", fits: actions(buttonsOf(25)...), too: actions(buttonsOf(26)...)},
		{name: "actions are not empty", fits: actions(button()), too: obj("type", "actions", "elements", []any{})},
		{name: "context_actions", fits: obj("type", "context_actions", "elements", iconButtons(5)),
			too: obj("type", "context_actions", "elements", iconButtons(6))},
		{name: "context_actions take no plain buttons", fits: obj("type", "context_actions", "elements", iconButtons(1)),
			too: obj("type", "context_actions", "elements", []any{button()})},
		{name: "button text", fits: actions(button("text", plain(n(75)))), too: actions(button("text", plain(n(76))))},
		{name: "button text is plain", fits: actions(button()), too: actions(button("text", mrkdwn("b")))},
		{name: "button value", fits: actions(button("value", n(2000))), too: actions(button("value", n(2001)))},
		{name: "button url", fits: actions(button("url", "https://a.b/"+n(2988))), too: actions(button("url", "https://a.b/"+n(2989)))},
		{name: "button url is one", fits: actions(button("url", "https://a.b")), too: actions(button("url", "not a url"))},
		{name: "button style", fits: actions(button("style", "danger")), too: actions(button("style", "green"))},
		{name: "accessibility_label", fits: actions(button("accessibility_label", n(75))),
			too: actions(button("accessibility_label", n(76)))},
		{name: "action_id", fits: actions(button("action_id", n(255))), too: actions(button("action_id", n(256)))},
		{name: "action_id is unique in its block", fits: actions(button(), button("action_id", "b")), too: actions(button(), button())},
		{name: "block_id", fits: obj("type", "divider", "block_id", n(255)), too: obj("type", "divider", "block_id", n(256))},
		{name: "block_id is unique", fits: []any{obj("type", "divider", "block_id", "a"), obj("type", "divider", "block_id", "b")},
			too: many(2, obj("type", "divider", "block_id", "a"))},
		{name: "option text", fits: actions(selectOf("static_select", many(1, option(n(75), "v")))),
			too: actions(selectOf("static_select", many(1, option(n(76), "v"))))},
		{name: "option value", fits: actions(selectOf("static_select", many(1, option("o", n(150))))),
			too: actions(selectOf("static_select", many(1, option("o", n(151)))))},
		{name: "option description",
			fits: actions(selectOf("static_select", many(1, obj("text", plain("o"), "value", "v", "description", plain(n(75)))))),
			too:  actions(selectOf("static_select", many(1, obj("text", plain("o"), "value", "v", "description", plain(n(76))))))},
		{name: "options of a select", fits: actions(selectOf("static_select", many(100, option("o", "v")))),
			too: actions(selectOf("static_select", many(101, option("o", "v"))))},
		{name: "options of radio buttons", fits: actions(selectOf("radio_buttons", many(10, option("o", "v")))),
			too: actions(selectOf("radio_buttons", many(11, option("o", "v"))))},
		{name: "options of checkboxes", fits: actions(selectOf("checkboxes", many(10, option("o", "v")))),
			too: actions(selectOf("checkboxes", many(11, option("o", "v"))))},
		{name: "options of overflow", fits: actions(selectOf("overflow", many(5, option("o", "v")))),
			too: actions(selectOf("overflow", many(6, option("o", "v"))))},
		{name: "confirm title", fits: actions(button("confirm", confirmOf(n(100), "t", "y", "n"))),
			too: actions(button("confirm", confirmOf(n(101), "t", "y", "n")))},
		{name: "confirm text", fits: actions(button("confirm", confirmOf("t", n(300), "y", "n"))),
			too: actions(button("confirm", confirmOf("t", n(301), "y", "n")))},
		{name: "confirm button", fits: actions(button("confirm", confirmOf("t", "t", n(30), "n"))),
			too: actions(button("confirm", confirmOf("t", "t", n(31), "n")))},
		{name: "deny button", fits: actions(button("confirm", confirmOf("t", "t", "y", n(30)))),
			too: actions(button("confirm", confirmOf("t", "t", "y", n(31))))},
		{name: "alt_text", fits: obj("type", "image", "image_url", "https://a.b/c.png", "alt_text", n(2000)),
			too: obj("type", "image", "image_url", "https://a.b/c.png", "alt_text", n(2001))},
		{name: "image_url", fits: obj("type", "image", "image_url", "https://a.b/"+n(2988), "alt_text", "a"),
			too: obj("type", "image", "image_url", "https://a.b/"+n(2989), "alt_text", "a")},
		{name: "placeholder",
			fits: actions(obj("type", "static_select", "options", many(1, option("o", "v")), "placeholder", plain(n(150)))),
			too:  actions(obj("type", "static_select", "options", many(1, option("o", "v")), "placeholder", plain(n(151))))},
		{name: "table rows", fits: obj("type", "table", "rows", rows(100, 1, "c")), too: obj("type", "table", "rows", rows(101, 1, "c"))},
		{name: "table cells", fits: obj("type", "table", "rows", rows(1, 20, "c")), too: obj("type", "table", "rows", rows(1, 21, "c"))},
		{name: "table characters", fits: obj("type", "table", "rows", rows(10, 10, n(100))),
			too: obj("type", "table", "rows", append(rows(10, 10, n(100)), rows(1, 1, "c")...))},
		{name: "table cells are not empty", fits: obj("type", "table", "rows", rows(1, 1, "c")),
			too: obj("type", "table", "rows", rows(1, 1, ""))},
		{name: "data table rows", fits: obj("type", "data_table", "rows", rows(201, 1, "c")),
			too: obj("type", "data_table", "rows", rows(202, 1, "c"))},
		{name: "plan tasks", fits: obj("type", "plan", "title", "p", "tasks", tasks(50)),
			too: obj("type", "plan", "title", "p", "tasks", tasks(51))},
		{name: "markdown", fits: obj("type", "markdown", "text", n(12000)), too: obj("type", "markdown", "text", n(12001))},
		{name: "markdown blocks together", fits: many(2, obj("type", "markdown", "text", n(6000))),
			too: many(2, obj("type", "markdown", "text", n(6001)))},
		{name: "all blocks together", fits: append(manySections(3, 3000), section(n(2340))),
			too: append(manySections(3, 3000), section(n(2341))), want: "msg_blocks_too_long"},
		{name: "all blocks with markdown", fits: []any{obj("type", "markdown", "text", n(9000)), section(n(3000))},
			too: []any{obj("type", "markdown", "text", n(9001)), section(n(3000))}, want: "msg_blocks_too_long"},
		{name: "no unknown fields", fits: section("x"), too: obj("type", "section", "text", mrkdwn("x"), "texts", "x")},
		{name: "no unknown types", fits: section("x"), too: obj("type", "sektion", "text", mrkdwn("x"))},
		{name: "no cards in messages", fits: section("x"), too: obj("type", "card", "title", plain("x"))},
		{name: "blocks are a list", fits: []any{}, too: obj("blocks", 1), want: "invalid_blocks"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, nil)
			if tt.want == "" {
				tt.want = "invalid_blocks"
			}
			if got := w.tryBlocks(tt.fits); got["ok"] != true {
				t.Errorf("what fits: got %v", got)
			}
			got := w.tryBlocks(tt.too)
			if got["error"] != tt.want {
				t.Errorf("one too much: got %v, want %s", got, tt.want)
			}
			if tt.want == "invalid_blocks" && !strings.Contains(fmt.Sprint(got["response_metadata"]), "json-pointer:/blocks") {
				t.Errorf("no pointer in %v", got)
			}
			if len(w.Messages("CGENERAL")) != 1 {
				t.Errorf("a refused message was posted")
			}
		})
	}
}

func (w *world) tryBlocks(blocks any) map[string]any {
	w.t.Helper()
	list, ok := blocks.([]any)
	if !ok {
		list = []any{blocks}
	}
	return w.json("chat.postMessage", obj("channel", "CGENERAL", "text", "fallback", "blocks", list))
}

func iconButtons(count int) []any {
	var out []any
	for i := range count {
		out = append(out, obj("type", "icon_button", "icon", "trash", "text", plain("Delete"), "action_id", fmt.Sprint("i", i)))
	}
	return out
}

func tasks(count int) []any {
	var out []any
	for i := range count {
		out = append(out, obj("task_id", fmt.Sprint("t", i), "title", "task"))
	}
	return out
}

// TestEachRefusalOfAMethod: what a method is given, and Slack's word for what is wrong with it.
func TestEachRefusalOfAMethod(t *testing.T) {
	w := newWorld(t, nil)
	root := w.say("UALICE", "CGENERAL", "", "root")
	reply := w.post("CGENERAL", text("reply"), slack.MsgOptionTS(root))
	w.AddChannel(Channel{ID: "COLD", Name: "old", Archived: true})
	w.AddUser(User{ID: "WEVE", Name: "Eve", Team: "T1OTHER"})
	gone := "1700000000.000001"
	in := func(pairs ...any) map[string]any { return obj(append([]any{"channel", "CGENERAL"}, pairs...)...) }
	to := func(pairs ...any) map[string]any {
		return in(append([]any{"thread_ts", root, "recipient_user_id", "UALICE", "recipient_team_id", "T0TWIN"}, pairs...)...)
	}
	session := func(pairs ...any) map[string]any {
		return obj(append([]any{"channel_id", "CGENERAL", "thread_ts", root}, pairs...)...)
	}
	tests := []struct {
		method string
		given  map[string]any
		want   string // "" is accepted
	}{
		{"chat.postMessage", in(), "no_text"},
		{"chat.postMessage", in("text", "  "), "no_text"},
		{"chat.postMessage", in("text", "", "blocks", []any{}), "no_text"},
		{"chat.postMessage", obj("channel", "CNOWHERE", "text", "x"), "channel_not_found"},
		{"chat.postMessage", obj("text", "x"), "channel_not_found"},
		{"chat.postMessage", obj("channel", "#general", "text", "by name"), ""},
		{"chat.postMessage", obj("channel", "CQUIET", "text", "x"), "not_in_channel"},
		{"chat.postMessage", obj("channel", "GSECRET", "text", "x"), "channel_not_found"},
		{"chat.postMessage", obj("channel", "COLD", "text", "x"), "is_archived"},
		{"chat.postMessage", in("text", "x", "thread_ts", ""), "invalid_thread_ts"},
		{"chat.postMessage", in("text", "x", "thread_ts", "yesterday"), "invalid_thread_ts"},
		{"chat.postMessage", in("text", "x", "thread_ts", reply), "invalid_thread_ts"},
		{"chat.postMessage", in("text", "x", "thread_ts", gone), ""},
		{"chat.postMessage", in("markdown_text", n(12000)), ""},
		{"chat.postMessage", in("markdown_text", n(12001)), "msg_too_long"},
		{"chat.postMessage", in("markdown_text", "x", "text", "y"), "markdown_text_conflict"},
		{"chat.postMessage", in("markdown_text", "x", "blocks", []any{section("x")}), "markdown_text_conflict"},
		{"chat.postMessage", in("text", "x", "blocks", "{"), "invalid_blocks_format"},
		{"chat.postMessage", in("text", "x", "attachments", many(101, obj("text", "a"))), "too_many_attachments"},
		{"chat.postMessage", in("attachments", many(100, obj("text", "a"))), ""},
		{"chat.postMessage", in("text", "x", "attachments", "nonsense"), "invalid_attachments"},
		{"chat.postMessage", in("text", "x", "metadata", "nonsense"), "invalid_metadata_format"},
		{"chat.postMessage", in("text", "x", "metadata", obj("event_type", "m")), "invalid_metadata_schema"},
		{"chat.postMessage", in("text", "x", "metadata", obj("event_type", "m", "event_payload", obj("a", n(17000)))), "metadata_too_large"},
		{"chat.postMessage", in("text", n(40001)), ""},

		{"chat.update", in("ts", reply, "text", n(4000)), ""},
		{"chat.update", in("ts", reply, "text", n(4001)), "msg_too_long"},
		{"chat.update", in("ts", reply, "text", strings.Repeat("é", 2001)), "msg_too_long"},
		{"chat.update", in("ts", reply, "text", n(4001), "blocks", []any{section("x")}), "msg_too_long"},
		{"chat.update", in("ts", reply), "no_text"},
		{"chat.update", in("ts", root, "text", "x"), "cant_update_message"},
		{"chat.update", in("ts", gone, "text", "x"), "message_not_found"},
		{"chat.update", in("ts", reply, "markdown_text", "x", "text", "y"), "markdown_text_conflict"},
		{"chat.delete", in("ts", root), "cant_delete_message"},
		{"chat.delete", in("ts", gone), "message_not_found"},

		{"chat.postEphemeral", in("user", "UALICE", "text", "x"), ""},
		{"chat.postEphemeral", in("user", "UNOBODY", "text", "x"), "user_not_in_channel"},
		{"chat.postEphemeral", in("user", "WEVE", "text", "x"), "user_not_in_channel"},
		{"chat.postEphemeral", in("user", "UALICE"), "no_text"},
		{"chat.postEphemeral", obj("channel", "CQUIET", "user", "UALICE", "text", "x"), "not_in_channel"},
		{"chat.postEphemeral", in("user", "UALICE", "markdown_text", n(12001)), "msg_too_long"},

		{"chat.startStream", to(), ""},
		{"chat.startStream", in("recipient_user_id", "UALICE", "recipient_team_id", "T0TWIN"), "invalid_thread_ts"},
		{"chat.startStream", to("thread_ts", reply), "invalid_thread_ts"},
		{"chat.startStream", in("thread_ts", root), "missing_recipient_user_id"},
		{"chat.startStream", in("thread_ts", root, "recipient_user_id", "UALICE"), "missing_recipient_team_id"},
		{"chat.startStream", to("recipient_user_id", "UBOT"), "user_not_found"},
		{"chat.startStream", to("recipient_team_id", "TELSE"), "team_not_found"},
		{"chat.startStream", to("markdown_text", n(12001)), "msg_too_long"},
		{"chat.startStream", to("task_display_mode", "cube"), "invalid_arguments"},
		{"chat.startStream", to("markdown_text", "x", "chunks", []any{obj("type", "markdown_text", "text", "y")}), "markdown_text_conflict"},
		{"chat.startStream", to("chunks", []any{obj("type", "song")}), "invalid_chunks"},
		{"chat.startStream", to("chunks", "nonsense"), "invalid_chunks"},
		{"chat.startStream", to("chunks", []any{obj("type", "task_update", "id", "t", "title", n(256))}), ""},
		{"chat.startStream", to("chunks", []any{obj("type", "task_update", "id", "t", "title", n(257))}), "invalid_chunks"},
		{"chat.startStream", to("chunks", []any{obj("type", "task_update", "title", "t")}), "invalid_chunks"},
		{"chat.startStream", to("chunks", many(2, obj("type", "task_update", "id", "t", "title", "t", "details", n(128)))), ""},
		{"chat.startStream", to("chunks", many(2, obj("type", "task_update", "id", "t", "title", "t", "details", n(129)))), "invalid_chunks"},
		{"chat.startStream", to("chunks", []any{obj("type", "plan_update", "title", n(257))}), "invalid_chunks"},
		{"chat.startStream", to("chunks", []any{obj("type", "blocks", "blocks", many(51, obj("type", "divider")))}), "invalid_blocks"},
		{"chat.startStream", to("chunks", []any{obj("type", "blocks", "blocks", []any{obj("type", "card",
			"title", plain(n(150)), "body", plain(n(200)), "actions", buttonsOf(3))})}), ""},
		{"chat.startStream", to("chunks", []any{obj("type", "blocks", "blocks", []any{obj("type", "card", "title", plain(n(151)))})}), "invalid_blocks"},
		{"chat.startStream", to("chunks", []any{obj("type", "blocks", "blocks", []any{obj("type", "card", "body", plain(n(201)))})}), "invalid_blocks"},
		{"chat.startStream", to("chunks", []any{obj("type", "blocks", "blocks", []any{obj("type", "card", "actions", buttonsOf(4))})}), "invalid_blocks"},
		{"chat.appendStream", in("ts", reply, "markdown_text", "x"), "message_not_in_streaming_state"},
		{"chat.appendStream", in("ts", root, "markdown_text", "x"), "message_not_owned_by_app"},
		{"chat.appendStream", in("ts", gone, "markdown_text", "x"), "message_not_found"},
		{"chat.stopStream", in("ts", reply), "message_not_in_streaming_state"},

		{"conversations.history", in("limit", "1000"), "invalid_limit"},
		{"conversations.history", in("limit", "many"), "invalid_limit"},
		{"conversations.history", in("cursor", "nonsense"), "invalid_cursor"},
		{"conversations.history", in("oldest", "long ago"), "invalid_ts_oldest"},
		{"conversations.history", in("latest", "never"), "invalid_ts_latest"},
		{"conversations.history", obj("channel", "CQUIET"), "not_in_channel"},
		{"conversations.replies", in("ts", gone), "thread_not_found"},
		{"conversations.replies", obj("channel", "CNOWHERE", "ts", root), "channel_not_found"},
		{"conversations.open", obj(), "users_list_not_supplied"},
		{"conversations.open", obj("users", "UNOBODY"), "user_not_found"},
		{"conversations.open", obj("users", "UBOT"), "cannot_dm_bot"},

		{"reactions.add", in("timestamp", root, "name", "Not Emoji"), "invalid_name"},
		{"reactions.add", in("name", "eyes"), "no_item_specified"},
		{"reactions.add", in("timestamp", "x", "name", "eyes"), "bad_timestamp"},
		{"reactions.add", in("timestamp", gone, "name", "eyes"), "message_not_found"},
		{"reactions.remove", in("timestamp", root, "name", "eyes"), "no_reaction"},

		{"views.open", obj("trigger_id", "t", "view", obj()), "invalid_trigger_id"},
		{"views.update", obj("view_id", "V1", "view", obj()), "not_found"},
		{"views.publish", obj("user_id", "UNOBODY", "view", obj()), "user_not_found"},
		{"views.publish", obj("user_id", "UALICE", "view", obj("type", "home", "blocks", many(100, obj("type", "divider")))), ""},
		{"views.publish", obj("user_id", "UALICE", "view", obj("type", "home", "blocks", many(101, obj("type", "divider")))), "invalid_arguments"},

		{"agents.sessions.setStatus", session("status", "suspended", "title", n(200)), ""},
		{"agents.sessions.setStatus", session("status", "busy"), "invalid_arguments"},
		{"agents.sessions.setStatus", session("status", "active", "title", n(201)), "invalid_arguments"},
		{"agents.sessions.setStatus", session("status", "active", "thread_ts", gone), "thread_not_found"},
		{"agents.sessions.setStatus", obj("channel_id", "CGENERAL", "status", "active"), "invalid_thread_ts"},
		{"agents.sessions.setStatus", session("status", "active", "initiator_user_id", "WEVE"), "user_not_in_channel"},
		{"agents.sessions.rename", session("title", ""), "invalid_arguments"},
		{"agents.sessions.rename", session("title", n(201)), "invalid_arguments"},
		{"assistant.threads.setStatus", session("status", "x", "loading_messages", many(10, "m")), ""},
		{"assistant.threads.setStatus", session("status", "x", "loading_messages", many(11, "m")), "invalid_arguments"},
		{"assistant.threads.setSuggestedPrompts", session("prompts", many(4, obj("title", "t", "message", "m"))), ""},
		{"assistant.threads.setSuggestedPrompts", session("prompts", many(5, obj("title", "t", "message", "m"))), "invalid_arguments"},
		{"assistant.threads.setTitle", session("title", ""), "invalid_arguments"},

		{"files.completeUploadExternal", obj("files", []any{obj("id", "F1")}), "file_not_found"},
		{"files.completeUploadExternal", obj("files", []any{}), "invalid_arguments"},
		{"apps.connections.open", obj(), "not_allowed_token_type"},
		{"chat.sing", obj(), "unknown_method"},
	}
	for i, tt := range tests {
		t.Run(fmt.Sprintf("%d %s %s", i, tt.method, tt.want), func(t *testing.T) {
			got := w.json(tt.method, tt.given)
			word, _ := got["error"].(string)
			if word != tt.want || (got["ok"] == true) != (tt.want == "") {
				t.Errorf("got %v, want %q", got, tt.want)
			}
			calls := w.Calls()
			if last := calls[len(calls)-1]; last.Error != tt.want || last.Method != tt.method {
				t.Errorf("journal: got %+v", last)
			}
		})
	}
}

// TestEachLimitOfAModalIsKept opens views with what fits and with one too much.
func TestEachLimitOfAModalIsKept(t *testing.T) {
	view := func(changes ...any) map[string]any {
		v := obj("type", "modal", "title", plain("T"), "blocks", []any{obj("type", "divider")})
		for i := 0; i < len(changes); i += 2 {
			v[changes[i].(string)] = changes[i+1]
		}
		return v
	}
	input := func(element ...any) []any {
		e := obj(append([]any{"type", "plain_text_input", "action_id", "a"}, element...)...)
		return []any{obj("type", "input", "label", plain("L"), "element", e)}
	}
	submit := plain("S")
	tests := []struct {
		name      string
		fits, too map[string]any
		want      string
	}{
		{"title", view("title", plain(n(24))), view("title", plain(n(25))), ""},
		{"a title there is", view(), view("title", nil), ""},
		{"submit", view("submit", plain(n(24))), view("submit", plain(n(25))), ""},
		{"close", view("close", plain(n(24))), view("close", plain(n(25))), ""},
		{"private_metadata", view("private_metadata", n(3000)), view("private_metadata", n(3001)), ""},
		{"callback_id", view("callback_id", n(255)), view("callback_id", n(256)), ""},
		{"external_id", view("external_id", n(255)), view("external_id", n(256)), ""},
		{"blocks", view("blocks", many(100, obj("type", "divider"))), view("blocks", many(101, obj("type", "divider"))), ""},
		{"input wants submit", view("blocks", input(), "submit", submit), view("blocks", input()), ""},
		{"max_length", view("blocks", input("max_length", 3000), "submit", submit),
			view("blocks", input("max_length", 3001), "submit", submit), ""},
		{"initial_value", view("blocks", input("initial_value", n(3000)), "submit", submit),
			view("blocks", input("initial_value", n(3001)), "submit", submit), ""},
		{"placeholder", view("blocks", input("placeholder", plain(n(150))), "submit", submit),
			view("blocks", input("placeholder", plain(n(151))), "submit", submit), ""},
		{"size", view("blocks", many(60, section(n(2900)))), view("blocks", many(90, section(n(2900)))), "view_too_large"},
		{"type", view(), view("type", "home"), ""},
		{"unknown fields", view(), view("colour", "red"), ""},
		{"no markdown blocks", view(), view("blocks", []any{obj("type", "markdown", "text", "x")}), ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, nil)
			ts := w.post("CGENERAL", text("card"), slack.MsgOptionBlocks(buttons("approve", "v1")))
			w.listen()
			if tt.want == "" {
				tt.want = "invalid_arguments"
			}
			open := func(v map[string]any) map[string]any {
				return w.json("views.open", obj("trigger_id", w.press(ts)["trigger_id"], "view", v))
			}
			if got := open(tt.fits); got["ok"] != true {
				t.Errorf("what fits: got %v", got)
			}
			if got := open(tt.too); got["error"] != tt.want {
				t.Errorf("one too much: got %v, want %s", got, tt.want)
			}
		})
	}
}

func TestViewsStackThreeHigh(t *testing.T) {
	w := newWorld(t, nil)
	ts := w.post("CGENERAL", text("card"), slack.MsgOptionBlocks(buttons("approve", "v1")))
	w.listen()
	var got []string
	for i := range 4 {
		trigger, _ := w.press(ts)["trigger_id"].(string)
		var err error
		if i == 0 {
			_, err = w.api.OpenView(trigger, modal())
		} else {
			_, err = w.api.PushView(trigger, modal())
		}
		got = append(got, code(err))
	}
	if want := []string{"", "", "", "push_limit_reached"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestLongTextsAreSplitAndCut(t *testing.T) {
	w := newWorld(t, nil)
	got := w.json("chat.postMessage", obj("channel", "CGENERAL", "text", n(3000)+"\n"+n(3000)))
	ms := w.Messages("CGENERAL")
	if len(ms) != 2 || got["ts"] != ms[0].TS || len(ms[0].Text)+len(ms[1].Text) != 6001 {
		t.Errorf("got %d messages, %v", len(ms), got["ts"])
	}
	got = w.json("chat.postMessage", obj("channel", "DALICE", "text", n(40001), "blocks", []any{section("x")}))
	ms = w.Messages("DALICE")
	if got["warning"] != "message_truncated" || len(ms) != 1 || len(ms[0].Text) != 40000 {
		t.Errorf("got %v and %d messages", got["warning"], len(ms))
	}
}

func TestMissingBlockIDsAreFilledInAndTextIsKeptAsSent(t *testing.T) {
	w := newWorld(t, nil)
	w.json("chat.postMessage", obj("channel", "CGENERAL", "text", "a &lt; b <@UALICE>", "blocks",
		[]any{section("x &amp; y"), actions(obj("type", "button", "text", plain("B")))}))
	m := w.Messages("CGENERAL")[0]
	if m.Text != "a &lt; b <@UALICE>" || !strings.Contains(string(m.Blocks), "x &amp; y") {
		t.Errorf("got %q %s", m.Text, m.Blocks)
	}
	var blocks []map[string]any
	if err := json.Unmarshal(m.Blocks, &blocks); err != nil {
		t.Fatal(err)
	}
	b := blocks[1]["elements"].([]any)[0].(map[string]any)
	if blocks[0]["block_id"] == nil || blocks[0]["block_id"] == blocks[1]["block_id"] || b["action_id"] == nil {
		t.Errorf("got %s", m.Blocks)
	}
}

func TestTiersAreEnforcedWhenAsked(t *testing.T) {
	call := func(w *world, method string) (int, string) {
		status, h, _ := w.call(method, "application/x-www-form-urlencoded", "xoxb-twin", "channel=CGENERAL&text=x&user=UALICE")
		return status, h.Get("Retry-After")
	}
	tests := []struct {
		method string
		passes int
	}{
		{"chat.startStream", 20}, {"users.list", 20}, {"chat.update", 50}, {"conversations.replies", 50},
		{"chat.postEphemeral", 100}, {"users.info", 100},
	}
	for _, tt := range tests {
		t.Run(tt.method, func(t *testing.T) {
			w := newWorld(t, func(o *Options) { o.Enforce = true })
			for i := range tt.passes {
				if status, _ := call(w, tt.method); status != 200 {
					t.Fatalf("call %d: got %d", i+1, status)
				}
			}
			w.clock.Advance(20*time.Second + time.Millisecond)
			if status, after := call(w, tt.method); status != 429 || after != "40" {
				t.Errorf("one more: got %d after %q, want 429 after 40", status, after)
			}
			if status, _ := call(w, "reactions.get"); status != 200 {
				t.Errorf("another method: got %d", status)
			}
			w.clock.Advance(40 * time.Second)
			if status, _ := call(w, tt.method); status != 200 {
				t.Errorf("after Retry-After: got %d", status)
			}
		})
	}
	t.Run("without enforcement", func(t *testing.T) {
		w := newWorld(t, nil)
		for range 30 {
			if status, _ := call(w, "users.list"); status != 200 {
				t.Fatalf("got %d", status)
			}
		}
	})
}

func TestPostsArePacedByChannel(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.Enforce = true })
	for range 5 {
		w.post("CGENERAL", text("burst"))
	}
	_, _, err := w.api.PostMessage("CGENERAL", text("too soon"))
	limited, ok := err.(*slack.RateLimitedError)
	if !ok || limited.RetryAfter != 5*time.Second {
		t.Fatalf("got %v", err)
	}
	w.post("DALICE", text("elsewhere"))
	w.clock.Advance(limited.RetryAfter)
	w.post("CGENERAL", text("in time"))
}
