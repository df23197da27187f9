package markup

import (
	"fmt"
	"html"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
)

func TestSplitKeepsWholeWhatItCan(t *testing.T) {
	words := func(word string, n int) string { return strings.TrimSpace(strings.Repeat(word+" ", n)) }
	for _, c := range []struct {
		name, source string
		limit        int
		want         []string
	}{
		{"what fits is one part", "a\n\nb", 10, []string{"a\n\nb"}},
		{"between blocks", "aaaa\n\nbbbb\n\ncccc", 10, []string{"aaaa\n\nbbbb", "cccc"}},
		{"a block that fits alone is not broken", "aa\n\nbb bb bb", 9, []string{"aa", "bb bb bb"}},
		{"a heading goes along", "aaaa\n\n# b\ncccccc", 12, []string{"aaaa", "*b*\ncccccc"}},
		{"so does a line with a colon", "aaaa\n\nb:\n\ncccc", 10, []string{"aaaa", "b:\n\ncccc"}},
		{"between items", "- aaaa\n- bbbb\n- cccc", 17, []string{"• aaaa\n• bbbb", "• cccc"}},
		{"numbers go on", "8. aaaa\n9. bbbb\n10. cccc", 15, []string{"8. aaaa\n9. bbbb", "10. cccc"}},
		{"inside an item", "3. aa bb cc dd\n4. e", 10, []string{"3. aa bb", "    cc dd", "4. e"}},
		{"between lines", "aaa\nbbb\nccc", 8, []string{"aaa\nbbb", "ccc"}},
		{"between sentences", "One two three. Four five six.", 20, []string{"One two three.", "Four five six."}},
		{"between words", words("word", 5), 13, []string{"word word", "word word", "word"}},
		{"inside a word", strings.Repeat("x", 25), 10, []string{"xxxxxxxxxx", "xxxxxxxxxx", "xxxxx"}},
		{"never inside a rune", strings.Repeat("é", 5), 5, []string{"éé", "éé", "é"}},
		{"never inside a character", "abe\u0301f", 4, []string{"ab", "e\u0301f"}},
		{"never inside an entity", "a&&&b", 9, []string{"a&amp;", "&amp;", "&amp;b"}},
		{"marks are closed and opened", "**" + words("bold", 4) + "**", 12, []string{"*bold bold*", "*bold bold*"}},
		{"a link leads there from both parts", "[aa bb](http://x.y)", 16, []string{"<http://x.y|aa>", "<http://x.y|bb>"}},
		{"fences are closed and opened", "```go\naaaa\nbbbb\ncccc\n```", 18,
			[]string{"```\naaaa\nbbbb\n```", "```\ncccc\n```"}},
		{"at a blank line of code", "```\naaaa\nbbbb\n\ncc\ndddd\n```", 23, []string{"```\naaaa\nbbbb\n```", "```\ncc\ndddd\n```"}},
		{"a table between its rows", "|a|\n|-|\n|b|\n|c|\n|d|", 16, []string{"```\na\n-\nb\nc\n```", "```\nd\n```"}},
		{"a quote stays a quote", "> aaaa\n>\n> bbbb", 8, []string{"> aaaa", "> bbbb"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, part := range Split(Parse(c.source), bytesWithin(c.limit)) {
				got = append(got, Mrkdwn(part))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%q within %d:\n got %q\nwant %q", c.source, c.limit, got, c.want)
			}
		})
	}
}

func TestCodeKeepsItsLanguageInEveryPart(t *testing.T) {
	parts := Split(Parse("```go\n"+strings.Repeat("x := 1\n", 20)+"```"), bytesWithin(40))
	for _, p := range parts {
		if code, ok := p[0].(Code); !ok || code.Language != "go" {
			t.Errorf("got %#v, want code in go", p[0])
		}
	}
}

func TestALimitCountsWhatItsMeasureCounts(t *testing.T) {
	d := Parse(strings.Repeat("😀", 10))
	for _, c := range []struct {
		measure func(string) int
		want    int
	}{
		{func(s string) int { return len(s) }, 10},
		{UTF16Units, 5},
		{utf8.RuneCountInString, 3},
	} {
		fits := func(d Document) bool { return c.measure(Mrkdwn(d)) <= 4 }
		if got := len(Split(d, fits)); got != c.want {
			t.Errorf("got %d parts, want %d", got, c.want)
		}
	}
}

func TestSplitEndsWhenNothingFits(t *testing.T) {
	d := Parse("# a\n\nb c\n\n- d\n\n```\ne\n```")
	parts := Split(d, func(Document) bool { return false })
	if got, want := joined(parts), letters(Plain(d)); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestBeginFillsItsLimit(t *testing.T) {
	d := Parse("aaaa\n\n```\nbbbb\ncccc\n```")
	if got, want := Mrkdwn(Begin(d, bytesWithin(20))), "aaaa\n\n```\nbbbb\n```"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func bytesWithin(limit int) func(Document) bool {
	return func(d Document) bool { return len(Mrkdwn(d)) <= limit }
}

func joined(parts []Document) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(letters(Plain(p)))
	}
	return b.String()
}

// visible is what a reader sees of s, without white space.
func visible(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return r
	}, s)
}

// checkSplit fails unless the parts of d fit and show what d shows.
func checkSplit(t *testing.T, d Document, limit int) {
	t.Helper()
	parts := Split(d, bytesWithin(limit))
	var got strings.Builder
	for _, p := range parts {
		s := Mrkdwn(p)
		if len(s) > limit {
			t.Errorf("a part of %d bytes, want at most %d: %q", len(s), limit, s)
		}
		if strings.Count(s, "```")%2 != 0 {
			t.Errorf("an open fence in %q", s)
		}
		checkSafe(t, s)
		got.WriteString(visible(Plain(p)))
	}
	if want := visible(Plain(d)); got.String() != want {
		t.Errorf("within %d:\n got %q\nwant %q", limit, got.String(), want)
	}
}

// longEnough is a limit for which no link and no nesting is too long.
const longEnough = 2400

func TestHostileTextSplits(t *testing.T) {
	for _, source := range hostile {
		checkSplit(t, Parse(source), longEnough)
		checkSplit(t, Parse(source), 3900)
	}
}

func TestHostileTextIsSplitInTime(t *testing.T) {
	const size = 40_000
	for name, source := range map[string]string{
		"one word":   strings.Repeat("x", size),
		"words":      strings.Repeat("word ", size/5),
		"lines":      strings.Repeat("a\n", size/2),
		"paragraphs": strings.Repeat("a\n\n", size/3),
		"items":      strings.Repeat("- a\n", size/4),
		"links":      strings.Repeat("[a](http://b.c) ", size/16),
		"runs":       strings.Repeat("*a* b ", size/6),
		"a megabyte": strings.Repeat("word ", 200_000),
		"rows":       "|a|\n|-|\n" + strings.Repeat("|b|\n", 5000),
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			checkSplit(t, Parse(source), 3900)
			if took := time.Since(start); took > 5*time.Second {
				t.Errorf("took %v", took)
			}
		})
	}
}

func seeds(f *testing.F) []string {
	f.Helper()
	var all []string
	for _, s := range hostile {
		if len(s) < 2000 {
			all = append(all, s)
		}
	}
	return append(all, "# a\n\n- b **c *d* e**\n  1. `f`\n\n> g\n\n```go\nh\n```\n\n|i|j|\n|-|:-:|\n|k|l|\n\n---\n[m](http://n.o)",
		"a*b*c ~~d~~ __e__ `` f`g `` \\*h\\* &amp; &#60;", "a  \nb\\\nc\n===\n", "1) a\n2) b\n\n   c\n", "\t- a\n\n\tb")
}

// FuzzParse compares with what the parser's own HTML shows: nothing is lost, nothing comes alive.
func FuzzParse(f *testing.F) {
	for _, s := range seeds(f) {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, source string) {
		d := Parse(source)
		checkSafe(t, Mrkdwn(d))
		checkSafe(t, Mrkdwn(NarrowTables(d, 20)))
		if strings.TrimSpace(source) != "" && len(d) == 0 {
			t.Errorf("%q: nothing is left", source)
		}
		if shown, ok := browser(t, source); ok && letters(Plain(d)) != shown {
			t.Errorf("%q:\n got %q\nwant %q", source, letters(Plain(d)), shown)
		}
	})
}

var tags = regexp.MustCompile(`<[^>]*>`)

// browser is what a browser shows of source; ok is false where we promise to show something else.
func browser(t *testing.T, source string) (shown string, ok bool) {
	// HTML, links, definitions, excess cells and characters that are replaced.
	if strings.ContainsAny(source, "<[]|\x00\r\uFFFD") || clean(source) != source || oversized(source) {
		return "", false
	}
	var b strings.Builder
	md := goldmark.New(goldmark.WithExtensions(extension.Table, extension.Strikethrough, extension.Linkify))
	if err := md.Convert([]byte(source), &b); err != nil {
		t.Fatal(err)
	}
	shown = letters(html.UnescapeString(tags.ReplaceAllString(b.String(), "")))
	return shown, shown != "" // nothing at all is shown as it was written
}

func FuzzSplit(f *testing.F) {
	for _, s := range seeds(f) {
		f.Add(s, uint16(0))
		f.Add(strings.Repeat(s+"\n\n", 40), uint16(500))
	}
	f.Fuzz(func(t *testing.T, source string, more uint16) {
		d := Parse(source)
		limit := longEnough + int(more)%4000
		checkSplit(t, d, limit)
		checkSplit(t, NarrowTables(d, 40), limit)
		if begin := Mrkdwn(Begin(d, bytesWithin(limit))); len(begin) > limit {
			t.Errorf("a beginning of %d bytes, want at most %d", len(begin), limit)
		}
		checkTiny(t, source, 8+int(more)%200)
	})
}

// checkTiny splits for a limit that a link may break, but never the text.
func checkTiny(t *testing.T, source string, limit int) {
	t.Helper()
	d := Parse(source)
	parts := Split(d, bytesWithin(limit))
	var got strings.Builder
	for _, p := range parts {
		if len(p) == 0 {
			t.Errorf("%q: an empty part", source)
		}
		got.WriteString(visible(Plain(p)))
	}
	if want := visible(Plain(d)); got.String() != want {
		t.Errorf("%q within %d:\n got %q\nwant %q", source, limit, got.String(), want)
	}
}

// tenKB is an answer as models write them.
func tenKB() string {
	var b strings.Builder
	for i := 0; b.Len() < 10_000; i++ {
		fmt.Fprintf(&b, "## Step %d\n\nRun **this** with `make`, see [the docs](https://example.org/%d?a=1&b=2). It takes a while.\n\n", i, i)
		fmt.Fprintf(&b, "- one\n- two *three*\n  - four\n\n```go\nfunc f%d(a, b int) bool { return a < b && b > 0 }\n```\n\n", i)
		fmt.Fprintf(&b, "| Name | State |\n|---|--:|\n| api | %d |\n| web | ok |\n\n", i)
	}
	return b.String()
}

func BenchmarkParse10KB(b *testing.B) {
	source := tenKB()
	b.SetBytes(int64(len(source)))
	b.ReportAllocs()
	for b.Loop() {
		Parse(source)
	}
}

func BenchmarkMrkdwn10KB(b *testing.B) {
	d := Parse(tenKB())
	b.ReportAllocs()
	for b.Loop() {
		Mrkdwn(d)
	}
}

func BenchmarkSplit10KB(b *testing.B) {
	d := Parse(tenKB())
	b.ReportAllocs()
	for b.Loop() {
		Split(d, bytesWithin(3900))
	}
}

func BenchmarkParseALine(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		Parse("Hello, **world**")
	}
}
