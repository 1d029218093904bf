package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
)

const (
	deleteRoomPrices = `delete from room_price p using room r, branch b where p.room_id = r.id and b.id = r.branch_id and b.code = $1 and r.no = $2`
	insertRoomPrice  = `
		insert into room_price (room_id, position, "from", days, holidays, hours_from, hours_to, min10, min30, min60)
		select r.id, $3, $4::date, $5, $6, $7, $8, $9, $10, $11 from room r join branch b on b.id = r.branch_id where b.code = $1 and r.no = $2`
	// touchRoom increases the revision of the branch, so that cached copies are read again.
	touchRoom = `update room r set enabled = r.enabled from branch b where b.id = r.branch_id and b.code = $1 and r.no = $2`
)

// SetRoomPrices replaces the price rules of a room.
func SetRoomPrices(ctx context.Context, tx pgx.Tx, branch string, no int, rules []booking.PriceRule) error {
	var b BranchBatch
	b.PutRoomPrices(branch, no, rules)
	return tx.SendBatch(ctx, &b.batch).Close()
}

// PutRoomPrices replaces the price rules of a room.
func (b *BranchBatch) PutRoomPrices(branch string, no int, rules []booking.PriceRule) {
	b.batch.Queue(deleteRoomPrices, branch, no)
	for i, p := range rules {
		var from, to *int
		if p.Hours != nil {
			from, to = &p.Hours.From, &p.Hours.To
		}
		days := p.Days
		if days == nil {
			days = []time.Weekday{}
		}
		b.batch.Queue(insertRoomPrice, branch, no, i, p.From.String(), days, p.Holidays, from, to, p.Price.Min10, p.Price.Min30, p.Price.Min60)
	}
	b.batch.Queue(touchRoom, branch, no)
}
