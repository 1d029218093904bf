package backoffice

import (
	"cmp"
	"context"
	"errors"
	"strconv"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/money"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// target names a reservation in the audit log.
func target(id booking.ReservationID) string { return strconv.FormatInt(int64(id), 10) }

// Record is everything that is known about a reservation, whatever its state.
type Record struct {
	Branch booking.Branch
	booking.Reservation
	Payment money.Payment // zero if there is none
	History []postgres.HistoryEntry
	Keys    []booking.AccessKey // revoked ones included
	Cash    money.CashReceipt   // zero: none is wanted
	Visit   *postgres.Visit     // of the stay that an extension belongs to; nil: no guest is known to have entered
	Cleaned *postgres.CleaningPhoto

	ExtendedByDeposit bool // a cancellation returns a deposit of an extension
}

// Reservation returns a reservation with its branch, or booking.ErrNoReservation.
func (s *Service) Reservation(ctx context.Context, id booking.ReservationID) (Record, error) {
	r, err := postgres.Reservation(ctx, s.DB.Pool, id)
	if err != nil {
		return Record{}, err
	}
	branch, err := s.DB.BranchByID(ctx, r.Branch)
	return Record{Branch: branch, Reservation: r}, err
}

// Complete adds the payment and the history, and records that an administrator saw them.
func (s *Service) Complete(ctx context.Context, r Record, by string) (Record, error) {
	var err error
	if r.Payment, err = postgres.PaymentOf(ctx, s.DB.Pool, r.ID); err != nil && !errors.Is(err, postgres.ErrNoPayment) {
		return r, err
	}
	if r.History, err = postgres.HistoryOf(ctx, s.DB.Pool, r.ID); err != nil {
		return r, err
	}
	if r.Keys, err = postgres.KeysOf(ctx, s.DB.Pool, r.ID); err != nil {
		return r, err
	}
	cash, err := postgres.CashReceiptsOf(ctx, s.DB.Pool, r.ID)
	if err != nil {
		return r, err
	}
	r.Cash = cash[r.ID]
	if r.Visit, err = postgres.VisitOf(ctx, s.DB.Pool, cmp.Or(r.Extends, r.ID), s.DB.Now()); err != nil {
		return r, err
	}
	if r.Cleaned, err = postgres.CleaningPhotoOf(ctx, s.DB.Pool, r.ID); err != nil {
		return r, err
	}
	if r.ExtendedByDeposit, err = postgres.ExtendedByDeposit(ctx, s.DB.Pool, r.ID); err != nil {
		return r, err
	}
	return r, s.Viewed(ctx, by, "reservation.view", target(r.ID), r.Branch.ID)
}
