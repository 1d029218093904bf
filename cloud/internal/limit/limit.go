// Package limit bounds how often somebody may try something: ask for a login code, guess a password,
// send a form. The counts are in the database, so that all replicas share them and a restart forgives
// nothing.
package limit

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// ErrExceeded is what every [ExceededError] is.
var ErrExceeded = errors.New("limit: too many tries")

// An ExceededError says how long to wait.
type ExceededError struct {
	Rule       string
	RetryAfter time.Duration
}

func (e *ExceededError) Error() string {
	return fmt.Sprintf("%v: %s, again in %s", ErrExceeded, e.Rule, e.RetryAfter.Round(time.Second))
}

func (e *ExceededError) Unwrap() error { return ErrExceeded }

// A Rule allows Max tries in a Window that begins with the first.
type Rule struct {
	Name   string
	Max    int
	Window time.Duration
}

// Limiter counts tries.
type Limiter struct {
	DB  *postgres.DB
	Off bool // nothing is counted (YEOLDA_RATE_LIMITS=off)
}

// Take counts one try of subject under a rule. It returns an [ExceededError] when there were too many.
func (l *Limiter) Take(ctx context.Context, rule Rule, subject string) error {
	if l.Off {
		return nil
	}
	ok, retryAfter, err := postgres.Allow(ctx, l.DB.Pool, rule.key(subject), rule.Max, rule.Window, l.DB.Now())
	if err != nil {
		return fmt.Errorf("limit %s: %w", rule.Name, err)
	}
	if !ok {
		return &ExceededError{Rule: rule.Name, RetryAfter: retryAfter}
	}
	return nil
}

// Check returns an [ExceededError] when a next try would be one too many. It counts none: where only failures
// count, it is asked before a try and Take told after one that failed.
func (l *Limiter) Check(ctx context.Context, rule Rule, subject string) error {
	if l.Off {
		return nil
	}
	exceeded, retryAfter, err := postgres.Exceeded(ctx, l.DB.Pool, rule.key(subject), rule.Max, rule.Window, l.DB.Now())
	if err != nil {
		return fmt.Errorf("limit %s: %w", rule.Name, err)
	}
	if exceeded {
		return &ExceededError{Rule: rule.Name, RetryAfter: retryAfter}
	}
	return nil
}

// key hashes the subject: phone numbers and addresses need no further copy in the database, and an id of
// any length makes a short key.
func (r Rule) key(subject string) string {
	sum := sha256.Sum256([]byte(subject))
	return r.Name + ":" + base64.RawURLEncoding.EncodeToString(sum[:16])
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
