package httpapi_test

import (
	"encoding/base64"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

type profile struct {
	Company map[string]string `json:"company"`
	Brand   map[string]string `json:"brand"`
	Logo    *string           `json:"logo"`
	Missing []string          `json:"missing"`

	LegalVersion string `json:"legalVersion"`
}

func pageOf(t *testing.T, address string) (string, http.Header) {
	t.Helper()
	answer, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body), answer.Header
}

// TestCompany checks that the headquarters change the facts, names, colour and logo of the pages, and that bad values change
// nothing.
func TestCompany(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	hq := s.Admin(t, "hq", "hq-demo")
	pages := s.Root
	var now profile
	hq.Get("/v2/admin/company").OK(t).Into(t, &now)
	if len(now.Missing) != 8 || now.Logo != nil || now.LegalVersion != "2026-11-24" {
		t.Fatalf("at first: %+v", now)
	}
	set := func(company, brand map[string]string) map[string]any {
		return map[string]any{"company": company, "brand": brand}
	}
	hq.Put("/v2/admin/company", set(map[string]string{"name": " 주식회사 <달> ", "phone": "02-0000-2000"},
		map[string]string{"nameKo": "달방", "nameEn": "Moonroom", "messagePrefix": "달방 예약", "color": "#7a1f5c"})).OK(t).Into(t, &now)
	if now.Company["name"] != "주식회사 <달>" || len(now.Missing) != 6 {
		t.Fatalf("changed: %+v", now)
	}
	hq.Put("/v2/admin/company/logo", map[string]string{"data": servicetest.Picture(t, 64)}).OK(t).Into(t, &now)
	shell, _ := pageOf(t, pages+"/")
	for _, want := range []string{" | 달방</title>", `name="brand-en" content="Moonroom"`, "주식회사 &lt;달&gt;", "/brand.css?v=7a1f5c", *now.Logo} {
		if !strings.Contains(shell, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	style, header := pageOf(t, pages+"/brand.css?v=7a1f5c")
	if !strings.Contains(style, "--blue:#7a1f5c") || !strings.Contains(header.Get("Cache-Control"), "immutable") {
		t.Errorf("style %s %s", style, header)
	}
	if _, header := pageOf(t, pages+*now.Logo); header.Get("Content-Type") != "image/png" {
		t.Errorf("logo %s", header)
	}
	key, _ := pageOf(t, pages+"/k/unknown")
	if !strings.Contains(key, "--brand:#7a1f5c") || !strings.Contains(key, "달방</a>") || !strings.Contains(key, *now.Logo) || !strings.Contains(key, "02-0000-2000") {
		t.Errorf("key page %s", key)
	}
	if manifest, _ := pageOf(t, pages+"/manifest.webmanifest"); !strings.Contains(manifest, `"name": "달방"`) {
		t.Errorf("manifest %s", manifest)
	}

	for name, bad := range map[string]map[string]any{
		"a light colour":  set(nil, map[string]string{"color": "#ffcc00"}),
		"no colour":       set(nil, map[string]string{"color": "red"}),
		"a long name":     set(nil, map[string]string{"nameKo": strings.Repeat("가", 21)}),
		"brackets":        set(nil, map[string]string{"messagePrefix": "[달]"}),
		"no address":      set(map[string]string{"email": "Kim <a@b.kr>"}, map[string]string{}),
		"an invisible":    set(map[string]string{"name": "a\u202eb"}, map[string]string{}),
		"no brand at all": {"company": map[string]string{}},
	} {
		if answer := hq.Put("/v2/admin/company", bad); answer.HTTP != 400 {
			t.Errorf("%s: got %d, want 400", name, answer.HTTP)
		}
	}
	for name, bad := range map[string]string{
		"no base64": "!", "no picture": base64.StdEncoding.EncodeToString([]byte("<svg onload=alert(1)>")), "nothing": "",
		"too large": base64.StdEncoding.EncodeToString(make([]byte, 33<<10)), "too many pixels": servicetest.Picture(t, 1025), "too few": servicetest.Picture(t, 15),
	} {
		if answer := hq.Put("/v2/admin/company/logo", map[string]string{"data": bad}); answer.HTTP != 400 {
			t.Errorf("%s: got %d, want 400", name, answer.HTTP)
		}
	}
	s.Client(t).Post("/franchise/inquiries", map[string]any{"name": "홍길동", "mobileNum": "010-1234-5678", "email": "a@b.kr", "region": "부산", "message": "문의", "privacyConsent": true}).OK(t)
	deadline := time.Now().Add(time.Minute)
	for len(s.Sandbox.Messages("hq@yeolda.example")) == 0 && time.Now().Before(deadline) {
		time.Sleep(20 * time.Millisecond)
	}
	if sent := s.Sandbox.Messages("hq@yeolda.example"); len(sent) == 0 || !strings.HasPrefix(sent[0].Subject, "[달방 예약] ") {
		t.Errorf("mail %+v", sent)
	}
	var after profile
	hq.Get("/v2/admin/company").OK(t).Into(t, &after)
	if after.Brand["color"] != "#7a1f5c" || after.Logo == nil || *after.Logo != *now.Logo {
		t.Errorf("bad values changed %+v", after)
	}
	hq.Delete("/v2/admin/company/logo", nil).OK(t).Into(t, &after)
	if after.Logo != nil {
		t.Errorf("logo %v after its removal", *after.Logo)
	}
	if answer, _ := http.Get(pages + "/logo"); answer == nil || answer.StatusCode != http.StatusNotFound {
		t.Error("a removed logo is served")
	}
	var changes int
	if err := s.DB.Pool.QueryRow(t.Context(), "select count(*) from audit where action like $1", "company.%").Scan(&changes); err != nil || changes != 3 {
		t.Errorf("%d audit entries, want 3: %v", changes, err)
	}
}

// TestLegalTexts checks that versions of the terms are rendered without scripts, never change and stay readable, and that a
// purchase stores the version that the guest agreed to.
func TestLegalTexts(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	hq := s.Admin(t, "hq", "hq-demo")
	guest := s.Client(t)
	type legal struct {
		Version, EffectiveFrom string
		Current                bool
		Terms, Privacy         struct{ Ko, En string }
		Versions               []string
	}
	read := func(version string) (l legal) {
		t.Helper()
		guest.Get("/v2/legal?version="+url.QueryEscape(version)).OK(t).Into(t, &l)
		return l
	}
	shipped := read("")
	if shipped.Version != "2026-11-24" || shipped.EffectiveFrom != "2026-11-24" || !shipped.Current || !strings.Contains(shipped.Terms.Ko, "<h2>제4조") || !strings.Contains(shipped.Privacy.En, "<h2>") {
		t.Fatalf("shipped: %+v", shipped)
	}
	hq.Put("/v2/admin/company", map[string]any{"company": map[string]string{"name": "<b>달</b>"}, "brand": map[string]string{}}).OK(t)
	hq.Post("/v2/admin/company/texts", map[string]string{"version": "2027-01-01", "termsKo": "## 목적\n\n{company} **약관** <script>alert(1)</script> [x](javascript:alert(1)) ![y](data:text/html,z) <img src=x onerror=alert(1)>\n\n문의: {phone}, {email}\n"}).OK(t)
	now := read("")
	if now.Version != "2027-01-01" || !now.Current || len(now.Versions) != 4 || now.Privacy.Ko == "" {
		t.Fatalf("new: %+v", now)
	}
	for _, bad := range []string{"<script", "javascript:", "onerror", "<b>", "data:text"} {
		if strings.Contains(now.Terms.Ko, bad) {
			t.Errorf("the text has %s: %s", bad, now.Terms.Ko)
		}
	}
	if !strings.Contains(now.Terms.Ko, "<strong>약관</strong>") || !strings.Contains(now.Terms.Ko, "&lt;b&gt;달&lt;/b&gt;") || !strings.Contains(now.Terms.Ko, "<p>문의:</p>") || now.Terms.En == "" {
		t.Errorf("rendered %s", now.Terms.Ko)
	}
	for _, version := range []string{"2026-11-23", "2026-11-22"} {
		old := read(version)
		if old.Current || old.Version != version || !strings.Contains(old.Terms.Ko, "제4조") || strings.Contains(old.Terms.Ko, "지점의 환불 규정") != (version == "2026-11-23") || strings.Contains(old.Privacy.Ko, "100 m") {
			t.Errorf("the old version: %+v", old)
		}
	}
	if answer := guest.Get("/v2/legal?version=none"); answer.HTTP != 404 {
		t.Errorf("unknown version: %d", answer.HTTP)
	}
	for name, bad := range map[string]map[string]string{
		"the same version": {"version": "2027-01-01", "termsKo": "x"}, "the shipped version": {"version": "2026-11-22", "termsKo": "x"},
	} {
		if answer := hq.Post("/v2/admin/company/texts", bad); answer.HTTP != 409 {
			t.Errorf("%s: got %d, want 409", name, answer.HTTP)
		}
	}
	for name, bad := range map[string]map[string]string{
		"no version": {"termsKo": "x"}, "a path": {"version": "../x", "termsKo": "x"}, "no text": {"version": "2027-02-01"}, "English only": {"version": "2027-02-01", "termsEn": "x"},
		"too long": {"version": "2027-02-01", "termsKo": strings.Repeat("x", 20_001)},
	} {
		if answer := hq.Post("/v2/admin/company/texts", bad); answer.HTTP != 400 {
			t.Errorf("%s: got %d, want 400", name, answer.HTTP)
		}
	}
	for _, change := range []string{"update legal_text set terms_ko = ''", "delete from legal_text"} {
		if _, err := s.DB.Pool.Exec(t.Context(), change); err == nil {
			t.Errorf("%s: no error", change)
		}
	}
	for version, want := range map[string]int{"2027-01-01": 200, "2026-11-22": 200, "2027-09-09": 400} {
		buyer := s.Client(t)
		buyer.Post("/reservation", holdBody(1, slot(s, 3*time.Hour), 90*time.Minute)).OK(t)
		answer := buyer.Post("/payment", map[string]any{"amount": 46000, "name": "홍길동", "mobileNum": "010-1234-5678", "consentVersion": version})
		if answer.HTTP != want {
			t.Errorf("consent to %s: %d %s, want %d", version, answer.HTTP, answer.Raw, want)
		}
		buyer.Delete("/reservation", nil)
	}
	// An update of the program ships a version with the name of one that was saved before.
	if _, err := s.DB.Pool.Exec(t.Context(), `insert into legal_text (version, terms_ko, terms_en, privacy_ko, privacy_en, created_at, created_by)
		values ($1, 'saved', '', 'saved', '', now(), 'hq')`, "2026-11-23"); err != nil {
		t.Fatal(err)
	}
	if saved := read("2026-11-23"); !strings.Contains(saved.Terms.Ko, "saved") || len(saved.Versions) != 4 {
		t.Errorf("a saved version with the name of a shipped one: %+v", saved)
	}
}
