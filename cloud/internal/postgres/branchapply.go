package postgres

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
)

// BranchState is the part of a branch that a branch file describes.
type BranchState struct {
	booking.Branch
	Demo bool
	PINs map[string][]byte // sealed, by device
}

// AgentState is the stored credential of an agent.
type AgentState struct {
	Username   string
	SecretHash []byte // SHA-256
	Demo       bool
	Revoked    bool
}

// LockBranches blocks other changes of branches until the transaction ends. Reads continue.
func LockBranches(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, `lock table branch in share row exclusive mode`)
	return err
}

// BranchStates returns the existing branches among these codes, by code.
func BranchStates(ctx context.Context, q Querier, codes []string) (map[string]BranchState, error) {
	rows, err := q.Query(ctx, `
		select b.code, b.demo, coalesce(array_agg(p.device) filter (where p.device is not null), '{}'),
		       coalesce(array_agg(p.pin) filter (where p.device is not null), '{}')
		from branch b left join door_pin p on p.branch_id = b.id
		where b.code = any($1) group by b.id`, codes)
	if err != nil {
		return nil, err
	}
	states := map[string]BranchState{}
	var (
		code    string
		demo    bool
		devices []string
		pins    [][]byte
	)
	_, err = pgx.ForEachRow(rows, []any{&code, &demo, &devices, &pins}, func() error {
		state := BranchState{Demo: demo, PINs: map[string][]byte{}}
		for i, device := range devices {
			state.PINs[device] = pins[i]
		}
		states[code] = state
		return nil
	})
	if err != nil {
		return nil, err
	}
	for code, state := range states {
		if state.Branch, err = readBranch(ctx, q, code); err != nil {
			return nil, err
		}
		states[code] = state
	}
	return states, nil
}

// AgentStates returns the existing credentials among these user names, by name.
func AgentStates(ctx context.Context, q Querier, usernames []string) (map[string]AgentState, error) {
	rows, err := q.Query(ctx, `
		select username, secret_hash, demo, revoked_at is not null from agent_credential where username = any($1)`, usernames)
	if err != nil {
		return nil, err
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[AgentState])
	states := make(map[string]AgentState, len(list))
	for _, a := range list {
		states[a.Username] = a
	}
	return states, err
}

// UpcomingReservations counts the live reservations of each room that have not ended. Rooms without any are not in the map.
func UpcomingReservations(ctx context.Context, q Querier, rooms []booking.RoomID, now time.Time) (map[booking.RoomID]int, error) {
	rows, err := q.Query(ctx, `
		select room_id, count(*) from reservation
		where room_id = any($1) and end_at > $2 and `+liveStates+` and (state <> 'HOLD' or expires_at > $2) and not `+withheld+`
		group by room_id`, rooms, now)
	if err != nil {
		return nil, err
	}
	counts := map[booking.RoomID]int{}
	var (
		room  booking.RoomID
		count int
	)
	_, err = pgx.ForEachRow(rows, []any{&room, &count}, func() error {
		counts[room] = count
		return nil
	})
	return counts, err
}

// BranchBatch collects changes of branches and sends them in one round trip. A change may refer, by code or login id, to a
// row that an earlier change of the batch adds.
type BranchBatch struct{ batch pgx.Batch }

// PutBranch adds or updates a branch without its rooms.
func (b *BranchBatch) PutBranch(br booking.Branch, demo bool) error {
	schedule, err := json.Marshal(br.Schedule)
	if err != nil {
		return err
	}
	policy, compensation, err := refundRules(br)
	if err != nil {
		return err
	}
	lat, lon := coordinates(br.Location)
	b.batch.Queue(`
		insert into branch (code, name_ko, name_en, address, phone, time_zone, horizon_days, front_doors, schedule, demo, refund_policy, compensation,
		                    latitude, longitude, keypads)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
		on conflict (code) do update set
			name_ko = excluded.name_ko, name_en = excluded.name_en, address = excluded.address, phone = excluded.phone,
			time_zone = excluded.time_zone, horizon_days = excluded.horizon_days, front_doors = excluded.front_doors,
			schedule = excluded.schedule, demo = excluded.demo,
			refund_policy = excluded.refund_policy, compensation = excluded.compensation,
			latitude = excluded.latitude, longitude = excluded.longitude, keypads = excluded.keypads`,
		br.Code, br.NameKo, br.NameEn, br.Address, br.Phone, br.Zone.String(), int(br.Horizon/(24*time.Hour)),
		br.FrontDoors, json.RawMessage(schedule), demo, policy, compensation, lat, lon, keypads(br))
	return nil
}

// keypads returns the keypads of a branch as a JSON object, never null.
func keypads(b booking.Branch) map[string]booking.Keypad {
	if b.Keypads == nil {
		return map[string]booking.Keypad{}
	}
	return b.Keypads
}

// PutRoom adds or updates a room.
func (b *BranchBatch) PutRoom(branch string, r booking.Room) {
	b.batch.Queue(`
		insert into room (branch_id, no, machine, grade, enabled, min10, min30, min60)
		select id, $2, $3, $4, $5, $6, $7, $8 from branch where code = $1
		on conflict (branch_id, no) do update set
			machine = excluded.machine, grade = excluded.grade, enabled = excluded.enabled,
			min10 = excluded.min10, min30 = excluded.min30, min60 = excluded.min60`,
		branch, r.No, r.Machine, r.Grade, r.Enabled, r.Price.Min10, r.Price.Min30, r.Price.Min60)
}

// DisableRoom disables a room.
func (b *BranchBatch) DisableRoom(room booking.RoomID) {
	b.batch.Queue(`update room set enabled = false where id = $1`, room)
}

// PutPIN sets the sealed PIN of a door.
func (b *BranchBatch) PutPIN(branch, device string, sealed []byte) {
	b.batch.Queue(`
		insert into door_pin (branch_id, device, pin) select id, $2, $3 from branch where code = $1
		on conflict (branch_id, device) do update set pin = excluded.pin, rotated_at = clock_timestamp(), revealed_at = null`,
		branch, device, sealed)
	b.batch.Queue(`
		update alert set ended_at = clock_timestamp()
		where kind = 'pin-exposed' and branch = $1 and subject = $2 and ended_at is null`, branch, device)
}

// PutDemoAgent sets the credential of a demo agent. It is active if its branch has no active credential.
func (b *BranchBatch) PutDemoAgent(branch, username string, secretHash []byte) {
	b.batch.Queue(`
		insert into agent_credential (username, branch_id, secret_hash, demo, active, activated_at)
		select $2, id, $3, true, first, case when first then clock_timestamp() end
		from branch b, lateral (select not exists (
			select from agent_credential a where a.branch_id = b.id and a.active and a.revoked_at is null) as first) none
		where code = $1
		on conflict (username) do update set branch_id = excluded.branch_id, secret_hash = excluded.secret_hash, public_key = null,
			active = agent_credential.active and agent_credential.branch_id = excluded.branch_id`,
		branch, username, secretHash)
}

// PutDemoAdministrator adds or updates a demo administrator with exactly these branches.
func (b *BranchBatch) PutDemoAdministrator(a booking.Administrator) {
	b.batch.Queue(`
		insert into administrator (login_id, password_hash, role, demo) values ($1, $2, $3, true)
		on conflict (login_id) do update set
			password_hash = excluded.password_hash, role = excluded.role, updated_at = clock_timestamp()`,
		a.LoginID, a.PasswordHash, a.Role)
	b.batch.Queue(`
		delete from administrator_branch using administrator a, branch b
		where administrator_id = a.id and branch_id = b.id and a.login_id = $1 and b.code <> all($2)`, a.LoginID, a.Branches)
	b.batch.Queue(`
		insert into administrator_branch (administrator_id, branch_id)
		select a.id, b.id from administrator a, branch b where a.login_id = $1 and b.code = any($2)
		on conflict do nothing`, a.LoginID, a.Branches)
}

// Run executes the batch.
func (b *BranchBatch) Run(ctx context.Context, tx pgx.Tx) error {
	return tx.SendBatch(ctx, &b.batch).Close()
}
