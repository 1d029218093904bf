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
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

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
	id := one[booking.ReservationID](h, `select reservation_id from access_key where $1`, true)
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
		return one[int](h, `select count(*) from door_request where finished_at is null and $1`, true) == 0
	})
	if n := one[int](h, `select count(*) from door_request d where $1 and 1 <> (select count(*) from access_key k where k.hash = d.key_hash)`, true); n != 0 {
		t.Errorf("%d requests without exactly one key", n)
	}
	late := one[int](h, `select count(*) from door_request d join access_key k on k.hash = d.key_hash
		where $1 and d.granted_at > k.revoked_at`, true)
	if late != 0 {
		t.Errorf("%d grants after the key was revoked", late)
	}
	granted := one[int](h, `select count(*) from door_request where $1 and granted_at is not null`, true)
	if accepted == 0 || granted == 0 {
		t.Errorf("%d accepted, %d granted", accepted, granted)
	}
	t.Logf("%d presses: %d accepted, %d refused, %d grants", presses, accepted, refused, granted)
}
