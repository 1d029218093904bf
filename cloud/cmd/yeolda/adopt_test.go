package main

import (
	"encoding/base64"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/alert"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/config"
	"github.com/yeolda/yeolda/cloud/internal/grantkey"
	"github.com/yeolda/yeolda/cloud/internal/moneytest"
	"github.com/yeolda/yeolda/cloud/internal/pgtest"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/sandbox"
	"github.com/yeolda/yeolda/cloud/internal/seal"
	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

// TestServeRejectsKeysOfAnotherInstallation starts the service with an encryption key that the door PINs were not sealed with, before
// and after the operator confirms that their key is lost.
func TestServeRejectsKeysOfAnotherInstallation(t *testing.T) {
	s := newShell(t).withDatabase()
	own, other := seal.NewKey(), seal.NewKey()
	s.Setenv("YEOLDA_ENCRYPTION_KEY", own)
	s.ok("branch", "apply", "-f", demoFile)

	s.Setenv("YEOLDA_ENCRYPTION_KEY", other)
	_, errOut, code := s.run("", "serve")
	if code != exitUsage || !strings.HasPrefix(errOut, "yeolda: YEOLDA_ENCRYPTION_KEY: this database was written with another encryption key") {
		t.Errorf("serve with another key: exit code %d, want %d and the setting: %s", code, exitUsage, errOut)
	}
	if out, _, _ := s.run("", "doctor", "--offline"); !strings.Contains(out, "FAIL  secrets      YEOLDA_ENCRYPTION_KEY") {
		t.Errorf("doctor with another key: %s", out)
	}
	if _, errOut, code := s.run("", "adopt"); code != exitFailed || !strings.Contains(errOut, "--lost") {
		t.Errorf("adopt without --lost: exit code %d, want %d: %s", code, exitFailed, errOut)
	}
	s.ok("adopt", "--lost")
	if out := s.ok("adopt", "--lost"); !strings.Contains(out, "already") {
		t.Errorf("adopt again: %s", out)
	}
	if out, _, _ := s.run("", "doctor", "--offline"); strings.Contains(out, "another encryption key") {
		t.Errorf("doctor after adopt: %s", out)
	}
}

// TestResealCoversTheInstallation removes the old key after a rotation.
func TestResealCoversTheInstallation(t *testing.T) {
	s := newShell(t).withDatabase()
	own, fresh := seal.NewKey(), seal.NewKey()
	s.Setenv("YEOLDA_ENCRYPTION_KEY", own)
	s.ok("adopt", "--lost")
	s.Setenv("YEOLDA_ENCRYPTION_KEY", fresh+","+own)
	if out := s.ok("reseal"); !strings.Contains(out, "installation.sealed: 1 sealed with the new key") {
		t.Errorf("reseal: %s", out)
	}
	s.Setenv("YEOLDA_ENCRYPTION_KEY", fresh)
	if out, _, _ := s.run("", "doctor", "--offline"); strings.Contains(out, "another encryption key") {
		t.Errorf("doctor with the new key alone: %s", out)
	}
	conn, err := pgx.Connect(t.Context(), os.Getenv("YEOLDA_DATABASE_URL"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	var rows int
	if err := conn.QueryRow(t.Context(), `select count(*) from installation`).Scan(&rows); err != nil || rows != 1 {
		t.Errorf("%d records (%v), want 1", rows, err)
	}
}

// TestServiceWorksAfterItsKeyIsLost: the operator has lost the encryption key of a service with guests, contacts of alerts and rotated grant
// keys. After yeolda adopt --lost it sells, alerts have contacts, and a Pi that is enrolled again gets grants that it accepts.
func TestServiceWorksAfterItsKeyIsLost(t *testing.T) {
	s := newShell(t)
	url, lost, fresh := pgtest.URL(t), seal.NewKey(), seal.NewKey()
	s.Setenv("YEOLDA_DATABASE_URL", url)
	start := time.Now().Truncate(10 * time.Minute).Add(3 * time.Hour)
	serve := func(t *testing.T, key string) *servicetest.Stack {
		t.Helper()
		return servicetest.Start(t, quick, func(c *config.Settings) {
			c.Database.URL, c.Secrets.EncryptionKey = url, config.NewSecret(key)
		})
	}
	buy := func(t *testing.T, shop *servicetest.Stack, room int) {
		t.Helper()
		_, err := moneytest.NewBuyer(shop.URL, shop.Sandbox).Buy(t.Context(), moneytest.Wish{Room: room, Start: start, Method: sandbox.MethodCard, Mobile: "01012345678"})
		if err != nil {
			t.Fatal(err)
		}
	}
	ring := func(t *testing.T, key string) *seal.Keyring {
		t.Helper()
		keys, err := seal.ParseKeys(key)
		if err != nil {
			t.Fatal(err)
		}
		return keys
	}
	s.Setenv("YEOLDA_ENCRYPTION_KEY", lost)
	t.Run("before", func(t *testing.T) {
		shop := serve(t, lost)
		buy(t, shop, 1)
		if err := postgres.PutAlertContacts(t.Context(), shop.DB.Pool, "", ring(t, lost).Seal("alert-contacts", []byte("[]"))); err != nil {
			t.Fatal(err)
		}
		if _, err := shop.DB.Pool.Exec(t.Context(), `insert into pass_agent (username, code_key) select username, $1 from agent_credential limit 1`,
			ring(t, lost).Seal(postgres.CodeKeyPurpose, []byte("key"))); err != nil {
			t.Fatal(err)
		}
		buy(t, shop, 3)
		for _, sql := range []string{
			`update reservation set start_at = start_at - interval '2 days', end_at = end_at - interval '2 days',
				occupied = tstzrange(lower(occupied) - interval '2 days', upper(occupied) - interval '2 days') where room_id = (select id from room where no = 3 and branch_id = reservation.branch_id)`,
			`insert into pass_listed (username, epoch, version, pass_id, room_id, not_before, not_after)
				select username, 1, 1, pass.id, room_id, not_before, not_after from pass, agent_credential c where c.branch_id = pass.branch_id and c.active`,
			`insert into pass_agent (username, version, applied_epoch, applied_version) select username, 1, 1, 1 from agent_credential where active
				on conflict (username) do update set version = 1, applied_epoch = 1, applied_version = 1`,
		} {
			if _, err := shop.DB.Pool.Exec(t.Context(), sql); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := shop.DB.Pool.Exec(t.Context(), `insert into webhook (url, secret, created_by, created_at, place) values ('https://example.com', $1, '', now(), 0)`,
			ring(t, lost).Seal("webhook-secret", []byte("whsec_a"))); err != nil {
			t.Fatal(err)
		}
		s.ok("agent", "keys", "rotate")
		s.run("", "agent", "keys", "finish", "--force") // unless the service was faster
	})
	s.Setenv("YEOLDA_ENCRYPTION_KEY", fresh)
	if out := s.ok("adopt", "--lost"); !strings.Contains(out, "signs grants") {
		t.Errorf("adopt: %s", out)
	}
	if out := s.ok("adopt", "--lost"); strings.Contains(out, "signs grants") {
		t.Errorf("adopt again: %s", out)
	}
	t.Run("after", func(t *testing.T) {
		shop := serve(t, fresh)
		buy(t, shop, 2) // its PIN must differ from that of the earlier pass
		sealed := ring(t, fresh)
		wantKeysReplaced(t, shop)
		if _, err := (&alert.Service{DB: shop.DB, Keys: sealed}).Contacts(t.Context(), ""); err != nil {
			t.Error(err)
		}
		first, err := shop.Settings.GrantKeys()
		if err != nil {
			t.Fatal(err)
		}
		keys := &grantkey.Ring{DB: shop.DB, Keys: sealed, First: first, Log: slog.New(slog.DiscardHandler)}
		credential, err := keys.Current(t.Context(), shop.DB.Pool)
		if err != nil {
			t.Fatal(err)
		}
		signing, err := keys.Signing(t.Context(), credential.Epoch)
		if err != nil {
			t.Fatal(err)
		}
		if public := base64.StdEncoding.EncodeToString(signing[32:]); len(credential.Public) != 1 || credential.Public[0] != public {
			t.Errorf("a new credential trusts %v, and grants are signed by %s", credential.Public, public)
		}
		for _, column := range []string{"pass.pin", "order_key.sealed", "pass_agent.code_key"} {
			table, name, _ := strings.Cut(column, ".")
			if n, err := postgres.CountStale(t.Context(), shop.DB.Pool, postgres.SealedColumn{Table: table, Column: name}, sealed.SealingKeyID()); err != nil || n > 0 {
				t.Errorf("%s: %d values of the lost key, %v", column, n, err)
			}
		}
	})
}

// wantKeysReplaced checks that the guest of a stay to come receives another key, that reservations can be looked at, that no PIN is shown as one
// that a keypad knows, and that the receiver of events whose secret is lost is reported.
func wantKeysReplaced(t *testing.T, shop *servicetest.Stack) {
	t.Helper()
	var replaced, known, disabled int
	for limit := time.Now().Add(time.Minute); replaced == 0 && time.Now().Before(limit); time.Sleep(50 * time.Millisecond) {
		if err := shop.DB.Pool.QueryRow(t.Context(), `select count(*) from message where template = 'key-changed'`).Scan(&replaced); err != nil {
			t.Fatal(err)
		}
	}
	if replaced != 1 {
		t.Errorf("got %d messages with another key, want 1", replaced)
	}
	rows, err := shop.DB.Pool.Query(t.Context(), `select id from reservation where state = 'DONE' order by id`)
	if err != nil {
		t.Fatal(err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[booking.ReservationID])
	if err != nil || len(ids) != 3 {
		t.Fatalf("got reservations %v (%v), want 3", ids, err)
	}
	for _, id := range ids {
		if _, err := shop.Replica(t).Detail(t.Context(), id); err != nil {
			t.Error(err)
		}
		if pass, err := postgres.PassOf(t.Context(), shop.DB.Pool, id); err == nil && pass.Ready {
			known++
		}
	}
	if known != 0 {
		t.Errorf("%d PINs are shown as known to a keypad, want none", known)
	}
	if err := shop.DB.Pool.QueryRow(t.Context(), `select count(*) from alert where kind = 'webhook-disabled' and ended_at is null`).Scan(&disabled); err != nil || disabled != 1 {
		t.Errorf("got %d alerts about webhooks (%v), want 1", disabled, err)
	}
}
