package crowdsim

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
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
	s.act(`paid_at is not null and amount > 0`, http.MethodPost, "/v2/admin/reservations/%s/refunds", body)
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
