package e2e

import (
	"compress/gzip"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/yeolda/yeolda/firmware-sim/proof/world"
	"github.com/yeolda/yeolda/firmware-sim/testkit/chromium"
)

func TestWebSite(t *testing.T) {
	t.Parallel()
	chromium.Need(t)
	s := startStack(t, company)
	first := newPage(t, s.Pages)
	story := func(name string, tell func(t *testing.T, p *page)) {
		t.Run(name, func(t *testing.T) { tell(t, first.another(t)) })
	}

	story("closed days and their reasons", func(t *testing.T, p *page) {
		p.open("/b/hongdae")
		p.see("쉬는 날")
		p.look("date-closed", phone, desktop, narrow)
		p.open("/b/hongdae/" + dayOf(t, s, "hongdae", "closed"))
		p.on(phone).see("이 날은 쉬어요")
		p.look("rooms-closed")
	})

	story("every state of the timetable", func(t *testing.T, p *page) {
		day := dayOf(t, s, "hongdae", "available")
		at := func(hour int) time.Time {
			d, err := time.ParseInLocation("2006-01-02", day, seoul)
			if err != nil {
				t.Fatal(err)
			}
			return d.Add(time.Duration(hour) * time.Hour)
		}
		newBrowser(t, s).purchase(s, "hongdae", 1, priceOf(t, s, "hongdae", day, "1"), "01011119999", "카드", at(11))
		newBrowser(t, s).must("POST", "/reservation", map[string]any{
			"branch": "hongdae", "room": 2, "startDateTime": wireTime(at(12)), "endDateTime": wireTime(at(13)),
		}, nil)
		hq := newBrowser(t, s)
		hq.must("POST", "/admin/login", map[string]string{"id": "hq", "password": "hq-demo"}, nil)
		hq.must("PATCH", "/admin/machines/hongdae/3", map[string]bool{"enabled": false}, nil)
		p.open("/b/hongdae/" + day)
		p.on(desktop).see("11:00")
		p.wait("every state", `["free", "paid", "booking", "margin", "break", "off"].every(c => document.querySelector("td." + c))`)
		p.look("timetable", desktop)
		p.on(phone).see("점검 중")
		p.look("rooms-busy", phone, narrow)
		p.on(desktop).wait("the timetable", `document.querySelector("td[data-at]")`)
		names := value[[]string](p, `[...document.querySelectorAll("td[data-room='1']")].map(c => c.getAttribute("aria-label"))`)
		for _, want := range []string{"1번 룸 10:40 예약 가능", "1번 룸 10:50 정리 시간", "1번 룸 11:00 예약됨", "1번 룸 12:00 정리 시간", "1번 룸 15:00 휴게 시간"} {
			if !slices.Contains(names, want) {
				t.Errorf("no cell is called %q", want)
			}
		}
		// If a start is followed by another reservation or a break, only the time before it is offered, with the reason.
		p.on(phone).open("/b/hongdae/" + day + "?room=1")
		p.see("몇 시에 시작할까요?")
		p.press("10:20")
		p.see("정리 시간이 있어 30분까지 가능해요")
		p.look("picker-limited", phone)
	})

	story("a link that is opened weeks later", func(t *testing.T, p *page) {
		past := "/b/gangnam/" + currentSlot().In(seoul).AddDate(0, 0, -21).Format("2006-01-02")
		p.open(past)
		p.taken()
		p.see("지난 시간")
		if p.sees("모두 찼어요") {
			t.Error("the rooms of a day that is over are called full")
		}
		if found := value[string](p, difference); found != "" {
			t.Error(found)
		}
		p.open(past + "/2/1000-1100")
		p.see("고르신 시간을 예약할 수 없어요", "지난 시간")
		p.press("시간 다시 고르기")
		p.at("/b/gangnam")
	})

	story("pages that say one thing", func(t *testing.T, p *page) {
		p.expect("404 (Not Found)", "401 (Unauthorized)")
		for _, screen := range []struct{ name, path, text string }{
			{"missing", "/nowhere", "페이지를 찾을 수 없어요"},
			{"missing-branch", "/b/nowhere", "페이지를 찾을 수 없어요"},
			{"missing-date", "/b/gangnam/2026-13-40", "페이지를 찾을 수 없어요"},
			{"no-receipt", "/book/receipt", "예약 내역을 찾을 수 없어요"},
			{"no-hold", "/book/contact", "맡아 둔 자리가 없어요"},
			{"terms", "/terms", "지점별 환불 규정"},
			{"privacy", "/privacy", "개인정보 보호책임자"},
		} {
			p.open(screen.path)
			p.see(screen.text)
			p.look(screen.name)
		}
	})

	story("the service is away", func(t *testing.T, p *page) {
		p.expect("ERR_INTERNET_DISCONNECTED")
		p.open("/b/gangnam")
		p.taken()
		p.offline(true, s.API+"/*")
		p.press("내일")
		p.see("잠시 문제가 생겼어요", "다시 시도")
		p.look("service-away")
		p.offline(false)
		p.press("다시 시도")
		p.see("어느 룸에서 쉴까요?")
	})

	story("no network, after a visit", func(t *testing.T, p *page) {
		p.expect("ERR_INTERNET_DISCONNECTED")
		p.open("/")
		p.see("예약 가능")
		p.wait("the shell is kept", `navigator.serviceWorker.controller && caches.match("/").then(r => window.kept = Boolean(r)) && window.kept`)
		if value[bool](p, `caches.match("/").then(r => r.text()).then(t => t.includes('id="carried"') || !t.includes('id="app"'))`) {
			t.Error("the stored document is not the shell without data")
		}
		p.offline(true)
		p.press("열다 강남점")
		p.see("인터넷에 연결되어 있지 않아요", "다시 시도")
		p.look("no-network")
		p.offline(false)
		p.press("다시 시도")
		p.see("언제 갈까요?")
		kept := value[[]string](p, `(async () => (await Promise.all((await caches.keys()).map(async n => (await (await caches.open(n)).keys()).map(r => new URL(r.url).pathname)))).flat())()`)
		for _, path := range kept {
			if path != "/" && !strings.HasPrefix(path, "/assets/") {
				t.Errorf("kept on the device: %s", path)
			}
		}
	})

	story("the browser code changes nothing on first screens", func(t *testing.T, p *page) { firstScreensAreTheSame(t, s, p) })
	story("the choice without scripts", func(_ *testing.T, p *page) { choiceWithoutScripts(p) })

	story("installable", func(t *testing.T, p *page) {
		p.open("/")
		manifest := value[struct {
			Name  string
			Icons []struct{ Src string }
		}](p, `fetch(document.querySelector("link[rel=manifest]").href).then(r => r.json()).then(m => ({Name: m.name, Icons: m.icons.map(i => ({Src: i.src}))}))`)
		if manifest.Name == "" || len(manifest.Icons) < 3 {
			t.Errorf("manifest %+v", manifest)
		}
		for _, icon := range manifest.Icons {
			if !value[bool](p, `new Promise(done => { const i = new Image(); i.onload = () => done(i.naturalWidth > 0); i.onerror = () => done(false); i.src = `+quoted(icon.Src)+` })`) {
				t.Errorf("%s is not a picture", icon.Src)
			}
		}
	})

	t.Run("sizes", func(t *testing.T) {
		shell := get(t, s.Pages+"/")
		total := 0
		for _, name := range scripts(t, s, shell) {
			total += len(fetchZipped(t, s.Pages+name))
		}
		t.Logf("the customers' scripts: %d bytes zipped", total)
		if total > 40<<10 {
			t.Errorf("the customers' scripts have %d bytes zipped, want at most %d", total, 40<<10)
		}
	})

	t.Run("only the payment page may run a script of others", func(t *testing.T) {
		for path, foreign := range map[string]bool{"/": false, "/b/gangnam": false, "/book/contact": false, "/book/pay": true, "/nowhere": false} {
			response, err := http.Get(s.Pages + path)
			if err != nil {
				t.Fatal(err)
			}
			response.Body.Close()
			policy := response.Header.Get("Content-Security-Policy")
			if strings.Contains(policy, s.SandboxAt) != foreign || strings.Contains(policy, "script-src 'unsafe") || policy == "" {
				t.Errorf("%s: %s", path, policy)
			}
		}
	})
}

func TestWebTimesRunOut(t *testing.T) {
	t.Parallel()
	chromium.Need(t)
	s := startStack(t, map[string]string{"YEOLDA_CUSTOMER_HOLD_TTL": "20s", "YEOLDA_DEPOSIT_DUE": "5s", "YEOLDA_LEGAL_PHONE": "02-0000-1000"})
	first := newPage(t, s.Pages)

	t.Run("of a hold", func(t *testing.T) {
		p := first.another(t)
		p.expect("401 (Unauthorized)")
		p.patience = 40 * time.Second
		p.begin("내일", "5번 룸")
		p.reserve()
		value[bool](p, `(document.querySelector("main input")?.focus(), true)`)
		p.see("맡아 둔 시간이 지났어요")
		p.headed("맡아 둔 시간이 지났어요")
		p.look("hold-over", phone, desktop, narrow)
		p.on(phone).press("다시 맡기")
		p.see("누구 이름으로 예약할까요?", "자리를 맡아 드려요")
	})
	t.Run("of a choice", func(t *testing.T) {
		p := first.another(t)
		p.begin("오늘", "4번 룸")
		value[bool](p, `(real => { Date.now = () => real() + 600_000; return true })(Date.now.bind(Date))`)
		p.wait("the choice has ended", `[...document.querySelectorAll("[role=alert]")].some(e => e.textContent === "지난 시간")`)
	})
	t.Run("of a deposit", func(t *testing.T) {
		p := first.another(t)
		p.begin("내일", "6번 룸")
		p.reserve()
		p.introduce("01077776666")
		p.pay(s, "가상계좌")
		p.see("입금하면 예약이 확정돼요")
		value[bool](p, `(document.querySelector(".account button")?.focus(), true)`)
		p.see("예약이 취소됐어요") // without a reload
		p.headed("예약이 취소됐어요")
		p.look("deposit-over")
	})
	t.Run("of the deposit of an extension", func(t *testing.T) {
		p := first.another(t)
		address := "/k/" + newBrowser(t, s).buy(s, "gangnam", 2, 25000, "01077776667")
		p.open(address)
		p.wait("the ends to choose from", `document.querySelectorAll("#extend option").length > 1`)
		p.press("연장하기")
		p.at("/book/pay")
		p.pay(s, "가상계좌")
		p.see("입금하면 예약이 확정돼요")
		p.see("연장하지 못했어요", "입금할 시간이 지났어요")
		if p.sees("예약이 취소됐어요") {
			t.Error("the receipt of an extension says that the reservation was cancelled")
		}
		p.press("열쇠 열기")
		p.at(address)
		p.see("지금 열 수 있어요")
	})
}

// scripts lists all scripts that the customers' site may load, including parts that it loads later.
func scripts(t *testing.T, s *world.Stack, shell string) []string {
	t.Helper()
	found := regexp.MustCompile(`/assets/[\w-]+\.js`).FindAllString(shell, -1)
	for i := 0; i < len(found); i++ {
		for _, part := range regexp.MustCompile(`\./[\w-]+\.js`).FindAllString(get(t, s.Pages+found[i]), -1) {
			if name := "/assets/" + strings.TrimPrefix(part, "./"); !slices.Contains(found, name) {
				found = append(found, name)
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

func get(t *testing.T, address string) string {
	t.Helper()
	zipped, err := gzip.NewReader(strings.NewReader(fetchZipped(t, address)))
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(zipped)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func fetchZipped(t *testing.T, address string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept-Encoding", "gzip")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d, %v", address, response.StatusCode, err)
	}
	return string(body)
}

// dayOf returns the next day after tomorrow on which a branch has the given status.
func dayOf(t *testing.T, s *world.Stack, branch, status string) string {
	t.Helper()
	from := currentSlot().In(seoul).AddDate(0, 0, 2)
	for _, month := range []string{from.Format("2006-01"), from.AddDate(0, 0, 20).Format("2006-01")} {
		var answer struct {
			Dates []struct{ Date, Status string }
		}
		newBrowser(t, s).must("GET", "/v2/branches/"+branch+"/calendar?yearMonth="+month, nil, &answer)
		for _, day := range answer.Dates {
			if day.Date >= from.Format("2006-01-02") && day.Status == status {
				return day.Date
			}
		}
	}
	t.Fatalf("%s has no day that is %s", branch, status)
	return ""
}

// priceOf returns the price of an hour in a room.
func priceOf(t *testing.T, s *world.Stack, branch, day, room string) int {
	t.Helper()
	var answer struct {
		Rooms []struct {
			RoomNo  string
			Pricing struct{ Min60 int }
		}
	}
	newBrowser(t, s).must("GET", "/v2/branches/"+branch+"/reservations?baseHour=0&date="+day, nil, &answer)
	for _, r := range answer.Rooms {
		if r.RoomNo == room {
			return r.Pricing.Min60
		}
	}
	t.Fatalf("%s has no room %s", branch, room)
	return 0
}
