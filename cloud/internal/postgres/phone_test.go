package postgres_test

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/pgtest"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// Erasure finds columns in the notation of the guest by an expression of its own.
func TestPhoneKeyOfColumnsIsThatOfRequests(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	numbers := []string{"010-1111-2222", "+82 (0)10-1111-2222", "0082 10 1111 2222", "82-2-123-4567", "(+82) 1588-1234", "＋８２　１０　１１１１　２２２２", "10.1111.2222", "+1 212 555 0100", "8282-1234", ""}
	number := rapid.StringMatching(`[(＋+]?(00|82|0082|10)?[0-9０-９ ()+-]{0,20}`)
	for i := range 3000 {
		numbers = append(numbers, number.Example(i))
	}
	rows, err := db.Pool.Query(t.Context(), fmt.Sprintf(`select n, %s from unnest($1::text[]) n`, postgres.PhoneKey("n")), numbers)
	if err != nil {
		t.Fatal(err)
	}
	var written, key string
	if _, err := pgx.ForEachRow(rows, []any{&written, &key}, func() error {
		if want := booking.NormalizePhone(written); key != want {
			t.Errorf("the column %q has the key %q, want %q", written, key, want)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// A block that was recorded under the notation of an earlier release outlasts the upgrade.
func TestUpgradeRewritesPhoneKeys(t *testing.T) {
	t.Parallel()
	db := empty(t, 1)[0]
	if err := postgres.MigrateTo(t.Context(), db.Pool, 227); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"821011112222", "00821033334444", "1055556666", "01077778888", "82821234", "12125550100", "01011112222"} {
		exec(t, db.Pool, `insert into guest_block (mobile_key, reason, created_by, created_at) values ('`+key+`', 'x', 'hq', now())`)
	}
	if err := postgres.Migrate(t.Context(), db.Pool, db.Logger); err != nil {
		t.Fatal(err)
	}
	rows, err := db.Pool.Query(t.Context(), `select mobile_key from guest_block order by mobile_key`)
	if err != nil {
		t.Fatal(err)
	}
	got, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	if want := "[01011112222 01033334444 01055556666 01077778888 12125550100 82821234]"; fmt.Sprint(got) != want {
		t.Errorf("got %v, want %s", got, want)
	}
}
