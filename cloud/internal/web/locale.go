package web

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// texts are the customers' texts in one language: those of the browser code, by key.
type texts map[string]string

// locales are the texts by language. Pages in other languages do not exist.
type locales map[string]texts

// descriptions are texts for search engines and previews of links. The browser code does not need them.
var descriptions = locales{
	"ko": {
		"homeAbout":   "10분 단위로 예약하고, 결제하면 바로 열리는 무인 휴식 공간",
		"branchAbout": "{branch}의 빈 룸을 10분 단위로 예약하세요. 결제하면 문이 바로 열리는 무인 휴식 공간이에요.",
	},
	"en": {
		"homeAbout":   "Unattended private rooms: book in steps of ten minutes, pay, and the door opens",
		"branchAbout": "Book a free room at {branch} in steps of ten minutes. Pay, and the door of the unattended room opens.",
	},
}

var textLine = regexp.MustCompile(`(?m)^  (\w+):\s+("(?:[^"\\]|\\.)*"),$`)

func readLocales(tree fs.FS) (locales, error) {
	all := locales{}
	for _, lang := range []string{"ko", "en"} {
		source, err := fs.ReadFile(tree, "locales/"+lang+".ts")
		if err != nil {
			return nil, err
		}
		all[lang] = maps.Clone(descriptions[lang])
		for _, line := range textLine.FindAllSubmatch(source, -1) {
			var text string
			if err := json.Unmarshal(line[2], &text); err != nil {
				return nil, fmt.Errorf("text %s in %s: %w", line[1], lang, err)
			}
			all[lang][string(line[1])] = text
		}
	}
	return all, nil
}

// speech renders texts, numbers and times in one language, like text.ts in the browser.
type speech struct {
	Lang  string
	texts texts
	brand string
}

// T returns a text with its parameters: pairs of name and value.
func (s speech) T(key string, params ...any) (string, error) {
	text, ok := s.texts[key]
	if key == "brand" {
		text, ok = s.brand, true
	}
	if !ok {
		return "", fmt.Errorf("no text %q in %s", key, s.Lang)
	}
	for i := 0; i+1 < len(params); i += 2 {
		text = strings.ReplaceAll(text, fmt.Sprintf("{%v}", params[i]), fmt.Sprint(params[i+1]))
	}
	return text, nil
}

// say is T for keys and parameters that are constants of this package, whose existence a test checks.
func (s speech) say(key string, params ...any) string {
	text, err := s.T(key, params...)
	if err != nil {
		panic(err)
	}
	return text
}

func (s speech) english() bool { return s.Lang == "en" }

// Locale returns the language with the territory, for other sites.
func (s speech) Locale() string {
	if s.english() {
		return "en_US"
	}
	return "ko_KR"
}

// Other returns the language that the page offers instead.
func (s speech) Other() string {
	if s.english() {
		return "ko"
	}
	return "en"
}

// Won returns an amount with its currency.
func (s speech) Won(amount int) string {
	return s.say("won", "n", grouped(amount))
}

// grouped returns a number with a comma before each group of three digits.
func grouped(n int) string {
	digits := strconv.Itoa(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// Span returns a length, such as 1시간 20분.
func (s speech) Span(length time.Duration) string {
	hours, minutes := int(length/time.Hour), int(length%time.Hour/time.Minute)
	switch {
	case hours == 0:
		return s.say("minutes", "n", minutes)
	case minutes == 0:
		return s.say("hours", "n", hours)
	}
	return s.say("hoursMinutes", "h", hours, "m", minutes)
}

// Date returns a day, such as 11월 22일 (일).
func (s speech) Date(day time.Time) string {
	if s.english() {
		return day.Format("Mon 2 Jan")
	}
	return fmt.Sprintf("%d월 %d일 (%s)", day.Month(), day.Day(), s.Weekday(day.Weekday()))
}

// Month returns a month with its year.
func (s speech) Month(first time.Time) string {
	if s.english() {
		return first.Format("January 2006")
	}
	return s.say("monthTitle", "year", first.Year(), "month", int(first.Month()))
}

// Weekday returns the short name of a weekday.
func (s speech) Weekday(day time.Weekday) string {
	if s.english() {
		return day.String()[:3]
	}
	return string([]rune(s.say("weekdays"))[day])
}

// bilingual is a text in two languages; the English one may be empty.
type bilingual struct{ Ko, En string }

// Read returns the text in the language of the page, or the Korean one.
func (s speech) Read(text bilingual) string {
	if s.english() && text.En != "" {
		return text.En
	}
	return text.Ko
}

// Foreign reports whether Read returns Korean on an English page.
func (s speech) Foreign(text bilingual) bool { return s.english() && text.En == "" }
