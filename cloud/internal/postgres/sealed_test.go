package postgres_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/pgtest"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// hashes lists the other columns of type bytea, whose values are never decrypted.
var hashes = map[string]bool{
	"reservation.hold_token": true, "login_code.code_hash": true, "audit.prev_hash": true, "audit.hash": true,
	"door_request.key_hash": true, "agent_credential.secret_hash": true, "agent_credential.public_key": true, "agent_enrollment.token_hash": true,
	"pass_agent.seal_key": true, "pass_agent.salt": true, "pass_agent.content": true,
	"channel_listing.export_token": true, "login_code.browser_hash": true, "administrator_recovery.code_hash": true,
	"api_token.token_hash": true, "idempotent_request.request_hash": true,
	"refund_request.body_hash": true,
	"alert_notice.contact":     true,
	"access_key.hash":          true,
	"refund_link.token_hash":   true,
	"passkey.credential_id":    true, "passkey_ceremony.challenge_hash": true,
	"company.logo": true, "room_photo_file.data": true, "room_photo_file.webp": true, "room_photo_file.avif": true, // public
	"page_file.data":          true,                                                                   // public
	"arrival_photo_file.data": true, "arrival_photo_file.webp": true, "arrival_photo_file.avif": true, // public
	"cleaning_photo.data": true, // a room between stays, for 30 days
	"broker_peer.secret":  true, // sealed, and sealed again at each start of its replica: the row names the start by it
}

// Every bytea column must be listed here or in SealedColumns; otherwise a rotation of the encryption key would omit it.
func TestEverySealedColumnIsKnown(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	rows, err := db.Pool.Query(t.Context(), `
		select table_name || '.' || column_name from information_schema.columns
		where table_schema = 'public' and data_type = 'bytea' and table_name not like $1`, "river%")
	if err != nil {
		t.Fatal(err)
	}
	columns, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	sealed := map[string]bool{}
	for _, c := range postgres.SealedColumns {
		sealed[c.Table+"."+c.Column] = true
	}
	for _, column := range columns {
		if !sealed[column] && !hashes[column] {
			t.Errorf("%s: sealed or a hash?", column)
		}
		delete(sealed, column)
	}
	for column := range sealed {
		t.Errorf("%s does not exist", column)
	}
}
