package reserve

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/money"
	"github.com/yeolda/yeolda/cloud/internal/notify"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/toss"
)

// refundLinkTTL is how long a guest may enter the account of a refund. Afterwards an administrator enters it.
const refundLinkTTL = 14 * 24 * time.Hour

// ErrNoRefundLink is returned for a link that is unknown, used, expired or no longer needed.
var ErrNoRefundLink = errors.New("reserve: no such refund link")

func linkHash(token string) []byte {
	hash := sha256.Sum256([]byte(token))
	return hash[:]
}

// askAccount asks the guest by message for the account of a refund. Only the hash of the link's token is stored here.
func (c *change) askAccount(refund int64, won int) error {
	token := rand.Text()
	if err := postgres.PutRefundLink(c.ctx, c.tx, refund, linkHash(token), c.now, c.now.Add(refundLinkTTL)); err != nil {
		return err
	}
	err := c.notifyGuest(c.withoutKey(), notify.RefundAccountNeeded, map[string]string{
		"amount": notify.Won(won), "link": c.PublicURL + "/refund/" + token,
	})
	if err != nil {
		return err
	}
	return postgres.OutcomeSent(c.ctx, c.tx, c.r().OrderID)
}

// askAccountAgain sends new links for refunds of the reservation, its extensions and the stays that it has replaced, that wait for an account,
// after the contact was corrected. The earlier ones, which the previous contact has, become invalid. A reservation with a contact of its own
// keeps its link.
func (c *change) askAccountAgain() error {
	open, err := postgres.OpenRefundLinks(c.ctx, c.tx, c.r().ID)
	if err != nil {
		return err
	}
	for _, l := range open {
		of := c
		if l.Reservation != c.r().ID {
			r, err := postgres.LockReservation(c.ctx, c.tx, l.Reservation)
			if err != nil {
				return err
			}
			of = c.on(r)
		}
		if of.r().Mobile != c.r().Mobile || of.r().Email != c.r().Email {
			continue
		}
		if err := of.askAccount(l.Refund, l.Amount); err != nil {
			return err
		}
	}
	return nil
}

// RefundLink is what a guest sees at a refund link.
type RefundLink struct {
	Amount    int
	ExpiresAt time.Time
}

// RefundLinkOf returns the refund that waits for the account of a guest with this token, or ErrNoRefundLink.
func (s *Service) RefundLinkOf(ctx context.Context, token string) (RefundLink, error) {
	l, err := postgres.RefundLinkOf(ctx, s.DB.Pool, linkHash(token), s.now())
	if errors.Is(err, postgres.ErrNoRefund) {
		err = ErrNoRefundLink
	}
	return RefundLink{l.Amount, l.ExpiresAt}, err
}

// EnterRefundAccount sends a refund to the account that the guest has entered at a link. The link works once; if the bank
// rejects the account, the guest gets another one.
//
// Errors: ErrNoRefundLink, ErrUnknownBank, *PaymentRefused (the provider rejects the account). A refund whose outcome is
// not known yet continues in the background and is no error.
func (s *Service) EnterRefundAccount(ctx context.Context, token string, to toss.RefundAccount) error {
	link, err := postgres.RefundLinkOf(ctx, s.DB.Pool, linkHash(token), s.now())
	if errors.Is(err, postgres.ErrNoRefund) {
		return ErrNoRefundLink
	}
	if err != nil {
		return err
	}
	var (
		refund money.Refund
		waits  bool // an administrator has to approve the account
	)
	err = s.locked(ctx, link.Reservation, func(c *change) error {
		_, err := postgres.RefundLinkOf(c.ctx, c.tx, linkHash(token), c.now)
		if errors.Is(err, postgres.ErrNoRefund) {
			return ErrNoRefundLink // used meanwhile
		}
		if err != nil {
			return err
		}
		if refund, err = postgres.RefundByID(c.ctx, c.tx, link.Refund); err != nil {
			return err
		}
		sealed, err := c.sealAccount(&to)
		if err != nil {
			return err
		}
		refund.IdempotencyKey = newCancelKey(link.Reservation)
		if err := postgres.ReopenRefund(c.ctx, c.tx, refund.ID, sealed, refund.IdempotencyKey); err != nil {
			return err
		}
		if err := postgres.NoteRefundAccount(c.ctx, c.tx, refund.ID, masked(&to)); err != nil {
			return err
		}
		if err := postgres.UseRefundLink(c.ctx, c.tx, linkHash(token), c.now); err != nil {
			return err
		}
		if err := c.settleAt(c.now.Add(watchdogDelay)); err != nil {
			return err
		}
		if err := c.entry("cancel.retried", refund.Amount, "", map[string]any{"by": "customer"}); err != nil {
			return err
		}
		if c.Payment, err = postgres.PaymentOf(c.ctx, c.tx, link.Reservation); err != nil {
			return err
		}
		waits, err = c.noteAccount(refund.ID, &to, "customer")
		return err
	})
	if err != nil || waits {
		return err
	}
	if err := s.runRefund(ctx, refund); !errors.Is(err, ErrPaymentPending) {
		return err
	}
	return nil
}
