package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/yeolda/yeolda/firmware-sim/proof/world"
	"github.com/yeolda/yeolda/protocol"
)

// YEOLDA_CHAOS_REQUESTS sets the length of the run (make chaos: 10,000), YEOLDA_CHAOS_SEED its faults; the seed is
// logged. The timing of threads and sockets does not depend on the seed, so the same faults may affect other requests.
const (
	chaosRequests = 120
	chaosPressers = 24
)

var chaosDoors = map[string]int{"gangnam": 6, "hongdae": 3} // rooms

// pressed is one press of an administrator's button, with its result.
type pressed struct {
	accepted     time.Time // time of the answer to the press
	branch, door string
	status       string // status of the result, or of the HTTP answer without one
}

// TestDoorsUnderFaults presses buttons while the network, the clocks and the power of the branches fail at random, and
// compares the results with the actuations of the relays; see judge.
func TestDoorsUnderFaults(t *testing.T) {
	requests, seed := environment(t, "YEOLDA_CHAOS_REQUESTS", chaosRequests), uint64(environment(t, "YEOLDA_CHAOS_SEED", time.Now().UnixNano()%1_000_000))
	t.Logf("again with YEOLDA_CHAOS_SEED=%d", seed)
	s := startStack(t, map[string]string{"YEOLDA_RATE_LIMITS": "off"})
	hq := newBrowser(t, s)
	hq.must("POST", "/admin/login", map[string]string{"id": "hq", "password": "hq-demo"}, nil)

	ctx, stop := context.WithCancel(t.Context())
	var breaking sync.WaitGroup
	broken := make(map[string]int)
	var mu sync.Mutex
	for branch := range chaosDoors {
		breaking.Go(func() {
			for kind, n := range breakBranch(ctx, t, s, branch, seed) {
				mu.Lock()
				broken[kind] += n
				mu.Unlock()
			}
		})
	}

	all := make(map[string]pressed, requests)
	presses := make(chan int)
	var pressing sync.WaitGroup
	for range chaosPressers {
		pressing.Go(func() {
			for n := range presses {
				rng := rand.New(rand.NewPCG(seed, uint64(n)))
				time.Sleep(time.Duration(rng.IntN(400)) * time.Millisecond) // so that presses do not depend on earlier results
				branch := []string{"gangnam", "hongdae"}[rng.IntN(2)]
				id, p := press(t, hq, branch, 1+rng.IntN(chaosDoors[branch]))
				mu.Lock()
				all[id] = p
				mu.Unlock()
			}
		})
	}
	for n := range int(requests) {
		presses <- n
	}
	close(presses)
	pressing.Wait()
	stop()
	breaking.Wait()
	awaitAgents(t, s, "gangnam", "hongdae")
	time.Sleep(2 * (protocol.ClaimLimit + protocol.GrantAge)) // requests in progress have expired by then

	told := make(map[string]int)
	for _, p := range all {
		told[p.status]++
	}
	driven, pulses := make(map[string][]actuation), 0
	for branch := range chaosDoors {
		driven[branch] = actuations(t, s, branch)
		pulses += len(driven[branch])
		if counted := pulsesCounted(t, s, branch); counted != len(driven[branch]) {
			t.Errorf("%s: got %d of %d pulses on record", branch, len(driven[branch]), counted)
		}
	}
	wrong, latest := judge(all, driven)
	for _, what := range wrong {
		t.Error(what)
	}
	t.Logf("%d requests: results %v; %d pulses, the latest %v after its request; faults %v", len(all), told, pulses, latest.Round(time.Millisecond), broken)
	if told["SUCCESS"] == 0 || requests > 1000 && told["FAILED"] == 0 {
		t.Error("the run has no SUCCESS or no FAILED")
	}
}

// judge compares the results of requests with the actuations of the relays and lists every violation: a pulse later
// than four seconds after its request, a second pulse for a request, a pulse at another door, a pulse for a FAILED or
// unknown request or without a request, and a SUCCESS without a pulse.
func judge(all map[string]pressed, driven map[string][]actuation) (wrong []string, latest time.Duration) {
	seen := make(map[string]bool)
	for branch, list := range driven {
		for _, a := range list {
			say := func(format string, args ...any) {
				wrong = append(wrong, branch+" "+a.Device+" was opened "+fmt.Sprintf(format, args...))
			}
			p, known := all[a.RequestID]
			switch late := a.At.Sub(p.accepted); {
			case a.RequestID == "":
				say("for no request at %v", a.At)
				continue
			case !known:
				say("by the unknown request %s", a.RequestID)
				continue
			case p.branch != branch || p.door != a.Device:
				say("by %s, which was for %s %s", a.RequestID, p.branch, p.door)
			case late > protocol.ClaimLimit+protocol.GrantAge:
				say("%v after %s", late, a.RequestID)
			default:
				latest = max(latest, late)
			}
			if seen[a.RequestID] {
				say("twice by %s", a.RequestID)
			}
			if p.status == "FAILED" {
				say("by %s, which was FAILED", a.RequestID)
			}
			seen[a.RequestID] = true
		}
	}
	for id, p := range all {
		if p.status == "SUCCESS" && !seen[id] {
			wrong = append(wrong, fmt.Sprintf("%s %s was never driven for %s, which was SUCCESS", p.branch, p.door, id))
		}
	}
	return wrong, latest
}

// TestJudge checks that judge finds each violation.
func TestJudge(t *testing.T) {
	t.Parallel()
	at := time.Now()
	all := map[string]pressed{
		"opened": {at, "gangnam", "room_1", "SUCCESS"}, "failed": {at, "gangnam", "room_2", "FAILED"},
		"unknown": {at, "hongdae", "room_1", "UNKNOWN"},
	}
	in := func(d time.Duration, device, request string) actuation {
		return actuation{At: at.Add(d), Device: device, RequestID: request}
	}
	right := in(4*time.Second, "room_1", "opened")
	for want, list := range map[string][]actuation{
		"":                   {right},
		"after opened":       {in(4001*time.Millisecond, "room_1", "opened")},
		"twice by opened":    {right, right},
		"was FAILED":         {right, in(0, "room_2", "failed")},
		"unknown request":    {right, in(0, "room_1", "other")},
		"for no request":     {right, in(0, "room_1", "")},
		"for gangnam room_1": {in(0, "room_2", "opened")},
		"for hongdae room_1": {right, in(0, "room_1", "unknown")},
		"which was SUCCESS":  {},
	} {
		wrong, _ := judge(all, map[string][]actuation{"gangnam": list})
		if len(wrong) != min(len(want), 1) || want != "" && !strings.Contains(wrong[0], want) {
			t.Errorf("want %q, judged %q", want, wrong)
		}
	}
}

// pulsesCounted returns the number of actuations of a branch's relays by the doors' own counters.
func pulsesCounted(t *testing.T, s *world.Stack, branch string) (n int) {
	t.Helper()
	var state struct {
		Doors []struct {
			Actuations int `json:"actuations"`
		} `json:"doors"`
	}
	getJSON(t, s.SimAt+"/sim/branches/"+branch, &state)
	for _, d := range state.Doors {
		n += d.Actuations
	}
	return n
}

// press presses a button and waits for the result.
func press(t *testing.T, hq *browser, branch string, room int) (string, pressed) {
	return pressMeddled(t, hq, branch, room, nil)
}

// pressMeddled is press with a function, or nil, that is called with the accepted request and its door.
func pressMeddled(t *testing.T, hq *browser, branch string, room int, meddle func(request, device string)) (string, pressed) {
	var accepted struct {
		RequestID string `json:"requestId"`
	}
	hq.must("POST", fmt.Sprintf("/admin/door/v2/unlock/%s/room/%d", branch, room), nil, &accepted)
	p := pressed{accepted: time.Now(), branch: branch, door: fmt.Sprintf("room_%d", room)}
	if meddle != nil {
		meddle(accepted.RequestID, p.door)
	}
	got, status := hq.subscribe("/admin/door/v2/unlock/subscribe?requestId=" + accepted.RequestID)
	p.status = got.Status
	if status != http.StatusOK {
		p.status = strconv.Itoa(status)
	}
	return accepted.RequestID, p
}

// chaosFault is a fault in the panel's format; without a kind all faults are cleared.
type chaosFault struct {
	Kind     string `json:"kind"`
	DelayMs  int    `json:"delayMs,omitempty"`
	Percent  int    `json:"percent,omitempty"`
	OffsetMs int64  `json:"offsetMs,omitempty"`
}

// neverSet is the clock offset of a Pi whose clock was never set: from 2026 to 1970.
const neverSet = -1_795_000_000_000 // ms

// faultPlan returns an endless sequence of faults and durations for a branch: one or several at a time, with pauses. The
// same seed returns the same sequence.
func faultPlan(seed uint64, branch string) iter.Seq2[chaosFault, time.Duration] {
	return func(yield func(chaosFault, time.Duration) bool) {
		rng := rand.New(rand.NewPCG(seed, uint64(len(branch))+uint64(branch[0])))
		between := func(least, most time.Duration) time.Duration {
			return least + time.Duration(rng.Int64N(int64(most-least)))
		}
		for {
			for range 1 + rng.IntN(3) {
				var f chaosFault
				switch rng.IntN(9) {
				case 0:
					f = chaosFault{Kind: "network-cut"}
				case 1, 2:
					f = chaosFault{Kind: "network-lag", DelayMs: 1 + rng.IntN(900)}
				case 3:
					f = chaosFault{Kind: "loss", Percent: 5 + rng.IntN(60)}
				case 4:
					f = chaosFault{Kind: "duplicate"}
				case 5, 6:
					f = chaosFault{Kind: "reorder", DelayMs: 1 + rng.IntN(1500)}
				case 7:
					hour := time.Hour.Milliseconds()
					any := 1 + rng.Int64N(30*365*24*hour)
					f = chaosFault{Kind: "clock", OffsetMs: []int64{-hour, hour, neverSet, any, -any}[rng.IntN(5)]}
				case 8:
					f = chaosFault{Kind: "power-off"}
				}
				if !yield(f, between(50*time.Millisecond, 1500*time.Millisecond)) {
					return
				}
			}
			if !yield(chaosFault{}, between(300*time.Millisecond, 3*time.Second)) {
				return
			}
		}
	}
}

// TestFaultPlan checks that a seed repeats its faults, and that all kinds occur.
func TestFaultPlan(t *testing.T) {
	t.Parallel()
	type step struct {
		chaosFault
		time.Duration
	}
	plan := func(seed uint64, branch string) (steps []step) {
		for f, length := range faultPlan(seed, branch) {
			if steps = append(steps, step{f, length}); len(steps) == 300 {
				break
			}
		}
		return steps
	}
	first := plan(1, "gangnam")
	if !slices.Equal(first, plan(1, "gangnam")) {
		t.Error("the same seed gives other faults")
	}
	if slices.Equal(first, plan(2, "gangnam")) || slices.Equal(first, plan(1, "hongdae")) {
		t.Error("another seed or branch gives the same faults")
	}
	kinds := make(map[string]bool)
	for _, s := range first {
		kinds[s.Kind] = true
	}
	want := []string{"", "clock", "duplicate", "loss", "network-cut", "network-lag", "power-off", "reorder"}
	if got := slices.Sorted(maps.Keys(kinds)); !slices.Equal(got, want) {
		t.Errorf("kinds %q, want %q", got, want)
	}
}

// breakBranch applies the plan until the context ends, and counts the faults by kind.
func breakBranch(ctx context.Context, t *testing.T, s *world.Stack, branch string, seed uint64) map[string]int {
	path := s.SimAt + "/sim/branches/" + branch + "/faults"
	count := make(map[string]int)
	for f, length := range faultPlan(seed, branch) {
		if f.Kind == "" {
			setFault(t, http.MethodDelete, path, nil)
		} else {
			setFault(t, http.MethodPut, path, f)
			count[f.Kind]++
		}
		select {
		case <-time.After(length):
		case <-ctx.Done():
			setFault(t, http.MethodDelete, path, nil)
			return count
		}
	}
	return count
}

// setFault is requestJSON for requests that may be sent after the test's context has ended.
func setFault(t *testing.T, method, address string, body any) {
	encoded, err := json.Marshal(body)
	if err != nil {
		t.Error(err)
		return
	}
	request, err := http.NewRequest(method, address, bytes.NewReader(encoded))
	if err != nil {
		t.Error(err)
		return
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Error(err)
		return
	}
	response.Body.Close()
	if response.StatusCode >= 300 {
		t.Errorf("%s %s: %d", method, address, response.StatusCode)
	}
}

func environment(t *testing.T, name string, otherwise int64) int64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
