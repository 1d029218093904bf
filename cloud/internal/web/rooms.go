package web

import (
	"fmt"
	"slices"
	"time"
)

// roomsScreen is the content of the choice of a room.
type roomsScreen struct {
	Branch         branchFacts
	Lead           string
	Day            string
	Previous, Next *dayStep
	Closed         bool
	Reason         string
	Cards          []roomCard
	Sheet          *sheet
}

// dayStep leads to another day.
type dayStep struct{ Path, Label string }

// roomCard is a room in the list of a day.
type roomCard struct {
	room
	Path    string // of the sheet; "" if nothing can be reserved
	Class   string // of a room that cannot be reserved
	Free    bool
	State   string
	From    string // the lowest price
	Runs    []run
	Profile showcase
}

// Cover returns the photo that stands for the room, or nil.
func (c roomCard) Cover() *photo {
	if len(c.Profile.Photos) == 0 {
		return nil
	}
	return &c.Profile.Photos[0]
}

func (s *site) rooms(v *screenView, shell *shellData) error {
	date, err := time.Parse(time.DateOnly, v.r.PathValue("date"))
	if err != nil {
		return ErrNoData
	}
	b, err := v.branch()
	if err != nil {
		return err
	}
	days, err := v.calendar(b.Branch, date.Format(monthLayout))
	if err != nil {
		return err
	}
	slots, err := v.slots(b, date)
	if err != nil {
		return err
	}
	profiles, err := v.profiles(b, v.read)
	if err != nil {
		return err
	}
	speech, name := shell.speech, shell.Name(b.branchFacts)
	v.Back = b.Path()
	content := roomsScreen{
		Branch: b.branchFacts, Day: speech.Date(date), Lead: name + " · " + speech.Date(date),
		Previous: stepTo(speech, b, date.AddDate(0, 0, -1), "previousDay"), Next: stepTo(speech, b, date.AddDate(0, 0, 1), "nextDayLink"),
	}
	if day := days[date.Format(time.DateOnly)]; day.Status != "available" && day.Status != "" {
		content.Closed, content.Reason = true, value(day.Reason)
	} else {
		for _, r := range slots.rooms {
			content.Cards = append(content.Cards, cardOf(speech, slots, r, profiles[r.RoomNo], dayPath(b, date)))
		}
		if r, ok := slots.room(v.Query.Get("room")); ok && r.Enabled {
			content.Sheet = sheetOf(speech, slots, r, profiles[r.RoomNo], dayPath(b, date), v.Query.Get("start"))
		}
	}
	v.Content = content
	shell.Title = speech.say("roomsPage", "branch", name, "date", speech.Date(date))
	shell.Description = speech.say("branchAbout", "branch", name)
	return s.describe(v, speech, b, &offers{slots, profiles})
}

// slots reads the slots of a day and of the following night.
func (v *screenView) slots(b openBranch, date time.Time) (daySlots, error) {
	const lookups = "/v2/branches/%s/reservations?date=%s&baseHour=0&hours=%d"
	var day, night lookup
	if err := v.read(fmt.Sprintf(lookups, b.Branch, date.Format(time.DateOnly), 24), &day); err != nil {
		return daySlots{}, err
	}
	if err := v.read(fmt.Sprintf(lookups, b.Branch, date.AddDate(0, 0, 1).Format(time.DateOnly), overnight), &night); err != nil {
		return daySlots{}, err
	}
	slots := slotsOf(date, b.now, day, night)
	v.releaseOwn(b, &slots, day, night)
	return slots, nil
}

// HoldCookie names the cookie of the time that a browser holds.
const HoldCookie = "PAY_SESSIONID"

// ownHold is the address of that time.
const ownHold = "/v2/hold"

// releaseOwn shows the time that this browser holds as free, as the browser code does: choosing it again replaces the hold. More time of a
// stay, which lies directly behind reserved time, is chosen on the key page and remains taken.
func (v *screenView) releaseOwn(b openBranch, slots *daySlots, looks ...lookup) {
	if _, err := v.r.Cookie(HoldCookie); err != nil {
		return
	}
	var held struct{ Branch, RoomNo, StartDateTime, EndDateTime string }
	data, err := v.peek(ownHold, &held)
	if err != nil || held.Branch != b.Branch {
		return // without a hold, or without an answer, all that is taken stays so
	}
	start, err := time.Parse(minuteLayout, held.StartDateTime)
	if err != nil {
		return
	}
	for _, look := range looks {
		if slices.Contains(look.UnavailableSlots["paid"], slotName(held.RoomNo, start.Add(-slotLength))) {
			return
		}
	}
	v.Carried[ownHold] = data
	for at := start; at.Format(minuteLayout) <= held.EndDateTime; at = at.Add(slotLength) { // the start of the last slot
		slots.release(held.RoomNo, at)
	}
}

// profiles reads what the rooms of a branch show, by number.
func (v *screenView) profiles(b openBranch, read func(string, any) error) (map[string]showcase, error) {
	var found struct{ Rooms []showcase }
	if err := read("/v2/branches/"+b.Branch+"/rooms", &found); err != nil {
		return nil, err
	}
	profiles := map[string]showcase{}
	for _, p := range found.Rooms {
		profiles[p.RoomNo] = p
		if len(p.Photos) > 0 && v.Image == v.s.PublicURL+"/icon-512.png" {
			v.Image = v.s.PublicURL + p.Photos[0].largest().URL
		}
	}
	return profiles, nil
}

// stepTo returns the way to another day, or nil if it cannot be booked.
func stepTo(speech speech, b openBranch, day time.Time, label string) *dayStep {
	if day.Before(b.today) || day.After(b.last) {
		return nil
	}
	return &dayStep{dayPath(b, day), speech.say(label) + " " + speech.Date(day)}
}

func cardOf(speech speech, slots daySlots, r room, p showcase, path string) roomCard {
	card := roomCard{room: r, Class: "disabled", State: speech.say("disabled"), Profile: p}
	if !r.Enabled {
		return card
	}
	card.Runs = slots.runs(r.RoomNo)
	card.Class, card.State = "full", speech.say("full")
	if !slots.date.Add(wholeDay).After(slots.now) {
		card.State = speech.say("statePast")
	}
	if start, free, ok := slots.firstFree(r); ok {
		card.Class, card.Path, card.Free = "", path+"?room="+r.RoomNo, true
		card.State = slots.freeText(speech, r.RoomNo, start, free)
	}
	if smallest, priced := r.smallest(); priced {
		card.From = speech.say("priceFrom", "length", speech.Span(smallest.length), "price", speech.Won(smallest.won))
	} else {
		card.State = speech.say("notForSale")
	}
	return card
}

// freeText describes when a room is free that is free for a time from start on: all day, for the rest of the day, only in the evening,
// or until the next reservation.
func (d daySlots) freeText(speech speech, no string, start time.Time, free time.Duration) string {
	midnight, evening := d.date.Add(wholeDay), d.date.Add(eveningHour*time.Hour)
	from, length := start.Format("15:04"), speech.Span(free)
	switch now := !start.After(d.now); {
	case d.hasReservation(no, start, midnight) && now:
		return speech.say("freeNowFor", "length", length)
	case d.hasReservation(no, start, midnight):
		return speech.say("freeFor", "from", from, "length", length)
	case now:
		return speech.say("freeOn")
	case !start.Before(evening) && d.hasReservation(no, d.firstSlot(), start):
		return speech.say("freeEvening", "from", from)
	case d.now.After(d.date) || d.hasReservation(no, d.date, start):
		return speech.say("freeFromOn", "from", from)
	default:
		return speech.say("freeAllDay")
	}
}

// sheet is the choice of a time of a room: hour, start and length, each a link.
type sheet struct {
	room
	Path    string // without the sheet
	Profile showcase
	Hours   []choiceLink
	Starts  []choiceLink
	Lengths []choiceLink
}

// choiceLink is a possible choice; it cannot be chosen without a path.
type choiceLink struct {
	Path, Label, Price string
	Chosen             bool
}

// morning is the hour that the sheet shows first on later days.
const morning = 9 * time.Hour

func sheetOf(speech speech, slots daySlots, r room, p showcase, path, chosen string) *sheet {
	view := &sheet{room: r, Path: path, Profile: p}
	link := func(start time.Time) string {
		return path + "?room=" + r.RoomNo + "&start=" + start.Format(addressLayout)
	}
	hour := func(start time.Time) string { return speech.say("hourOf", "h", start.Hour()) }
	open, starts := map[time.Time]bool{}, slots.starts(r)
	for _, start := range starts {
		open[start] = true
		if last := len(view.Hours) - 1; last < 0 || view.Hours[last].Label != hour(start) {
			view.Hours = append(view.Hours, choiceLink{Path: link(start), Label: hour(start)})
		}
	}
	if len(starts) == 0 {
		return view
	}
	at := slots.date.Add(morning)
	if !slots.date.After(slots.now) {
		at = slots.date
	}
	if clock, err := time.Parse(addressLayout, chosen); err == nil {
		at = slots.date.Add(clock.Sub(clock.Truncate(wholeDay)))
	}
	shown := starts[max(0, slices.IndexFunc(starts, func(start time.Time) bool { return !start.Before(at.Truncate(time.Hour)) }))].Truncate(time.Hour)
	for i := range view.Hours {
		view.Hours[i].Chosen = view.Hours[i].Label == hour(shown)
	}
	for start := shown; start.Before(shown.Add(time.Hour)); start = start.Add(slotLength) {
		one := choiceLink{Label: start.Format("15:04"), Chosen: chosen != "" && start.Equal(at)}
		if open[start] {
			one.Path = link(start)
		}
		view.Starts = append(view.Starts, one)
	}
	if chosen != "" && open[at] {
		for _, length := range slots.lengths(r, at) {
			view.Lengths = append(view.Lengths, choiceLink{
				Path: path + "/" + summaryPath(r.RoomNo, at, length.length), Label: speech.Span(length.length), Price: speech.Won(length.won),
			})
		}
	}
	return view
}

// offers are the rooms of a day with what they show.
type offers struct {
	slots    daySlots
	profiles map[string]showcase
}
