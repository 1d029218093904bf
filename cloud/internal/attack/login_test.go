package attack

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

// code returns the newest login code sent to a phone number, waiting for the first n messages with one.
func (g *target) code(phone string, n int) string {
	g.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		var codes []string
		for _, m := range g.Sandbox.Messages(phone) {
			if c := m.Variables["code"]; c != "" {
				codes = append(codes, c)
			}
		}
		if len(codes) >= n {
			return codes[len(codes)-1]
		}
	}
	g.Fatalf("no code for %s", phone)
	return ""
}

const victim = "010-8888-0001"

// guestNumber matches any longer part of the number, whatever its form. Four digits alone also occur in clock times and ids.
var guestNumber = regexp.MustCompile(`010-?8888|8888-?0001`)

func login(code string) map[string]string {
	return map[string]string{"type": "mobile", "id": victim, "code": code}
}

var loginAttacks = []attack{
	{"A5", "guesses-kill-the-code", func(g *target) {
		browser, stranger := g.Client(g.T), g.Client(g.T)
		g.buy(browser, 3, victim)
		browser.Post("/account/code", map[string]string{"type": "mobile", "id": victim}).OK(g.T)
		code := g.code(victim, 1)
		for i := range 8 {
			g.refused(g.send(stranger, fmt.Sprintf("198.51.%d.1", i), http.MethodPost, "/account/login", login("000000x")), "guess of a stranger", 401)
		}
		g.refused(stranger.Send(http.MethodPost, "/account/login", login(code), nil), "correct code after eight guesses in one browser", 401)
		answer := browser.Post("/account/login", login(code))
		g.held(answer.HTTP == 200, "correct code in the browser that asked: HTTP %d", answer.HTTP)
		g.refused(browser.Send(http.MethodPost, "/account/login", login(code), nil), "second use of a code", 401)
	}},
	{"A5", "parallel-guesses-from-a-network", func(g *target) {
		g.buy(g.Client(g.T), 3, victim)
		g.Client(g.T).Post("/account/code", map[string]string{"type": "mobile", "id": victim}).OK(g.T)
		right := g.code(victim, 1)
		var compared atomic.Int64
		var wg sync.WaitGroup
		client := g.Client(g.T)
		for i := range 200 {
			wg.Go(func() {
				guess := fmt.Sprintf("%06d", i)
				if guess == right {
					return
				}
				if g.send(client, fmt.Sprintf("2001:db8:1:%x::1", i), http.MethodPost, "/account/login", login(guess)).HTTP == 401 {
					compared.Add(1)
				}
			})
		}
		wg.Wait()
		g.held(compared.Load() <= 140, "%d of 200 guesses from one /48 were answered", compared.Load())
		g.refused(client.Send(http.MethodPost, "/account/login", login(right), nil), "correct code after two hundred guesses", 401, 429)
	}},
	{"A6", "codes-as-a-cannon", func(g *target) {
		g.buy(g.Client(g.T), 3, victim)
		sent := 0
		for day := range 200 {
			if g.send(g.Client(g.T), fmt.Sprintf("203.%d.113.7", day), http.MethodPost, "/account/code", map[string]string{"type": "mobile", "id": victim}).HTTP == 200 {
				sent++
			}
			g.Clock.Advance(3 * time.Minute)
		}
		g.held(sent <= 30, "%d codes for one person within ten hours", sent)
		refused := false
		for i := range 25 {
			answer := g.send(g.Client(g.T), "198.51.100.9", http.MethodPost, "/account/code", map[string]string{"type": "mobile", "id": fmt.Sprintf("010-1%03d-0000", i)})
			refused = refused || answer.HTTP == 429
		}
		g.held(refused, "25 requests of one address were all answered")
	}},
	{"A8", "lock-out-of-headquarters", func(g *target) {
		own := g.hq()
		for i := range 12 {
			g.refused(g.send(g.Client(g.T), fmt.Sprintf("198.51.%d.1", i), http.MethodPost, "/admin/login", map[string]string{"id": "hq", "password": "wrong"}), "wrong password", 401, 429)
		}
		g.refused(g.Client(g.T).Send(http.MethodPost, "/admin/login", map[string]string{"id": "hq", "password": "hq-demo"}, nil), "unknown browser during a lock-out", 429)
		own.Post("/admin/logout", nil).OK(g.T)
		answer := own.Post("/admin/login", map[string]string{"id": "hq", "password": "hq-demo"})
		g.held(answer.HTTP == 200, "known browser during a lock-out: HTTP %d", answer.HTTP)
	}},
	{"A8", "forged-device", func(g *target) {
		other := g.administrator("keeper", "manager", "hongdae")
		_ = other
		for i := range 10 {
			g.send(g.Client(g.T), fmt.Sprintf("198.51.%d.1", i), http.MethodPost, "/admin/login", map[string]string{"id": "hq", "password": "wrong"})
		}
		for _, device := range []string{"x", "AAAA.BBBB", strings.Repeat("A", 4000), "..", "' or 1=1"} {
			answer := g.Client(g.T).Send(http.MethodPost, "/admin/login", map[string]string{"id": "hq", "password": "hq-demo"}, http.Header{"Cookie": {"ADMIN_DEVICE=" + device}})
			g.refused(answer, "forged device", 429)
		}
	}},
	{"A8", "weak-password", func(g *target) {
		hq := g.hq()
		for _, password := range []string{"password1234", "qwertyuiop12", "123456789012", "weak2weak2weak2", "aaaaaaaaaaaa", "short", strings.Repeat("x", 257)} {
			body := map[string]any{"id": "weak2", "password": password, "role": "viewer", "branches": []string{"hongdae"}}
			g.refused(hq.Send(http.MethodPost, "/v2/admin/administrators", body, nil), "password "+password, 400)
		}
	}},
	{"A8", "unknown-and-known-ids-look-alike", func(g *target) {
		var answers []servicetest.Answer
		for i, id := range []string{"hq", "stranger", "", "hq'--"} {
			answers = append(answers, g.send(g.Client(g.T), fmt.Sprintf("198.51.%d.1", i), http.MethodPost, "/admin/login", map[string]string{"id": id, "password": "wrong"}))
		}
		g.held(string(answers[0].Raw) == string(answers[1].Raw), "known %s, unknown %s", answers[0].Raw, answers[1].Raw)
	}},
	{"A9", "who-has-been-a-guest", func(g *target) {
		refused := 0
		for i := range 40 {
			if g.send(g.Client(g.T), "198.51.100.9", http.MethodPost, "/account/code", map[string]string{"type": "mobile", "id": fmt.Sprintf("010-2%03d-0000", i)}).HTTP == 429 {
				refused++
			}
		}
		g.held(refused >= 20, "%d of 40 questions were refused", refused)
	}},
}
