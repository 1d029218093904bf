package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/yeolda/yeolda/firmware-sim/proof/world"
)

// patroniTrial runs deploy/patroni/trial.sh.
type patroniTrial struct {
	t   *testing.T
	dir string
}

func (p patroniTrial) run(args ...string) (string, error) {
	out, err := exec.CommandContext(context.WithoutCancel(p.t.Context()), filepath.Join(root(), "deploy/patroni/trial.sh"), args...).CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

func (p patroniTrial) must(args ...string) string {
	p.t.Helper()
	out, err := p.run(args...)
	if err != nil {
		p.t.Fatalf("trial.sh %v: %v\n%s", args, err, out)
	}
	return out
}

// untilWhole waits until one server is the primary and two follow it.
func (p patroniTrial) untilWhole() {
	p.t.Helper()
	for range 180 {
		if _, err := p.run("whole"); err == nil {
			return
		}
		time.Sleep(time.Second) // other programs: there is no event to wait for
	}
	p.t.Fatal("the database servers did not recover within three minutes")
}

func (p patroniTrial) url(name string) string {
	text, err := os.ReadFile(filepath.Join(p.dir, "database.env"))
	if err != nil {
		p.t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if value, found := strings.CutPrefix(strings.TrimSpace(line), name+"="); found {
			return value
		}
	}
	p.t.Fatalf("no %s", name)
	return ""
}

// TestPatroni loses the primary of three database servers in five ways, under holds, purchases and 50 presses a second at two
// replicas. It is `make patronitest`: root, network namespaces and Debian's packages are necessary.
func TestPatroni(t *testing.T) {
	if os.Getenv("YEOLDA_TEST_PATRONI") == "" {
		t.Skip("needs root and the packages patroni and etcd-server: make patronitest")
	}
	const branches, rate, limit = 25, 50, 15 * time.Second
	// In memory, because other work on this disk would delay etcd; the paths of sockets must be short.
	dir, err := os.MkdirTemp("/dev/shm", "patroni-")
	if err != nil {
		t.Fatal(err)
	}
	p := patroniTrial{t, dir}
	t.Cleanup(func() {
		if out, err := p.run("down", dir); err != nil {
			t.Errorf("%v: %s", err, out)
		}
		if t.Failed() {
			t.Log("the logs are in", dir)
		} else if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	p.must("up", p.dir)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	log, err := os.Create(filepath.Join(t.ArtifactDir(), "world.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	w, err := world.Start(ctx, world.Options{Root: root(), Bin: bin, Branches: branches, Zone: time.FixedZone("Asia/Seoul", 9*60*60), Log: log,
		Database: world.Servers{Owner: p.url("YEOLDA_DATABASE_OWNER_URL"), Service: p.url("YEOLDA_DATABASE_URL")},
		Env:      []string{"YEOLDA_CUSTOMER_HOLD_TTL=10m", "YEOLDA_ADMIN_HOLD_TTL=10m"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	c := &cluster{w, t, &world.Stack{SandboxAt: w.Sandbox, SimAt: w.Simulator, API: w.Replicas[0].API}}
	l := startFailoverLoad(t, c, rate)
	for _, fault := range []struct {
		name   string
		begin  func(n string)
		finish func(n string)
	}{
		{"kill -9 of PostgreSQL", func(n string) { p.must("postgres", p.dir, n) }, func(string) {}},
		{"kill -9 of everything on the server", func(n string) { p.must("kill", p.dir, n) }, func(n string) { p.must("start", p.dir, n) }},
		{"the server is off the network", func(n string) { p.must("cut", n) }, func(n string) { p.must("join", n) }},
		{"the server is frozen, and reset by its watchdog", func(n string) {
			p.must("freeze", n)
			time.Sleep(watchdogTimeout)
			p.must("kill", p.dir, n)
		}, func(n string) { p.must("start", p.dir, n) }},
		{"the server is frozen for three seconds", func(n string) {
			p.must("freeze", n)
			time.Sleep(3 * time.Second)
			p.must("thaw", n)
		}, func(string) {}},
	} {
		p.untilWhole()
		time.Sleep(5 * time.Second) // load on the whole cluster
		primary, began := p.must("leader"), time.Now()
		fault.begin(primary)
		for time.Since(began) < limit+10*time.Second {
			time.Sleep(time.Second)
		}
		after, _ := p.run("leader")
		t.Logf("%s: primary %s, then %s; %s", fault.name, primary, after, l.report(began))
		if last, again := l.errorsEnded(began); !again || last > limit {
			t.Errorf("%s: the last failure was answered after %s, and holds and presses succeeded again: %t; want at most %s, true", fault.name, last.Round(100*time.Millisecond), again, limit)
		}
		fault.finish(primary)
	}
	p.untilWhole()
	l.end()
	for _, r := range w.Replicas {
		if !r.Alive() {
			t.Errorf("%s ended", r.Name)
		}
	}
	l.verify(t)
}

// watchdogTimeout is ttl minus safety_margin of patroni.yml: a server that does not run for this long is reset.
const watchdogTimeout = 5 * time.Second

// attempt is a hold, a purchase or a press. A request that fails at both replicas is a failure.
type attempt struct {
	kind       string
	began, end time.Time
	failed     string // empty: it succeeded
}

// attemptKinds are the kinds of attempts.
var attemptKinds = []string{"hold", "order", "payment", "press"}

// failoverLoad is a load whose results are compared with the database.
type failoverLoad struct {
	*load
	c        *cluster
	keys     []string
	guard    sync.Mutex
	attempts []attempt
	holds    map[string]bool // acknowledged: branch/room/start
	bought   map[string]bool
	presses  map[string]string // acknowledged requests and their results
}

func startFailoverLoad(t *testing.T, c *cluster, rate int) *failoverLoad {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	l := &failoverLoad{load: &load{cluster: c, stop: cancel}, c: c, holds: map[string]bool{}, bought: map[string]bool{}, presses: map[string]string{}}
	for _, b := range c.Branches {
		hq, start := staff(t, c.stack), currentSlot()
		l.keys = append(l.keys, keyOfAdminStay(t, c.stack, hq, b.Code, 2, "010"+fmt.Sprintf("%08d", len(l.keys)+1), start, start.Add(2*time.Hour)))
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	l.balancer = c.balance(ctx, jar)
	t.Cleanup(l.end)
	for worker := range 4 {
		l.running.Go(func() { l.purchase(ctx, worker) })
	}
	l.running.Go(func() { l.pressAtRate(ctx, rate) })
	return l
}

func (l *failoverLoad) add(kind string, began time.Time, failed string) {
	l.guard.Lock()
	defer l.guard.Unlock()
	l.attempts = append(l.attempts, attempt{kind, began, time.Now(), failed})
}

// step sends a request and records its result. Only an answer of 200 is an acknowledgement; a refusal (4xx) is no failure.
func (l *failoverLoad) step(ctx context.Context, client *http.Client, kind, method, path string, body, into any) bool {
	began := time.Now()
	got, err := l.ask(ctx, client, method, path, body)
	if ctx.Err() != nil {
		return false
	}
	switch {
	case err != nil:
		l.add(kind, began, err.Error())
	case got.status >= http.StatusInternalServerError:
		l.add(kind, began, fmt.Sprint(got.status, " ", got.body))
	default:
		l.add(kind, began, "")
	}
	if err != nil || got.status != http.StatusOK {
		return false
	}
	return into == nil || json.Unmarshal(got.data, into) == nil
}

// purchase holds slots of branches of its own and pays for every second one.
func (l *failoverLoad) purchase(ctx context.Context, worker int) {
	start := time.Now().Truncate(24 * time.Hour).Add(48 * time.Hour)
	for n := worker; ctx.Err() == nil; n += 4 {
		jar, _ := cookiejar.New(nil) // never fails
		client := &http.Client{Jar: jar, Timeout: 30 * time.Second}
		branch, room := l.c.Branches[n%len(l.c.Branches)].Code, 1+n/len(l.c.Branches)%3
		slot := start.Add(time.Duration(n/(3*len(l.c.Branches))) * 20 * time.Minute)
		name := fmt.Sprintf("%s/%d/%d", branch, room, slot.Unix())
		if !l.step(ctx, client, "hold", "POST", "/reservation", map[string]any{
			"branch": branch, "room": room, "startDateTime": wireTime(slot), "endDateTime": wireTime(slot.Add(10 * time.Minute))}, nil) {
			pause(ctx)
			continue // without an answer, take another slot
		}
		l.record(func() { l.holds[name] = true })
		var order struct {
			OrderID string `json:"orderId"`
		}
		amount := world.Price(10 * time.Minute)
		if n/4%2 == 1 || !l.step(ctx, client, "order", "POST", "/payment", map[string]any{"amount": amount, "name": "손님", "mobileNum": "01055556666"}, &order) {
			pause(ctx)
			continue
		}
		key, err := l.pay(ctx, order.OrderID, amount)
		if err == nil && l.step(ctx, client, "payment", "POST", "/payment/confirm", map[string]any{"paymentKey": key, "orderId": order.OrderID, "amount": amount}, nil) {
			l.record(func() { l.bought[name] = true })
		}
		pause(ctx)
	}
}

// pay pays at the provider.
func (l *failoverLoad) pay(ctx context.Context, order string, amount int) (key string, err error) {
	body, err := json.Marshal(map[string]any{"orderId": order, "amount": amount, "method": "카드"})
	if err != nil {
		return "", err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, l.c.Sandbox+"/sandbox/payments", strings.NewReader(string(body)))
	if err != nil {
		return "", err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	var payment struct {
		PaymentKey string `json:"paymentKey"`
	}
	err = json.NewDecoder(response.Body).Decode(&payment)
	return payment.PaymentKey, err
}

// pressAtRate presses buttons at a steady rate, whether earlier presses have their result or not.
func (l *failoverLoad) pressAtRate(ctx context.Context, rate int) {
	client := &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 512}}
	defer client.CloseIdleConnections()
	ticks := time.NewTicker(time.Second / time.Duration(rate))
	defer ticks.Stop()
	var n atomic.Int64
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
			l.running.Go(func() { l.pressDoor(ctx, client, int(n.Add(1))) })
		}
	}
}

func (l *failoverLoad) pressDoor(ctx context.Context, client *http.Client, n int) {
	at := n % len(l.keys)
	var accepted struct {
		RequestID string `json:"requestId"`
	}
	door := []string{"room", "front"}[n/len(l.keys)%2]
	if !l.step(ctx, client, "press", "POST", "/door/v2/unlock", map[string]string{"branch": l.c.Branches[at].Code, "doorlockType": door, "key": l.keys[at]}, &accepted) {
		return
	}
	got, err := l.ask(ctx, client, "GET", "/door/v2/unlock/subscribe?requestId="+accepted.RequestID+"&key="+l.keys[at], nil)
	if err != nil || got.status != http.StatusOK {
		return
	}
	for line := range strings.Lines(got.body) {
		var r result
		if data, ok := strings.CutPrefix(line, "data:"); ok && json.Unmarshal([]byte(data), &r) == nil && r.Status != "" {
			l.record(func() { l.presses[accepted.RequestID] = r.Status })
		}
	}
}

func (l *failoverLoad) record(change func()) {
	l.guard.Lock()
	defer l.guard.Unlock()
	change()
}

// errorsEnded returns the time from a fault until the last answer that was a failure, and whether holds and presses succeeded after it.
func (l *failoverLoad) errorsEnded(since time.Time) (last time.Duration, again bool) {
	l.guard.Lock()
	defer l.guard.Unlock()
	for _, a := range l.attempts {
		if a.failed != "" && a.end.After(since) {
			last = max(last, a.end.Sub(since))
		}
	}
	succeeded := map[string]bool{}
	for _, a := range l.attempts {
		if a.failed == "" && a.end.Sub(since) > last {
			succeeded[a.kind] = true
		}
	}
	return last, succeeded["hold"] && succeeded["press"]
}

// report counts the attempts that ended since a time, by kind, with the longest time in which none succeeded.
func (l *failoverLoad) report(since time.Time) string {
	last, _ := l.errorsEnded(since)
	l.guard.Lock()
	defer l.guard.Unlock()
	var text []string
	kinds := map[string][]attempt{}
	longest := time.Duration(0)
	for _, a := range l.attempts {
		if a.end.After(since) {
			kinds[a.kind] = append(kinds[a.kind], a)
			longest = max(longest, a.end.Sub(a.began))
		}
	}
	for _, kind := range attemptKinds {
		failed, success, gap := 0, since, time.Duration(0)
		for _, a := range kinds[kind] {
			if a.failed != "" {
				failed++
				continue
			}
			gap, success = max(gap, a.end.Sub(success)), a.end
		}
		gap = max(gap, time.Since(success))
		text = append(text, fmt.Sprintf("%s: %d of %d failed, none succeeded for %s", kind, failed, len(kinds[kind]), gap.Round(100*time.Millisecond)))
	}
	return fmt.Sprintf("last failure answered after %s, longest answer %s; %s", last.Round(100*time.Millisecond), longest.Round(100*time.Millisecond), strings.Join(text, "; "))
}

// verify compares what was acknowledged with the database.
func (l *failoverLoad) verify(t *testing.T) {
	t.Helper()
	rows := map[string]string{}
	for _, row := range l.c.query(`select b.code || '/' || no || '/' || extract(epoch from start_at)::bigint || '|' || state
		from reservation r join room on room.id = r.room_id join branch b on b.id = r.branch_id order by r.id`) {
		name, state, _ := strings.Cut(row, "|")
		rows[name] = state
	}
	lost := map[string]int{}
	for name := range l.holds {
		if rows[name] == "" {
			lost["holds"]++
			t.Errorf("the hold of %s is lost", name)
		}
	}
	for name := range l.bought {
		if rows[name] != "DONE" {
			lost["purchases"]++
			t.Errorf("the purchase of %s is %q", name, rows[name])
		}
	}
	stored := map[string]bool{}
	for _, id := range l.c.query(`select id from door_request`) {
		stored[id] = true
	}
	results := map[string]int{}
	for id, result := range l.presses {
		results[result]++
		if !stored[id] {
			lost["press rows"]++ // asynchronous commits: deploy/README.md, Durability
		}
	}
	if len(l.bought) == 0 || results["SUCCESS"] == 0 {
		t.Error("nothing was bought or opened")
	}
	t.Logf("%d holds, %d purchases and %d presses (%v) acknowledged; lost: %d holds, %d purchases, %d rows of presses",
		len(l.holds), len(l.bought), len(l.presses), results, lost["holds"], lost["purchases"], lost["press rows"])
}
