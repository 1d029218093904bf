package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/http/cookiejar"
	"slices"
	"strconv"
	"strings"
	"time"
)

// requestTimeout bounds a request. The service answers in 60 seconds at most.
const requestTimeout = 90 * time.Second

// maxErrorBody is the number of bytes of an error that are read.
const maxErrorBody = 64 << 10

// API is a client of one Yeolda service. Its methods with the suffix WithResponse return the decoded answer, or an *Error if
// the service rejects the request. It keeps cookies, so one API is one guest: it holds at most one room at a time.
type API = ClientWithResponses

// New returns a client of the service at an address such as "https://yeolda.example". token is a token of a program, or empty
// for what needs none.
func New(address, token string) (*API, error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}
	options := []ClientOption{WithHTTPClient(&doer{http.Client{Jar: jar, Timeout: requestTimeout, CheckRedirect: stay}})}
	if token != "" {
		options = append(options, WithRequestEditorFn(header("Authorization", "Bearer "+token)))
	}
	return NewClientWithResponses(strings.TrimSuffix(address, "/")+"/api", options...)
}

// stay follows no redirect, such as that of a proxy from http to https: HTTP clients repeat a POST, PUT or DELETE there as a GET, which changes
// nothing and succeeds.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// IdempotencyKey makes a POST safe to repeat: for 24 hours the service answers a repetition with the same key as it answered
// the first request.
func IdempotencyKey(key string) RequestEditorFn { return header("Idempotency-Key", key) }

func header(name, value string) RequestEditorFn {
	return func(_ context.Context, r *http.Request) error {
		r.Header.Set(name, value)
		return nil
	}
}

// Error is an answer that is not a success (docs/specification.md, Errors).
type Error struct {
	HTTP      int    `json:"-"`         // status code
	Type      string `json:"errorType"` // such as ResourceConflictException; empty if the answer has no envelope
	Code      string `json:"errorCode"` // the payment provider's, if it rejected a payment
	Message   string `json:"message"`   // in Korean
	RequestID string `json:"-"`         // names the request in the log of the service

	Data       json.RawMessage `json:"data"` // such as the conflicts of a 409; null for most errors
	RetryAfter time.Duration   `json:"-"`    // to wait before the request is repeated, of 429 and 503; 0: not said
}

// Error implements error.
func (e *Error) Error() string {
	text := "yeolda: " + strconv.Itoa(e.HTTP)
	if e.Type != "" {
		text += " " + e.Type
	}
	text += ": " + e.Message
	if e.RequestID != "" {
		text += " (request " + e.RequestID + ")"
	}
	return text
}

// doer returns answers that are not a success as errors, and those that are not of a Yeolda service, such as the page of a proxy.
type doer struct{ http http.Client }

func (d *doer) Do(r *http.Request) (*http.Response, error) {
	answer, err := d.http.Do(r)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode/100 == 2 {
		if err := checkSuccess(answer); err != nil {
			_ = answer.Body.Close()
			return nil, err
		}
		return answer, nil
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxErrorBody))
	if err != nil {
		return nil, err
	}
	rejected := &Error{HTTP: answer.StatusCode, RequestID: answer.Header.Get("X-Request-Id")}
	if wait, err := strconv.Atoi(answer.Header.Get("Retry-After")); err == nil { // a proxy may send a date
		rejected.RetryAfter = time.Duration(wait) * time.Second
	}
	if json.Unmarshal(body, rejected) != nil || rejected.Message == "" { // from a proxy
		rejected.Message = http.StatusText(answer.StatusCode)
	}
	if to, err := answer.Location(); err == nil && answer.StatusCode/100 == 3 {
		rejected.Message = "the service has moved to " + to.Scheme + "://" + to.Host // the rest may contain a key
	}
	return nil, rejected
}

// files are the types of answers that are not JSON: streams, tables and the description of the interface.
var files = []string{"text/event-stream", "text/csv", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "application/yaml"}

// checkSuccess returns an error if a success is not one of a Yeolda service: a proxy, the login page of a network or another service also answer
// with 200, and then nothing was done. It reads a body of JSON and puts it back.
func checkSuccess(answer *http.Response) error {
	host := answer.Request.URL.Host
	kind, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type")) // an invalid one is ignored
	switch {
	case answer.StatusCode == http.StatusNoContent && strings.HasSuffix(answer.Request.URL.Path, "/subscribe"): // the result was received before
		return nil
	case answer.StatusCode != http.StatusOK:
		return fmt.Errorf("the answer of %s has status %d: it is not a Yeolda service", host, answer.StatusCode)
	case slices.Contains(files, kind):
		return nil
	case kind != "application/json":
		return fmt.Errorf("the answer of %s is of type %q: it is not a Yeolda service", host, kind)
	}
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	var envelope struct{ Status string }
	if json.Unmarshal(body, &envelope) != nil || envelope.Status != "success" {
		return fmt.Errorf("the answer of %s has no envelope: it is not a Yeolda service", host)
	}
	_ = answer.Body.Close()
	answer.Body = io.NopCloser(bytes.NewReader(body))
	return nil
}
