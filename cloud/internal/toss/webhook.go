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

// TransmissionIDHeader contains the provider's id of a webhook event. Repeated
// deliveries of one event share it.
const TransmissionIDHeader = "Tosspayments-Webhook-Transmission-Id"

// RetriedCountHeader contains the number of earlier attempts to deliver a webhook.
const RetriedCountHeader = "Tosspayments-Webhook-Transmission-Retried-Count"

// MaxWebhookBody is the largest webhook body that [ParseEvent] accepts, in bytes.
const MaxWebhookBody = 64 << 10

// EventKind is the format of a webhook.
type EventKind int

const (
	// OtherEvent is any event that the service does not use. The caller answers 200 and logs its type.
	OtherEvent EventKind = iota
	// DepositCallback is the flat message about a virtual account's deposit.
	DepositCallback
	// PaymentStatusChanged is the enveloped message that contains a whole payment.
	PaymentStatusChanged
)

// Event is the content of a webhook. Payment webhooks are not signed, so an event does not
// prove a payment: the caller must compare the secret, then read the payment by its order
// and act on that.
type Event struct {
	Kind           EventKind
	Type           string // the provider's eventType, which a deposit callback may lack
	OrderID        string
	PaymentKey     string // "" for a deposit callback
	Status         string // not verified
	TransactionKey string

	secret    string
	createdAt string // unparsed: the provider uses more than one format
}

// CreatedAt returns when the provider created the event, or zero if it is not readable.
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

// Fingerprint returns a hash that only deliveries of the same event share. It identifies repeated deliveries that have no
// transmission id.
func (e Event) Fingerprint() string {
	sum := sha256.New()
	for _, part := range []string{e.Type, e.OrderID, e.PaymentKey, e.Status, e.TransactionKey, e.createdAt} {
		fmt.Fprintf(sum, "%q", part)
	}
	return "event-" + hex.EncodeToString(sum.Sum(nil)[:16])
}

// LogValue returns the loggable fields, without the secret.
func (e Event) LogValue() slog.Value {
	return slog.GroupValue(slog.String("type", e.Type), slog.String("orderId", e.OrderID), slog.String("status", e.Status))
}

// ParseEvent decodes a webhook body of either format. It fails only if the body is not a
// JSON object of at most [MaxWebhookBody] bytes. An unknown object is an [OtherEvent].
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
	case (e.Type == "" || e.Type == "DEPOSIT_CALLBACK") && text(fields["orderId"]) != "":
		e.Kind = DepositCallback // also without a secret: SecretMatches then rejects it
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

// text returns the value of a JSON string, or "" for any other JSON.
func text(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}
