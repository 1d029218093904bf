package service

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// silentConn is a connection whose network can go away without a word: what is written is lost, and nothing arrives.
type silentConn struct {
	net.Conn
	lost   atomic.Bool
	closed context.Context
	end    context.CancelFunc
}

func (c *silentConn) Write(p []byte) (int, error) {
	if c.lost.Load() {
		return len(p), nil
	}
	return c.Conn.Write(p)
}

func (c *silentConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.lost.Load() {
		<-c.closed.Done()
		return 0, net.ErrClosed
	}
	return n, err
}

func (c *silentConn) Close() error {
	c.end()
	return c.Conn.Close()
}

// pipes is a listener of connections in memory.
type pipes struct {
	conns chan net.Conn
	done  context.Context
	end   context.CancelFunc
}

func (p pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.done.Done():
		return nil, net.ErrClosed
	}
}

func (p pipes) Close() error   { p.end(); return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

// TestCallsLeaveALostConnection loses the HTTP/2 connection to an external system without a reset, as a router does that was replaced.
// All calls share it: without pings, each of them would fail until the kernel gives up, after a quarter of an hour.
func TestCallsLeaveALostConnection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		done, end := context.WithCancel(t.Context())
		listener := pipes{make(chan net.Conn), done, end}
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) }))
		_ = server.Listener.Close()
		server.Listener, server.EnableHTTP2 = listener, true
		server.StartTLS()
		defer server.Close()

		var conns []*silentConn
		transport := http.DefaultTransport.(*http.Transport).Clone()      // as the clients do
		transport.TLSClientConfig = &tls.Config{InsecureSkipVerify: true} //nolint:gosec // the certificate of httptest
		transport.DialContext = func(context.Context, string, string) (net.Conn, error) {
			client, server := net.Pipe()
			conn := &silentConn{Conn: client}
			conn.closed, conn.end = context.WithCancel(t.Context())
			conns = append(conns, conn)
			listener.conns <- server
			return conn, nil
		}
		defer transport.CloseIdleConnections()
		client := &http.Client{Transport: transport, Timeout: time.Minute}
		call := func() error {
			response, err := client.Get("https://provider.example/")
			if err != nil {
				return err
			}
			defer response.Body.Close()
			if text, err := io.ReadAll(response.Body); err != nil || string(text) != "HTTP/2.0" {
				t.Errorf("got %q, %v, want an answer over HTTP/2", text, err)
			}
			return nil
		}
		if err := call(); err != nil {
			t.Fatal(err)
		}
		conns[0].lost.Store(true)
		_ = call() // its outcome is unknown
		if err := call(); err != nil || len(conns) != 2 {
			t.Errorf("the call after the lost one: %v over %d connections, want an answer over the second", err, len(conns))
		}
	})
}
