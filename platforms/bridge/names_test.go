package bridge_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-chat/parley/conformance/platformtest/fake"
	"github.com/parley-chat/parley/platforms"
)

func TestACardNamesPeopleAsTheirPlatformDoes(t *testing.T) {
	inBubble(t, func(w *world) {
		w.place.SetName("ada", "Ada Lovelace")
		w.place.SetName("grace", "Grace Hopper")
		w.start()
		w.say("ada", "deploy web")
		w.sees("Approval needed")
		if card := w.texts()[0]; !strings.Contains(card, "For: Ada Lovelace") || !strings.Contains(card, "Grace Hopper or the members of fake:group:ops") {
			t.Errorf("the card does not name Ada Lovelace, Grace Hopper and the group:\n%s", card)
		}
		w.press("grace", "approve")
		w.sees("Approved by Grace Hopper at", "it is up")
	})
}

// dumb never says a name.
type dumb struct{ *fake.Adapter }

func (dumb) Name(ctx context.Context, _ platforms.UserID) (string, error) {
	<-ctx.Done()
	return "", ctx.Err()
}

func TestADecisionDoesNotWaitLongForNames(t *testing.T) {
	inBubble(t, func(w *world) {
		w.change = func(a *fake.Adapter) platforms.Adapter { return dumb{a} }
		w.start()
		w.say("ada", "deploy web")
		time.Sleep(2 * time.Second)
		w.sees("For: ada")
		w.press("grace", "approve")
		time.Sleep(2 * time.Second)
		w.sees("Approved by grace", "it is up")
	})
}

// loudspeaker can tell nobody alone.
type loudspeaker struct{ platforms.Adapter }

func TestWhereNobodyCanBeToldAloneAllAreTold(t *testing.T) {
	inBubble(t, func(w *world) {
		w.change = func(a *fake.Adapter) platforms.Adapter { return loudspeaker{a} }
		w.start()
		w.say("ada", "deploy web")
		synctest.Wait()
		w.press("hedy", "approve")
		w.sees("Approval needed", "nothing was counted")
		w.place.Command(user("ada"), room, "status", "")
		w.sees("Approval needed", "nothing was counted", "Approvals waiting: 1")
	})
}

func TestARequestEndsWithItsMessageOrItsCard(t *testing.T) {
	for name, which := range map[string]func(asked, card platforms.MessageRef) platforms.MessageRef{
		"the message that asked": func(asked, _ platforms.MessageRef) platforms.MessageRef { return asked },
		"the card":               func(_, card platforms.MessageRef) platforms.MessageRef { return card },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(w *world) {
				w.start()
				asked := w.say("ada", "deploy web")
				synctest.Wait()
				if err := w.place.Delete(which(asked, w.place.Answers()[0].Ref)); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if got := strings.Join(w.texts(), "\n"); !strings.Contains(got, "Cancelled") || !strings.Contains(got, "The request was cancelled.") {
					t.Errorf("people see\n%s\nwant that the request is cancelled", got)
				}
				if len(w.ran) != 0 {
					t.Errorf("deploy ran %d times, want never", len(w.ran))
				}
			})
		})
	}
}
