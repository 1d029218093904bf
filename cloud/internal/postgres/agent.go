package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/protocol"
)

// ErrNoAgent says that no agent has that user name.
var ErrNoAgent = errors.New("postgres: no such agent")

// AgentCredential returns the branch of an agent that may connect and the SHA-256 of its secret; both are zero for an
// unknown or revoked one.
func AgentCredential(ctx context.Context, q Querier, username string) (branch string, secretHash []byte, err error) {
	err = q.QueryRow(ctx, `
		select b.code, a.secret_hash from agent_credential a join branch b on b.id = a.branch_id
		where a.username = $1 and a.revoked_at is null`, username).Scan(&branch, &secretHash)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", nil, nil
	}
	return branch, secretHash, err
}

// RevokedAgents returns those of the user names that may not connect any more.
func RevokedAgents(ctx context.Context, q Querier, usernames []string) ([]string, error) {
	rows, err := q.Query(ctx, `
		select name from unnest($1::text[]) name
		where not exists (select from agent_credential a where a.username = name and a.revoked_at is null)`, usernames)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// InsertAgent adds the credential of an agent. It returns ErrNoBranch; a user name that exists is a unique violation.
func InsertAgent(ctx context.Context, q Querier, branch, username string, secretHash []byte) error {
	tag, err := q.Exec(ctx, `
		insert into agent_credential (username, branch_id, secret_hash) select $2, id, $3 from branch where code = $1`,
		branch, username, secretHash)
	if err == nil && tag.RowsAffected() == 0 {
		return ErrNoBranch
	}
	return err
}

// RevokeAgent makes a credential worthless; its connection ends within seconds. It returns ErrNoAgent.
func RevokeAgent(ctx context.Context, q Querier, username string) error {
	tag, err := q.Exec(ctx, `
		update agent_credential set revoked_at = coalesce(revoked_at, clock_timestamp()) where username = $1`, username)
	if err == nil && tag.RowsAffected() == 0 {
		return ErrNoAgent
	}
	return err
}

// AgentReport is what an agent says about itself.
type AgentReport struct {
	Version   string
	StartedAt time.Time // the agent's clock
	Inventory protocol.Inventory
}

// TouchAgent notes that an agent still says what it said before. It reports false when something is new.
func TouchAgent(ctx context.Context, q Querier, branch string, r AgentReport, now time.Time) (same bool, err error) {
	inventory, err := json.Marshal(r.Inventory)
	if err != nil {
		return false, err
	}
	tag, err := q.Exec(ctx, `
		update agent_inventory i set seen_at = $5, online = true
		from branch b
		where b.code = $1 and i.branch_id = b.id and i.version = $2 and i.started_at = $3 and i.inventory = $4::jsonb`,
		branch, r.Version, r.StartedAt, inventory, now)
	return tag.RowsAffected() == 1, err
}

// Option is a leaf of an air conditioner's tree.
type Option struct {
	ID     string
	Branch string // code
	Unit   string
	Path   []string
}

// PutAgent stores what an agent says about itself, and the options of its air conditioners in place of the earlier ones.
func PutAgent(ctx context.Context, tx pgx.Tx, branch string, r AgentReport, options []Option, now time.Time) error {
	inventory, err := json.Marshal(r.Inventory)
	if err != nil {
		return err
	}
	var branchID int32
	err = tx.QueryRow(ctx, `
		insert into agent_inventory (branch_id, version, started_at, seen_at, online, inventory)
		select id, $2, $3, $5, true, $4 from branch where code = $1
		on conflict (branch_id) do update set version = excluded.version, started_at = excluded.started_at,
			seen_at = excluded.seen_at, online = true, inventory = excluded.inventory
		returning branch_id`, branch, r.Version, r.StartedAt, inventory, now).Scan(&branchID)
	if errors.Is(err, pgx.ErrNoRows) {
		return ErrNoBranch
	}
	if err != nil {
		return err
	}
	ids := make([]string, len(options))
	for i, o := range options {
		ids[i] = o.ID
	}
	batch := new(pgx.Batch)
	batch.Queue(`delete from airconditioner_option where branch_id = $1 and id <> all ($2)`, branchID, ids)
	for _, o := range options {
		// An id is a hash over branch, unit and path, so whoever has it has the same three.
		batch.Queue(`insert into airconditioner_option (id, branch_id, unit, path) values ($1, $2, $3, $4) on conflict do nothing`,
			o.ID, branchID, o.Unit, o.Path)
	}
	return tx.SendBatch(ctx, batch).Close()
}

// SetAgentOnline notes that the agent of a branch came or went. A branch without an inventory keeps none.
func SetAgentOnline(ctx context.Context, q Querier, branch string, online bool, now time.Time) error {
	_, err := q.Exec(ctx, `
		update agent_inventory i set online = $2, seen_at = case when $2 then $3 else i.seen_at end
		from branch b where b.code = $1 and i.branch_id = b.id`, branch, online, now)
	return err
}

// Inventory returns what hangs on the agent of a branch, as it last said; nothing if it never did. It returns ErrNoBranch.
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

// ErrNoEnrollment says that there is no such token to enroll with any more, or that there never was.
var ErrNoEnrollment = errors.New("postgres: no such enrollment")

// InsertEnrollment adds a token to enroll one agent with. It returns ErrNoBranch.
func InsertEnrollment(ctx context.Context, q Querier, branch string, tokenHash []byte, by string, expires time.Time) error {
	tag, err := q.Exec(ctx, `
		insert into agent_enrollment (token_hash, branch_id, created_by, expires_at) select $2, id, $3, $4 from branch where code = $1`,
		branch, tokenHash, by, expires)
	if err == nil && tag.RowsAffected() == 0 {
		return ErrNoBranch
	}
	return err
}

// UseEnrollment spends a token and returns its branch and who asked for it. It returns ErrNoEnrollment.
func UseEnrollment(ctx context.Context, tx pgx.Tx, tokenHash []byte, now time.Time) (branch, by string, err error) {
	err = tx.QueryRow(ctx, `
		update agent_enrollment e set used_at = $2 from branch b
		where e.token_hash = $1 and e.used_at is null and e.expires_at > $2 and b.id = e.branch_id
		returning b.code, e.created_by`, tokenHash, now).Scan(&branch, &by)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", "", ErrNoEnrollment
	}
	return branch, by, err
}
