package postgres

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/seal"
	"github.com/yeolda/yeolda/protocol"
)

const (
	// ListDepth is how far ahead a list reaches, and how long an agent uses it without a newer one.
	ListDepth = 12 * time.Hour
	// saltTTL is how long the verifiers of a credential's lists have the same salt: a change of one pass costs one hash.
	saltTTL  = 24 * time.Hour
	saltSize = 16
)

// ListedPass is a pass in a list.
type ListedPass struct {
	ID        uuid.UUID
	Room      booking.RoomID
	Doors     []string // devices with an agent keypad
	PIN       []byte   // sealed for PassPINPurpose
	NotBefore time.Time
	NotAfter  time.Time
}

// List is what an agent must hold now.
type List struct {
	Epoch, Version uint64
	IssuedAt       time.Time
	Salt           []byte
	CodeEpoch      uint64
	CodeKey        []byte // sealed for CodeKeyPurpose; nil: the agent has announced no key or may accept no codes
	Passes         []ListedPass
	Applied        bool   // the agent has acknowledged this version
	KeyEpoch       uint64 // of the grant keys that the agent trusts
}

// agentLists is the state of the lists of a credential.
type agentLists struct {
	branch         booking.Branch
	active         bool
	keyEpoch       uint64
	sealKey        []byte
	salt           []byte
	saltedAt       *time.Time
	epoch, version uint64
	appliedEpoch   uint64
	appliedVersion uint64
	codeEpoch      uint64
	codeVersion    uint64
	codeKey        []byte
	codeReady      bool
	content        []byte
}

// PrepareList returns the list that an agent must hold, as a new version if it differs from the last one, and records which
// passes the agent may hold from now on; the caller sends it after the commit. sealKey is the key that the agent announces. The list of an agent
// that is not active is empty. It returns ErrNoAgent for an unknown or revoked credential, and for one that is not active
// and never had a list.
func PrepareList(ctx context.Context, tx pgx.Tx, keys *seal.Keyring, username string, sealKey []byte, now time.Time) (List, error) {
	a, err := lockLists(ctx, tx, username)
	if err != nil {
		return List{}, err
	}
	if !a.active && a.version == 0 {
		return List{}, ErrNoAgent
	}
	var passes []ListedPass
	if a.active {
		if err := IssueMissing(ctx, tx, keys, a.branch.ID, now.Add(ListDepth), now); err != nil {
			return List{}, err
		}
		if passes, err = passesToList(ctx, tx, a.branch, now); err != nil {
			return List{}, err
		}
	}
	newKey := a.renewSecrets(keys, sealKey, now)
	if content := a.digest(passes); !bytes.Equal(content, a.content) {
		a.content = content
		a.version++
		if err := insertListed(ctx, tx, username, a, passes); err != nil {
			return List{}, err
		}
	}
	if newKey {
		a.codeVersion, a.codeReady = a.version, false
	}
	_, err = tx.Exec(ctx, `
		update pass_agent set seal_key = $2, salt = $3, salted_at = $4, epoch = $5, version = $6, content = $7, issued_at = $8,
		       code_epoch = $9, code_key = $10, code_version = $11, code_ready = $12
		where username = $1`,
		username, a.sealKey, a.salt, a.saltedAt, a.epoch, a.version, a.content, now, a.codeEpoch, a.codeKey, a.codeVersion, a.codeReady && a.active)
	list := List{Epoch: a.epoch, Version: a.version, IssuedAt: now, Salt: a.salt, CodeEpoch: a.codeEpoch, Passes: passes,
		Applied: a.appliedEpoch == a.epoch && a.appliedVersion == a.version, KeyEpoch: a.keyEpoch}
	if a.active {
		list.CodeKey = a.codeKey
	}
	return list, err
}

func lockLists(ctx context.Context, tx pgx.Tx, username string) (a agentLists, err error) {
	var branch booking.BranchID
	_, err = tx.Exec(ctx, `
		insert into pass_agent (username) select username from agent_credential where username = $1 and revoked_at is null
		on conflict do nothing`, username)
	if err != nil {
		return a, err
	}
	err = tx.QueryRow(ctx, `
		select c.branch_id, c.active, c.key_epoch, p.seal_key, p.salt, p.salted_at, p.epoch, p.version, p.applied_epoch, p.applied_version,
		       p.code_epoch, p.code_version, p.code_key, p.code_ready, p.content
		from pass_agent p join agent_credential c on c.username = p.username
		where p.username = $1 and c.revoked_at is null for update of p`, username).
		Scan(&branch, &a.active, &a.keyEpoch, &a.sealKey, &a.salt, &a.saltedAt, &a.epoch, &a.version, &a.appliedEpoch, &a.appliedVersion,
			&a.codeEpoch, &a.codeVersion, &a.codeKey, &a.codeReady, &a.content)
	if errors.Is(err, pgx.ErrNoRows) {
		return a, ErrNoAgent
	}
	if err != nil {
		return a, err
	}
	a.branch, err = BranchOf(ctx, tx, branch)
	return a, err
}

// passesToList returns the passes of a branch that open a door with an agent keypad now or within ListDepth, soonest first.
func passesToList(ctx context.Context, q Querier, branch booking.Branch, now time.Time) ([]ListedPass, error) {
	rows, err := q.Query(ctx, `
		select p.id, p.room_id, m.no, p.pin, p.not_before, p.not_after
		from pass p join reservation r on r.id = p.reservation_id join room m on m.id = p.room_id
		where p.branch_id = $1 and p.ended_at is null and p.not_after > $2 and p.not_before < $3
		  and r.state = 'DONE' and not r.keys_blocked and `+owned+`
		order by p.not_before, p.id limit $4`, branch.ID, now, now.Add(ListDepth), protocol.MaxPasses)
	if err != nil {
		return nil, err
	}
	passes, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (p ListedPass, err error) {
		var room booking.Room
		err = row.Scan(&p.ID, &p.Room, &room.No, &p.PIN, &p.NotBefore, &p.NotAfter)
		p.Doors = branch.PassDoors(room)
		return p, err
	})
	return slices.DeleteFunc(passes, func(p ListedPass) bool { return len(p.Doors) == 0 }), err
}

// renewSecrets replaces the salt when it is old, and the code key when the agent has another key to receive it with. It
// reports whether the code key is new.
func (a *agentLists) renewSecrets(keys *seal.Keyring, sealKey []byte, now time.Time) (newKey bool) {
	if a.saltedAt == nil || now.Sub(*a.saltedAt) >= saltTTL {
		a.salt, a.saltedAt = randomBytes(saltSize), &now
	}
	if !a.active || len(sealKey) == 0 || bytes.Equal(sealKey, a.sealKey) && a.codeKey != nil {
		return false
	}
	a.sealKey, a.codeEpoch = sealKey, a.codeEpoch+1
	a.codeKey = keys.Seal(CodeKeyPurpose, randomBytes(protocol.CodeKeySize))
	return true
}

func randomBytes(n int) []byte {
	b := make([]byte, n)
	rand.Read(b) // never fails (crypto/rand)
	return b
}

// digest returns the SHA-256 of the content of a list without its time.
func (a *agentLists) digest(passes []ListedPass) []byte {
	h := sha256.New()
	number := func(n int64) { _ = binary.Write(h, binary.BigEndian, n) } // a hash never fails
	field := func(b []byte) { number(int64(len(b))); h.Write(b) }
	field(a.salt)
	number(int64(a.codeEpoch)) //nolint:gosec // small
	if !a.active {
		field([]byte("standby"))
	}
	for _, p := range passes {
		field(p.ID[:])
		field(p.PIN)
		number(p.NotBefore.UnixMilli())
		number(p.NotAfter.UnixMilli())
		for _, device := range p.Doors {
			field([]byte(device))
		}
	}
	return h.Sum(nil)
}

func insertListed(ctx context.Context, tx pgx.Tx, username string, a agentLists, passes []ListedPass) error {
	rows := make([][]any, len(passes))
	for i, p := range passes {
		rows[i] = []any{username, a.epoch, a.version, p.ID, p.Room, p.NotBefore, p.NotAfter}
	}
	_, err := tx.CopyFrom(ctx, pgx.Identifier{"pass_listed"},
		[]string{"username", "epoch", "version", "pass_id", "room_id", "not_before", "not_after"}, pgx.CopyFromRows(rows))
	return err
}

// maxReportedEpoch bounds the epoch of a list that an agent may claim to have: a stolen machine must not use up the numbers.
const maxReportedEpoch = 1_000_000_000_000

// AcknowledgeList records that an agent uses a list from now on, and ends the quarantines for which no agent may hold a pass
// any more. If the agent has a list that the database does not know, because it was restored from a backup, the next list
// begins a new epoch, and behind is true.
func AcknowledgeList(ctx context.Context, tx pgx.Tx, username string, epoch, version uint64, now time.Time) (released int64, behind bool, err error) {
	a, err := lockLists(ctx, tx, username)
	if err != nil || epoch > maxReportedEpoch {
		return 0, false, err
	}
	if epoch > a.epoch || epoch == a.epoch && version > a.version {
		_, err := tx.Exec(ctx, `
			update pass_agent set epoch = $2, version = 0, content = null, code_version = 0, code_ready = false where username = $1`, username, epoch+1)
		return 0, true, err
	}
	// A list of an earlier epoch may be one that the database does not know. It may have any pass of the earlier lists.
	if epoch < a.epoch || epoch == a.appliedEpoch && version < a.appliedVersion {
		return 0, false, nil
	}
	ready := a.active && a.codeKey != nil && epoch == a.epoch && version >= a.codeVersion
	batch := new(pgx.Batch)
	batch.Queue(`
		update pass_agent set applied_epoch = $2, applied_version = $3, applied_at = $4, code_ready = $5 where username = $1`,
		username, epoch, version, now, ready)
	batch.Queue(`delete from pass_listed where username = $1 and (epoch, version) < ($2, $3)`, username, epoch, version)
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return 0, false, err
	}
	released, err = releaseClean(ctx, tx, a.branch.ID)
	return released, false, err
}

// PassAgent is what an agent knows about passes.
type PassAgent struct {
	Username  string
	Version   uint64 // of the last list
	Applied   uint64 // of the last list that it acknowledged; 0: none
	AppliedAt time.Time
	Codes     bool // it has the key of the one-time codes
}

// PassAgents returns the agents of a branch that have had a list, by user name.
func PassAgents(ctx context.Context, q Querier, branch booking.BranchID) ([]PassAgent, error) {
	rows, err := q.Query(ctx, `
		select p.username, p.version, case when p.applied_epoch = p.epoch then p.applied_version else 0 end, p.applied_at, p.code_ready
		from pass_agent p join agent_credential a on a.username = p.username
		where a.branch_id = $1 and a.revoked_at is null order by p.username`, branch)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (a PassAgent, err error) {
		var applied *time.Time
		err = row.Scan(&a.Username, &a.Version, &a.Applied, &applied, &a.Codes)
		a.AppliedAt = value(applied)
		return a, err
	})
}

// PassChange is a change of a pass, or of the active agent of a branch.
type PassChange struct {
	Branch  string // code
	Subject string // pass id or user name
	At      time.Time
}

// PassChanges returns the changes within the last age, by the database's clock.
func PassChanges(ctx context.Context, q Querier, age time.Duration) ([]PassChange, error) {
	// An index is used for a time that is selected. clock_timestamp() alone would be compared with each row.
	rows, err := q.Query(ctx, `
		select b.code, p.id::text, p.changed_at from pass p join branch b on b.id = p.branch_id
		where p.changed_at > (select clock_timestamp() - $1::interval)
		union all
		select b.code, a.username, a.activated_at from agent_credential a join branch b on b.id = a.branch_id
		where a.activated_at > (select clock_timestamp() - $1::interval)`, age)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[PassChange])
}

// BranchesWithoutPass returns the branches that have a confirmed reservation with a key, not over, that begins before a time
// and has no pass.
func BranchesWithoutPass(ctx context.Context, q Querier, before, now time.Time) ([]booking.BranchID, error) {
	// offset 0 makes PostgreSQL look up the pieces of each branch; without it the planner may scan all reservations.
	rows, err := q.Query(ctx, `
		select b.id from branch b where exists (
			select from (`+piecesDuring("b.id", "$2", "$1")+` offset 0) piece (id) join reservation r on r.id = piece.id
			where r.state || '' = 'DONE' and `+stayEnd+` > $2 and `+owned+`
			  and not exists (select from pass p where p.reservation_id = r.id and p.ended_at is null))
		order by b.id`, before, now.Add(booking.UnlockLead))
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[booking.BranchID])
}

// PrunePasses deletes what is no longer needed: lists of passes that are over, codes that are no longer accepted, and passes
// and entries before a time. The age of an entry is the time since it was stored: its own time is the agent's, whose clock may be wrong, and
// the audit log vouches for the rows of the last year by the time of storing (auditlink.go). Unless the clock is steady, it deletes nothing.
func PrunePasses(ctx context.Context, q Querier, passes, entries, now time.Time) error {
	if steady, err := ClockSteady(ctx, q, now); !steady {
		return err
	}
	batch := new(pgx.Batch)
	batch.Queue(`delete from pass_listed where not_after < $1`, now)
	batch.Queue(`delete from pass_code where step < extract(epoch from $1::timestamptz) / 60`, now.Add(-revealLimit))
	batch.Queue(`delete from pass where not_after < $1`, passes)
	batch.Queue(`delete from pass_entry where stored_at < $1`, entries)
	return q.SendBatch(ctx, batch).Close()
}
