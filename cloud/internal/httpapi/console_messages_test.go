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

// TestOutdatedMessageIsNotRepeated: staff send the latest message again, but none with a key that was replaced, and none to a contact that
// was corrected.
func TestOutdatedMessageIsNotRepeated(t *testing.T) {
	t.Parallel()
	c := newCast(t, servicetest.Start(t))
	id, _ := c.running(t)
	latest := func(template string) (path string) {
		t.Helper()
		return "/v2/admin/messages/" + only(t, c.s, `select max(id)::text from message where template = $1 and reservation_id = '`+id+`'`, template) + "/resend"
	}
	confirmed := latest("reservation-confirmed")
	c.Manager.Post(confirmed, nil).OK(t)
	c.Manager.Post("/v2/admin/reservations/"+id+"/key", map[string]string{"reason": "분실"}).OK(t)
	refuses(t, "with the previous key", c.Manager.Post(confirmed, nil))
	changed := latest("key-changed")
	c.Manager.Post(changed, nil).OK(t)
	c.Manager.Post("/v2/admin/reservations/"+id+"/refunds", map[string]any{"amount": 1000, "reason": "불편"}).OK(t)
	returned := latest("part-refunded")
	c.Manager.Post(returned, nil).OK(t)
	c.Manager.Patch("/v2/admin/reservations/"+id+"/contact", map[string]any{"mobileNum": "010-9999-8888", "reason": "오타"}).OK(t)
	refuses(t, "with the key of another contact", c.Manager.Post(changed, nil))
	refuses(t, "to the previous contact", c.Manager.Post(returned, nil))
	c.Manager.Post(latest("key-changed"), nil).OK(t)
}
