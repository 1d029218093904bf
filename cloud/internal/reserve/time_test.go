package reserve_test

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/account"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/moneytest"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
	"github.com/yeolda/yeolda/cloud/internal/sandbox"
	"github.com/yeolda/yeolda/firmware-sim/testkit/faultproxy"
)

// messages returns the templates of the messages to a phone number.
func (s *shop) messages(mobile string) (templates []string) {
	for _, m := range s.Sandbox.Messages(mobile) {
		if m.Template != "login-code" {
			templates = append(templates, m.Template)
		}
	}
	return templates
}

// awaitMessages waits until a phone number has received the wanted number of messages, and compares their templates. Their
// order is not compared: messages of two events are sent concurrently.
func (s *shop) awaitMessages(t *testing.T, mobile string, want ...string) {
	t.Helper()
	s.eventually(t, fmt.Sprintf("%d messages", len(want)), func() bool { return len(s.messages(mobile)) >= len(want) })
	slices.Sort(want)
	if got := slices.Sorted(slices.Values(s.messages(mobile))); !slices.Equal(got, want) {
		t.Errorf("messages %v, want %v", got, want)
	}
}

// nothingHeld waits until the provider holds no money.
func (s *shop) nothingHeld(t *testing.T) {
	t.Helper()
	s.eventually(t, "the money is refunded", func() bool {
		l := s.Sandbox.Ledger()
		return l.Charged == l.Refunded
	})
}

// unreachable makes the provider unreachable for payments.
func (s *shop) unreachable(t *testing.T) {
	t.Helper()
	for _, target := range []sandbox.FaultTarget{sandbox.TargetConfirm, sandbox.TargetGet} {
		s.fault(t, sandbox.Fault{Target: target, Kind: sandbox.FaultError, Status: 503, Times: -1})
	}
}

// soon returns a wish whose stay begins within ten minutes of the service's clock, which is stopped.
func (s *shop) soon(method string) moneytest.Wish {
	w := s.wish(method)
	w.Start = s.Clock.Now().Truncate(10 * time.Minute).Add(10 * time.Minute)
	s.Clock.Advance(w.Start.Add(-time.Minute).Sub(s.Clock.Now()))
	return w
}

// A1: the provider is unreachable until the stay is over. A captured payment is refunded, no other payment is charged, and
// the guest receives one message about it.
func TestNothingIsChargedForAPastStay(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault   sandbox.FaultKind
		message string
	}{
		"captured, answer lost": {sandbox.FaultDropAfterCommit, "payment-returned"},
		"not captured":          {sandbox.FaultError, "payment-failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			b, w := s.buyer(), s.soon(sandbox.MethodCard)
			order, err := b.Order(s.ctx, w)
			if err != nil {
				t.Fatal(err)
			}
			s.fault(t, sandbox.Fault{Target: sandbox.TargetConfirm, Kind: c.fault, Status: 0})
			s.unreachable(t)
			s.answer(t, b, "/payment/confirm", order, 503, "PaymentPendingException")
			s.Clock.Advance(61 * time.Minute)
			s.Sandbox.ClearFaults()
			s.awaitMessages(t, w.Mobile, c.message)
			s.nothingHeld(t)
			reply, err := b.Post(s.ctx, "/payment/confirm", order)
			if err != nil || reply.HTTP == http.StatusOK {
				t.Errorf("confirmed again: %d %s, %v", reply.HTTP, reply.Raw, err)
			}
		})
	}
}

// A2: the deposit is due at the start of a stay that begins soon. If a deposit is found after the stay, the reservation is
// canceled and the refund waits for the guest's account.
func TestDepositIsDueWithinTheStay(t *testing.T) {
	t.Parallel()
	s := open(t)
	b, w := s.buyer(), s.soon(sandbox.MethodVirtualAccount)
	order, err := b.Order(s.ctx, w)
	if err != nil {
		t.Fatal(err)
	}
	s.answer(t, b, "/payment/confirm", order, 200, "")
	var due time.Time
	if err := s.DB.Pool.QueryRow(s.ctx, `select expires_at from reservation where order_id = $1`, order.OrderID).Scan(&due); err != nil {
		t.Fatal(err)
	}
	if !due.Equal(w.Start) {
		t.Errorf("due at %s, want the start %s", due, w.Start)
	}
	s.fault(t, sandbox.Fault{Target: sandbox.TargetCancel, Kind: sandbox.FaultError, Status: 503, Times: -1})
	s.fault(t, sandbox.Fault{Target: sandbox.TargetGet, Kind: sandbox.FaultError, Status: 503, Times: -1})
	if _, err := s.Sandbox.Deposit(order.OrderID); err != nil {
		t.Fatal(err)
	}
	s.eventually(t, "the message is sent", func() bool { // one in progress when the clock jumps would be sent again
		return s.count(t, `select count(*) from message where state = $1`, "SENT") == 1
	})
	s.Clock.Advance(62 * time.Minute)
	s.Sandbox.ClearFaults()
	id := s.await(t, order.OrderID, "CANCELED")
	s.awaitRefund(t, id, "FAILED")
	s.awaitMessages(t, w.Mobile, "virtual-account-issued", "refund-account")
}

// A3: a slot is not sold if its key could no longer open doors.
func TestDeadSlotIsNotSold(t *testing.T) {
	t.Parallel()
	s := open(t)
	start := s.Clock.Now().Truncate(10 * time.Minute).Add(10 * time.Minute)
	hold := map[string]any{"branch": "gangnam", "room": 1, "startDateTime": moneytest.Wire(start), "endDateTime": moneytest.Wire(start.Add(10 * time.Minute))}
	s.Clock.Stop(start.Add(8*time.Minute - time.Second))
	s.answer(t, s.buyer(), "/reservation", hold, 200, "")
	s.Clock.Stop(start.Add(8 * time.Minute))
	hold["room"] = 2
	s.answer(t, s.buyer(), "/reservation", hold, 400, "IllegalArguemntError")
}

// TestHoldWithoutAnAnswerIsReleased: if the branch cannot be read after the slot was taken, the slot becomes free again
// (docs/specification.md, Holds 9).
func TestHoldWithoutAnAnswerIsReleased(t *testing.T) {
	t.Parallel()
	s := open(t)
	w := s.wish(sandbox.MethodCard)
	s.exec(t, `create function lose_branch() returns trigger language plpgsql as $$ begin update branch set code = 'gone' where code = 'gangnam'; return null; end $$`)
	s.exec(t, `create trigger lose_branch after insert on reservation execute function lose_branch()`)
	if err := s.buyer().Hold(s.ctx, w); err == nil {
		t.Error("a hold of a branch that cannot be read was given")
	}
	if n := s.count(t, `select count(*) from reservation where state = 'HOLD'`); n != 0 {
		t.Errorf("%d live holds that no client has", n)
	}
}

// TestHoldWhoseCommitIsUnclearIsReleased: the network loses the answer of the database after the hold was committed. The guest
// receives an error and no cookie, so the slot must be free when the guest tries again.
func TestHoldWhoseCommitIsUnclearIsReleased(t *testing.T) {
	t.Parallel()
	s := open(t)
	replica, database := s.distant(t)
	const client = "192.0.2.77"
	for name, lost := range map[string]struct {
		limit int
		rule  faultproxy.Rule
	}{
		"of the statement":                     {0, faultproxy.Rule{On: client}},
		"of the commit that counts the client": {5, faultproxy.Rule{After: client, On: "commit\x00"}},
	} {
		w := s.wish(sandbox.MethodCard)
		replica.MaxHoldsPerClient = lost.limit
		local := w.Start.UTC().Add(9 * time.Hour)
		request := reserve.HoldRequest{Branch: "gangnam", Room: w.Room, Client: client, Times: booking.LocalInterval{Start: local, End: local.Add(time.Hour)}}
		database.Add(lost.rule)
		if _, _, err := replica.Hold(s.ctx, request); err == nil {
			t.Fatalf("%s: a hold without the answer of the database was given", name)
		}
		first, _, err := replica.Hold(s.ctx, request)
		if err != nil {
			t.Errorf("%s: tried again: %v", name, err)
			continue
		}
		// The same beside a hold of the guest, which the commit ends.
		next := s.wish(sandbox.MethodCard)
		request.Earlier, request.Room = first, next.Room
		request.Times.Start = next.Start.UTC().Add(9 * time.Hour)
		request.Times.End = request.Times.Start.Add(time.Hour)
		database.Add(faultproxy.Rule{After: client, On: "commit\x00"})
		if _, _, err := replica.Hold(s.ctx, request); err == nil {
			t.Fatalf("%s: another hold without the answer of the database was given", name)
		}
		if _, _, err := replica.Hold(s.ctx, request); err != nil {
			t.Errorf("%s: another hold, tried again: %v", name, err)
		}
	}
}

// TestRegistrationWhoseCommitIsUnclearIsRepeated: the network loses the answer of the database after a reservation without payment was
// committed. The administrator receives an error and sends the same again, which is answered as the first attempt would have been. Any
// other contents are rejected.
func TestRegistrationWhoseCommitIsUnclearIsRepeated(t *testing.T) {
	t.Parallel()
	s := open(t)
	replica, database := s.distant(t)
	w := s.wish(sandbox.MethodCard)
	wish := reserve.HoldRequest{Branch: "gangnam", Room: w.Room, Times: local(w.Start, w.Start.Add(time.Hour)), Admin: hq}
	token, _, err := replica.Hold(s.ctx, wish)
	if err != nil {
		t.Fatal(err)
	}
	registration := reserve.Registration{Contact: booking.Contact{Name: "홍길동", Mobile: w.Mobile, Language: "ko"}, Note: "점검", Notify: true, Shown: &wish, By: hq}
	database.Add(faultproxy.Rule{After: w.Mobile, On: "commit\x00"})
	if _, err := replica.RegisterWithoutPayment(s.ctx, token, registration); err == nil {
		t.Fatal("a registration without the answer of the database succeeded")
	}
	id, err := replica.RegisterWithoutPayment(s.ctx, token, registration)
	if err != nil {
		t.Fatalf("tried again: %v", err)
	}
	key := s.key(t, int64(id))
	if again, err := replica.RegisterWithoutPayment(s.ctx, token, registration); err != nil || again != id || s.key(t, int64(id)) != key {
		t.Errorf("tried once more: reservation %d, %v; want %d with the same key", again, err, id)
	}
	for name, change := range map[string]func(r *reserve.Registration){
		"another contact": func(r *reserve.Registration) { r.Mobile = "01000000001" },
		"another reason":  func(r *reserve.Registration) { r.Note = "청소" },
		"another hold": func(r *reserve.Registration) {
			r.Shown = &reserve.HoldRequest{Branch: wish.Branch, Room: wish.Room + 1, Times: wish.Times}
		},
		"another branch's administrator": func(r *reserve.Registration) {
			r.By = account.Principal{LoginType: account.LoginAdmin, AdminLoginID: "hongdae-manager", Role: account.Manager, Branches: []string{"hongdae"}}
		},
	} {
		other := registration
		change(&other)
		if _, err := replica.RegisterWithoutPayment(s.ctx, token, other); !errors.Is(err, reserve.ErrHoldExpired) {
			t.Errorf("%s: got %v, want ErrHoldExpired", name, err)
		}
	}
	if n := s.count(t, `select count(*) from message where reservation_id = $1 and template = 'reservation-confirmed'`, id); n != 1 {
		t.Errorf("%d messages with the key, want 1", n)
	}
}

// TestAccountWhoseAnswerIsLostIsRequestedAgain: an administrator does not receive the answer that a virtual account was issued, and sends the
// same request again. No second account is issued, and the answer is the first one. Any other contents are rejected.
func TestAccountWhoseAnswerIsLostIsRequestedAgain(t *testing.T) {
	t.Parallel()
	s := open(t)
	replica, w := s.Replica(t), s.wish(sandbox.MethodVirtualAccount)
	token, _, err := replica.Hold(s.ctx, reserve.HoldRequest{Branch: "gangnam", Room: w.Room, Times: local(w.Start, w.Start.Add(time.Hour)), Admin: hq})
	if err != nil {
		t.Fatal(err)
	}
	request := reserve.AccountRequest{Contact: booking.Contact{Name: "홍길동", Mobile: w.Mobile, Language: "ko"}, Amount: 20000, OrderName: "강남점", Bank: "20", By: hq}
	id, err := replica.IssueAccount(s.ctx, token, request)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := replica.IssueAccount(s.ctx, token, request); err != nil || again != id {
		t.Errorf("requested again: reservation %d, %v; want %d", again, err, id)
	}
	for name, change := range map[string]func(r *reserve.AccountRequest){
		"another amount":  func(r *reserve.AccountRequest) { r.Amount++ },
		"another bank":    func(r *reserve.AccountRequest) { r.Bank = "88" },
		"another contact": func(r *reserve.AccountRequest) { r.Name = "김철수" },
	} {
		other := request
		change(&other)
		if _, err := replica.IssueAccount(s.ctx, token, other); !errors.Is(err, reserve.ErrHoldExpired) {
			t.Errorf("%s: got %v, want ErrHoldExpired", name, err)
		}
	}
	if n := s.count(t, `select count(*) from payment where reservation_id = $1 and attempt = 1`, id); n != 1 {
		t.Errorf("%d attempts, want 1", n)
	}
	s.awaitMessages(t, w.Mobile, "virtual-account-issued")
}

// distant returns the booking verbs of a replica that reaches the database through a proxy.
func (s *shop) distant(t *testing.T) (*reserve.Service, *faultproxy.Proxy) {
	t.Helper()
	config := s.DB.Pool.Config().ConnConfig
	network, address := "tcp", net.JoinHostPort(config.Host, fmt.Sprint(config.Port))
	if strings.HasPrefix(config.Host, "/") {
		network, address = "unix", fmt.Sprintf("%s/.s.PGSQL.%d", config.Host, config.Port)
	}
	proxy, err := faultproxy.New(func() (net.Conn, error) { return new(net.Dialer).DialContext(s.ctx, network, address) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Close)
	dsn := url.URL{Scheme: "postgres", User: url.UserPassword(config.User, config.Password), Host: proxy.Addr(), Path: config.Database, RawQuery: "sslmode=disable"}
	db, err := postgres.Open(t.Context(), dsn.String(), slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	db.Now = s.DB.Now
	replica := s.Replica(t)
	replica.DB = db
	return replica, proxy
}

// A4: if a guest leaves or takes another slot while the outcome of a payment is unknown, no charge is kept: a captured
// payment is refunded, and no other payment is charged.
func TestAbandonedPurchaseIsNotCharged(t *testing.T) {
	t.Parallel()
	leave := map[string]func(*testing.T, *shop, *moneytest.Buyer){
		"releases": func(t *testing.T, s *shop, b *moneytest.Buyer) {
			if reply, err := b.Do(s.ctx, http.MethodDelete, "/reservation", nil); err != nil || reply.HTTP != 200 {
				t.Fatal(reply, err)
			}
		},
		"takes another slot": func(t *testing.T, s *shop, b *moneytest.Buyer) {
			if err := b.Hold(s.ctx, s.wish(sandbox.MethodCard)); err != nil {
				t.Fatal(err)
			}
		},
	}
	for name, do := range leave {
		for _, captured := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, captured %t", name, captured), func(t *testing.T) {
				t.Parallel()
				s := open(t)
				b, order, w := s.order(t, sandbox.MethodCard)
				kind, message := sandbox.FaultError, "payment-failed"
				if captured {
					kind, message = sandbox.FaultDropAfterCommit, "payment-returned"
				}
				s.fault(t, sandbox.Fault{Target: sandbox.TargetConfirm, Kind: kind})
				s.unreachable(t)
				s.answer(t, b, "/payment/confirm", order, 503, "PaymentPendingException")
				do(t, s, b)
				s.Sandbox.ClearFaults()
				s.awaitMessages(t, w.Mobile, message)
				s.nothingHeld(t)
				if l := s.Sandbox.Ledger(); captured != (l.Charged > 0) {
					t.Errorf("charged %d won, want captured %t", l.Charged, captured)
				}
				rows, err := postgres.SettlementRows(s.ctx, s.DB.Pool, []string{"gangnam"}, s.Clock.Now().UTC().Add(9*time.Hour).Format("2006-01"))
				if err != nil || captured != (len(rows) == 1) || captured && rows[0].Method != sandbox.MethodCard {
					t.Errorf("settlement %+v, %v, want the method of the returned payment", rows, err)
				}
			})
		}
	}
}

// A5: a guest registers again after a payment that seemed refused, and the first order is charged later. The second order
// is kept, and the first is refunded.
func TestLateCaptureOfAReplacedOrder(t *testing.T) {
	t.Parallel()
	s := open(t)
	b, first, w := s.order(t, sandbox.MethodCard)
	s.fault(t, sandbox.Fault{Target: sandbox.TargetConfirm, Kind: sandbox.FaultError, Code: "CARD_PROCESSING_ERROR"})
	s.answer(t, b, "/payment/confirm", first, 400, "PaymentFailedException")
	second, err := b.Register(s.ctx, w)
	if err != nil {
		t.Fatal(err)
	}
	s.answer(t, b, "/payment/confirm", first, 404, "ResourceNotFoundException")
	s.answer(t, b, "/payment/confirm", second, 200, "")
	s.wantState(t, second.OrderID, "DONE")
	s.chargeBehindOurBack(t, first)
	s.eventually(t, "the first order is refunded", func() bool {
		return s.count(t, `select count(*) from refund f join reservation r on r.id = f.reservation_id where r.order_id = $1 and f.state = 'COMPLETED'`, first.OrderID) == 1
	})
	s.wantState(t, second.OrderID, "DONE")
	s.awaitMessages(t, w.Mobile, "reservation-confirmed", "payment-returned")
}

// A6: the slot is taken before a late capture is known. The guest receives a message, and repeating the request does not
// return that nothing was charged.
func TestLostSlotIsReported(t *testing.T) {
	t.Parallel()
	s := open(t)
	b, order, w := s.order(t, sandbox.MethodCard)
	s.fault(t, sandbox.Fault{Target: sandbox.TargetConfirm, Kind: sandbox.FaultError, Code: "CARD_PROCESSING_ERROR"})
	s.answer(t, b, "/payment/confirm", order, 400, "PaymentFailedException")
	s.exec(t, `update reservation set state = 'EXPIRED', expires_at = now() - interval '1 minute' where order_id = $1`, order.OrderID)
	if err := s.buyer().Hold(s.ctx, w); err != nil {
		t.Fatal(err)
	}
	s.chargeBehindOurBack(t, order)
	s.awaitMessages(t, w.Mobile, "payment-returned")
	if reply := s.answer(t, b, "/payment/confirm", order, 400, "PaymentFailedException"); reply.ErrorCode != "REFUNDED_PAYMENT" {
		t.Errorf("code %q, want REFUNDED_PAYMENT", reply.ErrorCode)
	}
	s.eventually(t, "the discrepancy is settled", func() bool {
		return s.count(t, `select count(*) from reconciliation_difference where order_id = $1 and resolved_at is null`, order.OrderID) == 0
	})
}

// A7: if a pending payment is refused in the background, the guest receives the message that the page announced.
func TestRefusalInTheBackgroundIsReported(t *testing.T) {
	t.Parallel()
	s := open(t)
	b, order, w := s.order(t, sandbox.MethodCard)
	s.fault(t, sandbox.Fault{Target: sandbox.TargetConfirm, Kind: sandbox.FaultError, Status: 500})
	s.answer(t, b, "/payment/confirm", order, 503, "PaymentPendingException")
	if err := s.Sandbox.Decline(order.PaymentKey, ""); err != nil {
		t.Fatal(err)
	}
	s.await(t, order.OrderID, "HOLD")
	s.awaitMessages(t, w.Mobile, "payment-failed")
}

// E2: a refused payment key extends a hold at most once, and only if the provider has the payment.
func TestRefusalExtendsAHoldOnce(t *testing.T) {
	t.Parallel()
	s := open(t)
	expires := func(order string) (at time.Time) {
		if err := s.DB.Pool.QueryRow(s.ctx, `select expires_at from reservation where order_id = $1`, order).Scan(&at); err != nil {
			t.Fatal(err)
		}
		return at
	}
	b, order, _ := s.order(t, sandbox.MethodCard)
	s.Clock.Advance(9 * time.Minute)
	before := expires(order.OrderID)
	invented := order
	invented.PaymentKey = "tgyeolda0120261121000000"
	s.answer(t, b, "/payment/confirm", invented, 400, "PaymentFailedException")
	if after := expires(order.OrderID); !after.Equal(before) {
		t.Errorf("an invented key extends the hold from %s to %s", before, after)
	}
	refuse := func() {
		s.fault(t, sandbox.Fault{Target: sandbox.TargetConfirm, Kind: sandbox.FaultError, Code: "REJECT_CARD_COMPANY"})
		s.answer(t, b, "/payment/confirm", order, 400, "PaymentFailedException")
	}
	refuse()
	once := expires(order.OrderID)
	if !once.After(before) {
		t.Error("the first refusal does not extend the hold")
	}
	s.Clock.Advance(time.Minute)
	refuse()
	if after := expires(order.OrderID); !after.Equal(once) {
		t.Errorf("the second refusal extends the hold from %s to %s", once, after)
	}
}
