package account_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"

	"github.com/yeolda/yeolda/cloud/internal/account"
	"github.com/yeolda/yeolda/cloud/internal/limit"
	"github.com/yeolda/yeolda/cloud/internal/pgtest"
	"github.com/yeolda/yeolda/cloud/internal/seal"
)

func TestSecondFactor(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	db.Now = func() time.Time { return now }
	keys, err := seal.New(make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	s := &account.Service{DB: db, Limits: &limit.Limiter{DB: db}, Keys: keys, Log: db.Logger}
	ctx := t.Context()
	if err := s.AddAdministrator(ctx, account.NewAdministrator{LoginID: "kim", Password: "twelve letters", Role: account.HQ}, "cli:test"); err != nil {
		t.Fatal(err)
	}
	code := func(secret string, at time.Time) string {
		c, err := totp.GenerateCode(secret, at)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	if err := s.SecondFactor(ctx, "kim", ""); err != nil {
		t.Fatalf("without a second factor: %v", err)
	}
	if err := s.ConfirmSecondStep(ctx, "kim", "000000", "admin:kim"); !errors.Is(err, account.ErrNoSecondStep) {
		t.Fatalf("confirmed without a pending secret: %v", err)
	}
	secret, _, err := s.NewSecondStep(ctx, "kim")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.SecondFactor(ctx, "kim", ""); err != nil {
		t.Fatalf("active before confirmation: %v", err)
	}
	if err := s.ConfirmSecondStep(ctx, "kim", code(secret, now), "admin:kim"); err != nil {
		t.Fatal(err)
	}
	if err := s.SecondFactor(ctx, "kim", ""); !errors.Is(err, account.ErrSecondFactorRequired) {
		t.Fatalf("without a code: %v", err)
	}
	if err := s.SecondFactor(ctx, "kim", code(secret, now)); !errors.Is(err, account.ErrWrongSecondFactor) {
		t.Fatalf("second use of a code: %v", err)
	}
	now = now.Add(time.Minute)
	if err := s.SecondFactor(ctx, "kim", code(secret, now.Add(-30*time.Second))); err != nil {
		t.Fatalf("code from a clock 30 s behind: %v", err)
	}
	if err := s.SecondFactor(ctx, "kim", code(secret, now.Add(-90*time.Second))); !errors.Is(err, account.ErrWrongSecondFactor) {
		t.Fatalf("code from a clock 90 s behind: %v", err)
	}
	for range 10 {
		err = s.SecondFactor(ctx, "kim", "123456")
	}
	if !errors.Is(err, limit.ErrExceeded) {
		t.Fatalf("guesses are not limited: %v", err)
	}
	now = now.Add(10 * time.Minute)
	codes, err := s.NewRecoveryCodes(ctx, "kim", "admin:kim")
	if err != nil || len(codes) != 10 {
		t.Fatalf("%d recovery codes: %v", len(codes), err)
	}
	if err := s.SecondFactor(ctx, "kim", strings.ToLower(codes[3])); err != nil {
		t.Fatalf("recovery code: %v", err)
	}
	if err := s.SecondFactor(ctx, "kim", codes[3]); !errors.Is(err, account.ErrWrongSecondFactor) {
		t.Fatalf("second use of a recovery code: %v", err)
	}
	if _, err := s.NewRecoveryCodes(ctx, "kim", "admin:kim"); err != nil {
		t.Fatal(err)
	}
	if err := s.SecondFactor(ctx, "kim", codes[4]); !errors.Is(err, account.ErrWrongSecondFactor) {
		t.Fatalf("replaced recovery code: %v", err)
	}
	if _, err := s.ConfirmPassword(ctx, "kim", "twelve letters", "", "203.0.113.1", false); !errors.Is(err, account.ErrSecondFactorRequired) {
		t.Fatalf("password without the second factor: %v", err)
	}
	if err := s.RemoveSecondStep(ctx, "kim", "admin:hq"); err != nil {
		t.Fatal(err)
	}
	if err := s.SecondFactor(ctx, "kim", ""); err != nil {
		t.Fatalf("after removal: %v", err)
	}
}

func TestRecoveryCodeOutlastsAChangeOfKeys(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	db.Now = func() time.Time { return now }
	older, newer := seal.NewKey(), seal.NewKey()
	with := func(setting string) *account.Service {
		keys, err := seal.ParseKeys(setting)
		if err != nil {
			t.Fatal(err)
		}
		return &account.Service{DB: db, Limits: &limit.Limiter{DB: db}, Keys: keys, Log: db.Logger}
	}
	ctx, s := t.Context(), with(older)
	if err := s.AddAdministrator(ctx, account.NewAdministrator{LoginID: "kim", Password: "twelve letters", Role: account.HQ}, "cli:test"); err != nil {
		t.Fatal(err)
	}
	secret, _, err := s.NewSecondStep(ctx, "kim")
	if err != nil {
		t.Fatal(err)
	}
	code, err := totp.GenerateCode(secret, now)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.ConfirmSecondStep(ctx, "kim", code, "admin:kim"); err != nil {
		t.Fatal(err)
	}
	codes, err := s.NewRecoveryCodes(ctx, "kim", "admin:kim")
	if err != nil {
		t.Fatal(err)
	}
	s = with(newer + "," + older)
	if err := s.SecondFactor(ctx, "kim", codes[0]); err != nil {
		t.Fatalf("recovery code of the old key: %v", err)
	}
	if err := s.SecondFactor(ctx, "kim", codes[0]); !errors.Is(err, account.ErrWrongSecondFactor) {
		t.Fatalf("second use: %v", err)
	}
	now = now.Add(time.Minute)
	if code, err = totp.GenerateCode(secret, now); err != nil {
		t.Fatal(err)
	}
	if err := with(newer).SecondFactor(ctx, "kim", code); !errors.Is(err, account.ErrWrongSecondFactor) {
		t.Errorf("code of an authenticator whose key is lost: got %v, want %v", err, account.ErrWrongSecondFactor)
	}
	if err := s.SecondFactor(ctx, "kim", code); err != nil {
		t.Errorf("the same code with the key: %v", err)
	}
}
