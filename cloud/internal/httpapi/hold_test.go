package httpapi_test

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/config"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

var (
	taken        = reply{409, "ResourceAlreadyExistException", "해당 시간대에 이미 예약이 존재합니다."}
	held         = reply{409, "ResourceAlreadyExistException", "이미 예약 진행 중인 시간대입니다."}
	roomDisabled = reply{409, "SettingConflictException", "현재 예약할 수 없는 룸입니다."}
	tooLong      = reply{400, "IllegalArguemntError", "최대 예약 시간은 5시간입니다."}
)

// says checks status, error type and message of an answer.
func says(t *testing.T, what string, answer servicetest.Answer, want reply) {
	t.Helper()
	if got := (reply{answer.HTTP, answer.ErrorType, answer.Message}); got != want {
		t.Errorf("%s: %+v, want %+v", what, got, want)
	}
}

// refuses checks that an answer is a 400 that names the given fields.
func refuses(t *testing.T, what string, answer servicetest.Answer, fields ...string) {
	t.Helper()
	if answer.HTTP != 400 || answer.ErrorType != "IllegalArguemntError" {
		t.Errorf("%s: %d %s", what, answer.HTTP, answer.Raw)
	}
	for _, field := range fields {
		if !strings.Contains(answer.Message, "("+field+")") {
			t.Errorf("%s: %q does not name %s", what, answer.Message, field)
		}
	}
}

func TestHold(t *testing.T) {
	t.Parallel()
	c := newCast(t, servicetest.Start(t)) // with a paid hour in room 1, from start
	s := c.s
	const minute = time.Minute
	start := c.start
	hold := func(room int, from, length time.Duration) servicetest.Answer {
		t.Helper()
		return s.Client(t).Post("/reservation", holdBody(room, start.Add(from), length))
	}

	t.Run("answer and cookie", func(t *testing.T) {
		answer := s.Client(t).Post("/reservation", holdBody(2, start.Add(24*time.Hour), time.Hour)).OK(t)
		if string(answer.Data) != "null" {
			t.Errorf("data %s", answer.Data)
		}
		cookieHas(t, answer, "PAY_SESSIONID", "; Path=/; Max-Age=600; HttpOnly; SameSite=Lax")
	})

	t.Run("length", func(t *testing.T) {
		hold(2, 0, 5*time.Hour).OK(t)
		says(t, "over 5 hours", hold(3, 0, 5*time.Hour+10*minute), tooLong)
		says(t, "a day", hold(3, 0, 24*time.Hour), tooLong)
		refuses(t, "no length", hold(3, 0, 0), "endDateTime", "startDateTime")
		refuses(t, "backwards", hold(3, 0, -10*minute), "endDateTime", "startDateTime")
		refuses(t, "start off the grid", hold(3, 5*minute, 15*minute), "startDateTime")
		refuses(t, "end off the grid", hold(3, 0, 15*minute), "endDateTime")
	})

	t.Run("conflicts and margins", func(t *testing.T) {
		says(t, "the same time", hold(1, 0, time.Hour), taken)
		says(t, "inside", hold(1, 20*minute, 10*minute), taken)
		says(t, "around", hold(1, -30*minute, 2*time.Hour), taken)
		says(t, "into the margin before", hold(1, -30*minute, 30*minute), taken)
		says(t, "into the margin after", hold(1, time.Hour, 10*minute), taken)
		hold(1, -30*minute, 20*minute).OK(t)
		hold(1, 70*minute, 10*minute).OK(t)
		says(t, "a hold", hold(1, 70*minute, 10*minute), held)
		says(t, "the margin of a hold", hold(1, 80*minute, 10*minute), held)
		waiting := s.Client(t)
		waiting.Post("/payment/confirm", order(t, s, waiting, 4, start, time.Hour, 20000, "가상계좌")).OK(t)
		says(t, "waiting for its deposit", hold(4, 0, time.Hour), taken)
		says(t, "both kinds", hold(1, 0, 2*time.Hour), taken)
	})

	t.Run("rooms", func(t *testing.T) {
		says(t, "unknown", hold(7, 0, time.Hour), reply{404, "ResourceNotFoundException", "해당 룸을 찾을 수 없습니다."})
		c.HQ.Patch("/admin/machines/gangnam/5", map[string]bool{"enabled": false}).OK(t)
		says(t, "disabled", hold(5, 0, time.Hour), roomDisabled)
		says(t, "disabled, by an administrator", c.Manager.Post("/admin/reservation", holdBody(5, start, time.Hour)), roomDisabled)
		c.HQ.Patch("/admin/machines/gangnam/5", map[string]bool{"enabled": true}).OK(t)
		hold(5, 0, time.Hour).OK(t)
	})

	t.Run("lengths that the prices do not make up", func(t *testing.T) {
		for _, length := range []time.Duration{10 * minute, 20 * minute, 40 * minute, 100 * minute} {
			refuses(t, length.String(), hold(6, 0, length), "endDateTime")
		}
		c.Manager.Post("/admin/reservation", holdBody(6, start.Add(6*time.Hour), 10*minute)).OK(t) // staff do not pay
		hold(6, 0, 90*minute).OK(t)
	})

	t.Run("another hold instead", func(t *testing.T) {
		client := s.Client(t)
		client.Post("/reservation", holdBody(3, start, 30*minute)).OK(t)
		first := cookie(t, s, client, "PAY_SESSIONID")
		says(t, "a taken one", client.Post("/reservation", holdBody(1, start, time.Hour)), taken)
		says(t, "the earlier one stays", hold(3, 0, 30*minute), held)
		client.Post("/reservation", holdBody(3, start.Add(10*minute), 30*minute)).OK(t) // overlaps the client's own hold
		if cookie(t, s, client, "PAY_SESSIONID") == first {
			t.Error("the cookie is the same")
		}
		says(t, "the later one", hold(3, 10*minute, 10*minute), held)
		client.Post("/reservation", holdBody(3, start.Add(2*time.Hour), 30*minute)).OK(t)
		hold(3, 0, 30*minute).OK(t)
		give(t, s, client, "PAY_SESSIONID", first)
		says(t, "a dead cookie changes nothing", client.Post("/reservation", holdBody(3, start.Add(2*time.Hour), 30*minute)), held)
	})

	t.Run("release", func(t *testing.T) {
		client := s.Client(t)
		from := start.Add(4 * time.Hour)
		client.Post("/reservation", holdBody(3, from, time.Hour)).OK(t)
		answer := client.Delete("/reservation", nil).OK(t)
		if string(answer.Data) != "null" || cookie(t, s, client, "PAY_SESSIONID") != "" {
			t.Errorf("data %s, cookie %q", answer.Data, cookie(t, s, client, "PAY_SESSIONID"))
		}
		hold(3, 4*time.Hour, time.Hour).OK(t)
		client.Delete("/reservation", nil).OK(t) // without a cookie
		give(t, s, client, "PAY_SESSIONID", "nonsense")
		client.Delete("/reservation", nil).OK(t)
		// A hold that was paid is not released.
		buyer := s.Client(t)
		buyer.Post("/payment/confirm", order(t, s, buyer, 3, start.Add(8*time.Hour), time.Hour, 22000, "카드")).OK(t)
		buyer.Delete("/reservation", nil).OK(t)
		says(t, "paid", hold(3, 8*time.Hour, time.Hour), taken)
	})
}

// cookieHas checks a Set-Cookie header: name, at least 128 random bits, attributes.
func cookieHas(t *testing.T, answer servicetest.Answer, name, attributes string) {
	t.Helper()
	for _, header := range answer.Header.Values("Set-Cookie") {
		if value, found := strings.CutPrefix(header, name+"="); found {
			token, rest, _ := strings.Cut(value, ";")
			if len(token) < 22 || ";"+rest != attributes { // 22 letters of base64 are 132 bits
				t.Errorf("%s", header)
			}
			return
		}
	}
	t.Errorf("no cookie %s in %v", name, answer.Header.Values("Set-Cookie"))
}

// All three cookies are HttpOnly and, if the settings require it, Secure.
func TestSecureCookies(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t, func(set *config.Settings) { set.HTTP.CookieSecure = true })
	c := s.Client(t)
	start := slot(s, 3*time.Hour)
	cookieHas(t, c.Post("/reservation", holdBody(1, start, time.Hour)).OK(t), "PAY_SESSIONID", "; Path=/; Max-Age=600; HttpOnly; Secure; SameSite=Lax")
	answer := c.Post("/admin/login", map[string]string{"id": "hq", "password": "hq-demo"}).OK(t)
	cookieHas(t, answer, "JSESSIONID", "; Path=/; Max-Age=86400; HttpOnly; Secure; SameSite=Lax")
	session, _, _ := strings.Cut(answer.Header.Get("Set-Cookie"), ";") // Go's cookie jar keeps it for HTTPS
	answer = c.Send("POST", "/admin/reservation", holdBody(2, start, time.Hour), http.Header{"Cookie": {session}}).Envelope(t).OK(t)
	cookieHas(t, answer, "ADMIN_PAY_SESSIONID", "; Path=/; Max-Age=300; HttpOnly; Secure; SameSite=Lax")
}

// The database itself forbids that two live reservations of a room overlap, margins included.
func TestDatabaseForbidsOverlaps(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	start := slot(s, 3*time.Hour)
	insert := func(state string, from, length time.Duration) error {
		_, err := s.DB.Pool.Exec(t.Context(), `
			insert into reservation (branch_id, room_id, state, source, start_at, end_at, occupied, expires_at)
			select branch_id, id, $1, 'CUSTOMER', $2, $3, tstzrange($2, $3::timestamptz + interval '10 minutes'), $3 from room order by id limit 1`,
			state, start.Add(from), start.Add(from+length))
		return err
	}
	if err := insert("DONE", 0, time.Hour); err != nil {
		t.Fatal(err)
	}
	for _, state := range []string{"HOLD", "CONFIRMING", "WAITING_FOR_DEPOSIT", "DONE", "CANCELING"} {
		for _, from := range []time.Duration{0, -10 * time.Minute, 60 * time.Minute} { // the same time, and overlaps with the margins
			if err := insert(state, from, 10*time.Minute); !postgres.IsExclusionViolation(err, "reservation_no_overlap") {
				t.Errorf("%s at %s: %v", state, from, err)
			}
		}
	}
	for _, from := range []time.Duration{-20 * time.Minute, 70 * time.Minute} {
		if err := insert("DONE", from, 10*time.Minute); err != nil {
			t.Errorf("at %s: %v", from, err)
		}
	}
	if err := insert("CANCELED", 0, time.Hour); err != nil {
		t.Errorf("what is over: %v", err)
	}
}

// Live unpaid reservations are limited per client address at the hold and per phone number at the registration.
func TestUnpaidHoldsAreLimited(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t, func(set *config.Settings) { set.HTTP.MaxHoldsPerClient, set.HTTP.MaxHoldsPerPhone = 5, 3 })
	start := s.Clock.Now().Truncate(10 * time.Minute).Add(24 * time.Hour)
	s.Clock.Stop(s.Clock.Now())
	// waits checks that a limited answer names the moment at which the first hold expires.
	waits := func(of string, answer servicetest.Answer, want time.Duration) {
		t.Helper()
		if got := answer.Header.Get("Retry-After"); answer.HTTP == 429 && got != fmt.Sprint(int(want.Seconds())) {
			t.Errorf("%s: Retry-After %s, want %v", of, got, want)
		}
	}
	clients := make([]*servicetest.Client, 6)
	for i := range clients {
		clients[i] = s.Client(t)
		answer := clients[i].Post("/reservation", holdBody(i+1, start, time.Hour))
		if want := map[bool]int{true: 200, false: 429}[i < 5]; answer.HTTP != want {
			t.Fatalf("hold %d: got %d, want %d", i+1, answer.HTTP, want)
		}
		waits("hold", answer, 10*time.Minute-time.Duration(i)*time.Second)
		s.Clock.Advance(time.Second)
	}
	if answer := clients[5].Post("/reservation", holdBody(1, start, time.Hour)); answer.HTTP != 409 {
		t.Errorf("a taken slot beyond the limit: got %d, want 409", answer.HTTP)
	}
	clients[0].Post("/reservation", holdBody(6, start, time.Hour)).OK(t) // replaces the client's own hold
	prices := []int{13000, 25000, 22000, 20000}
	for i, price := range prices {
		answer := clients[i].Post("/payment", map[string]any{"amount": price, "name": "홍길동", "mobileNum": "010-1234-5678"})
		if want := map[bool]int{true: 200, false: 429}[i < 3]; answer.HTTP != want {
			t.Errorf("registration %d: got %d %s, want %d", i+1, answer.HTTP, answer.Message, want)
		}
		waits("registration", answer, 10*time.Minute-5*time.Second) // the hold of the second client, made five seconds ago
	}
	clients[0].Post("/payment", map[string]any{"amount": prices[0], "name": "홍길동", "mobileNum": "010-1234-5678"}).OK(t) // again
}

// The optional fields of POST /payment name the hold that the page shows.
func TestRegistrationOfAnotherHold(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	start := s.Clock.Now().Truncate(10 * time.Minute).Add(24 * time.Hour)
	c := s.Client(t)
	c.Post("/reservation", holdBody(1, start, time.Hour)).OK(t)
	hold := holdBody(1, start, time.Hour)
	for name, change := range map[string]map[string]any{
		"the same": {}, "room": {"room": 2}, "branch": {"branch": "hongdae"}, "start": {"startDateTime": "209901010000"}, "end": {"endDateTime": "209901010000"},
	} {
		body := map[string]any{"amount": 30000, "name": "홍길동", "mobileNum": "010-1234-5678"}
		maps.Copy(body, hold)
		maps.Copy(body, change)
		answer := c.Post("/payment", body)
		want, errorType := 409, "ResourceConflictException"
		if len(change) == 0 {
			want, errorType = 200, ""
		}
		if answer.HTTP != want || answer.ErrorType != errorType {
			t.Errorf("%s: got %d %s, want %d %s", name, answer.HTTP, answer.ErrorType, want, errorType)
		}
	}
}
