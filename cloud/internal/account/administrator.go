package account

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/audit"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/limit"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// Limits on wrong passwords (docs/specification.md, Login). A recognised device is limited by itself only.
var (
	failuresPerID      = limit.Rule{Name: "admin-login-id", Max: 10, Window: 10 * time.Minute}
	failuresPerDay     = limit.Rule{Name: "admin-login-day", Max: 100, Window: 24 * time.Hour}
	failuresPerAddress = limit.Rule{Name: "admin-login-address", Max: 10, Window: 10 * time.Minute}
	failuresPerDevice  = limit.Rule{Name: "admin-login-device", Max: 10, Window: 10 * time.Minute}
	failuresInSession  = limit.Rule{Name: "admin-confirm-id", Max: 10, Window: 10 * time.Minute}
)

// PasswordAttempt is an attempt to log in as an administrator.
type PasswordAttempt struct {
	LoginID  string
	Password string
	Client   string // address, as limit.Address returns it
	Device   Device // the browser's cookie, if it has one
}

// counter is a rule and its subject.
type counter struct {
	rule    limit.Rule
	subject string
	client  bool // the subject is a client address
}

func (s *Service) counters(a PasswordAttempt) (counters []counter, recognised bool) {
	if id := s.recognised(a.Device, AdministratorSubject(a.LoginID)); id != "" {
		return []counter{{rule: failuresPerDevice, subject: id}}, true
	}
	return []counter{
		{rule: failuresPerAddress, subject: a.Client, client: true},
		{rule: failuresPerID, subject: a.LoginID},
		{rule: failuresPerDay, subject: a.LoginID},
	}, false
}

// LoginAdministrator checks a password. It returns the administrator, ErrWrongPassword or a [limit.ExceededError]. An
// unknown id, a disabled account and a wrong password are indistinguishable, also by their duration.
func (s *Service) LoginAdministrator(ctx context.Context, a PasswordAttempt) (Principal, error) {
	counters, recognised := s.counters(a)
	queue := unknownDevices
	if recognised {
		queue = recognisedDevices
	}
	return s.attempt(ctx, queue, counters, a)
}

// ConfirmPassword checks the password, and the second factor if there is one, of an administrator who is logged in. Its
// limit is separate from that of logins, so that attempts to log in from elsewhere do not affect it.
func (s *Service) ConfirmPassword(ctx context.Context, loginID, password, code, client string, passkey bool) (Principal, error) {
	counters := []counter{{rule: failuresInSession, subject: loginID}}
	p, err := s.attempt(ctx, recognisedDevices, counters, PasswordAttempt{LoginID: loginID, Password: password, Client: client})
	if err == nil && !passkey {
		err = s.SecondFactor(ctx, loginID, code)
	}
	return p, err
}

// attempt compares a password within limits that count failures only.
func (s *Service) attempt(ctx context.Context, queue *hashingQueue, counters []counter, a PasswordAttempt) (Principal, error) {
	release, err := queue.acquire(ctx, a.Client)
	if err != nil {
		return Principal{}, err
	}
	defer release()
	// The limits are read after a hashing slot is granted, so concurrent guesses exceed the limit by at most the number
	// of slots.
	for _, c := range counters {
		if err := s.check(ctx, c); err != nil {
			return Principal{}, err
		}
	}
	p, err := s.verifyAdministrator(ctx, a.LoginID, a.Password)
	if errors.Is(err, ErrWrongPassword) {
		// The login id is not logged: users sometimes type their password into that field.
		s.Log.WarnContext(ctx, "administrator login failed", "client", a.Client)
		for _, c := range counters {
			if err := s.countFailure(ctx, c); err != nil {
				return Principal{}, err
			}
		}
		return Principal{}, err
	}
	if err != nil {
		return Principal{}, fmt.Errorf("administrator login: %w", err)
	}
	return p, nil
}

func (s *Service) check(ctx context.Context, c counter) error {
	if c.client {
		return s.Limits.CheckClient(ctx, c.rule, c.subject)
	}
	return s.Limits.Check(ctx, c.rule, c.subject)
}

// countFailure records a failure. Exceeding the limit is no error here; the next attempt receives it.
func (s *Service) countFailure(ctx context.Context, c counter) error {
	take := s.Limits.Take
	if c.client {
		take = s.Limits.TakeClient
	}
	if err := take(ctx, c.rule, c.subject); !errors.Is(err, limit.ErrExceeded) {
		return err
	}
	return nil
}

func (s *Service) verifyAdministrator(ctx context.Context, loginID, password string) (Principal, error) {
	a, err := postgres.AdministratorByLogin(ctx, s.DB.Pool, loginID)
	hash := a.PasswordHash
	if errors.Is(err, booking.ErrNoAdministrator) {
		hash = decoyHash
	} else if err != nil {
		return Principal{}, err
	}
	ok, outdated, err := verifyPassword(password, hash)
	if err != nil {
		return Principal{}, err
	}
	if !ok || a.LoginID == "" || !a.DisabledAt.IsZero() {
		return Principal{}, ErrWrongPassword
	}
	if outdated {
		replaced := HashPassword(password)
		if err := postgres.ReplaceHash(ctx, s.DB.Pool, loginID, hash, replaced); err != nil {
			return Principal{}, err
		}
		hash = replaced
	}
	p := s.principal(a)
	p.passwordHash = hash
	return p, nil
}

// CheckStarted returns ErrWrongPassword if the password of a login was changed, or the account disabled, while its session was started:
// the change ended the sessions that it saw, and waits for the lock of the row or has committed.
func (s *Service) CheckStarted(ctx context.Context, p Principal) error {
	if p.passwordHash == "" {
		return nil
	}
	valid, err := postgres.HasPasswordHash(ctx, s.DB.Pool, p.AdminLoginID, p.passwordHash)
	if err == nil && !valid {
		err = ErrWrongPassword
	}
	return err
}

// Administrator returns an administrator's current rights, or [booking.ErrNoAdministrator] if the account is deleted
// or disabled.
func (s *Service) Administrator(ctx context.Context, loginID string) (Principal, error) {
	a, err := postgres.AdministratorByLogin(ctx, s.DB.Pool, loginID)
	if err != nil {
		return Principal{}, err
	}
	if !a.DisabledAt.IsZero() {
		return Principal{}, booking.ErrNoAdministrator
	}
	return s.principal(a), nil
}

// BranchList returns the codes of all branches that an administrator reaches, the oldest branch first.
func (s *Service) BranchList(ctx context.Context, p Principal) ([]string, error) {
	if p.Administrator() && p.Role == HQ {
		return s.DB.BranchCodes(ctx)
	}
	return p.Branches, nil
}

func (s *Service) principal(a booking.Administrator) Principal {
	return Principal{
		LoginType: LoginAdmin, AdminLoginID: a.LoginID, Role: Role(a.Role), Branches: a.Branches,
		NeedsSecondFactor: !a.SecondFactor && slices.Contains(s.SecondFactorRoles, a.Role),
	}
}

// Errors about the data of a new administrator.
var (
	ErrLoginID     = errors.New("account: a login id has 1 to 40 characters: a-z, 0-9, dot, hyphen, underscore")
	ErrRole        = errors.New("account: a role is hq, manager, viewer, front-desk, accountant or cleaner")
	ErrNeedsBranch = errors.New("account: a role other than hq needs at least one branch, and hq none")
)

var loginIDForm = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,39}$`)

// NewAdministrator holds the data of an administrator to add.
type NewAdministrator struct {
	LoginID  string
	Password string
	Role     Role
	Branches []string // branch codes; empty for hq
}

// Check validates the login id, role and branches.
func (n NewAdministrator) Check() error {
	switch {
	case !loginIDForm.MatchString(n.LoginID):
		return ErrLoginID
	case !n.Role.Valid():
		return ErrRole
	case (n.Role == HQ) != (len(n.Branches) == 0):
		return ErrNeedsBranch
	}
	return nil
}

// AddAdministrator adds an administrator; by is the actor in the audit log. Besides the errors of Check it returns
// ErrWeakPassword, [booking.ErrAdministratorExists] or [postgres.ErrNoBranch].
func (s *Service) AddAdministrator(ctx context.Context, n NewAdministrator, by string) error {
	if err := n.Check(); err != nil {
		return err
	}
	if err := checkPassword(n.Password, n.LoginID); err != nil {
		return err
	}
	slices.Sort(n.Branches)
	n.Branches = slices.Compact(n.Branches)
	hash := HashPassword(n.Password)
	return s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, _ time.Time) error {
		err := postgres.InsertAdministrator(ctx, tx, booking.Administrator{
			LoginID: n.LoginID, PasswordHash: hash, Role: string(n.Role), Branches: n.Branches,
		})
		if err != nil {
			return err
		}
		return postgres.AppendAudit(ctx, tx, audit.Entry{
			Actor: by, Action: "administrator.add", Target: n.LoginID,
			Detail: map[string]any{"role": n.Role, "branches": n.Branches},
		})
	})
}

// SetPassword changes an administrator's password and ends all of the administrator's sessions.
func (s *Service) SetPassword(ctx context.Context, loginID, password, by string) error {
	if err := checkPassword(password, loginID); err != nil {
		return err
	}
	hash := HashPassword(password)
	return s.changeAdministrator(ctx, loginID, "administrator.password", by, func(ctx context.Context, tx pgx.Tx, _ time.Time) error {
		return postgres.SetPasswordHash(ctx, tx, loginID, hash, false)
	})
}

// ChangePassword replaces the password that an administrator has just confirmed, ends all sessions, and returns the principal for a new
// one. It returns ErrWrongPassword if the password was changed, or the account disabled, in the meantime: the reset
// may be against a thief who knows the password.
func (s *Service) ChangePassword(ctx context.Context, confirmed Principal, password string) (Principal, error) {
	loginID := confirmed.AdminLoginID
	if err := checkPassword(password, loginID); err != nil {
		return Principal{}, err
	}
	hash := HashPassword(password)
	err := s.changeAdministrator(ctx, loginID, "administrator.password", confirmed.Actor(), func(ctx context.Context, tx pgx.Tx, _ time.Time) error {
		valid, err := postgres.HasPasswordHash(ctx, tx, loginID, confirmed.passwordHash)
		if err != nil {
			return err
		}
		if !valid {
			return ErrWrongPassword
		}
		return postgres.SetPasswordHash(ctx, tx, loginID, hash, false)
	})
	confirmed.passwordHash = hash
	return confirmed, err
}

// ErrLastHeadquarters is returned for a change after which no account of the headquarters could log in: only such an account adds
// administrators, so the console could not undo it.
var ErrLastHeadquarters = errors.New("account: this is the last account of the headquarters that can log in")

// keepHeadquarters makes a change, and returns ErrLastHeadquarters if it leaves no account of the headquarters that can log in. The
// rows of those accounts are locked first, so that two of them cannot end each other at once.
func keepHeadquarters(ctx context.Context, tx pgx.Tx, change func() error) error {
	before, err := postgres.LockHeadquarters(ctx, tx)
	if err != nil {
		return err
	}
	if err := change(); err != nil || before == 0 {
		return err
	}
	after, err := postgres.LockHeadquarters(ctx, tx)
	if err == nil && after == 0 {
		err = ErrLastHeadquarters
	}
	return err
}

// DisableAdministrator blocks an administrator's login and ends all sessions. It returns ErrLastHeadquarters for the last account of
// the headquarters.
func (s *Service) DisableAdministrator(ctx context.Context, loginID, by string) error {
	return s.changeAdministrator(ctx, loginID, "administrator.disable", by, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		return keepHeadquarters(ctx, tx, func() error { return postgres.SetDisabled(ctx, tx, loginID, now) })
	})
}

// endOffers ends the tokens for agents that an administrator has offered: with one, a machine replaces the agent of a branch.
func endOffers(ctx context.Context, tx pgx.Tx, loginID string, now time.Time) error {
	return postgres.EndEnrollments(ctx, tx, Principal{LoginType: LoginAdmin, AdminLoginID: loginID}.Actor(), now)
}

// EnableAdministrator permits a disabled administrator to log in again.
func (s *Service) EnableAdministrator(ctx context.Context, loginID, by string) error {
	return s.changeAdministrator(ctx, loginID, "administrator.enable", by, func(ctx context.Context, tx pgx.Tx, _ time.Time) error {
		return postgres.SetDisabled(ctx, tx, loginID, time.Time{})
	})
}

// RemoveAdministrator deletes an administrator and ends all sessions. The audit log keeps the administrator's
// actions. It returns ErrLastHeadquarters for the last account of the headquarters.
func (s *Service) RemoveAdministrator(ctx context.Context, loginID, by string) error {
	return s.changeAdministrator(ctx, loginID, "administrator.remove", by, func(ctx context.Context, tx pgx.Tx, _ time.Time) error {
		return keepHeadquarters(ctx, tx, func() error { return postgres.DeleteAdministrator(ctx, tx, loginID) })
	})
}

// changeAdministrator applies a change, ends the administrator's sessions and offers to agents, and writes the audit entry in one
// transaction.
func (s *Service) changeAdministrator(ctx context.Context, loginID, action, by string, change func(context.Context, pgx.Tx, time.Time) error) error {
	return s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		if err := change(ctx, tx, now); err != nil {
			return err
		}
		ended, err := postgres.EndAdministratorSessions(ctx, tx, loginID)
		if err != nil {
			return err
		}
		if err := endOffers(ctx, tx, loginID, now); err != nil {
			return err
		}
		return postgres.AppendAudit(ctx, tx, audit.Entry{
			Actor: by, Action: action, Target: loginID, Detail: map[string]any{"sessionsEnded": ended},
		})
	})
}
