package alert

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/mail"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/notify"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// Limits of the list of contacts.
const (
	maxContacts     = 20
	maxName         = 50
	maxAddress      = 500
	maxEscalate     = 24 * 60 // minutes
	minPhone        = 9       // digits
	contactsPurpose = "alert-contacts"
	clockLayout     = "15:04"
	contactsField   = "alertContacts"
)

// Hours are the clock times between which a contact receives messages, local to the branch. An end that is not after its start lies on
// the next day.
type Hours struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// Contact is a recipient of alerts.
type Contact struct {
	Name    string         `json:"name"`
	Channel notify.Channel `json:"channel"` // sms, alimtalk, mail, discord, webhook
	To      string         `json:"to"`      // phone number, e-mail address or URL
	Kinds   []Kind         `json:"kinds"`   // empty: all but those of low urgency
	Hours   *Hours         `json:"hours"`   // nil: always
	// EscalateAfterMinutes is how long an alert is unacknowledged before this contact receives it; 0: at once.
	EscalateAfterMinutes int `json:"escalateAfterMinutes"`
}

// validate returns a [booking.InvalidError] for the first property that is out of bounds.
func (c Contact) validate() error {
	invalid := func(format string, args ...any) error {
		return &booking.InvalidError{Field: contactsField, Problem: fmt.Sprintf(format, args...)}
	}
	switch {
	case strings.TrimSpace(c.Name) == "" || utf8.RuneCountInString(c.Name) > maxName:
		return invalid("a name has 1 to %d characters", maxName)
	case len(c.To) > maxAddress || !c.reachable():
		return invalid("%q cannot be reached by %s", c.Name, c.Channel)
	case c.EscalateAfterMinutes < 0 || c.EscalateAfterMinutes > maxEscalate:
		return invalid("escalateAfterMinutes is between 0 and %d", maxEscalate)
	}
	for _, kind := range c.Kinds {
		if !kind.Valid() {
			return invalid("there is no kind %q", kind)
		}
	}
	if c.Hours == nil {
		return nil
	}
	from, to := minuteOf(c.Hours.From), minuteOf(c.Hours.To)
	if len(c.Hours.From) != len(clockLayout) || len(c.Hours.To) != len(clockLayout) || from < 0 || to < 0 || from == to {
		return invalid("hours are two different clock times such as 09:00")
	}
	return nil
}

// minuteOf returns the minute of the day of a clock time; -1 for any other text. Earlier releases stored hours of one digit, such as 9:00, too.
func minuteOf(clock string) int {
	at, err := time.Parse(clockLayout, clock)
	if err != nil {
		return -1
	}
	return 60*at.Hour() + at.Minute()
}

func (c Contact) reachable() bool {
	switch c.Channel {
	case notify.SMS, notify.AlimTalk:
		return booking.CheckPhone(c.To) == nil && len(booking.NormalizePhone(c.To)) >= minPhone
	case notify.Email:
		address, err := mail.ParseAddress(c.To)
		return err == nil && address.Address == c.To
	case notify.Discord, notify.Webhook:
		u, err := url.Parse(c.To)
		return err == nil && u.Host != "" && u.User == nil && (u.Scheme == "https" || u.Scheme == "http" && c.Channel == notify.Webhook)
	}
	return false
}

// wants reports whether the contact receives a kind.
func (c Contact) wants(kind Kind) bool {
	return slices.Contains(c.Kinds, kind) || len(c.Kinds) == 0 && kind != NoArrival
}

// available reports whether a time lies within the contact's hours.
func (c Contact) available(now time.Time, zone *time.Location) bool {
	if c.Hours == nil {
		return true
	}
	from, to, clock := minuteOf(c.Hours.From), minuteOf(c.Hours.To), minuteOf(now.In(zone).Format(clockLayout))
	if from < to {
		return from <= clock && clock < to
	}
	return from <= clock || clock < to
}

// ValidateContacts returns a [booking.InvalidError] for the first contact that is out of bounds.
func ValidateContacts(contacts []Contact) error {
	if len(contacts) > maxContacts {
		return &booking.InvalidError{Field: contactsField, Problem: fmt.Sprintf("there are more than %d", maxContacts)}
	}
	for _, c := range contacts {
		if err := c.validate(); err != nil {
			return err
		}
	}
	return nil
}

// ValidateContacts is the function of that name, and checks that messages may be sent to the webhooks.
func (s *Service) ValidateContacts(contacts []Contact) error {
	if err := ValidateContacts(contacts); err != nil {
		return err
	}
	for _, c := range contacts {
		if c.Channel != notify.Discord && c.Channel != notify.Webhook {
			continue
		}
		if err := s.CheckHook(c.To); err != nil {
			return &booking.InvalidError{Field: contactsField, Problem: fmt.Sprintf("the webhook of %q leads into a private network", c.Name)}
		}
	}
	return nil
}

// Contacts returns the contacts of a branch, or of the headquarters if the code is empty.
func (s *Service) Contacts(ctx context.Context, branch string) ([]Contact, error) {
	all, err := s.contacts(ctx, s.DB.Pool, []string{branch})
	return all[branch], err
}

// PutContacts stores the contacts of a branch, or of the headquarters. The caller has validated them.
func (s *Service) PutContacts(ctx context.Context, tx pgx.Tx, branch string, contacts []Contact) error {
	plain, err := json.Marshal(append([]Contact{}, contacts...)) // [], never null
	if err != nil {
		return fmt.Errorf("encode alert contacts: %w", err)
	}
	return postgres.PutAlertContacts(ctx, tx, branch, s.Keys.Seal(contactsPurpose, plain))
}

func (s *Service) contacts(ctx context.Context, q postgres.Querier, branches []string) (map[string][]Contact, error) {
	sealed, err := postgres.AlertContacts(ctx, q, branches)
	if err != nil {
		return nil, err
	}
	all := make(map[string][]Contact, len(sealed))
	for branch, value := range sealed {
		plain, err := s.Keys.Open(contactsPurpose, value)
		var list []Contact
		if err = errors.Join(err, json.Unmarshal(plain, &list)); err != nil {
			return nil, fmt.Errorf("alert contacts of %q: %w", branch, err)
		}
		all[branch] = list
	}
	return all, nil
}

// identities name a contact in the notices of an alert without its address. The first one is stored; an alert that began before the
// encryption key changed has another one.
func (s *Service) identities(c Contact) [][]byte {
	return s.Keys.MACs("alert-contact", string(c.Channel)+"|"+c.To)
}
