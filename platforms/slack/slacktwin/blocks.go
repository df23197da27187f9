package slacktwin

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"
)

// surface is where blocks are shown.
type surface string

const (
	inMessage surface = "message"
	inStream  surface = "stream" // chunks and stopStream take what agents show, too
	inModal   surface = "modal"
	inHome    surface = "home"
)

// checkBlocks reads blocks as Slack does and returns them with the missing block_ids and action_ids filled in; nil if
// there are none. The error says what is wrong with each, by JSON pointer, as Slack does.
func checkBlocks(raw string, where surface, newID func(string) string) (json.RawMessage, error) {
	if raw == "" || raw == "null" {
		return nil, nil
	}
	var blocks []any
	if err := json.Unmarshal([]byte(raw), &blocks); err != nil {
		return nil, refuse("invalid_blocks_format")
	}
	if len(blocks) == 0 {
		return nil, nil
	}
	c := &blockCheck{where: where, blockIDs: map[string]bool{}}
	c.blocks(blocks, "/blocks")
	if len(c.problems) > 0 {
		return nil, refuse("invalid_blocks", c.problems...)
	}
	if c.tooLong() {
		return nil, refuse("msg_blocks_too_long")
	}
	fillIDs(blocks, newID)
	return encode(blocks), nil
}

// blockCheck collects what is wrong with blocks. Pointers are JSON pointers from the argument on.
type blockCheck struct {
	where    surface
	problems []string
	blockIDs map[string]bool
	chars    int // of all text but markdown blocks
	markdown int // of markdown blocks
}

func (c *blockCheck) tooLong() bool {
	if c.where == inModal || c.where == inHome {
		return false
	}
	return c.chars > maxBlockChars || c.chars+c.markdown > maxAllBlockChars
}

func (c *blockCheck) wrong(at, format string, a ...any) {
	c.problems = append(c.problems, fmt.Sprintf(format, a...)+" [json-pointer:"+at+"]")
}

func (c *blockCheck) blocks(blocks []any, at string) {
	limit := maxMessageBlocks
	if c.where == inModal || c.where == inHome {
		limit = maxViewBlocks
	}
	if len(blocks) > limit {
		c.wrong(at, "no more than %d items allowed", limit)
	}
	for i, b := range blocks {
		here := fmt.Sprintf("%s/%d", at, i)
		block, ok := b.(map[string]any)
		if !ok {
			c.wrong(here, "must be an object")
			continue
		}
		c.block(block, here)
	}
	if c.markdown > maxMarkdownBlocks {
		c.wrong(at, "markdown blocks must be less than %d characters together", maxMarkdownBlocks+1)
	}
}

func (c *blockCheck) block(b map[string]any, at string) {
	if id, ok := c.text(b, "block_id", at, 0, maxID); ok && id != "" {
		if c.blockIDs[id] {
			c.wrong(at+"/block_id", "`block_id` %q already exists", id)
		}
		c.blockIDs[id] = true
	}
	typ, _ := b["type"].(string)
	check, known := c.kinds()[typ]
	if !known {
		c.wrong(at+"/type", "unsupported type: %s", typ)
		return
	}
	check(b, at)
}

// kinds returns the blocks of a surface. Cards, carousels and alerts are refused in messages, but not in streams.
func (c *blockCheck) kinds() map[string]func(b map[string]any, at string) {
	kinds := map[string]func(map[string]any, string){
		"section": c.section, "divider": c.divider, "header": c.header, "context": c.context, "actions": c.actions,
		"image": c.image, "input": c.input, "rich_text": c.richText, "video": c.video,
	}
	if c.where == inMessage || c.where == inStream {
		kinds["markdown"] = c.markdownBlock
		kinds["table"] = c.table
		kinds["data_table"] = c.dataTable
		kinds["context_actions"] = c.contextActions
		kinds["plan"] = c.plan
		kinds["task_card"] = c.task
	}
	if c.where == inStream {
		kinds["card"] = c.card
		kinds["carousel"] = c.carousel
		kinds["alert"] = func(map[string]any, string) {}
	}
	return kinds
}

// only complains of fields that a block does not have.
func (c *blockCheck) only(b map[string]any, at string, fields ...string) {
	var unknown []string
	for key := range b {
		if key != "type" && key != "block_id" && !slices.Contains(fields, key) {
			unknown = append(unknown, key)
		}
	}
	slices.Sort(unknown)
	for _, key := range unknown {
		c.wrong(at, "invalid additional property: %s", key)
	}
}

// text checks a string field of least to most characters. A missing one is no problem if least is 0.
func (c *blockCheck) text(b map[string]any, field, at string, least, most int) (string, bool) {
	v, given := b[field]
	if !given || v == nil {
		if least > 0 {
			c.wrong(at, "missing required field: %s", field)
		}
		return "", false
	}
	s, ok := v.(string)
	if !ok {
		c.wrong(at+"/"+field, "must be a string")
		return "", false
	}
	c.size(s, at+"/"+field, least, most)
	return s, true
}

func (c *blockCheck) size(s, at string, least, most int) {
	n := utf8.RuneCountInString(s)
	if n < least {
		c.wrong(at, "must be more than %d characters", least-1)
	}
	if n > most {
		c.wrong(at, "must be less than %d characters", most+1)
	}
}

// object checks a text object, doc reference/block-kit/composition-objects/text-object. plain allows plain_text only.
func (c *blockCheck) object(b map[string]any, field, at string, most int, plain, required bool) {
	v, given := b[field]
	if !given || v == nil {
		if required {
			c.wrong(at, "missing required field: %s", field)
		}
		return
	}
	o, ok := v.(map[string]any)
	if !ok {
		c.wrong(at+"/"+field, "must be an object")
		return
	}
	c.textObject(o, at+"/"+field, most, plain)
}

func (c *blockCheck) textObject(o map[string]any, at string, most int, plain bool) {
	switch typ, _ := o["type"].(string); {
	case typ == "mrkdwn" && plain:
		c.wrong(at+"/type", "must be plain_text")
	case typ == "mrkdwn":
		c.only(o, at, "text", "verbatim")
	case typ == "plain_text":
		c.only(o, at, "text", "emoji")
	default:
		c.wrong(at+"/type", "unsupported type: %s", typ)
	}
	s, _ := c.text(o, "text", at, 1, most)
	c.chars += utf8.RuneCountInString(s)
}

// items returns a list of objects of least to most entries.
func (c *blockCheck) items(b map[string]any, field, at string, least, most int) []map[string]any {
	v, given := b[field]
	list, ok := v.([]any)
	switch {
	case !given && least == 0:
		return nil
	case !given:
		c.wrong(at, "missing required field: %s", field)
	case !ok:
		c.wrong(at+"/"+field, "must be an array")
	case len(list) < least:
		c.wrong(at+"/"+field, "no less than %d items allowed", least)
	case len(list) > most:
		c.wrong(at+"/"+field, "no more than %d items allowed", most)
	}
	var out []map[string]any
	for i, v := range list {
		o, ok := v.(map[string]any)
		if !ok {
			c.wrong(fmt.Sprintf("%s/%s/%d", at, field, i), "must be an object")
			continue
		}
		out = append(out, o)
	}
	return out
}

func (c *blockCheck) section(b map[string]any, at string) {
	c.only(b, at, "text", "fields", "accessory", "expand")
	c.object(b, "text", at, maxSectionText, false, b["fields"] == nil)
	if b["fields"] != nil {
		for i, f := range c.items(b, "fields", at, 1, maxSectionFields) {
			c.textObject(f, fmt.Sprintf("%s/fields/%d", at, i), maxFieldText, false)
		}
	}
	if accessory, ok := b["accessory"].(map[string]any); ok {
		c.element(accessory, at+"/accessory", map[string]bool{})
	}
}

func (c *blockCheck) divider(b map[string]any, at string) { c.only(b, at) }

func (c *blockCheck) header(b map[string]any, at string) {
	c.only(b, at, "text", "level")
	c.object(b, "text", at, maxHeaderText, true, true)
}

func (c *blockCheck) context(b map[string]any, at string) {
	c.only(b, at, "elements")
	for i, e := range c.items(b, "elements", at, 1, maxContextItems) {
		here := fmt.Sprintf("%s/elements/%d", at, i)
		if e["type"] == "image" {
			c.imageFields(e, here)
			continue
		}
		c.textObject(e, here, maxContextText, false)
	}
}

func (c *blockCheck) actions(b map[string]any, at string) {
	c.only(b, at, "elements")
	ids := map[string]bool{}
	for i, e := range c.items(b, "elements", at, 1, maxActions) {
		c.element(e, fmt.Sprintf("%s/elements/%d", at, i), ids)
	}
}

func (c *blockCheck) contextActions(b map[string]any, at string) {
	c.only(b, at, "elements")
	ids := map[string]bool{}
	for i, e := range c.items(b, "elements", at, 1, maxContextActions) {
		here := fmt.Sprintf("%s/elements/%d", at, i)
		if typ, _ := e["type"].(string); typ != "feedback_buttons" && typ != "icon_button" {
			c.wrong(here+"/type", "unsupported type: %s", typ)
			continue
		}
		c.element(e, here, ids)
	}
}

func (c *blockCheck) image(b map[string]any, at string) {
	c.object(b, "title", at, maxAltText, true, false)
	c.imageFields(b, at)
}

func (c *blockCheck) imageFields(b map[string]any, at string) {
	c.text(b, "alt_text", at, 1, maxAltText)
	if b["slack_file"] == nil {
		c.link(b, "image_url", at, true)
	}
}

func (c *blockCheck) link(b map[string]any, field, at string, required bool) {
	least := 0
	if required {
		least = 1
	}
	s, ok := c.text(b, field, at, least, maxURL)
	if !ok || s == "" {
		return
	}
	if u, err := url.Parse(s); err != nil || u.Host == "" || !strings.HasPrefix(u.Scheme, "http") {
		c.wrong(at+"/"+field, "must be a valid URL")
	}
}

func (c *blockCheck) video(b map[string]any, at string) {
	c.object(b, "title", at, 199, true, true)
	c.text(b, "alt_text", at, 1, maxAltText)
	c.link(b, "video_url", at, true)
	c.link(b, "thumbnail_url", at, true)
}

func (c *blockCheck) input(b map[string]any, at string) {
	c.only(b, at, "label", "element", "hint", "optional", "dispatch_action")
	c.object(b, "label", at, maxInputLabel, true, true)
	c.object(b, "hint", at, maxInputLabel, true, false)
	e, ok := b["element"].(map[string]any)
	if !ok {
		c.wrong(at, "missing required field: element")
		return
	}
	if e["type"] == "button" {
		c.wrong(at+"/element/type", "unsupported type: button")
		return
	}
	c.element(e, at+"/element", map[string]bool{})
}

func (c *blockCheck) markdownBlock(b map[string]any, at string) {
	c.only(b, at, "text")
	s, _ := c.text(b, "text", at, 1, maxMarkdownText)
	c.markdown += utf8.RuneCountInString(s)
}

// richText counts the text inside, at any depth.
func (c *blockCheck) richText(b map[string]any, at string) {
	c.only(b, at, "elements")
	for i, e := range c.items(b, "elements", at, 0, 1<<20) {
		typ, _ := e["type"].(string)
		known := []string{"rich_text_section", "rich_text_list", "rich_text_preformatted", "rich_text_quote"}
		if !slices.Contains(known, typ) {
			c.wrong(fmt.Sprintf("%s/elements/%d/type", at, i), "unsupported type: %s", typ)
		}
	}
	c.chars += textInside(b["elements"])
}

func textInside(v any) int {
	n := 0
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			n += textInside(e)
		}
	case map[string]any:
		for key, e := range v {
			if s, ok := e.(string); ok && key == "text" {
				n += utf8.RuneCountInString(s)
				continue
			}
			n += textInside(e)
		}
	}
	return n
}

func (c *blockCheck) table(b map[string]any, at string) {
	c.rows(b, at, maxTableRows, maxTableCells, maxTableChars)
}

func (c *blockCheck) dataTable(b map[string]any, at string) {
	c.rows(b, at, maxDataTableRows, maxTableCells, maxDataTableChars)
}

func (c *blockCheck) rows(b map[string]any, at string, rows, cells, chars int) {
	list, _ := b["rows"].([]any)
	if len(list) == 0 {
		c.wrong(at, "missing required field: rows")
	}
	if len(list) > rows {
		c.wrong(at+"/rows", "no more than %d items allowed", rows)
	}
	for i, row := range list {
		here := fmt.Sprintf("%s/rows/%d", at, i)
		cellList, ok := row.([]any)
		if !ok {
			c.wrong(here, "must be an array")
		}
		if len(cellList) > cells {
			c.wrong(here, "no more than %d items allowed", cells)
		}
		for j, cell := range cellList {
			if textInside(cell) == 0 {
				c.wrong(fmt.Sprintf("%s/%d/text", here, j), "must be more than 0 characters")
			}
		}
	}
	n := textInside(b["rows"])
	if n > chars {
		c.wrong(at+"/rows", "must be less than %d characters", chars+1)
	}
	c.chars += n
}

func (c *blockCheck) plan(b map[string]any, at string) {
	c.text(b, "title", at, 1, maxChunkText)
	for i, task := range c.items(b, "tasks", at, 0, maxPlanTasks) {
		c.task(task, fmt.Sprintf("%s/tasks/%d", at, i))
	}
}

func (c *blockCheck) task(b map[string]any, at string) {
	c.text(b, "task_id", at, 1, maxID)
	c.text(b, "title", at, 1, maxChunkText)
}

func (c *blockCheck) card(b map[string]any, at string) {
	c.object(b, "title", at, maxCardTitle, false, false)
	c.object(b, "body", at, maxCardBody, false, false)
	ids := map[string]bool{}
	for i, e := range c.items(b, "actions", at, 0, maxCardActions) {
		c.element(e, fmt.Sprintf("%s/actions/%d", at, i), ids)
	}
}

func (c *blockCheck) carousel(b map[string]any, at string) {
	for i, card := range c.items(b, "elements", at, 1, 10) {
		c.card(card, fmt.Sprintf("%s/elements/%d", at, i))
	}
}

// element checks what can be used; ids are the action_ids of the block.
func (c *blockCheck) element(e map[string]any, at string, ids map[string]bool) {
	if id, ok := c.text(e, "action_id", at, 0, maxID); ok && id != "" {
		if ids[id] {
			c.wrong(at+"/action_id", "`action_id` %q already exists", id)
		}
		ids[id] = true
	}
	c.confirm(e, at)
	c.object(e, "placeholder", at, maxPlaceholder, true, false)
	switch typ, _ := e["type"].(string); typ {
	case "button", "workflow_button":
		c.button(e, at)
	case "image":
		c.imageFields(e, at)
	case "plain_text_input":
		c.textInput(e, at)
	case "static_select", "multi_static_select":
		c.options(e, at, maxSelectOptions)
	case "radio_buttons", "checkboxes":
		c.options(e, at, maxRadioOptions)
	case "overflow":
		c.options(e, at, maxOverflow)
	case "feedback_buttons":
		c.feedback(e, "positive_button", at)
		c.feedback(e, "negative_button", at)
	case "icon_button":
		c.text(e, "icon", at, 1, maxID)
		c.object(e, "text", at, maxButtonText, true, true)
		c.text(e, "value", at, 0, maxValue)
	case "users_select", "conversations_select", "channels_select", "external_select", "multi_users_select",
		"multi_conversations_select", "multi_channels_select", "multi_external_select", "datepicker", "timepicker",
		"datetimepicker", "email_text_input", "url_text_input", "number_input", "file_input", "rich_text_input":
	default:
		c.wrong(at+"/type", "unsupported type: %s", typ)
	}
}

func (c *blockCheck) button(e map[string]any, at string) {
	c.only(e, at, "text", "action_id", "url", "value", "style", "confirm", "accessibility_label", "workflow")
	c.object(e, "text", at, maxButtonText, true, true)
	c.text(e, "value", at, 0, maxValue)
	c.text(e, "accessibility_label", at, 0, maxAccessibility)
	c.link(e, "url", at, false)
	if style, given := e["style"]; given && style != "primary" && style != "danger" {
		c.wrong(at+"/style", "must be one of: primary, danger")
	}
}

func (c *blockCheck) feedback(e map[string]any, field, at string) {
	b, ok := e[field].(map[string]any)
	if !ok {
		c.wrong(at, "missing required field: %s", field)
		return
	}
	c.object(b, "text", at+"/"+field, maxButtonText, true, true)
	c.text(b, "value", at+"/"+field, 1, maxValue)
}

func (c *blockCheck) textInput(e map[string]any, at string) {
	c.only(e, at, "action_id", "initial_value", "multiline", "min_length", "max_length", "dispatch_action_config",
		"focus_on_load", "placeholder")
	c.text(e, "initial_value", at, 0, maxInputText)
	for _, field := range []string{"min_length", "max_length"} {
		if n, ok := e[field].(float64); ok && (n < 0 || n > maxInputText) {
			c.wrong(at+"/"+field, "must be less than %d", maxInputText+1)
		}
	}
}

func (c *blockCheck) options(e map[string]any, at string, most int) {
	if e["option_groups"] != nil {
		for i, g := range c.items(e, "option_groups", at, 1, maxSelectOptions) {
			c.options(g, fmt.Sprintf("%s/option_groups/%d", at, i), most)
		}
		return
	}
	for i, o := range c.items(e, "options", at, 1, most) {
		here := fmt.Sprintf("%s/options/%d", at, i)
		c.object(o, "text", here, maxOptionText, false, true)
		c.object(o, "description", here, maxOptionText, false, false)
		c.text(o, "value", here, 1, maxOptionValue)
	}
}

func (c *blockCheck) confirm(e map[string]any, at string) {
	v, given := e["confirm"]
	if !given || v == nil {
		return
	}
	o, ok := v.(map[string]any)
	if !ok {
		c.wrong(at+"/confirm", "must be an object")
		return
	}
	at += "/confirm"
	c.only(o, at, "title", "text", "confirm", "deny", "style")
	c.object(o, "title", at, maxConfirmTitle, true, true)
	c.object(o, "text", at, maxConfirmText, false, true)
	c.object(o, "confirm", at, maxConfirmButton, true, true)
	c.object(o, "deny", at, maxConfirmButton, true, true)
}

// fillIDs gives blocks and elements the ids that the sender left out. Of markdown blocks Slack keeps none.
func fillIDs(blocks []any, newID func(string) string) {
	for _, v := range blocks {
		b := v.(map[string]any)
		if b["type"] == "markdown" {
			delete(b, "block_id")
			continue
		}
		if id, _ := b["block_id"].(string); id == "" {
			b["block_id"] = newID("b")
		}
		elements, _ := b["elements"].([]any)
		for _, v := range append([]any{b["accessory"], b["element"]}, elements...) {
			if e, ok := v.(map[string]any); ok && e["type"] == "button" && e["action_id"] == nil {
				e["action_id"] = newID("a")
			}
		}
	}
}
