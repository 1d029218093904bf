package attack

import (
	"net/http"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/config"
	"github.com/yeolda/yeolda/cloud/internal/sandbox"
	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

// An attack is one way to break a promise of SECURITY.md.
type attack struct {
	row  string // of SECURITY.md, such as A5
	name string
	run  func(*target)
}

// target is the service under attack: a stack of its own for each attack.
type target struct {
	*testing.T
	*servicetest.Stack
}

// checks counts the checks of all attacks.
var checks atomic.Int64

// held fails the test unless a defence held.
func (g *target) held(ok bool, format string, args ...any) {
	g.Helper()
	checks.Add(1)
	if !ok {
		g.Errorf(format, args...)
	}
}

// refused checks the HTTP status of an answer that must be one of the given.
func (g *target) refused(answer servicetest.Answer, what string, status ...int) {
	g.Helper()
	g.held(slices.Contains(status, answer.HTTP), "%s: HTTP %d, want %v: %.200s", what, answer.HTTP, status, answer.Raw)
}

// send sends a request from an address.
func (g *target) send(c *servicetest.Client, address, method, path string, body any) servicetest.Answer {
	g.Helper()
	return c.Send(method, path, body, http.Header{"X-Forwarded-For": {address}})
}

func (g *target) hq() *servicetest.Client { g.Helper(); return g.Admin(g.T, "hq", "hq-demo") }

// administrator adds an administrator and logs in.
func (g *target) administrator(id, role string, branches ...string) *servicetest.Client {
	g.Helper()
	const password = "lamp river nine"
	g.hq().Post("/v2/admin/administrators", map[string]any{"id": id, "password": password, "role": role, "branches": branches}).OK(g.T)
	return g.Admin(g.T, id, password)
}

var seoul = func() *time.Location {
	zone, err := time.LoadLocation("Asia/Seoul")
	if err != nil {
		panic(err)
	}
	return zone
}()

func minute(t time.Time) string { return t.In(seoul).Format("200601021504") }

// hold takes a slot of a room of gangnam that begins in some hours.
func (g *target) hold(c *servicetest.Client, room, hours int) (start time.Time) {
	g.Helper()
	start = g.Clock.Now().In(seoul).Add(time.Duration(hours) * time.Hour).Truncate(10 * time.Minute)
	c.Post("/reservation", map[string]any{"branch": "gangnam", "room": room, "startDateTime": minute(start), "endDateTime": minute(start.Add(time.Hour))}).OK(g.T)
	return start
}

// register registers the payment of a hold of room 1 and returns the order.
func (g *target) register(c *servicetest.Client, phone string) (orderID string) {
	g.Helper()
	return g.registerFor(c, phone, price)
}

// registerFor registers a payment of any amount.
func (g *target) registerFor(c *servicetest.Client, phone string, amount int) (orderID string) {
	g.Helper()
	var data struct {
		OrderID string `json:"orderId"`
	}
	c.Post("/payment", map[string]any{"amount": amount, "name": "박지울", "mobileNum": phone, "email": "jiul@example.com"}).OK(g.T).Into(g.T, &data)
	return data.OrderID
}

const price = 30_000 // of an hour in room 1 of gangnam

// authenticate goes through the payment widget and returns the body of the confirmation.
func (g *target) authenticate(orderID string, amount int, method string) map[string]any {
	g.Helper()
	key, err := g.Sandbox.Authenticate(sandbox.Checkout{OrderID: orderID, Amount: amount, Method: method, Bank: "20"})
	if err != nil {
		g.Fatal(err)
	}
	return map[string]any{"paymentKey": key, "orderId": orderID, "amount": amount}
}

// buy buys an hour in room 1 and returns the key.
func (g *target) buy(c *servicetest.Client, hours int, phone string) (key string, confirmation map[string]any) {
	g.Helper()
	g.hold(c, 1, hours)
	confirmation = g.authenticate(g.register(c, phone), price, sandbox.MethodCard)
	c.Post("/payment/confirm", confirmation).OK(g.T)
	var receipt struct {
		DoorlockKey string `json:"doorlockKey"`
	}
	c.Get("/v2/receipt").OK(g.T).Into(g.T, &receipt)
	return receipt.DoorlockKey, confirmation
}

var attacks = slices.Concat(accessAttacks, loginAttacks, inputAttacks, moneyAttacks, deviceAttacks, privacyAttacks, secretAttacks)

func TestAttacks(t *testing.T) {
	t.Cleanup(func() { t.Logf("%d attacks, %d checks", len(attacks), checks.Load()) })
	for _, a := range attacks {
		t.Run(a.row+"/"+a.name, func(t *testing.T) {
			t.Parallel()
			stack := servicetest.Start(t, func(set *config.Settings) {
				set.HTTP.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
				set.HTTP.MaxHoldsPerClient, set.HTTP.MaxHoldsPerPhone = 5, 3
				if *caddy != "" {
					behindCaddy(t, set)
				}
			})
			if *caddy != "" {
				startCaddy(t, stack)
			}
			a.run(&target{t, stack})
		})
	}
}

// Each row of SECURITY.md names the attacks that run against it, and no others.
func TestSecurityNamesTheAttacks(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../../../SECURITY.md")
	if err != nil {
		t.Fatal(err)
	}
	var exist, named []string
	for _, a := range attacks {
		exist = append(exist, a.row+"/"+a.name)
	}
	for _, row := range regexp.MustCompile(`(?m)^\| (A\d+) .*$`).FindAllStringSubmatch(string(raw), -1) {
		for _, found := range regexp.MustCompile("`(A\\d+/[a-z0-9-]+)`").FindAllStringSubmatch(row[0], -1) {
			if !strings.HasPrefix(found[1], row[1]+"/") {
				t.Errorf("row %s names %s", row[1], found[1])
			}
			named = append(named, found[1])
		}
	}
	slices.Sort(exist)
	slices.Sort(named)
	if !slices.Equal(exist, named) {
		for _, name := range exist {
			if !slices.Contains(named, name) {
				t.Errorf("SECURITY.md does not name the attack %s", name)
			}
		}
		for _, name := range named {
			if !slices.Contains(exist, name) {
				t.Errorf("SECURITY.md names %s, which does not exist", name)
			}
		}
	}
}
