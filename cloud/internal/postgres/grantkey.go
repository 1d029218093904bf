package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/protocol"
)

// GrantKey is a key that signs grants, or did.
type GrantKey struct {
	Public    string // base64
	Seed      []byte // sealed; nil: the key is one of the settings, or it is retired
	CreatedAt time.Time
	RetiredAt time.Time // zero: in use
}

// GrantKeys returns all keys and all key lists, the oldest first. Both are empty before the first rotation.
func GrantKeys(ctx context.Context, q Querier) (keys []GrantKey, lists []protocol.KeyList, err error) {
	batch := new(pgx.Batch)
	batch.Queue(`select public, seed, created_at, retired_at from grant_key order by created_at, public`).Query(func(rows pgx.Rows) (err error) {
		keys, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (k GrantKey, err error) {
			var retired *time.Time
			err = row.Scan(&k.Public, &k.Seed, &k.CreatedAt, &retired)
			k.RetiredAt = value(retired)
			return k, err
		})
		return err
	})
	batch.Queue(`select epoch, keys, signature from grant_key_list order by epoch`).Query(func(rows pgx.Rows) (err error) {
		lists, err = pgx.CollectRows(rows, pgx.RowToStructByPos[protocol.KeyList])
		return err
	})
	return keys, lists, q.SendBatch(ctx, batch).Close()
}

// LockGrantKeys lets one rotation at a time proceed.
func LockGrantKeys(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, `lock table grant_key_list in share row exclusive mode`)
	return err
}

// InsertKeyList adds a list and the keys of it that have no row yet. seed is the sealed seed of the first key, if it is new.
func InsertKeyList(ctx context.Context, tx pgx.Tx, list protocol.KeyList, seed []byte, now time.Time) error {
	batch := new(pgx.Batch)
	batch.Queue(`insert into grant_key_list (epoch, keys, signature, created_at) values ($1, $2, $3, $4)`, list.Epoch, list.Keys, list.Signature, now)
	batch.Queue(`
		insert into grant_key (public, seed, created_at)
		select key, case when place = 1 then $2::bytea end, $3 from unnest($1::text[]) with ordinality k (key, place)
		on conflict do nothing`, list.Keys, seed, now)
	return tx.SendBatch(ctx, batch).Close()
}

// RetireGrantKeys retires every key that is not in the list, and removes its seed.
func RetireGrantKeys(ctx context.Context, tx pgx.Tx, keep []string, now time.Time) error {
	_, err := tx.Exec(ctx, `update grant_key set retired_at = $2, seed = null where retired_at is null and public <> all ($1)`, keep, now)
	return err
}

// AgentBehind is an agent that does not use the last key list yet.
type AgentBehind struct {
	Agent  protocol.Agent
	Epoch  uint64
	Online bool
	SeenAt time.Time
	Next   protocol.KeyList // the list to apply next
}

// AgentsBehind returns the agents whose keys are older than the last list, by branch and user name. With waited, it returns
// those for which the end of a rotation waits: active credentials whose agent has connected before.
func AgentsBehind(ctx context.Context, q Querier, waited bool) ([]AgentBehind, error) {
	rows, err := q.Query(ctx, `
		select b.code, a.username, a.key_epoch, a.online, coalesce(a.seen_at, a.created_at), l.epoch, l.keys, l.signature
		from agent_credential a join branch b on b.id = a.branch_id join grant_key_list l on l.epoch = a.key_epoch + 1
		where a.revoked_at is null and (not $1 or a.active and a.seen_at is not null)
		order by b.code, a.username`, waited)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (b AgentBehind, err error) {
		err = row.Scan(&b.Agent.Branch, &b.Agent.Username, &b.Epoch, &b.Online, &b.SeenAt, &b.Next.Epoch, &b.Next.Keys, &b.Next.Signature)
		return b, err
	})
}

// nextKeys decodes the list that an agent has to apply next; null: none.
func nextKeys(text []byte) (*protocol.KeyList, error) {
	if text == nil {
		return nil, nil
	}
	list := new(protocol.KeyList)
	return list, json.Unmarshal(text, list)
}

// ErrNoKeyList is returned for an epoch that does not exist.
var ErrNoKeyList = errors.New("postgres: no such key list")

// KeysOfEpoch returns the public keys of a list, or ErrNoKeyList.
func KeysOfEpoch(ctx context.Context, q Querier, epoch uint64) (keys []string, err error) {
	err = q.QueryRow(ctx, `select keys from grant_key_list where epoch = $1`, epoch).Scan(&keys)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, ErrNoKeyList
	}
	return keys, err
}
