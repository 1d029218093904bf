package installation_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"

	"github.com/yeolda/yeolda/cloud/internal/config"
	"github.com/yeolda/yeolda/cloud/internal/grantkey"
	"github.com/yeolda/yeolda/cloud/internal/installation"
	"github.com/yeolda/yeolda/cloud/internal/pgtest"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/seal"
)

const pinPurpose = "door-pin"

func key(n byte) []byte { return bytes.Repeat([]byte{n}, seal.KeySize) }

// keys returns keys of settings: encryption keys and seeds of grant keys, each named by a number.
func keys(t *testing.T, sealing, grants []byte) installation.Keys {
	t.Helper()
	var k installation.Keys
	var roots [][]byte
	for _, n := range sealing {
		roots = append(roots, key(n))
	}
	var err error
	if k.Sealing, err = seal.New(roots...); err != nil {
		t.Fatal(err)
	}
	for _, n := range grants {
		k.Grants = append(k.Grants, ed25519.NewKeyFromSeed(key(n)))
	}
	return k
}

type fixture struct {
	*testing.T
	db *postgres.DB
}

func newFixture(t *testing.T) fixture {
	t.Helper()
	f := fixture{t, pgtest.New(t)}
	f.exec(`insert into branch (code) values ($1)`, "gangnam")
	return f
}

func (f fixture) exec(sql string, args ...any) {
	f.Helper()
	if _, err := f.db.Pool.Exec(f.Context(), sql, args...); err != nil {
		f.Fatal(err)
	}
}

// pins stores door PINs that are sealed with a key.
func (f fixture) pins(n int, with installation.Keys) {
	f.Helper()
	for range n {
		f.exec(`insert into door_pin (branch_id, device, pin) select id, 'room-' || (select count(*) from door_pin), $1 from branch`, with.Sealing.Seal(pinPurpose, []byte("123456")))
	}
}

func (f fixture) enroll(username string) {
	f.Helper()
	f.exec(`insert into agent_credential (username, branch_id, secret_hash, active, seen_at) select $1, id, '', true, now() from branch`, username)
}

// starts checks whether a service with the keys starts; variable is the setting that the refusal names, or empty. A start that is refused
// leaves no record, and the doctor comes to the same result.
func (f fixture) starts(name string, k installation.Keys, variable string) {
	f.Helper()
	before, _, err := postgres.FindInstallation(f.Context(), f.db.Pool)
	if err != nil {
		f.Fatal(err)
	}
	for which, err := range map[string]error{"check": k.Check(f.Context(), f.db.Pool), "start": k.Bind(f.Context(), f.db)} {
		got := ""
		if problem := new(config.Problem); errors.As(err, &problem) {
			got = problem.Variable
		} else if err != nil {
			f.Fatalf("%s: %s: %v", name, which, err)
		}
		if got != variable {
			f.Errorf("%s: %s: got the problem of %q, want %q", name, which, got, variable)
		}
	}
	after, _, err := postgres.FindInstallation(f.Context(), f.db.Pool)
	if err != nil {
		f.Fatal(err)
	}
	if variable != "" && fmt.Sprint(before) != fmt.Sprint(after) {
		f.Errorf("%s: the refused start has changed the record", name)
	}
}

const (
	encryptionKey = "YEOLDA_ENCRYPTION_KEY"
	grantKey      = "YEOLDA_GRANT_KEY"
)

func TestFirstStartRecordsTheKeys(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	own := keys(t, []byte{1}, []byte{2})
	f.starts("first start", own, "")
	if _, found, err := postgres.FindInstallation(t.Context(), f.db.Pool); err != nil || !found {
		t.Fatalf("record found: %v, %v, want true", found, err)
	}
	f.starts("restart", own, "")
	f.starts("another encryption key", keys(t, []byte{3}, []byte{2}), encryptionKey)
	f.starts("another grant key without agents", keys(t, []byte{1}, []byte{4}), "")
}

func TestRotatedEncryptionKeyIsAccepted(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.starts("first start", keys(t, []byte{1}, []byte{9}), "")
	f.starts("new key first, old key behind it", keys(t, []byte{2, 1}, []byte{9}), "")
	f.starts("old key removed before the values are sealed again", keys(t, []byte{2}, []byte{9}), encryptionKey)
	both := keys(t, []byte{2, 1}, []byte{9})
	for _, column := range postgres.SealedColumns {
		if _, lost, err := postgres.Reseal(t.Context(), f.db, column, both.Sealing); err != nil || lost > 0 {
			t.Fatalf("%s.%s: %d lost, %v", column.Table, column.Column, lost, err)
		}
	}
	f.starts("old key removed afterwards", keys(t, []byte{2}, []byte{9}), "")
	f.starts("old key alone", keys(t, []byte{1}, []byte{9}), encryptionKey)
}

// TestUpgradedDatabaseNeedsItsKey starts on a database without a record, as after an upgrade or the restoration of an earlier backup.
func TestUpgradedDatabaseNeedsItsKey(t *testing.T) {
	t.Parallel()
	own, other := keys(t, []byte{1}, []byte{9}), keys(t, []byte{2}, []byte{9})
	f := newFixture(t)
	f.pins(3, own)
	f.starts("wrong key", other, encryptionKey)
	f.starts("both keys", keys(t, []byte{2, 1}, []byte{9}), "")

	f = newFixture(t)
	f.pins(3, own)
	f.pins(2, other) // of a service that ran with the wrong key
	f.starts("wrong key that has sealed less than half of the PINs", other, encryptionKey)
	f.starts("right key", own, "")

	f = newFixture(t)
	f.exec(`insert into message (template, to_mobile, variables, state) values ('login-code', '01011112222', $1, 'SENT')`, own.Sealing.Seal("message", nil))
	f.starts("wrong key, without PINs", other, encryptionKey)
	f.starts("right key, without PINs", own, "")
}

func TestGrantKeyIsOneThatAgentsAccept(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	first := keys(t, []byte{1}, []byte{2})
	f.starts("first start", first, "")
	f.enroll("agent-a")
	f.starts("restart", first, "")
	f.starts("another key", keys(t, []byte{1}, []byte{3}), grantKey)
	f.starts("another key first, which signs", keys(t, []byte{1}, []byte{3, 2}), grantKey)
	f.starts("another key behind", keys(t, []byte{1}, []byte{2, 3}), "")
	f.starts("the other key alone, which only later agents accept", keys(t, []byte{1}, []byte{3}), grantKey)
	f.exec(`update agent_credential set revoked_at = now() where username = $1`, "agent-a")
	f.starts("another key after the last agent was revoked", keys(t, []byte{1}, []byte{3, 2}), "")
	f.enroll("agent-b") // with both keys
	f.starts("the first of two keys removed", keys(t, []byte{1}, []byte{2}), "")
	f.starts("the removed key, which later agents do not accept", keys(t, []byte{1}, []byte{3}), grantKey)
}

func TestRotatedGrantKeysAreAccepted(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	first, other := keys(t, []byte{1}, []byte{2}), keys(t, []byte{1}, []byte{3})
	ring := &grantkey.Ring{DB: f.db, Keys: first.Sealing, First: first.Grants, Log: slog.New(slog.DiscardHandler)}
	f.enroll("agent-a")
	if _, err := ring.Rotate(t.Context(), "cli:root"); err != nil {
		t.Fatal(err)
	}
	f.starts("upgraded during a rotation with another key", other, grantKey)
	f.starts("during a rotation", first, "")
	f.starts("another key during a rotation", other, grantKey)
	f.exec(`update agent_credential set key_epoch = $1`, 1)
	f.starts("another key, when every agent has the list", other, "")
	if err := ring.Finish(t.Context(), "cli:root", false); err != nil {
		t.Fatal(err)
	}
	f.exec(`update agent_credential set key_epoch = $1`, 0) // away since before the rotation: it gets the list first
	f.starts("the retired key", first, "")
	f.starts("another key in place of the retired one", other, "")
}

// TestReplicasStartAtTheSameTime starts replicas on a new database, half of them with the keys of another installation.
func TestReplicasStartAtTheSameTime(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	const replicas = 16
	errs := make([]error, replicas)
	var group sync.WaitGroup
	for i := range replicas {
		k := keys(t, []byte{byte(i % 2)}, []byte{byte(i % 2)})
		group.Go(func() { errs[i] = k.Bind(context.WithoutCancel(t.Context()), f.db) })
	}
	group.Wait()
	refused := map[int]int{}
	for i, err := range errs {
		if err == nil {
			continue
		}
		if problem := new(config.Problem); !errors.As(err, &problem) || problem.Variable != encryptionKey {
			t.Fatalf("got %v, want the problem of %s", err, encryptionKey)
		}
		refused[i%2]++
	}
	if refused[0]+refused[1] != replicas/2 || refused[0]*refused[1] != 0 {
		t.Errorf("refused by installation: %v, want all of one and none of the other", refused)
	}
}

func TestLostKeysAreReplaced(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.starts("first start", keys(t, []byte{1}, []byte{2}), "")
	f.pins(1, keys(t, []byte{1}, []byte{2}))
	f.enroll("agent-a")
	fresh := keys(t, []byte{3}, []byte{4})
	f.starts("before", fresh, encryptionKey)
	for _, want := range []bool{true, false} {
		if changed, err := fresh.Adopt(t.Context(), f.db, "cli:root"); err != nil || changed != want {
			t.Fatalf("changed: %v, %v, want %v", changed, err, want)
		}
	}
	f.starts("after", fresh, "")
	var target string
	if err := f.db.Pool.QueryRow(t.Context(), `select target from audit where action = $1`, "settings.adopt-keys").Scan(&target); err != nil {
		t.Fatal(err)
	}
	if want := base64.StdEncoding.EncodeToString(fresh.Grants[0].Public().(ed25519.PublicKey)); target != want {
		t.Errorf("audit: got %s, want %s", target, want)
	}
}
