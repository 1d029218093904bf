package web

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"
)

// hostile is a text that ends scripts, attributes and tags.
const hostile = `</script><script>alert(1)</script>" onload='x' & <b>`

// testAnswers are the answers of the interface by address. The clock of newSite stands on 2026-11-22.
var testAnswers = map[string]any{
	"/v2/site": map[string]any{"company": map[string]any{"name": "주식회사 열다", "phone": "02-0000-1000", "businessNumber": "123-45-67890", "hostingProvider": "열다 클라우드"}},
	"/v2/branches/now": map[string]any{"next": "50", "branches": []any{
		branchAnswer(map[string]any{"status": "available", "freeRooms": 2, "online": true, "location": map[string]any{"latitude": 37.5, "longitude": 127.0},
			"photo": map[string]any{"alt": map[string]any{"ko": hostile, "en": "A sofa"}, "sources": []any{
				map[string]any{"url": "/photos/small.jpg", "width": 480, "height": 240}, map[string]any{"url": "/photos/large.jpg", "width": 960, "height": 480}}}}),
		map[string]any{"branch": "hongdae", "nameKo": "홍대점", "nameEn": "", "timeZone": "Asia/Seoul", "status": "holiday", "reason": "정기 휴무"},
		map[string]any{"branch": "jamsil", "nameKo": "잠실점", "nameEn": "Jamsil", "timeZone": "Asia/Seoul", "status": "available", "nextFreeDateTime": "202611221830"},
		map[string]any{"branch": "sinchon", "nameKo": "신촌점", "nameEn": "Sinchon", "timeZone": "Asia/Seoul", "status": "available", "nextFreeDateTime": "202611231000"},
	}},
	"/v2/branches/now?q=gang": map[string]any{"branches": []any{branchAnswer(map[string]any{"status": "available", "freeRooms": 1})}, "next": nil},
	"/v2/branches?branch=gangnam": map[string]any{"branches": []any{branchAnswer(map[string]any{"bookingHorizonDays": 60,
		"seller": map[string]any{"name": "다른 회사", "phone": "02-9999-0000"}})}},
	"/v2/branches?branch=soon": map[string]any{"branches": []any{branchAnswer(map[string]any{"branch": "soon", "bookingHorizonDays": 2})}},
	"/v2/branches/soon/rooms":  map[string]any{"rooms": []any{}},
	"/v2/branches/soon/calendar?yearMonth=2026-11": map[string]any{"dates": []any{
		map[string]any{"date": "2026-11-22", "status": "available"}, map[string]any{"date": "2026-11-23", "status": "available"},
		map[string]any{"date": "2026-11-24", "status": "available"}}},
	"/v2/branches?branch=nowhere": map[string]any{"branches": []any{}},
	"/v2/branches/gangnam/calendar?yearMonth=2026-11": map[string]any{"dates": []any{
		map[string]any{"date": "2026-11-22", "status": "available", "reason": nil},
		map[string]any{"date": "2026-11-24", "status": "closed", "reason": hostile}}},
	"/v2/branches/gangnam/rooms": map[string]any{"rooms": []any{map[string]any{"roomNo": "1", "description": map[string]any{"ko": hostile, "en": ""},
		"amenities": []any{map[string]any{"ko": "빔 프로젝터", "en": ""}}, "photos": []any{}}}},
	"/v2/branches/gangnam/reservations?date=2026-11-22&baseHour=0&hours=24": lookupAnswer("1-202611221540", "1-202611221550", "1-202611222350"),
	"/v2/branches/gangnam/reservations?date=2026-11-23&baseHour=0&hours=5":  lookupAnswer("1-202611230010"),
	"/v2/branches/gangnam/reservations?date=2026-11-24&baseHour=0&hours=24": lookupAnswer(),
	"/v2/branches/gangnam/reservations?date=2026-11-25&baseHour=0&hours=5":  lookupAnswer(),
}

func branchAnswer(more map[string]any) map[string]any {
	branch := map[string]any{"branch": "gangnam", "nameKo": "강남점 " + hostile, "nameEn": "Gangnam", "address": "서울 " + hostile, "phone": "02-0000-1001", "timeZone": "Asia/Seoul"}
	for name, value := range more {
		branch[name] = value
	}
	return branch
}

func lookupAnswer(paid ...string) map[string]any {
	prices := map[string]any{"min10": 3000, "min30": nil, "min60": 12000}
	return map[string]any{
		"rooms": []any{
			map[string]any{"roomNo": "1", "machine": hostile, "grade": "VIP", "enabled": true, "pricing": prices},
			map[string]any{"roomNo": "2", "machine": "침대", "grade": nil, "enabled": false, "pricing": prices},
		},
		"unavailableSlots": map[string]any{"paid": paid},
	}
}

// testHolds are holds by the value of their cookie. The stay before that of "extension" is paid.
var testHolds = map[string]any{
	"own":       map[string]any{"branch": "gangnam", "roomNo": "1", "startDateTime": "202611222350", "endDateTime": "202611222350"},
	"elsewhere": map[string]any{"branch": "hongdae", "roomNo": "1", "startDateTime": "202611222350", "endDateTime": "202611222350"},
	"extension": map[string]any{"branch": "gangnam", "roomNo": "1", "startDateTime": "202611221550", "endDateTime": "202611221550"},
}

func testData(r *http.Request, _, address string) (json.RawMessage, error) {
	answer, ok := testAnswers[address]
	if hold, err := r.Cookie(HoldCookie); err == nil && address == "/v2/hold" {
		answer, ok = testHolds[hold.Value]
	}
	if !ok {
		return nil, fmt.Errorf("unexpected request %s", address)
	}
	return json.Marshal(answer)
}

var firstScreens = map[string]struct{ ko, en string }{
	"/":                     {"어느 지점으로 갈까요?", "Which branch would you like?"},
	"/b/gangnam":            {"언제 갈까요?", "which day?"},
	"/b/gangnam/2026-11-22": {"어느 룸에서 쉴까요?", "Which room would you like?"},
	"/b/gangnam/2026-11-22?room=1&start=1600": {"얼마나 쉴까요?", "For how long?"},
	"/b/gangnam/2026-11-24":                   {"이 날은 쉬어요", "We are closed on this day"},
}

// TestOwnHoldIsOffered: the time that a browser holds is offered on the choice of a time, and the document carries the hold. More time of
// a stay is not: it is chosen on the key page.
func TestOwnHoldIsOffered(t *testing.T) {
	t.Parallel()
	site, _ := newSite(t, "15:30")
	for hold, c := range map[string]struct {
		start   string
		offered bool
	}{"own": {"2350", true}, "elsewhere": {"2350", false}, "none": {"2350", false}, "extension": {"1550", false}} {
		page := send(site, "GET", "/b/gangnam/2026-11-22?room=1&start="+c.start, "", "Cookie", HoldCookie+"="+hold).Body.String()
		if got := strings.Contains(page, `start=`+c.start+`" aria-current`); got != c.offered {
			t.Errorf("%s: the time is offered: %v, want %v", hold, got, c.offered)
		}
		if got := strings.Contains(page, `"/v2/hold"`); got != c.offered {
			t.Errorf("%s: the document carries the hold: %v, want %v", hold, got, c.offered)
		}
	}
}

var hangul = regexp.MustCompile(`\p{Hangul}`)

func TestFirstScreensInBothLanguages(t *testing.T) {
	t.Parallel()
	site, _ := newSite(t, "15:30")
	for path, want := range firstScreens {
		for lang, text := range map[string]string{"ko": want.ko, "en": want.en} {
			w := send(site, "GET", path, "", "Cookie", "lang="+lang)
			page := w.Body.String()
			if w.Code != http.StatusOK || !strings.Contains(page, `<html lang="`+lang+`">`) || !strings.Contains(page, text) {
				t.Errorf("%s in %s: %d without %q", path, lang, w.Code, text)
			}
			if lang == "en" {
				title := regexp.MustCompile(`<title>(.*?)</title>`).FindStringSubmatch(page)
				about := regexp.MustCompile(`<meta name="description" content="(.*?)">`).FindStringSubmatch(page)
				if title == nil || about == nil || hangul.MatchString(title[1]+about[1]) {
					t.Errorf("%s: English title and description %q %q", path, title, about)
				}
			}
		}
	}
	if chosen := send(site, "GET", "/?lang=en", "", "Cookie", "lang=ko"); !strings.Contains(chosen.Body.String(), `<html lang="en">`) || !strings.HasPrefix(chosen.Header().Get("Set-Cookie"), "lang=en") {
		t.Error("the language of the address does not last")
	}
}

// TestLastDay checks that only days are offered whose every time lies within the horizon: at 15:30 the time two days ahead ends at
// 15:30.
func TestLastDay(t *testing.T) {
	t.Parallel()
	site, _ := newSite(t, "15:30")
	page := send(site, "GET", "/b/soon", "").Body.String()
	for day, want := range map[string]bool{"2026-11-22": true, "2026-11-23": true, "2026-11-24": false} {
		if got := strings.Contains(page, `href="/b/soon/`+day+`"`); got != want {
			t.Errorf("%s is offered: %t, want %t", day, got, want)
		}
	}
}

// TestFirstScreensEscapeData puts a hostile text everywhere: no page may contain it, as text, in an attribute or in JSON.
func TestFirstScreensEscapeData(t *testing.T) {
	t.Parallel()
	site, _ := newSite(t, "15:30")
	script := regexp.MustCompile(`(?s)<script type="application/(?:ld\+)?json"[^>]*>(.*?)</script>`)
	for path := range firstScreens {
		for _, lang := range []string{"ko", "en"} {
			page := send(site, "GET", path, "", "Cookie", "lang="+lang).Body.String()
			if markup := script.ReplaceAllString(page, ""); strings.Contains(page, "<script>alert") || strings.Contains(markup, "onload='x'") || strings.Contains(page, "ZgotmplZ") {
				t.Errorf("%s in %s contains data that is not escaped", path, lang)
			}
			blocks := script.FindAllStringSubmatch(page, -1)
			if len(blocks) != 2 {
				t.Fatalf("%s: %d blocks of JSON, want structured data and the data of the screen", path, len(blocks))
			}
			for _, block := range blocks {
				var found any
				if err := json.Unmarshal([]byte(block[1]), &found); err != nil {
					t.Errorf("%s: %v in %s", path, err, block[1])
				} else if again, err := json.Marshal(found); err != nil || !strings.Contains(string(again), `alert(1)`) && strings.Contains(block[0], "carried") {
					t.Errorf("%s: the data of the screen has lost a text", path)
				}
			}
		}
	}
}

func TestFirstScreensForSearchEnginesAndShares(t *testing.T) {
	t.Parallel()
	site, _ := newSite(t, "15:30")
	for path, parts := range map[string][]string{
		"/": {
			`<title>10분 단위로 빌리는 무인 룸 | 열다</title>`, `<link rel="canonical" href="https://yeolda.example/">`, `"@type":"ItemList"`, `"latitude":37.5`,
			`<meta property="og:image" content="https://yeolda.example/photos/large.jpg">`, `hreflang="en" href="https://yeolda.example/?lang=en"`,
		},
		"/b/gangnam?month=2026-12": {`<link rel="canonical" href="https://yeolda.example/b/gangnam">`, `"@type":"LocalBusiness"`, `"telephone":"02-0000-1001"`},
		"/b/gangnam/2026-11-22?room=1": {
			`<link rel="canonical" href="https://yeolda.example/b/gangnam/2026-11-22">`, `"@type":"Product"`, `"price":"3000"`, `"priceCurrency":"KRW"`,
			`https://schema.org/InStock`, `<meta property="og:locale" content="ko_KR">`,
		},
	} {
		if strings.Contains(path, "month") {
			path = "/b/gangnam"
		}
		page := send(site, "GET", path, "").Body.String()
		for _, part := range parts {
			if !strings.Contains(page, part) {
				t.Errorf("%s does not contain %s", path, part)
			}
		}
	}
	english := send(site, "GET", "/b/gangnam?lang=en", "").Body.String()
	if !strings.Contains(english, `<link rel="canonical" href="https://yeolda.example/b/gangnam?lang=en">`) {
		t.Error("the English page has no address of its own")
	}
}

// TestFirstScreensShowWhatTheDataSays follows the links of a guest without scripts up to the choice.
func TestFirstScreensShowWhatTheDataSays(t *testing.T) {
	t.Parallel()
	site, _ := newSite(t, "15:34")
	for path, want := range map[string][]string{
		"/": {
			`지금 2개 룸 예약 가능`, `오늘은 쉬어요 (<span lang="ko">정기 휴무</span>)`, `오늘 18:30부터 예약 가능`, `내일 10:00부터 예약 가능`, `href="/?cursor=50"`, `name="q" maxlength="50"`,
			`srcset="/photos/small.jpg 480w"`, `href="tel:02-0000-1000"`,
		},
		"/?q=gang": {`name="q" value="gang"`, `지금 1개 룸 예약 가능`},
		"/b/gangnam": {
			`href="/b/gangnam/2026-11-22"`, `href="/b/gangnam?month=2026-12"`, `href="/b/gangnam/2026-11-22" aria-current="date"`, `다른 회사`,
		},
		"/b/gangnam/2026-11-22":                   {`href="/b/gangnam/2026-11-22?room=1"`, `지금부터 10분 비어 있어요`, `10분 3,000원부터`, `점검 중`, `빔 프로젝터`},
		"/b/gangnam/2026-11-22?room=1":            {`href="/b/gangnam/2026-11-22?room=1&amp;start=1530"`, `>15시<`, `<span class="chip off">15:40</span>`},
		"/b/gangnam/2026-11-22?room=1&start=2300": {`href="/b/gangnam/2026-11-22/1/2300-2350"`, `>15,000원<`, `aria-current="true">23시<`},
	} {
		page := send(site, "GET", path, "").Body.String()
		for _, part := range want {
			if !strings.Contains(page, part) {
				t.Errorf("%s does not contain %s", path, part)
			}
		}
	}
	if page := send(site, "GET", "/b/gangnam/2026-11-22?room=2", "").Body.String(); strings.Contains(page, "<dialog") {
		t.Error("a disabled room can be chosen")
	}
	last := send(site, "GET", "/", "", "Cookie", "branch=jamsil").Body.String()
	if strings.Index(last, `href="/b/jamsil"`) > strings.Index(last, `href="/b/gangnam"`) {
		t.Error("the branch seen last does not come first")
	}
}

func TestFirstScreensWithoutData(t *testing.T) {
	t.Parallel()
	site, _ := newSite(t, "15:30")
	for path, want := range map[string]int{"/b/nowhere": 404, "/b/gangnam/2026-13-40": 404, "/b/gangnam/2027-01-01": 200, "/shell": 200} {
		w := send(site, "GET", path, "")
		if page := w.Body.String(); w.Code != want || !strings.Contains(page, `<div id="app"><span class="spinner"`) || strings.Contains(page, `id="carried"`) {
			t.Errorf("%s: %d, want %d and the shell", path, w.Code, want)
		}
	}
}

// TestTextsAndIconsOfTheBrowserCodeAreRead compares the texts with the lines of their files, so that none is lost to its format.
func TestTextsAndIconsOfTheBrowserCodeAreRead(t *testing.T) {
	t.Parallel()
	found, err := readLocales(sources())
	if err != nil {
		t.Fatal(err)
	}
	for lang, texts := range found {
		source, err := fs.ReadFile(sources(), "locales/"+lang+".ts")
		if err != nil {
			t.Fatal(err)
		}
		if keys := regexp.MustCompile(`(?m)^  \w+:`).FindAllString(string(source), -1); len(keys)+len(descriptions[lang]) != len(texts) {
			t.Errorf("%d of %d texts in %s were read", len(texts)-len(descriptions[lang]), len(keys), lang)
		}
	}
	icons, err := readIcons(sources())
	if err != nil || len(icons["key"].Paths) != 2 {
		t.Errorf("icons: %v, %v", icons, err)
	}
}

// TestFreeText describes when a room is free on 22 November, open from 10:00 to 24:00 with a break at 15:00.
func TestFreeText(t *testing.T) {
	t.Parallel()
	texts, err := readLocales(sources())
	if err != nil {
		t.Fatal(err)
	}
	date := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	r := room{RoomNo: "1", Enabled: true, Pricing: pricing{Min10: new(3000)}}
	slotsBetween := func(from, to float64) (list []string) {
		for at := from * 60; at < to*60; at += 10 {
			list = append(list, "1-"+date.Add(time.Duration(at)*time.Minute).Format(minuteLayout))
		}
		return list
	}
	for _, c := range []struct {
		now      float64 // hours since midnight; before it on the day before
		reserved [][2]float64
		want     string
	}{
		{-3, nil, "하루 종일 비어 있어요"},
		{9, nil, "10:00부터 계속 비어 있어요"},
		{12, nil, "지금부터 계속 비어 있어요"},
		{15.2, nil, "15:30부터 계속 비어 있어요"},
		{-3, [][2]float64{{12, 13}}, "10:00부터 2시간 비어 있어요"},
		{12, [][2]float64{{17, 18}}, "지금부터 3시간 비어 있어요"},
		{-3, [][2]float64{{10, 18.5}}, "저녁에만 비어 있어요, 18:30부터"},
		{-3, [][2]float64{{10, 13}}, "13:00부터 계속 비어 있어요"},
		{19, [][2]float64{{10, 18.5}}, "지금부터 계속 비어 있어요"},
		{-3, [][2]float64{{10, 24}}, ""},
	} {
		now := date.Add(time.Duration(c.now * float64(time.Hour)))
		day := lookup{Rooms: []room{r}, UnavailableSlots: map[string][]string{"closedTime": slotsBetween(0, 10), "breakTime": slotsBetween(15, 15.5)}}
		night := lookup{UnavailableSlots: map[string][]string{"closedTime": slotsBetween(24, 29)}}
		for _, of := range c.reserved {
			day.UnavailableSlots["paid"] = append(day.UnavailableSlots["paid"], slotsBetween(of[0], of[1])...)
		}
		d := slotsOf(date, now, day, night)
		got := ""
		if start, free, ok := d.firstFree(r); ok {
			got = d.freeText(speech{Lang: "ko", texts: texts["ko"]}, "1", start, free)
		}
		if got != c.want {
			t.Errorf("at %v with %v reserved: %q, want %q", c.now, c.reserved, got, c.want)
		}
	}
}

// TestSlots compares the price and the lengths of the page with those of the browser code (testdata of core.ts).
func TestSlots(t *testing.T) {
	t.Parallel()
	won := func(n int) *int { return &n }
	date := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	r := room{RoomNo: "1", Enabled: true, Pricing: pricing{Min10: won(3000), Min60: won(15000)},
		PricingChanges: []pricingChange{{"202611220000", pricing{Min10: won(3000), Min60: won(15000)}}, {"202611221800", pricing{Min10: won(1000)}}}}
	for _, c := range []struct {
		start  string
		length time.Duration
		want   int
	}{{"1500", time.Hour, 15000}, {"1500", 70 * time.Minute, 18000}, {"1750", 20 * time.Minute, 4000}, {"1730", time.Hour, 15000}, {"1800", time.Hour, 6000}} {
		at, err := time.Parse(addressLayout, c.start)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := r.price(date.Add(at.Sub(at.Truncate(wholeDay))), c.length); !ok || got != c.want {
			t.Errorf("%s for %s: %d, want %d", c.start, c.length, got, c.want)
		}
	}
	if smallest, ok := r.smallest(); !ok || smallest.won != 1000 {
		t.Errorf("the lowest price is %v", smallest)
	}
	d := daySlots{date: date, now: date.Add(15*time.Hour + 36*time.Minute), rooms: []room{r}, taken: map[string]bool{"1-202611221640": true}}
	if start, free, ok := d.firstFree(r); !ok || start.Format("15:04") != "15:40" || free != time.Hour {
		t.Errorf("after the middle of a slot the first start is %s for %s", start, free)
	}
	if free := d.freeFrom("1", date.Add(23*time.Hour)); free != 6*time.Hour {
		t.Errorf("past midnight a room is free for %s", free)
	}
	if lengths := d.lengths(r, date.Add(23*time.Hour)); lengths[len(lengths)-1].length != longestStay {
		t.Errorf("the longest stay is %s", lengths[len(lengths)-1].length)
	}
}
