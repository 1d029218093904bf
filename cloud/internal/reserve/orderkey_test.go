package reserve_test

import (
	"encoding/base64"
	"encoding/binary"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
	"github.com/yeolda/yeolda/cloud/internal/sandbox"
	"github.com/yeolda/yeolda/cloud/internal/seal"
)

// readable reports whether an order id can be read with the encryption key and everything that is in the database.
func (s *shop) readable(t *testing.T, order string) bool {
	t.Helper()
	keys, err := s.Settings.Keyring()
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := base64.RawURLEncoding.DecodeString(order)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := keys.Open("order:"+seoul, sealed); err == nil {
		return true
	}
	rows, err := s.DB.Pool.Query(s.ctx, `select sealed from order_key`)
	if err != nil {
		t.Fatal(err)
	}
	stored, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range stored {
		text, err := keys.Open(postgres.OrderKeyPurpose, one)
		if err != nil {
			t.Fatal(err)
		}
		ring, err := seal.ParseKeys(string(text))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ring.Open("order:"+seoul, sealed); err == nil {
			return true
		}
	}
	return false
}

// TestOrderIDBecomesUnreadable: an order id can be read while its order may have to be rebuilt, and not after the eighth day.
// The keys of the coming days exist in advance, so that a backup contains them.
func TestOrderIDBecomesUnreadable(t *testing.T) {
	t.Parallel()
	s := open(t)
	_, order, _ := s.bought(t, sandbox.MethodCard)
	replica := s.Replica(t)
	keep := func() {
		t.Helper()
		if err := replica.KeepOrderKeys(s.ctx); err != nil {
			t.Fatal(err)
		}
	}
	keep()
	last := s.Clock.Now().UTC().AddDate(0, 0, 8).Format(time.DateOnly)
	if n := s.count(t, `select count(*) from order_key where day = $1`, last); n != 1 {
		t.Errorf("%d keys for %s, want 1", n, last)
	}
	s.AdvanceDays(t, 8)
	keep()
	if !s.readable(t, order.OrderID) {
		t.Fatal("the order id cannot be read while its order may have to be rebuilt")
	}
	s.AdvanceDays(t, 1)
	keep()
	if s.readable(t, order.OrderID) {
		t.Error("the order id can be read after nine days")
	}
}

// TestOrderIDOfAnEarlierRelease: an order whose id was sealed with the encryption key is rebuilt.
func TestOrderIDOfAnEarlierRelease(t *testing.T) {
	t.Parallel()
	s := open(t)
	keys, err := s.Settings.Keyring()
	if err != nil {
		t.Fatal(err)
	}
	w := s.wish(sandbox.MethodCard)
	var room uint64
	err = s.DB.Pool.QueryRow(s.ctx, `select r.id from room r join branch b on b.id = r.branch_id where b.code = 'gangnam' and r.no = $1`, w.Room).Scan(&room)
	if err != nil {
		t.Fatal(err)
	}
	plain := make([]byte, 1, 15)
	for _, field := range []struct {
		value uint64
		bytes int
	}{{room, 3}, {uint64(w.Start.Unix() / 600), 3}, {6, 1}, {1_010_8888_0099, 7}} {
		plain = append(plain, binary.BigEndian.AppendUint64(nil, field.value)[8-field.bytes:]...)
	}
	order := base64.RawURLEncoding.EncodeToString(keys.Seal("order:"+seoul, plain))
	replica := s.Replica(t)
	const won = 12_000
	s.orphan(t, replica, order, won)
	if _, err := replica.Rebuild(s.ctx, reserve.ReconcileSpan); err != nil {
		t.Fatal(err)
	}
	s.await(t, order, "DONE")
	s.orphans -= won
	if n := s.count(t, `select count(*) from reservation where order_id = $1 and mobile_key = '01088880099' and start_at = $2 and end_at = start_at + interval '1 hour'`, order, w.Start); n != 1 {
		t.Error("the reservation has another time or guest")
	}
}
