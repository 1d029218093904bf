package alert

import (
	"bytes"
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/notify"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/queue"
)

// pendingLimit is the age of an alert after which no further contact is notified of its beginning: the longest escalation, and then a day,
// within which the hours of every contact begin.
const pendingLimit = maxEscalate*time.Minute + 25*time.Hour

// announce queues the messages that are due and records them in the same transaction.
func (s *Service) announce(ctx context.Context, now time.Time) error {
	return s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, _ time.Time) error {
		incidents, err := postgres.Incidents(ctx, tx, now.Add(-pendingLimit))
		if err != nil || len(incidents) == 0 {
			return err
		}
		branches := []string{""}
		for _, i := range incidents {
			branches = append(branches, i.Branch)
		}
		contacts, err := s.contacts(ctx, tx, branches)
		if err != nil {
			return err
		}
		for _, i := range incidents {
			if err := s.announceOne(ctx, tx, i, s.recipients(contacts, i.Branch), now); err != nil {
				return err
			}
		}
		return nil
	})
}

// recipients returns the contacts of the headquarters and of a branch, each address once.
func (s *Service) recipients(contacts map[string][]Contact, branch string) []Contact {
	list := contacts[""]
	if len(list) == 0 {
		list = s.defaults()
	}
	if branch != "" {
		list = slices.Concat(list, contacts[branch])
	}
	var once []Contact
	for _, c := range list {
		if !slices.ContainsFunc(once, func(o Contact) bool { return o.Channel == c.Channel && o.To == c.To }) {
			once = append(once, c)
		}
	}
	return once
}

// defaults are the contacts of the headquarters if they have set none.
func (s *Service) defaults() (list []Contact) {
	if s.HQEmail != "" {
		list = append(list, Contact{Name: "본사", Channel: notify.Email, To: s.HQEmail})
	}
	if s.DiscordURL != "" {
		list = append(list, Contact{Name: "Discord", Channel: notify.Discord, To: s.DiscordURL})
	}
	return list
}

func (s *Service) announceOne(ctx context.Context, tx pgx.Tx, i postgres.Incident, contacts []Contact, now time.Time) error {
	if i.EndedAt != nil && i.NotifiedAt != nil {
		return s.announceEnd(ctx, tx, i, contacts, now)
	}
	zone := zoneOf(i)
	var told [][]byte
	for _, c := range contacts {
		names := s.identities(c)
		if has(i.Knew, names) || has(told, names) || !c.wants(Kind(i.Kind)) || !c.available(now, zone) {
			continue
		}
		if wait := time.Duration(c.EscalateAfterMinutes) * time.Minute; wait > 0 && (i.AcknowledgedBy != nil || now.Sub(i.Since) < wait) {
			continue
		}
		told = append(told, names[0])
		if err := s.queueMessage(ctx, tx, i, c, notify.AlertBegan, zone); err != nil {
			return err
		}
	}
	switch {
	case len(told) > 0:
		return postgres.NoteAlertBegin(ctx, tx, i.ID, told, now)
	case i.EndedAt != nil:
		return s.announceEnd(ctx, tx, i, contacts, now)
	}
	return nil
}

// announceEnd notifies the contacts that were notified of the beginning, once the alert has been over for a while.
func (s *Service) announceEnd(ctx context.Context, tx pgx.Tx, i postgres.Incident, contacts []Contact, now time.Time) error {
	if now.Sub(*i.EndedAt) < settleDelay {
		return nil
	}
	closed, err := postgres.CloseAlert(ctx, tx, i.ID, now.Add(-settleDelay), now)
	if err != nil || !closed {
		return err
	}
	for _, c := range contacts {
		if has(i.Told, s.identities(c)) {
			if err := s.queueMessage(ctx, tx, i, c, notify.AlertEnded, zoneOf(i)); err != nil {
				return err
			}
		}
	}
	return nil
}

// has reports whether a list contains a contact, given its identities.
func has(list, identities [][]byte) bool {
	return slices.ContainsFunc(list, func(known []byte) bool {
		return slices.ContainsFunc(identities, func(name []byte) bool { return bytes.Equal(known, name) })
	})
}

// seoul is the zone of messages that concern all branches.
var seoul = time.FixedZone("Asia/Seoul", 9*60*60)

func zoneOf(i postgres.Incident) *time.Location {
	if zone, err := time.LoadLocation(i.Zone); err == nil && i.Zone != "" {
		return zone
	}
	return seoul
}

const messageTime = "2006-01-02 15:04"

func (s *Service) queueMessage(ctx context.Context, tx pgx.Tx, i postgres.Incident, c Contact, template notify.Template, zone *time.Location) error {
	name := i.Name
	if name == "" {
		name = "전체 지점"
	}
	lost := i.Amount
	if template == notify.AlertEnded {
		lost = 0
	}
	m := queue.Message{Branch: i.BranchID, Template: string(template), Variables: map[string]string{
		"branch": name, "what": sentence(Kind(i.Kind), i.Branch, i.Subject, lost), "since": i.Since.In(zone).Format(messageTime),
		"link": s.PublicURL + "/console/alerts", "alert": strconv.FormatInt(i.ID, 10), "kind": i.Kind, "code": i.Branch, "subject": i.Subject,
	}}
	if i.EndedAt != nil {
		m.Variables["until"] = i.EndedAt.In(zone).Format(messageTime)
	}
	switch c.Channel {
	case notify.Email:
		m.Email = c.To
	case notify.SMS:
		m.Mobile, m.Medium = c.To, string(notify.SMS)
	case notify.AlimTalk:
		m.Mobile = c.To
	default:
		m.Medium, m.Variables[queue.Address] = string(c.Channel), c.To
	}
	return s.Queue.Message(ctx, tx, m)
}
