package notify

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
)

func TestHooks(t *testing.T) {
	t.Parallel()
	type received struct {
		body map[string]any
		raw  string
	}
	requests := make(chan received, 10)
	status := http.StatusNoContent
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		got := received{raw: string(raw)}
		_ = json.Unmarshal(raw, &got.body)
		requests <- got
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(status)
	}))
	defer server.Close()
	message := func(medium Channel) Message {
		return Message{ID: "yeolda-1", Template: AlertBegan, To: Recipient{URL: server.URL + "/secret", Medium: medium},
			Variables: map[string]string{"branch": "강남점", "what": "@everyone", "since": "a", "link": "b", "kind": "clock", "address": server.URL + "/secret"}}
	}
	loopback := netip.MustParsePrefix("127.0.0.0/8")

	if _, err := NewHooks("", loopback).Send(t.Context(), message(Webhook)); err != nil {
		t.Fatal(err)
	}
	got := <-requests
	if got.body["id"] != "yeolda-1" || got.body["variables"].(map[string]any)["kind"] != "clock" || strings.Contains(got.raw, "secret") {
		t.Errorf("webhook received %s", got.raw)
	}
	if _, err := NewHooks(server.URL+"/secret").Send(t.Context(), message(Discord)); err != nil { // the address of the settings
		t.Fatal(err)
	}
	got = <-requests
	if !strings.Contains(got.body["content"].(string), "강남점") || len(got.body["allowed_mentions"].(map[string]any)["parse"].([]any)) != 0 {
		t.Errorf("Discord received %s", got.raw)
	}
	if _, err := NewHooks("").Send(t.Context(), message(Webhook)); ClassOf(err) != Permanent || strings.Contains(err.Error(), "/secret") {
		t.Errorf("a private address: %v, want a permanent error without the address", err)
	}
	hooks := NewHooks("http://10.0.0.9/own", loopback)
	for address, want := range map[string]bool{
		"https://example.com/a": true, "http://127.0.0.1:1/a": true, "http://10.0.0.9/own": true, "http://10.0.0.9/other": false,
		"https://[::1]/a": false, "https://169.254.169.254/": false, "https://[::ffff:10.0.0.1]/": false, "https://93.184.215.14/": true, "%": false,
	} {
		if err := hooks.CheckAddress(address); (err == nil) != want {
			t.Errorf("%s: %v, want accepted %t", address, err, want)
		}
	}
	for code, want := range map[int]Class{400: Permanent, 302: Permanent, 404: Permanent, 429: Retryable, 503: Retryable} {
		status = code
		if _, err := NewHooks("", loopback).Send(t.Context(), message(Webhook)); ClassOf(err) != want || err == nil {
			t.Errorf("status %d: %v, want %v", code, err, want)
		}
		<-requests
	}
	select {
	case extra := <-requests:
		t.Errorf("unexpected request %s", extra.raw)
	default:
	}
}
