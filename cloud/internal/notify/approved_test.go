package notify

import (
	"slices"
	"testing"
)

func TestParseApproved(t *testing.T) {
	t.Parallel()
	got, err := ParseApproved(map[string]string{"reservation-moved/en": "KA01TP-b@KA01PF-c", "login-code/ko": " KA01TP-a "})
	want := []ApprovedTemplate{{LoginCode, Korean, "KA01TP-a", ""}, {ReservationMoved, English, "KA01TP-b", "KA01PF-c"}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	for _, key := range []string{"login-code", "login-code/fr", "x/ko", ""} {
		if _, err := ParseApproved(map[string]string{key: "id"}); err == nil {
			t.Errorf("%q was accepted as a template", key)
		}
	}
	if _, err := ParseApproved(map[string]string{"login-code/ko": ""}); err == nil {
		t.Error("accepted a template without an id")
	}
}
