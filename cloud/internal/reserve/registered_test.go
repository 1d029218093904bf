package reserve_test

import (
	"errors"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/account"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/moneytest"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
	"github.com/yeolda/yeolda/cloud/internal/sandbox"
)

// registered returns a stay that an administrator has registered without a payment.
func (s *shop) registered(t *testing.T) guest {
	t.Helper()
	g := guest{Buyer: s.buyer(), wish: s.wish(sandbox.MethodCard)}
	replica := s.Replica(t)
	token, _, err := replica.Hold(s.ctx, reserve.HoldRequest{Branch: "gangnam", Room: g.wish.Room, Times: local(g.wish.Start, g.end()), Admin: hq})
	if err != nil {
		t.Fatal(err)
	}
	id, err := replica.RegisterWithoutPayment(s.ctx, token, reserve.Registration{
		Contact: booking.Contact{Name: "홍길동", Mobile: g.wish.Mobile, Language: "ko"}, Notify: true, By: hq,
	})
	if err != nil {
		t.Fatal(err)
	}
	g.id, g.key = int64(id), s.key(t, int64(id))
	return g
}

// TestRegisteredStayWithExtensionIsCanceled cancels a stay that was registered without a payment, by its guest or by staff, after its
// guest has bought an extension. The cancellation applies to the extension: its account receives the money, and the guest's
// cancellation returns what the policy says and the quote has shown.
func TestRegisteredStayWithExtensionIsCanceled(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		method string
		staff  bool
		keeps  int // percent
	}{
		"guest, card":    {sandbox.MethodCard, false, 50},
		"guest, deposit": {sandbox.MethodVirtualAccount, false, 50},
		"staff, deposit": {sandbox.MethodVirtualAccount, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			s.exec(t, `update branch set refund_policy = $1 where code = 'gangnam'`, `[{"untilMinutesBefore":6000,"percent":100},{"untilMinutesBefore":30,"percent":50}]`)
			g := s.registered(t)
			order := g.hold(t, s, g.end().Add(30*time.Minute))
			s.pay(t, g.Buyer, order, c.method)
			if c.method == sandbox.MethodVirtualAccount {
				s.deposit(t, order.OrderID)
			}
			extension := s.await(t, order.OrderID, "DONE")
			if c.staff {
				err := s.Replica(t).AdminCancel(s.ctx, reserve.AdminCancelRequest{ID: booking.ReservationID(g.id), Status: "DONE", Account: &guestAccount, By: hq})
				if err != nil {
					t.Fatal(err)
				}
			} else {
				if err := g.Login(s.ctx, g.wish.Mobile); err != nil {
					t.Fatal(err)
				}
				s.answer(t, g.Buyer, "/payment/cancel", refundAccount(map[string]any{"id": g.id, "cancelReason": "변심"}), 200, "")
			}
			s.await(t, order.OrderID, "CANCELED")
			s.refundsDone(t, extension)
			s.wantHeld(t, moneytest.Confirm{OrderID: order.OrderID}, order.Amount*c.keeps/100)
		})
	}
}

// TestFrontDeskKeepsAPaidExtension: the deposit of a stay is reversed, its extension is paid. The front desk does not cancel the stay,
// because that returns the money of the extension; the headquarters do.
func TestFrontDeskKeepsAPaidExtension(t *testing.T) {
	t.Parallel()
	s := open(t)
	g := s.guest(t, sandbox.MethodVirtualAccount)
	order := g.hold(t, s, g.end().Add(30*time.Minute))
	s.pay(t, g.Buyer, order, sandbox.MethodCard)
	s.await(t, order.OrderID, "DONE")
	s.reverse(t, g.order.OrderID)
	s.await(t, g.order.OrderID, "WAITING_FOR_DEPOSIT")
	replica := s.Replica(t)
	r, err := postgres.Reservation(s.ctx, s.DB.Pool, booking.ReservationID(g.id))
	if err != nil {
		t.Fatal(err)
	}
	if err := replica.MayAdminCancel(s.ctx, frontDesk, r); !errors.Is(err, account.ErrRoleForbidden) {
		t.Errorf("the front desk is offered the cancellation: %v", err)
	}
	request := reserve.AdminCancelRequest{ID: r.ID, Status: string(r.BookingStatus()), By: frontDesk}
	if err := replica.AdminCancel(s.ctx, request); !errors.Is(err, account.ErrRoleForbidden) {
		t.Errorf("the front desk cancels: %v", err)
	}
	s.wantState(t, order.OrderID, "DONE")
	request.By = hq
	if err := replica.AdminCancel(s.ctx, request); err != nil {
		t.Fatal(err)
	}
	s.await(t, g.order.OrderID, "CANCELED")
	s.refundsDone(t, s.await(t, order.OrderID, "CANCELED"))
}
