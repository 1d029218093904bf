// Package backoffice holds the verbs of the console: what administrators read about a branch, and the changes that no
// other package owns. Reservations and money belong to reserve, doors to access, devices to climate.
//
// Every change writes its audit entry in its own transaction, so there is neither a change without an entry nor an entry
// without a change.
package backoffice

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/alert"
	"github.com/yeolda/yeolda/cloud/internal/audit"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/company"
	"github.com/yeolda/yeolda/cloud/internal/grantkey"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/queue"
	"github.com/yeolda/yeolda/cloud/internal/seal"
)

// Errors of lookups and changes.
var (
	ErrNoListing     = postgres.ErrNoListing
	ErrListingExists = postgres.ErrListingExists
	ErrNoDiscrepancy = postgres.ErrNoDiscrepancy
	ErrNoAgent       = postgres.ErrNoAgent
	ErrNoQuarantine  = postgres.ErrNoQuarantine
	ErrChanged       = postgres.ErrChanged
	ErrRoomUsed      = postgres.ErrRoomUsed
	ErrRoomExists    = errors.New("backoffice: a room has this number")
	ErrBranchExists  = postgres.ErrBranchExists
)

// Service reads and changes the database for the console.
type Service struct {
	DB    *postgres.DB
	Queue *queue.Queue
	Keys  *seal.Keyring // of PINs and of the pseudonyms in the audit log

	GrantKeys *grantkey.Ring // part of new agent credentials
	Alerts    *alert.Service
	Company   *company.Service
}

// Branch returns a branch with its rooms, or booking.ErrNoBranch.
func (s *Service) Branch(ctx context.Context, code string) (booking.Branch, error) {
	return s.DB.Branch(ctx, code)
}

// change runs a change and appends its audit entry in one transaction. do may complete the entry.
func (s *Service) change(ctx context.Context, entry *audit.Entry, do func(ctx context.Context, tx pgx.Tx, now time.Time) error) error {
	return s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		if err := do(ctx, tx, now); err != nil {
			return err
		}
		return postgres.AppendAudit(ctx, tx, *entry)
	})
}

// Repeated views by the same administrator within these times are one entry: of the same record, and of the same list, which a
// screen reads again with each change.
const (
	viewInterval = 10 * time.Minute
	listInterval = 12 * time.Hour
)

// Viewed records that an administrator saw a guest's data.
func (s *Service) Viewed(ctx context.Context, by, action, target string, branch booking.BranchID) error {
	return s.viewed(ctx, by, action, target, branch, viewInterval)
}

// ViewedList records that an administrator saw a list with names of guests, such as that of a day.
func (s *Service) ViewedList(ctx context.Context, by, action, target string, branch booking.BranchID) error {
	return s.viewed(ctx, by, action, target, branch, listInterval)
}

func (s *Service) viewed(ctx context.Context, by, action, target string, branch booking.BranchID, interval time.Duration) error {
	entry := audit.Entry{Actor: by, Action: action, Target: target}
	if branch != 0 {
		entry.BranchID = &branch
	}
	return postgres.NoteView(ctx, s.DB.Pool, entry, s.DB.Now().Add(-interval))
}

// Branches returns all branches in the order they were added.
func (s *Service) Branches(ctx context.Context) ([]booking.Branch, error) { return s.DB.Branches(ctx) }
