package e2e

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/yeolda/yeolda/firmware-sim/proof/world"
	"github.com/yeolda/yeolda/firmware-sim/testkit/chromium"
)

func TestWebAccount(t *testing.T) {
	t.Parallel()
	chromium.Need(t)
	settings := maps.Clone(company)
	settings["YEOLDA_LOGIN_CODE_TTL"] = "15m"
	s := startStack(t, settings)
	first := newPage(t, s.Pages)
	story := func(name string, tell func(t *testing.T, p *page)) {
		t.Run(name, func(t *testing.T) { tell(t, first.another(t)) })
	}

	story("log in, open the key, cancel a card payment", func(t *testing.T, p *page) {
		p.expect("401 (Unauthorized)")
		const mobile = "01012341234"
		newBrowser(t, s).purchase(s, "gangnam", 1, 30000, mobile, "카드", currentSlot().Add(26*time.Hour))
		newBrowser(t, s).purchase(s, "gangnam", 3, 22000, mobile, "카드", currentSlot())
		p.open("/my")
		p.at("/login")
		p.see("예약을 확인해 볼게요")
		p.look("login", phone, desktop, narrow)
		p.on(phone)
		p.logIn(s, mobile)
		p.see("내 예약", "결제 완료", "시작 30분 전이 지나 취소할 수 없어요")
		p.look("my", phone, desktop, narrow)
		p.on(phone).press("열쇠 열기")
		p.see("열 수 있어요", "3번 룸")
		p.back()
		p.see("내 예약", "1번 룸")
		p.press("예약 취소")
		p.see("예약을 취소할까요?", "30,000원")
		p.look("cancel", phone, desktop, narrow)
		p.on(phone).pressTwice("취소하기")
		p.see("취소 이유를 골라 주세요.")
		if at := value[string](p, `location.pathname`); !strings.HasSuffix(at, "/cancel") {
			t.Errorf("the second press leads to %s", at)
		}
		p.press("일정이 바뀌었어요", "취소하기")
		p.see("정말 취소할까요?")
		p.look("cancel-ask", phone, narrow)
		p.on(phone).press("그대로 두기")
		p.wait("the question is gone", `!document.querySelector("dialog[open]")`)
		p.press("취소하기")
		p.see("정말 취소할까요?")
		p.press("취소하기")
		p.see("예약을 취소했어요", "30,000원")
		p.headed("예약을 취소했어요")
		p.look("canceled")
		p.press("내 예약")
		p.see("다가오는 예약", "지난 예약")
		p.press("지난 예약")
		p.see("취소됨")
		p.press("로그아웃")
		p.see("어느 지점으로 갈까요?")
		p.open("/my")
		p.at("/login")
	})

	story("give back a deposit", func(t *testing.T, p *page) {
		p.expect("401 (Unauthorized)")
		const mobile = "01022223333"
		order := newBrowser(t, s).purchase(s, "gangnam", 2, 25000, mobile, "가상계좌", currentSlot().Add(28*time.Hour))
		p.open("/login")
		p.logIn(s, mobile)
		p.see("입금 대기", "안에 입금해 주세요", "우리은행")
		p.look("my-waiting")
		postJSON(t, s.SandboxAt+"/sandbox/deposits", map[string]string{"orderId": order}, nil)
		p.see("결제 완료") // without a reload
		p.open("/my")  // the account number has left the screen, a shift that is meant
		p.press("예약 취소")
		p.see("어디로 돌려드릴까요?")
		p.press("기타", "취소하기")
		p.see("은행을 골라 주세요.", "계좌번호를 숫자로 적어 주세요.")
		p.look("cancel-account", phone, desktop, narrow)
		p.on(phone)
		p.fillAccount()
		p.press("취소하기")
		p.see("정말 취소할까요?")
		p.press("취소하기")
		p.see("예약을 취소했어요", "25,000원")
	})

	story("the refund changes while the question is open", func(t *testing.T, p *page) {
		p.expect("401 (Unauthorized)", "409 (Conflict)")
		const mobile = "01066667777"
		order := newBrowser(t, s).purchase(s, "gangnam", 1, 30000, mobile, "카드", currentSlot().Add(34*time.Hour))
		p.open("/login")
		p.logIn(s, mobile)
		p.press("예약 취소")
		p.see("30,000원")
		p.press("일정이 바뀌었어요", "취소하기")
		p.see("정말 취소할까요?")
		hq := newBrowser(t, s)
		hq.must("POST", "/admin/login", map[string]string{"id": "hq", "password": "hq-demo"}, nil)
		id := strings.Split(value[string](p, `location.pathname`), "/")[2]
		hq.must("POST", "/v2/admin/reservations/"+id+"/refunds", map[string]any{"amount": 5000, "reason": "소음"}, nil)
		p.press("취소하기")
		p.see("환불 금액이 바뀌었어요", "25,000원")
		p.press("취소하기")
		p.see("정말 취소할까요?")
		p.press("취소하기")
		p.see("예약을 취소했어요", "25,000원")
		if balance := payments(t, s, order)[0].BalanceAmount; balance != 0 {
			t.Errorf("the provider holds %d, want 0", balance)
		}
	})

	story("staff move the stay while its card is shown", func(t *testing.T, p *page) {
		p.expect("401 (Unauthorized)")
		const mobile = "01077778888"
		start := currentSlot().Add(36 * time.Hour)
		newBrowser(t, s).purchase(s, "gangnam", 1, 30000, mobile, "카드", start)
		p.open("/login")
		p.logIn(s, mobile)
		p.see("1번 룸")
		hq := newBrowser(t, s)
		hq.must("POST", "/admin/login", map[string]string{"id": "hq", "password": "hq-demo"}, nil)
		id := strings.Split(value[string](p, `document.querySelector('a[href$="/cancel"]').getAttribute("href")`), "/")[2]
		hq.must("PUT", "/admin/reservation/"+id, map[string]any{"room": "2", "startDateTime": wireTime(start), "endDateTime": wireTime(start.Add(time.Hour))}, nil)
		p.press("새로고침")
		p.see("2번 룸")
	})

	story("cancel a stay by card whose extension was paid by deposit", func(t *testing.T, p *page) {
		p.expect("401 (Unauthorized)")
		const mobile = "01055556666"
		start, b := currentSlot().Add(32*time.Hour), newBrowser(t, s)
		b.purchase(s, "gangnam", 5, 15000, mobile, "카드", start)
		var order struct {
			OrderID string
			Amount  int
		}
		b.must("POST", "/v2/keys/"+keyFor(t, s, mobile)+"/extension", map[string]string{"endDateTime": wireTime(start.Add(70 * time.Minute))}, &order)
		var payment struct{ PaymentKey string }
		postJSON(t, s.SandboxAt+"/sandbox/payments", map[string]any{"orderId": order.OrderID, "amount": order.Amount, "method": "가상계좌", "bank": "20"}, &payment)
		b.must("POST", "/payment/confirm", map[string]any{"paymentKey": payment.PaymentKey, "orderId": order.OrderID, "amount": order.Amount}, nil)
		postJSON(t, s.SandboxAt+"/sandbox/deposits", map[string]string{"orderId": order.OrderID}, nil)
		p.open("/login")
		p.logIn(s, mobile)
		p.see("결제 완료")
		p.wait("both parts of the stay", `document.querySelectorAll('a[href$="/cancel"]').length === 2`)
		p.open(value[string](p, `[...document.querySelectorAll('a[href$="/cancel"]')].map((a) => a.getAttribute("href")).sort()[0]`)) // the stay is older
		p.see("어디로 돌려드릴까요?", "18,000원")
		p.press("기타")
		p.fillAccount()
		p.press("취소하기")
		p.see("정말 취소할까요?")
		p.press("취소하기")
		p.see("예약을 취소했어요", "18,000원")
	})

	story("the session ends while the question is open", func(t *testing.T, p *page) {
		p.expect("401 (Unauthorized)")
		const mobile = "01055557777"
		newBrowser(t, s).purchase(s, "gangnam", 2, 25000, mobile, "카드", currentSlot().Add(34*time.Hour))
		p.open("/login")
		p.logIn(s, mobile)
		p.press("예약 취소")
		p.see("예약을 취소할까요?")
		value[bool](p, `fetch("/api/account/logout", {method: "POST"}).then(r => r.ok)`)
		back := value[string](p, `location.pathname`)
		p.press("일정이 바뀌었어요", "취소하기")
		p.see("정말 취소할까요?")
		p.press("취소하기")
		p.see("예약을 확인해 볼게요")
		if next := value[string](p, `new URLSearchParams(location.search).get("next")`); next != back {
			t.Errorf("the login leads on to %s, want %s", next, back)
		}
	})

	story("a wrong code, and a number nobody knows", func(t *testing.T, p *page) {
		p.expect("404 (Not Found)", "401 (Unauthorized)")
		newBrowser(t, s).purchase(s, "gangnam", 4, 20000, "01044445555", "카드", currentSlot().Add(30*time.Hour))
		p.open("/login")
		p.fill("휴대폰 번호", "0109999")
		p.press("인증번호 받기")
		p.see("휴대폰 번호를 확인해 주세요.")
		p.fill("휴대폰 번호", "01099998888")
		p.press("인증번호 받기")
		p.see("예약 내역이 없는 번호예요")
		p.fill("휴대폰 번호", "01044445555")
		p.press("인증번호 받기")
		p.see("인증번호를 적어 주세요")
		p.wait("the life of the code", `/1[45]:[0-5][0-9] 안에 적어 주세요/.test(document.body.innerText)`)
		p.fill("인증번호 6자리", "12")
		p.press("확인")
		p.see("6자리 숫자를 적어 주세요.")
		p.fill("인증번호 6자리", "000000")
		p.press("확인")
		p.see("인증번호가 맞지 않거나 만료됐어요.")
		p.look("code-wrong", phone, desktop, narrow)
		p.on(phone).press("번호 바꾸기", "이메일")
		p.fill("이메일", "nobody@example")
		p.press("인증번호 받기")
		p.see("이메일 주소를 확인해 주세요.")
	})
}

// fillAccount fills in the account for a refund.
func (p *page) fillAccount() {
	p.t.Helper()
	value[bool](p, `(() => { const b = document.getElementById("bank"); b.value = "92"; b.dispatchEvent(new Event("change")); return true })()`)
	p.fill("계좌번호", "100012345678")
	p.fill("예금주", "홍길동")
}

// logIn requests a code on the login screen and enters the received code.
func (p *page) logIn(s *world.Stack, mobile string) {
	p.t.Helper()
	p.identify(s, mobile)
	p.at("/my")
}

// identify logs in at the present page; the login leads back to where it was asked for.
func (p *page) identify(s *world.Stack, mobile string) {
	p.t.Helper()
	before := len(sent(p.t, s, mobile, codeVariable))
	p.fill("휴대폰 번호", mobile)
	p.press("인증번호 받기")
	p.see("인증번호를 적어 주세요", "안에 적어 주세요")
	p.fill("인증번호 6자리", sentAfter(p.t, s, mobile, codeVariable, before))
	p.press("확인")
}

// purchase buys an hour through the interface and returns the order.
func (b *browser) purchase(s *world.Stack, branch string, room, amount int, mobile, method string, start time.Time) string {
	b.t.Helper()
	b.hold("/reservation", branch, room, start, start.Add(time.Hour))
	var order struct {
		OrderID string `json:"orderId"`
	}
	b.must("POST", "/payment", map[string]any{"amount": amount, "name": "홍길동", "mobileNum": mobile}, &order)
	var payment struct {
		PaymentKey string `json:"paymentKey"`
	}
	postJSON(b.t, s.SandboxAt+"/sandbox/payments", map[string]any{"orderId": order.OrderID, "amount": amount, "method": method, "bank": "20"}, &payment)
	b.must("POST", "/payment/confirm", map[string]any{"paymentKey": payment.PaymentKey, "orderId": order.OrderID, "amount": amount}, nil)
	return order.OrderID
}

// TestWebLoginStaysOnSite: browsers read a backslash in an address as a slash, so a link with ?next=/\host must not lead to that host
// after the login.
func TestWebLoginStaysOnSite(t *testing.T) {
	t.Parallel()
	chromium.Need(t)
	s := startStack(t, company)
	const mobile = "01012349999"
	newBrowser(t, s).purchase(s, "gangnam", 1, 30000, mobile, "카드", currentSlot().Add(26*time.Hour))
	p := newPage(t, s.Pages)
	p.expect("401 (Unauthorized)", "404")
	p.open(`/login?next=/%5C` + strings.TrimPrefix(s.SandboxAt, "http://") + `/book/pay`)
	p.logIn(s, mobile)
	p.wait("the page after the login", `location.pathname !== "/login"`)
	if at := value[string](p, `location.href`); at != s.Pages+"/my" {
		t.Errorf("got %s after the login, want %s/my", at, s.Pages)
	}
}
