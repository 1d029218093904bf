package console

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/yeolda/yeolda/cloud/internal/access"
	"github.com/yeolda/yeolda/cloud/internal/account"
	"github.com/yeolda/yeolda/cloud/internal/alert"
	"github.com/yeolda/yeolda/cloud/internal/backoffice"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/httpapi/wire"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
	"github.com/yeolda/yeolda/protocol"
)

// The settings of a branch in JSON: clock times as 10:00 and up to 24:00, dates as 2026-12-25, weekdays from Sunday. An end
// that is not after its start lies on the next day.
type (
	wireClockSpan struct {
		From string `json:"from"`
		To   string `json:"to"`
	}
	wireWeekDay struct {
		Closed *bool           `json:"closed"`
		Open   []wireClockSpan `json:"open"`
		Breaks []wireClockSpan `json:"breaks"`
	}
	wireClosure struct {
		From   string  `json:"from"`
		To     string  `json:"to"`
		Reason *string `json:"reason"`
	}
	wireHoliday struct {
		Date string `json:"date"`
		Name string `json:"name"`
	}
	// A list that a change omits would clear what is stored, so a change states every field down to RemovedHolidays.
	wireSettings struct {
		Revision         *int64                      `json:"revision"`
		NameKo           *string                     `json:"nameKo"`
		NameEn           *string                     `json:"nameEn"`
		Address          *string                     `json:"address"`
		Phone            *string                     `json:"phone"`
		HorizonDays      *int                        `json:"bookingHorizonDays"`
		Week             []wireWeekDay               `json:"week"`
		Closures         []wireClosure               `json:"closures"`
		ClosedOnHolidays *bool                       `json:"closedOnHolidays"`
		OpenHolidays     []string                    `json:"openHolidays"`
		ExtraHolidays    []wireHoliday               `json:"extraHolidays"`
		RemovedHolidays  []string                    `json:"removedHolidays"`
		Location         optional[*booking.Location] `json:"location"` // a change that omits it keeps it
		wireRefundRules
		Doors []wireKeypad `json:"doors"` // of a request: null leaves them as they are
	}
	wireKeypad struct {
		Device string `json:"device"`
		Keypad string `json:"keypad"`
	}
)

// alertContacts returns the contacts of a branch, empty for the code of the headquarters. Addresses are hidden from an
// administrator who may change nothing: those of webhooks are secrets.
func (c *Console) alertContacts(r *http.Request, branch string) ([]alert.Contact, error) {
	list, err := c.Backoffice.Alerts.Contacts(r.Context(), branch)
	if err != nil {
		return nil, err
	}
	list = append([]alert.Contact{}, list...)
	for i := range list {
		list[i].Kinds = append([]alert.Kind{}, list[i].Kinds...) // [], never null
		if !maySeeAddresses(r) {
			list[i].To = ""
		}
	}
	return list, nil
}

// maySeeAddresses reports whether the client may see addresses that contain a secret: those that may change them.
func maySeeAddresses(r *http.Request) bool {
	p := wire.Principal(r)
	return p.MayChange() && p.Has(account.ScopeBook)
}

func wireClockSpans(spans []booking.ClockSpan) []wireClockSpan {
	list := make([]wireClockSpan, 0, len(spans))
	for _, s := range spans {
		from, to, _ := strings.Cut(s.String(), "-")
		list = append(list, wireClockSpan{from, to})
	}
	return list
}

func wireDates(dates []booking.Date) []string {
	list := make([]string, 0, len(dates))
	for _, d := range dates {
		list = append(list, d.String())
	}
	return list
}

func toWireSettings(b booking.Branch) wireSettings {
	s := wireSettings{
		Revision: &b.Revision, NameKo: &b.NameKo, NameEn: &b.NameEn, Address: &b.Address, Phone: &b.Phone, HorizonDays: new(int(b.Horizon / (24 * time.Hour))),
		Week: []wireWeekDay{}, Closures: []wireClosure{}, ClosedOnHolidays: &b.Schedule.ClosedOnHolidays,
		OpenHolidays: wireDates(b.Schedule.OpenHolidays), ExtraHolidays: []wireHoliday{}, RemovedHolidays: wireDates(b.Schedule.RemovedHolidays),
		Doors: []wireKeypad{},
	}
	for _, device := range b.Devices() {
		s.Doors = append(s.Doors, wireKeypad{device, string(b.Keypad(device))})
	}
	for _, d := range b.Schedule.Week {
		s.Week = append(s.Week, wireWeekDay{new(d.Closed), wireClockSpans(d.Open), wireClockSpans(d.Breaks)})
	}
	for _, c := range b.Schedule.Closures {
		s.Closures = append(s.Closures, wireClosure{c.From.String(), c.To.String(), new(c.Reason)})
	}
	for date, name := range b.Schedule.ExtraHolidays {
		s.ExtraHolidays = append(s.ExtraHolidays, wireHoliday{date.String(), name})
	}
	s.Location.value = b.Location
	s.wireRefundRules = toWireRefundRules(b)
	return s
}

// ShowSettings serves GET /v2/admin/branches/{branch}/settings.
func (c *Console) ShowSettings(w http.ResponseWriter, r *http.Request) error {
	branch, err := c.branch(r)
	if err != nil {
		return err
	}
	listings, err := c.Backoffice.Listings(r.Context(), branch.ID)
	if err != nil {
		return err
	}
	proofs, err := c.Backoffice.DoorProofs(r.Context(), branch.ID)
	if err != nil {
		return err
	}
	type roomSettings struct {
		timelineRoom
		Lock     string `json:"lock"`
		DoorSeen bool   `json:"doorSeen"`
		HasPIN   bool   `json:"hasPin"`
	}
	rooms := make([]roomSettings, 0, len(branch.Rooms))
	for _, room := range branch.Rooms {
		proof := proofs[room.Device()]
		rooms = append(rooms, roomSettings{wireTimelineRoom(room), string(room.Lock), proof.Reported, proof.PIN})
	}
	type listing struct {
		ID         string  `json:"id"`
		Channel    string  `json:"channel"`
		Partner    string  `json:"partner"`
		ExternalID string  `json:"externalId"`
		RoomNo     string  `json:"roomNo"`
		FeedURL    string  `json:"feedUrl"`
		FetchedAt  *string `json:"fetchedAt"`
		FetchError string  `json:"fetchError"`
		HasExport  bool    `json:"hasExport"`
		Enabled    bool    `json:"enabled"`
	}
	channels := []listing{}
	secrets := maySeeAddresses(r)
	for _, l := range listings {
		if !secrets {
			l.FeedURL = "" // it contains a secret
		}
		channels = append(channels, listing{
			strconv.Itoa(l.ID), l.Channel, l.Partner, l.ExternalID, strconv.Itoa(l.RoomNo), l.FeedURL, l.FetchedAt, l.FetchError, l.HasExport, l.Enabled,
		})
	}
	contacts, err := c.alertContacts(r, branch.Code)
	if err != nil {
		return err
	}
	return wire.WriteData(w, struct {
		wireSettings
		Rooms         []roomSettings  `json:"rooms"`
		Channels      []listing       `json:"channels"`
		AlertContacts []alert.Contact `json:"alertContacts"`
	}{toWireSettings(branch), rooms, channels, contacts})
}

// ChangeSettings serves PUT /v2/admin/branches/{branch}/settings: everything except rooms and channels. revision is the one
// that the client read; if the branch has changed since, the answer is 409. It is 409 with the conflicts, too, if the new
// hours exclude live reservations and acceptConflicts is not set.
func (c *Console) ChangeSettings(w http.ResponseWriter, r *http.Request) error {
	branch, err := c.branch(r)
	if err != nil {
		return err
	}
	var body struct {
		wireSettings
		AcceptConflicts bool             `json:"acceptConflicts"`
		AlertContacts   *[]alert.Contact `json:"alertContacts"` // nil: unchanged
	}
	if err := wire.Decode(r, &body); err != nil {
		return err
	}
	if err := body.apply(&branch); err != nil {
		return err
	}
	err = c.Backoffice.ChangeSettings(r.Context(), backoffice.SettingsChange{
		Branch: branch, Contacts: body.AlertContacts, Despite: body.AcceptConflicts,
	}, actor(r))
	if conflict := new(backoffice.ScheduleConflict); errors.As(err, &conflict) { // the answer contains guests' contacts
		return cmp.Or(c.Backoffice.Viewed(r.Context(), actor(r), "settings.conflicts", branch.Code, branch.ID), err)
	}
	if err != nil {
		return err
	}
	return wire.WriteData(w, nil)
}

// apply writes the settings into a branch. Bounds are checked by booking.Branch.Validate.
func (s wireSettings) apply(b *booking.Branch) (err error) {
	for _, field := range []struct {
		name string
		from *string
		to   *string
		max  int
	}{
		{"nameKo", s.NameKo, &b.NameKo, booking.MaxBranchName}, {"nameEn", s.NameEn, &b.NameEn, booking.MaxBranchName},
		{"address", s.Address, &b.Address, booking.MaxAddress}, {"phone", s.Phone, &b.Phone, booking.MaxPhone},
	} {
		if field.from == nil {
			return wire.Missing(field.name)
		}
		if *field.to, err = wire.OptionalText(field.name, field.from, field.max); err != nil {
			return err
		}
	}
	if s.Revision == nil {
		return wire.Missing("revision")
	}
	horizon, err := wire.Whole("bookingHorizonDays", s.HorizonDays, 1, booking.MaxHorizonDays)
	if err != nil {
		return err
	}
	for _, door := range s.Doors {
		b.Keypads = b.WithKeypad(door.Device, booking.Keypad(door.Keypad))
	}
	b.Revision, b.Horizon = *s.Revision, time.Duration(horizon)*24*time.Hour
	if s.Location.given {
		b.Location = s.Location.value
	}
	if err := s.wireRefundRules.apply(b); err != nil {
		return err
	}
	b.Schedule, err = s.schedule()
	return err
}

func (s wireSettings) schedule() (schedule booking.Schedule, err error) {
	for _, field := range []struct {
		name    string
		missing bool
	}{
		{"week", s.Week == nil}, {"closures", s.Closures == nil}, {"closedOnHolidays", s.ClosedOnHolidays == nil},
		{"openHolidays", s.OpenHolidays == nil}, {"extraHolidays", s.ExtraHolidays == nil}, {"removedHolidays", s.RemovedHolidays == nil},
	} {
		if field.missing {
			return schedule, wire.Missing(field.name)
		}
	}
	schedule.ClosedOnHolidays = *s.ClosedOnHolidays
	if len(s.Week) != len(schedule.Week) {
		return schedule, wire.Malformed("week")
	}
	for i, d := range s.Week {
		if d.Closed == nil || d.Open == nil || d.Breaks == nil {
			return schedule, wire.Malformed("week")
		}
		day := booking.Day{Closed: *d.Closed}
		if day.Open, err = clockSpans("open", time.Weekday(i), d.Open); err != nil {
			return schedule, err
		}
		if day.Breaks, err = clockSpans("breaks", time.Weekday(i), d.Breaks); err != nil {
			return schedule, err
		}
		schedule.Week[i] = day
	}
	if schedule.Closures, err = s.closures(); err != nil {
		return schedule, err
	}
	if schedule.OpenHolidays, err = dates("openHolidays", s.OpenHolidays); err != nil {
		return schedule, err
	}
	if schedule.RemovedHolidays, err = dates("removedHolidays", s.RemovedHolidays); err != nil {
		return schedule, err
	}
	schedule.ExtraHolidays, err = s.extraHolidays()
	return schedule, err
}

func (s wireSettings) closures() (closures []booking.Closure, err error) {
	for _, w := range s.Closures {
		from, fromErr := booking.ParseDate(w.From)
		to, toErr := booking.ParseDate(w.To)
		if fromErr != nil || toErr != nil {
			return nil, wire.Malformed("closures")
		}
		c := booking.Closure{From: from, To: to}
		if w.Reason == nil {
			return nil, wire.Missing("reason")
		}
		if c.Reason, err = wire.OptionalText("reason", w.Reason, booking.MaxReason); err != nil {
			return nil, err
		}
		closures = append(closures, c)
	}
	return closures, nil
}

func (s wireSettings) extraHolidays() (map[booking.Date]string, error) {
	if len(s.ExtraHolidays) == 0 {
		return nil, nil
	}
	holidays := map[booking.Date]string{}
	for _, h := range s.ExtraHolidays {
		date, err := booking.ParseDate(h.Date)
		if err != nil {
			return nil, wire.Malformed("extraHolidays")
		}
		if holidays[date], err = wire.Text("holidayName", &h.Name, booking.MaxReason); err != nil {
			return nil, err
		}
	}
	return holidays, nil
}

func dates(field string, texts []string) (list []booking.Date, err error) {
	for _, text := range texts {
		date, err := booking.ParseDate(text)
		if err != nil {
			return nil, wire.Malformed(field)
		}
		list = append(list, date)
	}
	return list, nil
}

// clockSpans reads the spans of a day. An end that is not after its start lies on the next day.
func clockSpans(field string, weekday time.Weekday, spans []wireClockSpan) (list []booking.ClockSpan, err error) {
	for _, s := range spans {
		span, err := booking.ParseClockSpan(s.From, s.To)
		if err != nil {
			return nil, &booking.InvalidError{Field: field, Weekday: &weekday, Problem: err.Error()}
		}
		list = append(list, span)
	}
	slices.SortFunc(list, func(a, b booking.ClockSpan) int { return a.From - b.From })
	return list, nil
}

// pathRoom reads the room number of the path.
func pathRoom(r *http.Request) (int, error) {
	no, err := wire.Number(chi.URLParam(r, "room"))
	if err != nil || no < 1 || no > booking.MaxRoomNo {
		return 0, wire.OutOfRange("room", 1, booking.MaxRoomNo)
	}
	return no, nil
}

// ChangeRoom serves PUT /v2/admin/branches/{branch}/rooms/{room}: machine, grade, prices, turnover and whether the room has a lock.
// An absent field of an existing room is unchanged. A new number adds a room, disabled; create refuses any other.
func (c *Console) ChangeRoom(w http.ResponseWriter, r *http.Request) error {
	branch, err := c.branch(r)
	if err != nil {
		return err
	}
	no, err := pathRoom(r)
	if err != nil {
		return err
	}
	old, exists := branch.Room(no)
	body := struct {
		Create  bool           `json:"create"`
		Machine *string        `json:"machine"`
		Grade   *booking.Grade `json:"grade"`
		Min10   *int           `json:"min10"`
		Min30   *int           `json:"min30"`
		Min60   *int           `json:"min60"`
		NoLock  bool           `json:"noLock"`

		TurnoverMinutes *int `json:"turnoverMinutes"` // nil: unchanged
	}{
		false, &old.Machine, &old.Grade, clone(old.Price.Min10), clone(old.Price.Min30), clone(old.Price.Min60),
		old.Lock == booking.LockNone, nil,
	}
	if err := wire.Decode(r, &body); err != nil {
		return err
	}
	if body.Create && exists {
		return backoffice.ErrRoomExists
	}
	room := booking.Room{No: no, Price: booking.Price{Min10: body.Min10, Min30: body.Min30, Min60: body.Min60}}
	if room.Machine, err = wire.OptionalText("machine", body.Machine, booking.MaxMachine); err != nil {
		return err
	}
	if body.Grade != nil {
		room.Grade = *body.Grade
	}
	if body.TurnoverMinutes != nil {
		if room.TurnoverMinutes = *body.TurnoverMinutes; room.TurnoverMinutes == 0 {
			return &booking.InvalidError{Field: "turnoverMinutes", Problem: "0; expected 10 to 60"}
		}
	}
	err = c.Backoffice.ChangeRoom(r.Context(), branch, backoffice.RoomChange{Room: room, NoLock: body.NoLock}, actor(r))
	if conflict := new(backoffice.TurnoverConflict); errors.As(err, &conflict) { // the answer contains guests' contacts
		return cmp.Or(c.Backoffice.Viewed(r.Context(), actor(r), "room.conflicts", branch.Code+"/"+strconv.Itoa(no), branch.ID), err)
	}
	if err != nil {
		return err
	}
	return wire.WriteData(w, nil)
}

// clone returns a copy of a price that a request may overwrite. nil: not sold.
func clone(price *int) *int {
	if price == nil {
		return nil
	}
	return new(*price)
}

// DeleteRoom serves DELETE /v2/admin/branches/{branch}/rooms/{room}: a disabled room that was never reserved.
func (c *Console) DeleteRoom(w http.ResponseWriter, r *http.Request) error {
	branch, err := c.branch(r)
	if err != nil {
		return err
	}
	no, err := pathRoom(r)
	if err != nil {
		return err
	}
	if _, ok := branch.Room(no); !ok {
		return reserve.ErrNoRoom
	}
	if err := c.Backoffice.DeleteRoom(r.Context(), branch, no, actor(r)); err != nil {
		return err
	}
	return wire.WriteData(w, nil)
}

// SetPIN serves PUT /v2/admin/branches/{branch}/doors/{device}/pin: the PIN that was set at a door's keypad. device is front,
// front_<n> or room_<n>.
func (c *Console) SetPIN(w http.ResponseWriter, r *http.Request) error {
	branch, err := c.branch(r)
	if err != nil {
		return err
	}
	device := chi.URLParam(r, "device")
	if !hasDevice(branch, device) {
		return access.ErrUnknownRoom
	}
	var body struct {
		PIN *string `json:"pin"`
	}
	if err := wire.Decode(r, &body); err != nil {
		return err
	}
	pin, err := wire.Text("pin", body.PIN, 12)
	if err != nil {
		return err
	}
	if err := c.Backoffice.SetPIN(r.Context(), branch, pinDevice(device), pin, actor(r)); err != nil {
		return err
	}
	return wire.WriteData(w, nil)
}

// hasDevice reports whether a branch has PINs for a device.
func hasDevice(branch booking.Branch, device string) bool {
	return device == string(protocol.DoorFront) || slices.Contains(branch.Devices(), device)
}

// AddListing serves POST /v2/admin/branches/{branch}/channels: offers a room on a partner's calendar.
func (c *Console) AddListing(w http.ResponseWriter, r *http.Request) error {
	branch, err := c.branch(r)
	if err != nil {
		return err
	}
	var body struct {
		Partner *string `json:"partner"`
		RoomNo  *string `json:"roomNo"`
		FeedURL *string `json:"feedUrl"`
	}
	if err := wire.Decode(r, &body); err != nil {
		return err
	}
	partner, err := wire.Text("partner", body.Partner, 60)
	if err != nil {
		return err
	}
	number, err := wire.Text("roomNo", body.RoomNo, 4)
	if err != nil {
		return err
	}
	no, err := strconv.Atoi(number)
	if err != nil {
		return wire.Malformed("roomNo")
	}
	room, ok := branch.Room(no)
	if !ok {
		return wire.UnknownValue("roomNo")
	}
	feed, err := wire.OptionalText("feedUrl", body.FeedURL, 500)
	if err != nil {
		return err
	}
	if err := c.Backoffice.AddListing(r.Context(), branch.Code, backoffice.NewListing{Partner: partner, Room: room, FeedURL: feed}, actor(r)); err != nil {
		return err
	}
	return wire.WriteData(w, nil)
}

func listingID(r *http.Request) (int, error) {
	id, err := strconv.Atoi(chi.URLParam(r, "listing"))
	if err != nil || id < 1 || id > math.MaxInt32 {
		return 0, backoffice.ErrNoListing
	}
	return id, nil
}

// SwitchListing serves PATCH /v2/admin/branches/{branch}/channels/{listing}.
func (c *Console) SwitchListing(w http.ResponseWriter, r *http.Request) error {
	branch, err := c.branch(r)
	if err != nil {
		return err
	}
	enabled, err := wire.DecodeEnabled(r)
	if err != nil {
		return err
	}
	id, err := listingID(r)
	if err != nil {
		return err
	}
	if err := c.Backoffice.SwitchListing(r.Context(), branch, id, enabled, actor(r)); err != nil {
		return err
	}
	return wire.WriteData(w, nil)
}

// ExportListing serves POST /v2/admin/branches/{branch}/channels/{listing}/export: a new link at which the partner reads our
// reservations. The link is in this answer only, and the previous one stops working.
func (c *Console) ExportListing(w http.ResponseWriter, r *http.Request) error {
	branch, err := c.branch(r)
	if err != nil {
		return err
	}
	id, err := listingID(r)
	if err != nil {
		return err
	}
	room, token, err := c.Backoffice.NewExport(r.Context(), branch, id, actor(r))
	if err != nil {
		return err
	}
	return wire.WriteData(w, map[string]string{
		"url": fmt.Sprintf("%s/ical/%s/%d.ics?token=%s", c.PublicURL, branch.Code, room, token),
	})
}
