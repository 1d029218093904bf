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
	"github.com/yeolda/yeolda/cloud/internal/config"
	"github.com/yeolda/yeolda/cloud/internal/grantkey"
	"github.com/yeolda/yeolda/cloud/internal/moneytest"
	"github.com/yeolda/yeolda/cloud/internal/pgtest"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/sandbox"
	"github.com/yeolda/yeolda/cloud/internal/seal"
	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

// TestServeRejectsKeysOfAnotherInstallation starts the service with another encryption key than the door PINs were sealed with, before
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
		buy(t, shop, 2) // its PIN must differ from that of the pass before
		sealed := ring(t, fresh)
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
