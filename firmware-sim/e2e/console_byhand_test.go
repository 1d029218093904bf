package e2e

import (
	"testing"
	"time"
)

// TestConsoleByHandOfARejectedPart: the bank rejects a part of a payment. The dialog at the money desk names what a refund by hand records, which
// is everything that is left, and the stay ends.
func TestConsoleByHandOfARejectedPart(t *testing.T) {
	t.Parallel()
	s := startStack(t, nil)
	_, midnight := dayAfter()
	newBrowser(t, s).deposited(s, 1, 30000, "01077776666", midnight.Add(12*time.Hour))
	hq := newBrowser(t, s)
	hq.must("POST", "/admin/login", map[string]string{"id": "hq", "password": "hq-demo"}, nil)
	postJSON(t, s.SandboxAt+"/sandbox/faults", map[string]any{"target": "refund", "kind": "error", "times": 1}, nil)
	var month struct{ Payments []struct{ ID string } }
	hq.must("GET", "/v2/admin/branches/gangnam/payments?yearMonth="+time.Now().In(seoul).Format("2006-01"), nil, &month)
	if len(month.Payments) != 1 {
		t.Fatalf("payments %+v, want one", month.Payments)
	}
	hq.must("POST", "/v2/admin/reservations/"+month.Payments[0].ID+"/refunds", map[string]any{
		"amount": 1000, "reason": "소음", "refundBankCode": "20", "refundAccount": "1002123456789", "refundHolder": "윤서아",
	}, nil)
	until(t, "the bank has rejected the part", func() bool {
		var desk struct{ Items []struct{ Kind string } }
		hq.must("GET", "/v2/admin/money-desk", nil, &desk)
		return len(desk.Items) == 1 && desk.Items[0].Kind == "failed"
	})
	p := console(t, s, "hq", "hq-demo")
	p.open("/console/desk")
	p.pressIn("환불 실패", "직접 환불함")
	p.see("30,000원")
	p.fill("환불 방법", "계좌 이체")
	p.fill("증빙(이체 번호 등)", "4714")
	p.press("기록하기")
	p.ended("환불 실패")
}
