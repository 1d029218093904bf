package wire

import (
	"net/http/httptest"
	"testing"
)

func TestLanguageFollowsPreference(t *testing.T) {
	t.Parallel()
	for accepts, want := range map[string]string{
		"":                                    "ko",
		"*":                                   "ko",
		"de":                                  "ko",
		"en":                                  "en",
		"EN-us":                               "en",
		"ko-KR,ko;q=0.9,en-US;q=0.8,en;q=0.7": "ko",
		"en-US,en;q=0.9,ko;q=0.8":             "en",
		"fr-FR,fr;q=0.9,en-US;q=0.8,en;q=0.7": "en",
		"fr, en;q=0.5, ko;q=0.4":              "en",
		"en;q=0.3, ko;q=0.8":                  "ko",
		"ko;q=0, en":                          "en",
		"en;q=0":                              "ko",
		"ko, en":                              "ko",
		"en, ko":                              "en",
		"en;q=0.5, ko-KR;q=0.5":               "en",
		"enq, ko":                             "ko", // Enga
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("Accept-Language", accepts)
		if got := Language(r); got != want {
			t.Errorf("Accept-Language %q: got %s, want %s", accepts, got, want)
		}
	}
}
