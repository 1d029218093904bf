package toss_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/sandbox"
	"github.com/yeolda/yeolda/cloud/internal/toss"
)

// TestTwoMerchants: each of two merchants in one sandbox sees its own payments only, and the sandbox notes who asked for another's.
func TestTwoMerchants(t *testing.T) {
	t.Parallel()
	box, err := sandbox.New(sandbox.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { box.Close() })
	srv := httptest.NewServer(box)
	t.Cleanup(srv.Close)
	unreadable := errors.New("the database does not answer")
	client, err := toss.New(toss.Config{
		BaseURL: srv.URL, WidgetSecretKey: sandbox.DemoWidgetSecretKey, APISecretKey: sandbox.DemoAPISecretKey,
		Secret: func(_ context.Context, keys toss.KeySet) (string, error) {
			secrets := map[toss.KeySet]string{"widget:seoul": sandbox.DemoWidgetSecretKey + "_2", "api:seoul": sandbox.DemoAPISecretKey + "_2", "widget:gone": "test_gsk_stranger"}
			if secret, ok := secrets[keys]; ok {
				return secret, nil
			}
			return "", unreadable
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, seoul := t.Context(), toss.Widget.Of("seoul")
	if seoul.Kind() != toss.Widget || seoul.Merchant() != "seoul" || seoul.Of("") != toss.Widget || toss.API.Merchant() != "" {
		t.Errorf("key set %s", seoul)
	}
	pay := func(keys toss.KeySet, order, clientKey string) toss.Payment {
		key, err := box.Authenticate(sandbox.Checkout{OrderID: order, Amount: 5000, Method: toss.MethodCard, ClientKey: clientKey})
		if err != nil {
			t.Fatal(err)
		}
		p, err := client.Confirm(ctx, keys, order, toss.ConfirmRequest{PaymentKey: key, OrderID: order, Amount: 5000})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	ours, theirs := pay(toss.Widget, "order-1", ""), pay(seoul, "order-2", sandbox.DemoWidgetClientKey+"_2")
	if n := len(box.Ledger().Foreign); n != 0 {
		t.Errorf("%d foreign calls, want none", n)
	}
	_, read := client.Payment(ctx, toss.Widget, theirs.PaymentKey)
	_, byOrder := client.PaymentByOrder(ctx, seoul, ours.OrderID)
	_, cancel := client.Cancel(ctx, seoul, "cancel", ours.PaymentKey, toss.CancelRequest{Reason: "x"})
	_, confirm := client.Confirm(ctx, toss.Widget, "confirm", toss.ConfirmRequest{PaymentKey: theirs.PaymentKey, OrderID: theirs.OrderID, Amount: 5000})
	for name, err := range map[string]error{"read": read, "read by order": byOrder, "cancel": cancel, "confirm": confirm} {
		if toss.ClassOf(err) != toss.NotFound {
			t.Errorf("%s: %v, want not found", name, err)
		}
	}
	if n := len(box.Ledger().Foreign); n != 4 {
		t.Errorf("%d foreign calls, want 4", n)
	}
	day := time.Now()
	for keys, order := range map[toss.KeySet]string{toss.Widget: ours.OrderID, seoul: theirs.OrderID} {
		moved, err := client.Transactions(ctx, keys, day.Add(-24*time.Hour), day.Add(24*time.Hour))
		if err != nil || len(moved) != 1 || moved[0].OrderID != order {
			t.Errorf("transactions of %s: %+v, %v", keys, moved, err)
		}
		settled, err := client.Settlements(ctx, keys, day.Add(-24*time.Hour), day.Add(24*time.Hour))
		if err != nil || len(settled) != 1 || settled[0].OrderID != order {
			t.Errorf("settlements of %s: %+v, %v", keys, settled, err)
		}
	}
	// A key that cannot be read is no answer of the provider, so nothing is decided by it.
	if _, err := client.Payment(ctx, "widget:busan", theirs.PaymentKey); toss.ClassOf(err) != toss.Unknown || !errors.Is(err, unreadable) {
		t.Errorf("without a key: %v", err)
	}
	if !client.Rejects(ctx, "test_gsk_stranger") || client.Rejects(ctx, sandbox.DemoAPISecretKey+"_2") {
		t.Error("a stranger's key is not rejected, or a merchant's is")
	}
}
