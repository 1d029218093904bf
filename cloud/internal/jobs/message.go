package jobs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/failpoint"
	"github.com/yeolda/yeolda/cloud/internal/notify"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/queue"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
)

// sendLease is the time an attempt may take before another one is made.
var sendLease = failpoint.Shorten(time.Minute)

// send makes one attempt to send a message. The attempt is stored first, and after a crash or a lost answer the provider is
// asked about its outcome: so a guest receives a message at least once where the provider keeps records, and at most twice.
func (s *Service) send(ctx context.Context, id int64) error {
	for id != 0 {
		m, err := s.DB.ClaimMessage(ctx, id, s.DB.Now(), sendLease)
		if errors.Is(err, booking.ErrNoMessage) {
			return nil // sent, claimed by another worker, or waiting for an earlier one, whose sender sends it next
		}
		if err != nil {
			return err
		}
		failpoint.Hit("message.claimed")
		if err := s.attempt(ctx, m); err != nil || m.Reservation == 0 {
			return err
		}
		if id, err = postgres.NextMessage(ctx, s.DB.Pool, m, s.DB.Now()); err != nil {
			return err
		}
	}
	return nil
}

// attempt makes one attempt to send a claimed message and stores its outcome.
func (s *Service) attempt(ctx context.Context, m booking.Message) error {
	due, err := postgres.StillDue(ctx, s.DB.Pool, m, reserve.MessageKinds(), s.DB.Now())
	if err != nil {
		return err
	}
	if !due {
		return postgres.MarkMessageFailed(ctx, s.DB.Pool, m.ID, "no longer due", m.Doubtful, time.Time{})
	}
	variables, err := s.Queue.Variables(m)
	if err != nil {
		return errors.Join(err, postgres.MarkMessageFailed(ctx, s.DB.Pool, m.ID, "variables cannot be opened", m.Doubtful, time.Time{}))
	}
	message := notify.Message{
		ID: fmt.Sprintf("yeolda-%d", m.ID), Template: notify.Template(m.Template), Language: notify.Language(m.Language),
		To:        notify.Recipient{Mobile: m.Mobile, Email: m.Email, URL: variables[queue.Address], Medium: notify.Channel(m.Medium)},
		Variables: variables,
	}
	doubtful := 1
	if m.Doubtful > 0 {
		if doubtful, err = s.resolve(ctx, m, message); doubtful == 0 || err != nil {
			return err
		}
	}
	receipt, err := s.Sender.Send(ctx, message)
	failpoint.Hit("message.sent")
	if err == nil {
		return s.DB.MarkMessageSent(ctx, m.ID, string(receipt.Channel), receipt.ProviderID, s.DB.Now())
	}
	s.Log.WarnContext(ctx, "message not sent", "message", m.ID, "template", m.Template, "attempt", m.Attempt, "error", err)
	class := notify.ClassOf(err)
	if class != notify.Unknown {
		doubtful--
	}
	if errors.Is(err, notify.ErrNoTemplate) { // of a newer release, whose replica sends it during an upgrade
		class = notify.Retryable
	}
	if class != notify.Permanent && mailed(m) {
		return s.mail(ctx, m, message, doubtful)
	}
	return postgres.MarkMessageFailed(ctx, s.DB.Pool, m.ID, err.Error(), doubtful, s.retryAt(m, class))
}

// mailAfter is the number of attempts, within two minutes, after which a message that the phone provider does not take is sent by mail.
const mailAfter = 6

// mailed reports whether this attempt is also made by mail.
func mailed(m booking.Message) bool {
	return m.Mobile != "" && m.Email != "" && m.Attempt%mailAfter == 0
}

// mail sends a message to its e-mail address while the phone provider does not take it. If that fails as well, both are tried again.
func (s *Service) mail(ctx context.Context, m booking.Message, message notify.Message, doubtful int) error {
	message.To.Mobile = ""
	receipt, err := s.Sender.Send(ctx, message)
	if err == nil {
		return s.DB.MarkMessageSent(ctx, m.ID, string(receipt.Channel), receipt.ProviderID, s.DB.Now())
	}
	s.Log.WarnContext(ctx, "message not sent by mail either", "message", m.ID, "template", m.Template, "attempt", m.Attempt, "error", err)
	return postgres.MarkMessageFailed(ctx, s.DB.Pool, m.ID, err.Error(), doubtful, s.retryAt(m, notify.Retryable))
}

// maxDoubtful is the maximum number of attempts that may have reached the recipient.
const maxDoubtful = 2

// resolve asks the provider about earlier attempts with an unknown outcome. It returns how many attempts may have reached the
// recipient if another one is made now, or 0 if none is to be made: one of them succeeded, the outcome cannot be found out now,
// or another attempt could deliver a third copy. A message on which the service crashes again and again is given up as well.
func (s *Service) resolve(ctx context.Context, m booking.Message, message notify.Message) (doubtful int, err error) {
	receipt, err := s.find(ctx, message)
	switch {
	case err == nil:
		return 0, s.DB.MarkMessageSent(ctx, m.ID, string(receipt.Channel), receipt.ProviderID, s.DB.Now())
	// An attempt that ended in a crash has left no error.
	case errors.Is(err, notify.ErrNotTaken) && (m.Attempt <= maxAttempts || m.Error != "" && !s.expired(m)):
		return 1, postgres.DoubtMessage(ctx, s.DB.Pool, m.ID, 1)
	case errors.Is(err, notify.ErrNoRecords) && m.Doubtful < maxDoubtful:
		return m.Doubtful + 1, postgres.DoubtMessage(ctx, s.DB.Pool, m.ID, m.Doubtful+1)
	case errors.Is(err, notify.ErrNotTaken), errors.Is(err, notify.ErrNoRecords):
		return 0, postgres.MarkMessageFailed(ctx, s.DB.Pool, m.ID, "sent again and again with unknown outcome", m.Doubtful, time.Time{})
	}
	s.Log.WarnContext(ctx, "the outcome of a message is unknown", "message", m.ID, "attempt", m.Attempt, "error", err)
	if mailed(m) {
		return 0, s.mail(ctx, m, message, m.Doubtful)
	}
	return 0, postgres.MarkMessageFailed(ctx, s.DB.Pool, m.ID, err.Error(), m.Doubtful, s.retryAt(m, notify.Retryable))
}

// find asks the provider about a message, if it keeps records.
func (s *Service) find(ctx context.Context, message notify.Message) (notify.Receipt, error) {
	if finder, ok := s.Sender.(notify.Finder); ok {
		return finder.Find(ctx, message)
	}
	return notify.Receipt{}, notify.ErrNoRecords
}

// doubtDelay is the time after which the provider is asked about an attempt with an unknown outcome: a request in transit
// should have arrived by then.
var doubtDelay = failpoint.Shorten(20 * time.Second)

const (
	// maxAttempts is the number of attempts to send a message that is of use for minutes: a code, or an account for a deposit.
	maxAttempts = 8
	// maxAge is the time for which any other message is tried: the provider may be away for hours.
	maxAge = 24 * time.Hour

	maxRetryDelay = 5 * time.Minute
)

// expired reports whether a message that was not sent is given up. [postgres.StillDue] knows when one about a stay is late.
func (s *Service) expired(m booking.Message) bool {
	switch notify.Template(m.Template) {
	case notify.LoginCode, notify.VirtualAccountIssued:
		return m.Attempt >= maxAttempts
	}
	return s.DB.Now().Sub(m.CreatedAt) >= maxAge
}

// retryAt returns the time of the next attempt; zero for none.
func (s *Service) retryAt(m booking.Message, class notify.Class) time.Time {
	if class == notify.Permanent || s.expired(m) {
		return time.Time{}
	}
	pause := min(2*time.Second<<min(m.Attempt, maxAttempts), maxRetryDelay)
	if class == notify.Unknown {
		pause = max(pause, doubtDelay)
	}
	return s.DB.Now().Add(pause)
}
