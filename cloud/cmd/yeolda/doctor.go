package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/yeolda/yeolda/cloud/internal/config"
	"github.com/yeolda/yeolda/cloud/internal/doctor"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/service"
)

// doctorCmd is `yeolda doctor`.
type doctorCmd struct {
	Settings config.Settings `embed:""`
	Offline  bool            `help:"Do not contact the payment, message and mail providers, nor this service from outside."`
	Backups  string          `default:"/var/backups/yeolda" placeholder:"DIR" help:"Directory of the backups, whose age is checked, or that of the last one in the database if the directory is not on this machine; off: another program makes and watches them."`
}

var errUnwell = errors.New("the installation has problems")

// Run examines everything that it can reach. It returns an error if a finding is a failure.
func (c *doctorCmd) Run(p *program) error {
	settings := c.Settings.Effective()
	e := &examination{program: p, doctor: &doctor.Doctor{Settings: settings, Company: service.Facts(settings.Legal), Backups: c.Backups}}
	e.run(doctor.Local())
	if err := e.runDatabase(settings.Database); err != nil {
		e.print(doctor.Finding{Level: doctor.Fail, Subject: "database", Text: err.Error(), Remedy: doctor.DatabaseRemedy})
	}
	if !c.Offline {
		e.run(doctor.Outside())
	}
	if e.failed > 0 {
		return fmt.Errorf("%w: %d marked FAIL", errUnwell, e.failed)
	}
	return nil
}

// examination prints findings and counts the failures.
type examination struct {
	*program
	doctor *doctor.Doctor
	failed int
}

func (e *examination) run(checks []doctor.Check) []doctor.Result {
	results := e.doctor.Run(e.ctx, checks)
	for _, result := range results {
		for _, finding := range result.Findings {
			e.print(finding)
		}
	}
	return results
}

func (e *examination) print(f doctor.Finding) {
	if f.Level == doctor.OK {
		fmt.Fprintf(e.out, "ok    %-12s %s\n", f.Subject, f.Text)
		return
	}
	level := string(f.Level)
	if f.Level == doctor.Fail {
		e.failed++
		level = "FAIL"
	}
	fmt.Fprintf(e.out, "%-5s %-12s %s\n%19s→ %s\n", level, f.Subject, f.Text, "", f.Remedy)
}

func (e *examination) runDatabase(database config.Database) error {
	if database.URL == "" {
		if _, err := os.Stat(filepath.Join(database.DataDir, "postgres")); err != nil {
			e.print(doctor.Finding{Level: doctor.Warn, Subject: "database", Text: "there is none in " + database.DataDir + " yet", Remedy: "yeolda serve makes one; so does yeolda migrate"})
			return nil //nolint:nilerr // the warning is the finding
		}
	}
	return e.withRawDatabase(database, func(db *postgres.DB) error {
		e.doctor.DB = db
		for _, result := range e.run(doctor.Server()) {
			if result.Check == "schema" && result.Level() == doctor.Fail {
				return nil // the following checks need the schema
			}
		}
		e.run(doctor.Rows())
		e.run(doctor.Recorded())
		return nil
	})
}
