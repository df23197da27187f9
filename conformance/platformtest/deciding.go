package platformtest

import (
	"context"
	"fmt"
	"regexp"
)

// deciding are the clauses about deciding in words.
func deciding() []Clause {
	return []Clause{
		{"a request can be approved in words", nil, ApproveInWords},
		{"a request can be denied in words, with a reason", nil, DenyInWords},
		{"the words of who may not decide are answered", nil, NotPermittedInWords},
		{"approvals lists what waits", nil, ListApprovals},
		{"words about an unknown request are answered", nil, UnknownRequest},
	}
}

var requestID = regexp.MustCompile(`Request ([0-9a-z]+)`)

// named asks for a deployment and returns the id that its card shows.
func (s *Scene) named(ctx context.Context) (in Place, id string, err error) {
	in, card, err := s.ask(ctx, Cast{}, Ada)
	if err != nil {
		return "", "", err
	}
	found := requestID.FindStringSubmatch(card.Text)
	if found == nil {
		return "", "", fmt.Errorf("the card does not name the request:\n%s", card.Text)
	}
	return in, found[1], nil
}

// ApproveInWords writes approve and the id.
func ApproveInWords(ctx context.Context, s *Scene) error {
	in, id, err := s.named(ctx)
	if err != nil {
		return err
	}
	if _, err := s.reply(ctx, Grace, in, "approve "+id); err != nil {
		return err
	}
	if err := s.isAnswered(ctx, Grace, in, "Approved by"); err != nil {
		return err
	}
	if err := s.isAnswered(ctx, Ada, in, `deployed {"service":"web"}`); err != nil {
		return err
	}
	return s.Ledger.times(1)
}

// DenyInWords writes deny, the id and a reason.
func DenyInWords(ctx context.Context, s *Scene) error {
	in, id, err := s.named(ctx)
	if err != nil {
		return err
	}
	if _, err := s.reply(ctx, Grace, in, "deny "+id+" not on a Friday"); err != nil {
		return err
	}
	if err := s.isAnswered(ctx, Ada, in, "Not run", "not on a Friday"); err != nil {
		return err
	}
	return s.Ledger.times(0)
}

// NotPermittedInWords has somebody write approve who may not.
func NotPermittedInWords(ctx context.Context, s *Scene) error {
	in, id, err := s.named(ctx)
	if err != nil {
		return err
	}
	if _, err := s.reply(ctx, Mallory, in, "approve "+id); err != nil {
		return err
	}
	if err := s.isAnswered(ctx, Mallory, in, "You may not decide this"); err != nil {
		return err
	}
	return s.Ledger.times(0)
}

// ListApprovals asks what waits, before and after.
func ListApprovals(ctx context.Context, s *Scene) error {
	in, id, err := s.named(ctx)
	if err != nil {
		return err
	}
	if _, err := s.reply(ctx, Ada, in, "approvals"); err != nil {
		return err
	}
	if err := s.isAnswered(ctx, Ada, in, "Waiting for a decision", id, "deploy"); err != nil {
		return err
	}
	if _, err := s.reply(ctx, Grace, in, "deny "+id); err != nil {
		return err
	}
	if err := s.isAnswered(ctx, Ada, in, "Not run"); err != nil {
		return err
	}
	if _, err := s.reply(ctx, Ada, in, "approvals"); err != nil {
		return err
	}
	return s.isAnswered(ctx, Ada, in, "No approval is waiting")
}

// UnknownRequest names a request that there is not.
func UnknownRequest(ctx context.Context, s *Scene) error {
	in, _, err := s.named(ctx)
	if err != nil {
		return err
	}
	if _, err := s.reply(ctx, Grace, in, "approve aaaaabbbbbcccccddddd"); err != nil {
		return err
	}
	return s.isAnswered(ctx, Grace, in, "I do not know this request")
}
