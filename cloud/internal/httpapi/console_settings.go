package httpapi

import (
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/httpapi/wire"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// The settings of a branch on the wire: clock times as 10:00, up to 24:00, dates as 2026-12-25, weekdays from Sunday.
type (
	wireClockSpan struct {
		From string `json:"from"`
		To   string `json:"to"`
	}
	wireWeekDay struct {
		Closed bool            `json:"closed"`
		Open   []wireClockSpan `json:"open"`
		Breaks []wireClockSpan `json:"breaks"`
	}
	wireClosure struct {
		From   string `json:"from"`
		To     string `json:"to"`
		Reason string `json:"reason"`
	}
	wireHoliday struct {
		Date string `json:"date"`
		Name string `json:"name"`
	}
	wireSettings struct {
		Revision         int64         `json:"revision"`
		NameKo           string        `json:"nameKo"`
		NameEn           string        `json:"nameEn"`
		Address          string        `json:"address"`
		Phone            string        `json:"phone"`
		HorizonDays      int           `json:"bookingHorizonDays"`
		Week             []wireWeekDay `json:"week"`
		Closures         []wireClosure `json:"closures"`
		ClosedOnHolidays bool          `json:"closedOnHolidays"`
		OpenHolidays     []string      `json:"openHolidays"`
		ExtraHolidays    []wireHoliday `json:"extraHolidays"`
		RemovedHolidays  []string      `json:"removedHolidays"`
	}
)

func wireClock(minutes int) string { return fmt.Sprintf("%02d:%02d", minutes/60, minutes%60) }

func wireClockSpans(spans []booking.ClockSpan) []wireClockSpan {
	list := make([]wireClockSpan, 0, len(spans))
	for _, s := range spans {
		list = append(list, wireClockSpan{wireClock(s.From), wireClock(s.To)})
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
		Revision: b.Revision, NameKo: b.NameKo, NameEn: b.NameEn, Address: b.Address, Phone: b.Phone, HorizonDays: int(b.Horizon / (24 * time.Hour)),
		Week: []wireWeekDay{}, Closures: []wireClosure{}, ClosedOnHolidays: b.Schedule.ClosedOnHolidays,
		OpenHolidays: wireDates(b.Schedule.OpenHolidays), ExtraHolidays: []wireHoliday{}, RemovedHolidays: wireDates(b.Schedule.RemovedHolidays),
	}
	for _, d := range b.Schedule.Week {
		s.Week = append(s.Week, wireWeekDay{d.Closed, wireClockSpans(d.Open), wireClockSpans(d.Breaks)})
	}
	for _, c := range b.Schedule.Closures {
		s.Closures = append(s.Closures, wireClosure{c.From.String(), c.To.String(), c.Reason})
	}
	for date, name := range b.Schedule.ExtraHolidays {
		s.ExtraHolidays = append(s.ExtraHolidays, wireHoliday{date.String(), name})
	}
	return s
}

// showSettings is GET /v2/admin/branches/{branch}/settings.
func (a *API) showSettings(w http.ResponseWriter, r *http.Request) error {
	branch, err := a.branchInScope(r)
	if err != nil {
		return err
	}
	listings, err := postgres.ListingsOf(r.Context(), a.DB.Pool, branch.ID)
	if err != nil {
		return err
	}
	rooms := make([]timelineRoom, 0, len(branch.Rooms))
	for _, room := range branch.Rooms {
		rooms = append(rooms, wireTimelineRoom(room))
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
	for _, l := range listings {
		channels = append(channels, listing{
			strconv.Itoa(l.ID), l.Channel, l.Partner, l.ExternalID, strconv.Itoa(l.RoomNo), l.FeedURL, l.FetchedAt, l.FetchError, l.HasExport, l.Enabled,
		})
	}
	return wire.WriteData(w, struct {
		wireSettings
		Rooms    []timelineRoom `json:"rooms"`
		Channels []listing      `json:"channels"`
	}{toWireSettings(branch), rooms, channels})
}

// changeSettings is PUT /v2/admin/branches/{branch}/settings: all of them but rooms and channels. revision is the one
// that was read; if somebody has changed the branch since, nothing is changed. Reservations that exist stay.
func (a *API) changeSettings(w http.ResponseWriter, r *http.Request) error {
	branch, err := a.branchInScope(r)
	if err != nil {
		return err
	}
	var body wireSettings
	if err := wire.Decode(r, &body); err != nil {
		return err
	}
	if err := body.apply(&branch); err != nil {
		return err
	}
	if err := postgres.EditBranch(r.Context(), a.DB.Pool, branch); err != nil {
		return err
	}
	return a.done(w, r, branch.Code, "settings.change", branch.Code, nil)
}

// apply writes the settings into a branch.
func (s wireSettings) apply(b *booking.Branch) (err error) {
	for _, field := range []struct {
		name string
		from string
		to   *string
		max  int
	}{{"nameKo", s.NameKo, &b.NameKo, 100}, {"nameEn", s.NameEn, &b.NameEn, 100}, {"address", s.Address, &b.Address, 200}, {"phone", s.Phone, &b.Phone, 30}} {
		if *field.to, err = wire.OptionalText(field.name, &field.from, field.max); err != nil {
			return err
		}
	}
	if _, err := wire.Whole("bookingHorizonDays", &s.HorizonDays, 1, 366); err != nil {
		return err
	}
	b.Revision, b.Horizon = s.Revision, time.Duration(s.HorizonDays)*24*time.Hour
	schedule := booking.Schedule{ClosedOnHolidays: s.ClosedOnHolidays}
	if len(s.Week) != 7 || len(s.Closures) > 200 || len(s.ExtraHolidays) > 100 {
		return wire.Malformed("week")
	}
	for i, d := range s.Week {
		open, err := clockSpans("open", d.Open)
		if err != nil {
			return err
		}
		breaks, err := clockSpans("breaks", d.Breaks)
		if err != nil {
			return err
		}
		schedule.Week[i] = booking.Day{Closed: d.Closed, Open: open, Breaks: breaks}
	}
	for _, c := range s.Closures {
		from, fromErr := booking.ParseDate(c.From)
		to, toErr := booking.ParseDate(c.To)
		if fromErr != nil || toErr != nil || to.Before(from) {
			return wire.Malformed("closures")
		}
		reason, err := wire.OptionalText("reason", &c.Reason, 100)
		if err != nil {
			return err
		}
		schedule.Closures = append(schedule.Closures, booking.Closure{From: from, To: to, Reason: reason})
	}
	if schedule.OpenHolidays, err = dates("openHolidays", s.OpenHolidays); err != nil {
		return err
	}
	if schedule.RemovedHolidays, err = dates("removedHolidays", s.RemovedHolidays); err != nil {
		return err
	}
	for _, holiday := range s.ExtraHolidays {
		date, err := booking.ParseDate(holiday.Date)
		if err != nil {
			return wire.Malformed("extraHolidays")
		}
		name, err := wire.Text("holidayName", &holiday.Name, 100)
		if err != nil {
			return err
		}
		if schedule.ExtraHolidays == nil {
			schedule.ExtraHolidays = map[booking.Date]string{}
		}
		schedule.ExtraHolidays[date] = name
	}
	b.Schedule = schedule
	return nil
}

func dates(field string, texts []string) (list []booking.Date, err error) {
	if len(texts) > 100 {
		return nil, wire.Malformed(field)
	}
	for _, text := range texts {
		date, err := booking.ParseDate(text)
		if err != nil {
			return nil, wire.Malformed(field)
		}
		list = append(list, date)
	}
	return list, nil
}

// clockSpans reads spans of a day: on the marks of slots, in order, none touching another.
func clockSpans(field string, spans []wireClockSpan) (list []booking.ClockSpan, err error) {
	last := -1
	for _, s := range spans {
		from, fromOK := clockMinutes(s.From)
		to, toOK := clockMinutes(s.To)
		if !fromOK || !toOK || to <= from || from <= last || len(list) == 8 {
			return nil, wire.Malformed(field)
		}
		list, last = append(list, booking.ClockSpan{From: from, To: to}), to
	}
	return list, nil
}

func clockMinutes(text string) (int, bool) {
	hour, minute, found := strings.Cut(text, ":")
	h, hErr := strconv.Atoi(hour)
	m, mErr := strconv.Atoi(minute)
	n := h*60 + m
	return n, found && hErr == nil && mErr == nil && h >= 0 && m >= 0 && m < 60 && n <= 24*60 && n%10 == 0
}

// changeRoom is PUT /v2/admin/branches/{branch}/rooms/{room}: machine, grade and prices; a number that is not there yet
// becomes a room.
func (a *API) changeRoom(w http.ResponseWriter, r *http.Request) error {
	branch, err := a.branchInScope(r)
	if err != nil {
		return err
	}
	no, err := strconv.Atoi(chi.URLParam(r, "room"))
	if err != nil || no < 1 || no > 9999 {
		return wire.OutOfRange("room", 1, 9999)
	}
	var body struct {
		Machine *string `json:"machine"`
		Grade   *string `json:"grade"`
		Min10   *int    `json:"min10"`
		Min30   *int    `json:"min30"`
		Min60   *int    `json:"min60"`
	}
	if err := wire.Decode(r, &body); err != nil {
		return err
	}
	room := booking.Room{No: no, Price: booking.Price{Min10: body.Min10, Min30: body.Min30, Min60: body.Min60}}
	if room.Machine, err = wire.OptionalText("machine", body.Machine, 100); err != nil {
		return err
	}
	for _, won := range []*int{body.Min10, body.Min30, body.Min60} {
		if won != nil && (*won < 100 || *won > 10_000_000) {
			return wire.OutOfRange("price", 100, 10_000_000)
		}
	}
	if body.Grade != nil {
		room.Grade = booking.Grade(*body.Grade)
	}
	if !room.Grade.Valid() {
		return wire.UnknownValue("grade")
	}
	if err := postgres.EditRoom(r.Context(), a.DB.Pool, branch.ID, room); err != nil {
		return err
	}
	return a.done(w, r, branch.Code, "room.change", branch.Code+"/"+strconv.Itoa(no), map[string]any{"min10": body.Min10, "min30": body.Min30, "min60": body.Min60})
}

// addListing is POST /v2/admin/branches/{branch}/channels: a room on a partner's calendar.
func (a *API) addListing(w http.ResponseWriter, r *http.Request) error {
	branch, err := a.branchInScope(r)
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
	if parsed, err := url.Parse(feed); feed != "" && (err != nil || parsed.Scheme != "https" || parsed.Host == "") {
		return wire.Malformed("feedUrl")
	}
	if err := postgres.AddListing(r.Context(), a.DB.Pool, room.ID, partner, branch.Code+"-"+number, feed); err != nil {
		return err
	}
	return a.done(w, r, branch.Code, "channel.add", partner, map[string]any{"room": no})
}

func listingID(r *http.Request) (int, error) {
	id, err := strconv.Atoi(chi.URLParam(r, "listing"))
	if err != nil || id < 1 {
		return 0, postgres.ErrNoListing
	}
	return id, nil
}

// switchListing is PATCH /v2/admin/branches/{branch}/channels/{listing}.
func (a *API) switchListing(w http.ResponseWriter, r *http.Request) error {
	branch, err := a.branchInScope(r)
	if err != nil {
		return err
	}
	var body struct {
		Enabled *bool `json:"enabled"`
	}
	if err := wire.Decode(r, &body); err != nil {
		return err
	}
	if body.Enabled == nil {
		return wire.Missing("enabled")
	}
	id, err := listingID(r)
	if err != nil {
		return err
	}
	if err := postgres.SwitchListing(r.Context(), a.DB.Pool, branch.ID, id, *body.Enabled); err != nil {
		return err
	}
	return a.done(w, r, branch.Code, "channel.switch", strconv.Itoa(id), map[string]any{"enabled": *body.Enabled})
}

// exportListing is POST /v2/admin/branches/{branch}/channels/{listing}/export: a new link at which the partner reads our
// reservations. It is in this answer and nowhere else; the one before is worth nothing any more.
func (a *API) exportListing(w http.ResponseWriter, r *http.Request) error {
	branch, err := a.branchInScope(r)
	if err != nil {
		return err
	}
	id, err := listingID(r)
	if err != nil {
		return err
	}
	token := rand.Text()
	hash := sha256.Sum256([]byte(token))
	room, err := postgres.SetExportToken(r.Context(), a.DB.Pool, branch.ID, id, hash[:])
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-store")
	return a.done(w, r, branch.Code, "channel.export", strconv.Itoa(id), nil, map[string]string{
		"url": fmt.Sprintf("%s/ical/%s/%d.ics?token=%s", a.Site.PublicURL, branch.Code, room, token),
	})
}
