package httpapi_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/config"
	"github.com/yeolda/yeolda/cloud/internal/contract"
	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

// raw is a JSON value as it stands.
type raw string

// MarshalJSON is never asked: bodies are put together by hand, as some of them are not JSON.
func (r raw) MarshalJSON() ([]byte, error) { return []byte(r), nil }

// field is a field of a request: what it must not be, and what it may.
type field struct {
	name, korean string
	bad          []any // besides missing and null, where it is required
	good         []any
	required     bool
}

// Values that are never a string, and never a number.
var (
	notText   = []any{raw("1"), raw("true"), raw("[]"), raw("{}"), raw(`["a"]`)}
	notNumber = []any{raw(`"1"`), raw("true"), raw("[]"), raw("{}"), raw("1.5"), raw("1e99"), raw("99999999999999999999")}
	notBool   = []any{raw(`"true"`), raw("1"), raw("[]"), raw("{}")}
	unkept    = []any{raw(`"a` + `\u0000` + `b"`), raw("\"a\xffb\""), raw("\"\xed\xa0\x80\""), raw(`"a` + `\u0007` + `b"`)}
)

// textField takes up to max characters.
func textField(name, korean string, max int) field {
	f := field{name: name, korean: korean, required: true}
	f.bad = slices.Concat(notText, unkept, []any{"", "   ", strings.Repeat("가", max+1)})
	f.good = []any{strings.Repeat("가", max), "a"}
	return f
}

// optional lets a field be absent, null or empty.
func (f field) optional() field {
	f.required = false
	f.bad = slices.DeleteFunc(f.bad, func(v any) bool { return v == "" || v == "   " })
	f.good = append(f.good, "", raw("null"))
	return f
}

// valued replaces what the field may be, where not every text is.
func (f field) valued(good ...any) field {
	f.good = good
	return f
}

// not adds to what the field must not be.
func (f field) not(bad ...any) field {
	f.bad = append(f.bad, bad...)
	return f
}

func wholeField(name, korean string, low, high int) field {
	return field{name, korean, append(slices.Clone(notNumber), low-1, high+1, -1<<31), []any{low, high}, true}
}

func mobileField() field {
	return textField("mobileNum", "휴대폰 번호", 20).valued("010-1234-5678", "+82 (0)10.1234.5678", "02-1234-5678").
		not("0101234", "010-1234-567890123456", "010-1234-567a", "공일공-일이삼사", "1234567890123456")
}

func emailField() field {
	long := strings.Repeat("a", 100-len("@b.kr")) + "@b.kr"
	return textField("email", "이메일", 100).valued("a@b.kr", long).
		not("a"+long, "a", "a@", "@b.kr", "a@b", "a b@c.kr", "a@b.kr,c@d.kr", "a@b@c.kr", "a@b.kr\r\nBcc: c@d.kr")
}

// timeField is YYYYMMDDHHmm. The values that must not be are wrong by themselves, whatever the other end.
func timeField(name, korean string) field {
	f := textField(name, korean, 12).valued()
	f.bad = slices.DeleteFunc(f.bad, func(v any) bool { return v == "   " })
	return f.not("   ", "20261125150", "2026112515000", "2026-11-25T15:00", "202613251500", "202611311500", "202702291500",
		"202611252400", "202611251560", "２０２６１１２５１５００", " 202611251500", "+02611251500", "199911251500", "220111251500")
}

func codeField(name, korean string, good string, bad ...any) field {
	return textField(name, korean, 10).valued(good).not(bad...)
}

// body is an endpoint that takes a body: a valid one, its fields and what it is answered where nothing is wrong with it.
// Nothing is stored by that either.
type body struct {
	method, path string
	client       *servicetest.Client
	valid        map[string]any
	fields       []field
	want         reply
}

func bodies(t *testing.T, c *cast) []body {
	start := slot(c.s, 3*time.Hour)
	paid := reservationAt(t, c.s, 1, start)
	register(t, c.Manager, 2, start)
	from, to := wire(start), wire(start.Add(time.Hour))
	taken := reply{409, "ResourceAlreadyExistException", "해당 시간대에 이미 예약이 존재합니다."}
	branch := textField("branch", "지점", 100).valued("gangnam")
	hold := []field{branch, wholeField("room", "룸 번호", 1, 9999).valued(1), timeField("startDateTime", "시작 시각"), timeField("endDateTime", "종료 시각")}
	holdRequest := map[string]any{"branch": "gangnam", "room": 1, "startDateTime": from, "endDateTime": to}
	refund := []field{
		textField("refundReceiveAccountBank", "환불 은행", 10).valued("20", "S8").not("99", "0", "020", "우리은행"),
		textField("refundReceiveAccountNumber", "환불 계좌번호", 20).valued("12345678901234567890", "1002-123-456789").not("1002a", "일이삼"),
		textField("refundReceiveAccountHolderName", "환불 예금주", 60),
	}
	refundAccount := map[string]any{
		"refundReceiveAccountBank": "20", "refundReceiveAccountNumber": "1002123456789", "refundReceiveAccountHolderName": "홍길동",
	}
	cancel := maps.Clone(refundAccount)
	cancel["id"], cancel["cancelReason"] = 1, "변심"
	who := textField("id", "아이디", 100).valued("010-9999-8888").not("0101234", "010-1234-567890123456", "hong@example.com")
	loginType := textField("type", "로그인 방식", 20).valued("mobile").not("admin", "MOBILE", "phone")
	return []body{
		{"POST", "/reservation", c.Nobody, holdRequest, hold, taken},
		{"POST", "/admin/reservation", c.Manager, holdRequest, hold, taken},
		{"POST", "/payment", c.Nobody, map[string]any{"amount": 1, "name": "홍길동", "mobileNum": "010-1234-5678"},
			[]field{wholeField("amount", "결제 금액", 0, 1<<31-1), textField("name", "이름", 50), mobileField(), emailField().optional()}, holdExpired},
		{"POST", "/payment/confirm", c.Nobody, map[string]any{"paymentKey": "a", "orderId": "b", "amount": 1},
			[]field{textField("paymentKey", "결제 키", 200), textField("orderId", "주문 번호", 64), wholeField("amount", "결제 금액", 0, 1<<31-1)},
			reply{404, "ResourceNotFoundException", "해당 주문을 찾을 수 없습니다."}},
		{"POST", "/payment/cancel", c.Customer, cancel,
			append([]field{{"id", "아이디", notNumber, []any{1, 0, -1}, true}, textField("cancelReason", "취소 사유", 200)}, refund...), noReservation},
		{"POST", "/account/code", c.Nobody, map[string]any{"type": "mobile", "id": "010-9999-8888"}, []field{loginType, who},
			reply{404, "ResourceNotFoundException", "예약 내역이 없습니다."}},
		{"POST", "/account/code", c.Nobody, map[string]any{"type": "email", "id": "nobody@example.com"},
			[]field{textField("id", "아이디", 100).valued("nobody@example.com").not("010-9999-8888", "a@b")}, reply{404, "ResourceNotFoundException", "예약 내역이 없습니다."}},
		{"POST", "/account/login", c.Nobody, map[string]any{"type": "mobile", "id": "010-9999-8888", "code": "123456"},
			[]field{loginType, who, textField("code", "인증번호", 20)}, reply{401, "AuthenticationError", "인증번호가 올바르지 않거나 만료되었습니다."}},
		{"POST", "/door/v2/unlock", c.Nobody, map[string]any{"branch": "gangnam", "doorlockType": "front", "key": "a"},
			[]field{branch.not("busan", "Gangnam"), textField("doorlockType", "문 종류", 20).valued("front", "room").not("back", "FRONT"), textField("key", "도어락 키", 100)},
			reply{400, "ResourceNotExistException", "유효하지 않은 도어락 키입니다."}},
		{"POST", "/admin/login", c.Nobody, map[string]any{"id": "nobody", "password": "wrong"},
			[]field{textField("id", "아이디", 100).valued("nobody"), {"password", "비밀번호", slices.Concat(notText, []any{"", raw("\"a\xffb\""), strings.Repeat("가", 257)}), []any{strings.Repeat("가", 256), " "}, true}},
			reply{401, "AuthenticationError", "아이디 또는 비밀번호가 올바르지 않습니다."}},
		{"PUT", "/admin/reservation/" + paid, c.Manager, map[string]any{"room": "2", "startDateTime": from, "endDateTime": to},
			[]field{textField("room", "룸 번호", 10).valued("2").not("two", "-2", "2.0", "2번"), timeField("startDateTime", "시작 시각"), timeField("endDateTime", "종료 시각"), textField("reason", "사유", 500).optional()}, taken},
		{"POST", "/admin/payment", c.Manager, map[string]any{},
			[]field{textField("name", "이름", 50).optional(), mobileField().optional(), emailField().optional(), textField("reason", "사유", 500).optional(), {"notify", "알림 여부", notBool, []any{true, raw("null")}, false}}, holdExpired},
		{"POST", "/admin/v2/virtual-accounts", c.Manager, map[string]any{"amount": 1, "orderName": "a", "name": "a", "mobileNum": "010-1234-5678", "bankCode": "20"},
			[]field{wholeField("amount", "결제 금액", 1, 1<<31-1), textField("orderName", "주문명", 100), textField("name", "이름", 100), mobileField(), emailField().optional(), codeField("bankCode", "은행 코드", "20", "99", "90", "S8", "우리은행")}, holdExpired},
		{"PATCH", "/admin/machines/gangnam/77", c.Manager, map[string]any{"enabled": true},
			[]field{{"enabled", "활성 여부", notBool, []any{true, false}, true}}, reply{404, "ResourceNotFoundException", "해당 룸을 찾을 수 없습니다."}},
		{"DELETE", "/admin/reservation/" + paid + "?bookingStatus=paymentTab", c.Manager, refundAccount, refund,
			reply{400, "IllegalArguemntError", "bookingStatus 값이 올바르지 않습니다."}},
		{"POST", "/franchise/inquiries", c.Nobody,
			map[string]any{"name": "a", "mobileNum": "010-1234-5678", "email": "a@b.kr", "region": "a", "message": "a", "privacyConsent": false},
			[]field{textField("name", "이름", 50), mobileField(), emailField(), textField("region", "희망 지역", 100), textField("message", "내용", 2000)},
			reply{400, "IllegalArguemntError", "개인정보 수집 동의(privacyConsent) 값이 올바르지 않습니다."}},
	}
}

// encode writes a body with one field changed; a nil value leaves it out.
func encode(t *testing.T, valid map[string]any, name string, value any) string {
	t.Helper()
	parts := []string{}
	for _, key := range slices.Sorted(maps.Keys(valid)) {
		if key != name {
			parts = append(parts, fmt.Sprintf("%q:%s", key, jsonValue(t, valid[key])))
		}
	}
	if value != nil {
		parts = append(parts, fmt.Sprintf("%q:%s", name, jsonValue(t, value)))
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func jsonValue(t *testing.T, value any) string {
	t.Helper()
	if r, ok := value.(raw); ok {
		return string(r)
	}
	encoded, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(encoded)
}

// illegal checks that an answer refuses a field, named in Korean and as the interface spells it.
func illegal(t *testing.T, what string, answer servicetest.Answer, korean, name string) {
	t.Helper()
	answer = answer.Envelope(t)
	if answer.HTTP != 400 || answer.ErrorType != "IllegalArguemntError" || !strings.HasPrefix(answer.Message, korean+"("+name+") ") {
		t.Errorf("%s: %d %s, want a word about %s(%s)", what, answer.HTTP, answer.Raw, korean, name)
	}
}

// unlimited is a stack without rate limits, as tests that try often need it.
func unlimited(t *testing.T) *servicetest.Stack {
	return servicetest.Start(t, func(set *config.Settings) { set.HTTP.RateLimits = "off" })
}

// contents is a digest of every table that requests may change.
func contents(t *testing.T, s *servicetest.Stack) map[string]string {
	t.Helper()
	awaitQuiet(t, s)
	rows, err := s.DB.Pool.Query(t.Context(), `
		select relname from pg_class where relnamespace = 'public'::regnamespace and relkind = 'r' and relname !~ $1 order by relname`,
		`^(river_leader|river_client|river_queue|goose_db_version)`)
	if err != nil {
		t.Fatal(err)
	}
	var tables []string
	var name string
	for rows.Next() {
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		tables = append(tables, name)
	}
	// What background work goes on with by itself is left out: the chain of the audit log, jobs that were put off, the
	// times at which the provider is asked again.
	background := map[string]string{"audit": "x.id::text", "river_job": "x.id::text", "payment": "x.reservation_id::text"}
	digests := map[string]string{}
	for _, table := range tables {
		columns := cmp.Or(background[table], "x::text")
		digests[table] = only(t, s, `select coalesce(md5(string_agg(`+columns+`, '|' order by `+columns+`)), '') from `+table+` x where $1`, true)
	}
	return digests
}

// unchanged fails the test if anything was stored since.
func unchanged(t *testing.T, s *servicetest.Stack, before map[string]string) {
	t.Helper()
	for table, digest := range contents(t, s) {
		if digest != before[table] {
			t.Errorf("something was written to %s", table)
		}
	}
}

// Every field of every body: missing, null, of another type, too long by one character, out of range, not storable, no
// time. Each is a 400 that names it, and nothing is stored. What is just allowed gets through.
func TestBadFields(t *testing.T) {
	t.Parallel()
	c := newCast(t, unlimited(t))
	cases := 0
	list := bodies(t, c)
	for _, b := range list {
		check(t, b.path, b.client, b.method, probe{path: b.path, body: encode(t, b.valid, "", nil)}, b.want)
		for _, f := range b.fields {
			for _, value := range f.good {
				cases++
				check(t, fmt.Sprintf("%s %s with %s %.60v", b.method, b.path, f.name, value), b.client, b.method, probe{path: b.path, body: encode(t, b.valid, f.name, value)}, b.want)
			}
		}
	}
	before := contents(t, c.s)
	for _, b := range list {
		for _, f := range b.fields {
			bad := f.bad
			if f.required {
				bad = append([]any{nil, raw("null")}, bad...)
			}
			for _, value := range bad {
				cases++
				what := fmt.Sprintf("%s %s with %s %.60v", b.method, b.path, f.name, value)
				illegal(t, what, b.client.Send(b.method, b.path, encode(t, b.valid, f.name, value), nil), f.korean, f.name)
			}
		}
	}
	unchanged(t, c.s, before)
	t.Logf("%d cases", cases)
}

// awaitQuiet waits until the background work of what came before is done.
func awaitQuiet(t *testing.T, s *servicetest.Stack) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if only(t, s, `select count(*)::text from river_job where state not in ('completed', 'discarded', 'cancelled', 'scheduled') and $1`, true) == "0" &&
			only(t, s, `select count(*)::text from message where state in ('QUEUED', 'SENDING') and $1`, true) == "0" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("background work goes on and on")
		}
	}
}

// Every parameter of every query, in the same ways.
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
	// Both edges of what is allowed.
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

// What stands in a path and is no text at all; a number that is none names nothing.
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
	// Every name of every path.
	for _, o := range contract.Operations() {
		for _, p := range append(o.Parameters, o.Item.Parameters...) {
			if p.Value.In != "path" {
				continue
			}
			path := anonymousBut(o.Path, p.Value.Name)
			answer := c.HQ.Send(o.Method, path, nil, nil)
			answer = answer.Envelope(t)
			if answer.HTTP != 400 || answer.ErrorType != "IllegalArguemntError" || !strings.Contains(answer.Message, "값의 형식이 올바르지 않습니다.") {
				t.Errorf("%s %s: %d %s", o.Method, path, answer.HTTP, answer.Raw)
			}
		}
	}
	noRoom := reply{404, "ResourceNotFoundException", "해당 룸을 찾을 수 없습니다."}
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

// anonymousBut fills the names of a path with something, and one of them with what cannot be kept.
func anonymousBut(path, name string) string {
	path = strings.Replace(path, "{"+name+"}", "a%00", 1)
	return regexp.MustCompile(`\{[^}]*\}`).ReplaceAllString(path, "1")
}

// What is not one JSON object, and what is too long, at every endpoint that takes a body.
func TestBadBodies(t *testing.T) {
	t.Parallel()
	c := newCast(t, unlimited(t))
	malformed := reply{400, "IllegalArguemntError", "요청 본문이 올바른 JSON 형식이 아닙니다."}
	tooLarge := reply{413, "PayloadTooLargeError", "요청 본문이 너무 큽니다."}
	const limit = 64 << 10
	list := append(bodies(t, c), body{"POST", "/virtualaccount/webhook", c.Nobody, map[string]any{"orderId": "a", "status": "DONE", "secret": "a"}, nil,
		reply{404, "ResourceNotFoundException", "해당 주문을 찾을 수 없습니다."}})
	before := contents(t, c.s)
	for _, b := range list {
		valid := encode(t, b.valid, "", nil)
		for _, text := range []string{
			"null", "[]", `"a"`, "1", "true", "{", "}", `{"a":}`, `{'a':1}`, `{"a":1,}`, "{}{}", "{} x", "<a/>", "\x00", "\xff", "\xef\xbb\xbf{}", strings.Repeat(`{"a":`, 9000),
		} {
			check(t, fmt.Sprintf("%s %s with %.20q", b.method, b.path, text), b.client, b.method, probe{path: b.path, body: text}, malformed)
		}
		if b.path != "/admin/payment" && b.method != "DELETE" { // there it may be absent
			check(t, b.path+" without a body", b.client, b.method, probe{path: b.path, body: ""}, malformed)
		}
		for _, size := range []int{limit + 1, 1 << 20} {
			check(t, fmt.Sprintf("%s %s with %d bytes", b.method, b.path, size), b.client, b.method, probe{path: b.path, body: pad(valid, size)}, tooLarge)
		}
	}
	for _, o := range contract.Operations() { // also what came later
		if o.Responses.Value("413") != nil && o.Extensions["x-envelope"] == nil && o.Access() != "customer" {
			check(t, o.OperationID, c.HQ, o.Method, probe{path: anonymousBut(o.Path, ""), body: pad("{}", limit+1)}, tooLarge)
		}
	}
	unchanged(t, c.s, before)
	for _, b := range list {
		check(t, b.method+" "+b.path+" with 64 KiB", b.client, b.method, probe{path: b.path, body: pad(valid(t, b), limit)}, b.want)
	}

	// Without a length the limit holds all the same.
	for size, want := range map[int]int{limit: 401, limit + 1: 413} {
		request, err := http.NewRequestWithContext(t.Context(), "POST", c.s.URL+"/payment", struct{ *strings.Reader }{strings.NewReader(pad(`{"amount":1,"name":"a","mobileNum":"010-1234-5678"}`, size))})
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != want {
			t.Errorf("%d bytes without a length: %d", size, answer.StatusCode)
		}
	}
}

func valid(t *testing.T, b body) string { return encode(t, b.valid, "", nil) }

// pad makes a body that long.
func pad(text string, size int) string { return text + strings.Repeat(" ", size-len(text)) }
