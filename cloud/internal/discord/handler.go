package discord

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"
)

const (
	maxBody    = 256 << 10
	maxChoices = 25

	// patience is how long the response waits for a command's result before it is deferred; Discord's limit is 3 s. runTime
	// bounds the command itself.
	patience = 2 * time.Second
	runTime  = 12 * time.Second
)

// Handler serves /discord/interactions. Set the fields before its first request.
type Handler struct {
	PublicKey ed25519.PublicKey
	Users     Users
	Backend   Backend
	Client    *Client // for deferred answers
	Log       *slog.Logger
	Now       func() time.Time

	running sync.WaitGroup

	mu   sync.Mutex
	seen map[string]time.Time // interactions accepted in the last 2*maxAge, by id
}

// Wait returns when every command in progress has been answered. Call it after the server has stopped accepting requests.
func (h *Handler) Wait() { h.running.Wait() }

// ServeHTTP implements [http.Handler]. Errors are plain statuses, because Discord ignores their bodies.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		var tooLong *http.MaxBytesError
		if errors.As(err, &tooLong) {
			http.Error(w, "body too long", http.StatusRequestEntityTooLarge)
			return
		}
		http.Error(w, "body unreadable", http.StatusBadRequest)
		return
	}
	now := h.Now()
	if err := verify(h.PublicKey, r.Header, body, now); err != nil {
		http.Error(w, "invalid request signature", http.StatusUnauthorized)
		return
	}
	i, err := decode(body)
	if err != nil {
		http.Error(w, "not an interaction", http.StatusBadRequest)
		return
	}
	switch i.Type {
	case ping:
		write(w, response{Type: pong})
	case autocomplete:
		write(w, response{autocompleteResult, h.complete(r.Context(), i)})
	case applicationCommand:
		write(w, h.command(i, now)) //nolint:contextcheck // the command outlives the request
	default:
		http.Error(w, "unknown interaction", http.StatusBadRequest)
	}
}

func write(w http.ResponseWriter, r response) {
	w.Header().Set("Content-Type", "application/json")
	// A write error means that Discord closed the connection.
	_ = json.NewEncoder(w).Encode(r)
}

// complete suggests the branches the user may use.
func (h *Handler) complete(ctx context.Context, i interaction) choices {
	list := choices{Choices: []choice{}}
	if !h.Users.known(i.userID()) {
		return list
	}
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	branches, err := h.Backend.Branches(ctx)
	if err != nil {
		h.Log.WarnContext(ctx, "discord: branches for the completion were not read", "error", err)
		return list
	}
	typed := strings.ToLower(i.text(optionBranch))
	for _, b := range branches {
		if h.Users.allows(i.userID(), b.Code) && len(list.Choices) < maxChoices &&
			(strings.Contains(strings.ToLower(b.Code), typed) || strings.Contains(strings.ToLower(b.Name), typed)) {
			list.Choices = append(list.Choices, choice{b.Name, b.Code})
		}
	}
	return list
}

// command answers a command: with the result if it is available within patience, otherwise with a deferred answer.
func (h *Handler) command(i interaction, now time.Time) response {
	branch := i.text(optionBranch)
	if !h.Users.allows(i.userID(), branch) {
		h.Log.Warn("discord: command refused", "user", i.userID(), "command", i.Data.Name)
		return response{channelMessage, say("이 명령을 사용할 권한이 없습니다.")}
	}
	if !h.first(i.ID, now) {
		return response{channelMessage, say("이미 처리한 요청입니다.")}
	}
	h.Log.Info("discord: command received", "user", i.userID(), "command", i.Data.Name, "branch", branch)

	// The command outlives the request, so a door that opens after 2 s is still reported.
	ctx, stop := context.WithTimeout(context.Background(), runTime)
	done := make(chan string, 1)
	h.running.Go(func() {
		defer stop()
		text, err := h.run(ctx, i, branch)
		if err != nil {
			h.Log.Warn("discord: command failed", "user", i.userID(), "command", i.Data.Name, "branch", branch, "error", err)
			text = failureText(err)
		}
		done <- text
	})
	select {
	case text := <-done:
		return response{channelMessage, say(text)}
	case <-time.After(patience):
	}
	h.running.Go(func() {
		text := <-done
		ctx, stop := context.WithTimeout(context.Background(), runTime)
		defer stop()
		if err := h.Client.EditOriginal(ctx, i.ApplicationID, i.Token, text); err != nil {
			h.Log.Warn("discord: late answer was not sent", "command", i.Data.Name, "error", err)
		}
	})
	return response{deferredMessage, message{Flags: ephemeral, AllowedMentions: mentions{Parse: []string{}}}}
}

// first reports whether an interaction is new. It remembers the id for as long as the signature stays valid, so a captured
// request cannot be replayed here. For a replica that has not seen it, the backend refuses to open a door again.
func (h *Handler) first(id string, now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.seen == nil {
		h.seen = map[string]time.Time{}
	}
	for old, at := range h.seen {
		if now.Sub(at) > 2*maxAge {
			delete(h.seen, old)
		}
	}
	if _, again := h.seen[id]; again || id == "" {
		return false
	}
	h.seen[id] = now
	return true
}
