// Package installation ties a database to the keys that it was written with, so that a service with the keys of another installation
// does not start. Without it, such a service would be ready, and every press would fail.
//
// The database records a constant, sealed with the encryption key, and the grant keys that agents accept. A rotation of the encryption key
// seals the constant again, because it is one of postgres.SealedColumns. After a rotation of grant keys, the lists of package grantkey
// name what agents accept.
package installation

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/audit"
	"github.com/yeolda/yeolda/cloud/internal/config"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/seal"
)

// constant is the text that is sealed.
const constant = "yeolda installation"

// sample is the number of sealed values that are tried if nothing is recorded yet.
const sample = 100

// Keys are the keys of the settings. Both fields are required.
type Keys struct {
	Sealing *seal.Keyring
	Grants  []ed25519.PrivateKey
}

// Of returns the keys of effective settings, or a *config.Problem.
func Of(settings config.Settings) (k Keys, err error) {
	if k.Sealing, err = settings.Keyring(); err != nil {
		return k, &config.Problem{Variable: "YEOLDA_ENCRYPTION_KEY", Text: err.Error()}
	}
	if k.Grants, err = settings.GrantKeys(); err != nil {
		return k, &config.Problem{Variable: "YEOLDA_GRANT_KEY", Text: err.Error()}
	}
	return k, nil
}

// Bind records the keys if nothing is recorded yet, and returns a *config.Problem if the database was written with other ones.
// Replicas may call it at the same time.
func (k Keys) Bind(ctx context.Context, db *postgres.DB) error {
	return db.InTx(ctx, func(ctx context.Context, tx pgx.Tx, _ time.Time) error {
		recorded, found, err := postgres.FindInstallation(ctx, tx)
		if err != nil {
			return err
		}
		if !found {
			if err := k.openValues(ctx, tx); err != nil {
				return err
			}
			if err := postgres.InsertInstallation(ctx, tx, k.record()); err != nil {
				return err
			}
			if recorded, _, err = postgres.FindInstallation(ctx, tx); err != nil { // that of another replica, if it was faster
				return err
			}
		}
		enrolled, err := k.verify(ctx, tx, recorded)
		if err != nil {
			return err
		}
		return postgres.PutInstallationGrantKeys(ctx, tx, k.common(recorded.GrantKeys, enrolled))
	})
}

// Check is Bind without a change of the database.
func (k Keys) Check(ctx context.Context, q postgres.Querier) error {
	recorded, found, err := postgres.FindInstallation(ctx, q)
	if err != nil {
		return err
	}
	if !found {
		if err := k.openValues(ctx, q); err != nil {
			return err
		}
		recorded = k.record()
	}
	_, err = k.verify(ctx, q, recorded)
	return err
}

// Adopt records the keys in place of those that the database was written with. Values sealed with lost keys remain unreadable, except
// those that postgres.ForgetLost removes. It reports whether the keys have changed.
func (k Keys) Adopt(ctx context.Context, db *postgres.DB, actor string) (changed bool, err error) {
	err = db.InTx(ctx, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		recorded, found, err := postgres.FindInstallation(ctx, tx)
		if err != nil {
			return err
		}
		if err := postgres.ForgetLost(ctx, tx, k.Sealing, now); err != nil {
			return err
		}
		changed = !found || k.open(recorded) != nil || !slices.Equal(recorded.GrantKeys, k.public())
		if !changed {
			return nil
		}
		if err := postgres.ReplaceInstallation(ctx, tx, k.record()); err != nil {
			return err
		}
		return postgres.AppendAudit(ctx, tx, audit.Entry{Actor: actor, Action: "settings.adopt-keys", Target: k.public()[0]})
	})
	return changed, err
}

// verify compares the keys with the record. It reports whether agents without a key list are enrolled.
func (k Keys) verify(ctx context.Context, q postgres.Querier, recorded postgres.Installation) (enrolled bool, err error) {
	if err := k.open(recorded); err != nil {
		return false, err
	}
	return k.accepted(ctx, q, recorded.GrantKeys)
}

func (k Keys) record() postgres.Installation {
	return postgres.Installation{Sealed: k.Sealing.Seal(postgres.InstallationPurpose, []byte(constant)), GrantKeys: k.public()}
}

func (k Keys) public() []string {
	keys := make([]string, len(k.Grants))
	for i, key := range k.Grants {
		keys[i] = base64.StdEncoding.EncodeToString(key.Public().(ed25519.PublicKey))
	}
	return keys
}

var errSealing = &config.Problem{
	Variable: "YEOLDA_ENCRYPTION_KEY",
	Text: "this database was written with another encryption key: set that key; while keys are changed, behind the new one after a comma, until yeolda reseal has run " +
		"(deploy/README.md, The keys belong to another installation)",
}

func (k Keys) open(recorded postgres.Installation) error {
	if plain, err := k.Sealing.Open(postgres.InstallationPurpose, recorded.Sealed); err != nil || string(plain) != constant {
		return errSealing
	}
	return nil
}

// openValues tries the sealed values of a database without a record: those of the first column that has any, beginning with the door PINs.
// A service that ran with a wrong key has left some values of its own, so at least half of them have to open.
func (k Keys) openValues(ctx context.Context, q postgres.Querier) error {
	for _, column := range postgres.SealedColumns {
		values, err := postgres.SampleSealed(ctx, q, column, sample)
		if err != nil {
			return fmt.Errorf("read %s.%s: %w", column.Table, column.Column, err)
		}
		if len(values) == 0 {
			continue
		}
		opened := 0
		for _, value := range values {
			if _, err := k.Sealing.Open(column.Purpose, value); err == nil {
				opened++
			}
		}
		if opened*2 < len(values) {
			return errSealing
		}
		return nil
	}
	return nil
}

// accepted fails if agents without a key list would reject the grants that the first grant key signs. It reports whether there are
// such agents. recorded are the keys that they accept, unless the first key list names them.
func (k Keys) accepted(ctx context.Context, q postgres.Querier, recorded []string) (enrolled bool, err error) {
	if enrolled, err = postgres.AgentsWithFirstKeys(ctx, q); err != nil || !enrolled {
		return enrolled, err
	}
	keys, lists, err := postgres.GrantKeys(ctx, q)
	if err != nil {
		return enrolled, err
	}
	if len(lists) > 0 {
		recorded = lists[0].Keys[1:] // the first one was new
	}
	retired := func(public string) bool {
		return slices.ContainsFunc(keys, func(key postgres.GrantKey) bool { return key.Public == public && !key.RetiredAt.IsZero() })
	}
	valid := slices.DeleteFunc(slices.Clone(recorded), retired)
	if len(valid) == 0 {
		return enrolled, nil // such agents get the next list when they connect, and until then no grant
	}
	signing := slices.DeleteFunc(k.public(), retired)
	if len(signing) == 0 || !slices.Contains(valid, signing[0]) {
		return enrolled, &config.Problem{
			Variable: "YEOLDA_GRANT_KEY",
			Text: fmt.Sprintf("the enrolled agents accept no grant of this key: set the first one to the key with which they were enrolled, whose public key is %s "+
				"(deploy/README.md, The keys belong to another installation)", valid[0]),
		}
	}
	return enrolled, nil
}

// common returns the keys that every agent without a key list accepts, those included that are enrolled from now on.
func (k Keys) common(recorded []string, enrolled bool) []string {
	if !enrolled {
		return k.public()
	}
	return slices.DeleteFunc(append([]string{}, recorded...), func(key string) bool { return !slices.Contains(k.public(), key) })
}
