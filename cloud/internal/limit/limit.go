// Package limit limits how often a client may attempt an action, such as requesting a login code, guessing a password
// or sending a form. Counts are stored in the database, so all replicas share them and they survive a restart.
package limit

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// ErrExceeded is wrapped by every [ExceededError].
var ErrExceeded = errors.New("limit: too many attempts")

// An ExceededError holds the time that the client has to wait.
type ExceededError struct {
	Rule       string
	RetryAfter time.Duration
}

func (e *ExceededError) Error() string {
	return fmt.Sprintf("%v: %s, again in %s", ErrExceeded, e.Rule, e.RetryAfter.Round(time.Second))
}

func (e *ExceededError) Unwrap() error { return ErrExceeded }

// A Rule allows Max attempts per Window, which begins with the first attempt.
type Rule struct {
	Name   string
	Max    int
	Window time.Duration
	Wide   int // maximum for all clients of a /24 or /48 network together; 0: ten times Max
}

// wide is the rule for the network of a client.
func (r Rule) wide() Rule {
	most := r.Wide
	if most == 0 {
		most = 10 * r.Max
	}
	return Rule{Name: r.Name + "-network", Max: most, Window: r.Window}
}

// Limiter counts attempts.
type Limiter struct {
	DB  *postgres.DB
	Key []byte // of the hashes under which subjects are stored
	Off bool   // disables all limits (YEOLDA_RATE_LIMITS=off)
}

// Take counts one attempt by subject. It returns an [ExceededError] if the limit is exceeded.
func (l *Limiter) Take(ctx context.Context, rule Rule, subject string) error {
	if l.Off {
		return nil
	}
	ok, retryAfter, err := postgres.Allow(ctx, l.DB.Pool, l.key(rule, subject), rule.Max, rule.Window, l.DB.Now())
	if err != nil {
		return fmt.Errorf("limit %s: %w", rule.Name, err)
	}
	if !ok {
		return &ExceededError{Rule: rule.Name, RetryAfter: retryAfter}
	}
	return nil
}

// Check returns an [ExceededError] if the next attempt would exceed the limit, without counting one. For rules that
// count failures only, call Check before an attempt and Take after a failed one.
func (l *Limiter) Check(ctx context.Context, rule Rule, subject string) error {
	if l.Off {
		return nil
	}
	exceeded, retryAfter, err := postgres.Exceeded(ctx, l.DB.Pool, l.key(rule, subject), rule.Max, rule.Window, l.DB.Now())
	if err != nil {
		return fmt.Errorf("limit %s: %w", rule.Name, err)
	}
	if exceeded {
		return &ExceededError{Rule: rule.Name, RetryAfter: retryAfter}
	}
	return nil
}

// TakeClient is Take for a client, as returned by [Address]. It counts the client's network as well, because addresses
// within a network are cheap.
func (l *Limiter) TakeClient(ctx context.Context, rule Rule, client string) error {
	if err := l.Take(ctx, rule, client); err != nil {
		return err
	}
	return l.Take(ctx, rule.wide(), Network(client))
}

// CheckClient is Check for a client and its network.
func (l *Limiter) CheckClient(ctx context.Context, rule Rule, client string) error {
	if err := l.Check(ctx, rule, client); err != nil {
		return err
	}
	return l.Check(ctx, rule.wide(), Network(client))
}

// key hashes the subject, so that phone numbers and addresses are not stored again and the key is short. The hash is
// keyed, because a plain one is reversed by trying all phone numbers.
func (l *Limiter) key(r Rule, subject string) string {
	mac := hmac.New(sha256.New, l.Key)
	mac.Write([]byte(subject))
	return r.Name + ":" + base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:16])
}

// Network returns the network of a client as returned by [Address]: the /24 of an IPv4 address, the /48 of an IPv6
// network. Any other text is its own network.
func Network(client string) string {
	if addr, err := netip.ParseAddr(client); err == nil && addr.Is4() {
		return netip.PrefixFrom(addr, 24).Masked().String()
	}
	if prefix, err := netip.ParsePrefix(client); err == nil && prefix.Addr().Is6() {
		return netip.PrefixFrom(prefix.Addr(), 48).Masked().String()
	}
	return client
}

// Address returns the subject of a client: its IPv4 address, or the /64 of its IPv6 address, because an Internet provider
// assigns at least a /64 to each customer.
func Address(client netip.Addr) string {
	client = client.Unmap().WithZone("")
	if client.Is6() {
		return netip.PrefixFrom(client, 64).Masked().String()
	}
	return client.String()
}
