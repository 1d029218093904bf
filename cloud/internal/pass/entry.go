package pass

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/protocol"
)

// Entry stores an entry of an agent's journal and acknowledges it. A break of the chain, and an entry after a refund, raise
// an alert; neither moves money.
func (s *Service) Entry(ctx context.Context, from protocol.Peer, e protocol.PassEntry) error {
	var stored postgres.StoredEntry
	err := s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, _ time.Time) (err error) {
		if stored, err = postgres.StoreEntry(ctx, tx, from.Username, e, s.now()); err != nil {
			return err
		}
		return s.alert(ctx, tx, from.Branch, e, stored)
	})
	if err != nil {
		return fmt.Errorf("pass: entry %d of %s: %w", e.Entry, from.Username, err)
	}
	if stored.New {
		s.Log.Info("pass: attempt at a keypad", "branch", from.Branch, "device", e.Device, "outcome", string(e.Outcome), "reason", e.Reason,
			"source", string(e.Source), "at", e.At)
	}
	if stored.Broken || stored.Missing || stored.AfterRefund {
		s.Log.Warn("pass: journal entry needs review", "branch", from.Branch, "username", from.Username, "journal", e.Journal, "entry", e.Entry,
			"broken", stored.Broken, "missing", stored.Missing, "after_refund", stored.AfterRefund)
	}
	if stored.Ack == 0 {
		return nil
	}
	return s.Link.Send(from, protocol.PassAck{Journal: e.Journal, Entry: stored.Ack})
}

func (s *Service) alert(ctx context.Context, tx pgx.Tx, branch string, e protocol.PassEntry, stored postgres.StoredEntry) error {
	if stored.Broken || stored.Missing {
		if err := postgres.OpenAlert(ctx, tx, "discrepancy", branch, "journal "+e.Journal, s.now()); err != nil {
			return err
		}
	}
	if stored.New && e.Reason == protocol.ReasonLockedOut {
		// The entry may be one of an outage.
		if locked, err := postgres.LockedOut(ctx, tx, branch, e.Device, s.now()); err != nil || !locked {
			return err
		}
		return postgres.OpenAlert(ctx, tx, "reader-lockout", branch, e.Device, e.At)
	}
	return nil
}
