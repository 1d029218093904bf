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
	CreatedAt      time.Time
	DueAt          time.Time // by law; zero until the bank transfers it
	AccountBy      string    // the administrator who entered an account that is not the payer's, until another one approves it
	KeepsStay      bool      // the reservation stays as it is
	Part           bool      // the request to the provider names the amount
}

// ApprovalRequired is the code of a refund that waits for a second administrator.
const ApprovalRequired = "APPROVAL_REQUIRED"

// AtBank reports whether the money has left the provider's balance and has not reached the guest: the bank is transferring it,
// or has rejected the transfer.
func (f Refund) AtBank() bool {
	return f.State == RefundPending || f.State == RefundFailed && (f.ErrorCode == TransferFailed || f.ErrorCode == PartFailed)
}

// The provider's states of a transfer that the bank has rejected. They are the codes of failed refunds.
const (
	TransferFailed = "FAILED"
	PartFailed     = "PARTIAL_FAILED"
)
