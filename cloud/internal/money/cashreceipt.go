package money

import (
	"time"

	"github.com/yeolda/yeolda/cloud/internal/booking"
)

// ReceiptType is what a cash receipt is for.
type ReceiptType string

// The types of cash receipts.
const (
	PersonalReceipt ReceiptType = "personal" // identified by a phone number
	BusinessReceipt ReceiptType = "business" // identified by a business registration number
)

// ReceiptState is the progress of a cash receipt.
type ReceiptState string

// The states of a cash receipt.
const (
	ReceiptRequested   ReceiptState = "requested" // by the guest; nothing is at the provider
	ReceiptIssuing     ReceiptState = "issuing"   // the request may have reached the provider
	ReceiptIssued      ReceiptState = "issued"    // the tax office has not decided
	ReceiptCompleted   ReceiptState = "completed"
	ReceiptCanceling   ReceiptState = "canceling" // the cancellation may have reached the provider
	ReceiptCanceled    ReceiptState = "canceled"
	ReceiptFailed      ReceiptState = "failed"       // waits for an administrator
	ReceiptOutside     ReceiptState = "outside"      // an administrator has issued or canceled it by hand
	ReceiptWithPayment ReceiptState = "with-payment" // the provider issued it with the payment, and cancels it with the payment
)

// CashReceipt is a cash receipt of a reservation (docs/specification.md, Cash receipts). Its zero value means that the guest
// wants none.
type CashReceipt struct {
	Reservation booking.ReservationID
	Type        ReceiptType
	Number      []byte // sealed; empty after the erasure of the guest
	Masked      string // the number with its middle hidden
	State       ReceiptState
	Sequence    int // of the request to issue it
	Attempt     int // of the request in progress; each has an Idempotency-Key of its own
	Amount      int // won of the latest request
	Standing    int // won of the receipt that the provider has issued and not canceled, or that stands by hand
	Key         string
	IssueNumber string
	URL         string

	ErrorCode, ErrorMessage string

	RequestedAt, SentAt time.Time
	Checks              int

	Due int // won for which a receipt should stand
}
