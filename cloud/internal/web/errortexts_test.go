package web

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// forClients are messages that no administrator meets in the console: those to guests, to agents, and to programs.
var forClients = map[string]bool{
	"등록 토큰이 올바르지 않거나 만료되었습니다.": true, "토큰이 올바르지 않거나 만료되었습니다.": true,
	"토큰에 이 작업의 권한(scope)이 없습니다.": true, "이벤트 종류(types) 값이 올바르지 않습니다.": true,
	"요청한 위치 다음의 이벤트가 보관되어 있지 않습니다. 처음부터 다시 조회해 주세요.":       true,
	"Idempotency-Key 헤더는 공백 없는 1자에서 255자의 ASCII 문자여야 합니다.": true,
	"같은 Idempotency-Key로 다른 요청을 이미 보냈습니다.":                 true, "같은 Idempotency-Key로 다른 내용의 요청이 있었습니다.": true,
	"같은 Idempotency-Key의 요청을 처리하고 있거나 그 결과를 알 수 없습니다.": true,
	"다른 사이트에서 보낸 요청은 처리할 수 없습니다.":                      true, "해당 예약에 대한 권한이 없습니다.": true, "웹훅 인증에 실패했습니다.": true,
	"해당 환불 링크를 찾을 수 없습니다.": true, "해당 주문을 찾을 수 없습니다.": true, "예약 내역이 없습니다.": true,
	"허용되지 않은 요청 방식입니다.": true, "종료된 API입니다. V2 API를 사용해 주세요.": true, "요청 본문이 너무 큽니다.": true,
	"해당 룸에서 예약할 수 없는 이용 시간입니다. 종료 시각(endDateTime)을 확인해 주세요.": true, "유효하지 않은 도어락 키입니다.": true,
	"예약자의 열쇠로만 동행 열쇠를 관리할 수 있습니다.": true, "동행 열쇠는 최대 8개까지 만들 수 있습니다.": true,
	"동행 열쇠는 취소한 것을 포함해 예약마다 50개까지 만들 수 있습니다.": true, "도어락 해제 가능 시간이 아닙니다.": true,
	"연장할 수 없는 예약입니다.": true, "결제를 기다리는 연장이 이미 있습니다. 그 결제가 끝난 뒤에 다시 연장해 주세요.": true,
	"예약자의 열쇠로만 이용 시간을 바꿀 수 있습니다.": true, "이용 시간이 끝난 예약입니다.": true,
	"아직 시작되지 않은 예약입니다. 예약 취소를 이용해 주세요.": true, "시작 시각(startDateTime)이 예약 가능 기간을 벗어났습니다.": true,
	"예약 시작 30분 전까지만 취소할 수 있습니다.": true, "이 문에는 일회용 코드를 입력할 수 있는 키패드가 없습니다.": true,
	"지금은 일회용 코드를 만들 수 없습니다. 잠시 후 다시 시도해 주세요.": true, "직원이 에어컨을 조작하여 온도를 바꿀 수 없습니다.": true,
	"요청이 너무 많습니다. 잠시 후 다시 시도해 주세요.": true, // the console has a text for the status 429
}

// TestGuestsReadRefusalsInEnglish checks that the types of the customers' English refusals are types of the service.
func TestGuestsReadRefusalsInEnglish(t *testing.T) {
	t.Parallel()
	_, refusals, found := strings.Cut(read(t, "src/locales/en.ts"), "export const refusals")
	if !found {
		t.Fatal("en.ts has no refusals")
	}
	table := read(t, "../httpapi/errors.go")
	for _, m := range regexp.MustCompile(`(?m)^  (\w+): "`).FindAllStringSubmatch(refusals, -1) {
		if !strings.Contains(table, `"`+m[1]+`"`) {
			t.Errorf("a text for %s, which the service does not answer", m[1])
		}
	}
}

// TestConsoleSaysErrorsInEnglish checks that the English console has a text for each message of the service to administrators,
// and none for messages that do not exist.
func TestConsoleSaysErrorsInEnglish(t *testing.T) {
	t.Parallel()
	hangul := regexp.MustCompile(`\p{Hangul}`)
	file, err := parser.ParseFile(token.NewFileSet(), "../httpapi/errors.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	messages := map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
			if text, err := strconv.Unquote(literal.Value); err == nil && hangul.MatchString(text) {
				messages[text] = true
			}
		}
		return true
	})
	if len(messages) < 100 {
		t.Fatalf("the service has %d messages, want at least 100", len(messages))
	}
	english := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^  "(.+?)":\s`).FindAllStringSubmatch(read(t, "src/locales/errors-en.ts"), -1) {
		english[m[1]] = true
		if !messages[m[1]] {
			t.Errorf("an English text for a message that the service does not have: %s", m[1])
		}
	}
	for text := range messages {
		if english[text] == forClients[text] {
			t.Errorf("English text: %t, for guests and programs: %t, want one of them: %s", english[text], forClients[text], text)
		}
	}
}

// TestConsoleSaysFieldErrorsInEnglish checks that the English console reads each message of the service about a field.
func TestConsoleSaysFieldErrorsInEnglish(t *testing.T) {
	t.Parallel()
	console := read(t, "src/console/parts.ts")
	problems := regexp.MustCompile(`"(값[^"]+)"`).FindAllStringSubmatch(read(t, "../httpapi/wire/fields.go"), -1)
	if len(problems) < 5 {
		t.Fatalf("the service has %d messages about a field, want at least 5", len(problems))
	}
	for _, m := range problems {
		if ending := strings.ReplaceAll(regexp.QuoteMeta(m[1]), "%d", `(\d+)`); !strings.Contains(console, "/"+ending+"$/") {
			t.Errorf("no English text for a message about a field: %s", m[1])
		}
	}
}

// TestEnglishCountsOfOne: an English text of the console with a number is correct for the number one, too: "Stays: {n}", not "{n} stays".
func TestEnglishCountsOfOne(t *testing.T) {
	t.Parallel()
	const atLeastTwo = "lastDays frontDoors" // shown for 7 and 30 days, and for several doors
	for _, m := range regexp.MustCompile(`(\w+):\s+"([^"]*\{n\} (?:[a-z]+ )?[a-z]{2,}[^s]s\b[^"]*)"`).FindAllStringSubmatch(read(t, "src/locales/console-en.ts"), -1) {
		if !strings.Contains(atLeastTwo, m[1]) {
			t.Errorf("%s: %q", m[1], m[2])
		}
	}
}
