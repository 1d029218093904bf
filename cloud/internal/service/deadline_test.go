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

// TestSlowBodyIsCut sends one byte of a body. The service must end the connection although the client keeps it open.
func TestSlowBodyIsCut(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.Root, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST /api/reservation HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
	if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(conn); err != nil {
		t.Errorf("connection with an incomplete body: got %v, want its end", err)
	}
}
