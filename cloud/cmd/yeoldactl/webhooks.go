package main

import (
	"fmt"

	"github.com/yeolda/yeolda/cloud/client"
)

type webhooksCmd struct {
	List       webhooksListCmd       `cmd:"" help:"List the webhooks."`
	Add        webhooksAddCmd        `cmd:"" help:"Add a receiver of events and print its id and secret."`
	Enable     webhooksEnableCmd     `cmd:"" help:"Enable a webhook; it receives everything that waits."`
	Disable    webhooksDisableCmd    `cmd:"" help:"Disable a webhook."`
	Remove     webhooksRemoveCmd     `cmd:"" help:"Remove a webhook."`
	Deliveries webhooksDeliveriesCmd `cmd:"" help:"List the latest deliveries of a webhook."`
	Replay     webhooksReplayCmd     `cmd:"" help:"Deliver the events after a place once more."`
}

type webhooksListCmd struct{}

// Run lists the webhooks.
func (webhooksListCmd) Run(p *program) error {
	answer, err := p.api.ListWebhooksWithResponse(p.ctx)
	if err != nil {
		return err
	}
	list := answer.JSON200.Data
	return printList(p, list, list.Webhooks, func(w client.Webhook) []any { return []any{w.ID, w.URL, w.Enabled, w.Types, w.Branches, w.Pending} },
		"ID", "URL", "ENABLED", "TYPES", "BRANCHES", "PENDING")
}

type webhooksAddCmd struct {
	URL      string   `arg:"" help:"Address of the receiver, with https."`
	Types    []string `help:"Types of events, such as reservation.done or refund.*; none: all."`
	Branches []string `help:"Codes of branches; none: all."`
}

// Run adds a webhook.
func (c *webhooksAddCmd) Run(p *program) error {
	answer, err := p.api.AddWebhookWithResponse(p.ctx, client.WebhookRequest{URL: c.URL, Types: &c.Types, Branches: &c.Branches})
	if err != nil {
		return err
	}
	added := answer.JSON200.Data
	return printList(p, added, []client.NewWebhook{added}, func(w client.NewWebhook) []any { return []any{w.ID, w.Secret} }, "ID", "SECRET")
}

// webhook is the argument of commands about one webhook.
type webhook struct {
	ID string `arg:"" help:"Id of the webhook."`
}

type webhooksEnableCmd struct{ webhook }

// Run enables a webhook.
func (c *webhooksEnableCmd) Run(p *program) error { return c.set(p, true) }

type webhooksDisableCmd struct{ webhook }

// Run disables a webhook.
func (c *webhooksDisableCmd) Run(p *program) error { return c.set(p, false) }

func (c *webhook) set(p *program, enabled bool) error {
	_, err := p.api.SwitchWebhookWithResponse(p.ctx, c.ID, client.SwitchWebhookJSONRequestBody{Enabled: enabled})
	return err
}

type webhooksRemoveCmd struct{ webhook }

// Run removes a webhook.
func (c *webhooksRemoveCmd) Run(p *program) error {
	_, err := p.api.RemoveWebhookWithResponse(p.ctx, c.ID)
	return err
}

type webhooksDeliveriesCmd struct{ webhook }

// Run lists deliveries, the newest event first.
func (c *webhooksDeliveriesCmd) Run(p *program) error {
	answer, err := p.api.ListDeliveriesWithResponse(p.ctx, c.ID, &client.ListDeliveriesParams{})
	if err != nil {
		return err
	}
	list := answer.JSON200.Data
	return printList(p, list, list.Deliveries, func(d client.Delivery) []any {
		status := ""
		if d.Status != nil {
			status = fmt.Sprint(*d.Status)
		}
		return []any{d.Event, d.Type, d.Subject, d.State, d.Attempts, status, d.Error}
	}, "EVENT", "TYPE", "SUBJECT", "STATE", "ATTEMPTS", "STATUS", "ERROR")
}

type webhooksReplayCmd struct {
	webhook
	After string `default:"0" help:"Id of an event; 0: all that are kept."`
}

// Run replays events.
func (c *webhooksReplayCmd) Run(p *program) error {
	_, err := p.api.ReplayWebhookWithResponse(p.ctx, c.ID, client.ReplayWebhookJSONRequestBody{After: c.After})
	return err
}
