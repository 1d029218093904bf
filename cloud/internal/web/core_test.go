package web

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/evanw/esbuild/pkg/api"

	"github.com/yeolda/yeolda/cloud/internal/booking"
)

// browserPath returns the path of a browser, or skips the test if there is none.
func browserPath(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chromium-headless-shell"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	const missing = "no browser: apt-get install -y --no-install-recommends chromium"
	if os.Getenv("E2E_REQUIRED") == "1" {
		t.Fatal(missing)
	}
	t.Skip(missing)
	return ""
}

// TestCore runs testdata/core.ts in a real browser.
func TestCore(t *testing.T) {
	t.Parallel()
	runInBrowser(t, bundleTest(t, "testdata/core.ts"))
}

// TestSignalsMatchPreact compares the reactive core with @preact/signals-core on random graphs.
func TestSignalsMatchPreact(t *testing.T) {
	t.Parallel()
	const library = "node_modules/@preact/signals-core/dist/signals-core.mjs"
	if _, err := os.Stat(library); err != nil {
		const missing = "no @preact/signals-core: run npm install in cloud/internal/web"
		if os.Getenv("E2E_REQUIRED") == "1" {
			t.Fatal(missing)
		}
		t.Skip(missing)
	}
	fromModules := api.Plugin{Name: "modules", Setup: func(b api.PluginBuild) {
		b.OnResolve(api.OnResolveOptions{Filter: `^@preact/signals-core$`}, func(api.OnResolveArgs) (api.OnResolveResult, error) {
			return api.OnResolveResult{Path: library, Namespace: "src"}, nil
		})
	}}
	runInBrowser(t, bundleTest(t, "testdata/signals.ts", fromModules))
}

// runInBrowser runs a script that posts its results, as testdata/check.ts does, and reports each as a subtest.
func runInBrowser(t *testing.T, script string) {
	t.Helper()
	browser := browserPath(t)
	type result struct{ Name, Problem string }
	results := make(chan []result, 1)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte(`<!doctype html><html lang="ko"><title>core</title><body><script type="module">` + script + `</script>`))
	})
	mux.HandleFunc("GET /oracle", func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(oracle(t)) })
	mux.HandleFunc("POST /results", func(_ http.ResponseWriter, r *http.Request) {
		var list []result
		if err := json.NewDecoder(r.Body).Decode(&list); err != nil {
			t.Error(err)
		}
		results <- list
	})
	server := httptest.NewServer(mux)
	defer server.Close()

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
		"--no-first-run", "--lang=ko", "--user-data-dir="+profile(t), "--remote-debugging-port=0", server.URL)
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = command.Wait() }() // killed by cancel
	defer cancel()
	select {
	case list := <-results:
		for _, r := range list {
			t.Run(r.Name, func(t *testing.T) {
				if r.Problem != "" {
					t.Error(r.Problem)
				}
			})
		}
	case <-ctx.Done():
		t.Fatal("the browser did not report its results")
	}
}

// profile returns a directory for a browser profile. Child processes may still write to it after the browser has exited,
// so unlike t.TempDir it ignores an error of the removal.
func profile(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "yeolda-browser-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func bundleTest(t *testing.T, entry string, plugins ...api.Plugin) string {
	t.Helper()
	result := build(os.DirFS("."), api.BuildOptions{EntryPoints: []string{entry}, Format: api.FormatESModule, Plugins: plugins})
	if err := failure(result); err != nil {
		t.Fatal(err)
	}
	return string(result.OutputFiles[0].Contents)
}

type oraclePrice struct {
	Pricing struct {
		Min10 *int `json:"min10"`
		Min30 *int `json:"min30"`
		Min60 *int `json:"min60"`
	} `json:"pricing"`
	Minutes int  `json:"minutes"`
	Won     *int `json:"won"`
}

type oracleTime struct {
	Zone    string `json:"zone"`
	Instant int64  `json:"instant"` // milliseconds
	Wall    string `json:"wall"`
	Local   string `json:"local"`
}

// oracle returns prices and times computed by the service, which the browser code must reproduce.
func oracle(t *testing.T) any {
	random := rand.New(rand.NewPCG(1, 2))
	tier := func() *int {
		if random.IntN(3) == 0 {
			return nil
		}
		return new(1000 * (1 + random.IntN(30)))
	}
	var prices []oraclePrice
	for range 300 {
		p := oraclePrice{Minutes: 10 * (1 + random.IntN(30))}
		p.Pricing.Min10, p.Pricing.Min30, p.Pricing.Min60 = tier(), tier(), tier()
		rule := booking.Price{Min10: p.Pricing.Min10, Min30: p.Pricing.Min30, Min60: p.Pricing.Min60}
		if won, ok := rule.For(time.Duration(p.Minutes) * time.Minute); ok {
			p.Won = &won
		}
		prices = append(prices, p)
	}
	var times []oracleTime
	for _, name := range []string{"Asia/Seoul", "UTC", "America/New_York", "Asia/Kolkata"} {
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Error(err)
			continue
		}
		for range 20 {
			at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(random.IntN(365*24*60)) * time.Minute)
			times = append(times, oracleTime{name, at.UnixMilli(), at.In(zone).Format("200601021504"), at.In(zone).Format("2006-01-02T15:04:05")})
		}
	}
	return map[string]any{"prices": prices, "times": times}
}
