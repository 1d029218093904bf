package booking

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Limits of settings, the same for the console and for branch files. Texts are counted in characters.
const (
	MaxBranchName  = 100
	MaxAddress     = 200
	MaxPhone       = 30
	MaxMachine     = 100
	MaxReason      = 100 // of closures and names of holidays
	MaxHorizonDays = 366
	MaxRoomNo      = 9999
	MaxSpans       = 8 // of opening hours or breaks on one day
	MaxClosures    = 200
	MaxHolidays    = 100 // of each list

	// The provider takes no payment below 100 won; the upper limit catches typing errors.
	MinPrice = 100
	MaxPrice = 10_000_000
)

// An InvalidError reports a setting that no branch may have. It is an [ErrInvalid].
type InvalidError struct {
	Field   string        // as the interface spells it
	Weekday *time.Weekday // of opening hours and breaks
	Problem string
}

func (e *InvalidError) Error() string {
	where := e.Field
	if e.Weekday != nil {
		where = e.Weekday.String() + ", " + where
	}
	return ErrInvalid.Error() + ": " + where + ": " + e.Problem
}

func (e *InvalidError) Unwrap() error { return ErrInvalid }

func invalid(field, format string, args ...any) error {
	return &InvalidError{Field: field, Problem: fmt.Sprintf(format, args...)}
}

// Validate returns an [InvalidError] for the first setting of the branch or of its rooms that is out of bounds.
func (b Branch) Validate() error {
	for _, text := range []struct {
		field, value string
		max          int
		required     bool
	}{
		{"nameKo", b.NameKo, MaxBranchName, true}, {"nameEn", b.NameEn, MaxBranchName, true},
		{"address", b.Address, MaxAddress, false}, {"phone", b.Phone, MaxPhone, false},
	} {
		switch {
		case text.required && strings.TrimSpace(text.value) == "":
			return invalid(text.field, "it is empty")
		case utf8.RuneCountInString(text.value) > text.max:
			return invalid(text.field, "it has more than %d characters", text.max)
		}
	}
	if err := CheckPhone(b.Phone); err != nil {
		return err
	}
	if days := b.Horizon / (24 * time.Hour); days < 1 || days > MaxHorizonDays {
		return invalid("bookingHorizonDays", "%d; expected 1 to %d", days, MaxHorizonDays)
	}
	for _, room := range b.Rooms {
		if err := room.Validate(); err != nil {
			return err
		}
	}
	if b.Location != nil {
		if err := b.Location.Validate(); err != nil {
			return err
		}
	}
	if err := b.RefundPolicy.Validate(); err != nil {
		return err
	}
	if err := b.Compensation.Validate(); err != nil {
		return err
	}
	return b.Schedule.Validate()
}

// ValidateDoors returns an [InvalidError] for a keypad of a door that the branch does not have. Rooms must be loaded.
func (b Branch) ValidateDoors() error { return b.checkKeypads() }

// CheckPhone returns an [InvalidError] for a text that is not a phone number.
func CheckPhone(phone string) error {
	if strings.Trim(FoldPhone(phone), "0123456789-+() ") != "" {
		return invalid("phone", "%q; expected digits and hyphens", phone)
	}
	return nil
}

// Validate returns an [InvalidError] for the first property of the room that is out of bounds.
func (r Room) Validate() error {
	switch {
	case r.No < 1 || r.No > MaxRoomNo:
		return invalid("room", "%d; expected 1 to %d", r.No, MaxRoomNo)
	case utf8.RuneCountInString(r.Machine) > MaxMachine:
		return invalid("machine", "it has more than %d characters", MaxMachine)
	case !r.Grade.Valid():
		return invalid("grade", "%q; expected Stella, Crystal, Superb, Premium, Gold, Standard or Normal", r.Grade)
	case r.TurnoverMinutes != 0 && (r.Margin() != time.Duration(r.TurnoverMinutes)*time.Minute || r.Margin() > MaxMargin):
		return invalid("turnoverMinutes", "%d; expected 10 to 60", r.TurnoverMinutes)
	}
	if err := r.Price.Validate(); err != nil {
		return err
	}
	return validatePriceRules(r.PriceRules)
}

// Validate returns an [InvalidError] for a tier that is out of bounds.
func (p Price) Validate() error {
	for _, won := range []*int{p.Min10, p.Min30, p.Min60} {
		if won != nil && (*won < MinPrice || *won > MaxPrice) {
			return invalid("price", "%d; expected %d to %d", *won, MinPrice, MaxPrice)
		}
	}
	return nil
}

// Validate returns an [InvalidError] for the first span, closure or holiday that is out of bounds. Spans begin on their
// day, last at most 24 hours, lie on ten-minute marks so that no slot is half open, and overlap neither each other nor
// those of the next day.
func (s Schedule) Validate() error {
	if err := s.validateSpans("open", func(d Day) []ClockSpan { return d.Open }); err != nil {
		return err
	}
	if err := s.validateSpans("breaks", func(d Day) []ClockSpan { return d.Breaks }); err != nil {
		return err
	}
	if len(s.Closures) > MaxClosures {
		return invalid("closures", "more than %d", MaxClosures)
	}
	for _, c := range s.Closures {
		switch {
		case c.To.Before(c.From):
			return invalid("closures", "it ends on %s, before it begins on %s", c.To, c.From)
		case utf8.RuneCountInString(c.Reason) > MaxReason:
			return invalid("reason", "it has more than %d characters", MaxReason)
		}
	}
	for field, count := range map[string]int{
		"openHolidays": len(s.OpenHolidays), "extraHolidays": len(s.ExtraHolidays), "removedHolidays": len(s.RemovedHolidays),
	} {
		if count > MaxHolidays {
			return invalid(field, "more than %d", MaxHolidays)
		}
	}
	for _, name := range s.ExtraHolidays {
		if strings.TrimSpace(name) == "" || utf8.RuneCountInString(name) > MaxReason {
			return invalid("holidayName", "expected 1 to %d characters", MaxReason)
		}
	}
	return nil
}

func (s Schedule) validateSpans(field string, spans func(Day) []ClockSpan) error {
	for i, day := range s.Week {
		weekday := time.Weekday(i)
		problem := checkSpans(spans(day))
		if next := s.Week[(i+1)%7]; problem == "" && !day.Closed && !next.Closed {
			problem = checkOvernight(spans(day), spans(next))
		}
		if problem != "" {
			return &InvalidError{Field: field, Weekday: &weekday, Problem: problem}
		}
	}
	return nil
}

// checkSpans describes what is wrong with the spans of one day; empty if nothing is.
func checkSpans(spans []ClockSpan) string {
	if len(spans) > MaxSpans {
		return fmt.Sprintf("more than %d spans", MaxSpans)
	}
	for _, c := range spans {
		if !c.valid() {
			return fmt.Sprintf("minutes %d to %d are no span on ten-minute marks of at most 24 hours", c.From, c.To)
		}
	}
	sorted := slices.SortedFunc(slices.Values(spans), func(a, b ClockSpan) int { return cmp.Compare(a.From, b.From) })
	for i := 1; i < len(sorted); i++ {
		if sorted[i].From < sorted[i-1].To {
			return fmt.Sprintf("%s overlaps with %s", sorted[i], sorted[i-1])
		}
	}
	return ""
}

// checkOvernight describes an overlap of spans that run past midnight with those of the next day; empty if there is none.
func checkOvernight(spans, next []ClockSpan) string {
	for _, late := range spans {
		for _, early := range next {
			if early.From+minutesPerDay < late.To {
				return fmt.Sprintf("%s overlaps with %s of the next day", late, early)
			}
		}
	}
	return ""
}

func (c ClockSpan) valid() bool {
	const grid = int(SlotLength / time.Minute)
	return 0 <= c.From && c.From < minutesPerDay &&
		c.From < c.To && c.To <= c.From+minutesPerDay &&
		c.From%grid == 0 && c.To%grid == 0
}

// String formats a span as 10:00-22:00. An end past midnight is the time on the next day; midnight itself is 24:00.
func (c ClockSpan) String() string {
	to := c.To
	if to > minutesPerDay {
		to -= minutesPerDay
	}
	return formatClock(c.From) + "-" + formatClock(to)
}

func formatClock(minutes int) string { return fmt.Sprintf("%02d:%02d", minutes/60, minutes%60) }

// ParseClockSpan reads two clock times such as 18:00 and 02:00. An end that is not after the start lies on the next day;
// 24:00 is midnight. It returns an [ErrInvalid].
func ParseClockSpan(from, to string) (ClockSpan, error) {
	start, startOK := parseClock(from)
	end, endOK := parseClock(to)
	if !startOK || !endOK || start >= minutesPerDay {
		return ClockSpan{}, fmt.Errorf("%w: %q to %q is not a span of clock times", ErrInvalid, from, to)
	}
	if end <= start {
		end += minutesPerDay
	}
	span := ClockSpan{start, end}
	if !span.valid() {
		return ClockSpan{}, fmt.Errorf("%w: %s is not on ten-minute marks", ErrInvalid, span)
	}
	return span, nil
}

// parseClock reads H:MM or HH:MM up to 24:00.
func parseClock(text string) (minutes int, ok bool) {
	hour, minute, found := strings.Cut(text, ":")
	if !found || len(hour) < 1 || len(hour) > 2 || len(minute) != 2 || strings.Trim(hour+minute, "0123456789") != "" {
		return 0, false
	}
	n := 0
	for _, digit := range hour {
		n = 10*n + int(digit-'0')
	}
	m := 10*int(minute[0]-'0') + int(minute[1]-'0')
	return 60*n + m, m < 60 && 60*n+m <= minutesPerDay
}
