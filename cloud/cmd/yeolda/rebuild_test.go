package main

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/yeolda/yeolda/cloud/internal/config"
	"github.com/yeolda/yeolda/cloud/internal/moneytest"
	"github.com/yeolda/yeolda/cloud/internal/pgtest"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/sandbox"
	"github.com/yeolda/yeolda/cloud/internal/servicetest"
	"github.com/yeolda/yeolda/cloud/internal/toss"
)

// The size of TestRebuild: what happens between the backup and the loss of the database.
var (
	lostPurchases     = flag.Int("rebuild.purchases", 24, "purchases after the backup")
	lostCancellations = flag.Int("rebuild.cancellations", 6, "cancellations after the backup of purchases before it")
	lostDeposits      = flag.Int("rebuild.deposits", 6, "deposits after the backup into accounts, every other one of which was issued before it")
)

// lostShop is the service whose database is lost.
type lostShop struct {
	*servicetest.Stack
	start time.Time

	mu sync.Mutex
	n  int
}

func (l *lostShop) wish(method string) moneytest.Wish {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.n
	l.n++
	return moneytest.Wish{Room: n%6 + 1, Start: l.start.Add(time.Duration(n/6) * 80 * time.Minute), Method: method, Mobile: fmt.Sprintf("0103%07d", n)}
}

type purchase struct {
	moneytest.Wish
	moneytest.Confirm
}

// buy makes n purchases, several at a time.
func (l *lostShop) buy(t *testing.T, n int, method string) []purchase {
	t.Helper()
	return l.buyEach(t, slices.Collect(func(yield func(moneytest.Wish) bool) {
		for range n {
			if !yield(l.wish(method)) {
				return
			}
		}
	}))
}

func (l *lostShop) buyEach(t *testing.T, wishes []moneytest.Wish) []purchase {
	t.Helper()
	var group errgroup.Group
	group.SetLimit(8)
	made := make([]purchase, len(wishes))
	for i, wish := range wishes {
		group.Go(func() error {
			order, err := moneytest.NewBuyer(l.URL, l.Sandbox).Buy(t.Context(), wish)
			made[i] = purchase{wish, order}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	return made
}

// deposit transfers money to each account.
func (l *lostShop) deposit(t *testing.T, list []purchase) {
	t.Helper()
	for _, p := range list {
		if _, err := l.Sandbox.Deposit(p.OrderID); err != nil {
			t.Fatal(err)
		}
	}
}

// cancel cancels purchases as an administrator.
func (l *lostShop) cancel(t *testing.T, list []purchase) {
	t.Helper()
	hq := l.Admin(t, "hq", "hq-demo")
	for _, p := range list {
		var id int64
		if err := l.DB.Pool.QueryRow(t.Context(), `select id from reservation where order_id = $1`, p.OrderID).Scan(&id); err != nil {
			t.Fatal(err)
		}
		hq.Do(http.MethodDelete, fmt.Sprintf("/admin/reservation/%d?bookingStatus=paid", id), map[string]any{"cancelReason": "변심"}).OK(t)
	}
}

// lostSpan is the age of the backup when it is restored: what happens meanwhile is lost.
const lostSpan = 6 * time.Hour

// pass moves the clocks of the service and of the provider.
func (l *lostShop) pass(d time.Duration) {
	l.Clock.Advance(d)
	l.Provider.Advance(d)
}

// TestRebuild restores a backup that is six hours old and lacks purchases, cancellations and deposits. The rebuild sells no
// time twice, and every guest has a reservation, or a refund, and a message. Our books equal the provider's.
func TestRebuild(t *testing.T) {
	s := newShell(t)
	lost := &lostShop{Stack: servicetest.Start(t, quick)}
	lost.start = lost.Clock.Now().Truncate(10 * time.Minute).Add(3 * time.Hour)
	lost.pass(-lostSpan)
	s.Setenv("YEOLDA_DATABASE_URL", lost.Settings.Database.URL)
	s.Setenv("YEOLDA_SANDBOX_ADDR", lost.Settings.Sandbox.Addr)

	canceled := lost.buy(t, *lostCancellations, sandbox.MethodCard)
	waiting := lost.buy(t, *lostDeposits/2, sandbox.MethodVirtualAccount)
	registered := lost.order(t) // paid after the backup
	file := filepath.Join(t.TempDir(), "backup")
	s.ok("backup", file)

	lost.deposit(t, waiting)
	reply, err := registered.buyer.Post(t.Context(), "/payment/confirm", registered.Confirm)
	if err != nil || reply.OK() != nil {
		t.Fatal(err, reply.OK())
	}
	lost.pass(lostSpan / 3)
	lost.cancel(t, canceled)
	var again []moneytest.Wish // the times of canceled reservations are sold again
	for _, p := range canceled[:len(canceled)/2] {
		p.Wish.Mobile = "0104" + p.Wish.Mobile[4:]
		again = append(again, p.Wish)
	}
	bought := lost.buyEach(t, again)
	lost.pass(lostSpan / 3)
	bought = append(bought, lost.buy(t, *lostPurchases-len(again), sandbox.MethodCard)...)
	issued := lost.buy(t, *lostDeposits-len(waiting), sandbox.MethodVirtualAccount)
	lost.deposit(t, issued)
	lost.pass(lostSpan / 3)
	unknown := sandbox.Checkout{OrderID: "ord-of-another-system", Amount: 5000, Method: sandbox.MethodCard}
	charge(t, lost, unknown)

	began := time.Now()
	restored := pgtest.Empty(t, lost.Settings.Database.URL)
	s.Setenv("YEOLDA_DATABASE_URL", restored)
	s.ok("restore", file)
	conn, err := pgx.Connect(t.Context(), restored)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	const take = `insert into reservation (branch_id, room_id, state, source, start_at, end_at, occupied)
		select branch_id, room_id, 'EXPIRED', source, start_at, end_at, occupied from reservation where order_id = $1`
	if _, err := conn.Exec(t.Context(), take, waiting[0].OrderID); !postgres.IsUnavailable(err) {
		t.Fatalf("a reservation during the rebuild: %v", err)
	}
	clash := bought[len(bought)-1] // an administrator has given its time away before the rebuild
	occupy(t, conn, clash.Wish)
	out := s.ok("rebuild")
	t.Logf("%d purchases, %d cancellations and %d deposits rebuilt within %s:\n%s", len(bought), len(canceled), *lostDeposits, time.Since(began).Round(time.Millisecond), out)

	s.Setenv("YEOLDA_DATABASE_URL", "")
	after := servicetest.Start(t, quick, func(c *config.Settings) { c.Database.URL, c.Sandbox = restored, lost.Settings.Sandbox })
	if err := moneytest.Settled(t.Context(), after.DB.Pool); err != nil {
		t.Fatal(err)
	}
	if err := moneytest.Audit(t.Context(), after.DB.Pool, lost.Sandbox, unknown.Amount); err != nil {
		t.Error(err)
	}
	for _, p := range canceled {
		wantRow(t, conn, p, "CANCELED", "reservation-canceled")
	}
	for _, p := range waiting {
		wantRow(t, conn, p, "DONE", "deposit-confirmed")
	}
	for _, p := range slices.Concat(bought[:len(bought)-1], issued, []purchase{registered.purchase}) {
		wantRow(t, conn, p, "DONE", "reservation-confirmed")
		again := moneytest.NewBuyer(after.URL, lost.Sandbox).Hold(t.Context(), p.Wish)
		if again == nil {
			t.Errorf("the time of order %s was sold again", p.OrderID)
		}
	}
	wantRow(t, conn, clash, "CANCELED", "payment-returned")
	var lowest, orphans int64
	if err := conn.QueryRow(t.Context(), `select min(id) from reservation where created_by = 'system:rebuild'`).Scan(&lowest); err != nil || lowest < 1_000_000 {
		t.Errorf("identifiers after the rebuild begin at %d (%v)", lowest, err)
	}
	if err := conn.QueryRow(t.Context(), `select count(*) from reconciliation_difference where kind = 'orphan' and resolved_at is null`).Scan(&orphans); err != nil || orphans != 1 {
		t.Errorf("%d orphans, want that of the other system (%v)", orphans, err)
	}
}

// quick makes the background work frequent.
func quick(c *config.Settings) { c.HTTP.RateLimits, c.Times.SweepEvery = "off", 100*time.Millisecond }

// pending is a purchase whose payment is registered.
type pending struct {
	purchase
	buyer *moneytest.Buyer
}

func (l *lostShop) order(t *testing.T) pending {
	t.Helper()
	p := pending{buyer: moneytest.NewBuyer(l.URL, l.Sandbox)}
	p.Wish = l.wish(sandbox.MethodCard)
	var err error
	if p.Confirm, err = p.buyer.Order(t.Context(), p.Wish); err != nil {
		t.Fatal(err)
	}
	return p
}

// charge pays an order that is not the service's with its keys.
func charge(t *testing.T, l *lostShop, c sandbox.Checkout) {
	t.Helper()
	key, err := l.Sandbox.Authenticate(c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Replica(t).Payments.Confirm(t.Context(), toss.Widget, "planted", toss.ConfirmRequest{PaymentKey: key, OrderID: c.OrderID, Amount: c.Amount}); err != nil {
		t.Fatal(err)
	}
}

// occupy takes the time of a wish although a rebuild is open.
func occupy(t *testing.T, conn *pgx.Conn, w moneytest.Wish) {
	t.Helper()
	err := pgx.BeginFunc(t.Context(), conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), `select set_config('yeolda.rebuilding', 'on', true)`); err != nil {
			return err
		}
		_, err := tx.Exec(t.Context(), `
			insert into reservation (branch_id, room_id, state, source, start_at, end_at, occupied, method, amount, paid_at)
			select branch_id, r.id, 'DONE', 'ADMIN', $2, $3, tstzrange($2, $3), '관리자', 0, now()
			from room r join branch b on b.id = r.branch_id where b.code = 'gangnam' and r.no = $1`, w.Room, w.Start, w.Start.Add(time.Hour))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// wantRow checks the state of an order's reservation and that its guest was sent a message of a template.
func wantRow(t *testing.T, conn *pgx.Conn, p purchase, state, template string) {
	t.Helper()
	var (
		got   string
		held  string
		sent  int
		phone = p.Wish.Mobile
	)
	err := conn.QueryRow(t.Context(), `
		select r.state, coalesce((select state from refund f where f.reservation_id = r.id order by id desc limit 1), ''),
		       (select count(*) from message m where m.reservation_id = r.id and m.template like $2 || '%' and m.to_mobile = $3)
		from reservation r where r.order_id = $1`, p.OrderID, template, phone).Scan(&got, &held, &sent)
	if err != nil || got != state || sent != 1 {
		t.Errorf("order %s: %s, refund %s, %d messages %s (%v), want %s and one", p.OrderID, got, held, sent, template, err, state)
	}
}
