package httpapi_test

import (
	"net/http"
	"net/url"
	"strconv"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/account"
	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

// cast holds one client per role, in the order of the matrix.
type cast struct {
	s     *servicetest.Stack
	start time.Time // of the stay that the customer has paid for

	Nobody   *servicetest.Client
	Customer *servicetest.Client // 010-1234-5678, hong@example.com
	Other    *servicetest.Client // manager of hongdae
	Manager  *servicetest.Client // of gangnam
	HQ       *servicetest.Client
	Viewer   *servicetest.Client // of gangnam

	FrontDesk, Accountant, Cleaner *servicetest.Client // of gangnam
}

// newCast logs in a client for each role. The customer has paid for an hour in room 1 of gangnam, three hours from now.
func newCast(t *testing.T, s *servicetest.Stack) *cast {
	t.Helper()
	accounts := &account.Service{DB: s.DB}
	for _, a := range []account.NewAdministrator{
		{LoginID: "hongdae-manager", Password: "far away from gangnam", Role: account.Manager, Branches: []string{"hongdae"}},
		{LoginID: "gangnam-viewer", Password: "only looking around", Role: account.Viewer, Branches: []string{"gangnam"}},
		{LoginID: "gangnam-desk", Password: "welcome to gangnam", Role: account.FrontDesk, Branches: []string{"gangnam"}},
		{LoginID: "gangnam-books", Password: "debit and credit", Role: account.Accountant, Branches: []string{"gangnam"}},
		{LoginID: "gangnam-cleaner", Password: "brooms and buckets", Role: account.Cleaner, Branches: []string{"gangnam"}},
	} {
		if err := accounts.AddAdministrator(t.Context(), a, "test"); err != nil {
			t.Fatal(err)
		}
	}
	start := guest(t, s)
	return &cast{
		s: s, start: start, Nobody: s.Client(t), Customer: login(t, s, "01012345678"), HQ: s.Admin(t, "hq", "hq-demo"),
		Manager: s.Admin(t, "gangnam-manager", "gangnam-demo"),
		Other:   s.Admin(t, "hongdae-manager", "far away from gangnam"),
		Viewer:  s.Admin(t, "gangnam-viewer", "only looking around"),

		FrontDesk:  s.Admin(t, "gangnam-desk", "welcome to gangnam"),
		Accountant: s.Admin(t, "gangnam-books", "debit and credit"),
		Cleaner:    s.Admin(t, "gangnam-cleaner", "brooms and buckets"),
	}
}

// role is a client of the cast with the name of its role.
type role struct {
	name   string
	client *servicetest.Client
}

func (c *cast) roles() []role {
	return []role{{"none", c.Nobody}, {"customer", c.Customer}, {"other", c.Other}, {"manager", c.Manager}, {"hq", c.HQ}, {"viewer", c.Viewer},
		{"front-desk", c.FrontDesk}, {"accountant", c.Accountant}, {"cleaner", c.Cleaner}}
}

// login logs in a customer by phone number, to which no code was sent before.
func login(t *testing.T, s *servicetest.Stack, mobile string) *servicetest.Client {
	t.Helper()
	c := s.Client(t)
	c.Post("/account/code", map[string]string{"type": "mobile", "id": mobile}).OK(t)
	code := awaitCode(t, s, mobile, 1)
	c.Post("/account/login", map[string]string{"type": "mobile", "id": mobile, "code": code}).OK(t)
	return c
}

// cookie returns the value of a client's cookie; empty if it has none.
func cookie(t *testing.T, s *servicetest.Stack, c *servicetest.Client, name string) string {
	t.Helper()
	for _, cookie := range c.HTTP.Jar.Cookies(baseURL(t, s)) {
		if cookie.Name == name {
			return cookie.Value
		}
	}
	return ""
}

// give sets a client's cookie.
func give(t *testing.T, s *servicetest.Stack, c *servicetest.Client, name, value string) {
	t.Helper()
	c.HTTP.Jar.SetCookies(baseURL(t, s), []*http.Cookie{{Name: name, Value: value, Path: "/"}})
}

func baseURL(t *testing.T, s *servicetest.Stack) *url.URL {
	t.Helper()
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// only returns the single id that a query finds.
func only(t *testing.T, s *servicetest.Stack, query string, args ...any) (id string) {
	t.Helper()
	if err := s.DB.Pool.QueryRow(t.Context(), query, args...).Scan(&id); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return id
}

// reservationAt returns the id of the live reservation of a room of gangnam at a time.
func reservationAt(t *testing.T, s *servicetest.Stack, room int, at time.Time) string {
	t.Helper()
	return only(t, s, `
		select r.id::text from reservation r join room m on m.id = r.room_id join branch b on b.id = r.branch_id
		where b.code = 'gangnam' and m.no = $1 and r.start_at <= $2 and $2 < r.end_at
		  and r.state in ('HOLD', 'CONFIRMING', 'WAITING_FOR_DEPOSIT', 'DONE', 'CANCELING')`, room, at)
}

// register has an administrator of gangnam reserve an hour without payment.
func register(t *testing.T, admin *servicetest.Client, room int, start time.Time) {
	t.Helper()
	admin.Post("/admin/reservation", holdBody(room, start, time.Hour)).OK(t)
	admin.Post("/admin/payment", map[string]any{"name": "홍길동", "mobileNum": "010-8765-4321"}).OK(t)
}

// ownerKey returns the owner's key of a reservation; empty: none opens doors.
func ownerKey(t *testing.T, s *servicetest.Stack, id string) string {
	t.Helper()
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return s.OwnerKey(t, n)
}
