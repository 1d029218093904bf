package money

import (
	"time"

	"github.com/yeolda/yeolda/cloud/internal/booking"
)

// RefundState is the progress of a refund.
type RefundState string

// REQUESTED -> PENDING (the bank is transferring) -> COMPLETED | FAILED; REQUESTED -> COMPLETED | FAILED | REFUSED;
// FAILED -> REQUESTED when an administrator retries, for example with another account. REFUSED is final: the provider
// declined and the reservation was restored.
const (
	RefundRequested RefundState = "REQUESTED"
	RefundPending   RefundState = "PENDING"
	RefundCompleted RefundState = "COMPLETED"
	RefundFailed    RefundState = "FAILED"
	RefundRefused   RefundState = "REFUSED"
)

// Refund is one intent to return money, or to close a virtual account that received none.
type Refund struct {
	ID             int64
	Reservation    booking.ReservationID
	State          RefundState
	Reason         string
	Amount         int
	By             string // customer, admin:<login id>, system:<reason>
	Account        []byte // sealed refund account; empty where none is needed
	KeyRevoked     bool   // the request revoked the keys, which a refusal restores
	IdempotencyKey string
	Attempt        int
	ErrorCode      string // the provider's code and message, if it declined
	ErrorMessage   string
	RequestedAt    time.Time // by the latest request
	DueAt          time.Time // by law; zero until the bank transfers it
	AccountBy      string    // the administrator whose account, amount or refund by hand waits for the approval of another one
	Outside        []byte    // the refund by hand that waits for approval; JSON
	KeepsStay      bool      // the reservation stays as it is
	Part           bool      // the request to the provider names the amount
	Taken          bool      // the provider has taken the amount off the balance for a bank transfer
	Rest           bool      // the account also receives the rest of the canceled reservation

	// How the extensions end when the refund is made: when the guest asked, if the refund policy applies to them, and the sealed account
	// for their deposits, if it is not Account.
	PolicyAt         time.Time
	ExtensionAccount []byte
}

// The codes of refunds that wait for a second administrator, because of the account or because of the amount.
const (
	ApprovalRequired       = "APPROVAL_REQUIRED"
	AmountApprovalRequired = "AMOUNT_APPROVAL_REQUIRED"
)

// ApprovalDeclined is the code of a refund that an administrator declined.
const ApprovalDeclined = "APPROVAL_DECLINED"

// HeldBack reports whether the refund is not sent, because it waits for a second administrator. A part that the bank has
// rejected was sent before.
func (f Refund) HeldBack() bool {
	return f.State == RefundFailed && (f.ErrorCode == ApprovalRequired || f.ErrorCode == AmountApprovalRequired)
}

// Unsent reports whether the provider has never executed the refund and no request for it is in progress.
func (f Refund) Unsent() bool { return f.State == RefundFailed && !f.AtBank() }

// Waits reports whether a second administrator has to approve the refund.
func (f Refund) Waits() bool {
	return f.AccountBy != "" && f.State != RefundCompleted && f.State != RefundRefused
}

// AtBank reports whether the money has left the provider's balance and has not reached the guest: the bank is transferring it,
// or has rejected the transfer.
func (f Refund) AtBank() bool {
	return f.State == RefundPending || f.State == RefundFailed && f.Taken || f.TransferRejected()
}

// Outstanding reports whether the money has left the provider's balance and not reached the guest, also while a rejected transfer is
// requested again.
func (f Refund) Outstanding() bool { return f.AtBank() || f.State == RefundRequested && f.Taken }

// TransferRejected reports whether the bank has rejected the transfer, and no later request has been declined.
func (f Refund) TransferRejected() bool {
	return f.State == RefundFailed && (f.ErrorCode == TransferFailed || f.ErrorCode == PartFailed)
}

// The provider's states of a transfer that the bank has rejected. They are the codes of failed refunds.
const (
	TransferFailed = "FAILED"
	PartFailed     = "PARTIAL_FAILED"
)
