package service_test

import (
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

// Every answer carries the security headers, errors included.
func TestSecurityHeaders(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	for path, want := range map[string]map[string]string{
		"/": {"Content-Security-Policy": "frame-ancestors 'none'", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "origin"},
		"/k/11111111-2222-4333-8444-555555555555":         {"Content-Security-Policy": "default-src 'none'", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store"},
		"/api/v2/branches":                                {"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "frame-ancestors 'none'", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store"},
		"/api/admin/reservations":                         {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"},
		"/api/nothing":                                    {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"},
		"/api/door/v2/unlock/subscribe?requestId=a&key=b": {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer"},
	} {
		response, err := http.Get(s.Root + path)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		for name, value := range want {
			if got := response.Header.Get(name); !strings.Contains(got, value) {
				t.Errorf("%s: %s is %q, without %q", path, name, got, value)
			}
		}
		if server := response.Header.Get("Server"); server != "" {
			t.Errorf("%s: Server %q", path, server)
		}
	}
}

// No other origin may read an answer.
func TestNoOriginIsAllowed(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	for _, origin := range []string{"https://elsewhere.example", "null", s.Root + ".elsewhere.example", "http://127.0.0.1"} {
		for _, method := range []string{http.MethodGet, http.MethodOptions} {
			request, err := http.NewRequestWithContext(t.Context(), method, s.URL+"/v2/branches", nil)
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("Origin", origin)
			request.Header.Set("Access-Control-Request-Method", "POST")
			response, err := http.DefaultClient.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			response.Body.Close()
			for name := range response.Header {
				if strings.HasPrefix(name, "Access-Control-") {
					t.Errorf("%s from %s: %s", method, origin, name)
				}
			}
		}
	}
}

// SECURITY.md names existing tests for every threat of the list.
func TestThreatsAreAnswered(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../../../SECURITY.md")
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("grep", "-rhoE", "^func (Test|Fuzz)[A-Za-z0-9_]+", "--include=*_test.go",
		"../../../cloud", "../../../agent", "../../../firmware-sim", "../../../protocol").Output()
	if err != nil {
		t.Fatal(err)
	}
	tests := strings.Fields(strings.ReplaceAll(string(out), "func ", ""))
	answered := map[int][]string{}
	name := regexp.MustCompile("`((?:Test|Fuzz)[A-Za-z0-9_]+)`")
	for _, row := range regexp.MustCompile(`(?m)^\| A(\d+) .*$`).FindAllStringSubmatch(string(raw), -1) {
		n, err := strconv.Atoi(row[1])
		if err != nil {
			t.Fatal(err)
		}
		for _, test := range name.FindAllStringSubmatch(row[0], -1) {
			answered[n] = append(answered[n], test[1])
		}
	}
	for n := 1; n <= 31; n++ {
		if len(answered[n]) == 0 && n != 24 { // defended by the installation
			t.Errorf("A%d names no test", n)
		}
	}
	for _, test := range name.FindAllStringSubmatch(string(raw), -1) {
		if !slices.Contains(tests, test[1]) {
			t.Errorf("SECURITY.md names %s, which does not exist", test[1])
		}
	}
}
