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
	keys, err := settings.Keyring()
	if err != nil {
		return reserve.Report{}, err
	}
	payments, err := newPayments(settings, log)
	if err != nil {
		return reserve.Report{}, err
	}
	work, err := queue.New(db.Pool, keys)
	if err != nil {
		return reserve.Report{}, err
	}
	verbs := &reserve.Service{
		DB: db, Payments: payments, Queue: work, Keys: keys, Log: log, PublicURL: settings.HTTP.PublicURL,
		HoldTTL: settings.Times.CustomerHoldTTL, AdminHoldTTL: settings.Times.AdminHoldTTL, DepositDue: settings.Times.DepositDue,
	}
	return verbs.Reconcile(ctx, reserve.Full, span)
}
