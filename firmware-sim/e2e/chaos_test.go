package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/yeolda/yeolda/firmware-sim/internal/stack"
	"github.com/yeolda/yeolda/protocol"
)

// The run is as long as YEOLDA_CHAOS_REQUESTS says (make chaos: 10,000), and its faults are those of YEOLDA_CHAOS_SEED,
// which is printed. What threads and sockets do in between is not the seed's: the same faults meet other requests.
const (
	chaosRequests = 120
	chaosPressers = 24
)

var chaosDoors = map[string]int{"gangnam": 6, "hongdae": 3} // rooms

// pressed is one press of an administrator's button and what came of it.
type pressed struct {
	accepted time.Time // the answer to the press: the request was made before
	branch   string
	status   string // of the result, or that there was none
}

// TestDoorsUnderFaults presses buttons while the network and the power of the branches fail at random, and then holds what
// people were told against what the relays did: no pulse later than four seconds after its request, no second pulse for
// one, and none for a request of which somebody was told that it failed.
func TestDoorsUnderFaults(t *testing.T) {
	requests, seed := environment(t, "YEOLDA_CHAOS_REQUESTS", chaosRequests), uint64(environment(t, "YEOLDA_CHAOS_SEED", time.Now().UnixNano()%1_000_000))
	t.Logf("again with YEOLDA_CHAOS_SEED=%d", seed)
	s := startStack(t, map[string]string{"YEOLDA_RATE_LIMITS": "off"})
	hq := newBrowser(t, s)
	hq.must("POST", "/admin/login", map[string]string{"id": "hq", "password": "hq-demo"}, nil)

	ctx, stop := context.WithCancel(t.Context())
	var breaking sync.WaitGroup
	for branch := range chaosDoors {
		breaking.Go(func() {
			breakBranch(ctx, t, s, branch, rand.New(rand.NewPCG(seed, uint64(len(branch))+uint64(branch[0]))))
		})
	}

	all := make(map[string]pressed, requests)
	var mu sync.Mutex
	presses := make(chan int)
	var pressing sync.WaitGroup
	for range chaosPressers {
		pressing.Go(func() {
			for n := range presses {
				rng := rand.New(rand.NewPCG(seed, uint64(n)))
				time.Sleep(time.Duration(rng.IntN(400)) * time.Millisecond) // people come as they come, and not as the last one goes
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
	time.Sleep(2 * (protocol.ClaimLimit + protocol.GrantAge)) // whatever is still under way has had its chance to open a door

	told := make(map[string]int)
	for _, p := range all {
		told[p.status]++
	}
	drives, latest := 0, time.Duration(0)
	for branch := range chaosDoors {
		seen := make(map[string]bool)
		var list struct {
			Actuations []struct {
				At        time.Time `json:"at"`
				RequestID string    `json:"requestId"`
				Device    string    `json:"device"`
			} `json:"actuations"`
		}
		getJSON(t, s.SimAt+"/sim/branches/"+branch+"/actuations", &list)
		for _, a := range list.Actuations {
			drives++
			p, known := all[a.RequestID]
			late := a.At.Sub(p.accepted)
			latest = max(latest, late)
			switch {
			case !known && a.RequestID != "": // killed between the relay and its word for it: nobody's, and judged by none
				t.Errorf("%s %s was opened by the unknown request %s", branch, a.Device, a.RequestID)
			case seen[a.RequestID] && a.RequestID != "":
				t.Errorf("%s %s was opened twice by %s", branch, a.Device, a.RequestID)
			case known && p.status == "FAILED":
				t.Errorf("%s %s was opened by %s, of which FAILED was said", branch, a.Device, a.RequestID)
			case known && late > protocol.ClaimLimit+protocol.GrantAge:
				t.Errorf("%s %s was opened %v after %s", branch, a.Device, late, a.RequestID)
			}
			seen[a.RequestID] = true
		}
	}
	t.Logf("%d requests: told %v; %d pulses, the latest %v after its request", requests, told, drives, latest)
	if told["SUCCESS"] == 0 || requests > 1000 && told["FAILED"] == 0 {
		t.Error("the faults have left nothing to judge")
	}
}

// press presses a button and waits for the result.
func press(t *testing.T, hq *browser, branch string, room int) (string, pressed) {
	var accepted struct {
		RequestID string `json:"requestId"`
	}
	hq.must("POST", fmt.Sprintf("/admin/door/v2/unlock/%s/room/%d", branch, room), nil, &accepted)
	p := pressed{accepted: time.Now(), branch: branch}
	got, status := hq.subscribe("/admin/door/v2/unlock/subscribe?requestId=" + accepted.RequestID)
	p.status = got.Status
	if status != http.StatusOK {
		p.status = strconv.Itoa(status)
	}
	return accepted.RequestID, p
}

// breakBranch lets one thing after the other go wrong at a branch, with breaths in between.
func breakBranch(ctx context.Context, t *testing.T, s *stack.Stack, branch string, rng *rand.Rand) {
	path := s.SimAt + "/sim/branches/" + branch + "/faults"
	pause := func(least, most time.Duration) {
		select {
		case <-time.After(least + time.Duration(rng.Int64N(int64(most-least)))):
		case <-ctx.Done():
		}
	}
	for ctx.Err() == nil {
		for range 1 + rng.IntN(2) {
			body := map[string]any{"kind": []string{"network-cut", "network-lag", "network-lag", "network-lag", "duplicate", "power-off"}[rng.IntN(6)]}
			if body["kind"] == "network-lag" {
				body["delayMs"] = 1 + rng.IntN(900)
			}
			setFault(t, http.MethodPut, path, body)
			pause(50*time.Millisecond, 1500*time.Millisecond)
		}
		setFault(t, http.MethodDelete, path, nil)
		pause(300*time.Millisecond, 3*time.Second)
	}
	setFault(t, http.MethodDelete, path, nil)
}

// setFault is requestJSON for requests that outlive their test's context.
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
