package httpapi_test

import (
	"encoding/base64"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

// arrivalSteps checks the way from the street to the rooms on a running service.
func arrivalSteps(t *testing.T, s *servicetest.Stack) {
	manager, guest := s.Admin(t, "gangnam-manager", "gangnam-demo"), s.Client(t)
	const steps = "/v2/admin/branches/gangnam/arrival"
	type arrival struct {
		Steps []struct {
			ID      string
			Text    map[string]string
			Sources []struct {
				URL           string
				Width, Height int
			}
		}
	}
	read := func() (a arrival) {
		t.Helper()
		guest.Get("/v2/branches/gangnam/arrival").OK(t).Into(t, &a)
		return a
	}
	names := func() (list []string) {
		t.Helper()
		for _, step := range read().Steps {
			list = append(list, step.Text["en"])
		}
		return list
	}
	says(t, "no such branch", guest.Get("/v2/branches/nowhere/arrival"), reply{404, "ResourceNotFoundException", "해당 지점을 찾을 수 없습니다."})
	if got := names(); len(got) != 0 {
		t.Fatalf("before: %q", got)
	}

	text := func(name string) map[string]string { return map[string]string{"ko": "걸어요 " + name, "en": name} }
	id := map[string]string{}
	for _, name := range []string{"street", "floor", "door"} {
		var added struct{ ID string }
		manager.Post(steps, map[string]any{"text": text(name)}).OK(t).Into(t, &added)
		id[name] = added.ID
	}
	photo := base64.StdEncoding.EncodeToString(jpegOf(t, 1000, 600))
	manager.Post(steps, map[string]any{"text": text("building"), "data": photo}).OK(t)
	if got := names(); !slices.Equal(got, []string{"street", "floor", "door", "building"}) {
		t.Fatalf("added: %q", got)
	}
	building := read().Steps[3]
	if len(building.Sources) != 3 || building.Sources[1].Width != 480 || building.Sources[1].Height != 288 {
		t.Fatalf("photo: %+v", building)
	}
	pages := strings.TrimSuffix(s.URL, "/api")
	if file := get(t, pages+building.Sources[0].URL); file.StatusCode != http.StatusOK || file.Header.Get("Content-Type") != "image/jpeg" {
		t.Errorf("file: %d %v", file.StatusCode, file.Header)
	}

	manager.Put(steps+"/"+building.ID, map[string]any{"text": text("the building"), "position": 2}).OK(t)
	if got := names(); !slices.Equal(got, []string{"street", "the building", "floor", "door"}) {
		t.Errorf("moved up: %q", got)
	}
	manager.Put(steps+"/"+id["street"], map[string]any{"text": text("street"), "position": 8}).OK(t)
	if got := names(); !slices.Equal(got, []string{"the building", "floor", "door", "street"}) {
		t.Errorf("moved to the end: %q", got)
	}
	if len(read().Steps[0].Sources) != 3 {
		t.Error("the photo was lost with the change of the text")
	}
	manager.Delete(steps+"/"+id["floor"], nil).OK(t)
	manager.Post(steps, map[string]any{"text": text("last")}).OK(t)
	if got := names(); !slices.Equal(got, []string{"the building", "door", "street", "last"}) {
		t.Errorf("deleted and added: %q", got)
	}

	for name, bad := range map[string]map[string]any{
		"one language": {"text": map[string]string{"ko": "길"}}, "too long": {"text": map[string]string{"ko": strings.Repeat("가", 201), "en": "a"}},
		"no picture": {"text": text("a"), "data": base64.StdEncoding.EncodeToString([]byte("<svg>"))}, "no base64": {"text": text("a"), "data": "!"},
		"empty photo": {"text": text("a"), "data": ""},
	} {
		manager.Post(steps, bad).Fails(t, 400, "IllegalArguemntError", "")
		if t.Failed() {
			t.Fatal(name)
		}
	}
	for _, bad := range []map[string]any{{"text": text("a")}, {"text": text("a"), "position": 0}, {"text": text("a"), "position": 9}} {
		manager.Put(steps+"/"+building.ID, bad).Fails(t, 400, "IllegalArguemntError", "")
	}
	noStep := reply{404, "ResourceNotFoundException", "해당 단계를 찾을 수 없습니다."}
	for _, step := range []string{id["floor"], "x", "-1"} {
		says(t, "delete "+step, manager.Delete(steps+"/"+step, nil), noStep)
		says(t, "change "+step, manager.Put(steps+"/"+step, map[string]any{"text": text("a"), "position": 1}), noStep)
	}
	hq := s.Admin(t, "hq", "hq-demo")
	says(t, "step of another branch", hq.Delete("/v2/admin/branches/hongdae/arrival/"+building.ID, nil), noStep)
	for range 4 {
		manager.Post(steps, map[string]any{"text": text("more")}).OK(t)
	}
	manager.Post(steps, map[string]any{"text": text("more")}).Fails(t, 409, "SettingConflictException", "")
	for _, step := range read().Steps {
		manager.Delete(steps+"/"+step.ID, nil).OK(t)
	}
	if gone := get(t, pages+building.Sources[0].URL); gone.StatusCode != http.StatusNotFound {
		t.Errorf("a deleted photo is served: %d", gone.StatusCode)
	}
	if n := only(t, s, `select count(*)::text from audit where target = 'gangnam' and action like 'branch.arrival-%'`); n != "20" {
		t.Errorf("%s audit entries, want 20", n)
	}
}
