package booking

import (
	"errors"
	"time"
)

// ErrNoMessage is returned when no message has the given id or state.
var ErrNoMessage = errors.New("booking: no such message")

// MessageState is the delivery state of a message.
type MessageState = string

// The delivery states. SENT and FAILED are final.
const (
	MessageQueued  MessageState = "QUEUED"
	MessageSending MessageState = "SENDING"
	MessageSent    MessageState = "SENT"
	MessageFailed  MessageState = "FAILED"
)

// Message is one message to a guest or to staff, from the transaction that required it to its delivery.
type Message struct {
	ID          int64
	CreatedAt   time.Time
	Reservation ReservationID // 0 if the message is about no reservation
	Branch      BranchID      // 0 if the message is about no branch
	Template    string
	Language    string
	Mobile      string
	Email       string
	Medium      string // a notify.Channel that is required; empty: any
	Variables   []byte // sealed JSON, purpose "message"
	State       MessageState
	Channel     string // a notify.Channel; empty until sent
	Attempt     int
	Doubtful    int // earlier attempts that may have reached the recipient
	SentAt      time.Time
	Error       string
}
