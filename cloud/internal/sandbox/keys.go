package sandbox

import (
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
)

// keySet is one of a shop's two key sets. A payment made with one set is invisible to the other (docs/specification.md, Payment provider 1).
// A shop has as many pairs of key sets as it has merchants: "widget-7" is the widget's of merchant 7.
type keySet string

const (
	widgetKeys keySet = "widget"
	apiKeys    keySet = "api"
)

// of returns the key set of a merchant; the first merchant's has no number.
func (k keySet) of(merchant int) keySet {
	if merchant == 1 {
		return k
	}
	return k + keySet(fmt.Sprintf("-%d", merchant))
}

// kind returns widgetKeys or apiKeys.
func (k keySet) kind() keySet {
	kind, _, _ := strings.Cut(string(k), "-")
	return keySet(kind)
}

// merchant returns the number of the merchant, at least 1.
func (k keySet) merchant() int {
	_, number, _ := strings.Cut(string(k), "-")
	n, err := strconv.Atoi(number)
	if err != nil {
		return 1
	}
	return n
}

// mID returns the shop id of a key set. Every payment key starts with the first five letters of the shop id.
func (k keySet) mID() string {
	prefix := "ta"
	if k.kind() == widgetKeys {
		prefix = "tg"
	}
	return fmt.Sprintf("%syeolda%02d", prefix, k.merchant())
}

// lists reports whether the lists of a key set contain the payments of a shop id. Both key sets list all payments of their merchant, as if
// they belonged to one shop id, which the provider's documentation does not exclude.
func (k keySet) lists(mID string) bool {
	return mID == k.mID() || mID == widgetKeys.of(k.merchant()).mID() || mID == apiKeys.of(k.merchant()).mID()
}

// maxMerchants bounds the merchants of a sandbox.
const maxMerchants = 99

// merchantOf splits a key into the key of the first merchant and the number at its end, as in test_sk_yeolda_demo_2: every key
// of the sandbox with such a number from 2 to 99 is that of a merchant of its own.
func merchantOf(key string) (first string, merchant int) {
	if i := strings.LastIndexByte(key, '_'); i >= 0 {
		if n, err := strconv.Atoi(key[i+1:]); err == nil && n >= 2 && n <= maxMerchants && key[i+1:] == strconv.Itoa(n) {
			return key[:i], n
		}
	}
	return key, 1
}

// authenticate returns the key set that an Authorization header authenticates.
func (s *Sandbox) authenticate(header string) (keySet, error) {
	key, err := parseBasic(header)
	if err != nil {
		return "", err
	}
	first, merchant := merchantOf(key)
	for secret, set := range s.keys {
		switch {
		case subtle.ConstantTimeCompare([]byte(secret), []byte(key)) == 1:
			return set, nil
		case subtle.ConstantTimeCompare([]byte(secret), []byte(first)) == 1:
			return set.of(merchant), nil
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
