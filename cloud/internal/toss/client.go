package toss

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// DefaultBaseURL is the provider's production address; test keys work there too.
const DefaultBaseURL = "https://api.tosspayments.com"

const (
	dialTimeout     = 3 * time.Second
	tlsTimeout      = 5 * time.Second
	responseTimeout = 60 * time.Second // recommended by the provider for payment calls
	callTimeout     = 65 * time.Second

	// maxBody bounds a response. A payment is about 3 KiB, a page of transactions
	// or settlements about 300 KiB.
	maxBody = 1 << 20

	// maxIdempotencyKey is the provider's limit on the header.
	maxIdempotencyKey = 300
)

// KeySet names a pair of API keys. A payment must be read and cancelled with the set
// that created it, so callers store the value with the payment. Each merchant has one set
// of either kind: "widget" is the widget's of the merchant of [Config], "widget:seoul" that
// of the merchant seoul.
type KeySet string

const (
	Widget KeySet = "widget" // the payment widget (secret key ..._gsk_...)
	API    KeySet = "api"    // server calls: issuing virtual accounts (secret key ..._sk_...)
)

// Of returns the key set of the same kind of a merchant; empty: the merchant of [Config].
func (k KeySet) Of(merchant string) KeySet {
	if merchant == "" {
		return k.Kind()
	}
	return k.Kind() + KeySet(":"+merchant)
}

// Kind returns [Widget] or [API].
func (k KeySet) Kind() KeySet {
	kind, _, _ := strings.Cut(string(k), ":")
	return KeySet(kind)
}

// Merchant returns the merchant that the set belongs to; empty: the merchant of [Config].
func (k KeySet) Merchant() string {
	_, merchant, _ := strings.Cut(string(k), ":")
	return merchant
}

// Config is the configuration of a [Client].
type Config struct {
	// BaseURL is scheme, host and optional path prefix; empty means [DefaultBaseURL].
	// Plain http is accepted for loopback only, because a header contains the secret key.
	BaseURL string

	WidgetSecretKey string
	APISecretKey    string

	// Secret returns the secret key of another merchant's key set; nil: there is only one
	// merchant. It is called for each request, so a changed key applies at once.
	Secret func(ctx context.Context, keys KeySet) (string, error)

	// HTTPClient replaces the default client, which has the timeouts recommended by
	// the provider (dial 3 s, TLS 5 s, response 60 s, whole call 65 s).
	HTTPClient *http.Client

	Logger *slog.Logger // nil: nothing is logged
}

// Client calls the provider. It is safe for concurrent use.
type Client struct {
	base    string
	secrets map[KeySet]string
	secret  func(ctx context.Context, keys KeySet) (string, error)
	http    *http.Client
	log     *slog.Logger
}

// New checks cfg and returns a client. It sends no request.
func New(cfg Config) (*Client, error) {
	base := cfg.BaseURL
	if base == "" {
		base = DefaultBaseURL
	}
	u, err := url.Parse(base)
	if err != nil {
		return nil, fmt.Errorf("toss: base URL: %w", err)
	}
	if u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("toss: base URL %q is not scheme://host", u.Redacted())
	}
	if u.Scheme != "https" && (u.Scheme != "http" || !loopback(u.Hostname())) {
		return nil, fmt.Errorf("toss: base URL %q: https is required outside loopback", base)
	}
	for set, key := range map[KeySet]string{Widget: cfg.WidgetSecretKey, API: cfg.APISecretKey} {
		if key == "" {
			return nil, fmt.Errorf("toss: secret key of key set %q is missing", set)
		}
		if !validKey(key) {
			return nil, fmt.Errorf("toss: secret key of key set %q contains a character that no key has", set)
		}
	}
	c := &Client{
		base:    strings.TrimRight(base, "/"),
		secrets: map[KeySet]string{Widget: cfg.WidgetSecretKey, API: cfg.APISecretKey},
		secret:  cfg.Secret,
		http:    cfg.HTTPClient,
		log:     cfg.Logger,
	}
	if c.http == nil {
		c.http = newHTTPClient()
	}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	return c, nil
}

// validKey reports whether a text consists of characters that a key may have.
func validKey(key string) bool {
	return key != "" && !strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r == ':' || r > '~' })
}

// secretOf returns the secret key of a call. That a key of another merchant cannot be read
// is no answer of the provider: the call has no outcome.
func (c *Client) secretOf(ctx context.Context, call call) (string, error) {
	if call.secret != "" {
		return call.secret, nil
	}
	if secret, ok := c.secrets[call.keys]; ok {
		return secret, nil
	}
	if c.secret == nil || call.keys.Merchant() == "" {
		return "", notSent(call.op, codeInvalidRequest, fmt.Errorf("unknown key set %q", call.keys))
	}
	secret, err := c.secret(ctx, call.keys)
	if err != nil {
		return "", &Error{op: call.op, Err: fmt.Errorf("secret key: %w", err)}
	}
	return secret, nil
}

// Rejects reports whether the provider rejects a secret key. Without an answer it returns
// false.
func (c *Client) Rejects(ctx context.Context, secret string) bool {
	now := localTime(time.Now())
	return KeyRejected(c.do(ctx, call{
		op: transactions, secret: secret, method: http.MethodGet, path: "/v1/transactions",
		query: url.Values{"startDate": {now}, "endDate": {now}, "limit": {"1"}},
	}, func([]byte) error { return nil }))
}

// Lacks reports whether the merchant of a secret key has no payment with a payment key.
// Without an answer it returns false.
func (c *Client) Lacks(ctx context.Context, secret, paymentKey string) bool {
	return ClassOf(c.do(ctx, call{
		op: read, secret: secret, method: http.MethodGet, path: "/v1/payments/" + paymentKey,
	}, func([]byte) error { return nil })) == NotFound
}

func newHTTPClient() *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DialContext = (&net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}).DialContext
	t.TLSHandshakeTimeout = tlsTimeout
	t.ResponseHeaderTimeout = responseTimeout
	t.MaxIdleConnsPerHost = 16
	return &http.Client{
		Transport: t,
		Timeout:   callTimeout,
		// The provider sends no redirects. Following one could send a charge to another server.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// call is one request to the provider.
type call struct {
	op             operation
	keys           KeySet
	secret         string // instead of that of keys
	method         string
	path           string // with the leading slash, escaped
	query          url.Values
	idempotencyKey string // POST only
	orderID        string // for the log, if known
	body           any    // nil for GET
}

// do sends one call and passes the body of a 200 to out. Every error it returns is an *Error.
func (c *Client) do(ctx context.Context, call call, out func([]byte) error) error {
	start := time.Now()
	err := c.roundTrip(ctx, call, out)

	attrs := []slog.Attr{
		slog.String("op", string(call.op)),
		slog.String("orderId", call.orderID),
		slog.Duration("took", time.Since(start)),
	}
	level := slog.LevelInfo
	var e *Error
	if errors.As(err, &e) {
		level = slog.LevelWarn
		if e.Class() == Misconfigured {
			level = slog.LevelError
		}
		attrs = append(attrs,
			slog.Int("status", e.HTTPStatus),
			slog.String("code", e.Code),
			slog.String("class", e.Class().String()),
			slog.String("traceId", e.TraceID))
		if e.Err != nil {
			attrs = append(attrs, slog.Any("error", e.Err))
		}
	}
	c.log.LogAttrs(ctx, level, "payment provider call", attrs...)
	return err
}

func (c *Client) roundTrip(ctx context.Context, call call, out func([]byte) error) error {
	req, err := c.request(ctx, call)
	if err != nil {
		return err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return &Error{op: call.op, Err: withoutURL(err)}
	}
	defer resp.Body.Close()

	failure := &Error{op: call.op, HTTPStatus: resp.StatusCode, TraceID: resp.Header.Get("X-Tosspayments-Trace-Id")}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	if err != nil {
		failure.Err = fmt.Errorf("read answer: %w", withoutURL(err))
		return failure
	}
	if len(body) > maxBody {
		failure.Err = fmt.Errorf("answer is longer than %d bytes", maxBody)
		return failure
	}
	if resp.StatusCode == http.StatusOK {
		if err := out(body); err != nil {
			failure.Err = fmt.Errorf("decode answer: %w", err)
			return failure
		}
		return nil
	}
	var refusal struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	if err := json.Unmarshal(body, &refusal); err != nil {
		failure.Err = fmt.Errorf("decode error answer: %w", err)
		return failure
	}
	failure.Code, failure.Message = refusal.Code, refusal.Message
	return failure
}

func (c *Client) request(ctx context.Context, call call) (*http.Request, error) {
	secret, err := c.secretOf(ctx, call)
	if err != nil {
		return nil, err
	}
	target := c.base + call.path
	if len(call.query) > 0 {
		target += "?" + call.query.Encode()
	}
	var body io.Reader
	if call.body != nil {
		b, err := json.Marshal(call.body)
		if err != nil {
			return nil, notSent(call.op, codeInvalidRequest, err)
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, call.method, target, body)
	if err != nil {
		return nil, notSent(call.op, codeInvalidRequest, err)
	}
	req.SetBasicAuth(secret, "")
	req.Header.Set("Accept", "application/json")
	if call.method == http.MethodPost {
		if call.idempotencyKey == "" || len(call.idempotencyKey) > maxIdempotencyKey || !printable(call.idempotencyKey) {
			return nil, notSent(call.op, codeInvalidRequest, errIdempotencyKey)
		}
		req.Header.Set("Content-Type", "application/json")
		// With this header, net/http resends a request if a kept-alive connection turns
		// out to be closed. The provider executes it once.
		req.Header.Set("Idempotency-Key", call.idempotencyKey)
	}
	return req, nil
}

var errIdempotencyKey = fmt.Errorf("an idempotency key has 1 to %d printable ASCII characters", maxIdempotencyKey)

// withoutURL removes the URL from an error of net/http, because it contains a payment key.
func withoutURL(err error) error {
	var ue *url.Error
	if errors.As(err, &ue) {
		return ue.Err
	}
	return err
}

func printable(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' })
}
