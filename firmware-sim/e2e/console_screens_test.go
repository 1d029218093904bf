package e2e

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/yeolda/yeolda/firmware-sim/proof/world"
)

// TestConsoleScreens performs each action of every screen except the day, against the running stack.
func TestConsoleScreens(t *testing.T) {
	t.Parallel()
	s := startStack(t, nil)
	p := console(t, s, "hq", "hq-demo")
	at := func(screen string) *page {
		p.open("/console/" + screen)
		return p
	}

	t.Run("doors", func(t *testing.T) {
		p := at("gangnam/doors").with(t)
		p.see("현관문", "6번 룸", "최근 문 기록", "예약마다 다른 비밀번호", "agent-gangnam", "최신", "확인 가능")
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
		p.see("열림", "hq") // the event arrived without a reload
		fault(t, s, "gangnam", "room_4", "stuck")
		p.press("4번 룸 문 열기")
		p.press("문 열기")
		p.see("문을 열지 못했어요")
		p.wait("a one-time code, because the agent reads the keypad", `/^\d( \d){7}$/.test(document.querySelector("dialog .pin")?.innerText)`)
		code := value[string](p, `document.querySelector("dialog .pin").innerText.replaceAll(" ", "")`)
		p.survey("console-door-failed")
		p.on(desktop).press("닫기")
		requestJSON(t, http.MethodDelete, s.SimAt+"/sim/branches/gangnam/faults", nil, nil)
		if opened, reason := typeDigits(t, s, "room_4", code); !opened {
			t.Errorf("the one-time code does not open: %s", reason)
		}
		p.see("키패드로 열림 일회용 번호")
		fault(t, s, "hongdae", "room_2", "stuck")
		p.open("/console/hongdae/doors")
		p.press("2번 룸 문 열기", "문 열기")
		p.see("문을 열지 못했어요", "5 8 2 9 0 2") // the static PIN of a standalone keypad
		p.press("닫기")
		p.see("변경 뒤 1번 공개")
		p.press("2번 룸 바꾼 비밀번호 기록")
		p.fill("키패드 비밀번호", "604417")
		p.survey("console-door-pin")
		p.on(desktop).press("저장")
		p.see("저장했어요")
		p.wait("no disclosure of the new PIN", `!document.body.innerText.includes("번 공개")`)
		p.press("2번 룸 문 열기", "문 열기")
		p.see("6 0 4 4 1 7")
		p.press("닫기")
		requestJSON(t, http.MethodDelete, s.SimAt+"/sim/branches/hongdae/faults", nil, nil)
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
		p.expect("503") // the command to a broken infrared transmitter
		p.press("지금 읽기")
		p.see("센서를 읽었어요", "로비", "에어컨 리모컨")
		p.press("전원 끄기")
		p.see("명령을 보냈어요", "마지막으로 보낸 명령 전원 끄기")
		p.press("냉방", "24")
		p.survey("console-climate")
		p.on(desktop)
		for p.wait("complete or not", `document.querySelector(".remote")`); value[bool](p, `document.querySelector(".remote > .button").disabled`); {
			value[bool](p, `([...document.querySelectorAll(".remote .segmented")].at(-1).querySelector("button").click(), true)`) // the level that is left
		}
		p.press("보내기")
		p.see("마지막으로 보낸 명령 냉방 · 24")
		var branch struct {
			AirConditioners []struct {
				Mode        string `json:"mode"`
				Temperature int    `json:"temperature"`
			} `json:"airConditioners"`
		}
		getJSON(t, s.SimAt+"/sim/branches/gangnam", &branch)
		if len(branch.AirConditioners) == 0 || branch.AirConditioners[0].Temperature != 24 {
			t.Errorf("the simulated unit has decoded %+v", branch.AirConditioners)
		}
		fault(t, s, "gangnam", "", "ir-dead")
		p.press("보내기")
		p.see("실패") // the failure remains visible
		requestJSON(t, http.MethodDelete, s.SimAt+"/sim/branches/gangnam/faults", nil, nil)

		p.press("로비")
		p.see("로비 기록", "온도", "습도")
		p.wait("a chart", `document.querySelector("svg.chart path.line")`)
		for _, period := range []string{"30일", "7일", "24시간"} {
			p.press(period)
			p.wait("both charts of "+period, `document.querySelectorAll("dialog svg.chart path.line").length === 2`)
		}
		p.press("표로 보기")
		p.wait("the table", `document.querySelector("dialog details[open] tbody tr")`)
		p.survey("console-climate-history")
		p.on(desktop)
		if name, content := p.download("CSV 내려받기"); name != "gangnam-로비.csv" || !strings.HasPrefix(content, "\ufeffat,celsius,humidity\r\n20") {
			t.Errorf("%s: %s", name, content)
		}
	})

	t.Run("devices", func(t *testing.T) {
		p := at("gangnam/devices").with(t)
		p.see("연결됨", "agent-gangnam", "데모용")
		p.survey("console-devices")
		p.press("새 장치 등록", "등록 명령 만들기")
		p.see("이 명령은 지금만 볼 수 있고", "/install.sh | sudo sh -s -- ")
		p.wait("a QR code", `document.querySelector("svg.qr path")`)
		p.survey("console-devices-enrolled")
		p.on(desktop)
		token := value[string](p, `document.querySelector("dialog pre").textContent.match(/-s -- (\S+)/)[1]`)
		var machine struct{ Username, Password string }
		newBrowser(t, s).must("POST", "/v2/agent/enroll", map[string]string{"token": token}, &machine)
		p.press("닫기")
		p.open("/console/gangnam/devices")
		p.see(machine.Username)
		p.press("해제 " + machine.Username)
		p.see("되돌릴 수 없어요")
		p.survey("console-devices-revoke")
		p.on(desktop).press("해제")
		p.see("해제했어요")
	})

	t.Run("settings of a Pi", func(t *testing.T) { agentSettings(t, s, p.with(t)) })
	t.Run("another Pi instead", func(t *testing.T) { replacePi(t, s, p.with(t)) })
	t.Run("log and doctor", func(t *testing.T) { agentLog(p.with(t)) })
	t.Run("settings in waves", func(t *testing.T) { settingsRollout(p.with(t)) })

	t.Run("messages", func(t *testing.T) {
		newBrowser(t, s).buy(s, "gangnam", 2, 25000, "01033334444")
		p := at("gangnam/messages").with(t)
		p.see("예약 확정·열쇠", "010-****-4444", "보냄")
		p.survey("console-messages")
		p.on(desktop).press("미리 보기")
		p.see("[열다] 예약이 확정됐어요", "알림톡")
		p.survey("console-message")
		before := len(messagesTo(t, s, "01033334444"))
		p.on(desktop).press("다시 보내기")
		p.see("다시 보냈어요")
		until(t, "the message again", func() bool { return len(messagesTo(t, s, "01033334444")) == before+1 })
		p.press("실패")
		p.see("보낸 메시지가 없어요")
	})

	t.Run("audit", func(t *testing.T) {
		p := at("gangnam/audit").with(t)
		p.see("문 열기", "일회용 번호 공개", "장치 등록 명령 발급", "장치 등록", "장치 해제", "메시지 열람", "냉난방 명령", "룸을 막는 예약 열람")
		p.survey("console-audit")
		p.on(desktop).choose("종류", "문")
		p.press("거르기")
		p.wait("doors only", `[...document.querySelectorAll("main tbody tr")].every(r => r.innerText.includes("문 열기"))`)
		p.open(value[string](p, "location.pathname + location.search"))
		p.wait("doors only, loaded again", `document.querySelector("main tbody tr") && [...document.querySelectorAll("main tbody tr")].every(r => r.innerText.includes("문 열기"))`)
		p.choose("종류", "전체")
		p.fill("누가", "nobody-else")
		p.press("거르기")
		p.see("내용이 없어요")
		p.fill("누가", "hq")
		p.press("거르기")
		p.see("일회용 번호 공개")
		if name, content := p.download("CSV 내려받기"); name != "gangnam-audit.csv" || !strings.Contains(content, ",admin:hq,문 열기,room_3,") {
			t.Errorf("%s: %s", name, content)
		}
		p.open("/console/hongdae/audit")
		p.see("비상 번호 공개", "비상 번호 변경", "room_2")
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
			t.Fatalf("personal data without a session: %d", status)
		}
		p := at("people").with(t)
		p.fill("휴대폰 번호 또는 이메일", "010-3333-4444")
		if name, content := p.download("내보내기"); name != "personal-data.json" || !strings.Contains(content, "01033334444") || !strings.Contains(content, `"reservation-confirmed`) {
			t.Fatalf("%s: %s", name, content)
		}
		p.fill("휴대폰 번호 또는 이메일", "010-9999-9999")
		p.press("지우기")
		p.see("되돌릴 수 없어요")
		p.survey("console-erase")
		p.on(desktop)
		p.fill(`확인을 위해 "지우기"라고 입력해 주세요.`, "지우기")
		p.press("지우기")
		p.see("예약 0건에서 지웠어요")
	})
}

type sentMessage struct {
	Template string `json:"template"`
}

// messagesTo returns the messages that a phone has received.
func messagesTo(t *testing.T, s *world.Stack, mobile string) []sentMessage {
	t.Helper()
	var list struct {
		Messages []sentMessage `json:"messages"`
	}
	getJSON(t, s.SandboxAt+"/sandbox/messages?to="+mobile, &list)
	return list.Messages
}
