package httpapi_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/yeolda/yeolda/cloud/internal/config"
	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

// Administrators who read a large file of payments slowly, more than the service has connections to its database, delay no
// other request. The file has every payment once.
func TestSlowReadersOfPaymentsHoldNoConnection(t *testing.T) {
	t.Parallel()
	const readers, payments = 12, 20_000
	s := servicetest.Start(t, func(set *config.Settings) { set.HTTP.RateLimits = "off" })
	tx, err := s.DB.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// Triggers would write events. Equal times put many rows at the edges of pages.
	if _, err := tx.Exec(t.Context(), `set local session_replication_role = replica`); err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `
		insert into reservation (branch_id, room_id, state, source, start_at, end_at, occupied, name, mobile, method, amount, order_id, created_at, paid_at, canceled_at)
		select b.id, m.id, 'CANCELED', 'CUSTOMER', at, at + interval '1 hour', tstzrange(at, at + interval '70 minutes'), repeat('홍', 50), '010-1234-5678',
		       '가상계좌', 10000, 'slow-' || n || repeat('x', 40), at, case when n % 2 = 0 then at end, at + interval '1 hour'
		from branch b join room m on m.branch_id = b.id and m.no = 2,
		     lateral (select n, '2025-10-01 00:00+09'::timestamptz + n / 700 * interval '1 day' as at from generate_series(0, $1 - 1) n) time
		where b.code = 'gangnam'`, payments); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	hq := s.Admin(t, "hq", "hq-demo")
	dialer := new(net.Dialer)
	slow := &http.Client{Jar: hq.HTTP.Jar, Transport: &http.Transport{
		ReadBufferSize: 512, DisableCompression: true,
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, network, addr)
			if err == nil {
				err = conn.(*net.TCPConn).SetReadBuffer(4 << 10)
			}
			return conn, err
		},
	}}
	t.Cleanup(slow.CloseIdleConnections)
	files := make([]io.ReadCloser, readers)
	for i := range files {
		response, err := slow.Get(s.URL + "/v2/admin/branches/gangnam/payments.csv?yearMonth=2025-10")
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			t.Fatalf("file %d: %d", i+1, response.StatusCode)
		}
		files[i] = response.Body
	}
	hq.Get("/v2/admin/branches/gangnam/payments?yearMonth=2025-10").OK(t)
	s.Client(t).Post("/account/login", map[string]string{"type": "mobile", "id": "01012345678", "code": "000000"}).Fails(t, 401, "AuthenticationError", "")
	for _, file := range files {
		_ = file.Close() // the client leaves in the middle
	}
	response, err := hq.HTTP.Get(s.URL + "/v2/admin/branches/gangnam/payments.csv?yearMonth=2025-10")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	lines, unique := strings.Split(strings.TrimSpace(string(body)), "\r\n"), map[string]bool{}
	for _, line := range lines {
		unique[line] = true
	}
	if err != nil || len(lines) != payments+1 || len(unique) != len(lines) {
		t.Errorf("got %d lines, %d of them different, want %d (%v)", len(lines), len(unique), payments+1, err)
	}
}
