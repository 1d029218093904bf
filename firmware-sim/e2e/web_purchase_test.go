package e2e

import (
	"testing"

	"github.com/yeolda/yeolda/firmware-sim/internal/stack"
)

// choose takes a person from the first page to the form, with the first time that a room has to offer.
func (p *page) choose(room string) {
	p.t.Helper()
	p.open("/")
	p.press("열다 강남점")
	p.press("오늘")
	p.see("어느 룸에서 쉴까요?")
	p.press(room)
	p.see("몇 시에 시작할까요?")
	p.wait("a start", `document.querySelector("dialog .starts .chip:not(:disabled)")`)
	value[bool](p, `(document.querySelector("dialog .starts .chip:not(:disabled)").click(), true)`)
	p.see("얼마나 쉴까요?")
}

// reserve goes on to the form.
func (p *page) reserve() {
	p.t.Helper()
	p.press("원 예약하기")
	p.see("이렇게 예약할까요?")
	p.press("예약하고 결제하기")
	p.see("누구 이름으로 예약할까요?")
}

// introduce fills the form in and goes on to the payment.
func (p *page) introduce(mobile string) {
	p.t.Helper()
	p.fill("이름", "홍길동")
	p.fill("휴대폰 번호", mobile)
	p.press("모두 동의해요")
	p.press("결제하기")
	p.at("/book/pay")
	p.see("어떻게 결제할까요?")
}

func TestWebCardFromTheFirstPageToTheOpenDoor(t *testing.T) {
	t.Parallel()
	chromium(t)
	s := startStack(t, nil)
	p := newPage(t, s.Pages)
	p.open("/")
	p.see("어느 지점으로 갈까요?", "예약 가능")
	p.look("home")
	p.press("열다 강남점")
	p.see("언제 갈까요?")
	p.look("date")
	p.choose("2번 룸")
	p.look("picker", phone)
	p.press("1시간")
	p.press("원 예약하기")
	p.see("이렇게 예약할까요?", "25,000원")
	p.look("summary")
	p.press("예약하고 결제하기")
	p.see("누구 이름으로 예약할까요?", "자리를 맡아 두었어요")
	p.look("contact")
	p.introduce("01012345678")
	p.see("가상계좌")
	p.look("pay")
	p.press("카드")
	p.press("25,000원 결제하기")
	pay(p, s)
	p.see("예약이 확정됐어요", "25,000원", "010-****-5678")
	p.look("receipt")
	p.press("열쇠 열기")
	p.see("지금 열 수 있어요")
	p.look("key-open")
	p.press("현관문 열기")
	p.see("문이 열렸어요")
	p.look("key-opened")
	p.press("2번 룸 열기")
	p.see("문이 열렸어요")
}

// pay goes through the sandbox's payment window.
func pay(p *page, s *stack.Stack) {
	p.t.Helper()
	p.wait("payment window", `location.origin === `+quoted(s.SandboxAt))
	p.press("원 결제하기")
}
