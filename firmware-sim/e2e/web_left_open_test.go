package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/yeolda/yeolda/firmware-sim/testkit/chromium"
)

// TestWebLeftOpen: a guest leaves a page open and returns to it later. It must show what holds now.
func TestWebLeftOpen(t *testing.T) {
	t.Parallel()
	chromium.Need(t)
	s := startStack(t, company)
	first := newPage(t, s.Pages)
	const seenAgain = `document.dispatchEvent(new Event("visibilitychange"))`

	t.Run("the choice of a day", func(t *testing.T) {
		p := first.another(t)
		p.expect("ERR_INTERNET_DISCONNECTED")
		p.open("/b/gangnam")
		p.taken()
		const today = `document.querySelector(".day-chip").getAttribute("href")`
		before := value[string](p, today)
		p.offline(true, s.API+"/*") // an answer would have the present time
		value[bool](p, `(now => { Date.now = () => now() + 86_400_000; return true })(Date.now)`)
		p.wait("the next day", today+` > `+quoted(before))
	})

	t.Run("the branches", func(t *testing.T) {
		p := first.another(t)
		p.open("/")
		p.taken()
		const state = `document.querySelector("a[href='/b/gangnam'] .state").innerText`
		before := value[string](p, state)
		// In the last two minutes of a slot, only room 6 is free, whose shortest stay is longer than a slot.
		keyOfAdminReservation(t, s, "gangnam", 1, "01055552221")
		keyOfAdminReservation(t, s, "gangnam", 6, "01055552224")
		value[bool](p, `(document.querySelector("a[href='/b/hongdae']").focus(), `+seenAgain+`)`)
		p.wait("fewer free rooms", state+` !== `+quoted(before))
		if !value[bool](p, `document.activeElement.matches("a[href='/b/hongdae']")`) {
			t.Error("the focus is lost")
		}
	})

	t.Run("the reservations", func(t *testing.T) {
		const mobile = "01055552222"
		mine := newBrowser(t, s)
		mine.purchase(s, "gangnam", 1, 30000, mobile, "카드", dayAfterAt(14))
		p := first.another(t)
		p.expect("401 (Unauthorized)")
		p.open("/login")
		p.logIn(s, mobile)
		p.see("결제 완료")
		id := value[int](p, `fetch("/api/my-reservations").then(r => r.json()).then(a => a.data[0].id)`)
		hq := newBrowser(t, s)
		hq.must("POST", "/admin/login", map[string]string{"id": "hq", "password": "hq-demo"}, nil)
		hq.must("DELETE", fmt.Sprintf("/admin/reservation/%d?bookingStatus=paid", id), nil, nil)
		value[bool](p, seenAgain)
		p.see("다가오는 예약이 없어요")
	})

	t.Run("the language after a deployment", func(t *testing.T) {
		target, err := url.Parse(s.Pages)
		if err != nil {
			t.Fatal(err)
		}
		pages := httputil.NewSingleHostReverseProxy(target)
		var english string // the script of the version before, which the service no longer has
		var asked atomic.Bool
		proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == english && !asked.Swap(true) {
				http.NotFound(w, r)
				return
			}
			pages.ServeHTTP(w, r)
		}))
		defer proxy.Close()
		for _, name := range scripts(t, s, get(t, s.Pages+"/")) {
			if strings.Contains(get(t, s.Pages+name), "Which branch would you like?") {
				english = name
			}
		}
		p := first.another(t)
		p.base = proxy.URL
		p.expect("404 (Not Found)", "ERR_INTERNET_DISCONNECTED")
		p.open("/terms")
		p.see("이용약관")
		p.offline(true)
		p.press("English")
		if !value[bool](p, "import("+quoted(english)+").then(() => false, () => true)") { // ends with the page's own attempt
			t.Error("the texts arrive without a network")
		}
		p.offline(false)
		p.see("이용약관") // a new document would be that of a browser without a network
		p.press("English")
		p.see("This is a translation")
		if lang := value[string](p, `document.documentElement.lang`); lang != "en" || !asked.Load() {
			t.Errorf("the page is in %q, its former script was asked for: %v", lang, asked.Load())
		}
	})

	t.Run("the banks of a refund", func(t *testing.T) {
		const mobile = "01055552223"
		order := newBrowser(t, s).purchase(s, "gangnam", 1, 30000, mobile, "가상계좌", dayAfterAt(17))
		postJSON(t, s.SandboxAt+"/sandbox/deposits", map[string]string{"orderId": order}, nil)
		p := first.another(t)
		p.expect("401 (Unauthorized)", "ERR_INTERNET_DISCONNECTED")
		p.open("/login")
		p.logIn(s, mobile)
		p.see("결제 완료")
		p.offline(true, s.API+"/v2/banks")
		p.press("예약 취소")
		p.see("어디로 돌려드릴까요?")
		p.find("다시 시도")
		p.offline(false)
		p.press("다시 시도")
		p.wait("the banks", `document.querySelectorAll("#bank option").length > 1`)
		p.fillAccount()
	})
}
