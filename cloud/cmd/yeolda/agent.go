package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/audit"
	"github.com/yeolda/yeolda/cloud/internal/config"
	"github.com/yeolda/yeolda/cloud/internal/device"
	"github.com/yeolda/yeolda/cloud/internal/enroll"
	"github.com/yeolda/yeolda/cloud/internal/grantkey"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

type agentCmd struct {
	Enroll      agentEnrollCmd      `cmd:"" help:"Create a credential for the agent of a branch; its secret is shown once."`
	Activate    agentActivateCmd    `cmd:"" help:"Make a credential the active one of its branch: only its agent opens doors."`
	Revoke      agentRevokeCmd      `cmd:"" help:"Revoke a credential; its connection ends within seconds."`
	List        agentListCmd        `cmd:"" help:"List the credentials: active, standby or revoked, and whether they are connected."`
	Credentials agentCredentialsCmd `cmd:"" help:"Secrets of agents' credentials: rotate."`
	Settings    agentSettingsCmd    `cmd:"" help:"Settings of an agent in the service: list, show, set."`
	Logs        agentLogsCmd        `cmd:"" help:"Have an agent send its log for ten minutes, and print it."`
	Doctor      agentDoctorCmd      `cmd:"" help:"Have an agent examine its machine, and print the report."`
	Rollout     agentRolloutCmd     `cmd:"" help:"Update the agents in waves, with signed packages; without a version, show the last rollout."`
	Release     agentReleaseCmd     `cmd:"" help:"Packages of the agent: make a key, sign."`
	Keys        agentKeysCmd        `cmd:"" help:"Keys that sign door grants: list, rotate, finish a rotation."`
	ACL         agentACLCmd         `cmd:"" name:"acl" help:"Print the access rules for a broker outside (Mosquitto's acl_file)."`
}

// agentEnrollCmd is `yeolda agent enroll`.
type agentEnrollCmd struct {
	Branch   string          `arg:"" help:"Code of the branch."`
	Replace  string          `placeholder:"USERNAME" help:"The machine that the new one replaces: it is revoked as soon as the doors of the new one work."`
	File     string          `placeholder:"FILE" type:"path" xor:"how" help:"Write a credential to a new file that only its owner may read, instead of showing the command."`
	Show     bool            `xor:"how" help:"Show a credential instead of the command."`
	HTTP     config.HTTP     `embed:""`
	Database config.Database `embed:""`
	Secrets  config.Secrets  `embed:""`
}

// Run shows the command that makes a machine the agent of a branch, or creates a credential. Only hashes are stored.
func (c *agentEnrollCmd) Run(p *program) error {
	set := config.Settings{HTTP: c.HTTP, Secrets: c.Secrets}.Effective()
	return p.withGrantKeys(c.Database, c.Secrets, func(ring *grantkey.Ring) error {
		var credential enroll.Credential
		var token string
		err := ring.DB.InTx(p.ctx, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
			keys, err := ring.Current(ctx, tx)
			if err != nil {
				return err
			}
			if c.File == "" && !c.Show {
				token, err = enroll.Offer(ctx, tx, c.Branch, c.Replace, p.by(), keys, now)
				return err
			}
			if credential, err = enroll.Issue(ctx, tx, c.Branch, c.Replace, keys, nil, now); err != nil {
				return err
			}
			err = postgres.AppendAudit(ctx, tx, audit.Entry{Actor: p.by(), Branch: c.Branch, Action: "agent.enroll", Target: credential.Username})
			if err != nil || c.File == "" {
				return err
			}
			return writeNew(c.File, credential.String()) // inside the transaction: without the file no credential is created
		})
		switch {
		case errors.Is(err, postgres.ErrNoBranch):
			return fmt.Errorf("there is no branch %q; see yeolda branch list", c.Branch)
		case errors.Is(err, postgres.ErrNoAgent):
			return fmt.Errorf("branch %s has no agent %q; see yeolda agent list", c.Branch, c.Replace)
		case err != nil:
			return err
		case c.File != "":
			fmt.Fprintf(p.out, "credential of %s written to %s\n", credential.Username, c.File)
		case c.Show:
			fmt.Fprint(p.out, credential)
			fmt.Fprintln(p.err, "The password is shown this once; only its hash is stored.")
		default:
			fmt.Fprintln(p.out, enroll.Command(set.HTTP.PublicURL, token))
			fmt.Fprintf(p.err, "Type this on the Raspberry Pi of %s. It works once, within an hour.\n", c.Branch)
		}
		return nil
	})
}

// writeNew writes a new file that only its owner may read.
func writeNew(name, content string) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(content)
	return errors.Join(err, f.Close())
}

// agentRevokeCmd is `yeolda agent revoke`.
type agentRevokeCmd struct {
	Username string          `arg:"" help:"User name of the credential."`
	Database config.Database `embed:""`
}

// Run revokes a credential.
func (c *agentRevokeCmd) Run(p *program) error {
	return p.withDatabase(c.Database, func(db *postgres.DB) error {
		err := db.InTx(p.ctx, func(ctx context.Context, tx pgx.Tx, _ time.Time) error {
			branch, err := postgres.BranchOfAgent(ctx, tx, c.Username)
			if err != nil {
				return err
			}
			if err := postgres.RevokeAgent(ctx, tx, c.Username); err != nil {
				return err
			}
			return postgres.AppendAudit(ctx, tx, audit.Entry{Actor: p.by(), Branch: branch, Action: "agent.revoke", Target: c.Username})
		})
		if errors.Is(err, postgres.ErrNoAgent) {
			return fmt.Errorf("there is no agent %q; see yeolda agent list", c.Username)
		}
		if err != nil {
			return err
		}
		fmt.Fprintf(p.out, "agent %s revoked\n", c.Username)
		return nil
	})
}

// agentActivateCmd is `yeolda agent activate`.
type agentActivateCmd struct {
	Username string          `arg:"" help:"User name of the credential."`
	Database config.Database `embed:""`
}

// Run activates a credential.
func (c *agentActivateCmd) Run(p *program) error {
	return p.withDevices(c.Database, c.Username, func(devices *device.Service) error {
		if err := devices.Activate(p.ctx, c.Username, p.by()); err != nil {
			return err
		}
		fmt.Fprintf(p.out, "agent %s activated\n", c.Username)
		return nil
	})
}

// agentListCmd is `yeolda agent list`.
type agentListCmd struct {
	Database config.Database `embed:""`
}

// Run lists the credentials.
func (c *agentListCmd) Run(p *program) error {
	return p.withDatabase(c.Database, func(db *postgres.DB) error {
		list, err := postgres.AgentCredentials(p.ctx, db.Pool)
		if err != nil {
			return err
		}
		table := newTable(p.out, "USERNAME", "BRANCH", "STATE", "ONLINE", "LAST SEEN", "TAKEN OVER", "SECRET", "KEYS")
		for _, a := range list {
			state := a.State()
			if !a.RevokedAt.IsZero() {
				state += " " + when(a.RevokedAt)
			} else if a.Demo {
				state += ", demo secret"
			}
			online := "no"
			if a.Online {
				online = "yes"
			}
			secret := "password"
			if a.KeyPair {
				secret = "key pair"
			}
			if a.Rotating {
				secret += ", rotating"
			}
			table.row(a.Username, a.Branch, state, online, when(a.SeenAt), when(a.TakenOverAt), secret, fmt.Sprint(a.KeyEpoch))
		}
		return table.flush()
	})
}
