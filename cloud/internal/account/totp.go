package account

import (
	"context"
	"encoding/base32"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/pquerna/otp"
	"github.com/pquerna/otp/totp"

	"github.com/yeolda/yeolda/cloud/internal/audit"
	"github.com/yeolda/yeolda/cloud/internal/limit"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/seal"
)

// Errors of the second factor.
var (
	ErrSecondFactorRequired = errors.New("account: a code from the authenticator is required")
	ErrWrongSecondFactor    = errors.New("account: wrong code from the authenticator")
	ErrNoSecondStep         = errors.New("account: setting up the second factor has not begun")
)

// secondFactorsPerID limits guesses at a six-digit code, of which three are valid at any time. Correct codes count as
// well.
var secondFactorsPerID = limit.Rule{Name: "admin-totp-id", Max: 10, Window: 10 * time.Minute}

const totpPurpose = "totp"

// MaxSecondFactor is the maximum length of a code: that of a recovery code.
const MaxSecondFactor = recoveryLength

// The parameters that all authenticator apps support (RFC 6238): SHA-1, six digits, 30 seconds; one step of clock
// skew in either direction.
const (
	totpPeriod = 30
	totpSkew   = 1
)

// SecondFactor checks the code of an administrator who has a second factor: one of the authenticator, or a recovery code.
// Each code works once. Without an authenticator, but with a passkey, only a recovery code is accepted: the passkey logs in by
// itself (LoginWithPasskey).
//
// Errors: ErrSecondFactorRequired, ErrWrongSecondFactor, [limit.ExceededError].
func (s *Service) SecondFactor(ctx context.Context, loginID, code string) error {
	stored, err := postgres.SecondStepOf(ctx, s.DB.Pool, loginID)
	if err != nil || !stored.On() {
		return err
	}
	if code == "" {
		return ErrSecondFactorRequired
	}
	if len(code) == recoveryLength {
		return s.useRecoveryCode(ctx, loginID, code)
	}
	if len(stored.Secret) == 0 {
		return ErrWrongSecondFactor
	}
	return s.useCode(ctx, loginID, stored.Secret, code, false)
}

func (s *Service) useCode(ctx context.Context, loginID string, sealed []byte, code string, confirm bool) error {
	if err := s.Limits.Take(ctx, secondFactorsPerID, loginID); err != nil {
		return err
	}
	secret, err := s.Keys.Open(totpPurpose, sealed)
	if errors.Is(err, seal.ErrSealed) { // its key is lost (yeolda adopt): another administrator has to remove it
		s.Log.Error("account: authenticator cannot be read", "login", loginID, "error", err)
		return ErrWrongSecondFactor
	}
	if err != nil {
		return fmt.Errorf("account: authenticator of %s: %w", loginID, err)
	}
	step, ok := matchStep(string(secret), code, s.DB.Now())
	if !ok {
		return ErrWrongSecondFactor
	}
	used, err := postgres.UseStep(ctx, s.DB.Pool, loginID, step, confirm)
	if err == nil && !used {
		return ErrWrongSecondFactor
	}
	return err
}

// matchStep returns the time step for which a code is valid.
func matchStep(secret, code string, now time.Time) (step int64, ok bool) {
	for skew := -totpSkew; skew <= totpSkew; skew++ {
		at := now.Add(time.Duration(skew*totpPeriod) * time.Second)
		good, err := totp.ValidateCustom(code, secret, at, totp.ValidateOpts{Period: totpPeriod, Digits: otp.DigitsSix, Algorithm: otp.AlgorithmSHA1})
		if err == nil && good {
			return at.Unix() / totpPeriod, true
		}
	}
	return 0, false
}

// NewSecondStep generates a secret for an authenticator. It returns the secret and the otpauth URL for the QR code;
// the secret takes effect with ConfirmSecondStep.
func (s *Service) NewSecondStep(ctx context.Context, loginID string) (secret, url string, err error) {
	key, err := totp.Generate(totp.GenerateOpts{Issuer: "Yeolda", AccountName: loginID, Period: totpPeriod, SecretSize: 20})
	if err != nil {
		return "", "", err
	}
	if _, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(key.Secret()); err != nil {
		return "", "", err
	}
	return key.Secret(), key.URL(), postgres.BeginSecondStep(ctx, s.DB.Pool, loginID, s.Keys.Seal(totpPurpose, []byte(key.Secret())))
}

// ConfirmSecondStep activates the pending secret. The code proves that the authenticator holds it.
func (s *Service) ConfirmSecondStep(ctx context.Context, loginID, code, by string) error {
	stored, err := postgres.SecondStepOf(ctx, s.DB.Pool, loginID)
	if err != nil {
		return err
	}
	if len(stored.Pending) == 0 {
		return ErrNoSecondStep
	}
	if err := s.useCode(ctx, loginID, stored.Pending, code, true); err != nil {
		return err
	}
	return postgres.AppendAudit(ctx, s.DB.Pool, audit.Entry{Actor: by, Action: "administrator.totp-on", Target: loginID})
}

// RemoveSecondStep disables the authenticator of an administrator.
func (s *Service) RemoveSecondStep(ctx context.Context, loginID, by string) error {
	return s.removeSecondStep(ctx, loginID, by, false)
}

// RemoveSecondFactor disables the authenticator of an administrator and deletes the passkeys, as after the loss of a phone.
func (s *Service) RemoveSecondFactor(ctx context.Context, loginID, by string) error {
	return s.removeSecondStep(ctx, loginID, by, true)
}

func (s *Service) removeSecondStep(ctx context.Context, loginID, by string, passkeys bool) error {
	return s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, _ time.Time) error {
		if passkeys {
			if err := postgres.DeletePasskeys(ctx, tx, loginID); err != nil {
				return err
			}
		}
		if err := postgres.EndSecondStep(ctx, tx, loginID); err != nil {
			return err
		}
		return postgres.AppendAudit(ctx, tx, audit.Entry{Actor: by, Action: "administrator.totp-off", Target: loginID})
	})
}

// ChangeRights sets an administrator's role and branches, effective from the next request. Tokens for agents that the administrator has
// offered end.
func (s *Service) ChangeRights(ctx context.Context, loginID string, role Role, branches []string, by string) error {
	if err := (NewAdministrator{LoginID: loginID, Role: role, Branches: branches}).Check(); err != nil {
		return err
	}
	return s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		err := keepHeadquarters(ctx, tx, func() error { return postgres.SetRole(ctx, tx, loginID, string(role)) })
		if err != nil {
			return err
		}
		if err := postgres.SetAdministratorBranches(ctx, tx, loginID, branches); err != nil {
			return err
		}
		if err := endOffers(ctx, tx, loginID, now); err != nil {
			return err
		}
		return postgres.AppendAudit(ctx, tx, audit.Entry{
			Actor: by, Action: "administrator.change", Target: loginID, Detail: map[string]any{"role": role, "branches": branches},
		})
	})
}

// EndSessions ends all sessions of an administrator.
func (s *Service) EndSessions(ctx context.Context, loginID, by string) error {
	return s.changeAdministrator(ctx, loginID, "administrator.sessions-end", by, func(ctx context.Context, tx pgx.Tx, _ time.Time) error {
		_, err := postgres.AdministratorByLogin(ctx, tx, loginID)
		return err
	})
}
