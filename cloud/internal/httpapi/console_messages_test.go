package httpapi_test

import (
	"strings"
	"testing"

	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

// Messages of no branch, such as login codes, are visible to the headquarters only, and the code to no administrator.
func TestMessageOfNoBranch(t *testing.T) {
	t.Parallel()
	c := newCast(t, servicetest.Start(t))
	id := only(t, c.s, `select id::text from message where template = $1`, "login-code")
	code := awaitCode(t, c.s, "01012345678", 1)
	var message struct{ To, Text string }
	c.HQ.Get("/v2/admin/messages/"+id).OK(t).Into(t, &message)
	if strings.Contains(message.Text, code) || message.To != "010-****-5678" {
		t.Errorf("message %+v", message)
	}
	check(t, "by a manager", c.Manager, "GET", probe{path: "/v2/admin/messages/" + id}, outOfScope)
	refuses(t, "sent again", c.HQ.Post("/v2/admin/messages/"+id+"/resend", nil))
}
