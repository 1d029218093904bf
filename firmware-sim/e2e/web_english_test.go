package e2e

import (
	"testing"

	"github.com/yeolda/yeolda/firmware-sim/testkit/chromium"
)

// hangul lists the texts of an English page that are Korean and not marked as such: a screen reader would read them as noise
// (WCAG 3.1.2). Texts that exist only in Korean, such as addresses, have lang="ko"; the payment provider's part is its own.
const hangul = `(() => {
	const korean = /[\u1100-\u11ff\u3130-\u318f\uac00-\ud7a3]/, found = [document.title].filter(t => korean.test(t));
	const marked = e => e.closest("[lang]")?.lang === "ko" || e.closest(".widget, script, style, noscript");
	for (const e of document.querySelectorAll("body, body *")) {
		if (marked(e)) continue;
		for (const n of e.childNodes) if (n.nodeType === Node.TEXT_NODE && korean.test(n.data)) found.push(n.data.trim());
		for (const a of ["aria-label", "placeholder", "title", "alt"]) if (korean.test(e.getAttribute(a) ?? "")) found.push(a + "=" + e.getAttribute(a));
		for (const [name, t] of Object.entries(e.dataset)) if (name !== "words" && korean.test(t)) found.push("data: " + t); // words: a dictionary
	}
	return found;
})()`

// judgeEnglish checks that an English page has no unmarked Korean, including texts that it does not show yet.
func (p *page) judgeEnglish(what string) {
	p.t.Helper()
	if value[string](p, `document.documentElement.lang`) != "en" {
		return
	}
	for _, text := range value[[]string](p, hangul) {
		p.t.Errorf("%s: Korean on an English page: %q", what, text)
	}
}

// TestWebEnglish opens every address of the guests' pages in English. The purchase in English is a part of TestWebPurchase.
func TestWebEnglish(t *testing.T) {
	t.Parallel()
	chromium.Need(t)
	s := startStack(t, company)
	key := newBrowser(t, s).buy(s, "gangnam", 2, 25000, "01011112222")
	away := keyOfAdminReservation(t, s, "jamsil", 1, "01033334444")
	p := newPage(t, s.Pages)
	p.expect("404 (Not Found)", "401 (Unauthorized)", "400 (Bad Request)", "403 (Forbidden)", "503 (Service Unavailable)")
	p.open("/")
	p.press("English")
	p.see("Which branch would you like?")

	for _, c := range []struct{ address, want string }{
		{"/", "Gangnam"},
		{"/b/gangnam", "which day?"},
		{"/b/hongdae", "which day?"}, // closed on Mondays
		{"/b/gangnam/" + tomorrow(), "Room 2"},
		{"/b/nowhere", "Page not found"},
		{"/book/contact", "You are not holding a room"},
		{"/book/fail?code=PAY_PROCESS_CANCELED&message=취소", ""},
		{"/book/fail?code=REJECT_CARD_COMPANY&message=거절", ""},
		{"/book/receipt", "We cannot find a booking"},
		{"/login", "Let us find your bookings"},
		{"/my", "Let us find your bookings"},
		{"/refund/unknown", "This link no longer works"},
		{"/terms", "Terms"},
		{"/privacy", "Privacy policy"},
		{"/franchise", "Would you like to open a branch?"},
		{"/nowhere", "Page not found"},
		{"/k/00000000-0000-4000-8000-000000000000", "This key does not work"},
		{"/k/" + key, "You can open the doors now"},
		{"/k/" + away, "The branch is offline"},
	} {
		p.open(c.address)
		if c.want != "" {
			p.see(c.want)
		}
		p.settle()
		p.judgeEnglish(c.address)
	}

	p.open("/k/" + key)
	fault(t, s, "gangnam", "room_2", "stuck")
	p.press("Open room 2")
	p.see("with this one-time code")
	p.wait("the reason", `document.querySelector("#why").innerText`)
	p.press("Open with a one-time code", "the entrance")
	p.see("A code for the entrance")
	p.judgeEnglish("the key page after a press")

	// A refusal has its reason in English as well: to try again would not help.
	var found struct{ Reservations []struct{ ID string } }
	hq := staff(t, s)
	hq.must("GET", "/v2/admin/reservations?query=01011112222", nil, &found)
	hq.must("PUT", "/v2/admin/reservations/"+found.Reservations[0].ID+"/guest/block", map[string]string{"reason": "damage"}, nil)
	p.open("/b/gangnam/" + tomorrow())
	p.press("Room 5")
	p.taken()
	p.press("20:00", "20:10", "Book for", "Book and pay")
	p.fill("Name", "Jane Doe")
	p.fill("Mobile number", "01011112222")
	p.press("I agree to everything", "Choose how to pay")
	p.see("You cannot book with this phone number.")
	p.judgeEnglish("the refusal of a blocked guest")
}
