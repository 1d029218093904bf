package httpapi_test

import (
	"encoding/json"
	"github.com/yeolda/yeolda/cloud/internal/config"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

// A part of a payment is returned over the interface; the same Idempotency-Key has the same answer.
func TestPartRefund(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	manager := s.Admin(t, "gangnam-manager", "gangnam-demo")
	id, amount := paidDeposit(t, s)
	path := "/v2/admin/reservations/" + id + "/refunds"
	body := map[string]any{"amount": 5000, "reason": "소음", "refundBankCode": "20", "refundAccount": "1002123456789", "refundHolder": "홍길동"}
	refuses(t, "without an account", manager.Post(path, map[string]any{"amount": 5000, "reason": "소음"}), "refundBankCode")
	refuses(t, "without a reason", manager.Post(path, map[string]any{"amount": 5000}), "reason")
	refuses(t, "without an amount", manager.Post(path, map[string]any{"reason": "소음"}), "amount")
	key := http.Header{"Idempotency-Key": {"one"}}
	type result struct {
		RefundID        string
		Amount, Balance int
	}
	send := func() (r struct{ Data result }) {
		t.Helper()
		answer := manager.Send(http.MethodPost, path, body, key)
		if err := json.Unmarshal(answer.Raw, &r); err != nil || answer.HTTP != 200 {
			t.Fatalf("%d %s", answer.HTTP, answer.Raw)
		}
		return r
	}
	got := send().Data
	if got.RefundID == "" || got.Amount != 5000 || got.Balance != amount-5000 {
		t.Errorf("got %+v", got)
	}
	if again := send().Data; again != got {
		t.Errorf("repeated: %+v, want %+v", again, got)
	}
	// The process died after the refund was recorded, and before its answer was stored.
	if n := count(t, s, `with lost as (update idempotent_request set answer = null where key = 'one' returning 1) select count(*) from lost`); n != 1 {
		t.Fatalf("%d stored answers, want 1", n)
	}
	if again := send().Data; again != got {
		t.Errorf("repeated after a crash: %+v, want %+v", again, got)
	}
	body["amount"] = 4000
	if answer := manager.Send(http.MethodPost, path, body, key); answer.HTTP != 409 {
		t.Errorf("another body: %d, want 409", answer.HTTP)
	}
	if state := only(t, s, `select state from reservation where id = $1::bigint`, id); state != "DONE" {
		t.Errorf("state %s, want DONE", state)
	}
	var record struct {
		History []struct {
			Kind   string
			Detail struct{ Reason string }
		}
	}
	manager.Get("/v2/admin/reservations/"+id).OK(t).Into(t, &record)
	reasons := []string{}
	for _, entry := range record.History {
		if entry.Kind == "refund" {
			reasons = append(reasons, entry.Detail.Reason)
		}
	}
	if !slices.Equal(reasons, []string{"소음"}) {
		t.Errorf("the record names the reasons %q of refunds, want the one that was given", reasons)
	}
	body["amount"] = amount
	if answer := manager.Post(path, body); answer.HTTP != 400 && answer.HTTP != 409 {
		t.Errorf("more than is left: %d", answer.HTTP)
	}
}

// The record of a reservation names the sum that its end returns, of its own payment and of its extensions.
func TestRecordNamesTheBalance(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	cast := newCast(t, s)
	id, key := cast.running(t)
	path := "/v2/admin/reservations/" + id
	says := func(what string, own, extensions int) {
		t.Helper()
		var record struct{ Balance, ExtensionsBalance int }
		if cast.Manager.Get(path).OK(t).Into(t, &record); record.Balance != own || record.ExtensionsBalance != extensions {
			t.Errorf("%s: got %+v, want %d and %d", what, record, own, extensions)
		}
		var day struct {
			Reservations []struct {
				ID          string
				StayBalance int
			}
		}
		cast.Manager.Get("/v2/admin/branches/gangnam/timeline?date="+cast.start.In(seoul).Format(time.DateOnly)).OK(t).Into(t, &day)
		for _, r := range day.Reservations {
			if r.ID == id && r.StayBalance != own+extensions {
				t.Errorf("%s: the day says %d, want %d", what, r.StayBalance, own+extensions)
			}
		}
	}
	says("paid", 30000, 0)
	extend(t, s, s.Client(t), key, cast.start.Add(70*time.Minute))
	says("extended", 30000, 6000)
	cast.Manager.Post(path+"/refunds", map[string]any{"amount": 12000, "reason": "소음"}).OK(t)
	says("after a part", 18000, 6000)
	cast.Manager.Delete("/admin/reservation/"+id+"?bookingStatus=paid", map[string]string{"reason": "other"}).OK(t)
	says("canceled", 0, 0)
}

// The policy in the settings is what guests read before the payment, and what a cancellation returns.
func TestRefundPolicyInTheSettings(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	hq := s.Admin(t, "hq", "hq-demo")
	const settingsPath = "/v2/admin/branches/gangnam/settings"
	var settings map[string]any
	hq.Get(settingsPath).OK(t).Into(t, &settings)
	if policy := settings["refundPolicy"].([]any); len(policy) != 1 || policy[0].(map[string]any)["percent"] != 100.0 {
		t.Errorf("default %v", policy)
	}
	tier := func(minutes, percent int) map[string]any {
		return map[string]any{"untilMinutesBefore": minutes, "percent": percent}
	}
	for name, bad := range map[string][]any{
		"too late": {tier(29, 100)}, "out of order": {tier(60, 100), tier(120, 50)}, "growing": {tier(120, 50), tier(60, 100)}, "over all": {tier(60, 101)},
	} {
		settings["refundPolicy"] = bad
		refuses(t, name, hq.Put(settingsPath, settings), "refundPolicy")
	}
	settings["refundPolicy"] = []any{tier(60, 50), tier(24*60, 100)} // in any order
	settings["compensation"] = map[string]any{"afterMinutes": 3, "wonPerMinute": 100}
	hq.Put(settingsPath, settings).OK(t)
	var branches struct {
		Branches []struct {
			Branch           string
			RefundPolicyText struct{ Ko, En string }
		}
	}
	s.Client(t).Get("/v2/branches").OK(t).Into(t, &branches)
	if got, want := branches.Branches[0].RefundPolicyText.Ko, "시작 1일 전까지 취소하면 100%, 시작 1시간 전까지 취소하면 50%를 환불해 드려요. 그 뒤에는 환불되지 않아요."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	c := s.Client(t)
	start := slot(s, 3*time.Hour)
	confirm := order(t, s, c, 1, start, time.Hour, 30000, "카드")
	c.Post("/payment/confirm", confirm).OK(t)
	settings["revision"] = settings["revision"].(float64) + 1
	settings["refundPolicy"] = []any{tier(24*60, 0)}
	hq.Put(settingsPath, settings).OK(t) // too late for this purchase
	var receipt struct {
		RefundableDateTime string
		RefundPolicyText   struct{ Ko, En string }
	}
	c.Get("/v2/receipt").OK(t).Into(t, &receipt)
	if until := wire(start.Add(-time.Hour)); receipt.RefundableDateTime != until || receipt.RefundPolicyText != branches.Branches[0].RefundPolicyText {
		t.Errorf("receipt: %+v, want %s and %+v", receipt, until, branches.Branches[0].RefundPolicyText)
	}
	customer := login(t, s, "01012345678")
	id := live(t, s, 1)
	var quote struct{ Amount, Percent int }
	customer.Get("/v2/my-reservations/"+id+"/refund").OK(t).Into(t, &quote)
	if quote.Amount != 15000 || quote.Percent != 50 {
		t.Errorf("quote %+v", quote)
	}
	request := map[string]any{"id": json.Number(id), "cancelReason": "변심", "refundAmount": 30000} // as before the first deadline
	customer.Post("/payment/cancel", request).Fails(t, http.StatusConflict, "ResourceConflictException", "환불 금액이 변경되었습니다. 다시 확인해 주세요.")
	if p := s.Sandbox.Payments(confirm["orderId"].(string))[0]; p.BalanceAmount != 30000 {
		t.Errorf("the provider holds %d after a cancellation that was refused, want 30000", p.BalanceAmount)
	}
	request["refundAmount"] = quote.Amount
	customer.Post("/payment/cancel", request).OK(t)
	customer.Post("/payment/cancel", request).OK(t)
	if p := s.Sandbox.Payments(confirm["orderId"].(string))[0]; p.BalanceAmount != 15000 {
		t.Errorf("the provider holds %d, want 15000", p.BalanceAmount)
	}
}

// TestRefundAboveTheLimit: a part above the limit waits on the money desk until another administrator approves or declines it.
func TestRefundAboveTheLimit(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t, func(set *config.Settings) { set.Toss.RefundApprovalAbove = 4000 })
	manager, hq := s.Admin(t, "gangnam-manager", "gangnam-demo"), s.Admin(t, "hq", "hq-demo")
	id, amount := paidDeposit(t, s)
	path := "/v2/admin/reservations/" + id + "/refund"
	request := func() (got struct{ ApprovalRequired bool }) {
		t.Helper()
		body := map[string]any{"amount": 5000, "reason": "소음", "refundBankCode": "20", "refundAccount": "1002123456789", "refundHolder": "홍길동"}
		manager.Post(path+"s", body).OK(t).Into(t, &got)
		return got
	}
	if !request().ApprovalRequired {
		t.Fatal("a part above the limit needs no approval")
	}
	if item := desk(t, hq)["approval"]; item.ReservationID == nil || *item.ReservationID != id || item.Amount != 5000 || !strings.Contains(item.Detail, "admin:gangnam-manager") {
		t.Errorf("on the desk: %+v", item)
	}
	if answer := manager.Post(path+"/approval", nil); answer.HTTP != 403 {
		t.Errorf("approved by the administrator who requested it: %d, want 403", answer.HTTP)
	}
	hq.Delete(path+"/approval", nil).OK(t)
	if items := desk(t, hq); len(items) != 0 {
		t.Errorf("on the desk after the decline: %v", items)
	}
	says(t, "declined again", hq.Delete(path+"/approval", nil), noReservation)
	request()
	hq.Post(path+"/approval", nil).OK(t)
	order := only(t, s, `select order_id from reservation where id = $1::bigint`, id)
	if p := s.Sandbox.Payments(order)[0]; p.BalanceAmount != amount-5000 {
		t.Errorf("the provider holds %d, want %d", p.BalanceAmount, amount-5000)
	}
}
