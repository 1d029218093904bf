package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"sync/atomic"
	"time"

	"github.com/yeolda/yeolda/firmware-sim/proof/world"
)

// buyer completes purchases: look-up, hold, order, card at the sandbox, confirmation. Each purchase has its own slot:
// half an hour apart, in the second room of the branches in turn, from tomorrow on.
func buyer(s *world.Stack, agents int) presser {
	zone := time.FixedZone("KST", 9*3600)
	year, month, day := time.Now().In(zone).AddDate(0, 0, 1).Date()
	first := time.Date(year, month, day, 0, 0, 0, 0, zone)
	var buyers atomic.Int64 // over all measurements
	return func(ctx context.Context, _ int64) (bool, error) {
		n := buyers.Add(1)
		branch := fmt.Sprintf("load-%04d", n%int64(agents)+1)
		begin := first.Add(time.Duration(n/int64(agents)) * 30 * time.Minute)
		jar, err := cookiejar.New(nil)
		if err != nil {
			return false, err
		}
		mine := &http.Client{Timeout: client.Timeout, Transport: client.Transport, Jar: jar}
		var slots struct{ Data json.RawMessage }
		query := fmt.Sprintf("/v2/branches/%s/reservations?date=%s&baseHour=%d&hours=4", branch, begin.Format(time.DateOnly), begin.Hour())
		if err := call(ctx, mine, s.API+query, nil, &slots); err != nil {
			return false, err
		}
		hold := map[string]any{"branch": branch, "room": 2,
			"startDateTime": begin.Format("200601021504"), "endDateTime": begin.Add(20 * time.Minute).Format("200601021504")}
		if err := call(ctx, mine, s.API+"/reservation", hold, nil); err != nil {
			return false, err
		}
		var order struct{ Data struct{ OrderID string } }
		who := map[string]any{"amount": price, "name": "load", "mobileNum": fmt.Sprintf("010%08d", n)}
		if err := call(ctx, mine, s.API+"/payment", who, &order); err != nil {
			return false, err
		}
		var card struct{ PaymentKey string }
		payment := map[string]any{"orderId": order.Data.OrderID, "amount": price, "method": "카드"}
		if err := call(ctx, mine, s.SandboxAt+"/sandbox/payments", payment, &card); err != nil {
			return false, err
		}
		confirm := map[string]any{"paymentKey": card.PaymentKey, "orderId": order.Data.OrderID, "amount": price}
		return true, call(ctx, mine, s.API+"/payment/confirm", confirm, nil)
	}
}

// price of twenty minutes in a room of the fleet, in won.
const price = 6000

// resident returns the resident memory of the service, in bytes, from its metrics.
func resident(ctx context.Context, s *world.Stack) (float64, error) {
	return gauge(ctx, s, "process_resident_memory_bytes ")
}

// call sends a GET, or a POST with a body, and decodes the answer.
func call(ctx context.Context, client *http.Client, address string, body, into any) error {
	if body == nil {
		return roundTrip(ctx, client, http.MethodGet, address, nil, into)
	}
	content, err := json.Marshal(body)
	if err != nil {
		return err
	}
	return roundTrip(ctx, client, http.MethodPost, address, bytes.NewReader(content), into)
}
