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
)

// sendLease is how long an attempt to send may take before another one is made.
var sendLease = failpoint.Shorten(time.Minute)

// send makes one attempt at a message. The attempt is written down before it is made, so that a crash in between costs
// a second message at most: see postgres.ClaimMessage.
func (s *Service) send(ctx context.Context, id int64) error {
	m, err := postgres.ClaimMessage(ctx, s.DB.Pool, id, s.DB.Now(), sendLease)
	if errors.Is(err, booking.ErrNoMessage) {
		return nil // sent, or being sent by someone else
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
		To: notify.Recipient{Mobile: m.Mobile, Email: m.Email}, Variables: variables,
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

// resolve asks what became of earlier attempts of which nobody knows whether they reached the person. It is done when one
// did, or when that cannot be told now. Where it can never be told the message is sent a second time, and not a third.
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
	s.Log.WarnContext(ctx, "what became of a message cannot be told yet", "message", m.ID, "attempt", m.Attempt, "error", err)
	return true, postgres.MarkMessageFailed(ctx, s.DB.Pool, m.ID, err.Error(), false, s.retryAt(m, notify.Retryable))
}

// doubtPause is how long an attempt of which nobody knows is left to itself: what is still on its way to the provider
// should have arrived when its records are looked at.
var doubtPause = failpoint.Shorten(20 * time.Second)

// retryAt is when the next attempt is made; zero for never.
func (s *Service) retryAt(m booking.Message, class notify.Class) time.Time {
	if class == notify.Permanent || m.Attempt >= postgres.MaxMessageAttempts {
		return time.Time{}
	}
	pause := min(2*time.Second<<m.Attempt, 10*time.Minute)
	if class == notify.Unknown {
		pause = max(pause, doubtPause)
	}
	return s.DB.Now().Add(pause)
}
