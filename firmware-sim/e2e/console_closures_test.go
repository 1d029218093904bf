package e2e

import (
	"strings"
	"testing"
	"time"
)

// TestConsoleClosures closes all branches for a day on which one has a reservation, which is shown first and remains, and
// one branch every month.
func TestConsoleClosures(t *testing.T) {
	t.Parallel()
	s := startStack(t, nil)
	hq := staff(t, s)
	_, midnight := dayAfter()
	start := midnight.AddDate(0, 0, 5).Add(12 * time.Hour)
	day := start.Format(time.DateOnly)
	hq.must("POST", "/admin/reservation", map[string]any{"branch": "gangnam", "room": 1, "startDateTime": wireTime(start), "endDateTime": wireTime(start.Add(time.Hour))}, nil)
	hq.must("POST", "/admin/payment", map[string]any{"name": "박지훈", "mobileNum": "01011112222"}, nil)

	p := console(t, s, "hq", "hq-demo")
	p.open("/console/overview")
	p.press("여러 지점 휴무")
	p.at("/console/closures")
	p.press("모두 선택")
	p.see("3곳 선택")
	p.date("시작일", day)
	p.date("종료일", day)
	p.fill("사유", "소방 점검")
	p.press("겹치는 예약 확인")
	p.see("예약 1건이 있어요", "박지훈", "관리자 예약")
	p.survey("console-closures")
	p.on(desktop)
	const closeDisabled = `[...document.querySelectorAll("button")].find(b => b.innerText === "휴무 등록").disabled`
	p.fill("사유", "점검")
	p.wait("a preview of other values is void", closeDisabled)
	p.press("겹치는 예약 확인")
	p.see("박지훈")
	p.press("휴무 등록")
	p.see("지점 3곳의 휴무를 등록했어요")
	p.press("실행 취소")
	p.see("되돌렸어요")
	p.press("모두 선택")
	p.fill("사유", "점검")
	p.press("겹치는 예약 확인")
	p.see("박지훈")
	p.press("휴무 등록")
	p.see("지점 3곳의 휴무를 등록했어요")
	for _, branch := range []string{"gangnam", "hongdae", "jamsil"} {
		var calendar struct {
			Dates []struct{ Date, Status, Reason string }
		}
		newBrowser(t, s).must("GET", "/v2/branches/"+branch+"/calendar?yearMonth="+day[:7], nil, &calendar)
		for _, d := range calendar.Dates {
			if d.Date == day && (d.Status != "closed" || d.Reason != "점검") {
				t.Errorf("%s: %+v, want a closure", branch, d)
			}
		}
	}
	var timeline struct{ Reservations []struct{ State string } }
	hq.must("GET", "/v2/admin/branches/gangnam/timeline?date="+day, nil, &timeline)
	if len(timeline.Reservations) != 1 || timeline.Reservations[0].State != "DONE" {
		t.Errorf("reservations of the closed day: %+v, want the one that was there", timeline.Reservations)
	}

	p.press("열다 잠실점", "매월")
	p.choose("몇째", "2번째")
	p.choose("요일", "수")
	p.fill("사유", "정기 휴무")
	p.press("겹치는 예약 확인")
	p.see("겹치는 예약이 없어요")
	p.press("휴무 등록")
	p.see("지점 1곳의 휴무를 등록했어요")
	var settings struct {
		Closures []struct{ From, Reason string }
	}
	hq.must("GET", "/v2/admin/branches/jamsil/settings", nil, &settings)
	monthly := 0
	for _, c := range settings.Closures {
		from, err := time.Parse(time.DateOnly, c.From)
		if c.Reason == "정기 휴무" && err == nil && from.Weekday() == time.Wednesday && (from.Day()-1)/7 == 1 {
			monthly++
		}
	}
	if monthly < 12 {
		t.Errorf("%d second Wednesdays in %+v, want at least twelve", monthly, settings.Closures)
	}
	p.open("/console/jamsil/audit")
	p.see("여러 지점 휴무")
}

// TestConsoleLevels opens doors and shows the service of the branch's doors.
func TestConsoleLevels(t *testing.T) {
	t.Parallel()
	s := startStack(t, nil)
	key := newBrowser(t, s).buy(s, "gangnam", 2, 25000, "01055550002")
	if result, _ := newBrowser(t, s).open("gangnam", "room", key); result.Status != "SUCCESS" {
		t.Fatalf("the door: %+v", result)
	}
	p := console(t, s, "hq", "hq-demo")
	p.open("/console/reports")
	p.press("문 상태")
	p.see("열다 강남점 · 2번 룸", "100.0%", "기록 부족")
	p.survey("console-levels")
	p.on(desktop).press("90일")
	p.see("열다 강남점 · 2번 룸")
	if name, content := p.download("CSV 내려받기"); name != "door-levels.csv" || !strings.Contains(content, "열다 강남점,2번 룸,기록 부족,1,1,") {
		t.Errorf("%s: %s", name, content)
	}
	p.open("/console/hongdae/doors")
	p.press("문 상태")
	p.at("/console/levels")
	p.wait("only doors of the branch", `!document.querySelector("main .loading") && !document.querySelector("main table, main .nothing").innerText.includes("강남점")`)
}
