package servicetest

import (
	"log/slog"
	"testing"

	"github.com/yeolda/yeolda/cloud/internal/queue"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
	"github.com/yeolda/yeolda/cloud/internal/toss"
)

// Replica returns the booking verbs over the stack's database and sandbox, as a second process would run them.
func (s *Stack) Replica(t testing.TB) *reserve.Service {
	t.Helper()
	keys, err := s.Settings.Keyring()
	if err != nil {
		t.Fatal(err)
	}
	work, err := queue.New(s.DB.Pool, keys)
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	payments, err := toss.New(toss.Config{
		BaseURL: s.Settings.Toss.URL, WidgetSecretKey: s.Settings.Toss.WidgetSecretKey.Reveal(),
		APISecretKey: s.Settings.Toss.APISecretKey.Reveal(), Logger: log,
	})
	if err != nil {
		t.Fatal(err)
	}
	times := s.Settings.Times
	return &reserve.Service{
		DB: s.DB, Payments: payments, Queue: work, Keys: keys, Log: log, PublicURL: s.Root,
		HoldTTL: times.CustomerHoldTTL, AdminHoldTTL: times.AdminHoldTTL, DepositDue: times.DepositDue,
	}
}
