package e2e

import (
	"bytes"
	"fmt"
	"image"
	"image/jpeg"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/yeolda/yeolda/firmware-sim/proof/world"
)

// TestConsoleSettings saves every form of a branch's settings and checks what customers see afterwards.
func TestConsoleSettings(t *testing.T) {
	t.Parallel()
	s := startStack(t, nil)
	p := console(t, s, "hq", "hq-demo")
	p.expect("400", "409")
	p.open("/console/hongdae/settings")
	p.see("운영 시간", "룸과 가격", "외부 예약 채널")
	p.survey("console-settings")
	p.on(desktop)
	save := func() {
		t.Helper()
		p.press("저장")
		p.see("저장했어요")
		value[bool](p, `(document.querySelector(".toast").remove(), true)`) // the next one is of the next save
	}
	type day struct{ Date, Status, Reason string }
	calendar := func(month string) []day {
		t.Helper()
		var answer struct{ Dates []day }
		newBrowser(t, s).must("GET", "/v2/branches/hongdae/calendar?yearMonth="+month, nil, &answer)
		return answer.Dates
	}
	on := func(date string) day {
		t.Helper()
		days := calendar(date[:7])
		return days[slices.IndexFunc(days, func(d day) bool { return d.Date == date })]
	}
	soon, _ := dayAfter()
	next := func(weekday time.Weekday) string { // at least a week ahead, so that the days do not collide with those of other steps
		day, _ := time.Parse(time.DateOnly, soon)
		for day = day.AddDate(0, 0, 7); day.Weekday() != weekday; day = day.AddDate(0, 0, 1) {
		}
		return day.Format(time.DateOnly)
	}

	t.Run("photos and texts of a room", func(t *testing.T) { roomShowcase(t, p.with(t), dayOf(t, s, "hongdae", "available")) })
	t.Run("arrival steps", func(t *testing.T) { arrivalSteps(t, s, p.with(t)) })
	p.open("/console/hongdae/settings")
	p.see("운영 시간")

	p.fill("전화", "02-0000-9999")
	p.fill("예약 가능 기간(일)", "45")
	p.fill("주소", "서울특별시 마포구 새길 1")
	save()
	if got := value[string](p, `[...document.querySelectorAll("label")].find(l => l.innerText === "예약 가능 기간(일)").parentElement.querySelector("input").value`); got != "45" {
		t.Errorf("horizon %s", got)
	}

	// Opening hours, first with a mistake, and breaks.
	hours := func(name, text string) { p.date(name, text) }
	hours("화 운영 시간", "열시-22:00")
	p.press("저장")
	p.wait("what is wrong is said", `document.querySelector("main .problem").textContent !== ""`)
	hours("화 운영 시간", "09:00-23:00")
	hours("화 휴게 시간", "12:00-12:30, 18:00-18:30")
	save()
	newBrowser(t, s).must("POST", "/reservation", map[string]any{"branch": "hongdae", "room": 1, "startDateTime": strings.ReplaceAll(next(time.Tuesday), "-", "") + "0900", "endDateTime": strings.ReplaceAll(next(time.Tuesday), "-", "") + "1000"}, nil)

	// A closure, an additional holiday, and a holiday on which the branch opens.
	closed, holiday := next(time.Wednesday), next(time.Thursday)
	p.press("휴무 추가")
	p.date("시작", closed)
	p.date("끝", closed)
	p.date("사유", "공사")
	p.press("공휴일 추가")
	p.date("날짜", holiday)
	p.date("이름", "창립일")
	save()
	if d := on(closed); d.Status != "closed" || d.Reason != "공사" {
		t.Errorf("the closure: %+v", d)
	}
	if d := on(holiday); d.Status != "holiday" || d.Reason != "창립일" {
		t.Errorf("the holiday: %+v", d)
	}
	p.fill("쉬지 않는 공휴일", holiday)
	save()
	if d := on(holiday); d.Status != "available" || d.Reason != "창립일" {
		t.Errorf("the holiday on which it opens: %+v", d)
	}

	t.Run("refunds and compensation", func(t *testing.T) {
		p := p.with(t)
		type rules struct {
			RefundPolicy []struct{ UntilMinutesBefore, Percent int }
			Compensation *struct {
				AfterMinutes, WonPerMinute, FullAfterMinutes, PerPhonePerMonth int
				ExtendFirst                                                    bool
			}
		}
		stored := func() (r rules) {
			t.Helper()
			staff(t, s).must("GET", "/v2/admin/branches/hongdae/settings", nil, &r)
			return r
		}
		p.see("시작 30분 전까지 취소하면 100%")
		p.press("기한 추가")
		p.date("시작 전", "2")
		p.date("환불 비율(%)", "50%")
		p.press("저장")
		p.see("환불 비율(%) 칸에는 숫자만 적어 주세요.")
		if got := fmt.Sprintf("%+v", stored().RefundPolicy); got != "[{UntilMinutesBefore:30 Percent:100}]" {
			t.Errorf("got %s after a share that is not a number, want no change", got)
		}
		p.date("환불 비율(%)", "120")
		p.press("저장")
		p.wait("what is wrong is said", `document.querySelector("main .problem").textContent !== ""`)
		p.date("환불 비율(%)", "100")
		p.wait("the first share is 50", `(() => { const f = [...document.querySelectorAll("input")].find(i => i.ariaLabel === "환불 비율(%)"); f.value = "50"; f.dispatchEvent(new Event("input", {bubbles: true})); return true })()`)
		p.press("지점 장치가 문을 열지 못했다고 보고하고")
		p.fill("번호마다 한 달 한도(회)", "1회")
		p.press("저장")
		p.see("번호마다 한 달 한도(회) 칸에는 숫자만 적어 주세요.")
		p.fill("보상 시작(분)", "3")
		p.fill("1분마다 환불(원)", "700")
		p.fill("전액 환불(분)", "20")
		p.fill("번호마다 한 달 한도(회)", "2")
		p.survey("console-settings-refunds")
		p.on(desktop)
		save()
		p.see("시작 2일 전까지 취소하면 100%, 시작 30분 전까지 취소하면 50%")
		if got := fmt.Sprintf("%+v %+v", stored().RefundPolicy, *stored().Compensation); got != "[{UntilMinutesBefore:2880 Percent:100} {UntilMinutesBefore:30 Percent:50}] {AfterMinutes:3 WonPerMinute:700 FullAfterMinutes:20 PerPhonePerMonth:2 ExtendFirst:true}" {
			t.Errorf("stored: %s", got)
		}
		p.press("지점 장치가 문을 열지 못했다고 보고하고")
		save()
		if got := stored().Compensation; got != nil {
			t.Errorf("compensation %+v, want none", got)
		}
	})

	t.Run("two at once", func(t *testing.T) {
		p := p.with(t)
		other := p.another(t).on(desktop)
		other.expect("401", "409")
		other.enterConsole("hq", "hq-demo")
		other.open("/console/hongdae/settings")
		other.see("운영 시간")
		p.fill("전화", "02-1111-1111")
		save()
		other.fill("전화", "02-2222-2222")
		other.press("저장")
		other.see("다른 관리자가 설정을 바꿨어요")
		if got := other.phone(); got != "02-2222-2222" {
			t.Errorf("got phone %s, want the edit to be kept", got)
		}
		other.press("내 내용으로 계속", "저장")
		other.see("저장했어요")
		p.open("/console/hongdae/settings")
		p.see("운영 시간")
		if got := p.phone(); got != "02-2222-2222" {
			t.Errorf("got phone %s, want the second save", got)
		}
	})

	t.Run("edits survive the save of a room and leaving the screen", func(t *testing.T) {
		p := p.with(t)
		p.fill("전화", "02-3333-3333")
		p.press("수정 2번 룸", "저장")
		p.see("저장했어요")
		if got := p.phone(); got != "02-3333-3333" {
			t.Errorf("got phone %s after a room was saved, want the edit", got)
		}
		p.open("/console/hongdae/audit")
		p.see("누가", "거르기")
		p.open("/console/hongdae/settings")
		p.see("저장하지 않은 내용을 다시 불러왔어요")
		if got := p.phone(); got != "02-3333-3333" {
			t.Errorf("got phone %s after the screen was left, want the edit", got)
		}
		p.press("버리기")
		p.wait("the stored settings", `![...document.querySelectorAll("input")].some(i => i.value === "02-3333-3333")`)
	})

	t.Run("a draft from before the change of another administrator", func(t *testing.T) {
		p := p.with(t)
		p.fill("전화", "02-3333-3333")
		p.open("/console/hongdae/audit")
		p.see("누가", "거르기")
		const path = "/v2/admin/branches/hongdae/settings"
		var settings map[string]any
		other := staff(t, s)
		other.must("GET", path, nil, &settings)
		for _, name := range []string{"rooms", "channels", "alertContacts", "refundPolicyText"} {
			delete(settings, name)
		}
		settings["address"] = "서울특별시 마포구 새길 2"
		other.must("PUT", path, settings, nil)
		p.open("/console/hongdae/settings")
		p.see("저장하지 않은 내용을 다시 불러왔어요", "다른 관리자가 설정을 바꿨어요")
		if got := p.phone(); got != "02-3333-3333" {
			t.Errorf("got phone %s, want the edit to be kept", got)
		}
		refused := value[int](p, `performance.getEntriesByType("resource").filter((e) => e.name.endsWith("/settings") && e.responseStatus === 409).length`)
		p.press("저장")
		p.wait("the save is refused", fmt.Sprintf(`performance.getEntriesByType("resource").filter((e) => e.name.endsWith("/settings") && e.responseStatus === 409).length > %d`, refused))
		p.see("다른 관리자가 설정을 바꿨어요")
		other.must("GET", path, nil, &settings)
		if settings["address"] != "서울특별시 마포구 새길 2" || settings["phone"] == "02-3333-3333" {
			t.Errorf("stored address %v and phone %v, want those of the other administrator", settings["address"], settings["phone"])
		}
		p.press("바뀐 설정 불러오기")
		p.wait("the stored settings", `![...document.querySelectorAll("input")].some(i => i.value === "02-3333-3333")`)
	})

	t.Run("a closure over a reservation", func(t *testing.T) {
		p := p.with(t)
		busy := next(time.Friday)
		newBrowser(t, s).must("POST", "/reservation", map[string]any{"branch": "hongdae", "room": 1, "startDateTime": strings.ReplaceAll(busy, "-", "") + "1100", "endDateTime": strings.ReplaceAll(busy, "-", "") + "1200"}, nil)
		p.press("휴무 추가")
		p.date("시작", busy)
		p.date("끝", busy)
		p.date("사유", "공사")
		p.press("저장")
		p.see("운영 시간 밖의 예약", "1건")
		p.survey("console-settings-conflicts")
		p.on(desktop)
		if d := on(busy); d.Status != "available" {
			t.Errorf("got %+v before the conflict was accepted, want the day to be open", d)
		}
		p.press("예약을 두고 저장")
		p.see("저장했어요")
		if d := on(busy); d.Status != "closed" {
			t.Errorf("got %+v, want the day to be closed", d)
		}
	})

	t.Run("rooms and prices", func(t *testing.T) {
		p := p.with(t)
		p.press("수정 3번 룸")
		p.fill("10분", "1만")
		p.press("저장")
		p.see("10분 칸에는 숫자만 적어 주세요.")
		var before struct {
			Rooms []struct {
				RoomNo  string
				Pricing struct{ Min10 *int }
			}
		}
		staff(t, s).must("GET", "/v2/admin/branches/hongdae/settings", nil, &before)
		for _, room := range before.Rooms {
			if room.RoomNo == "3" && room.Pricing.Min10 == nil {
				t.Error("a price that is not a number removed the stored price")
			}
		}
		p.fill("10분", "2,600")
		p.survey("console-settings-room")
		p.on(desktop).press("저장")
		p.see("10분 2,600원")
		p.press("요금 규칙 3번 룸")
		p.press("규칙 추가")
		p.date("10분", "4천")
		p.press("미리 보기")
		p.see("10분 칸에는 숫자만 적어 주세요.")
		p.date("10분", "4400")
		p.date("시작 시각", "18:00")
		p.date("끝 시각", "02:00")
		p.press("미리 보기")
		p.see("18:00~24:00 10분 4,400원", "00:00~18:00")
		p.survey("console-settings-prices")
		p.on(desktop).press("저장")
		p.wait("the rules are saved", `!document.querySelector("dialog[open]")`) // the notice of a save that can be taken back stays for ten seconds
		p.see("저장했어요")
		var prices struct {
			Rules []struct {
				Hours struct{ From, To string }
				Min10 int
			}
		}
		staff(t, s).must("GET", "/v2/admin/branches/hongdae/rooms/3/prices", nil, &prices)
		if len(prices.Rules) != 1 || prices.Rules[0].Min10 != 4400 || prices.Rules[0].Hours.To != "02:00" {
			t.Errorf("price rules: %+v", prices)
		}
		p.press("룸 추가")
		p.fill("룸 번호", "1")
		p.press("저장")
		p.see("이미 있는 룸 번호입니다")
		p.fill("룸 번호", "7")
		p.fill("기기", "새 베드")
		p.choose("등급", "Gold")
		p.fill("60분", "20000")
		p.press("저장")
		p.see("7번 룸", "새 베드", "문이 연결되지 않음", "문 비밀번호 없음")
		p.press("판매 시작 7번 룸")
		p.see("문이 확인되지 않은 룸")
		p.press("문 비밀번호 7번 룸")
		p.fill("키패드 비밀번호", "471100")
		p.press("저장")
		p.wait("the PIN is known", `!document.querySelector("main").innerText.includes("문 비밀번호 없음")`)
		p.press("수정 7번 룸")
		p.press("잠금장치가 없는 룸이에요")
		p.press("저장")
		p.see("잠금장치 없음")
		p.press("판매 시작 7번 룸")
		p.see("7번 룸을")
		p.press("룸 추가")
		p.fill("룸 번호", "8")
		p.press("저장")
		p.see("8번 룸")
		p.press("삭제 8번 룸", "삭제")
		p.wait("the room is deleted", `!document.querySelector("main").innerText.includes("8번 룸")`)
	})

	t.Run("partner channels", func(t *testing.T) {
		p := p.with(t)
		p.press("채널 추가")
		p.fill("채널", "스페이스")
		p.choose("룸", "2번 룸")
		p.fill("가져올 캘린더 주소", "http://partner.example/2.ics")
		p.press("저장")
		p.wait("only https", `document.querySelector("dialog .problem").textContent !== ""`)
		p.fill("가져올 캘린더 주소", "https://partner.example/2.ics")
		p.survey("console-channel")
		p.on(desktop).press("저장")
		p.see("스페이스", "https://partner.example/2.ics")
		p.press("내보내기 링크", "링크 만들기")
		p.see("이 주소는 지금만 볼 수 있어요")
		p.survey("console-channel-link")
		p.on(desktop)
		link := value[string](p, `document.querySelector("dialog pre").textContent`)
		_, path, _ := strings.Cut(link, "/ical/")
		response, err := http.Get(s.Pages + "/ical/" + path)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		if body, err := io.ReadAll(response.Body); err != nil || !strings.HasPrefix(string(body), "BEGIN:VCALENDAR") {
			t.Errorf("%s: %s %v", link, body, err)
		}
		p.press("닫기")
		p.press("끄기")
		p.see("연결을 끌까요?")
		p.press("끄기")
		p.see("꺼짐")
		p.press("켜기")
		p.wait("on again", `!document.body.innerText.includes("꺼짐")`)
	})

	p.open("/console/hongdae/audit")
	p.see("설정 변경", "룸 정보 변경", "채널 추가", "내보내기 링크 발급", "채널 켜기/끄기")
}

// arrivalSteps describes the way into a branch in the console and looks at it on a key page.
func arrivalSteps(t *testing.T, s *world.Stack, p *page) {
	p.open("/console/gangnam/settings")
	const texts = `[...document.querySelectorAll(".steps li > p")].map((e) => e.innerText).join(", ")`
	for _, step := range [][2]string{{"지하 1층으로 내려오세요.", "Go down to floor B1."}, {"갈색 문으로 들어오세요.", "Enter the brown door."}} {
		p.press("단계 추가")
		p.fill("안내", step[0])
		p.fill("안내(영어)", step[1])
		p.do("choose the photo", chromedp.SetUploadFiles(chromedp.CSS(`dialog input[type=file]`), []string{photoFile(t)}))
		p.press("저장")
		p.wait("the step", texts+`.endsWith(`+quoted(step[0])+`)`)
	}
	p.press("↑ 2단계")
	p.wait("the new order", texts+` === "갈색 문으로 들어오세요., 지하 1층으로 내려오세요."`)
	p.press("수정 2단계")
	p.fill("안내", "계단으로 내려오세요.")
	p.press("저장")
	p.wait("the new text", texts+`.endsWith("계단으로 내려오세요.")`)
	p.press("단계 추가")
	p.see("안내(영어)")
	p.survey("console-settings-arrival")
	p.on(desktop).press("돌아가기")
	p.wait("the dialog is closed", `!document.querySelector("dialog[open]")`)

	guest := p.another(t)
	guest.on(phone).open("/k/" + keyOfAdminReservation(t, s, "gangnam", 4, "01077778888"))
	guest.see("들어오는 길")
	if loaded := value[int](guest, `performance.getEntriesByType("resource").filter((e) => e.name.includes("/photos/")).length`); loaded != 0 {
		t.Errorf("the key page loads %d photos before they are asked for", loaded)
	}
	guest.press("들어오는 길")
	guest.see("갈색 문으로 들어오세요.", "계단으로 내려오세요.")
	guest.wait("the photo", `document.querySelector("#arrival img").naturalWidth === 960`)
	guest.look("key-arrival", phone, narrow)
	guest.media("prefers-color-scheme", "dark")
	guest.look("key-arrival-dark", phone)

	p.press("삭제 1단계")
	p.wait("one step", texts+` === "계단으로 내려오세요."`)
}

// roomShowcase adds a photo, a description and amenities to room 3 in the console, and looks at them as a guest.
func roomShowcase(t *testing.T, p *page, date string) {
	p.press("사진과 소개 3번 룸")
	p.see("3번 룸의 사진과 소개")
	p.do("choose the photo", chromedp.SetUploadFiles(chromedp.CSS(`dialog input[type=file]`), []string{photoFile(t)}))
	p.fill("사진 설명", "창가의 소파")
	p.fill("사진 설명(영어)", "A sofa by the window")
	p.pressUntil("사진 추가", "the photo", `document.querySelector("dialog .photos img")?.naturalWidth === 320`)
	p.fill("소개", "조용한 안쪽 룸이에요.")
	p.fill("소개(영어)", "A quiet room at the back.")
	p.fill("편의 시설", "빔 프로젝터\n안마 의자")
	p.fill("편의 시설(영어)", "Projector")
	p.press("저장")
	p.see("편의 시설이 한국어는 2개, 영어는 1개예요")
	p.fill("편의 시설(영어)", "Projector\nMassage chair")
	p.survey("console-settings-showcase")
	p.on(desktop).press("저장")
	p.wait("the dialog is closed", `!document.querySelector("dialog[open]")`)

	guest := p.another(t)
	guest.open("/?lang=en")
	guest.wait("the photo of the branch", `document.querySelector('a[href="/b/hongdae"] img[alt="A sofa by the window"]')?.naturalWidth > 0`)
	guest.look("home-photo")
	guest.open("/b/hongdae/" + date + "?lang=en")
	guest.wait("the photo of the room", `document.querySelector(".card.room img")?.complete && document.querySelector("main").innerText.includes("Massage chair")`)
	guest.look("rooms-photo")
	guest.on(phone).press("Room 3")
	guest.see("A quiet room at the back.")
	guest.look("picker-photo", phone)
}

// photoFile returns the path of a large photo.
func photoFile(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "photo.jpg")
	large := image.NewRGBA(image.Rect(0, 0, 3000, 2000)) // the console makes it smaller
	for i := range large.Pix {
		large.Pix[i] = byte(i / 4 / 3000 % 256)
	}
	var data bytes.Buffer
	if err := jpeg.Encode(&data, large, nil); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, data.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// phone returns the phone number in the form of the settings.
func (p *page) phone() string {
	p.t.Helper()
	return value[string](p, `[...document.querySelectorAll("label")].find(l => l.innerText === "전화").parentElement.querySelector("input").value`)
}
