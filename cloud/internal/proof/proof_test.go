package proof

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/audit"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/notify"
	"github.com/yeolda/yeolda/cloud/internal/pgtest"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/queue"
	"github.com/yeolda/yeolda/cloud/internal/seal"
)

func open(t *testing.T) *Service {
	keys, err := seal.ParseKeys(seal.NewKey())
	if err != nil {
		t.Fatal(err)
	}
	db := pgtest.New(t)
	work, err := queue.New(db.Pool, keys)
	if err != nil {
		t.Fatal(err)
	}
	return &Service{DB: db, Keys: keys, Queue: work, HQEmail: "hq@example.com"}
}

// A copy of a proof verifies with the public key alone, also after it was indented; a changed one does not.
func TestSignature(t *testing.T) {
	t.Parallel()
	s := open(t)
	signed, err := s.Run(t.Context(), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	key := PublicKey(s.Keys)
	text, err := json.MarshalIndent(signed, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	read := func(text string) (s Signed) {
		if err := json.Unmarshal([]byte(text), &s); err != nil {
			t.Fatal(err)
		}
		return s
	}
	if err := read(string(text)).Verify(key); err != nil || signed.Key != key {
		t.Errorf("an indented copy: %v", err)
	}
	changed := strings.Replace(string(text), `"violations": 0`, `"violations": 1`, 1)
	if err := read(changed).Verify(key); !errors.Is(err, ErrForged) {
		t.Errorf("a changed copy: got %v, want ErrForged", err)
	}
	if err := signed.Verify(PublicKey(open(t).Keys)); !errors.Is(err, ErrForged) {
		t.Errorf("the key of another service: got %v, want ErrForged", err)
	}
	if err := signed.Verify("nonsense"); err == nil {
		t.Error("a malformed key was accepted")
	}
}

// A proof is made once in each night, and not on the day on which the service was installed.
func TestRunDueOncePerNight(t *testing.T) {
	t.Parallel()
	s := open(t)
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, seoul)
	s.DB.Now = func() time.Time { return now }
	kept := func(step string, want int) {
		t.Helper()
		if err := s.RunDue(t.Context()); err != nil {
			t.Fatal(err)
		}
		list, err := s.Kept(t.Context())
		if err != nil || len(list) != want {
			t.Errorf("%s: got %d proofs (%v), want %d", step, len(list), err, want)
		}
		for _, signed := range list {
			if err := signed.Verify(PublicKey(s.Keys)); err != nil {
				t.Errorf("%s: a stored proof: %v", step, err)
			}
		}
	}
	kept("an empty database", 0)
	if err := postgres.AppendAudit(t.Context(), s.DB.Pool, audit.Entry{Actor: "test", Action: "test"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.DB.Pool.Exec(t.Context(), `alter table audit disable trigger user`); err != nil {
		t.Fatal(err)
	}
	if _, err := s.DB.Pool.Exec(t.Context(), `update audit set at = $1`, now); err != nil {
		t.Fatal(err)
	}
	kept("the first day", 0)
	now = time.Date(2026, 11, 22, 3, 59, 0, 0, seoul)
	kept("before four o'clock", 0)
	now = now.Add(time.Minute)
	kept("the first night", 1)
	kept("again", 1)
	now = now.Add(23*time.Hour + 59*time.Minute)
	kept("before the next", 1)
	now = now.Add(9 * time.Hour)
	kept("a night when the service was down", 2)
	checkMails(t, s, 2)
}

// checkMails reads the mails to the headquarters: each contains the signed head of a stored proof, and no rule.
func checkMails(t *testing.T, s *Service, want int) {
	t.Helper()
	rows, err := s.DB.Pool.Query(t.Context(), `select id, template, to_email, variables from message order by id desc limit $1`, 10)
	if err != nil {
		t.Fatal(err)
	}
	var mails []booking.Message
	for rows.Next() {
		var m booking.Message
		if err := rows.Scan(&m.ID, &m.Template, &m.Email, &m.Variables); err != nil {
			t.Fatal(err)
		}
		mails = append(mails, m)
	}
	stored, err := s.Kept(t.Context())
	if err != nil || len(mails) != want || len(stored) != want {
		t.Fatalf("%d mails, %d proofs, %v", len(mails), len(stored), err)
	}
	for i, m := range mails {
		variables, err := s.Queue.Variables(m)
		if err != nil {
			t.Fatal(err)
		}
		if text, err := (notify.Message{Template: notify.Template(m.Template), Variables: variables}).Render(); err != nil || m.Email != "hq@example.com" {
			t.Errorf("mail to %s: %q, %v", m.Email, text, err)
		}
		var mailed Signed
		if err := json.Unmarshal([]byte(variables["proof"]), &mailed); err != nil {
			t.Fatal(err)
		}
		report, err := mailed.Open()
		if err = errors.Join(err, mailed.Verify(PublicKey(s.Keys))); err != nil {
			t.Error(err)
		}
		if full, err := stored[i].Open(); err != nil || report.Head != full.Head || !report.At.Equal(full.At) || len(report.Rules) != 0 {
			t.Errorf("mail %+v of the proof %+v, %v", report, full, err)
		}
	}
}
