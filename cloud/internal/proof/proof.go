// Package proof checks the rules of the service on the rows of its database: every night, and on demand. A proof names
// each violation and the verb that repairs it. It contains the head of the audit log and is signed, so that a copy that
// was stored elsewhere shows later what was true on that day.
package proof

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/notify"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/queue"
	"github.com/yeolda/yeolda/cloud/internal/seal"
)

// Retention is the time for which nightly proofs are kept.
const Retention = 400 * 24 * time.Hour

// maxListed bounds the list of nightly proofs.
const maxListed = 100

// Report is a proof.
type Report struct {
	At         time.Time  `json:"at"`
	Since      *time.Time `json:"since"` // nil: all rows
	TookMs     int64      `json:"tookMs"`
	Violations int        `json:"violations"`
	Head       string     `json:"head"` // of the audit log, PLACE:HASH as `yeolda audit verify --head` reads it; empty: no entry
	Rules      []Rule     `json:"rules"`
}

// Rule is the result of one rule.
type Rule struct {
	ID         string    `json:"id"`
	Text       string    `json:"text"`
	Checked    int       `json:"checked"` // rows
	Violations int       `json:"violations"`
	Found      []Finding `json:"found"` // the first violations
}

// Finding is a violation.
type Finding struct {
	Subject string  `json:"subject"` // reservation:<id>, door-request:<id>, pass:<id>, agent:<user name>
	Branch  string  `json:"branch"`
	Detail  string  `json:"detail"`
	Repair  *Repair `json:"repair"` // nil: there is nothing to call
}

// Repair is the call that repairs a violation.
type Repair struct {
	Verb   string `json:"verb"` // cancel, settle, rotate, revoke
	Method string `json:"method"`
	Path   string `json:"path"`
}

// repairs are the calls of the verbs. %s is the target of the finding.
var repairs = map[postgres.ProofRepair]struct{ method, path string }{
	postgres.RepairCancel: {"DELETE", "/admin/reservation/%s"},
	postgres.RepairSettle: {"POST", "/v2/admin/reconciliation"},
	postgres.RepairRotate: {"POST", "/v2/admin/reservations/%s/key"},
	postgres.RepairRevoke: {"DELETE", "/v2/admin/agents/%s"},
}

// Service makes proofs, one at a time.
type Service struct {
	DB      *postgres.DB
	Keys    *seal.Keyring // of the signature
	Queue   *queue.Queue  // of the nightly mail; only RunDue needs it
	HQEmail string        // its recipient; empty: none
	HeadURL string        // receives the head of the audit log every hour; empty: only Log does
	Log     *slog.Logger  // only SendHead needs it

	turn sync.Mutex // a proof reads whole tables
}

// Run checks all rules on the rows that changed since a time (zero: on all).
func (s *Service) Run(ctx context.Context, since time.Time) (Signed, error) {
	s.turn.Lock()
	defer s.turn.Unlock()
	began := time.Now()
	report := Report{At: s.DB.Now().UTC().Truncate(time.Millisecond)}
	if !since.IsZero() {
		since = since.UTC()
		report.Since = &since
	}
	var err error
	if report.Head, err = s.head(ctx); err != nil {
		return Signed{}, err
	}
	results, err := postgres.Prove(ctx, s.DB.Pool, since)
	if err != nil {
		return Signed{}, fmt.Errorf("proof: %w", err)
	}
	for _, r := range results {
		report.Violations += r.Violations
		report.Rules = append(report.Rules, ruleOf(r))
	}
	report.TookMs = time.Since(began).Milliseconds()
	return Sign(s.Keys, report)
}

// head returns the head of the audit log, PLACE:HASH; empty: it has no entry.
func (s *Service) head(ctx context.Context) (string, error) {
	head, err := postgres.LastAuditHead(ctx, s.DB.Pool)
	if err != nil {
		return "", fmt.Errorf("proof: %w", err)
	}
	if head.Place == 0 {
		return "", nil
	}
	return fmt.Sprintf("%d:%s", head.Place, hex.EncodeToString(head.Hash)), nil
}

func ruleOf(r postgres.ProofResult) Rule {
	rule := Rule{ID: r.ID, Text: r.Text, Checked: r.Checked, Violations: r.Violations, Found: []Finding{}}
	for _, f := range r.Findings {
		found := Finding{Subject: f.Subject, Branch: f.Branch, Detail: f.Detail}
		if f.Target != "" {
			call := repairs[r.Repair]
			found.Repair = &Repair{Verb: string(r.Repair), Method: call.method, Path: call.path}
			if r.Repair != postgres.RepairSettle {
				found.Repair.Path = fmt.Sprintf(call.path, f.Target)
			}
		}
		rule.Found = append(rule.Found, found)
	}
	return rule
}

// boundary is the time of day of the nightly proof, in the zone of the headquarters.
const boundary = 4 * time.Hour

// seoul is the zone of the headquarters.
var seoul = time.FixedZone("Asia/Seoul", 9*60*60)

// lastBoundary returns the latest time of a nightly proof.
func lastBoundary(now time.Time) time.Time {
	year, month, day := now.In(seoul).Add(-boundary).Date()
	return time.Date(year, month, day, 0, 0, 0, 0, seoul).Add(boundary)
}

// Due reports whether the proof of the night is due.
func (s *Service) Due(ctx context.Context) (bool, error) {
	return postgres.ProofDue(ctx, s.DB.Pool, lastBoundary(s.DB.Now()))
}

// RunDue makes the proof of the night if it is due, stores it, and mails its head to the headquarters. At most one replica may
// call it at a time.
func (s *Service) RunDue(ctx context.Context) error {
	now := s.DB.Now()
	due, err := s.Due(ctx)
	if err != nil || !due {
		return err
	}
	signed, err := s.Run(ctx, time.Time{})
	if err != nil {
		return err
	}
	document, err := json.Marshal(signed)
	if err != nil {
		return fmt.Errorf("proof: %w", err)
	}
	report, err := signed.Open()
	if err != nil {
		return err
	}
	mail, err := s.mail(report)
	if err != nil {
		return err
	}
	return s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, _ time.Time) error {
		stored := postgres.StoredProof{At: now, Violations: report.Violations, Document: string(document)}
		return errors.Join(postgres.PutProof(ctx, tx, stored), s.Queue.Message(ctx, tx, mail))
	})
}

// mail returns the message about a proof. It contains the signed report without its rules, which name rows: what a recipient
// needs to verify the audit log later, in one line.
func (s *Service) mail(r Report) (queue.Message, error) {
	r.Rules = []Rule{}
	signed, err := Sign(s.Keys, r)
	if err != nil {
		return queue.Message{}, err
	}
	line, err := json.Marshal(signed)
	if err != nil {
		return queue.Message{}, fmt.Errorf("proof: %w", err)
	}
	return queue.Message{Template: string(notify.DailyProof), Email: s.HQEmail, Variables: map[string]string{
		"date": r.At.In(seoul).Format(time.DateOnly), "violations": strconv.Itoa(r.Violations), "head": cmp.Or(r.Head, "-"), "proof": string(line),
	}}, nil
}

// Kept returns the stored proofs, newest first.
func (s *Service) Kept(ctx context.Context) ([]Signed, error) {
	stored, err := postgres.Proofs(ctx, s.DB.Pool, maxListed)
	if err != nil {
		return nil, err
	}
	list := make([]Signed, len(stored))
	for i, p := range stored {
		if err := json.Unmarshal([]byte(p.Document), &list[i]); err != nil {
			return nil, fmt.Errorf("proof of %s: %w", p.At, err)
		}
	}
	return list, nil
}
