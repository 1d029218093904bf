package e2e

import (
	"slices"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestStage plays each scene by its button. A scene that ends differently than told shows a step that failed.
func TestStage(t *testing.T) {
	t.Parallel()
	chromium(t)
	s := startStack(t, company)
	p := newPage(t, s.SimAt)
	p.do("screen", chromedp.EmulateViewport(1680, 1100))
	p.open("/stage")
	p.see("손님의 휴대폰", "지점 도면")
	for _, scene := range []struct {
		button, ending string
		shown          map[string]string // part of a frame's address by frame
	}{
		{"두 손님, 한 시간", "한 손님만 시간을 얻었어요", map[string]string{"console": "/console/gangnam/day/"}},
		{"예약하고 열기", "룸도 열렸어요", map[string]string{"phone": "door=room", "messages": "#messages", "plan": "?branch=gangnam"}},
		{"걸린 잠금장치", "다시 쓸 수 없어요", map[string]string{"phone": "request="}},
		{"옮겨진 예약", "옛 룸은 이제 열리지 않아요", map[string]string{"phone": "door=room"}},
		{"늦은 입금", "손님은 열쇠를 받았어요", map[string]string{"console": "/console/gangnam/day/", "phone": "/k/"}},
		{"끊긴 지점", "인터넷이 돌아왔어요", map[string]string{"console": "/console/gangnam/doors"}},
	} {
		p.press(scene.button)
		p.wait(scene.button+" to end", `!document.querySelector("#scenes button:disabled")`)
		p.see(scene.ending)
		if p.sees("끊겼어요:") {
			t.Errorf("%s: %s", scene.button, value[string](p, `document.querySelector("#steps").innerText`))
		}
		for frame, part := range scene.shown {
			p.wait(frame+" shows "+part, `document.querySelector("[data-frame=`+frame+`]").src.includes(`+quoted(part)+`)`)
		}
	}
	// The frames are not only addressed: the service lets the stage show them.
	var framed []string
	for _, frame := range value[[]string](p, `[...document.querySelectorAll("iframe")].map(f => { try { return f.contentWindow.length >= 0 && f.contentDocument === null ? f.dataset.frame : f.dataset.frame + " own" } catch { return f.dataset.frame } })`) {
		framed = append(framed, frame)
	}
	slices.Sort(framed)
	if want := []string{"console", "messages", "phone", "plan own"}; !slices.Equal(framed, want) {
		t.Errorf("frames %q, want %q", framed, want)
	}
	p.judge("the stage")
	p.keep("stage")
	p.press("English")
	p.see("Two buyers, one slot")
	p.judgeEnglish("the stage")
}
