package web

import (
	"bytes"
	"context"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"sync/atomic"
	"testing"
	"time"

	"github.com/evanw/esbuild/pkg/api"

	"github.com/yeolda/yeolda/cloud/internal/access"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/httpapi/wire"
	"github.com/yeolda/yeolda/firmware-sim/testkit/chromium"
)

// TestCore runs testdata/core.ts in a real browser.
func TestCore(t *testing.T) {
	t.Parallel()
	runInBrowser(t, bundleTest(t, "testdata/core.ts"))
}

// TestConsoleParts runs testdata/console.ts in a real browser: screens of the console whose requests the page answers itself.
func TestConsoleParts(t *testing.T) {
	t.Parallel()
	runInBrowser(t, bundleTest(t, "testdata/console.ts"))
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

// TestWhyOnTheKeyPage shows each reason on the key page: its sentence is the one of the service, in both languages and for both
// doors. Package access compares that of the service with the console's record and the chat.
func TestWhyOnTheKeyPage(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 11, 25, 6, 0, 0, 0, time.UTC)
	sentence := func(code, kind, language string) string {
		return access.Diagnosis{Code: access.Reason(code), Kind: kind, RoomNo: 3, Until: begin.Add(time.Minute),
			Window: booking.Interval{Start: begin, End: begin.Add(time.Hour)}}.Message(language)
	}
	type shown struct {
		Code    access.Reason `json:"code"`
		Door    string        `json:"door"`
		Lang    string        `json:"lang"`
		Message string        `json:"message"`
	}
	var all []shown
	for _, code := range access.Reasons {
		for _, kind := range []string{access.Front, access.Room} {
			for _, language := range []string{"ko", "en"} {
				all = append(all, shown{code, kind, language, sentence(string(code), kind, language)})
			}
		}
	}
	runInBrowser(t, bundleTest(t, "testdata/why.ts"), func(mux *http.ServeMux) {
		mux.HandleFunc("GET /sentences", func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(all) })
		mux.HandleFunc("GET /api/v2/keys/{code}/why", func(w http.ResponseWriter, r *http.Request) {
			code, query := r.PathValue("code"), r.URL.Query()
			if query.Get("branch") != "gangnam" {
				t.Errorf("asked for branch %q", query.Get("branch"))
			}
			_ = json.NewEncoder(w).Encode(map[string]any{"data": map[string]any{
				"code": code, "message": sentence(code, query.Get("door"), query.Get("lang")), "since": nil, "until": nil, "next": []any{}}})
		})
	})
}

// runInBrowser runs a script that posts its results, as testdata/check.ts does, and reports each as a subtest. routes add what
// the script asks for.
func runInBrowser(t *testing.T, script string, routes ...func(*http.ServeMux)) {
	t.Helper()
	chromium.Need(t)
	type result struct{ Name, Problem string }
	results := make(chan []result, 1)
	var loaded atomic.Bool
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		loaded.Store(true)
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
	for _, add := range routes {
		add(mux)
	}
	server := httptest.NewServer(mux)
	defer server.Close()

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, chromium.Path(), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
		"--no-first-run", "--lang=ko", "--user-data-dir="+profile(t), "--remote-debugging-port=0", server.URL)
	output := new(bytes.Buffer)
	command.Stdout, command.Stderr = output, output
	command.WaitDelay = time.Second // its own children may keep the output open
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	end := func() {
		cancel()
		_ = command.Wait() // killed by cancel
	}
	select {
	case list := <-results:
		end()
		for _, r := range list {
			t.Run(r.Name, func(t *testing.T) {
				if r.Problem != "" {
					t.Error(r.Problem)
				}
			})
		}
	case <-ctx.Done():
		end()
		t.Fatalf("the browser did not report its results (page loaded: %t): %s", loaded.Load(), output)
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

// oraclePrice is a stay in a room of the look-up, and its price.
type oraclePrice struct {
	Pricing wire.Price     `json:"pricing"`
	Changes []oracleChange `json:"pricingChanges,omitempty"`
	Start   string         `json:"start"`
	Minutes int            `json:"minutes"`
	Won     *int           `json:"won"`
}

type oracleChange struct {
	From string `json:"fromDateTime"`
	wire.Price
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
		const layout = "200601021504"
		list := func() booking.Price { return booking.Price{Min10: tier(), Min30: tier(), Min60: tier()} }
		day := time.Date(2026, 12, 1+random.IntN(31), 0, 0, 0, 0, time.UTC)
		branch, room := booking.Branch{Zone: time.UTC}, booking.Room{Price: list()}
		for range random.IntN(4) {
			from := 10 * random.IntN(144)
			room.PriceRules = append(room.PriceRules, booking.PriceRule{
				From: booking.Date{Year: 2026, Month: 12, Day: 10}, Days: []time.Weekday{day.Weekday(), day.AddDate(0, 0, random.IntN(7)).Weekday()},
				Hours: &booking.ClockSpan{From: from, To: from + 10*(1+random.IntN(144))}, Price: list(),
			})
		}
		stay := booking.Interval{Start: day.Add(time.Duration(random.IntN(114)) * 10 * time.Minute)}
		stay.End = stay.Start.Add(time.Duration(1+random.IntN(30)) * 10 * time.Minute)
		p := oraclePrice{Pricing: wire.Price(room.Price), Start: stay.Start.Format(layout), Minutes: int(stay.Length().Minutes())}
		if len(room.PriceRules) > 0 {
			for _, span := range branch.PriceSpans(room, booking.Interval{Start: day, End: day.Add(24 * time.Hour)}) {
				p.Changes = append(p.Changes, oracleChange{span.Start.Format(layout), wire.Price(span.Price)})
			}
		}
		if won, ok := branch.PriceOf(room, stay); ok {
			p.Won = &won
		}
		prices = append(prices, p)
	}
	var times []oracleTime
	year := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, name := range []string{"Asia/Seoul", "UTC", "America/New_York", "Asia/Kolkata"} {
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Error(err)
			continue
		}
		// Beside the changes of the clocks in New York, where no local time occurs twice.
		instants := []time.Time{
			time.Date(2026, 3, 8, 6, 30, 0, 0, time.UTC), time.Date(2026, 3, 8, 7, 30, 0, 0, time.UTC), time.Date(2026, 3, 8, 11, 30, 0, 0, time.UTC),
			time.Date(2026, 11, 1, 4, 30, 0, 0, time.UTC), time.Date(2026, 11, 1, 7, 30, 0, 0, time.UTC), time.Date(2026, 11, 1, 9, 30, 0, 0, time.UTC),
		}
		for range 20 {
			instants = append(instants, year.Add(time.Duration(random.IntN(365*24*60))*time.Minute))
		}
		for _, at := range instants {
			times = append(times, oracleTime{name, at.UnixMilli(), at.In(zone).Format("200601021504"), at.In(zone).Format("2006-01-02T15:04:05")})
		}
	}
	return map[string]any{"prices": prices, "times": times}
}
