package platformtest

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/parley-chat/parley/approvals"
)

// approving are the clauses about who may decide and what becomes of it, by pressing buttons.
func approving() []Clause {
	notices := func(a Abilities) bool { return a.Notices }
	return []Clause{
		{"a card says what would run, for whom, who may decide and until when", nil, CardFacts},
		{"a card names people as they are called", func(a Abilities) bool { return a.Names }, CardNames},
		{"a card calls those who may decide and nobody else", nil, CardCalls},
		{"what a model writes into a request calls nobody", nil, HostileRequest},
		{"what is approved runs once, and its answer follows", nil, Approve},
		{"what is denied does not run, and the answer says who denied it", nil, Deny},
		{"a denial can have a reason, which is told", func(a Abilities) bool { return a.Modals }, DenyWithReason},
		{"who may not decide is told so, alone", notices, NotPermitted},
		{"nobody approves their own request", notices, SelfApproval},
		{"a member of a group that may decide may decide", func(a Abilities) bool { return a.Groups }, GroupMember},
		{"who presses second is told who decided", notices, SecondPress},
		{"a card can be pressed after a restart", nil, PressAfterRestart},
		{"a card can be pressed after a kill", nil, PressAfterKill},
		{"of two requests side by side each is decided for itself", nil, TwoRequests},
		{"a request whose time runs out has no answer, which is not a denial", nil, Expiry},
		{"a request that ran out while the bot was away ends at its start", nil, ExpiryWhileAway},
		{"without approvers nothing waits", nil, WithoutApprovers},
		{"the conversation goes on while a request waits", nil, TalkWhileWaiting},
		{"a request is taken back when its message is deleted", nil, AskingMessageDeleted},
	}
}

var moment = regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d UTC`)

// CardFacts reads a card.
func CardFacts(ctx context.Context, s *Scene) error {
	_, card, err := s.ask(ctx, Cast{}, Ada)
	if err != nil {
		return err
	}
	if !containsAll(card.Text, "Approval needed", "deploy", `"service"`, `"web"`, "You want web deployed.", "For", "May decide", "Until") {
		return fmt.Errorf("the card lacks something:\n%s", card.Text)
	}
	if !moment.MatchString(card.Text) {
		return fmt.Errorf("the card does not say until when:\n%s", card.Text)
	}
	want := []string{approvals.ActionApprove, approvals.ActionDeny, approvals.ActionDenyReason}
	if !slices.Equal(card.Buttons, want) {
		return fmt.Errorf("the card has the buttons %v, want %v", card.Buttons, want)
	}
	return s.Ledger.times(0)
}

// CardNames looks for names.
func CardNames(ctx context.Context, s *Scene) error {
	in, card, err := s.ask(ctx, Cast{}, Ada)
	if err != nil {
		return err
	}
	if !containsAll(card.Text, string(Ada), string(Grace)) {
		return fmt.Errorf("the card does not name Ada, who asked, and Grace, who may decide:\n%s", card.Text)
	}
	if err := s.press(ctx, Grace, in, approvals.ActionApprove); err != nil {
		return err
	}
	return s.stays(ctx, in, "Approved by "+string(Grace)+" at", "deployed")
}

// CardCalls looks at whom a card calls, while it waits and when it is decided.
func CardCalls(ctx context.Context, s *Scene) error {
	in, card, err := s.ask(ctx, Cast{Deciders: []string{s.Setting(Grace), s.Setting(Hedy)}}, Ada)
	if err != nil {
		return err
	}
	if got := slices.Sorted(slices.Values(card.Notifies)); !slices.Equal(got, []Person{Grace, Hedy}) {
		return fmt.Errorf("the card calls %v, want Grace and Hedy", got)
	}
	if err := s.Press(ctx, Grace, in, card, approvals.ActionDeny); err != nil {
		return err
	}
	if err := s.reads(ctx, in, "Denied", "denied"); err != nil {
		return err
	}
	for _, m := range s.answers(in) {
		if len(m.Notifies) > 0 {
			return fmt.Errorf("there is nothing to decide any more, and %v are called:\n%s", m.Notifies, m.Text)
		}
	}
	return nil
}

// HostileRequest has a model put into requests whatever would call people.
func HostileRequest(ctx context.Context, s *Scene) error {
	if err := s.Start(ctx, Cast{Model: &Deployer{Services: s.Shouts()}}); err != nil {
		return err
	}
	for range s.Shouts() {
		said, err := s.mention(ctx, Ada, "deploy something")
		if err != nil {
			return err
		}
		if _, err := s.card(ctx, said.In); err != nil {
			return err
		}
		for _, m := range s.answers(said.In) {
			if slices.ContainsFunc(m.Notifies, func(p Person) bool { return p != Grace }) {
				return fmt.Errorf("a request calls %v:\n%s", m.Notifies, m.Text)
			}
		}
	}
	return nil
}

// Approve presses approve.
func Approve(ctx context.Context, s *Scene) error {
	in, card, err := s.ask(ctx, Cast{}, Ada)
	if err != nil {
		return err
	}
	if err := s.Press(ctx, Grace, in, card, approvals.ActionApprove); err != nil {
		return err
	}
	if err := s.stays(ctx, in, "Approved", `deployed {"service":"web"}`); err != nil {
		return err
	}
	return errors.Join(s.unpressable(in, card), s.Ledger.times(1))
}

// Deny presses deny.
func Deny(ctx context.Context, s *Scene) error {
	in, card, err := s.ask(ctx, Cast{}, Ada)
	if err != nil {
		return err
	}
	if err := s.Press(ctx, Grace, in, card, approvals.ActionDeny); err != nil {
		return err
	}
	if err := s.stays(ctx, in, "Denied", "denied by"); err != nil {
		return err
	}
	return errors.Join(s.unpressable(in, card), s.Ledger.times(0))
}

// DenyWithReason fills the form.
func DenyWithReason(ctx context.Context, s *Scene) error {
	in, card, err := s.ask(ctx, Cast{}, Ada)
	if err != nil {
		return err
	}
	if err := s.Press(ctx, Grace, in, card, approvals.ActionDenyReason); err != nil {
		return err
	}
	forms := s.World.(FormWorld)
	err = s.until(ctx, func() error {
		if !forms.HasForm(Grace) {
			return errors.New("Grace sees no form")
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := forms.Fill(ctx, Grace, "not on a Friday"); err != nil {
		return err
	}
	if err := s.stays(ctx, in, "not on a Friday", "not on a Friday"); err != nil {
		return err
	}
	return s.Ledger.times(0)
}

// NotPermitted has somebody press who may not.
func NotPermitted(ctx context.Context, s *Scene) error {
	in, card, err := s.ask(ctx, Cast{}, Ada)
	if err != nil {
		return err
	}
	if err := s.Press(ctx, Mallory, in, card, approvals.ActionApprove); err != nil {
		return err
	}
	if err := s.told(ctx, Mallory, in, "You may not decide this"); err != nil {
		return err
	}
	if err := s.stays(ctx, in, "Approval needed"); err != nil {
		return err
	}
	return s.Ledger.times(0)
}

// SelfApproval has an approver press on her own request.
func SelfApproval(ctx context.Context, s *Scene) error {
	in, card, err := s.ask(ctx, Cast{Deciders: []string{s.Setting(Grace), s.Setting(Hedy)}}, Grace)
	if err != nil {
		return err
	}
	if err := s.Press(ctx, Grace, in, card, approvals.ActionApprove); err != nil {
		return err
	}
	if err := s.told(ctx, Grace, in, "somebody else must approve it"); err != nil {
		return err
	}
	if err := s.stays(ctx, in, "Approval needed"); err != nil {
		return err
	}
	return s.Ledger.times(0)
}

// GroupMember has a member of a group press.
func GroupMember(ctx context.Context, s *Scene) error {
	in, card, err := s.ask(ctx, Cast{Deciders: []string{s.World.(GroupWorld).Group()}}, Ada)
	if err != nil {
		return err
	}
	if err := s.Press(ctx, Mallory, in, card, approvals.ActionApprove); err != nil {
		return err
	}
	if err := s.isAnswered(ctx, Mallory, in, "You may not decide this"); err != nil {
		return err
	}
	if err := s.Press(ctx, Hedy, in, card, approvals.ActionApprove); err != nil {
		return err
	}
	if err := s.stays(ctx, in, "Approved", "deployed"); err != nil {
		return err
	}
	return s.Ledger.times(1)
}

// SecondPress has two approvers press, the second one before the card has changed.
func SecondPress(ctx context.Context, s *Scene) error {
	in, card, err := s.ask(ctx, Cast{Deciders: []string{s.Setting(Grace), s.Setting(Hedy)}}, Ada)
	if err != nil {
		return err
	}
	s.Fault(SlowEdit)
	if err := s.Press(ctx, Grace, in, card, approvals.ActionDeny); err != nil {
		return err
	}
	if err := s.Press(ctx, Hedy, in, card, approvals.ActionApprove); err != nil {
		return err
	}
	if err := s.told(ctx, Hedy, in, "settled already", "Denied by"); err != nil {
		return err
	}
	if err := s.stays(ctx, in, "Denied", "denied by"); err != nil {
		return err
	}
	return s.Ledger.times(0)
}

// PressAfterRestart stops the bot while a request waits.
func PressAfterRestart(ctx context.Context, s *Scene) error {
	in, card, err := s.ask(ctx, Cast{}, Ada)
	if err != nil {
		return err
	}
	if err := s.Stop(); err != nil {
		return err
	}
	return s.approvedInNextLife(ctx, in, card)
}

// PressAfterKill kills the bot while a request waits.
func PressAfterKill(ctx context.Context, s *Scene) error {
	in, card, err := s.ask(ctx, Cast{}, Ada)
	if err != nil {
		return err
	}
	if err := s.Kill(); err != nil {
		return err
	}
	return s.approvedInNextLife(ctx, in, card)
}

func (s *Scene) approvedInNextLife(ctx context.Context, in Place, card Seen) error {
	if err := s.Start(ctx, Cast{Model: &Deployer{}}); err != nil {
		return err
	}
	if err := s.Press(ctx, Grace, in, card, approvals.ActionApprove); err != nil {
		return err
	}
	if err := s.stays(ctx, in, "Approved", "deployed"); err != nil {
		return err
	}
	return s.Ledger.times(1)
}

// TwoRequests asks for two things in one conversation and denies the first.
func TwoRequests(ctx context.Context, s *Scene) error {
	in, first, err := s.ask(ctx, Cast{}, Ada)
	if err != nil {
		return err
	}
	if _, err := s.reply(ctx, Mallory, in, "deploy shop"); err != nil {
		return err
	}
	if err := s.reads(ctx, in, "web", "shop"); err != nil {
		return err
	}
	second := s.answers(in)[1]
	if err := s.Press(ctx, Grace, in, second, approvals.ActionApprove); err != nil {
		return err
	}
	if err := s.reads(ctx, in, "Approval needed", "Approved", `deployed {"service":"shop"}`); err != nil {
		return err
	}
	if err := s.Press(ctx, Grace, in, first, approvals.ActionDeny); err != nil {
		return err
	}
	if err := s.stays(ctx, in, "Denied", "Approved", `deployed {"service":"shop"}`, "denied by"); err != nil {
		return err
	}
	return s.Ledger.times(1)
}

// Expiry waits until the time has run out.
func Expiry(ctx context.Context, s *Scene) error {
	in, card, err := s.ask(ctx, Cast{Within: 1500 * time.Millisecond}, Ada)
	if err != nil {
		return err
	}
	if err := s.stays(ctx, in, "No answer", "not a denial"); err != nil {
		return err
	}
	return errors.Join(s.unpressable(in, card), s.Ledger.times(0))
}

// ExpiryWhileAway stops the bot until the time has run out.
func ExpiryWhileAway(ctx context.Context, s *Scene) error {
	const within = 1500 * time.Millisecond
	in, _, err := s.ask(ctx, Cast{Within: within}, Ada)
	if err != nil {
		return err
	}
	if err := s.Stop(); err != nil {
		return err
	}
	select {
	case <-time.After(within): // what this clause is about
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := s.Start(ctx, Cast{Model: &Deployer{}}); err != nil {
		return err
	}
	if err := s.stays(ctx, in, "No answer", "not a denial"); err != nil {
		return err
	}
	return s.Ledger.times(0)
}

// WithoutApprovers asks where nobody may approve.
func WithoutApprovers(ctx context.Context, s *Scene) error {
	said, err := s.begin(ctx, Cast{Model: &Deployer{}, Nobody: true}, Ada, "deploy web")
	if err != nil {
		return err
	}
	if err := s.stays(ctx, said.In, "no approver is named", "cancelled"); err != nil {
		return err
	}
	return s.Ledger.times(0)
}

// TalkWhileWaiting goes on talking.
func TalkWhileWaiting(ctx context.Context, s *Scene) error {
	in, card, err := s.ask(ctx, Cast{}, Ada)
	if err != nil {
		return err
	}
	if _, err := s.reply(ctx, Ada, in, "meanwhile"); err != nil {
		return err
	}
	if err := s.reads(ctx, in, "Approval needed", "echo: meanwhile"); err != nil {
		return err
	}
	if err := s.Press(ctx, Grace, in, card, approvals.ActionApprove); err != nil {
		return err
	}
	if err := s.stays(ctx, in, "Approved", "echo: meanwhile", "deployed"); err != nil {
		return err
	}
	return s.Ledger.times(1)
}

// AskingMessageDeleted deletes the message that asked.
func AskingMessageDeleted(ctx context.Context, s *Scene) error {
	said, err := s.begin(ctx, Cast{Model: &Deployer{}}, Ada, "hello")
	if err != nil {
		return err
	}
	asking, err := s.reply(ctx, Ada, said.In, "deploy web")
	if err != nil {
		return err
	}
	if err := s.reads(ctx, said.In, "echo: hello", "Approval needed"); err != nil {
		return err
	}
	card := s.answers(said.In)[1]
	if err := s.Delete(ctx, Ada, asking); err != nil {
		return err
	}
	if err := s.stays(ctx, said.In, "echo: hello", "Cancelled", "cancelled"); err != nil {
		return err
	}
	return errors.Join(s.unpressable(said.In, card), s.Ledger.times(0))
}
