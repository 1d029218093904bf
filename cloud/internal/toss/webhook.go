package toss

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"
)

// TransmissionIDHeader carries the provider's id of a webhook delivery; repeated
// deliveries of one event share it.
const TransmissionIDHeader = "Tosspayments-Webhook-Transmission-Id"

// RetriedCountHeader carries how often the provider has tried to deliver a webhook before.
const RetriedCountHeader = "Tosspayments-Webhook-Transmission-Retried-Count"

// MaxWebhookBody is the largest webhook body [ParseEvent] takes, in bytes.
const MaxWebhookBody = 64 << 10

// EventKind tells the shapes of webhook apart.
type EventKind int

const (
	// OtherEvent is anything this service has no use for: answer 200 and log its type.
	OtherEvent EventKind = iota
	// DepositCallback is the flat message about a virtual account's deposit.
	DepositCallback
	// PaymentStatusChanged is the enveloped message with a whole payment in it.
	PaymentStatusChanged
)

// Event is what a webhook claims. Payment webhooks are not signed, so an event never
// makes money by itself: compare the secret, then read the payment by its order and
// act on what the provider says there.
type Event struct {
	Kind           EventKind
	Type           string // the provider's eventType, "" for a deposit callback
	OrderID        string
	PaymentKey     string // "" for a deposit callback
	Status         string // a claim, not a fact
	TransactionKey string

	secret    string
	createdAt string // verbatim: the provider writes it in more than one way
}

// CreatedAt is when the provider made the event; zero if it is not readable.
func (e Event) CreatedAt() time.Time {
	var t wireTime
	if t.UnmarshalJSON([]byte(strconv.Quote(e.createdAt))) != nil {
		return time.Time{}
	}
	return t.Time
}

// SecretMatches compares the event's secret with the one stored with the payment, in
// constant time. Two empty secrets do not match.
func (e Event) SecretMatches(stored string) bool {
	return stored != "" && subtle.ConstantTimeCompare([]byte(e.secret), []byte(stored)) == 1
}

// Fingerprint is the same for two deliveries of the same event and differs for any two other ones: it tells
// repetitions that carry no transmission id.
func (e Event) Fingerprint() string {
	sum := sha256.New()
	for _, part := range []string{e.Type, e.OrderID, e.PaymentKey, e.Status, e.TransactionKey, e.createdAt} {
		fmt.Fprintf(sum, "%q", part)
	}
	return "event-" + hex.EncodeToString(sum.Sum(nil)[:16])
}

// LogValue keeps the secret out of logs.
func (e Event) LogValue() slog.Value {
	return slog.GroupValue(slog.String("type", e.Type), slog.String("orderId", e.OrderID), slog.String("status", e.Status))
}

// ParseEvent reads a webhook body of either shape. It fails only on what is not a JSON
// object of at most [MaxWebhookBody] bytes; an object it does not know is an [OtherEvent].
func ParseEvent(body []byte) (Event, error) {
	if len(body) > MaxWebhookBody {
		return Event{}, fmt.Errorf("toss: webhook of %d bytes is too long", len(body))
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		return Event{}, fmt.Errorf("toss: webhook is not a JSON object: %w", err)
	}
	if fields == nil {
		return Event{}, errors.New("toss: webhook is null")
	}
	e := Event{Type: text(fields["eventType"]), createdAt: text(fields["createdAt"])}
	switch {
	case e.Type == "PAYMENT_STATUS_CHANGED":
		var data map[string]json.RawMessage
		if json.Unmarshal(fields["data"], &data) == nil && text(data["orderId"]) != "" {
			e.Kind = PaymentStatusChanged
			fields = data
		}
	case e.Type == "" && text(fields["orderId"]) != "":
		e.Kind = DepositCallback // without a secret too: it proves nothing then
	}
	if e.Kind != OtherEvent {
		e.OrderID = text(fields["orderId"])
		e.PaymentKey = text(fields["paymentKey"])
		e.Status = text(fields["status"])
		e.TransactionKey = text(fields["transactionKey"])
		e.secret = text(fields["secret"])
	}
	return e, nil
}

// text returns a JSON string's value, and "" for anything else.
func text(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}
