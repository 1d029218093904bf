package e2e

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/dom"
	cdp "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/yeolda/yeolda/firmware-sim/proof/world"
	"github.com/yeolda/yeolda/firmware-sim/testkit/chromium"
)

// TestStage plays each scene twice by its button. A scene that ends differently than told shows a step that failed.
func TestStage(t *testing.T) {
	t.Parallel()
	chromium.Need(t)
	s := startStack(t, company)
	p := newPage(t, s.SimAt)
	p.on(screen{"stage", 1680, 1100})
	// Only one name of loopback can show the frames.
	p.open(strings.Replace(s.SimAt, "127.0.0.1", "localhost", 1) + "/stage")
	p.wait("the stage at its origin", `location.origin === `+quoted(s.SimAt))
	p.see("손님의 휴대폰", "지점 도면")
	for frame, text := range map[string]string{"phone": "어느 지점", "console": "비밀번호", "messages": "메시지", "plan": "1번 룸"} {
		p.seeIn(frame, text)
	}
	p.press("로그인")
	p.seeIn("console", "확인할 일")
	for range 2 {
		for _, scene := range []struct {
			button, ending string
			seen           map[string]string // text by frame
		}{
			{"두 손님, 한 시간", "한 손님만 시간을 얻었어요", map[string]string{"console": "강남점"}},
			{"예약하고 열기", "룸도 열렸어요", map[string]string{"phone": "열렸어요", "messages": "열쇠", "console": "김하늘", "plan": "1번 룸"}},
			{"걸린 잠금장치", "다시 쓸 수 없어요", map[string]string{"phone": "키패드", "console": "김하늘"}},
			{"옮겨진 예약", "옛 룸은 이제 열리지 않아요", map[string]string{"phone": "열렸어요", "console": "김하늘"}},
			{"늦은 입금", "손님은 열쇠를 받았어요", map[string]string{"console": "김하늘", "phone": "룸"}},
			{"끊긴 지점", "인터넷이 돌아왔어요", map[string]string{"console": "김하늘"}},
		} {
			p.press(scene.button)
			p.wait(scene.button+" to end", `!document.querySelector("#scenes button:disabled")`)
			p.see(scene.ending)
			if failed := value[string](p, `[...document.querySelectorAll("#steps .failed")].map(e => e.innerText).join()`); failed != "" {
				t.Errorf("%s: %s", scene.button, failed)
			}
			for frame, text := range scene.seen {
				p.seeIn(frame, text)
			}
			if rooms := liveReservations(t, s, "김하늘"); rooms > 1 {
				t.Errorf("after %s %d reservations of scenes are live, want those of the last scene only", scene.button, rooms)
			}
		}
	}
	p.press("English")
	p.see("Two buyers, one slot")
	for _, s := range []screen{phone, {"laptop", 1280, 800}, {"wide", 1920, 1080}} {
		p.on(s).judge("the stage on " + s.name)
		p.judgeEnglish("the stage")
		p.keep("stage-" + s.name)
	}
	// seeIn fails where the browser blocks a frame: no other page may show the documentation, not even the stage.
	p.expect("frame-ancestors")
	value[bool](p, `new Promise(shown => {
		const blocked = document.createElement("iframe");
		blocked.dataset.frame = "blocked";
		blocked.onload = () => shown(true);
		blocked.src = `+quoted(s.Pages+"/docs")+`;
		document.body.append(blocked);
	})`)
	docs := newPage(t, s.Pages)
	docs.open("/docs")
	docs.see("curl")
	if address, err := p.inFrame("blocked", "location.href"); err != nil || address != "chrome-error://chromewebdata/" {
		t.Errorf("the blocked frame shows %q (%v), want the browser's own page", address, err)
	}
}

// liveReservations counts the reservations under a name that have not ended.
func liveReservations(t *testing.T, s *world.Stack, name string) (live int) {
	t.Helper()
	hq := newBrowser(t, s)
	hq.must(http.MethodPost, "/admin/login", map[string]string{"id": "hq", "password": "hq-demo"}, nil)
	var found struct {
		Reservations []struct{ BookingStatus string }
	}
	hq.must(http.MethodGet, "/v2/admin/reservations?"+url.Values{"query": {name}}.Encode(), nil, &found)
	for _, r := range found.Reservations {
		if r.BookingStatus != "" {
			live++
		}
	}
	return live
}

// seeIn waits until the document in a frame of the stage shows a text. A frame that the browser blocks shows none of ours.
func (p *page) seeIn(frame, text string) {
	p.t.Helper()
	deadline := time.Now().Add(p.patience)
	for {
		shown, err := p.textIn(frame)
		if strings.Contains(shown, text) {
			return
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("the frame %s shows %q (%v), want %q", frame, shown, err, text)
		}
		time.Sleep(30 * time.Millisecond)
	}
}

// textIn reads the text of the document in a frame, also of another origin.
func (p *page) textIn(frame string) (string, error) {
	return p.inFrame(frame, `document.body.innerText.replace(/\s+/g, " ")`)
}

// inFrame evaluates an expression in the document in a frame, also of another origin.
func (p *page) inFrame(frame, expression string) (string, error) {
	ctx, cancel := context.WithTimeout(p.ctx, 5*time.Second)
	defer cancel()
	element, err := chromedp.Run(ctx, chromedp.Evaluate[*runtime.RemoteObject](`document.querySelector("[data-frame=`+frame+`]")`))
	if err != nil {
		return "", err
	}
	owner, err := chromedp.Call(ctx, dom.DescribeNode, dom.DescribeNodeParams{ObjectID: element.ObjectID})
	if err != nil {
		return "", err
	}
	own, err := chromedp.Call(ctx, cdp.CreateIsolatedWorld, cdp.CreateIsolatedWorldParams{FrameID: owner.Node.FrameID})
	if err != nil {
		return "", err
	}
	return chromedp.Run(ctx, chromedp.Evaluate[string](expression, func(e *runtime.EvaluateParams) { e.ContextID = own.ExecutionContextID }))
}
