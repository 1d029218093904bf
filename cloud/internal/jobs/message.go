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
)

// sendLease is the time an attempt may take before another one is made.
var sendLease = failpoint.Shorten(time.Minute)

// send makes one attempt to send a message. The attempt is stored first, so a crash causes at most a second message: see
// postgres.ClaimMessage.
func (s *Service) send(ctx context.Context, id int64) error {
	m, err := postgres.ClaimMessage(ctx, s.DB.Pool, id, s.DB.Now(), sendLease)
	if errors.Is(err, booking.ErrNoMessage) {
		return nil // sent, or claimed by another worker
	}
	if err != nil {
		return err
	}
	variables, err := s.Queue.Variables(m)
	if err != nil {
		return errors.Join(err, postgres.MarkMessageFailed(ctx, s.DB.Pool, id, "variables cannot be opened", false, time.Time{}))
	}
	message := notify.Message{
		ID: fmt.Sprintf("yeolda-%d", m.ID), Template: notify.Template(m.Template), Language: notify.Language(m.Language),
		To:        notify.Recipient{Mobile: m.Mobile, Email: m.Email, URL: variables[queue.Address], Medium: notify.Channel(m.Medium)},
		Variables: variables,
	}
	if m.Doubtful > 1 {
		if done, err := s.resolve(ctx, m, message); done || err != nil {
			return err
		}
	}
	receipt, err := s.Sender.Send(ctx, message)
	failpoint.Hit("message.sent")
	if err == nil {
		return postgres.MarkMessageSent(ctx, s.DB.Pool, id, string(receipt.Channel), receipt.ProviderID, s.DB.Now())
	}
	s.Log.WarnContext(ctx, "message not sent", "message", id, "template", m.Template, "attempt", m.Attempt, "error", err)
	class := notify.ClassOf(err)
	return postgres.MarkMessageFailed(ctx, s.DB.Pool, id, err.Error(), class == notify.Unknown, s.retryAt(m, class))
}

// resolve asks the provider about earlier attempts with an unknown outcome. It reports done if one of them succeeded or if
// the outcome cannot be found out now. If it can never be found out, the message is sent a second time but not a third.
func (s *Service) resolve(ctx context.Context, m booking.Message, message notify.Message) (done bool, err error) {
	finder, ok := s.Sender.(notify.Finder)
	if !ok {
		return false, nil
	}
	receipt, err := finder.Find(ctx, message)
	switch {
	case err == nil:
		return true, postgres.MarkMessageSent(ctx, s.DB.Pool, m.ID, string(receipt.Channel), receipt.ProviderID, s.DB.Now())
	case errors.Is(err, notify.ErrNotTaken):
		return false, postgres.ClearMessageDoubt(ctx, s.DB.Pool, m.ID)
	case errors.Is(err, notify.ErrNoRecords):
		return false, nil
	}
	s.Log.WarnContext(ctx, "the outcome of a message is unknown", "message", m.ID, "attempt", m.Attempt, "error", err)
	return true, postgres.MarkMessageFailed(ctx, s.DB.Pool, m.ID, err.Error(), false, s.retryAt(m, notify.Retryable))
}

// doubtDelay is the time after which the provider is asked about an attempt with an unknown outcome: a request in transit
// should have arrived by then.
var doubtDelay = failpoint.Shorten(20 * time.Second)

// retryAt returns the time of the next attempt; zero for none.
func (s *Service) retryAt(m booking.Message, class notify.Class) time.Time {
	if class == notify.Permanent || m.Attempt >= postgres.MaxMessageAttempts {
		return time.Time{}
	}
	pause := min(2*time.Second<<m.Attempt, 10*time.Minute)
	if class == notify.Unknown {
		pause = max(pause, doubtDelay)
	}
	return s.DB.Now().Add(pause)
}
