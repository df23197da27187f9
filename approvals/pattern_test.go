package approvals

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

var slackLike = Platform{Name: "slack", GroupPrefix: "S"}

func TestAPatternMeansWhoItNames(t *testing.T) {
	named := Actor{Principal: Principal{"slack", "T9/UGUEST"}, External: true}
	member := Actor{Principal: Principal{"slack", "T1/UEVE"}, Groups: []string{"SOPS", "T1/STEAM"}}
	externalMember := Actor{Principal: Principal{"slack", "T9/UFAY"}, Groups: []string{"SOPS"}, External: true}
	bare := Actor{Principal: Principal{"discord", "42"}}

	for _, c := range []struct {
		name    string
		pattern string
		actor   Actor
		want    bool
	}{
		{"a person by the short form", "slack:UADA", ada, true},
		{"a person by the exact form", "slack:T1/UADA", ada, true},
		{"not somebody else", "slack:UADA", bo, false},
		{"not under another team", "slack:T2/UADA", ada, false},
		{"not on another platform", "discord:UADA", ada, false},
		{"not an external person by the short form", "slack:UGUEST", named, false},
		{"an external person by the exact form", "slack:T9/UGUEST", named, true},
		{"a platform without teams", "discord:42", bare, true},
		{"no bot, even if its id is named", "slack:UADA", robot, false},
		{"no bot by the exact form", "slack:T1/UADA", robot, false},
		{"a member of a group", "slack:group:SOPS", member, true},
		{"a member of a group of a team", "slack:group:T1/STEAM", member, true},
		{"no member of another group", "slack:group:SDEV", member, false},
		{"nobody whose membership was not looked up", "slack:group:SOPS", ada, false},
		{"no external member of a group", "slack:group:SOPS", externalMember, false},
		{"a group is no person", "slack:group:UADA", ada, false},
		{"not by another capital", "slack:uada", ada, false},
		{"not by a part of the id", "slack:UAD", ada, false},
		{"nobody at all without an id", "slack:UADA", Actor{}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := patterns(t, c.pattern)[0].Matches(c.actor); got != c.want {
				t.Errorf("%s matches %+v: got %v, want %v", c.pattern, c.actor, got, c.want)
			}
		})
	}
	if (Pattern{}).Matches(Actor{}) {
		t.Error("no pattern matches nobody, want no match")
	}
}

func TestGroupsMayBeWrittenShortWhereTheirIDsShowIt(t *testing.T) {
	for _, c := range []struct {
		name      string
		list      string
		platforms []Platform
		want      string
	}{
		{"the long form", "slack:group:SOPS", nil, "slack:group:SOPS"},
		{"the long form of a team", "slack:group:T1/SOPS", nil, "slack:group:T1/SOPS"},
		{"the short form on a platform that has it", "slack:SOPS", []Platform{slackLike}, "slack:group:SOPS"},
		{"the short form of a team", "slack:T1/SOPS", []Platform{slackLike}, "slack:group:T1/SOPS"},
		{"both at once", "slack:group:SOPS,slack:SOPS", []Platform{slackLike}, "slack:group:SOPS"},
		{"a person where nothing is known of the platform", "slack:SOPS", nil, "slack:SOPS"},
		{"a person on a platform without such ids", "discord:S1", []Platform{slackLike, {Name: "discord"}}, "discord:S1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := ParsePatterns(c.list, c.platforms...)
			if err != nil || len(got) != 1 || got[0].String() != c.want {
				t.Errorf("got %v, %v, want %s", got, err, c.want)
			}
		})
	}
	platform, group, ok := patterns(t, "slack:group:T1/SOPS")[0].Group()
	if platform != "slack" || group != "T1/SOPS" || !ok {
		t.Errorf("got the group %q of %q, %v, want T1/SOPS of slack", group, platform, ok)
	}
	if _, _, ok := patterns(t, "slack:UADA")[0].Group(); ok {
		t.Error("a person is a group, want no")
	}
}

func TestAListKeepsItsOrderAndNamesEachOnce(t *testing.T) {
	got := patterns(t, " slack:U2 ,discord:1, slack:T1/U1,slack:U2")
	var words []string
	for _, p := range got {
		words = append(words, p.String())
	}
	if want := []string{"slack:U2", "discord:1", "slack:T1/U1"}; !slices.Equal(words, want) {
		t.Errorf("got %q, want %q", words, want)
	}
	if none := patterns(t, "  "); none != nil {
		t.Errorf("an empty list: got %v, want nobody", none)
	}
}

func TestEveryMistakeIsToldWithHowToMendIt(t *testing.T) {
	for _, c := range []struct{ entry, problem string }{
		{"U061", "no platform"},
		{"Slack:U061", "does not begin with the name of a platform"},
		{":U061", "does not begin with the name of a platform"},
		{"irc:ada", "unknown platform"},
		{"slack:", "no id"},
		{"slack:T1/", "no id"},
		{"slack:/U1", "no team"},
		{"slack:group:", "no id"},
		{"slack:T1/C1/U1", "more than one /"},
		{"slack:*", "wildcard"},
		{"slack:T1/*", "wildcard"},
		{"slack:@ada", "mention or a name"},
		{"slack:<@U061>", "mention or a name"},
		{"slack:Ada Lovelace", "no id has"},
		{"slack:role:1", "no id has"},
		{"slack:Zoë", "no id has"},
	} {
		t.Run(c.entry, func(t *testing.T) {
			_, err := ParsePatterns(c.entry, slackLike)
			mistake, ok := errors.AsType[*Mistake](err)
			if !ok {
				t.Fatalf("got %v, want a mistake", err)
			}
			if mistake.Entry != c.entry || !strings.Contains(mistake.Problem, c.problem) || mistake.Mend == "" {
				t.Errorf("got %+v, want one that says %q", mistake, c.problem)
			}
		})
	}
}

func TestOneMistakeDoesNotHideAnotherAndLetsNobodyIn(t *testing.T) {
	got, err := ParsePatterns("slack:U1,U2,,slack:*", slackLike)
	if got != nil {
		t.Errorf("got %v, want no patterns", got)
	}
	for _, want := range []string{`"U2" names no platform`, `"" is an empty entry`, `"slack:*" has a wildcard`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("got %q, want it to say %q", err, want)
		}
	}
	if strings.Contains(err.Error(), "slack:U1\"") {
		t.Errorf("got %q, want nothing about the good entry", err)
	}
}

func FuzzParsePatterns(f *testing.F) {
	for _, seed := range []string{
		"slack:U1", "slack:T1/U1,discord:1", "slack:S1", "slack:group:T1/S1", "slack:group:group:x", "slack:group/x",
		",", "a:b:c", "slack:*", "slack:\x00", "slack:T1//U1", "slack: U1",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, list string) {
		got, err := ParsePatterns(list, slackLike, Platform{Name: "discord"})
		if err != nil && got != nil {
			t.Fatalf("got patterns %v beside the error %v", got, err)
		}
		for _, p := range got {
			again, err := ParsePatterns(p.String())
			if err != nil || len(again) != 1 || again[0] != p {
				t.Errorf("%+v printed as %q is read as %+v, %v", p, p, again, err)
			}
			if p.Matches(Actor{}) || p.Matches(Actor{Principal: Principal{p.Platform, p.id()}, Bot: true}) {
				t.Errorf("%q means nobody, or a bot", p)
			}
		}
	})
}
