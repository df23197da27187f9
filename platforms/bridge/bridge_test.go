package bridge_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-chat/parley/core/llm"
	"github.com/parley-chat/parley/core/llm/echo"
	"github.com/parley-chat/parley/platforms"
)

func TestAMessageIsAnsweredOnce(t *testing.T) {
	inBubble(t, func(w *world) {
		w.start()
		w.say("ada", "what time is it?")
		w.sees("noon")
	})
}

func TestARedeliveryIsNotAnsweredAgain(t *testing.T) {
	inBubble(t, func(w *world) {
		w.start()
		w.say("ada", "what time is it?")
		w.sees("noon")
		w.redeliver()
		w.sees("noon")
		w.stop()
		w.start()
		w.redeliver()
		w.sees("noon")
	})
}

func TestMessagesOfOneConversationAreAnsweredInOrder(t *testing.T) {
	inBubble(t, func(w *world) {
		w.provider = echo.New(time.Second)
		w.start()
		for _, text := range []string{"one", "two", "three"} {
			w.say("ada", text)
		}
		time.Sleep(10 * time.Second)
		w.sees("echo: one", "echo: two", "echo: three")
	})
}

func TestAnApprovedCallRunsOnceAndTheReplyFollows(t *testing.T) {
	inBubble(t, func(w *world) {
		w.start()
		w.say("ada", "deploy web")
		w.sees("Approval needed")
		w.press("grace", "approve")
		w.sees("Approved by grace", "it is up")
		if len(w.ran) != 1 {
			t.Errorf("deploy ran %d times, want once", len(w.ran))
		}
	})
}

func TestTheStatusTellsThatADecisionIsWaitedFor(t *testing.T) {
	inBubble(t, func(w *world) {
		w.start()
		w.say("ada", "deploy web")
		w.sees("Approval needed")
		if got := w.statuses(); !slices.Equal(got, []platforms.Status{platforms.Waiting}) {
			t.Errorf("got statuses %v while the request waits, want waiting", got)
		}
		w.press("grace", "approve")
		w.sees("Approved", "it is up")
		if got := w.statuses(); !slices.Equal(got, []platforms.Status{platforms.Waiting, platforms.Idle}) {
			t.Errorf("got statuses %v after the decision, want waiting and idle", got)
		}
	})
}

// statuses are what the bot said it was doing, in order.
func (w *world) statuses() []platforms.Status {
	var said []platforms.Status
	for _, s := range w.place.Statuses() {
		said = append(said, s.Status)
	}
	return said
}

func TestADecisionSurvivesARestart(t *testing.T) {
	inBubble(t, func(w *world) {
		w.start()
		w.say("ada", "deploy web")
		w.sees("Approval needed")
		w.stop()
		w.start()
		w.press("grace", "approve")
		w.sees("Approved by grace", "it is up")
	})
}

func TestWhoMayNotDecideIsTold(t *testing.T) {
	inBubble(t, func(w *world) {
		w.start()
		w.say("grace", "deploy web")
		synctest.Wait()
		w.press("ada", "approve")
		w.press("grace", "approve") // her own request
		w.sees("Approval needed")
		notices := w.notices()
		if len(notices) != 2 || !strings.HasPrefix(notices[0], "ada: ") || !strings.HasPrefix(notices[1], "grace: ") {
			t.Errorf("got notices %q, want one for ada and one for grace", notices)
		}
		if len(w.ran) != 0 {
			t.Errorf("deploy ran %d times, want never", len(w.ran))
		}
	})
}

func TestTheSecondClickIsToldWhoDecided(t *testing.T) {
	inBubble(t, func(w *world) {
		w.place.SetGroup("ops", "hedy")
		w.start()
		w.say("ada", "deploy web")
		synctest.Wait()
		card := w.place.Answers()[0].Ref
		w.press("grace", "deny")
		synctest.Wait()
		w.pressOn(card, "hedy", "approve") // she still sees the old card
		w.sees("Denied by grace", "denied by grace")
		notices := w.notices()
		if len(notices) != 1 || !strings.HasPrefix(notices[0], "hedy: ") || !strings.Contains(notices[0], "grace") {
			t.Errorf("got notices %q, want one that tells hedy about grace", notices)
		}
		if len(w.ran) != 0 {
			t.Errorf("deploy ran %d times, want never", len(w.ran))
		}
	})
}

func TestAMemberOfAGroupMayDecide(t *testing.T) {
	inBubble(t, func(w *world) {
		w.place.SetGroup("ops", "hedy")
		w.start()
		w.say("ada", "deploy web")
		synctest.Wait()
		w.press("hedy", "approve")
		w.sees("Approved by hedy", "it is up")
	})
}

func TestAGroupNobodyCanTellIsNo(t *testing.T) {
	inBubble(t, func(w *world) {
		w.start()
		w.say("ada", "deploy web")
		synctest.Wait()
		w.press("hedy", "approve")
		w.sees("Approval needed")
		if len(w.notices()) != 1 {
			t.Errorf("got notices %q, want one", w.notices())
		}
	})
}

func TestWithoutApproversNothingWaits(t *testing.T) {
	inBubble(t, func(w *world) {
		w.policy.Deciders = nil
		w.start()
		w.say("ada", "deploy web")
		w.sees("Cancelled", "cancelled")
		if len(w.ran) != 0 {
			t.Errorf("deploy ran %d times, want never", len(w.ran))
		}
	})
}

func TestARequestExpiresAsNoAnswer(t *testing.T) {
	inBubble(t, func(w *world) {
		w.start()
		w.say("ada", "deploy web")
		w.sees("Approval needed")
		time.Sleep(2 * time.Hour)
		w.sees("No answer", "no answer")
	})
}

func TestARequestThatExpiredWhileTheBotWasAwayEndsAtTheStart(t *testing.T) {
	inBubble(t, func(w *world) {
		w.start()
		w.say("ada", "deploy web")
		w.sees("Approval needed")
		w.stop()
		time.Sleep(2 * time.Hour)
		w.start()
		w.sees("No answer", "no answer")
	})
}

func TestTheConversationGoesOnWhileARequestWaits(t *testing.T) {
	inBubble(t, func(w *world) {
		w.start()
		w.say("ada", "deploy web")
		synctest.Wait()
		w.say("ada", "what time is it?")
		w.sees("Approval needed", "noon")
		w.press("grace", "approve")
		w.sees("Approved", "noon", "it is up")
		w.say("ada", "and what time is it now?")
		w.sees("Approved", "noon", "it is up", "noon")
	})
}

func TestStopEndsTheRunningTurn(t *testing.T) {
	inBubble(t, func(w *world) {
		w.provider = echo.New(time.Hour)
		w.start()
		w.say("ada", "something long")
		time.Sleep(5 * time.Second)
		w.place.Stop(user("ada"), room)
		w.sees("Stopped.")
		if got := w.place.Statuses(); len(got) != 2 || got[0].Status != platforms.Working || got[1].Status != platforms.Idle {
			t.Errorf("got statuses %v, want working and idle", got)
		}
	})
}

func TestStopCancelsWhatIsAskedFor(t *testing.T) {
	inBubble(t, func(w *world) {
		w.start()
		w.say("ada", "deploy web")
		synctest.Wait()
		w.place.Stop(user("ada"), room)
		w.sees("Cancelled by ada", "cancelled")
	})
}

func TestResetForgetsTheConversation(t *testing.T) {
	inBubble(t, func(w *world) {
		w.start()
		w.say("ada", "deploy web")
		synctest.Wait()
		w.say("ada", "reset")
		w.sees("Cancelled by ada", "remember nothing")
		w.say("ada", "what time is it?")
		w.sees("Cancelled by ada", "remember nothing", "noon")
	})
}

func TestAWaitingMessageCanBeEditedAndDeleted(t *testing.T) {
	inBubble(t, func(w *world) {
		w.provider = echo.New(time.Minute)
		w.start()
		w.say("ada", "first")
		second := w.say("ada", "second")
		third := w.say("ada", "third")
		synctest.Wait()
		if err := errors.Join(w.place.Edit(second, "second, changed"), w.place.Delete(third)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Minute)
		w.sees("echo: first", "echo: second, changed")
	})
}

func TestALostAnswerIsLookedUpAndNotSaidTwice(t *testing.T) {
	inBubble(t, func(w *world) {
		w.place.LoseAnswer()
		w.start()
		w.say("ada", "what time is it?")
		time.Sleep(time.Minute)
		w.sees("noon")
	})
}

func TestSlowDownIsWaitedOutInOrder(t *testing.T) {
	inBubble(t, func(w *world) {
		slow := &platforms.Error{Failure: platforms.SlowDown, RetryAfter: 30 * time.Second}
		w.place.FailPosts(slow, slow)
		w.start()
		begun := time.Now()
		w.say("ada", "what time is it?")
		w.say("ada", "deploy web")
		synctest.Wait()
		time.Sleep(2 * time.Minute)
		w.sees("noon", "Approval needed")
		if time.Since(begun) < time.Minute {
			t.Error("the bot did not wait as long as it was told")
		}
	})
}

func TestAmbientTalkIsAnsweredOnlyWhereTheBotTalks(t *testing.T) {
	inBubble(t, func(w *world) {
		w.start()
		ambient := func() { w.place.Say(user("ada"), room, platforms.Ambient, "time") }
		ambient()
		w.sees()
		w.say("ada", "time")
		w.sees("noon")
		ambient()
		w.sees("noon", "noon")
	})
}

// streaming answers in two pieces with a pause in between.
type streaming struct{ llm.Provider }

func (s streaming) Stream(ctx context.Context, req llm.Request, onText func(string)) (llm.Response, error) {
	onText("The first half, ")
	select {
	case <-time.After(10 * time.Second):
	case <-ctx.Done():
		return llm.Response{}, ctx.Err()
	}
	onText("the second.")
	return llm.Response{Message: llm.AssistantText("The first half, the second."), Finish: llm.FinishStop}, nil
}

func TestAGrowingAnswerBecomesTheWholeOne(t *testing.T) {
	inBubble(t, func(w *world) {
		w.provider = streaming{echo.New(0)}
		w.start()
		w.say("ada", "hello")
		time.Sleep(5 * time.Second)
		w.sees("The first half, …")
		time.Sleep(time.Minute)
		w.sees("The first half, the second.")
	})
}

// A card that the platform did not take used to become a sentence without buttons, and its request waited for nobody.
func TestARequestWhoseCardIsNotTakenIsCancelled(t *testing.T) {
	inBubble(t, func(w *world) {
		w.place.FailPosts(&platforms.Error{Failure: platforms.Malformed, Op: "fake: post"})
		w.start()
		w.say("ada", "deploy web")
		w.sees("cancelled")
		if len(w.ran) != 0 {
			t.Errorf("deploy ran %d times, want never", len(w.ran))
		}
	})
}

// A mention that had to be sent again used to find its follow-ups gone: they had come first, to a place that the bot did
// not know.
func TestAFollowUpThatOvertakesTheMentionIsAnsweredAfterIt(t *testing.T) {
	inBubble(t, func(w *world) {
		w.provider = echo.New(0)
		w.start()
		mentioned := time.Now()
		time.Sleep(time.Second)
		w.place.Say(user("ada"), room, platforms.Ambient, "and the second")
		w.sees()
		w.stop()
		w.start()
		w.place.SaidAt(mentioned, user("ada"), room, platforms.Mentioned, "the first")
		w.sees("echo: the first", "echo: and the second")
	})
}

func TestTalkBeforeTheMentionIsNotAnswered(t *testing.T) {
	inBubble(t, func(w *world) {
		w.provider = echo.New(0)
		w.start()
		w.place.Say(user("ada"), room, platforms.Ambient, "shall we ask it?")
		time.Sleep(time.Second)
		w.say("ada", "hello")
		w.sees("echo: hello")
	})
}
