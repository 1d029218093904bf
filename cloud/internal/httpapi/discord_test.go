package httpapi_test

import (
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/yeolda/yeolda/cloud/internal/config"
	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

// The service answers only interactions that Discord has signed. The answers do not use the envelope.
func TestDiscord(t *testing.T) {
	t.Parallel()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	s := servicetest.Start(t, func(set *config.Settings) {
		set.Discord.PublicKey, set.Discord.Users = hex.EncodeToString(public), map[string]string{"81": "gangnam"}
	})
	interact := func(signed, sent string) servicetest.Answer {
		timestamp := fmt.Sprint(s.Clock.Now().Unix())
		signature := ed25519.Sign(private, []byte(timestamp+signed))
		return s.Client(t).Send("POST", "/discord/interactions", sent, http.Header{
			"X-Signature-Ed25519": {hex.EncodeToString(signature)}, "X-Signature-Timestamp": {timestamp}, "Content-Type": {"application/json"},
		})
	}
	ping := `{"type":1}`
	if answer := interact(ping, ping); answer.HTTP != 200 || strings.TrimSpace(string(answer.Raw)) != ping {
		t.Errorf("ping: %d %s", answer.HTTP, answer.Raw)
	}
	for what, c := range map[string]struct {
		signed, sent string
		want         int
	}{
		"changed on the way": {ping, `{"type":2}`, 401},
		"not an interaction": {"x", "x", 400},
		"too long":           {ping, pad(ping, 256<<10+1), 413},
	} {
		if answer := interact(c.signed, c.sent); answer.HTTP != c.want || strings.Contains(string(answer.Raw), "errorType") {
			t.Errorf("%s: %d %s", what, answer.HTTP, answer.Raw)
		}
	}
	if answer := s.Client(t).Send("POST", "/discord/interactions", ping, nil); answer.HTTP != 401 {
		t.Errorf("unsigned: %d", answer.HTTP)
	}

	// Configured users receive answers about their own branches. Other users receive none.
	command := func(user, branch string) string {
		body := fmt.Sprintf(`{"id":"%s-%s","application_id":"1","token":"t","type":2,"member":{"user":{"id":%q}},"data":{"name":"룸상태","options":[{"name":"지점","type":3,"value":%q}]}}`, user, branch, user, branch)
		answer := interact(body, body)
		var message struct {
			Data struct{ Content string }
		}
		if err := json.Unmarshal(answer.Raw, &message); err != nil {
			t.Fatalf("%s: %v", answer.Raw, err)
		}
		return message.Data.Content
	}
	denied := "이 명령을 사용할 권한이 없습니다."
	if text := command("81", "gangnam"); text == "" || text == denied {
		t.Errorf("staff: %q", text)
	}
	for _, c := range [][2]string{{"81", "hongdae"}, {"82", "gangnam"}} {
		if text := command(c[0], c[1]); text != denied {
			t.Errorf("%v: %q", c, text)
		}
	}
}

// A client that exceeds a limit receives 429 with the time to wait in Retry-After.
func TestRateLimits(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	guest(t, s)
	c := s.Client(t)
	wait := func(what string, answer servicetest.Answer) {
		t.Helper()
		says(t, what, answer, reply{429, "TooManyRequestsError", "요청이 너무 많습니다. 잠시 후 다시 시도해 주세요."})
		if seconds := answer.Header.Get("Retry-After"); len(seconds) < 2 || len(seconds) > 4 {
			t.Errorf("%s: Retry-After %q", what, seconds)
		}
	}
	for range 5 {
		c.Post("/account/code", map[string]string{"type": "mobile", "id": "01012345678"}).OK(t)
	}
	wait("a sixth code", c.Post("/account/code", map[string]string{"type": "mobile", "id": "010-1234-5678"}))
	for i := range 14 {
		c.Post("/account/code", map[string]string{"type": "mobile", "id": fmt.Sprintf("010200010%02d", i)}).Fails(t, 404, "ResourceNotFoundException", "예약 내역이 없습니다.")
	}
	wait("a twenty-first code from here", c.Post("/account/code", map[string]string{"type": "email", "id": "hong@example.com"}))
	for range 10 {
		c.Post("/admin/login", map[string]string{"id": "hq", "password": "wrong"}).Fails(t, 401, "AuthenticationError", "")
	}
	wait("an eleventh password", c.Post("/admin/login", map[string]string{"id": "hq", "password": "hq-demo"}))
	s.Clock.Advance(10 * minute)
	c.Post("/account/code", map[string]string{"type": "mobile", "id": "01012345678"}).OK(t)
	c.Post("/admin/login", map[string]string{"id": "hq", "password": "hq-demo"}).OK(t)
}
