package e2e

import (
	"slices"
	"testing"
	"time"
)

// actions lists the enabled controls of a screen or of the drawer over it, except those that only change the view.
const actions = `[...(([...document.querySelectorAll("dialog[open]")].pop() || document.querySelector("main")).querySelectorAll("button, input, select"))]
	.filter(e => e.getBoundingClientRect().width > 0 && !e.disabled && !e.closest("fieldset:disabled") && !e.closest(".block, .tile, .segmented, .zoom, .dates, nav"))
	.map(e => (e.ariaLabel || [...(e.labels ?? [])].map(l => l.innerText).join() || e.innerText || e.type).trim())`

// A viewer can open every screen of the own branch and sees no control that changes data. A manager sees nothing that is
// reserved for the headquarters.
func TestConsoleRoles(t *testing.T) {
	t.Parallel()
	s := startStack(t, nil)
	date, midnight := dayAfter()
	admin := newBrowser(t, s)
	admin.must("POST", "/admin/login", map[string]string{"id": "hq", "password": "hq-demo"}, nil)
	start := midnight.Add(10 * time.Hour)
	admin.must("POST", "/admin/reservation", map[string]any{"branch": "gangnam", "room": 1, "startDateTime": wireTime(start), "endDateTime": wireTime(start.Add(time.Hour))}, nil)
	admin.must("POST", "/admin/payment", map[string]any{"name": "강민재", "mobileNum": "01022223333", "notify": true}, nil)
	keyFor(t, s, "01022223333")

	hq := console(t, s, "hq", "hq-demo")
	hq.open("/console/people")
	hq.see("gangnam-manager", "지점 관리자")
	hq.survey("console-people")
	hq.on(desktop).press("관리자 추가")
	hq.fill("아이디", "viewer")
	hq.fill("비밀번호", "only looking 1")
	hq.choose("역할", "조회 전용")
	hq.press("열다 강남점")
	hq.survey("console-person-add")
	hq.on(desktop).press("저장")
	hq.see("viewer", "조회 전용")

	viewer := hq.another(t).on(desktop)
	viewer.expect("401")
	viewer.enterConsole("viewer", "only looking 1")
	for screen, look := range map[string]struct {
		shows string
		ways  []string // controls that only change the view
	}{
		"gangnam/day/" + date: {"강민재", []string{"인수인계"}},
		"gangnam/doors":       {"6번 룸", nil},
		"gangnam/rooms":       {"아쿠아 스파 베드 A1", nil},
		"gangnam/climate":     {"에어컨 리모컨", []string{"지금 읽기"}},
		"gangnam/devices":     {"agent-gangnam", nil},
		"gangnam/messages":    {"예약 확정·열쇠", []string{"미리 보기"}},
		"gangnam/money":       {"결제 내역", []string{"달"}},
		"gangnam/audit":       {"예약 등록", []string{"CSV 내려받기", "종류", "누가", "시작일", "종료일", "거르기"}},
		"gangnam/settings":    {"외부 예약 채널", nil},

		"gangnam/devices/agent-gangnam": {"서비스에 저장된 설정이 아직 없어요", nil},
	} {
		viewer.open("/console/" + screen)
		viewer.see(look.shows)
		for _, action := range value[[]string](viewer, actions) {
			if !slices.ContainsFunc(look.ways, func(way string) bool { return len(action) >= len(way) && action[:len(way)] == way }) {
				t.Errorf("%s: one who may only look is offered %q", screen, action)
			}
		}
	}
	viewer.open("/console/gangnam/day/" + date)
	viewer.press("강민재")
	viewer.see("있었던 일", "010-2222-3333")
	for _, action := range value[[]string](viewer, actions) {
		if action != "닫기" && action != "미리 보기" {
			t.Errorf("the record: one who may only look is offered %q", action)
		}
	}
	viewer.press("닫기")
	viewer.drag(viewer.place(1, 10*60+20), viewer.place(1, 12*60+20))
	if n := viewer.dialogs(); n != 0 && !viewer.sees("있었던 일") {
		t.Error("one who may only look can drag")
	}
	viewer.open("/console/people")
	viewer.see("찾을 수 없어요")
	viewer.open("/console/hongdae/day")
	viewer.see("찾을 수 없어요")

	manager := hq.another(t).on(desktop)
	manager.expect("401")
	manager.enterConsole("gangnam-manager", "gangnam-demo")
	if manager.sees("홍대") || value[bool](manager, `Boolean(document.querySelector('a[href="/console/people"]'))`) {
		t.Error("a manager is shown what is the headquarters'")
	}
	manager.open("/console/people")
	manager.see("찾을 수 없어요")
	manager.open("/console/jamsil/doors")
	manager.see("찾을 수 없어요")
}

// A limited role is offered only links to screens that it has, also in lists of reservations, branches and alerts.
func TestConsoleLinksOfLimitedRoles(t *testing.T) {
	t.Parallel()
	s := startStack(t, nil)
	date, midnight := dayAfter()
	newBrowser(t, s).purchase(s, "gangnam", 1, 30000, "01077779999", "카드", midnight.Add(12*time.Hour))
	for role, screens := range map[string]map[string]string{ // what each screen shows
		"accountant": {"overview": "문 열림 성공(7일)", "alerts": "전체", "reports": "가동률", "desk": "처리할 돈", "settlement": "정산", "gangnam/money": "1번 룸"},
		"front-desk": {"overview": "문 열림 성공(7일)", "alerts": "전체", "levels": "문 상태", "gangnam/day/" + date: "홍길동", "gangnam/doors": "6번 룸", "gangnam/messages": "예약 확정"},
	} {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			staff(t, s).must("POST", "/v2/admin/administrators", map[string]any{
				"id": role, "password": "only what I need", "role": role, "branches": []string{"gangnam", "hongdae"}}, nil)
			p := console(t, s, role, "only what I need")
			found := map[string]bool{}
			for screen, text := range screens {
				p.open("/console/" + screen)
				p.see(text)
				for _, address := range value[[]string](p, `[...document.querySelectorAll("main a[href^='/console/']")].map(a => a.getAttribute("href"))`) {
					found[address] = true
				}
			}
			if len(found) == 0 {
				t.Error("no links on any screen")
			}
			for address := range found {
				p.open(address)
				p.wait("a screen", `document.querySelector("main h1")`)
				if p.sees("찾을 수 없어요") {
					t.Errorf("a link leads to %s, a screen that the role lacks", address)
				}
			}
		})
	}
}
