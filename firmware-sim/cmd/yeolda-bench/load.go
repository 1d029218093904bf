package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// presser presses a button once and waits for the result; n distinguishes presses.
type presser func(ctx context.Context, n int64) (ok bool, err error)

// sample is one measurement.
type sample struct {
	rate          float64
	p50, p99, max time.Duration
	done          int
	failed        int // presses that ended without SUCCESS
}

// client keeps one connection per concurrent press.
var client = &http.Client{
	Timeout:   20 * time.Second,
	Transport: &http.Transport{MaxIdleConns: 1024, MaxIdleConnsPerHost: 1024, DialContext: (&net.Dialer{}).DialContext},
}

// touch is how long a finger rests on the button between the announcement of a press and the press.
const touch = 60 * time.Millisecond

// measure repeats presses. announce is nil or called before each press, a touch earlier, and not measured.
func measure(ctx context.Context, inFlight int, round time.Duration, announce func(ctx context.Context, n int64) error, press presser) (sample, error) {
	ctx, cancel := context.WithTimeout(ctx, round+30*time.Second)
	defer cancel()
	var (
		mu      sync.Mutex
		took    []time.Duration
		failed  int
		problem error
		n       atomic.Int64
		wg      sync.WaitGroup
	)
	began := time.Now()
	for range inFlight {
		wg.Go(func() {
			var mine []time.Duration
			misses := 0
			for time.Since(began) < round {
				number := n.Add(1)
				var err error
				if announce != nil {
					err = announce(ctx, number)
					time.Sleep(touch)
				}
				pressed := time.Now()
				ok := false
				if err == nil {
					ok, err = press(ctx, number)
				}
				if err != nil {
					mu.Lock()
					problem = errors.Join(problem, err)
					mu.Unlock()
					break
				}
				mine = append(mine, time.Since(pressed))
				if !ok {
					misses++
				}
			}
			mu.Lock()
			took, failed = append(took, mine...), failed+misses
			mu.Unlock()
		})
	}
	wg.Wait()
	if problem != nil {
		return sample{}, problem
	}
	return summary(took, failed, time.Since(began)), nil
}

// atRate presses at a steady rate, whether earlier presses have their result or not. A press that ends with an error counts
// as one without SUCCESS.
func atRate(ctx context.Context, rate int, length time.Duration, press presser) sample {
	var (
		mu      sync.Mutex
		took    []time.Duration
		failed  int
		presses sync.WaitGroup
	)
	began := time.Now()
	count := rate * int(length/time.Second)
	for n := range count {
		if pause(ctx, time.Until(began.Add(time.Duration(n)*time.Second/time.Duration(rate)))) != nil {
			break
		}
		presses.Go(func() {
			pressed := time.Now()
			ok, err := press(ctx, int64(n))
			mu.Lock()
			defer mu.Unlock()
			took = append(took, time.Since(pressed))
			if err != nil || !ok {
				failed++
			}
		})
	}
	presses.Wait()
	return summary(took, failed, time.Since(began))
}

// summary sorts the times of presses.
func summary(took []time.Duration, failed int, elapsed time.Duration) sample {
	if len(took) == 0 {
		return sample{failed: failed}
	}
	slices.Sort(took)
	at := func(q float64) time.Duration { return took[min(len(took)-1, int(q*float64(len(took))))] }
	return sample{rate: float64(len(took)) / elapsed.Seconds(), p50: at(0.5), p99: at(0.99), max: at(1), done: len(took), failed: failed}
}

// unlocker opens the room doors of the branches in turn.
func unlocker(api string, keys []grant) presser {
	return func(ctx context.Context, n int64) (bool, error) {
		key := keys[n%int64(len(keys))]
		body := `{"branch":"` + key.branch + `","doorlockType":"room","key":"` + key.key + `"}`
		var accepted struct {
			Data struct {
				RequestID string `json:"requestId"`
			} `json:"data"`
		}
		if err := post(ctx, api+"/door/v2/unlock", body, &accepted); err != nil {
			return false, err
		}
		return result(ctx, api+"/door/v2/unlock/subscribe?requestId="+accepted.Data.RequestID+"&key="+key.key)
	}
}

// announcer announces the presses of an unlocker.
func announcer(api string, keys []grant) func(ctx context.Context, n int64) error {
	return func(ctx context.Context, n int64) error {
		key := keys[n%int64(len(keys))]
		return post(ctx, api+"/v2/keys/"+key.key+"/announcements", `{"branch":"`+key.branch+`","door":"room"}`, nil)
	}
}

func post(ctx context.Context, url, body string, into any) error {
	return roundTrip(ctx, client, http.MethodPost, url, strings.NewReader(body), into)
}

// roundTrip sends a request and decodes the JSON answer, if into is set.
func roundTrip(ctx context.Context, client *http.Client, method, url string, body io.Reader, into any) error {
	request, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %d %s", url, response.StatusCode, content)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(content, into)
}

// result reads the only event of a door's stream, and reports whether the doors opened.
func result(ctx context.Context, url string) (bool, error) {
	event, err := eventFor(ctx, client, url)
	return opened(event), err
}

func opened(event string) bool { return strings.Contains(event, `"SUCCESS"`) }

// eventFor returns the last event of a door's stream as JSON, for a client with a session of its own. Without an event, it
// returns the status of the response.
func eventFor(ctx context.Context, client *http.Client, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	event := response.Status
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		if data, ok := strings.CutPrefix(lines.Text(), "data:"); ok && response.StatusCode == http.StatusOK {
			event = data
		}
	}
	return event, lines.Err()
}
