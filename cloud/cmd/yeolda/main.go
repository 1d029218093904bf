// Command yeolda is the service for unattended rooms, and its administration from a shell.
//
// Commands that need the database use YEOLDA_DATABASE_URL, or the private PostgreSQL of YEOLDA_DATA_DIR: the running
// one of `yeolda serve`, else one that is started for the duration of the command.
//
// Exit codes: 0 success, 1 failure (with one line on standard error), 2 wrong usage or configuration.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"os/user"
	"strings"
	"syscall"
	_ "time/tzdata" // time zones of branches, on machines without a database of zones

	"github.com/alecthomas/kong"

	"github.com/yeolda/yeolda/cloud/cmd/internal/exit"
	"github.com/yeolda/yeolda/cloud/internal/config"
	"github.com/yeolda/yeolda/cloud/internal/pgserver"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// Exit codes.
const (
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// program is shared by the commands.
type program struct {
	ctx    context.Context
	parsed *kong.Context
	in     io.Reader
	out    io.Writer
	err    io.Writer
}

// cli lists the commands.
type cli struct {
	Serve       serveCmd       `cmd:"" help:"Run the service."`
	Migrate     migrateCmd     `cmd:"" help:"Migrate the database's schema."`
	Branch      branchCmd      `cmd:"" help:"Branches: apply, list, show."`
	Admin       adminCmd       `cmd:"" help:"Administrators: add, passwd, disable, enable, remove, list."`
	Agent       agentCmd       `cmd:"" help:"Branch agents: enroll, activate, revoke, list, acl."`
	PIN         pinCmd         `cmd:"" name:"pin" help:"Door PINs: list, set."`
	Audit       auditCmd       `cmd:"" help:"The audit log: verify."`
	Proof       proofCmd       `cmd:"" help:"The rules of the service, checked on the rows of its database: check, key, verify."`
	Verify      verifyCmd      `cmd:"" help:"Contend for rooms of a staging deployment, repeat payments and pay late, and print a signed report."`
	Backup      backupCmd      `cmd:"" help:"Write a copy of the database to a file while the service runs."`
	Restore     restoreCmd     `cmd:"" help:"Fill an empty database from a backup."`
	Archive     archiveCmd     `cmd:"" help:"The continuous archive of the private database: key, list, test, restore."`
	PgUpgrade   pgUpgradeCmd   `cmd:"" name:"pg-upgrade" help:"Move the private database to the newest PostgreSQL on this machine."`
	Rebuild     rebuildCmd     `cmd:"" help:"Make the reservations again that a restored backup lacks, from the provider's books."`
	Reseal      resealCmd      `cmd:"" help:"Seal the secrets at rest with a new encryption key."`
	Adopt       adoptCmd       `cmd:"" help:"Record the keys of the settings as those of the database, after its own were lost."`
	Reconcile   reconcileCmd   `cmd:"" help:"Compare the payment provider's books with ours."`
	Discord     discordCmd     `cmd:"" help:"The bot for staff: register."`
	Doctor      doctorCmd      `cmd:"" help:"Examine the installation and name a remedy for each finding."`
	Config      configCmd      `cmd:"" help:"Print the settings in force and where they come from."`
	Healthcheck healthcheckCmd `cmd:"" help:"Check the readiness of a running service, for containers."`
	Version     versionCmd     `cmd:"" help:"Print the version."`
}

// run is the program; it returns the exit code.
func run(ctx context.Context, args []string, in io.Reader, out, errOut io.Writer) (code int) {
	defer exit.Recover("yeolda", exitFailed, errOut, &code)
	config.IgnoreEmpty()
	p := &program{ctx: ctx, in: in, out: out, err: errOut}
	parser, err := kong.New(&cli{},
		kong.Name("yeolda"),
		kong.Description("Unattended rooms: reservations, payments and doors."),
		kong.Writers(out, errOut),
		kong.Exit(exit.With),
		kong.Resolvers(config.SecretFiles),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
	)
	if err != nil {
		fmt.Fprintln(errOut, "yeolda:", err)
		return exitFailed
	}
	if p.parsed, err = parser.Parse(args); err != nil {
		fmt.Fprintf(errOut, "yeolda: %v (see yeolda --help)\n", err)
		return exitUsage
	}
	err = p.parsed.Run(p)
	if err == nil {
		return 0
	}
	for line := range strings.Lines(err.Error()) {
		fmt.Fprintln(errOut, "yeolda:", strings.TrimSuffix(line, "\n"))
	}
	if problem := new(config.Problem); errors.As(err, &problem) {
		return exitUsage
	}
	return exitFailed
}

// logger returns the log of a command: warnings and errors, as text.
func (p *program) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(p.err, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// by returns the operator's name for the audit log.
func (p *program) by() string {
	if name := os.Getenv("SUDO_USER"); name != "" {
		return "cli:" + name
	}
	if u, err := user.Current(); err == nil {
		return "cli:" + u.Username
	}
	return "cli"
}

// withDatabase runs do with the migrated database, in the role of the service.
func (p *program) withDatabase(d config.Database, do func(*postgres.DB) error) error {
	return p.withServer(d, func(owner, service string) error {
		return p.run(do)(postgres.OpenMigrated(p.ctx, owner, service, p.logger()))
	})
}

// withRawDatabase runs do with the database as it is: on a private server in the role of its owner, as that of the service may
// not exist yet.
func (p *program) withRawDatabase(d config.Database, do func(*postgres.DB) error) error {
	return p.withServer(d, func(owner, service string) error {
		if d.URL == "" {
			service = owner
		}
		return p.run(do)(postgres.Open(p.ctx, service, p.logger()))
	})
}

// withServer starts the private server if there is no other, and runs do with the connection strings of the owner, if it is
// separate, and of the service.
func (p *program) withServer(d config.Database, do func(owner, service string) error) error {
	if d.URL != "" {
		return do(d.OwnerURL, d.URL)
	}
	server, err := pgserver.Start(p.ctx, pgserver.Options{DataDir: d.DataDir, Logger: p.logger()})
	if err != nil {
		return err
	}
	defer server.Stop()
	return do(server.URL(), server.ServiceURL())
}

// run returns a function that runs do with an opened database and closes it.
func (p *program) run(do func(*postgres.DB) error) func(*postgres.DB, error) error {
	return func(db *postgres.DB, err error) error {
		if err != nil {
			return err
		}
		defer db.Close()
		return do(db)
	}
}

// asOwner returns the settings for commands that need the owner of the tables.
func asOwner(d config.Database) config.Database {
	if d.OwnerURL != "" {
		d.URL = d.OwnerURL
	}
	return d
}
