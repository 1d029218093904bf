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
	return pseudonymOf(s.Keys.MAC(personPurpose, contact))
}

const personPurpose = "person"

func pseudonymOf(mac []byte) string { return hex.EncodeToString(mac[:8]) }

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

// EraseAgain erases the persons who were erased after the backup that was restored, once the rebuild has ended. A stay to come
// keeps its contact, and the person is erased by the first pass after it.
func (s *Service) EraseAgain(ctx context.Context) error {
	pending, err := postgres.PendingErasures(ctx, s.DB.Pool)
	if err != nil || len(pending) == 0 {
		return err
	}
	open, err := postgres.RebuildOpen(ctx, s.DB.Pool)
	if err != nil || open {
		return err
	}
	contacts, err := postgres.Contacts(ctx, s.DB.Pool)
	if err != nil {
		return err
	}
	var keep []string
	for _, contact := range contacts {
		listed := func(mac []byte) bool { return slices.Contains(pending, pseudonymOf(mac)) } // of any key: the list may be older than the sealing key
		if !slices.ContainsFunc(s.Keys.MACs(personPurpose, contact), listed) {
			continue
		}
		kept, err := s.eraseIfDue(ctx, contact)
		if err != nil {
			return err
		}
		if kept {
			keep = append(keep, s.pseudonym(contact)) // under the sealing key: an earlier one may be removed before the next pass
		}
	}
	return s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, _ time.Time) error {
		if err := postgres.EndErasures(ctx, tx, pending); err != nil {
			return err
		}
		return postgres.PutPendingErasures(ctx, tx, keep)
	})
}

// eraseIfDue reports whether reservations keep the contact.
func (s *Service) eraseIfDue(ctx context.Context, contact string) (bool, error) {
	due, err := postgres.ErasureDue(ctx, s.DB.Pool, contact, s.pseudonym(contact), s.DB.Now())
	if err != nil || !due {
		return true, err
	}
	_, kept, err := s.Erase(ctx, contact, "system")
	return kept > 0, err
}

// LoggedIn records the login of an administrator.
func (s *Service) LoggedIn(ctx context.Context, loginID, by string) error {
	return postgres.AppendAudit(ctx, s.DB.Pool, audit.Entry{Actor: by, Action: "administrator.login", Target: loginID})
}
