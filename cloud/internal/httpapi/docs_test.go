package httpapi_test

import (
	"crypto/sha256"
	"encoding/base64"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/yeolda/yeolda/cloud"
	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

func fetch(t *testing.T, url string) (*http.Response, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer, string(body)
}

func TestDocs(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	if answer, body := fetch(t, s.URL+"/openapi.yaml"); answer.StatusCode != http.StatusOK || body != string(cloud.OpenAPI) {
		t.Errorf("openapi.yaml: %d, %d bytes", answer.StatusCode, len(body))
	}
	answer, page := fetch(t, s.Root+"/docs/api")
	if answer.StatusCode != http.StatusOK || !strings.Contains(page, "/api/openapi.yaml") {
		t.Fatalf("page: %d %s", answer.StatusCode, page)
	}
	policy := answer.Header.Get("Content-Security-Policy")
	for _, inline := range regexp.MustCompile(`(?s)<script>(.*?)</script>`).FindAllStringSubmatch(page, -1) {
		sum := sha256.Sum256([]byte(inline[1]))
		if !strings.Contains(policy, base64.StdEncoding.EncodeToString(sum[:])) {
			t.Errorf("the policy %s does not allow the script %s", policy, inline[1])
		}
	}
	// The page loads no files from other servers, and all files that it references exist.
	references := regexp.MustCompile(`(?:src|href)="([^"]*)"`).FindAllStringSubmatch(page, -1)
	if len(references) < 3 {
		t.Errorf("references %v in %s", references, page)
	}
	for _, reference := range references {
		if !strings.HasPrefix(reference[1], "/docs/api/") {
			t.Errorf("the page refers to %s", reference[1])
			continue
		}
		if file, body := fetch(t, s.Root+reference[1]); file.StatusCode != http.StatusOK || body == "" {
			t.Errorf("%s: %d", reference[1], file.StatusCode)
		}
	}
}

// TestChapterPages reads each chapter and the agent protocol through the links of the API's description.
func TestChapterPages(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	links := regexp.MustCompile(`\]\((/docs/[a-z]+)\)`).FindAllStringSubmatch(string(cloud.OpenAPI), -1)
	want := map[string]string{
		"/docs/booking": "orderId", "/docs/doors": "failoverKey", "/docs/events": "webhook-signature", "/docs/errors": "Idempotent-Replayed",
		"/docs/agents": "yeolda/v1/{branch}/agent/{username}/door/grant",
	}
	if len(links) != len(want) {
		t.Errorf("links %v, want %d", links, len(want))
	}
	if _, first := fetch(t, s.Root+"/docs"); !strings.Contains(first, "<h1>Book and open in five calls") || !strings.Contains(first, `href="/docs/api"`) {
		t.Errorf("the first page is %s", first)
	}
	for _, link := range links {
		answer, page := fetch(t, s.Root+link[1])
		if answer.StatusCode != http.StatusOK || !strings.Contains(page, want[link[1]]) || want[link[1]] == "" {
			t.Errorf("%s: %d %s", link[1], answer.StatusCode, page)
		}
		style := regexp.MustCompile(`(?s)<style>(.*)</style>`).FindStringSubmatch(page)
		sum := sha256.Sum256([]byte(style[1]))
		if policy := answer.Header.Get("Content-Security-Policy"); !strings.Contains(policy, base64.StdEncoding.EncodeToString(sum[:])) {
			t.Errorf("%s: the policy %s does not allow the style", link[1], policy)
		}
		for _, anchor := range regexp.MustCompile(`href="#([^"]*)"`).FindAllStringSubmatch(page, -1) {
			if !strings.Contains(page, `id="`+anchor[1]+`"`) {
				t.Errorf("%s: no #%s", link[1], anchor[1])
			}
		}
	}
}
