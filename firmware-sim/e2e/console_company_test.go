package e2e

import (
	"image"
	"image/png"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
)

// The headquarters change names, colour, logo and terms; the guests' pages show them, and the old terms are still read.
func TestConsoleCompany(t *testing.T) {
	t.Parallel()
	s := startStack(t, nil)
	hq := console(t, s, "hq", "hq-demo")
	hq.open("/console/company")
	hq.see("회사 정보와 브랜드", "2026-11-22")
	hq.survey("console-company")
	hq.on(desktop).fill("한글 브랜드 이름", "달방")
	hq.fill("브랜드 색", "#7a1f5c")
	hq.press("저장")
	hq.see("저장했어요")

	file := filepath.Join(t.TempDir(), "logo.png")
	logo, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := png.Encode(logo, image.NewNRGBA(image.Rect(0, 0, 64, 64))); err != nil {
		t.Fatal(err)
	}
	if err := logo.Close(); err != nil {
		t.Fatal(err)
	}
	hq.do("choose the logo", chromedp.SetUploadFiles(chromedp.CSS(`input[type=file]`), []string{file}))
	hq.see("로고 삭제")

	hq.press("새 버전 만들기")
	hq.fill("약관 버전", "2027-01-01")
	hq.fill("이용약관", "## 달방 약관\n\n**달방**을 이용해 주셔서 고맙습니다.")
	hq.survey("console-company-text")
	hq.on(desktop).press("저장")
	hq.see("2027-01-01", "이전")

	guest := newPage(t, s.Pages)
	guest.open("/terms")
	guest.see("달방 약관", "2026-11-22")
	guest.wait("the logo and the colour", `document.querySelector("header img.mark")?.src.includes("/logo?v=") && getComputedStyle(document.documentElement).getPropertyValue("--blue").trim() === "#7a1f5c" && document.title.endsWith("달방")`)
	guest.judge("terms with a brand")
	guest.open("/terms?version=2026-11-22")
	guest.see("제4조 (취소와 환불)", "이전 버전이에요")
}
