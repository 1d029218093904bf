package backoffice

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/audit"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/notify"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/queue"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
)

var (
	// ErrLoginCode is returned when a login code is to be sent again: it has expired by then.
	ErrLoginCode = errors.New("backoffice: a login code is not sent again")
	// ErrOutdated is returned when a message is to be sent again that a later event has made wrong.
	ErrOutdated = errors.New("backoffice: the message is not right any more")
)

// Messages returns the latest messages of a branch before an id (0: the newest) in a state (empty: any).
func (s *Service) Messages(ctx context.Context, branch booking.BranchID, state string, before int64, limit int) ([]booking.Message, error) {
	return postgres.MessagesInState(ctx, s.DB.Pool, branch, state, before, limit)
}

// Message returns a message and the code of its branch, which is empty for a message of no branch.
func (s *Service) Message(ctx context.Context, id int64) (booking.Message, string, error) {
	m, err := postgres.MessageByID(ctx, s.DB.Pool, id)
	if err != nil || m.Branch == 0 {
		return m, "", err
	}
	branch, err := s.DB.BranchByID(ctx, m.Branch)
	return m, branch.Code, err
}

// hidden replaces a secret in the text of a message.
const hidden = "••••••"

// MessageText renders a message as the guest reads it. The code of a login and the link of a refund account are never
// shown, because an administrator could act as the guest with them, and keys only to an administrator who may open doors.
// The view is recorded.
func (s *Service) MessageText(ctx context.Context, m booking.Message, withKeys bool, by string) (notify.Text, error) {
	variables, err := s.Queue.Variables(m)
	if err != nil {
		return notify.Text{}, err
	}
	secrets := []string{"code"}
	if !withKeys {
		secrets = append(secrets, "doorlockKey", "link", "pin")
	}
	if notify.Template(m.Template) == notify.RefundAccountNeeded {
		secrets = append(secrets, "link")
	}
	for _, name := range secrets {
		if _, there := variables[name]; there {
			variables[name] = hidden
		}
	}
	for _, name := range notify.Template(m.Template).Variables() {
		if variables[name] == "" {
			variables[name] = "–" // erased, or never set
		}
	}
	text, err := notify.Message{Template: notify.Template(m.Template), Language: notify.Language(m.Language), Variables: variables, Brand: s.Company.MessageBrand(ctx)}.Render()
	if err != nil {
		return notify.Text{}, err
	}
	return text, s.Viewed(ctx, by, "message.view", strconv.FormatInt(m.ID, 10), m.Branch)
}

// ResendMessage sends a message again, as a message of its own. It returns ErrLoginCode, ErrOutdated or reserve.ErrNothingToSend.
func (s *Service) ResendMessage(ctx context.Context, m booking.Message, branch, by string) error {
	switch {
	case notify.Template(m.Template) == notify.LoginCode:
		return ErrLoginCode
	case m.Mobile == "" && m.Email == "" && m.Medium == "":
		return reserve.ErrNothingToSend
	case m.Reservation != 0:
		if right, err := reserve.Repeatable(ctx, s.DB.Pool, m, s.DB.Now()); err != nil || !right {
			return cmp.Or(err, ErrOutdated)
		}
	}
	variables, err := s.Queue.Variables(m)
	if err != nil {
		return err
	}
	entry := audit.Entry{Actor: by, Branch: branch, Action: "message.resend", Target: strconv.FormatInt(m.ID, 10)}
	return s.change(ctx, &entry, func(ctx context.Context, tx pgx.Tx, _ time.Time) error {
		return s.Queue.Message(ctx, tx, queue.Message{
			Reservation: m.Reservation, Branch: m.Branch, Template: m.Template, Language: m.Language,
			Mobile: m.Mobile, Email: m.Email, Medium: m.Medium, Variables: variables,
		})
	})
}
