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

// Limits on login codes (docs/specification.md, Login). A recognised device is limited by itself only.
var (
	codesPerID      = limit.Rule{Name: "login-code-id", Max: 5, Window: 10 * time.Minute}
	codesPerDay     = limit.Rule{Name: "login-code-day", Max: 30, Window: 24 * time.Hour}
	codesPerAddress = limit.Rule{Name: "login-code-address", Max: 20, Window: 10 * time.Minute}
	codesPerDevice  = limit.Rule{Name: "login-code-device", Max: 5, Window: 10 * time.Minute}

	guessesPerDay     = limit.Rule{Name: "login-guess-day", Max: 100, Window: 24 * time.Hour}
	guessesPerDevice  = limit.Rule{Name: "login-guess-device", Max: 100, Window: 24 * time.Hour}
	guessesPerAddress = limit.Rule{Name: "login-guess-address", Max: 60, Window: 10 * time.Minute, Wide: 120}
)

// Browser is what a browser sends along when it logs in as a customer.
type Browser struct {
	Client string // address, as limit.Address returns it
	Secret string // cookie from the request for the code; empty if there was none
	Device Device // cookie from an earlier login; empty if there was none
}

func (b Browser) hash() []byte {
	sum := sha256.Sum256([]byte(b.Secret))
	return sum[:]
}

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

// Subject is the subject of the customer's limits and devices.
func (c Customer) Subject() string { return string(c.Type) + ":" + c.ID }

// SendCode replaces a customer's login code and sends it in the language "ko" or "en". The code is bound to the secret of
// the browser. It returns ErrNoHistory for a contact without a reservation (unless HideAccounts), or a
// [limit.ExceededError].
func (s *Service) SendCode(ctx context.Context, c Customer, b Browser, language string) error {
	if err := s.takeCode(ctx, c, b); err != nil {
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
		if err := postgres.SetLoginCode(ctx, tx, c.Type, c.ID, s.hashCode(c, code), b.hash(), now.Add(s.CodeTTL)); err != nil || !known {
			return err
		}
		return s.Queue.Message(ctx, tx, message)
	})
	if err != nil {
		return fmt.Errorf("login code: %w", err)
	}
	return nil
}

// takeCode counts a request for a code. Requests by other browsers, also from the same address, do not use up the limit of a
// recognised device.
func (s *Service) takeCode(ctx context.Context, c Customer, b Browser) error {
	if id := s.recognised(b.Device, c.Subject()); id != "" {
		return s.Limits.Take(ctx, codesPerDevice, id)
	}
	if err := s.Limits.TakeClient(ctx, codesPerAddress, b.Client); err != nil {
		return err
	}
	if err := s.Limits.Take(ctx, codesPerID, c.Subject()); err != nil {
		return err
	}
	return s.Limits.Take(ctx, codesPerDay, c.Subject())
}

// CheckCode consumes a customer's login code. It returns ErrWrongCode if the code is wrong, expired, used, replaced or
// void after too many attempts, or a [limit.ExceededError].
func (s *Service) CheckCode(ctx context.Context, c Customer, b Browser, code string) error {
	// Counted before the comparison, so that concurrent guesses do not pass the limit together.
	if err := s.takeGuess(ctx, c, b); err != nil {
		return err
	}
	return s.useLoginCode(ctx, c, b, code)
}

// takeGuess counts an attempt. As in takeCode, other browsers do not use up the limit of a recognised device.
func (s *Service) takeGuess(ctx context.Context, c Customer, b Browser) error {
	if id := s.recognised(b.Device, c.Subject()); id != "" {
		return s.Limits.Take(ctx, guessesPerDevice, id)
	}
	if err := s.Limits.TakeClient(ctx, guessesPerAddress, b.Client); err != nil {
		return err
	}
	return s.Limits.Take(ctx, guessesPerDay, c.Subject())
}

func (s *Service) useLoginCode(ctx context.Context, c Customer, b Browser, code string) error {
	stored, err := postgres.TryLoginCode(ctx, s.DB.Pool, c.Type, c.ID, b.hash(), maxCodeTries, s.DB.Now())
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
