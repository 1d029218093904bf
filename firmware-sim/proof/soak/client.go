package soak

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"time"

	"github.com/yeolda/yeolda/firmware-sim/proof/record"
)

// requestTimeout is how long a client waits for an answer. The outcome of a request without an answer is unknown.
const requestTimeout = 30 * time.Second

// client is a browser: it has cookies and sends each request to any replica.
type client struct {
	*Soak
	http *http.Client
}

func (s *Soak) newClient() *client {
	jar, err := cookiejar.New(nil)
	if err != nil {
		panic(err) // without options it never fails
	}
	return &client{s, &http.Client{Jar: jar, Timeout: requestTimeout, Transport: s.transport}}
}

// reply is an answer in the envelope; Status 0 means that there was none.
type reply struct {
	status int
	kind   string // errorType
	data   json.RawMessage
	text   string
	call   time.Time
	ret    time.Time
}

// ask sends a request to a replica.
func (c *client) ask(ctx context.Context, replica int, method, path string, body any) (r reply) {
	r.call = time.Now()
	defer func() { r.ret = time.Now(); c.latency(method, path, r) }()
	var content io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			panic(err) // bodies are values of this package
		}
		content = bytes.NewReader(encoded)
	}
	request, err := http.NewRequestWithContext(ctx, method, c.world.Replicas[replica].API+path, content)
	if err != nil {
		panic(err) // addresses too
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := c.http.Do(request)
	if err != nil {
		return r
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return r
	}
	r.status, r.text = response.StatusCode, string(text)
	var envelope struct {
		ErrorType string          `json:"errorType"`
		Data      json.RawMessage `json:"data"`
	}
	if json.Unmarshal(text, &envelope) == nil { // a stream has no envelope
		r.kind, r.data = envelope.ErrorType, envelope.Data
	}
	return r
}

// into decodes an answer's data and reports whether there was any.
func (r reply) into(v any) bool { return r.status == http.StatusOK && json.Unmarshal(r.data, v) == nil }

// subscribe waits for the result of a press at a replica.
func (c *client) subscribe(ctx context.Context, replica int, path, requestID, key string) record.Told {
	query := url.Values{"requestId": {requestID}}
	if key != "" {
		query.Set("key", key)
	}
	r := c.ask(ctx, replica, http.MethodGet, path+"?"+query.Encode(), nil)
	told := record.Told{At: time.Now(), Replica: replica, HTTP: r.status}
	lines := bufio.NewScanner(strings.NewReader(r.text))
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data:")
		var event struct {
			Status      string  `json:"status"`
			FailoverKey *string `json:"failoverKey"`
		}
		if ok && r.status == http.StatusOK && json.Unmarshal([]byte(data), &event) == nil {
			told.Status, told.PIN = event.Status, event.FailoverKey != nil
		}
	}
	return told
}

const wireTime = "200601021504"

// wire returns a time that has the zone of its branch in the form of the interface.
func wire(t time.Time) string { return t.Format(wireTime) }
