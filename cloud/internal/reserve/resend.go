package reserve

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/audit"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/notify"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// ErrNothingToSend says that there is nobody to send to, or no key to send.
var ErrNothingToSend = errors.New("reserve: no key or nobody to send it to")

// ResendKey sends a guest the key once more. scope says whether whoever asks may act at the branch.
//
// Errors: ErrNotFound, scope's, ErrNothingToSend.
func (s *Service) ResendKey(ctx context.Context, id booking.ReservationID, scope func(booking.BranchID) error, entry audit.Entry) error {
	return s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, _ time.Time) error {
		r, err := postgres.LockReservation(ctx, tx, id)
		if errors.Is(err, postgres.ErrNoReservation) {
			return ErrNotFound
		}
		if err != nil {
			return err
		}
		if err := scope(r.Branch); err != nil {
			return err
		}
		if r.State != booking.Done || r.DoorlockKey == "" || r.Mobile == "" && r.Email == "" {
			return ErrNothingToSend
		}
		if err := s.audit(ctx, tx, entry, r); err != nil {
			return err
		}
		return s.notifyGuest(ctx, tx, r, notify.ReservationConfirmed, nil)
	})
}
