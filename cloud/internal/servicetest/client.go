package servicetest

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/contract"
)

// Client is an HTTP client with its own cookies.
type Client struct {
	HTTP *http.Client
	base string
	t    testing.TB
}

// Client returns a new client without cookies.
func (s *Stack) Client(t testing.TB) *Client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	transport := http.DefaultTransport
	if s.Transport != nil {
		transport = s.Transport
	}
	return &Client{HTTP: &http.Client{Jar: jar, Timeout: 90 * time.Second, Transport: &checked{t, transport}}, base: s.URL, t: t}
}

// checked validates every exchange with the API against openapi.yaml.
type checked struct {
	t    testing.TB
	next http.RoundTripper
}

func (c *checked) RoundTrip(request *http.Request) (*http.Response, error) {
	var sent []byte
	if request.GetBody != nil {
		body, err := request.GetBody()
		if err != nil {
			return nil, err
		}
		if sent, err = io.ReadAll(body); err != nil {
			return nil, err
		}
	}
	answer, err := c.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	got, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if err != nil {
		return nil, err
	}
	answer.Body = io.NopCloser(bytes.NewReader(got))
	below, isAPI := strings.CutPrefix(request.URL.EscapedPath(), "/api")
	if !isAPI {
		return answer, nil
	}
	described := request.Clone(request.Context())
	if described.URL.Path, err = url.PathUnescape(below); err != nil {
		return answer, nil //nolint:nilerr // not an API path: there is no schema to compare with
	}
	described.URL.RawPath = below
	if err := contract.Check(contract.Exchange{Request: described, Sent: sent, Answer: answer, Got: got}); err != nil {
		c.t.Errorf("%s %s: against openapi.yaml: %v", request.Method, request.URL.Path, err)
	}
	return answer, nil
}

// Answer is a response in the API's envelope.
type Answer struct {
	HTTP      int
	Header    http.Header
	Raw       []byte
	Status    string          `json:"status"`
	ErrorType string          `json:"errorType"`
	ErrorCode string          `json:"errorCode"`
	Message   string          `json:"message"`
	Data      json.RawMessage `json:"data"`
}

// Into decodes the data field.
func (a Answer) Into(t testing.TB, data any) {
	t.Helper()
	if err := json.Unmarshal(a.Data, data); err != nil {
		t.Fatalf("data %s: %v", a.Data, err)
	}
}

// Do sends a request with a JSON body, or without one if body is nil. A string body is sent unchanged. The exchange
// must conform to openapi.yaml and the response must use the envelope.
func (c *Client) Do(method, path string, body any) Answer {
	c.t.Helper()
	answer := c.Send(method, path, body, nil)
	if err := json.Unmarshal(answer.Raw, &answer); err != nil {
		c.t.Fatalf("%s %s: %d, not the envelope: %s", method, path, answer.HTTP, answer.Raw)
	}
	return answer
}

// Send is Do with a header, for responses that may lack the envelope.
func (c *Client) Send(method, path string, body any, header http.Header) Answer {
	c.t.Helper()
	sent := c.encode(body)
	request, err := http.NewRequestWithContext(c.t.Context(), method, c.base+path, bytes.NewReader(sent))
	if err != nil {
		c.t.Fatal(err)
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	for name, values := range header {
		request.Header[name] = values
	}
	response, err := c.HTTP.Do(request)
	if err != nil {
		c.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return Answer{HTTP: response.StatusCode, Header: response.Header, Raw: raw}
}

func (c *Client) encode(body any) []byte {
	c.t.Helper()
	switch b := body.(type) {
	case nil:
		return nil
	case string:
		return []byte(b)
	}
	encoded, err := json.Marshal(body)
	if err != nil {
		c.t.Fatal(err)
	}
	return encoded
}

// Event is the data of the event door-result.
type Event struct {
	Status      string  `json:"status"`
	Device      *string `json:"device"`
	FailoverKey *string `json:"failoverKey"`
	// FailoverKind is code or pin; empty without FailoverKey.
	FailoverKind string `json:"failoverKind"`
}

// Event reads the only event of a stream.
func (a Answer) Event(t testing.TB) (e Event) {
	t.Helper()
	_, data, found := strings.Cut(string(a.Raw), "\nevent: door-result\ndata: ")
	if !found || a.HTTP != http.StatusOK || a.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("answer %d: %s", a.HTTP, a.Raw)
	}
	if err := json.Unmarshal([]byte(data), &e); err != nil {
		t.Fatalf("event %s: %v", data, err)
	}
	return e
}

// Get, Post, Put, Patch and Delete are shorthands for Do.
func (c *Client) Get(path string) Answer { c.t.Helper(); return c.Do(http.MethodGet, path, nil) }
func (c *Client) Post(path string, body any) Answer {
	c.t.Helper()
	return c.Do(http.MethodPost, path, body)
}
func (c *Client) Put(path string, body any) Answer {
	c.t.Helper()
	return c.Do(http.MethodPut, path, body)
}
func (c *Client) Patch(path string, body any) Answer {
	c.t.Helper()
	return c.Do(http.MethodPatch, path, body)
}
func (c *Client) Delete(path string, body any) Answer {
	c.t.Helper()
	return c.Do(http.MethodDelete, path, body)
}

// OK fails the test unless the response is a success.
func (a Answer) OK(t testing.TB) Answer {
	t.Helper()
	if a.HTTP != http.StatusOK || a.Status != "success" {
		t.Fatalf("answer %d: %s", a.HTTP, a.Raw)
	}
	return a
}

// Fails fails the test unless the response is the given error. An empty message is not compared.
func (a Answer) Fails(t testing.TB, status int, errorType, message string) Answer {
	t.Helper()
	if a.HTTP != status || a.Status != "error" || a.ErrorType != errorType || (message != "" && a.Message != message) {
		t.Fatalf("answer %d %s, want %d %s %q", a.HTTP, a.Raw, status, errorType, message)
	}
	return a
}

// Admin returns a client logged in as an administrator.
func (s *Stack) Admin(t testing.TB, id, password string) *Client {
	t.Helper()
	c := s.Client(t)
	c.Post("/admin/login", map[string]string{"id": id, "password": password}).OK(t)
	return c
}

// Envelope decodes the envelope of a response to Send.
func (a Answer) Envelope(t testing.TB) Answer {
	t.Helper()
	if err := json.Unmarshal(a.Raw, &a); err != nil {
		t.Fatalf("answer %d, not the envelope: %s", a.HTTP, a.Raw)
	}
	return a
}
