package e2e

import (
	"testing"

	"github.com/yeolda/yeolda/firmware-sim/proof/world"
	"github.com/yeolda/yeolda/firmware-sim/testkit/chromium"
)

// TestConsoleOpening opens a branch from nothing to a paid, opened door, without file or shell: the headquarters add it, paste
// its rooms, enrol a simulated Pi, record the PINs, open each door and put the rooms on sale; a guest buys and enters.
func TestConsoleOpening(t *testing.T) {
	t.Parallel()
	chromium.Need(t)
	s := startStack(t, company)
	p := console(t, s, "hq", "hq-demo")
	p.open("/console/overview")
	p.press("지점 추가")
	p.fill("지점 코드", "sinchon")
	p.fill("한글 이름", "열다 신촌점")
	p.fill("영문 이름", "Yeolda Sinchon")
	p.press("지점 만들기")
	p.at("/console/sinchon/opening")
	p.see("개점 준비", "룸 0개", "연결 끊김")
	p.survey("console-opening-empty")
	p.on(desktop).press("표에서 붙여넣기")
	p.fill("룸 목록", "1, 침대, Gold, , , 15000\n룸 둘")
	p.see("읽을 수 없는 줄: 룸 둘")
	p.fill("룸 목록", "1, 침대, Gold, , , 15000\n2번, 안마 의자, , , , 12000")
	p.see("안마 의자", "12,000원")
	p.survey("console-opening-paste")
	p.on(desktop).press("룸 저장")
	p.see("룸 2개를 저장했어요")

	p.press("새 장치 등록", "등록 명령 만들기")
	p.see("장치를 기다리고 있어요")
	pi := newPage(t, s.SimAt)
	pi.open("/?branch=gangnam")
	pi.press("새 파이")
	pi.fill("콘솔의 등록 명령", value[string](p, `document.querySelector("dialog[open] pre").innerText`))
	pi.press("등록")
	pi.wait("the new branch", `new URLSearchParams(location.search).get("branch") === "sinchon"`)
	p.see("등록됨")
	p.press("닫기")
	p.wait("both rooms and the front door are connected", `document.querySelector(".opening").innerText.split("문 연결됨").length === 4`)
	p.see("연결됨")

	for _, door := range []string{"현관문 1", "1번 룸", "2번 룸"} {
		p.press(door + " 문 비밀번호")
		p.fill("키패드 비밀번호", "471100")
		p.press("저장")
		p.wait("the PIN is stored", `!document.querySelector("dialog[open]")`)
		p.press(door + " 문 열기")
		p.see("지금 열까요") // asks first
		p.press("문 열기")
		p.see("열렸어요")
		p.press("닫기")
	}
	p.wait("each door was opened", `document.querySelector(".opening").innerText.split("열어 봤어요").length === 4`)
	p.press("모두 판매 시작")
	p.see("룸 2개 중 2개 판매 중")
	p.survey("console-opening")

	guest := p.another(t).on(phone)
	guest.lastingSlot()
	guest.open("/")
	guest.press("열다 신촌점", "오늘")
	guest.press("2번 룸")
	buyAndEnter(s, guest)
}

// buyAndEnter buys the first available hour of the open room and opens its door.
func buyAndEnter(s *world.Stack, p *page) {
	p.firstStart()
	p.press("1시간")
	p.reserve()
	p.introduce("01012345678")
	p.pay(s, "카드")
	p.see("예약이 확정됐어요")
	p.press("열쇠 열기")
	p.see("지금 열 수 있어요")
	p.press("2번 룸 열기")
	p.see("문이 열렸어요")
}
