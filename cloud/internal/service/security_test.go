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

	"github.com/yeolda/yeolda/cloud/internal/config"
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

// TestStageOriginMayFrame checks that the pages name exactly the origin of the setting, and none without it.
func TestStageOriginMayFrame(t *testing.T) {
	t.Parallel()
	for _, origin := range []string{"", "http://127.0.0.1:8070"} {
		s := servicetest.Start(t, func(set *config.Settings) { set.Sandbox.StageOrigin = origin })
		for path, framed := range map[string]bool{
			"/": true, "/b/gangnam": true, "/book/pay": true, "/k/11111111-2222-4333-8444-555555555555": true, "/console": true, "/console/gangnam/doors": true, "/nowhere": true,
			"/docs": false, "/docs/api": false, "/api/v2/branches": false,
		} {
			response, err := http.Get(s.Root + path)
			if err != nil {
				t.Fatal(err)
			}
			response.Body.Close()
			want := "frame-ancestors 'none'"
			if framed && origin != "" {
				want = "frame-ancestors " + origin
			}
			got := regexp.MustCompile(`frame-ancestors[^;]*`).FindAllString(response.Header.Get("Content-Security-Policy"), -1)
			if !slices.Equal(got, []string{want}) || response.Header.Get("X-Frame-Options") != "" {
				t.Errorf("%s with the setting %q: %q and X-Frame-Options %q, want %q alone", path, origin, got, response.Header.Get("X-Frame-Options"), want)
			}
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
	tests := allTests(t)
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
	for n := 1; n <= 33; n++ {
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

// allTests returns the names of all tests of the repository.
func allTests(t *testing.T) []string {
	t.Helper()
	out, err := exec.Command("grep", "-rhoE", "^func (Test|Fuzz)[A-Za-z0-9_]+", "--include=*_test.go",
		"../../../cloud", "../../../agent", "../../../firmware-sim", "../../../protocol").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(strings.ReplaceAll(string(out), "func ", ""))
}

// TestThreatsToPassesAreAnswered checks that each row of docs/passes-threats.md names a test, and that the tests exist.
func TestThreatsToPassesAreAnswered(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../../../docs/passes-threats.md")
	if err != nil {
		t.Fatal(err)
	}
	tests := append(allTests(t), "passsim", "passlive") // packages whose tests are one test of all rows
	rows := regexp.MustCompile(`(?m)^\| [A-Z].*\| *([^|]*) \|$`).FindAllStringSubmatch(string(raw), -1)
	if len(rows) < 15 {
		t.Errorf("%d rows, want one for each threat", len(rows))
	}
	name := regexp.MustCompile("`(?:[a-z0-9]+\\.)?(Test[A-Za-z0-9]+|passsim|passlive)`")
	for _, row := range rows {
		named := name.FindAllStringSubmatch(row[1], -1)
		if len(named) == 0 {
			t.Errorf("no test: %s", row[0])
		}
		for _, test := range named {
			if !slices.Contains(tests, test[1]) {
				t.Errorf("%s does not exist", test[1])
			}
		}
	}
}
