// Package enroll issues the credentials of branch agents: directly, or in exchange for a token. A token is valid once, for
// one hour, so it may be part of a command line.
//
//	yeolda agent enroll BRANCH ─► token ─► one command on the Pi ─► POST /api/v2/agent/enroll ─► credential, token spent
//
// A token ends with a fingerprint of the keys that sign door grants. The agent compares the keys it receives with the
// fingerprint, so an attacker in between can block the exchange but cannot substitute its own keys.
package enroll

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/audit"
	"github.com/yeolda/yeolda/cloud/internal/grantkey"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/protocol"
)

// TokenLife is how long a token may be exchanged.
const TokenLife = time.Hour

// ErrToken is returned for a token that is unknown, used or expired. The caller does not learn which.
var ErrToken = errors.New("enroll: token is not valid")

// Credential is the credential of an agent. Only the hash of the password is stored.
type Credential struct {
	Branch          string
	Username        string
	Password        string
	GrantPublicKeys []string // base64
}

// String returns the credential in the format of the agent's credentials file.
func (c Credential) String() string {
	return fmt.Sprintf("YEOLDA_BRANCH=%s\nYEOLDA_AGENT_USERNAME=%s\nYEOLDA_AGENT_PASSWORD=%s\nYEOLDA_GRANT_PUBLIC_KEYS=%s\n",
		c.Branch, c.Username, c.Password, strings.Join(c.GrantPublicKeys, ","))
}

// Issue issues a credential for a branch, which is standby at first. publicKey belongs to the key pair of the machine; nil: it
// has none, and connects with the password. The machine gets the settings of the one that it replaces; replaces is its user name, or
// empty if both stay in use: then the settings are those of the branch's active machine. It returns postgres.ErrNoBranch, or
// postgres.ErrNoAgent if replaces is no credential of the branch.
func Issue(ctx context.Context, tx pgx.Tx, branch, replaces string, keys grantkey.Set, publicKey ed25519.PublicKey, now time.Time) (Credential, error) {
	c := Credential{
		Branch: branch, Username: protocol.AgentID(branch) + "-" + strings.ToLower(rand.Text()[:8]), Password: rand.Text(),
		GrantPublicKeys: keys.Public,
	}
	hash := sha256.Sum256([]byte(c.Password))
	err := postgres.InsertAgent(ctx, tx, branch, postgres.NewCredential{
		Username: c.Username, SecretHash: hash[:], KeyEpoch: keys.Epoch, PublicKey: publicKey, Replaces: replaces})
	if err != nil {
		return c, err
	}
	return c, postgres.CopySettings(ctx, tx, c.Username, replaces, now)
}

// Offer makes a token for a branch; by is who asked for it. replaces is the user name of the machine that the new one replaces, or
// empty. The token never begins with a hyphen, because it is an argument of a command. It returns postgres.ErrNoBranch, or
// postgres.ErrNoAgent if replaces is no credential of the branch.
func Offer(ctx context.Context, q postgres.Querier, branch, replaces, by string, keys grantkey.Set, now time.Time) (token string, err error) {
	token = rand.Text() + "." + Fingerprint(keys.Public)
	hash := sha256.Sum256([]byte(token))
	e := postgres.Enrollment{Branch: branch, By: by, KeyEpoch: keys.Epoch, Replaces: replaces}
	return token, postgres.InsertEnrollment(ctx, q, e, hash[:], now.Add(TokenLife))
}

// Exchange spends a token for a credential, in one transaction. Its grant keys are those of the token, even if they were
// rotated since: the agent receives the newer ones when it connects. A machine whose answer was lost repeats the exchange with the
// same key pair until it has connected, and receives the same credential with another password. It returns ErrToken.
func Exchange(ctx context.Context, db *postgres.DB, token string, ring *grantkey.Ring, publicKey ed25519.PublicKey, address string) (c Credential, err error) {
	hash := sha256.Sum256([]byte(token))
	err = db.InTx(ctx, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		e, err := postgres.UseEnrollment(ctx, tx, hash[:], now)
		if errors.Is(err, postgres.ErrNoEnrollment) && publicKey != nil {
			c, err = repeat(ctx, tx, hash[:], ring, publicKey, address, now)
			return err
		}
		if errors.Is(err, postgres.ErrNoEnrollment) {
			return ErrToken
		}
		if err != nil {
			return err
		}
		keys, err := ring.Of(ctx, tx, e.KeyEpoch)
		if err != nil {
			return err
		}
		if c, err = Issue(ctx, tx, e.Branch, e.Replaces, keys, publicKey, now); err != nil {
			return err
		}
		return postgres.AppendAudit(ctx, tx, audit.Entry{
			Actor: e.By, Branch: e.Branch, Action: "agent.enroll", Target: c.Username, Address: address,
		})
	})
	return c, err
}

func repeat(ctx context.Context, tx pgx.Tx, tokenHash []byte, ring *grantkey.Ring, publicKey ed25519.PublicKey, address string, now time.Time) (Credential, error) {
	c := Credential{Password: rand.Text()}
	hash := sha256.Sum256([]byte(c.Password))
	username, e, err := postgres.RepeatEnrollment(ctx, tx, tokenHash, publicKey, hash[:], now)
	if errors.Is(err, postgres.ErrNoEnrollment) {
		return c, ErrToken
	}
	if err != nil {
		return c, err
	}
	keys, err := ring.Of(ctx, tx, e.KeyEpoch)
	if err != nil {
		return c, err
	}
	c.Branch, c.Username, c.GrantPublicKeys = e.Branch, username, keys.Public
	return c, postgres.AppendAudit(ctx, tx, audit.Entry{
		Actor: e.By, Branch: e.Branch, Action: "agent.enroll", Target: c.Username, Address: address, Detail: map[string]any{"repeated": true},
	})
}

// Fingerprint returns a fingerprint of the keys that sign grants: 22 characters, 132 bits.
func Fingerprint(grantPublicKeys []string) string {
	sum := sha256.Sum256([]byte(strings.Join(grantPublicKeys, ",")))
	return base64.RawURLEncoding.EncodeToString(sum[:])[:22]
}
