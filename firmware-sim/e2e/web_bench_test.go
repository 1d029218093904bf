package e2e

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	protocol "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/yeolda/yeolda/firmware-sim/proof/world"
	"github.com/yeolda/yeolda/firmware-sim/testkit/chromium"
)

// paints records what a browser reports about the first screen: the largest paint and the layout shifts.
const paints = `window.largest = 0; window.shift = 0;
	new PerformanceObserver(list => { for (const e of list.getEntries()) largest = e.startTime; }).observe({type: "largest-contentful-paint", buffered: true});
	new PerformanceObserver(list => { for (const e of list.getEntries()) if (!e.hadRecentInput) shift += e.value; }).observe({type: "layout-shift", buffered: true});`

// BenchmarkFirstVisit measures first visits of a mid-range phone: a quarter of the processor, 1.6 Mbit/s, 150 ms of latency,
// nothing stored. first-paint-ms counts from the first byte of the document, largest-paint-ms from the navigation. Each is the
// median of the visits.
func BenchmarkFirstVisit(b *testing.B) {
	chromium.Need(b)
	s := startStack(b, company)
	for i, branch := range []string{"gangnam", "hongdae", "jamsil"} {
		hang(b, s, branch, uint64(i))
	}
	key := newBrowser(b, s).buy(s, "gangnam", 2, 25000, "01011112222")
	first := newPage(b, s.Pages)
	for _, visit := range []struct{ name, path, shown string }{
		{"home", "/", "강남점"},
		{"rooms", "/b/gangnam/" + tomorrow(), "2번 룸"},
		{"key", "/k/" + key, "2번 룸 열기"},
	} {
		b.Run(visit.name, func(b *testing.B) {
			var paint, largest, shift, size []float64
			for b.Loop() {
				p := first.another(b)
				received := p.count()
				p.midRange()
				p.open(visit.path)
				p.see(visit.shown)
				p.wait("every paint and photo", `document.readyState === "complete" && largest > 0 && performance.getEntriesByName("first-contentful-paint").length > 0 && [...document.images].every(i => i.complete || i.getBoundingClientRect().top > innerHeight)`)
				paint = append(paint, value[float64](p, `performance.getEntriesByName("first-contentful-paint")[0].startTime - performance.getEntriesByType("navigation")[0].responseStart`))
				largest = append(largest, value[float64](p, `largest`))
				shift = append(shift, value[float64](p, `shift`))
				size = append(size, float64(received()))
				if err := chromedp.Cancel(p.ctx); err != nil { // a slowed tab keeps the processor busy
					b.Fatal(err)
				}
			}
			b.ReportMetric(median(paint), "first-paint-ms")
			b.ReportMetric(median(largest), "largest-paint-ms")
			b.ReportMetric(slices.Max(shift), "layout-shift")
			b.ReportMetric(median(size), "bytes")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkAirplaneMode reads the key page on a mid-range phone without a network, after one visit. pin-ms counts from the
// navigation until the PIN is painted.
func BenchmarkAirplaneMode(b *testing.B) {
	chromium.Need(b)
	s := startStack(b, company)
	key := newBrowser(b, s).buy(s, "gangnam", 2, 25000, "01011112222")
	p := newPage(b, s.Pages)
	p.expect("ERR_INTERNET_DISCONNECTED")
	p.midRange()
	p.open("/k/" + key)
	p.wait("the PIN", `document.querySelector("#pass .pin").textContent.length >= 6`)
	p.wait("the page is kept", kept)
	p.offline(true)
	var shown []float64
	for b.Loop() {
		p.do("reload", chromedp.Reload())
		p.see("키패드 비밀번호")
		p.wait("the first paint", `performance.getEntriesByName("first-contentful-paint").length > 0 && document.querySelector("#pass .pin").textContent.length >= 6`)
		shown = append(shown, value[float64](p, `performance.getEntriesByName("first-contentful-paint")[0].startTime`))
	}
	b.ReportMetric(slices.Max(shown), "pin-ms")
	b.ReportMetric(0, "ns/op")
}

// midRange slows the processor and the network of a tab down to those of a mid-range phone.
func (p *page) midRange() {
	p.t.Helper()
	const throughput = 1.6e6 / 8 // bytes per second
	_, err := chromedp.Call(p.ctx, network.EmulateNetworkConditionsByRule, network.EmulateNetworkConditionsByRuleParams{
		MatchedNetworkConditions: []*network.Conditions{{Latency: 150, DownloadThroughput: throughput, UploadThroughput: throughput / 2}},
	})
	if err != nil {
		p.t.Fatal(err)
	}
	if _, err := chromedp.Call(p.ctx, emulation.SetCPUThrottlingRate, emulation.SetCPUThrottlingRateParams{Rate: 4}); err != nil {
		p.t.Fatal(err)
	}
	if _, err := chromedp.Call(p.ctx, protocol.AddScriptToEvaluateOnNewDocument, protocol.AddScriptToEvaluateOnNewDocumentParams{Source: paints}); err != nil {
		p.t.Fatal(err)
	}
}

// hang gives the first room of a branch a photo with about as much detail as a camera's.
func hang(b *testing.B, s *world.Stack, branch string, seed uint64) {
	b.Helper()
	r := rand.New(rand.NewPCG(seed, 1))
	picture := image.NewRGBA(image.Rect(0, 0, 1600, 1067))
	for y := range 1067 {
		for x := range 1600 {
			grain := r.IntN(40)
			picture.Set(x, y, color.RGBA{uint8(90 + x/16 + grain), uint8(70 + y/10 + grain), uint8(60 + (x+y)/30 + grain), 255})
		}
	}
	var photo bytes.Buffer
	if err := jpeg.Encode(&photo, picture, nil); err != nil {
		b.Fatal(err)
	}
	hq := newBrowser(b, s)
	hq.must("POST", "/admin/login", map[string]string{"id": "hq", "password": "hq-demo"}, nil)
	hq.must("POST", fmt.Sprintf("/v2/admin/branches/%s/rooms/1/photos", branch), map[string]any{
		"data": base64.StdEncoding.EncodeToString(photo.Bytes()), "alt": map[string]string{"ko": "창가의 소파", "en": "A sofa by the window"},
	}, nil)
}

func median(of []float64) float64 {
	slices.Sort(of)
	return of[len(of)/2]
}
