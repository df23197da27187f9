package slacktwin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
)

// interactions is what presses, forms and commands leave behind.
type interactions struct {
	triggers  map[string]*trigger
	responses map[string]*responseURL
	views     map[string][]*view // by user, the topmost last
	homes     []*view
}

// trigger is a trigger_id: 3 s, once, doc interactivity/handling-user-interaction.
type trigger struct {
	user string
	at   time.Time
	used bool
}

// responseURL lets the bot answer where it may be no member: 5 times in 30 min.
type responseURL struct {
	room     *room
	user     string
	original *message // nil for a command
	thread   string
	at       time.Time
	uses     int
}

func (t *Twin) newTrigger(user string) string {
	id := t.newID("") + "." + t.opt.Team + "." + strings.ReplaceAll(newUUID(), "-", "")
	t.triggers[id] = &trigger{user: user, at: t.opt.Now()}
	return id
}

func (t *Twin) newResponseURL(r responseURL) string {
	id := t.newID("R")
	r.at = t.opt.Now()
	t.responses[id] = &r
	return t.url + "/response/" + id
}

// Click presses a button, as it is shown now, and waits for the acknowledgement, at most 3 s. It sees messages of the
// channel and ephemeral ones of that person. The error says that there is no such button, or that the press failed.
func (t *Twin) Click(ctx context.Context, user, channel, ts, actionID string) error {
	return t.Choose(ctx, user, channel, ts, actionID, "")
}

// Choose presses a button or chooses the option with that value in a menu, radio buttons, or feedback buttons.
func (t *Twin) Choose(ctx context.Context, user, channel, ts, actionID, value string) error {
	t.mu.Lock()
	e, err := t.press(user, channel, ts, actionID, value)
	t.mu.Unlock()
	if err != nil {
		return err
	}
	_, err = t.interact(ctx, e)
	return err
}

// press builds block_actions, doc reference/interaction-payloads/block_actions-payload.
func (t *Twin) press(user, channel, ts, actionID, value string) (*envelope, error) {
	r, err := t.place(user, channel)
	if err != nil {
		return nil, err
	}
	if !r.has(user) {
		return nil, personal("not_in_channel")
	}
	m := t.shown(r, user, ts)
	if m == nil {
		return nil, personal("message_not_found")
	}
	action, err := findAction(m.Blocks, actionID, value)
	if err != nil {
		return nil, err
	}
	action["action_ts"] = t.newTS()
	container := map[string]any{
		"type": "message", "message_ts": m.TS, "channel_id": r.ID, "is_ephemeral": m.Ephemeral,
	}
	set(container, "thread_ts", m.ThreadTS)
	p := t.interaction("block_actions", user)
	p["container"] = container
	p["channel"] = map[string]any{"id": r.ID, "name": payloadName(&r.Channel)}
	p["actions"] = []any{action}
	p["state"] = map[string]any{"values": map[string]any{}}
	p["response_url"] = t.newResponseURL(responseURL{room: r, user: user, original: m, thread: m.ThreadTS})
	if !m.Ephemeral {
		p["message"] = t.wire(m, false)
	}
	return &envelope{kind: kindInteractive, typ: "block_actions", channel: r.ID, ts: m.TS, body: encode(p)}, nil
}

// shown returns a message that a person sees.
func (t *Twin) shown(r *room, user, ts string) *message {
	if m := r.find(ts); m != nil {
		return m
	}
	i := slices.IndexFunc(t.ephemerals, func(m *message) bool { return m.To == user && m.Channel == r.ID && m.TS == ts })
	if i < 0 {
		return nil
	}
	return t.ephemerals[i]
}

// payloadName returns a channel's name as interactions and commands tell it.
func payloadName(c *Channel) string {
	switch {
	case c.IM:
		return "directmessage"
	case c.Private:
		return "privategroup"
	}
	return c.Name
}

// interaction returns what all interactions have.
func (t *Twin) interaction(typ, user string) map[string]any {
	u := t.users[user]
	return map[string]any{
		"type": typ, "api_app_id": t.opt.AppID, "token": "verification-token", "trigger_id": t.newTrigger(user),
		"team": map[string]any{"id": t.opt.Team, "domain": strings.ToLower(t.opt.TeamName)},
		"user": map[string]any{
			"id": u.ID, "username": strings.ToLower(u.Name), "name": strings.ToLower(u.Name), "team_id": u.Team,
		},
		"enterprise": nil, "is_enterprise_install": false,
	}
}

// interact delivers once: Slack does not send interactions and commands again. It is called without mu.
func (t *Twin) interact(ctx context.Context, e *envelope) ([]byte, error) {
	t.mu.Lock()
	fault := t.deliveryFault(e, 0)
	if fault == nil {
		fault = &Fault{}
	}
	closed := t.closed
	t.mu.Unlock()
	if closed {
		return nil, errClosed
	}
	if fault.Lose {
		return nil, errors.New("slacktwin: operation_timeout: it was lost on the way")
	}
	for range fault.Duplicate {
		t.deliver(ctx, e, 0, "", &Fault{})
	}
	out := t.deliver(ctx, e, 0, "", fault)
	if out.Acked {
		return out.answer, nil
	}
	if out.Status != 0 {
		return nil, fmt.Errorf("slacktwin: dispatch_failed: the bot answered %d", out.Status)
	}
	return nil, fmt.Errorf("slacktwin: operation_timeout: %s", out.Error)
}

// findAction returns what block_actions tells of an element that a person can use.
func findAction(raw json.RawMessage, actionID, value string) (map[string]any, error) {
	var blocks []map[string]any
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &blocks); err != nil {
			return nil, fmt.Errorf("slacktwin: blocks: %w", err)
		}
	}
	for _, b := range blocks {
		for _, element := range interactive(b) {
			if id, _ := element["action_id"].(string); id == actionID {
				blockID, _ := b["block_id"].(string)
				return used(element, blockID, value)
			}
		}
	}
	return nil, fmt.Errorf("slacktwin: there is no %q to press", actionID)
}

// interactive returns the elements of a block that have an action_id.
func interactive(b map[string]any) []map[string]any {
	var found []map[string]any
	add := func(v any) {
		if e, ok := v.(map[string]any); ok && e["action_id"] != nil {
			found = append(found, e)
		}
	}
	add(b["accessory"])
	add(b["element"])
	for _, key := range []string{"elements", "actions"} {
		list, _ := b[key].([]any)
		for _, e := range list {
			add(e)
		}
	}
	return found
}

// used describes the use of one element, doc reference/interaction-payloads/block_actions-payload.
func used(element map[string]any, blockID, value string) (map[string]any, error) {
	action := map[string]any{"block_id": blockID, "action_id": element["action_id"], "type": element["type"]}
	switch element["type"] {
	case "button", "workflow_button", "icon_button":
		for _, key := range []string{"text", "value", "style", "url", "confirm"} {
			if v, ok := element[key]; ok {
				action[key] = v
			}
		}
		return action, nil
	case "feedback_buttons":
		for _, key := range []string{"positive_button", "negative_button"} {
			if b, _ := element[key].(map[string]any); b != nil && b["value"] == value {
				action["text"], action["value"] = b["text"], value
				return action, nil
			}
		}
	case "static_select", "radio_buttons", "overflow":
		options, _ := element["options"].([]any)
		for _, o := range options {
			if option, _ := o.(map[string]any); option != nil && option["value"] == value {
				action["selected_option"] = option
				return action, nil
			}
		}
	}
	return nil, fmt.Errorf("slacktwin: %q has no %q to choose", element["action_id"], value)
}

// Command runs a slash command ("/status") and shows what it is answered at once. It waits for the acknowledgement, at
// most 3 s.
func (t *Twin) Command(ctx context.Context, user, channel, command, text string) error {
	t.mu.Lock()
	r, err := t.place(user, channel)
	if err != nil {
		t.mu.Unlock()
		return err
	}
	u := t.users[user]
	e := &envelope{kind: kindCommands, typ: command, channel: channel, accepts: true, body: encode(map[string]string{
		"token": "verification-token", "team_id": t.opt.Team, "team_domain": strings.ToLower(t.opt.TeamName),
		"channel_id": channel, "channel_name": payloadName(&r.Channel), "user_id": user,
		"user_name": strings.ToLower(u.Name), "command": command, "text": text, "api_app_id": t.opt.AppID,
		"is_enterprise_install": "false", "trigger_id": t.newTrigger(user),
		"response_url": t.newResponseURL(responseURL{room: r, user: user}),
	})}
	t.mu.Unlock()
	answer, err := t.interact(ctx, e)
	if err != nil {
		return err
	}
	return t.showAnswer(r, user, answer)
}

// reply is what a command is answered with, at once or by response_url.
type reply struct {
	Text            string          `json:"text"`
	Blocks          json.RawMessage `json:"blocks"`
	Attachments     json.RawMessage `json:"attachments"`
	ResponseType    string          `json:"response_type"`
	ReplaceOriginal bool            `json:"replace_original"`
	DeleteOriginal  bool            `json:"delete_original"`
	ThreadTS        string          `json:"thread_ts"`
}

// showAnswer shows the body of a command's acknowledgement: text, or JSON. It is called without mu.
func (t *Twin) showAnswer(r *room, user string, body []byte) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	var p reply
	if err := json.Unmarshal(body, &p); err != nil {
		p = reply{Text: string(body)}
	}
	if p.Text == "" && empty(p.Blocks) {
		return nil
	}
	return t.respond(&responseURL{room: r, user: user}, p)
}

func empty(raw json.RawMessage) bool {
	return len(raw) == 0 || string(raw) == "null" || string(raw) == "[]"
}

// serveResponse is a response_url, doc interactivity/handling-user-interaction.
func (t *Twin) serveResponse(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err != nil {
		return
	}
	t.mu.Lock()
	err = t.useResponse(r.PathValue("id"), body)
	t.mu.Unlock()
	out := answerOf(map[string]any{}, err)
	if refused, ok := errors.AsType[*refusal](err); ok {
		out.status = http.StatusNotFound
		if !strings.HasSuffix(refused.code, "_url") {
			out.status = http.StatusBadRequest
		}
	}
	out.write(w)
}

func (t *Twin) useResponse(id string, body []byte) error {
	u, ok := t.responses[id]
	switch {
	case !ok:
		return refuse("invalid_url")
	case endsAfter(u.at, t.opt.Now(), responseLife):
		return refuse("expired_url")
	case u.uses >= responseUses:
		return refuse("used_url")
	}
	var p reply
	if err := json.Unmarshal(body, &p); err != nil {
		return refuse("invalid_payload")
	}
	if err := t.respond(u, p); err != nil {
		return err
	}
	u.uses++
	return nil
}

// respond posts, replaces or deletes. Without a response_type only the person who asked sees the answer.
func (t *Twin) respond(u *responseURL, p reply) error {
	if p.DeleteOriginal && u.original != nil {
		t.retract(u)
		return nil
	}
	a := args{"text": p.Text}
	if !empty(p.Blocks) {
		a["blocks"] = string(p.Blocks)
	}
	if !empty(p.Attachments) {
		a["attachments"] = string(p.Attachments)
	}
	c, err := t.readContent(a, inMessage)
	if err != nil {
		return err
	}
	if p.ReplaceOriginal && u.original != nil {
		t.replace(u, c)
		return nil
	}
	thread := p.ThreadTS
	if parent := u.room.find(thread); parent == nil || parent.isReply() {
		thread = ""
	}
	if p.ResponseType == "in_channel" {
		t.post(u.room, t.botMessage(c, thread))
		return nil
	}
	t.whisper(u.room, u.user, thread, c)
	return nil
}

func (t *Twin) retract(u *responseURL) {
	m := u.original
	if !m.Ephemeral {
		if u.room.find(m.TS) == m {
			t.remove(u.room, m)
		}
		return
	}
	t.ephemerals = slices.DeleteFunc(t.ephemerals, func(x *message) bool { return x == m })
	t.changed(Change{Kind: EphemeralChanged, Channel: m.Channel, TS: m.TS, Thread: m.top(), User: m.To})
}

func (t *Twin) replace(u *responseURL, c content) {
	m := u.original
	change := func() { m.Text, m.Markdown, m.Blocks, m.Attachments = c.text, c.markdown, c.blocks, c.attachments }
	if !m.Ephemeral {
		t.edit(u.room, m, change)
		return
	}
	change()
	t.changed(Change{Kind: EphemeralChanged, Channel: m.Channel, TS: m.TS, Thread: m.top(), User: m.To})
}
