package notify

import (
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"
	"unicode/utf8"
)

var update = flag.Bool("update", false, "rewrite golden files")

// example has a value for every variable of every template.
var example = map[string]string{
	"accountHolder": "홍길동",
	"address":       "서울특별시 강남구 가상대로 123",
	"endTime":       "16:00",
	"pin":           "482913",
	"accountNumber": "X1234567890123",
	"amount":        "18,000",
	"bank":          "우리은행",
	"branch":        "강남점",
	"code":          "042137",
	"date":          "2026년 11월 21일(토)",
	"doorlockKey":   "6f1c2c1e-8a55-4d0e-9a53-6a4b5c1d2e3f",
	"doors":         "현관문과 룸 문",
	"dueTime":       "15:10",
	"email":         "hong@example.com",
	"link":          "https://yeolda.example/k#6f1c2c1e-8a55-4d0e-9a53-6a4b5c1d2e3f",
	"message":       "문의합니다.\n상담 부탁드립니다.",
	"minutes":       "3",
	"mobileNum":     "010-1234-5678",
	"name":          "홍길동",
	"phone":         "02-123-4567",
	"region":        "부산 해운대구",
	"head":          "1041:5d41402abc4b2a76b9719d911017c592",
	"proof":         `{"report":{"violations":0},"key":"AAAA","signature":"BBBB"}`,
	"violations":    "0",
	"room":          "2",
	"since":         "2026-11-21 15:00",
	"time":          "15:00~16:00",
	"until":         "2026-11-21 15:20",
	"what":          "3번 룸 문이 열리지 않아요",
}

func TestTemplatesRender(t *testing.T) {
	t.Parallel()
	for key := range sources {
		text, err := Message{Template: key.template, Language: key.language, Variables: example}.Render()
		if err != nil {
			t.Errorf("%v: %v", key, err)
			continue
		}
		path := filepath.Join("testdata", string(key.language), string(key.template)+".golden")
		got := text.Subject + "\n\n" + text.Body + "\n"
		if *update {
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s:\ngot  %s\nwant %s", path, got, want)
		}
	}
}

func TestTemplatesAreWhole(t *testing.T) {
	t.Parallel()
	all := []Template{AlertBegan, AlertEnded, DepositConfirmed, DepositConfirmedPIN, DepositOverdue, DepositReversed, ExtensionCanceled, ExtensionUnrefunded, ExtensionEnded, ExtensionReversed, FranchiseInquiry, KeyChanged, LoginCode, PartRefunded, PaymentFailed, PaymentReturned, DailyProof, RefundAccountNeeded, RefundCompleted, RefundFailed,
		ReservationCanceled, ReservationUnrefunded, ReservationConfirmed, ReservationConfirmedPIN, ReservationEnded, ReservationMoved, StayCompensated, StayDoorFailed, StayEnding, StayExtended, StayNotArrived, StayPIN, StayReminder, VirtualAccountIssued}
	if got := Templates(); !slices.Equal(got, all) {
		t.Errorf("template files %v, constants %v", got, all)
	}
	for _, template := range all {
		ko, en := sources[sourceKey{template, Korean}], sources[sourceKey{template, English}]
		if len(ko.variables) == 0 || !slices.Equal(ko.variables, en.variables) {
			t.Errorf("%s: variables differ: %v in Korean, %v in English", template, ko.variables, en.variables)
		}
		for _, src := range []source{ko, en} {
			rest := placeholder.ReplaceAllString(src.subject+src.body, "")
			if strings.ContainsAny(rest, "#{}") {
				t.Errorf("%s holds a broken placeholder", template)
			}
			if n := utf8.RuneCountInString(src.body); n > 800 { // KakaoTalk allows 1000 characters, variables included
				t.Errorf("%s has %d characters before its variables", template, n)
			}
		}
	}
	// Black-box tests read these two fields.
	for template, name := range map[Template]string{LoginCode: "code", ReservationConfirmed: "doorlockKey",
		DepositConfirmed: "doorlockKey", ReservationMoved: "doorlockKey"} {
		if !slices.Contains(template.Variables(), name) {
			t.Errorf("%s has no variable %s", template, name)
		}
	}
}

func TestRenderNeedsEveryVariable(t *testing.T) {
	t.Parallel()
	for _, template := range Templates() {
		for _, name := range template.Variables() {
			for _, value := range []string{"", " \t"} {
				vars := maps.Clone(example)
				vars[name] = value
				text, err := Message{Template: template, Variables: vars}.Render()
				if substitute, ok := map[string]string{"name": "고객", "address": "강남점", "phone": "고객센터", "doors": "현관문과 룸 문"}[name]; ok {
					if err != nil || !strings.Contains(text.Body, substitute) {
						t.Errorf("%s without %s: %q, %v, want %s", template, name, text.Body, err, substitute)
					}
				} else if err == nil {
					t.Errorf("%s without %s was rendered, want an error", template, name)
				}
			}
		}
	}
	vars := maps.Clone(example)
	vars["phone"] = ""
	text, err := Message{Template: ReservationConfirmed, Variables: vars, Brand: Brand{Phone: "1588-0000"}}.Render()
	if err != nil || !strings.Contains(text.Body, "문의 전화: 1588-0000") {
		t.Errorf("branch without a phone: %q, %v, want the operator's", text.Body, err)
	}
	if _, err := (Message{Template: "no-such", Variables: example}).Render(); err == nil {
		t.Error("rendered a template that does not exist")
	}
	if _, err := (Message{Template: LoginCode, Language: "fr", Variables: example}).Render(); err == nil {
		t.Error("rendered in French")
	}
	for _, id := range []string{"a b", "a\r\nBcc: b@example.com", "<a@b>", strings.Repeat("a", 65)} {
		if _, err := (Message{ID: id, Template: LoginCode, Variables: example}).Render(); err == nil {
			t.Errorf("accepted the ID %q", id)
		}
	}
}

func TestRenderDoesNotExpandValues(t *testing.T) {
	t.Parallel()
	vars := maps.Clone(example)
	vars["name"] = "#{doorlockKey}\u202e\x00\r\n악당"
	text, err := Message{Template: ReservationCanceled, Variables: vars}.Render()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(text.Body, "#{doorlockKey} 악당님, ") {
		t.Errorf("rendered %q", text.Body)
	}
}

// A guest chooses the name, and any phone number: the name must not become lines of the message. An inquiry has its lines.
func TestNamesAddNoLines(t *testing.T) {
	t.Parallel()
	vars := maps.Clone(example)
	for _, lineBreak := range []string{"\n", "\r\n", "\r", "\u2028", "\u2029", "\u0085", "\v", "\f"} {
		vars["name"] = "고객" + lineBreak + lineBreak + "[은행] 확인: evil.example"
		for _, template := range Templates() {
			for _, language := range []Language{Korean, English} {
				plain := maps.Clone(vars)
				plain["name"] = "고객"
				m := Message{Template: template, Language: language}
				m.Variables = plain
				want, err := m.Render()
				m.Variables = vars
				got, gotErr := m.Render()
				if err != nil || gotErr != nil {
					t.Fatal(err, gotErr)
				}
				if lines := strings.Count(got.Body, "\n"); lines != strings.Count(want.Body, "\n") || strings.ContainsAny(got.Body, "\r\u2028\u2029\u0085\v\f") {
					t.Errorf("%s in %s with %q: %q", template, language, lineBreak, got.Body)
				}
			}
		}
	}
	vars["message"] = "문의합니다.\n\n상담 부탁드립니다."
	if text, err := (Message{Template: FranchiseInquiry, Variables: vars}).Render(); err != nil || !strings.Contains(text.Body, vars["message"]) {
		t.Errorf("an inquiry: %q, %v", text.Body, err)
	}
}

func TestSubjectIsOneLine(t *testing.T) {
	t.Parallel()
	vars := maps.Clone(example)
	vars["region"] = "부산\r\nBcc: everybody@example.com\n"
	text, err := Message{Template: FranchiseInquiry, Variables: vars}.Render()
	if err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(text.Subject, "\r\n") {
		t.Errorf("subject %q", text.Subject)
	}
}

func TestReadSourcesRefusesBrokenFiles(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "subject only", "two\nlines\n\ntext"} {
		if _, err := readSources(fstest.MapFS{"templates/ko/x.txt": {Data: []byte(text)}}); err == nil {
			t.Errorf("%q was accepted as a template", text)
		}
	}
}

func TestPeriod(t *testing.T) {
	t.Parallel()
	seoul := time.FixedZone("KST", 9*60*60)
	at := func(day, hour, min int) time.Time { return time.Date(2026, 11, day, hour, min, 0, 0, seoul) }
	for _, tc := range []struct {
		lang        Language
		start, end  time.Time
		date, hours string
	}{
		{Korean, at(21, 15, 0), at(21, 16, 0).UTC(), "2026년 11월 21일(토)", "15:00~16:00"},
		{Korean, at(22, 23, 30), at(23, 1, 0), "2026년 11월 22일(일)", "23:30~다음 날 01:00"},
		{English, at(21, 15, 0), at(21, 16, 0), "Sat, 21 Nov 2026", "15:00~16:00"},
		{English, at(22, 23, 30), at(23, 1, 0), "Sun, 22 Nov 2026", "23:30~01:00 (next day)"},
		{Korean, at(28, 15, 0), at(29, 17, 0), "2026년 11월 28일(토)", "15:00~다음 날 17:00"},
		{Korean, at(28, 15, 0), at(30, 17, 0), "2026년 11월 28일(토)", "15:00~11월 30일(월) 17:00"},
		{English, at(28, 15, 0), at(30, 17, 0), "Sat, 28 Nov 2026", "15:00~Mon, 30 Nov 17:00"},
		{Korean, at(28, 15, 0), at(28, 15, 0).AddDate(1, 0, 0), "2026년 11월 28일(토)", "15:00~11월 28일(일) 15:00"},
		{Korean, at(61, 23, 0), at(62, 1, 0), "2026년 12월 31일(목)", "23:00~다음 날 01:00"},
	} {
		if date, hours := Period(tc.lang, tc.start, tc.end); date != tc.date || hours != tc.hours {
			t.Errorf("%s: %q %q, want %q %q", tc.lang, date, hours, tc.date, tc.hours)
		}
	}
}

func TestDue(t *testing.T) {
	t.Parallel()
	seoul := time.FixedZone("KST", 9*60*60)
	now := time.Date(2026, 11, 21, 14, 55, 0, 0, time.UTC) // 23:55 in Seoul
	for _, tc := range []struct {
		lang Language
		due  time.Time
		want string
	}{
		{Korean, time.Date(2026, 11, 21, 23, 59, 0, 0, seoul), "23:59"},
		{Korean, time.Date(2026, 11, 22, 0, 5, 0, 0, seoul), "2026년 11월 22일(일) 00:05"},
		{English, time.Date(2026, 11, 22, 0, 5, 0, 0, seoul), "Sun, 22 Nov 2026 00:05"},
	} {
		if got := Due(tc.lang, tc.due, now); got != tc.want {
			t.Errorf("due %v: %q, want %q", tc.due, got, tc.want)
		}
	}
}

func TestWon(t *testing.T) {
	t.Parallel()
	for amount, want := range map[int]string{0: "0", 900: "900", 1000: "1,000", 18000: "18,000", 1234567: "1,234,567", -18000: "-18,000", -900: "-900"} {
		if got := Won(amount); got != want {
			t.Errorf("%d: %s, want %s", amount, got, want)
		}
	}
}

func FuzzRender(f *testing.F) {
	f.Add("홍길동", "문의\r\n합니다")
	f.Add("#{code}", "\x00\u202e")
	f.Fuzz(func(t *testing.T, name, message string) {
		vars := maps.Clone(example)
		vars["region"], vars["message"] = name, message
		text, err := Message{Template: FranchiseInquiry, Variables: vars}.Render()
		if err == nil && (strings.ContainsAny(text.Subject, "\r\n\x00") || strings.ContainsAny(text.Body, "\r\x00")) {
			t.Errorf("%q %q", text.Subject, text.Body)
		}
	})
}
