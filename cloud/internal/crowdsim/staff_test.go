package crowdsim

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/moneytest"
	"github.com/yeolda/yeolda/cloud/internal/sandbox"
)

// entities sell at the branches; the first, empty one is that of the settings. Their number is that of their merchant, less one.
var entities = []string{"", "seoul", "busan"}

func (s *step) admin() *moneytest.Buyer { return pick(s.rng, s.staff...) }

// any returns one of the reservations that a condition selects; empty: there is none.
func (s *step) any(condition string) string {
	n := s.rng.IntN(600)
	ids := s.rows(s.t, `select id::text from reservation r where `+condition+` order by start_at, id`)
	if len(ids) == 0 {
		return ""
	}
	return ids[n%len(ids)]
}

const live = `state in ('DONE', 'WAITING_FOR_DEPOSIT', 'CANCELING', 'CONFIRMING')`

// act has an administrator send a request about one of the reservations that a condition selects.
func (s *step) act(condition, method, format string, body any) {
	if id := s.any(condition); id != "" {
		s.call(s.admin(), method, fmt.Sprintf(format, id), body)
	}
}

func (s *step) move() {
	start := s.soon()
	s.act(live, http.MethodPut, "/admin/reservation/%s", map[string]any{
		"room": strconv.Itoa(1 + s.rng.IntN(6)), "startDateTime": moneytest.Wire(start),
		"endDateTime": moneytest.Wire(start.Add(time.Duration(2+s.rng.IntN(8)) * 10 * time.Minute)), "wholeStay": s.rng.IntN(2) == 0,
	})
}

func (s *step) staffCancel() {
	s.act(live, http.MethodDelete, "/admin/reservation/%s?bookingStatus="+pick(s.rng, "paid", "paid", "waiting"), s.transfer(map[string]any{}))
}

func (s *step) part() {
	body := map[string]any{"amount": 1 + s.rng.IntN(12000), "reason": "소음"}
	if s.rng.IntN(2) == 0 {
		body["refundBankCode"], body["refundAccount"], body["refundHolder"] = "20", "1002123456789", pick(s.rng, "홍길동", "다른 사람")
	}
	id := s.any(`paid_at is not null and amount > 0`)
	if id == "" {
		return
	}
	s.atOnce(s.admin(), "/v2/admin/reservations/"+id+"/refunds", body)
}

// atOnce sends a POST with an Idempotency-Key several times at once, sometimes to several replicas. All successes have one answer.
func (s *step) atOnce(b *moneytest.Buyer, path string, body any) {
	replies := make([]moneytest.Reply, 1+s.rng.IntN(3))
	var wg sync.WaitGroup
	for i := range replies {
		one := s.beside()
		one.key = strings.ReplaceAll(fmt.Sprint(s.seed, ".", s.name), " ", "-")
		wg.Go(func() { replies[i] = one.call(b, http.MethodPost, path, body) })
	}
	wg.Wait()
	answers := map[string]bool{}
	for _, reply := range replies {
		if reply.HTTP == http.StatusOK {
			answers[string(reply.Data)] = true
		}
	}
	if len(answers) > 1 {
		s.violation("POST %s with one key has several answers: %v", path, answers)
	}
}

// rejectedPart returns a part of a deposit, which the bank rejects: the guest is asked for another account at a link, and stays. Then the contact
// is corrected, sometimes while a refund by hand waits for another administrator, who declines it.
func (s *step) rejectedPart() {
	s.method = sandbox.MethodVirtualAccount
	s.buy()
	s.deposit()
	id, byHand := s.any(`state = 'DONE' and method = '가상계좌' and not `+refundOpen), s.rng.IntN(2) == 0
	if id == "" {
		return
	}
	if err := s.box.SetFault(sandbox.Fault{Target: sandbox.TargetRefund, Kind: sandbox.FaultError, Times: 1}); err != nil {
		s.violation("%v", err)
	}
	first, second, path := s.staff[0], s.staff[1], "/v2/admin/reservations/"+id
	s.call(first, http.MethodPost, path+"/refunds", map[string]any{
		"amount": 1 + s.rng.IntN(7000), "reason": "소음", "refundBankCode": "20", "refundAccount": "1002123456789", "refundHolder": "홍길동",
	})
	s.call(second, http.MethodPost, path+"/refund/approval", nil)
	for range 20 { // the transfer at the bank: there is no event to wait for
		if len(s.rows(s.t, `select id::text from refund where reservation_id::text = $1 and state = 'PENDING'`, id)) == 0 {
			break
		}
		time.Sleep(20 * time.Millisecond)
		s.call(first, http.MethodPost, path+"/check", nil)
	}
	if byHand {
		s.call(first, http.MethodPost, path+"/refunds", map[string]any{"reason": "직접 송금", "settledOutside": map[string]string{"how": "계좌이체", "reference": "1"}})
	}
	for _, mobile := range s.rows(s.t, `select mobile_key from reservation where id::text = $1 and mobile_key is not null`, id) {
		s.call(first, http.MethodPatch, path+"/contact", map[string]string{"mobileNum": otherMobile(mobile), "reason": "잘못 적음"})
	}
	if byHand {
		s.call(first, http.MethodDelete, path+"/refund/approval", nil)
	}
}

// byHand records that an administrator has returned money outside the provider.
func (s *step) byHand() {
	body := map[string]any{"reason": "직접 송금", "settledOutside": map[string]string{"how": "계좌이체", "reference": "1"}}
	if s.rng.IntN(2) == 0 {
		body["amount"] = 1 + s.rng.IntN(12000)
	}
	s.act(`paid_at is not null and amount > 0`, http.MethodPost, "/v2/admin/reservations/%s/refunds", body)
}

// receipt asks for a cash receipt after the payment, or once more.
func (s *step) receipt() {
	body := map[string]any{}
	if s.rng.IntN(3) > 0 {
		body["cashReceipt"] = cashReceipt
	}
	s.act(`paid_at is not null and method = '가상계좌'`, http.MethodPost, "/v2/admin/reservations/%s/cash-receipt", body)
}

func (s *step) checkPayment() {
	s.act(live, http.MethodPost, "/v2/admin/reservations/%s/check", nil)
}

// stuck has the door of a stay that has begun fail, or of the next one, whose start passes. The row has no time of a grant: rule D3 compares
// it with those of moves and refunds, which have the time of the database, and the crowd's clock is minutes ahead.
func (s *step) stuck() {
	now := s.clock.Now()
	id := s.any(fmt.Sprintf(`state = 'DONE' and extends is null and start_at <= '%s' and coalesce(stay_end, end_at) > '%s'`,
		now.Add(10*time.Minute).UTC().Format(time.RFC3339), now.Add(5*time.Minute).UTC().Format(time.RFC3339)))
	if id == "" {
		return
	}
	if wait := s.rows(s.t, `select extract(epoch from start_at)::bigint::text from reservation where id::text = $1`, id); len(wait) == 1 {
		start, _ := strconv.ParseInt(wait[0], 10, 64)
		s.clock.Advance(max(0, time.Unix(start, 0).Sub(s.clock.Now())+time.Second))
	}
	s.exec(s.t, `
		insert into door_request (id, branch_id, reservation_id, requested_by, kind, device, devices, state, created_at, finished_at, outcomes)
		select gen_random_uuid(), r.branch_id, r.id, 'customer', 'room', d.device, array[d.device], 'FAILED', $2::timestamptz, $2, jsonb_build_object(d.device, '{"outcome":"failed"}'::jsonb)
		from reservation r join room m on m.id = r.room_id, lateral (select 'room_' || m.no as device) d where r.id::text = $1`, id, s.clock.Now())
	s.clock.Advance(time.Duration(1+s.rng.IntN(3)) * time.Minute)
	s.note("door failed", s.name, id)
}

const refundOpen = `exists (select from refund f where f.reservation_id = r.id and f.state = 'FAILED')`

func (s *step) approve() {
	s.act(refundOpen, http.MethodPost, "/v2/admin/reservations/%s/refund/approval", nil)
}

func (s *step) decline() {
	s.act(refundOpen, http.MethodDelete, "/v2/admin/reservations/%s/refund/approval", nil)
}

func (s *step) retry() {
	s.act(refundOpen, http.MethodPost, "/v2/admin/reservations/%s/refund", s.transfer(map[string]any{}))
}

func (s *step) rotateKey() {
	s.act(live, http.MethodPost, "/v2/admin/reservations/%s/key", map[string]any{"reason": "분실"})
}

// correct corrects a phone number to the other one of its guest.
func (s *step) correct() {
	n, second := s.rng.IntN(guests), s.rng.IntN(2)
	m := mobiles(n)
	s.act(fmt.Sprintf(`state in ('DONE', 'WAITING_FOR_DEPOSIT') and mobile_key in ('%s', '%s')`, m[0], m[1]), http.MethodPatch,
		"/v2/admin/reservations/%s/contact", map[string]string{"mobileNum": m[second], "reason": "잘못 적음"})
}

// closeDay closes a day, today more often than tomorrow, and opens it again after a purchase.
func (s *step) closeDay() {
	korea := time.FixedZone("KST", 9*60*60)
	day := s.clock.Now().In(korea).AddDate(0, 0, s.rng.IntN(3)/2).Format(time.DateOnly)
	request := map[string]any{"branches": []string{"gangnam", "hongdae"}, "reason": "공사", "rule": map[string]string{"from": day, "to": day}}
	admin := s.admin()
	var result struct{ Closed json.RawMessage }
	if !s.read(s.call(admin, http.MethodPost, "/v2/admin/closures", request), &result) {
		return
	}
	s.buy()
	s.move()
	request["undo"], request["closed"] = true, result.Closed
	s.call(admin, http.MethodPost, "/v2/admin/closures", request)
}

// assign gives a branch another legal entity.
func (s *step) assign() {
	var entity any
	if code := pick(s.rng, entities...); code != "" {
		entity = code
	}
	s.call(s.admin(), http.MethodPut, "/v2/admin/branches/gangnam/entity", map[string]any{"entity": entity})
}

// retire retires a legal entity, or takes it back into use.
func (s *step) retire() {
	s.call(s.admin(), http.MethodPatch, "/v2/admin/entities/"+pick(s.rng, entities[1:]...), map[string]bool{"enabled": s.rng.IntN(2) == 0})
}

// price gives a room another price from today on.
func (s *step) price() {
	rule := map[string]any{"from": s.clock.Now().AddDate(0, 0, -1).Format(time.DateOnly), "days": []int{1, 2, 3, 4, 5, 6, 7}, "hours": nil,
		"min60": 1000 * (5 + s.rng.IntN(20)), "min30": 5000, "min10": 1000 + s.rng.IntN(2)}
	s.call(s.admin(), http.MethodPut, fmt.Sprintf("/v2/admin/branches/gangnam/rooms/%d/prices", 1+s.rng.IntN(6)), map[string]any{"rules": []any{rule}})
}

// policy changes the refund policy of the branch.
func (s *step) policy() {
	const path = "/v2/admin/branches/gangnam/settings"
	admin, settings := s.admin(), map[string]any{}
	if !s.read(s.call(admin, http.MethodGet, path, nil), &settings) {
		return
	}
	settings["refundPolicy"] = []any{
		map[string]int{"untilMinutesBefore": 60 + s.rng.IntN(100), "percent": 100}, map[string]int{"untilMinutesBefore": 30, "percent": 10 + s.rng.IntN(80)},
	}
	s.call(admin, http.MethodPut, path, settings)
}

// rejectKeys has the provider reject the keys of an entity for a request, as when its contract is about to end.
func (s *step) rejectKeys() {
	target := pick(s.rng, sandbox.TargetConfirm, sandbox.TargetCancel, sandbox.TargetGet)
	if err := s.box.SetFault(sandbox.Fault{Target: target, Kind: sandbox.FaultError, Times: 1 + s.rng.IntN(2), Status: 401, Code: "UNAUTHORIZED_KEY"}); err != nil {
		s.violation("%v", err)
	}
	s.note("keys rejected", s.name, target)
}

// register makes a reservation without a payment for one of the guests.
func (s *step) register() {
	start, admin, m := s.soon(), s.admin(), mobiles(s.rng.IntN(guests))
	hold := map[string]any{"branch": "gangnam", "room": 1 + s.rng.IntN(6), "startDateTime": moneytest.Wire(start), "endDateTime": moneytest.Wire(start.Add(time.Hour))}
	if s.call(admin, http.MethodPost, "/admin/reservation", hold).HTTP == http.StatusOK {
		s.call(admin, http.MethodPost, "/admin/payment", map[string]any{"name": "홍길동", "mobileNum": m[0], "notify": true})
	}
}

func (s *step) reconcile() { s.call(s.admin(), http.MethodPost, "/v2/admin/reconciliation", nil) }
