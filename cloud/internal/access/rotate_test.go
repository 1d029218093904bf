package access_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/yeolda/yeolda/cloud/internal/access"
	"github.com/yeolda/yeolda/cloud/internal/agenttest"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// TestRevokedCompanion revokes a companion's key while a press with it waits for its claim at the agent: neither that press nor
// another one, at any replica, opens a door; the owner's key still does.
func TestRevokedCompanion(t *testing.T) {
	t.Parallel()
	h := build(t)
	a := h.agent("gangnam")
	replica := h.replica()
	replica.Link = h.link
	owner := h.reserve(1)
	id := one[booking.ReservationID](h, `select reservation_id from access_key`)
	var companion uuid.UUID
	driven := 0
	for tries := 0; len(a.Denied()) == 0 && tries < 10; tries++ { // if the machine is too slow for the limits, a press ends without a claim
		companion = uuid.New()
		var key booking.AccessKey
		err := pgx.BeginFunc(t.Context(), h.db.Pool, func(tx pgx.Tx) (err error) {
			key, err = postgres.InsertCompanion(t.Context(), tx, id, postgres.NewKey{Key: companion, Sealed: []byte("sealed")}, "friend", "customer:1")
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if id := h.drive(a, companion.String()); h.await(h.Service, id, companion.String()).Status != access.Success {
			t.Fatal("a companion's press did not succeed")
		}
		driven = len(a.Driven())
		a.Fail(agenttest.Faults{IgnoreAsks: true})
		waiting := h.request(access.Room, companion.String())
		a.Until(t, "the ask", func() bool { return a.Asked(waiting) > 0 })
		if err := pgx.BeginFunc(t.Context(), h.db.Pool, func(tx pgx.Tx) error { return postgres.RevokeCompanion(t.Context(), tx, id, key.ID) }); err != nil {
			t.Fatal(err)
		}
		a.Fail(agenttest.Faults{})
		h.until("the press in progress to end", func() bool { return h.state(waiting) == "FAILED" })
	}
	for name, s := range map[string]*access.Service{"this replica": h.Service, "another replica": replica} {
		if _, err := s.Request(t.Context(), "gangnam", access.Room, companion.String()); !errors.Is(err, access.ErrInvalidKey) {
			t.Errorf("a press at %s: got %v, want ErrInvalidKey", name, err)
		}
	}
	if n := len(a.Driven()); n != driven || len(a.Denied()) == 0 {
		t.Errorf("the door was driven %d times after the revocation, %d claims were denied", n-driven, len(a.Denied()))
	}
	if got := h.await(h.Service, h.request(access.Room, owner), owner); got.Status != access.Success {
		t.Errorf("the owner's press: %+v", got)
	}
}

// TestRotateAndPress presses with the newest key while it is replaced. Each press is judged by exactly one key: it is refused
// or written with the key that was used, and no press is granted after its key was revoked.
func TestRotateAndPress(t *testing.T) {
	t.Parallel()
	h := build(t)
	h.agent("gangnam")
	replica := h.replica() // presses reach both replicas; the agent is connected to one
	replica.Link = h.link
	const presses = 2000
	var current atomic.Value
	current.Store(h.reserve(1))
	id := one[booking.ReservationID](h, `select reservation_id from access_key`)
	var (
		group             errgroup.Group
		mu                sync.Mutex
		accepted, refused int
	)
	group.SetLimit(32)
	for i := range presses {
		group.Go(func() error {
			if i%20 == 0 {
				key := postgres.NewKey{Key: uuid.New(), Sealed: []byte("sealed")}
				err := pgx.BeginFunc(t.Context(), h.db.Pool, func(tx pgx.Tx) error {
					if _, err := postgres.LockReservation(t.Context(), tx, id); err != nil {
						return err
					}
					return postgres.PutOwnerKey(t.Context(), tx, id, key, postgres.KeyRotated, "admin:hq")
				})
				if err != nil {
					return err
				}
				current.Store(key.Key.String())
			}
			service := h.Service
			if i%3 == 0 {
				service = replica
			}
			_, err := service.Request(t.Context(), "gangnam", access.Room, current.Load().(string))
			mu.Lock()
			defer mu.Unlock()
			if errors.Is(err, access.ErrInvalidKey) { // replaced between the load and the press
				refused++
				return nil
			}
			accepted++
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	h.until("all requests to end", func() bool {
		return one[int](h, `select count(*) from door_request where finished_at is null`) == 0
	})
	if n := one[int](h, `select count(*) from door_request d where 1 <> (select count(*) from access_key k where k.hash = d.key_hash)`); n != 0 {
		t.Errorf("%d requests without exactly one key", n)
	}
	late := one[int](h, `select count(*) from door_request d join access_key k on k.hash = d.key_hash
		where d.granted_at > k.revoked_at`)
	if late != 0 {
		t.Errorf("%d grants after the key was revoked", late)
	}
	granted := one[int](h, `select count(*) from door_request where granted_at is not null`)
	if accepted == 0 || granted == 0 {
		t.Errorf("%d accepted, %d granted", accepted, granted)
	}
	t.Logf("%d presses: %d accepted, %d refused, %d grants", presses, accepted, refused, granted)
}
