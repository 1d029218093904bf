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

// An ExceededError says how long the client has to wait.
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

// key hashes the subject, so that phone numbers and addresses are not stored again and the key is short. The hash is
// keyed, because a plain one is reversed by trying all phone numbers.
func (l *Limiter) key(r Rule, subject string) string {
	mac := hmac.New(sha256.New, l.Key)
	mac.Write([]byte(subject))
	return r.Name + ":" + base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:16])
}

// Address is the subject of a client: its IPv4 address, or the /64 of its IPv6 address, as one customer
// of a provider usually has at least 2^64 of those.
func Address(client netip.Addr) string {
	client = client.Unmap().WithZone("")
	if client.Is6() {
		return netip.PrefixFrom(client, 64).Masked().String()
	}
	return client.String()
}
