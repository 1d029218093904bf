package wire

import (
	"errors"
	"strings"
	"testing"
)

// A required text has to show something. Characters that change the direction of the text around it are removed.
func TestText(t *testing.T) {
	t.Parallel()
	for _, blank := range []string{
		"", " \t\n", "\u3000", "\u200b", "\u200b\u200c\u200d", "\u2060", "\ufeff", "\u00ad", "\u3164", "\uffa0", "\u115f\u1160", "\u2800", "\u180e", "\u034f",
		"\u200e\u200f", "\u202e\u202c", "\u2066\u2069", "\U000e0020", "\ufe0f", "\u0301",
	} {
		var invalid *FieldError
		if text, err := Text("name", &blank, 50); !errors.As(err, &invalid) || invalid.Problem != "값은 필수입니다." {
			t.Errorf("Text(%+q) is %+q, %v, want that it is missing", blank, text, err)
		}
		if text, err := OptionalText("name", &blank, 50); text != "" || err != nil {
			t.Errorf("OptionalText(%+q) is %+q, %v, want it empty", blank, text, err)
		}
	}
	for given, want := range map[string]string{
		"김손님": "김손님", " 김 손님 ": "김 손님", "👨\u200d👩\u200d👧": "👨\u200d👩\u200d👧", "e\u0301": "e\u0301", "♥️": "♥️", "７": "７", "-": "-",
		"홍\u202e길동\u202c": "홍길동", "\u2066Kim\u2069": "Kim", "אב\u200fג": "אב\u200fג", "김\u200b손님": "김\u200b손님",
		strings.Repeat("가", 50): strings.Repeat("가", 50),
	} {
		if text, err := Text("name", &given, 50); text != want || err != nil {
			t.Errorf("Text(%+q) is %+q, %v, want %+q", given, text, err, want)
		}
	}
	for _, invalid := range []string{"a\x00b", "a\x7f", strings.Repeat("가", 51)} {
		if text, err := Text("name", &invalid, 50); err == nil {
			t.Errorf("Text(%+q) is %+q, want an error", invalid, text)
		}
	}
}
