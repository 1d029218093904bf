package console

import "testing"

// No cell of a CSV file is a formula for a spreadsheet.
func TestSheetText(t *testing.T) {
	t.Parallel()
	for _, formula := range []string{"=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "＝1", "＋1", "－1", "＠SUM(A1)"} {
		if got := cellText(formula); got != "'"+formula {
			t.Errorf("%q: got %q", formula, got)
		}
	}
	for _, text := range []string{"", "홍길동", "a=b", "1-2", "'=1"} {
		if got := cellText(text); got != text {
			t.Errorf("%q: got %q", text, got)
		}
	}
	if got := cellText(won(-25000)); got != "-25000" {
		t.Errorf("a negative amount: got %q", got)
	}
}
