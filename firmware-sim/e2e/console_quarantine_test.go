package e2e

import (
	"testing"
	"time"
)

// TestConsoleQuarantine cancels a stay while its branch is disconnected with the PIN of the guest. The time is on the day's
// screen but not for sale; a manager can only look, and the headquarters release it with a reason.
func TestConsoleQuarantine(t *testing.T) {
	notBeforeMidnight(t)
	t.Parallel()
	s := startStack(t, nil)
	key := keyOfAdminReservation(t, s, "gangnam", 2, "01022220002")
	pinOf(t, s, key) // the agent has the list
	fault(t, s, "gangnam", "", "network-cut")
	hq := staff(t, s)
	var day struct {
		Reservations []struct{ ID, StayEnd string }
	}
	date := currentSlot().In(time.FixedZone("KST", 9*3600)).Format(time.DateOnly)
	hq.must("GET", "/v2/admin/branches/gangnam/timeline?date="+date, nil, &day)
	if len(day.Reservations) != 1 {
		t.Fatalf("reservations of today: %+v, want one", day.Reservations)
	}
	stay := day.Reservations[0]
	hq.must("DELETE", "/admin/reservation/"+stay.ID+"?bookingStatus=paid", nil, nil)
	next := func() string { return wireTime(currentSlot().Add(10 * time.Minute)) } // the current slot may be over when the request arrives
	again := map[string]any{"branch": "gangnam", "room": 2, "startDateTime": next(), "endDateTime": stay.StayEnd}
	if status, _ := newBrowser(t, s).call("POST", "/reservation", again, nil); status != 409 {
		t.Fatalf("hold of the quarantined time: %d, want 409", status)
	}

	manager := console(t, s, "gangnam-manager", "gangnam-demo")
	manager.open("/console/gangnam/day/" + date)
	manager.press("재판매 보류")
	manager.see("취소된 예약의 비밀번호를", "본사만 풀 수 있어요")
	if manager.sees("지금 판매하기") {
		t.Error("a manager is offered the release")
	}

	p := console(t, s, "hq", "hq-demo")
	p.open("/console/gangnam/day/" + date)
	p.press("재판매 보류")
	p.see("늦어도", "이 시간을 쓰던 예약 보기")
	p.survey("console-quarantine")
	p.on(desktop).fill("사유", "현장에서 문을 확인함")
	p.open("/console/gangnam/day/" + date)
	p.press("재판매 보류")
	p.see("저장하지 않은 내용")
	p.wait("the draft", `[...document.querySelectorAll("dialog[open] input")].some(i => i.value === "현장에서 문을 확인함")`)
	p.press("지금 판매하기")
	p.see("이 시간을 다시 팔아요")
	p.wait("the time is free", `!document.querySelector(".block.quarantine, .entry.quarantine")`)
	again["startDateTime"] = next()
	newBrowser(t, s).must("POST", "/reservation", again, nil)
	p.open("/console/gangnam/audit")
	p.see("hq 재판매 보류 해제")
}

// notBeforeMidnight skips a test of a stay that begins now and is expected on one day, if the day in Korea ends within 75 minutes.
func notBeforeMidnight(t *testing.T) {
	t.Helper()
	zone := time.FixedZone("KST", 9*3600)
	if now := time.Now().In(zone); now.Day() != now.Add(75*time.Minute).Day() {
		t.Skip("the stay of this test would end on the next day")
	}
}
