package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/config"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/proof"
)

// errViolations is returned if a rule is violated.
var errViolations = errors.New("the rules are violated")

type proofCmd struct {
	Check  proofCheckCmd  `cmd:"" default:"withargs" help:"Check the rules on the rows of the database. Exit code 1: a rule is violated."`
	Key    proofKeyCmd    `cmd:"" help:"Print the public key of this service's proofs."`
	Verify proofVerifyCmd `cmd:"" help:"Verify the signature of a proof, on any machine."`
}

// proofCheckCmd is `yeolda proof`.
type proofCheckCmd struct {
	Since    time.Duration   `help:"How far back to check (0: everything)."`
	Sign     bool            `help:"Print the signed proof as JSON instead of a table."`
	Database config.Database `embed:""`
	Secrets  config.Secrets  `embed:""`
}

// Run checks the rules.
func (c *proofCheckCmd) Run(p *program) error {
	keys, err := keyring(c.Secrets)
	if err != nil {
		return err
	}
	return p.withDatabase(c.Database, func(db *postgres.DB) error {
		var since time.Time
		if c.Since > 0 {
			since = time.Now().Add(-c.Since)
		}
		signed, err := (&proof.Service{DB: db, Keys: keys}).Run(p.ctx, since)
		if err != nil {
			return err
		}
		report, err := signed.Open()
		if err != nil {
			return err
		}
		if c.Sign {
			err = json.NewEncoder(p.out).Encode(signed)
		} else {
			err = p.printProof(report)
		}
		if err == nil && report.Violations > 0 {
			err = errViolations
		}
		return err
	})
}

// printProof prints a line for each rule and each violation.
func (p *program) printProof(r proof.Report) error {
	table := newTable(p.out, "RULE", "ROWS", "VIOLATIONS", "TEXT")
	for _, rule := range r.Rules {
		table.row(rule.ID, fmt.Sprint(rule.Checked), fmt.Sprint(rule.Violations), rule.Text)
	}
	if err := table.flush(); err != nil {
		return err
	}
	for _, rule := range r.Rules {
		for _, f := range rule.Found {
			fmt.Fprintf(p.out, "\n%s %s %s: %s", rule.ID, f.Branch, f.Subject, f.Detail)
			if f.Repair != nil {
				fmt.Fprintf(p.out, "\n   %s: %s %s", f.Repair.Verb, f.Repair.Method, f.Repair.Path)
			}
		}
	}
	fmt.Fprintf(p.out, "\n%d violations in %d rules, %d ms; audit log %s\n", r.Violations, len(r.Rules), r.TookMs, r.Head)
	return nil
}

// proofKeyCmd is `yeolda proof key`.
type proofKeyCmd struct {
	Secrets config.Secrets `embed:""`
}

// Run prints the key.
func (c *proofKeyCmd) Run(p *program) error {
	keys, err := keyring(c.Secrets)
	if err != nil {
		return err
	}
	fmt.Fprintln(p.out, proof.PublicKey(keys))
	return nil
}

// proofVerifyCmd is `yeolda proof verify`.
type proofVerifyCmd struct {
	File string `arg:"" help:"Proof, as --sign printed it or the service sent it." type:"existingfile"`
	Key  string `required:"" placeholder:"BASE64" help:"Public key of the service, as proof key prints it there."`
}

// Run verifies a proof. It needs no service and no database.
func (c *proofVerifyCmd) Run(p *program) error {
	signed, err := readProof(c.File)
	if err != nil {
		return err
	}
	if err := signed.Verify(c.Key); err != nil {
		return err
	}
	report, err := signed.Open()
	if err != nil {
		return err
	}
	fmt.Fprintf(p.out, "the signature is valid: %d violations at %s; audit log %s\n", report.Violations, report.At.Format(time.RFC3339), report.Head)
	return nil
}

// readProof reads a proof, or the answer of GET /v2/admin/proof that contains it.
func readProof(file string) (proof.Signed, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return proof.Signed{}, err
	}
	var found struct {
		proof.Signed
		Data proof.Signed `json:"data"`
	}
	if err := json.Unmarshal(text, &found); err != nil {
		return proof.Signed{}, fmt.Errorf("%s is not a proof: %w", file, err)
	}
	for _, signed := range []proof.Signed{found.Signed, found.Data} {
		if len(signed.Report) > 0 {
			return signed, nil
		}
	}
	return proof.Signed{}, fmt.Errorf("%s is not a proof", file)
}
