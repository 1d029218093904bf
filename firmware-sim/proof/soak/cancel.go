package soak

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/yeolda/yeolda/firmware-sim/proof/record"
)

// refundAccount receives refunds of payments by virtual account.
func refundAccount(body map[string]any) map[string]any {
	body["refundReceiveAccountBank"], body["refundReceiveAccountNumber"], body["refundReceiveAccountHolderName"] = "20", "1002123456789", "홍길동"
	return body
}

// cancel logs the customer in with the code of the message, and cancels, sometimes from two windows.
func (p *purchase) cancel(ctx context.Context) {
	id, ok := p.login(ctx)
	if !ok {
		return
	}
	body := refundAccount(map[string]any{"id": id, "cancelReason": "변심"})
	once := func(at int) record.Op {
		r := p.ask(ctx, at, http.MethodPost, "/payment/cancel", body)
		return p.op(record.Op{Kind: record.Cancel, Owner: p.owner, Slot: p.slot, ID: id, At: at}, r)
	}
	var second sync.WaitGroup
	if oneIn(p.dice, 5) {
		second.Go(func() { once(p.anywhere()) })
	}
	defer second.Wait()
	for range 5 {
		if once(p.anywhere()).Known() {
			return
		}
		pause(ctx, 2*time.Second)
	}
}

// login requests a code and sends the newest one received, until it is accepted.
func (p *purchase) login(ctx context.Context) (id int64, ok bool) {
	for range 3 {
		before := len(p.codes())
		r := p.ask(ctx, p.anywhere(), http.MethodPost, "/account/code", map[string]string{"type": "mobile", "id": p.mobile})
		if r.status != http.StatusOK {
			pause(ctx, time.Second)
			continue
		}
		for limit := time.Now().Add(10 * time.Second); time.Now().Before(limit) && len(p.codes()) <= before; {
			pause(ctx, 200*time.Millisecond)
		}
		codes := p.codes()
		if len(codes) <= before {
			continue
		}
		r = p.ask(ctx, p.anywhere(), http.MethodPost, "/account/login", map[string]string{"type": "mobile", "id": p.mobile, "code": codes[len(codes)-1]})
		var payments []struct {
			ID int64 `json:"id"`
		}
		if r.into(&payments) && len(payments) > 0 {
			return payments[0].ID, true
		}
	}
	return 0, false
}

func (p *purchase) codes() (codes []string) {
	for _, m := range p.messages() {
		if code := m.Variables["code"]; code != "" {
			codes = append(codes, code)
		}
	}
	return codes
}

func bookingPath(id, status string) string {
	return fmt.Sprintf("/admin/reservation/%s?bookingStatus=%s", id, status)
}
