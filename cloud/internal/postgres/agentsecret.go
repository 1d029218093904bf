package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/protocol"
)

// RotateAgent asks for new secrets of a credential and returns the branch. A rotation that was not answered yet continues.
// It returns ErrNoAgent for an unknown or revoked credential.
func RotateAgent(ctx context.Context, tx pgx.Tx, username, rotation string) (branch string, err error) {
	err = tx.QueryRow(ctx, `
		update agent_credential a set rotation = coalesce(a.rotation, $2) from branch b
		where a.username = $1 and a.revoked_at is null and b.id = a.branch_id returning b.code`, username, rotation).Scan(&branch)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", ErrNoAgent
	}
	return branch, err
}

// Rotation is a rotation that an agent has not answered yet.
type Rotation struct {
	Agent protocol.Agent
	ID    string
}

// OpenRotations returns the rotations of connected agents.
func OpenRotations(ctx context.Context, q Querier) ([]Rotation, error) {
	rows, err := q.Query(ctx, `
		select b.code, a.username, a.rotation from agent_credential a join branch b on b.id = a.branch_id
		where a.rotation is not null and a.online and a.revoked_at is null order by a.username`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (r Rotation, err error) {
		err = row.Scan(&r.Agent.Branch, &r.Agent.Username, &r.ID)
		return r, err
	})
}

// PutAgentSecrets stores the new secrets of a credential and ends its rotation. It reports false if that rotation is not open.
func PutAgentSecrets(ctx context.Context, tx pgx.Tx, agent protocol.Agent, rotation string, publicKey, secretHash []byte, now time.Time) (bool, error) {
	tag, err := tx.Exec(ctx, `
		update agent_credential a set public_key = $4, secret_hash = $5, rotation = null, rotated_at = $6 from branch b
		where a.username = $2 and a.rotation = $3 and a.revoked_at is null and b.id = a.branch_id and b.code = $1`,
		agent.Branch, agent.Username, rotation, publicKey, secretHash, now)
	return tag.RowsAffected() == 1, err
}
