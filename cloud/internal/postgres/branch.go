package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
)

// ErrNoBranch is returned for an unknown branch code.
var ErrNoBranch = booking.ErrNoBranch

// branchCache holds branches by code. A cached branch is used only if its revision equals the database's, so every replica
// sees a change at its next request.
type branchCache struct{ byCode sync.Map } // string -> booking.Branch

func (c *branchCache) get(code string) (booking.Branch, bool) {
	cached, ok := c.byCode.Load(code)
	if !ok {
		return booking.Branch{}, false
	}
	return cached.(booking.Branch), true
}

// Branch returns the branch with its rooms, or ErrNoBranch.
func (db *DB) Branch(ctx context.Context, code string) (booking.Branch, error) {
	cached, ok := db.branches.get(code)
	if !ok {
		return db.loadBranch(ctx, code)
	}
	var revision int64
	err := db.Pool.QueryRow(ctx, `select revision from branch where code = $1`, code).Scan(&revision)
	if errors.Is(err, pgx.ErrNoRows) {
		return booking.Branch{}, ErrNoBranch
	}
	if err != nil {
		return booking.Branch{}, err
	}
	if revision != cached.Revision {
		return db.loadBranch(ctx, code)
	}
	return cached, nil
}

// BranchByID is Branch for a stored reference.
func (db *DB) BranchByID(ctx context.Context, id booking.BranchID) (booking.Branch, error) {
	var code string
	err := db.Pool.QueryRow(ctx, `select code from branch where id = $1`, id).Scan(&code)
	if errors.Is(err, pgx.ErrNoRows) {
		return booking.Branch{}, ErrNoBranch
	}
	if err != nil {
		return booking.Branch{}, err
	}
	return db.Branch(ctx, code)
}

// BranchOf reads a branch within a transaction, without a second connection.
func BranchOf(ctx context.Context, q Querier, id booking.BranchID) (booking.Branch, error) {
	return selectBranch(ctx, q, `b.id = $1`, id)
}

// BranchesByCode reads branches within a transaction, the oldest first. Codes of no branch are missing.
func BranchesByCode(ctx context.Context, q Querier, codes []string) ([]booking.Branch, error) {
	return selectBranches(ctx, q, `b.code = any($1)`, codes)
}

// BranchCodes returns the codes of all branches in the order in which they were added.
func (db *DB) BranchCodes(ctx context.Context) ([]string, error) {
	rows, err := db.Pool.Query(ctx, `select code from branch order by id`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// Branches returns all branches with their rooms, the oldest first.
func (db *DB) Branches(ctx context.Context) ([]booking.Branch, error) {
	rows, err := db.Pool.Query(ctx, `select code, revision from branch order by id`)
	if err != nil {
		return nil, err
	}
	versions, err := pgx.CollectRows(rows, pgx.RowToStructByPos[branchVersion])
	if err != nil {
		return nil, err
	}
	current, err := db.currentBranches(ctx, versions)
	if err != nil {
		return nil, err
	}
	all := make([]booking.Branch, 0, len(versions))
	for _, v := range versions {
		if b, ok := current[v.Code]; ok { // one that was deleted meanwhile is not
			all = append(all, b)
		}
	}
	return all, nil
}

type branchVersion struct {
	Code     string
	Revision int64
}

// branchChunk bounds the branches that one query reads with their rooms.
const branchChunk = 1000

// currentBranches returns branches by code, and reads those whose cached revision is another one. Those that no longer exist are missing.
func (db *DB) currentBranches(ctx context.Context, versions []branchVersion) (map[string]booking.Branch, error) {
	current := make(map[string]booking.Branch, len(versions))
	var changed []string
	for _, v := range versions {
		if cached, ok := db.branches.get(v.Code); ok && cached.Revision == v.Revision {
			current[v.Code] = cached
		} else {
			changed = append(changed, v.Code)
		}
	}
	for codes := range slices.Chunk(changed, branchChunk) {
		read, err := BranchesByCode(ctx, db.Pool, codes)
		if err != nil {
			return nil, err
		}
		for _, b := range read {
			db.branches.byCode.Store(b.Code, b)
			current[b.Code] = b
		}
	}
	return current, nil
}

func (db *DB) loadBranch(ctx context.Context, code string) (booking.Branch, error) {
	b, err := readBranch(ctx, db.Pool, code)
	if errors.Is(err, ErrNoBranch) {
		db.branches.byCode.Delete(code)
	}
	if err != nil {
		return booking.Branch{}, err
	}
	db.branches.byCode.Store(code, b)
	return b, nil
}

func readBranch(ctx context.Context, q Querier, code string) (booking.Branch, error) {
	return selectBranch(ctx, q, `b.code = $1`, code)
}

func selectBranch(ctx context.Context, q Querier, where string, key any) (booking.Branch, error) {
	list, err := selectBranches(ctx, q, where, key)
	if err == nil && len(list) == 0 {
		err = ErrNoBranch
	}
	if err != nil {
		return booking.Branch{}, err
	}
	return list[0], nil
}

// selectBranches returns branches, the oldest first.
func selectBranches(ctx context.Context, q Querier, where string, key any) ([]booking.Branch, error) {
	// One statement, so that rooms and revision are consistent.
	rows, err := q.Query(ctx, `
		select b.id, b.code, b.name_ko, b.name_en, b.address, b.phone, b.time_zone, b.horizon_days,
		       b.front_doors, b.keypads, b.schedule, b.revision, b.refund_policy, b.compensation, b.latitude, b.longitude, coalesce(b.legal_entity, ''),
		       coalesce((select json_agg(json_build_object(
		           'ID', r.id, 'No', r.no, 'Machine', r.machine, 'Grade', r.grade, 'Enabled', r.enabled, 'Lock', r.lock,
		           'TurnoverMinutes', nullif(r.turnover_minutes, 10),
		           'Price', json_build_object('Min10', r.min10, 'Min30', r.min30, 'Min60', r.min60),
		           'PriceRules', (select json_agg(json_build_object('From', p."from"::text, 'Days', p.days, 'Holidays', p.holidays,
		               'Hours', case when p.hours_from is not null then json_build_object('From', p.hours_from, 'To', p.hours_to) end,
		               'Price', json_build_object('Min10', p.min10, 'Min30', p.min30, 'Min60', p.min60)) order by p.position)
		               from room_price p where p.room_id = r.id)) order by r.no)
		         from room r where r.branch_id = b.id), '[]')
		from branch b where `+where+` order by b.id`, key)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scanBranch)
}

func scanBranch(row pgx.CollectableRow) (b booking.Branch, err error) {
	var (
		zone     string
		days     int
		schedule []byte
		rooms    []byte
		policy   []byte
		pay      []byte
		lat, lon *float64
	)
	err = row.Scan(&b.ID, &b.Code, &b.NameKo, &b.NameEn, &b.Address, &b.Phone, &zone, &days,
		&b.FrontDoors, &b.Keypads, &schedule, &b.Revision, &policy, &pay, &lat, &lon, &b.LegalEntity, &rooms)
	if err != nil {
		return b, err
	}
	if b.Zone, err = time.LoadLocation(zone); err != nil {
		return b, fmt.Errorf("branch %s: %w", b.Code, err)
	}
	if lat != nil && lon != nil {
		b.Location = &booking.Location{Latitude: *lat, Longitude: *lon}
	}
	b.Horizon = time.Duration(days) * 24 * time.Hour
	if len(b.Keypads) == 0 {
		b.Keypads = nil
	}
	if err := json.Unmarshal(schedule, &b.Schedule); err != nil {
		return b, fmt.Errorf("branch %s: schedule: %w", b.Code, err)
	}
	if err := json.Unmarshal(rooms, &b.Rooms); err != nil {
		return b, fmt.Errorf("branch %s: rooms: %w", b.Code, err)
	}
	if b.RefundPolicy, err = booking.ParseRefundPolicy(policy); err != nil {
		return b, fmt.Errorf("branch %s: refund policy: %w", b.Code, err)
	}
	if len(pay) > 0 {
		if err := json.Unmarshal(pay, &b.Compensation); err != nil {
			return b, fmt.Errorf("branch %s: compensation: %w", b.Code, err)
		}
	}
	return b, nil
}

// coordinates returns the stored form of a location.
func coordinates(l *booking.Location) (latitude, longitude *float64) {
	if l == nil {
		return nil, nil
	}
	return &l.Latitude, &l.Longitude
}

// refundRules returns the stored form of the refund policy and the compensation of a branch; null for the defaults.
func refundRules(b booking.Branch) (policy, compensation []byte, err error) {
	if len(b.RefundPolicy) > 0 {
		if policy, err = json.Marshal(b.RefundPolicy); err != nil {
			return nil, nil, err
		}
	}
	if b.Compensation.On() {
		compensation, err = json.Marshal(b.Compensation)
	}
	return policy, compensation, err
}

// SetRoomEnabled enables or disables a room. The caller holds the room's lock.
func SetRoomEnabled(ctx context.Context, tx pgx.Tx, room booking.RoomID, enabled bool) error {
	_, err := tx.Exec(ctx, `update room set enabled = $2 where id = $1 and enabled <> $2`, room, enabled)
	return err
}

// LockRooms takes the row locks of rooms in id order, so that two transactions that need the same rooms wait instead of
// deadlocking. A hold takes a weaker lock of its room; see [InsertHold].
func LockRooms(ctx context.Context, tx pgx.Tx, rooms ...booking.RoomID) error {
	_, err := tx.Exec(ctx, `select id from room where id = any($1) order by id for no key update`, rooms)
	return err
}

// SetRoomLock stores the state of a room's lock. The caller holds the room's row lock.
func SetRoomLock(ctx context.Context, tx pgx.Tx, room booking.RoomID, lock booking.Lock) error {
	_, err := tx.Exec(ctx, `update room set lock = $2 where id = $1 and lock <> $2`, room, lock)
	return err
}

// RoomLock returns the state of a room's lock. The caller holds the room's row lock.
func RoomLock(ctx context.Context, tx pgx.Tx, room booking.RoomID) (lock booking.Lock, err error) {
	err = tx.QueryRow(ctx, `select lock from room where id = $1`, room).Scan(&lock)
	return lock, err
}
