package reserve_test

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/money"
	"github.com/yeolda/yeolda/cloud/internal/moneytest"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
	"github.com/yeolda/yeolda/cloud/internal/sandbox"
)

var personal = map[string]string{"type": "personal", "number": "010-1234-5678"}

// wishing returns a purchase by virtual account, or by another method, that asks for a cash receipt and is paid.
func (s *shop) wishing(t *testing.T, method string, receipt any) (*moneytest.Buyer, moneytest.Confirm, int64) {
	t.Helper()
	b, w := s.buyer(), s.wish(method)
	if err := b.Hold(s.ctx, w); err != nil {
		t.Fatal(err)
	}
	order := moneytest.Confirm{Amount: moneytest.Prices[w.Room]}
	reply := s.answer(t, b, "/payment", map[string]any{"amount": order.Amount, "name": "홍길동", "mobileNum": w.Mobile, "cashReceipt": receipt}, 200, "")
	if err := json.Unmarshal(reply.Data, &order); err != nil {
		t.Fatal(err)
	}
	var err error
	if order.PaymentKey, err = s.Sandbox.Authenticate(sandbox.Checkout{OrderID: order.OrderID, Amount: order.Amount, Method: method, Bank: "20"}); err != nil {
		t.Fatal(err)
	}
	s.answer(t, b, "/payment/confirm", order, 200, "")
	if method == sandbox.MethodVirtualAccount {
		if _, err := s.Sandbox.Deposit(order.OrderID); err != nil {
			t.Fatal(err)
		}
	}
	id := s.await(t, order.OrderID, "DONE")
	if err := b.Login(s.ctx, w.Mobile); err != nil {
		t.Fatal(err)
	}
	return b, order, id
}

// receipts returns what the provider has issued and canceled for an order, in won; canceled is negative.
func (s *shop) receipts(order moneytest.Confirm) (won []int) {
	prefix := fmt.Sprintf("cash-%x-", sha256.Sum256([]byte(order.OrderID)))[:5+32]
	for _, r := range s.Sandbox.CashReceipts() {
		switch {
		case !strings.HasPrefix(r.OrderID, prefix), r.IssueStatus == "FAILED":
		case r.TransactionType == "CANCEL":
			won = append(won, -r.Amount)
		default:
			won = append(won, r.Amount)
		}
	}
	return won
}

// awaitReceipt takes the steps of a reservation's cash receipt, each at the time at which it is due, until the receipt is in a
// state and for an amount.
func (s *shop) awaitReceipt(t *testing.T, replica *reserve.Service, id int64, want money.ReceiptState, won int) {
	t.Helper()
	var (
		state    money.ReceiptState
		standing int
		at       *time.Time
	)
	for s.ctx.Err() == nil {
		if err := s.DB.Pool.QueryRow(s.ctx, `select state, standing, check_at from cash_receipt where reservation_id = $1`, id).Scan(&state, &standing, &at); err != nil {
			t.Fatal(err)
		}
		if state == want && standing == won {
			return
		}
		if at == nil {
			time.Sleep(10 * time.Millisecond) // rows of another process: there is no event to wait for
			continue
		}
		if left := at.Sub(s.Clock.Now()); left > 0 {
			s.Clock.Advance(left)
		}
		if err := replica.SettleReceipt(s.ctx, booking.ReservationID(id)); err != nil {
			t.Fatal(err)
		}
	}
	t.Fatalf("the cash receipt is %s for %d won, want %s for %d", state, standing, want, won)
}

func (s *shop) wantReceipts(t *testing.T, order moneytest.Confirm, want ...int) {
	t.Helper()
	if got := s.receipts(order); !slices.Equal(got, want) {
		t.Errorf("receipts of %v, want %v", got, want)
	}
}

// cancelStay cancels a stay by the guest, to the guest's account.
func (s *shop) cancelStay(t *testing.T, b *moneytest.Buyer, id int64) {
	t.Helper()
	s.answer(t, b, "/payment/cancel", refundAccount(map[string]any{"id": id, "cancelReason": "변심"}), 200, "")
}

// A cash receipt is issued once after the deposit, shown without its number, and canceled with the refund.
func TestCashReceipt(t *testing.T) {
	t.Parallel()
	s := open(t)
	replica := s.Replica(t)
	b, order, id := s.wishing(t, sandbox.MethodVirtualAccount, personal)
	s.awaitReceipt(t, replica, id, money.ReceiptCompleted, order.Amount)
	s.wantReceipts(t, order, order.Amount)
	for _, path := range []string{"/v2/receipt", "/my-reservations"} {
		reply, err := b.Do(s.ctx, "GET", path, nil)
		if err != nil || !strings.Contains(reply.Raw, `"cashReceipt":{"type":"personal","number":"010****678","status":"completed"`) || strings.Contains(reply.Raw, "1234-5678") {
			t.Errorf("%s: %s %v", path, reply.Raw, err)
		}
	}
	s.cancelStay(t, b, id)
	s.awaitReceipt(t, replica, id, money.ReceiptCanceled, 0)
	s.wantReceipts(t, order, order.Amount, -order.Amount)

	// After a partial refund it is canceled and issued for what is left.
	b, order, id = s.wishing(t, sandbox.MethodVirtualAccount, map[string]string{"type": "business", "number": "123-45-67891"})
	s.awaitReceipt(t, replica, id, money.ReceiptCompleted, order.Amount)
	if _, err := replica.RefundPart(s.ctx, part(id, 1000)); err != nil {
		t.Fatal(err)
	}
	s.awaitReceipt(t, replica, id, money.ReceiptCompleted, order.Amount-1000)
	s.refundsDone(t, id)
	s.cancelStay(t, b, id)
	s.awaitReceipt(t, replica, id, money.ReceiptCanceled, 0)
	s.wantReceipts(t, order, order.Amount, -order.Amount, order.Amount-1000, 1000-order.Amount)

	// Another method needs none, and neither does a payment that has one of the provider.
	_, card, paid := s.wishing(t, sandbox.MethodCard, personal)
	if n := s.count(t, `select count(*) from cash_receipt where reservation_id = $1 and state = 'requested' and check_at is null`, paid); n != 1 {
		t.Error("a payment by card has a cash receipt")
	}
	s.wantReceipts(t, card)
	b, order, id = s.wishing(t, sandbox.MethodVirtualAccount, nil)
	if err := s.Sandbox.IssueWithPayment(order.OrderID); err != nil {
		t.Fatal(err)
	}
	wish := reserve.ReceiptWish{Type: money.PersonalReceipt, Number: "01012345678"}
	if _, err := replica.SettleCashReceipt(s.ctx, reserve.ReceiptRequest{ID: booking.ReservationID(id), Wish: wish, By: hq}); err != nil {
		t.Fatal(err)
	}
	s.awaitReceipt(t, replica, id, money.ReceiptWithPayment, 0)
	s.cancelStay(t, b, id)
	s.wantReceipts(t, order)

	// A malformed number is refused before the payment.
	buyer, w := s.buyer(), s.wish(sandbox.MethodVirtualAccount)
	if err := buyer.Hold(s.ctx, w); err != nil {
		t.Fatal(err)
	}
	s.answer(t, buyer, "/payment", map[string]any{"amount": moneytest.Prices[w.Room], "name": "홍길동", "mobileNum": w.Mobile,
		"cashReceipt": map[string]string{"type": "business", "number": "1234567890"}}, 400, "IllegalArguemntError")
}

// One receipt is issued and one canceled, with lost answers, failing calls and two replicas at work.
func TestCashReceiptOnce(t *testing.T) {
	t.Parallel()
	s := open(t)
	replica := s.Replica(t)
	for name, faults := range map[string][]sandbox.Fault{
		"lost answers":      {{Target: sandbox.TargetCashReceipts, Kind: sandbox.FaultDropAfterCommit, Times: 2}},
		"no answer":         {{Target: sandbox.TargetCashReceipts, Kind: sandbox.FaultError, Status: 503, Times: 2}},
		"failing look-up":   {{Target: sandbox.TargetCashReceipts, Kind: sandbox.FaultDropAfterCommit}, {Target: sandbox.TargetGet, Kind: sandbox.FaultError, Status: 500, Times: 3}},
		"temporary refusal": {{Target: sandbox.TargetCashReceipts, Kind: sandbox.FaultError, Code: "PROVIDER_ERROR", Times: 2}},
	} {
		b, order, id := s.wishing(t, sandbox.MethodVirtualAccount, nil)
		for _, f := range faults {
			s.fault(t, f)
		}
		wish := reserve.ReceiptRequest{ID: booking.ReservationID(id), Wish: reserve.ReceiptWish{Type: money.PersonalReceipt, Number: "01012345678"}, By: hq}
		if _, err := replica.SettleCashReceipt(s.ctx, wish); err != nil {
			t.Fatal(name, err)
		}
		if err := together(4, func(int) error { return replica.SettleReceipt(s.ctx, booking.ReservationID(id)) }); err != nil {
			t.Fatal(name, err)
		}
		s.awaitReceipt(t, replica, id, money.ReceiptCompleted, order.Amount)
		s.Sandbox.ClearFaults()
		for _, f := range faults {
			if f.Target == sandbox.TargetCashReceipts { // the cancellation of the stay reads the payment, too
				s.fault(t, f)
			}
		}
		s.cancelStay(t, b, id)
		s.awaitReceipt(t, replica, id, money.ReceiptCanceled, 0)
		s.Sandbox.ClearFaults()
		s.wantReceipts(t, order, order.Amount, -order.Amount)
	}
}

// A receipt that the provider or the tax office refuses waits for an administrator, who tries another number or ends it.
func TestCashReceiptFails(t *testing.T) {
	t.Parallel()
	s := open(t)
	replica := s.Replica(t)
	decide := func(id int64, wish reserve.ReceiptWish, how string) error {
		_, err := replica.SettleCashReceipt(s.ctx, reserve.ReceiptRequest{ID: booking.ReservationID(id), Wish: wish, How: how, Reference: "승인번호 1", By: hq})
		return err
	}
	refused := sandbox.Fault{Target: sandbox.TargetCashReceipts, Kind: sandbox.FaultError, Code: "INVALID_REQUEST"}
	s.fault(t, refused)
	_, order, id := s.wishing(t, sandbox.MethodVirtualAccount, personal)
	s.awaitReceipt(t, replica, id, money.ReceiptFailed, 0)
	s.fault(t, sandbox.Fault{Target: sandbox.TargetTaxOffice, Kind: sandbox.FaultError})
	if err := decide(id, reserve.ReceiptWish{Type: money.PersonalReceipt, Number: "01099998888"}, ""); err != nil {
		t.Fatal(err)
	}
	s.awaitReceipt(t, replica, id, money.ReceiptFailed, 0)
	s.wantReceipts(t, order)
	if err := decide(id, reserve.ReceiptWish{}, ""); err != nil {
		t.Fatal(err)
	}
	s.awaitReceipt(t, replica, id, money.ReceiptCompleted, order.Amount)
	s.wantReceipts(t, order, order.Amount)
	if err := decide(id, reserve.ReceiptWish{}, ""); !errors.Is(err, reserve.ErrReceiptStands) {
		t.Errorf("a receipt that stands is asked for again: %v", err)
	}

	s.fault(t, refused)
	_, order, id = s.wishing(t, sandbox.MethodVirtualAccount, personal)
	s.awaitReceipt(t, replica, id, money.ReceiptFailed, 0)
	if err := decide(id, reserve.ReceiptWish{}, "홈택스"); err != nil {
		t.Fatal(err)
	}
	s.awaitReceipt(t, replica, id, money.ReceiptOutside, order.Amount)
	s.wantReceipts(t, order)
}

// A receipt that was issued by hand is on the money desk again once the deposit is refunded: the tax office has a sale that has not taken place.
func TestCashReceiptByHandAfterRefund(t *testing.T) {
	t.Parallel()
	s := open(t)
	replica := s.Replica(t)
	byHand := func(id int64) {
		t.Helper()
		if _, err := replica.SettleCashReceipt(s.ctx, reserve.ReceiptRequest{ID: booking.ReservationID(id), How: "홈택스", Reference: "승인번호 1", By: hq}); err != nil {
			t.Fatal(err)
		}
	}
	s.fault(t, sandbox.Fault{Target: sandbox.TargetCashReceipts, Kind: sandbox.FaultError, Code: "INVALID_REQUEST"})
	b, order, id := s.wishing(t, sandbox.MethodVirtualAccount, personal)
	s.awaitReceipt(t, replica, id, money.ReceiptFailed, 0)
	byHand(id)
	s.awaitReceipt(t, replica, id, money.ReceiptOutside, order.Amount)
	s.reverse(t, order.OrderID)
	s.awaitReceipt(t, replica, id, money.ReceiptFailed, order.Amount)
	s.deposit(t, order.OrderID)
	s.awaitReceipt(t, replica, id, money.ReceiptOutside, order.Amount)
	s.cancelStay(t, b, id)
	s.awaitReceipt(t, replica, id, money.ReceiptFailed, order.Amount)
	desk, err := postgres.DeskQueue(s.ctx, s.DB.Pool, nil, s.Clock.Now(), 10)
	if err != nil || !slices.ContainsFunc(desk, func(i postgres.DeskItem) bool {
		return i.Kind == "cash-receipt" && int64(i.Reservation) == id && i.Amount == order.Amount
	}) {
		t.Errorf("money desk %+v (%v), want the receipt of %d won", desk, err, order.Amount)
	}
	byHand(id)
	s.awaitReceipt(t, replica, id, money.ReceiptOutside, 0)
	s.wantReceipts(t, order)
}

// TestReceiptOfWhatThePolicyKeeps: the bank rejects the refund that the policy leaves to the guest, and an administrator returns it by hand.
// The cash receipt remains that of the share of the shop.
func TestReceiptOfWhatThePolicyKeeps(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.exec(t, `update branch set refund_policy = $1 where code = 'gangnam'`, `[{"untilMinutesBefore":30,"percent":75}]`)
	b, order, id := s.wishing(t, sandbox.MethodVirtualAccount, personal)
	replica := s.Replica(t)
	s.awaitReceipt(t, replica, id, money.ReceiptCompleted, order.Amount)
	s.fault(t, sandbox.Fault{Target: sandbox.TargetRefund, Kind: sandbox.FaultError, Times: 1})
	s.cancelStay(t, b, id)
	s.awaitRefund(t, id, "FAILED")
	keeps := order.Amount - order.Amount*75/100
	s.awaitReceipt(t, replica, id, money.ReceiptCompleted, keeps)
	if _, err := replica.SettleOutside(s.ctx, outside(id, 0)); err != nil {
		t.Fatal(err)
	}
	if n := s.count(t, `select count(*) from cash_receipt where reservation_id = $1 and state = 'completed' and check_at is null`, id); n != 1 {
		t.Error("the cash receipt has another step")
	}
	s.wantReceipts(t, order, order.Amount, -order.Amount, keeps)
}
