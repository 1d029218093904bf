package httpapi_test

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/yeolda/yeolda/cloud/internal/contract"
	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

// Every query parameter is tested with the same kinds of mistakes.
func TestBadQueries(t *testing.T) {
	t.Parallel()
	c := newCast(t, servicetest.Start(t))
	dates := []string{"", "2026", "20261131", "20270229", "00000000", "2026112", "202611250", "2026-11-2", "２０２６１１２５", "19991125"}
	days := []string{"", "2026-11-31", "2027-02-29", "20261125", "2026-1-1", "2026-11-25T00:00", "26-11-25"}
	hours := []string{"", "-1", "24", "1.5", "ten", "+1", "1 ", "0x1", "99999999999999999999"}
	unkept := []string{"a\x00b", "\xff"}
	before := contents(t, c.s)
	for _, p := range []struct {
		client       *servicetest.Client
		path, valid  string
		name, korean string
		bad          []string
	}{
		{c.Nobody, "/reservations", "branch=gangnam&base_date=20261125&base_hour=10", "branch", "지점", []string{""}},
		{c.Nobody, "/reservations", "branch=gangnam&base_date=20261125&base_hour=10", "base_date", "기준 날짜", dates},
		{c.Nobody, "/reservations", "branch=gangnam&base_date=20261125&base_hour=10", "base_hour", "기준 시각", hours},
		{c.Manager, "/admin/reservations", "branch=gangnam&base_date=20261125&base_hour=10", "branch", "지점", []string{""}},
		{c.Manager, "/admin/reservations", "branch=gangnam&base_date=20261125&base_hour=10", "base_date", "기준 날짜", dates},
		{c.Manager, "/admin/reservations", "branch=gangnam&base_date=20261125&base_hour=10", "base_hour", "기준 시각", hours},
		{c.Nobody, "/v2/branches/gangnam/calendar", "yearMonth=2026-11", "yearMonth", "조회 월", []string{"", "2026", "2026-13", "2026-00", "2026-1", "202611", "2026-11-25", "1999-12", "2201-01"}},
		{c.Nobody, "/v2/branches/gangnam/reservations", "date=2026-11-25&baseHour=10", "date", "날짜", days},
		{c.Nobody, "/v2/branches/gangnam/reservations", "date=2026-11-25&baseHour=10", "baseHour", "기준 시각", hours},
		{c.Nobody, "/v2/branches/gangnam/reservations", "date=2026-11-25&baseHour=10", "hours", "조회 시간", []string{"", "0", "25", "-1", "four", "1.5"}},
		{c.Nobody, "/door/v2/unlock/subscribe", "requestId=a&key=b", "requestId", "요청 번호", []string{""}},
		{c.Nobody, "/door/v2/unlock/subscribe", "requestId=a&key=b", "key", "도어락 키", []string{""}},
		{c.Manager, "/admin/door/v2/unlock/subscribe", "requestId=a", "requestId", "요청 번호", []string{""}},
		{c.Manager, "/v2/admin/branches/gangnam/timeline", "date=2026-11-25", "date", "날짜", days},
		{c.Manager, "/v2/admin/reservations", "query=1234", "query", "검색어", []string{"", "a", "  a  "}},
	} {
		values, err := url.ParseQuery(p.valid)
		if err != nil {
			t.Fatal(err)
		}
		optional := !values.Has(p.name)
		values.Del(p.name)
		if !optional {
			illegal(t, p.path+" without "+p.name, p.client.Send("GET", p.path+"?"+values.Encode(), nil, nil), p.korean, p.name)
		}
		for _, bad := range append(p.bad, unkept...) {
			values.Set(p.name, bad)
			name := p.korean
			illegal(t, fmt.Sprintf("%s with %s %q", p.path, p.name, bad), p.client.Send("GET", p.path+"?"+values.Encode(), nil, nil), name, p.name)
		}
	}
	// Parameters that cannot be read: leaving out a filter would answer another question.
	for _, query := range []string{"date=2026-11-25&baseHour=10;hours=1", "date=2026-11-25&baseHour=10&hours=%zz"} {
		c.Nobody.Get("/v2/branches/gangnam/reservations?"+query).Fails(t, 400, "IllegalArguemntError", "주소의 쿼리 문자열 형식이 올바르지 않습니다.")
	}
	// Both bounds of the range.
	for _, path := range []string{
		"/reservations?branch=gangnam&base_date=20261125&base_hour=0", "/reservations?branch=gangnam&base_date=20280229&base_hour=23",
		"/reservations?branch=gangnam&base_date=20261125&base_hour=09", "/v2/branches/gangnam/calendar?yearMonth=2000-01",
		"/v2/branches/gangnam/calendar?yearMonth=2200-12", "/v2/branches/gangnam/reservations?date=2028-02-29&baseHour=0&hours=1",
		"/v2/branches/gangnam/reservations?date=2026-11-25&baseHour=23&hours=24",
	} {
		c.Nobody.Get(path).OK(t)
	}
	unchanged(t, c.s, before)
}

// Path parameters that are not valid text, and non-numeric values for numbers, are rejected.
func TestBadPaths(t *testing.T) {
	t.Parallel()
	c := newCast(t, servicetest.Start(t))
	before := contents(t, c.s)
	for _, p := range []struct{ method, path, korean, name string }{
		{"GET", "/v2/branches/%FF/calendar?yearMonth=2026-11", "지점", "branch"},
		{"GET", "/v2/branches/a%00/reservations?date=2026-11-25&baseHour=1", "지점", "branch"},
		{"GET", "/admin/airconditioner/%00", "지점", "branch"},
		{"POST", "/admin/airconditioner/%FF", "에어컨 옵션", "airconditioner_id"},
		{"POST", "/admin/thermo-hygrometer/%00", "지점", "branch"},
		{"PATCH", "/admin/machines/gangnam/%00", "룸 번호", "room"},
		{"PATCH", "/admin/machines/%FF/1", "지점", "branch"},
		{"GET", "/admin/reservation/%00", "아이디", "id"},
		{"DELETE", "/admin/reservation/%FF?bookingStatus=paid", "아이디", "id"},
		{"PUT", "/admin/reservation/%00", "아이디", "id"},
		{"POST", "/admin/door/v2/unlock/%00/front", "지점", "branch"},
		{"POST", "/admin/door/v2/unlock/gangnam/%00", "문 종류", "doorType"},
		{"POST", "/admin/door/v2/unlock/gangnam/room/%00", "룸 번호", "roomNo"},
		{"POST", "/admin/door/v2/unlock/gangnam/back", "문 종류", "doorType"},
		{"POST", "/admin/door/v2/unlock/gangnam/room", "룸 번호", "roomNo"},
		{"POST", "/admin/door/v2/unlock/gangnam/room/two", "룸 번호", "roomNo"},
		{"POST", "/admin/door/v2/unlock/gangnam/room/+1", "룸 번호", "roomNo"},
	} {
		illegal(t, p.method+" "+p.path, c.HQ.Send(p.method, p.path, nil, nil), p.korean, p.name)
	}
	// Every parameter of every path.
	for _, o := range contract.Operations() {
		for _, p := range append(o.Parameters, o.Item.Parameters...) {
			if p.Value.In != "path" {
				continue
			}
			path := anonymousBut(o.Path, p.Value.Name)
			client := c.HQ
			if o.Access() == "customer" {
				client = c.Customer
			}
			answer := client.Send(o.Method, path, nil, nil)
			answer = answer.Envelope(t)
			if answer.HTTP != 400 || answer.ErrorType != "IllegalArguemntError" || !strings.Contains(answer.Message, "값의 형식이 올바르지 않습니다.") {
				t.Errorf("%s %s: %d %s", o.Method, path, answer.HTTP, answer.Raw)
			}
		}
	}
	for _, id := range []string{"0", "-1", "abc", "1.0", "+1001", "99999999999999999999", "9223372036854775807"} {
		check(t, id, c.HQ, "GET", probe{path: "/admin/reservation/" + id}, noReservation)
		check(t, id, c.HQ, "DELETE", probe{path: "/admin/reservation/" + id + "?bookingStatus=paid"}, noReservation)
		check(t, id, c.HQ, "PUT", probe{path: "/admin/reservation/" + id, body: map[string]any{"room": "1", "startDateTime": "202611251500", "endDateTime": "202611251600"}}, noReservation)
	}
	for _, room := range []string{"0", "7", "one", "+1", "99999999999999999999"} {
		check(t, room, c.HQ, "PATCH", probe{path: "/admin/machines/gangnam/" + room, body: map[string]any{"enabled": false}}, noRoom)
	}
	check(t, "room 7", c.HQ, "POST", probe{path: "/admin/door/v2/unlock/gangnam/room/7"}, noRoom)
	check(t, "no option", c.HQ, "POST", probe{path: "/admin/airconditioner/none"}, reply{404, "ResourceNotFoundException", "해당 에어컨 옵션을 찾을 수 없습니다."})
	unchanged(t, c.s, before)
}

// anonymousBut fills the named parameter of a path with invalid text and all others with a placeholder.
func anonymousBut(path, name string) string {
	path = strings.Replace(path, "{"+name+"}", "a%00", 1)
	return regexp.MustCompile(`\{[^}]*\}`).ReplaceAllString(path, "1")
}

// TestNULInLists: PostgreSQL stores no NUL, and the elements of a list are checked by no field.
func TestNULInLists(t *testing.T) {
	t.Parallel()
	c := newCast(t, servicetest.Start(t))
	before := contents(t, c.s)
	branches := []string{"gangnam", "a\x00"}
	for path, body := range map[string]map[string]any{
		"/v2/admin/tokens":         {"name": "a", "scopes": []string{"read"}, "branches": branches},
		"/v2/admin/webhooks":       {"url": "https://93.184.216.34/", "branches": branches},
		"/v2/admin/administrators": {"id": "new", "password": "a-long-password", "role": "viewer", "branches": branches},
		"/v2/admin/closures":       {"branches": branches, "rule": map[string]any{"yearly": "12-25"}, "reason": "a"},
	} {
		illegal(t, path, c.HQ.Post(path, body), "담당 지점", "branches")
	}
	contact := map[string]any{"name": "a\x00", "channel": "mail", "to": "a@b.co"}
	c.HQ.Put("/v2/admin/alert-contacts", map[string]any{"alertContacts": []any{contact}}).Fails(t, 400, "IllegalArguemntError", "")
	unchanged(t, c.s, before)
}

// TestNumbersBeyondColumns: a number that is larger than a column of the database is a place without entries or an unknown id,
// never an error of the service.
func TestNumbersBeyondColumns(t *testing.T) {
	t.Parallel()
	c := newCast(t, servicetest.Start(t))
	for _, number := range []string{"2147483648", "9223372036854775807"} {
		for _, path := range []string{
			"/v2/admin/alerts?cursor=" + number, "/v2/admin/branches/gangnam/messages?before=" + number,
			"/v2/admin/branches/gangnam/audit?before=" + number, "/v2/admin/branches/gangnam/payments?yearMonth=2026-11&before=" + number,
		} {
			c.HQ.Get(path).OK(t)
		}
		noWebhook := reply{404, "ResourceNotFoundException", "해당 웹훅을 찾을 수 없습니다."}
		says(t, "deliveries", c.HQ.Get("/v2/admin/webhooks/"+number+"/deliveries?before="+number), noWebhook)
		listing := "/v2/admin/branches/gangnam/channels/" + number
		c.HQ.Patch(listing, map[string]any{"enabled": false}).Fails(t, 404, "ResourceNotFoundException", "")
		c.HQ.Post(listing+"/export", nil).Fails(t, 404, "ResourceNotFoundException", "")
	}
}
