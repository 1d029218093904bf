package crowdsim

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/moneytest"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
	"github.com/yeolda/yeolda/cloud/internal/sandbox"
	"github.com/yeolda/yeolda/cloud/internal/toss"
)

// restTimeout is how long the end of a sequence may take on a busy machine.
const restTimeout = 3 * time.Minute

// unsettled lists what has not ended: payments, refunds, doubts about a payment, a rebuild, and partners' blocks.
const unsettled = `
	select format('%s %s %s', 'reservation', id, state) from reservation where state in ('CONFIRMING', 'CANCELING', 'WAITING_FOR_DEPOSIT')
	union all select format('%s of %s %s %s', 'refund', reservation_id, state, error_code) from refund where state in ('REQUESTED', 'PENDING', 'FAILED')
	union all select format('blocked key %s', id) from reservation where keys_blocked and state = 'DONE'
	union all select format('compensation of %s', r.id) from compensation c join reservation r on r.id = c.reservation_id
		where c.reason = 'everything is owed' and r.state = 'DONE' and c.since >= r.start_at - interval '2 minutes 5 seconds'
	union all select 'rebuild' from rebuild where ended_at is null
	union all select format('block %s %s', id, state) from channel_block where state in ('WANTED', 'UNWANTED')
	union all select format('cash receipt of %s %s %s', reservation_id, state, error_code) from cash_receipt where check_at is not null or state in ('issuing', 'canceling', 'failed')`

// rest ends the faults and settles what is open, as administrators can in the console and in the provider's dashboard.
func (w *world) rest(t *testing.T) {
	w.note("the end")
	w.box.ClearFaults()
	w.exec(t, `update branch set compensation = null`)     // a door that failed late would have money returned during the checks
	w.exec(t, `update legal_entity set retired_at = null`) // its books are not compared
	w.clock.Advance(11 * time.Minute)                      // unpaid accounts and holds end
	s := &step{world: w, t: t, rng: rand.New(rand.NewPCG(w.seed, 0)), name: "end rest"}
	for deadline := time.Now().Add(restTimeout); ; {
		s.runChecks()
		open := w.rows(t, unsettled)
		if len(open) == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("seed %d: never settled: %v", w.seed, open)
		}
		s.endRefunds()
		s.endReceipts()
		w.clock.Advance(15 * time.Second)
		time.Sleep(50 * time.Millisecond) // rows of other processes: there is no event to wait for
	}
	if err := moneytest.Settled(w.ctx, w.replicas[0].DB.Pool); err != nil {
		t.Fatal(err)
	}
	s.endDiscrepancies()
}

// runChecks runs the checks at the provider whose time has come for the crowd. The database starts them by its own clock, minutes later.
func (s *step) runChecks() {
	for _, text := range s.rows(s.t, `
		select distinct args ->> 'reservationId' from river_job
		where kind = 'settle' and state in ('available', 'retryable', 'scheduled') and scheduled_at <= $1`, s.clock.Now()) {
		id, err := strconv.ParseInt(text, 10, 64)
		if err == nil {
			err = s.replicas[0].Replica(s.t).Settle(s.ctx, booking.ReservationID(id))
		}
		if err != nil && !errors.Is(err, reserve.ErrPaymentPending) {
			s.note("not settled", text, err)
		}
	}
}

// endRefunds approves, or sends again, each refund that waits for an administrator.
func (s *step) endRefunds() {
	for _, id := range s.rows(s.t, `select id::text from reservation r where `+refundOpen+` order by id`) {
		path, body := "/v2/admin/reservations/"+id+"/refund", map[string]any{}
		first := s.call(s.staff[0], http.MethodPost, path+"/approval", nil).HTTP
		if first == http.StatusOK || s.call(s.staff[1], http.MethodPost, path+"/approval", nil).HTTP == http.StatusOK {
			continue
		}
		if first != http.StatusNotFound { // another request has left too little
			s.call(s.staff[0], http.MethodDelete, path+"/approval", nil)
			continue
		}
		if len(s.rows(s.t, `select id::text from payment p join reservation r on r.id = p.reservation_id where id::text = $1 and account_number is not null`, id)) > 0 {
			s.transfer(body)
			body["refundReceiveAccountHolderName"] = "홍길동"
		}
		if s.call(s.staff[0], http.MethodPost, path, body).ErrorCode != "OTHER_TRANSFER_OPEN" {
			continue
		}
		if len(s.rows(s.t, `select payment_key from payment where reservation_id::text = $1 and rejected > 0`, id)) == 0 {
			s.repeatTransfer(id)
			continue
		}
		// The provider still shows a rejected transfer that was returned by hand.
		s.call(s.staff[0], http.MethodPost, path+"s", map[string]any{"reason": "직접 송금", "settledOutside": map[string]string{"how": "계좌이체", "reference": "1"}})
	}
}

// endReceipts asks again for each cash receipt that failed. The provider may have canceled one in a lost act.
func (s *step) endReceipts() {
	body := map[string]any{}
	if s.restored() {
		body["settledOutside"] = map[string]string{"how": "홈택스", "reference": "1"}
	}
	for _, id := range s.rows(s.t, `select reservation_id::text from cash_receipt where state = 'failed'`) {
		s.call(s.staff[0], http.MethodPost, "/v2/admin/reservations/"+id+"/cash-receipt", body)
	}
}

// repeatTransfer repeats in the provider's dashboard what the bank has returned.
func (s *step) repeatTransfer(id string) {
	order := s.rows(s.t, `select order_id from reservation where id::text = $1`, id)[0]
	payment := s.rows(s.t, `select payment_key from payment where reservation_id::text = $1`, id)[0]
	keys := s.rows(s.t, `select key_set from payment where reservation_id::text = $1`, id)[0]
	won := s.box.Bounced(order)
	_, err := s.replicas[0].Replica(s.t).Payments.Cancel(s.ctx, toss.KeySet(keys), fmt.Sprint("repeated-", order, won), payment,
		toss.CancelRequest{Reason: "재송금", Amount: &won, RefundAccount: &toss.RefundAccount{Bank: "20", Number: "1002123456789", Holder: "홍길동"}})
	s.note("transfer repeated", order, err)
}

const openDiscrepancies = `select id::text from reconciliation_difference where resolved_at is null`

// endDiscrepancies compares the books, refunds the orphans and closes what is left. Another comparison finds nothing.
func (s *step) endDiscrepancies() {
	replica := s.replicas[0].Replica(s.t)
	compare := func() {
		if _, err := replica.Reconcile(s.ctx, reserve.Full, reserve.ReconcileSpan); err != nil {
			s.violation("compare the books: %v", err)
		}
	}
	account := map[string]string{"refundBankCode": "20", "refundAccount": "1002123456789", "refundHolder": "홍길동"}
	for range 2 { // what the provider holds, and then what the bank has returned
		for slices.ContainsFunc(s.box.Payments(""), func(p sandbox.Payment) bool {
			return p.VirtualAccount != nil && p.VirtualAccount.RefundStatus == "PENDING"
		}) {
			time.Sleep(20 * time.Millisecond) // it is not known yet
		}
		compare()
		for _, id := range s.rows(s.t, openDiscrepancies+` and kind = 'orphan'`) {
			if reply := s.call(s.staff[0], http.MethodPost, "/v2/admin/differences/"+id+"/refund", account); reply.HTTP != http.StatusOK {
				s.violation("an orphan cannot be refunded: %s", reply.Raw)
			}
		}
	}
	for _, id := range s.rows(s.t, openDiscrepancies) {
		kind := s.rows(s.t, `select kind || ' ' || detail from reconciliation_difference where id::text = $1`, id)[0]
		s.note("closed by a person: "+kind, id)
		if reply := s.call(s.staff[0], http.MethodPost, "/v2/admin/differences/"+id+"/resolution", map[string]string{"resolution": "확인함"}); reply.HTTP != http.StatusOK {
			s.violation("a discrepancy cannot be closed: %s", reply.Raw)
		}
	}
	compare()
	for _, left := range s.rows(s.t, `select order_id || ' ' || kind || ' ' || detail from reconciliation_difference where resolved_at is null`) {
		s.violation("the comparison finds: %s", left)
	}
}
