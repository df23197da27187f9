package markup

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestMrkdwnOfTheExamples(t *testing.T) {
	sources, err := filepath.Glob("testdata/*.md")
	if err != nil || len(sources) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, source := range sources {
		t.Run(filepath.Base(source), func(t *testing.T) {
			md, err := os.ReadFile(source)
			if err != nil {
				t.Fatal(err)
			}
			got := Mrkdwn(NarrowTables(Parse(string(md)), 60)) + "\n"
			golden := strings.TrimSuffix(source, ".md") + ".mrkdwn"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("%s:\ngot\n%s\nwant\n%s", source, got, want)
			}
		})
	}
}

func TestMrkdwnOfALine(t *testing.T) {
	const z, s = "\u200B", "\u00AD"
	for _, c := range []struct{ name, source, want string }{
		{"plain text stays", "echo: hello, world", "echo: hello, world"},
		{"the three escapes", "1 < 2 && 3 > 2", "1 &lt; 2 &amp;&amp; 3 &gt; 2"},
		{"bold", "**a** b", "*a* b"},
		{"italic", "*a* _b_", "_a_ _b_"},
		{"strike", "~~a~~", "~a~"},
		{"nested styles", "**a *b* c**", "*a _b_ c*"},
		{"all styles at once", "***~~a~~***", "*_~a~_*"},
		{"a style inside a word", "un**believ**able", "un" + z + "*believ*" + z + "able"},
		{"styles next to each other", "**a***b*", "*a*" + z + "_b_"},
		{"a style over two lines", "**a\nb**", "*a*\n*b*"},
		{"code", "`a < b`", "`a &lt; b`"},
		{"code with a backtick", "`` a`b ``", "```a`b```"},
		{"code with a fence", "````` a```b `````", "```a`" + z + "``b```"},
		{"a bold name in code", "**`a`**", "*`a`*"},
		{"names with underscores stay", "snake_case_name and __init__.py", "snake_case_name and *init*.py"},
		{"literal marks do not begin a format", `\*a\* and \_b\_`, s + "*a* and " + s + "_b_"},
		{"a single literal mark stays", `5 \* 3, a footnote\*`, "5 * 3, a footnote*"},
		{"literal backticks", "\\`a\\`", s + "`a`"},
		{"a literal > at the start of a line", `\> a`, z + "&gt; a"},
		{"a link", "[a b](https://x.y/z?a=1&b=2)", "<https://x.y/z?a=1&amp;b=2|a b>"},
		{"a link with a style in it", "[a **b** c](http://x.y)", "<http://x.y|a> *<http://x.y|b>* <http://x.y|c>"},
		{"a link by reference", "[a]\n\n[a]: http://x.y", "<http://x.y|a>"},
		{"a definition nobody uses", "[a]: http://x.y", "[a]: http://x.y"},
		{"a bare link", "see http://x.org/a.", "see <http://x.org/a>."},
		{"a link with a loud scheme", "<HTTP://x.y>", "<http://x.y|HTTP://x.y>"},
		{"a bare host", "see www.x.org", "see <http://www.x.org|www.x.org>"},
		{"a bare address", "to a@b.org", "to <mailto:a@b.org|a@b.org>"},
		{"a link without text", "[](http://x.y)", "<http://x.y>"},
		{"an image", "![a chart](http://x.y/z.png)", "<http://x.y/z.png|a chart>"},
		{"an image inside a link", "[![a](http://i.j)](http://x.y)", "<http://x.y|a>"},
		{"html", "a <b>b</b> <!-- c -->", "a &lt;b&gt;b&lt;/b&gt; &lt;!-- c --&gt;"},
		{"a line break in html", "a<br>b", "a\nb"},
		{"entities, once", "&lt; &amp;lt; &copy; &#33; &#x21; &nosuch; \\&lt;", "&lt; &amp;lt; © ! ! &amp;nosuch; &amp;lt;"},
		{"line ends are kept", "a\nb  \nc\\\nd", "a\nb\nc\nd"},
		{"an empty heading", "#", "#"},
		{"blank", " \n\t", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Mrkdwn(Parse(c.source)); got != c.want {
				t.Errorf("%q:\n got %q\nwant %q", c.source, got, c.want)
			}
		})
	}
}

// live finds what Slack acts upon: anything between < and > that is not a link to the web or to a mailbox.
var (
	live    = regexp.MustCompile(`<[^>]*>`)
	linked  = regexp.MustCompile(`^<(https?://[^|<>\s]+|mailto:[^|<>\s]+)(\|[^<>\n]+)?>$`)
	escape3 = regexp.MustCompile(`&(amp|lt|gt);|&`)
)

// checkSafe fails if s has anything live but links, or an escape that is none.
func checkSafe(t *testing.T, s string) {
	t.Helper()
	for _, l := range live.FindAllString(s, -1) {
		if !linked.MatchString(l) {
			t.Errorf("live: %q in %q", l, s)
		}
	}
	rest := live.ReplaceAllString(s, "")
	for _, line := range strings.Split(rest, "\n") {
		line = strings.TrimLeft(line, "> ") // quotes
		if strings.ContainsAny(line, "<>") {
			t.Errorf("unescaped: %q in %q", line, s)
		}
	}
	for _, e := range escape3.FindAllString(s, -1) {
		if e == "&" {
			t.Errorf("an unescaped & in %q", s)
		}
	}
	if !utf8.ValidString(s) {
		t.Errorf("not UTF-8: %q", s)
	}
}

var hostile = []string{
	"<!channel> <!here> <!everyone> <!subteam^S1> <@U1> <@U1|a> <#C1> <#C1|b> <!date^1^{date}|x>",
	"`<!channel>` ```<!here>```",
	"```\n<!channel>\n```\n<@U1>",
	"````\n```\n<!channel>\n````",
	"    <!channel>",
	"&lt;!channel&gt; &#60;!channel&#62; &#x3c;!channel&#x3E; `&lt;!channel&gt;`",
	"\\<!channel\\> <\\!channel>",
	"[a](<!channel>) [a](!channel) [a](@U1) [a](#C1)",
	"[<!channel>](http://x.y) [a|b](http://x.y) [a>b](http://x.y)",
	"[a](http://x.y/|<!channel>) [a](<http://x.y/><!channel>)",
	"[a](<http://x.y/|b> <!channel>) [a](http://x.y/%3E%3C!channel%3E)",
	"[a](http://x.y/\\>\\<!channel\\>) [a](http://x.y/&gt;&lt;!channel&gt;)",
	"[a](javascript:alert(1)) [a](data:text/html,b) [a](slack://user) [a](file:///etc) [a](//x.y) [a](http:x) [a](http://)",
	"![<!channel>](http://x.y) ![a](<!here>)",
	"<http://x.y/|<!channel> <http://x.y|!channel> <mailto:a@b.c|<!here>>",
	"http://x.org/|<!channel>|<@U1>",
	"www.x.org/<!channel>",
	"<div>\n<!channel>\n</div>",
	"<!-- <!channel> -->\n\n<![CDATA[ <!here> ]]>\n\n<?php <@U1> ?>\n\n<!CHANNEL>",
	"<a href='<!channel>'>b</a>",
	"[x]: <!channel>\n\n[x] [<!here>]\n\n[<!here>]: http://x.y",
	"| <!channel> | b |\n|---|---|\n| <@U1> | `<!here>` | <#C1> |",
	"# <!channel>\n\n> <!here>\n\n- <@U1>\n\n1. <#C1>",
	"**<!channel>** _<@U1>_ ~~<#C1>~~",
	"a\x00b\xff\xfe<!channel\x00> \u202e<@U1>",
	"\r<!channel>\r\n<@U1>",
	"[a](http://x.y/\u2028<!channel>) [a](http://x.y/\u200b)",
	"[a\nb](http://x.y 'title <!channel>')",
	strings.Repeat("> ", 300) + "<!channel>",
	strings.Repeat("- ", 300) + "<!channel>",
	strings.Repeat("[", 500) + "<!channel>" + strings.Repeat("](http://x.y)", 500),
	strings.Repeat("*a **b ", 200),
	"|" + strings.Repeat("a|", 400) + "\n|" + strings.Repeat("-|", 400) + "\n" + strings.Repeat("|<!channel>\n", 500),
	"[a](http://x.y/" + strings.Repeat("&", 3000) + ")",
	strings.Repeat("<!channel>", 20_000),
}

func TestNothingHostileComesAlive(t *testing.T) {
	for _, source := range hostile {
		d := Parse(source)
		checkSafe(t, Mrkdwn(d))
		checkSafe(t, Mrkdwn(NarrowTables(d, 10)))
	}
}

func TestNothingHostileIsLost(t *testing.T) {
	for _, source := range []string{
		"[a]: b\n\n[c]: d 'e'", "<div>a</div>", "| a |\n|---|\n| b | c | d |", "[a](javascript:b)", "![](http://c.d)",
		strings.Repeat("> ", 50) + "a", strings.Repeat("- ", 50) + "a", "- a\n- \n- b", "```\na", "<!-- a", "\x01a",
		"|a|b|\n|-|-|\n|" + strings.Repeat("c|", 2000), strings.Repeat("a\n", 60_000), "a" + strings.Repeat("\u0301", 5000),
	} {
		got := letters(Plain(Parse(source)))
		for _, r := range letters(source) {
			if !strings.ContainsRune(got, r) {
				t.Errorf("%.60q: %q is lost: %.60q", source, r, got)
			}
		}
		if n, want := strings.Count(got, "a"), strings.Count(letters(source), "a"); n < want {
			t.Errorf("%.60q: %d of %d are left", source, n, want)
		}
	}
}

// letters is s without white space and without what stands for none.
func letters(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return -1
	}, s)
}

func TestWideTablesBecomeLists(t *testing.T) {
	source := "| Name | State |\n|---|---|\n| api | " + strings.Repeat("very ", 20) + "slow |\n| | down |"
	got := Mrkdwn(NarrowTables(Parse(source), 40))
	want := "• *Name*: api\n    *State*: " + strings.Repeat("very ", 20) + "slow\n• *State*: down"
	if got != want {
		t.Errorf("\n got %q\nwant %q", got, want)
	}
}

func TestTablesWithLinksBecomeLists(t *testing.T) {
	got := Mrkdwn(NarrowTables(Parse("| PR |\n|---|\n| [7](http://x.y/7) |"), 80))
	if want := "• *PR*: <http://x.y/7|7>"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
