package backoffice

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/audit"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// ErrNoSession is returned when an administrator has no session with the id.
var ErrNoSession = errors.New("backoffice: no such session")

// Audit returns the newest audit entries that pass a filter.
func (s *Service) Audit(ctx context.Context, f audit.Filter) ([]audit.Row, error) {
	return postgres.AuditRows(ctx, s.DB.Pool, f)
}

// Administrators returns all administrators by login id.
func (s *Service) Administrators(ctx context.Context) ([]postgres.AdministratorState, error) {
	return postgres.AdministratorStates(ctx, s.DB.Pool, s.DB.Now())
}

// SecondStep returns the second factor of an administrator.
func (s *Service) SecondStep(ctx context.Context, loginID string) (postgres.SecondStep, error) {
	return postgres.SecondStepOf(ctx, s.DB.Pool, loginID)
}

// Sessions returns the live sessions of an administrator, the latest first.
func (s *Service) Sessions(ctx context.Context, loginID string) ([]postgres.AdministratorSession, error) {
	return postgres.AdministratorSessions(ctx, s.DB.Pool, loginID, s.DB.Now())
}

// EndSession ends one session of an administrator. It returns ErrNoSession.
func (s *Service) EndSession(ctx context.Context, loginID, id, by string) error {
	entry := audit.Entry{Actor: by, Action: "administrator.sessions-end", Target: loginID}
	return s.change(ctx, &entry, func(ctx context.Context, tx pgx.Tx, _ time.Time) error {
		ended, err := postgres.EndAdministratorSession(ctx, tx, loginID, id)
		if err == nil && !ended {
			return ErrNoSession
		}
		return err
	})
}

// pseudonym identifies a contact in the audit log, which is permanent. With the contact and the encryption key, an entry
// about it can be found; without them it reveals nothing.
func (s *Service) pseudonym(contact string) string {
	return hex.EncodeToString(s.Keys.MAC("person", contact)[:8])
}

// PersonalData returns everything that is kept about a contact: digits of a phone number or an e-mail address.
func (s *Service) PersonalData(ctx context.Context, contact, by string) (data json.RawMessage, err error) {
	entry := audit.Entry{Actor: by, Action: "personal.export", Target: s.pseudonym(contact)}
	err = s.change(ctx, &entry, func(ctx context.Context, tx pgx.Tx, _ time.Time) (err error) {
		data, err = postgres.PersonalData(ctx, tx, contact)
		return err
	})
	return data, err
}

// Erase removes name and contact of a guest from every reservation that is over. Reservations to come need them and are
// kept; cancel those first.
func (s *Service) Erase(ctx context.Context, contact, by string) (erased, kept int64, err error) {
	entry := audit.Entry{Actor: by, Action: postgres.ErasureAction, Target: s.pseudonym(contact)}
	err = s.change(ctx, &entry, func(ctx context.Context, tx pgx.Tx, now time.Time) (err error) {
		erased, kept, err = postgres.Erase(ctx, tx, contact, s.Queue.NoVariables(), now)
		entry.Detail = map[string]int64{"reservations": erased, "kept": kept}
		return err
	})
	return erased, kept, err
}

// EraseAgain erases the persons who were erased after the backup that was restored. A stay to come keeps its contact.
func (s *Service) EraseAgain(ctx context.Context) error {
	pending, err := postgres.PendingErasures(ctx, s.DB.Pool)
	if err != nil || len(pending) == 0 {
		return err
	}
	contacts, err := postgres.Contacts(ctx, s.DB.Pool)
	if err != nil {
		return err
	}
	for _, contact := range contacts {
		if !slices.Contains(pending, s.pseudonym(contact)) {
			continue
		}
		if _, _, err := s.Erase(ctx, contact, "system"); err != nil {
			return err
		}
	}
	return postgres.EndErasures(ctx, s.DB.Pool, pending)
}

// LoggedIn records the login of an administrator.
func (s *Service) LoggedIn(ctx context.Context, loginID, by string) error {
	return postgres.AppendAudit(ctx, s.DB.Pool, audit.Entry{Actor: by, Action: "administrator.login", Target: loginID})
}
