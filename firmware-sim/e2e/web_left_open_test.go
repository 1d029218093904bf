package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

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
		var english string // the script of the previous version, which the service no longer has
		var asked atomic.Bool
		proxy := deployment(t, s.Pages, func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path != english || asked.Swap(true) {
				return false
			}
			http.NotFound(w, r)
			return true
		})
		for _, name := range scripts(t, s, get(t, s.Pages+"/")) {
			if strings.Contains(get(t, s.Pages+name), "Which branch would you like?") {
				english = name
			}
		}
		p := first.another(t)
		p.base = proxy
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

	// On a slow network, the page that a deployment has replaced runs once more from the worker's store.
	t.Run("the shell after a deployment", func(t *testing.T) {
		var deployed, down atomic.Bool
		shell := get(t, s.Pages+"/shell")
		entry := regexp.MustCompile(`customer-\w+\.js`).FindString(shell)
		const renamed = "customer-DEPLOYED.js"
		held, shells := make(chan struct{}), make(chan struct{}, 10)
		release := sync.OnceFunc(func() { close(held) })
		defer release()
		proxy := deployment(t, s.Pages, func(w http.ResponseWriter, r *http.Request) bool {
			switch {
			case down.Load():
				http.Error(w, "no upstream", http.StatusBadGateway)
			case !deployed.Load():
				return false
			case r.URL.Path == "/assets/"+entry:
				http.NotFound(w, r)
			case r.URL.Path == "/":
				<-held
				http.Error(w, "late", http.StatusGatewayTimeout)
			case r.URL.Path == "/shell":
				_, _ = io.WriteString(w, strings.ReplaceAll(shell, entry, renamed))
				shells <- struct{}{}
			default:
				return false
			}
			return true
		})
		p := first.another(t)
		p.base = proxy
		p.expect("502 (Bad Gateway)", "ERR_INTERNET_DISCONNECTED")
		p.open("/")
		p.wait("the shell is kept", `navigator.serviceWorker.controller && caches.match("/").then(r => window.kept = Boolean(r)) && window.kept`)
		down.Store(true)
		p.open("/")
		p.see("잠시 문제가 생겼어요", "다시 시도")
		down.Store(false)
		p.press("다시 시도")
		p.see("어느 지점으로 갈까요?")

		deployed.Store(true)
		p.open("/")
		p.see("어느 지점으로 갈까요?")
		for range 2 { // when the second one is asked for, the first one is stored or dropped
			select {
			case <-shells:
			case <-time.After(patience):
				t.Fatal("the worker does not ask for the shell")
			}
			value[bool](p, `navigator.serviceWorker.ready.then(w => (w.active.postMessage({keep: "/", files: performance.getEntriesByType("resource").map(e => new URL(e.name).pathname).filter(p => p.startsWith("/assets/"))}), true))`)
		}
		p.offline(true)
		p.open("/")
		p.see("다시 시도")
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

// deployment returns the address of a proxy before the pages. Requests that another handles do not reach them.
func deployment(t *testing.T, pages string, another func(http.ResponseWriter, *http.Request) bool) string {
	t.Helper()
	target, err := url.Parse(pages)
	if err != nil {
		t.Fatal(err)
	}
	through := httputil.NewSingleHostReverseProxy(target)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !another(w, r) {
			through.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(proxy.Close)
	return proxy.URL
}
