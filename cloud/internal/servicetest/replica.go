package servicetest

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
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
		APISecretKey: s.Settings.Toss.APISecretKey.Reveal(), Logger: log, Secret: s.entities(keys).Secret,
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

// OwnerKey returns the owner's key of a reservation; empty: none opens doors.
func (s *Stack) OwnerKey(t testing.TB, id int64) string {
	t.Helper()
	r, err := postgres.Reservation(t.Context(), s.DB.Pool, booking.ReservationID(id))
	if err != nil {
		t.Fatal(err)
	}
	link, err := s.Replica(t).KeyLinkOf(r)
	if err != nil {
		t.Fatal(err)
	}
	return link[strings.LastIndex(link, "/")+1:]
}
