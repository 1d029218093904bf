// Package doctor examines an installation: settings, certificates, disk, backups, database, stuck work, branches, providers.
// `yeolda doctor` prints the findings; the service examines itself every hour and stores the results.
package doctor

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/company"
	"github.com/yeolda/yeolda/cloud/internal/config"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// Level is the weight of a finding.
type Level string

// The levels, from the lightest to the heaviest.
const (
	OK   Level = "ok"
	Warn Level = "warn"
	Fail Level = "fail"
)

var levels = []Level{OK, Warn, Fail}

// Finding is what a check found out about a subject. Remedy is empty if the level is OK.
type Finding struct {
	Level                 Level
	Subject, Text, Remedy string
}

// Check examines one part of an installation. Its name is stable: metrics and alerts carry it.
type Check struct {
	Name    string
	examine func(ctx context.Context, d *exam) error
	remedy  string // of the error of examine
}

// Result is the outcome of a check.
type Result struct {
	Check    string
	Findings []Finding
}

// Level returns the level of the heaviest finding.
func (r Result) Level() Level {
	worst := 0
	for _, f := range r.Findings {
		worst = max(worst, slices.Index(levels, f.Level))
	}
	return levels[worst]
}

// Doctor runs checks. Its zero value with Settings is ready for the checks that need no database.
type Doctor struct {
	Settings config.Settings // effective
	Company  company.Facts   // of the settings
	Backups  string          // directory of the backups; config.Off: their age is not checked
	DB       *postgres.DB
	Timeout  time.Duration // of one check; 0: DefaultTimeout

	// UntrustedProxy returns the address of a proxy that YEOLDA_TRUSTED_PROXIES lacks, or "". Only a service knows it: nil otherwise.
	UntrustedProxy func() string

	mu   sync.Mutex
	hung map[string]time.Time // checks that have not returned, with the time of their start
}

// DefaultTimeout is the time-out of a check. Checks that connect to a provider have shorter ones for each.
const DefaultTimeout = 30 * time.Second

// Bounds that checks accept.
const (
	maxClockDifference = 2 * time.Second
	oldestPostgres     = 15_00_00
	certificateNotice  = 14 * 24 * time.Hour
	reachTimeout       = 5 * time.Second
	rebuildNotice      = 15 * time.Minute // after a restoration, the sweep tries every 30 seconds
	sparedConnections  = 10               // for another replica at its start, for backups and for psql
)

// Local are the checks of settings and of this machine.
func Local() []Check {
	return []Check{
		plain("settings", (*exam).examineSettings),
		plain("site", (*exam).examineSite),
		plain("certificate", (*exam).examineCertificate),
		plain("disk", (*exam).examineDataDisk),
		plain("backup", (*exam).examineBackups),
		plain("calendar", func(d *exam) { d.examineCalendar(time.Now()) }),
	}
}

// Server are the checks of the database server. The checks of Rows need a server and a schema that passed them.
func Server() []Check {
	return []Check{database("database", (*exam).examineServer), database("schema", (*exam).examineSchema)}
}

// Rows are the checks of what the database holds.
func Rows() []Check {
	return []Check{
		database("clock", (*exam).examineClockStep),
		database("rights", (*exam).examineRights),
		database("accounts", (*exam).examineAccounts),
		database("work", (*exam).examineWork),
		database("partitions", (*exam).examinePartitions),
		database("law", (*exam).examineCompany),
		database("branches", (*exam).examineBranches),
		database("seals", (*exam).examineSeals),
		database("callbacks", (*exam).examineDeposits),
		database("alerts", (*exam).examineAlerts),
	}
}

// Recorded are the checks of work whose success the database holds, for programs that cannot look at its results.
func Recorded() []Check { return []Check{database("backup", (*exam).examineRecordedBackup)} }

// Outside are the checks that connect to the providers, and to this service from outside.
func Outside() []Check {
	return []Check{
		outside("payments", (*exam).examinePayments),
		outside("messages", func(d *exam, ctx context.Context) {
			d.reach(ctx, "messages", d.settings.Messages.SolapiURL, "YEOLDA_SOLAPI_URL")
		}),
		outside("mail", func(d *exam, ctx context.Context) {
			d.reach(ctx, "mail", d.settings.Messages.SMTPURL, "YEOLDA_SMTP_URL")
		}),
		outside("partner", func(d *exam, ctx context.Context) {
			d.reach(ctx, "partner", d.settings.Partner.URL, "YEOLDA_PARTNER_URL")
		}),
		outside("broker", func(d *exam, ctx context.Context) {
			for _, broker := range d.settings.MQTT.BrokerURLs() {
				d.reach(ctx, "broker", broker, "YEOLDA_BROKER_URL")
			}
		}),
		outside("public", (*exam).examinePublic),
	}
}

func plain(name string, examine func(*exam)) Check {
	return Check{Name: name, examine: func(_ context.Context, d *exam) error { examine(d); return nil }}
}

func outside(name string, examine func(*exam, context.Context)) Check {
	return Check{Name: name, examine: func(ctx context.Context, d *exam) error { examine(d, ctx); return nil }}
}

// DatabaseRemedy is the remedy of a database that does not answer.
const DatabaseRemedy = "check YEOLDA_DATABASE_URL, or that PostgreSQL 15 or newer is installed"

func database(name string, examine func(*exam, context.Context, *postgres.DB) error) Check {
	return Check{Name: name, remedy: DatabaseRemedy, examine: func(ctx context.Context, d *exam) error { return examine(d, ctx, d.db) }}
}

// exam is one check that is being made; it collects findings.
type exam struct {
	settings config.Settings
	facts    company.Facts
	backups  string
	db       *postgres.DB
	findings []Finding

	untrustedProxy func() string // may be nil
}

func (d *exam) ok(subject, text string) {
	d.findings = append(d.findings, Finding{OK, subject, text, ""})
}

func (d *exam) warn(subject, text, remedy string) {
	d.findings = append(d.findings, Finding{Warn, subject, text, remedy})
}

func (d *exam) fail(subject, text, remedy string) {
	d.findings = append(d.findings, Finding{Fail, subject, text, remedy})
}

// maxConcurrent bounds the checks that run at the same time, and with them the connections to the database.
const maxConcurrent = 4

// Run makes the checks, several at a time, and returns their results in the order of checks. A check that does not end within
// its time-out fails and is left behind; it is not started again until it has returned.
func (d *Doctor) Run(ctx context.Context, checks []Check) []Result {
	results := make([]Result, len(checks))
	slots := make(chan struct{}, maxConcurrent)
	var group sync.WaitGroup
	for i, check := range checks {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			results[i] = Result{Check: check.Name, Findings: d.run(ctx, check)}
		})
	}
	group.Wait()
	return results
}

func (d *Doctor) run(ctx context.Context, check Check) []Finding {
	timeout := d.Timeout
	if timeout == 0 {
		timeout = DefaultTimeout
	}
	if since := d.hangs(check.Name); !since.IsZero() {
		return []Finding{{Fail, check.Name, "the check has not ended since " + when(since), hungRemedy}}
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	done := make(chan []Finding, 1)
	d.begin(check.Name)
	go func() {
		defer d.end(check.Name)
		e := &exam{settings: d.Settings, facts: d.Company, backups: d.Backups, db: d.DB, untrustedProxy: d.UntrustedProxy}
		if err := check.examine(ctx, e); err != nil {
			e.fail(check.Name, err.Error(), check.remedy)
		}
		done <- e.findings
	}()
	select {
	case findings := <-done:
		return findings
	case <-ctx.Done():
	}
	select {
	case findings := <-done: // the check noticed the time-out itself
		return findings
	case <-time.After(timeout / 10):
		return []Finding{{Fail, check.Name, fmt.Sprintf("the check did not end within %s", timeout), hungRemedy}}
	}
}

const hungRemedy = "look for a disk, a database or a name server that does not answer; restart the service if the check stays"

func (d *Doctor) hangs(name string) time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.hung[name]
}

func (d *Doctor) begin(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.hung == nil {
		d.hung = map[string]time.Time{}
	}
	d.hung[name] = time.Now()
}

func (d *Doctor) end(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.hung, name)
}

func when(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format("2006-01-02 15:04")
}
