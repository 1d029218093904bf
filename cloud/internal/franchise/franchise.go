// Package franchise stores inquiries of prospective franchisees and notifies the headquarters by mail.
package franchise

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/limit"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/queue"
)

// perAddress limits inquiries per client address and network (docs/specification.md, Limits 14 and Login 10).
var perAddress = limit.Rule{Name: "franchise-inquiry", Max: 5, Window: time.Hour}

// Inquiry holds the fields of the inquiry form.
type Inquiry = postgres.FranchiseInquiry

// Service stores inquiries. All fields are required.
type Service struct {
	DB      *postgres.DB
	Limits  *limit.Limiter
	Queue   *queue.Queue
	HQEmail string // recipient of the notification
}

// Inquire stores an inquiry and notifies the headquarters. client is the address of the sender. It returns a
// [limit.ExceededError] after too many inquiries from that address.
func (s *Service) Inquire(ctx context.Context, i Inquiry, client string) error {
	if err := s.Limits.TakeClient(ctx, perAddress, client); err != nil {
		return err
	}
	err := s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, _ time.Time) error {
		if err := postgres.InsertFranchiseInquiry(ctx, tx, i); err != nil {
			return err
		}
		return s.Queue.Message(ctx, tx, queue.Message{
			Template: "franchise-inquiry",
			Email:    s.HQEmail,
			Variables: map[string]string{
				"name": i.Name, "mobileNum": i.Mobile, "email": i.Email, "region": i.Region, "message": i.Message,
			},
		})
	})
	if err != nil {
		return fmt.Errorf("franchise inquiry: %w", err)
	}
	return nil
}
