package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Sensor readings and door events are partitioned by time (migration 00212). Every row has a partition: a row whose time has none
// is stored in the partition "rest".

// partitionLead is the time for which partitions are created ahead.
const partitionLead = 28 * 24 * time.Hour

// partitionNotice is the time that partitions must at least extend ahead, and the time after which expired ones must be dropped.
const partitionNotice = 14 * 24 * time.Hour

// Partition is a partition of a table.
type Partition struct {
	Table, Name  string
	Rest         bool      // of all times that no other partition contains
	Starts, Ends time.Time // Starts <= t < Ends; zero: no bound
}

// Partitions returns the partitions of all tables, by table and time, without those that another replica drops at this moment: they have
// no bounds any more.
func Partitions(ctx context.Context, q Querier) ([]Partition, error) {
	rows, err := q.Query(ctx, `select parent, name, rest, coalesce(nullif(starts, '-infinity'), '0001-01-01 00:00+00'), coalesce(ends, '0001-01-01 00:00+00')
		from partition_list where rest is not null order by parent, rest, starts`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Partition])
}

// partitionRule is a partitioned table, the span of its partitions and how long rows are kept.
type partitionRule struct {
	table      string
	span, kept time.Duration
}

func partitionRules(ctx context.Context, q Querier) (rules []partitionRule, err error) {
	rows, err := q.Query(ctx, `select parent, span, kept from partition_rules()`)
	if err != nil {
		return nil, err
	}
	var r partitionRule
	_, err = pgx.ForEachRow(rows, []any{&r.table, &r.span, &r.kept}, func() error {
		rules = append(rules, r)
		return nil
	})
	return rules, err
}

// KeepPartitions creates the partitions of the next weeks, drops those whose rows have all expired, and deletes expired rows of the
// partitions that are not dropped soon: the one that contains the rows from before the table was partitioned, and the rest. Unless the
// clock is steady, it drops and deletes nothing. Replicas may call it at the same time. It fails for a table that is locked, for
// instance during a backup; a later call continues.
func (db *DB) KeepPartitions(ctx context.Context, now time.Time) (added, dropped []string, err error) {
	rules, err := partitionRules(ctx, db.Pool)
	if err != nil {
		return nil, nil, err
	}
	steady, err := ClockSteady(ctx, db.Pool, now)
	failed := []error{err}
	for _, rule := range rules {
		more, err := db.addPartitions(ctx, rule, now)
		added, failed = append(added, more...), append(failed, err)
		if !steady {
			continue
		}
		gone, err := db.dropPartitions(ctx, rule, now)
		dropped, failed = append(dropped, gone...), append(failed, err, db.deleteExpired(ctx, rule, now))
	}
	return added, dropped, errors.Join(failed...)
}

func (db *DB) addPartitions(ctx context.Context, rule partitionRule, now time.Time) (added []string, err error) {
	for at := now; at.Before(now.Add(partitionLead + rule.span)); at = at.Add(rule.span) {
		var outcome string
		if err := db.Pool.QueryRow(ctx, `select partition_add($1, $2)`, rule.table, at).Scan(&outcome); err != nil {
			return added, fmt.Errorf("create the partition of %s for %s: %w", rule.table, at.Format(time.DateOnly), err)
		}
		if outcome == "added" {
			added = append(added, rule.table+" "+at.Format(time.DateOnly))
		}
	}
	return added, nil
}

func (db *DB) dropPartitions(ctx context.Context, rule partitionRule, now time.Time) (dropped []string, err error) {
	for {
		var name *string
		if err := db.Pool.QueryRow(ctx, `select partition_drop($1, $2)`, rule.table, now.Add(-rule.kept)).Scan(&name); err != nil {
			return dropped, fmt.Errorf("drop an expired partition of %s: %w", rule.table, err)
		}
		if name == nil {
			return dropped, nil
		}
		dropped = append(dropped, *name)
	}
}

// deleteExpired deletes expired rows of the partitions without a beginning.
func (db *DB) deleteExpired(ctx context.Context, rule partitionRule, now time.Time) error {
	list, err := Partitions(ctx, db.Pool)
	for _, p := range list {
		if p.Table != rule.table || !p.Starts.IsZero() {
			continue
		}
		if _, err := deleteBefore(ctx, db.Pool, p.Name, "at", now.Add(-rule.kept)); err != nil {
			return fmt.Errorf("delete expired rows of %s: %w", p.Name, err)
		}
	}
	return err
}

// PartitionProblem is a partitioned table that is not kept as it should be.
type PartitionProblem struct {
	Table string
	Text  string
}

// DiagnosePartitions finds tables without partitions for the next two weeks, and tables with partitions that expired two weeks ago.
func DiagnosePartitions(ctx context.Context, q Querier, now time.Time) (problems []PartitionProblem, err error) {
	rules, err := partitionRules(ctx, q)
	if err != nil {
		return nil, err
	}
	list, err := Partitions(ctx, q)
	if err != nil {
		return nil, err
	}
	for _, rule := range rules {
		covered, overdue := now, 0
		for _, p := range list { // by time
			if p.Table != rule.table || p.Rest {
				continue
			}
			if !p.Starts.After(covered) && p.Ends.After(covered) {
				covered = p.Ends
			}
			if p.Ends.Before(now.Add(-rule.kept - partitionNotice)) {
				overdue++
			}
		}
		if covered.Before(now.Add(partitionNotice)) {
			problems = append(problems, PartitionProblem{rule.table, "has no partition from " + covered.UTC().Format(time.DateOnly)})
		}
		if overdue > 0 {
			problems = append(problems, PartitionProblem{rule.table, fmt.Sprintf("has %d partitions whose rows have all expired", overdue)})
		}
	}
	return problems, nil
}

// pruneBatch is the number of rows that one statement deletes: a backlog of days is deleted in short statements.
const pruneBatch = 20_000

// DeleteDoorRequests deletes the door requests from before a time. The audit log keeps what has to be accounted for. Replicas that call
// it at the same time share the rows.
func DeleteDoorRequests(ctx context.Context, q Querier, before time.Time) (deleted int64, err error) {
	return deleteBefore(ctx, q, "door_request", "created_at", before)
}

// DeleteCommands deletes the commands to air conditioners from before a time. Replicas that call it at the same time share the rows.
func DeleteCommands(ctx context.Context, q Querier, before time.Time) (deleted int64, err error) {
	return deleteBefore(ctx, q, "airconditioner_command", "at", before)
}

// deleteBefore deletes the rows of a table or partition from before a time. Rows are deleted by their place, so the table must not be a
// partitioned one: rows of several partitions have the same place.
func deleteBefore(ctx context.Context, q Querier, table, column string, before time.Time) (deleted int64, err error) {
	name := pgx.Identifier{table}.Sanitize()
	sql := `delete from ` + name + ` where ctid = any(array(
		select ctid from ` + name + ` where ` + column + ` < $1 limit $2 for update skip locked))`
	for batch := int64(pruneBatch); batch == pruneBatch; deleted += batch {
		tag, err := q.Exec(ctx, sql, before, pruneBatch)
		if err != nil {
			return deleted, err
		}
		batch = tag.RowsAffected()
	}
	return deleted, nil
}
