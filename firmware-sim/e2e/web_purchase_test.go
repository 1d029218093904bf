package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	protocol "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/yeolda/yeolda/firmware-sim/proof/world"
	"github.com/yeolda/yeolda/firmware-sim/testkit/chromium"
)

// company holds fictitious values of the legal details in the footer.
var company = map[string]string{
	"YEOLDA_LEGAL_COMPANY":           "주식회사 열다",
	"YEOLDA_LEGAL_REPRESENTATIVE":    "홍길동",
	"YEOLDA_LEGAL_ADDRESS":           "서울특별시 강남구 가상대로 123",
	"YEOLDA_LEGAL_PHONE":             "02-0000-1000",
	"YEOLDA_LEGAL_EMAIL":             "help@yeolda.example",
	"YEOLDA_LEGAL_BUSINESS_NUMBER":   "000-00-00000",
	"YEOLDA_LEGAL_MAIL_ORDER_NUMBER": "제2026-서울강남-00000호",
}

// begin navigates from the first page to a room's sheet and selects the first available start.
func (p *page) begin(day, room string) {
	p.t.Helper()
	if day == "오늘" {
		p.lastingSlot()
	}
	p.open("/")
	p.press("열다 강남점", day)
	p.see("어느 룸에서 쉴까요?")
	p.press(room)
	p.firstStart()
}

// lastingSlot waits until the current slot, the first start of today, lasts until a guest has held it.
func (p *page) lastingSlot() {
	p.t.Helper()
	p.wait("a slot that lasts until it is held", `Date.now() % 600_000 < 500_000`)
}

// firstStart selects the first available start in the open sheet of a room.
func (p *page) firstStart() {
	p.t.Helper()
	p.see("몇 시에 시작할까요?")
	p.taken()
	p.wait("a start", `document.querySelector("dialog .starts .chip:not(:disabled)")`)
	p.press(p.nameOf(`document.querySelector("dialog .starts .chip:not(:disabled)")`))
	p.see("얼마나 쉴까요?")
}

// reserve continues to the contact form.
func (p *page) reserve() {
	p.t.Helper()
	p.press("원 예약하기")
	p.see("이렇게 예약할까요?")
	p.press("예약하고 결제하기")
	p.see("누구 이름으로 예약할까요?", "자리를 맡아 드려요")
}

// introduce fills in the contact form and continues to the payment.
func (p *page) introduce(mobile string) {
	p.t.Helper()
	p.fill("이름", "홍길동")
	p.fill("휴대폰 번호", mobile)
	p.press("모두 동의해요", "결제 수단 고르기")
	p.at("/book/pay")
	p.see("어떻게 결제할까요?", "가상계좌")
}

// order returns the order that the tab is about to pay, and its amount.
func (p *page) order() (id string, amount int) {
	p.t.Helper()
	return value[string](p, `JSON.parse(sessionStorage.getItem("purchase")).orderId`),
		value[int](p, `fetch("/api/v2/hold").then(r => r.json()).then(r => r.data.amount)`)
}

// payInApp pays an order in the app of a card and returns the address that the app opens then, in whichever tab or browser.
func (p *page) payInApp(s *world.Stack, order string, amount int) (confirm string) {
	p.t.Helper()
	var payment struct{ PaymentKey string }
	postJSON(p.t, s.SandboxAt+"/sandbox/payments", map[string]any{"orderId": order, "amount": amount, "method": "카드"}, &payment)
	return fmt.Sprintf("/book/confirm?paymentKey=%s&amount=%d&orderId=%s", payment.PaymentKey, amount, order)
}

// pay selects a method and completes the sandbox's payment window.
func (p *page) pay(s *world.Stack, method string) {
	p.t.Helper()
	p.press(method, "원 결제하기")
	p.wait("the payment window", `location.origin === `+quoted(s.SandboxAt))
	p.press("원 결제하기")
}

func TestWebPurchase(t *testing.T) {
	t.Parallel()
	chromium.Need(t)
	s := startStack(t, company)
	first := newPage(t, s.Pages)
	story := func(name string, tell func(t *testing.T, p *page)) {
		t.Run(name, func(t *testing.T) { tell(t, first.another(t)) })
	}

	story("by card to the open door", func(t *testing.T, p *page) {
		p.open("/")
		p.see("어느 지점으로 갈까요?", "예약 가능", "주식회사 열다")
		p.look("home")
		p.press("열다 강남점")
		p.see("언제 갈까요?")
		p.look("date")
		p.press("오늘")
		p.see("어느 룸에서 쉴까요?")
		p.look("rooms")
		p.begin("오늘", "2번 룸")
		p.look("picker", phone, narrow)
		p.on(screen{"landscape", 568, 320})
		if hidden := value[string](p, `[...document.querySelectorAll("dialog a[href], dialog button")].filter(e => !e.disabled && (e.focus(), true)).filter(e => {
			const r = e.getBoundingClientRect();
			return !e.contains(document.elementFromPoint(r.x + r.width / 2, r.y + r.height / 2)) && e === document.activeElement;
		}).map(e => e.innerText).join()`); hidden != "" {
			t.Errorf("with the focus, %s is covered", hidden)
		}
		p.on(phone).press("1시간")
		if !value[bool](p, `document.activeElement.matches(".lengths .chip[aria-pressed=true]")`) {
			t.Error("the focus was lost with the press")
		}
		p.press("원 예약하기")
		p.see("이렇게 예약할까요?", "25,000원")
		p.look("summary", phone, desktop, narrow)
		p.on(phone).press("예약하고 결제하기")
		p.see("누구 이름으로 예약할까요?", "자리를 맡아 드려요")
		p.look("contact", phone, desktop, narrow)
		p.on(phone).press("결제 수단 고르기")
		p.see("이름을 적어 주세요.", "휴대폰 번호를 확인해 주세요.")
		p.look("contact-wrong", phone)
		p.on(phone).fill("휴대폰 번호", "+1 212 555 0100") // the key must come by e-mail then
		p.press("결제 수단 고르기")
		p.see("열쇠를 받을 이메일을 적어 주세요.")
		p.fill("이름", "홍길동")
		p.fill("휴대폰 번호", "\u202a０１０–１２３４–５６７８\u202c") // as an address book or a keyboard writes it
		p.keys(kb.Enter)
		p.see("필수 약관에 동의해 주세요.")
		if number := value[string](p, `document.getElementById("mobile").value`); number != "010-1234-5678" {
			t.Errorf("the number is %q", number)
		}
		p.introduce("01012345678")
		p.look("pay", phone, desktop, narrow)
		p.on(phone).pay(s, "카드")
		p.see("예약이 확정됐어요", "25,000원", "010-****-5678", "이 화면에서도 바로 열 수 있어요")
		p.look("receipt", phone, desktop, narrow)
		p.onPaper("receipt", "25,000원 · 카드", "사업자등록번호 000-00-00000", "대표 홍길동")
		p.on(phone).press("열쇠 열기")
		p.see("지금 열 수 있어요", "남았어요")
		p.look("key-open", phone, desktop, narrow)
		p.on(phone).press("현관문 열기")
		p.see("문이 열렸어요")
		p.look("key-opened")
		p.press("2번 룸 열기")
		p.see("문이 열렸어요")
		opened := actuations(t, s, "gangnam")
		if len(opened) != 3 {
			t.Errorf("%d locks were driven, want both front doors and the room: %+v", len(opened), opened)
		}
	})

	story("by virtual account", func(t *testing.T, p *page) {
		p.begin("내일", "3번 룸")
		p.reserve()
		p.introduce("01023456789")
		p.pay(s, "가상계좌")
		p.see("입금하면 예약이 확정돼요", "우리은행", "안에 입금해 주세요")
		p.look("account", phone, desktop, narrow)
		p.on(phone).open("/")
		p.press("방금 예약하신 내역이 있어요") // the guest left the page, but the account number is still available
		p.see("입금하면 예약이 확정돼요")
		p.tabTo("복사")
		postJSON(t, s.SandboxAt+"/sandbox/deposits", map[string]string{"orderId": p.lastOrder(s)}, nil)
		p.see("예약이 확정됐어요", "010-****-6789 앞으로 열쇠 링크를 보냈어요")
		p.headed("예약이 확정됐어요")
		p.press("번호 고치기")
		p.look("receipt-correction", phone, narrow)
		p.on(phone).fill("휴대폰 번호", "0102345678") // a digit is missing
		p.press("열쇠 다시 보내기")
		p.see("휴대폰 번호를 확인해 주세요.")
		p.fill("휴대폰 번호", "01023456780")
		p.press("열쇠 다시 보내기")
		p.see("번호를 저장했어요.", "010-****-6780 앞으로 열쇠 링크를 보냈어요")
		value[bool](p, `(ask => { window.fetch = async (...a) => { const r = await ask(...a); if (String(a[0]).endsWith("/receipt/contact")) { window.fetch = ask; throw new TypeError("the answer is lost") } return r }; return true })(fetch)`)
		p.fill("휴대폰 번호", "01023456781")
		p.press("열쇠 다시 보내기")
		p.see("010-****-6781 앞으로 열쇠 링크를", "번호를 저장했어요.")
		p.press("열쇠 열기") // the new one
		p.see("부터 열 수 있어요", "뒤예요")
		p.look("key-before")
		p.wait("the answer of the service", `[...document.querySelectorAll("button[name=door]")].every(b => b.disabled)`)
		// Companions can be invited and the stay can be extended before it begins. No door opens, and there is no stay to end.
		if enabled := p.enabled("button[name=door], #end button"); enabled != "" {
			t.Errorf("%q can be pressed a day before the reservation, want no door and no early end", enabled)
		}
	})

	story("with a number outside Korea", func(t *testing.T, p *page) {
		p.begin("내일", "5번 룸")
		p.reserve()
		p.fill("이메일 (선택)", "jane@example.com")
		p.introduce("+1 212 555 0100")
		if to := value[string](p, `document.querySelector(".sent-to b").innerText`); to != "jane@example.com" {
			t.Errorf("the payment screen sends the key to %s, want the e-mail address", to)
		}
		p.pay(s, "카드")
		p.see("예약이 확정됐어요", "j***@example.com 앞으로 열쇠 링크를")
		if p.sees("0100") {
			t.Error("the receipt names the number, which receives nothing")
		}
	})

	story("refused by the card company, then paid", func(t *testing.T, p *page) {
		p.expect("400 (Bad Request)")
		p.begin("내일", "5번 룸")
		p.reserve()
		p.introduce("01034567890")
		p.press("카드", "원 결제하기")
		p.wait("the payment window", `location.origin === `+quoted(s.SandboxAt))
		p.press("승인 단계에서 한도 초과로 거절", "원 결제하기")
		p.see("결제를 마치지 못했어요", "다시 결제하기")
		p.look("failed", phone, desktop, narrow)
		p.on(phone).press("다시 결제하기")
		p.at("/book/pay")
		p.see("어떻게 결제할까요?", "가상계좌")
		p.pay(s, "간편결제")
		p.see("예약이 확정됐어요", "간편결제")
	})

	story("closed payment window, and back to choosing", func(t *testing.T, p *page) {
		p.expect("401 (Unauthorized)")
		p.begin("내일", "4번 룸")
		p.reserve()
		p.introduce("01045678901")
		p.press("카드", "원 결제하기")
		p.wait("the payment window", `location.origin === `+quoted(s.SandboxAt))
		p.press("결제 취소하고 돌아가기")
		p.see("결제를 취소하셨어요", "자리를 맡아 드려요")
		p.press("예약 그만두기")
		p.at("/b/gangnam")
		p.see("언제 갈까요?")
		p.notHeld()
	})

	story("closed payment window after the hold", func(t *testing.T, p *page) {
		p.expect("401 (Unauthorized)")
		p.begin("내일", "4번 룸")
		p.reserve()
		p.introduce("01045678902")
		p.see("카드")
		p.wait("the end of the hold", `fetch("/api/reservation", {method: "DELETE"}).then(r => window.ended = r.ok) && window.ended`)
		p.press("카드", "원 결제하기")
		p.wait("the payment window", `location.origin === `+quoted(s.SandboxAt))
		p.press("결제 취소하고 돌아가기")
		p.see("결제를 취소하셨어요", "결제되지 않았어요")
		p.settle()
		if p.sees("맡아") {
			t.Error("the page says that the room is held, which it is not")
		}
		p.press("다시 결제하기")
		p.see("맡아 둔 시간이 지났어요", "다시 맡기")
	})

	story("back gives the room back", func(t *testing.T, p *page) {
		p.expect("401 (Unauthorized)")
		p.begin("내일", "1번 룸")
		p.reserve()
		p.back()
		p.see("이렇게 예약할까요?")
		p.notHeld()
		p.back()
		p.see("몇 시에 시작할까요?") // the sheet is part of the address
		p.back()
		p.wait("the sheet is closed", `!document.querySelector("dialog[open]")`)
		p.see("어느 룸에서 쉴까요?")
	})

	story("back from the payment keeps it", func(t *testing.T, p *page) {
		p.expect("401 (Unauthorized)")
		p.begin("내일", "1번 룸")
		p.reserve()
		p.introduce("01056789012")
		p.back()
		p.at("/book/contact")
		p.see("누구 이름으로 예약할까요?", "자리를 맡아 드려요")
		if name := value[string](p, `document.getElementById("name").value`); name != "홍길동" {
			t.Errorf("the name was lost: %q", name)
		}
		p.press("예약 그만두기")
		p.see("언제 갈까요?")
		p.notHeld()
	})

	story("network lost while confirming", func(t *testing.T, p *page) {
		p.expect("ERR_INTERNET_DISCONNECTED")
		p.begin("내일", "6번 룸")
		p.reserve()
		p.introduce("01067890123")
		p.press("카드", "원 결제하기")
		p.wait("the payment window", `location.origin === `+quoted(s.SandboxAt))
		p.offline(true, s.API+"/payment/confirm")
		p.press("원 결제하기")
		p.see("결제를 확인하고 있어요", "인터넷 연결이 끊겼어요")
		p.look("confirm-lost")
		p.do("reload", chromedp.Reload())
		p.see("인터넷 연결이 끊겼어요")
		p.offline(false)
		p.see("예약이 확정됐어요")
		if n := len(payments(t, s, p.lastOrder(s))); n != 1 {
			t.Errorf("%d payments, want 1", n)
		}
	})

	story("the payment app leads back into another browser", func(t *testing.T, p *page) {
		p.expect("ERR_INTERNET_DISCONNECTED")
		other := first.another(t)
		other.expect("401 (Unauthorized)")
		p.begin("내일", "3번 룸")
		p.reserve()
		p.introduce("01067890124")
		p.press("카드", "원 결제하기")
		p.wait("the payment window", `location.origin === `+quoted(s.SandboxAt))
		p.offline(true, s.API+"/payment/confirm")
		p.press("원 결제하기")
		p.see("결제를 확인하고 있어요")
		other.open(value[string](p, `location.href`))
		other.see("예약이 확정됐어요", "010-****-0124 앞으로 열쇠 링크를 보내 드려요")
		if other.sees("이 화면에서") {
			t.Error("the page says that it opens the key, but it has none")
		}
		other.look("receipt-elsewhere", phone)
	})

	story("the provider is slow to say what it did", func(t *testing.T, p *page) {
		p.expect("503 (Service Unavailable)")
		p.patience = time.Minute
		p.begin("내일", "2번 룸")
		p.reserve()
		p.introduce("01078901234")
		p.press("카드", "원 결제하기")
		p.wait("the payment window", `location.origin === `+quoted(s.SandboxAt))
		for target, times := range map[string]int{"confirm": 1, "get": 2} {
			kind := map[string]string{"confirm": "drop-after-commit", "get": "error"}[target]
			postJSON(t, s.SandboxAt+"/sandbox/faults", map[string]any{"target": target, "kind": kind, "times": times, "status": 500}, nil)
		}
		p.press("원 결제하기")
		p.see("결제 결과를 확인하고 있어요")
		p.look("confirm-pending", phone)
		p.see("예약이 확정됐어요")
		requestJSON(t, http.MethodDelete, s.SandboxAt+"/sandbox/faults", nil, nil)
	})

	story("two people at one slot", func(t *testing.T, p *page) {
		p.expect("409 (Conflict)")
		other := first.another(t)
		other.expect("401 (Unauthorized)")
		p.begin("내일", "4번 룸")
		p.press("원 예약하기")
		p.see("이렇게 예약할까요?")
		other.begin("내일", "4번 룸")
		other.reserve()
		p.press("예약하고 결제하기")
		p.see("방금 다른 분이 예약했어요", "어느 룸에서 쉴까요?")
		p.look("taken")
		other.press("예약 그만두기")
		other.see("언제 갈까요?")
		other.notHeld() // a tab that is closed before may take the request with it
	})

	story("in English", func(t *testing.T, p *page) {
		p.slow(700*time.Millisecond, -1) // so that data arrive later than what browsers forgive after a press
		p.open("/")
		p.press("English")
		p.see("Which branch would you like?", "Yeolda Gangnam")
		p.look("home-en", phone)
		p.press("Yeolda Gangnam")
		p.see("which day?")
		// Each label is one line, so that the days of a week have one height.
		if rows := value[int](p, `new Set([...document.querySelectorAll(".day-chip")].map(c => c.offsetHeight)).size`); rows != 1 {
			t.Errorf("the chips of the days have %d heights, want 1", rows)
		}
		p.press(currentSlot().In(seoul).AddDate(0, 0, 1).Format("Mon"))
		p.see("Which room would you like?")
		p.look("rooms-en")
		p.press("Room 5")
		p.see("When would you like to start?")
		p.taken()
		p.press("20:00", "20:10", "Book for") // the hour, the start
		p.see("Does this look right?")
		p.press("한국어")
		p.see("이렇게 예약할까요?")
		p.press("English")
		p.see("Does this look right?")
		p.look("summary-en", phone)
		p.press("Book and pay")
		p.see("Your details", "We are holding this room for")
		p.look("contact-en", phone)
		if lang := value[string](p, `document.documentElement.lang`); lang != "en" {
			t.Errorf("the page says that it is written in %q", lang)
		}
		p.fill("Name", "Jane Doe")
		p.fill("Mobile number", "01089012345")
		p.press("I agree to everything", "Choose how to pay")
		p.see("How would you like to pay?", "가상계좌")
		p.press("카드", "Pay ₩")
		p.wait("the payment window", `location.origin === `+quoted(s.SandboxAt))
		p.press("원 결제하기")
		p.see("Your booking is confirmed", "Card")
		p.look("receipt-en", phone)
		p.press("Open my key")
		p.see("The doors open at", "Open the entrance")
		p.look("key-en", phone)
	})

	story("with the keyboard alone", func(t *testing.T, p *page) {
		p.on(desktop).open("/")
		p.taken()
		p.tabTo("본문으로 건너뛰기")
		p.keys(kb.Enter)
		p.wait("the focus is past the header", `document.activeElement.id === "main"`)
		p.tabTo("열다 강남점")
		p.keys(kb.Enter)
		p.see("언제 갈까요?")
		p.tabTo(currentSlot().In(seoul).AddDate(0, 0, 1).Format("1월 2일"))
		p.open("/b/gangnam/" + tomorrow())
		p.see("어느 룸에서 쉴까요?")
		p.wait("the timetable", `document.querySelector("td.free")`)
		value[bool](p, `(document.querySelector("td[tabindex='0']").focus(), true)`)
		for range 3 {
			p.keys(kb.ArrowDown)
		}
		for range 5 {
			p.keys(kb.ArrowRight)
		}
		p.keys(kb.Enter)
		p.see("1시간", "원 예약하기")
		for range 3 {
			p.keys(kb.ArrowRight, chromedp.KeyModifiers(8)) // Shift
		}
		p.look("timetable-chosen", desktop)
		p.tabTo("원 예약하기")
		p.keys(kb.Enter)
		const atHeading = `document.activeElement.matches("h1")`
		p.see("이렇게 예약할까요?")
		p.wait("the focus on the heading", atHeading)
		p.tabTo("예약하고 결제하기")
		p.keys(kb.Enter)
		p.see("누구 이름으로 예약할까요?")
		p.wait("the focus on the heading", atHeading)
		p.tabTo("이름")
		p.keys("김자판")
		p.keys(kb.Tab)
		p.keys("01090123456")
		p.tabTo("모두 동의해요")
		p.keys(" ")
		p.tabTo("결제 수단 고르기")
		p.keys(kb.Enter)
		p.see("어떻게 결제할까요?", "가상계좌")
		p.tabTo("원 결제하기")
		p.keys(kb.Enter)
		p.wait("the payment window", `location.origin === `+quoted(s.SandboxAt))
		p.press("원 결제하기")
		p.see("예약이 확정됐어요", "010-****-3456")
	})

	story("with motion turned down", func(t *testing.T, p *page) {
		p.media("prefers-reduced-motion", "reduce")
		p.open("/b/gangnam/" + tomorrow() + "?room=5")
		p.see("몇 시에 시작할까요?")
		if moving := value[int](p, `document.getAnimations().filter(a => a.effect.getComputedTiming().duration < 4000).length`); moving > 0 {
			t.Errorf("%d things move", moving)
		}
	})

	story("in colours of the system", func(t *testing.T, p *page) {
		p.media("forced-colors", "active")
		differ := func(what, chosen, other string) {
			t.Helper()
			p.wait(what, `document.querySelector(`+quoted(chosen)+`)`)
			if value[bool](p, `(of => of(`+quoted(chosen)+`) === of(`+quoted(other)+`))(q => getComputedStyle(document.querySelector(q)).backgroundColor)`) {
				t.Errorf("%s looks like one that is not chosen", what)
			}
		}
		p.open("/b/gangnam/" + tomorrow() + "?room=5")
		p.see("몇 시에 시작할까요?")
		value[bool](p, `(document.querySelector("dialog .starts .chip:not(:disabled)").click(), true)`)
		differ("the hour", ".hours [aria-pressed=true]", ".hours [aria-pressed=false]")
		differ("the start", ".starts [aria-pressed=true]", ".starts [aria-pressed=false]")
		differ("the length", ".lengths [aria-pressed=true]", ".lengths [aria-pressed=false]")
		if value[string](p, `getComputedStyle(document.querySelector("dialog .actions .button")).borderTopStyle`) != "solid" {
			t.Error("the button has no border")
		}
		p.on(desktop).open("/b/gangnam/" + tomorrow())
		p.wait("the timetable", `document.querySelector("td.free[tabindex='0']")`)
		value[bool](p, `(document.querySelector("td[tabindex='0']").focus(), true)`)
		p.keys(kb.ArrowRight)
		p.keys(kb.Enter)
		differ("the slot", "td.selected", "td.free:not(.selected)")
	})

	story("with letters twice as large", func(t *testing.T, p *page) {
		for _, path := range []string{"/", "/b/gangnam", "/b/gangnam/" + tomorrow(), "/b/hongdae/" + tomorrow() + "/1/1000-1100", "/login", "/terms"} {
			p.open(path)
			p.wait("the screen", `document.querySelector("h1") && !document.querySelector(".loading")`)
			p.enlarge(200)
			p.look("large"+strings.ReplaceAll(path, "/", "-"), phone)
		}
	})
}

// headed waits until the heading of the screen has the focus.
func (p *page) headed(heading string) {
	p.t.Helper()
	p.wait("the focus on the heading "+heading, `document.activeElement.matches("h1") && document.activeElement.innerText === `+quoted(heading))
}

// tabTo presses the tab key until the element with the given name has the focus.
func (p *page) tabTo(name string) {
	p.t.Helper()
	const focused = `(() => { const e = document.activeElement; return !e.matches("a, button, input, select, summary, td") ? "" : ((e.labels?.[0]?.innerText || e.getAttribute("aria-label") || e.innerText || "").replace(/\s+/g, " ")) })()`
	for range 80 {
		if strings.Contains(value[string](p, focused), name) {
			if !value[bool](p, `(() => { const r = document.activeElement.getBoundingClientRect(); const hit = document.elementFromPoint(r.x + r.width / 2, r.y + r.height / 2); return !hit || document.activeElement.contains(hit) || hit.contains(document.activeElement) })()`) {
				p.t.Errorf("the focus on %q is hidden behind something", name)
			}
			return
		}
		p.keys(kb.Tab)
	}
	p.t.Fatalf("%q is not reached with the tab key", name)
}

// notHeld waits until this browser has no hold.
func (p *page) notHeld() {
	p.t.Helper()
	p.wait("the room is given back", `fetch("/api/v2/hold").then(r => window.held = r.status) && window.held === 401`)
}

// lastOrder returns the id of the newest order at the provider.
func (p *page) lastOrder(s *world.Stack) string {
	p.t.Helper()
	all := payments(p.t, s, "")
	return all[len(all)-1].OrderID
}

type payment struct {
	OrderID string `json:"orderId"`
	Status  string `json:"status"`

	BalanceAmount int `json:"balanceAmount"`
}

func payments(t testing.TB, s *world.Stack, order string) []payment {
	t.Helper()
	var list struct {
		Payments []payment `json:"payments"`
	}
	getJSON(t, s.SandboxAt+"/sandbox/payments?orderId="+url.QueryEscape(order), &list)
	return list.Payments
}

// onPaper checks that a printed page, or one saved as PDF, is one sheet with the given texts, and that nothing on it can only be
// pressed. It has no key: it is for the accounting of a company.
func (p *page) onPaper(name string, texts ...string) {
	p.t.Helper()
	sheet, err := chromedp.Call(p.ctx, protocol.PrintToPDF, protocol.PrintToPDFParams{})
	if err != nil {
		p.t.Fatal(err)
	}
	if dir := os.Getenv("SCREENSHOTS"); dir != "" {
		if err := os.WriteFile(filepath.Join(dir, name+".pdf"), sheet.Data, 0o644); err != nil {
			p.t.Fatal(err)
		}
	}
	if n := len(regexp.MustCompile(`/Type /Page\b`).FindAll(sheet.Data, -1)); n != 1 {
		p.t.Errorf("%s has %d sheets, want 1", name, n)
	}
	if bytes.Contains(sheet.Data, []byte("/k/")) {
		p.t.Errorf("%s on paper has the link of the key", name)
	}
	p.paper("print")
	defer p.paper("")
	p.see(texts...)
	if idle := value[string](p, `[...document.querySelectorAll("button, input, summary, nav, .button, [role=timer]")].filter(e => e.checkVisibility()).map(e => e.outerHTML.slice(0, 80)).join("\n")`); idle != "" {
		p.t.Errorf("%s on paper has\n%s", name, idle)
	}
}

// tomorrow returns the next day in Seoul as YYYY-MM-DD.
func tomorrow() string {
	return currentSlot().In(seoul).AddDate(0, 0, 1).Format("2006-01-02")
}

var seoul = time.FixedZone("KST", 9*3600)

// TestWebCopy: an app's own browser may have no clipboard, or refuse it. The page then shows what to copy by hand and does not say that
// the account number was copied.
func TestWebCopy(t *testing.T) {
	t.Parallel()
	chromium.Need(t)
	s := startStack(t, company)
	p := newPage(t, s.Pages)
	p.expect("401 (Unauthorized)")
	p.begin("오늘", "2번 룸")
	p.press("1시간")
	p.reserve()
	p.introduce("010-5656-7878")
	p.pay(s, "가상계좌")
	p.at("/book/receipt")
	p.see("입금하면 예약이 확정돼요")
	number := value[string](p, `document.querySelector(".account .number").innerText.trim()`)
	value[bool](p, `(window.prompt = (_, text) => { window.byHand = text; }, true)`) // a dialog would stop the page
	for _, clipboard := range []string{`undefined`, `{ writeText: () => Promise.reject(new DOMException("denied", "NotAllowedError")) }`} {
		value[bool](p, `(window.byHand = "", Object.defineProperty(navigator, "clipboard", { value: `+clipboard+`, configurable: true }), true)`)
		p.press("복사")
		p.wait("the number to copy by hand", `window.byHand === `+quoted(number))
		if p.sees("복사했어요") {
			t.Errorf("the page says that the number was copied, with the clipboard %s", clipboard)
		}
	}
	value[bool](p, `(Object.defineProperty(navigator, "clipboard", { value: { writeText: async text => { window.pasted = text; } } }), true)`)
	p.press("복사")
	p.see("복사했어요")
	p.wait("the copied number", `window.pasted === `+quoted(number))
}

// TestWebFailureTextOfALink: the provider's message is shown for the order of this tab only. Any site can link to the page with a text
// of its own, such as another account to pay to.
func TestWebFailureTextOfALink(t *testing.T) {
	t.Parallel()
	chromium.Need(t)
	s := startStack(t, company)
	p := newPage(t, s.Pages)
	p.expect("401 (Unauthorized)")
	fail := func(code, order string) {
		p.open("/book/fail?" + url.Values{"code": {code}, "message": {"우리은행 1002-123-456789로 보내 주세요"}, "orderId": {order}}.Encode())
		p.see("결제를 마치지 못했어요")
	}
	const order = "ord-20261129-abcd"
	p.open("/terms")
	for _, c := range []struct{ code, own, linked string }{{"E1002-123-456789", "", ""}, {"E1002-123-456789", "", order}, {"E1002-123-456789", order, order + "x"}} {
		value[bool](p, `(sessionStorage.setItem("purchase", JSON.stringify({ branch: "", room: "", start: 0, end: 0, name: "", mobile: "", email: "", consents: [], orderId: `+quoted(c.own)+` })), true)`)
		fail(c.code, c.linked)
		if p.sees("123-456789") {
			t.Errorf("the page shows the text of a link to order %q while the tab has order %q", c.linked, c.own)
		}
	}
	fail("BANK_MAINTENANCE_2", order)
	p.see("우리은행 1002-123-456789로 보내 주세요", "BANK_MAINTENANCE_2")
}
