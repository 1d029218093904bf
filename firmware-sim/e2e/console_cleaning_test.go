package e2e

import (
	"bytes"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestConsoleCleaning lets a cleaner find a room whose stay has ended, open it, and record that it was cleaned.
func TestConsoleCleaning(t *testing.T) {
	t.Parallel()
	s := startStack(t, nil)
	keyOfAdminReservation(t, s, "gangnam", 2, "01022220005")
	keyOfAdminReservation(t, s, "gangnam", 3, "01022220006")
	// No request can register a stay that is over.
	db := database(t, s)
	if _, err := db.Exec(t.Context(), `
		update reservation r set start_at = start_at - interval '3 hours', end_at = end_at - interval '3 hours'
		from room m where m.id = r.room_id and m.no = 2`); err != nil {
		t.Fatal(err)
	}
	staff(t, s).must("POST", "/v2/admin/administrators", map[string]any{
		"id": "cleaner", "password": "keeps rooms tidy", "role": "cleaner", "branches": []string{"gangnam"}}, nil)

	p := console(t, s, "cleaner", "keeps rooms tidy")
	p.see("청소할 룸", "2번 룸")
	if p.sees("3번 룸") {
		t.Error("a room with a guest is listed")
	}
	if p.sees("결제") || p.sees("예약 현황") {
		t.Error("a cleaner is offered screens of others")
	}
	p.survey("console-cleaning")
	p.on(phone).press("2번 룸 문 열기")
	p.see("문이 열렸어요")
	if driven := actuations(t, s, "gangnam"); len(driven) != 1 || driven[0].Device != "room_2" {
		t.Errorf("driven: %+v, want room 2 once", driven)
	}
	file := filepath.Join(t.TempDir(), "room.png")
	var picture bytes.Buffer
	if err := png.Encode(&picture, image.NewNRGBA(image.Rect(0, 0, 800, 600))); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, picture.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	p.do("choose a photo", chromedp.SetUploadFiles(chromedp.CSS(`input[type=file]`), []string{file}))
	p.see("사진을 골랐어요")
	p.press("2번 룸 청소 완료")
	p.see("지금 청소할 룸이 없어요")

	var id string
	if err := db.QueryRow(t.Context(), `select reservation_id::text from cleaning_photo`).Scan(&id); err != nil {
		t.Fatal(err)
	}
	m := console(t, s, "gangnam-manager", "gangnam-demo")
	m.open("/console/gangnam/day?r=" + id)
	m.see("청소 완료", "cleaner")
	m.wait("the photo", `document.querySelector("figure img")?.naturalWidth === 480`)
	m.survey("console-cleaned")
}
