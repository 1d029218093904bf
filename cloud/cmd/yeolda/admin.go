package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/yeolda/yeolda/cloud/internal/account"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/config"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

type adminCmd struct {
	Add     adminAddCmd     `cmd:"" help:"Add an administrator; the password is asked for."`
	Passwd  adminPasswdCmd  `cmd:"" help:"Change a password and end the administrator's sessions."`
	Disable adminDisableCmd `cmd:"" help:"Disable an administrator and end the sessions."`
	Enable  adminEnableCmd  `cmd:"" help:"Enable a disabled administrator."`
	Remove  adminRemoveCmd  `cmd:"" help:"Remove an administrator; the audit log keeps the entries."`
	List    adminListCmd    `cmd:"" help:"List the administrators."`
}

// adminAddCmd is `yeolda admin add`.
type adminAddCmd struct {
	Login         string          `arg:"" help:"Login id: a-z, 0-9, dot, hyphen, underscore."`
	Role          string          `enum:"hq,manager,viewer,front-desk,accountant,cleaner" default:"manager" help:"hq (every branch), manager, viewer (reads only), front-desk, accountant or cleaner."`
	Branch        []string        `placeholder:"CODE" help:"Branches of a role other than hq."`
	PasswordStdin bool            `help:"Read the password from standard input."`
	Database      config.Database `embed:""`
}

// Run adds an administrator.
func (c *adminAddCmd) Run(p *program) error {
	n := account.NewAdministrator{LoginID: c.Login, Role: account.Role(c.Role), Branches: c.Branch}
	if err := n.Check(); err != nil {
		return inWords(err, c.Login)
	}
	var err error
	if n.Password, err = p.newPassword(c.PasswordStdin); err != nil {
		return err
	}
	return p.withAccounts(c.Database, c.Login, func(accounts *account.Service) error {
		if err := accounts.AddAdministrator(p.ctx, n, p.by()); err != nil {
			return err
		}
		fmt.Fprintf(p.out, "administrator %s added\n", c.Login)
		return nil
	})
}

// adminPasswdCmd is `yeolda admin passwd`.
type adminPasswdCmd struct {
	Login         string          `arg:"" help:"Login id."`
	PasswordStdin bool            `help:"Read the password from standard input."`
	Database      config.Database `embed:""`
}

// Run changes a password.
func (c *adminPasswdCmd) Run(p *program) error {
	password, err := p.newPassword(c.PasswordStdin)
	if err != nil {
		return err
	}
	return p.withAccounts(c.Database, c.Login, func(accounts *account.Service) error {
		if err := accounts.SetPassword(p.ctx, c.Login, password, p.by()); err != nil {
			return err
		}
		fmt.Fprintf(p.out, "password of %s changed, sessions ended\n", c.Login)
		return nil
	})
}

// adminDisableCmd is `yeolda admin disable`.
type adminDisableCmd struct {
	Login    string          `arg:"" help:"Login id."`
	Database config.Database `embed:""`
}

// Run disables an administrator.
func (c *adminDisableCmd) Run(p *program) error {
	return p.withAccounts(c.Database, c.Login, func(accounts *account.Service) error {
		if err := accounts.DisableAdministrator(p.ctx, c.Login, p.by()); err != nil {
			return err
		}
		fmt.Fprintf(p.out, "administrator %s disabled, sessions ended\n", c.Login)
		return nil
	})
}

// adminEnableCmd is `yeolda admin enable`.
type adminEnableCmd struct {
	Login    string          `arg:"" help:"Login id."`
	Database config.Database `embed:""`
}

// Run enables an administrator.
func (c *adminEnableCmd) Run(p *program) error {
	return p.withAccounts(c.Database, c.Login, func(accounts *account.Service) error {
		if err := accounts.EnableAdministrator(p.ctx, c.Login, p.by()); err != nil {
			return err
		}
		fmt.Fprintf(p.out, "administrator %s enabled\n", c.Login)
		return nil
	})
}

// adminRemoveCmd is `yeolda admin remove`.
type adminRemoveCmd struct {
	Login    string          `arg:"" help:"Login id."`
	Database config.Database `embed:""`
}

// Run removes an administrator.
func (c *adminRemoveCmd) Run(p *program) error {
	return p.withAccounts(c.Database, c.Login, func(accounts *account.Service) error {
		if err := accounts.RemoveAdministrator(p.ctx, c.Login, p.by()); err != nil {
			return err
		}
		fmt.Fprintf(p.out, "administrator %s removed, sessions ended\n", c.Login)
		return nil
	})
}

// adminListCmd is `yeolda admin list`.
type adminListCmd struct {
	Database config.Database `embed:""`
}

// Run lists the administrators.
func (c *adminListCmd) Run(p *program) error {
	return p.withDatabase(c.Database, func(db *postgres.DB) error {
		list, err := postgres.Administrators(p.ctx, db.Pool)
		if err != nil {
			return err
		}
		table := newTable(p.out, "LOGIN", "ROLE", "BRANCHES", "STATE")
		for _, a := range list {
			branches := strings.Join(a.Branches, " ")
			if account.Role(a.Role) == account.HQ {
				branches = "all"
			}
			state := "active"
			switch {
			case !a.DisabledAt.IsZero():
				state = "disabled since " + when(a.DisabledAt)
			case a.Demo:
				state = "demo password"
			}
			table.row(a.LoginID, a.Role, branches, state)
		}
		return table.flush()
	})
}

// withAccounts runs do with the administrators of the database and translates its errors.
func (p *program) withAccounts(d config.Database, login string, do func(*account.Service) error) error {
	return p.withDatabase(d, func(db *postgres.DB) error {
		return inWords(do(&account.Service{DB: db, Log: p.logger()}), login)
	})
}

// inWords returns an error message for a shell.
func inWords(err error, login string) error {
	switch {
	case errors.Is(err, booking.ErrNoAdministrator):
		return fmt.Errorf("there is no administrator %q; see yeolda admin list", login)
	case errors.Is(err, booking.ErrAdministratorExists):
		return fmt.Errorf("there is an administrator %q already; yeolda admin passwd changes the password", login)
	case errors.Is(err, postgres.ErrNoBranch):
		return errors.New("there is no such branch; see yeolda branch list")
	case errors.Is(err, account.ErrLastHeadquarters):
		return fmt.Errorf("%s is the last account of the headquarters that can log in; add another one first: yeolda admin add LOGIN --role hq", login)
	case errors.Is(err, account.ErrNeedsBranch):
		return errors.New("a role other than hq needs --branch; hq has all of them and takes none")
	case err != nil:
		return errors.New(strings.TrimPrefix(err.Error(), "account: "))
	}
	return nil
}
