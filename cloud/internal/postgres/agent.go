package postgres

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/protocol"
)

// ErrNoAgent is returned when there is no credential with that user name, or when it is revoked.
var ErrNoAgent = errors.New("postgres: no such agent")

// FindAgents looks up credentials by user name and calls found for each that is not revoked, with its branch, the
// SHA-256 of its password, and its public key, if it has one.
func FindAgents(ctx context.Context, q Querier, usernames []string, found func(username, branch string, secretHash, publicKey []byte)) error {
	rows, err := q.Query(ctx, `
		select a.username, b.code, a.secret_hash, a.public_key from agent_credential a join branch b on b.id = a.branch_id
		where a.username = any ($1) and a.revoked_at is null`, usernames)
	if err != nil {
		return err
	}
	var username, branch string
	var secretHash, publicKey []byte
	_, err = pgx.ForEachRow(rows, []any{&username, &branch, &secretHash, &publicKey}, func() error {
		found(username, branch, bytes.Clone(secretHash), bytes.Clone(publicKey))
		return nil
	})
	return err
}

// NewCredential is the credential of an agent. Only the hash of its password is stored.
type NewCredential struct {
	Username   string
	SecretHash []byte
	PublicKey  []byte // Ed25519; nil: the agent connects with its password
	KeyEpoch   uint64 // of the grant keys that are part of it
	Replaces   string // the credential whose machine the new one replaces; empty: none
}

// InsertAgent adds a credential, as standby. It returns ErrNoBranch, or ErrNoAgent if c.Replaces is no credential of the branch; an
// existing user name is a unique violation.
func InsertAgent(ctx context.Context, q Querier, branch string, c NewCredential) error {
	if err := checkReplaced(ctx, q, branch, c.Replaces); err != nil {
		return err
	}
	tag, err := q.Exec(ctx, `
		insert into agent_credential (username, branch_id, secret_hash, issued_epoch, key_epoch, public_key, replaces)
		select $2, id, $3, $4, $4, $5, nullif($6, '') from branch where code = $1`,
		branch, c.Username, c.SecretHash, c.KeyEpoch, c.PublicKey, c.Replaces)
	if err == nil && tag.RowsAffected() == 0 {
		return ErrNoBranch
	}
	return err
}

// RevokeAgent revokes a credential; its connection ends within seconds. If it was the active one, its branch is offline
// from now on. The passes that it has in its list end, so that a stolen machine opens nothing with them for long; IssueMissing
// creates new ones. It returns ErrNoAgent.
func RevokeAgent(ctx context.Context, q Querier, username string) error {
	var found bool
	err := q.QueryRow(ctx, `
		with before as (
			select username, branch_id, active from agent_credential where username = $1 for no key update
		), revoked as (
			update agent_credential a set revoked_at = coalesce(revoked_at, clock_timestamp()), active = false, online = false
			from before where a.username = before.username
		), disconnected as (
			update agent_inventory i set online = false, presence_since = case when i.online then clock_timestamp() else i.presence_since end
			from before where i.branch_id = before.branch_id and before.active
		), renewed as (
			update pass p set ended_at = clock_timestamp(), changed_at = clock_timestamp()
			from before where p.branch_id = before.branch_id and p.ended_at is null
			  and exists (select from pass_listed l where l.username = before.username and l.pass_id = p.id)
		)
		select exists (select from before)`, username).Scan(&found)
	if err == nil && !found {
		return ErrNoAgent
	}
	return err
}

// Inventory returns the devices of a branch, as its active agent reported them last; none if it never did. It returns
// ErrNoBranch.
func Inventory(ctx context.Context, q Querier, branch string) (inventory protocol.Inventory, err error) {
	var raw []byte
	err = q.QueryRow(ctx, `
		select i.inventory from branch b left join agent_inventory i on i.branch_id = b.id where b.code = $1`, branch).Scan(&raw)
	if errors.Is(err, pgx.ErrNoRows) {
		return inventory, ErrNoBranch
	}
	if err != nil || raw == nil {
		return inventory, err
	}
	return inventory, json.Unmarshal(raw, &inventory)
}

// ErrNoEnrollment is returned for an enrolment token that is unknown, used or expired.
var ErrNoEnrollment = errors.New("postgres: no such enrollment")

// InsertEnrollment adds a token for the enrolment of one agent. It returns ErrNoBranch, or ErrNoAgent if the machine to be replaced has no
// credential of the branch.
func InsertEnrollment(ctx context.Context, q Querier, e Enrollment, tokenHash []byte, expires time.Time) error {
	if err := checkReplaced(ctx, q, e.Branch, e.Replaces); err != nil {
		return err
	}
	tag, err := q.Exec(ctx, `
		insert into agent_enrollment (token_hash, branch_id, created_by, expires_at, key_epoch, replaces)
		select $2, id, $3, $4, $5, nullif($6, '') from branch where code = $1`,
		e.Branch, tokenHash, e.By, expires, e.KeyEpoch, e.Replaces)
	if err == nil && tag.RowsAffected() == 0 {
		return ErrNoBranch
	}
	return err
}

// checkReplaced returns ErrNoAgent if the credential that a new one replaces is not one of the branch. Empty: it replaces none.
func checkReplaced(ctx context.Context, q Querier, branch, replaces string) error {
	if replaces == "" {
		return nil
	}
	of, err := BranchOfAgent(ctx, q, replaces)
	if err == nil && of != branch {
		err = ErrNoAgent
	}
	return err
}

// Enrollment is a token for the enrolment of one agent.
type Enrollment struct {
	Branch   string
	By       string // its creator
	KeyEpoch uint64 // of its grant keys
	Replaces string // the credential whose machine is replaced; empty: none
}

// RepeatEnrollment gives the credential that a machine received for a token another password, as long as the token is valid and the
// machine has never connected: it may not have received the first answer. Only the machine itself has the key pair. It returns
// ErrNoEnrollment.
func RepeatEnrollment(ctx context.Context, tx pgx.Tx, tokenHash, publicKey, secretHash []byte, now time.Time) (username string, e Enrollment, err error) {
	err = tx.QueryRow(ctx, `
		update agent_credential a set secret_hash = $3 from agent_enrollment e join branch b on b.id = e.branch_id
		where e.token_hash = $1 and e.used_at is not null and e.expires_at > $4
		  and a.branch_id = e.branch_id and a.public_key = $2 and a.seen_at is null and a.revoked_at is null
		returning a.username, b.code, e.created_by, e.key_epoch`, tokenHash, publicKey, secretHash, now).Scan(&username, &e.Branch, &e.By, &e.KeyEpoch)
	if errors.Is(err, pgx.ErrNoRows) {
		err = ErrNoEnrollment
	}
	return username, e, err
}

// EndEnrollments ends the tokens for agents that an actor has offered and no machine has used.
func EndEnrollments(ctx context.Context, tx pgx.Tx, by string, now time.Time) error {
	_, err := tx.Exec(ctx, `update agent_enrollment set expires_at = $2 where created_by = $1 and used_at is null and expires_at > $2`, by, now)
	return err
}

// UseEnrollment spends a token. It returns ErrNoEnrollment.
func UseEnrollment(ctx context.Context, tx pgx.Tx, tokenHash []byte, now time.Time) (e Enrollment, err error) {
	err = tx.QueryRow(ctx, `
		update agent_enrollment e set used_at = $2 from branch b
		where e.token_hash = $1 and e.used_at is null and e.expires_at > $2 and b.id = e.branch_id
		returning b.code, e.created_by, e.key_epoch, coalesce(e.replaces, '')`, tokenHash, now).Scan(&e.Branch, &e.By, &e.KeyEpoch, &e.Replaces)
	if errors.Is(err, pgx.ErrNoRows) {
		return e, ErrNoEnrollment
	}
	return e, err
}
