package reserve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/yeolda/yeolda/cloud/internal/account"
	"github.com/yeolda/yeolda/cloud/internal/audit"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/notify"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/queue"
)

// keyPurpose is the purpose with which the texts of keys are sealed.
const keyPurpose = "door-key"

// newKey returns a new random key.
func (s *Service) newKey() postgres.NewKey {
	key := uuid.New()
	return postgres.NewKey{Key: key, Sealed: s.Keys.Seal(keyPurpose, []byte(key.String()))}
}

// keyOf returns the text of the owner's key, or an empty text if the reservation has no key that opens doors.
func (s *Service) keyOf(r booking.Reservation) (string, error) {
	if r.SealedKey == "" {
		return r.DoorlockKey, nil
	}
	text, err := s.openKey([]byte(r.SealedKey))
	if err != nil && !s.DB.Now().Before(r.Stay().End) {
		return "", nil // sealed with a lost key (yeolda adopt); those of present and future stays are replaced
	}
	if err != nil {
		return "", fmt.Errorf("key of reservation %d: %w", r.ID, err)
	}
	return text, nil
}

// KeyLinkOf returns the address of the owner's key page, or an empty text if there is no key that opens doors.
func (s *Service) KeyLinkOf(r booking.Reservation) (string, error) {
	key, err := s.keyOf(r)
	if err != nil || key == "" {
		return "", err
	}
	return s.KeyLink(key), nil
}

func (s *Service) openKey(sealed []byte) (string, error) {
	text, err := s.Keys.Open(keyPurpose, sealed)
	return string(text), err
}

// sealBatch is the number of keys of the last release that one sweep seals.
const sealBatch = 500

// SealKeys seals keys that a program of the last release wrote in plain text, and deletes their plain text once no such
// program needs it. It replaces those whose text was lost.
func (s *Service) SealKeys(ctx context.Context) error {
	keys, err := postgres.UnsealedKeys(ctx, s.DB.Pool, sealBatch)
	if err != nil {
		return err
	}
	for _, k := range keys {
		if err := postgres.SealKey(ctx, s.DB.Pool, k.ID, s.Keys.Seal(keyPurpose, []byte(k.Text))); err != nil {
			return err
		}
	}
	if _, err = postgres.ForgetKeyTexts(ctx, s.DB.Pool, sealBatch); err != nil {
		return err
	}
	lost, err := postgres.StaysWithoutKeyText(ctx, s.DB.Pool, s.DB.Now(), sealBatch)
	if err != nil {
		return err
	}
	var failed error
	for _, id := range lost {
		if err := s.replaceKey(ctx, id); err != nil {
			failed = errors.Join(failed, fmt.Errorf("replace the key of reservation %d: %w", id, err))
		}
	}
	return failed
}

// replaceKey gives the guest of a confirmed stay another key and sends it.
func (s *Service) replaceKey(ctx context.Context, id booking.ReservationID) error {
	return s.locked(ctx, id, func(c *change) error {
		if c.r().State != booking.Done {
			return nil
		}
		return c.rotate(postgres.KeyReplaced, "system", false)
	})
}

// ErrNoKey is returned if the reservation has no key that opens doors.
var ErrNoKey = errors.New("reserve: the reservation has no key")

// lockedWithKey is locked for the reservation that has the key of a stay: for an extension, the one that it extends.
func (s *Service) lockedWithKey(ctx context.Context, id booking.ReservationID, do func(*change) error) error {
	r, err := postgres.Reservation(ctx, s.DB.Pool, id)
	if errors.Is(err, booking.ErrNoReservation) {
		return ErrNotFound
	}
	if err != nil {
		return err
	}
	return s.locked(ctx, cmp.Or(r.Extends, id), do)
}

// RotateKey gives the guest of a stay a new key and sends it. The previous key opens nothing from the next claim on; companions keep
// theirs. It reports whether the reservation has a contact to send the key to.
//
// Errors: ErrNotFound, account.ErrBranchForbidden, ErrNoKey.
func (s *Service) RotateKey(ctx context.Context, id booking.ReservationID, reason string, by account.Principal) (sent bool, err error) {
	err = s.lockedWithKey(ctx, id, func(c *change) error {
		if _, err := c.reachable(by); err != nil {
			return err
		}
		if c.r().State != booking.Done {
			return ErrNoKey
		}
		sent = c.r().Mobile != "" || c.r().Email != ""
		if err := c.rotate(postgres.KeyRotated, by.Actor(), false); err != nil {
			return err
		}
		return c.audited(by, "reservation.key-rotate", map[string]any{"reason": reason})
	})
	return sent, err
}

// rotate gives the guest a new key and sends it to the contact, if there is one; with mail, to the address as well as to the phone
// number. While keys are blocked, the new one is, too.
func (c *change) rotate(reason, actor string, mail bool) error {
	key := c.newKey()
	if err := postgres.PutOwnerKey(c.ctx, c.tx, c.r().ID, key, reason, actor); err != nil {
		return err
	}
	if err := c.issuePass(); err != nil {
		return err
	}
	r := c.r()
	r.SealedKey, r.DoorlockKey = "", key.Key.String()
	if r.Mobile == "" && r.Email == "" {
		return nil
	}
	r.Interval = r.Stay() // the key opens doors during its extensions, too
	if mail && r.Mobile != "" && r.Email != "" {
		byMail := r
		byMail.Mobile = ""
		if err := c.notifyGuest(byMail, notify.KeyChanged, nil); err != nil {
			return err
		}
	}
	return c.notifyGuest(r, notify.KeyChanged, nil)
}

// ContactCorrection corrects the contact of a reservation. A nil field is left unchanged.
type ContactCorrection struct {
	ID                  booking.ReservationID
	Name, Mobile, Email *string
	Reason              string
	By                  account.Principal
}

// CorrectContact corrects the contact of a stay, its extensions and unpaid exchanges included, that is paid or waits for its deposit. If there
// is a key, the guest receives another one at the new contact; the previous one counts as unknown from then on, because it went to another
// person, and companions' keys are revoked. The same holds for the links of refunds of stays that it has replaced. Messages that wait to be
// sent to the previous contact are not sent there. The new contact receives those about money that was returned, and the account of a deposit
// that is awaited.
//
// Errors: ErrNotFound, account.ErrBranchForbidden, ErrNotCorrectable.
func (s *Service) CorrectContact(ctx context.Context, req ContactCorrection) error {
	return s.lockedWithKey(ctx, req.ID, func(c *change) error {
		if _, err := c.reachable(req.By); err != nil {
			return err
		}
		return c.correctContact(req, req.By.Actor())
	})
}

func (c *change) correctContact(req ContactCorrection, actor string) error {
	if c.r().State != booking.Done && c.r().State != booking.WaitingForDeposit {
		return ErrNotCorrectable
	}
	changed := []string{}
	correct := func(field string, to *string, now *string) {
		if to != nil && *to != *now {
			*now = *to
			changed = append(changed, field)
		}
	}
	correct("name", req.Name, &c.Reservation.Name)
	correct("mobileNum", req.Mobile, &c.Reservation.Mobile)
	correct("email", req.Email, &c.Reservation.Email)
	if err := postgres.SetContact(c.ctx, c.tx, c.r()); err != nil {
		return err
	}
	exchanges, err := postgres.LockExchanges(c.ctx, c.tx, c.r().ID)
	if err != nil {
		return err
	}
	replaced, err := postgres.LockReplaced(c.ctx, c.tx, c.r().ID)
	if err != nil {
		return err
	}
	other := func(r booking.Reservation) bool { return r.Mobile != c.r().Mobile || r.Email != c.r().Email }
	exchanges, replaced = slices.DeleteFunc(exchanges, other), slices.DeleteFunc(replaced, other)
	dropped, err := postgres.DropMessages(c.ctx, c.tx, c.r().ID, notify.OutcomeTemplates())
	if err != nil {
		return err
	}
	if c.r().State == booking.Done {
		mail := slices.Contains(changed, "email") && !slices.Contains(changed, "mobileNum") // the new contact is the address
		if err := c.rotate(postgres.KeyCorrected, actor, mail); err != nil {
			return err
		}
	}
	if err := c.redirect(dropped); err != nil {
		return err
	}
	if err := c.notifyAccountsAgain(exchanges); err != nil {
		return err
	}
	if err := c.askAccountAgain(); err != nil {
		return err
	}
	for _, r := range slices.Concat([]booking.Reservation{c.r()}, exchanges, replaced) {
		err := c.Service.audit(c.ctx, c.tx, audit.Entry{
			Actor: actor, Action: "reservation.contact", Detail: map[string]any{"changed": changed, "reason": req.Reason},
		}, r)
		if err != nil {
			return err
		}
	}
	return nil
}

// redirect sends messages to the corrected contact that were not sent to the previous one.
func (c *change) redirect(messages []booking.Message) error {
	for _, m := range messages {
		variables, err := c.Queue.Variables(m)
		if err != nil {
			return err
		}
		variables["name"] = c.r().Name
		err = c.Queue.Message(c.ctx, c.tx, queue.Message{
			Reservation: m.Reservation, Branch: m.Branch, Template: m.Template, Language: m.Language,
			Mobile: c.r().Mobile, Email: c.r().Email, Variables: variables,
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// ErrNotCorrectable is returned when the reservation is neither paid nor waits for its deposit, and to a guest who has
// entered or whose stay is over.
var ErrNotCorrectable = errors.New("reserve: the contact of this reservation cannot be corrected")
