package crowdsim

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/moneytest"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// check compares the database at rest with the provider, the guests' messages, the passes and the partners.
func (w *world) check(t *testing.T) {
	db := w.replicas[0].DB
	if err := moneytest.Audit(w.ctx, db.Pool, w.box, 0); err != nil {
		t.Errorf("seed %d: %v", w.seed, err)
	}
	for _, call := range w.box.Ledger().Foreign {
		t.Errorf("a payment is asked for with the key of another merchant: %+v", call)
	}
	for _, failed := range w.front.failed {
		t.Errorf("seed %d: %s", w.seed, failed)
	}
	results, err := postgres.Prove(w.ctx, db.Pool, time.Time{})
	if err != nil {
		t.Error(err)
	}
	for _, r := range results {
		for _, f := range r.Findings {
			t.Errorf("proof: %s: %s: %s", r.ID, f.Subject, f.Detail)
		}
	}
	for _, wrong := range []struct{ what, sql string }{
		{"a stay without its pass", `
			select format('%s %s to %s', r.id, r.start_at, coalesce(r.stay_end, r.end_at)) from reservation r
			where r.state = 'DONE' and r.extends is null and not r.keys_blocked and coalesce(r.stay_end, r.end_at) - interval '2 minutes' > $1
			  and exists (select from access_key k where k.reservation_id = r.id and k.kind = 'owner' and k.revoked_at is null)
			  and not exists (select from pass p where p.reservation_id = r.id and p.ended_at is null and p.room_id = r.room_id
			                  and p.not_before = r.start_at - interval '2 minutes' and p.not_after = coalesce(r.stay_end, r.end_at) - interval '2 minutes')`},
		{"a stay whose price is not the one shown", `
			select format('%s %s, held for %s', id, amount, held_price) from reservation
			where order_id is not null and held_price <> amount and $1::timestamptz is not null`},
		{"money that was returned twice, and that is not listed", `
			select format('%s %s', r.id, sum(e.won)) from money_entry e join reservation r on r.id = e.reservation_id where $1::timestamptz is not null
			group by r.id having sum(e.won) < 0 and not bool_or(e.kind = 'reversed') and not exists (
				select from reconciliation_difference d where d.order_id = r.order_id and d.kind = 'amount')`},
		{"a guest who was erased, and is named", `
			select format('%s %s %s', r.id, r.name, p.account_holder) from reservation r left join payment p on p.reservation_id = r.id
			where r.anonymised_at is not null and coalesce(r.name, r.mobile, p.account_holder, p.receipt_url) is not null and $1::timestamptz is not null`},
		{"an extension without its stay", `
			select format('%s of %s %s', r.id, root.id, root.state) from reservation r join reservation root on root.id = r.extends
			where r.state = 'DONE' and (root.state <> 'DONE' or root.room_id <> r.room_id) and $1::timestamptz is not null`},
		{"a partner's booking without its stay", `
			select format('%s %s %s', b.external_id, b.status, r.state) from partner_booking b left join reservation r on r.id = b.reservation_id
			where b.status = 'CONFIRMED' and b.end_at > $1 and (r.id is null or r.state not in ('DONE', 'CANCELED'))`}, // staff may cancel it
		{"a stay of no partner's booking", `
			select format('%s %s', r.id, r.start_at) from reservation r where r.source = 'PARTNER' and r.state in ('DONE', 'CONFLICT') and r.end_at > $1 and r.extends is null
			  and not exists (select from partner_booking b where b.reservation_id = r.id and b.status <> 'CANCELLED')`},
		{"a partner's stay at another time", `
			select format('%s %s %s to %s, the booking is %s to %s', b.external_id, r.id, r.start_at, coalesce(r.stay_end, r.end_at), b.start_at, b.end_at)
			from partner_booking b join reservation r on r.id = b.reservation_id join channel_listing l on l.id = b.listing_id
			where b.status = 'CONFIRMED' and r.state = 'DONE' and (r.start_at, coalesce(r.stay_end, r.end_at), r.room_id) is distinct from (b.start_at, b.end_at, l.room_id)
			  and not exists (select from reservation_move v where v.reservation_id = r.id and v.moved_by not like 'partner:%') and $1::timestamptz is not null`},
	} {
		for _, found := range w.rows(t, wrong.sql, w.clock.Now()) {
			t.Errorf("seed %d: %s: %s", w.seed, wrong.what, found)
		}
	}
	w.checkBooks(t)
	w.checkHistories(t)
	w.checkMessages(t)
	w.checkPartner(t)
	w.checkReceipts(t)
}

// checkBooks checks that our books show what the provider holds of each order.
func (w *world) checkBooks(t *testing.T) {
	held := map[string]int{}
	for _, p := range w.box.Payments("") {
		if p.ApprovedAt != nil {
			held[p.OrderID] += p.BalanceAmount
		}
	}
	for _, text := range w.rows(t, `select order_id || ' ' || sum(won) from money_entry where kind not in ('outside', 'rejected') group by order_id`) {
		order, won, _ := strings.Cut(text, " ")
		if fmt.Sprint(held[order]) != won {
			t.Errorf("seed %d: order %s: the provider holds %d won, the books say %s", w.seed, order, held[order], won)
		}
		delete(held, order)
	}
	for order, won := range held {
		if won > 0 {
			t.Errorf("seed %d: order %s: the provider holds %d won and the books nothing", w.seed, order, won)
		}
	}
}

// checkHistories checks that the guests' lists show as refunded what our books have of each payment.
func (w *world) checkHistories(t *testing.T) {
	kept := map[string]int{} // less than nothing: the bank has taken a deposit back, or the dashboard has returned it, that an administrator had returned by hand
	for _, text := range w.rows(t, `select reservation_id || ' ' || sum(won) from money_entry group by reservation_id`) {
		id, won, _ := strings.Cut(text, " ")
		kept[id], _ = strconv.Atoi(won)
	}
	for n := range guests {
		for _, mobile := range mobiles(n) {
			list, err := w.replicas[0].Replica(t).History(w.ctx, booking.LoginMobile, mobile)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range list {
				id := fmt.Sprint(r.ID)
				if won, booked := kept[id]; booked && !r.PaidAt.IsZero() && max(0, r.Amount-r.Refunded) != max(0, won) {
					t.Errorf("seed %d: reservation %s: the guest's list shows %d of %d won as refunded, the books keep %d", w.seed, id, r.Refunded, r.Amount, won)
				}
			}
		}
	}
}

// checkMessages checks that no key was sent to a guest to whom its reservation does not belong, and that the key that opens doors now went
// to the present phone number alone.
func (w *world) checkMessages(t *testing.T) {
	type key struct {
		mobile string
		live   bool
	}
	keys := map[string]key{}
	for _, text := range w.rows(t, `
		select format('%s %s %s', encode(k.hash, 'hex'), coalesce(nullif(r.mobile_key, ''), '-'), k.revoked_at is null and r.state = 'DONE')
		from access_key k join reservation r on r.id = k.reservation_id where k.kind = 'owner'`) {
		part := strings.Fields(text)
		keys[part[0]] = key{part[1], part[2] == "t"}
	}
	for _, m := range w.box.Messages("") {
		sent := m.Variables["doorlockKey"]
		if sent == "" {
			continue
		}
		hash := sha256.Sum256([]byte(sent))
		k, known := keys[hex.EncodeToString(hash[:])]
		switch to := strings.ReplaceAll(m.To, "-", ""); {
		case !known && !w.restored():
			t.Errorf("seed %d: %s got a key that is not known", w.seed, m.To)
		case k.mobile == "-": // erased
		case known && owner(k.mobile) != owner(to):
			t.Errorf("seed %d: %s got the key of %s", w.seed, m.To, k.mobile)
		case known && k.live && k.mobile != to:
			t.Errorf("seed %d: %s got a key that is valid, whose guest has the number %s", w.seed, m.To, k.mobile)
		}
	}
}

// checkLinks has each phone number follow all links that it has received. Those of keys and refunds lead nowhere if the reservation has
// another number now. No verb runs.
func (w *world) checkLinks(t *testing.T) {
	mobiles := map[string]string{} // by the hash of a key, or of a link's token
	for _, text := range w.rows(t, `
		select encode(k.token_hash, 'hex') || ' ' || coalesce(r.mobile_key, '-') from refund_link k join refund f on f.id = k.refund_id
		join reservation r on r.id = f.reservation_id
		union all select encode(k.hash, 'hex') || ' ' || coalesce(r.mobile_key, '-') from access_key k join reservation r on r.id = k.reservation_id`) {
		hash, mobile, _ := strings.Cut(text, " ")
		mobiles[hash] = mobile
	}
	s, b := &step{world: w, t: t, rng: rand.New(rand.NewPCG(w.seed, 0)), name: "end old link"}, w.browser()
	for _, m := range w.box.Messages("") {
		secret := path.Base(m.Variables["link"])
		hash := sha256.Sum256([]byte(secret))
		mobile, known := mobiles[hex.EncodeToString(hash[:])]
		if !known || mobile == "-" || mobile == strings.ReplaceAll(m.To, "-", "") {
			continue
		}
		link := "/v2/keys/" + secret
		if m.Template == "refund-account" {
			link = "/v2/refund-accounts/" + secret
		}
		if reply := s.call(b, http.MethodGet, link, nil); reply.HTTP == http.StatusOK {
			t.Errorf("seed %d: %s got %s, which is valid, and the guest has the number %s", w.seed, m.To, link, mobile)
		}
	}
}

// checkReceipts checks that the valid cash receipts of the provider are those of the cash that the shop keeps. A lost act may have issued
// others.
func (w *world) checkReceipts(t *testing.T) {
	if w.restored() {
		return
	}
	standing, held := map[string]int{}, map[string]int{}
	for _, r := range w.box.CashReceipts() {
		won := r.Amount
		if r.TransactionType == "CANCEL" {
			won = -won
		}
		standing[r.OrderID[:strings.LastIndex(r.OrderID, "-")]] += won
	}
	for _, p := range w.box.Payments("") {
		if p.ApprovedAt != nil && p.VirtualAccount != nil {
			held[p.OrderID] += p.BalanceAmount
		}
	}
	for _, text := range w.rows(t, `
		select r.order_id || ' ' || coalesce(p.settled_outside - p.rejected, 0) || ' ' || c.state from cash_receipt c
		join reservation r on r.id = c.reservation_id left join payment p on p.reservation_id = r.id where r.order_id is not null`) {
		part := strings.Fields(text)
		outside, _ := strconv.Atoi(part[1])
		hash := sha256.Sum256([]byte(part[0]))
		order := fmt.Sprintf("cash-%x", hash[:16])
		want := max(0, held[part[0]]-outside)
		if standing[order] != want {
			t.Errorf("seed %d: order %s: a cash receipt of %d won stands (%s), want %d", w.seed, part[0], standing[order], part[2], want)
		}
		delete(standing, order)
	}
	for order, won := range standing {
		if won > 0 {
			t.Errorf("seed %d: cash receipts %s of %d won belong to no reservation", w.seed, order, won)
		}
	}
}

// checkPartner checks that the newest event of each booking counts, with its room and times if it was accepted, and that the partner shows the
// times that are sold here, and no other. A lost act leaves blocks without a record.
func (w *world) checkPartner(t *testing.T) {
	if !w.restored() {
		stored := w.rows(t, `
			select format('%s %s %s %s %s %s ', b.external_id, b.seq, b.status, l.external_id, extract(epoch from b.start_at)::bigint, extract(epoch from b.end_at)::bigint)
			from partner_booking b join channel_listing l on l.id = b.listing_id where b.partner = 'sandbox'`)
		for id, newest := range w.partner.newest {
			want, event := fmt.Sprint(id, " ", newest.Seq, " "), newest.partnerBooking
			switch {
			case !newest.accepted: // staff may have settled the conflict
			case event.Type == "booking.cancelled":
				want += "CANCELLED "
			default:
				want += fmt.Sprint("CONFIRMED ", event.ListingID, " ", event.Start.Unix(), " ", event.End.Unix(), " ")
			}
			if !slices.ContainsFunc(stored, func(row string) bool { return strings.HasPrefix(row, want) }) {
				t.Errorf("seed %d: the newest event is not %s: %v", w.seed, want, stored)
			}
		}
	}
	if w.restored() { // stays that a lost act has moved or canceled
		return
	}
	wrong := w.wrongBlocks(t)
	for deadline := time.Now().Add(30 * time.Second); len(wrong) > 0 && time.Now().Before(deadline); wrong = w.wrongBlocks(t) {
		time.Sleep(50 * time.Millisecond) // the service may remove a block whose quarantine has just ended: there is no event to wait for
	}
	for _, block := range wrong {
		t.Errorf("seed %d: %s", w.seed, block)
	}
}

// wrongBlocks returns the blocks that only the partner or only the service has.
func (w *world) wrongBlocks(t *testing.T) (wrong []string) {
	placed := map[string]bool{}
	for _, id := range w.rows(t, `select 'yeolda-' || k.id from channel_block k join channel_listing l on l.id = k.listing_id where k.state = 'PLACED' and l.channel = 'gateway'`) {
		placed[id] = true
	}
	for _, b := range w.box.Blocks() {
		if !placed[b.ID] {
			wrong = append(wrong, fmt.Sprintf("block %s of %s-%d is not known: %v", b.ID, b.Branch, b.Room, w.rows(t, `
				select to_jsonb(k)::text || format(' of %s %s, expires %s', r.state, r.source, r.expires_at) from channel_block k
				join reservation r on r.id = k.reservation_id where 'yeolda-' || k.id = $1`, b.ID)))
		}
		delete(placed, b.ID)
	}
	for id := range placed {
		wrong = append(wrong, fmt.Sprintf("the partner lacks block %s", id))
	}
	return wrong
}
