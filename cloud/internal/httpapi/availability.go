package httpapi

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/httpapi/wire"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
)

// hoursV1 is the span of the look-ups without a parameter for it (docs/specification.md, Time 7).
const hoursV1 = 4

// slotsV1 serves GET /reservations.
func (a *API) slotsV1(w http.ResponseWriter, r *http.Request) error {
	code, window, err := lookUpV1(r)
	if err != nil {
		return err
	}
	return a.answerLookUp(w, r, lookUp{1, code, window}, func(view reserve.Availability) any {
		zone := view.Branch.Zone
		return struct {
			Booking       []string `json:"booking"`
			Paid          []string `json:"paid"`
			BookingMargin []string `json:"bookingMargin"`
			PaidMargin    []string `json:"paidMargin"`
			DisabledRooms []string `json:"disabledRooms"`
		}{
			wire.Slots(view.Booking, zone), wire.Slots(view.Paid, zone),
			wire.Slots(view.BookingMargin, zone), wire.Slots(view.PaidMargin, zone), disabledRooms(view.Branch),
		}
	})
}

// adminSlots serves GET /admin/reservations.
func (a *API) adminSlots(w http.ResponseWriter, r *http.Request) error {
	code, err := wire.Query(r, "branch")
	if err != nil {
		return err
	}
	if err := wire.Scope(r, code); err != nil {
		return err
	}
	_, window, err := lookUpV1(r)
	if err != nil {
		return err
	}
	view, err := a.Reserve.Availability(r.Context(), code, window)
	if err != nil {
		return err
	}
	zone := view.Branch.Zone
	return wire.WriteData(w, struct {
		Booking       []idTime `json:"booking"`
		Paid          []idTime `json:"paid"`
		BookingMargin []string `json:"bookingMargin"`
		PaidMargin    []string `json:"paidMargin"`
		DisabledRooms []string `json:"disabledRooms"`
	}{
		wireIDTimes(view.Booking, zone), wireIDTimes(view.Paid, zone),
		wire.Slots(view.BookingMargin, zone), wire.Slots(view.PaidMargin, zone), disabledRooms(view.Branch),
	})
}

// idTime is a slot with the id for the detail look-up.
type idTime struct {
	ID   string `json:"id"`
	Time string `json:"time"`
}

// lookUpV1 reads the parameters of the look-ups of version 1.
func lookUpV1(r *http.Request) (branch string, window booking.LocalWindow, err error) {
	if branch, err = wire.Query(r, "branch"); err != nil {
		return "", window, err
	}
	window, err = localWindow(r, "base_date", wire.LayoutBaseDate, "base_hour")
	return branch, window, err
}

// localWindow reads a window of the usual length from a date and an hour.
func localWindow(r *http.Request, dateField, layout, hourField string) (booking.LocalWindow, error) {
	text, err := wire.Query(r, dateField)
	if err != nil {
		return booking.LocalWindow{}, err
	}
	hour, err := wire.QueryInt(r, hourField, 0, 23)
	if err != nil {
		return booking.LocalWindow{}, err
	}
	day, ok := wire.ParseExact(layout, text, time.UTC)
	if !ok {
		return booking.LocalWindow{}, wire.Malformed(dateField)
	}
	return booking.LocalWindow{Date: booking.DateOf(day, time.UTC), Hour: hour, Hours: hoursV1}, nil
}

// slotsV2 serves GET /v2/branches/{branch}/reservations.
func (a *API) slotsV2(w http.ResponseWriter, r *http.Request) error {
	window, err := localWindow(r, "date", time.DateOnly, "baseHour")
	if err != nil {
		return err
	}
	if r.URL.Query().Has("hours") {
		if window.Hours, err = wire.QueryInt(r, "hours", 1, 24); err != nil {
			return err
		}
	}
	return a.answerLookUp(w, r, lookUp{2, chi.URLParam(r, "branch"), window}, func(view reserve.Availability) any {
		zone := view.Branch.Zone
		var body struct {
			Rooms            []wireRoom `json:"rooms"`
			UnavailableSlots struct {
				Paid          []string `json:"paid"`
				Booking       []string `json:"booking"`
				PaidMargin    []string `json:"paidMargin"`
				BookingMargin []string `json:"bookingMargin"`
				BreakTime     []string `json:"breakTime"`
				ClosedTime    []string `json:"closedTime"`
			} `json:"unavailableSlots"`
		}
		body.Rooms = wireRooms(view.Branch, view.Window)
		slots := &body.UnavailableSlots
		slots.Paid, slots.PaidMargin = wire.Slots(view.Paid, zone), wire.Slots(view.PaidMargin, zone)
		slots.Booking, slots.BookingMargin = wire.Slots(view.Booking, zone), wire.Slots(view.BookingMargin, zone)
		slots.BreakTime, slots.ClosedTime = wire.Slots(view.BreakTime, zone), wireClosed(view)
		return body
	})
}

// wireRoom is a room of the V2 look-up.
type wireRoom struct {
	RoomNo  string     `json:"roomNo"`
	Machine string     `json:"machine"`
	Grade   *string    `json:"grade"`
	Enabled bool       `json:"enabled"`
	Pricing wire.Price `json:"pricing"`

	// PricingChanges are the price lists of the window if the room has price rules: each applies until the next one.
	PricingChanges []wire.PricingChange `json:"pricingChanges,omitempty"`
}

func wireRooms(branch booking.Branch, window booking.Interval) []wireRoom {
	sorted := append([]booking.Room(nil), branch.Rooms...)
	booking.SortRooms(sorted)
	rooms := make([]wireRoom, 0, len(sorted))
	for _, room := range sorted {
		rooms = append(rooms, wireRoom{
			strconv.Itoa(room.No), room.Machine, wire.Nullable(string(room.Grade)), room.Enabled, wire.Price(room.Price),
			wire.PricingChanges(branch, room, window),
		})
	}
	return rooms
}

// wireClosed returns the slots outside opening hours, and those that a change of the clock interrupts. Pages that add up slots so offer no
// stay whose length and price are others than they seem.
func wireClosed(view reserve.Availability) []string {
	zone := view.Branch.Zone
	if len(view.InterruptedTime) == 0 {
		return wire.Slots(view.ClosedTime, zone)
	}
	list := slices.Clone(view.InterruptedTime)
	for _, slot := range view.ClosedTime {
		list = append(list, booking.Slot{Room: slot.Room, Start: booking.WallClock(slot.Start, zone)})
	}
	return wire.Slots(booking.SortSlots(list), time.UTC)
}

func wireIDTimes(slots []reserve.OccupiedSlot, zone *time.Location) []idTime {
	list := make([]idTime, 0, len(slots))
	for _, slot := range slots {
		list = append(list, idTime{wire.ReservationID(slot.ID), slot.String(zone)})
	}
	return list
}

func disabledRooms(branch booking.Branch) []string {
	rooms := []string{}
	for _, room := range branch.Rooms {
		if !room.Enabled {
			rooms = append(rooms, strconv.Itoa(room.No))
		}
	}
	return rooms
}

// calendar serves GET /v2/branches/{branch}/calendar.
func (a *API) calendar(w http.ResponseWriter, r *http.Request) error {
	const layout = "2006-01"
	month, err := wire.Query(r, "yearMonth")
	if err != nil {
		return err
	}
	first, ok := wire.ParseExact(layout, month, time.UTC)
	if !ok {
		return wire.Malformed("yearMonth")
	}
	days, err := a.Reserve.Calendar(r.Context(), chi.URLParam(r, "branch"), first.Year(), first.Month())
	if err != nil {
		return err
	}
	type date struct {
		Date   string  `json:"date"`
		Status string  `json:"status"`
		Reason *string `json:"reason"`
	}
	dates := make([]date, 0, len(days))
	for _, day := range days {
		dates = append(dates, date{day.String(), string(day.Status), wire.Nullable(day.Reason)})
	}
	return wire.WriteData(w, struct {
		YearMonth string `json:"yearMonth"`
		Dates     []date `json:"dates"`
	}{month, dates})
}
