package doctor

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/yeolda/yeolda/cloud/internal/config"
	"github.com/yeolda/yeolda/cloud/internal/pgtest"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func passes(name string) Check {
	return plain(name, func(d *exam) { d.ok(name, "well") })
}

// A check that ignores its time-out fails, delays no other, and is not started a second time.
func TestHangingCheckHoldsNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release, started := make(chan struct{}), 0
		hangs := Check{Name: "disk", examine: func(context.Context, *exam) error {
			started++
			<-release
			return nil
		}}
		checks := []Check{passes("a"), hangs, passes("b"), passes("c"), passes("d"), passes("e")}
		d := &Doctor{}
		began := time.Now()
		results := d.Run(t.Context(), checks)
		if took := time.Since(began); took > DefaultTimeout*11/10 {
			t.Errorf("a run with a hanging check took %s, want its time-out", took)
		}
		for _, result := range results {
			if want := map[bool]Level{true: Fail, false: OK}[result.Check == "disk"]; result.Level() != want {
				t.Errorf("check %s is %s, want %s", result.Check, result.Level(), want)
			}
		}
		if text := results[1].Findings[0].Text; text != "the check did not end within 30s" {
			t.Errorf("got %q for the hanging check", text)
		}
		again := d.Run(t.Context(), checks)[1]
		if started != 1 || again.Level() != Fail || !strings.Contains(again.Findings[0].Text, "has not ended since") {
			t.Errorf("the second run: started %d times, %+v; want once and a failure", started, again)
		}
		close(release)
		synctest.Wait()
		if after := d.Run(t.Context(), checks)[1]; after.Level() != OK || started != 2 {
			t.Errorf("after it returned: %+v, started %d times; want a new start", after, started)
		}
	})
}

func TestErrorOfACheckIsAFailure(t *testing.T) {
	t.Parallel()
	broken := Check{Name: "work", remedy: "start the database", examine: func(context.Context, *exam) error { return errors.New("connection refused") }}
	result := (&Doctor{}).Run(t.Context(), []Check{broken})[0]
	if len(result.Findings) != 1 || result.Findings[0] != (Finding{Fail, "work", "connection refused", "start the database"}) {
		t.Errorf("got %+v", result)
	}
}

func TestExaminationOfARunningService(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	now := time.Date(2026, 11, 25, 3, 0, 0, 0, time.UTC)
	db.Now = func() time.Time { return now }
	log := new(strings.Builder)
	h := &Hourly{Doctor: &Doctor{DB: db}, Log: slog.New(slog.NewTextHandler(log, nil)), Began: time.Now()}
	due := func(want bool, when string) {
		t.Helper()
		if got, err := h.Due(t.Context()); err != nil || got != want {
			t.Errorf("%s: due %t, %v; want %t", when, got, err, want)
		}
	}
	due(false, "at the start")
	h.Began = time.Now().Add(-settleDelay)
	due(true, "two minutes later")
	level := Fail
	disk := plain("disk", func(d *exam) { d.findings = append(d.findings, Finding{level, "disk", "100 of 400 MiB", "make room"}) })
	run := func(checks ...Check) map[string]postgres.DoctorCheck {
		t.Helper()
		if err := h.run(t.Context(), checks); err != nil {
			t.Fatal(err)
		}
		list, err := postgres.DoctorChecks(t.Context(), db.Pool)
		if err != nil {
			t.Fatal(err)
		}
		all := map[string]postgres.DoctorCheck{}
		for _, c := range list {
			all[c.Name] = c
		}
		return all
	}
	if got := run(passes("site"), disk); len(got) != 2 || got["disk"].State != "fail" || got["site"].State != "ok" || !got["disk"].At.Equal(now) {
		t.Errorf("stored %v, want disk fail and site ok", got)
	}
	if !strings.Contains(log.String(), `msg="doctor: 100 of 400 MiB" check=disk subject=disk remedy="make room"`) {
		t.Errorf("the log does not name the failure: %s", log)
	}
	due(false, "after a run")
	now = now.Add(time.Hour)
	due(true, "an hour later")
	level = Warn
	if got := run(disk); len(got) != 1 || got["disk"].State != "warn" || !got["disk"].At.Equal(now) {
		t.Errorf("stored %v, want disk warn only: the other check no longer exists", got)
	}
	stopping, stop := context.WithCancel(t.Context())
	stop()
	level = Fail
	if err := h.run(stopping, []Check{disk}); err == nil {
		t.Error("a run of a service that stops was stored")
	}
}

// Every check of the service runs against a real database; names are unique, because metrics and alerts carry them.
func TestChecksOfTheService(t *testing.T) {
	t.Parallel()
	var settings config.Settings
	settings.Secrets.Mode, settings.HTTP.PublicURL, settings.Database.DataDir = config.ModeDemo, "http://127.0.0.1:1", t.TempDir()
	settings.Toss.URL, settings.Messages.SolapiURL, settings.Messages.SMTPURL, settings.Partner.URL = config.Off, config.Off, config.Off, config.Off
	d := &Doctor{Settings: settings, DB: pgtest.New(t)}
	seen := map[string]bool{}
	for _, result := range d.Run(t.Context(), ofService()) {
		if seen[result.Check] {
			t.Errorf("two checks are named %s", result.Check)
		}
		seen[result.Check] = true
		if result.Level() == Fail && result.Check != "settings" { // most are missing here
			t.Errorf("%s: %+v", result.Check, result.Findings)
		}
	}
	for _, name := range []string{"database", "schema", "work", "backup", "payments", "disk"} {
		if !seen[name] {
			t.Errorf("the service does not check %s", name)
		}
	}
}

func TestDoctorOnRecordedBackups(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	c := newClinic(t, nil)
	examine := func() {
		t.Helper()
		if err := c.examineRecordedBackup(t.Context(), db); err != nil {
			t.Fatal(err)
		}
	}
	examine()
	c.says(t, "FAIL", "there is none", "yeolda-backup.timer")
	for age, level := range map[time.Duration]string{24 * time.Hour: "ok", 26 * time.Hour: "warn"} {
		if err := postgres.ForgetWork(t.Context(), db.Pool, postgres.WorkBackup); err != nil {
			t.Fatal(err)
		}
		if err := postgres.NoteSuccess(t.Context(), db.Pool, postgres.WorkBackup, db.Now().Add(-age)); err != nil {
			t.Fatal(err)
		}
		examine()
		c.says(t, level, "the last one that the database records is of", "")
	}
	if err := postgres.ForgetWork(t.Context(), db.Pool, postgres.WorkBackup); err != nil {
		t.Fatal(err)
	}
	c.settings.Database.URL = "postgres://db/yeolda"
	examine()
	if text := c.text(); text != "" {
		t.Errorf("a server of the operator's own: got %s, want no finding", text)
	}
}

// TestDoctorOnBackupsOfAnotherMachine examines an installation whose directory of backups is on another machine, or in another container.
func TestDoctorOnBackupsOfAnotherMachine(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	c := newClinic(t, func(s *config.Settings) { s.Database.URL = "postgres://db/yeolda" })
	examine := func() {
		t.Helper()
		c.examineBackups()
		if err := c.examineRecordedBackup(t.Context(), db); err != nil {
			t.Fatal(err)
		}
	}
	c.backups = filepath.Join(t.TempDir(), "elsewhere")
	examine()
	c.says(t, "warn", "elsewhere is not on this machine, and the database records none", "--backups off")
	if err := postgres.NoteSuccess(t.Context(), db.Pool, postgres.WorkBackup, db.Now().Add(-26*time.Hour)); err != nil {
		t.Fatal(err)
	}
	examine()
	c.says(t, "warn", "the last one that the database records is of", "journalctl -u yeolda-backup")
	if err := postgres.NoteSuccess(t.Context(), db.Pool, postgres.WorkBackup, db.Now()); err != nil {
		t.Fatal(err)
	}
	examine()
	c.says(t, "ok", "the last one that the database records is of", "")
	c.backups = t.TempDir() // a directory here counts, whatever the database records
	examine()
	c.says(t, "FAIL", "there is none in", "yeolda-backup.timer")
	c.backups = config.Off
	examine()
	if text := c.text(); text != "" {
		t.Errorf("backups made elsewhere: got %s, want no finding", text)
	}
}
