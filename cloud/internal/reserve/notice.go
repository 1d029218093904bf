package reserve

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/money"
	"github.com/yeolda/yeolda/cloud/internal/notify"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/queue"
)

// notifyGuest enqueues a message about r in the transaction that changes r. If r has no contact, it enqueues only messages that carry
// the key, whose failure raises the alert key-undelivered.
func (c *change) notifyGuest(r booking.Reservation, template notify.Template, more map[string]string) error {
	if r.Mobile == "" && r.Email == "" && !slices.Contains(notify.KeyTemplates(), string(template)) {
		return nil
	}
	branch, err := postgres.BranchOf(c.ctx, c.tx, r.Branch)
	if err != nil {
		return err
	}
	variables, err := c.variables(branch, r, more)
	if err != nil {
		return err
	}
	return c.Queue.Message(c.ctx, c.tx, queue.Message{
		Reservation: r.ID, Branch: r.Branch, Template: string(template), Language: r.Language,
		Mobile: r.Mobile, Email: r.Email, Variables: variables,
	})
}

func (s *Service) variables(branch booking.Branch, r booking.Reservation, more map[string]string) (map[string]string, error) {
	language := notify.Language(r.Language)
	date, hours := notify.Period(language, r.Start.In(branch.Zone), r.End)
	name := branch.NameKo
	if language == notify.English {
		name = branch.NameEn
	}
	variables := map[string]string{
		"name": r.Name, "branch": name, "room": strconv.Itoa(r.RoomNo), "date": date, "time": hours,
		"amount": notify.Won(r.Amount), "address": branch.Address, "phone": branch.Phone, "doors": pinDoors(branch, r.RoomNo, language),
	}
	key, err := s.keyOf(r)
	if err != nil {
		return nil, err
	}
	if key != "" {
		variables["doorlockKey"] = key
		variables["link"] = s.KeyLink(key)
	}
	maps.Copy(variables, more)
	return variables, nil
}

// pinDoors names the doors at which the PIN of a stay works.
func pinDoors(branch booking.Branch, room int, language notify.Language) string {
	names := map[notify.Language][3]string{
		notify.Korean: {"현관문", "룸 문", "현관문과 룸 문"}, notify.English: {"the entrance", "your room", "the entrance and that of your room"},
	}[cmp.Or(language, notify.Korean)]
	switch doors := branch.PINDoors(booking.Room{No: room}); {
	case len(doors) != 1:
		return names[2]
	case doors[0] == "front":
		return names[0]
	}
	return names[1]
}

// KeyLink returns the address of the page that opens doors with a key.
func (s *Service) KeyLink(key string) string { return s.PublicURL + "/k/" + key }

// withoutKey returns the reservation without its key, for messages that are sent after the key was revoked.
func (c *change) withoutKey() booking.Reservation {
	r := c.r()
	r.SealedKey, r.DoorlockKey = "", ""
	return r
}

// notifyAccount sends the guest the account for a deposit that is awaited until due.
func (c *change) notifyAccount(to money.DepositAccount, due time.Time) error {
	branch, err := postgres.BranchOf(c.ctx, c.tx, c.r().Branch)
	if err != nil {
		return err
	}
	return c.notifyGuest(c.r(), notify.VirtualAccountIssued, map[string]string{
		"bank": bankName(to.Bank), "accountNumber": to.Number, "accountHolder": to.Holder,
		"dueTime": notify.Due(notify.Language(c.r().Language), due.In(branch.Zone), c.now),
	})
}

// notifyAccountsAgain sends the accounts that wait for a deposit of the stay, or of one of its exchanges, to its corrected contact. An
// extension with a contact of its own keeps its message.
func (c *change) notifyAccountsAgain(exchanges []booking.Reservation) error {
	extensions, err := postgres.LockExtensions(c.ctx, c.tx, c.r().ID)
	if err != nil {
		return err
	}
	for _, r := range slices.Concat([]booking.Reservation{c.r()}, extensions, exchanges) {
		if r.State != booking.WaitingForDeposit || !c.now.Before(r.ExpiresAt) || r.Mobile != c.r().Mobile || r.Email != c.r().Email {
			continue
		}
		payment, err := postgres.PaymentOf(c.ctx, c.tx, r.ID)
		if err != nil {
			return err
		}
		if err := c.on(r).notifyAccount(payment.Account, r.ExpiresAt); err != nil {
			return err
		}
	}
	return nil
}

// notifyCanceled notifies the guest of a cancellation and of the refunded won. If nothing is refunded, the message contains
// no amount: the refund policy keeps the payment, parts have returned all of it, or the guest paid the partner.
func (c *change) notifyCanceled(won int) error {
	if c.r().Extends != 0 {
		return c.notifyExtensionCanceled(won)
	}
	switch {
	case won <= 0 && (c.r().Source == booking.Partner || !c.r().PaidAt.IsZero() && c.r().Amount > 0):
		return c.renotifyGuest(c.withoutKey(), notify.ReservationUnrefunded, nil)
	case won <= 0:
		return c.renotifyGuest(c.withoutKey(), notify.ReservationEnded, nil)
	}
	return c.renotifyGuest(c.withoutKey(), notify.ReservationCanceled, map[string]string{"amount": notify.Won(won)})
}

// notifyExtensionCanceled notifies the guest of the cancellation of an extension and of the refunded won, or that its account
// was closed without a deposit. No message is sent here if a paid extension ends without a refund: the guest has a message about the
// cancellation of the stay, or cancelPaid sends one.
func (c *change) notifyExtensionCanceled(won int) error {
	if won <= 0 && !c.r().PaidAt.IsZero() {
		return nil
	}
	root, err := postgres.Reservation(c.ctx, c.tx, c.r().Extends)
	if err != nil {
		return err
	}
	stays := root.State == booking.Done // otherwise it is canceled, or about to be
	switch {
	case won <= 0 && stays:
		return c.renotifyGuest(c.withoutKey(), notify.ExtensionEnded, nil)
	case won <= 0:
		return c.renotifyGuest(c.withoutKey(), notify.ReservationEnded, nil)
	case stays:
		return c.renotifyGuest(c.withoutKey(), notify.ExtensionCanceled, map[string]string{"amount": notify.Won(won)})
	}
	return c.renotifyGuest(c.withoutKey(), notify.ReservationCanceled, map[string]string{"amount": notify.Won(won)})
}

// renotifyGuest notifies the guest of a change, unless no message about the reservation was ever sent: an administrator may
// have registered it without notifying the guest.
func (c *change) renotifyGuest(r booking.Reservation, template notify.Template, more map[string]string) error {
	sent, err := postgres.CountMessages(c.ctx, c.tx, r.ID)
	if err != nil || sent == 0 {
		return err
	}
	return c.notifyGuest(r, template, more)
}

// sendOutcome sends the outcome of an order if the guest's last response was "pending".
func (c *change) sendOutcome(template notify.Template, more map[string]string) error {
	if c.Order.PendingAt.IsZero() {
		return nil
	}
	if err := c.notifyGuest(c.withoutKey(), template, more); err != nil {
		return err
	}
	c.Order.PendingAt = time.Time{}
	return postgres.OutcomeSent(c.ctx, c.tx, c.r().OrderID)
}

// sendOutcomeAlways notifies the guest of a refund, whether or not the guest already knows the outcome.
func (c *change) sendOutcomeAlways(template notify.Template, won int) error {
	if err := c.notifyGuest(c.withoutKey(), template, map[string]string{"amount": notify.Won(won)}); err != nil {
		return err
	}
	return postgres.OutcomeSent(c.ctx, c.tx, c.r().OrderID)
}

// bankName returns the bank's name, or its code if the bank is not in our list.
func bankName(code string) string {
	if bank, ok := booking.BankByCode(code); ok {
		return bank.Name
	}
	return code
}

// block blocks the reservation's time at the partner channels, unless it is already blocked. It reads the row as changed by
// this transaction.
func (c *change) block() error {
	return c.blockTime(c.r().ID)
}

func (c *change) blockTime(of booking.ReservationID) error {
	blocks, err := postgres.WantBlocks(c.ctx, c.tx, of, c.now)
	if err != nil {
		return err
	}
	return c.syncBlocks(blocks)
}

// unblock offers the reservation's time at the partner channels again, except what is in quarantine.
func (c *change) unblock() error {
	blocks, err := postgres.UnwantBlocks(c.ctx, c.tx, c.r().ID, c.now)
	if err != nil {
		return err
	}
	if err := c.syncBlocks(blocks); err != nil {
		return err
	}
	return c.blockQuarantines()
}

func (c *change) blockQuarantines() error {
	ids, err := postgres.QuarantinesOf(c.ctx, c.tx, c.r().ID)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if err := c.blockTime(id); err != nil {
			return err
		}
	}
	return nil
}

func (c *change) syncBlocks(blocks []int64) error {
	for _, block := range blocks {
		if err := c.Queue.SyncChannel(c.ctx, c.tx, block); err != nil {
			return err
		}
	}
	return nil
}
