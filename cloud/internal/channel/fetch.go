package channel

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"
	"unicode/utf8"
)

const (
	fetchTimeout = 10 * time.Second
	maxCalendar  = 5 << 20
	maxRedirects = 3
	maxCursor    = 1000 // bytes of a header
)

// ICal exchanges calendars: partners read ours at the export address, and we read theirs. It is safe for concurrent
// use.
type ICal struct {
	domain string
	now    func() time.Time
	http   *http.Client
	parser sync.Mutex // one calendar at a time: the budget of its parser is a time
}

// NewICal returns the adapter. domain is the domain of our exported calendars, whose entries are skipped on import.
func NewICal(domain string, now func() time.Time) *ICal {
	return newICal(domain, now, &net.Dialer{Control: publicOnly}, nil)
}

func newICal(domain string, now func() time.Time, dialer *net.Dialer, tlsConfig *tls.Config) *ICal {
	return &ICal{domain: domain, now: now, http: &http.Client{
		Timeout: fetchTimeout,
		Transport: &http.Transport{
			// No proxy: it would dial on our behalf and bypass the guard.
			DialContext:           dialer.DialContext,
			TLSClientConfig:       tlsConfig,
			TLSHandshakeTimeout:   5 * time.Second,
			ResponseHeaderTimeout: fetchTimeout,
			ForceAttemptHTTP2:     true,
			MaxIdleConnsPerHost:   -1, // fetches are minutes apart
		},
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if len(via) > maxRedirects {
				return fmt.Errorf("more than %d redirects", maxRedirects)
			}
			return checkFeedURL(r.URL)
		},
	}}
}

// Pull implements [Puller]. Its errors do not contain the feed's address, which is a secret.
func (c *ICal) Pull(ctx context.Context, f Feed) (Pulled, error) {
	body, cursor, err := c.fetch(ctx, f)
	if err != nil {
		return Pulled{}, err
	}
	if body == nil {
		return Pulled{Unchanged: true, Cursor: f.Cursor}, nil
	}
	c.parser.Lock()
	defer c.parser.Unlock()
	bookings, problems, later, err := ParseCalendar(ctx, body, f.Zone, c.domain, c.now())
	if err != nil {
		return Pulled{}, err
	}
	if later {
		cursor = Cursor{} // the period moves on: "not modified" would hide bookings that come into it
	}
	return Pulled{Bookings: bookings, Problems: problems, Cursor: cursor}, nil
}

// fetch returns the calendar, or nil if it has not changed since the cursor.
func (c *ICal) fetch(ctx context.Context, f Feed) ([]byte, Cursor, error) {
	u, err := url.Parse(f.URL)
	if err != nil {
		return nil, Cursor{}, errors.New("channel: the feed's address is not a URL")
	}
	if err := checkFeedURL(u); err != nil {
		return nil, Cursor{}, fmt.Errorf("channel: %w", err)
	}
	ctx, stop := context.WithTimeout(ctx, fetchTimeout)
	defer stop()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, f.URL, nil)
	if err != nil {
		return nil, Cursor{}, errors.New("channel: the feed's address is not a URL")
	}
	req.Header.Set("Accept", "text/calendar")
	req.Header.Set("User-Agent", "Yeolda calendar import")
	if f.Cursor.ETag != "" {
		req.Header.Set("If-None-Match", f.Cursor.ETag)
	}
	if f.Cursor.LastModified != "" {
		req.Header.Set("If-Modified-Since", f.Cursor.LastModified)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		var withURL *url.Error
		if errors.As(err, &withURL) {
			err = withURL.Err
		}
		return nil, Cursor{}, fmt.Errorf("channel: fetch: %w", err)
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusNotModified && f.Cursor != Cursor{}:
		return nil, f.Cursor, nil
	case resp.StatusCode != http.StatusOK:
		return nil, Cursor{}, fmt.Errorf("channel: fetch: HTTP %d", resp.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxCalendar+1))
	if err != nil {
		return nil, Cursor{}, fmt.Errorf("channel: fetch: %w", err)
	}
	if len(body) > maxCalendar {
		return nil, Cursor{}, fmt.Errorf("channel: fetch: %w: it is longer than %d bytes", ErrOverBudget, maxCalendar)
	}
	return body, Cursor{ETag: storable(resp.Header.Get("ETag")), LastModified: storable(resp.Header.Get("Last-Modified"))}, nil
}

// storable returns the value of a header, or "" for one that the database does not store. Without it, the next reading fetches the whole
// calendar.
func storable(value string) string {
	if len(value) > maxCursor || !utf8.ValidString(value) {
		return ""
	}
	return value
}

// CheckFeedURL reports whether a feed's address may be stored: HTTPS, without credentials. The target is checked on
// every fetch.
func CheckFeedURL(address string) error {
	u, err := url.Parse(address)
	if err != nil {
		return errors.New("the address is not a URL")
	}
	return checkFeedURL(u)
}

func checkFeedURL(u *url.URL) error {
	switch {
	case u.Scheme != "https":
		return errors.New("a feed's address must begin with https://")
	case u.Hostname() == "":
		return errors.New("a feed's address must contain a host")
	case u.User != nil:
		return errors.New("a feed's address must not contain credentials")
	}
	return nil
}
