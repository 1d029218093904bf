package panel_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/yeolda/yeolda/firmware-sim/internal/fault"
	"github.com/yeolda/yeolda/firmware-sim/testkit/chromium"
)

// browserPatience limits a page load; a browser's first start is slow.
const browserPatience = 30 * time.Second

// browse opens the panel's page and returns the context of its tab. Any console output, error or policy violation fails
// the test.
func browse(t *testing.T, f *fixture) context.Context {
	t.Helper()
	chromium.Need(t)
	allocator, end := chromedp.NewExecAllocator(context.Background(),
		append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath(chromium.Path()), chromedp.NoSandbox, chromedp.Flag("lang", "ko"))...)
	t.Cleanup(end)
	ctx, leave := chromedp.NewContext(allocator)
	t.Cleanup(leave)
	ctx, cancel := context.WithTimeout(ctx, browserPatience)
	t.Cleanup(cancel)
	console := chromedp.Console(ctx)
	t.Cleanup(func() {
		cancel()
		for m, err := range console {
			if err != nil {
				break
			}
			t.Errorf("console: %s", m)
		}
	})
	if err := chromedp.Do(ctx, chromedp.Navigate(f.server.URL), chromedp.WaitVisible(chromedp.CSS("#plan .tile"))); err != nil {
		t.Fatal(err)
	}
	return ctx
}

// until waits until an expression is true in the page.
func until(t *testing.T, ctx context.Context, expression string) {
	t.Helper()
	if _, err := chromedp.Run(ctx, chromedp.Poll[bool]("("+expression+") || null", chromedp.WithPollingTimeout(testTimeout))); err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
}

func TestPageShowsAnUnlock(t *testing.T) {
	f := newFixture(t)
	f.run()
	ctx := browse(t, f)
	until(t, ctx, `document.querySelectorAll("#plan .tile").length === 8 && document.querySelectorAll(".sensor").length === 5`)
	id := f.cloud.Unlock("gangnam", "room_2")
	tile := `document.querySelectorAll("#plan .tile")[1].classList`
	until(t, ctx, tile+`.contains("energized") && `+tile+`.contains("released")`)
	until(t, ctx, `!`+tile+`.contains("energized")`)
	until(t, ctx, fmt.Sprintf(`document.querySelector("#log").textContent.includes("door/grant") &&
		document.querySelector("#log").textContent.includes(%q)`, id[:8]))
}

func TestPageBreaksThings(t *testing.T) {
	f := newFixture(t)
	ctx := browse(t, f)
	gangnam := f.all[0]
	click := func(selector string) {
		t.Helper()
		if err := chromedp.Do(ctx, chromedp.Click(chromedp.CSS(selector))); err != nil {
			t.Fatal(err)
		}
	}
	click(`[data-kind="duplicate"]`)
	until(t, ctx, `document.querySelector('[data-kind="duplicate"]').getAttribute("aria-checked") === "true"`)
	if _, on := gangnam.Presence().Faults.At(fault.Duplicate, ""); !on {
		t.Error("the switch did not switch the fault on")
	}
	click(`[data-kind="duplicate"]`)
	until(t, ctx, `document.querySelector('[data-kind="duplicate"]').getAttribute("aria-checked") === "false"`)

	click(`#device-fault button`)
	until(t, ctx, `document.querySelectorAll(".chip").length === 1`)
	if _, on := gangnam.Presence().Faults.At(fault.Stuck, "room_1"); !on {
		t.Error("the form did not add the fault")
	}
	click(`#clear`)
	until(t, ctx, `document.querySelectorAll(".chip").length === 0`)

	click(`#plan .tile .actions button`)
	until(t, ctx, `document.querySelector("#plan .tile").classList.contains("open")`)

	click(`#plan .tile .actions button:nth-child(3)`)
	const keys = "123456789C0#"
	for _, key := range "481901#" {
		click(fmt.Sprintf(`#keypad-keys button:nth-child(%d)`, strings.IndexRune(keys, key)+1))
	}
	until(t, ctx, `document.querySelector("#keypad-answer").textContent !== ""`)
	if d := gangnam.State().Doors[2]; !d.Released {
		t.Errorf("the keypad did not open room 1: %+v", d)
	}

	click(`#keypad button[value="close"]`)
	language := `document.documentElement.lang`
	before, err := chromedp.Run(ctx, chromedp.Evaluate[string](language))
	if err != nil {
		t.Fatal(err)
	}
	click(`#language`)
	until(t, ctx, fmt.Sprintf(`%s !== %q`, language, before))
}

// TestPagePlaysAndRecords records while the page plays a scenario, and checks that the recording contains it.
func TestPagePlaysAndRecords(t *testing.T) {
	f := newFixture(t)
	ctx := browse(t, f)
	gangnam := f.all[0]
	until(t, ctx, `document.querySelectorAll("#scenario option").length >= 6`)
	if err := chromedp.Do(ctx, chromedp.Click(chromedp.CSS("#record"))); err != nil {
		t.Fatal(err)
	}
	until(t, ctx, `document.querySelector("#record").getAttribute("aria-pressed") === "true"`)
	if _, err := chromedp.Run(ctx, chromedp.Evaluate[string](`document.querySelector("#scenario").value = "forced"`)); err != nil {
		t.Fatal(err)
	}
	if err := chromedp.Do(ctx, chromedp.Click(chromedp.CSS("#play"))); err != nil {
		t.Fatal(err)
	}
	until(t, ctx, `document.querySelector("#played").value > 0 && document.querySelectorAll("#plan .tile.open").length === 1`)
	if err := chromedp.Do(ctx, chromedp.Click(chromedp.CSS("#stop"))); err != nil {
		t.Fatal(err)
	}
	until(t, ctx, `document.querySelector("#stop").hidden`)
	if _, err := chromedp.Run(ctx, chromedp.Evaluate[string](`URL.createObjectURL = blob => { blob.text().then(text => { window.saved = text; }); return "#"; }; ""`)); err != nil {
		t.Fatal(err)
	}
	if err := chromedp.Do(ctx, chromedp.Click(chromedp.CSS("#record"))); err != nil {
		t.Fatal(err)
	}
	until(t, ctx, `window.saved?.includes('{"device":"room_1","open":true}')`)
	if gangnam.Playback().Recording != nil {
		t.Error("still recording")
	}
}
