package sandbox

import (
	"time"
	"unicode/utf8"
)

// cancelRequest is the body of POST /v1/payments/{paymentKey}/cancel.
type cancelRequest struct {
	CancelReason         string         `json:"cancelReason"`
	CancelAmount         *int           `json:"cancelAmount"`
	TaxFreeAmount        int            `json:"taxFreeAmount"`
	RefundableAmount     *int           `json:"refundableAmount"`
	RefundReceiveAccount *refundRequest `json:"refundReceiveAccount"`
}

// repeats reports whether the request is for the transfer that the bank has returned.
func (in cancelRequest) repeats(r *record) bool {
	if r.Bounced == 0 || in.RefundReceiveAccount == nil {
		return false
	}
	if in.CancelAmount == nil {
		return r.Payment.BalanceAmount == 0
	}
	return *in.CancelAmount == r.Bounced
}

// cancelPayment handles POST /v1/payments/{paymentKey}/cancel (docs/specification.md, Payment provider 3 and 5). A deposit is refunded by a
// bank transfer to the account in the request: the payment is cancelled at once and virtualAccount.refundStatus
// follows later. A refund returned by the bank, of a part too, may be requested again with another account; the provider
// does not document this case. Until then its status remains FAILED or PARTIAL_FAILED, whatever is transferred after it.
func (s *Sandbox) cancelPayment(c *tossCall) (any, error) {
	var in cancelRequest
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	if in.CancelReason == "" || utf8.RuneCountInString(in.CancelReason) > 200 {
		return nil, refuseRequest("cancelReason은 필수이며 200자 이하여야 합니다.")
	}
	r := s.state.payment(c.PathValue("paymentKey"), c.now)
	if r == nil || r.foreignTo(c.keys) {
		return nil, refuse("NOT_FOUND_PAYMENT")
	}
	if in.repeats(r) {
		return s.repeatTransfer(r, in.RefundReceiveAccount, c.now)
	}
	p := &r.Payment
	amount := p.BalanceAmount
	if in.CancelAmount != nil {
		amount = *in.CancelAmount
	}
	if err := r.refuseCancel(c, in, amount); err != nil {
		return nil, err
	}
	waiting := p.Status == StatusWaitingForDeposit
	needsAccount := r.Method == MethodVirtualAccount && !waiting
	switch account := in.RefundReceiveAccount; {
	case needsAccount && account == nil:
		return nil, refuseRequest("입금이 완료된 가상계좌 결제를 취소하려면 refundReceiveAccount가 필요합니다.")
	case !needsAccount && account != nil:
		return nil, refuseRequest("refundReceiveAccount는 입금이 완료된 가상계좌 결제에만 사용할 수 있습니다.")
	case needsAccount:
		if err := p.VirtualAccount.refundTo(account); err != nil {
			return nil, err
		}
	}

	s.state.changed(r)
	p.cancel(in, amount, c.now)
	if !waiting {
		s.state.Ledger.Refunded += amount
		s.state.book(p, amount, c.now)
	}
	if needsAccount {
		s.startRefund(r, amount, c.now)
	}
	if r.Method == MethodVirtualAccount {
		s.depositCallback(r, c.now)
	}
	return p, nil
}

// repeatTransfer sends the transfer that the bank has returned to another account.
func (s *Sandbox) repeatTransfer(r *record, account *refundRequest, now time.Time) (any, error) {
	if err := r.Payment.VirtualAccount.refundTo(account); err != nil {
		return nil, err
	}
	s.state.changed(r)
	won := r.Bounced
	s.state.Ledger.Refunded += won
	r.Bounced = 0
	s.startRefund(r, won, now)
	return &r.Payment, nil
}

// refuseCancel returns why the provider does not cancel an amount of the payment, or nil.
func (r *record) refuseCancel(c *tossCall, in cancelRequest, amount int) error {
	p := &r.Payment
	waiting := p.Status == StatusWaitingForDeposit
	switch {
	case r.Keys != c.keys:
		return refuse("INVALID_API_KEY")
	case p.Status == StatusCanceled:
		return refuse("ALREADY_CANCELED_PAYMENT")
	case !waiting && p.Status != StatusDone && p.Status != StatusPartialCanceled:
		return refuse("NOT_CANCELABLE_PAYMENT")
	case in.RefundableAmount != nil && *in.RefundableAmount != p.BalanceAmount:
		return refuse("NOT_MATCHES_REFUNDABLE_AMOUNT")
	case in.CancelAmount != nil && *in.CancelAmount <= 0:
		return refuseRequest("cancelAmount는 0보다 커야 합니다.")
	case p.BalanceAmount == 0 || amount > p.BalanceAmount:
		return refuse("NOT_CANCELABLE_AMOUNT")
	case waiting && amount != p.BalanceAmount:
		return refuse("NOT_ALLOWED_PARTIAL_REFUND_WAITING_DEPOSIT")
	case r.Method == MethodMobilePhone && !sameMonth(*p.ApprovedAt, c.now):
		return refuse("EXCEED_MAX_REFUND_DUE")
	}
	return nil
}

// cancel takes an amount off the balance.
func (p *Payment) cancel(in cancelRequest, amount int, now time.Time) {
	p.LastTransactionKey = new(newTransactionKey())
	p.Status = StatusPartialCanceled
	if amount == p.TotalAmount {
		p.Status = StatusCanceled
	}
	p.BalanceAmount -= amount
	p.SuppliedAmount = p.BalanceAmount - vat(p.BalanceAmount)
	p.VAT = vat(p.BalanceAmount)
	p.Cancels = append(p.Cancels, Cancel{
		CancelAmount: amount, CancelReason: in.CancelReason, TaxFreeAmount: in.TaxFreeAmount,
		RefundableAmount: p.BalanceAmount, CanceledAt: wireTime(now),
		TransactionKey: *p.LastTransactionKey, CancelStatus: "DONE",
	})
}

// refundRequest is the account to which a request refunds a deposit.
type refundRequest struct {
	Bank          string `json:"bank"`
	AccountNumber string `json:"accountNumber"`
	HolderName    string `json:"holderName"`
}

// refundTo records the account for the refund of a deposit, if it is valid.
func (v *VirtualAccount) refundTo(account *refundRequest) error {
	switch {
	case !refundableBank(account.Bank):
		return refuse("INVALID_BANK")
	case !digits(account.AccountNumber) || len(account.AccountNumber) > 20:
		return refuse("INVALID_REFUND_ACCOUNT_NUMBER")
	case account.HolderName == "" || utf8.RuneCountInString(account.HolderName) > 60:
		return refuse("INVALID_REFUND_ACCOUNT_INFO")
	}
	v.RefundReceiveAccount = &RefundAccount{BankCode: account.Bank, AccountNumber: account.AccountNumber, HolderName: account.HolderName}
	return nil
}

// startRefund transfers amount to the buyer's account.
func (s *Sandbox) startRefund(r *record, amount int, now time.Time) {
	t := transfer{Amount: amount, At: now.Add(s.opts.RefundDelay)}
	if f := s.takeFault(TargetRefund); f != nil {
		switch f.Kind {
		case FaultError:
			t.Fails, t.At = true, t.At.Add(f.Delay)
		case FaultSlow:
			t.At = now.Add(f.slowTime())
		case FaultTimeout:
			t.At = time.Time{}
		}
	}
	r.Transfers = append(r.Transfers, t)
	r.Payment.VirtualAccount.RefundStatus = "PENDING"
}

// sameMonth reports whether both times are in the same calendar month in Korea, which decides about refunds of phone
// bills.
func sameMonth(a, b time.Time) bool {
	a, b = a.In(kst), b.In(kst)
	return a.Year() == b.Year() && a.Month() == b.Month()
}
