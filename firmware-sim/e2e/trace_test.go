package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/tracing"
	"github.com/chromedp/chromedp"
)

// A span of Chromium's trace. Times are microseconds.
type span struct {
	Name   string  `json:"name"`
	PID    int     `json:"pid"`
	Thread int     `json:"tid"`
	At     float64 `json:"ts"`
	Took   float64 `json:"dur"`
	CPU    float64 `json:"tdur"` // processor time within Took
	Args   struct {
		Name string `json:"name"` // of a thread
	} `json:"args"`
}

// trace records Chromium's trace during act.
func (p *page) trace(act func()) (spans []span) {
	p.t.Helper()
	ctx, cancel := context.WithCancel(p.ctx)
	defer cancel()
	var parts []*tracing.EventDataCollected // written by the event reader until complete is closed
	complete := make(chan struct{})
	err := chromedp.Listen(ctx, func(event any) {
		switch event := event.(type) {
		case *tracing.EventDataCollected:
			parts = append(parts, event)
		case *tracing.EventTracingComplete:
			close(complete)
		}
	})
	if err != nil {
		p.t.Fatal(err)
	}
	_, err = chromedp.Call(ctx, tracing.Start, tracing.StartParams{TransferMode: tracing.StartTransferModeReportEvents, TraceConfig: &tracing.TraceConfig{
		IncludedCategories: []string{"disabled-by-default-devtools.timeline", "disabled-by-default-devtools.timeline.frame", "devtools.timeline", "__metadata"},
		ExcludedCategories: []string{"*"},
	}})
	if err != nil {
		p.t.Fatal(err)
	}
	act()
	if _, err := chromedp.Call(ctx, tracing.End, cdp.Empty{}); err != nil {
		p.t.Fatal(err)
	}
	select {
	case <-complete:
	case <-time.After(time.Minute):
		p.t.Fatal("the browser did not deliver its trace")
	}
	for _, part := range parts {
		for _, raw := range part.Value {
			var s span
			if json.Unmarshal(raw, &s) == nil { // arguments of other events have other shapes
				spans = append(spans, s)
			}
		}
	}
	return spans
}

// frames holds the frame timing of a page. Times are milliseconds per frame.
type frames struct {
	count                               int
	rate                                float64 // per second
	median, late                        float64 // between two frames; late is the 95th percentile
	main, script, layout, paint, commit float64 // of the page's main thread
	raster                              float64 // of the threads that paint
	busy                                float64 // processor time of the main thread
}

func (f frames) String() string {
	return fmt.Sprintf("%.1f frames/s over %d frames (median %.1f ms, 95%% %.1f ms); a frame takes the main thread %.1f ms (%.1f ms of processor): script %.1f, style and layout %.1f, paint %.1f, commit %.1f; raster %.1f ms",
		f.rate, f.count, f.median, f.late, f.main, f.busy, f.script, f.layout, f.paint, f.commit, f.raster)
}

// framesOf computes the frame timing from a trace: the frames that the main thread has started, and the work of all
// threads of the page.
func framesOf(spans []span) (f frames) {
	main := map[[2]int]bool{}
	for _, s := range spans {
		if s.Name == "thread_name" && s.Args.Name == "CrRendererMain" {
			main[[2]int{s.PID, s.Thread}] = true
		}
	}
	var begins []float64
	for _, s := range spans {
		onMain, ms := main[[2]int{s.PID, s.Thread}], s.Took/1000
		switch {
		case s.Name == "RasterTask":
			f.raster += ms
		case !onMain:
		case s.Name == "BeginMainThreadFrame":
			begins = append(begins, s.At/1000)
		case s.Name == "RunTask":
			f.main += ms
			f.busy += s.CPU / 1000
		case s.Name == "FireAnimationFrame":
			f.script += ms
		case s.Name == "UpdateLayoutTree", s.Name == "Layout":
			f.layout += ms
		case s.Name == "PrePaint", s.Name == "Paint", s.Name == "Layerize":
			f.paint += ms
		case s.Name == "Commit":
			f.commit += ms
		}
	}
	slices.Sort(begins)
	var gaps []float64
	for i := 1; i < len(begins); i++ {
		gaps = append(gaps, begins[i]-begins[i-1])
	}
	if f.count = len(gaps); f.count == 0 {
		return f
	}
	f.rate = 1000 * float64(f.count) / (begins[len(begins)-1] - begins[0])
	slices.Sort(gaps)
	f.median, f.late = gaps[len(gaps)/2], gaps[len(gaps)*95/100]
	for _, sum := range []*float64{&f.main, &f.busy, &f.script, &f.layout, &f.paint, &f.commit, &f.raster} {
		*sum /= float64(f.count)
	}
	return f
}
