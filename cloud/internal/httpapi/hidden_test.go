package httpapi_test

import (
	"testing"

	"github.com/yeolda/yeolda/cloud/internal/config"
	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

// With YEOLDA_HIDE_ACCOUNTS the answer does not reveal whether a contact has reservations.
func TestHiddenAccounts(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t, func(set *config.Settings) { set.HTTP.HideAccounts = true })
	guest(t, s)
	c := s.Client(t)
	known := c.Post("/account/code", map[string]string{"type": "mobile", "id": "01012345678"}).OK(t)
	unknown := c.Post("/account/code", map[string]string{"type": "mobile", "id": "01099999999"}).OK(t)
	equal(t, "the answer", string(unknown.Raw), string(known.Raw))
	awaitCode(t, s, "01012345678", 1)
	if messages := s.Sandbox.Messages("01099999999"); len(messages) != 0 {
		t.Errorf("a stranger was sent %v", messages)
	}
	says(t, "a guess", c.Post("/account/login", map[string]string{"type": "mobile", "id": "01099999999", "code": "000000"}),
		reply{401, "AuthenticationError", "인증번호가 올바르지 않거나 만료되었습니다."})
}
