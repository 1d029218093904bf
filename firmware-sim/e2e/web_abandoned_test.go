package e2e

import (
	"testing"

	"github.com/yeolda/yeolda/firmware-sim/testkit/chromium"
)

// TestWebCorrectedNumber: on the payment screen the guest sees that the number is wrong, follows the link "fix", corrects the number
// and goes back instead of pressing the button of the form. The key must be sent to the number that the payment screen names.
func TestWebCorrectedNumber(t *testing.T) {
	t.Parallel()
	chromium.Need(t)
	s := startStack(t, company)
	const wrong, right = "01011112222", "01011113333"
	b := &buyer{page: newPage(t, s.Pages), s: s, mobile: wrong, choice: "/b/gangnam/" + inTwoDays() + "/2/1000-1100"}
	b.expect("401 (Unauthorized)")
	b.reach("pay")
	b.press(value[string](b.page, `document.querySelector(".sent-to a").innerText.trim()`))
	b.arrive("contact")
	b.fill("휴대폰 번호", right)
	value[bool](b.page, `(window.edited = true, history.back(), true)`)
	b.wait("another document", `!window.edited && `+screenOf+`(`+quoted(b.base)+`) !== ""`)
	if b.screen() == "contact" {
		b.act()
	}
	b.arrive("pay")
	if to := value[string](b.page, `document.querySelector(".sent-to b").innerText.replace(/\D/g, "")`); to != right {
		t.Errorf("the payment screen names %s, want %s", to, right)
	}
	b.act()
	b.arrive("provider")
	b.act()
	b.arrive("receipt")
	received := map[string]int{}
	until(t, "the message with the key", func() bool {
		for _, to := range []string{wrong, right} {
			var got struct{ Messages []struct{ Text string } }
			getJSON(t, s.SandboxAt+"/sandbox/messages?to="+to, &got)
			received[to] = len(got.Messages)
		}
		return received[wrong]+received[right] > 0
	})
	if received[wrong] > 0 || received[right] == 0 {
		t.Errorf("got messages to %v, want them to %s only", received, right)
	}
}

// inTwoDays returns a day on which all rooms are free.
func inTwoDays() string {
	return currentSlot().In(seoul).AddDate(0, 0, 2).Format("2006-01-02")
}
