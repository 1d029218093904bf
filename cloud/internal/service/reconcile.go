package service

import (
	"context"
	"log/slog"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/config"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/queue"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
)

// Reconcile compares the payment provider's books of a span with those of a database, beside a running service.
func Reconcile(ctx context.Context, settings config.Settings, db *postgres.DB, log *slog.Logger, span time.Duration) (reserve.Report, error) {
	verbs, err := newVerbs(settings, db, log)
	if err != nil {
		return reserve.Report{}, err
	}
	return verbs.Reconcile(ctx, reserve.Full, span)
}

// Rebuild rebuilds the reservations that a restored backup lacks from the provider's books.
func Rebuild(ctx context.Context, settings config.Settings, db *postgres.DB, log *slog.Logger, span time.Duration) (reserve.Rebuilt, error) {
	verbs, err := newVerbs(settings, db, log)
	if err != nil {
		return reserve.Rebuilt{}, err
	}
	return verbs.Rebuild(ctx, span)
}

// newVerbs returns the operations on reservations for a command.
func newVerbs(settings config.Settings, db *postgres.DB, log *slog.Logger) (*reserve.Service, error) {
	keys, err := settings.Keyring()
	if err != nil {
		return nil, err
	}
	payments, _, err := newPayments(settings, db, keys, log)
	if err != nil {
		return nil, err
	}
	work, err := queue.New(db.Pool, keys)
	if err != nil {
		return nil, err
	}
	return &reserve.Service{
		DB: db, Payments: payments, Queue: work, Keys: keys, Log: log, PublicURL: settings.HTTP.PublicURL,
		HoldTTL: settings.Times.CustomerHoldTTL, AdminHoldTTL: settings.Times.AdminHoldTTL, DepositDue: settings.Times.DepositDue,
	}, nil
}
