package account

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/audit"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// Recovery codes look like ABCD-EFGH-IJKL: 60 random bits in base32.
const (
	recoveryCodes  = 10
	recoveryLength = 14

	recoveryPurpose = "recovery-code" // of the keys of their hashes
)

// NewRecoveryCodes replaces an administrator's recovery codes and returns the new ones, which are stored hashed only. It
// returns ErrNoSecondStep without a second factor to recover.
func (s *Service) NewRecoveryCodes(ctx context.Context, loginID, by string) ([]string, error) {
	stored, err := postgres.SecondStepOf(ctx, s.DB.Pool, loginID)
	if err != nil {
		return nil, err
	}
	if !stored.On() {
		return nil, ErrNoSecondStep
	}
	codes, hashes := make([]string, recoveryCodes), make([][]byte, recoveryCodes)
	for i := range codes {
		text := rand.Text()
		codes[i] = text[0:4] + "-" + text[4:8] + "-" + text[8:12]
		hashes[i] = s.Keys.MAC(recoveryPurpose, codes[i])
	}
	err = s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, _ time.Time) error {
		if err := postgres.ReplaceRecoveryCodes(ctx, tx, loginID, hashes); err != nil {
			return fmt.Errorf("replace the recovery codes of %s: %w", loginID, err)
		}
		return postgres.AppendAudit(ctx, tx, audit.Entry{Actor: by, Action: "administrator.recovery-codes", Target: loginID})
	})
	if err != nil {
		return nil, err
	}
	return codes, nil
}

func (s *Service) useRecoveryCode(ctx context.Context, loginID, code string) error {
	if err := s.Limits.Take(ctx, secondFactorsPerID, loginID); err != nil {
		return err
	}
	used, err := postgres.UseRecoveryCode(ctx, s.DB.Pool, loginID, s.Keys.MACs(recoveryPurpose, strings.ToUpper(code)))
	if err != nil {
		return fmt.Errorf("use a recovery code of %s: %w", loginID, err)
	}
	if !used {
		return ErrWrongSecondFactor
	}
	return postgres.AppendAudit(ctx, s.DB.Pool, audit.Entry{Actor: "admin:" + loginID, Action: "administrator.recovered", Target: loginID})
}
