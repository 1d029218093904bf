package reserve

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/account"
	"github.com/yeolda/yeolda/cloud/internal/audit"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/money"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/reserve/rule"
	"github.com/yeolda/yeolda/cloud/internal/toss"
)

// OrphanRequest is a request to refund an orphan: money at the provider for an order that the database does not have.
type OrphanRequest struct {
	Discrepancy int64
	Account     *toss.RefundAccount // for a virtual account
	By          account.Principal
}

// orphanReason is the reason of the refund of an orphan at the provider.
const orphanReason = "예약을 확인할 수 없는 결제 환불"

// RefundOrphan refunds everything that the provider holds of an orphan, or what the bank has returned of it, and closes its discrepancy.
// A repetition refunds nothing twice, because each request is for everything that is left.
//
// Errors: postgres.ErrNoDiscrepancy, ErrAccountRequired, *PaymentRefused, ErrPaymentPending.
func (s *Service) RefundOrphan(ctx context.Context, req OrphanRequest) error {
	d, err := postgres.OrphanOrder(ctx, s.DB.Pool, req.Discrepancy)
	if err != nil {
		return err
	}
	keys, p, err := s.orphanPayment(ctx, d)
	if err != nil {
		return err
	}
	if p.Held() > 0 || rule.TransferRejected(p) {
		if err := s.cancelOrphan(ctx, req, d.OrderID, keys, p); err != nil {
			return err
		}
	}
	return postgres.SettleDiscrepancy(ctx, s.DB.Pool, d.OrderID, orphan, settled, s.now())
}

// orphanPayment reads the payment of an orphan with the key set under which it was listed. Earlier releases, which had one
// merchant, did not store the key set: its payment is found under either one.
func (s *Service) orphanPayment(ctx context.Context, d money.Discrepancy) (keys toss.KeySet, p toss.Payment, err error) {
	sets := []toss.KeySet{toss.KeySet(d.KeySet)}
	if d.KeySet == "" {
		sets = []toss.KeySet{toss.Widget, toss.API}
	}
	for _, keys = range sets {
		if p, err = s.payment(ctx, keys, d.OrderID, d.PaymentKey); err == nil {
			return keys, p, nil
		}
	}
	return keys, p, providerError(err)
}

func (s *Service) cancelOrphan(ctx context.Context, req OrphanRequest, order string, keys toss.KeySet, p toss.Payment) error {
	deposit := p.Method == string(booking.VirtualAccount)
	if deposit && req.Account == nil {
		return ErrAccountRequired
	}
	cancel := toss.CancelRequest{Reason: orphanReason}
	detail := map[string]any{"order": order, "amount": p.Held()}
	if deposit {
		cancel.RefundAccount = req.Account
		detail["account"] = masked(req.Account)
	}
	err := s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, _ time.Time) error {
		return postgres.AppendAudit(ctx, tx, audit.Entry{Actor: req.By.Actor(), Action: "difference.refund", Target: order, Detail: detail})
	})
	if err != nil {
		return err
	}
	_, err = detached(ctx, s, "orphan "+order, func(ctx context.Context) (toss.Payment, error) {
		// The key is another one for each request: with one of the order, the provider would repeat the rejection of a wrong account for 15 days.
		return s.Payments.Cancel(ctx, keys, "orphan-"+uuid.NewString(), p.PaymentKey, cancel)
	})
	return providerError(err)
}

// providerError returns the error to report for a request about a payment without a reservation.
func providerError(err error) error {
	switch {
	case err == nil, errors.Is(err, ErrPaymentPending):
		return err
	case rule.Rejected(err):
		return refusal(err)
	}
	return ErrPaymentPending
}

// Check looks the payment of a reservation up at the provider now and applies the answer.
//
// Errors: ErrNotFound, account.ErrBranchForbidden, ErrPaymentPending (the outcome is still unknown).
func (s *Service) Check(ctx context.Context, id booking.ReservationID, by account.Principal) error {
	err := s.locked(ctx, id, func(c *change) error {
		if _, err := c.reachable(by); err != nil {
			return err
		}
		return c.audited(by, "reservation.check-payment", nil)
	})
	if err != nil {
		return err
	}
	_, err = detached(ctx, s, "check "+newCancelKey(id), func(ctx context.Context) (struct{}, error) { return struct{}{}, s.Settle(ctx, id) })
	var refused *PaymentRefused
	if errors.As(err, &refused) {
		return nil // the outcome is known
	}
	return err
}
