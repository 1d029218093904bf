package httpapi_test

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/config"
	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

var carriedData = regexp.MustCompile(`(?s)<script type="application/json" id="carried"[^>]*>(.*?)</script>`)

// TestFirstScreens compares the data in the documents with the answers of the interface.
func TestFirstScreens(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	s.Clock.StartOfSlot()
	site := strings.TrimSuffix(s.URL, "/api")
	guest := s.Client(t)
	day := s.Clock.Now().In(seoul).AddDate(0, 0, 1).Format(time.DateOnly)
	for path, addresses := range map[string][]string{
		"/":                  {"/v2/branches/now", "/v2/site"},
		"/?q=gangnam":        {"/v2/branches/now?q=gangnam"},
		"/b/gangnam":         {"/v2/branches?branch=gangnam", "/v2/branches/gangnam/calendar?yearMonth=" + day[:7]},
		"/b/gangnam/" + day:  {"/v2/branches/gangnam/reservations?date=" + day + "&baseHour=0&hours=24", "/v2/branches/gangnam/rooms"},
		"/b/gangnam?lang=en": {"/v2/branches?branch=gangnam"},
	} {
		page, _ := pageOf(t, site+path)
		found := carriedData.FindStringSubmatch(page)
		if found == nil {
			t.Fatalf("%s carries no data", path)
		}
		var carried map[string]any
		if err := json.Unmarshal([]byte(found[1]), &carried); err != nil {
			t.Fatal(err)
		}
		for _, address := range addresses {
			var want any
			guest.Get(address).OK(t).Into(t, &want)
			if !sameJSON(t, carried[address], want) {
				t.Errorf("%s carries %v for %s, want %v", path, carried[address], address, want)
			}
		}
	}
	for path, want := range map[string]int{"/b/nowhere": 404, "/b/gangnam/" + day: 200, "/b/gangnam/yesterday": 404} {
		if got := get(t, site+path); got.StatusCode != want {
			t.Errorf("%s: %d, want %d", path, got.StatusCode, want)
		}
	}
	var one struct{ Branches []struct{ Branch string } }
	guest.Get("/v2/branches?branch=hongdae").OK(t).Into(t, &one)
	if len(one.Branches) != 1 || one.Branches[0].Branch != "hongdae" {
		t.Errorf("the branch hongdae: %+v", one)
	}
	guest.Get("/v2/branches?branch=%00").Fails(t, 400, "IllegalArguemntError", "")
	guest.Get("/v2/branches?branch=nowhere").OK(t).Into(t, &one)
	if len(one.Branches) != 0 {
		t.Errorf("an unknown branch: %+v", one)
	}
}

// sameJSON compares two values.
func sameJSON(t *testing.T, a, b any) bool {
	t.Helper()
	first, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	second, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	return string(first) == string(second)
}

// manyBranches adds a thousand branches of six rooms.
func manyBranches(t testing.TB, s *servicetest.Stack) {
	t.Helper()
	for _, statement := range []string{
		`insert into branch (code, name_ko, name_en, schedule) select 'many-' || n, '지점 ' || n, 'Branch ' || n, (select schedule from branch where code = 'gangnam') from generate_series(1, 1000) n`,
		`insert into room (branch_id, no, min10, min30, min60) select b.id, n, 1000, 2500, 4000 from branch b, generate_series(1, 6) n where b.code like 'many-%'`,
	} {
		if _, err := s.DB.Pool.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
}

// TestHomeOfManyBranches: whatever the number of branches, the home page is one document with 50 of them and the way to the rest.
func TestHomeOfManyBranches(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	manyBranches(t, s)
	site := strings.TrimSuffix(s.URL, "/api")
	card := regexp.MustCompile(`<a class="card row" href="/b/([\w-]+)"`)
	next := regexp.MustCompile(`href="(/\?cursor=\d+)"`)
	seen := map[string]bool{}
	path := "/"
	for range 3 {
		page, _ := pageOf(t, site+path)
		cards, more := card.FindAllStringSubmatch(page, -1), next.FindStringSubmatch(page)
		if len(cards) != 50 || more == nil || !strings.Contains(page, `type="search"`) {
			t.Fatalf("%s has %d branches, next page %v, want 50, a search and a next page", path, len(cards), more)
		}
		for _, c := range cards {
			if seen[c[1]] {
				t.Errorf("%s is on two pages", c[1])
			}
			seen[c[1]] = true
		}
		path = more[1]
	}
	if page, _ := pageOf(t, site+"/?q=many-777"); len(card.FindAllString(page, -1)) != 1 || !strings.Contains(page, `/b/many-777"`) {
		t.Error("the search does not find the branch")
	}
}

// BenchmarkHome measures the home page of a thousand branches: HTML with data, compressed.
func BenchmarkHome(b *testing.B) {
	s := servicetest.Start(b, func(set *config.Settings) { set.HTTP.RateLimits = "off" })
	manyBranches(b, s)
	site := strings.TrimSuffix(s.URL, "/api")
	began := time.Now()
	if err := fetchOK(site + "/"); err != nil {
		b.Fatal(err)
	}
	first := time.Since(began) // reads the branches of the page into the memory
	for b.Loop() {
		if err := fetchOK(site + "/"); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(first)/float64(time.Millisecond), "ms/first")
	ask, err := http.NewRequest(http.MethodGet, site+"/", nil)
	if err != nil {
		b.Fatal(err)
	}
	ask.Header.Set("Accept-Encoding", "gzip")
	answer, err := http.DefaultClient.Do(ask)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(answer.ContentLength), "bytes")
	_ = answer.Body.Close()
}
