package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/seal"
)

// ForgetLost removes the values sealed with lost keys that would keep the service from working: the keys of order ids, because no order
// could be made on their days; the contacts of alerts, because no alert could be sent; the keys of one-time codes; and the texts of the keys of
// stays that are not over, which the service then replaces (StaysWithoutKeyText). Passes get other PINs, because each list and each new PIN
// needs all of them, and no agent counts as having them. Webhooks whose receivers could not recognize a delivery are disabled. A value
// that concerns only its own row, such as a refund account, remains unreadable.
func ForgetLost(ctx context.Context, tx pgx.Tx, keys *seal.Keyring, now time.Time) error {
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
	batch.Queue(`
		update access_key k set sealed = null from reservation r
		where r.id = k.reservation_id and `+stayEnd+` > $2 and `+lost("k.sealed"), known, now)
	if len(passes) > 0 {
		batch.Queue(`update pass_agent set epoch = epoch + 1, content = null, applied_epoch = 0, applied_version = 0, code_version = 0, code_ready = false`)
	}
	for _, id := range passes {
		batch.Queue(`update pass set pin = $2, changed_at = clock_timestamp() where id = $1`, id, keys.Seal(PassPINPurpose, []byte(newPIN())))
	}
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("forget what lost keys have sealed: %w", err)
	}
	return disableLostWebhooks(ctx, tx, lost("secret"), known, now)
}

func disableLostWebhooks(ctx context.Context, tx pgx.Tx, lost string, known [][]byte, now time.Time) error {
	rows, err := tx.Query(ctx, `select id from webhook where enabled and `+lost, known)
	if err != nil {
		return fmt.Errorf("find lost webhooks: %w", err)
	}
	webhooks, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return fmt.Errorf("find lost webhooks: %w", err)
	}
	for _, id := range webhooks {
		if err := DisableWebhook(ctx, tx, id, now); err != nil {
			return fmt.Errorf("disable webhook %d: %w", id, err)
		}
	}
	return nil
}
