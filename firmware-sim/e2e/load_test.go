package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"strings"
	"sync"
	"testing"
	"time"
)

// load runs clients that continuously reserve rooms and open doors, and records their results.
type load struct {
	cluster  *cluster
	balancer *balancer
	key      string // of a current reservation of room 2 in gangnam
	stop     context.CancelFunc
	running  sync.WaitGroup

	mu       sync.Mutex
	kept     map[string]bool      // reservations that the service has confirmed: room/start
	ended    map[string]time.Time // time at which an unlock was answered FAILED, by request
	requests int
	retried  int
	failures []string // requests that failed at both replicas
	opened   []time.Time
	written  []time.Time
}

// startLoad starts two clients that reserve and two that open doors, until it is stopped.
func (c *cluster) startLoad(t *testing.T) *load {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	l := &load{cluster: c, stop: cancel, kept: map[string]bool{}, ended: map[string]time.Time{}}
	l.key = keyOfAdminReservationAt(t, c, 2)
	l.balancer = c.balance(ctx, jar)
	t.Cleanup(l.end)
	for _, rooms := range [][]int{{1, 3}, {4, 5}} {
		l.running.Go(func() { l.reserve(ctx, rooms) })
	}
	for range 2 {
		l.running.Go(func() { l.press(ctx) })
	}
	return l
}

// end stops all clients.
func (l *load) end() {
	l.stop()
	l.running.Wait()
}

// answer is the answer to a request.
type answer struct {
	status int
	data   json.RawMessage
	body   string
}

// ask sends a request to a replica. If there is no answer, or one that a proxy would not forward, it retries once at another
// replica.
func (l *load) ask(ctx context.Context, client *http.Client, method, path string, body any) (answer, error) {
	var encoded []byte
	if body != nil {
		var err error
		if encoded, err = json.Marshal(body); err != nil {
			return answer{}, err
		}
	}
	at := l.balancer.choose(-1)
	got, err := send(ctx, client, l.cluster.Replicas[at].API, method, path, encoded)
	l.note(func() { l.requests++ })
	if err == nil && got.status < http.StatusInternalServerError || ctx.Err() != nil {
		return got, err
	}
	first := fmt.Sprint(got.status, " ", got.body, " ", err)
	got, err = send(ctx, client, l.cluster.Replicas[l.balancer.choose(at)].API, method, path, encoded)
	failed := err != nil || got.status >= http.StatusInternalServerError
	l.note(func() {
		l.retried++
		if failed && ctx.Err() == nil {
			l.failures = append(l.failures, fmt.Sprintf("%s %s: %s; then %d %s %v", method, path, first, got.status, got.body, err))
		}
	})
	return got, err
}

func send(ctx context.Context, doer *http.Client, api, method, path string, body []byte) (answer, error) {
	status, text, err := request(ctx, doer, api, method, path, body)
	if err != nil {
		return answer{}, err
	}
	var envelope struct {
		Data json.RawMessage `json:"data"`
	}
	_ = json.Unmarshal(text, &envelope) // a stream has no envelope
	return answer{status, envelope.Data, string(text)}, nil
}

func (l *load) note(change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
}

// reserve registers reservations some days ahead, one after the other, and records the confirmed ones.
func (l *load) reserve(ctx context.Context, rooms []int) {
	jar, _ := cookiejar.New(nil) // never fails
	client := &http.Client{Jar: jar, Timeout: 30 * time.Second}
	for ctx.Err() == nil {
		got, err := l.ask(ctx, client, "POST", "/admin/login", map[string]string{"id": "hq", "password": "hq-demo"})
		if err == nil && got.status == http.StatusOK {
			break
		}
		pause(ctx)
	}
	start := time.Now().Truncate(24 * time.Hour).Add(48 * time.Hour)
	for n := 0; ctx.Err() == nil; n++ {
		room := rooms[n%len(rooms)]
		if n%len(rooms) == 0 {
			start = start.Add(20 * time.Minute)
		}
		got, err := l.ask(ctx, client, "POST", "/admin/reservation", map[string]any{
			"branch": "gangnam", "room": room, "startDateTime": wireTime(start), "endDateTime": wireTime(start.Add(10 * time.Minute))})
		if err != nil || got.status != http.StatusOK {
			pause(ctx)
			continue // without an answer, take another slot
		}
		got, err = l.ask(ctx, client, "POST", "/admin/payment", map[string]any{"name": "손님", "mobileNum": "01055556666", "notify": false})
		if err == nil && got.status == http.StatusOK {
			l.note(func() {
				l.kept[fmt.Sprintf("%d/%d", room, start.Unix())] = true
				l.written = append(l.written, time.Now())
			})
		}
		pause(ctx)
	}
}

// press opens a door and waits for the result at any replica.
func (l *load) press(ctx context.Context) {
	client := &http.Client{Timeout: 30 * time.Second}
	for ctx.Err() == nil {
		l.pressOnce(ctx, client)
		pause(ctx)
	}
}

func (l *load) pressOnce(ctx context.Context, client *http.Client) {
	got, err := l.ask(ctx, client, "POST", "/door/v2/unlock", map[string]string{"branch": "gangnam", "doorlockType": "room", "key": l.key})
	if err != nil || got.status != http.StatusOK {
		return
	}
	var accepted struct {
		RequestID string `json:"requestId"`
	}
	if json.Unmarshal(got.data, &accepted) != nil {
		return
	}
	got, err = l.ask(ctx, client, "GET", "/door/v2/unlock/subscribe?requestId="+accepted.RequestID+"&key="+l.key, nil)
	if err != nil || got.status != http.StatusOK {
		return
	}
	lines := bufio.NewScanner(strings.NewReader(got.body))
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data:")
		var r result
		if !ok || json.Unmarshal([]byte(data), &r) != nil {
			continue
		}
		l.note(func() {
			switch r.Status {
			case "SUCCESS":
				l.opened = append(l.opened, time.Now())
			case "FAILED":
				l.ended[accepted.RequestID] = time.Now()
			}
		})
	}
}

// pause waits for the time between two requests of a client.
func pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(100 * time.Millisecond):
	}
}

// recovers fails the test unless, since the given time, a door was opened and a reservation confirmed within the limit.
func (l *load) recovers(t *testing.T, since time.Time, limit time.Duration) {
	t.Helper()
	after := func(times []time.Time) (time.Duration, bool) {
		for _, at := range times {
			if at.After(since) {
				return at.Sub(since), true
			}
		}
		return 0, false
	}
	for deadline := since.Add(limit); ; time.Sleep(50 * time.Millisecond) {
		l.mu.Lock()
		door, opened := after(l.opened)
		room, reserved := after(l.written)
		l.mu.Unlock()
		if opened && reserved {
			t.Logf("a door opened again after %s, a room was reserved again after %s", door.Round(time.Millisecond), room.Round(time.Millisecond))
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("after %s: door opened %v, room reserved %v", limit, opened, reserved)
			return
		}
	}
}

// verify compares the results with the database and with the actuations of the locks.
func (l *load) verify(t *testing.T) {
	t.Helper()
	l.end()
	stored := map[string]bool{}
	for _, row := range l.cluster.query(`select no || '/' || extract(epoch from start_at)::bigint from reservation r join room on room.id = r.room_id where state = 'DONE'`) {
		stored[row] = true
	}
	for reservation := range l.kept {
		if !stored[reservation] {
			t.Errorf("reservation %s was confirmed but is lost", reservation)
		}
	}
	created := map[string]time.Time{}
	for _, row := range l.cluster.query(`select id || '|' || (extract(epoch from created_at) * 1000)::bigint from door_request`) {
		id, text, _ := strings.Cut(row, "|")
		var ms int64
		_, _ = fmt.Sscan(text, &ms)
		created[id] = time.UnixMilli(ms)
	}
	var list struct {
		Actuations []struct {
			At        time.Time `json:"at"`
			Device    string    `json:"device"`
			RequestID string    `json:"requestId"`
		} `json:"actuations"`
	}
	getJSON(t, l.cluster.stack.SimAt+"/sim/branches/gangnam/actuations", &list)
	pulses := map[string]int{}
	slowest := time.Duration(0)
	for _, a := range list.Actuations {
		pulses[a.RequestID]++
		asked, known := created[a.RequestID]
		if !known {
			t.Errorf("%s was driven for the unknown request %q", a.Device, a.RequestID)
			continue
		}
		slowest = max(slowest, a.At.Sub(asked))
		if failed, told := l.ended[a.RequestID]; told && a.At.After(failed) {
			t.Errorf("%s was driven %s after FAILED", a.Device, a.At.Sub(failed))
		}
	}
	if limit := 4 * time.Second; slowest > limit { // 2.5 s until the grant, 1.5 s from the claim
		t.Errorf("a door was driven %s after it was asked for", slowest)
	}
	for id, n := range pulses {
		if n > 1 {
			t.Errorf("request %s drove its door %d times", id, n)
		}
	}
	if len(l.kept) == 0 || len(l.opened) == 0 {
		t.Error("no reservation was confirmed or no door opened")
	}
	t.Logf("%d requests, %d tried again, %d failed at both; %d reservations kept, %d doors opened, %d FAILED; latest pulse %s after the press",
		l.requests, l.retried, len(l.failures), len(l.kept), len(l.opened), len(l.ended), slowest.Round(time.Millisecond))
}

// keyOfAdminReservationAt registers a current reservation without payment and returns its key.
func keyOfAdminReservationAt(t *testing.T, c *cluster, room int) string {
	t.Helper()
	return keyOfAdminReservation(t, c.stack, "gangnam", room, "01077778888")
}
