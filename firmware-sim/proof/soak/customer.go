package soak

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/yeolda/yeolda/firmware-sim/proof/record"
	"github.com/yeolda/yeolda/firmware-sim/proof/world"
)

// The provider's names of the payment methods.
const (
	card, easyPay, account, phoneBill = "카드", "간편결제", "가상계좌", "휴대폰"
)

// purchase is one customer's purchase.
type purchase struct {
	*client
	dice   *rand.Rand
	owner  int64
	mobile string
	slot   record.Slot
	amount int
	order  string
	key    string    // doorlockKey, after the message has arrived
	left   record.Op // the administrator's latest unused hold
}

// customers runs one customer after the other. Purchases in progress at the end of time are completed under ctx.
func (s *Soak) customers(limited, ctx context.Context, dice *rand.Rand) {
	for limited.Err() == nil {
		p := s.newPurchase(dice)
		p.shop(limited, ctx)
		pause(limited, between(dice, 100*time.Millisecond, 600*time.Millisecond))
	}
}

func (s *Soak) newPurchase(dice *rand.Rand) *purchase {
	owner := s.owners.Add(1)
	p := &purchase{client: s.newClient(), dice: dice, owner: owner, mobile: fmt.Sprintf("010%08d", owner)}
	p.slot = s.wish(dice)
	p.amount = world.Price(p.slot.End.Sub(p.slot.Start))
	return p
}

// shared is the share of customers with the same wish, so that they collide.
const shared = 4

// days is how far ahead customers reserve.
const days = 3

// wish returns a slot: in one of four cases now, otherwise in an afternoon of one of the next days.
func (s *Soak) wish(dice *rand.Rand) record.Slot {
	branches := s.world.Branches
	n := dice.IntN(len(branches))
	if dice.IntN(2) == 0 {
		n = dice.IntN(min(shared, len(branches)))
	}
	return s.wishAt(branches[n].Code, dice)
}

func (s *Soak) wishAt(branch string, dice *rand.Rand) record.Slot {
	slot := record.Slot{Branch: branch, Room: 1 + dice.IntN(world.Spare-1)}
	if oneIn(dice, 4) {
		slot.Start = s.world.Mark(slot.Branch, time.Now()).Add(time.Duration(dice.IntN(2)) * record.Margin)
	} else {
		slot.Start = s.day(slot.Branch, 1+dice.IntN(days)).Add(14*time.Hour + time.Duration(dice.IntN(30))*record.Margin)
	}
	slot.End = slot.Start.Add(time.Duration(1+dice.IntN(6)) * record.Margin)
	return slot
}

// day returns midnight at a branch, the given number of days after the start of the soak.
func (s *Soak) day(branch string, n int) time.Time {
	began := s.world.In(branch, s.began)
	y, m, d := began.Date()
	return time.Date(y, m, d+n, 0, 0, 0, 0, began.Location())
}

func (p *purchase) anywhere() int { return p.dice.IntN(len(p.world.Replicas)) }

func (p *purchase) shop(limited, ctx context.Context) {
	if oneIn(p.dice, 2) {
		p.look(ctx, p.slot)
	}
	if !p.take(ctx) {
		return
	}
	switch p.dice.IntN(10) {
	case 0: // abandons the hold
		if oneIn(p.dice, 2) {
			pause(ctx, world.HoldTTL+time.Second)
			p.look(ctx, p.slot)
		}
		return
	case 1: // releases the hold
		r := p.ask(ctx, p.anywhere(), http.MethodDelete, "/reservation", nil)
		p.op(record.Op{Kind: record.Release, Owner: p.owner, Slot: p.slot}, r)
		return
	}
	if p.register(ctx) {
		p.pay(limited, ctx)
	}
}

// take requests the slot, sometimes while another client requests it at the other replica.
func (p *purchase) take(ctx context.Context) bool {
	var both sync.WaitGroup
	if oneIn(p.dice, 5) {
		rival, at := p.newPurchase(rand.New(rand.NewPCG(p.dice.Uint64(), 0))), p.anywhere()
		rival.slot = p.slot
		both.Go(func() { rival.takeAt(ctx, 1-at%2) })
	}
	at := p.anywhere()
	ok := p.takeAt(ctx, at)
	both.Wait()
	return ok
}

func (p *purchase) takeAt(ctx context.Context, at int) bool {
	r := p.ask(ctx, at%len(p.world.Replicas), http.MethodPost, "/reservation", map[string]any{
		"branch": p.slot.Branch, "room": p.slot.Room, "startDateTime": wire(p.slot.Start), "endDateTime": wire(p.slot.End)})
	return p.op(record.Op{Kind: record.Take, Owner: p.owner, Slot: p.slot, At: at}, r).OK()
}

// register submits the customer's data, sometimes with a wrong price first.
func (p *purchase) register(ctx context.Context) bool {
	body := map[string]any{"amount": p.amount, "name": "홍길동", "mobileNum": p.mobile}
	if oneIn(p.dice, 20) {
		body["amount"] = p.amount - 1000
		r := p.ask(ctx, p.anywhere(), http.MethodPost, "/payment", body)
		p.wrong("a price of one's own", r, 400, 401)
		body["amount"] = p.amount
	}
	for range 3 {
		r := p.ask(ctx, p.anywhere(), http.MethodPost, "/payment", body)
		p.op(record.Op{Kind: record.Register, Owner: p.owner, Slot: p.slot, Amount: p.amount}, r)
		var registered struct {
			OrderID string `json:"orderId"`
		}
		if r.into(&registered) {
			p.order = registered.OrderID
			return true
		}
		if r.status == http.StatusUnauthorized {
			return false // the hold has expired
		}
		pause(ctx, time.Second)
	}
	return false
}

func (p *purchase) method() string {
	switch n := p.dice.IntN(10); {
	case n < 6:
		return card
	case n < 7:
		return easyPay
	case n < 8:
		return phoneBill
	}
	return account
}

// pay completes the provider's payment widget and returns to the shop.
func (p *purchase) pay(limited, ctx context.Context) {
	method := p.method()
	confirm, ok := p.authenticate(method)
	if !ok {
		return
	}
	if oneIn(p.dice, 12) { // the card company will decline
		_, _ = world.Ask(http.MethodPost, fmt.Sprintf("%s/sandbox/payments/%s/decline", p.world.Sandbox, confirm["paymentKey"]), map[string]any{}, nil) // if this fails, the card is charged
	}
	if oneIn(p.dice, 25) {
		tampered := maps.Clone(confirm)
		tampered["amount"] = p.amount / 2
		p.wrong("half the amount at the confirmation", p.ask(ctx, p.anywhere(), http.MethodPost, "/payment/confirm", tampered), 400)
	}
	if !p.confirm(ctx, confirm, method) {
		return
	}
	if method == account {
		p.payIn(ctx)
	}
	if p.receiveKey(ctx, 20*time.Second) {
		p.arrive(limited, ctx)
	}
}

// authenticate completes the provider's widget and returns its parameters.
func (p *purchase) authenticate(method string) (confirm map[string]any, ok bool) {
	var widget struct {
		PaymentKey string `json:"paymentKey"`
	}
	_, err := world.Ask(http.MethodPost, p.world.Sandbox+"/sandbox/payments", map[string]any{
		"orderId": p.order, "amount": p.amount, "method": method, "bank": "20", "clientKey": p.clientKey(p.slot.Branch)}, &widget)
	return map[string]any{"paymentKey": widget.PaymentKey, "orderId": p.order, "amount": p.amount}, err == nil
}

// buy pays by card and retries while the payment is pending.
func (p *purchase) buy(ctx context.Context) {
	confirm, ok := p.authenticate(card)
	if !ok {
		return
	}
	r := p.ask(ctx, p.anywhere(), http.MethodPost, "/payment/confirm", confirm)
	p.op(record.Op{Kind: record.Confirm, Owner: p.owner, Slot: p.slot, Order: p.order, Amount: p.amount, State: card}, r)
}

// confirm sends the payment to the service, sometimes from two windows, and retries without an answer.
func (p *purchase) confirm(ctx context.Context, body map[string]any, method string) bool {
	once := func(at int) record.Op {
		r := p.ask(ctx, at, http.MethodPost, "/payment/confirm", body)
		return p.op(record.Op{Kind: record.Confirm, Owner: p.owner, Slot: p.slot, Order: p.order, Amount: p.amount, State: method, At: at}, r)
	}
	var second sync.WaitGroup
	if at := p.anywhere(); oneIn(p.dice, 8) {
		second.Go(func() { once(1 - at%2) })
	}
	defer second.Wait()
	for try := range 6 {
		o := once(p.anywhere())
		if o.Known() {
			return o.OK()
		}
		if try == 1 && oneIn(p.dice, 3) {
			return false // gives up
		}
		pause(ctx, between(p.dice, time.Second, 4*time.Second))
	}
	return false
}

// payIn deposits into the account: at once, close to the deadline, or never. Callbacks are repeated and forged.
func (p *purchase) payIn(ctx context.Context) {
	choice := p.dice.IntN(5)
	if choice == 0 {
		return
	}
	var list struct {
		Payments []struct {
			Status         string  `json:"status"`
			Secret         *string `json:"secret"`
			VirtualAccount *struct {
				DueDate string `json:"dueDate"`
			} `json:"virtualAccount"`
		} `json:"payments"`
	}
	if _, err := world.Ask(http.MethodGet, p.world.Sandbox+"/sandbox/payments?orderId="+p.order, nil, &list); err != nil || len(list.Payments) == 0 {
		return
	}
	payment := list.Payments[len(list.Payments)-1]
	secret := ""
	if payment.Secret != nil {
		secret = *payment.Secret
	}
	if oneIn(p.dice, 3) {
		p.callback(ctx, "callback-wrong-secret", uuid.NewString(), "DONE")
	}
	if oneIn(p.dice, 3) && secret != "" {
		p.callback(ctx, "callback-right-secret", secret, "DONE") // before any deposit
	}
	if choice == 1 { // close to the deadline
		if due, ok := p.due(ctx); ok {
			pause(ctx, time.Until(due.Add(time.Duration(p.dice.IntN(21)-10)*50*time.Millisecond)))
		}
	} else {
		pause(ctx, between(p.dice, 0, 5*time.Second))
	}
	_, err := world.Ask(http.MethodPost, p.world.Sandbox+"/sandbox/deposits", map[string]any{"orderId": p.order}, nil)
	if err == nil && secret != "" && oneIn(p.dice, 2) {
		for range 3 {
			p.callback(ctx, "callback-again", secret, "DONE")
		}
	}
}

// due is the deadline on the page: the provider keeps the account open for longer than the service.
func (p *purchase) due(ctx context.Context) (time.Time, bool) {
	r := p.ask(ctx, p.anywhere(), http.MethodGet, "/v2/receipt", nil)
	var receipt struct {
		Due string `json:"virtualaccountDueDate"`
	}
	if !r.into(&receipt) || receipt.Due == "" {
		p.mu.Lock()
		defer p.mu.Unlock()
		for i := len(p.record.Ops) - 1; i >= 0; i-- {
			if o := p.record.Ops[i]; o.Kind == record.Confirm && o.Order == p.order && o.OK() {
				return o.Return.Add(world.DepositDue), true
			}
		}
		return time.Time{}, false
	}
	due, err := time.ParseInLocation("2006-01-02T15:04:05", receipt.Due, p.slot.Start.Location())
	return due, err == nil
}

// callback sends a forged callback of the provider.
func (p *purchase) callback(ctx context.Context, kind, secret, status string) {
	r := p.ask(ctx, p.anywhere(), http.MethodPost, "/virtualaccount/webhook", map[string]any{
		"createdAt": time.Now().Format(time.RFC3339Nano), "secret": secret, "status": status,
		"transactionKey": uuid.NewString(), "orderId": p.order})
	p.note(func(rec *record.Record) {
		rec.Forged = append(rec.Forged, record.Forgery{Kind: kind, Order: p.order, At: r.call, Status: r.status})
	})
}

// wrong records the answer to an invalid request.
func (s *Soak) wrong(what string, r reply, want ...int) {
	if r.status == 0 || r.status >= http.StatusInternalServerError {
		return // no replica processed it
	}
	s.note(func(rec *record.Record) {
		rec.Wrong = append(rec.Wrong, record.Wrong{What: what, Want: want, Status: r.status})
	})
}

// receiveKey waits for the message with the key.
func (p *purchase) receiveKey(ctx context.Context, within time.Duration) bool {
	for limit := time.Now().Add(within); time.Now().Before(limit) && ctx.Err() == nil; pause(ctx, 300*time.Millisecond) {
		for _, m := range p.messages() {
			if key := m.Variables["doorlockKey"]; key != "" {
				p.key = key
				return true
			}
		}
	}
	return false
}

type message struct {
	At        time.Time         `json:"at"`
	To        string            `json:"to"`
	Template  string            `json:"template"`
	Variables map[string]string `json:"variables"`
}

func (p *purchase) messages() []message {
	var list struct {
		Messages []message `json:"messages"`
	}
	if _, err := world.Ask(http.MethodGet, p.world.Sandbox+"/sandbox/messages?to="+p.mobile, nil, &list); err != nil {
		return nil
	}
	return list.Messages
}

// arrive uses the key: opens doors, or cancels.
func (p *purchase) arrive(limited, ctx context.Context) {
	presses := 1
	if now := time.Now(); p.slot.Start.Before(now) {
		presses = 2 + p.dice.IntN(5)
	}
	for range presses {
		p.press(ctx)
		pause(limited, between(p.dice, 200*time.Millisecond, 3*time.Second))
	}
	if oneIn(p.dice, 8) {
		p.pressWith(ctx, uuid.NewString(), true)
	}
	if !oneIn(p.dice, 3) {
		return
	}
	p.cancel(ctx)
	p.press(ctx) // the key must be dead
}
