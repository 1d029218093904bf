package jobs

import (
	"context"
	"errors"
	"fmt"
	"time"

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
	if errors.Is(err, postgres.ErrNoMessage) {
		return nil // sent, or being sent by someone else
	}
	if err != nil {
		return err
	}
	variables, err := s.Queue.Variables(m)
	if err != nil {
		return errors.Join(err, postgres.MarkMessageFailed(ctx, s.DB.Pool, id, "variables cannot be opened", false, time.Time{}))
	}
	receipt, err := s.Sender.Send(ctx, notify.Message{
		ID: fmt.Sprintf("yeolda-%d", m.ID), Template: notify.Template(m.Template), Language: notify.Language(m.Language),
		To: notify.Recipient{Mobile: m.Mobile, Email: m.Email}, Variables: variables,
	})
	failpoint.Hit("message.sent")
	if err == nil {
		return postgres.MarkMessageSent(ctx, s.DB.Pool, id, string(receipt.Channel), receipt.ProviderID, s.DB.Now())
	}
	s.Log.WarnContext(ctx, "message not sent", "message", id, "template", m.Template, "attempt", m.Attempt, "error", err)
	class := notify.ClassOf(err)
	return postgres.MarkMessageFailed(ctx, s.DB.Pool, id, err.Error(), class == notify.Unknown, s.retryAt(m, class))
}

// retryAt is when the next attempt is made; zero for never.
func (s *Service) retryAt(m postgres.Message, class notify.Class) time.Time {
	if class == notify.Permanent || m.Attempt >= postgres.MaxMessageAttempts {
		return time.Time{}
	}
	return s.DB.Now().Add(min(2*time.Second<<m.Attempt, 10*time.Minute))
}
