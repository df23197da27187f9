package markup

import (
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestDiscordOfALine(t *testing.T) {
	const z = "\u200B"
	for _, c := range []struct{ name, source, want string }{
		{"plain text stays", "echo: hello, world (1 < 2 & 3 > 2)!", "echo: hello, world (1 < 2 & 3 > 2)!"},
		{"bold, italic, strike", "**a** *b* ~~c~~", "**a** _b_ ~~c~~"},
		{"nested styles", "**a *b* c**", "**a _b_ c**"},
		{"a style inside a word", "un**believ**able", "un" + z + "**believ**" + z + "able"},
		{"styles next to each other", "**a***b*", "**a**" + z + "_b_"},
		{"a style over two lines", "**a\nb**", "**a**\n**b**"},
		{"code", "`a < b`", "`a < b`"},
		{"code with a backtick", "`` a`b ``", "``a`b``"},
		{"code with a fence", "````` a```b `````", "``a`" + z + "`" + z + "`b``"},
		{"literal marks", `\*a\* \_b\_ \~~c\~~ \` + "`d\\`" + ` ||e||`, `\*a\* \_b\_ \~\~c\~\~ \` + "`d\\`" + ` \|\|e\|\|`},
		{"underscores in a name", "snake_case_name", `snake\_case\_name`},
		{"a backslash", `\\ a`, `\\ a`},
		{"a literal quote", `\> a`, `\> a`},
		{"a literal heading", `\# a`, `\# a`},
		{"small print", "-# a", `\-# a`},
		{"a literal item", `\- a`, `\- a`},
		{"a literal number", `12\. a`, `12\. a`},
		{"a number in the middle", "a 12. b - c # d > e", "a 12. b - c # d > e"},
		{"signs after a line end", "a\n\\> b\n\\- c", "a\n\\> b\n\\- c"},
		{"everybody", "@everyone and @Here", "@" + z + "everyone and @" + z + "Here"},
		{"a person, a role, a channel", "<@12> <@!12> <@&12> <#12>", "<" + z + "@12> <" + z + "@!12> <" + z + "@&12> <" + z + "#12>"},
		{"emoji, time, command", "<:a:1> <a:b:1> <t:1:R> </ask:1>", "<" + z + ":a:1> <" + z + "a:b:1> <" + z + "t:1:R> <" + z + "/ask:1>"},
		{"everybody in code", "`@everyone` `<@12>`", "`@" + z + "everyone` `<" + z + "@12>`"},
		{"html in code stays", "`</div>`", "`</div>`"},
		{"a link", "[a b](https://x.y/z?a=1&b=2)", "a b (<https://x.y/z?a=1&b=2>)"},
		{"a link with a style in it", "[a **b** c](http://x.y)", "a **b** c (<http://x.y>)"},
		{"a link that lies", "[http://good.org](http://evil.org)", "http://good.org (<http://evil.org>)"},
		{"a bare link", "see http://x.org/a_b_c.", "see <http://x.org/a_b_c>."},
		{"a bare host", "see www.x.org", "see <http://www.x.org>"},
		{"a mail address", "to a@b.org", "to a@b.org"},
		{"a mailto behind a name", "[me](mailto:a@b.org)", "me (a@b.org)"},
		{"a link that calls everybody", "[a](http://x.y/@everyone)", "a (<http://x.y/%40everyone>)"},
		{"everybody across a link", "@[everyone](http://x.y)", "@" + z + "everyone (<http://x.y>)"},
		{"a masked link, literally", `\[a](b)`, `\[a](b)`},
		{"blank", " \n\t", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Discord(Parse(c.source)); got != c.want {
				t.Errorf("%q:\n got %q\nwant %q", c.source, got, c.want)
			}
		})
	}
}

func TestDiscordOfBlocks(t *testing.T) {
	for _, c := range []struct{ name, source, want string }{
		{"headings", "# a\n## b\n### c\n#### d", "# a\n## b\n### c\n**d**"},
		{"a list", "- a\n- b\n  - c\n    more", "- a\n- b\n  - c\n    more"},
		{"numbers", "3. a\n4. b", "3. a\n4. b"},
		{"code in an item stands at the margin", "- a\n  ```go\n  x\n  ```", "- a\n```go\nx\n```"},
		{"code", "```go\na*b*\n```", "```go\na*b*\n```"},
		{"code in a strange language", "```{go}\na\n```", "```\na\n```"},
		{"a fence in code", "````\n```\n````", "```\n`\u200B``\n```"},
		{"a quote", "> a\n> b\n>\n> c", "> a\n> b\n>\n> c"},
		{"a rule", "a\n\n---\n\nb", "a\n\n──────────\n\nb"},
		{"a table", "|a|b|\n|-|-|\n|1|2|", "```\na | b\n--+--\n1 | 2\n```"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Discord(Parse(c.source)); got != c.want {
				t.Errorf("%q:\n got %q\nwant %q", c.source, got, c.want)
			}
		})
	}
}

// discordCalls finds what would call, name or run something on Discord.
var discordCalls = regexp.MustCompile(`(?i)@(everyone|here)|<@[!&]?\d+>|<#\d+>|</[^<>:\n]+:\d+>|<a?:\w+:\d+>|\]\(`)

// visibleOf is s without what nobody sees and without white space.
func visibleOf(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || r == '\u200B' {
			return -1
		}
		return r
	}, s)
}

func FuzzDiscord(f *testing.F) {
	for _, s := range []string{
		"**a** _b_ `c` [d](http://e.f)", "@everyone <@1> <#2> <t:1>", "> a\n- b\n1. c\n```go\nd\n```", "||a||", "|a|\n|-|\n|b|",
		"<@\u200b1>", "@ever*yone*", "[x](http://y/](z)", "`` ` ``", "\\", "1. 2. 3.",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, source string) {
		got := Discord(Parse(source))
		if s := discordCalls.FindString(strings.ReplaceAll(got, `\[`, "")); s != "" && s != "](" {
			t.Errorf("%q is live in %q", s, got)
		}
		if !utf8.ValidString(got) {
			t.Errorf("not UTF-8: %q", got)
		}
		if strings.Count(got, fence)%2 != 0 {
			t.Errorf("an open fence in %q", got)
		}
		literal := DiscordLiteral(source)
		unescaped := regexp.MustCompile(`\\([^\pL\pN\s])`).ReplaceAllString(literal, "$1")
		if a, b := visibleOf(unescaped), visibleOf(Literal(source).String()); a != b {
			t.Errorf("%q is shown as %q", b, a)
		}
		for _, part := range Split(Parse(source), func(d Document) bool { return UTF16Units(Discord(d)) <= 300 }) {
			if n := UTF16Units(Discord(part)); n > 300 && !strings.Contains(source, "://") {
				t.Errorf("a part of %d", n)
			}
		}
	})
}
