package postgres

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// The audit log is a hash chain: each entry contains a hash of itself and of the previous hash. To change or remove an
// entry, an attacker has to rewrite all later entries and every copy of the head that was stored elsewhere.
//
// 	hash(n) = SHA-256(hash(n-1) ‖ place ‖ each field with its length)
//
// Entries are appended concurrently and linked by one writer shortly after their commit: linking at the insert would
// serialize all transactions that write an entry.

// chainLock is the advisory lock of the replica that links.
const chainLock = 0x79656f6c_0003

// chainBatch is the number of entries that are linked in one transaction.
const chainBatch = 500

type chainEntry struct {
	id      int64
	place   int64
	at      time.Time
	actor   string
	branch  *int32
	action  string
	target  string
	detail  string // PostgreSQL's text of the jsonb value, which is canonical
	address string
	request string
	prev    []byte
	hash    []byte
}

const selectChain = `select id, coalesce(place, 0), at, actor, branch_id, action, target, detail::text, address, request_id, prev_hash, hash from audit `

func scanChain(row pgx.CollectableRow) (e chainEntry, err error) {
	err = row.Scan(&e.id, &e.place, &e.at, &e.actor, &e.branch, &e.action, &e.target, &e.detail, &e.address, &e.request, &e.prev, &e.hash)
	return e, err
}

// link returns the hash of an entry that follows a hash.
func (e chainEntry) link(prev []byte) []byte {
	sum := sha256.New()
	number := func(n int64) { _ = binary.Write(sum, binary.BigEndian, n) } // writing to a hash cannot fail
	text := func(s string) { number(int64(len(s))); sum.Write([]byte(s)) }
	sum.Write(prev)
	number(e.place)
	number(e.id)
	number(e.at.UnixMicro())
	branch := int64(-1)
	if e.branch != nil {
		branch = int64(*e.branch)
	}
	number(branch)
	for _, field := range []string{e.actor, e.action, e.target, e.detail, e.address, e.request} {
		text(field)
	}
	return sum.Sum(nil)
}

// ChainAudit links the entries that have no place yet and returns their number. While another replica links, it does
// nothing.
func (db *DB) ChainAudit(ctx context.Context) (linked int, err error) {
	for {
		n, err := db.chainSome(ctx)
		linked += n
		if err != nil || n < chainBatch {
			return linked, err
		}
	}
}

func (db *DB) chainSome(ctx context.Context) (linked int, err error) {
	err = db.InTx(ctx, func(ctx context.Context, tx pgx.Tx, _ time.Time) error {
		linked = 0
		var mine bool
		if err := tx.QueryRow(ctx, `select pg_try_advisory_xact_lock($1)`, int64(chainLock)).Scan(&mine); err != nil || !mine {
			return err
		}
		rows, err := tx.Query(ctx, selectChain+`where place is null order by id limit $1`, chainBatch)
		if err != nil {
			return err
		}
		entries, err := pgx.CollectRows(rows, scanChain)
		if err != nil || len(entries) == 0 {
			return err
		}
		head, err := chainHead(ctx, tx)
		if err != nil {
			return err
		}
		batch := new(pgx.Batch)
		for _, e := range entries {
			e.place = head.Place + 1
			hash := e.link(head.Hash)
			batch.Queue(`update audit set place = $2, prev_hash = $3, hash = $4 where id = $1`, e.id, e.place, head.Hash, hash)
			head = AuditHead{e.place, hash}
		}
		linked = len(entries)
		return tx.SendBatch(ctx, batch).Close()
	})
	return linked, err
}

// AuditHead is the end of the chain: place and hash of the last entry. A copy stored elsewhere proves later that no entry
// was removed from the end.
type AuditHead struct {
	Place int64
	Hash  []byte
}

func chainHead(ctx context.Context, q Querier) (h AuditHead, err error) {
	err = q.QueryRow(ctx, `select place, hash from audit where place is not null order by place desc limit 1`).Scan(&h.Place, &h.Hash)
	if errors.Is(err, pgx.ErrNoRows) {
		return AuditHead{Hash: []byte{}}, nil
	}
	return h, err
}

// AuditBroken describes the place at which the chain is broken.
type AuditBroken struct {
	Place int64
	ID    int64 // 0: the entry is missing
	What  string
}

func (e *AuditBroken) Error() string {
	return fmt.Sprintf("audit: at place %d (entry %d): %s", e.Place, e.ID, e.What)
}

// VerifyAudit checks the chain from its beginning and returns its head and the number of entries that are not linked yet.
// It returns *AuditBroken at the first mismatch. A known head (zero: none) must be part of the chain.
func VerifyAudit(ctx context.Context, q Querier, known AuditHead) (head AuditHead, unlinked int, err error) {
	head.Hash = []byte{}
	for {
		rows, err := q.Query(ctx, selectChain+`where place > $1 order by place limit $2`, head.Place, 2000)
		if err != nil {
			return head, 0, err
		}
		entries, err := pgx.CollectRows(rows, scanChain)
		if err != nil {
			return head, 0, err
		}
		for _, e := range entries {
			switch {
			case e.place != head.Place+1:
				return head, 0, &AuditBroken{Place: head.Place + 1, What: "an entry is missing"}
			case !bytes.Equal(e.prev, head.Hash):
				return head, 0, &AuditBroken{e.place, e.id, "it does not follow the entry before it"}
			case !bytes.Equal(e.hash, e.link(head.Hash)):
				return head, 0, &AuditBroken{e.place, e.id, "it was changed"}
			case e.place == known.Place && !bytes.Equal(e.hash, known.Hash):
				return head, 0, &AuditBroken{e.place, e.id, "it is not the entry whose hash was written down"}
			}
			head = AuditHead{e.place, e.hash}
		}
		if len(entries) == 0 {
			break
		}
	}
	if known.Place > head.Place {
		return head, 0, &AuditBroken{Place: known.Place, What: "the end of the log was cut off"}
	}
	err = q.QueryRow(ctx, `select count(*) from audit where place is null`).Scan(&unlinked)
	return head, unlinked, err
}

// LastAuditHead returns the end of the chain; place 0: it is empty.
func LastAuditHead(ctx context.Context, q Querier) (AuditHead, error) { return chainHead(ctx, q) }
