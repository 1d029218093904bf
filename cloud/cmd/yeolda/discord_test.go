package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestDiscordRegister registers the commands of the bot in one server and in all. A wrong token is an error that does not contain it.
func TestDiscordRegister(t *testing.T) {
	s := newShell(t)
	var path, authorization string
	var names []string
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path, authorization, names = r.Method+" "+r.URL.Path, r.Header.Get("Authorization"), nil
		if authorization != "Bot good-token" {
			http.Error(w, `{"message": "401: Unauthorized", "code": 0}`, http.StatusUnauthorized)
			return
		}
		var commands []struct {
			Name string `json:"name"`
		}
		if err := json.NewDecoder(r.Body).Decode(&commands); err != nil {
			t.Error(err)
		}
		for _, c := range commands {
			names = append(names, c.Name)
		}
	}))
	defer api.Close()
	defer http.DefaultClient.CloseIdleConnections()

	t.Setenv("YEOLDA_DISCORD_BOT_TOKEN", "good-token")
	out := s.ok("discord", "register", "42", "--guild", "7", "--api", api.URL)
	if want := "PUT /applications/42/guilds/7/commands"; path != want || !strings.Contains(out, "5 commands in the server 7") || len(names) != 5 {
		t.Errorf("got %s, %d commands and %q, want %s and 5", path, len(names), out, want)
	}
	s.ok("discord", "register", "42", "--api", api.URL)
	if want := "PUT /applications/42/commands"; path != want {
		t.Errorf("got %s, want %s", path, want)
	}
	t.Setenv("YEOLDA_DISCORD_BOT_TOKEN", "bad-token")
	if _, errOut, code := s.run("", "discord", "register", "42", "--api", api.URL); code != exitFailed || strings.Contains(errOut, "bad-token") || !strings.Contains(errOut, "401") {
		t.Errorf("got %d and %q, want 1 and Discord's answer without the token", code, errOut)
	}
}
