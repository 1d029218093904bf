package reserve

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/money"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/toss"
)

// settlementTimeout bounds the reading of the provider's settlements for one request.
const settlementTimeout = 10 * time.Second

// Settlement returns the settlement of branches in a month (YYYY-MM) per day and method. It reads the provider's settlement
// list first; if the provider does not answer, it uses what was read before, and complete is false. Of a legal entity that is retired it uses
// what was read before.
func (s *Service) Settlement(ctx context.Context, branches []string, month time.Time) (rows []money.SettlementRow, complete bool, err error) {
	// Elsewhere the month begins and ends on another Korean day.
	if err := s.readSettlements(ctx, month.AddDate(0, 0, -1), month.AddDate(0, 1, 0)); err != nil {
		s.Log.WarnContext(ctx, "the provider's settlements could not be read", "month", month.Format("2006-01"), "error", err)
	} else {
		complete = true
	}
	rows, err = postgres.SettlementRows(ctx, s.DB.Pool, branches, month.Format("2006-01"))
	return rows, complete, err
}

func (s *Service) readSettlements(ctx context.Context, from, to time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, settlementTimeout)
	defer cancel()
	sets, _, err := s.keySets(ctx)
	if err != nil {
		return err
	}
	var failed error
	for _, keys := range sets {
		list, err := s.Payments.Settlements(ctx, keys, from, to)
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("settlements of key set %s: %w", keys, err))
			if !toss.KeyRejected(err) {
				return failed
			}
			continue // the contract of the entity may have ended
		}
		stored := make([]money.Settlement, len(list))
		for i, one := range list {
			stored[i] = money.Settlement(one)
		}
		if err := postgres.PutSettlements(ctx, s.DB.Pool, stored); err != nil {
			return err
		}
	}
	return failed
}
