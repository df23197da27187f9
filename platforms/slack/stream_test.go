package slack

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-chat/parley/platforms"
	"github.com/parley-chat/parley/platforms/slack/slacktwin"
)

var alice = platforms.User{ID: "T0TWIN/UALICE"}

// clocked is a world whose twin and adapter share a clock that is moved by hand.
func clocked(t *testing.T, s setup) (*world, *slacktwin.Clock) {
	t.Helper()
	clock := slacktwin.NewClock(time.Now())
	s.twin = func(o *slacktwin.Options) { o.Now, o.After, o.Agent = clock.Now, clock.After, true }
	s.options = func(o *Options) { o.Now = clock.Now }
	return newWorld(t, s), clock
}

func TestAStreamGrowsAndEndsWithItsMark(t *testing.T) {
	w := newWorld(t, setup{})
	root := w.say("UALICE", "CGENERAL", "", "hello")
	s, err := w.a.OpenStream(t.Context(), thread(root), alice, "m1")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"Hello ", "<", "!here> and <@UBOB>, ", "", "world"} {
		if err := s.Append(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // closing again is harmless
		ref, err := s.Close(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		m := w.Thread("CGENERAL", root)[1]
		if ref != messageRef("CGENERAL", m.TS) || m.Streaming || m.Text != "Hello <\u200b!here> and <\u200b@UBOB>, world" {
			t.Errorf("got %q %+v", ref, m)
		}
		found, err := w.a.Find(t.Context(), thread(root), "m1")
		if err != nil || found != ref {
			t.Errorf("find: got %q, %v, want %q", found, err, ref)
		}
		if err := w.a.Edit(t.Context(), ref, partOf(m.Text)); err != nil {
			t.Errorf("edit: %v", err)
		}
	}
	if got := failure(s.Append(t.Context(), "more")); got != "gone stream_closed" {
		t.Errorf("append after close: got %q", got)
	}
}

func TestALongAppendIsSentInPieces(t *testing.T) {
	w := newWorld(t, setup{})
	root := w.say("UALICE", "CGENERAL", "", "hello")
	s, err := w.a.OpenStream(t.Context(), thread(root), alice, "m1")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("äöü ", 10_000)
	if err := s.Append(t.Context(), text); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := w.Thread("CGENERAL", root)[1].Text; got != text {
		t.Errorf("got %d bytes, want %d", len(got), len(text))
	}
}

func TestAfterFourMinutesAStreamIsHandedOver(t *testing.T) {
	w, clock := clocked(t, setup{})
	root := w.say("UALICE", "CGENERAL", "", "hello")
	s, err := w.a.OpenStream(t.Context(), thread(root), alice, "m1")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Append(t.Context(), "first half"); err != nil {
		t.Fatal(err)
	}
	clock.Advance(streamFor)
	if got := failure(s.Append(t.Context(), ", second half")); got != "gone stream_too_old" {
		t.Errorf("got %q", got)
	}
	ref, err := s.Close(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := w.a.Edit(t.Context(), ref, partOf("first half, second half")); err != nil {
		t.Errorf("edit: %v", err)
	}
	if got := w.Thread("CGENERAL", root)[1].Text; got != "first half, second half" {
		t.Errorf("got %q", got)
	}
}

func TestAStreamThatExpiredStillNamesItsMessage(t *testing.T) {
	w, clock := clocked(t, setup{})
	root := w.say("UALICE", "CGENERAL", "", "hello")
	s, err := w.a.OpenStream(t.Context(), thread(root), alice, "m1")
	if err != nil {
		t.Fatal(err)
	}
	clock.Advance(6 * time.Minute)
	ref, err := s.Close(t.Context())
	if err != nil || ref == "" {
		t.Errorf("got %q, %v", ref, err)
	}
	if err := w.a.Edit(t.Context(), ref, partOf("all of it")); err != nil {
		t.Errorf("edit: %v", err)
	}
}

func TestAMessageLeftStreamingCanBeEdited(t *testing.T) {
	w := newWorld(t, setup{})
	root := w.say("UALICE", "CGENERAL", "", "hello")
	if _, err := w.a.OpenStream(t.Context(), thread(root), alice, "m1"); err != nil {
		t.Fatal(err)
	}
	m := w.Thread("CGENERAL", root)[1]
	if err := w.a.Edit(t.Context(), messageRef("CGENERAL", m.TS), partOf("after the crash")); err != nil {
		t.Fatal(err)
	}
	if got := w.Thread("CGENERAL", root)[1]; got.Text != "after the crash" || got.Streaming {
		t.Errorf("got %+v", got)
	}
}

func TestWhereThereIsNoStream(t *testing.T) {
	w := newWorld(t, setup{})
	root := w.say("UALICE", "CGENERAL", "", "hello")
	tests := map[string]struct {
		in platforms.Conversation
		to platforms.User
	}{
		"a plain direct message": {"T0TWIN/DALICE", alice},
		"another program":        {thread(root), platforms.User{ID: "T0TWIN/UROBOT", Bot: true}},
		"nobody":                 {thread(root), platforms.User{}},
		"nowhere":                {"", alice},
	}
	for name, tt := range tests {
		if _, err := w.a.OpenStream(t.Context(), tt.in, tt.to, "m"); err != platforms.ErrNoStream {
			t.Errorf("%s: got %v", name, err)
		}
	}
	w.Fault(slacktwin.Fault{Method: "chat.startStream", Error: "channel_type_not_supported"})
	w.Fault(slacktwin.Fault{Method: "chat.startStream", Status: 429, RetryAfter: time.Second})
	for range 2 {
		if _, err := w.a.OpenStream(t.Context(), thread(root), alice, "m"); err != platforms.ErrNoStream {
			t.Errorf("got %v", err)
		}
	}
	if _, err := w.a.OpenStream(t.Context(), thread(root), alice, "m"); err != nil {
		t.Errorf("that was for once only: got %v", err)
	}
	for _, fault := range []slacktwin.Fault{{Status: 503}, {Drop: true}, {Error: "token_revoked"}} {
		fault.Method = "chat.startStream"
		w.Fault(fault)
		if _, err := w.a.OpenStream(t.Context(), thread(root), alice, "m"); err == nil || err == platforms.ErrNoStream {
			t.Errorf("what may have begun, or nothing would mend: got %v", err)
		}
	}
}

func TestStreamsThatAreNotGrantedAreNotAskedForAgain(t *testing.T) {
	for _, code := range []string{"unknown_method", "method_deprecated", "feature_not_enabled"} {
		w := newWorld(t, setup{})
		root := w.say("UALICE", "CGENERAL", "", "hello")
		w.Fault(slacktwin.Fault{Method: "chat.startStream", Error: code, Times: -1})
		for range 3 {
			if _, err := w.a.OpenStream(t.Context(), thread(root), alice, "m"); err != platforms.ErrNoStream {
				t.Errorf("%s: got %v", code, err)
			}
		}
		if n := w.called("chat.startStream"); n != 1 {
			t.Errorf("%s: asked %d times, want once", code, n)
		}
	}
}

func (w *world) called(method string) int {
	n := 0
	for _, c := range w.Calls() {
		if c.Method == method {
			n++
		}
	}
	return n
}

func TestAnAppendThatFailed(t *testing.T) {
	tests := map[string]struct {
		fault slacktwin.Fault
		want  string
	}{
		"slow down: the text waits":        {slacktwin.Fault{Status: 429, RetryAfter: time.Second}, ""},
		"stopped by the person":            {slacktwin.Fault{Error: "stopped_by_user"}, "refused stopped_by_user"},
		"not streaming any more":           {slacktwin.Fault{Error: "message_not_in_streaming_state"}, "gone message_not_in_streaming_state"},
		"lost, though it was done":         {slacktwin.Fault{Drop: true, Commit: true}, "unknown_outcome "},
		"an error of Slack, though it was": {slacktwin.Fault{Status: 500, Commit: true}, "unknown_outcome http_500"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, setup{})
			root := w.say("UALICE", "CGENERAL", "", "hello")
			s, err := w.a.OpenStream(t.Context(), thread(root), alice, "m")
			if err != nil {
				t.Fatal(err)
			}
			tt.fault.Method = "chat.appendStream"
			w.Fault(tt.fault)
			if got := failure(s.Append(t.Context(), "words")); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if _, err := s.Close(t.Context()); err != nil {
				t.Errorf("close: %v", err)
			}
			got := w.Thread("CGENERAL", root)[1].Text
			if strings.Count(got, "words") > 1 || tt.want == "" && got != "words" {
				t.Errorf("text: got %q", got)
			}
		})
	}
}

func TestPacedAppendsAreGathered(t *testing.T) {
	w, clock := clocked(t, setup{})
	w.a.pace = newPacer()
	root := w.say("UALICE", "CGENERAL", "", "hello")
	s, err := w.a.OpenStream(t.Context(), thread(root), alice, "m")
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		for range 5 {
			if err := s.Append(t.Context(), "a"); err != nil {
				t.Fatal(err)
			}
		}
		clock.Advance(300 * time.Millisecond)
	}
	if n := w.called("chat.appendStream"); n != 5 {
		t.Errorf("appended %d times in 6 s, want 5: one at once, then one every second or, by steps of 0.3 s, 1.2 s", n)
	}
	if _, err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := w.Thread("CGENERAL", root)[1].Text; got != strings.Repeat("a", 100) {
		t.Errorf("got %q", got)
	}
}

func TestTheBudgetOfStreamsIsKept(t *testing.T) {
	w := newWorld(t, setup{twin: func(o *slacktwin.Options) { o.Enforce = true }})
	w.a.pace = newPacer()
	root := w.say("UALICE", "CGENERAL", "", "hello")
	opened := 0
	for range 30 {
		_, err := w.a.OpenStream(t.Context(), thread(root), alice, "m")
		if err == nil {
			opened++
		} else if err != platforms.ErrNoStream {
			t.Fatal(err)
		}
	}
	if opened != tier2.n {
		t.Errorf("opened %d at once, want %d", opened, tier2.n)
	}
}

func TestHarmless(t *testing.T) {
	if got := harmless("a <b> <-- <!doctype> <#C1|x>", '<'); got != "a <b> <-- <\u200b!doctype> <\u200b#C1|x>" {
		t.Errorf("got %q", got)
	}
	if got := harmless("@U1>", '<'); got != "\u200b@U1>" {
		t.Errorf("got %q", got)
	}
	if got := harmless("@U1>", 'x'); got != "@U1>" {
		t.Errorf("got %q", got)
	}
}

func TestStatusesOfAnAgentSession(t *testing.T) {
	w := newWorld(t, setup{twin: func(o *slacktwin.Options) {
		o.Agent, o.Unsubscribed = true, []string{"agent_session_stopped"}
	}})
	root := w.say("UALICE", "CGENERAL", "", "hello")
	for _, s := range []struct {
		set  platforms.Status
		want string
	}{{platforms.Working, "processing"}, {platforms.Waiting, "suspended"}, {platforms.Working, "processing"}, {platforms.Idle, "active"}} {
		if err := w.a.SetStatus(t.Context(), thread(root), messageRef("CGENERAL", root), s.set); err != nil {
			t.Fatal(err)
		}
		if got := w.Statuses(); len(got) != 1 || got[0].State != s.want {
			t.Errorf("%s: got %+v", s.set, got)
		}
	}
	if n := strings.Count(w.logs.String(), "no stop button"); n != 1 {
		t.Errorf("the missing subscription was told %d times, want once", n)
	}
	if n := w.called("reactions.add"); n != 0 {
		t.Errorf("reacted as well")
	}
}

func TestStatusesByReactions(t *testing.T) {
	w := newWorld(t, setup{})
	root := w.say("UALICE", "CGENERAL", "", "hello")
	on := messageRef("CGENERAL", root)
	for _, s := range []struct {
		set  platforms.Status
		want string
	}{
		{platforms.Working, "eyes"}, {platforms.Working, "eyes"}, {platforms.Waiting, hourglass}, {platforms.Idle, ""},
		{platforms.Idle, ""}, {platforms.Waiting, hourglass}, {platforms.Working, "eyes"}, {platforms.Idle, ""},
	} {
		if err := w.a.SetStatus(t.Context(), thread(root), on, s.set); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range w.Thread("CGENERAL", root)[0].Reactions {
			got = append(got, r.Name)
		}
		if strings.Join(got, " ") != s.want {
			t.Errorf("%s: got %v, want %q", s.set, got, s.want)
		}
	}
	if n := w.called("agents.sessions.setStatus"); n != 1 {
		t.Errorf("asked for the agent feature %d times, want once", n)
	}
}

func TestAfterARestartTheOldReactionsGo(t *testing.T) {
	w := newWorld(t, setup{})
	root := w.say("UALICE", "CGENERAL", "", "hello")
	on := messageRef("CGENERAL", root)
	if err := w.a.SetStatus(t.Context(), thread(root), on, platforms.Waiting); err != nil {
		t.Fatal(err)
	}
	w.a.shown = reactions{} // as in a new process
	if err := w.a.SetStatus(t.Context(), thread(root), on, platforms.Idle); err != nil {
		t.Fatal(err)
	}
	if got := w.Thread("CGENERAL", root)[0].Reactions; len(got) != 0 {
		t.Errorf("got %+v", got)
	}
}

func TestWithoutTheScopeThereAreNoReactions(t *testing.T) {
	w := newWorld(t, setup{})
	w.Fault(slacktwin.Fault{Method: "reactions.add", Error: "missing_scope", Times: -1})
	root := w.say("UALICE", "CGENERAL", "", "hello")
	for range 3 {
		if err := w.a.SetStatus(t.Context(), thread(root), messageRef("CGENERAL", root), platforms.Working); err != nil {
			t.Errorf("got %v", err)
		}
	}
	if n := w.called("reactions.add"); n != 1 {
		t.Errorf("tried %d times, want once", n)
	}
}

func TestPacingKeepsWithinTheTiers(t *testing.T) {
	tests := map[string]struct {
		method, channel string
		per             time.Duration // Slack's window
		most            int           // of calls in it
		atLeast         int           // calls in a minute, so that nothing is slower than need be
	}{
		"posts in a channel": {"chat.postMessage", "C1", 5 * time.Second, 5, 50},
		"updates":            {"chat.update", "", time.Minute, 50, 45},
		"streams":            {"chat.startStream", "", time.Minute, 20, 15},
		"appends":            {"chat.appendStream", "", time.Minute, 100, 90},
	}
	for name, tt := range tests {
		synctest.Test(t, func(t *testing.T) {
			p := newPacer()
			var at []time.Time
			for begin := time.Now(); time.Since(begin) < 5*time.Minute; {
				if err := p.wait(t.Context(), tt.method, tt.channel); err != nil {
					t.Fatal(err)
				}
				at = append(at, time.Now())
			}
			for i := range at {
				if j := i + tt.most; j < len(at) && at[j].Sub(at[i]) < tt.per {
					t.Fatalf("%s: %d calls within %v", name, tt.most+1, at[j].Sub(at[i]))
				}
			}
			if len(at) < 5*tt.atLeast {
				t.Errorf("%s: %d calls in 5 minutes, want at least %d", name, len(at), 5*tt.atLeast)
			}
		})
	}
}

func TestPacingWaitsOutRetryAfterAndNoLongerThanItMay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPacer()
		p.hold("chat.postMessage", 30*time.Second)
		begin := time.Now()
		if err := p.wait(t.Context(), "chat.update", ""); err != nil || time.Since(begin) != 0 {
			t.Errorf("another method: %v after %v", err, time.Since(begin))
		}
		if err := p.wait(t.Context(), "chat.postMessage", "C1"); err != nil || time.Since(begin) != 30*time.Second {
			t.Errorf("%v after %v, want 30 s", err, time.Since(begin))
		}
		p.hold("chat.postMessage", 30*time.Second)
		ctx, cancel := contextFor(t, 10*time.Second)
		defer cancel()
		begin = time.Now()
		err := p.wait(ctx, "chat.postMessage", "C1")
		if failure(err) != "slow_down " || retryAfter(err) != 30*time.Second || time.Since(begin) != 0 {
			t.Errorf("got %v, wait %v, after %v", err, retryAfter(err), time.Since(begin))
		}
	})
}

func TestQuietChannelsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPacer()
		for i := range 3 * keptChannels {
			if err := p.wait(t.Context(), "chat.postMessage", "C"+string(rune(i))); err != nil {
				t.Fatal(err)
			}
		}
		if n := len(p.channels); n > keptChannels {
			t.Errorf("%d channels remembered", n)
		}
	})
}

func TestAStreamThatNobodyClosedIsFound(t *testing.T) {
	w := newWorld(t, setup{})
	root := w.say("UALICE", "CGENERAL", "", "hello")
	open := func(mark string) platforms.Stream {
		t.Helper()
		s, err := w.a.OpenStream(t.Context(), thread(root), alice, mark)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	expect := func(after, want platforms.MessageRef) {
		t.Helper()
		got, err := w.a.FindStream(t.Context(), thread(root), after)
		if err != nil || got != want {
			t.Errorf("after %q: got %q, %v, want %q", after, got, err, want)
		}
	}
	posted := w.post(thread(root), "m1", "an answer")
	closed := open("m2")
	if _, err := closed.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	expect("", "")
	left := open("m3").Ref()
	w.say("UALICE", "CGENERAL", root, "anybody there?")
	expect("", left)
	expect(posted, left)
	expect(closed.Ref(), left)
	expect(left, "")
	if err := w.a.Edit(t.Context(), left, partOf("the whole answer")); err != nil {
		t.Fatal(err)
	}
	expect(closed.Ref(), left) // its words changed; who knows that it is done asks for what came after
	if got, err := w.a.FindStream(t.Context(), "T0TWIN/DALICE", ""); got != "" || err != nil {
		t.Errorf("in a plain direct message: got %q, %v, want nothing", got, err)
	}
}
