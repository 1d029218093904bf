package moneytest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"strconv"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/sandbox"
)

// Buyer is a browser with its own cookies. It may be used from any goroutine, because its methods return errors and do not
// use testing.T.
type Buyer struct {
	API    string // http://…/api
	Box    *sandbox.Sandbox
	HTTP   *http.Client
	Header http.Header // of every request; may be nil
}

// NewBuyer returns a browser without cookies.
func NewBuyer(api string, box *sandbox.Sandbox) *Buyer {
	jar, err := cookiejar.New(nil)
	if err != nil {
		panic(err) // cannot fail without options
	}
	return &Buyer{API: api, Box: box, HTTP: &http.Client{Jar: jar, Timeout: 90 * time.Second}}
}

// Reply is a response in the API's envelope.
type Reply struct {
	HTTP      int
	Header    http.Header
	Raw       string
	Repeated  bool            // by Insist: an earlier attempt may have been carried out
	ErrorType string          `json:"errorType"`
	ErrorCode string          `json:"errorCode"`
	Data      json.RawMessage `json:"data"`
}

// OK returns an error unless the status is 200.
func (r Reply) OK() error {
	if r.HTTP != http.StatusOK {
		return fmt.Errorf("answer %d: %s", r.HTTP, r.Raw)
	}
	return nil
}

// Do sends a request, with a JSON body unless body is nil. It returns an error if no response arrives.
func (b *Buyer) Do(ctx context.Context, method, path string, body any) (Reply, error) {
	var content io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return Reply{}, err
		}
		content = bytes.NewReader(encoded)
	}
	request, err := http.NewRequestWithContext(ctx, method, b.API+path, content)
	if err != nil {
		return Reply{}, err
	}
	maps.Copy(request.Header, b.Header)
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := b.HTTP.Do(request)
	if err != nil {
		return Reply{}, err
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		return Reply{}, err
	}
	reply := Reply{HTTP: response.StatusCode, Header: response.Header, Raw: string(raw)}
	if err := json.Unmarshal(raw, &reply); err != nil {
		return reply, fmt.Errorf("answer %d is not the envelope: %s", response.StatusCode, raw)
	}
	return reply, nil
}

// Post sends a POST request: see Do.
func (b *Buyer) Post(ctx context.Context, path string, body any) (Reply, error) {
	return b.Do(ctx, http.MethodPost, path, body)
}

// timedOut is below each time-out that ends a request of the service. A 503 that arrives earlier has another cause.
const timedOut = 5 * time.Second

// Insist is Post by a client that repeats the request, as cloud/docs/errors.md requires, if a time-out of the service ended it:
// on a busy machine the service rightly answers 503. A 503 without a time-out is returned, so that a test notices it.
func (b *Buyer) Insist(ctx context.Context, path string, body any) (Reply, error) {
	began, repeated := time.Now(), false
	for {
		reply, err := b.Post(ctx, path, body)
		reply.Repeated = repeated
		if err != nil || reply.HTTP != http.StatusServiceUnavailable || time.Since(began) < timedOut {
			return reply, err
		}
		repeated = true
		select {
		case <-ctx.Done():
			return reply, ctx.Err()
		case <-time.After(reply.retryAfter()):
		}
	}
}

// retryAfter is the pause that the service requests, or a short one.
func (r Reply) retryAfter() time.Duration {
	seconds, err := strconv.Atoi(r.Header.Get("Retry-After"))
	if err != nil {
		return 100 * time.Millisecond
	}
	return time.Duration(seconds) * time.Second
}

// Wish is a purchase to make: an hour in a room of the branch gangnam.
type Wish struct {
	Room   int
	Start  time.Time
	Method string // of the sandbox
	Mobile string
}

// Prices are the prices in won of an hour in the rooms of the branch gangnam.
var Prices = map[int]int{1: 30000, 2: 25000, 3: 22000, 4: 20000, 5: 15000, 6: 13000}

// Confirm is the body of POST /payment/confirm.
type Confirm struct {
	PaymentKey string `json:"paymentKey"`
	OrderID    string `json:"orderId"`
	Amount     int    `json:"amount"`
}

var seoul = time.FixedZone("KST", 9*60*60)

// Wire formats a time as the API does.
func Wire(t time.Time) string { return t.In(seoul).Format("200601021504") }

// Hold holds the room of a wish.
func (b *Buyer) Hold(ctx context.Context, w Wish) error {
	reply, err := b.Insist(ctx, "/reservation", map[string]any{
		"branch": "gangnam", "room": w.Room, "startDateTime": Wire(w.Start), "endDateTime": Wire(w.Start.Add(time.Hour)),
	})
	return errors.Join(err, reply.OK())
}

// Order makes a hold and goes through the payment widget. It returns the body of the confirmation.
func (b *Buyer) Order(ctx context.Context, w Wish) (Confirm, error) {
	if err := b.Hold(ctx, w); err != nil {
		return Confirm{}, err
	}
	return b.Register(ctx, w)
}

// Register stores the contact of a hold and goes through the payment widget.
func (b *Buyer) Register(ctx context.Context, w Wish) (Confirm, error) {
	reply, err := b.Insist(ctx, "/payment", map[string]any{
		"amount": Prices[w.Room], "name": "홍길동", "mobileNum": w.Mobile,
	})
	if err := errors.Join(err, reply.OK()); err != nil {
		return Confirm{}, err
	}
	var registered struct {
		OrderID string `json:"orderId"`
	}
	if err := json.Unmarshal(reply.Data, &registered); err != nil {
		return Confirm{}, err
	}
	key, err := b.Box.Authenticate(sandbox.Checkout{OrderID: registered.OrderID, Amount: Prices[w.Room], Method: w.Method, Bank: "20"})
	return Confirm{key, registered.OrderID, Prices[w.Room]}, err
}

// Buy makes an order and confirms it.
func (b *Buyer) Buy(ctx context.Context, w Wish) (Confirm, error) {
	order, err := b.Order(ctx, w)
	if err != nil {
		return order, err
	}
	reply, err := b.Insist(ctx, "/payment/confirm", order)
	return order, errors.Join(err, reply.OK())
}

// Login logs a phone number in with the code that the sandbox received for it.
func (b *Buyer) Login(ctx context.Context, mobile string) error {
	seen := len(b.codes(mobile))
	reply, err := b.Insist(ctx, "/account/code", map[string]string{"type": "mobile", "id": mobile})
	if err := errors.Join(err, reply.OK()); err != nil {
		return err
	}
	for {
		if codes := b.codes(mobile); len(codes) > seen {
			reply, err := b.Insist(ctx, "/account/login", map[string]string{"type": "mobile", "id": mobile, "code": codes[len(codes)-1]})
			return errors.Join(err, reply.OK())
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond): // polling: the sandbox reports no event for a message
		}
	}
}

func (b *Buyer) codes(mobile string) (codes []string) {
	for _, m := range b.Box.Messages(mobile) {
		if code := m.Variables["code"]; code != "" {
			codes = append(codes, code)
		}
	}
	return codes
}

// LoginAdmin logs an administrator in.
func (b *Buyer) LoginAdmin(ctx context.Context, id, password string) error {
	reply, err := b.Insist(ctx, "/admin/login", map[string]string{"id": id, "password": password})
	return errors.Join(err, reply.OK())
}
