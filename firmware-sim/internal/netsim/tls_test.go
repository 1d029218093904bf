package netsim_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/yeolda/yeolda/firmware-sim/internal/netsim"
)

// TestTLS checks that the link does TLS to an mqtts broker and the tap still sees the messages. It is the only test
// that uses the system's roots, which a process reads once.
func TestTLS(t *testing.T) {
	f := newFixture(t)
	certificate, roots := selfSigned(t)
	t.Setenv("SSL_CERT_FILE", roots)
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{certificate}})
	if err != nil {
		t.Fatal(err)
	}
	var forwarding sync.WaitGroup
	forwarding.Go(func() { forward(listener, f.cloud.URL.Host, &forwarding) })
	t.Cleanup(func() {
		listener.Close()
		forwarding.Wait()
	})

	f.link, err = netsim.New([]*url.URL{{Scheme: "mqtts", Host: listener.Addr().String()}}, func() netsim.Tap { return f.tap })
	if err != nil {
		t.Fatal(err)
	}
	f.cable = f.link.Plug()
	t.Cleanup(func() {
		f.cable.Pull()
		f.link.Close()
	})
	c := f.connect(t, 30)
	f.cloud.Unlock("a", "front_1")
	if got := receive(t, "message", c.got); got != "door/ask" {
		t.Errorf("got %s", got)
	}
	f.tap.wait(t, "to door/ask")
}

// forward terminates TLS and forwards the connections.
func forward(listener net.Listener, to string, running *sync.WaitGroup) {
	for {
		near, err := listener.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", to)
		if err != nil {
			near.Close()
			return
		}
		for _, way := range [][2]net.Conn{{near, far}, {far, near}} {
			running.Go(func() {
				_, _ = io.Copy(way[1], way[0])
				way[0].Close()
				way[1].Close()
			})
		}
	}
}

// selfSigned returns a certificate for 127.0.0.1 and a root file that contains it.
func selfSigned(t *testing.T) (certificate tls.Certificate, roots string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	roots = filepath.Join(t.TempDir(), "roots.pem")
	if err := os.WriteFile(roots, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, roots
}
