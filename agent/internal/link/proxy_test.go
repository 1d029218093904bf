package link_test

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"sync"
	"testing"

	"github.com/yeolda/yeolda/agent/internal/brokertest"
	"github.com/yeolda/yeolda/agent/internal/link"
	"github.com/yeolda/yeolda/protocol"
)

// TestReverseProxy connects through an ordinary HTTPS server in front of the broker.
func TestReverseProxy(t *testing.T) {
	t.Parallel()
	b := brokertest.Start(t, "127.0.0.1:0")
	behind := mustParse(t, b.WSURL)
	behind.Scheme, behind.Path = "http", ""
	front := httptest.NewTLSServer(httputil.NewSingleHostReverseProxy(behind))
	defer front.Close()
	roots := x509.NewCertPool()
	roots.AddCert(front.Certificate())
	l := connect(t, "wss://"+front.Listener.Addr().String()+"/mqtt", func(c *link.Config) { c.TLS = &tls.Config{RootCAs: roots} })
	if s := brokertest.Await[protocol.Status](b); s.State != protocol.Online {
		t.Errorf("got status %+v, want online", s)
	}
	l.wantBothWays(t, b)
	l.stop()
}

// TestForwardProxy connects from a network that only allows connections through an HTTP proxy (CONNECT).
func TestForwardProxy(t *testing.T) {
	t.Parallel()
	b := brokertest.Start(t, "127.0.0.1:0")
	roots, secure := terminateTLSWithWS(t, b)
	asked := make(chan string, 10)
	office := officeProxy(t, secure, asked)
	_, port, err := net.SplitHostPort(secure)
	if err != nil {
		t.Fatal(err)
	}
	const host = "example.com" // the name in the certificate
	l := connect(t, "wss://"+net.JoinHostPort(host, port)+"/mqtt", func(c *link.Config) {
		c.TLS, c.Proxy = &tls.Config{RootCAs: roots}, http.ProxyURL(mustParse(t, "http://"+office))
	})
	if s := brokertest.Await[protocol.Status](b); s.State != protocol.Online {
		t.Errorf("got status %+v, want online", s)
	}
	l.wantBothWays(t, b)
	l.stop()
	if got := <-asked; got != "CONNECT "+net.JoinHostPort(host, port) {
		t.Errorf("the proxy received %s", got)
	}
}

// officeProxy is an HTTP proxy that connects every request to one address, because the names in the tests do not exist.
func officeProxy(t *testing.T, to string, asked chan<- string) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				request, err := http.ReadRequest(bufio.NewReader(in))
				if err != nil {
					in.Close()
					return
				}
				asked <- request.Method + " " + request.Host
				if _, err := in.Write([]byte("HTTP/1.1 200 Connection established\r\n\r\n")); err != nil {
					t.Error(err)
				}
				proxy(in, to)
			})
		}
	})
	t.Cleanup(func() { listener.Close(); running.Wait() })
	return listener.Addr().String()
}

// terminateTLSWithWS puts TLS in front of the broker's WebSocket.
func terminateTLSWithWS(t *testing.T, b *brokertest.Broker) (*x509.CertPool, string) {
	t.Helper()
	a, address := terminateTLS(t, mustParse(t, b.WSURL).Host)
	return a.pool, address
}
