package httpapi_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

func TestSettingsInTheConsole(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	hq := s.Admin(t, "hq", "hq-demo")
	const branch = "/v2/admin/branches/hongdae/"
	read := func() (settings map[string]any) {
		t.Helper()
		hq.Get(branch+"settings").OK(t).Into(t, &settings)
		return settings
	}
	wednesday := someday()
	hold := func(from time.Time, room int) servicetest.Answer {
		body := holdBody(room, from, time.Hour)
		body["branch"] = "hongdae"
		return s.Client(t).Post("/reservation", body)
	}
	refuses(t, "at eight", hold(wednesday.Add(-4*time.Hour), 1), "startDateTime")
	settings, stale := read(), read()
	week := settings["week"].([]any)
	week[wednesday.Weekday()] = map[string]any{"closed": false, "open": []any{map[string]any{"from": "08:00", "to": "24:00"}}, "breaks": []any{}}
	settings["phone"], settings["closedOnHolidays"] = "02-1234-5678", false // because that Wednesday may be a public holiday
	hq.Put(branch+"settings", settings).OK(t)
	hold(wednesday.Add(-4*time.Hour), 1).OK(t)
	hold(wednesday.Add(3*time.Hour), 1).OK(t) // the break was removed
	says(t, "read before", hq.Put(branch+"settings", stale), reply{409, "SettingConflictException", "그 사이에 변경되었습니다. 새로 조회한 뒤 다시 시도해 주세요."})
	now := read()
	settings["revision"] = now["revision"]
	for name, value := range map[string]any{
		"week": []any{}, "closures": []any{map[string]any{"from": "2026-12-31", "to": "2026-12-30", "reason": ""}}, "bookingHorizonDays": 0,
		"openHolidays": []any{"2026-13-01"}, "removedHolidays": []any{"christmas"}, "extraHolidays": []any{map[string]any{"date": "2026-1-1", "name": "a"}},
		"nameKo": strings.Repeat("가", 101), "address": strings.Repeat("가", 201), "phone": strings.Repeat("1", 31),
	} {
		changed := read()
		changed[name] = value
		refuses(t, name, hq.Put(branch+"settings", changed), name)
	}
	for what, span := range map[string][2]string{"backwards": {"12:00", "11:00"}, "off the grid": {"10:05", "11:00"}, "past the day": {"10:00", "24:10"}, "no time": {"ten", "11:00"}} {
		changed := read()
		changed["week"].([]any)[3].(map[string]any)["open"] = []any{map[string]any{"from": span[0], "to": span[1]}}
		refuses(t, what, hq.Put(branch+"settings", changed), "open")
	}
	if after := read(); after["revision"] != now["revision"] || after["phone"] != "02-1234-5678" {
		t.Errorf("after refusals: %v", after)
	}

	// Prices, and a new room.
	price := func(room string, body map[string]any) servicetest.Answer { return hq.Put(branch+"rooms/"+room, body) }
	price("1", map[string]any{"machine": "새 베드", "grade": "Stella", "min10": nil, "min30": nil, "min60": 50000}).OK(t)
	price("9", map[string]any{"machine": "큰 베드", "min30": 9000}).OK(t)
	var look v2
	hq.Get("/v2/branches/hongdae/reservations?"+dayOf(wednesday, 1)).OK(t).Into(t, &look)
	if first := look.Rooms[0]; first.RoomNo != "1" || *first.Pricing.Min60 != 50000 || first.Pricing.Min30 != nil || *first.Grade != "Stella" || len(look.Rooms) != 4 {
		t.Errorf("rooms %+v", look.Rooms)
	}
	refuses(t, "too cheap", price("1", map[string]any{"min60": 99}), "price")
	refuses(t, "no grade", price("1", map[string]any{"grade": "Best"}), "grade")
	refuses(t, "no number", price("0", map[string]any{}), "room")

	// Channels.
	channel := map[string]any{"partner": "스페이스달력", "roomNo": "2", "feedUrl": "https://partner.example/2.ics"}
	hq.Post(branch+"channels", channel).OK(t)
	hq.Post(branch+"channels", channel).Fails(t, 409, "ResourceAlreadyExistException", "이미 등록된 채널입니다.")
	channel["feedUrl"] = "http://10.0.0.1/2.ics"
	refuses(t, "not https", hq.Post(branch+"channels", channel), "feedUrl")
	id := read()["channels"].([]any)[0].(map[string]any)["id"].(string)
	hq.Patch(branch+"channels/"+id, map[string]bool{"enabled": false}).OK(t)
	var link struct{ URL string }
	hq.Post(branch+"channels/"+id+"/export", nil).OK(t).Into(t, &link)
	if !strings.Contains(link.URL, "/ical/hongdae/1.ics?token=") {
		t.Errorf("link %s", link.URL)
	}
	if on := read()["channels"].([]any)[0].(map[string]any); on["enabled"] != false || on["hasExport"] != true {
		t.Errorf("channel %v", on)
	}
}

// TestSettingsRequireEveryField: a list, a deadline or a share that a change omits is refused, not stored as empty or zero.
func TestSettingsRequireEveryField(t *testing.T) {
	t.Parallel()
	hq := servicetest.Start(t).Admin(t, "hq", "hq-demo")
	const path = "/v2/admin/branches/hongdae/settings"
	read := func() (settings map[string]any) {
		t.Helper()
		hq.Get(path).OK(t).Into(t, &settings)
		return settings
	}
	before := read()
	for _, name := range []string{
		"revision", "nameKo", "nameEn", "address", "phone", "bookingHorizonDays", "week", "closures", "closedOnHolidays", "openHolidays", "extraHolidays", "removedHolidays",
	} {
		changed := read()
		delete(changed, name)
		refuses(t, name+" is missing", hq.Put(path, changed), name)
		changed[name] = nil
		refuses(t, name+" is null", hq.Put(path, changed), name)
	}
	for _, test := range []struct {
		field string
		value any
		names string
	}{
		{"refundPolicy", []any{map[string]any{"untilMinutesBefore": 30}}, "refundPolicy.percent"},
		{"refundPolicy", []any{map[string]any{"percent": 100}}, "refundPolicy.untilMinutesBefore"},
		{"compensation", map[string]any{}, "compensation.afterMinutes"},
		{"compensation", map[string]any{"wonPerMinute": 100, "afterMinutes": nil}, "compensation.afterMinutes"},
		{"closures", []any{map[string]any{"from": "2026-12-31", "to": "2026-12-31"}}, "reason"},
		{"week", []any{map[string]any{}, map[string]any{}, map[string]any{}, map[string]any{}, map[string]any{}, map[string]any{}, map[string]any{}}, "week"},
	} {
		changed := read()
		changed[test.field] = test.value
		refuses(t, fmt.Sprintf("%s %v", test.field, test.value), hq.Put(path, changed), test.names)
	}
	if after := read(); !reflect.DeepEqual(after, before) {
		t.Errorf("after refusals: %v, want %v", after, before)
	}
}
