package console

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/httpapi/wire"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
)

// timelineReservation is a reservation on the timeline. The phone number is masked; the full number is in the record,
// and opening that is audited.
type timelineReservation struct {
	ID            string  `json:"id"`
	RoomNo        string  `json:"roomNo"`
	Start         string  `json:"start"`
	End           string  `json:"end"`
	Source        string  `json:"source"`
	State         string  `json:"state"`
	BookingStatus string  `json:"bookingStatus"`
	Name          *string `json:"name"`
	MobileNum     *string `json:"mobileNum"`
	Method        *string `json:"method"`
	Amount        int     `json:"amount"`
	ExpiresAt     *string `json:"expiresAt"`
	Version       int     `json:"version"`
	Extends       *string `json:"extends"`  // the reservation with the key of the stay
	Replaces      *string `json:"replaces"` // the reservation that the guest exchanged for it
	StayEnd       string  `json:"stayEnd"`  // the real end of the stay with its confirmed extensions

	StayBalance *int `json:"stayBalance,omitempty"` // on the day and in the record, of what was paid
}

// stayBalance returns the won of a confirmed stay, with the extensions that end with it, that the guest does not have back; nil if
// nothing was paid.
func stayBalance(r booking.Reservation, balances map[booking.ReservationID]reserve.Balance) *int {
	balance, paid := balances[r.ID]
	if !paid || r.State != booking.Done {
		return nil
	}
	return new(balance.Own + balance.Extensions)
}

func wireTimelineReservations(list []booking.Reservation, zone *time.Location) []timelineReservation {
	items := make([]timelineReservation, 0, len(list))
	for _, r := range list {
		items = append(items, wireTimelineReservation(r, zone))
	}
	return items
}

func wireTimelineReservation(r booking.Reservation, zone *time.Location) timelineReservation {
	item := timelineReservation{
		ID: wire.ReservationID(r.ID), RoomNo: strconv.Itoa(r.RoomNo), Start: wire.Minute(r.Start, zone), End: wire.Minute(r.End, zone),
		Source: string(r.Source), State: string(r.State), BookingStatus: string(r.BookingStatus()),
		Name: wire.Nullable(r.Name), MobileNum: wire.Nullable(maskedMobile(r.Mobile)), Method: wire.Nullable(string(r.Method)), Amount: r.Amount, Version: r.Version,
		StayEnd: wire.Minute(r.Stay().End, zone),
	}
	if r.Extends != 0 {
		item.Extends = new(wire.ReservationID(r.Extends))
	}
	if r.Replaces != 0 {
		item.Replaces = new(wire.ReservationID(r.Replaces))
	}
	if r.State == booking.Hold || r.State == booking.WaitingForDeposit {
		item.ExpiresAt = wire.Instant(r.ExpiresAt)
	}
	return item
}

// maskedMobile keeps the first three and the last four digits of a phone number.
func maskedMobile(mobile string) string {
	digits := booking.NormalizePhone(mobile)
	if len(digits) < 8 {
		return ""
	}
	return digits[:3] + "-****-" + digits[len(digits)-4:]
}

type wireSpan struct {
	Start string `json:"start"`
	End   string `json:"end"`
}

// wireSpans joins consecutive slots into spans.
func wireSpans(slots []time.Time, zone *time.Location) []wireSpan {
	spans := []wireSpan{}
	var start, end time.Time
	flush := func() {
		if !start.IsZero() {
			spans = append(spans, wireSpan{wire.Minute(start, zone), wire.Minute(end, zone)})
		}
	}
	for _, slot := range slots {
		if start.IsZero() || !slot.Equal(end) {
			flush()
			start = slot
		}
		end = slot.Add(booking.SlotLength)
	}
	flush()
	return spans
}

type timelineRoom struct {
	RoomNo  string     `json:"roomNo"`
	Machine string     `json:"machine"`
	Grade   *string    `json:"grade"`
	Enabled bool       `json:"enabled"`
	Pricing wire.Price `json:"pricing"`

	// PricingChanges are the price lists of the day, and of the stays that go beyond it, if the room has price rules.
	PricingChanges []wire.PricingChange `json:"pricingChanges,omitempty"`

	TurnoverMinutes int `json:"turnoverMinutes"`
}

func wireTimelineRoom(room booking.Room) timelineRoom {
	return timelineRoom{
		RoomNo: strconv.Itoa(room.No), Machine: room.Machine, Grade: wire.Nullable(string(room.Grade)), Enabled: room.Enabled,
		Pricing: wire.Price(room.Price), TurnoverMinutes: int(room.Margin() / time.Minute),
	}
}

// Timeline serves GET /v2/admin/branches/{branch}/timeline?date=YYYY-MM-DD: rooms by number, the reservations that occupy them
// on that day, those that were cancelled, and the closed times of the branch.
func (c *Console) Timeline(w http.ResponseWriter, r *http.Request) error {
	branch, err := c.branch(r)
	if err != nil {
		return err
	}
	day, err := dayOf(r, branch.Zone)
	if err != nil {
		return err
	}
	found, err := c.Backoffice.Day(r.Context(), branch, day)
	if err != nil {
		return err
	}
	rooms := make([]timelineRoom, 0, len(branch.Rooms))
	for _, room := range branch.Rooms {
		one := wireTimelineRoom(room)
		one.PricingChanges = wire.PricingChanges(branch, room, booking.Interval{Start: day.Start, End: day.End.Add(booking.MaxLength)})
		rooms = append(rooms, one)
	}
	canceled, err := c.Backoffice.Canceled(r.Context(), branch, day)
	if err != nil {
		return err
	}
	conflicts, err := c.Backoffice.Conflicts(r.Context(), branch, day)
	if err != nil {
		return err
	}
	quarantine, err := c.quarantine(r, branch, day)
	if err != nil {
		return err
	}
	if len(found)+len(canceled)+len(conflicts) > 0 {
		if err := c.Backoffice.ViewedList(r.Context(), actor(r), "reservation.day", day.Start.In(branch.Zone).Format(time.DateOnly), branch.ID); err != nil {
			return err
		}
	}
	balances, err := c.Reserve.BalancesOf(r.Context(), found...)
	if err != nil {
		return err
	}
	reservations := wireTimelineReservations(found, branch.Zone)
	for i, one := range found {
		reservations[i].StayBalance = stayBalance(one, balances)
	}
	status := branch.Schedule.Day(booking.DateOf(day.Start, branch.Zone))
	return wire.WriteData(w, struct {
		Date         string                `json:"date"`
		Status       string                `json:"status"`
		Reason       *string               `json:"reason"`
		Rooms        []timelineRoom        `json:"rooms"`
		Reservations []timelineReservation `json:"reservations"`
		Canceled     []timelineReservation `json:"canceled"`
		Conflicts    []timelineReservation `json:"conflicts"`
		Closed       []wireSpan            `json:"closed"`
		Breaks       []wireSpan            `json:"breaks"`
		Quarantine   []wireQuarantine      `json:"quarantine"`
	}{
		day.Start.In(branch.Zone).Format(time.DateOnly), string(status.Status), wire.Nullable(status.Reason), rooms,
		reservations, wireTimelineReservations(canceled, branch.Zone), wireTimelineReservations(conflicts, branch.Zone),
		wireSpans(branch.Schedule.ClosedSlots(day, branch.Zone), branch.Zone), wireSpans(branch.Schedule.BreakSlots(day, branch.Zone), branch.Zone),
		quarantine,
	})
}

// dayOf returns the local day of the query's date.
func dayOf(r *http.Request, zone *time.Location) (booking.Interval, error) {
	text, err := wire.Query(r, "date")
	if err != nil {
		return booking.Interval{}, err
	}
	day, ok := wire.Day(text)
	if !ok {
		return booking.Interval{}, wire.Malformed("date")
	}
	return day.In(zone), nil
}

// SearchReservations serves GET /v2/admin/reservations?query=; see backoffice.Search and backoffice.SearchRooms.
func (c *Console) SearchReservations(w http.ResponseWriter, r *http.Request) error {
	text, err := wire.Query(r, "query")
	if err != nil {
		return err
	}
	if text = strings.TrimSpace(text); len([]rune(text)) < 2 || len(text) > 100 {
		return wire.Malformed("query")
	}
	found, err := c.Backoffice.Search(r.Context(), actor(r), wire.Principal(r).Reach(), text)
	if err != nil {
		return err
	}
	type item struct {
		Branch string `json:"branch"`
		timelineReservation
	}
	list := make([]item, 0, len(found))
	for _, f := range found {
		list = append(list, item{f.Branch.Code, wireTimelineReservation(f.Reservation, f.Branch.Zone)})
	}
	type room struct {
		Branch  string `json:"branch"`
		RoomNo  string `json:"roomNo"`
		Machine string `json:"machine"`
	}
	named, err := c.Backoffice.SearchRooms(r.Context(), wire.Principal(r).Reach(), text)
	if err != nil {
		return err
	}
	rooms := make([]room, 0, len(named))
	for _, n := range named {
		rooms = append(rooms, room{n.Branch, strconv.Itoa(n.No), n.Machine})
	}
	return wire.WriteData(w, map[string]any{"reservations": list, "rooms": rooms})
}
