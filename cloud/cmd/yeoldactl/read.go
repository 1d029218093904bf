package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/yeolda/yeolda/cloud/client"
)

// branchesCmd is `yeoldactl branches`.
type branchesCmd struct{}

// Run lists the branches.
func (branchesCmd) Run(p *program) error {
	answer, err := p.api.ListBranchesWithResponse(p.ctx, nil)
	if err != nil {
		return err
	}
	list := answer.JSON200.Data
	return printList(p, list, list.Branches, func(b client.Branch) []any { return []any{b.Branch, b.NameKo, b.Phone, b.Address} },
		"BRANCH", "NAME", "PHONE", "ADDRESS")
}

type reservationsCmd struct {
	Find reservationsFindCmd `cmd:"" help:"Find reservations by id, name, phone number or e-mail address."`
	Show reservationsShowCmd `cmd:"" help:"Show a reservation as JSON, with its payment, keys and history."`
}

type reservationsFindCmd struct {
	Query string `arg:"" help:"An id, or a part of a name, phone number or e-mail address."`
}

// Run finds reservations.
func (c *reservationsFindCmd) Run(p *program) error {
	answer, err := p.api.SearchReservationsWithResponse(p.ctx, &client.SearchReservationsParams{Query: c.Query})
	if err != nil {
		return err
	}
	found := answer.JSON200.Data
	return printList(p, found, found.Reservations, func(r client.FoundReservation) []any {
		return []any{r.ID, r.Branch, r.RoomNo, r.Start, r.StayEnd, r.State, r.Amount, r.Name}
	}, "ID", "BRANCH", "ROOM", "START", "END", "STATE", "AMOUNT", "NAME")
}

type reservationsShowCmd struct {
	ID string `arg:"" help:"Id of the reservation."`
}

// Run shows a reservation.
func (c *reservationsShowCmd) Run(p *program) error {
	answer, err := p.api.ReservationRecordWithResponse(p.ctx, c.ID)
	if err != nil {
		return err
	}
	encoder := json.NewEncoder(p.out)
	if !p.json {
		encoder.SetIndent("", "  ")
	}
	return encoder.Encode(answer.JSON200.Data)
}

type eventsCmd struct {
	Follow eventsFollowCmd `cmd:"" help:"Print each event as it happens, until interrupted. After the first answer it waits for the service during an outage."`
}

type eventsFollowCmd struct {
	After string `default:"0" help:"Id of the last event that was seen. 0: begin with the oldest event that is kept."`
}

// Run prints events: id, time, branch, type, subject and version, or a JSON object a line.
func (c *eventsFollowCmd) Run(p *program) error {
	encoder := json.NewEncoder(p.out)
	err := client.Follow(p.ctx, p.api, c.After, func(e client.Event) error {
		if p.json {
			return encoder.Encode(e)
		}
		_, err := fmt.Fprintf(p.out, "%s %s %s %s %s %d\n", e.ID, e.At.Format("2006-01-02T15:04:05Z07:00"), text(e.Branch), e.Type, e.Subject, e.Version)
		return err
	})
	if errors.Is(err, context.Canceled) { // the interrupt is how it ends
		return nil
	}
	return err
}
