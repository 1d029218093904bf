package web

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strconv"
	"time"

	"github.com/emersion/go-ical"
)

// serveCalendar serves the reservation of a key as an iCalendar file.
func (s *site) serveCalendar(w http.ResponseWriter, r *http.Request) {
	key, ok := s.findKey(w, r)
	if !ok {
		return
	}
	lang, texts := s.keyLanguage(w, r)
	name := key.NameKo
	if lang == "en" && key.NameEn != "" {
		name = key.NameEn
	}
	uid := sha256.Sum256([]byte(r.PathValue("key"))) // hashed: calendars are shared, and the key and its link are secret

	event := ical.NewEvent()
	event.Props.SetText(ical.PropUID, hex.EncodeToString(uid[:16])+"@yeolda")
	event.Props.SetDateTime(ical.PropDateTimeStamp, s.Now().UTC())
	event.Props.SetDateTime(ical.PropDateTimeStart, key.Start.UTC())
	event.Props.SetDateTime(ical.PropDateTimeEnd, key.End.UTC())
	event.Props.SetText(ical.PropSummary, name+" "+texts.room(strconv.Itoa(key.Room)))
	event.Props.SetText(ical.PropLocation, key.Address)
	event.Props.SetText(ical.PropDescription, texts.window(key))
	event.Children = append(event.Children, alarm(30*time.Minute, name))

	calendar := ical.NewCalendar()
	calendar.Props.SetText(ical.PropVersion, "2.0")
	calendar.Props.SetText(ical.PropProductID, "-//Yeolda//Reservation//KO")
	calendar.Children = append(calendar.Children, event.Component)

	header := w.Header()
	header.Set("Content-Type", ical.MIMEType+"; charset=utf-8")
	header.Set("Content-Disposition", `attachment; filename="yeolda.ics"`)
	header.Set("Cache-Control", "no-store")
	header.Set("Referrer-Policy", "no-referrer")
	if err := ical.NewEncoder(w).Encode(calendar); err != nil {
		s.Log.WarnContext(r.Context(), "calendar file not sent", "error", err)
	}
}

func alarm(before time.Duration, text string) *ical.Component {
	alarm := ical.NewComponent(ical.CompAlarm)
	alarm.Props.SetText(ical.PropAction, "DISPLAY")
	alarm.Props.SetText(ical.PropDescription, text)
	trigger := ical.NewProp(ical.PropTrigger)
	trigger.SetDuration(-before)
	alarm.Props.Set(trigger)
	return alarm
}
