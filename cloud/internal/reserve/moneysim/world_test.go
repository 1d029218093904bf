package moneysim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/money"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
	"github.com/yeolda/yeolda/cloud/internal/reserve/rule"
	"github.com/yeolda/yeolda/cloud/internal/sandbox"
	"github.com/yeolda/yeolda/cloud/internal/toss"
)

// world is one run: the rows, two processes that work on them, the provider, the network between them, and the trace.
type world struct {
	seed   uint64
	start  time.Time
	rows   rows
	rowMu  sync.Mutex
	box    *sandbox.Sandbox
	wire   *wire
	models [2]*modelService
	crash  float64 // probability that a process crashes at a step

	mu         sync.Mutex
	life       [2]int               // number of starts and ends of each process; odd: it is running
	owners     map[string]string    // order by payment key
	charged    map[string]time.Time // by order: the latest charge
	by         map[string]int       // by order: won that the dashboard returned
	parts      []*part
	prices     int                  // that newPrice returned
	reversed   map[string]bool      // by order: the bank took the deposit back
	ends       map[string]bool      // by order: a guest, an administrator, the bank or the dashboard ended it
	others     map[string]bool      // by order: not only its guest may have ended it
	requests   map[string][]request // by order: of its guest to cancel
	seen       map[string]sandbox.Status
	notes      []note
	violations []string
	counts     map[string]int
	lagged     time.Time // the latest fault of the provider itself: see lag
}

type note struct {
	at   time.Duration
	text string
}

func (w *world) note(format string, args ...any) {
	at, text := time.Since(w.start), fmt.Sprintf(format, args...)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.notes = append(w.notes, note{at, text})
}

func (w *world) violation(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.violations = append(w.violations, text)
}

func (w *world) count(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts[what]++
}

// trace returns all events in order of time. Events at the same instant have no defined order, so they are sorted by text.
func (w *world) trace() string {
	slices.SortStableFunc(w.notes, func(a, b note) int {
		if a.at != b.at {
			return int(a.at - b.at)
		}
		return strings.Compare(a.text, b.text)
	})
	var b strings.Builder
	for _, n := range w.notes {
		fmt.Fprintf(&b, "%18v  %s\n", n.at, n.text)
	}
	return b.String()
}

// process runs do in the current instance of a process. It ends if the process crashes.
func (w *world) process(i int, name string, do func(ctx context.Context, t *modelService) error) error {
	w.mu.Lock()
	life := w.life[i]
	w.mu.Unlock()
	ended := make(chan error, 1)
	go func() {
		died := true
		defer func() {
			if died {
				ended <- errGone
			}
		}()
		t := *w.models[i]
		t.step = func(where string) { w.step(i, life, name, where) }
		t.step("start")
		ctx, cancel := context.WithTimeout(context.Background(), providerLimit)
		defer cancel()
		err := do(ctx, &t)
		died = false
		ended <- err
	}()
	return <-ended
}

// step ends the goroutine if its process has crashed, and may crash the process.
func (w *world) step(i, life int, name, where string) {
	w.mu.Lock()
	dead := w.life[i] != life || life%2 == 0
	w.mu.Unlock()
	if !dead && w.crash > 0 && time.Now().Before(w.wire.until) {
		if r := w.wire.fate("step " + name + where); r.Float64() < w.crash {
			w.note("process %d dies %s of %s", i, where, name)
			w.count("crashes")
			w.mu.Lock()
			if dead = true; w.life[i] == life {
				w.life[i]++
				time.AfterFunc(time.Second+upTo(r, 20*time.Second), func() { w.boot(i) })
			}
			w.mu.Unlock()
		}
	}
	if dead {
		runtime.Goexit()
	}
}

func (w *world) boot(i int) {
	w.mu.Lock()
	w.life[i]++
	w.mu.Unlock()
	w.note("process %d starts", i)
}

// about returns the order of a request.
func (w *world) about(path string, body []byte) string {
	parts := strings.Split(path, "/")
	var in struct{ OrderID string }
	if json.Unmarshal(body, &in) == nil && in.OrderID != "" {
		return in.OrderID
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, part := range parts {
		if strings.HasPrefix(part, "order-") {
			return part
		}
		if order := w.owners[part]; order != "" {
			return order
		}
	}
	return ""
}

// provider runs an operation of the provider and checks how it moved money. part is the amount that a cancellation names.
func (w *world) provider(do func(), order string, part int) {
	w.rowMu.Lock()
	defer w.rowMu.Unlock()
	before, cancels := w.box.Ledger(), w.cancels(order)
	do()
	after := w.box.Ledger()
	r := w.rows.byOrder(order)
	if after.Charged > before.Charged {
		w.note("provider: %s is charged", order)
		w.charged[order] = time.Now()
		if r.State != booking.Confirming {
			w.count("charged late")
		}
	}
	if after.Refunded > before.Refunded {
		w.note("provider: %s is paid back", order)
		w.count("paid back")
		if won := after.Refunded - before.Refunded; part != 0 && won != part {
			w.violation("M6: %d won of %s were paid back, want %d", won, order, part)
		}
		again := w.cancels(order) == cancels && r != nil && r.refund != nil && r.refund.KeepsStay // a part that the bank had rejected
		if !w.isPart(order, part) && !again && (r == nil || r.DoorlockKey != "") {
			w.violation("M7: %s was paid back while its key lives", order)
		}
	}
	if part != 0 && w.cancels(order) > cancels { // otherwise a transfer that the bank had rejected was sent again
		w.partReturned(order, part)
	}
	w.look(order)
}

// sends checks a request before it is sent.
func (w *world) sends(path, order string) {
	if !strings.HasSuffix(path, "/confirm") {
		return
	}
	w.rowMu.Lock()
	defer w.rowMu.Unlock()
	if r := w.rows.byOrder(order); r == nil || r.State != booking.Confirming {
		w.count("sent late") // the process was suspended between the commit and the request, or the attempt has ended since
		if r == nil || r.State != booking.Released && !r.Occupies(time.Now()) {
			w.violation("M3: a confirmation of %s was sent, and it does not own its slot", order)
		}
	}
}

// look sends the provider's callback about an order whose virtual account has changed.
func (w *world) look(order string) {
	if order == "" {
		return
	}
	for _, p := range w.box.Payments(order) {
		w.mu.Lock()
		before := w.seen[p.PaymentKey]
		w.seen[p.PaymentKey] = p.Status
		w.mu.Unlock()
		if p.VirtualAccount == nil || before == p.Status || before == "" {
			continue
		}
		w.note("provider: %s is %s", order, p.Status)
		body, err := json.Marshal(map[string]any{"createdAt": time.Now().String(), "secret": p.Secret, "status": p.Status,
			"transactionKey": fmt.Sprint(p.Status), "orderId": order})
		if err != nil {
			panic(err)
		}
		event, err := toss.ParseEvent(body)
		if err != nil {
			panic(err)
		}
		r := w.wire.fate("callback " + order)
		for n := range 1 + r.IntN(3) {
			delay := time.Millisecond + upTo(r, time.Second)
			if r.IntN(3) == 0 {
				delay += upTo(r, 5*time.Minute)
			}
			i, retried := r.IntN(2), n > 0
			time.AfterFunc(delay, func() { w.call(i, event, retried, 6) })
		}
	}
}

// call delivers a callback, and repeats it until it is accepted or tries are used up.
func (w *world) call(i int, event toss.Event, retried bool, tries int) {
	err := w.process(i, "callback "+event.OrderID, func(ctx context.Context, t *modelService) error { return t.callback(ctx, event, retried) })
	w.note("callback %s %s: %v", event.OrderID, event.Status, err)
	w.count("callbacks")
	if err != nil && !errors.Is(err, reserve.ErrUnknownOrder) && tries > 0 {
		time.AfterFunc(time.Minute+time.Duration(tries), func() { w.call(1-i, event, true, tries-1) })
	}
}

// changed is called in the transaction of every change of a row.
func (w *world) changed(r *row, what string) {
	switch rule.Step(what) {
	case rule.Confirm, rule.ConfirmIfFree, rule.Arrive:
		if r.State == booking.Done && (!time.Now().Before(r.LastUnlock()) || r.order.Abandoned()) {
			w.violation("A1: %s is confirmed for a stay that is over or that its guest has left", r.OrderID)
		}
	case rule.NeedsReview:
		if w.by[r.OrderID] == 0 {
			w.violation("C4: %s needs a review, and no person has changed it at the provider", r.OrderID)
		}
	}
	if what != "stay" && what != "wait on" && what != "open" {
		w.note("%s: %s, %s", r.OrderID, what, r.State)
	}
	w.count(what)
	if what == string(rule.Late) && r.refund != nil {
		w.count("late " + r.refund.By)
	}
	for _, other := range w.rows.list {
		if other != r && other.Room == r.Room && other.State.Live() && r.State.Live() && other.occupied().Overlaps(r.occupied()) {
			w.violation("M8: %s and %s have one slot", r.OrderID, other.OrderID)
		}
	}
	if (r.DoorlockKey != "" || r.blocked != "") != (r.State == booking.Done) {
		w.violation("M7: %s is %s with key %q", r.OrderID, r.State, r.DoorlockKey)
	}
}

// sweep runs the background work of a process until the end of the run.
func (w *world) sweep(i int) {
	for end := w.start.Add(length); time.Now().Before(end); {
		every := 5 * time.Second
		if time.Now().After(w.wire.until.Add(15 * time.Minute)) {
			every = 2 * time.Minute
		}
		time.Sleep(every + time.Duration(i+1)*time.Nanosecond)
		nth := time.Duration(0)
		start := func(name string, do func(ctx context.Context, t *modelService) error) {
			nth++ // the seed determines the order of events, not the scheduler
			time.AfterFunc(nth*time.Microsecond, func() { w.background(i, name, do) })
		}
		for _, r := range w.models[i].unsettled(time.Now()) {
			start("sweep "+r.OrderID, func(ctx context.Context, t *modelService) error { return t.settleDue(ctx, r) })
		}
		if passed := time.Since(w.start) / every; i == int(passed)%2 && passed%(lightInterval/every) == 0 {
			start("light comparison", func(ctx context.Context, t *modelService) error { return t.reconcile(ctx) })
		}
		for _, r := range w.models[i].stuckDoors(time.Now()) {
			start("compensate "+r.OrderID, func(ctx context.Context, t *modelService) error { return t.compensate(ctx, r) })
		}
		for _, r := range w.models[i].unapplied() {
			start("sweep callbacks "+r.OrderID, func(ctx context.Context, t *modelService) error { return t.settle(ctx, r) })
		}
	}
}

func (w *world) background(i int, name string, do func(ctx context.Context, t *modelService) error) {
	_ = w.process(i, name, func(ctx context.Context, t *modelService) error {
		ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
		defer cancel()
		return do(ctx, t)
	}) // the rows contain the outcome
}

// close checks the invariants at the end of the run.
func (w *world) close() {
	held := 0
	for _, r := range w.rows.list {
		w.count(string(r.State))
		if r.OrderID == "" {
			continue
		}
		theirs, charged := 0, 0
		returned, parts := w.partsOf(r.OrderID)
		for _, p := range w.box.Payments(r.OrderID) {
			if p.Status == sandbox.StatusDone || p.Status == sandbox.StatusPartialCanceled {
				theirs += p.BalanceAmount
				charged++
			}
			out := 0
			for _, c := range p.Cancels {
				out += c.CancelAmount
			}
			if out > p.TotalAmount || len(p.Cancels) > 1+parts && w.by[r.OrderID] == 0 {
				w.violation("M6: %s was paid back %d won in %d parts", r.OrderID, out, len(p.Cancels))
			}
		}
		theirs += w.box.Bounced(r.OrderID) // the bank returned the money to the provider
		if charged > 1 {
			w.violation("M1: %s was charged %d times", r.OrderID, charged)
		}
		held += theirs
		outside := 0
		if r.payment != nil {
			outside = r.payment.SettledOutside
		}
		recorded := 0
		for _, f := range r.closed {
			if f.State == money.RefundCompleted {
				recorded += f.Amount
			}
		}
		if recorded > r.Amount {
			w.violation("M6: refunds of %d won are recorded for %s, which cost %d won", recorded, r.OrderID, r.Amount)
		}
		if kept := theirs - outside; kept > 0 && r.State != booking.Done {
			if w.count("kept"); kept > r.payment.Retained { // administrators may return parts of it
				w.violation("M2: %d won of %s are kept, and %d are recorded", kept, r.OrderID, r.payment.Retained)
			}
		}
		switch {
		case r.State == booking.Done && theirs != r.Amount-w.by[r.OrderID]-returned:
			w.violation("M2: %s is DONE, %d won were returned in parts, and the provider holds %d won", r.OrderID, returned, theirs)
		case r.State != booking.Done && !w.mayKeep(r, theirs-outside):
			w.violation("M2: %s is %s, and the provider holds %d won, %d settled outside", r.OrderID, r.State, theirs, outside)
		case r.State == booking.Confirming, r.State == booking.Canceling, r.State == booking.WaitingForDeposit, r.refund != nil:
			w.violation("open: %s is still %s, refund %+v", r.OrderID, r.State, r.refund)
		}
	}
	w.checkParts()
	w.checkStays()
	w.checkCompensations()
	w.checkMessages()
	w.checkBooks()
	for _, h := range w.rows.webhooks {
		if !h.applied {
			w.violation("open: a callback about %s was never acted on", h.order)
		}
	}
	if l := w.box.Ledger(); l.Charged-l.Refunded != held {
		w.violation("M2: the ledger holds %d won, the payments %d", l.Charged-l.Refunded, held)
	}
}

func newWorld(seed uint64) *world {
	r := rand.New(rand.NewPCG(seed, 0x5A1E))
	w := &world{seed: seed, start: time.Now(), life: [2]int{1, 1}, owners: map[string]string{}, charged: map[string]time.Time{}, by: map[string]int{}, ends: map[string]bool{}, reversed: map[string]bool{}, others: map[string]bool{}, requests: map[string][]request{}, seen: map[string]sandbox.Status{}, counts: map[string]int{}}
	box, err := sandbox.New(sandbox.Options{RefundDelay: time.Minute})
	if err != nil {
		panic(err)
	}
	w.box = box
	w.rows.compared, w.rows.policy, w.rows.compensation = w.start, drawPolicy(seed), drawCompensation(seed)
	w.wire = &wire{w: w, handler: box, sent: map[string]int{}, until: w.start}
	if seed != calm {
		some := func(most float64) float64 {
			if r.IntN(2) == 0 {
				return 0
			}
			return r.Float64() * most
		}
		w.wire.lost, w.wire.unanswered, w.wire.broken, w.wire.slow = some(0.5), some(0.5), some(0.4), some(0.4)
		w.wire.until = w.start.Add(upTo(r, 20*time.Minute))
		if r.IntN(3) == 0 { // an outage that may be longer than a stay
			w.wire.away = w.start.Add(upTo(r, 10*time.Minute))
			w.wire.until = w.wire.away.Add(upTo(r, time.Hour))
		}
		w.crash = some(0.1)
		w.wire.noRefunds = r.IntN(6) == 0
		for _, f := range []sandbox.Fault{
			{Target: sandbox.TargetCancel, Kind: sandbox.FaultError, Code: "REFUND_REJECTED"},
			{Target: sandbox.TargetCancel, Kind: sandbox.FaultError, Code: "NOT_AVAILABLE_BANK"},
			{Target: sandbox.TargetGet, Kind: sandbox.FaultError, Code: "NOT_FOUND_PAYMENT", Times: 8}, // look-ups lag behind
			{Target: sandbox.TargetRefund, Kind: sandbox.FaultError},
			{Target: sandbox.TargetConfirm, Kind: sandbox.FaultError, Code: "CARD_PROCESSING_ERROR"},
			{Target: sandbox.TargetConfirm, Kind: sandbox.FaultError, Code: "REJECT_CARD_COMPANY"},
		} {
			if r.IntN(5) == 0 {
				if err := box.SetFault(f); err != nil {
					panic(err)
				}
			}
		}
	}
	client, err := toss.New(toss.Config{BaseURL: "http://127.0.0.1", WidgetSecretKey: sandbox.DemoWidgetSecretKey,
		APISecretKey: sandbox.DemoAPISecretKey, HTTPClient: &http.Client{Transport: w.wire}})
	if err != nil {
		panic(err)
	}
	for i := range w.models {
		w.models[i] = &modelService{rows: &w.rows, mu: &w.rowMu, now: time.Now, payments: client, changed: w.changed, gave: w.gave}
	}
	return w
}
