package service_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

// TestSlowBodyIsCut sends one byte of a body, also where no handler reads it. The service must end the connection although the client keeps
// it open. Only the photo of an administrator may take longer than that: it is sent until after the others have been cut.
func TestSlowBodyIsCut(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	photo, rest := io.Pipe()
	uploaded := make(chan error, 1)
	go func() { uploaded <- uploadPhoto(s.Admin(t, "hq", "hq-demo"), s.URL, photo) }()
	if _, err := rest.Write([]byte(`{`)); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	heads := map[string]string{
		"an operation":                   "POST /api/reservation HTTP/1.1\r\n",
		"an operation with Upgrade":      "POST /api/reservation HTTP/1.1\r\nUpgrade: x\r\n",
		"the live connection":            "GET /api/v2/admin/live HTTP/1.1\r\n",
		"the photo of a stranger":        "POST /api" + photosOfRoom + " HTTP/1.1\r\n",
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
	body, err := json.Marshal(map[string]any{"data": servicetest.Picture(t, 480), "alt": map[string]string{"ko": "룸", "en": "Room"}})
	if err != nil {
		t.Fatal(err)
	}
	_, _ = rest.Write(body[1:]) // the answer shows whether it arrived
	_ = rest.Close()
	if err := <-uploaded; err != nil {
		t.Errorf("a slow upload of a photo: %v", err)
	}
}

const photosOfRoom = "/v2/admin/branches/gangnam/rooms/1/photos"

// uploadPhoto adds a photo to a room.
func uploadPhoto(manager *servicetest.Client, base string, body io.Reader) error {
	answer, err := (&http.Client{Jar: manager.HTTP.Jar, Timeout: time.Minute}).Post(base+photosOfRoom, "application/json", body)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		text, err := io.ReadAll(answer.Body)
		return fmt.Errorf("answer %d %s %w", answer.StatusCode, text, err)
	}
	return nil
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
