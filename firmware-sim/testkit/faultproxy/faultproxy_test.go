package faultproxy_test

import (
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/yeolda/yeolda/firmware-sim/testkit/faultproxy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testTimeout bounds every wait of these tests for an event.
const testTimeout = 30 * time.Second

// echo starts a server that returns every byte.
func echo(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(conn, conn) // until the connection ends
				conn.Close()
			}()
		}
	}()
	return l
}

func start(t *testing.T) *faultproxy.Proxy {
	t.Helper()
	server := echo(t)
	p, err := faultproxy.New(func() (net.Conn, error) { return net.Dial("tcp", server.Addr().String()) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

func connect(t *testing.T, p *faultproxy.Proxy) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// ask sends a text and returns what is read until the same number of bytes, an error or the timeout.
func ask(conn net.Conn, text string, timeout time.Duration) (string, error) {
	if err := conn.SetDeadline(time.Now().Add(timeout)); err != nil {
		return "", err
	}
	if _, err := io.WriteString(conn, text); err != nil {
		return "", err
	}
	answer := make([]byte, len(text))
	n, err := io.ReadFull(conn, answer)
	return string(answer[:n]), err
}

func TestFreezeKeepsBytes(t *testing.T) {
	t.Parallel()
	p := start(t)
	conn := connect(t, p)
	if got, err := ask(conn, "a", testTimeout); got != "a" || err != nil {
		t.Fatalf("got %q, %v through an intact proxy", got, err)
	}
	p.Freeze()
	p.Freeze()
	if got, err := ask(conn, "b", 200*time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("got %q, %v through a frozen proxy, want a timeout", got, err)
	}
	p.Restore()
	if err := conn.SetDeadline(time.Now().Add(testTimeout)); err != nil {
		t.Fatal(err)
	}
	var late [1]byte
	if _, err := io.ReadFull(conn, late[:]); err != nil || late[0] != 'b' {
		t.Fatalf("got %q, %v after the freeze, want the byte sent during it", late, err)
	}
}

func TestCutResetsConnections(t *testing.T) {
	t.Parallel()
	p := start(t)
	conn := connect(t, p)
	if _, err := ask(conn, "a", testTimeout); err != nil {
		t.Fatal(err)
	}
	p.Cut()
	if _, err := ask(conn, "b", testTimeout); err == nil {
		t.Error("an established connection survives a cut")
	}
	if fresh, err := net.Dial("tcp", p.Addr()); err == nil {
		defer fresh.Close()
		if _, err := ask(fresh, "c", testTimeout); err == nil {
			t.Error("a new connection passes a cut")
		}
	}
	p.Restore()
	if got, err := ask(connect(t, p), "d", testTimeout); got != "d" || err != nil {
		t.Errorf("got %q, %v after Restore", got, err)
	}
}

func TestHalfClose(t *testing.T) {
	t.Parallel()
	conn := connect(t, start(t))
	if _, err := io.WriteString(conn, "whole"); err != nil {
		t.Fatal(err)
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(conn); string(got) != "whole" || err != nil {
		t.Errorf("got %q, %v, want all bytes and EOF", got, err)
	}
}

func TestRules(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		rule faultproxy.Rule
		want string // before the reset; empty: none
	}{
		"request lost":      {rule: faultproxy.Rule{On: "pay", Lose: true}},
		"answer lost":       {rule: faultproxy.Rule{On: "pay"}},
		"other answer":      {rule: faultproxy.Rule{On: "pay", Answer: "no"}, want: "no"},
		"distorted answer":  {rule: faultproxy.Rule{On: "pay", Replace: [2]string{"300", "299"}}, want: "pay 299"},
		"delayed":           {rule: faultproxy.Rule{On: "pay", Delay: time.Millisecond}, want: "pay 300"},
		"after another one": {rule: faultproxy.Rule{After: "begin", On: "pay", Answer: "no"}, want: "no"},
		"other request":     {rule: faultproxy.Rule{On: "refund", Lose: true}, want: "pay 300"},
		"nothing before":    {rule: faultproxy.Rule{After: "login", On: "pay", Lose: true}, want: "pay 300"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := start(t)
			p.Add(tt.rule)
			conn := connect(t, p)
			if _, err := ask(conn, "begin", testTimeout); err != nil {
				t.Fatal(err)
			}
			got, err := ask(conn, "pay 300", testTimeout)
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if broken := !strings.HasPrefix(tt.want, "pay"); broken != (err != nil) {
				t.Errorf("got error %v, want broken %v", err, broken)
			}
			if again, err := ask(connect(t, p), "pay 300", testTimeout); tt.rule.On == "pay" && tt.rule.After == "" && (again != "pay 300" || err != nil) {
				t.Errorf("got %q, %v for a second request, want the rule to be used up", again, err)
			}
		})
	}
}
