package service

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"
)

const (
	requestTimeout = 15 * time.Second
	// paymentTimeout exceeds the 60 seconds of the payment provider, and ends before the connection's write time-out.
	paymentTimeout = 75 * time.Second
	// photoTimeout leaves a busy machine the time to encode a photo after its upload (see httpapi): half a second alone, and several at the
	// first photo after the start, which compiles the encoders.
	photoTimeout = 75 * time.Second
	// bodyTimeout bounds the time in which a client must send a whole body, except for a photo of an administrator. It leaves a loaded
	// machine three of the 15 seconds after which no such connection may be open.
	bodyTimeout = 12 * time.Second
)

// deadlines gives every API request a deadline, so that a database that does not answer delays no client longer.
func (s *Service) deadlines(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		timeout := s.timeoutOf(r)
		if timeout == 0 {
			next.ServeHTTP(w, r)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), timeout)
		defer cancel()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// boundBodies bounds the time for the body of each request. It encloses all other handlers: net/http reads the body that none of them has
// read, before it sends the answer.
func boundBodies(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 {
			boundBody(w, r)
		}
		next.ServeHTTP(w, r)
	})
}

// boundBody ends the connection of a client that does not send its whole body in time. The deadline is removed at the end
// of the body: net/http continues to read, to notice a client that disconnects.
func boundBody(w http.ResponseWriter, r *http.Request) {
	controller := http.NewResponseController(w)
	if controller.SetReadDeadline(time.Now().Add(bodyTimeout)) != nil {
		return // not a connection of net/http
	}
	r.Body = &boundedBody{r.Body, controller}
}

type boundedBody struct {
	io.ReadCloser
	controller *http.ResponseController
}

// Read removes the deadline with the last byte.
func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		_ = b.controller.SetReadDeadline(time.Time{}) // it was supported before
	}
	return n, err
}

// timeoutOf returns 0 for connections that last: WebSockets. The path decides, not a header, which any client can send.
func (s *Service) timeoutOf(r *http.Request) time.Duration {
	switch path := strings.TrimPrefix(r.URL.Path, "/api"); {
	case path == "/v2/admin/live", path == mqttPath:
		return 0
	case strings.HasSuffix(path, "/unlock/subscribe"):
		return s.settings.Times.DoorResultTimeout + time.Second
	case path == "/payment/confirm", path == "/payment/cancel", path == "/admin/v2/virtual-accounts",
		strings.HasPrefix(path, "/admin/reservation"), strings.HasSuffix(path, "/refund"), path == "/v2/admin/proof",
		strings.HasSuffix(path, "/payments.csv"): // its rows are read as fast as the client takes them
		return paymentTimeout
	case r.Method == http.MethodPost && (strings.HasSuffix(path, "/photos") || strings.HasSuffix(path, "/arrival") || strings.HasSuffix(path, "/done")):
		return photoTimeout
	}
	return requestTimeout
}
