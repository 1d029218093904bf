package reserve

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/notify"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/queue"
	"github.com/yeolda/yeolda/cloud/internal/toss"
)

// tell enqueues a message to the guest, in the transaction of what it tells.
func (s *Service) notifyGuest(ctx context.Context, tx pgx.Tx, r booking.Reservation, template notify.Template, more map[string]string) error {
	branch, err := postgres.BranchOf(ctx, tx, r.Branch)
	if err != nil {
		return err
	}
	return s.Queue.Message(ctx, tx, queue.Message{
		Reservation: r.ID, Branch: r.Branch, Template: string(template), Language: r.Language,
		Mobile: r.Mobile, Email: r.Email, Variables: s.variables(branch, r, more),
	})
}

func (s *Service) variables(branch booking.Branch, r booking.Reservation, more map[string]string) map[string]string {
	language := notify.Language(r.Language)
	date, hours := notify.Period(language, r.Start.In(branch.Zone), r.End)
	name := branch.NameKo
	if language == notify.English {
		name = branch.NameEn
	}
	variables := map[string]string{
		"name": r.Name, "branch": name, "room": strconv.Itoa(r.RoomNo), "date": date, "time": hours,
		"amount": notify.Won(r.Amount), "phone": branch.Phone,
	}
	if r.DoorlockKey != "" {
		variables["doorlockKey"] = r.DoorlockKey
		variables["link"] = s.KeyLink(r.DoorlockKey)
	}
	for key, value := range more {
		variables[key] = value
	}
	return variables
}

// KeyLink is the address of the page that opens doors with a key.
func (s *Service) KeyLink(key string) string { return s.PublicURL + "/k/" + key }

func (s *Service) notifyAccount(ctx context.Context, tx pgx.Tx, r booking.Reservation, p toss.Payment, due time.Time) error {
	branch, err := postgres.BranchOf(ctx, tx, r.Branch)
	if err != nil {
		return err
	}
	v := p.VirtualAccount
	if v == nil {
		return errors.New("reserve: a payment that waits for a deposit has no account")
	}
	return s.notifyGuest(ctx, tx, r, notify.VirtualAccountIssued, map[string]string{
		"bank": bankName(v.Bank), "accountNumber": v.Number, "accountHolder": v.CustomerName,
		"dueTime": due.In(branch.Zone).Format("15:04"),
	})
}

func (s *Service) notifyCanceled(ctx context.Context, tx pgx.Tx, r booking.Reservation) error {
	r.DoorlockKey = ""
	return s.renotifyGuest(ctx, tx, r, notify.ReservationCanceled)
}

// renotifyGuest is tell for what became of a reservation: only those are told who were told of the reservation itself. An
// administrator may have registered it without a word to anybody (docs/specification.md, Administration 1).
func (s *Service) renotifyGuest(ctx context.Context, tx pgx.Tx, r booking.Reservation, template notify.Template) error {
	told, err := postgres.CountMessages(ctx, tx, r.ID)
	if err != nil || told == 0 {
		return err
	}
	return s.notifyGuest(ctx, tx, r, template, nil)
}

// bankName is the bank's name, or its code if the provider knows a bank we do not.
func bankName(code string) string {
	if bank, ok := booking.BankByCode(code); ok {
		return bank.Name
	}
	return code
}

// block has the reservation's time blocked at partner channels, unless it is already. The reservation is what the
// transaction has made of it.
func (s *Service) block(ctx context.Context, tx pgx.Tx, id booking.ReservationID) error {
	blocks, err := postgres.WantBlocks(ctx, tx, id, s.now())
	return errors.Join(err, s.sync(ctx, tx, blocks))
}

// unblock has it offered again.
func (s *Service) unblock(ctx context.Context, tx pgx.Tx, id booking.ReservationID) error {
	blocks, err := postgres.UnwantBlocks(ctx, tx, id, s.now())
	return errors.Join(err, s.sync(ctx, tx, blocks))
}

func (s *Service) sync(ctx context.Context, tx pgx.Tx, blocks []int64) error {
	for _, block := range blocks {
		if err := s.Queue.SyncChannel(ctx, tx, block); err != nil {
			return err
		}
	}
	return nil
}
