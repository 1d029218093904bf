package reserve

import (
	"context"
	"errors"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/money"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// historyLimit bounds a customer's list. historySpan limits its age, so that the new owner of a recycled phone number does
// not see the previous owner's payments indefinitely.
const (
	historyLimit = 100
	historySpan  = 366 * 24 * time.Hour
)

// History returns a customer's payments without their refund policies, newest first.
func (s *Service) History(ctx context.Context, loginType booking.LoginType, loginID string) ([]Receipt, error) {
	list, err := postgres.PaidBy(ctx, s.DB.Pool, loginType, loginID, s.now().Add(-historySpan), historyLimit)
	if err != nil {
		return nil, err
	}
	ids := make([]booking.ReservationID, len(list))
	for i, r := range list {
		ids[i] = r.ID
	}
	payments, err := postgres.PaymentsOf(ctx, s.DB.Pool, ids)
	if err != nil {
		return nil, err
	}
	refunds, err := postgres.CurrentRefunds(ctx, s.DB.Pool, ids)
	if err != nil {
		return nil, err
	}
	cash, err := postgres.CashReceiptsOf(ctx, s.DB.Pool, ids...)
	if err != nil {
		return nil, err
	}
	receipts := make([]Receipt, len(list))
	for i, r := range list {
		branch, err := s.DB.BranchByID(ctx, r.Branch)
		if err != nil {
			return nil, err
		}
		if r.DoorlockKey, err = s.keyOf(r); err != nil {
			return nil, err
		}
		receipts[i] = Receipt{Branch: branch, Reservation: r, Payment: payments[r.ID], Cash: cash[r.ID]}
		receipts[i].Ended = r.State == booking.Canceling && refunds[r.ID].State == money.RefundFailed
		if !r.PaidAt.IsZero() {
			receipts[i].Refunded = r.Amount - kept(r, payments[r.ID], refunds[r.ID])
		}
	}
	return receipts, nil
}

// Detail returns a live reservation with its payment and branch, or ErrNotFound.
func (s *Service) Detail(ctx context.Context, id booking.ReservationID) (Receipt, error) {
	r, err := postgres.Reservation(ctx, s.DB.Pool, id)
	if errors.Is(err, postgres.ErrNoReservation) || err == nil && !r.Occupies(s.now()) {
		return Receipt{}, ErrNotFound
	}
	if err != nil {
		return Receipt{}, err
	}
	return s.withPayment(ctx, r)
}

// ByToken returns the reservation of a hold cookie in any state, or ErrHoldExpired if there is none.
func (s *Service) ByToken(ctx context.Context, token Token) (Receipt, error) {
	r, err := s.ofToken(ctx, token)
	if err != nil {
		return Receipt{}, err
	}
	return s.withPayment(ctx, r)
}

// BranchOf returns the branch of a reservation, or ErrNotFound.
func (s *Service) BranchOf(ctx context.Context, id booking.ReservationID) (booking.Branch, error) {
	r, err := postgres.Reservation(ctx, s.DB.Pool, id)
	if errors.Is(err, postgres.ErrNoReservation) {
		return booking.Branch{}, ErrNotFound
	}
	if err != nil {
		return booking.Branch{}, err
	}
	return s.DB.BranchByID(ctx, r.Branch)
}
