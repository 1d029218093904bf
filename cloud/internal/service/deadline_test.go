package service_test

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

// TestSlowBodyIsCut sends one byte of a body, also where no handler reads it. The service must end the connection although the client keeps
// it open.
func TestSlowBodyIsCut(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	ended := make(chan error)
	heads := map[string]string{
		"an operation":                   "POST /api/reservation HTTP/1.1\r\n",
		"an operation with Upgrade":      "POST /api/reservation HTTP/1.1\r\nUpgrade: x\r\n",
		"the live connection":            "GET /api/v2/admin/live HTTP/1.1\r\n",
		"MQTT over WebSocket":            "POST /mqtt HTTP/1.1\r\n",
		"a request from another website": "POST /api/reservation HTTP/1.1\r\nSec-Fetch-Site: cross-site\r\n",
	}
	for name, head := range heads {
		go func() {
			err := slowBody(strings.TrimPrefix(s.Root, "http://"), head)
			if err != nil {
				err = fmt.Errorf("%s: got %w, want the end of the connection", name, err)
			}
			ended <- err
		}()
	}
	for range heads {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// slowBody sends a request with one byte of its body, and waits up to a minute until the service ends the connection.
func slowBody(address, head string) error {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		return err
	}
	if _, err := fmt.Fprint(conn, head+"Host: a\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"); err != nil {
		return err
	}
	_, err = io.ReadAll(conn)
	return err
}
