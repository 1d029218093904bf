package proof

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/notify"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// headInterval leaves the check whether a head is due five minutes, so that one leaves the machine every hour.
const headInterval = 55 * time.Minute

// HeadDue reports whether the signed head of the audit log has to leave the machine.
func (s *Service) HeadDue(ctx context.Context) (bool, error) {
	successes, err := postgres.LastSuccesses(ctx, s.DB.Pool)
	return s.DB.Now().Sub(successes[postgres.WorkHead]) >= headInterval, err
}

// SendHead posts the signed head of the audit log to HeadURL and writes it into the log, if it is due. A receiver that fails gets
// a newer head later. At most one replica may call it at a time.
func (s *Service) SendHead(ctx context.Context) error {
	due, err := s.HeadDue(ctx)
	if err != nil || !due {
		return err
	}
	report := Report{At: s.DB.Now().UTC().Truncate(time.Millisecond), Rules: []Rule{}}
	report.Since = &report.At // no rule was checked
	if report.Head, err = s.head(ctx); err != nil || report.Head == "" {
		return err
	}
	signed, err := Sign(s.Keys, report)
	if err != nil {
		return err
	}
	line, err := json.Marshal(signed)
	if err != nil {
		return fmt.Errorf("proof: %w", err)
	}
	s.Log.InfoContext(ctx, "head of the audit log", "head", report.Head, "proof", string(line))
	if s.HeadURL != "" {
		if err := notify.Post(ctx, s.HeadURL, line); err != nil {
			return fmt.Errorf("proof: send the head of the audit log: %w", err)
		}
	}
	return postgres.NoteSuccess(ctx, s.DB.Pool, postgres.WorkHead, s.DB.Now())
}
