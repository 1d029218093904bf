package channel

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	gatewayTimeout = 10 * time.Second
	gatewaySkew    = 5 * time.Minute
	maxAnswer      = 64 << 10

	// MaxEventBody is the maximum size of an inbound event in bytes.
	MaxEventBody = 64 << 10
)

// Headers of a signed message, in both directions.
const (
	headerPartner   = "X-Partner-Id"
	headerTimestamp = "X-Partner-Timestamp"
	headerSignature = "X-Partner-Signature"
)

// GatewayConfig configures a [Gateway].
type GatewayConfig struct {
	URL string // scheme and host of the partner; plain HTTP for loopback only
	ID  string // identifies us at the partner, and the partner to us
	// Secrets are shared with the partner. The first one signs and all of them verify, so a secret can be replaced
	// without losing messages.
	Secrets []string

	HTTPClient *http.Client     // nil means a client with a time-out of 10 s per call
	Now        func() time.Time // nil means time.Now
}

// Gateway exchanges signed JSON with a partner. It is safe for concurrent use.
type Gateway struct {
	cfg      GatewayConfig
	endpoint string
}

// NewGateway validates cfg and returns the adapter. It does not connect.
func NewGateway(cfg GatewayConfig) (*Gateway, error) {
	u, err := url.Parse(cfg.URL)
	if err != nil {
		return nil, fmt.Errorf("channel: gateway URL: %w", err)
	}
	if u.Host == "" || u.User != nil || u.Scheme != "https" && (u.Scheme != "http" || !loopback(u.Hostname())) {
		return nil, errors.New("channel: gateway URL: https is required outside loopback")
	}
	if cfg.ID == "" || len(cfg.Secrets) == 0 {
		return nil, errors.New("channel: a gateway needs an id and a secret")
	}
	for _, s := range cfg.Secrets {
		if len(s) < 16 {
			return nil, errors.New("channel: a gateway's secret has at least 16 bytes")
		}
	}
	if cfg.HTTPClient == nil {
		cfg.HTTPClient = &http.Client{
			Timeout:       gatewayTimeout,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Gateway{cfg, strings.TrimRight(cfg.URL, "/") + "/partner/v1/blocks"}, nil
}

type blockMessage struct {
	Type      string     `json:"type"`
	BlockID   string     `json:"blockId"`
	ListingID string     `json:"listingId,omitempty"`
	Start     *time.Time `json:"start,omitempty"`
	End       *time.Time `json:"end,omitempty"`
}

// Block makes a time unavailable at the partner. It is idempotent by Block.ID. After an [ErrRejected] a retry cannot succeed; after any
// other error the caller retries.
func (g *Gateway) Block(ctx context.Context, b Block) error {
	return g.post(ctx, blockMessage{"block.created", b.ID, b.ListingID, &b.Start, &b.End})
}

// Unblock removes a block. Removing an unknown block is not an error.
func (g *Gateway) Unblock(ctx context.Context, id string) error {
	return g.post(ctx, blockMessage{Type: "block.cancelled", BlockID: id})
}

func (g *Gateway) post(ctx context.Context, m blockMessage) error {
	body, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("channel: %s: %w", m.Type, err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, g.endpoint, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("channel: %s: %w", m.Type, err)
	}
	req.Header.Set("Content-Type", "application/json")
	// Both requests are idempotent, so net/http retries them on a broken connection.
	req.Header.Set("Idempotency-Key", m.Type+":"+m.BlockID)
	g.sign(req.Header, body)
	resp, err := g.cfg.HTTPClient.Do(req)
	if err != nil {
		return fmt.Errorf("channel: %s: %w", m.Type, err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, io.LimitReader(resp.Body, maxAnswer)); err != nil {
		return fmt.Errorf("channel: %s: read answer: %w", m.Type, err)
	}
	switch code := resp.StatusCode; {
	case code >= 200 && code < 300:
		return nil
	case code == http.StatusNotFound && m.Type == "block.cancelled", code == http.StatusGone:
		return nil // does not exist
	case code == http.StatusBadRequest, code == http.StatusNotFound, code == http.StatusConflict, code == http.StatusUnprocessableEntity:
		return fmt.Errorf("channel: %s: HTTP %d: %w", m.Type, code, ErrRejected)
	default:
		return fmt.Errorf("channel: %s: HTTP %d", m.Type, code)
	}
}

func (g *Gateway) sign(h http.Header, body []byte) {
	timestamp := strconv.FormatInt(g.cfg.Now().Unix(), 10)
	h.Set(headerPartner, g.cfg.ID)
	h.Set(headerTimestamp, timestamp)
	h.Set(headerSignature, signature(g.cfg.Secrets[0], timestamp, body))
}

// ErrUnsigned is returned for a message with an invalid signature or an old timestamp.
var ErrUnsigned = errors.New("channel: message is not signed by the partner")

// Verify checks the signature and the timestamp (5 minutes in either direction) of an inbound message.
func (g *Gateway) Verify(h http.Header, body []byte) error {
	timestamp := h.Get(headerTimestamp)
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil || h.Get(headerPartner) != g.cfg.ID {
		return ErrUnsigned
	}
	if age := g.cfg.Now().Sub(time.Unix(seconds, 0)); age > gatewaySkew || age < -gatewaySkew {
		return ErrUnsigned
	}
	given := []byte(h.Get(headerSignature))
	for _, secret := range g.cfg.Secrets {
		if hmac.Equal(given, []byte(signature(secret, timestamp, body))) {
			return nil
		}
	}
	return ErrUnsigned
}

// signature returns v1=<hex HMAC-SHA256(secret, timestamp "." body)>.
func signature(secret, timestamp string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	_, _ = io.WriteString(mac, timestamp+".") // writing to a hash never fails
	mac.Write(body)
	return "v1=" + hex.EncodeToString(mac.Sum(nil))
}

func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
