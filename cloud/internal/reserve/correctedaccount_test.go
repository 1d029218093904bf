package reserve_test

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/account"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/moneytest"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
	"github.com/yeolda/yeolda/cloud/internal/sandbox"
)

var frontDesk = account.Principal{LoginType: account.LoginAdmin, AdminLoginID: "desk", Role: account.FrontDesk, Branches: []string{"gangnam"}}

// correctedTo lets the front desk give a stay another phone number.
func (s *shop) correctedTo(t *testing.T, id int64, mobile string) {
	t.Helper()
	err := s.Replica(t).CorrectContact(s.ctx, reserve.ContactCorrection{ID: booking.ReservationID(id), Mobile: &mobile, Reason: "오타", By: frontDesk})
	if err != nil {
		t.Fatal(err)
	}
}

// TestAccountAfterCorrectedContact: an administrator who has given a stay another phone number receives the login code and the refund link
// there. An account that is entered with them waits for another administrator, unless its holder is the guest.
func TestAccountAfterCorrectedContact(t *testing.T) {
	t.Parallel()
	const mobile = "010-9999-8888"
	foreign := map[string]any{"refundReceiveAccountBank": "20", "refundReceiveAccountNumber": "1002999999999", "refundReceiveAccountHolderName": "직원본인"}
	with := func(body, account map[string]any) map[string]any {
		for name, value := range account {
			body[name] = value
		}
		return body
	}
	for name, enter := range map[string]func(*testing.T, *shop) (id int64){
		"cancellation": func(t *testing.T, s *shop) int64 {
			g := s.guest(t, sandbox.MethodVirtualAccount)
			s.correctedTo(t, g.id, mobile)
			if err := g.Login(s.ctx, mobile); err != nil {
				t.Fatal(err)
			}
			s.answer(t, g.Buyer, "/payment/cancel", with(cancelBody(g.id), foreign), 200, "")
			return g.id
		},
		"exchange": func(t *testing.T, s *shop) int64 {
			g := s.guest(t, sandbox.MethodVirtualAccount)
			s.correctedTo(t, g.id, mobile)
			if err := g.Login(s.ctx, mobile); err != nil {
				t.Fatal(err)
			}
			start, other := g.wish.Start.Add(24*time.Hour), g.wish.Room%6+1
			s.answer(t, g.Buyer, g.exchangePath(), with(g.exchange(other, start, start.Add(time.Hour)), foreign), 200, "")
			s.payHeld(t, g, moneytest.Prices[other])
			return g.id
		},
		"link": func(t *testing.T, s *shop) int64 {
			_, id := s.stuckTransfer(t)
			s.correctedTo(t, id, mobile)
			body := map[string]string{"refundBankCode": "20", "refundAccount": "1002999999999", "refundHolder": "직원본인"}
			reply, err := s.buyer().Post(s.ctx, "/v2/refund-accounts/"+s.refundToken(t, id), body)
			if err != nil || reply.HTTP != http.StatusOK {
				t.Fatalf("%v %s", err, reply.Raw)
			}
			return id
		},
		"exchange that waited for its deposit": func(t *testing.T, s *shop) int64 {
			g := s.loggedIn(t, sandbox.MethodCard)
			order := s.exchanging(t, g, 24*time.Hour)
			s.pay(t, g.Buyer, order, sandbox.MethodVirtualAccount)
			s.correctedTo(t, g.id, mobile)
			s.deposit(t, order.OrderID)
			id := s.await(t, order.OrderID, "DONE")
			if err := g.Login(s.ctx, mobile); err != nil {
				t.Fatal(err)
			}
			s.answer(t, g.Buyer, "/payment/cancel", with(cancelBody(id), foreign), 200, "")
			return id
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			id := enter(t, s)
			if n := s.count(t, `select count(*) from refund where reservation_id = $1 and state = 'FAILED' and account_by = 'admin:desk'`, id); n != 1 {
				t.Fatalf("%d refunds wait for an administrator, want 1", n)
			}
			replica, reservation := s.Replica(t), booking.ReservationID(id)
			if err := replica.ApproveRefund(s.ctx, reservation, frontDesk); !errors.Is(err, reserve.ErrSameAdministrator) {
				t.Errorf("approved by the administrator who corrected the number: %v", err)
			}
			if err := replica.ApproveRefund(s.ctx, reservation, hq); err != nil {
				t.Fatal(err)
			}
			s.refundsDone(t, id)
		})
	}
	t.Run("own account", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		g := s.guest(t, sandbox.MethodVirtualAccount)
		s.correctedTo(t, g.id, mobile)
		if err := g.Login(s.ctx, mobile); err != nil {
			t.Fatal(err)
		}
		var depositor string
		if err := s.DB.Pool.QueryRow(s.ctx, `select account_holder from payment where reservation_id = $1`, g.id).Scan(&depositor); err != nil {
			t.Fatal(err)
		}
		own := map[string]any{"refundReceiveAccountBank": "20", "refundReceiveAccountNumber": "1002123456789", "refundReceiveAccountHolderName": depositor}
		s.answer(t, g.Buyer, "/payment/cancel", with(cancelBody(g.id), own), 200, "")
		s.refundsDone(t, g.id)
	})
}

// TestLinkOfAnExchangedStayFollowsTheContact: the bank has rejected the refund of a stay that its guest has exchanged. If the contact of the new
// stay is corrected, the link that the previous contact has is void, and the new one gets another. An account of a stranger that is entered
// there waits for another administrator.
func TestLinkOfAnExchangedStayFollowsTheContact(t *testing.T) {
	t.Parallel()
	const mobile = "010-9999-3322"
	s := open(t)
	g := s.loggedIn(t, sandbox.MethodVirtualAccount)
	s.fault(t, sandbox.Fault{Target: sandbox.TargetRefund, Kind: sandbox.FaultError, Times: 1})
	start, other := g.wish.Start.Add(24*time.Hour), g.wish.Room%6+1
	s.answer(t, g.Buyer, g.exchangePath(), refundAccount(g.exchange(other, start, start.Add(time.Hour))), 200, "")
	order := s.payHeld(t, g, moneytest.Prices[other])
	id := s.wantState(t, order.OrderID, "DONE")
	s.awaitRefund(t, g.id, "FAILED")
	earlier := s.refundToken(t, g.id)
	s.correctedTo(t, id, mobile)
	replica, stranger := s.Replica(t), guestAccount
	if err := replica.EnterRefundAccount(s.ctx, earlier, guestAccount); !errors.Is(err, reserve.ErrNoRefundLink) {
		t.Fatalf("the link of the previous contact: %v", err)
	}
	stranger.Holder = "다른 사람"
	if err := replica.EnterRefundAccount(s.ctx, s.anotherRefundToken(t, mobile, earlier), stranger); err != nil {
		t.Fatal(err)
	}
	if err := replica.ApproveRefund(s.ctx, booking.ReservationID(g.id), frontDesk); !errors.Is(err, reserve.ErrSameAdministrator) {
		t.Errorf("approved by the administrator who corrected the number: %v", err)
	}
	if err := replica.ApproveRefund(s.ctx, booking.ReservationID(g.id), hq); err != nil {
		t.Fatal(err)
	}
	s.refundsDone(t, g.id)
}

// TestAccountAfterADisabledAdministrator: an administrator of the headquarters has given a stay another phone number and was disabled. An
// account that is entered with a login at that number waits for another administrator.
func TestAccountAfterADisabledAdministrator(t *testing.T) {
	t.Parallel()
	const mobile = "010-9999-4433"
	s := open(t)
	g := s.guest(t, sandbox.MethodVirtualAccount)
	replica, number := s.Replica(t), mobile
	if err := replica.CorrectContact(s.ctx, reserve.ContactCorrection{ID: booking.ReservationID(g.id), Mobile: &number, Reason: "오타", By: hq}); err != nil {
		t.Fatal(err)
	}
	s.exec(t, `update administrator set disabled_at = now() where login_id = $1`, hq.AdminLoginID)
	if err := g.Login(s.ctx, mobile); err != nil {
		t.Fatal(err)
	}
	body := refundAccount(cancelBody(g.id))
	body["refundReceiveAccountHolderName"] = "다른 사람"
	s.answer(t, g.Buyer, "/payment/cancel", body, 200, "")
	if n := s.count(t, `select count(*) from refund where reservation_id = $1 and state = 'FAILED' and account_by = 'admin:hq'`, g.id); n != 1 {
		t.Fatalf("%d refunds wait for an administrator, want 1", n)
	}
	if err := replica.ApproveRefund(s.ctx, booking.ReservationID(g.id), gangnamManager); err != nil {
		t.Fatal(err)
	}
	s.refundsDone(t, g.id)
}

// TestDeclinedAccountIsAskedForAgain: if another administrator declines the account that the guest has named, the guest receives another
// link. The refund goes to the account that is entered there.
func TestDeclinedAccountIsAskedForAgain(t *testing.T) {
	t.Parallel()
	const mobile = "010-9999-6655"
	for name, waiting := range map[string]func(*testing.T, *shop) (id int64, earlier string){
		"cancellation": func(t *testing.T, s *shop) (int64, string) {
			g := s.guest(t, sandbox.MethodVirtualAccount)
			s.correctedTo(t, g.id, mobile)
			if err := g.Login(s.ctx, mobile); err != nil {
				t.Fatal(err)
			}
			body := refundAccount(cancelBody(g.id))
			body["refundReceiveAccountHolderName"] = "다른 사람"
			for range 2 {
				s.answer(t, g.Buyer, "/payment/cancel", body, 200, "")
			}
			return g.id, ""
		},
		"compensation": func(t *testing.T, s *shop) (int64, string) {
			_, id := s.stuckTransfer(t)
			s.noneWaits(t)
			s.correctedTo(t, id, mobile)
			token, stranger := s.refundToken(t, id), guestAccount
			stranger.Holder = "다른 사람"
			if err := s.Replica(t).EnterRefundAccount(s.ctx, token, stranger); err != nil {
				t.Fatal(err)
			}
			return id, token
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			id, earlier := waiting(t, s)
			replica := s.Replica(t)
			if err := replica.DeclineRefund(s.ctx, booking.ReservationID(id), hq); err != nil {
				t.Fatal(err)
			}
			own := guestAccount
			if err := s.DB.Pool.QueryRow(s.ctx, `select account_holder from payment where reservation_id = $1`, id).Scan(&own.Holder); err != nil {
				t.Fatal(err)
			}
			token := s.anotherRefundToken(t, mobile, earlier)
			if err := replica.EnterRefundAccount(s.ctx, token, own); err != nil {
				t.Fatal(err)
			}
			s.refundsDone(t, id)
		})
	}
}

// TestCorrectedContactReceivesTheAccount: the account of a stay, of an extension or of an exchange that waits for its deposit is sent to the corrected
// contact, too. It has no key, so without this message the new contact has nothing, and the reservation expires.
func TestCorrectedContactReceivesTheAccount(t *testing.T) {
	t.Parallel()
	const mobile = "010-9999-7788"
	for name, waiting := range map[string]func(*testing.T, *shop) (id int64, order string, want []string){
		"stay": func(t *testing.T, s *shop) (int64, string, []string) {
			_, order, _ := s.bought(t, sandbox.MethodVirtualAccount)
			return s.wantState(t, order.OrderID, "WAITING_FOR_DEPOSIT"), order.OrderID, []string{"virtual-account-issued"}
		},
		"extension": func(t *testing.T, s *shop) (int64, string, []string) {
			g := s.guest(t, sandbox.MethodCard)
			order := g.hold(t, s, g.end().Add(30*time.Minute))
			s.pay(t, g.Buyer, order, sandbox.MethodVirtualAccount)
			s.wantState(t, order.OrderID, "WAITING_FOR_DEPOSIT")
			return g.id, order.OrderID, []string{"key-changed", "virtual-account-issued"}
		},
		"exchange": func(t *testing.T, s *shop) (int64, string, []string) {
			g := s.loggedIn(t, sandbox.MethodCard)
			order := s.exchanging(t, g, 24*time.Hour)
			s.pay(t, g.Buyer, order, sandbox.MethodVirtualAccount)
			s.wantState(t, order.OrderID, "WAITING_FOR_DEPOSIT")
			return g.id, order.OrderID, []string{"key-changed", "virtual-account-issued"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			id, order, want := waiting(t, s)
			s.noneWaits(t)
			s.correctedTo(t, id, mobile)
			s.noneWaits(t)
			got := slices.Sorted(slices.Values(s.messages(mobile)))
			if !slices.Equal(got, want) {
				t.Fatalf("messages to the corrected number: %v, want %v", got, want)
			}
			var number string
			if err := s.DB.Pool.QueryRow(s.ctx, `select p.account_number from payment p join reservation r on r.id = p.reservation_id where r.order_id = $1`, order).Scan(&number); err != nil {
				t.Fatal(err)
			}
			for _, m := range s.Sandbox.Messages(mobile) {
				if m.Template == "virtual-account-issued" && !strings.Contains(m.Text, number) {
					t.Errorf("the message lacks the account %s: %s", number, m.Text)
				}
			}
			s.deposit(t, order)
			s.await(t, order, "DONE")
		})
	}
}

// TestDeclinedRefundByHandRevivesNoLink: while a refund by hand waits for another administrator, the link of the refund is out of use. If the
// contact is corrected meanwhile and the refund by hand is declined, the link of the previous contact stays invalid, and the new one gets another.
func TestDeclinedRefundByHandRevivesNoLink(t *testing.T) {
	t.Parallel()
	const mobile = "010-9999-5544"
	s := open(t)
	_, _, id := s.partAtBank(t, sandbox.FaultError)
	s.awaitRefund(t, id, "FAILED")
	earlier := s.refundToken(t, id)
	replica, reservation := s.limited(t, 500), booking.ReservationID(id)
	request := reserve.OutsideRequest{ID: reservation, Amount: 1000, Reason: "계좌 폐쇄", How: "계좌 이체", Reference: "4711", By: hq}
	if got, err := replica.SettleOutside(s.ctx, request); err != nil || !got.Waits {
		t.Fatalf("got %+v, %v", got, err)
	}
	s.correctedTo(t, id, mobile)
	if err := replica.DeclineRefund(s.ctx, reservation, gangnamManager); err != nil {
		t.Fatal(err)
	}
	if err := replica.EnterRefundAccount(s.ctx, earlier, guestAccount); !errors.Is(err, reserve.ErrNoRefundLink) {
		t.Fatalf("the link of the previous contact: %v", err)
	}
	own := guestAccount
	if err := s.DB.Pool.QueryRow(s.ctx, `select account_holder from payment where reservation_id = $1`, id).Scan(&own.Holder); err != nil {
		t.Fatal(err)
	}
	if err := replica.EnterRefundAccount(s.ctx, s.anotherRefundToken(t, mobile, earlier), own); err != nil {
		t.Fatal(err)
	}
	s.refundsDone(t, id)
}

// TestCorrectedExchangeLeavesTheStay corrects the contact of an exchange that waits for its deposit, while a refund of the stay waits for another
// administrator. The stay keeps its contact with its key: with another contact, the former one would have a valid key.
func TestCorrectedExchangeLeavesTheStay(t *testing.T) {
	t.Parallel()
	s := open(t)
	g := s.loggedIn(t, sandbox.MethodCard)
	if got, err := s.limited(t, 100).RefundPart(s.ctx, part(g.id, 1000)); err != nil || !got.Waits {
		t.Fatalf("%+v, %v; want a refund that waits", got, err)
	}
	order := s.exchanging(t, g, 24*time.Hour)
	s.pay(t, g.Buyer, order, sandbox.MethodVirtualAccount)
	before := s.mobile(t, g.id)
	s.correctedTo(t, s.wantState(t, order.OrderID, "WAITING_FOR_DEPOSIT"), "010-9999-8888")
	if now := s.mobile(t, g.id); now != before {
		t.Errorf("the stay has the number %s and the key that %s has received", now, before)
	}
	if err := s.Replica(t).DeclineRefund(s.ctx, booking.ReservationID(g.id), hq); err != nil {
		t.Fatal(err)
	}
}
