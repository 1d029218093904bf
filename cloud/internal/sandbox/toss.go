package sandbox

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"
)

// Limits of the payment API.
const (
	maxBody           = 64 << 10
	maxIdempotencyKey = 300                 // characters (docs/specification.md, Payment provider 1)
	idempotencyLife   = 15 * 24 * time.Hour // counted from the first use of a key
)

// tossCall is one request to the payment API.
type tossCall struct {
	*http.Request
	keys keySet
	body []byte
	now  time.Time
}

// decode parses the body. Like the provider, it ignores unknown fields.
func (c *tossCall) decode(v any) error {
	if err := json.Unmarshal(c.body, v); err != nil {
		return refuse("INVALID_REQUEST")
	}
	return nil
}

// answer is an HTTP response.
type answer struct {
	Status int             `json:"status"`
	Body   json.RawMessage `json:"body"`
	At     time.Time       `json:"at"`
}

// answerWith converts the result of a call to a response.
func answerWith(v any, err error, now time.Time) *answer {
	status := http.StatusOK
	if err != nil {
		var r *Refusal
		if !errors.As(err, &r) {
			r = refuse("FAILED_INTERNAL_SYSTEM_PROCESSING")
		}
		status, v = r.Status, r
	}
	body, err := json.Marshal(v)
	if err != nil {
		panic(err) // only values of this package are passed
	}
	return &answer{Status: status, Body: body, At: now}
}

// toss serves one endpoint of the payment API; do handles a call with s.mu held.
func (s *Sandbox) toss(target FaultTarget, do func(*tossCall) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		c := &tossCall{Request: r, body: body}
		var a *answer
		if err == nil {
			a = s.answerToss(target, c, do) //nolint:contextcheck // c is the request, which carries the context
		} else {
			a = answerWith(nil, refuse("INVALID_REQUEST"), s.now())
		}
		s.noteCall(c, a)
		if a == nil {
			hangUp(w)
			return
		}
		w.Header().Set("Content-Type", "application/json;charset=UTF-8")
		w.Header().Set("x-tosspayments-trace-id", randomHex(16))
		w.WriteHeader(a.Status)
		w.Write(a.Body)
	}
}

// answerToss authenticates c and calls do, once per idempotency key and subject to the next fault. It returns nil if the
// connection must be closed without a response.
//
// The identity of a request consists of idempotency key, API key, URL and method, without the body. Refusals are
// stored like successes. Responses to requests that the provider did not handle (5xx, 429, a time-out, or 409 while
// the first request is in progress) are not stored.
func (s *Sandbox) answerToss(target FaultTarget, c *tossCall, do func(*tossCall) (any, error)) *answer {
	keys, err := s.authenticate(c.Header.Get("Authorization"))
	if err != nil {
		return answerWith(nil, err, s.now())
	}
	c.keys = keys
	identity := ""
	if key := c.Header.Get("Idempotency-Key"); key != "" && c.Method == http.MethodPost {
		if utf8.RuneCountInString(key) > maxIdempotencyKey {
			return answerWith(nil, refuse("INVALID_IDEMPOTENCY_KEY"), s.now())
		}
		identity = strings.Join([]string{string(keys), c.Method, c.URL.Path, key}, " ")
		if a := s.begin(identity); a != nil {
			return a
		}
		defer s.end(identity)
	}

	if code := c.Header.Get("TossPayments-Test-Code"); code != "" {
		return s.conclude(identity, func() *answer { return answerWith(nil, refuse(code), s.now()) })
	}
	fault, timedOut := s.meet(target, c.Context())
	switch {
	case timedOut:
		return nil
	case fault.is(FaultError):
		return s.conclude(identity, func() *answer { return answerWith(nil, fault.refusal(), s.now()) })
	}
	a := s.conclude(identity, func() *answer {
		c.now = s.now()
		v, err := do(c)
		return answerWith(v, err, c.now)
	})
	if fault.is(FaultDropAfterCommit) {
		return nil
	}
	return a
}

// begin returns the stored response of an earlier request with the identity, or a refusal while that request is in
// progress. If it returns nil, this is the first request and the caller must call end.
func (s *Sandbox) begin(identity string) *answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	if first, ok := s.state.Answers[identity]; ok && s.now().Sub(first.At) < idempotencyLife {
		return first
	}
	if _, ok := s.running[identity]; ok {
		return answerWith(nil, refuse("IDEMPOTENT_REQUEST_PROCESSING"), s.now())
	}
	s.running[identity] = struct{}{}
	return nil
}

func (s *Sandbox) end(identity string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.running, identity)
}

// conclude runs act and stores its response under the identity, both with s.mu held.
func (s *Sandbox) conclude(identity string, act func() *answer) *answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := act()
	if identity != "" && a.Status < 500 && a.Status != http.StatusTooManyRequests && a.Status != http.StatusConflict {
		s.state.Answers[identity] = a
		s.state.unsaved.Answers[identity] = a
	}
	s.keep()
	return a
}

// noteCall records the call and its order in the ledger.
func (s *Sandbox) noteCall(c *tossCall, a *answer) {
	call := Call{
		At: s.now(), Method: c.Method, Path: c.URL.Path,
		IdempotencyKey: c.Header.Get("Idempotency-Key"), OrderID: c.PathValue("orderId"), Keys: string(c.keys),
	}
	if a != nil {
		call.Status = a.Status
	}
	payment := c.PathValue("paymentKey")
	if call.OrderID == "" {
		var in struct {
			OrderID    string `json:"orderId"`
			PaymentKey string `json:"paymentKey"`
		}
		if json.Unmarshal(c.body, &in) == nil {
			call.OrderID, payment = in.OrderID, cmp.Or(payment, in.PaymentKey)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.state.byKey[payment]
	if r != nil && c.PathValue("paymentKey") != "" {
		call.OrderID = r.Payment.OrderID
	}
	s.state.Ledger.note(call)
	s.state.unsaved.Ledger.Calls = append(s.state.unsaved.Ledger.Calls, call)
	if r == nil {
		r = s.state.order(call.OrderID, s.now())
	}
	if r != nil && c.keys != "" && r.foreignTo(c.keys) {
		s.state.Ledger.noteForeign(call)
		s.state.unsaved.Ledger.noteForeign(call)
	}
	s.keep()
}

// unknownTossPath answers requests to unknown endpoints.
func (s *Sandbox) unknownTossPath(*tossCall) (any, error) { return nil, refuse("NOT_FOUND") }
