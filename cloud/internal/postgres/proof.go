package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// maxFindings bounds the violations of a rule that a proof lists; all are counted.
const maxFindings = 100

// ProofFinding is a row that violates a rule.
type ProofFinding struct {
	Subject string // reservation:<id>, door-request:<id>, pass:<id>, agent:<user name>
	Branch  string // code
	Detail  string
	Target  string // of the repair: a reservation's id or an agent's user name; empty: none is needed
}

// ProofResult is what a rule found.
type ProofResult struct {
	ID         string
	Text       string
	Repair     ProofRepair
	Checked    int // rows
	Violations int
	Findings   []ProofFinding // the first maxFindings
}

// Prove checks the rules on the rows that changed since a time (zero: on all), in one snapshot.
func Prove(ctx context.Context, pool *pgxpool.Pool, since time.Time) ([]ProofResult, error) {
	var results []ProofResult
	err := pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		// A rule reads whole tables. Sorting a million rows in memory takes a second instead of ten.
		_, err := tx.Exec(ctx, `set local statement_timeout = '5min'; set local work_mem = '64MB'`)
		if err != nil {
			return err
		}
		for _, rule := range proofRules {
			result, err := rule.check(ctx, tx, since)
			if err != nil {
				return fmt.Errorf("rule %s: %w", rule.id, err)
			}
			results = append(results, result)
		}
		return nil
	})
	return results, err
}

// check counts the rows and the violations, and lists the first ones.
func (r proofRule) check(ctx context.Context, tx pgx.Tx, since time.Time) (ProofResult, error) {
	result := ProofResult{ID: r.id, Text: r.text, Repair: r.repair, Findings: []ProofFinding{}}
	err := tx.QueryRow(ctx, `select count(*), count(detail) from (`+r.sql+`) rows`, null(since)).Scan(&result.Checked, &result.Violations)
	if err != nil || result.Violations == 0 {
		return result, err
	}
	rows, err := tx.Query(ctx, `
		select subject, coalesce((select code from branch where id = branch_id), ''), detail, coalesce(target, '')
		from (`+r.sql+`) rows where detail is not null order by subject limit $2`, null(since), maxFindings)
	if err != nil {
		return result, err
	}
	result.Findings, err = pgx.CollectRows(rows, pgx.RowToStructByPos[ProofFinding])
	return result, err
}

// StoredProof is a nightly proof.
type StoredProof struct {
	At         time.Time
	Violations int
	Document   string // signed JSON
}

// PutProof stores a nightly proof.
func PutProof(ctx context.Context, q Querier, p StoredProof) error {
	_, err := q.Exec(ctx, `insert into proof (at, violations, document) values ($1, $2, $3)`, p.At, p.Violations, p.Document)
	return err
}

// Proofs returns the newest nightly proofs, newest first.
func Proofs(ctx context.Context, q Querier, limit int) ([]StoredProof, error) {
	rows, err := q.Query(ctx, `select at, violations, document from proof order by at desc, id desc limit $1`, limit)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[StoredProof])
}

// ProofDue reports whether a nightly proof is due: something was recorded before the boundary, and no proof was made since.
func ProofDue(ctx context.Context, q Querier, boundary time.Time) (due bool, err error) {
	var first *time.Time
	err = q.QueryRow(ctx, `
		select (select at from audit order by id limit 1) where not exists (select from proof where at >= $1)`, boundary).Scan(&first)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	return first != nil && first.Before(boundary), err
}

// PurgeProofs deletes the proofs that were made before a time.
func PurgeProofs(ctx context.Context, q Querier, before time.Time) error {
	_, err := q.Exec(ctx, `delete from proof where at < $1`, before)
	return err
}
