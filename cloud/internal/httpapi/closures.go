package httpapi

import (
	"net/http"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/backoffice"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/httpapi/wire"
)

// wireClosureRule is {from, to}, {weekday, nth} or {yearly}.
type wireClosureRule struct {
	From    *string `json:"from"`
	To      *string `json:"to"`
	Weekday *int    `json:"weekday"` // 1 is Monday
	Nth     *int    `json:"nth"`
	Yearly  *string `json:"yearly"` // MM-DD
}

func (r wireClosureRule) read() (rule booking.ClosureRule, err error) {
	span, monthly, yearly := r.From != nil || r.To != nil, r.Weekday != nil || r.Nth != nil, r.Yearly != nil
	switch {
	case span && !monthly && !yearly:
		if rule.From, err = closureDate("from", r.From, ""); err != nil {
			return rule, err
		}
		if rule.To, err = closureDate("to", r.To, ""); err != nil {
			return rule, err
		}
		if rule.To.Before(rule.From) {
			return rule, wire.Malformed("to")
		}
		return rule, nil
	case monthly && !span && !yearly:
		weekday, err := wire.Whole("weekday", r.Weekday, 1, 7)
		if err != nil {
			return rule, err
		}
		rule.Weekday = time.Weekday(weekday % 7)
		rule.Nth, err = wire.Whole("nth", r.Nth, 1, 5)
		return rule, err
	case yearly && !span && !monthly:
		rule.Yearly, err = closureDate("yearly", r.Yearly, "2028-") // a leap year
		return rule, err
	}
	return rule, wire.Malformed("rule")
}

func closureDate(field string, text *string, prefix string) (booking.Date, error) {
	if text == nil {
		return booking.Date{}, wire.Missing(field)
	}
	date, err := booking.ParseDate(prefix + *text)
	if err != nil {
		return date, wire.Malformed(field)
	}
	return date, nil
}

// maxClosedBranches bounds one request.
const maxClosedBranches = 1000

// wireClosedBranch is a branch as a closure has left it.
type wireClosedBranch struct {
	Branch   string   `json:"branch"`
	Revision int64    `json:"revision"`
	Kept     []string `json:"kept"`
}

func readClosed(list []wireClosedBranch) (closed []backoffice.ClosedBranch, err error) {
	for _, w := range list {
		c := backoffice.ClosedBranch{Code: w.Branch, Revision: w.Revision, Kept: make([]booking.Date, len(w.Kept))}
		for i, day := range w.Kept {
			if c.Kept[i], err = booking.ParseDate(day); err != nil {
				return nil, wire.Malformed("kept")
			}
		}
		closed = append(closed, c)
	}
	return closed, nil
}

func toWireClosed(closed []backoffice.ClosedBranch) []wireClosedBranch {
	list := make([]wireClosedBranch, 0, len(closed))
	for _, c := range closed {
		w := wireClosedBranch{c.Code, c.Revision, []string{}}
		for _, day := range c.Kept {
			w.Kept = append(w.Kept, day.String())
		}
		list = append(list, w)
	}
	return list
}

// closeBranches serves POST /v2/admin/closures {branches, rule, reason, preview, undo, closed}:
//
//	{conflicts: [{branch, and the fields of a conflict item}], applied, closed}
func (a *API) closeBranches(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Branches []string         `json:"branches"`
		Rule     *wireClosureRule `json:"rule"`
		Reason   *string          `json:"reason"`
		Preview  bool             `json:"preview"`
		Undo     bool             `json:"undo"`

		Closed []wireClosedBranch `json:"closed"` // of the closure that is undone
	}
	if err := wire.Decode(r, &body); err != nil {
		return err
	}
	request := backoffice.ClosureRequest{Branches: body.Branches, Preview: body.Preview, Undo: body.Undo}
	if len(body.Branches) == 0 {
		return wire.Missing("branches")
	}
	if len(body.Branches) > maxClosedBranches {
		return wire.Malformed("branches")
	}
	if body.Rule == nil {
		return wire.Missing("rule")
	}
	var err error
	if request.Rule, err = body.Rule.read(); err != nil {
		return err
	}
	if request.Closed, err = readClosed(body.Closed); err != nil {
		return err
	}
	if request.Reason, err = wire.Text("reason", body.Reason, booking.MaxReason); err != nil {
		return err
	}
	for _, code := range body.Branches {
		if err := wire.Scope(r, code); err != nil {
			return err
		}
	}
	result, err := a.Backoffice.CloseBranches(r.Context(), request, wire.Principal(r).Actor())
	if err != nil {
		return err
	}
	type item struct {
		Branch string `json:"branch"`
		conflict
	}
	conflicts := make([]item, 0, len(result.Conflicts))
	for i, c := range result.Conflicts {
		if i == 0 || c.Branch.ID != result.Conflicts[i-1].Branch.ID {
			if err := a.Backoffice.Viewed(r.Context(), wire.Principal(r).Actor(), "settings.conflicts", c.Branch.Code, c.Branch.ID); err != nil {
				return err
			}
		}
		conflicts = append(conflicts, item{c.Branch.Code, wireConflict(c.Reservation, c.Branch.Zone)})
	}
	return wire.WriteData(w, struct {
		Conflicts []item             `json:"conflicts"`
		Applied   bool               `json:"applied"`
		Closed    []wireClosedBranch `json:"closed"`
	}{conflicts, !body.Preview, toWireClosed(result.Closed)})
}
