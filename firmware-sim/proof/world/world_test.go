package world_test

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/yeolda/yeolda/firmware-sim/proof/world"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// echo answers every byte with itself.
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
				_, _ = io.Copy(conn, conn) // until it is cut
				conn.Close()
			}()
		}
	}()
	return l
}

func say(conn net.Conn, within time.Duration) error {
	if err := conn.SetDeadline(time.Now().Add(within)); err != nil {
		return err
	}
	if _, err := conn.Write([]byte{7}); err != nil {
		return err
	}
	var answer [1]byte
	_, err := io.ReadFull(conn, answer[:])
	return err
}

func TestLink(t *testing.T) {
	t.Parallel()
	server := echo(t)
	link, err := world.NewLink(func() (net.Conn, error) { return net.Dial("tcp", server.Addr().String()) })
	if err != nil {
		t.Fatal(err)
	}
	defer link.Close()
	conn, err := net.Dial("tcp", link.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := say(conn, 10*time.Second); err != nil {
		t.Fatalf("a line that is whole: %v", err)
	}

	link.Freeze()
	link.Freeze()
	var timeout net.Error
	if err := say(conn, 200*time.Millisecond); !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Fatalf("a frozen line: %v", err)
	}
	link.Restore()
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	var late [1]byte
	if _, err := io.ReadFull(conn, late[:]); err != nil {
		t.Fatalf("what was sent into a frozen line never arrives: %v", err)
	}

	link.Cut()
	if err := say(conn, 10*time.Second); err == nil {
		t.Fatal("a cut line answers")
	}
	if fresh, err := net.Dial("tcp", link.Addr()); err == nil {
		defer fresh.Close()
		if err := say(fresh, 10*time.Second); err == nil {
			t.Fatal("a cut line takes new connections")
		}
	}
	link.Restore()
	again, err := net.Dial("tcp", link.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if err := say(again, 10*time.Second); err != nil {
		t.Fatalf("a mended line: %v", err)
	}
}

func TestPrice(t *testing.T) {
	t.Parallel()
	for minutes, want := range map[int]int{10: 3000, 20: 6000, 30: 8000, 50: 14000, 60: 15000, 100: 26000, 300: 75000} {
		if got := world.Price(time.Duration(minutes) * time.Minute); got != want {
			t.Errorf("%d minutes cost %d, want %d", minutes, got, want)
		}
	}
}
