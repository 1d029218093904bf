package httpapi_test

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/jpeg"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

type photoOfRoom struct {
	ID      string
	Alt     map[string]string
	Sources []struct {
		URL           string
		Width, Height int
	}
}

// roomPhotos checks photos, descriptions and amenities of rooms on a running service.
func roomPhotos(t *testing.T, s *servicetest.Stack) {
	manager, guest := s.Admin(t, "gangnam-manager", "gangnam-demo"), s.Client(t)
	const room = "/v2/admin/branches/gangnam/rooms/2"
	type profiles struct {
		Rooms []struct {
			RoomNo      string
			Description map[string]string
			Amenities   []map[string]string
			Photos      []photoOfRoom
		}
	}
	read := func() (p profiles) {
		t.Helper()
		guest.Get("/v2/branches/gangnam/rooms").OK(t).Into(t, &p)
		return p
	}
	if rooms := read().Rooms; len(rooms) < 2 || rooms[1].RoomNo != "2" || len(rooms[1].Photos) != 0 {
		t.Fatalf("before: %+v", rooms)
	}
	says(t, "no such branch", guest.Get("/v2/branches/nowhere/rooms"), reply{404, "ResourceNotFoundException", "해당 지점을 찾을 수 없습니다."})

	description := map[string]any{"description": map[string]string{"ko": "조용한 룸이에요.", "en": "A quiet room."}, "amenities": []map[string]string{{"ko": "빔 프로젝터", "en": "Projector"}}}
	upload := map[string]any{"data": base64.StdEncoding.EncodeToString(jpegOf(t, 1000, 600)), "alt": map[string]string{"ko": "창가의 소파", "en": "A sofa by the window"}}
	manager.Put(room+"/profile", description).OK(t)
	var added struct{ ID string }
	manager.Post(room+"/photos", upload).OK(t).Into(t, &added)

	shown := read().Rooms[1]
	if shown.Description["en"] != "A quiet room." || len(shown.Amenities) != 1 || shown.Amenities[0]["ko"] != "빔 프로젝터" || len(shown.Photos) != 1 {
		t.Fatalf("after: %+v", shown)
	}
	photo := shown.Photos[0]
	if photo.ID != added.ID || photo.Alt["en"] != "A sofa by the window" || len(photo.Sources) != 3 || photo.Sources[1].Width != 480 || photo.Sources[1].Height != 288 {
		t.Fatalf("photo: %+v", photo)
	}
	var now struct {
		Branches []struct{ Photo *photoOfRoom }
	}
	guest.Get("/v2/branches/now?q=gangnam").OK(t).Into(t, &now)
	if cover := now.Branches[0].Photo; cover == nil || cover.ID != added.ID {
		t.Errorf("the branch shows %+v, want the photo of its room", cover)
	}
	pages := strings.TrimSuffix(s.URL, "/api")
	file := get(t, pages+photo.Sources[2].URL)
	if file.StatusCode != http.StatusOK || file.Header.Get("Content-Type") != "image/jpeg" || !strings.Contains(file.Header.Get("Cache-Control"), "immutable") {
		t.Errorf("file: %d %v", file.StatusCode, file.Header)
	}
	if decoded, err := jpeg.DecodeConfig(file.Body); err != nil || decoded.Width != 960 {
		t.Errorf("file of %d pixels, %v, want 960", decoded.Width, err)
	}
	size := map[string]int64{}
	for _, mediaType := range []string{"image/jpeg", "image/webp", "image/avif"} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, pages+photo.Sources[2].URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Accept", mediaType+",*/*;q=0.8")
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		if answer.Header.Get("Content-Type") != mediaType || !slices.Contains(answer.Header.Values("Vary"), "Accept") {
			t.Errorf("accepting %s: %v", mediaType, answer.Header)
		}
		if decoded, format, err := image.DecodeConfig(answer.Body); err != nil || "image/"+format != mediaType || decoded.Width != 960 {
			t.Errorf("accepting %s: %s of %d pixels, %v, want 960", mediaType, format, decoded.Width, err)
		}
		answer.Body.Close()
		size[mediaType] = answer.ContentLength
	}
	if size["image/avif"] >= size["image/webp"] || size["image/webp"] >= size["image/jpeg"] {
		t.Errorf("sizes %v, want AVIF below WebP below JPEG", size)
	}
	for _, path := range []string{"/photos/x.jpg", "/photos/" + strings.Repeat("0", 32) + ".jpg", strings.TrimSuffix(photo.Sources[0].URL, ".jpg"), "/photos/%00.jpg"} {
		if missing := get(t, pages+path); missing.StatusCode != http.StatusNotFound {
			t.Errorf("%s: got %d, want 404", path, missing.StatusCode)
		}
	}

	for name, bad := range map[string]map[string]any{
		"no picture": {"data": base64.StdEncoding.EncodeToString([]byte("<svg>")), "alt": upload["alt"]}, "no base64": {"data": "!", "alt": upload["alt"]},
		"too small": {"data": base64.StdEncoding.EncodeToString(jpegOf(t, 300, 300)), "alt": upload["alt"]}, "no text": {"data": upload["data"]},
		"text in one language": {"data": upload["data"], "alt": map[string]string{"ko": "소파"}},
	} {
		manager.Post(room+"/photos", bad).Fails(t, 400, "IllegalArguemntError", "")
		if t.Failed() {
			t.Fatal(name)
		}
	}
	for _, bad := range []map[string]any{
		{"amenities": []map[string]string{{"ko": "소파", "en": ""}}}, {"amenities": make([]map[string]string, 13)},
		{"description": map[string]string{"ko": strings.Repeat("가", 501)}},
	} {
		manager.Put(room+"/profile", bad).Fails(t, 400, "IllegalArguemntError", "")
	}
	for range 5 {
		manager.Post(room+"/photos", upload).OK(t)
	}
	manager.Post(room+"/photos", upload).Fails(t, 409, "SettingConflictException", "")
	for _, path := range []string{"/photos/999999", "/photos/x", "/photos/-1"} {
		says(t, path, manager.Delete(room+path, nil), reply{404, "ResourceNotFoundException", "해당 사진을 찾을 수 없습니다."})
	}
	says(t, "photo of another room", manager.Delete("/v2/admin/branches/gangnam/rooms/3/photos/"+added.ID, nil), reply{404, "ResourceNotFoundException", "해당 사진을 찾을 수 없습니다."})
	for _, photo := range read().Rooms[1].Photos {
		manager.Delete(room+"/photos/"+photo.ID, nil).OK(t)
	}
	if gone := get(t, pages+photo.Sources[0].URL); gone.StatusCode != http.StatusNotFound {
		t.Errorf("a deleted photo is served: %d", gone.StatusCode)
	}
	if n := only(t, s, `select count(*)::text from audit where target = 'gangnam/2' and action in ('room.describe', 'room.photo-add', 'room.photo-remove')`); n != "13" {
		t.Errorf("%s audit entries, want 13", n)
	}
}

// get returns the answer of a page; its body was read.
func get(t *testing.T, address string) *http.Response {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(answer.Body)
	if answer.Body.Close(); err != nil {
		t.Fatal(err)
	}
	answer.Body = io.NopCloser(bytes.NewReader(body))
	return answer
}

func jpegOf(t *testing.T, w, h int) []byte {
	t.Helper()
	var data bytes.Buffer
	if err := jpeg.Encode(&data, image.NewRGBA(image.Rect(0, 0, w, h)), nil); err != nil {
		t.Fatal(err)
	}
	return data.Bytes()
}
