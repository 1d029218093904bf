package reserve_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/account"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/moneytest"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
	"github.com/yeolda/yeolda/cloud/internal/sandbox"
	"github.com/yeolda/yeolda/cloud/internal/toss"
)

// lee is another administrator of every branch.
var lee = account.Principal{LoginType: account.LoginAdmin, AdminLoginID: "lee", Role: account.HQ}

// TestRandomRefunds has a guest, two administrators, the bank and the provider's dashboard act on stays at random. Then the
// administrators end what is open by approving and by naming the guest's account, as they can in the console. Nothing stays open,
// and every guest has what the refunds state, once.
func TestRandomRefunds(t *testing.T) {
	t.Parallel()
	for first := 0; first < *sequences; first += sequencesPerShop {
		n := min(sequencesPerShop, *sequences-first)
		t.Run(fmt.Sprint(first), func(t *testing.T) { refundAtRandom(t, *firstSeed+uint64(first), n) })
	}
}

func refundAtRandom(t *testing.T, seed uint64, n int) {
	s := open(t)
	s.exec(t, `update branch set refund_policy = $1 where code = 'gangnam'`, `[{"untilMinutesBefore":2880,"percent":67},{"untilMinutesBefore":30,"percent":33}]`)
	const workers = 4
	played := make([]*refunds, n)
	origin := s.Clock.Now().Truncate(10 * time.Minute).Add(24 * time.Hour)
	service := s.limited(t, 7000)
	err := together(workers, func(w int) error {
		for i := w; i < n; i += workers {
			r := &refunds{s: s, service: service, rng: rand.New(rand.NewPCG(seed+uint64(i), 3))}
			played[i] = r
			if err := r.run(i, origin); err != nil {
				return fmt.Errorf("sequence %d: %w: %v", i, err, r.trace)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for i, r := range played {
			if t.Failed() && r.id != 0 {
				t.Logf("sequence %d, order %s, reservation %d:\n%s", i, r.order.OrderID, r.id, strings.Join(r.trace, "\n"))
			}
		}
	})
	s.Sandbox.ClearFaults()
	s.Provider.Advance(slowTransfer)
	s.eventually(t, "no refund is open", func() bool {
		for _, r := range played { // jobs run by the real time, which the clock of the test has left behind
			if r.id == 0 {
				continue // nothing was bought
			}
			if err := service.Settle(s.ctx, booking.ReservationID(r.id)); err != nil && !possible(err) {
				t.Fatal(err)
			}
		}
		return s.endRefunds(t, service) == 0
	})
	if n := s.count(t, `select count(*) from refund f join reservation r on r.id = f.reservation_id where r.method <> $1 and f.error_code = 'INVALID_REQUEST'`, sandbox.MethodVirtualAccount); n > 0 {
		t.Errorf("%d refunds that are no deposits were sent with an account", n)
	}
	for i, r := range played {
		if problem := r.problem(); problem != "" {
			t.Errorf("sequence %d: %s: %v", i, problem, r.trace)
		}
	}
}

// endRefunds approves, or sends again, each refund that waits for an administrator, in the provider's dashboard if the service
// cannot. It returns how many refunds and reservations are not ended.
func (s *shop) endRefunds(t *testing.T, service *reserve.Service) (open int) {
	t.Helper()
	rows, err := s.DB.Pool.Query(s.ctx, `select r.id, r.order_id, p.payment_key, r.method = $1
		from refund f join reservation r on r.id = f.reservation_id join payment p on p.reservation_id = r.id
		where f.state = 'FAILED' order by f.id`, sandbox.MethodVirtualAccount)
	if err != nil {
		t.Fatal(err)
	}
	type failed struct {
		ID         int64
		Order, Key string
		Deposit    bool
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[failed])
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range list {
		id := booking.ReservationID(f.ID)
		err := service.ApproveRefund(s.ctx, id, lee)
		if errors.Is(err, reserve.ErrSameAdministrator) {
			err = service.ApproveRefund(s.ctx, id, hq)
		}
		if errors.Is(err, reserve.ErrNotFound) {
			request := reserve.RetryRefundRequest{ID: id, By: hq}
			if f.Deposit {
				request.Account = &guestAccount
			}
			err = service.RetryRefund(s.ctx, request)
		}
		if refused := (*reserve.PaymentRefused)(nil); errors.As(err, &refused) && refused.Code == "OTHER_TRANSFER_OPEN" {
			won := s.Sandbox.Bounced(f.Order)
			_, err = service.Payments.Cancel(s.ctx, widget, fmt.Sprint("repeated-", f.Order, won), f.Key,
				toss.CancelRequest{Reason: "재송금", Amount: &won, RefundAccount: &guestAccount})
		}
		if err != nil && !possible(err) {
			t.Errorf("reservation %d: %v", f.ID, err)
		}
	}
	return s.count(t, `select (select count(*) from refund where state in ('REQUESTED', 'PENDING', 'FAILED'))
		+ (select count(*) from reservation where state in ('CONFIRMING', 'CANCELING'))`)
}

// possible reports whether an error is the rejection of a request at a time when it cannot be executed.
func possible(err error) bool {
	if refused := (*reserve.PaymentRefused)(nil); errors.As(err, &refused) {
		return true
	}
	for _, one := range []error{
		reserve.ErrPaymentPending, reserve.ErrNotFound, reserve.ErrSameAdministrator, reserve.ErrNothingToRefund, reserve.ErrExceedsBalance,
		reserve.ErrStatusMismatch, reserve.ErrAccountRequired, reserve.ErrNoRefundLink, reserve.ErrRefundOpen,
	} {
		if errors.Is(err, one) {
			return true
		}
	}
	return false
}

// refunds is one sequence.
type refunds struct {
	s       *shop
	service *reserve.Service
	rng     *rand.Rand

	guest   *moneytest.Buyer
	order   moneytest.Confirm
	mobile  string
	id      int64
	deposit bool
	byHand  bool // an administrator may have returned money outside the provider
	trace   []string
}

func (r *refunds) run(n int, origin time.Time) error {
	method := sandbox.MethodCard
	if r.deposit = r.rng.IntN(4) > 0; r.deposit {
		method = sandbox.MethodVirtualAccount
	}
	r.guest, r.mobile = r.s.buyer(), fmt.Sprintf("0105%07d", n)
	order, err := r.guest.Buy(r.s.ctx, moneytest.Wish{Room: n%6 + 1, Start: origin.Add(time.Duration(n/6) * 2 * time.Hour), Method: method, Mobile: r.mobile})
	if err != nil {
		return nil //nolint:nilerr // a lost answer
	}
	r.order = order
	if err := r.guest.Login(r.s.ctx, r.mobile); err != nil {
		return nil //nolint:nilerr // another sequence has moved the clock beyond the life of the code
	}
	if err := r.s.DB.Pool.QueryRow(r.s.ctx, `select id from reservation where order_id = $1`, order.OrderID).Scan(&r.id); err != nil {
		return err
	}
	if r.deposit {
		r.bank(r.s.Sandbox.Deposit)
	}
	for range 3 + r.rng.IntN(9) {
		what, err := r.step()
		r.trace = append(r.trace, fmt.Sprintf("%s: %v", what, err))
		if err != nil && !possible(err) {
			return err
		}
		if r.rng.IntN(3) == 0 {
			r.s.Clock.Advance(time.Duration(r.rng.IntN(30)) * time.Second)
			r.s.Provider.Advance(slowTransfer / 8)
		}
	}
	return nil
}

// account returns the account of the guest, of a stranger, or none. Administrators also name one for payments that are not deposits.
func (r *refunds) account() *toss.RefundAccount {
	to := guestAccount
	switch {
	case !r.deposit && r.rng.IntN(2) == 0, r.rng.IntN(8) == 0:
		return nil
	case r.rng.IntN(3) == 0:
		to.Holder = "다른 사람"
	}
	return &to
}

func (r *refunds) administrator() account.Principal {
	if r.rng.IntN(2) == 0 {
		return lee
	}
	return hq
}

// step is one act. Its error may be that the act is not possible at present.
func (r *refunds) step() (what string, err error) {
	id, by := booking.ReservationID(r.id), r.administrator()
	switch r.rng.IntN(16) {
	case 0:
		return "the bank rejects", r.s.Sandbox.SetFault(sandbox.Fault{Target: sandbox.TargetRefund, Kind: sandbox.FaultError, Times: 1})
	case 1:
		return "the bank is slow", r.s.Sandbox.SetFault(sandbox.Fault{Target: sandbox.TargetRefund, Kind: sandbox.FaultSlow, Delay: slowTransfer, Times: 1})
	case 2:
		kind := []sandbox.FaultKind{sandbox.FaultDropAfterCommit, sandbox.FaultError}[r.rng.IntN(2)]
		target := []sandbox.FaultTarget{sandbox.TargetCancel, sandbox.TargetGet}[r.rng.IntN(2)]
		return fmt.Sprint(target, " ", kind), r.s.Sandbox.SetFault(sandbox.Fault{Target: target, Kind: kind, Times: 1, Status: 500})
	case 3:
		return "the provider declines", r.s.Sandbox.SetFault(sandbox.Fault{Target: sandbox.TargetCancel, Kind: sandbox.FaultError, Times: 1, Status: 400, Code: "EXCEED_MAX_REFUND_DUE"})
	case 4, 5:
		request := part(r.id, 1+r.rng.IntN(6000))
		request.Account, request.By = r.account(), by
		result, err := r.service.RefundPart(r.s.ctx, request)
		return fmt.Sprintf("part %+v", result), err
	case 6, 7:
		to := r.account()
		return fmt.Sprintf("retry by %s to %+v", by.AdminLoginID, to), r.service.RetryRefund(r.s.ctx, reserve.RetryRefundRequest{ID: id, Account: to, By: by})
	case 8:
		return "approve by " + by.AdminLoginID, r.service.ApproveRefund(r.s.ctx, id, by)
	case 9:
		return "decline by " + by.AdminLoginID, r.service.DeclineRefund(r.s.ctx, id, by)
	case 10:
		reply, err := r.guest.Post(r.s.ctx, "/payment/cancel", refundAccount(cancelBody(r.id)))
		if err == nil && reply.HTTP == http.StatusInternalServerError {
			err = errors.New(reply.Raw)
		}
		return fmt.Sprint("the guest cancels: ", reply.HTTP, " ", reply.ErrorType), err
	case 11:
		to := r.account()
		return fmt.Sprintf("cancel by %s to %+v", by.AdminLoginID, to), r.service.AdminCancel(r.s.ctx, reserve.AdminCancelRequest{ID: id, Status: "DONE", Account: to, By: by})
	case 12:
		r.byHand = true
		request := outside(r.id, r.rng.IntN(2)*(1+r.rng.IntN(9000)))
		request.By = by
		result, err := r.service.SettleOutside(r.s.ctx, request)
		return fmt.Sprintf("by hand, by %s: %d, %+v", by.AdminLoginID, request.Amount, result), err
	case 13:
		return r.dashboard(), nil
	case 14:
		if r.rng.IntN(2) == 0 {
			return fmt.Sprint("reversed: ", r.bank(r.s.Sandbox.Reverse)), nil
		}
		return fmt.Sprint("deposit: ", r.bank(r.s.Sandbox.Deposit)), nil
	}
	return "link", r.link()
}

// bank has the bank move a deposit, and waits until the service has received the callback.
func (r *refunds) bank(move func(string) (*sandbox.Delivery, error)) error {
	delivery, err := move(r.order.OrderID)
	if err == nil {
		_, err = delivery.First(r.s.ctx)
	}
	return err
}

// dashboard returns money in the provider's dashboard, or repeats a transfer that the bank has rejected, except after a refund by
// hand: a person would return the money twice.
func (r *refunds) dashboard() string {
	if r.byHand {
		return "dashboard: after a refund by hand"
	}
	request := toss.CancelRequest{Reason: "고객 요청"}
	if r.deposit {
		request.RefundAccount = &guestAccount
	}
	if r.rng.IntN(2) == 0 {
		won := 1 + r.rng.IntN(5000)
		if bounced := r.s.Sandbox.Bounced(r.order.OrderID); bounced > 0 {
			won = bounced
		}
		request.Amount = &won
	}
	p, err := r.service.Payments.Cancel(r.s.ctx, widget, fmt.Sprint("dashboard-", r.order.OrderID, len(r.trace)), r.order.PaymentKey, request)
	return fmt.Sprintf("dashboard: %d won left, %v", p.BalanceAmount, err)
}

// link enters the guest's account at the last refund link that the guest has received.
func (r *refunds) link() error {
	token := ""
	for _, m := range r.s.Sandbox.Messages(r.mobile) {
		if m.Template == "refund-account" {
			token = path.Base(m.Variables["link"])
		}
	}
	if token == "" {
		return nil
	}
	return r.service.EnterRefundAccount(r.s.ctx, token, guestAccount)
}

// problem compares what the guest has received with the records after the end.
func (r *refunds) problem() string {
	if r.id == 0 {
		return ""
	}
	var (
		state                        string
		completed, outside, retained int
	)
	err := r.s.DB.Pool.QueryRow(r.s.ctx, `select r.state, coalesce(p.settled_outside, 0), coalesce(p.retained, 0),
		coalesce((select sum(amount) from refund where reservation_id = r.id and state = 'COMPLETED'), 0)
		from reservation r join payment p on p.reservation_id = r.id where r.id = $1`, r.id).Scan(&state, &outside, &retained, &completed)
	if err != nil {
		return err.Error()
	}
	p, returned := r.s.Sandbox.Payments(r.order.OrderID)[0], outside
	if p.ApprovedAt != nil {
		returned += p.TotalAmount - p.BalanceAmount - r.s.Sandbox.Bounced(r.order.OrderID)
	}
	switch {
	case completed > returned, state == "DONE" && completed != returned: // a cancellation may be earlier than the record of the dashboard's part
		return fmt.Sprintf("the guest has %d won, refunds of %d won are completed", returned, completed)
	case returned > p.TotalAmount:
		return fmt.Sprintf("the guest has %d of %d won", returned, p.TotalAmount)
	case state == "CANCELED" && outside == 0 && p.ApprovedAt != nil && p.TotalAmount-returned > retained:
		return fmt.Sprintf("the guest has %d of %d won, the shop may keep %d", returned, p.TotalAmount, retained)
	}
	return ""
}
