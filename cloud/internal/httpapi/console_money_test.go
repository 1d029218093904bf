package httpapi_test

import (
	"slices"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/sandbox"
	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

// If the bank could not execute a refund, an administrator retries it with another account. An administrator also closes
// discrepancies between the books.
func TestMoneyInTheConsole(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	manager, hq := s.Admin(t, "gangnam-manager", "gangnam-demo"), s.Admin(t, "hq", "hq-demo")
	c := s.Client(t)
	start := slot(s, 6*time.Hour)
	confirm := order(t, s, c, 1, start, time.Hour, 30000, "가상계좌")
	c.Post("/payment/confirm", confirm).OK(t)
	d, err := s.Sandbox.Deposit(confirm["orderId"].(string))
	delivered(t, d, err)
	id := live(t, s, 1)
	if err := s.Sandbox.SetFault(sandbox.Fault{Target: sandbox.TargetRefund, Kind: sandbox.FaultError}); err != nil {
		t.Fatal(err)
	}
	account := map[string]string{"refundReceiveAccountBank": "20", "refundReceiveAccountNumber": "1002123456789", "refundReceiveAccountHolderName": "홍길동"}
	manager.Delete("/admin/reservation/"+id+"?bookingStatus=paid", account).OK(t)
	type money struct {
		Payments    []struct{ ID, State string }
		Refunds     []struct{ ReservationID, State string }
		Differences []struct {
			ID         string
			ResolvedAt *string
		}
	}
	page := "/v2/admin/branches/gangnam/money?yearMonth=" + s.Clock.Now().In(seoul).Format("2006-01")
	await := func(what string, ok func(money) bool) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(200 * time.Millisecond) {
			var m money
			manager.Get(page).OK(t).Into(t, &m)
			if ok(m) {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s: %+v", what, m)
			}
			s.Clock.Advance(5 * time.Second)
		}
	}
	await("failed at the bank", func(m money) bool {
		return len(m.Refunds) == 1 && m.Refunds[0].State == "FAILED" && m.Refunds[0].ReservationID == id
	})
	refuses(t, "half an account", manager.Post("/v2/admin/reservations/"+id+"/refund", map[string]string{"refundReceiveAccountBank": "20"}), "refundReceiveAccountNumber")
	account["refundReceiveAccountNumber"] = "1002999999999"
	manager.Post("/v2/admin/reservations/"+id+"/refund", account).OK(t)
	await("sent again", func(m money) bool { return len(m.Refunds) == 0 })
	says(t, "nothing is left to send", manager.Post("/v2/admin/reservations/"+id+"/refund", nil), noReservation)

	if _, err := s.DB.Pool.Exec(t.Context(), `insert into reconciliation_difference (order_id, kind, detail) values ($1, 'test', '30000 won at the provider, 0 here')`, confirm["orderId"]); err != nil {
		t.Fatal(err)
	}
	difference := only(t, s, `select id::text from reconciliation_difference where kind = $1`, "test")
	await("a difference", func(m money) bool {
		return slices.ContainsFunc(m.Differences, func(d struct {
			ID         string
			ResolvedAt *string
		}) bool {
			return d.ID == difference && d.ResolvedAt == nil
		})
	})
	hq.Post("/v2/admin/differences/"+difference+"/resolution", map[string]string{"resolution": "상점관리자에서 환불함"}).OK(t)
	if note := only(t, s, `select resolution from reconciliation_difference where id = $1::bigint and resolved_at is not null`, difference); note != "상점관리자에서 환불함" {
		t.Errorf("resolution %q", note)
	}
}

// The data of one guest can be exported. Erasing removes it from all reservations that have ended.
func TestPersonalData(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	guest(t, s)
	hq := s.Admin(t, "hq", "hq-demo")
	contact := map[string]string{"contact": "+82 10-1234-5678"}
	var data struct{ Reservations []map[string]any }
	hq.Post("/v2/admin/personal-data/export", contact).OK(t).Into(t, &data)
	if len(data.Reservations) != 1 || data.Reservations[0]["name"] != "홍길동" {
		t.Fatalf("data %+v", data)
	}
	var erased struct{ Reservations, Kept int }
	hq.Post("/v2/admin/personal-data/erase", contact).OK(t).Into(t, &erased)
	equal(t, "still to come", erased, struct{ Reservations, Kept int }{0, 1})
	s.Clock.Advance(48 * time.Hour)
	hq = s.Admin(t, "hq", "hq-demo")
	hq.Post("/v2/admin/personal-data/erase", contact).OK(t).Into(t, &erased)
	equal(t, "over", erased, struct{ Reservations, Kept int }{1, 0})
	hq.Post("/v2/admin/personal-data/export", contact).OK(t).Into(t, &data)
	if len(data.Reservations) != 0 {
		t.Errorf("afterwards %+v", data)
	}
	refuses(t, "not a contact", hq.Post("/v2/admin/personal-data/erase", map[string]string{"contact": "0101"}), "contact")
	if names := only(t, s, `select count(*)::text from reservation where name is not null`); names != "0" {
		t.Errorf("%s reservations still have a name", names)
	}
}

// paidDeposit creates a reservation of room 1 in gangnam, paid by virtual account, and returns its id and amount.
func paidDeposit(t *testing.T, s *servicetest.Stack) (id string, amount int) {
	t.Helper()
	c := s.Client(t)
	confirm := order(t, s, c, 1, slot(s, 6*time.Hour), time.Hour, 30000, "가상계좌")
	c.Post("/payment/confirm", confirm).OK(t)
	d, err := s.Sandbox.Deposit(confirm["orderId"].(string))
	delivered(t, d, err)
	return live(t, s, 1), 30000
}

// If the provider cannot make a refund, it is settled outside: the reservation is cancelled and the amount counts as
// refunded.
func TestSettledOutside(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	manager := s.Admin(t, "gangnam-manager", "gangnam-demo")
	id, amount := paidDeposit(t, s)
	path := "/v2/admin/reservations/" + id + "/refunds"
	how := map[string]string{"how": "계좌 이체", "reference": "4711"}
	refuses(t, "without evidence", manager.Post(path, map[string]any{"settledOutside": map[string]string{"how": "계좌 이체"}}), "settledOutside.reference")
	var got struct {
		RefundID        string
		Amount, Balance int
	}
	manager.Post(path, map[string]any{"reason": "한도 초과", "settledOutside": how}).OK(t).Into(t, &got)
	if got.RefundID == "" || got.Amount != amount || got.Balance != 0 {
		t.Errorf("got %+v", got)
	}
	if state := only(t, s, `select state from reservation where id = $1::bigint`, id); state != "CANCELED" {
		t.Errorf("state %s, want CANCELED", state)
	}
	var m struct {
		Totals   struct{ Paid, Refunded, Outside, Net int }
		Refunded []struct {
			ReservationID string
			Outside       map[string]string
		}
	}
	manager.Get("/v2/admin/branches/gangnam/money?yearMonth="+s.Clock.Now().In(seoul).Format("2006-01")).OK(t).Into(t, &m)
	if m.Totals.Paid != amount || m.Totals.Outside != amount || m.Totals.Net != 0 || len(m.Refunded) != 1 || m.Refunded[0].Outside["reference"] != "4711" {
		t.Errorf("money %+v", m)
	}
	if answer := manager.Post(path, map[string]any{"settledOutside": how}); answer.HTTP != 400 {
		t.Errorf("settled twice: got %d, want 400", answer.HTTP)
	}
}

// A refund to an account that is not the guest's waits for a second administrator.
func TestRefundToAnotherAccount(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	manager, hq := s.Admin(t, "gangnam-manager", "gangnam-demo"), s.Admin(t, "hq", "hq-demo")
	id, _ := paidDeposit(t, s)
	account := map[string]string{"refundReceiveAccountBank": "20", "refundReceiveAccountNumber": "1002123456789", "refundReceiveAccountHolderName": "매니저본인"}
	manager.Delete("/admin/reservation/"+id+"?bookingStatus=paid", account).OK(t)
	approve := "/v2/admin/reservations/" + id + "/refund/approval"
	if answer := manager.Post(approve, nil); answer.HTTP != 403 {
		t.Errorf("approved by the administrator who entered it: got %d, want 403", answer.HTTP)
	}
	hq.Post(approve, nil).OK(t)
	says(t, "approved", hq.Post(approve, nil), noReservation)
}

func TestReconciliationAtTheButton(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	paidDeposit(t, s)
	var got struct {
		Compared int
		Failed   []string
	}
	hq := s.Admin(t, "hq", "hq-demo")
	if err := s.Sandbox.SetFault(sandbox.Fault{Target: sandbox.TargetGet, Kind: sandbox.FaultError}); err != nil {
		t.Fatal(err)
	}
	hq.Post("/v2/admin/reconciliation", nil).Fails(t, 503, "ServiceUnavailableError", "일시적으로 서비스를 이용할 수 없습니다. 잠시 후 다시 시도해 주세요.")
	hq.Post("/v2/admin/reconciliation", nil).OK(t).Into(t, &got)
	if got.Compared != 1 || len(got.Failed) != 0 {
		t.Errorf("got %+v", got)
	}
}
