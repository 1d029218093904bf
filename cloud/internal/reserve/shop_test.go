package reserve_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/account"
	"github.com/yeolda/yeolda/cloud/internal/config"
	"github.com/yeolda/yeolda/cloud/internal/moneytest"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
	"github.com/yeolda/yeolda/cloud/internal/sandbox"
	"github.com/yeolda/yeolda/cloud/internal/servicetest"
	"github.com/yeolda/yeolda/cloud/internal/toss"
)

// hq is an administrator of every branch.
var hq = account.Principal{LoginType: account.LoginAdmin, AdminLoginID: "hq", Role: account.HQ}

// seoul is the legal entity that sells at every branch of a shop. The keys of the settings belong to another merchant, so every
// request with a key that is not the payment's own is foreign to the sandbox: see audit. widget is its key set.
const (
	seoul  = "seoul"
	widget = toss.KeySet("widget:" + seoul)
)

// shop is a running service with its sandbox, audited at the end of the test.
type shop struct {
	*servicetest.Stack
	ctx     context.Context
	orphans int // won that the test charges at the provider without an order

	mu    sync.Mutex
	wills int
}

func open(t *testing.T, change ...func(*config.Settings)) *shop {
	t.Helper()
	s := unaudited(t, change...)
	t.Cleanup(func() { s.audit(t) })
	return s
}

// unaudited returns a shop for a test whose clock runs days ahead of the database's, so that messages expire before they are sent.
func unaudited(t *testing.T, change ...func(*config.Settings)) *shop {
	t.Helper()
	eager := func(s *config.Settings) { s.HTTP.RateLimits, s.Times.SweepEvery = "off", 100*time.Millisecond }
	s := &shop{Stack: servicetest.Start(t, append(change, eager)...)}
	s.Sandbox.UseClientKey(s.AddEntity(t, seoul, 2, "gangnam", "hongdae", "jamsil"))
	ctx, cancel := untilDeadline(t)
	s.ctx = ctx
	t.Cleanup(cancel)
	return s
}

// untilDeadline returns a context that ends a minute before the test binary is stopped, so that a test that hangs reports the
// cause. A busy machine may need the rest of the time.
func untilDeadline(t *testing.T) (context.Context, context.CancelFunc) {
	t.Helper()
	deadline, ok := t.Deadline()
	if !ok {
		return context.WithCancel(context.Background())
	}
	return context.WithDeadline(context.Background(), deadline.Add(-time.Minute))
}

// audit waits until all payments are settled and compares the books with the provider's.
func (s *shop) audit(t *testing.T) {
	t.Helper()
	if err := moneytest.Settled(s.ctx, s.DB.Pool); err != nil {
		t.Error(err)
	}
	if err := moneytest.Audit(s.ctx, s.DB.Pool, s.Sandbox, s.orphans); err != nil {
		t.Error(err)
	}
	for _, call := range s.Sandbox.Ledger().Foreign {
		t.Errorf("a payment is asked for with the key of another merchant: %+v", call)
	}
}

func (s *shop) buyer() *moneytest.Buyer { return moneytest.NewBuyer(s.URL, s.Sandbox) }

// wish returns a wish for a time that no other buyer of the test uses.
func (s *shop) wish(method string) moneytest.Wish {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.wills
	s.wills++
	start := s.Clock.Now().Truncate(10 * time.Minute).Add(3*time.Hour + time.Duration(n/6)*80*time.Minute)
	return moneytest.Wish{Room: n%6 + 1, Start: start, Method: method, Mobile: fmt.Sprintf("0102%07d", n)}
}

// order prepares a purchase up to its confirmation.
func (s *shop) order(t *testing.T, method string) (*moneytest.Buyer, moneytest.Confirm, moneytest.Wish) {
	t.Helper()
	b, w := s.buyer(), s.wish(method)
	order, err := b.Order(s.ctx, w)
	if err != nil {
		t.Fatal(err)
	}
	return b, order, w
}

// bought returns a confirmed purchase.
func (s *shop) bought(t *testing.T, method string) (*moneytest.Buyer, moneytest.Confirm, moneytest.Wish) {
	t.Helper()
	b, order, w := s.order(t, method)
	s.answer(t, b, "/payment/confirm", order, 200, "")
	return b, order, w
}

// answer sends a POST request and fails the test unless the response has the status and error type. Unless a 503 is expected,
// it repeats a request that a time-out of the service ended.
func (s *shop) answer(t *testing.T, b *moneytest.Buyer, path string, body any, status int, errorType string) moneytest.Reply {
	t.Helper()
	post := b.Insist
	if status == http.StatusServiceUnavailable {
		post = b.Post
	}
	reply, err := post(s.ctx, path, body)
	if err != nil {
		t.Fatal(err)
	}
	if reply.HTTP != status || reply.ErrorType != errorType {
		t.Fatalf("POST %s: %d %s, want %d %s", path, reply.HTTP, reply.Raw, status, errorType)
	}
	return reply
}

// state returns the state and the id of an order's reservation.
func (s *shop) state(t *testing.T, order string) (state string, id int64) {
	t.Helper()
	err := s.DB.Pool.QueryRow(s.ctx, `select state, id from reservation where order_id = $1`, order).Scan(&state, &id)
	if err != nil {
		t.Fatal(err)
	}
	return state, id
}

func (s *shop) wantState(t *testing.T, order, want string) int64 {
	t.Helper()
	state, id := s.state(t, order)
	if state != want {
		t.Fatalf("order %s is %s, want %s", order, state, want)
	}
	return id
}

// await waits until an order is in a state.
func (s *shop) await(t *testing.T, order, want string) int64 {
	t.Helper()
	s.eventually(t, "order "+order+" is "+want, func() bool {
		state, _ := s.state(t, order)
		return state == want
	})
	_, id := s.state(t, order)
	return id
}

// awaitAtOnce waits until an order is in a state while the service's clock keeps its pace, so that no check becomes due.
func (s *shop) awaitAtOnce(t *testing.T, order, want string) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; {
		state, _ := s.state(t, order)
		if state == want {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("order %s is %s, want %s", order, state, want)
		}
		time.Sleep(10 * time.Millisecond) // rows of another process: there is no event to wait for
	}
}

// eventually waits until a condition is true, while the service's clock runs faster than real time.
func (s *shop) eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !is(); {
		if time.Now().After(deadline) {
			t.Fatalf("it never happens: %s", what)
		}
		s.Clock.Advance(time.Second)
		time.Sleep(20 * time.Millisecond) // rows of another process: there is no event to wait for
	}
}

func (s *shop) fault(t *testing.T, f sandbox.Fault) {
	t.Helper()
	if err := s.Sandbox.SetFault(f); err != nil {
		t.Fatal(err)
	}
}

func (s *shop) exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	if _, err := s.DB.Pool.Exec(s.ctx, sql, args...); err != nil {
		t.Fatal(err)
	}
}

func (s *shop) count(t *testing.T, sql string, args ...any) (n int) {
	t.Helper()
	if err := s.DB.Pool.QueryRow(s.ctx, sql, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// compared makes a full and a light comparison with the provider's books and waits until none is in progress, so that none of the service
// itself becomes due during the test.
func (s *shop) compared(t *testing.T, replica *reserve.Service) {
	t.Helper()
	for range 2 {
		if _, err := replica.ReconcileDue(s.ctx, 24*time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	s.eventually(t, "no comparison is in progress", func() bool {
		return s.count(t, `select count(*) from reconciliation_run where completed_at is null`) == 0
	})
}

// guestAccount is the account to which a deposit is refunded; refundAccount is its form in a request.
var guestAccount = toss.RefundAccount{Bank: "20", Number: "1002123456789", Holder: "홍길동"}

func refundAccount(body map[string]any) map[string]any {
	body["refundReceiveAccountBank"], body["refundReceiveAccountNumber"] = guestAccount.Bank, guestAccount.Number
	body["refundReceiveAccountHolderName"] = guestAccount.Holder
	return body
}

// together runs n calls concurrently and returns their errors.
func together(n int, do func(i int) error) error {
	var (
		wg   sync.WaitGroup
		gate = make(chan struct{})
		errs = make([]error, n)
	)
	for i := range n {
		wg.Go(func() {
			<-gate
			errs[i] = do(i)
		})
	}
	close(gate)
	wg.Wait()
	return errors.Join(errs...)
}

// key returns the owner's key of a reservation; empty: none opens doors.
func (s *shop) key(t *testing.T, id int64) string {
	t.Helper()
	return s.OwnerKey(t, id)
}
