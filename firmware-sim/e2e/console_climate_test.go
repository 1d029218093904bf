package e2e

import (
	"strings"
	"testing"
)

// An administrator sets the climate policy of a room in the console: the service validates it, a draft survives, another
// administrator's change is noticed, and the report shows the room.
func TestConsoleClimatePolicy(t *testing.T) {
	t.Parallel()
	s := startStack(t, nil)
	awaitAgents(t, s, "gangnam")
	p := console(t, s, "hq", "hq-demo")
	p.expect("400")
	path := "/v2/admin/branches/gangnam/climate-policy"
	type policies struct {
		Rooms []map[string]any `json:"rooms"`
	}
	admin := newBrowser(t, s)
	admin.must("POST", "/admin/login", map[string]string{"id": "hq", "password": "hq-demo"}, nil)

	p.on(desktop).open("/console/gangnam/climate")
	const edit = "수정 2번 룸"
	p.see("룸별 자동 냉난방")
	p.press(edit)
	p.see("룸별 자동 냉난방 · 2번 룸", "고객 선택 3")
	p.choose("이용 전 명령", "냉방 · 24")
	p.choose("이용 후 명령", "전원 끄기")
	p.fill("최저 온도(°C)", "30")
	p.press("저장")
	p.see("최저 온도(low) 값이 올바르지 않습니다.")
	p.survey("console-climate-policy")

	// Neither closing the dialog nor a reload loses what was typed.
	p.on(desktop).open("/console/gangnam/climate")
	p.press(edit)
	p.see("저장하지 않은 내용을 다시 불러왔어요.")
	p.fill("최저 온도(°C)", "22.5")
	p.fill("시간당 비용(원)", "600")
	p.fill("미리 켜는 시간(분)", "20")
	p.choose("고객 선택 1", "냉방 · 24")
	p.choose("고객 선택 2", "냉방 · 22")
	p.press("저장")
	p.see("저장했어요", "시작 20분 전", "22.5–26 °C", "2번 룸", "600원")
	var stored policies
	admin.must("GET", path, nil, &stored)
	if len(stored.Rooms) != 1 || stored.Rooms[0]["room"] != "2" || stored.Rooms[0]["unit"] != "로비" || stored.Rooms[0]["sensor"] != "2번 룸" ||
		stored.Rooms[0]["leadMinutes"] != 20.0 || len(stored.Rooms[0]["guestOptions"].([]any)) != 2 {
		t.Fatalf("stored %+v", stored)
	}

	// Another administrator's change is not overwritten unseen.
	p.press(edit)
	p.fill("끄기까지의 시간(분)", "5")
	stored.Rooms[0]["high"] = 27
	admin.must("PUT", path, stored, nil)
	p.press("저장")
	p.wait("the notice", `document.querySelector("dialog[open] .notice button")`)
	p.press("바뀐 설정 불러오기")
	p.wait("the other value", `[...document.querySelectorAll("dialog[open] input")].some(i => i.value === "27")`)
	p.fill("끄기까지의 시간(분)", "5")
	p.press("저장")
	p.see("종료 5분 후", "22.5–27 °C")

	// Nor is it overwritten by a draft from before the change.
	p.press(edit)
	p.fill("끄기까지의 시간(분)", "9")
	p.open("/console/gangnam/levels")
	admin.must("GET", path, nil, &stored)
	stored.Rooms[0]["high"] = 28
	admin.must("PUT", path, stored, nil)
	p.open("/console/gangnam/climate")
	p.press(edit)
	p.see("저장하지 않은 내용을 다시 불러왔어요.", "다른 관리자가 설정을 바꿨어요.")
	p.press("바뀐 설정 불러오기")
	p.wait("the other value", `[...document.querySelectorAll("dialog[open] input")].some(i => i.value === "28")`)
	p.fill("시간당 비용(원)", "1만")
	p.press("저장")
	p.see("시간당 비용(원) 칸에는 숫자만 적어 주세요.")
	p.fill("시간당 비용(원)", "700")
	p.press("저장")
	p.see("종료 5분 후", "22.5–28 °C", "700원")

	p.open("/console/reports")
	p.see("냉난방 가동과 온도")
	p.choose("지점", "강남")
	p.press("날짜별 보기 2번 룸")
	p.see("2번 룸 기록")
	p.survey("console-reports-climate")
	p.on(desktop).open("/console/reports")
	p.choose("지점", "강남")
	if name, content := p.download("냉난방 CSV 내려받기"); !strings.HasPrefix(name, "air-gangnam-") || !strings.Contains(content, "\r\n2,로비,20") {
		t.Errorf("%s: %s", name, content)
	}

	p.open("/console/gangnam/climate")
	p.press(edit, "자동으로 켜고 끄지 않기")
	p.see("저장했어요")
	p.wait("no policy", `!document.body.innerText.includes("종료 5분 후")`)
	admin.must("GET", path, nil, &stored)
	if len(stored.Rooms) != 0 {
		t.Errorf("stored %+v", stored)
	}
}
