package discord

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestClientRateLimit(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		answers []func() *http.Response
		calls   int
		ok      bool
	}{
		{[]func() *http.Response{reply(429, `{"retry_after":1.5}`)}, 2, true},
		{[]func() *http.Response{reply(429, `{"retry_after":1.5}`), reply(429, `{"retry_after":1.5}`)}, 2, false},
		{[]func() *http.Response{reply(429, `{"retry_after":3600}`)}, 1, false},
		{[]func() *http.Response{reply(429, `{"retry_after":1e300}`)}, 1, false},
		{[]func() *http.Response{reply(429, `<html>`)}, 1, false},
		{[]func() *http.Response{reply(404, `{"code":10015,"message":"Unknown Webhook"}`)}, 1, false},
		{[]func() *http.Response{reply(500, ``)}, 1, false},
		{[]func() *http.Response{reply(204, ``)}, 1, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := &platform{answers: tc.answers}
			start := time.Now()
			err := (&Client{HTTP: &http.Client{Transport: p}}).Alert(context.Background(), "https://discord.com/api/webhooks/1/secret-token", "지점 오프라인")
			if (err == nil) != tc.ok || len(p.calls) != tc.calls {
				t.Errorf("%v after %d calls", err, len(p.calls))
			}
			if tc.calls == 2 && time.Since(start) < 1500*time.Millisecond {
				t.Errorf("waited only %v", time.Since(start))
			}
			if err != nil && strings.Contains(err.Error(), "secret-token") {
				t.Errorf("the error holds the token: %v", err)
			}
		})
	}
}

func TestClientKeepsTokensOutOfErrors(t *testing.T) {
	t.Parallel()
	c := &Client{BaseURL: "http://127.0.0.1:1/"}
	if err := c.EditOriginal(context.Background(), "app", "secret-token", "x"); err == nil || strings.Contains(err.Error(), "secret-token") {
		t.Errorf("%v", err)
	}
	if err := c.Alert(context.Background(), "://secret-token", "x"); err == nil || strings.Contains(err.Error(), "secret-token") {
		t.Errorf("%v", err)
	}
}

func TestRegister(t *testing.T) {
	t.Parallel()
	p := &platform{}
	c := &Client{HTTP: &http.Client{Transport: p}}
	if err := c.Register(context.Background(), "app", "guild", "bot-token", Commands()); err != nil {
		t.Fatal(err)
	}
	if err := c.Register(context.Background(), "app", "", "bot-token", Commands()); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(p.calls[0], "PUT https://discord.com/api/v10/applications/app/guilds/guild/commands Bot bot-token [") ||
		!strings.HasPrefix(p.calls[1], "PUT https://discord.com/api/v10/applications/app/commands Bot bot-token [") {
		t.Errorf("sent %q", p.calls)
	}
	for _, command := range Commands() {
		if n := len([]rune(command.Name)); n < 1 || n > 32 || len([]rune(command.Description)) > 100 || command.Permissions != "0" {
			t.Errorf("Discord would refuse %+v", command)
		}
		for i, o := range command.Options {
			if i > 0 && o.Required && !command.Options[i-1].Required {
				t.Errorf("%s: required options come first", command.Name)
			}
		}
	}
}
