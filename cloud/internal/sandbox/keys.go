package sandbox

import (
	"crypto/subtle"
	"encoding/base64"
	"strings"
)

// keySet is one of the shop's two key sets. A payment made with one set is invisible to the other (docs/specification.md, Payment provider 1).
type keySet string

const (
	widgetKeys keySet = "widget"
	apiKeys    keySet = "api"
)

// mID returns the shop id of a key set. Every payment key starts with the first five letters of the shop id.
func (k keySet) mID() string {
	if k == widgetKeys {
		return "tgyeolda01"
	}
	return "tayeolda01"
}

// authenticate returns the key set that an Authorization header authenticates.
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
		return "", refuse("INVALID_API_KEY") // a client key instead of the secret key
	}
	return "", refuse("UNAUTHORIZED_KEY")
}

// parseBasic returns the secret key of a header "Basic base64(secretKey:)". The colon is required and the password is
// empty (docs/specification.md, Payment provider 1).
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
