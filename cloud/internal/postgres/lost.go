package postgres

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/seal"
)

// ForgetLost removes the values sealed with lost keys that would keep the service from working: the keys of order ids, because no order
// could be made on their days; the contacts of alerts, because no alert could be sent; and the keys of one-time codes. Passes get other PINs,
// because each list and each new PIN needs all of them. A value that concerns only its own row, such as a refund account, remains unreadable.
func ForgetLost(ctx context.Context, tx pgx.Tx, keys *seal.Keyring) error {
	lost := func(column string) string { return keyID(column) + ` <> all($1)` }
	known := keys.KeyIDs()
	rows, err := tx.Query(ctx, `select id from pass where `+lost("pin"), known)
	if err != nil {
		return fmt.Errorf("find lost PINs: %w", err)
	}
	passes, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil {
		return fmt.Errorf("find lost PINs: %w", err)
	}
	batch := new(pgx.Batch)
	batch.Queue(`delete from order_key where `+lost("sealed"), known)
	batch.Queue(`delete from alert_contact where `+lost("contacts"), known)
	batch.Queue(`update pass_agent set code_key = null, code_ready = false where `+lost("code_key"), known)
	for _, id := range passes {
		batch.Queue(`update pass set pin = $2, changed_at = clock_timestamp() where id = $1`, id, keys.Seal(PassPINPurpose, []byte(newPIN())))
	}
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("forget what lost keys have sealed: %w", err)
	}
	return nil
}
