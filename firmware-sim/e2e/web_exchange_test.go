package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/yeolda/yeolda/firmware-sim/proof/world"
	"github.com/yeolda/yeolda/firmware-sim/testkit/chromium"
)

// summaryOf is the address of the summary of a stay of an hour.
func summaryOf(room int, start time.Time) string {
	local := start.In(seoul)
	return fmt.Sprintf("/b/gangnam/%s/%d/%s-%s", local.Format(time.DateOnly), room, local.Format("1504"), local.Add(time.Hour).Format("1504"))
}

// TestWebExchange changes the room and the time of paid stays on the pages: at the same price at once, at another price with a
// payment, after which the old stay is refunded, also a deposit.
func TestWebExchange(t *testing.T) {
	t.Parallel()
	chromium.Need(t)
	s := startStack(t, company)
	first := newPage(t, s.Pages)
	at := dayAfterAt(14)
	bought := func(t *testing.T, room, amount int, mobile, method string, start time.Time) (p *page, mine *browser, order string) {
		p = first.another(t)
		p.expect("401 (Unauthorized)")
		mine = newBrowser(t, s)
		order = mine.purchase(s, "gangnam", room, amount, mobile, method, start)
		if method == "가상계좌" {
			postJSON(t, s.SandboxAt+"/sandbox/deposits", map[string]string{"orderId": order}, nil)
		}
		p.open("/login")
		p.logIn(s, mobile)
		p.see("결제 완료")
		return p, mine, order
	}
	choose := func(p *page, room int, start time.Time) {
		p.press("시간·룸 바꾸기")
		p.see("바꿀 예약:", "바꾸지 않고 돌아가기")
		p.open(summaryOf(room, start))
		p.see("이렇게 바꿀까요?", "바꿀 예약:")
	}
	refunded := func(t *testing.T, order string, won int) {
		t.Helper()
		until(t, fmt.Sprint("the provider has returned ", won, " won"), func() bool { return returnedBy(t, s, order) == won })
	}

	t.Run("at the same price", func(t *testing.T) {
		p, _, order := bought(t, 1, 30000, "01055550001", "카드", at)
		choose(p, 1, at.Add(2*time.Hour))
		p.see("지금 예약과 금액이 같아요")
		p.look("exchange-same", phone, desktop, narrow)
		p.on(phone).press("바꾸기")
		p.see("예약을 바꿨어요")
		p.press("내 예약")
		p.see(at.Add(2 * time.Hour).In(seoul).Format("15:04"))
		if n := returnedBy(t, s, order); n != 0 {
			t.Errorf("%d won were returned", n)
		}
	})

	t.Run("paid in another tab", func(t *testing.T) {
		p, _, old := bought(t, 6, 13000, "01055550014", "카드", at.Add(24*time.Hour))
		choose(p, 5, at.Add(24*time.Hour))
		p.on(phone).press("바꾸고 결제하기")
		p.introduce("01055550014")
		p.at("/book/pay")
		order, _ := p.order()
		app := (&buyer{page: p, s: s}).tab("")
		app.open(p.payInApp(s, order, 15000))
		app.at("/book/receipt")
		refunded(t, old, 13000)
		value[bool](p, `document.dispatchEvent(new Event("visibilitychange"))`)
		p.at("/book/receipt")
		p.open("/b/gangnam")
		p.see("언제 갈까요?")
		if p.sees("바꿀 예약:") {
			t.Error("the first tab still exchanges the stay, which is refunded")
		}
	})

	t.Run("with an ended session", func(t *testing.T) {
		p, _, _ := bought(t, 4, 20000, "01055550013", "카드", at)
		choose(p, 4, at.Add(2*time.Hour))
		value[bool](p, `fetch("/api/account/logout", {method: "POST"}).then(r => r.ok)`)
		p.press("바꾸기")
		p.at("/login")
		p.identify(s, "01055550013")
		p.at(summaryOf(4, at.Add(2*time.Hour)))
		p.press("바꾸기")
		p.see("예약을 바꿨어요")
	})

	t.Run("at another price", func(t *testing.T) {
		p, _, order := bought(t, 3, 22000, "01055550003", "카드", at)
		choose(p, 2, at)
		p.see("새 예약 25,000원을 결제하면 지금 예약 22,000원은 모두 환불돼요")
		p.look("exchange-other", phone, narrow)
		p.on(phone).press("바꾸고 결제하기")
		p.at("/book/contact")
		other := (&buyer{page: p, s: s}).tab("")
		other.open(summaryOf(2, at))
		other.see("예약하고 결제하기") // the time that the browser holds is not shown as taken
		p.introduce("01055550003")
		p.at("/book/pay")
		p.pay(s, "카드")
		p.at("/book/receipt")
		refunded(t, order, 22000)
		p.open("/my")
		p.see("2번 룸", "25,000원")
	})

	t.Run("of a deposit", func(t *testing.T) {
		p, _, order := bought(t, 4, 20000, "01055550004", "가상계좌", at)
		choose(p, 5, at)
		p.see("어디로 돌려드릴까요?")
		p.press("바꾸고 결제하기")
		p.see("은행을 골라 주세요.")
		value[bool](p, `(() => { const b = document.getElementById("bank"); b.value = "92"; b.dispatchEvent(new Event("change")); return true })()`)
		p.fill("계좌번호", "100012345678")
		p.fill("예금주", "홍길동")
		p.press("바꾸고 결제하기")
		p.at("/book/contact")
		p.introduce("01055550004")
		p.at("/book/pay")
		p.pay(s, "카드")
		p.at("/book/receipt")
		refunded(t, order, 20000)
	})

	t.Run("given up", func(t *testing.T) {
		p, _, _ := bought(t, 6, 13000, "01055550006", "카드", at)
		choose(p, 6, at.Add(3*time.Hour))
		p.press("바꾸지 않고 돌아가기")
		p.at("/my")
		p.open(summaryOf(6, at.Add(3*time.Hour)))
		p.see("예약하고 결제하기")
		if p.sees("이렇게 바꿀까요?") {
			t.Error("the summary still offers the exchange")
		}
	})
}

// dayAfterAt returns an hour of tomorrow in the branch's time zone.
func dayAfterAt(hour int) time.Time {
	_, midnight := dayAfter()
	return midnight.Add(time.Duration(hour) * time.Hour)
}

// returnedBy returns the won of an order that the provider has returned.
func returnedBy(t *testing.T, s *world.Stack, order string) (won int) {
	t.Helper()
	var state struct {
		Payments []struct {
			Total   int `json:"totalAmount"`
			Balance int `json:"balanceAmount"`
		} `json:"payments"`
	}
	getJSON(t, s.SandboxAt+"/sandbox/payments?orderId="+order, &state)
	for _, p := range state.Payments {
		won += p.Total - p.Balance
	}
	return won
}
