package httpapi_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

// raw is a JSON value in its encoded form.
type raw string

// MarshalJSON must not be called: bodies are assembled by hand, because some of them are not JSON.
func (r raw) MarshalJSON() ([]byte, error) { return []byte(r), nil }

// field is a field of a request with invalid and valid values.
type field struct {
	name, korean string
	bad          []any // in addition to missing and null, if it is required
	good         []any
	required     bool
}

// Values that are not a string, and not a number.
var (
	notText   = []any{raw("1"), raw("true"), raw("[]"), raw("{}"), raw(`["a"]`)}
	notNumber = []any{raw(`"1"`), raw("true"), raw("[]"), raw("{}"), raw("1.5"), raw("1e99"), raw("99999999999999999999")}
	notBool   = []any{raw(`"true"`), raw("1"), raw("[]"), raw("{}")}
	unkept    = []any{raw(`"a` + `\u0000` + `b"`), raw("\"a\xffb\""), raw("\"\xed\xa0\x80\""), raw(`"a` + `\ud83d` + `b"`), raw(`"a` + `\u0007` + `b"`)}
)

// textField accepts up to max characters.
func textField(name, korean string, max int) field {
	f := field{name: name, korean: korean, required: true}
	f.bad = slices.Concat(notText, unkept, []any{"", "   ", strings.Repeat("가", max+1)})
	f.good = []any{strings.Repeat("가", max), "a"}
	return f
}

// optional allows a field to be absent, null or empty.
func (f field) optional() field {
	f.required = false
	f.bad = slices.DeleteFunc(f.bad, func(v any) bool { return v == "" || v == "   " })
	f.good = append(f.good, "", raw("null"))
	return f
}

// valued replaces the valid values, for fields that do not accept every text.
func (f field) valued(good ...any) field {
	f.good = good
	return f
}

// not adds invalid values.
func (f field) not(bad ...any) field {
	f.bad = append(f.bad, bad...)
	return f
}

func wholeField(name, korean string, low, high int) field {
	return field{name, korean, append(slices.Clone(notNumber), low-1, high+1, -1<<31), []any{low, high}, true}
}

func mobileField() field {
	return textField("mobileNum", "휴대폰 번호", 20).valued("010-1234-5678", "+82 (0)10.1234.5678", "02-1234-5678", "01012345678901234567").
		not("0101234", "010-1234-56789012345x", "010-1234-567a", "공일공-일이삼사")
}

func emailField() field {
	long := strings.Repeat("a", 100-len("@b.kr")) + "@b.kr"
	return textField("email", "이메일", 100).valued("a@b.kr", long).
		not("a"+long, "a", "a@", "@b.kr", "a@b", "a b@c.kr", "a@b.kr,c@d.kr", "a@b@c.kr", "a@b.kr\r\nBcc: c@d.kr")
}

// timeField is a time as YYYYMMDDHHmm. Its invalid values are invalid for every value of the other time.
func timeField(name, korean string) field {
	f := textField(name, korean, 12).valued()
	f.bad = slices.DeleteFunc(f.bad, func(v any) bool { return v == "   " })
	return f.not("   ", "20261125150", "2026112515000", "2026-11-25T15:00", "202613251500", "202611311500", "202702291500",
		"202611252400", "202611251560", "２０２６１１２５１５００", " 202611251500", "+02611251500", "199911251500", "220111251500")
}

func codeField(name, korean string, good string, bad ...any) field {
	return textField(name, korean, 10).valued(good).not(bad...)
}

// body is an operation with a body: a valid body, its fields, and the answer to a valid body, which stores nothing either.
type body struct {
	method, path string
	client       *servicetest.Client
	valid        map[string]any
	fields       []field
	want         reply
}

func bodies(t *testing.T, c *cast) []body {
	start := c.start
	paid := reservationAt(t, c.s, 1, start)
	register(t, c.Manager, 2, start)
	from, to := wire(start), wire(start.Add(time.Hour))
	taken := reply{409, "ResourceAlreadyExistException", "해당 시간대에 이미 예약이 존재합니다."}
	branch := textField("branch", "지점", 100).valued("gangnam")
	hold := []field{branch, wholeField("room", "룸 번호", 1, 9999).valued(1), timeField("startDateTime", "시작 시각"), timeField("endDateTime", "종료 시각")}
	holdRequest := map[string]any{"branch": "gangnam", "room": 1, "startDateTime": from, "endDateTime": to}
	refund := []field{
		textField("refundReceiveAccountBank", "환불 은행", 10).valued("20", "S8").not("99", "0", "020", "우리은행"),
		textField("refundReceiveAccountNumber", "환불 계좌번호", 20).valued("12345678901234567890", "1002-123-456789").not("1002a", "일이삼", "---"),
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
			[]field{branch.not("busan", "Gangnam"), textField("doorlockType", "문 종류", 20).valued("front", "room").not("back", "FRONT"), textField("key", "도어락 키", 100),
				{"room", "룸 번호", slices.Concat(notNumber[1:], []any{"", "one", "-1", -1}), []any{2, "2", raw("null")}, false}},
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

// encode returns the body with one field changed; nil omits it.
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

// illegal checks that an answer rejects a field by its Korean name and its interface name.
func illegal(t *testing.T, what string, answer servicetest.Answer, korean, name string) {
	t.Helper()
	answer = answer.Envelope(t)
	if answer.HTTP != 400 || answer.ErrorType != "IllegalArguemntError" || !strings.HasPrefix(answer.Message, korean+"("+name+") ") {
		t.Errorf("%s: %d %s, want a word about %s(%s)", what, answer.HTTP, answer.Raw, korean, name)
	}
}

// Every field of every body is tested: missing, null, of another type, one character too long, out of range, invalid text,
// invalid time. Each answer is a 400 that names the field, and nothing is stored. Values at the bounds are accepted.
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
