package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/yeolda/yeolda/cloud/client"
	"github.com/yeolda/yeolda/cloud/internal/config"
	"github.com/yeolda/yeolda/cloud/internal/proof"
)

// errProduction is returned for a deployment that would charge real money.
var errProduction = errors.New("the deployment does not use yeolda-sandbox: verify buys rooms, so it runs against staging deployments only")

// verifyCmd is `yeolda verify`.
type verifyCmd struct {
	URL     string         `arg:"" help:"Address of a staging deployment that uses yeolda-sandbox."`
	Branch  string         `default:"gangnam" help:"Branch whose rooms are bought."`
	Guests  int            `default:"30" help:"Number of guests who contend for one slot."`
	Secrets config.Secrets `embed:""`
}

// Run buys rooms of a staging deployment in ways that could sell a slot twice or lose money, and prints a signed report that
// `yeolda proof verify` reads. It cancels what it has bought.
func (c *verifyCmd) Run(p *program) error {
	keys, err := config.Settings{Secrets: c.Secrets}.Effective().Keyring()
	if err != nil {
		return &config.Problem{Variable: "YEOLDA_ENCRYPTION_KEY", Text: err.Error()}
	}
	if c.Guests < 2 {
		return errors.New("--guests: at least 2 guests contend for a slot")
	}
	v := &verifier{ctx: p.ctx, progress: p.err, address: c.URL, branch: c.Branch, guests: c.Guests, mobile: fmt.Sprintf("010%08d", time.Now().UnixMilli()%100_000_000)}
	if v.sandbox, err = sandboxOf(p, c.URL); err != nil {
		return err
	}
	began := time.Now()
	report := proof.Report{At: began.UTC().Truncate(time.Millisecond)}
	for _, check := range []func() (proof.Rule, error){v.contention, v.replay, v.lateDeposit} {
		rule, err := check()
		if err != nil {
			return fmt.Errorf("%s: %w", rule.ID, err)
		}
		report.Rules = append(report.Rules, rule)
		report.Violations += rule.Violations
	}
	report.TookMs = time.Since(began).Milliseconds()
	signed, err := proof.Sign(keys, report)
	if err != nil {
		return err
	}
	if err := json.NewEncoder(p.out).Encode(signed); err != nil {
		return err
	}
	if report.Violations > 0 {
		return errViolations
	}
	return nil
}

// sandboxOf returns the address of the sandbox of a deployment, or errProduction.
func sandboxOf(p *program, address string) (string, error) {
	api, err := client.New(address, "")
	if err != nil {
		return "", err
	}
	site, err := api.ShowSiteWithResponse(p.ctx)
	if err != nil {
		return "", err
	}
	if site.JSON200 == nil {
		return "", errProduction
	}
	script, err := url.Parse(site.JSON200.Data.Payment.ScriptURL)
	if err != nil || script.Host == "" || strings.HasSuffix(script.Hostname(), "tosspayments.com") {
		return "", errProduction
	}
	sandbox := script.Scheme + "://" + script.Host
	// Only yeolda-sandbox answers this.
	var ledger struct{ Charged *int }
	if err := ask(p.ctx, sandbox+"/sandbox/ledger?limit=0", nil, &ledger); err != nil || ledger.Charged == nil {
		return "", errProduction
	}
	return sandbox, nil
}
