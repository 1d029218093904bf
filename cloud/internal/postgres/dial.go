package postgres

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// dialTimeout bounds the wait for a server that does not answer at all, so that the next host of the URL is tried within the
	// time-out of a batch of doors.
	dialTimeout = 2 * time.Second

	// silentDialTimeout replaces dialTimeout for an address that did not answer last time.
	silentDialTimeout = 300 * time.Millisecond

	// lostTimeout is the time after which a connection fails whose server is off the network. With the defaults of Linux and Go
	// that takes two and a half minutes if the connection waits for a result, and a quarter of an hour if it sends a statement.
	lostTimeout = 5 * time.Second
)

// keepalives makes the server end the sessions of a replica that is off the network. With the defaults of Linux they last for two
// more hours, with their advisory locks and their share of max_connections: no other replica would do background work, and an embedded
// broker could not start again. tcp_user_timeout would also end the session of a client that is slow to read, such as an export.
const keepalives = `set tcp_keepalives_idle = 2; set tcp_keepalives_interval = 1; set tcp_keepalives_count = 3`

// leaveLostServers makes both ends of the connections of a pool notice within lostTimeout that the other end is off the network, and
// the pool leave a server that takes no writes.
func leaveLostServers(config *pgxpool.Config) {
	config.ConnConfig.ConnectTimeout = connectTimeout
	config.ConnConfig.DialFunc = newDialer().DialContext
	// A server that became a standby keeps the connections that were opened before its address led elsewhere.
	fatal := config.ConnConfig.OnPgError
	config.ConnConfig.OnPgError = func(conn *pgconn.PgConn, err *pgconn.PgError) bool {
		return err.Code != readOnly && fatal(conn, err)
	}
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		scanInUTC(conn.TypeMap())
		// Not among the start-up parameters, of which a pooler knows only a few.
		return conn.PgConn().Exec(ctx, keepalives).Close()
	}
}

// dialer opens the connections of all pools of a [DB]. A server that loses its power or its network closes no connection: the
// dialer makes such connections fail soon, and keeps the lost server from delaying new ones. It is safe for concurrent use.
type dialer struct {
	net.Dialer
	mu     sync.Mutex
	silent map[string]bool // addresses whose last dial timed out
}

func newDialer() *dialer {
	return &dialer{
		Dialer: net.Dialer{
			KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 2 * time.Second, Interval: time.Second, Count: 3},
			Control:         boundUnacknowledged,
		},
		silent: map[string]bool{},
	}
}

// DialContext is a pgconn.DialFunc.
func (d *dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	timeout := dialTimeout
	if d.isSilent(address) {
		timeout = silentDialTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	conn, err := d.Dialer.DialContext(ctx, network, address)
	var failed net.Error
	d.note(address, errors.As(err, &failed) && failed.Timeout())
	return conn, err
}

func (d *dialer) isSilent(address string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.silent[address]
}

func (d *dialer) note(address string, silent bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if silent {
		d.silent[address] = true
	} else {
		delete(d.silent, address)
	}
}
