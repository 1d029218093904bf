package console

import (
	"net/http"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/httpapi/wire"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
)

// wirePriceRule is a price rule in JSON. Weekdays run from 1, Monday, to 7. Hours that end at or before their start end on the
// next day.
type wirePriceRule struct {
	From     *string        `json:"from"`
	Days     []int          `json:"days"`
	Holidays bool           `json:"holidays"`
	Hours    *wireClockSpan `json:"hours"`
	wire.Price
}

func toWirePriceRules(rules []booking.PriceRule) []wirePriceRule {
	list := make([]wirePriceRule, 0, len(rules))
	for _, p := range rules {
		from := p.From.String()
		rule := wirePriceRule{From: &from, Days: []int{}, Holidays: p.Holidays, Price: wire.Price(p.Price)}
		for _, day := range p.Days {
			rule.Days = append(rule.Days, int(day+6)%7+1)
		}
		if p.Hours != nil {
			rule.Hours = &wireClockSpans([]booking.ClockSpan{*p.Hours})[0]
		}
		list = append(list, rule)
	}
	return list
}

// priceRules reads the rules of a request.
func priceRules(list []wirePriceRule) ([]booking.PriceRule, error) {
	rules := make([]booking.PriceRule, 0, len(list))
	for _, w := range list {
		rule := booking.PriceRule{Holidays: w.Holidays, Price: booking.Price(w.Price)}
		text, err := wire.Text("from", w.From, len(time.DateOnly))
		if err != nil {
			return nil, err
		}
		if rule.From, err = booking.ParseDate(text); err != nil {
			return nil, wire.Malformed("from")
		}
		for _, day := range w.Days {
			if day < 1 || day > 7 {
				return nil, wire.OutOfRange("days", 1, 7)
			}
			rule.Days = append(rule.Days, time.Weekday(day%7))
		}
		if w.Hours != nil {
			hours, err := booking.ParseClockSpan(w.Hours.From, w.Hours.To)
			if err != nil {
				return nil, wire.Malformed("hours")
			}
			rule.Hours = &hours
		}
		rules = append(rules, rule)
	}
	return rules, nil
}

// pricedRoom returns the branch and the room of the path.
func (c *Console) pricedRoom(r *http.Request) (booking.Branch, booking.Room, error) {
	branch, err := c.branch(r)
	if err != nil {
		return branch, booking.Room{}, err
	}
	no, err := pathRoom(r)
	if err != nil {
		return branch, booking.Room{}, err
	}
	room, ok := branch.Room(no)
	if !ok {
		return branch, room, reserve.ErrNoRoom
	}
	return branch, room, nil
}

// ShowPrices serves GET /v2/admin/branches/{branch}/rooms/{room}/prices: the price list of a room and its price rules.
func (c *Console) ShowPrices(w http.ResponseWriter, r *http.Request) error {
	_, room, err := c.pricedRoom(r)
	if err != nil {
		return err
	}
	return wire.WriteData(w, struct {
		Pricing wire.Price      `json:"pricing"`
		Rules   []wirePriceRule `json:"rules"`
	}{wire.Price(room.Price), toWirePriceRules(room.PriceRules)})
}

// ChangePrices serves PUT /v2/admin/branches/{branch}/rooms/{room}/prices: the price rules of a room. The last rule that applies
// decides. Holds and reservations keep their price.
func (c *Console) ChangePrices(w http.ResponseWriter, r *http.Request) error {
	branch, room, err := c.pricedRoom(r)
	if err != nil {
		return err
	}
	var body struct {
		Rules    *[]wirePriceRule `json:"rules"`
		Expected *[]wirePriceRule `json:"expected"` // absent: any
	}
	if err := wire.Decode(r, &body); err != nil {
		return err
	}
	if body.Rules == nil {
		return wire.Missing("rules")
	}
	rules, err := priceRules(*body.Rules)
	if err != nil {
		return err
	}
	var expected []booking.PriceRule
	if body.Expected != nil {
		if expected, err = priceRules(*body.Expected); err != nil {
			return err
		}
	}
	if err := c.Backoffice.ChangePriceRules(r.Context(), branch, room.No, expected, rules, actor(r)); err != nil {
		return err
	}
	return wire.WriteData(w, nil)
}

// previewDays is the number of days of a preview.
const previewDays = 7

// PreviewPrices serves POST /v2/admin/branches/{branch}/rooms/{room}/prices/preview: the price lists of a week under rules that
// need not be saved. It changes nothing.
func (c *Console) PreviewPrices(w http.ResponseWriter, r *http.Request) error {
	branch, room, err := c.pricedRoom(r)
	if err != nil {
		return err
	}
	var body struct {
		Rules *[]wirePriceRule `json:"rules"` // absent: the saved ones
		Date  *string          `json:"date"`
	}
	if err := wire.Decode(r, &body); err != nil {
		return err
	}
	text, err := wire.Text("date", body.Date, len(time.DateOnly))
	if err != nil {
		return err
	}
	first, err := booking.ParseDate(text)
	if err != nil {
		return wire.Malformed("date")
	}
	if body.Rules != nil {
		if room.PriceRules, err = priceRules(*body.Rules); err != nil {
			return err
		}
		if err := room.Validate(); err != nil {
			return err
		}
	}
	type span struct {
		From string `json:"from"`
		To   string `json:"to"`
		Rule *int   `json:"rule"` // from 0; null: the price list of the room
		wire.Price
	}
	type day struct {
		Date    string  `json:"date"`
		Holiday *string `json:"holiday"`
		Spans   []span  `json:"spans"`
	}
	days := make([]day, 0, previewDays)
	for i := range previewDays {
		date := first.AddDays(i)
		shown := day{Date: date.String(), Holiday: wire.Nullable(branch.Schedule.HolidayName(date)), Spans: []span{}}
		window := booking.Interval{Start: date.At(0, branch.Zone), End: date.AddDays(1).At(0, branch.Zone)}
		for _, s := range branch.PriceSpans(room, window) {
			view := span{From: clock(s.Start, branch.Zone), To: clock(s.End, branch.Zone), Price: wire.Price(s.Price)}
			if !s.End.Before(window.End) {
				view.To = "24:00"
			}
			if s.Rule >= 0 {
				view.Rule = &s.Rule
			}
			shown.Spans = append(shown.Spans, view)
		}
		days = append(days, shown)
	}
	return wire.WriteData(w, struct {
		Days []day `json:"days"`
	}{days})
}

func clock(t time.Time, zone *time.Location) string { return t.In(zone).Format("15:04") }
