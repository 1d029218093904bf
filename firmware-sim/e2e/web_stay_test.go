package e2e

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/yeolda/yeolda/firmware-sim/proof/world"
	"github.com/yeolda/yeolda/firmware-sim/testkit/chromium"
)

// TestWebStay changes a stay on the pages: the guest extends it in two presses after choosing, with the same key and PIN, and
// ends it early. The doors open longer once the extension is paid, not before.
func TestWebStay(t *testing.T) {
	t.Parallel()
	chromium.Need(t)
	s := startStack(t, company)
	p := newPage(t, s.Pages)
	key := newBrowser(t, s).buy(s, "gangnam", 2, 25000, "01044445555")
	address := "/k/" + key
	window := func() time.Time {
		var answer struct{ Data struct{ WindowTo time.Time } }
		requestJSON(t, http.MethodGet, s.Pages+"/api/v2/keys/"+key, nil, &answer)
		return answer.Data.WindowTo
	}
	before := window()
	pin := func() (digits string) {
		until(t, "the PIN", func() bool { // a page that learns of another stay loads itself again, at any moment
			ctx, cancel := context.WithTimeout(p.ctx, time.Second)
			defer cancel()
			digits, _ = chromedp.Run(ctx, chromedp.Evaluate[string](`document.querySelector("#pass .pin")?.textContent ?? ""`))
			return len(digits) >= 6
		})
		return digits
	}

	p.open(address)
	p.see("더 머물고 싶다면")
	p.wait("the ends to choose from", `document.querySelectorAll("#extend option").length > 1`)
	first := pin()
	p.look("key-extension", phone, narrow)
	p.on(narrow)
	if !value[bool](p, `(s => { const has = s.offsetWidth; s.style.width = "max-content"; const needs = s.offsetWidth; s.style.width = ""; return has >= needs })(document.querySelector("#extend select"))`) {
		t.Error("the time and the price of an extension are cut off")
	}
	// A phone may show letters twice as large as the page asks for.
	value[bool](p, `(document.querySelector("main").style.fontSize = "32px", true)`)
	p.fits("an extension in large letters")
	value[bool](p, `(document.querySelector("main").style.fontSize = "", document.querySelector("#extend select").selectedIndex = 1, true)`)
	p.on(phone).press("연장하기")
	p.at("/book/pay")
	p.see("지금 쓰는 열쇠를 연장한 시간까지 그대로 쓸 수 있어요")
	if unpaid := window(); !unpaid.Equal(before) {
		t.Errorf("the doors open until %s before the payment, want %s", unpaid, before)
	}
	p.offline(true, s.API+"/v2/receipt") // the guest, who is in the room, returns to the key page without another request
	p.pay(s, "카드")
	p.at(address)
	p.offline(false)
	p.see("지금 열 수 있어요")
	if after := window(); after.Sub(before) != 20*time.Minute {
		t.Fatalf("the doors open until %s, want 20 minutes after %s", after, before)
	}
	if now := pin(); now != first {
		t.Errorf("the PIN is %q after the extension, want %q", now, first)
	}
	p.press("2번 룸 열기")
	p.see("문이 열렸어요")

	p.pressTwice("지금 이용 종료하기")
	p.see("남은 시간은 환불되지 않아요")
	p.look("key-end", phone, narrow)
	p.on(phone).press("계속 이용할게요")
	p.wait("the button again", `document.querySelector("#end button").checkVisibility()`)
	if after := window(); after.Sub(before) != 20*time.Minute {
		t.Fatalf("the doors open until %s after a double press, want the stay as it was", after)
	}
	p.press("지금 이용 종료하기")
	p.press("네, 종료할게요")
	p.wait("the earlier end", `Number(document.getElementById("key").dataset.end) < `+fmt.Sprint(before.Unix()))
	if after := window(); !after.Before(before) {
		t.Fatalf("the doors open until %s after the early end", after)
	}
	p.wait("the doors", `document.getElementById("key").dataset.state === "open"`)
	if p.sees("예약 내용이 바뀌었어요") {
		t.Error("the page reports the change that the guest made as that of another person")
	}
}

// TestWebStayExtendedByDeposit extends a stay with a virtual account: the guest sees where to transfer the money, and returns
// to the key page from there.
func TestWebStayExtendedByDeposit(t *testing.T) {
	t.Parallel()
	chromium.Need(t)
	s := startStack(t, company)
	p := newPage(t, s.Pages)
	key := newBrowser(t, s).buy(s, "gangnam", 5, 15000, "01044446666")
	p.open("/k/" + key)
	p.see("더 머물고 싶다면")
	p.wait("the ends to choose from", `document.querySelectorAll("#extend option").length > 1`)
	end := value[int](p, `Number(document.getElementById("key").dataset.end)`)
	p.press("연장하기")
	p.at("/book/pay")
	p.pay(s, "가상계좌")
	p.see("입금하면 예약이 확정돼요", "우리은행", "3,000원")
	p.look("account-extension", phone, narrow)
	p.on(phone).press("열쇠 열기")
	p.at("/k/" + key)
	p.see("지금 열 수 있어요")
	p.back()
	p.see("입금하면 예약이 확정돼요")
	postJSON(t, s.SandboxAt+"/sandbox/deposits", map[string]string{"orderId": p.lastOrder(s)}, nil)
	p.at("/k/" + key)
	p.wait("the later end", fmt.Sprintf(`Number(document.getElementById("key").dataset.end) === %d`, end+600))
}

// extending opens the key page of a stay that began, and the payment page of its extension.
func extending(t *testing.T, s *world.Stack, room int, mobile string) (b *buyer, address string) {
	t.Helper()
	b = &buyer{page: newPage(t, s.Pages), s: s, mobile: mobile}
	b.expect("401 (Unauthorized)", "409 (Conflict)")
	address = "/k/" + newBrowser(t, s).buy(s, "gangnam", room, 25000, mobile)
	b.open(address)
	b.see("더 머물고 싶다면")
	b.wait("the ends to choose from", `document.querySelectorAll("#extend option").length > 1`)
	b.press("연장하기")
	b.at("/book/pay")
	b.arrive("pay")
	return b, address
}

// TestWebExtensionExpires: the hold of an extension ends before the payment. The guest, who is in the room, is led back to the key page
// from the payment page and from the confirmation.
func TestWebExtensionExpires(t *testing.T) {
	t.Parallel()
	chromium.Need(t)
	s := startStack(t, company)
	b, address := extending(t, s, 2, "01044447777")
	order, amount := b.order()
	value[bool](b.page, `fetch("/api/reservation", { method: "DELETE" }).then(r => r.ok)`)
	value[bool](b.page, `document.dispatchEvent(new Event("visibilitychange"))`)
	b.see("연장하지 못했어요")
	back := `document.querySelector("main a.button[href='` + address + `']")`
	b.wait("the way back to the key", back)
	b.open(fmt.Sprintf("/book/confirm?paymentKey=late_payment_key&amount=%d&orderId=%s", amount, order))
	b.see("연장하지 못했어요")
	b.wait("the way back to the key", back)
	b.press("열쇠 열기")
	b.at(address)
}

// TestWebRoomInsteadOfExtension: a guest extends a stay in one tab, holds a room of another day in a second one, and chooses the room
// when the first tab asks. The purchase ends with the receipt of the room and not on the key page of the old stay.
func TestWebRoomInsteadOfExtension(t *testing.T) {
	t.Parallel()
	chromium.Need(t)
	s := startStack(t, company)
	b, _ := extending(t, s, 2, "01044448888")
	other := b.tab("")
	other.choice = "/b/gangnam/" + inTwoDays() + "/3/1000-1100"
	other.reach("contact")
	value[bool](b.page, `document.dispatchEvent(new Event("visibilitychange"))`)
	b.arrive("notice")
	b.act() // the first button is the room of the other tab
	b.arrive("contact")
	b.introduce("01044449999")
	b.arrive("pay")
	b.act()
	b.arrive("provider")
	b.act()
	b.arrive("receipt")
	if got := b.what(); got != "3 10:00" {
		t.Errorf("the receipt names %q, want room 3 at 10:00", got)
	}
}

// TestWebExtensionPaidInAnotherTab: the app of a card returns to another tab, or to another browser. Neither announces a key, and the first tab
// returns to the key page.
func TestWebExtensionPaidInAnotherTab(t *testing.T) {
	t.Parallel()
	chromium.Need(t)
	s := startStack(t, company)
	b, address := extending(t, s, 2, "01044447778")
	order, amount := b.order()
	confirm := b.payInApp(s, order, amount)
	for name, p := range map[string]*page{"tab": b.tab("").page, "browser": b.another(t)} {
		p.expect("401 (Unauthorized)")
		p.open(confirm)
		p.see("예약이 확정됐어요", "지금 쓰는 열쇠를 연장한 시간까지 그대로 쓸 수 있어요")
		if p.sees("열쇠 링크") {
			t.Errorf("another %s announces a key link", name)
		}
	}
	value[bool](b.page, `document.dispatchEvent(new Event("visibilitychange"))`)
	b.at(address)
	b.see("지금 열 수 있어요")

	b.open("/login")
	b.logIn(s, b.mobile)
	b.see("열쇠 열기", "예약 취소") // of the stay, and of its extension
	if b.sees("시간·룸 바꾸기") {
		t.Error("the extension, which cannot be exchanged, is offered for it")
	}
}
