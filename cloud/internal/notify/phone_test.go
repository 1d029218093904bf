package notify

import "testing"

func TestMobile(t *testing.T) {
	t.Parallel()
	for number, want := range map[string]string{
		"01012345678": "01012345678", "010-1234-5678": "01012345678", " 010 1234 5678": "01012345678",
		"+82 10-1234-5678": "01012345678", "+82 010 1234 5678": "01012345678", "02-123-4567": "021234567", "1588-1234": "15881234",
		"821012345678": "01012345678", "0082 10 1234 5678": "01012345678", "010１２３４5678": "01012345678",
	} {
		if got, err := mobile(number); err != nil || got != want {
			t.Errorf("%q: %q, %v, want %q", number, got, err, want)
		}
	}
	for _, number := range []string{"", "abc", "010-1234-567a", "+1 212 555 0100", "1234567", "0101234567890", "01012345678\r\n"} {
		if got, err := mobile(number); err == nil {
			t.Errorf("%q was taken for %q", number, got)
		}
	}
}

func TestCut(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		s     string
		limit int
		want  string
	}{{"[열다] 안내", 40, "[열다] 안내"}, {"[열다] 안내", 9, "[열다] 안"}, {"[열다] 안내", 10, "[열다] 안"}, {"가", 1, ""}, {"abc", 2, "ab"}} {
		if got := cut(tc.s, tc.limit); got != tc.want {
			t.Errorf("%q to %d: %q, want %q", tc.s, tc.limit, got, tc.want)
		}
	}
}
