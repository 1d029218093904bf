package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/yeolda/yeolda/cloud/internal/account"
	"github.com/yeolda/yeolda/cloud/internal/booking"
)

// MaxBody is the largest request body that is read; a larger one is answered with 413.
const MaxBody = 64 << 10

// FieldError states which part of a request is wrong and how. Its text is the message that the client receives.
type FieldError struct {
	Field   string // as the interface spells it; empty for the body as a whole
	Problem string // in Korean
}

func (e *FieldError) Error() string {
	if e.Field == "" {
		return e.Problem
	}
	return fieldName(e.Field) + " " + e.Problem
}

// Missing returns the error of a required field without a value.
func Missing(field string) error { return &FieldError{field, "값은 필수입니다."} }

// Malformed returns the error of a value that does not have the form of the interface.
func Malformed(field string) error {
	return &FieldError{field, "값의 형식이 올바르지 않습니다."}
}

// UnknownValue returns the error of a value that is none of the permitted ones.
func UnknownValue(field string) error { return &FieldError{field, "값이 올바르지 않습니다."} }

// TooLong returns the error of a text with more than max characters.
func TooLong(field string, max int) error {
	return &FieldError{field, fmt.Sprintf("값은 최대 %d자까지 입력할 수 있습니다.", max)}
}

// OutOfRange returns the error of a number that is not between low and high, both included.
func OutOfRange(field string, low, high int) error {
	return &FieldError{field, fmt.Sprintf("값은 %d에서 %d 사이여야 합니다.", low, high)}
}

// fieldNames are the Korean names of the interface's fields. Messages add the interface's spelling in brackets.
var fieldNames = map[string]string{ //nolint:gosec // names of fields, no secrets
	"address": "주소", "description": "소개", "amenities": "편의 시설", "alt": "사진 설명", "arriveOption": "입실 옵션", "leaveOption": "퇴실 옵션", "leadMinutes": "미리 켜는 시간", "lagMinutes": "끄기까지의 시간",
	"low": "최저 온도", "high": "최고 온도", "guestOptions": "고객 옵션", "hourlyCost": "시간당 비용", "option": "옵션", "unit": "에어컨", "rooms": "룸", "rules": "요금 규칙", "priceRules": "요금 규칙", "alertContacts": "알림 받는 사람", "by": "구분", "days": "기간", "cursor": "다음 위치", "state": "상태", "after": "기준 번호", "airconditioner_id": "에어컨 옵션", "amount": "결제 금액", "bankCode": "은행 코드",
	"entity": "사업자", "clientKey": "클라이언트 키", "widgetSecretKey": "결제위젯 시크릿 키", "apiSecretKey": "API 개별 연동 시크릿 키", "brand": "브랜드", "company": "회사", "consentVersion": "동의한 약관 버전", "data": "그림", "text": "글", "position": "순서", "representative": "대표자", "businessNumber": "사업자등록번호", "mailOrderNumber": "통신판매업 신고번호",
	"hostingProvider": "호스팅서비스 제공자", "messagePrefix": "메시지 머리말", "color": "색", "version": "버전", "termsKo": "이용약관", "termsEn": "영문 이용약관", "privacyKo": "개인정보 처리방침", "privacyEn": "영문 개인정보 처리방침",
	"base_date": "기준 날짜", "base_hour": "기준 시각", "baseHour": "기준 시각", "before": "기준 번호",
	"bookingHorizonDays": "예약 가능 기간", "bookingStatus": "예약 상태", "branch": "지점",
	"branches": "담당 지점", "breaks": "휴게 시간", "cancelReason": "취소 사유", "closures": "휴무",
	"code": "인증번호", "contact": "연락처", "date": "날짜", "disabled": "정지 여부", "doorlockType": "문 종류",
	"done": "완료 여부", "doorType": "문 종류", "email": "이메일", "enabled": "활성 여부", "endDateTime": "종료 시각",
	"expiresAt": "만료 시각", "extraHolidays": "추가 공휴일", "feedUrl": "캘린더 주소", "from": "시작일", "grade": "등급", "holidayName": "공휴일 이름",
	"hours": "조회 시간", "id": "아이디", "kept": "있던 휴무", "key": "도어락 키", "limit": "개수", "location": "위치",
	"machine": "기기", "message": "내용", "mobileNum": "휴대폰 번호", "name": "이름", "nameEn": "영문 이름",
	"nameKo": "한글 이름", "newPassword": "새 비밀번호", "notify": "알림 여부", "open": "운영 시간",
	"openHolidays": "쉬지 않는 공휴일", "orderId": "주문 번호", "orderName": "주문명", "partner": "채널",
	"credential": "패스키", "password": "비밀번호", "paymentKey": "결제 키", "noLock": "잠금장치 없음", "turnoverMinutes": "정리 시간", "phone": "전화", "pin": "문 비밀번호", "price": "가격",
	"privacyConsent": "개인정보 수집 동의", "query": "검색어", "reason": "사유", "settledOutside": "외부 환불", "settledOutside.how": "환불 방법", "cashReceipt.type": "현금영수증 용도", "cashReceipt.number": "현금영수증 번호", "settledOutside.reference": "환불 증빙",
	"refundReceiveAccountBank": "환불 은행", "refundReceiveAccountHolderName": "환불 예금주",
	"refundReceiveAccountNumber": "환불 계좌번호", "region": "희망 지역", "removedHolidays": "공휴일이 아닌 날",
	"requestId": "요청 번호", "resolution": "처리 내용", "role": "역할", "room": "룸 번호", "roomNo": "룸 번호",
	"startDateTime": "시작 시각", "status": "상태", "to": "종료일", "type": "로그인 방식", "week": "운영 시간", "what": "내려받기 종류", "url": "주소",
	"yearMonth": "조회 월", "month": "조회 월", "since": "시작 시각", "refundBankCode": "환불 은행", "refundAccount": "환불 계좌번호", "refundHolder": "환불 예금주",
	"refundPolicy": "환불 규정", "refundPolicy.untilMinutesBefore": "환불 기한", "refundPolicy.percent": "환불 비율", "compensation": "보상", "compensation.afterMinutes": "보상 기준 시간",
	"revision": "설정 번호", "closedOnHolidays": "공휴일 휴무",
	"acceptConflicts": "겹침 허용", "action": "작업", "actor": "작업한 사람", "afterMinutes": "보상 기준 시간", "agents": "지점 장치", "base": "기준 버전", "cashReceipt": "현금영수증",
	"change": "바꿀 설정", "channel": "알림 방법", "closed": "휴무 여부", "companion": "동행 열쇠", "copyFrom": "복사할 지점", "create": "새로 만들기", "device": "문 장치",
	"doctor": "진단", "door": "문", "doors": "문", "en": "영어", "ko": "한국어", "escalateAfterMinutes": "상위 알림 시간", "expected": "확인한 값", "extendFirst": "연장 우선",
	"externalId": "채널의 예약 번호", "fullAfterMinutes": "전액 보상 시간", "held": "선점한 예약", "holidays": "공휴일 적용", "how": "방법", "keypad": "키패드", "kinds": "알림 종류",
	"label": "이름", "lang": "언어", "latitude": "위도", "longitude": "경도", "listing": "채널 연결", "min10": "10분 가격", "min30": "30분 가격", "min60": "60분 가격", "near": "기준 위치",
	"new": "새 내용", "old": "이전 내용", "note": "메모", "nth": "몇째 주", "number": "번호", "perPhonePerMonth": "번호별 월 한도", "percent": "비율", "photo": "사진", "preview": "미리 보기",
	"publicKey": "공개 키", "q": "검색어", "reference": "증빙", "refundAmount": "환불 금액", "replaces": "교체할 장치", "rule": "규칙", "scopes": "권한", "session": "세션",
	"settings": "설정", "settleSeconds": "확인 시간", "step": "단계", "target": "지점 또는 에어컨 옵션", "token": "토큰", "types": "이벤트 종류", "undo": "되돌리기", "untilMinutesBefore": "환불 기한",
	"username": "장치 이름", "waves": "배포 단계", "weekday": "요일", "wholeStay": "이용 시간 전체", "wonPerMinute": "분당 보상 금액", "yearly": "매년 반복",
}

// weekdays are the Korean names of the days of the week, from Sunday.
var weekdays = [7]string{"일요일", "월요일", "화요일", "수요일", "목요일", "금요일", "토요일"}

// Invalid describes in Korean the setting that is out of bounds.
func Invalid(e *booking.InvalidError) *FieldError {
	problem := &FieldError{Field: e.Field, Problem: "값이 올바르지 않습니다."}
	if e.Weekday != nil {
		problem = &FieldError{Problem: weekdays[*e.Weekday] + " " + problem.Error()}
	}
	return problem
}

func fieldName(field string) string {
	if name, ok := fieldNames[field]; ok {
		return name + "(" + field + ")"
	}
	return field
}

// Decode reads one JSON object of at most MaxBody bytes into body. Unknown fields are ignored, so that clients may be
// newer than the service.
func Decode(r *http.Request, body any) error { return DecodeUpTo(r, MaxBody, body) }

// DecodeUpTo is Decode for operations with a limit of their own, in bytes.
func DecodeUpTo(r *http.Request, limit int64, body any) error {
	raw, err := ReadUpTo(r, limit)
	if err != nil {
		return err
	}
	return decodeBytes(raw, body)
}

// DecodeOptional is Decode for operations whose body may be absent.
func DecodeOptional(r *http.Request, body any) error { return DecodeOptionalUpTo(r, MaxBody, body) }

// DecodeOptionalUpTo is DecodeOptional for operations with a limit of their own, in bytes.
func DecodeOptionalUpTo(r *http.Request, limit int64, body any) error {
	raw, err := ReadUpTo(r, limit)
	if err != nil || len(raw) == 0 {
		return err
	}
	return decodeBytes(raw, body)
}

// ReadBody reads a body of at most MaxBody bytes.
func ReadBody(r *http.Request) ([]byte, error) { return ReadUpTo(r, MaxBody) }

// ReadUpTo reads a body of at most limit bytes. It returns ErrBodyTooLarge for a larger one.
func ReadUpTo(r *http.Request, limit int64) ([]byte, error) {
	raw, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, limit))
	if tooLarge := new(http.MaxBytesError); errors.As(err, &tooLarge) {
		return nil, ErrBodyTooLarge
	}
	if err != nil {
		return nil, &FieldError{Problem: "요청 본문을 읽을 수 없습니다."}
	}
	return raw, nil
}

func decodeBytes(raw []byte, body any) error {
	if !isObject(raw) {
		return ErrMalformedBody
	}
	if !isText(raw) {
		return notText(raw)
	}
	if err := json.Unmarshal(raw, body); err != nil {
		if wrongType := new(json.UnmarshalTypeError); errors.As(err, &wrongType) && wrongType.Field != "" {
			// For a field of an embedded struct, the decoder reports the struct's name as well.
			return Malformed(wrongType.Field[strings.LastIndexByte(wrongType.Field, '.')+1:])
		}
		return ErrMalformedBody
	}
	return nil
}

// isText reports whether JSON is UTF-8 and escapes neither half of a character (\ud800 without the other half) nor a NUL, which
// PostgreSQL cannot store.
func isText(raw []byte) bool {
	for rest := raw; ; {
		at := bytes.IndexByte(rest, '\\')
		if at < 0 || at+1 >= len(rest) {
			return utf8.Valid(raw)
		}
		first, ok := escaped(rest[at:])
		switch {
		case !ok:
			rest = rest[at+2:]
		case first == 0:
			return false
		case !utf16.IsSurrogate(first):
			rest = rest[at+6:]
		default:
			second, _ := escaped(rest[at+6:])
			if utf16.DecodeRune(first, second) == unicode.ReplacementChar {
				return false
			}
			rest = rest[at+12:]
		}
	}
}

// escaped returns the code unit of an escape such as \u00e9 at the beginning of JSON.
func escaped(raw []byte) (unit rune, ok bool) {
	if len(raw) < 6 || raw[0] != '\\' || raw[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(raw[2:6]), 16, 16)
	return rune(n), err == nil
}

// notText returns an error for the first field that is not text; the decoder would silently replace its bytes.
func notText(raw []byte) error {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return ErrMalformedBody
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if !isText(fields[name]) {
			return Malformed(name)
		}
	}
	return ErrMalformedBody
}

// Errors of requests that no endpoint accepts.
var (
	ErrBodyTooLarge    = errors.New("wire: body too large")
	ErrBranchForbidden = account.ErrBranchForbidden
)

// ErrMalformedBody is returned for a body that is not a JSON object.
var ErrMalformedBody = &FieldError{Problem: "요청 본문이 올바른 JSON 형식이 아닙니다."}

func isObject(raw []byte) bool {
	trimmed := bytes.TrimLeft(raw, " \t\r\n")
	return len(trimmed) > 0 && trimmed[0] == '{'
}

// Blank reports whether a string is absent or shows nothing, such as spaces and characters without a width.
func Blank(value *string) bool { return value == nil || !strings.ContainsFunc(*value, visible) }

func visible(r rune) bool {
	const emptyBraille = '\u2800'
	return unicode.In(r, unicode.L, unicode.N, unicode.P, unicode.S) && !unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r) && r != emptyBraille
}

// Text checks a required string of at most max characters (not bytes).
func Text(field string, value *string, max int) (string, error) {
	text, err := OptionalText(field, value, max)
	if err == nil && text == "" {
		err = Missing(field)
	}
	return text, err
}

// DecodeReason reads the body {reason} of a request that a person must explain.
func DecodeReason(r *http.Request, max int) (string, error) {
	var body struct {
		Reason *string `json:"reason"`
	}
	if err := Decode(r, &body); err != nil {
		return "", err
	}
	return Text("reason", body.Reason, max)
}

// DecodeEnabled reads the body {enabled} of a request that switches something on or off.
func DecodeEnabled(r *http.Request) (bool, error) {
	var body struct {
		Enabled *bool `json:"enabled"`
	}
	if err := Decode(r, &body); err != nil {
		return false, err
	}
	if body.Enabled == nil {
		return false, Missing("enabled")
	}
	return *body.Enabled, nil
}

// OptionalText checks a string that may be absent or empty. It removes the characters that change the direction of the text around the
// string, such as that of a phone number behind a name.
func OptionalText(field string, value *string, max int) (string, error) {
	if value == nil {
		return "", nil
	}
	if utf8.RuneCountInString(*value) > max {
		return "", TooLong(field, max)
	}
	if strings.ContainsFunc(*value, func(r rune) bool { return r < ' ' && r != '\n' && r != '\r' && r != '\t' || r == 0x7f }) {
		return "", Malformed(field)
	}
	if Blank(value) {
		return "", nil
	}
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if '\u202a' <= r && r <= '\u202e' || '\u2066' <= r && r <= '\u2069' {
			return -1
		}
		return r
	}, *value)), nil
}

// Whole checks a required integer within [low, high].
func Whole(field string, value *int, low, high int) (int, error) {
	if value == nil {
		return 0, Missing(field)
	}
	if *value < low || *value > high {
		return 0, OutOfRange(field, low, high)
	}
	return *value, nil
}

// Mobile checks a phone number: at most 20 characters, digits with the usual separators, returned in ASCII.
func Mobile(field string, value *string, required bool) (string, error) {
	number, err := OptionalText(field, value, 20)
	if err != nil {
		return "", err
	}
	number = strings.TrimSpace(booking.FoldPhone(number))
	if number == "" {
		if required {
			return "", Missing(field)
		}
		return "", nil
	}
	if len(booking.NormalizePhone(number)) < 8 || strings.Trim(number, "0123456789+-(). ") != "" {
		return "", Malformed(field)
	}
	return number, nil
}

// maxEmail is the longest e-mail address that is accepted (docs/specification.md, Limits).
const maxEmail = 100

// Email checks an address that may be absent.
func Email(field string, value *string) (string, error) {
	address, err := OptionalText(field, value, maxEmail)
	if err != nil || address == "" {
		return "", err
	}
	local, domain, ok := strings.Cut(address, "@")
	if !ok || local == "" || !strings.Contains(domain, ".") || strings.ContainsAny(address, " \t\r\n<>,;\"") || strings.Contains(domain, "@") {
		return "", Malformed(field)
	}
	return address, nil
}

// Interval reads startDateTime and endDateTime (the real end) of a request.
func Interval(start, end *string, zone *time.Location) (booking.Interval, error) {
	from, err := Time("startDateTime", start, zone)
	if err != nil {
		return booking.Interval{}, err
	}
	to, err := Time("endDateTime", end, zone)
	if err != nil {
		return booking.Interval{}, err
	}
	return booking.NewInterval(from, to, zone)
}

// Query returns a required query parameter.
func Query(r *http.Request, field string) (string, error) {
	value := r.URL.Query().Get(field)
	if value == "" {
		return "", Missing(field)
	}
	return value, nil
}

// QueryInt returns a required integer of the query within [low, high].
func QueryInt(r *http.Request, field string, low, high int) (int, error) {
	value, err := Query(r, field)
	if err != nil {
		return 0, err
	}
	n, err := Number(value)
	if err != nil {
		return 0, Malformed(field)
	}
	return Whole(field, &n, low, high)
}

// NumberOrText reads a number that is in JSON a number or text, such as 2 and "2"; nil if it is absent or null.
func NumberOrText(field string, value json.RawMessage) (*int, error) {
	if len(value) == 0 || string(value) == "null" {
		return nil, nil //nolint:nilnil // the field may be optional
	}
	n, err := Number(strings.Trim(string(value), `"`))
	if err != nil {
		return nil, Malformed(field)
	}
	return &n, nil
}

// Number reads decimal digits only: no sign and no space.
func Number(text string) (int, error) {
	if strings.Trim(text, "0123456789") != "" {
		return 0, strconv.ErrSyntax
	}
	return strconv.Atoi(text)
}
