package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// TestFollowWaitsForTheService follows events through what a restart of the service, or of a proxy in front of it, looks like from outside.
// An error that remains ends it: the token was revoked, or the address was wrong from the beginning.
func TestFollowWaitsForTheService(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch n := asked.Add(1); n {
		case 1, 5:
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"status": "success", "data": {"events": [{"id": "%d", "at": "2026-11-29T00:00:00Z", "type": "room.changed", "branch": "gangnam", "subject": "room:1", "version": 1}], "next": "%d"}}`, n, n)
		case 2:
			panic(http.ErrAbortHandler) // the connection ends
		case 3:
			http.Error(w, "Bad Gateway", http.StatusBadGateway)
		case 4:
			w.Header().Set("Retry-After", "1")
			http.Error(w, "", http.StatusTooManyRequests)
		default:
			http.Error(w, "", http.StatusUnauthorized)
		}
		if after := r.URL.Query().Get("after"); asked.Load() > 1 && asked.Load() < 6 && after != "1" {
			t.Errorf("request %d asks for events after %s, want 1", asked.Load(), after)
		}
	}))
	t.Cleanup(server.Close)
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), []string{"--url", server.URL, "events", "follow"}, &stdout, &stderr)
	if want := "1 2026-11-29T00:00:00Z gangnam room.changed room:1 1\n5 2026-11-29T00:00:00Z gangnam room.changed room:1 1\n"; stdout.String() != want {
		t.Errorf("printed %q, want %q", &stdout, want)
	}
	if code != exitFailed || !strings.Contains(stderr.String(), "401") {
		t.Errorf("got exit code %d and %q, want %d and that the token is not valid", code, &stderr, exitFailed)
	}

	stderr.Reset()
	if code := run(t.Context(), []string{"--url", "http://127.0.0.1:1", "events", "follow"}, io.Discard, &stderr); code != exitFailed || !strings.Contains(stderr.String(), "connection refused") {
		t.Errorf("got exit code %d and %q for a wrong address, want %d and that it does not answer", code, &stderr, exitFailed)
	}
}

// TestFollowEndsDuringAnOutage interrupts the command while the service is away.
func TestFollowEndsDuringAnOutage(t *testing.T) {
	t.Parallel()
	away := make(chan struct{}, 1)
	ctx, stop := context.WithCancel(t.Context())
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("after") == "7" {
			http.Error(w, "", http.StatusServiceUnavailable)
			away <- struct{}{}
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"status": "success", "data": {"events": [], "next": "7"}}`)
	}))
	t.Cleanup(server.Close)
	ended := make(chan int, 1)
	go func() { ended <- run(ctx, []string{"--url", server.URL, "events", "follow"}, io.Discard, io.Discard) }()
	<-away
	stop()
	if code := <-ended; code != 0 {
		t.Errorf("exit code %d after an interrupt, want 0", code)
	}
}

// TestInterruptIsNoSuccess interrupts a command that opens a door: the script that runs it must not take the door for open.
func TestInterruptIsNoSuccess(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		stop()
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	var stderr bytes.Buffer
	if code := run(ctx, []string{"--url", server.URL, "doors", "open", "gangnam"}, io.Discard, &stderr); code != exitFailed || stderr.String() != "yeoldactl: interrupted\n" {
		t.Errorf("got exit code %d and %q, want %d and that it was interrupted", code, &stderr, exitFailed)
	}
}
