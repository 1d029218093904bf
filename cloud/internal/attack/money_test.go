package attack

import (
	"maps"
	"net/http"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/sandbox"
)

var moneyAttacks = []attack{
	{"A14", "another-amount", func(g *target) {
		c := g.Client(g.T)
		g.hold(c, 1, 3)
		for _, amount := range []any{1, price - 1, 0, -price, 2147483648, "30000", 30000.5} {
			g.refused(c.Send(http.MethodPost, "/payment", map[string]any{"amount": amount, "name": "a", "mobileNum": "010-1234-5678"}, nil), "registering another amount", 400)
		}
		order := g.register(c, victim)
		confirmation := g.authenticate(order, price, sandbox.MethodCard)
		forged := maps.Clone(confirmation)
		forged["amount"] = 100
		g.refused(c.Send(http.MethodPost, "/payment/confirm", forged, nil), "confirming another amount", 400)
		g.held(g.Sandbox.Ledger().Charged == 0, "charged %d won", g.Sandbox.Ledger().Charged)
	}},
	{"A15", "payment-of-another-order", func(g *target) {
		a, b := g.Client(g.T), g.Client(g.T)
		_, paid := g.buy(a, 3, victim)
		g.hold(b, 1, 8)
		order := g.register(b, "010-7777-0001")
		g.refused(b.Send(http.MethodPost, "/payment/confirm", map[string]any{"paymentKey": paid["paymentKey"], "orderId": order, "amount": price}, nil), "payment key of another order", 400, 404, 409, 503)
		g.refused(b.Send(http.MethodPost, "/payment/confirm", map[string]any{"paymentKey": "made-up", "orderId": order, "amount": price}, nil), "made-up payment key", 400, 404, 503)
		g.refused(b.Send(http.MethodPost, "/payment/confirm", map[string]any{"paymentKey": paid["paymentKey"], "orderId": "made-up", "amount": price}, nil), "made-up order", 404)
		g.held(g.Sandbox.Ledger().Charged == price, "charged %d won, want %d", g.Sandbox.Ledger().Charged, price)
	}},
	{"A16", "forged-deposit", func(g *target) {
		c := g.Client(g.T)
		g.hold(c, 1, 3)
		order := g.register(c, victim)
		c.Post("/payment/confirm", g.authenticate(order, price, sandbox.MethodVirtualAccount)).OK(g.T)
		for _, body := range []map[string]any{
			{"orderId": order, "status": "DONE", "secret": "guess", "createdAt": "2026-11-22T12:00:00.000000", "transactionKey": "t"},
			{"orderId": order, "status": "DONE", "secret": "", "createdAt": "2026-11-22T12:00:00.000000", "transactionKey": "t"},
			{"orderId": "made-up", "status": "DONE", "secret": "guess", "createdAt": "2026-11-22T12:00:00.000000", "transactionKey": "t"},
		} {
			g.refused(g.Client(g.T).Send(http.MethodPost, "/virtualaccount/webhook", body, nil), "forged deposit", 400, 403, 404)
		}
		var state string
		if err := g.DB.Pool.QueryRow(g.Context(), `select state from reservation where order_id = $1`, order).Scan(&state); err != nil {
			g.Fatal(err)
		}
		g.held(state == "WAITING_FOR_DEPOSIT", "state %s after forged deposits", state)
	}},
	{"A17", "refund-of-another-guest", func(g *target) {
		owner := g.Client(g.T)
		g.buy(owner, 26, victim)
		thief := g.Client(g.T)
		g.buy(thief, 30, "010-7777-0001")
		thief.Post("/account/code", map[string]string{"type": "mobile", "id": "010-7777-0001"}).OK(g.T)
		thief.Post("/account/login", map[string]string{"type": "mobile", "id": "010-7777-0001", "code": g.code("010-7777-0001", 1)}).OK(g.T)
		var id int64
		if err := g.DB.Pool.QueryRow(g.Context(), `select id from reservation where mobile_key = $1`, "01088880001").Scan(&id); err != nil {
			g.Fatal(err)
		}
		body := map[string]any{"id": id, "cancelReason": "x", "refundReceiveAccountBank": "20", "refundReceiveAccountNumber": "1", "refundReceiveAccountHolderName": "thief"}
		g.refused(thief.Send(http.MethodPost, "/payment/cancel", body, nil), "cancelling another guest's stay", 403)
		g.refused(g.Client(g.T).Send(http.MethodPost, "/payment/cancel", body, nil), "cancelling without a session", 401)
		g.held(g.Sandbox.Ledger().Refunded == 0, "refunded %d won", g.Sandbox.Ledger().Refunded)
	}},
	{"A18", "hoarding-from-one-address", func(g *target) {
		taken := 0
		start := g.Clock.Now().In(seoul).Add(24 * time.Hour).Truncate(time.Hour)
		for i := range 20 {
			at := start.AddDate(0, 0, i)
			at = time.Date(at.Year(), at.Month(), at.Day(), 15, 0, 0, 0, seoul)
			body := map[string]any{"branch": "gangnam", "room": 1, "startDateTime": minute(at), "endDateTime": minute(at.Add(time.Hour))}
			if g.send(g.Client(g.T), "198.51.100.9", http.MethodPost, "/reservation", body).HTTP == 200 {
				taken++
			}
		}
		g.held(taken > 0 && taken <= 5, "%d unpaid holds of one address", taken)
	}},
	{"A19", "rewritten-audit-log", func(g *target) {
		g.hq()
		for _, statement := range []string{`delete from audit`, `truncate audit`, `update audit set actor = 'x'`, `delete from ledger`, `update ledger set amount = 0`} {
			if _, err := g.DB.Pool.Exec(g.Context(), statement); err == nil {
				var rows int
				_ = g.DB.Pool.QueryRow(g.Context(), `select count(*) from audit where actor = 'x'`).Scan(&rows)
				g.held(statement == `update audit set actor = 'x'` && rows == 0, "%s was accepted", statement)
			} else {
				g.held(true, "")
			}
		}
	}},
}
