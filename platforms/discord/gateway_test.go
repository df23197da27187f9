package discord

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

func TestAMentionArrivesAndIsKept(t *testing.T) {
	t.Parallel()
	l := newLine(t, nil)
	l.start()
	l.ready()
	f := l.conn(0)
	if f.query != "v=10&encoding=json" {
		t.Errorf("query: got %q", f.query)
	}
	f.dispatch(2, "MESSAGE_CREATE", mentioning("500000000000000001", channelID, "hello"))
	l.await("the message", func() bool { return len(l.inbox.all()) == 1 })
	if got := l.texts(); !slices.Equal(got, []string{"hello"}) {
		t.Errorf("got %q", got)
	}
	want := guildID + "/" + channelID + "/500000000000000001"
	if got := l.inbox.all()[0].Conversation; string(got) != want {
		t.Errorf("conversation: got %s, want %s", got, want)
	}
}

// interruptions are ways in which a connection may end of which a session is resumed.
func TestASessionIsResumedAfterEveryEndThatLeavesIt(t *testing.T) {
	t.Parallel()
	for name, interrupt := range map[string]func(*far){
		"the TCP connection ends": func(f *far) { _ = f.conn.UnderlyingConn().Close() },
		"Discord asks":            func(f *far) { f.send(map[string]any{"op": 7, "d": nil}) },
		"an unknown error":        func(f *far) { f.close(4000) },
		"too fast":                func(f *far) { f.close(4008) },
		"a restart":               func(f *far) { f.close(1012) },
		"an invalid session that may be resumed": func(f *far) {
			f.send(map[string]any{"op": 9, "d": true})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLine(t, nil)
			l.hooked.resume = func(_ int, f *far) bool {
				f.dispatch(3, "MESSAGE_CREATE", mentioning("500000000000000002", channelID, "missed"))
				return true
			}
			l.start()
			l.ready()
			l.conn(0).dispatch(2, "MESSAGE_CREATE", mentioning("500000000000000001", channelID, "before"))
			l.await("the first message", func() bool { return len(l.inbox.all()) == 1 })
			began := time.Now()
			interrupt(l.conn(0))
			next := l.conn(1)
			l.await("the resumption", func() bool { return l.a.Ready() == nil && l.a.Connections() == 2 })
			if d := time.Since(began); d > 8*time.Second {
				t.Errorf("recovered after %v", d)
			}
			if got := next.ops(); len(got) == 0 || got[0] != 6 {
				t.Errorf("got opcodes %v, want RESUME", got)
			}
			if !strings.HasPrefix(next.path, "/resume") {
				t.Errorf("resumed at %q, not where READY said", next.path)
			}
			next.dispatch(4, "MESSAGE_CREATE", mentioning("500000000000000003", channelID, "after"))
			l.await("all messages", func() bool { return len(l.inbox.all()) == 3 })
			if got := l.texts(); !slices.Equal(got, []string{"before", "missed", "after"}) {
				t.Errorf("got %q", got)
			}
			if code := l.conn(0).code(); code == 1000 || code == 1001 {
				t.Errorf("closed with %d, which ends the session", code)
			}
		})
	}
}

func (f *far) close(code int) {
	f.writing.Lock()
	defer f.writing.Unlock()
	_ = f.conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, ""), time.Now().Add(time.Second))
}

// code is the close code that came.
func (f *far) code() int {
	<-f.lost
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.closed
}

func TestANewSessionBeginsWhereTheOldOneIsLost(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(*line){
		"the session is called invalid": func(l *line) { l.conn(0).send(map[string]any{"op": 9, "d": false}) },
		"the session timed out":         func(l *line) { l.conn(0).close(4009) },
		"the sequence is wrong":         func(l *line) { l.conn(0).close(4007) },
		"RESUME is called invalid": func(l *line) {
			l.mu.Lock()
			l.hooked.resume = func(_ int, f *far) bool { f.send(map[string]any{"op": 9, "d": false}); return false }
			l.mu.Unlock()
			_ = l.conn(0).conn.UnderlyingConn().Close()
		},
		"RESUME is called invalid and the socket closed": func(l *line) {
			l.mu.Lock()
			l.hooked.resume = func(_ int, f *far) bool {
				f.send(map[string]any{"op": 9, "d": false})
				_ = f.conn.UnderlyingConn().Close()
				return false
			}
			l.mu.Unlock()
			_ = l.conn(0).conn.UnderlyingConn().Close()
		},
		"RESUME is never answered, three times cut": func(l *line) {
			l.mu.Lock()
			l.hooked.resume = func(_ int, f *far) bool { _ = f.conn.UnderlyingConn().Close(); return false }
			l.mu.Unlock()
			_ = l.conn(0).conn.UnderlyingConn().Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLine(t, nil)
			l.on("GET /channels/"+channelID+"/messages", func(w http.ResponseWriter, _ []byte) {
				respond(w, 200, []any{
					looked(mentioning("500000000000000003", channelID, "missed second")),
					looked(mentioning("500000000000000002", channelID, "missed first")),
				})
			})
			l.start()
			l.ready()
			l.conn(0).dispatch(2, "GUILD_CREATE", map[string]any{"id": guildID, "channels": []any{map[string]any{"id": channelID, "type": 0}}})
			l.conn(0).dispatch(3, "MESSAGE_CREATE", mentioning("500000000000000001", channelID, "before"))
			l.await("the first message", func() bool { return len(l.inbox.all()) == 1 })
			lose(l)
			l.await("a new session", func() bool { return l.a.Ready() == nil && l.a.Connections() == 2 })
			last := l.conn(l.connections() - 1)
			if got := last.ops(); got[0] != 2 {
				t.Errorf("got opcodes %v, want IDENTIFY", got)
			}
			last.dispatch(2, "MESSAGE_CREATE", mentioning("500000000000000004", channelID, "after"))
			l.await("all messages", func() bool { return len(l.inbox.all()) == 4 })
			if got := l.texts(); !slices.Equal(got, []string{"before", "missed first", "missed second", "after"}) {
				t.Errorf("got %q", got)
			}
			looks := l.callsTo("/messages?after=")
			if len(looks) == 0 || !strings.Contains(looks[0].route, "after=500000000000000001&") {
				t.Errorf("looked up %+v", looks)
			}
		})
	}
}

// looked is a message as it is looked up: without its guild and the type of its channel.
func looked(m map[string]any) map[string]any {
	delete(m, "guild_id")
	delete(m, "channel_type")
	return m
}

func TestWhatOnlyTheOperatorCanMendEndsTheRun(t *testing.T) {
	t.Parallel()
	for code, hint := range fatal {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			t.Parallel()
			l := newLine(t, nil)
			l.hooked.identify = func(_ int, f *far) bool { f.close(code); return false }
			l.start()
			err := <-l.ended
			if err == nil || !strings.Contains(err.Error(), hint) {
				t.Errorf("got %v, want %q", err, hint)
			}
			if ready := l.a.Ready(); ready == nil || ready.Error() != err.Error() {
				t.Errorf("ready: got %v", ready)
			}
			if n := l.connections(); n != 1 {
				t.Errorf("connected %d times", n)
			}
		})
	}
	t.Run("while it runs", func(t *testing.T) {
		t.Parallel()
		l := newLine(t, nil)
		l.start()
		l.ready()
		l.conn(0).close(4004)
		if err := <-l.ended; err == nil || !strings.Contains(err.Error(), "token") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a token that REST refuses", func(t *testing.T) {
		t.Parallel()
		l := newLine(t, nil)
		l.on("GET /gateway/bot", func(w http.ResponseWriter, _ []byte) {
			respond(w, 401, map[string]any{"code": 0, "message": "401: Unauthorized"})
		})
		l.start()
		if err := <-l.ended; err == nil || !strings.Contains(err.Error(), "token") || strings.Contains(err.Error(), "secret") {
			t.Errorf("got %v", err)
		}
		if n := len(l.callsTo("/")); n != 1 {
			t.Errorf("%d calls with a token that does not work", n)
		}
	})
}

func TestAConnectionThatDoesNotBeginIsGivenUp(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]func(f *far){
		"no HELLO":                func(*far) {},
		"reconnect before HELLO":  func(f *far) { f.send(map[string]any{"op": 7, "d": nil}) },
		"invalid before HELLO":    func(f *far) { f.send(map[string]any{"op": 9, "d": false}) },
		"closed before HELLO":     func(f *far) { _ = f.conn.UnderlyingConn().Close() },
		"no JSON instead":         func(f *far) { _ = f.conn.WriteMessage(websocket.TextMessage, []byte("no")) },
		"something else instead":  func(f *far) { f.send([]int{1}) },
		"an answer to no request": func(f *far) { f.send(map[string]any{"op": 11}) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLine(t, nil)
			l.script = func(n int, f *far) {
				if n == 0 {
					first(f)
					return
				}
				f.hello()
			}
			l.start()
			began := time.Now()
			l.ready()
			if d := time.Since(began); d > helloWithin+8*time.Second {
				t.Errorf("recovered after %v", d)
			}
		})
	}
}

func TestIDENTIFYAnsweredWithInvalidSessionIsRepeatedAfterAPauseOnly(t *testing.T) {
	t.Parallel()
	l := newLine(t, nil)
	l.hooked.identify = func(n int, f *far) bool {
		if n < 2 {
			f.send(map[string]any{"op": 9, "d": false})
			return false
		}
		return true
	}
	began := time.Now()
	l.start()
	l.ready()
	if n := l.connections(); n != 3 {
		t.Errorf("%d connections, want 3", n)
	}
	if d := time.Since(began); d < 2*identifyEvery {
		t.Errorf("identified three times within %v", d)
	}
	for i := range 2 {
		if got := l.conn(i).ops(); !slices.Equal(got, []int{2}) {
			t.Errorf("connection %d: got opcodes %v, want one IDENTIFY", i, got)
		}
	}
}

func TestALinkWithoutAnswersToHeartbeatsIsReplaced(t *testing.T) {
	t.Parallel()
	l := newLine(t, nil)
	l.script = func(n int, f *far) {
		f.interval = 300 * time.Millisecond
		f.noAcks = n == 0
		f.hello()
	}
	l.start()
	l.ready()
	began := time.Now()
	l.await("another connection", func() bool { return l.a.Connections() == 2 && l.a.Ready() == nil })
	if d := time.Since(began); d > 5*time.Second {
		t.Errorf("found out after %v", d)
	}
	if got := l.conn(1).ops(); got[0] != 6 {
		t.Errorf("got %v, want RESUME", got)
	}
	time.Sleep(2 * time.Second) // the second link answers: nothing happens to it
	if n := l.connections(); n != 2 {
		t.Errorf("%d connections", n)
	}
}

func TestTheBudgetOfIdentifiesIsNotUsedUp(t *testing.T) {
	t.Parallel()
	l := newLine(t, nil)
	l.limit = map[string]any{"total": 1000, "remaining": 30, "reset_after": 1000, "max_concurrency": 1}
	l.start()
	l.await("a reason", func() bool {
		err := l.a.Ready()
		return err != nil && strings.Contains(err.Error(), "too few connections are left")
	})
	if n := l.connections(); n != 0 {
		t.Errorf("%d connections", n)
	}
	l.mu.Lock()
	l.limit = map[string]any{"total": 1000, "remaining": 1000, "reset_after": 1000, "max_concurrency": 1}
	l.mu.Unlock()
	l.ready()
}

func TestShardsBeginInOrderAndInPace(t *testing.T) {
	t.Parallel()
	l := newLine(t, nil)
	l.on("GET /gateway/bot", func(w http.ResponseWriter, _ []byte) {
		respond(w, 200, map[string]any{"shards": 4, "session_start_limit": map[string]any{"total": 1000, "remaining": 1000, "max_concurrency": 2}})
	})
	began := time.Now()
	l.start()
	l.ready()
	if d := time.Since(began); d < identifyEvery || d > 2*identifyEvery {
		t.Errorf("four shards, two at a time, took %v", d)
	}
	if n := l.connections(); n != 4 {
		t.Errorf("%d connections", n)
	}
}

func TestReplayedAndReorderedAndUnknownEventsAreTakenOnce(t *testing.T) {
	t.Parallel()
	l := newLine(t, nil)
	l.start()
	l.ready()
	f := l.conn(0)
	strange := mentioning("500000000000000002", channelID, "strange")
	strange["components"] = []any{map[string]any{"type": 99, "components": "none"}}
	strange["embeds"] = "not a list"
	strange["new_field"] = map[string]any{"x": 1}
	for seq, id := range []string{"500000000000000003", "500000000000000001", "500000000000000003"} {
		f.dispatch(seq+2, "MESSAGE_CREATE", mentioning(id, channelID, id))
	}
	f.dispatch(5, "SOMETHING_NEW", map[string]any{"a": 1})
	f.dispatch(6, "MESSAGE_CREATE", strange)
	f.dispatch(7, "MESSAGE_CREATE", []int{1})
	l.await("the messages", func() bool { return len(l.inbox.all()) == 3 })
	if got := l.texts(); !slices.Equal(got, []string{"500000000000000003", "500000000000000001", "strange"}) {
		t.Errorf("got %q", got)
	}
}

func TestWhatCannotBeKeptIsTriedAgain(t *testing.T) {
	t.Parallel()
	l := newLine(t, nil)
	l.inbox.refuse = 2
	l.start()
	l.ready()
	l.conn(0).dispatch(2, "MESSAGE_CREATE", mentioning("500000000000000001", channelID, "one"))
	l.conn(0).dispatch(3, "MESSAGE_CREATE", mentioning("500000000000000002", channelID, "two"))
	l.await("both", func() bool { return len(l.inbox.all()) == 2 })
	if got := l.texts(); !slices.Equal(got, []string{"one", "two"}) {
		t.Errorf("got %q", got)
	}
}

func TestTheEndDoesNotWaitForHello(t *testing.T) {
	t.Parallel()
	l := newLine(t, nil)
	l.script = func(int, *far) {}
	stop := l.start()
	l.conn(0)
	began := time.Now()
	stop()
	if d := time.Since(began); d > time.Second {
		t.Errorf("took %v", d)
	}
	if err := <-l.ended; err != nil {
		t.Errorf("got %v", err)
	}
}

func TestNothingThatIsLoggedHoldsTheToken(t *testing.T) {
	t.Parallel()
	l := newLine(t, nil)
	l.hooked.identify = func(n int, f *far) bool { return n > 0 || func() bool { f.close(4000); return false }() }
	l.start()
	l.ready()
	if strings.Contains(l.logs.String(), "secret-token") {
		t.Errorf("logs: %s", l.logs)
	}
}

func TestCommandsAreRegisteredOnlyWhenTheyChanged(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		has  any
		puts int
	}{
		"none":  {[]any{}, 1},
		"ours":  {slashCommands(), 0},
		"other": {append(slashCommands()[1:], slashCommand{Name: "old", Description: "x", Type: 1}), 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLine(t, nil)
			path := "/applications/" + appID + "/commands"
			l.on("GET "+path, func(w http.ResponseWriter, _ []byte) { respond(w, 200, c.has) })
			l.on("PUT "+path, func(w http.ResponseWriter, body []byte) {
				var all []slashCommand
				if json.Unmarshal(body, &all) != nil || !sameCommands(all, slashCommands()) {
					t.Errorf("put %s", body)
				}
				respond(w, 200, all)
			})
			l.start()
			l.ready()
			l.await("the question", func() bool { return len(l.callsTo("GET "+path)) == 1 })
			if c.puts > 0 {
				l.await("the registration", func() bool { return len(l.callsTo("PUT "+path)) == c.puts })
			}
			time.Sleep(50 * time.Millisecond)
			if got := len(l.callsTo("PUT " + path)); got != c.puts {
				t.Errorf("%d registrations, want %d", got, c.puts)
			}
		})
	}
}
