package main

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/yeolda/yeolda/agent/internal/brokertest"
	"github.com/yeolda/yeolda/protocol"
)

// authority is a certificate authority.
type authority struct {
	certificate *x509.Certificate
	key         ed25519.PrivateKey
}

// issue returns a certificate for localhost, valid from a time for 90 days. parent nil: an authority of its own, valid for a century.
func issue(t *testing.T, parent *authority, from time.Time) authority {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotBefore: from, NotAfter: from.AddDate(0, 0, 90),
		DNSNames: []string{"localhost"}}
	if parent == nil {
		template.IsCA, template.BasicConstraintsValid, template.DNSNames = true, true, nil
		template.NotBefore, template.NotAfter = from.AddDate(-50, 0, 0), from.AddDate(50, 0, 0)
		parent = &authority{template, private}
	}
	der, err := x509.CreateCertificate(nil, template, parent.certificate, public, parent.key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return authority{certificate, private}
}

// serveTLS forwards TLS connections to an address and returns its own.
func serveTLS(t *testing.T, with authority, to string) (address string) {
	t.Helper()
	listener, err := tls.Listen("tcp", "localhost:0", &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{
		{Certificate: [][]byte{with.certificate.Raw}, PrivateKey: with.key}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				if conn.(*tls.Conn).HandshakeContext(t.Context()) != nil {
					return
				}
				broker, err := net.Dial("tcp", to) //nolint:noctx // it ends with the test
				if err != nil {
					return
				}
				defer broker.Close()
				go func() { _, _ = io.Copy(broker, conn); _ = broker.Close() }()
				_, _ = io.Copy(conn, broker)
			}()
		}
	}()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return "localhost:" + port
}

// TestCertificateRenewedMeanwhile starts a machine whose clock is two months behind, because it had no power, and which no network gives the
// time. The certificate of the service was renewed meanwhile.
func TestCertificateRenewedMeanwhile(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	b, dir := brokertest.Start(t, "127.0.0.1:0"), t.TempDir()
	root := issue(t, nil, time.Now())
	secure := serveTLS(t, issue(t, &root, time.Now().AddDate(0, 2, 0)), b.Addr)
	c := testRun(t, dir, b, "")
	ca := filepath.Join(dir, "ca.pem")
	write(t, ca, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.certificate.Raw})))
	write(t, c.Settings, "broker = 'mqtts://"+secure+"'\nca = '"+ca+"'\n")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx, slog.New(slog.DiscardHandler)) }()
	if s := brokertest.Await[protocol.Status](b); s.State != protocol.Online {
		t.Errorf("got status %+v", s)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestEnrollWithAClockThatIsBehind enrolls a machine whose image was made two months ago, and which no network gives the time. The doctor then finds
// a broker that the agent finds, too.
func TestEnrollWithAClockThatIsBehind(t *testing.T) {
	t.Parallel()
	dir, root, public := t.TempDir(), issue(t, nil, time.Now()), base64.StdEncoding.EncodeToString(make([]byte, ed25519.PublicKeySize))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, `{"status": "success", "data": {"branch": "gangnam", "username": "agent-gangnam-abcd2345", "password": "password", "grantPublicKeys": [%q]}}`, public)
	}))
	t.Cleanup(server.Close)
	secure := serveTLS(t, issue(t, &root, time.Now().AddDate(0, 2, 0)), server.Listener.Addr().String())
	ca, fingerprint := filepath.Join(dir, "authority.pem"), sha256.Sum256([]byte(public))
	write(t, ca, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.certificate.Raw})))
	c := enrollCommand{Server: "https://" + secure, Token: "secret." + base64.RawURLEncoding.EncodeToString(fingerprint[:])[:22],
		File: filepath.Join(dir, "credentials"), CA: ca}
	if err := c.Run(t.Context(), slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	f := files{Settings: filepath.Join(dir, "settings.toml"), Credentials: c.File, State: dir}
	write(t, f.Settings, "broker = 'mqtts://"+secure+"'\n")
	if report := f.examine(t.Context()); !strings.Contains(report, secure+" answers") {
		t.Errorf("got a broker that does not answer:\n%s", report)
	}
}

// TestLearnedTime checks from which certificates a clock that is behind takes the time.
func TestLearnedTime(t *testing.T) {
	t.Parallel()
	now := time.Now()
	root, other := issue(t, nil, now), issue(t, nil, now)
	trusted := x509.NewCertPool()
	trusted.AddCert(root.certificate)
	for name, test := range map[string]struct {
		by    authority
		from  time.Time
		later bool
	}{
		"renewed":   {root, now.AddDate(0, 2, 0), true},
		"expired":   {root, now.AddDate(0, -6, 0), false},
		"untrusted": {other, now.AddDate(0, 2, 0), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clock := newCertificateClock(files{Settings: filepath.Join(t.TempDir(), "none")})
			address := serveTLS(t, issue(t, &test.by, test.from), "127.0.0.1:1")
			dialer := tls.Dialer{Config: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: trusted, Time: clock.now}}
			if conn, err := dialer.DialContext(t.Context(), "tcp", address); err == nil {
				_ = conn.Close()
				t.Fatal("connected")
			} else {
				clock.learn(err, trusted)
			}
			if got := clock.now(); got.After(now.AddDate(0, 1, 0)) != test.later {
				t.Errorf("got the time %v, want later: %t", got, test.later)
			}
		})
	}
}
