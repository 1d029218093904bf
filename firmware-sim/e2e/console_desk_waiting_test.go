package e2e

import (
	"net/http"
	"testing"
	"time"
)

// ended waits until a row of a table has disappeared and no dialog is open.
func (p *page) ended(row string) {
	p.t.Helper()
	p.wait("the end of "+row, `!document.querySelector("dialog[open]") && ![...document.querySelectorAll("tr")].some(r => r.innerText.includes(`+quoted(row)+`))`)
}

// TestConsoleDeskWaiting ends the other money that gets stuck, at the money desk alone: a refund that the bank does not
// transfer, one that the provider does not answer, a deposit that comes too late, one that the bank has taken back, and a
// payment while the provider rejects the secret key. Each stays as it is until the administrator ends it.
func TestConsoleDeskWaiting(t *testing.T) {
	t.Parallel()
	s := startStack(t, nil)
	_, midnight := dayAfter()
	noon := midnight.Add(12 * time.Hour)
	guest, hq := newBrowser(t, s), newBrowser(t, s)
	hq.must("POST", "/admin/login", map[string]string{"id": "hq", "password": "hq-demo"}, nil)
	id := func(order, state string) (id string) {
		t.Helper()
		until(t, "order "+order+" is "+state, func() bool {
			var month struct {
				Payments []struct{ ID, OrderID, State string }
			}
			hq.must("GET", "/v2/admin/branches/gangnam/payments?yearMonth="+time.Now().In(seoul).Format("2006-01"), nil, &month)
			for _, p := range month.Payments {
				if p.OrderID == order && p.State == state {
					id = p.ID
				}
			}
			return id != ""
		})
		return id
	}
	cancel := func(id string) (status int) {
		status, _ = hq.call("DELETE", "/admin/reservation/"+id+"?bookingStatus=paid", map[string]string{
			"refundReceiveAccountBank": "20", "refundReceiveAccountNumber": "1002123456789", "refundReceiveAccountHolderName": "윤서아",
		}, nil)
		return status
	}
	fault := func(target, kind string, status, times int, code string) {
		postJSON(t, s.SandboxAt+"/sandbox/faults", map[string]any{"target": target, "kind": kind, "times": times, "status": status, "code": code}, nil)
	}
	db := database(t, s)
	change := func(statement string, args ...any) { // for what takes minutes or days
		t.Helper()
		if _, err := db.Exec(t.Context(), statement, args...); err != nil {
			t.Fatal(err)
		}
	}

	pending := id(guest.deposited(s, 1, 30000, "01077770001", noon), "DONE")
	unclear := id(guest.deposited(s, 2, 25000, "01077770002", noon), "DONE")
	reversed := guest.deposited(s, 3, 22000, "01077770003", noon)
	id(reversed, "DONE")
	late := guest.issued(s, 1, 30000, "01077770004", noon.Add(3*time.Hour))
	change(`update reservation set state = 'CANCELED', canceled_at = now() where order_id = $1`, late)
	postJSON(t, s.SandboxAt+"/sandbox/deposits", map[string]string{"orderId": late}, nil)
	postJSON(t, s.SandboxAt+"/sandbox/reversals", map[string]string{"orderId": reversed}, nil)

	fault("confirm", "error", http.StatusUnauthorized, 1, "UNAUTHORIZED_KEY")
	if status, _ := guest.call("POST", "/payment/confirm", guest.ordered(s, 2, 25000, "01077770005", noon.Add(3*time.Hour), "카드"), nil); status != http.StatusServiceUnavailable {
		t.Fatalf("confirmed with a rejected key: %d", status)
	}

	fault("refund", "timeout", 0, 1, "")
	if status := cancel(pending); status != http.StatusOK {
		t.Fatalf("cancelled: %d", status)
	}
	until(t, "the bank transfers the refund", func() (waits bool) {
		if err := db.QueryRow(t.Context(), `select exists (select from refund where reservation_id = $1 and state = 'PENDING')`, pending).Scan(&waits); err != nil {
			t.Fatal(err)
		}
		return waits
	})
	change(`update refund set due_at = now() - interval '1 minute' where reservation_id = $1`, pending)

	p := console(t, s, "hq", "hq-demo")
	p.open("/console/desk")
	p.see("은행 처리 중", "늦게 들어온 돈", "되돌려진 입금", "대사 차이", "30,000원", "22,000원", "25,000원")

	p.pressIn("은행 처리 중", "지금 다시 확인")
	p.see("결제사에 확인했어요")
	p.pressIn("은행 처리 중", "직접 환불함")
	p.fill("환불 방법", "계좌 이체")
	p.fill("증빙(이체 번호 등)", "4712")
	p.press("기록하기")
	p.ended("은행 처리 중")

	p.pressIn("늦게 들어온 돈", "환불 다시 시도")
	p.choose("환불 은행", "국민")
	p.fill("환불 계좌번호", "999-888-777")
	p.fill("예금주", "윤서아")
	p.press("환불 다시 시도")
	p.ended("늦게 들어온 돈")

	for _, row := range []string{"되돌려진 입금", "대사 차이"} {
		p.pressIn(row, "처리 완료로 표시")
		p.fill("처리 내용", "손님과 이야기함")
		p.press("처리 완료로 표시")
		p.ended(row)
	}

	for _, target := range []string{"cancel", "get"} {
		fault(target, "error", http.StatusServiceUnavailable, -1, "")
	}
	if status := cancel(unclear); status != http.StatusServiceUnavailable {
		t.Fatalf("cancelled without an answer: %d", status)
	}
	change(`update refund set created_at = now() - interval '16 minutes' where reservation_id = $1`, unclear)
	p.open("/console/desk")
	p.see("결과를 모름")
	p.survey("console-desk-waiting")
	p.on(desktop)
	p.pressIn("결과를 모름", "직접 환불함")
	p.fill("환불 방법", "계좌 이체")
	p.fill("증빙(이체 번호 등)", "4713")
	p.press("기록하기")
	p.ended("결과를 모름")
	requestJSON(t, http.MethodDelete, s.SandboxAt+"/sandbox/faults", nil, nil)

	until(t, "nothing waits for a person", func() bool {
		var desk struct{ Items []struct{ Kind string } }
		hq.must("GET", "/v2/admin/money-desk", nil, &desk)
		return len(desk.Items) == 0
	})
	p.open("/console/desk")
	p.see("처리할 돈이 없어요")
}
