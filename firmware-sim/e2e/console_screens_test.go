package e2e

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"
)

// Every screen but the day, each action against the running stack.
func TestConsoleScreens(t *testing.T) {
	s := startStack(t, nil)
	p := console(t, s, "hq", "hq-demo")
	at := func(screen string) *page {
		p.open("/console/" + screen)
		return p
	}

	t.Run("doors", func(t *testing.T) {
		p := at("gangnam/doors").with(t)
		p.see("현관문", "6번 룸", "최근 문 기록")
		p.survey("console-doors")
		p.press("3번 룸 문 열기")
		p.see("지금 열까요?")
		p.press("문 열기")
		p.see("문이 열렸어요")
		until(t, "the pulse in the simulator", func() bool {
			for _, a := range actuations(t, s, "gangnam") {
				if a.Device == "room_3" {
					return true
				}
			}
			return false
		})
		p.press("닫기")
		p.see("열림", "hq") // the event came by itself
		fault(t, s, "gangnam", "room_4", "stuck")
		p.press("4번 룸 문 열기")
		p.press("문 열기")
		p.see("문을 열지 못했어요", "4 8 1 9 0 4")
		p.press("닫기")
		requestJSON(t, http.MethodDelete, s.SimAt+"/sim/branches/gangnam/faults", nil, nil)
		p.open("/console/jamsil/doors")
		p.see("지점 장치가 아직 연결된 적이 없어요")
	})

	t.Run("rooms", func(t *testing.T) {
		p := at("gangnam/rooms").with(t)
		p.expect("409")
		hq := newBrowser(t, s)
		hq.must("POST", "/admin/login", map[string]string{"id": "hq", "password": "hq-demo"}, nil)
		_, midnight := dayAfter()
		hq.must("POST", "/admin/reservation", map[string]any{"branch": "gangnam", "room": 1, "startDateTime": wireTime(midnight.Add(9 * time.Hour)), "endDateTime": wireTime(midnight.Add(10 * time.Hour))}, nil)
		hq.must("POST", "/admin/payment", map[string]any{"name": "박지훈", "mobileNum": "01011112222"}, nil)
		p.press("1번 룸 사용")
		p.see("1번 룸을 끌 수 없어요", "박지훈", "관리자 예약")
		p.survey("console-rooms-conflict")
		p.press("닫기")
		p.press("5번 룸 사용")
		p.see("5번 룸을 껐어요")
		p.press("5번 룸 사용")
		p.see("5번 룸을 켰어요")
		p.survey("console-rooms")
	})

	t.Run("climate", func(t *testing.T) {
		p := at("gangnam/climate").with(t)
		p.press("지금 읽기")
		p.see("센서를 읽었어요", "로비", "에어컨 리모컨")
		p.press("전원 끄기")
		p.see("명령을 보냈어요", "마지막으로 보낸 명령 전원 끄기")
		p.press("냉방")
		p.survey("console-climate")
		p.press("로비")
		p.see("로비 기록", "온도", "습도", "CSV 내려받기")
		p.wait("a chart", `document.querySelector("svg.chart path.line")`)
		p.press("7일")
		p.survey("console-climate-history")
	})

	t.Run("devices", func(t *testing.T) {
		p := at("gangnam/devices").with(t)
		p.see("연결됨", "agent-gangnam", "데모용")
		p.survey("console-devices")
		p.press("새 장치 등록", "자격 만들기")
		p.see("이 내용은 지금만 볼 수 있어요", "YEOLDA_AGENT_PASSWORD=")
		p.wait("a QR code", `document.querySelector("svg.qr path")`)
		p.survey("console-devices-enrolled")
		name := value[string](p, `document.querySelector("dialog pre").textContent.match(/USERNAME=(\S+)/)[1]`)
		p.press("닫기")
		p.press("해제 " + name)
		p.see("되돌릴 수 없어요")
		p.press("해제")
		p.see("해제했어요")
	})

	t.Run("messages", func(t *testing.T) {
		newBrowser(t, s).buy(s, "gangnam", 2, 25000, "01033334444")
		p := at("gangnam/messages").with(t)
		p.see("예약 확정·열쇠", "010-****-4444", "보냄")
		p.survey("console-messages")
		p.press("미리 보기")
		p.see("[열다] 예약이 확정되었습니다")
		p.press("다시 보내기")
		p.see("다시 보냈어요")
	})

	t.Run("money", func(t *testing.T) {
		p := at("gangnam/money").with(t)
		p.see("25,000원", "결제 내역", "진행 중인 환불이 없어요", "차이가 없어요")
		p.survey("console-money")
	})

	t.Run("settings", func(t *testing.T) {
		p := at("hongdae/settings").with(t)
		p.see("운영 시간", "룸과 가격", "외부 예약 채널")
		p.survey("console-settings")
		p.fill("전화", "02-0000-9999")
		p.press("저장")
		p.see("저장했어요")
		p.press("수정 3번 룸")
		p.fill("10분", "2600")
		p.press("저장")
		p.see("10분 2,600원")
		p.press("채널 추가")
		p.fill("채널", "스페이스")
		p.press("저장")
		p.see("스페이스")
		p.press("내보내기 링크", "링크 만들기")
		p.see("이 주소는 지금만 볼 수 있어요")
		p.press("닫기")
	})

	t.Run("administrators", func(t *testing.T) {
		p := at("people").with(t)
		p.see("gangnam-manager", "지점 관리자")
		p.survey("console-people")
		p.press("관리자 추가")
		p.fill("아이디", "viewer")
		p.fill("비밀번호", "only looking 1")
		value[bool](p, `(() => { const r = document.querySelector("dialog select"); r.value = "viewer"; r.dispatchEvent(new Event("change")); return true })()`)
		p.press("열다 강남점")
		p.press("저장")
		p.see("viewer", "조회 전용")
		looker := p.another(t).on(desktop)
		looker.expect("401")
		looker.enterConsole("viewer", "only looking 1")
		looker.open("/console/gangnam/doors")
		looker.see("6번 룸")
		if looker.sees("문 열기") {
			t.Error("one who may only look is offered to open doors")
		}
	})

	t.Run("audit", func(t *testing.T) {
		p := at("gangnam/audit").with(t)
		p.see("문 열기", "비상 번호 공개", "장치 등록", "장치 해제", "메시지 열람", "냉난방 명령")
		p.survey("console-audit")
		until(t, "the chain", func() bool {
			out, err := s.Command(t.Context(), "audit", "verify")
			if err != nil {
				t.Fatal(err)
			}
			return strings.Contains(out, "the chain holds") && !strings.Contains(out, "not linked")
		})
	})

	t.Run("personal data", func(t *testing.T) {
		hq := newBrowser(t, s)
		if status, _ := hq.call("POST", "/v2/admin/personal-data/export", map[string]string{"contact": "01033334444"}, nil); status != 401 {
			t.Fatalf("personal data for nobody: %d", status)
		}
		p := at("people").with(t)
		data := value[json.RawMessage](p, `fetch("/api/v2/admin/personal-data/export", {method: "POST", headers: {"Content-Type": "application/json"}, body: '{"contact": "010-3333-4444"}'}).then(r => r.json()).then(e => e.data)`)
		if !strings.Contains(string(data), "01033334444") && !strings.Contains(string(data), "010-3333-4444") {
			t.Fatalf("%s", data)
		}
		p.fill("휴대폰 번호 또는 이메일", "010-9999-9999")
		p.press("지우기")
		p.see("되돌릴 수 없어요")
		p.fill(`확인을 위해 "지우기"라고 입력해 주세요.`, "지우기")
		p.press("지우기")
		p.see("예약 0건에서 지웠어요")
	})
}
