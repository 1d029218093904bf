package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// firstAttemptWait is how long a request under /sandbox waits for the first delivery it caused, so that a test
// can usually assume that the service was notified before the response. If the service is down or slow, the delivery
// continues in the background.
const firstAttemptWait = 2 * time.Second

// routes returns the handler of all endpoints.
func (s *Sandbox) routes() http.Handler {
	mux := http.NewServeMux()

	mux.Handle("POST /v1/payments/confirm", s.toss(TargetConfirm, s.confirm))
	mux.Handle("GET /v1/payments/{paymentKey}", s.toss(TargetGet, s.getPayment))
	mux.Handle("GET /v1/payments/orders/{orderId}", s.toss(TargetGet, s.getOrder))
	mux.Handle("POST /v1/payments/{paymentKey}/cancel", s.toss(TargetCancel, s.cancelPayment))
	mux.Handle("POST /v1/virtual-accounts", s.toss(TargetVirtualAccounts, s.issueAccount))
	mux.Handle("GET /v1/transactions", s.toss(TargetGet, s.listTransactions))
	mux.Handle("GET /v1/settlements", s.toss(TargetGet, s.listSettlements))
	mux.Handle("POST /v1/cash-receipts", s.toss(TargetCashReceipts, s.issueReceipt))
	mux.Handle("POST /v1/cash-receipts/{receiptKey}/cancel", s.toss(TargetCashReceipts, s.cancelReceipt))
	mux.Handle("GET /v1/cash-receipts", s.toss(TargetGet, s.listReceipts))
	mux.Handle("/v1/", s.toss("", s.unknownTossPath))

	mux.Handle("POST /messages/v4/send-many/detail", s.solapi(s.sendMany))
	mux.Handle("POST /messages/v4/send", s.solapi(s.sendOne))
	mux.Handle("GET /messages/v4/list", s.solapi(s.listMessages))

	mux.HandleFunc("POST /partner/v1/blocks", s.receiveBlock)
	mux.HandleFunc("GET /packages/{name}", showPackages)

	mux.Handle("POST /sandbox/payments", control(s.postPayment))
	mux.Handle("GET /sandbox/payments", control(s.getPayments))
	mux.Handle("POST /sandbox/payments/{paymentKey}/authenticate", control(s.postAuthenticate))
	mux.Handle("POST /sandbox/payments/{paymentKey}/decline", control(s.postDecline))
	mux.Handle("POST /sandbox/deposits", control(s.postDeposit))
	mux.Handle("POST /sandbox/reversals", control(s.postReversal))
	mux.Handle("GET /sandbox/ledger", control(s.getLedger))
	mux.Handle("GET /sandbox/cash-receipts", control(s.getReceipts))
	mux.Handle("POST /sandbox/faults", control(s.postFault))
	mux.Handle("GET /sandbox/faults", control(s.getFaults))
	mux.Handle("DELETE /sandbox/faults", control(s.deleteFaults))
	mux.Handle("GET /sandbox/messages", control(s.getMessages))
	mux.Handle("GET /sandbox/channel/blocks", control(s.getBlocks))
	mux.Handle("GET /sandbox/channel/bookings", control(s.getBookings))
	mux.Handle("POST /sandbox/channel/bookings", control(s.postBooking))
	mux.Handle("PUT /sandbox/channel/bookings/{id}", control(s.putBooking))
	mux.Handle("DELETE /sandbox/channel/bookings/{id}", control(s.deleteBooking))

	s.pageRoutes(mux)

	// Prevents other pages in the same browser from moving money.
	return http.NewCrossOriginProtection().Handler(mux)
}

// controlError is an error under /sandbox with an HTTP status other than 400.
type controlError struct {
	status int
	err    error
}

func (e *controlError) Error() string { return e.err.Error() }

// control adapts a handler under /sandbox. Errors are returned as {"message"}; refusals of the provider also carry
// its code.
func control(do func(*http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		v, err := do(r)
		if err == nil {
			writeJSON(w, http.StatusOK, v)
			return
		}
		var refusal *Refusal
		var ce *controlError
		status := http.StatusBadRequest
		answer := map[string]string{"message": err.Error()}
		switch {
		case errors.As(err, &refusal):
			status = refusal.Status
			answer = map[string]string{"code": refusal.Code, "message": refusal.Message}
		case errors.Is(err, ErrNoSuchOrder), errors.Is(err, ErrNoSuchPayment), errors.Is(err, ErrNoSuchBooking):
			status = http.StatusNotFound
		case errors.As(err, &ce):
			status = ce.status
		}
		writeJSON(w, status, answer)
	}
}

func (s *Sandbox) postPayment(r *http.Request) (any, error) {
	var c Checkout
	if err := decode(r, &c); err != nil {
		return nil, err
	}
	key, err := s.Authenticate(c)
	if err != nil {
		return nil, err
	}
	return map[string]string{"paymentKey": key}, nil
}

func (s *Sandbox) getPayments(r *http.Request) (any, error) {
	return map[string]any{"payments": newest(s.Payments(r.URL.Query().Get("orderId")), r)}, nil
}

func (s *Sandbox) postAuthenticate(r *http.Request) (any, error) {
	var in struct {
		Method string `json:"method"`
		Bank   string `json:"bank"`
	}
	if err := decode(r, &in); err != nil {
		return nil, err
	}
	return struct{}{}, s.AuthenticatePayment(r.PathValue("paymentKey"), in.Method, in.Bank)
}

func (s *Sandbox) postDecline(r *http.Request) (any, error) {
	var in struct {
		Code string `json:"code"`
	}
	if err := decode(r, &in); err != nil {
		return nil, err
	}
	return struct{}{}, s.Decline(r.PathValue("paymentKey"), in.Code)
}

func (s *Sandbox) postDeposit(r *http.Request) (any, error) {
	return moveDeposit(r, s.Deposit, StatusDone)
}

func (s *Sandbox) postReversal(r *http.Request) (any, error) {
	return moveDeposit(r, s.Reverse, StatusWaitingForDeposit)
}

// moveDeposit answers {"status", "delivered"}: the payment's status, and whether the service accepted the callback at
// the first attempt. A bounced deposit is a 409.
func moveDeposit(r *http.Request, move func(orderID string) (*Delivery, error), becomes Status) (any, error) {
	var in struct {
		OrderID string `json:"orderId"`
	}
	if err := decode(r, &in); err != nil {
		return nil, err
	}
	d, err := move(in.OrderID)
	if err != nil {
		if !errors.Is(err, ErrNoSuchOrder) {
			err = &controlError{http.StatusConflict, err}
		}
		return nil, err
	}
	reply := firstReply(r.Context(), d)
	return map[string]any{"status": becomes, "delivered": taken(depositCallbackKind, reply.Status)}, nil
}

// firstReply returns the service's answer if it arrives within firstAttemptWait.
func firstReply(ctx context.Context, d *Delivery) Reply {
	ctx, cancel := context.WithTimeout(ctx, firstAttemptWait)
	defer cancel()
	reply, err := d.First(ctx)
	if err != nil {
		return Reply{}
	}
	return reply
}

func (s *Sandbox) getLedger(r *http.Request) (any, error) {
	l := s.Ledger()
	l.Calls = newest(l.Calls, r)
	return l, nil
}

// newest returns the last entries of a list, up to the query parameter limit. Without limit it returns all entries.
func newest[T any](list []T, r *http.Request) []T {
	limit, err := strconv.Atoi(r.URL.Query().Get("limit"))
	if err != nil || limit < 0 || limit >= len(list) {
		return list
	}
	return list[len(list)-limit:]
}

// faultJSON is the JSON form of a fault, with its delay in milliseconds.
type faultJSON struct {
	Fault
	DelayMs int64 `json:"delayMs,omitempty"`
}

func (s *Sandbox) postFault(r *http.Request) (any, error) {
	var in faultJSON
	if err := decode(r, &in); err != nil {
		return nil, err
	}
	in.Delay = time.Duration(in.DelayMs) * time.Millisecond
	return struct{}{}, s.SetFault(in.Fault)
}

func (s *Sandbox) getFaults(*http.Request) (any, error) {
	faults := []faultJSON{}
	for _, f := range s.Faults() {
		faults = append(faults, faultJSON{f, f.Delay.Milliseconds()})
	}
	return map[string]any{"faults": faults}, nil
}

func (s *Sandbox) deleteFaults(*http.Request) (any, error) {
	s.ClearFaults()
	return struct{}{}, nil
}

func (s *Sandbox) getMessages(r *http.Request) (any, error) {
	return map[string]any{"messages": newest(s.Messages(r.URL.Query().Get("to")), r)}, nil
}

func (s *Sandbox) getBlocks(*http.Request) (any, error) {
	return map[string]any{"blocks": s.Blocks()}, nil
}

func (s *Sandbox) getBookings(*http.Request) (any, error) {
	return map[string]any{"bookings": s.Bookings()}, nil
}

// postBooking answers {"id", "status"}: the service's decision, or PENDING before there is one.
func (s *Sandbox) postBooking(r *http.Request) (any, error) {
	var in struct {
		Branch string      `json:"branch"`
		Room   json.Number `json:"room"` // 2 or "2"
		Start  string      `json:"startDateTime"`
		End    string      `json:"endDateTime"`
		Name   string      `json:"name"`
		Phone  string      `json:"mobileNum"`
	}
	if err := decode(r, &in); err != nil {
		return nil, err
	}
	start, end, err := parsePeriod(in.Start, in.End)
	if err != nil {
		return nil, err
	}
	room, err := in.Room.Int64()
	if err != nil {
		return nil, errors.New("room must be a number")
	}
	b, d, err := s.Book(Booking{Branch: in.Branch, Room: int(room), Start: start, End: end, Name: in.Name, Phone: in.Phone})
	if err != nil {
		return nil, err
	}
	return s.bookingAnswer(r, b.ID, d), nil
}

func (s *Sandbox) putBooking(r *http.Request) (any, error) {
	var in struct {
		Start string `json:"startDateTime"`
		End   string `json:"endDateTime"`
	}
	if err := decode(r, &in); err != nil {
		return nil, err
	}
	start, end, err := parsePeriod(in.Start, in.End)
	if err != nil {
		return nil, err
	}
	d, err := s.MoveBooking(r.PathValue("id"), start, end)
	if err != nil {
		return nil, err
	}
	return s.bookingAnswer(r, r.PathValue("id"), d), nil
}

func (s *Sandbox) deleteBooking(r *http.Request) (any, error) {
	d, err := s.CancelBooking(r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	return s.bookingAnswer(r, r.PathValue("id"), d), nil
}

func (s *Sandbox) bookingAnswer(r *http.Request, id string, d *Delivery) any {
	firstReply(r.Context(), d)
	bookings := s.Bookings()
	i := slices.IndexFunc(bookings, func(b Booking) bool { return b.ID == id })
	return map[string]string{"id": id, "status": bookings[i].Status}
}

// parsePeriod parses two times, YYYYMMDDHHmm in Korean time or RFC 3339.
func parsePeriod(start, end string) (from, to time.Time, err error) {
	if from, err = parseTime(start); err == nil {
		to, err = parseTime(end)
	}
	return from, to, err
}

func parseTime(text string) (time.Time, error) {
	if t, err := time.ParseInLocation("200601021504", text, kst); err == nil {
		return t, nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, fmt.Errorf("time %q is neither YYYYMMDDHHmm nor RFC 3339", text)
	}
	return t, nil
}

// decode parses a JSON body; an empty one is an empty object.
func decode(r *http.Request, v any) error {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return &controlError{http.StatusRequestEntityTooLarge, err}
	}
	if len(body) == 0 {
		return nil
	}
	if err := json.Unmarshal(body, v); err != nil {
		return fmt.Errorf("the body is not the expected JSON: %w", err)
	}
	return nil
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	w.Write(mustJSON(v))
}

// sorted yields the entries of m in key order.
func sorted(m map[string]string) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			if !yield(k, m[k]) {
				return
			}
		}
	}
}
