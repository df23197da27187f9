package slack

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf16"

	"github.com/parley-chat/parley/platforms"
	"github.com/parley-chat/parley/platforms/markup"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestAnswers(t *testing.T) {
	for _, c := range []struct{ name, source, want string }{
		{"a plain answer is its text", "echo: hello", "echo: hello"},
		{"markup is Slack's", "**a** [b](http://c.d) <!here>", "*a* <http://c.d|b> &lt;!here&gt;"},
		{"nothing says so", " \n", "(no text)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := decodePart(t, render(platforms.Content{Markdown: c.source}))
			if len(got) != 1 || got[0].Text != c.want || got[0].Blocks != nil {
				t.Errorf("got %+v, want one message %q without blocks", got, c.want)
			}
		})
	}
}

func TestAnAnswerOfFourThousandBytesIsOneMessage(t *testing.T) {
	for _, c := range []struct{ size, want int }{{4000, 1}, {4001, 2}, {7800, 2}, {7801, 3}} {
		got := render(platforms.Content{Markdown: strings.Repeat("x", c.size)})
		if len(got) != c.want {
			t.Errorf("%d bytes: got %d messages, want %d", c.size, len(got), c.want)
		}
	}
}

func TestBytesCountNotCharacters(t *testing.T) {
	for _, m := range decodePart(t, render(platforms.Content{Markdown: strings.Repeat("日本語。", 1000)})) {
		if len(m.Text) > 3900 {
			t.Errorf("got %d bytes, want at most 3,900", len(m.Text))
		}
	}
}

func TestCards(t *testing.T) {
	long := strings.Repeat("rollout --service api --wait\n", 200)
	cards := map[string]platforms.Card{
		"asked": {
			Title:   "Deploy api to production?",
			Text:    "The agent wants to run **deploy**. Asked by Ana in this thread.",
			Facts:   []platforms.Fact{{Name: "Service", Value: "api"}, {Name: "Version", Value: "v1.2.3 <!here>"}},
			Blocks:  []platforms.Block{{Name: "Arguments", Text: "{\n  \"service\": \"api\"\n}"}},
			Mention: []platforms.UserID{"T1/U0ANA", "U0BOB", "T1/U0ANA", "T1/<!here>", "nobody"},
			Buttons: []platforms.Button{
				{Label: "Approve", Action: "approve", Value: "r-1", Style: platforms.Primary},
				{Label: "Deny", Action: "deny", Value: "r-1"},
				{Label: "Delete", Action: "delete", Value: "r-1", Style: platforms.Danger, Confirm: "It cannot be undone."},
			},
			Footer: "Expires in 30 minutes. Request r-1.",
		},
		"decided": {
			Title:  "Approved: deploy api to production",
			Text:   "Ana approved at 12:03 UTC.",
			Facts:  []platforms.Fact{{Name: "Service", Value: "api"}},
			Footer: "Request r-1",
		},
		"long": {
			Title:   "Run a script?",
			Blocks:  []platforms.Block{{Name: "Script", Text: long}},
			Buttons: []platforms.Button{{Label: "Approve", Action: "approve", Value: "r-2", Style: platforms.Primary}},
		},
		"disguised": {
			Title: "Send \u202emoc.elpmaxe\u202c?",
			Facts: []platforms.Fact{{Name: "*To*", Value: "a\u200bb `x` *y*\n*Approved by*: Ana"}, {Name: "", Value: ""}},
		},
	}
	for name, c := range cards {
		t.Run(name, func(t *testing.T) {
			parts := render(platforms.Content{Card: &c})
			checkParts(t, parts)
			golden(t, "testdata/card-"+name+".json", parts)
		})
	}
}

func golden(t *testing.T, file string, parts []platforms.Part) {
	t.Helper()
	var got bytes.Buffer
	for _, p := range parts {
		if err := json.Indent(&got, p, "", "  "); err != nil {
			t.Fatal(err)
		}
		got.WriteByte('\n')
	}
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("%s:\ngot\n%s\nwant\n%s", file, got.Bytes(), want)
	}
}

func TestACardIsTheLastPartAndTheOnlyOneWithBlocks(t *testing.T) {
	text := strings.Repeat("<!here> & a long argument\n", 2000)
	c := platforms.Card{
		Title:   "Run?",
		Blocks:  []platforms.Block{{Name: "Script", Text: text}},
		Buttons: []platforms.Button{{Label: "Approve", Action: "approve", Value: "r"}},
	}
	asked := decodePart(t, render(platforms.Content{Card: &c}))
	c.Buttons, c.Footer = nil, "Denied by Ana"
	settled := decodePart(t, render(platforms.Content{Card: &c}))
	if len(asked) != len(settled) {
		t.Fatalf("got %d parts asked and %d settled, want the same", len(asked), len(settled))
	}
	last := len(asked) - 1
	var full strings.Builder
	for i, m := range asked[:last] {
		if m.Blocks != nil || m.Text != settled[i].Text {
			t.Errorf("part %d: got blocks or another text once settled", i)
		}
		full.WriteString(m.Text)
	}
	if got, want := strings.Count(full.String(), "a long argument"), 2000; got != want {
		t.Errorf("got %d of %d lines in full", got, want)
	}
	if n := strings.Count(string(render(platforms.Content{Card: &c})[last]), "All of it is above"); n != 1 {
		t.Errorf("got %d notes that the card is shortened, want 1", n)
	}
}

func TestAnotherRequestHasAnotherBlock(t *testing.T) {
	id := func(value string) string {
		return blockID([]platforms.Button{{Action: "approve", Value: value}})
	}
	a, again, b := id("a"), id("a"), id("b")
	if a == b || a != again {
		t.Errorf("got %q, %q and %q, want a stable id and another one", a, again, b)
	}
}

func TestButtonsThatCannotBeAreNamed(t *testing.T) {
	c := platforms.Card{Title: "x", Buttons: []platforms.Button{
		{Label: "One", Action: "a", Value: "v"},
		{Label: "Two", Action: "a", Value: "w"},
		{Label: "Three", Action: "b", Value: strings.Repeat("v", 2001)},
		{Label: "Four", Value: "v"},
	}}
	parts := render(platforms.Content{Card: &c})
	checkParts(t, parts)
	if want := "No button for: Two, Three, Four"; !strings.Contains(string(parts[0]), want) {
		t.Errorf("got %s, want %q in it", parts[0], want)
	}
}

// The rest transcribes Slack's limits anew (docs.slack.dev/reference/block-kit and docs.slack.dev/reference/methods).

// sent is a message as Slack reads it.
type sent struct {
	Text   string            `json:"text"`
	Blocks []json.RawMessage `json:"blocks"`
}

type object struct {
	Type  string `json:"type"`
	Text  string `json:"text"`
	Emoji *bool  `json:"emoji"`
}

type anyBlock struct {
	Type     string            `json:"type"`
	BlockID  string            `json:"block_id"`
	Text     *object           `json:"text"`
	Fields   []object          `json:"fields"`
	Elements []json.RawMessage `json:"elements"`
}

type button struct {
	Type     string `json:"type"`
	ActionID string `json:"action_id"`
	Value    string `json:"value"`
	Style    string `json:"style"`
	Text     object `json:"text"`
	Confirm  *struct {
		Title, Text, Confirm, Deny object
	} `json:"confirm"`
}

func decodePart(t *testing.T, parts []platforms.Part) []sent {
	t.Helper()
	messages := make([]sent, len(parts))
	for i, p := range parts {
		if err := json.Unmarshal(p, &messages[i]); err != nil {
			t.Fatalf("part %d is no message: %v: %s", i, err, p)
		}
	}
	return messages
}

func characters(s string) int { return len(utf16.Encode([]rune(s))) }

func checkParts(t *testing.T, parts []platforms.Part) {
	t.Helper()
	if len(parts) == 0 {
		t.Fatal("no parts")
	}
	for i, m := range decodePart(t, parts) {
		checkText(t, m.Text)
		if len(m.Blocks) > 0 && i != len(parts)-1 {
			t.Errorf("part %d of %d has blocks", i, len(parts))
		}
		checkBlocks(t, m.Blocks)

		var own message
		if err := json.Unmarshal(parts[i], &own); err != nil {
			t.Errorf("part %d cannot be read back: %v", i, err)
		}
		if len(own.Blocks.BlockSet) != len(m.Blocks) {
			t.Errorf("part %d: %d blocks read back, want %d", i, len(own.Blocks.BlockSet), len(m.Blocks))
		}
	}
}

func checkText(t *testing.T, s string) {
	t.Helper()
	if len(s) > 4000 || strings.TrimSpace(s) == "" {
		t.Errorf("a text of %d bytes, want 1 to 4,000: %q", len(s), s)
	}
	checkMrkdwn(t, s, len(s))
}

var (
	live    = regexp.MustCompile(`<[^>]*>`)
	allowed = regexp.MustCompile(`^<((https?://|mailto:)[^|<>\s]+(\|[^<>\n]+)?|@[UW][A-Z0-9]+)>$`)
	entity  = regexp.MustCompile(`&(amp|lt|gt);`)
)

func checkMrkdwn(t *testing.T, s string, limit int) {
	t.Helper()
	if n := characters(s); n == 0 || n > limit {
		t.Errorf("mrkdwn of %d characters, want 1 to %d: %q", n, limit, s)
	}
	for _, l := range live.FindAllString(s, -1) {
		if !allowed.MatchString(l) {
			t.Errorf("live: %q in %q", l, s)
		}
	}
	for line := range strings.SplitSeq(live.ReplaceAllString(s, ""), "\n") {
		if strings.ContainsAny(strings.TrimLeft(line, "> "), "<>") {
			t.Errorf("unescaped: %q in %q", line, s)
		}
	}
	if strings.Contains(entity.ReplaceAllString(s, ""), "&") {
		t.Errorf("an unescaped & in %q", s)
	}
	if strings.Count(s, "```")%2 != 0 {
		t.Errorf("an open fence in %q", s)
	}
}

func checkPlain(t *testing.T, o object, limit int) {
	t.Helper()
	if n := characters(o.Text); o.Type != "plain_text" || n == 0 || n > limit {
		t.Errorf("%s of %d characters, want plain_text of 1 to %d: %q", o.Type, n, limit, o.Text)
	}
}

func checkObject(t *testing.T, o object, limit int) {
	t.Helper()
	if o.Type != "mrkdwn" {
		t.Errorf("got %s, want mrkdwn", o.Type)
	}
	checkMrkdwn(t, o.Text, limit)
}

func checkBlocks(t *testing.T, raw []json.RawMessage) {
	t.Helper()
	if len(raw) > 50 {
		t.Errorf("%d blocks, want at most 50", len(raw))
	}
	total := 0
	ids := map[string]bool{}
	for _, r := range raw {
		var b anyBlock
		if err := json.Unmarshal(r, &b); err != nil {
			t.Fatalf("%v: %s", err, r)
		}
		if b.BlockID != "" && (ids[b.BlockID] || characters(b.BlockID) > 255) {
			t.Errorf("block_id %q is too long or not unique", b.BlockID)
		}
		ids[b.BlockID] = true
		total += checkBlock(t, b)
	}
	if total > 11_000 {
		t.Errorf("%d characters of blocks, want about 10,000", total)
	}
}

func checkBlock(t *testing.T, b anyBlock) (total int) {
	t.Helper()
	switch b.Type {
	case "header":
		checkPlain(t, *b.Text, 150)
		return characters(b.Text.Text)
	case "section":
		if b.Text == nil && len(b.Fields) == 0 || len(b.Fields) > 10 {
			t.Errorf("a section with %d fields and no text, want 1 to 10", len(b.Fields))
		}
		if b.Text != nil {
			checkObject(t, *b.Text, 3000)
			total += characters(b.Text.Text)
		}
		for _, f := range b.Fields {
			checkObject(t, f, 2000)
			total += characters(f.Text)
		}
		return total
	case "context":
		if n := len(b.Elements); n == 0 || n > 10 {
			t.Errorf("a context with %d elements, want 1 to 10", n)
		}
		for _, e := range b.Elements {
			var o object
			if err := json.Unmarshal(e, &o); err != nil {
				t.Fatal(err)
			}
			checkObject(t, o, 3000)
			total += characters(o.Text)
		}
		return total
	case "actions":
		return checkButtons(t, b)
	default:
		t.Errorf("a block of type %q", b.Type)
		return 0
	}
}

func checkButtons(t *testing.T, b anyBlock) (total int) {
	t.Helper()
	if n := len(b.Elements); n == 0 || n > 25 {
		t.Errorf("%d buttons, want 1 to 25", n)
	}
	if b.BlockID == "" {
		t.Error("buttons without a block_id")
	}
	seen := map[string]bool{}
	for _, e := range b.Elements {
		var x button
		if err := json.Unmarshal(e, &x); err != nil {
			t.Fatal(err)
		}
		if x.Type != "button" || x.ActionID == "" || characters(x.ActionID) > 255 || seen[x.ActionID] {
			t.Errorf("%s with action_id %q, want a button with one of its own, at most 255", x.Type, x.ActionID)
		}
		seen[x.ActionID] = true
		if characters(x.Value) > 2000 {
			t.Errorf("a value of %d characters, want at most 2,000", characters(x.Value))
		}
		if x.Style != "" && x.Style != "primary" && x.Style != "danger" {
			t.Errorf("style %q", x.Style)
		}
		checkPlain(t, x.Text, 75)
		total += characters(x.Text.Text)
		if x.Confirm != nil {
			checkPlain(t, x.Confirm.Title, 100)
			checkPlain(t, x.Confirm.Text, 300)
			checkPlain(t, x.Confirm.Confirm, 30)
			checkPlain(t, x.Confirm.Deny, 30)
		}
	}
	return total
}

var liveLink = regexp.MustCompile(`<(?:[^|>]*\|)?([^>]*)>`)

// shown is the letters and digits that people see of mrkdwn.
func shown(s string) string {
	s = entity.ReplaceAllString(liveLink.ReplaceAllString(s, "$1"), "")
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return -1
	}, s)
}

var hostile = []string{
	"<!channel> <@U1> <#C1|x> <!subteam^S1> &lt;!here&gt;", "`<!channel>`\n```\n<!here>\n```\n",
	"[a](http://x.y/|<!channel>) [b](javascript:c) [<!here>](http://x.y)", "```\n" + strings.Repeat("<!channel>\n", 2000),
	strings.Repeat("&", 9000), strings.Repeat("word ", 3000), strings.Repeat("- <@U1>\n", 1000), "|a|\n|-|\n" + strings.Repeat("|<!here>|\n", 900),
	strings.Repeat("*_~`", 3000), "\x00\xff\u202e\u200b", "```", strings.Repeat("`", 5000), strings.Repeat("> ", 100) + strings.Repeat("é", 5000),
	"[" + strings.Repeat("long ", 1500) + "](http://x.y/" + strings.Repeat("p", 1900) + ")", strings.Repeat("![a](http://b.c/d) ", 500), "",
}

func TestHostileAnswersStayWithinLimits(t *testing.T) {
	for _, source := range hostile {
		checkParts(t, render(platforms.Content{Markdown: source}))
	}
}

func TestHostileCardsStayWithinLimits(t *testing.T) {
	for _, s := range hostile {
		for _, n := range []int{0, 1, 3, 60} {
			c := filled(s[:min(len(s), 12_000/(n+1))], n)
			checkParts(t, render(platforms.Content{Card: &c}))
		}
	}
}

// filled is a card with s everywhere, n times where there can be several.
func filled(s string, n int) platforms.Card {
	c := platforms.Card{Title: s, Text: s, Footer: s}
	for i := range n {
		c.Facts = append(c.Facts, platforms.Fact{Name: s, Value: s})
		c.Blocks = append(c.Blocks, platforms.Block{Name: s, Text: s})
		c.Mention = append(c.Mention, platforms.UserID(fmt.Sprintf("T1/U%d", i)), platforms.UserID(s))
		c.Buttons = append(c.Buttons, platforms.Button{Label: s, Action: fmt.Sprint("a", i), Value: s, Style: platforms.Danger, Confirm: s})
	}
	return c
}

func FuzzRender(f *testing.F) {
	for _, s := range hostile {
		f.Add(s[:min(len(s), 300)], uint8(2))
		f.Add(s[:min(len(s), 300)], uint8(31))
	}
	f.Fuzz(func(t *testing.T, piece string, n uint8) {
		source := strings.Repeat(piece, 1+int(n)%32) // long enough to be split
		parts := render(platforms.Content{Markdown: source})
		checkParts(t, parts)
		got, want := "", shown(markup.Mrkdwn(read(source)))
		for _, m := range decodePart(t, parts) {
			got += shown(m.Text)
		}
		if got != want && got != shown(noText) {
			t.Errorf("%q:\n got %q\nwant %q", source, got, want)
		}
		c := filled(piece[:min(len(piece), 2000)], int(n%64))
		checkParts(t, render(platforms.Content{Card: &c}))
	})
}

func BenchmarkRender10KB(b *testing.B) {
	source := strings.Repeat("Run **this** with `make`, see [docs](https://example.org/?a=1&b=2).\n\n- one\n- two\n\n```go\na < b\n```\n\n", 100)
	b.SetBytes(int64(len(source)))
	b.ReportAllocs()
	for b.Loop() {
		render(platforms.Content{Markdown: source})
	}
}
