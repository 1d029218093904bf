package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/access"
	"github.com/yeolda/yeolda/cloud/internal/company"
	"github.com/yeolda/yeolda/cloud/internal/config"
	"github.com/yeolda/yeolda/cloud/internal/pgserver"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/seal"
	"github.com/yeolda/yeolda/cloud/internal/service"
)

// doctorCmd is `yeolda doctor`.
type doctorCmd struct {
	Settings config.Settings `embed:""`
	Offline  bool            `help:"Do not contact the payment, message and mail providers, nor this service from outside."`
	Backups  string          `default:"/var/backups/yeolda" placeholder:"DIR" help:"Directory of the backups, whose age is checked; off: another program makes and watches them."`
}

// doctor collects findings.
type doctor struct {
	*program
	settings config.Settings
	failed   int
}

// Bounds that doctor accepts.
const (
	maxClockDifference = 2 * time.Second
	oldestPostgres     = 15_00_00
	certificateNotice  = 14 * 24 * time.Hour
	reachTimeout       = 5 * time.Second
	sparedConnections  = 10 // for another replica at its start, for backups and for psql
)

var errUnwell = errors.New("the installation has problems")

// Run examines everything that it can reach. It returns an error if a finding is a failure.
func (c *doctorCmd) Run(p *program) error {
	d := &doctor{program: p, settings: c.Settings.Effective()}
	d.examineSettings()
	d.examineSite()
	d.examineCertificate()
	d.examineMachine(c.Backups)
	if err := d.examineDatabase(); err != nil {
		d.fail("database", err.Error(), "check YEOLDA_DATABASE_URL, or that PostgreSQL 15 or newer is installed")
	}
	if !c.Offline {
		d.examineProviders()
		d.examinePublic()
	}
	if d.failed > 0 {
		return fmt.Errorf("%w: %d findings", errUnwell, d.failed)
	}
	return nil
}

func (d *doctor) ok(subject, text string) { fmt.Fprintf(d.out, "ok    %-12s %s\n", subject, text) }

func (d *doctor) warn(subject, text, mend string) { d.finding("warn", subject, text, mend) }

func (d *doctor) fail(subject, text, mend string) {
	d.failed++
	d.finding("FAIL", subject, text, mend)
}

func (d *doctor) finding(level, subject, text, mend string) {
	fmt.Fprintf(d.out, "%-5s %-12s %s\n%19s→ %s\n", level, subject, text, "", mend)
}

// production reports whether nothing of a demonstration may be in force; it is the condition that `serve` applies.
func (d *doctor) production() bool { return !d.settings.Demo() || len(d.settings.Exposed()) > 0 }

func loopbackHost(u *url.URL) bool { return config.Loopback(net.JoinHostPort(u.Hostname(), "0")) }

func (d *doctor) examineSettings() {
	var problems []error
	if joined, ok := d.settings.Check().(interface{ Unwrap() []error }); ok {
		problems = joined.Unwrap()
	}
	for _, err := range problems {
		d.fail("settings", err.Error(), "yeolda config shows where a value comes from")
	}
	if len(problems) == 0 {
		d.ok("settings", "complete and consistent")
	}
	switch demo := d.settings.DemoSecrets(); {
	case len(demo) > 0:
		d.warn("secrets", "demo secrets are in force: "+strings.Join(demo, ", "), "set secrets of your own and YEOLDA_MODE=production before customers use the service")
	default:
		d.ok("secrets", "no demo secret is in force")
	}
	if d.production() && !d.settings.Log.AuditHeadURL.Set() {
		d.warn("audit", "no head of the audit log leaves this machine by the hour", "set YEOLDA_AUDIT_HEAD_URL to a receiver on another machine, see deploy/README.md, Evidence")
	}
	if !config.Loopback(d.settings.HTTP.MetricsAddr) {
		d.warn("settings", "metrics and profiles are served at "+d.settings.HTTP.MetricsAddr, "keep that address inside a private network")
	}
	for _, name := range config.UnknownVariables() {
		d.warn("settings", name+" is not a setting", "yeolda serve --help lists them all")
	}
}

// examineSite checks the requirements of customers' browsers.
func (d *doctor) examineSite() {
	u, err := url.Parse(d.settings.HTTP.PublicURL)
	if err != nil {
		return // reported with the settings
	}
	loopback := loopbackHost(u)
	switch {
	case u.Scheme == "http" && !loopback && d.settings.HTTP.CookieSecure:
		d.fail("site", d.settings.HTTP.PublicURL+" is not HTTPS: browsers will not send the session cookie", "put a proxy with TLS in front and set YEOLDA_PUBLIC_URL to its https:// address")
	case loopback && d.production():
		d.warn("site", "links in messages lead to "+d.settings.HTTP.PublicURL, "set YEOLDA_PUBLIC_URL to the address customers use")
	default:
		d.ok("site", d.settings.HTTP.PublicURL)
	}
}

func (d *doctor) examineCertificate() {
	mqtt := d.settings.MQTT
	if mqtt.TLSAddr == "" || mqtt.TLSCert == "" || mqtt.TLSKey == "" {
		return
	}
	pair, err := tls.LoadX509KeyPair(mqtt.TLSCert, mqtt.TLSKey)
	if err != nil {
		d.fail("certificate", err.Error(), "check YEOLDA_TLS_CERT and YEOLDA_TLS_KEY")
		return
	}
	d.examineExpiry("of the MQTT listener", pair.Leaf.NotAfter)
}

func (d *doctor) examineExpiry(which string, end time.Time) {
	switch left := time.Until(end); {
	case left < 0:
		d.fail("certificate", which+" expired on "+when(end), "renew it: nobody can connect")
	case left < certificateNotice:
		d.warn("certificate", which+" expires on "+when(end), "renew it, and find out why that did not happen by itself")
	default:
		d.ok("certificate", which+" is valid until "+when(end))
	}
}

func (d *doctor) examineDatabase() error {
	database := d.settings.Database
	if database.URL == "" {
		if _, err := os.Stat(filepath.Join(database.DataDir, "postgres")); err != nil {
			d.warn("database", "there is none in "+database.DataDir+" yet", "yeolda serve makes one; so does yeolda migrate")
			return nil //nolint:nilerr // the warning is the finding
		}
	}
	return d.withRawDatabase(database, func(db *postgres.DB) error {
		server, err := postgres.DiagnoseServer(d.ctx, db.Pool)
		if err != nil {
			return err
		}
		d.examineServer(server)
		have, want, err := postgres.SchemaVersions(d.ctx, db.Pool)
		switch {
		case err != nil:
			return err
		case have < want:
			d.fail("schema", fmt.Sprintf("migration %d of %d", have, want), "yeolda migrate")
			return nil // the following checks need the schema
		case have > want:
			d.warn("schema", fmt.Sprintf("migration %d, newer than this program's %d", have, want), "update this program")
		default:
			d.ok("schema", fmt.Sprintf("migration %d", have))
		}
		return errors.Join(d.examineRights(db), d.examineAccounts(db), d.examineWork(db), d.examineCompany(db), d.examineBranches(db), d.examineSeals(db), d.examineDeposits(db))
	})
}

func (d *doctor) examineServer(server postgres.ServerDiagnosis) {
	if server.VersionNumber < oldestPostgres {
		d.fail("database", "PostgreSQL "+server.Version, "use PostgreSQL 15 or newer")
	} else {
		d.ok("database", "PostgreSQL "+server.Version)
	}
	if server.Standby {
		d.fail("database", "the server is a standby and takes no writes", "let YEOLDA_DATABASE_URL lead to the primary (target_session_attrs=read-write)")
	}
	for _, setting := range server.Risky {
		tell := d.warn
		if d.production() {
			tell = d.fail
		}
		tell("database", setting+" is off: a crash may lose payments", "set "+setting+" = on in postgresql.conf")
	}
	if server.MaxConnections < postgres.MaxConns+sparedConnections {
		d.warn("database", fmt.Sprintf("max_connections is %d, and a replica may open %d", server.MaxConnections, postgres.MaxConns),
			"set max_connections = 100 in postgresql.conf, or pool_max_conns in YEOLDA_DATABASE_URL")
	}
	if difference := time.Since(server.Clock).Abs(); difference > maxClockDifference {
		d.fail("clock", fmt.Sprintf("this machine and the database differ by %s", difference.Round(time.Millisecond)), "run NTP on both")
	} else {
		d.ok("clock", "agrees with the database's")
	}
}

// examineRights checks that the service could not rewrite the audit log with its own rights.
func (d *doctor) examineRights(db *postgres.DB) error {
	role := "" // of the connection
	if d.settings.Database.URL == "" {
		role = pgserver.ServiceRole
	}
	excess, err := postgres.ExcessRights(d.ctx, db.Pool, role)
	if err != nil {
		return err
	}
	if len(excess) > 0 {
		d.warn("rights", "the role of the service "+strings.Join(excess, ", "), "give the service a role of its own: YEOLDA_DATABASE_OWNER_URL, see deploy/README.md, Roles of the database")
		return nil
	}
	d.ok("rights", "the service cannot rewrite the audit log")
	return nil
}

func (d *doctor) examineAccounts(db *postgres.DB) error {
	demo, err := postgres.DemoAccounts(d.ctx, db.Pool)
	if err != nil {
		return err
	}
	switch {
	case len(demo) > 0 && d.production():
		d.fail("accounts", "demo secrets: "+strings.Join(demo, ", "), "yeolda admin passwd or remove; yeolda agent revoke")
	case len(demo) > 0:
		d.warn("accounts", "demo secrets: "+strings.Join(demo, ", "), "yeolda admin passwd or remove, yeolda agent revoke, before customers use the service")
	default:
		d.ok("accounts", "no demo account")
	}
	return nil
}

func (d *doctor) examineWork(db *postgres.DB) error {
	work, err := postgres.DiagnoseWork(d.ctx, db.Pool, db.Now())
	if err != nil {
		return err
	}
	stuck := func(n int, what, mend string) {
		if n > 0 {
			d.warn("work", fmt.Sprintf("%d %s", n, what), mend)
		}
	}
	stuck(work.Unsettled, "payments are not settled after 15 minutes", "check that the payment provider is reachable; the console lists them")
	stuck(work.RefundsFailed, "refunds have failed", "the console lists them with the provider's reason")
	stuck(work.Differences, "differences from the provider's books", "the console lists them")
	stuck(work.MessagesFailed, "messages were not delivered in the last day", "check the message provider; the console can send them again")
	if work.Administrators == 0 {
		d.warn("accounts", "there is no administrator", "yeolda admin add LOGIN --role hq")
	}
	if work == (postgres.WorkDiagnosis{Administrators: work.Administrators}) {
		d.ok("work", "nothing is stuck")
	}
	return nil
}

func (d *doctor) examineBranches(db *postgres.DB) error {
	branches, err := postgres.DiagnoseBranches(d.ctx, db.Pool)
	if err != nil {
		return err
	}
	if len(branches) == 0 {
		d.warn("branches", "there are none", "yeolda branch apply -f FILE")
	}
	keys, err := d.settings.Keyring()
	if err != nil {
		keys = nil // reported with the settings
	}
	pins, err := postgres.DoorPINs(d.ctx, db.Pool, "")
	if err != nil {
		return err
	}
	exposed := map[string]int{}
	for _, pin := range pins {
		if pin.Reveals > 0 {
			exposed[pin.Branch]++
		}
	}
	for _, b := range branches {
		const subject = "branch"
		well := true
		complain := func(text, mend string) {
			well = false
			d.warn(subject, b.Code+" "+text, mend)
		}
		if _, err := time.LoadLocation(b.Zone); err != nil {
			well = false
			d.fail(subject, fmt.Sprintf("%s is in the time zone %q, which nobody knows", b.Code, b.Zone), "update branch set time_zone = 'Asia/Seoul' where code = '"+b.Code+"'")
		}
		if b.Agents == 0 {
			complain("has no agent", "yeolda agent enroll "+b.Code)
		} else if !b.Online {
			complain("is offline, last seen "+when(b.SeenAt), "look at the agent there: yeolda-agent doctor")
		}
		if len(b.Unpriced) > 0 {
			complain(fmt.Sprintf("has rooms without a price: %v", b.Unpriced), "customers cannot reserve them; set prices in the branch file")
		}
		if missing := len(b.Rooms) + 1 - len(b.PINs); missing > 0 {
			complain(fmt.Sprintf("has %d doors without a PIN", missing), "yeolda branch apply makes them up")
		}
		if n := exposed[b.Code]; n > 0 {
			complain(fmt.Sprintf("has %d door PINs that were disclosed to guests", n), "change them at the keypads; yeolda pin list shows which, yeolda pin set records the change")
		}
		if shut := shutPINs(keys, b.PINs); shut > 0 {
			well = false
			d.fail(subject, fmt.Sprintf("%s has %d PINs that do not open with the encryption key", b.Code, shut), "add the key they were sealed with to YEOLDA_ENCRYPTION_KEY, behind a comma")
		}
		if well {
			d.ok(subject, b.Code+" is online")
		}
	}
	return nil
}

// examineCompany names the facts that the law wants shown and that the pages lack.
func (d *doctor) examineCompany(db *postgres.DB) error {
	now, err := (&company.Service{DB: db, First: service.Facts(d.settings.Legal)}).Read(d.ctx)
	if err != nil {
		return err
	}
	if missing := now.Company.Missing(); len(missing) > 0 {
		d.warn("law", "the pages lack facts about the company that the law wants shown: "+strings.Join(missing, ", "), "the console, Company; or the YEOLDA_LEGAL_ variables before the first change there")
	}
	return nil
}

// examineSeals finds secrets that are still sealed with an old encryption key.
func (d *doctor) examineSeals(db *postgres.DB) error {
	keys, err := d.settings.Keyring()
	if err != nil {
		return nil //nolint:nilerr // reported with the settings
	}
	stale := 0
	for _, column := range postgres.SealedColumns {
		n, err := postgres.CountStale(d.ctx, db.Pool, column, keys.SealingKeyID())
		if err != nil {
			return err
		}
		stale += n
	}
	if stale > 0 {
		d.warn("secrets", fmt.Sprintf("%d values are sealed with an old encryption key", stale), "yeolda reseal, then take the old key out of YEOLDA_ENCRYPTION_KEY")
	}
	return nil
}

// shutPINs counts the PINs that no key opens. Without keys it returns 0.
func shutPINs(keys *seal.Keyring, pins map[string][]byte) (shut int) {
	if keys == nil {
		return 0
	}
	for _, sealed := range pins {
		if _, err := keys.Open(access.PINPurpose, sealed); err != nil {
			shut++
		}
	}
	return shut
}
