package slacktwin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// view is an open modal, or somebody's Home. raw is what the bot gave, with the ids of blocks.
type view struct {
	View
	raw map[string]any
}

// Views returns the open modals of a person, the topmost last.
func (t *Twin) Views(user string) []View {
	t.mu.Lock()
	defer t.mu.Unlock()
	var vs []View
	for _, v := range t.views[user] {
		vs = append(vs, v.View)
	}
	return vs
}

func (t *Twin) viewsOpen(a args) (map[string]any, error) {
	tr, v, err := t.triggered(a)
	if err != nil {
		return nil, err
	}
	tr.used = true
	t.views[tr.user] = nil
	t.show(v, tr.user)
	return t.viewAnswer(v), nil
}

func (t *Twin) viewsPush(a args) (map[string]any, error) {
	tr, v, err := t.triggered(a)
	if err != nil {
		return nil, err
	}
	if len(t.views[tr.user]) >= maxViewStack {
		return nil, refuse("push_limit_reached")
	}
	tr.used = true
	t.show(v, tr.user)
	return t.viewAnswer(v), nil
}

// triggered checks the trigger and the view, doc m/views.open.
func (t *Twin) triggered(a args) (*trigger, *view, error) {
	tr, ok := t.triggers[a["trigger_id"]]
	switch {
	case !ok:
		return nil, nil, refuse("invalid_trigger_id")
	case tr.used:
		return nil, nil, refuse("exchanged_trigger_id")
	case endsAfter(tr.at, t.opt.Now(), triggerLife):
		return nil, nil, refuse("expired_trigger_id")
	}
	v, err := t.readView(a["view"], "modal", nil)
	return tr, v, err
}

func (t *Twin) viewsUpdate(a args) (map[string]any, error) {
	old := t.findView(a["view_id"], a["external_id"])
	if old == nil {
		return nil, refuse("not_found")
	}
	if a["hash"] != "" && a["hash"] != old.Hash {
		return nil, refuse("hash_conflict")
	}
	v, err := t.readView(a["view"], old.Type, old)
	if err != nil {
		return nil, err
	}
	t.change(old, v)
	return t.viewAnswer(old), nil
}

func (t *Twin) viewsPublish(a args) (map[string]any, error) {
	if _, ok := t.users[a["user_id"]]; !ok {
		return nil, refuse("user_not_found")
	}
	i := slices.IndexFunc(t.homes, func(v *view) bool { return v.User == a["user_id"] })
	var old *view
	if i >= 0 {
		old = t.homes[i]
	}
	if old != nil && a["hash"] != "" && a["hash"] != old.Hash {
		return nil, refuse("hash_conflict")
	}
	v, err := t.readView(a["view"], "home", old)
	if err != nil {
		return nil, err
	}
	if old == nil {
		v.ID, v.User = t.newID("V"), a["user_id"]
		v.RootID = v.ID
		t.homes = append(t.homes, v)
		old = v
	}
	t.change(old, v)
	return t.viewAnswer(old), nil
}

func (t *Twin) findView(id, externalID string) *view {
	all := slices.Clone(t.homes)
	for _, stack := range t.views {
		all = append(all, stack...)
	}
	for _, v := range all {
		if (id != "" && v.ID == id) || (id == "" && externalID != "" && v.ExternalID == externalID) {
			return v
		}
	}
	return nil
}

// show puts a view on top of a person's stack.
func (t *Twin) show(v *view, user string) {
	v.ID, v.User, v.Hash = t.newID("V"), user, t.newTS()+".h"
	v.RootID = v.ID
	if stack := t.views[user]; len(stack) > 0 {
		v.RootID, v.PreviousID = stack[0].ID, stack[len(stack)-1].ID
	}
	t.views[user] = append(t.views[user], v)
	t.changed(Change{Kind: ViewChanged, User: user})
}

// change gives a view a new content under its old ids, and a new hash.
func (t *Twin) change(old, v *view) {
	v.ID, v.RootID, v.PreviousID, v.User = old.ID, old.RootID, old.PreviousID, old.User
	v.Hash = t.newTS() + ".h"
	*old = *v
	t.changed(Change{Kind: ViewChanged, User: old.User})
}

// readView checks a view, doc reference/views. old is what it replaces, if anything.
func (t *Twin) readView(raw, typ string, old *view) (*view, error) {
	if len(raw) > maxViewSize {
		return nil, refuse("view_too_large")
	}
	var j map[string]any
	if err := json.Unmarshal([]byte(raw), &j); err != nil {
		return nil, refuse("invalid_arguments", "must be a valid view [json-pointer:/view]")
	}
	c := &blockCheck{where: surface(typ), blockIDs: map[string]bool{}}
	if j["type"] != typ {
		c.wrong("/view/type", "must be %s", typ)
	}
	c.only(j, "/view", "title", "blocks", "close", "submit", "private_metadata", "callback_id", "clear_on_close",
		"notify_on_close", "external_id", "submit_disabled")
	blocks := c.viewBlocks(j)
	c.text(j, "private_metadata", "/view", 0, maxPrivate)
	c.text(j, "callback_id", "/view", 0, maxID)
	external, _ := c.text(j, "external_id", "/view", 0, maxID)
	if typ == "modal" {
		c.modal(j, blocks)
	}
	if len(c.problems) > 0 {
		return nil, refuse("invalid_arguments", c.problems...)
	}
	if other := t.findView("", external); other != nil && other != old {
		return nil, refuse("duplicate_external_id")
	}
	fillIDs(blocks, t.newID)
	return newView(j, blocks), nil
}

func (c *blockCheck) viewBlocks(j map[string]any) []any {
	blocks, ok := j["blocks"].([]any)
	if !ok {
		c.wrong("/view", "missing required field: blocks")
		return nil
	}
	c.blocks(blocks, "/view/blocks")
	return blocks
}

func (c *blockCheck) modal(j map[string]any, blocks []any) {
	c.object(j, "title", "/view", maxModalTitle, true, true)
	c.object(j, "close", "/view", maxModalTitle, true, false)
	c.object(j, "submit", "/view", maxModalTitle, true, slices.ContainsFunc(blocks, func(v any) bool {
		b, ok := v.(map[string]any)
		return ok && b["type"] == "input"
	}))
}

func newView(j map[string]any, blocks []any) *view {
	words := func(field string) string {
		o, _ := j[field].(map[string]any)
		s, _ := o["text"].(string)
		return s
	}
	str := func(field string) string { s, _ := j[field].(string); return s }
	notify, _ := j["notify_on_close"].(bool)
	return &view{raw: j, View: View{
		Type: str("type"), Title: words("title"), Submit: words("submit"), Close: words("close"),
		PrivateMetadata: str("private_metadata"), CallbackID: str("callback_id"), ExternalID: str("external_id"),
		NotifyOnClose: notify, Blocks: encode(blocks),
	}}
}

// viewJSON returns a view as Slack tells it, with what was filled in.
func (t *Twin) viewJSON(v *view, values map[string]any) map[string]any {
	if values == nil {
		values = map[string]any{}
	}
	j := map[string]any{
		"id": v.ID, "team_id": t.opt.Team, "app_id": t.opt.AppID, "bot_id": botID(t.opt.BotUser), "hash": v.Hash,
		"root_view_id": v.RootID, "previous_view_id": nil, "app_installed_team_id": t.opt.Team,
		"private_metadata": "", "callback_id": "", "external_id": "", "clear_on_close": false, "notify_on_close": false,
		"title": nil, "close": nil, "submit": nil,
	}
	if v.PreviousID != "" {
		j["previous_view_id"] = v.PreviousID
	}
	for key, value := range v.raw {
		j[key] = value
	}
	j["blocks"] = v.Blocks
	j["state"] = map[string]any{"values": values}
	return j
}

func (t *Twin) viewAnswer(v *view) map[string]any { return map[string]any{"view": t.viewJSON(v, nil)} }

// ViewErrors are the errors of a submission, by block_id.
type ViewErrors struct{ Errors map[string]string }

func (e *ViewErrors) Error() string {
	return fmt.Sprintf("slacktwin: the form was refused: %v", e.Errors)
}

// SubmitView fills the topmost form in, sends it and waits for the acknowledgement, at most 3 s. Values are by block_id and
// action_id; of menus they are the option's value. The error is *ViewErrors where the bot refuses values, and the form
// stays open then; Slack's client refuses missing and overlong ones by itself, in the same way.
func (t *Twin) SubmitView(
	ctx context.Context, user, viewID string, values map[string]map[string]string,
) error {
	t.mu.Lock()
	v := t.topView(user, viewID)
	if v == nil {
		t.mu.Unlock()
		return errors.New("slacktwin: this view is not open")
	}
	state, err := fill(v, values)
	if err != nil {
		t.mu.Unlock()
		return err
	}
	p := t.interaction("view_submission", user)
	p["view"] = t.viewJSON(v, state)
	p["response_urls"] = []any{}
	e := &envelope{kind: kindInteractive, typ: "view_submission", accepts: true, body: encode(p)}
	t.mu.Unlock()
	answer, err := t.interact(ctx, e)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.viewAction(v, answer)
}

func (t *Twin) topView(user, viewID string) *view {
	stack := t.views[user]
	if len(stack) == 0 || stack[len(stack)-1].ID != viewID {
		return nil
	}
	return stack[len(stack)-1]
}

// viewAction does what the answer to a submission says, doc interactivity/handling-user-interaction, response actions.
func (t *Twin) viewAction(v *view, body []byte) error {
	var p struct {
		Action string            `json:"response_action"`
		Errors map[string]string `json:"errors"`
		View   json.RawMessage   `json:"view"`
	}
	if len(strings.TrimSpace(string(body))) > 0 {
		if err := json.Unmarshal(body, &p); err != nil {
			return fmt.Errorf("slacktwin: the answer to the submission is no JSON: %w", err)
		}
	}
	switch p.Action {
	case "":
		t.views[v.User] = slices.DeleteFunc(t.views[v.User], func(x *view) bool { return x == v })
	case "clear":
		delete(t.views, v.User)
	case "errors":
		for id := range p.Errors {
			if findBlock(v.Blocks, id) == nil {
				return fmt.Errorf("slacktwin: errors for block %q, which the view does not have", id)
			}
		}
		return &ViewErrors{p.Errors}
	case "update", "push":
		return t.viewReplacement(v, p.Action, string(p.View))
	default:
		return fmt.Errorf("slacktwin: unknown response_action %q", p.Action)
	}
	t.changed(Change{Kind: ViewChanged, User: v.User})
	return nil
}

func (t *Twin) viewReplacement(v *view, action, raw string) error {
	old := v
	if action == "push" {
		old = nil
	}
	next, err := t.readView(raw, "modal", old)
	if err != nil {
		return fmt.Errorf("slacktwin: response_action %s: %w", action, err)
	}
	if action == "update" {
		t.change(v, next)
		return nil
	}
	if len(t.views[v.User]) >= maxViewStack {
		return errors.New("slacktwin: response_action push: push_limit_reached")
	}
	t.show(next, v.User)
	return nil
}

// CloseView dismisses the topmost form. The bot hears of it if the view says notify_on_close.
func (t *Twin) CloseView(ctx context.Context, user, viewID string) error {
	t.mu.Lock()
	v := t.topView(user, viewID)
	if v == nil {
		t.mu.Unlock()
		return errors.New("slacktwin: this view is not open")
	}
	t.views[user] = slices.DeleteFunc(t.views[user], func(x *view) bool { return x == v })
	t.changed(Change{Kind: ViewChanged, User: user})
	p := t.interaction("view_closed", user)
	delete(p, "trigger_id")
	p["view"] = t.viewJSON(v, nil)
	p["is_cleared"] = false
	notify := v.NotifyOnClose
	t.mu.Unlock()
	if !notify {
		return nil
	}
	_, err := t.interact(ctx, &envelope{kind: kindInteractive, typ: "view_closed", body: encode(p)})
	return err
}

// fill returns view.state.values, and refuses what Slack's client refuses.
func fill(v *view, values map[string]map[string]string) (map[string]any, error) {
	var blocks []map[string]any
	if err := json.Unmarshal(v.Blocks, &blocks); err != nil {
		return nil, fmt.Errorf("slacktwin: view: %w", err)
	}
	state, wrong := map[string]any{}, map[string]string{}
	for _, b := range blocks {
		id, _ := b["block_id"].(string)
		for _, e := range interactive(b) {
			actionID, _ := e["action_id"].(string)
			value, given := values[id][actionID]
			if b["type"] != "input" {
				continue
			}
			if !given {
				value, _ = e["initial_value"].(string)
			}
			filled, problem := fillElement(e, value, b["optional"] == true)
			if problem != "" {
				wrong[id] = problem
			}
			state[id] = map[string]any{actionID: filled}
		}
	}
	for id, given := range values {
		if _, ok := state[id]; !ok && len(given) > 0 {
			return nil, fmt.Errorf("slacktwin: the view has no input block %q", id)
		}
	}
	if len(wrong) > 0 {
		return nil, &ViewErrors{wrong}
	}
	return state, nil
}

func fillElement(e map[string]any, value string, optional bool) (filled map[string]any, problem string) {
	typ, _ := e["type"].(string)
	filled = map[string]any{"type": typ}
	if value == "" {
		if !optional {
			return nil, "Please complete this required field."
		}
		filled["value"] = nil
		return filled, ""
	}
	if typ != "plain_text_input" {
		action, err := used(e, "", value)
		if err != nil {
			return nil, err.Error()
		}
		filled["selected_option"] = action["selected_option"]
		return filled, ""
	}
	most, least := float64(maxInputText), 0.0
	if n, ok := e["max_length"].(float64); ok {
		most = n
	}
	if n, ok := e["min_length"].(float64); ok {
		least = n
	}
	n := float64(utf8.RuneCountInString(value))
	if n > most || n < least {
		return nil, fmt.Sprintf("Must be between %g and %g characters.", least, most)
	}
	filled["value"] = value
	return filled, ""
}

func findBlock(raw json.RawMessage, id string) map[string]any {
	var blocks []map[string]any
	if err := json.Unmarshal(raw, &blocks); err != nil {
		return nil
	}
	for _, b := range blocks {
		if b["block_id"] == id {
			return b
		}
	}
	return nil
}
