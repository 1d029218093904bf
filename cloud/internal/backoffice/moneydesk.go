package backoffice

import (
	"context"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// DeskItem is money that waits for a person.
type DeskItem = postgres.DeskItem

const (
	// deskShown bounds the money desk; the items that follow appear as the oldest are ended.
	deskShown = 500
	// deskUnclear is the age at which a refund without an answer is on the desk. An administrator may then end it.
	deskUnclear = 15 * time.Minute
)

// MoneyDesk returns the money of branches (nil: of all, and of none) that waits for a person, the oldest first.
func (s *Service) MoneyDesk(ctx context.Context, branches []string) ([]DeskItem, error) {
	return postgres.DeskQueue(ctx, s.DB.Pool, branches, s.DB.Now().Add(-deskUnclear), deskShown)
}
