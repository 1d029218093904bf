package reserve_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/sandbox"
)

// extendedByDeposit returns a stay with an extension that is paid by deposit.
func (s *shop) extendedByDeposit(t *testing.T, method string) (g guest, extension held) {
	t.Helper()
	g = s.guest(t, method)
	extension = g.hold(t, s, g.end().Add(booking.SlotLength))
	s.pay(t, g.Buyer, extension, sandbox.MethodVirtualAccount)
	s.deposit(t, extension.OrderID)
	s.wantState(t, extension.OrderID, "DONE")
	if err := g.Login(s.ctx, g.wish.Mobile); err != nil {
		t.Fatal(err)
	}
	return g, extension
}

// TestQuoteWithAnExtension: the quote is what the cancellation returns, and says that it needs an account.
func TestQuoteWithAnExtension(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.exec(t, `update branch set refund_policy = $1 where code = 'gangnam'`, `[{"untilMinutesBefore":100000,"percent":100},{"untilMinutesBefore":30,"percent":50}]`)
	g, extension := s.extendedByDeposit(t, sandbox.MethodCard)
	reply, err := g.Do(s.ctx, http.MethodGet, fmt.Sprintf("/v2/my-reservations/%d/refund", g.id), nil)
	if err != nil || reply.HTTP != http.StatusOK {
		t.Fatal(err, reply.Raw)
	}
	quote := decode[struct {
		Amount, Paid int
		NeedsAccount bool
	}](t, reply.Data)
	if quote.Paid != g.order.Amount+extension.Amount || !quote.NeedsAccount {
		t.Errorf("quote %+v, want %d won paid and an account", quote, g.order.Amount+extension.Amount)
	}
	s.answer(t, g.Buyer, "/payment/cancel", refundAccount(cancelBody(g.id)), 200, "")
	s.refundsDone(t, s.await(t, g.order.OrderID, "CANCELED"))
	s.refundsDone(t, s.await(t, extension.OrderID, "CANCELED"))
	if returned := s.count(t, `select coalesce(sum(amount), 0) from refund where state = 'COMPLETED'`); returned != quote.Amount || returned == 0 {
		t.Errorf("%d won were returned, the quote says %d", returned, quote.Amount)
	}
}

// Nothing of the stay itself is refunded: the policy gives no share, or parts have returned everything. Its extension has a share
// of its own, which the account of the cancellation receives.
func TestPolicyOfExtensionOfStayWithoutRefund(t *testing.T) {
	t.Parallel()
	for name, returned := range map[string]bool{"no share": false, "returned in parts": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			s.exec(t, `update branch set refund_policy = $1 where code = 'gangnam'`, `[{"untilMinutesBefore":220,"percent":50}]`)
			g, extension := s.extendedByDeposit(t, sandbox.MethodCard)
			if returned {
				if _, err := s.Replica(t).RefundPart(s.ctx, part(g.id, g.order.Amount)); err != nil {
					t.Fatal(err)
				}
			}
			s.answer(t, g.Buyer, "/payment/cancel", refundAccount(cancelBody(g.id)), 200, "")
			s.await(t, g.order.OrderID, "CANCELED")
			id := s.await(t, extension.OrderID, "CANCELED")
			s.refundsDone(t, id)
			if p := s.Sandbox.Payments(extension.OrderID)[0]; p.BalanceAmount != extension.Amount-extension.Amount/2 {
				t.Errorf("the shop keeps %d of %d won of the extension, want one half", p.BalanceAmount, extension.Amount)
			}
		})
	}
}

// TestMessagesOfCanceledExtension: the message about an extension says that the time before it remains, unless the stay was
// canceled with it.
func TestMessagesOfCanceledExtension(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		stay     bool
		template string
	}{{false, "extension-canceled"}, {true, "reservation-canceled"}} {
		t.Run(test.template, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			g := s.guest(t, sandbox.MethodCard)
			extension := g.hold(t, s, g.end().Add(booking.SlotLength))
			s.pay(t, g.Buyer, extension, sandbox.MethodCard)
			id := s.wantState(t, extension.OrderID, "DONE")
			if err := g.Login(s.ctx, g.wish.Mobile); err != nil {
				t.Fatal(err)
			}
			if test.stay {
				s.answer(t, g.Buyer, "/payment/cancel", cancelBody(g.id), 200, "")
				s.await(t, g.order.OrderID, "CANCELED")
			} else {
				s.answer(t, g.Buyer, "/payment/cancel", cancelBody(id), 200, "")
			}
			s.await(t, extension.OrderID, "CANCELED")
			if n := s.count(t, `select count(*) from message where reservation_id = $1 and template = '`+test.template+`'`, id); n != 1 {
				t.Errorf("%d messages %s about the extension", n, test.template)
			}
			if n := s.count(t, `select count(*) from message where reservation_id = $1 and template in ('reservation-canceled', 'extension-canceled')`, id); n != 1 {
				t.Errorf("%d messages about its cancellation", n)
			}
		})
	}
}

// TestMessagesOfUnpaidExtension: the guest of an extension that waits for its deposit is notified when its account is closed. The
// key stays, unless the stay is canceled as well.
func TestMessagesOfUnpaidExtension(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		end      func(s *shop, t *testing.T, g guest, extension int64)
		template string
	}{
		"the guest cancels the extension": {func(s *shop, t *testing.T, g guest, extension int64) {
			s.answer(t, g.Buyer, "/payment/cancel", cancelBody(extension), 200, "")
		}, "extension-ended"},
		"the deposit is overdue": {func(s *shop, _ *testing.T, _ guest, _ int64) {
			s.Clock.Advance(11 * time.Minute)
		}, "extension-ended"},
		"the guest cancels the stay": {func(s *shop, t *testing.T, g guest, _ int64) {
			s.answer(t, g.Buyer, "/payment/cancel", cancelBody(g.id), 200, "")
		}, "reservation-ended"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			g := s.guest(t, sandbox.MethodCard)
			extension := g.hold(t, s, g.end().Add(booking.SlotLength))
			s.pay(t, g.Buyer, extension, sandbox.MethodVirtualAccount)
			id := s.wantState(t, extension.OrderID, "WAITING_FOR_DEPOSIT")
			if err := g.Login(s.ctx, g.wish.Mobile); err != nil {
				t.Fatal(err)
			}
			test.end(s, t, g, id)
			s.await(t, extension.OrderID, "CANCELED")
			if n := s.count(t, `select count(*) from message where reservation_id = $1 and template = '`+test.template+`'`, id); n != 1 {
				t.Errorf("%d messages %s about the extension, want 1", n, test.template)
			}
			if n := s.count(t, `select count(*) from message where reservation_id = $1`, id); n != 2 {
				t.Errorf("%d messages about the extension, want that of the account and that of its end", n)
			}
		})
	}
}

// The provider declines the refund of an extended stay, so the stay is as before, extension included. The next cancellation ends both.
func TestRefusedRefundOfExtendedStay(t *testing.T) {
	t.Parallel()
	for _, by := range []string{"guest", "staff"} {
		t.Run(by, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			g := s.guest(t, sandbox.MethodCard)
			end := g.end().Add(time.Hour)
			extension := g.hold(t, s, end)
			s.pay(t, g.Buyer, extension, sandbox.MethodCard)
			id := s.wantState(t, extension.OrderID, "DONE")
			cancel := func(status int, exception string) {
				s.answer(t, g.Buyer, "/payment/cancel", cancelBody(g.id), status, exception)
			}
			if by == "staff" {
				b := s.buyer()
				if err := b.LoginAdmin(s.ctx, "hq", "hq-demo"); err != nil {
					t.Fatal(err)
				}
				cancel = func(status int, _ string) {
					reply, err := b.Do(s.ctx, http.MethodDelete, fmt.Sprintf("/admin/reservation/%d?bookingStatus=paid", g.id), nil)
					if err != nil || reply.HTTP != status {
						t.Fatal(err, reply.Raw)
					}
				}
			} else if err := g.Login(s.ctx, g.wish.Mobile); err != nil {
				t.Fatal(err)
			}
			s.fault(t, sandbox.Fault{Target: sandbox.TargetCancel, Kind: sandbox.FaultError, Code: "NOT_CANCELABLE_PAYMENT", Times: 1})
			cancel(400, "PaymentFailedException")
			s.wantState(t, g.order.OrderID, "DONE")
			s.wantState(t, extension.OrderID, "DONE")
			if key := s.key(t, g.id); key != g.key {
				t.Errorf("key %s, was %s", key, g.key)
			}
			g.wantEnd(t, s, end)
			if n := s.count(t, `select count(*) from refund where reservation_id = $1`, id); n != 0 {
				t.Errorf("%d refunds of the extension", n)
			}
			cancel(200, "")
			s.wantState(t, g.order.OrderID, "CANCELED")
			s.await(t, extension.OrderID, "CANCELED")
			s.refundsDone(t, id)
		})
	}
}

// While the refund of a stay has no answer, its extension keeps its time. When the refund is made at last, the extension ends as the guest
// asked: by the share of the policy at the request, to the account of the request.
func TestExtensionEndsWithTheRefund(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.exec(t, `update branch set refund_policy = $1 where code = 'gangnam'`, `[{"untilMinutesBefore":60,"percent":50}]`)
	g, extension := s.extendedByDeposit(t, sandbox.MethodCard)
	s.fault(t, sandbox.Fault{Target: sandbox.TargetCancel, Kind: sandbox.FaultError, Status: 500, Times: -1})
	s.fault(t, sandbox.Fault{Target: sandbox.TargetGet, Kind: sandbox.FaultError, Times: -1})
	s.answer(t, g.Buyer, "/payment/cancel", refundAccount(cancelBody(g.id)), 503, "PaymentPendingException")
	s.wantState(t, g.order.OrderID, "CANCELING")
	s.wantState(t, extension.OrderID, "DONE")
	if s.key(t, g.id) != "" {
		t.Error("the key lives")
	}
	s.Clock.Advance(g.end().Add(-40 * time.Minute).Sub(s.Clock.Now())) // the policy gives nothing for the extension any more
	s.Sandbox.ClearFaults()
	id := s.await(t, extension.OrderID, "CANCELED")
	s.wantState(t, g.order.OrderID, "CANCELED")
	s.refundsDone(t, id)
	if p := s.Sandbox.Payments(extension.OrderID)[0]; p.BalanceAmount != extension.Amount-extension.Amount/2 {
		t.Errorf("the shop keeps %d of %d won of the extension, want one half", p.BalanceAmount, extension.Amount)
	}
	if n := s.count(t, `select count(*) from refund where extension_account is not null`); n != 0 {
		t.Errorf("%d closed refunds keep an account", n)
	}
}

// TestExtensionWithoutRefundIsAnnounced: the guest cancels a paid extension of which the policy returns nothing, and receives a message about
// it and one about the extension that ends with it. If the whole stay is cancelled, one message is enough.
func TestExtensionWithoutRefundIsAnnounced(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		stay  bool // is cancelled
		state string
		want  []string
	}{
		"the first extension": {false, "DONE", []string{"extension-canceled-unrefunded", "extension-canceled-unrefunded"}},
		"the stay":            {true, "CANCELED", []string{"reservation-canceled-unrefunded"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			g := s.loggedIn(t, sandbox.MethodCard)
			s.exec(t, `update branch set refund_policy = $1 where code = 'gangnam'`, `[{"untilMinutesBefore":100000,"percent":50}]`)
			s.exec(t, `update reservation set refund_policy = $1 where id = $2`, `[{"untilMinutesBefore":100000,"percent":50}]`, g.id)
			id := g.extend(t, s, g.end().Add(30*time.Minute))
			g.extend(t, s, g.end().Add(60*time.Minute))
			if c.stay {
				id = g.id
			}
			s.answer(t, g.Buyer, "/payment/cancel", cancelBody(id), 200, "")
			s.wantState(t, g.order.OrderID, c.state)
			s.noneWaits(t)
			want := slices.Sorted(slices.Values(append(c.want, "reservation-confirmed", "stay-extended", "stay-extended")))
			if got := slices.Sorted(slices.Values(s.messages(g.wish.Mobile))); !slices.Equal(got, want) { // they are sent by several workers
				t.Errorf("messages %v, want %v", got, want)
			}
		})
	}
}
