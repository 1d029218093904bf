package channel

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var anHour = []byte("BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nUID:a@partner.example\r\nDTSTART:20261122T060000Z\r\nDTEND:20261122T070000Z\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n")

// partner serves calendars over TLS. The returned adapter may dial that server despite its loopback address, and
// otherwise only public addresses.
func partner(t *testing.T, handler http.HandlerFunc) (*ICal, *httptest.Server) {
	t.Helper()
	srv := httptest.NewTLSServer(handler)
	t.Cleanup(srv.Close)
	roots := x509.NewCertPool()
	roots.AddCert(srv.Certificate())
	dialer := &net.Dialer{Control: func(network, address string, c syscall.RawConn) error {
		if address == srv.Listener.Addr().String() {
			return nil
		}
		return publicOnly(network, address, c)
	}}
	return newICal(ourDomain, func() time.Time { return now }, dialer, &tls.Config{RootCAs: roots}), srv
}

func TestPull(t *testing.T) {
	t.Parallel()
	var asked []string
	c, srv := partner(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Header.Get("If-None-Match")+"|"+r.Header.Get("If-Modified-Since"))
		w.Header().Set("ETag", `"v1"`)
		w.Header().Set("Last-Modified", "Sat, 21 Nov 2026 05:00:00 GMT")
		if r.Header.Get("If-None-Match") == `"v1"` {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		w.Header().Set("Content-Type", "text/calendar")
		w.Write(anHour)
	})
	feed := Feed{URL: srv.URL + "/feed.ics?token=secret", Zone: seoul}
	got, err := c.Pull(context.Background(), feed)
	want := Cursor{`"v1"`, "Sat, 21 Nov 2026 05:00:00 GMT"}
	if err != nil || got.Unchanged || len(got.Bookings) != 1 || got.Bookings[0].ExternalID != "a@partner.example" || got.Cursor != want {
		t.Fatalf("%+v, %v", got, err)
	}
	feed.Cursor = got.Cursor
	got, err = c.Pull(context.Background(), feed)
	if err != nil || !got.Unchanged || len(got.Bookings) != 0 || got.Cursor != want {
		t.Errorf("%+v, %v", got, err)
	}
	if len(asked) != 2 || asked[0] != "|" || asked[1] != `"v1"|Sat, 21 Nov 2026 05:00:00 GMT` {
		t.Errorf("asked %q", asked)
	}
}

// A calendar with bookings after the imported period is read whole each time, because a server that answers "not modified"
// would hide the bookings that come into the period. Its content, not a change of it, decides what a later read says.
func TestUnchangedCalendarShowsMoreLater(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		entry       string
		first, last string // day of the last known booking, now and after three days
		whole       bool   // the first read returns no cursor
	}{
		"daily, without end":  {"DTSTART:20261104T010000Z\r\nDURATION:PT1H\r\nRRULE:FREQ=DAILY\r\n", "2027-05-20", "2027-05-23", true},
		"once, far ahead":     {"DTSTART:20270522T010000Z\r\nDURATION:PT1H\r\n", "", "2027-05-22", true},
		"on listed dates":     {"DTSTART:20261210T010000Z\r\nDURATION:PT1H\r\nRDATE:20270522T010000Z\r\n", "2026-12-10", "2027-05-22", true},
		"weekly, with an end": {"DTSTART:20261123T010000Z\r\nDURATION:PT1H\r\nRRULE:FREQ=WEEKLY;UNTIL=20261220T010000Z\r\n", "2026-12-14", "2026-12-14", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, srv := partner(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("ETag", `"v1"`)
				if r.Header.Get("If-None-Match") == `"v1"` {
					w.WriteHeader(http.StatusNotModified)
					return
				}
				_, _ = io.WriteString(w, "BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nUID:a\r\n"+tc.entry+"END:VEVENT\r\nEND:VCALENDAR\r\n")
			})
			clock := now
			c.now = func() time.Time { return clock }
			feed, last := Feed{URL: srv.URL + "/feed.ics", Zone: seoul}, ""
			read := func(when, want string) {
				t.Helper()
				got, err := c.Pull(t.Context(), feed)
				if err != nil {
					t.Fatal(err)
				}
				for _, b := range got.Bookings {
					last = max(last, b.Start.Format(time.DateOnly))
				}
				if last != want {
					t.Errorf("%s, the last known booking is on %q, want %q (unchanged: %v)", when, last, want, got.Unchanged)
				}
				feed.Cursor = got.Cursor
			}
			read("at first", tc.first)
			if whole := feed.Cursor == (Cursor{}); whole != tc.whole {
				t.Errorf("the next read is whole: %v, want %v", whole, tc.whole)
			}
			clock = now.Add(72 * time.Hour)
			read("after three days", tc.last)
		})
	}
}

func TestPullErrors(t *testing.T) {
	t.Parallel()
	for name, handler := range map[string]http.HandlerFunc{
		"not found": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) },
		"server error": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
			w.Write(anHour)
		},
		"no content":                    func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) },
		"not modified without a cursor": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotModified) },
		"empty":                         func(http.ResponseWriter, *http.Request) {},
		"login page":                    func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>log in</html>") },
		"truncated": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "10000")
			w.Write(anHour)
		},
		"truncated without a length": func(w http.ResponseWriter, _ *http.Request) {
			w.Write(anHour[:60])
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		},
		"too long": func(w http.ResponseWriter, _ *http.Request) {
			w.Write(bytes.Repeat([]byte("X-PAD:1\r\n"), maxCalendar/9+1))
		},
		"too long unpacked": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			_, _ = z.Write(bytes.Repeat([]byte(" "), 10*maxCalendar))
			_ = z.Close()
		},
		"redirect to http": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://example.com/", http.StatusFound)
		},
		"redirect to a file": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "file:///etc/passwd", http.StatusFound)
		},
		"redirect to metadata": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://169.254.169.254/", http.StatusFound)
		},
		"redirect to ourselves": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://localhost:8080/", http.StatusFound)
		},
		"endless redirects": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/again", http.StatusFound) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, srv := partner(t, handler)
			got, err := c.Pull(context.Background(), Feed{URL: srv.URL + "/?token=secret", Zone: seoul})
			if err == nil || got.Bookings != nil || got.Unchanged {
				t.Errorf("%+v", got)
			}
			if long := strings.HasPrefix(name, "too long"); errors.Is(err, ErrOverBudget) != long {
				t.Errorf("got %v, over the budget: want %v", err, long)
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("the error contains the feed's token: %v", err)
			}
		})
	}
}

func TestPullFollowsPublicRedirect(t *testing.T) {
	t.Parallel()
	c, srv := partner(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/old" {
			http.Redirect(w, r, "/new", http.StatusMovedPermanently)
			return
		}
		w.Write(anHour)
	})
	if got, err := c.Pull(context.Background(), Feed{URL: srv.URL + "/old", Zone: seoul}); err != nil || len(got.Bookings) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestPullTimesOut(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	defer close(release)
	c, srv := partner(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Write(anHour[:60])
		w.(http.Flusher).Flush()
		<-release
	})
	ctx, stop := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer stop()
	if _, err := c.Pull(ctx, Feed{URL: srv.URL, Zone: seoul}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}

// The production adapter reaches no internal address, whatever name resolves to it.
func TestInternalAddressesAreNotFetched(t *testing.T) {
	t.Parallel()
	var reached atomic.Bool
	srv := httptest.NewUnstartedServer(http.NotFoundHandler())
	srv.Config.ConnState = func(net.Conn, http.ConnState) { reached.Store(true) } // a request would fail at the unknown certificate anyway
	srv.StartTLS()
	defer srv.Close()
	_, port, _ := net.SplitHostPort(srv.Listener.Addr().String())
	c := NewICal(ourDomain, func() time.Time { return now })
	for _, host := range []string{"127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "[::]", "127.1.2.3"} {
		if _, err := c.Pull(context.Background(), Feed{URL: "https://" + host + ":" + port + "/", Zone: seoul}); err == nil {
			t.Errorf("%s was fetched", host)
		}
	}
	if reached.Load() {
		t.Error("a connection arrived")
	}
}

func TestPublicOnly(t *testing.T) {
	t.Parallel()
	dial := func(address string) error {
		network := "tcp4"
		if strings.Contains(address, ":") {
			network = "tcp6"
		}
		return publicOnly(network, net.JoinHostPort(address, "443"), nil)
	}
	for _, s := range []string{"8.8.8.8", "211.249.221.105", "2404:6800:4004:80a::200e"} {
		if err := dial(s); err != nil {
			t.Errorf("public address %s: %v", s, err)
		}
	}
	for _, s := range []string{
		"127.0.0.1", "127.9.9.9", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.0.1", "169.254.169.254", "168.63.129.16", "100.64.0.1",
		"0.0.0.0", "0.1.2.3", "224.0.0.1", "239.1.1.1", "255.255.255.255", "240.0.0.1", "192.0.0.1", "192.0.2.1", "198.18.0.1", "198.51.100.1", "203.0.113.1",
		"::", "::1", "fe80::1", "fe80::1%eth0", "fc00::1", "fd12::1", "ff02::1", "fec0::1", "::ffff:10.0.0.1", "::10.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "2001::1", "2001:db8::1",
		"no address", "",
	} {
		if dial(s) == nil {
			t.Errorf("%q may be dialled", s)
		}
	}
}

func TestCheckFeedURL(t *testing.T) {
	t.Parallel()
	if err := CheckFeedURL("https://calendar.example.com/feed.ics?token=x"); err != nil {
		t.Error(err)
	}
	for _, s := range []string{"", "http://example.com/", "ftp://example.com/", "https://", "https://user:pass@example.com/", "https:///x", "://", "file:///etc/passwd", "webcal://example.com/"} {
		if CheckFeedURL(s) == nil {
			t.Errorf("%q was accepted", s)
		}
	}
}

func TestProxiesAreNotUsed(t *testing.T) {
	t.Parallel()
	c := NewICal(ourDomain, time.Now)
	if c.http.Transport.(*http.Transport).Proxy != nil {
		t.Error("a proxy from the environment would bypass the guard")
	}
}

// A server may send any bytes in a header. The database stores only text: what cannot be stored would leave the reading unfinished, and a
// calendar with unfinished readings is read every hour only.
func TestFetchReturnsText(t *testing.T) {
	t.Parallel()
	for name, tag := range map[string]string{"another encoding": "\"\xbf\xb9\"", "long": `"` + strings.Repeat("x", 100_000) + `"`} {
		c, srv := partner(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("ETag", tag)
			w.Header().Set("Last-Modified", "Sat, 21 Nov 2026 05:00:00 GMT")
			_, _ = w.Write(anHour)
		})
		got, err := c.Pull(t.Context(), Feed{URL: srv.URL, Zone: seoul})
		if want := (Cursor{LastModified: "Sat, 21 Nov 2026 05:00:00 GMT"}); err != nil || len(got.Bookings) != 1 || got.Cursor != want {
			t.Errorf("%s: %d bookings and %.100q, %v, want one and %q", name, len(got.Bookings), got.Cursor, err, want)
		}
	}
	c, srv := partner(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nno header \xbf\x00\r\n\r\n")
	})
	_, err := c.Pull(t.Context(), Feed{URL: srv.URL, Zone: seoul})
	if err == nil || !utf8.ValidString(err.Error()) || strings.ContainsRune(err.Error(), 0) {
		t.Errorf("a malformed answer: %q, want a text that the database stores", err)
	}
}
