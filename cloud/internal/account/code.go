package account

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/limit"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/queue"
)

// maxCodeTries is the number of wrong attempts after which a login code is void (docs/specification.md, Login).
const maxCodeTries = 5

// Limits on requesting login codes (docs/specification.md, Login).
var (
	codesPerID      = limit.Rule{Name: "login-code-id", Max: 5, Window: 10 * time.Minute}
	codesPerAddress = limit.Rule{Name: "login-code-address", Max: 20, Window: 10 * time.Minute}
)

// Customer identifies a customer by a normalised phone number or e-mail address.
type Customer struct {
	Type booking.LoginType
	ID   string
}

// NewCustomer normalises id according to its type.
func NewCustomer(loginType booking.LoginType, id string) Customer {
	if loginType == booking.LoginMobile {
		return Customer{loginType, booking.NormalizePhone(id)}
	}
	return Customer{loginType, booking.NormalizeEmail(id)}
}

func (c Customer) subject() string { return string(c.Type) + ":" + c.ID }

// SendCode makes a new login code the only valid one of a customer and has it sent, in the language "ko"
// or "en". client is the address that asks. It returns ErrNoHistory for somebody who never reserved
// (unless HideAccounts), or a [limit.ExceededError].
func (s *Service) SendCode(ctx context.Context, c Customer, client, language string) error {
	if err := s.Limits.Take(ctx, codesPerAddress, client); err != nil {
		return err
	}
	if err := s.Limits.Take(ctx, codesPerID, c.subject()); err != nil {
		return err
	}
	known, err := postgres.HasHistory(ctx, s.DB.Pool, c.Type, c.ID, time.Time{})
	if err != nil {
		return fmt.Errorf("login code: %w", err)
	}
	if !known && !s.HideAccounts {
		return ErrNoHistory
	}
	code, err := newCode()
	if err != nil {
		return err
	}
	message := queue.Message{
		Template:  "login-code",
		Language:  language,
		Variables: map[string]string{"code": code, "minutes": strconv.Itoa(int(math.Ceil(s.CodeTTL.Minutes())))},
	}
	if c.Type == booking.LoginMobile {
		message.Mobile = c.ID
	} else {
		message.Email = c.ID
	}
	err = s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		// For an unknown contact the code is stored as well but not sent, so that both cases take the same time.
		if err := postgres.SetLoginCode(ctx, tx, c.Type, c.ID, s.hashCode(c, code), now.Add(s.CodeTTL)); err != nil || !known {
			return err
		}
		return s.Queue.Message(ctx, tx, message)
	})
	if err != nil {
		return fmt.Errorf("login code: %w", err)
	}
	return nil
}

// CheckCode consumes a customer's login code. It returns ErrWrongCode if the code is wrong, expired, used, replaced
// or void after too many attempts.
func (s *Service) CheckCode(ctx context.Context, c Customer, code string) error {
	stored, err := postgres.TryLoginCode(ctx, s.DB.Pool, c.Type, c.ID, maxCodeTries, s.DB.Now())
	if err != nil {
		return fmt.Errorf("login: %w", err)
	}
	given := s.hashCode(c, code)
	if !hmac.Equal(stored, given) {
		return ErrWrongCode
	}
	used, err := postgres.UseLoginCode(ctx, s.DB.Pool, c.Type, c.ID, given)
	if err != nil {
		return fmt.Errorf("login: %w", err)
	}
	if !used {
		return ErrWrongCode
	}
	return nil
}

// hashCode binds a code to its customer. The hash is keyed, so a copy of the database does not allow guessing the
// code by trying a million values.
func (s *Service) hashCode(c Customer, code string) []byte {
	mac := hmac.New(sha256.New, s.CodeKey)
	fmt.Fprintf(mac, "%s\x00%s\x00%s", c.Type, c.ID, code)
	return mac.Sum(nil)
}

// newCode returns six uniformly distributed random digits.
func newCode() (string, error) {
	n, err := rand.Int(rand.Reader, big.NewInt(1_000_000))
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%06d", n), nil
}
