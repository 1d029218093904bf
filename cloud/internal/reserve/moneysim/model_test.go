package moneysim

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"github.com/yeolda/yeolda/cloud/internal/account"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/pgtest"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/queue"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
	"github.com/yeolda/yeolda/cloud/internal/seal"
	"github.com/yeolda/yeolda/cloud/internal/toss"
)

// TestModelMatchesService applies the same random operations to the simulation's model and to reserve.Service on PostgreSQL.
// The provider gives both the same random responses, and every row must be equal.
func TestModelMatchesService(t *testing.T) {
	t.Parallel()
	r := newReal(t)
	rapid.Check(t, func(t *rapid.T) {
		b := r.both(t)
		t.Repeat(map[string]func(*rapid.T){
			"hold": b.hold, "confirm": b.confirm, "settle": b.settle, "settle due": b.settleDue, "cancel": b.cancel,
			"callback": b.callback, "retry refund": b.retryRefund, "refund part": b.refundPart, "extend": b.extend, "exchange": b.exchange, "cancel with a part at the bank": b.cancelWithPart,
			"policy": b.policy, "cancel by policy": b.cancelByPolicy, "cancel an extended stay": b.cancelExtended, "time passes": b.pass, "": b.compare,
		})
	})
}

// kim is an administrator of every branch.
var kim = account.Principal{LoginType: account.LoginAdmin, AdminLoginID: "kim", Role: account.HQ}

// script is a provider with scripted responses: an http.RoundTripper under the real client.
type script struct {
	mu                    sync.Mutex
	confirm, look, cancel reply
}

// reply is a payment, an error with a code, or no response.
type reply struct {
	payment map[string]any
	status  int
	code    string
}

// RoundTrip implements http.RoundTripper.
func (s *script) RoundTrip(req *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.look
	switch {
	case strings.HasSuffix(req.URL.Path, "/confirm"):
		r = s.confirm
	case strings.HasSuffix(req.URL.Path, "/cancel"):
		r = s.cancel
	}
	var body any = r.payment
	if r.payment == nil {
		if r.status == 0 {
			return nil, errGone
		}
		body = map[string]any{"code": r.code, "message": "안내"}
	}
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: max(r.status, 200), Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(bytes.NewReader(text)), Request: req}, nil
}

// codes are errors of every class, and one with an unlisted code.
var codes = []reply{
	{}, {status: 500, code: "FAILED_INTERNAL_SYSTEM_PROCESSING"}, {status: 409, code: "IDEMPOTENT_REQUEST_PROCESSING"},
	{status: 404, code: "NOT_FOUND_PAYMENT"}, {status: 400, code: "ALREADY_PROCESSED_PAYMENT"}, {status: 400, code: "CARD_PROCESSING_ERROR"},
	{status: 403, code: "REJECT_CARD_COMPANY"}, {status: 403, code: "NOT_CANCELABLE_PAYMENT"}, {status: 400, code: "ALREADY_CANCELED_PAYMENT"},
	{status: 403, code: "FORBIDDEN_REQUEST"}, {status: 400, code: "NOBODY_KNOWS"},
}

// draw returns a random reply about an order, which is plausible in most cases.
func draw(t *rapid.T, what string, r *row, key string, now time.Time) reply {
	if rapid.IntRange(0, 3).Draw(t, what+" fails") == 0 {
		return rapid.SampledFrom(codes).Draw(t, what)
	}
	order, statuses := r.OrderID, []string{toss.StatusReady, toss.StatusInProgress, toss.StatusDone, toss.StatusDone, toss.StatusWaitingForDeposit,
		toss.StatusWaitingForDeposit, toss.StatusCanceled, toss.StatusCanceled, toss.StatusPartialCanceled, toss.StatusAborted, toss.StatusExpired}
	least, parts := r.leastReturned()
	switch {
	case least > 0: // what the provider has returned stays so
		statuses = []string{toss.StatusPartialCanceled, toss.StatusPartialCanceled, toss.StatusCanceled}
	case parts: // it returns parts of captured payments only
		statuses = []string{toss.StatusDone, toss.StatusPartialCanceled, toss.StatusPartialCanceled, toss.StatusPartialCanceled, toss.StatusCanceled}
	}
	status := rapid.SampledFrom(statuses).Draw(t, what)
	p := map[string]any{"paymentKey": key, "orderId": order, "status": status, "totalAmount": r.Amount, "balanceAmount": r.Amount, "method": "카드",
		"secret": "secret-" + order}
	switch status {
	case toss.StatusCanceled:
		p["balanceAmount"] = 0
	case toss.StatusPartialCanceled:
		returned := min(r.Amount, least+rapid.SampledFrom([]int{0, 1000, 2000, 5000, r.Amount}).Draw(t, what+" returned"))
		p["balanceAmount"] = r.Amount - returned
		if returned > 0 && rapid.Bool().Draw(t, what+" listed") {
			p["approvedAt"] = now.Format(time.RFC3339)
			p["cancels"] = []map[string]any{{"cancelAmount": returned, "transactionKey": fmt.Sprint(order, returned), "canceledAt": now.Format(time.RFC3339)}}
		}
	}
	if rapid.IntRange(0, 11).Draw(t, what+" foreign") == 0 {
		p["totalAmount"] = r.Amount + 1
	}
	if status == toss.StatusWaitingForDeposit || rapid.Bool().Draw(t, what+" by account") {
		p["method"] = toss.MethodVirtualAccount
		p["virtualAccount"] = map[string]any{"accountNumber": "1", "bankCode": "20", "customerName": "x",
			"expired":      rapid.IntRange(0, 5).Draw(t, what+" expired") == 0,
			"dueDate":      now.Add(time.Duration(rapid.IntRange(-5, 20).Draw(t, what+" due")) * time.Minute).Format(time.RFC3339),
			"refundStatus": rapid.SampledFrom([]string{"NONE", "PENDING", "FAILED", "PARTIAL_FAILED", "COMPLETED"}).Draw(t, what+" refund")}
	}
	return reply{payment: p}
}

// leastReturned returns the least won that the provider has returned in parts, and whether it may have returned any.
func (r *row) leastReturned() (won int, parts bool) {
	if r.payment == nil {
		return 0, false
	}
	won = r.payment.Returned
	if f := r.refund; f != nil && f.KeepsStay && !f.Taken {
		won -= f.Amount // it may be on its way
	}
	return won, r.payment.Returned > 0
}

// real is package reserve on PostgreSQL.
type real struct {
	*reserve.Service
	t      *testing.T
	db     *postgres.DB
	script *script
	branch int
	room   booking.RoomID
	cases  int

	mu  sync.Mutex
	now time.Time
}

func newReal(t *testing.T) *real {
	t.Helper()
	r := &real{t: t, db: pgtest.New(t), script: new(script)}
	r.db.Now = func() time.Time {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.now
	}
	keys, err := seal.New(make([]byte, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	work, err := queue.New(r.db.Pool, keys)
	if err != nil {
		t.Fatal(err)
	}
	client, err := toss.New(toss.Config{BaseURL: "http://127.0.0.1", WidgetSecretKey: "gsk", APISecretKey: "sk", HTTPClient: &http.Client{Transport: r.script}})
	if err != nil {
		t.Fatal(err)
	}
	r.Service = &reserve.Service{DB: r.db, Payments: client, Queue: work, Keys: keys, Log: slog.New(slog.DiscardHandler),
		HoldTTL: holdTTL, AdminHoldTTL: holdTTL, DepositDue: depositDue, PublicURL: "http://127.0.0.1"}
	if err := r.db.Pool.QueryRow(t.Context(), `insert into branch (code) values ($1) returning id`, "gangnam").Scan(&r.branch); err != nil {
		t.Fatal(err)
	}
	return r
}

// both is the model and the real service.
type both struct {
	*real
	model *modelService
	rows  *rows
	ids   map[string]booking.ReservationID
}

func (r *real) both(t *rapid.T) *both {
	r.cases++ // rows are never deleted, so each case uses its own room and orders
	err := r.db.Pool.QueryRow(t.Context(), `insert into room (branch_id, no) values ($1, $2) returning id`, r.branch, r.cases).Scan(&r.room)
	if err != nil {
		t.Fatal(err)
	}
	r.now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	b := &both{real: r, rows: new(rows), ids: map[string]booking.ReservationID{}}
	b.setPolicy(t, nil)
	b.model = &modelService{rows: b.rows, mu: new(sync.Mutex), now: r.db.Now, payments: r.Payments, step: func(string) {}, changed: func(*row, string) {}}
	return b
}

func (b *both) hold(t *rapid.T) {
	// Two start times, so that reservations conflict. A time that has started cannot be reserved.
	start := time.Date(2026, 11, 21, 14, 0, 0, 0, time.UTC).Add(time.Duration(rapid.IntRange(0, 1).Draw(t, "slot")) * 30 * time.Minute)
	times := booking.Interval{Start: start, End: start.Add(time.Hour)}
	order := fmt.Sprintf("order-%d-%d", b.cases, len(b.rows.list))
	row := b.rows.insertHold(b.room, times, b.now.Add(holdTTL), b.now)
	id, err := postgres.InsertHold(t.Context(), b.db.Pool, postgres.NewHold{Room: b.room, Interval: times, Source: booking.Customer,
		Token: []byte(fmt.Sprint(order, time.Now().UnixNano())), ExpiresAt: b.now.Add(holdTTL)}, b.now)
	if err != nil {
		t.Fatal(err)
	}
	if (id != 0) != (row != nil) {
		t.Fatalf("held %d, the model has %t", id, row != nil)
	}
	if row == nil {
		return
	}
	row.OrderID, row.Amount, row.Mobile = order, price, "01012345678"
	b.ids[order] = id
	err = b.db.InTx(t.Context(), func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		r, err := postgres.LockReservation(ctx, tx, id)
		if err != nil {
			return err
		}
		return postgres.RegisterOrder(ctx, tx, r, postgres.NewOrder{
			ID: order, Contact: booking.Contact{Name: "홍길동", Mobile: row.Mobile, Language: "ko"}, Amount: price,
		}, now)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// some draws one of the latest orders and the provider's reply about it.
func (b *both) some(t *rapid.T) (*row, string) {
	if len(b.rows.list) == 0 {
		t.Skip("there is no reservation")
	}
	n := len(b.rows.list) - 1 - rapid.IntRange(0, min(2, len(b.rows.list)-1)).Draw(t, "order")
	r := b.rows.list[n]
	key := fmt.Sprintf("pay-%d-%d-%d", b.cases, n, rapid.IntRange(0, 1).Draw(t, "window"))
	if r.payment != nil && r.payment.PaymentKey != "" && rapid.IntRange(0, 3).Draw(t, "its key") > 0 {
		key = r.payment.PaymentKey
	}
	b.script.confirm, b.script.look, b.script.cancel = draw(t, "confirm", r, key, b.now), draw(t, "look-up", r, key, b.now), draw(t, "cancel", r, key, b.now)
	return r, key
}

// sameVerdict compares two errors with respect to the errors of package reserve.
func sameVerdict(t *rapid.T, what string, got, want error) {
	for _, e := range []error{reserve.ErrUnknownOrder, reserve.ErrAmountMismatch, reserve.ErrHoldExpired, reserve.ErrNotFound, reserve.ErrPaymentPending,
		reserve.ErrAccountRequired, reserve.ErrWrongSecret, reserve.ErrNothingToRefund, reserve.ErrExceedsBalance, reserve.ErrRefundOpen, booking.ErrTooLateToCancel} {
		if errors.Is(got, e) != errors.Is(want, e) {
			t.Fatalf("%s: notified of %v, the model has %v", what, got, want)
		}
	}
	var refused, theirs *reserve.PaymentRefused
	if errors.As(got, &refused) != errors.As(want, &theirs) || refused != nil && refused.Code != theirs.Code {
		t.Fatalf("%s: notified of %v, the model has %v", what, got, want)
	}
}

func (b *both) confirm(t *rapid.T) {
	r, key := b.some(t)
	if r.State == booking.Confirming && b.now.Sub(r.payment.AttemptedAt) < watchdogDelay {
		t.Skip("it would wait for another request")
	}
	req := reserve.ConfirmRequest{PaymentKey: key, OrderID: r.OrderID, Amount: r.Amount - rapid.IntRange(0, 20).Draw(t, "less")/20}
	want := b.model.confirm(t.Context(), req)
	_, got := b.Confirm(t.Context(), req)
	if want != nil || r.Method != "" { // the model returns no receipt
		sameVerdict(t, "confirm", got, want)
	}
}

func (b *both) settle(t *rapid.T) {
	r, _ := b.some(t)
	sameVerdict(t, "settle", b.Settle(t.Context(), b.ids[r.OrderID]), b.model.settle(t.Context(), r))
}

func (b *both) settleDue(t *rapid.T) {
	r, _ := b.some(t)
	sameVerdict(t, "settle due", b.SettleDue(t.Context(), b.ids[r.OrderID]), b.model.settleDue(t.Context(), r))
}

func (b *both) cancel(t *rapid.T) {
	r, _ := b.some(t)
	id := b.ids[r.OrderID]
	var to *toss.RefundAccount
	if rapid.Bool().Draw(t, "account") {
		to = refundAccount
	}
	if rapid.Bool().Draw(t, "customer") {
		got := b.Cancel(t.Context(), reserve.CancelRequest{ID: id, By: account.Principal{LoginType: booking.LoginMobile, LoginID: r.Mobile}, Reason: "x", Account: to})
		sameVerdict(t, "cancel", got, b.model.cancel(t.Context(), r, "customer", to != nil))
		return
	}
	status, pending := string(r.BookingStatus()), r.partPending()
	unclear := r.payment != nil && reserve.Unclear(r.Reservation, *r.payment, b.now)
	got := b.AdminCancel(t.Context(), reserve.AdminCancelRequest{ID: id, Status: status, Account: to, By: kim})
	if errors.Is(got, reserve.ErrStatusMismatch) && !unclear && !pending { // nothing to cancel: the model has no check of the status
		if r.State != booking.Canceled {
			t.Fatalf("admin cancels %s: %v", r.State, got)
		}
		return
	}
	sameVerdict(t, "admin cancel", got, b.model.cancel(t.Context(), r, "admin:kim", to != nil))
}

func (b *both) retryRefund(t *rapid.T) {
	r, _ := b.some(t)
	got := b.RetryRefund(t.Context(), reserve.RetryRefundRequest{ID: b.ids[r.OrderID], Account: refundAccount, By: kim})
	sameVerdict(t, "retry refund", got, b.model.retryRefund(t.Context(), r, true))
}

func (b *both) refundPart(t *rapid.T) {
	r, _ := b.some(t)
	req := reserve.PartRequest{ID: b.ids[r.OrderID], Amount: rapid.SampledFrom([]int{1000, 1000, 2000, 5000, r.Amount, r.Amount + 1}).Draw(t, "won"), Reason: "x", By: kim}
	if rapid.IntRange(0, 3).Draw(t, "account") > 0 {
		req.Account = refundAccount
	}
	_, got := b.RefundPart(t.Context(), req)
	sameVerdict(t, "refund part", got, b.model.refundPart(t.Context(), r, req.Amount, req.Account != nil))
}

// cancelWithPart pays a deposit, of which the bank transfers a part when the stay is canceled, and lets the bank end the transfer. Random
// replies rarely agree so long.
func (b *both) cancelWithPart(t *rapid.T) {
	r, key := b.some(t)
	if r.State != booking.Hold || !r.Occupies(b.now) {
		t.Skip("the latest order is paid or over")
	}
	provider := func(status string, balance int, refund string) reply {
		return reply{payment: map[string]any{"paymentKey": key, "orderId": r.OrderID, "status": status, "totalAmount": r.Amount, "balanceAmount": balance,
			"method": toss.MethodVirtualAccount, "approvedAt": b.now.Format(time.RFC3339),
			"virtualAccount": map[string]any{"accountNumber": "1", "bankCode": "20", "refundStatus": refund}}}
	}
	const part = 1000
	b.script.confirm = provider(toss.StatusDone, r.Amount, "NONE")
	req := reserve.ConfirmRequest{PaymentKey: key, OrderID: r.OrderID, Amount: r.Amount}
	_, err := b.Confirm(t.Context(), req)
	sameVerdict(t, "confirm", err, b.model.confirm(t.Context(), req))
	b.script.cancel = provider(toss.StatusPartialCanceled, r.Amount-part, "PENDING")
	b.script.look = b.script.cancel
	refund := reserve.PartRequest{ID: b.ids[r.OrderID], Amount: part, Reason: "x", Account: refundAccount, By: kim}
	_, err = b.RefundPart(t.Context(), refund)
	sameVerdict(t, "refund part", err, b.model.refundPart(t.Context(), r, part, true))
	end := provider(toss.StatusPartialCanceled, r.Amount-part, rapid.SampledFrom([]string{"COMPLETED", "PARTIAL_FAILED"}).Draw(t, "end of the transfer"))
	settle := func() {
		sameVerdict(t, "settle", b.Settle(t.Context(), b.ids[r.OrderID]), b.model.settle(t.Context(), r))
		b.compare(t)
	}
	if rapid.Bool().Draw(t, "ends before the cancellation") {
		b.script.look = end
		settle()
	}
	by := account.Principal{LoginType: booking.LoginMobile, LoginID: r.Mobile}
	err = b.Cancel(t.Context(), reserve.CancelRequest{ID: b.ids[r.OrderID], By: by, Reason: "x", Account: refundAccount})
	sameVerdict(t, "cancel", err, b.model.cancel(t.Context(), r, "customer", true))
	b.compare(t)
	b.script.look = end
	settle()
	settle() // a rejected part is sent again, or the rest
	b.script.look = provider(toss.StatusPartialCanceled, r.Amount-part, "COMPLETED")
	settle()
}

func (b *both) callback(t *rapid.T) {
	r, _ := b.some(t)
	secret := rapid.SampledFrom([]string{"secret-" + r.OrderID, "secret-" + r.OrderID, "guess"}).Draw(t, "secret")
	status := rapid.SampledFrom([]string{toss.StatusDone, toss.StatusCanceled, toss.StatusWaitingForDeposit}).Draw(t, "status")
	body := fmt.Sprintf(`{"createdAt":%q,"secret":%q,"status":%q,"transactionKey":"%d","orderId":%q}`,
		b.now.Format(time.RFC3339), secret, status, rapid.IntRange(0, 3).Draw(t, "transaction"), r.OrderID)
	event, err := toss.ParseEvent([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	retried := rapid.Bool().Draw(t, "retried")
	got := b.ReceiveCallback(t.Context(), event, reserve.Transmission{Retried: retried})
	sameVerdict(t, "callback", got, b.model.callback(t.Context(), event, retried))
}

func (b *both) pass(t *rapid.T) {
	by := rapid.SampledFrom([]time.Duration{time.Second, 16 * time.Second, 31 * time.Second, time.Minute, 3 * time.Minute, 11 * time.Minute}).Draw(t, "by")
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now = b.now.Add(by)
}

// state is the comparable part of a row. Keys are compared only by whether they exist.
type state struct {
	State, Method                     string
	Key                               bool
	Expires                           string
	PaymentKey, Status                string
	Balance, Attempt, Checks, Answers int
	Due                               string
	Refund, By, Code                  string
	RefundAttempt, RefundAmount       int
	Revoked, Account                  bool
	KeepsStay, Taken, Rest            bool
	Part                              bool
	Returned, Retained                int
	Closed                            int
	Webhooks, Applied                 int
}

func at(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

func (b *both) compare(t *rapid.T) {
	for _, r := range b.rows.list {
		want := state{State: string(r.State), Method: string(r.Method), Key: r.DoorlockKey != "", Expires: at(r.ExpiresAt), Closed: len(r.closed)}
		if p := r.payment; p != nil {
			want.PaymentKey, want.Status, want.Balance, want.Attempt, want.Checks, want.Answers = p.PaymentKey, p.Status, p.Balance, p.Attempt, p.Checks, p.Answers
			want.Due, want.Returned, want.Retained = at(r.checkAt), p.Returned, p.Retained
		}
		if f := r.refund; f != nil {
			want.Refund, want.By, want.Code, want.RefundAttempt, want.Revoked, want.Account = string(f.State), f.By, f.ErrorCode, f.Attempt, f.KeyRevoked, len(f.Account) > 0
			want.RefundAmount, want.KeepsStay, want.Taken, want.Rest, want.Part = f.Amount, f.KeepsStay, f.Taken, f.Rest, f.Part
		}
		for _, h := range b.rows.webhooks {
			if h.order == r.OrderID {
				want.Webhooks++
				if h.applied {
					want.Applied++
				}
			}
		}
		if got := b.read(t, r.OrderID); got != want {
			t.Fatalf("%s is\n%+v\nthe model has\n%+v", r.OrderID, got, want)
		}
	}
}

func (b *both) read(t *rapid.T, order string) state {
	rows, err := b.db.Pool.Query(t.Context(), `
		select r.state, coalesce(r.method, ''), r.state = 'DONE' and not r.keys_blocked and (r.extends is not null or exists (select from access_key k where k.reservation_id = r.id and k.revoked_at is null)), r.expires_at,
		       coalesce(p.payment_key, ''), coalesce(p.provider_status, ''), coalesce(p.balance_amount, 0), coalesce(p.attempt, 0), coalesce(p.checks, 0),
		       coalesce(p.answers, 0), p.check_at, coalesce(f.state, ''), coalesce(f.requested_by, ''), coalesce(f.error_code, ''), coalesce(f.attempt, 0),
		       coalesce(f.key_revoked, false), f.account is not null, coalesce(f.amount, 0), coalesce(f.keeps_stay, false), coalesce(f.taken, false),
		       coalesce(f.rest, false), coalesce(f.part, false), coalesce(p.returned, 0), coalesce(p.retained, 0),
		       (select count(*) from refund where reservation_id = r.id and state in ('COMPLETED', 'REFUSED')),
		       (select count(*) from webhook_event where order_id = r.order_id),
		       (select count(*) from webhook_event where order_id = r.order_id and applied_at is not null)
		from reservation r left join payment p on p.reservation_id = r.id
		left join refund f on f.reservation_id = r.id and f.state not in ('COMPLETED', 'REFUSED')
		where r.order_id = $1`, order)
	if err != nil {
		t.Fatal(err)
	}
	got, err := pgx.CollectExactlyOneRow(rows, func(row pgx.CollectableRow) (s state, err error) {
		var expires, due *time.Time
		err = row.Scan(&s.State, &s.Method, &s.Key, &expires, &s.PaymentKey, &s.Status, &s.Balance, &s.Attempt, &s.Checks, &s.Answers, &due,
			&s.Refund, &s.By, &s.Code, &s.RefundAttempt, &s.Revoked, &s.Account,
			&s.RefundAmount, &s.KeepsStay, &s.Taken, &s.Rest, &s.Part, &s.Returned, &s.Retained, &s.Closed, &s.Webhooks, &s.Applied)
		if expires != nil {
			s.Expires = at(*expires)
		}
		if due != nil {
			s.Due = at(*due)
		}
		return s, err
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}
