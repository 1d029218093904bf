package sandbox

import (
	"crypto/subtle"
	"encoding/base64"
	"strings"
)

// keySet is which of the shop's two key sets a call or a payment belongs to. A payment made with one set
// does not exist for the other (providers.md 1.1).
type keySet string

const (
	widgetKeys keySet = "widget"
	apiKeys    keySet = "api"
)

// mID is the shop id behind a key set; the first five letters start every payment key.
func (k keySet) mID() string {
	if k == widgetKeys {
		return "tgyeolda01"
	}
	return "tayeolda01"
}

// authenticate tells which key set an Authorization header proves.
func (s *Sandbox) authenticate(header string) (keySet, error) {
	key, err := parseBasic(header)
	if err != nil {
		return "", err
	}
	for secret, set := range s.keys {
		if subtle.ConstantTimeCompare([]byte(secret), []byte(key)) == 1 {
			return set, nil
		}
	}
	if strings.HasPrefix(key, "test_gck_") || strings.HasPrefix(key, "test_ck_") {
		return "", refuse("INVALID_API_KEY") // a client key where the secret key belongs
	}
	return "", refuse("UNAUTHORIZED_KEY")
}

// parseBasic returns the secret key of a header "Basic base64(secretKey:)". The colon is required and the
// password is empty (providers.md 1.1).
func parseBasic(header string) (string, error) {
	scheme, encoded, ok := strings.Cut(header, " ")
	if !ok || !strings.EqualFold(scheme, "Basic") {
		return "", refuse("UNAUTHORIZED_KEY")
	}
	decoded, err := base64.StdEncoding.DecodeString(strings.TrimSpace(encoded))
	if err != nil {
		return "", refuse("UNAUTHORIZED_KEY")
	}
	key, password, ok := strings.Cut(string(decoded), ":")
	switch {
	case !ok:
		return "", refuse("INCORRECT_BASIC_AUTH_FORMAT")
	case key == "" || password != "":
		return "", refuse("UNAUTHORIZED_KEY")
	}
	return key, nil
}
