package web

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/company"
)

const testKey = "0f3c1d52-7a54-4a6e-9a51-0b1f6f0a8f11"

var seoul = time.FixedZone("KST", 9*60*60)

// otherScript is a file of the pages of another version.
const otherScript = "export const version = 'another version, which is longer than its compressed form: another version, another version';"

// fakeKeys implements Keys for one key with configurable results, and records the unlock requests.
type fakeKeys struct {
	key     Key
	unlock  error
	result  Result
	await   error
	pressed []string
}

func (f *fakeKeys) find(_ context.Context, key string) (Key, error) {
	if key != testKey {
		return Key{}, ErrUnknownKey
	}
	return f.key, nil
}

func (f *fakeKeys) press(_ context.Context, branch, door, _ string) (string, error) {
	f.pressed = append(f.pressed, branch+" "+door)
	return "request-1", f.unlock
}

func (f *fakeKeys) wait(_ *http.Request, _, _ string) (Result, error) { return f.result, f.await }

// newSite returns a site whose clock is fixed at the given time. Its only key has a reservation from 15:00 to 16:20.
func newSite(t *testing.T, clock string) (http.Handler, *fakeKeys) {
	t.Helper()
	at, err := time.ParseInLocation("2006-01-02 15:04", "2026-11-22 "+clock, seoul)
	if err != nil {
		t.Fatal(err)
	}
	start := time.Date(2026, 11, 22, 15, 0, 0, 0, seoul)
	end := start.Add(80 * time.Minute)
	keys := &fakeKeys{key: Key{
		Branch: "gangnam", NameKo: "강남점", NameEn: "Gangnam", Address: "서울특별시 강남구 <가상대로> 123", Phone: "02-0000-1001", Room: 2,
		Zone: seoul, Start: start, End: end, From: start.Add(-2 * time.Minute), To: end.Add(-2 * time.Minute), Online: true,
	}}
	reads := 0
	handler, err := New(Options{
		File: func(_ context.Context, name string) ([]byte, error) {
			switch name {
			case "customer-OTHER7AB.js":
				if reads++; reads > 1 {
					return nil, errors.New("read and compressed for each request")
				}
				return []byte(otherScript), nil
			case "customer-FAILS234.js":
				return nil, errors.New("no database")
			}
			return nil, nil
		},
		PublicURL: "https://yeolda.example", Company: func(context.Context) company.Snapshot {
			return company.Snapshot{Profile: company.Profile{Company: company.Facts{Name: "주식회사 열다", Phone: "02-0000-1000"}}}
		}, Widget: TossWidget(),
		Keys: Keys{Find: keys.find, Unlock: keys.press, Await: keys.wait}, Data: testData,
		Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return at },
	})
	if err != nil {
		t.Fatal(err)
	}
	return handler, keys
}

func send(handler http.Handler, method, target, body string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	return w
}

func TestNothingFromElsewhereIsBundled(t *testing.T) {
	t.Parallel()
	for name, source := range map[string]string{"a package": `import "preact"`, "an address": `import "https://cdn.example/x.js"`, "a lost file": `import "./gone"`} {
		if _, err := bundlePages(fstest.MapFS{"a.ts": {Data: []byte(source)}}, "a.ts"); err == nil {
			t.Errorf("%s was bundled", name)
		}
	}
	if _, err := bundlePages(fstest.MapFS{"a.ts": {Data: []byte("const x = ;")}}, "a.ts"); err == nil || !strings.Contains(err.Error(), "a.ts:1") {
		t.Errorf("a mistake is reported as %v", err)
	}
}

func TestEachPageNeedsOneScript(t *testing.T) {
	t.Parallel()
	made, err := makeOnce()
	if err != nil {
		t.Fatal(err)
	}
	if len(made.pages.entry) == 0 {
		t.Error("no entry point was bundled")
	}
	for page, needs := range made.pages.needs {
		if len(needs) > 0 {
			t.Errorf("%s needs %v, want no second script", page, needs)
		}
	}
}

func TestEveryKoreanTextHasAnEnglishOne(t *testing.T) {
	t.Parallel()
	texts := func(name string) map[string][]string {
		source, err := fs.ReadFile(sources(), "locales/"+name)
		if err != nil {
			t.Fatal(err)
		}
		found := map[string][]string{}
		for _, m := range regexp.MustCompile(`(?m)^  (\w+):\s+"(.*)",$`).FindAllStringSubmatch(string(source), -1) {
			found[m[1]] = regexp.MustCompile(`\{\w+\}`).FindAllString(m[2], -1)
		}
		return found
	}
	ko, en := texts("ko.ts"), texts("en.ts")
	if len(ko) < 100 {
		t.Fatalf("only %d texts were found", len(ko))
	}
	for key := range ko {
		if _, ok := en[key]; !ok {
			t.Errorf("%s has no English text", key)
		}
	}
	for key, holes := range en {
		known := strings.Join(ko[key], " ")
		for _, hole := range holes {
			if !strings.Contains(known, hole) {
				t.Errorf("%s: %s is not filled", key, hole)
			}
		}
	}
}

// TestFilesOfAnotherVersion asks for files that only the document of a replica of another version names, as in a rolling upgrade.
func TestFilesOfAnotherVersion(t *testing.T) {
	t.Parallel()
	site, _ := newSite(t, "15:30")
	w := send(site, "GET", "/assets/customer-OTHER7AB.js", "", "Accept-Encoding", "gzip")
	if header := w.Header(); w.Code != 200 || header.Get("Content-Type") != "text/javascript; charset=utf-8" || !strings.Contains(header.Get("Cache-Control"), "immutable") {
		t.Errorf("a stored file: %d %v", w.Code, header)
	}
	if body := send(site, "GET", "/assets/customer-OTHER7AB.js", "").Body.String(); body != otherScript {
		t.Errorf("a stored file: got %q, want %q", body, otherScript)
	}
	for name, want := range map[string]int{"customer-UNKNOWN2.js": 404, "customer-OTHER7AB.js.map": 404, "customer-FAILS234.js": 500} {
		if w := send(site, "GET", "/assets/"+name, ""); w.Code != want || strings.Contains(w.Header().Get("Cache-Control"), "immutable") {
			t.Errorf("%s: %d %v, want %d that is not kept", name, w.Code, w.Header(), want)
		}
	}
}

// TestFilesHaveAssetNames checks that a replica of another version would serve every file of the pages.
func TestFilesHaveAssetNames(t *testing.T) {
	t.Parallel()
	files, err := Files()
	if err != nil || len(files) < 5 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for name := range files {
		if !assetName.MatchString(name) {
			t.Errorf("another version would not serve %s", name)
		}
	}
}

func TestAssetsAreCachedPermanently(t *testing.T) {
	t.Parallel()
	site, _ := newSite(t, "15:30")
	page := send(site, "GET", "/", "").Body.String()
	assets := regexp.MustCompile(`/assets/[^"]+`).FindAllString(page, -1)
	if len(assets) < 2 {
		t.Fatalf("the shell names %v", assets)
	}
	for _, name := range assets {
		w := send(site, "GET", name, "", "Accept-Encoding", "gzip")
		if w.Code != 200 || w.Header().Get("Content-Encoding") != "gzip" || !strings.Contains(w.Header().Get("Cache-Control"), "immutable") {
			t.Errorf("%s: %d %v", name, w.Code, w.Header())
		}
		tag := w.Header().Get("ETag")
		for _, known := range []string{tag, "W/" + tag, `"other", ` + tag} {
			if again := send(site, "GET", name, "", "If-None-Match", known); again.Code != 304 || again.Body.Len() > 0 {
				t.Errorf("%s again, If-None-Match %s: %d with %d bytes", name, known, again.Code, again.Body.Len())
			}
		}
		if plain := send(site, "GET", name, ""); plain.Header().Get("Content-Encoding") != "" || plain.Body.Len() <= w.Body.Len() {
			t.Errorf("%s for who takes no gzip: %d bytes, %d zipped", name, plain.Body.Len(), w.Body.Len())
		}
	}
}

func TestFixedFiles(t *testing.T) {
	t.Parallel()
	site, _ := newSite(t, "15:30")
	for path, media := range map[string]string{
		"/sw.js": "text/javascript", "/manifest.webmanifest": "application/manifest+json", "/icon.svg": "image/svg+xml",
		"/icon-512.png": "image/png", "/icon-maskable.png": "image/png", "/robots.txt": "text/plain",
	} {
		w := send(site, "GET", path, "")
		if w.Code != 200 || !strings.HasPrefix(w.Header().Get("Content-Type"), media) || w.Header().Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %d %v", path, w.Code, w.Header())
		}
	}
}

func TestAddressesThatAreNoScreen(t *testing.T) {
	t.Parallel()
	site, _ := newSite(t, "15:30")
	for path, want := range map[string]int{
		"/": 200, "/b/gangnam": 200, "/b/gangnam/2026-11-22": 200, "/book/pay": 200, "/my/12/cancel": 200,
		"/nowhere": 404, "/b": 404, "/assets/nothing.js": 404, "/k/" + testKey + "/more": 404,
	} {
		if w := send(site, "GET", path, ""); w.Code != want || !strings.Contains(w.Body.String(), `<div id="app"`) {
			t.Errorf("%s: %d, want %d and the shell", path, w.Code, want)
		}
	}
}

func TestOnlyThePaymentPageTrustsTheProvider(t *testing.T) {
	t.Parallel()
	site, _ := newSite(t, "15:30")
	for path, trusted := range map[string]bool{"/": false, "/book/contact": false, "/book/pay": true, "/nowhere": false, "/k/" + testKey: false} {
		policy := send(site, "GET", path, "").Header().Get("Content-Security-Policy")
		if got := strings.Contains(policy, "https://js.tosspayments.com"); got != trusted {
			t.Errorf("%s: %s", path, policy)
		}
		if regexp.MustCompile(`script-src[^;]*unsafe|script-src[^;]*\*`).MatchString(policy) || !strings.Contains(policy, "frame-ancestors 'none'") {
			t.Errorf("%s is lax: %s", path, policy)
		}
	}
}

func TestKeyPageThroughTheDay(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ clock, state string }{{"14:57", "before"}, {"14:58", "open"}, {"16:17", "open"}, {"16:18", "leaving"}, {"16:20", "after"}} {
		site, _ := newSite(t, c.clock)
		page := send(site, "GET", "/k/"+testKey, "").Body.String()
		if !strings.Contains(page, `data-state="`+c.state+`"`) {
			t.Errorf("at %s the page is not in state %s", c.clock, c.state)
		}
		if !strings.Contains(page, ` data-connected="true"`) {
			t.Errorf("at %s the page does not say that the branch is connected", c.clock)
		}
		if disabled := strings.Count(page, " disabled>"); (disabled == 0) != (c.state == "open") {
			t.Errorf("at %s (%s) %d buttons are disabled", c.clock, c.state, disabled)
		}
	}
}

// TestKeyPageOfABranchWithoutAPhone: in front of a door that does not open, the guest calls the company.
func TestKeyPageOfABranchWithoutAPhone(t *testing.T) {
	t.Parallel()
	site, keys := newSite(t, "15:30")
	for phone, want := range map[string]string{"02-0000-1001": "tel:02-0000-1001", "": "tel:02-0000-1000"} {
		keys.key.Phone = phone
		if page := send(site, "GET", "/k/"+testKey, "").Body.String(); !strings.Contains(page, want) {
			t.Errorf("phone of the branch %q: no link %s", phone, want)
		}
	}
}

func TestKeyPageNamesTheDateOfAnEndAfterDays(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		length              time.Duration
		lang, times, window string
	}{
		{80 * time.Minute, "ko", "11월 22일 (일) <b>15:00–16:20</b>", "문은 14:58부터 16:18까지"},
		{10 * time.Hour, "ko", "11월 22일 (일) <b>15:00–01:00</b>", "문은 14:58부터 00:58까지"},
		{24 * time.Hour, "ko", "11월 22일 (일) <b>15:00–11월 23일 (월) 15:00</b>", "문은 14:58부터 11월 23일 (월) 14:58까지"},
		{74 * time.Hour, "ko", "11월 22일 (일) <b>15:00–11월 25일 (수) 17:00</b>", "문은 14:58부터 11월 25일 (수) 16:58까지"},
		{74 * time.Hour, "en", "Sun 22 November <b>15:00–Wed 25 November 17:00</b>", "from 14:58 to Wed 25 November 16:58"},
	} {
		site, keys := newSite(t, "15:30")
		keys.key.End = keys.key.Start.Add(c.length)
		keys.key.To = keys.key.End.Add(-2 * time.Minute)
		page := send(site, "GET", "/k/"+testKey+"?lang="+c.lang, "").Body.String()
		for _, want := range []string{c.times, c.window} {
			if !strings.Contains(page, want) {
				t.Errorf("%v in %s: the page does not contain %q", c.length, c.lang, want)
			}
		}
		calendar := strings.ReplaceAll(send(site, "GET", "/k/"+testKey+"/reservation.ics?lang="+c.lang, "").Body.String(), "\r\n ", "")
		if !strings.Contains(calendar, c.window) {
			t.Errorf("%v in %s: the calendar file does not contain %q", c.length, c.lang, c.window)
		}
	}
}

func TestKeyPageIsWholeAndSmall(t *testing.T) {
	t.Parallel()
	site, _ := newSite(t, "15:30")
	w := send(site, "GET", "/k/"+testKey, "", "Accept-Encoding", "gzip")
	page := send(site, "GET", "/k/"+testKey, "").Body.String()
	total := w.Body.Len()
	parts := regexp.MustCompile(`/assets/key-parts-\w+\.js`).FindString(page)
	for _, path := range []string{"/icon.svg", "/manifest.webmanifest", "/sw.js", parts} {
		total += send(site, "GET", path, "", "Accept-Encoding", "gzip").Body.Len()
	}
	t.Logf("key page: %d bytes, %d zipped, %d with all that it loads", len(page), w.Body.Len(), total)
	// In a basement the bytes on the wire count; the text, which phones parse before a door can be pressed, may be a little longer.
	if len(page) > 19<<10 || total > 12<<10 {
		t.Errorf("the key page has %d bytes, %d zipped with all it loads; 19 and 12 KB are the limits", len(page), total)
	}
	if parts == "" {
		t.Error("the page names no script for its parts")
	}
	if regexp.MustCompile(`<script[^>]+src|rel="?stylesheet`).MatchString(page) {
		t.Error("it is not whole: a door needs more")
	}
	policy := w.Header().Get("Content-Security-Policy")
	for _, part := range []string{"style", "script"} {
		text := regexp.MustCompile(`(?s)<` + part + `>(.*?)</` + part + `>`).FindStringSubmatch(page)
		if text == nil || !strings.Contains(policy, hashSource(text[1])) {
			t.Errorf("its own %s is not allowed by %s", part, policy)
		}
	}
	for name, want := range map[string]string{"Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Robots-Tag": "noindex"} {
		if got := w.Header().Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if strings.Contains(page, "<가상대로>") {
		t.Error("the address was not escaped")
	}
}

func TestKeyPageWithoutScripts(t *testing.T) {
	t.Parallel()
	site, keys := newSite(t, "15:30")
	form := []string{"Content-Type", "application/x-www-form-urlencoded"}
	w := send(site, "POST", "/k/"+testKey, "door=room", form...)
	if w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/k/"+testKey+"?door=room&request=request-1" {
		t.Fatalf("%d %v", w.Code, w.Header())
	}
	if len(keys.pressed) != 1 || keys.pressed[0] != "gangnam room" {
		t.Errorf("pressed %v", keys.pressed)
	}
	shown := func(result string) bool {
		page := send(site, "GET", w.Header().Get("Location"), "").Body.String()
		return strings.Contains(page, `data-result="`+result+`">`)
	}
	keys.result = Result{Opened: true}
	if !shown("opened") || shown("pin") {
		t.Error("an open door is not shown")
	}
	keys.result = Result{PIN: "481902"}
	if page := send(site, "GET", w.Header().Get("Location"), "").Body.String(); !shown("pin") || !strings.Contains(page, `aria-label="4 8 1 9 0 2"`) {
		t.Error("the PIN is not shown")
	}
	keys.result = Result{PIN: "48190226"}
	if !shown("pin") || shown("code") {
		t.Error("a static PIN of eight digits is not shown as a PIN")
	}
	keys.result = Result{PIN: "48190226", Code: true}
	if !shown("code") || shown("pin") {
		t.Error("a one-time code is not shown as a code")
	}
	keys.result, keys.await = Result{}, errors.New("nothing in time")
	if !shown("unknown") || shown("opened") {
		t.Error("a missing result is not shown")
	}
	moved := send(site, "POST", "/k/"+testKey, "door=room&room=3", form...)
	if moved.Code != http.StatusConflict || !strings.Contains(moved.Body.String(), `data-result="moved">`) || len(keys.pressed) != 1 {
		t.Errorf("a press for another room: got %d and presses %v, want 409 and one press", moved.Code, keys.pressed)
	}
	if w := send(site, "POST", "/k/"+testKey, "door=cellar", form...); w.Code != http.StatusBadRequest {
		t.Errorf("an unknown door: got %d, want 400", w.Code)
	}
	keys.unlock = errors.New("no database")
	if w := send(site, "POST", "/k/"+testKey, "door=front", form...); w.Code != http.StatusServiceUnavailable {
		t.Errorf("without the database: got %d, want 503", w.Code)
	}
	early, sleeping := newSite(t, "14:00")
	if w := send(early, "POST", "/k/"+testKey, "door=front", form...); w.Code != http.StatusGone || len(sleeping.pressed) != 0 {
		t.Errorf("outside of the window: %d, pressed %v", w.Code, sleeping.pressed)
	}
	if w := send(site, "POST", "/k/unknown", "door=front", form...); w.Code != http.StatusNotFound {
		t.Errorf("an unknown key: %d", w.Code)
	}
}

func TestKeyPageSpeaksTheirLanguage(t *testing.T) {
	t.Parallel()
	site, _ := newSite(t, "15:30")
	for _, c := range []struct {
		path, accepts, cookie, want string
	}{
		{"", "ko-KR,ko;q=0.9,en;q=0.8", "", "현관문 열기"},
		{"", "en-US,en", "", "Open the entrance"},
		{"", "", "", "현관문 열기"},
		{"", "en-US", "lang=ko", "현관문 열기"},
		{"?lang=en", "ko", "", "Open the entrance"},
	} {
		w := send(site, "GET", "/k/"+testKey+c.path, "", "Accept-Language", c.accepts, "Cookie", c.cookie)
		if !strings.Contains(w.Body.String(), c.want) {
			t.Errorf("%+v: not in that language", c)
		}
	}
}

func TestCalendarFile(t *testing.T) {
	t.Parallel()
	site, _ := newSite(t, "12:00")
	w := send(site, "GET", "/k/"+testKey+"/reservation.ics", "")
	file, err := io.ReadAll(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	text := string(file)
	for _, want := range []string{
		"DTSTART:20261122T060000Z", "DTEND:20261122T072000Z", "SUMMARY:강남점 2번 룸", "TRIGGER:-PT1800S",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is missing in\n%s", want, text)
		}
	}
	if strings.Contains(strings.ReplaceAll(text, "\r\n ", ""), testKey) {
		t.Errorf("the key is in a file that calendars share:\n%s", text)
	}
}
