package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/yeolda/yeolda/cloud/client"
	"github.com/yeolda/yeolda/cloud/internal/proof"
)

const (
	verifyInterval = 200 * time.Millisecond // between looks at the sandbox
	verifySlots    = 200                    // slots that are tried until one is free
	// lateTimeout bounds the wait for the end of an account without a deposit, and for a refund.
	lateTimeout = 30 * time.Minute
)

// verifier buys rooms of one deployment.
type verifier struct {
	ctx                      context.Context
	progress                 io.Writer
	address, sandbox, branch string
	guests                   int
	mobile                   string // of this run's guests
	slot                     int    // the next one to try
}

// stagedPurchase is a guest with a room.
type stagedPurchase struct {
	*client.API
	order, key string // of the payment
	amount     int
}

// next returns the next room and hour to try, from the day after tomorrow on.
func (v *verifier) next() client.HoldRequest {
	start := time.Now().In(time.FixedZone("Asia/Seoul", 9*60*60)).Truncate(time.Hour).Add(48*time.Hour + time.Duration(v.slot/3)*2*time.Hour)
	room := 1 + v.slot%3
	v.slot++
	return client.HoldRequest{Branch: v.branch, Room: room, StartDateTime: start.Format("200601021504"), EndDateTime: start.Add(time.Hour).Format("200601021504")}
}

// rule returns the result of a check.
func rule(id, text string, checked int, found ...string) proof.Rule {
	r := proof.Rule{ID: id, Text: text, Checked: checked, Violations: len(found), Found: []proof.Finding{}}
	for _, detail := range found {
		r.Found = append(r.Found, proof.Finding{Detail: detail})
	}
	return r
}

// contention lets all guests hold one slot at the same time: exactly one must get it.
func (v *verifier) contention() (proof.Rule, error) {
	const id, text = "contention", "of guests who hold one slot at the same time, exactly one gets it"
	var refused error
	for range verifySlots {
		slot := v.next()
		holders, last, err := v.contend(slot)
		if err != nil {
			return rule(id, text, 0), err
		}
		for _, holder := range holders {
			if _, err := holder.ReleaseWithResponse(v.ctx); err != nil {
				return rule(id, text, 0), err
			}
		}
		switch len(holders) {
		case 0: // it was taken, or the branch is closed
			refused = last
		case 1:
			return rule(id, text, v.guests), nil
		default:
			return rule(id, text, v.guests, fmt.Sprintf("%d guests hold room %d at %s", len(holders), slot.Room, slot.StartDateTime)), nil
		}
	}
	return rule(id, text, 0), noSlot(refused)
}

// noSlot names the last answer to a hold: the branch may be unknown, or its holds limited.
func noSlot(refused error) error { return fmt.Errorf("no slot is free: %w", refused) }

// contend returns the guests who hold the slot, and the last rejection of another one.
func (v *verifier) contend(slot client.HoldRequest) (holders []*client.API, refused, err error) {
	var (
		mu    sync.Mutex
		group sync.WaitGroup
	)
	for range v.guests {
		group.Go(func() {
			guest, problem := client.New(v.address, "")
			if problem == nil {
				_, problem = guest.HoldWithResponse(v.ctx, slot)
			}
			mu.Lock()
			defer mu.Unlock()
			if problem == nil {
				holders = append(holders, guest)
			} else if rejected := new(client.Error); !errors.As(problem, &rejected) || rejected.HTTP >= 500 {
				err = problem
			} else {
				refused = problem
			}
		})
	}
	group.Wait()
	return holders, refused, err
}

// order holds a free room, registers the payer and authenticates the payment in the sandbox.
func (v *verifier) order(method string) (stagedPurchase, error) {
	var refused error
	for range verifySlots {
		guest, err := client.New(v.address, "")
		if err != nil {
			return stagedPurchase{}, err
		}
		_, err = guest.HoldWithResponse(v.ctx, v.next())
		if rejected := new(client.Error); errors.As(err, &rejected) && rejected.HTTP < 500 {
			refused = err
			continue
		}
		if err != nil {
			return stagedPurchase{}, err
		}
		held, err := guest.ShowHoldWithResponse(v.ctx)
		if err != nil {
			return stagedPurchase{}, err
		}
		amount := held.JSON200.Data.Amount
		registered, err := guest.RegisterPaymentWithResponse(v.ctx, client.PaymentRequest{Amount: amount, Name: "verify", MobileNum: v.mobile})
		if err != nil {
			return stagedPurchase{}, err
		}
		p := stagedPurchase{API: guest, order: registered.JSON200.Data.OrderID, amount: amount}
		var paid struct{ PaymentKey string }
		err = ask(v.ctx, v.sandbox+"/sandbox/payments", map[string]any{"orderId": p.order, "amount": amount, "method": method, "bank": "20", "clientKey": held.JSON200.Data.ClientKey}, &paid)
		p.key = paid.PaymentKey
		return p, err
	}
	return stagedPurchase{}, noSlot(refused)
}

func (v *verifier) confirm(p stagedPurchase) error {
	_, err := p.ConfirmPaymentWithResponse(v.ctx, client.ConfirmRequest{PaymentKey: p.key, OrderID: p.order, Amount: p.amount})
	return err
}

// payment is what the sandbox has booked for an order.
type payment struct{ TotalAmount, BalanceAmount int }

// charged returns the payments of an order whose money has arrived, whether it was returned or not.
func (v *verifier) charged(p stagedPurchase) (list []payment, err error) {
	var found struct {
		Payments []struct {
			payment
			ApprovedAt *time.Time
		}
	}
	if err := ask(v.ctx, v.sandbox+"/sandbox/payments?orderId="+p.order, nil, &found); err != nil {
		return nil, err
	}
	for _, one := range found.Payments {
		if one.ApprovedAt != nil {
			list = append(list, one.payment)
		}
	}
	return list, nil
}

// replay confirms one payment many times at once: it must be charged once. Its cancellation must return the money once.
func (v *verifier) replay() (proof.Rule, error) {
	const id, text = "replay", "a payment that is confirmed many times is charged once, and refunded once"
	p, err := v.order("카드")
	if err != nil {
		return rule(id, text, 0), err
	}
	var group sync.WaitGroup
	problems := make(chan error, v.guests)
	for range v.guests {
		group.Go(func() { problems <- v.confirm(p) })
	}
	group.Wait()
	close(problems)
	for problem := range problems {
		if rejected := new(client.Error); problem != nil && (!errors.As(problem, &rejected) || rejected.HTTP != http.StatusServiceUnavailable) {
			return rule(id, text, 0), problem // 503: still in progress
		}
	}
	if err := v.confirm(p); err != nil {
		return rule(id, text, 0), err
	}
	var found []string
	charged, err := v.charged(p)
	if err != nil {
		return rule(id, text, 0), err
	}
	if len(charged) != 1 || charged[0].TotalAmount != p.amount || charged[0].BalanceAmount != p.amount {
		found = append(found, fmt.Sprintf("order %s of %d won is charged as %+v", p.order, p.amount, charged))
	}
	fmt.Fprintln(v.progress, "waiting for the refund of a cancelled payment")
	due, err := v.cancel(p)
	if err != nil {
		return rule(id, text, 0), err
	}
	if returned, err := v.returned(p, p.amount-due); err != nil {
		return rule(id, text, 0), err
	} else if !returned {
		found = append(found, fmt.Sprintf("order %s is cancelled, and its %d won are not returned", p.order, due))
	}
	return rule(id, text, v.guests+1, found...), nil
}

// lateDeposit lets an account end without a deposit and pays then: the bank must reject the money, or the service return it.
func (v *verifier) lateDeposit() (proof.Rule, error) {
	const id, text = "late-deposit", "money that arrives after the end of an account bounces or is returned"
	p, err := v.order("가상계좌")
	if err != nil {
		return rule(id, text, 0), err
	}
	if err := v.confirm(p); err != nil {
		return rule(id, text, 0), err
	}
	fmt.Fprintln(v.progress, "waiting until a virtual account ends, which takes ten minutes unless the deployment has another YEOLDA_DEPOSIT_DUE")
	ended, err := v.until(func() (bool, error) {
		receipt, err := p.ShowReceiptWithResponse(v.ctx)
		if rejected := new(client.Error); errors.As(err, &rejected) && !unavailable(err) {
			return true, nil // the purchase has ended
		}
		return err == nil && receipt.JSON200.Data.Status != "WAITING_FOR_DEPOSIT", err
	})
	if err != nil {
		return rule(id, text, 0), err
	}
	if !ended {
		return rule(id, text, 1, fmt.Sprintf("the account of order %s has not ended in %s", p.order, lateTimeout)), nil
	}
	bounced := new(statusError)
	if err := ask(v.ctx, v.sandbox+"/sandbox/deposits", map[string]any{"orderId": p.order}, nil); err != nil && !errors.As(err, &bounced) {
		return rule(id, text, 0), err
	}
	if returned, err := v.returned(p, 0); err != nil {
		return rule(id, text, 0), err
	} else if !returned {
		return rule(id, text, 1, fmt.Sprintf("the deposit for order %s was not returned in %s", p.order, lateTimeout)), nil
	}
	return rule(id, text, 1), nil
}

// returned waits until the sandbox holds only the won of an order that the refund policy keeps.
func (v *verifier) returned(p stagedPurchase, kept int) (bool, error) {
	return v.until(func() (bool, error) {
		charged, err := v.charged(p)
		for _, one := range charged {
			if one.BalanceAmount != kept {
				return false, err
			}
		}
		return err == nil, err
	})
}

// unavailable reports whether a request may be repeated: the service, or what is in front of it, did not answer it. A replica that is
// restarted closes connections, and a proxy may limit the questions.
func unavailable(err error) bool {
	rejected, network := new(client.Error), new(url.Error)
	if errors.As(err, &rejected) {
		return rejected.HTTP >= 500 || rejected.HTTP == http.StatusTooManyRequests
	}
	return errors.As(err, &network)
}

// until asks again until the answer is true, at most for lateTimeout. A service that is not available is asked again; if it still
// is not at the end, its error is returned.
func (v *verifier) until(done func() (bool, error)) (bool, error) {
	limited, cancel := context.WithTimeout(v.ctx, lateTimeout)
	defer cancel()
	for {
		ok, err := done()
		if err != nil && !unavailable(err) {
			return false, err
		}
		if ok {
			return true, nil
		}
		select {
		case <-v.ctx.Done():
			return false, v.ctx.Err()
		case <-limited.Done():
			return false, err // of a service that is not available: the outcome is unknown, which is no violation
		case <-time.After(verifyInterval):
		}
	}
}

// cancel logs the guest in with the code that the sandbox received, and cancels the purchase. It returns the won that the refund policy
// of the branch returns.
func (v *verifier) cancel(p stagedPurchase) (due int, err error) {
	if _, err := p.SendLoginCodeWithResponse(v.ctx, client.LoginID{Type: "mobile", ID: v.mobile}); err != nil {
		return 0, err
	}
	code := ""
	if _, err := v.until(func() (bool, error) {
		var sent struct {
			Messages []struct{ Variables map[string]string }
		}
		err := ask(v.ctx, v.sandbox+"/sandbox/messages?to="+v.mobile, nil, &sent)
		for _, m := range sent.Messages {
			if m.Variables["code"] != "" {
				code = m.Variables["code"]
			}
		}
		return code != "", err
	}); err != nil {
		return 0, err
	}
	if _, err := p.LoginCustomerWithResponse(v.ctx, client.LoginRequest{Type: "mobile", ID: v.mobile, Code: code}); err != nil {
		return 0, err
	}
	mine, err := p.MyReservationsWithResponse(v.ctx)
	if err != nil {
		return 0, err
	}
	for _, one := range mine.JSON200.Data {
		quote, err := p.QuoteRefundWithResponse(v.ctx, fmt.Sprint(one.ID))
		if err != nil {
			return 0, err
		}
		due += quote.JSON200.Data.Amount
		if _, err := p.CancelPaymentWithResponse(v.ctx, client.CancelRequest{ID: one.ID, CancelReason: "verify"}); err != nil {
			return 0, err
		}
	}
	return due, nil
}

// statusError is an answer of the sandbox that is not a success.
type statusError struct{ status int }

func (e *statusError) Error() string { return fmt.Sprintf("the sandbox answers %d", e.status) }

// ask sends a request to the sandbox, as POST if it has a body, and decodes the answer.
func ask(ctx context.Context, address string, body, into any) error {
	method, content := http.MethodGet, io.Reader(nil)
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return err
		}
		method, content = http.MethodPost, bytes.NewReader(encoded)
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, address, content)
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return &statusError{answer.StatusCode}
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(text, into)
}
