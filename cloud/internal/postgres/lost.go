package postgres

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/seal"
)

// ForgetLost removes values whose keys are lost and without which the service would not work: the keys of order ids of the coming days, or no
// order could be made; contacts, or no alert would be sent; and the keys of one-time codes. Passes get other PINs, because lists and new
// PINs are made from all of them. A value that concerns only its own row, such as a refund account, remains unreadable.
func ForgetLost(ctx context.Context, tx pgx.Tx, keys *seal.Keyring) error {
	const lost = ` from 2 for 4) <> all($1)` // see SealedColumn.stale
	known := keys.KeyIDs()
	rows, err := tx.Query(ctx, `select id from pass where substring(pin`+lost, known)
	if err != nil {
		return fmt.Errorf("find lost PINs: %w", err)
	}
	passes, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil {
		return fmt.Errorf("find lost PINs: %w", err)
	}
	batch := new(pgx.Batch)
	batch.Queue(`delete from order_key where substring(sealed`+lost, known)
	batch.Queue(`delete from alert_contact where substring(contacts`+lost, known)
	batch.Queue(`update pass_agent set code_key = null, code_ready = false where substring(code_key`+lost, known)
	for _, id := range passes {
		batch.Queue(`update pass set pin = $2, changed_at = clock_timestamp() where id = $1`, id, keys.Seal(PassPINPurpose, []byte(newPIN())))
	}
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("forget what lost keys have sealed: %w", err)
	}
	return nil
}
