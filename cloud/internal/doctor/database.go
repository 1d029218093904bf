package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/access"
	"github.com/yeolda/yeolda/cloud/internal/company"
	"github.com/yeolda/yeolda/cloud/internal/config"
	"github.com/yeolda/yeolda/cloud/internal/installation"
	"github.com/yeolda/yeolda/cloud/internal/pgserver"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/seal"
)

func (d *exam) examineServer(ctx context.Context, db *postgres.DB) error {
	server, err := postgres.DiagnoseServer(ctx, db.Pool)
	if err == nil {
		d.judgeServer(server)
	}
	return err
}

func (d *exam) examineSchema(ctx context.Context, db *postgres.DB) error {
	have, want, err := postgres.SchemaVersions(ctx, db.Pool)
	if err != nil {
		return err
	}
	restoration, found, err := postgres.FindRestoration(ctx, db.Pool)
	switch {
	case err != nil:
		return err
	case found:
		d.fail("schema", "the restoration of "+restoration.File+" has not ended", "if no yeolda restore runs, repeat it with this file")
	case have < want:
		d.fail("schema", fmt.Sprintf("migration %d of %d", have, want), "yeolda migrate")
	case have > want:
		d.warn("schema", fmt.Sprintf("migration %d, newer than this program's %d", have, want), "update this program")
	default:
		d.ok("schema", fmt.Sprintf("migration %d", have))
	}
	return nil
}

func (d *exam) judgeServer(server postgres.ServerDiagnosis) {
	if server.VersionNumber < oldestPostgres {
		d.fail("database", "PostgreSQL "+server.Version, "use PostgreSQL 15 or newer")
	} else {
		d.ok("database", "PostgreSQL "+server.Version)
	}
	if server.Standby {
		d.fail("database", "the server is a standby and takes no writes", "point YEOLDA_DATABASE_URL at the primary (target_session_attrs=read-write)")
	} else if server.ReadOnly {
		d.fail("database", "the database takes no writes: default_transaction_read_only is on",
			"alter database or alter role ... reset default_transaction_read_only, or the same in postgresql.conf, when its cause, often a full disk, is removed")
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

// examineClockStep reports that the time has changed by more than a day, because expired rows are then kept for some days.
func (d *exam) examineClockStep(ctx context.Context, db *postgres.DB) error {
	step, found, err := postgres.LastClockStep(ctx, db.Pool, db.Now())
	if err != nil || !found {
		return err
	}
	d.warn("clock", fmt.Sprintf("the service saw no time between %s and %s, because it was stopped or the database's clock was set; nothing that has expired is deleted before %s",
		when(step.From), when(step.To), when(step.Until())), "check the clock of the database; if it is right, there is nothing to do")
	return nil
}

// examineRights checks that the service could not rewrite the audit log with its own rights.
func (d *exam) examineRights(ctx context.Context, db *postgres.DB) error {
	role := "" // of the connection
	if d.settings.Database.URL == "" {
		role = pgserver.ServiceRole
	}
	excess, err := postgres.ExcessRights(ctx, db.Pool, role)
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

func (d *exam) examineAccounts(ctx context.Context, db *postgres.DB) error {
	demo, err := postgres.DemoAccounts(ctx, db.Pool)
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

// examineAlerts checks that alerts have a recipient.
func (d *exam) examineAlerts(ctx context.Context, db *postgres.DB) error {
	contacts, err := postgres.AlertContacts(ctx, db.Pool, []string{""})
	if err != nil {
		return err
	}
	m := d.settings.Messages
	mailed := m.HQEmail != "" && m.SMTPURL != config.Off
	if len(contacts) == 0 && !mailed && d.settings.Discord.WebhookURL.Reveal() == "" {
		d.warn("alerts", "the headquarters receive none", "enter contacts in the console (alerts), or set YEOLDA_SMTP_URL and YEOLDA_HQ_EMAIL, or YEOLDA_DISCORD_WEBHOOK_URL")
	}
	return nil
}

func (d *exam) examineWork(ctx context.Context, db *postgres.DB) error {
	work, err := postgres.DiagnoseWork(ctx, db.Pool, db.Now())
	if err != nil {
		return err
	}
	begun, err := postgres.RebuildBegun(ctx, db.Pool)
	if err != nil {
		return err
	}
	if !begun.IsZero() {
		judge := d.warn
		if db.Now().Sub(begun) > rebuildNotice {
			judge = d.fail
		}
		judge("work", "no new reservations are taken: those that a backup lacked are made again since "+begun.UTC().Format("2006-01-02 15:04 UTC"),
			"yeolda rebuild names what fails, usually the payment provider; yeolda rebuild --end gives up")
	}
	stuck := func(n int, what, remedy string) {
		if n > 0 {
			d.warn("work", fmt.Sprintf("%s: %d", what, n), remedy)
		}
	}
	stuck(work.Unsettled, "payments that are not settled after 15 minutes", "check that the payment provider is reachable; the console lists them")
	stuck(work.RefundsFailed, "failed refunds", "the console lists them with the provider's reason")
	stuck(work.Differences, "discrepancies with the provider's books", "the console lists them")
	stuck(work.MessagesFailed, "messages that were not delivered in the last day", "check the message provider; the console can send them again")
	if work.Administrators == 0 {
		d.warn("accounts", "there is no administrator", "yeolda admin add LOGIN --role hq")
	}
	if begun.IsZero() && work == (postgres.WorkDiagnosis{Administrators: work.Administrators}) {
		d.ok("work", "nothing is stuck")
	}
	return nil
}

// examinePartitions checks that partitions of the tables that grow exist for the next weeks, and that expired ones are dropped.
func (d *exam) examinePartitions(ctx context.Context, db *postgres.DB) error {
	problems, err := postgres.DiagnosePartitions(ctx, db.Pool, db.Now())
	if err != nil {
		return err
	}
	for _, p := range problems {
		d.fail("partitions", p.Table+" "+p.Text, "start the service; if it runs, end the transaction that holds the table for hours, for instance a backup (deploy/README.md, Partitions)")
	}
	if len(problems) == 0 {
		d.ok("partitions", "exist for the next weeks, and expired ones are dropped")
	}
	return nil
}

func (d *exam) examineBranches(ctx context.Context, db *postgres.DB) error {
	branches, err := postgres.DiagnoseBranches(ctx, db.Pool)
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
	pins, err := postgres.DoorPINs(ctx, db.Pool, "")
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
		d.examineBranch(b, exposed[b.Code], shutPINs(keys, b.PINs))
	}
	misplaced, err := postgres.Misplaced(ctx, db.Pool, 10)
	if err == nil && len(misplaced) > 0 {
		d.warn("branches", fmt.Sprintf("reservations do not belong to the branch of their room, among them %v: the door and the money of a stay are of different branches", misplaced),
			"move each to a room of its branch in the console, or end it and enter it again")
	}
	return err
}

// examineBranch reports the problems of a branch. exposed is the number of its PINs that guests know, shut of those that no key opens.
func (d *exam) examineBranch(b postgres.BranchDiagnosis, exposed, shut int) {
	const subject = "branch"
	well := true
	warn := func(text, remedy string) {
		well = false
		d.warn(subject, b.Code+" "+text, remedy)
	}
	fail := func(text, remedy string) {
		well = false
		d.fail(subject, b.Code+" "+text, remedy)
	}
	if _, err := time.LoadLocation(b.Zone); err != nil {
		fail(fmt.Sprintf("has the unknown time zone %q", b.Zone), "update branch set time_zone = 'Asia/Seoul' where code = '"+b.Code+"'")
	}
	if b.Agents == 0 {
		warn("has no agent", "yeolda agent enroll "+b.Code)
	} else if !b.Online {
		warn("is offline, last seen "+when(b.SeenAt), "look at the agent there: yeolda-agent doctor")
	}
	if b.Ahead {
		fail("opens no door: its agent uses grant keys that this database lacks, as after the restoration of a backup from before they were rotated",
			"restore a later backup, or enroll each Pi again: yeolda agent enroll "+b.Code+" --replace USERNAME")
	}
	if len(b.Unpriced) > 0 {
		warn(fmt.Sprintf("has rooms without a price: %v", b.Unpriced), "customers cannot reserve them; set prices in the branch file")
	}
	if missing := len(b.Rooms) + 1 - len(b.PINs); missing > 0 {
		warn(fmt.Sprintf("lacks the PINs of its doors: %d", missing), "yeolda branch apply creates them")
	}
	if exposed > 0 {
		warn(fmt.Sprintf("has door PINs that were disclosed to guests: %d", exposed), "change them at the keypads; yeolda pin list shows which, yeolda pin set records the change")
	}
	if shut > 0 {
		fail(fmt.Sprintf("has door PINs that cannot be decrypted with the encryption key: %d", shut), "add the key they were sealed with to YEOLDA_ENCRYPTION_KEY, behind a comma; if it is lost, set the PINs again: yeolda pin set")
	}
	if well {
		d.ok(subject, b.Code+" is online")
	}
}

// examineCompany names the facts that the law requires and that the pages lack.
func (d *exam) examineCompany(ctx context.Context, db *postgres.DB) error {
	now, err := (&company.Service{DB: db, First: d.facts}).Read(ctx)
	if err != nil {
		return err
	}
	if missing := now.Company.Missing(); len(missing) > 0 {
		d.warn("law", "the pages lack facts about the company that the law requires: "+strings.Join(missing, ", "), "the console, Company; or the YEOLDA_LEGAL_ variables before the first change there")
	}
	return nil
}

// examineSeals finds keys of another installation, and secrets that are still sealed with an old encryption key.
func (d *exam) examineSeals(ctx context.Context, db *postgres.DB) error {
	bound, err := installation.Of(d.settings)
	if err != nil {
		return nil //nolint:nilerr // reported with the settings
	}
	if err := bound.Check(ctx, db.Pool); errors.As(err, new(*config.Problem)) {
		d.fail("secrets", err.Error(), "set the keys that this database was written with; if they are lost: yeolda adopt")
		return nil
	} else if err != nil {
		return err
	}
	keys := bound.Sealing
	stale := 0
	for _, column := range postgres.SealedColumns {
		n, err := postgres.CountStale(ctx, db.Pool, column, keys.SealingKeyID())
		if err != nil {
			return err
		}
		stale += n
	}
	if stale > 0 {
		d.warn("secrets", fmt.Sprintf("values that are sealed with an old encryption key: %d", stale), "yeolda reseal, then remove the old key from YEOLDA_ENCRYPTION_KEY")
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
