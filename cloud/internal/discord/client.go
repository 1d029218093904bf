package discord

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// DefaultBaseURL is Discord's API.
const DefaultBaseURL = "https://discord.com/api/v10"

const (
	clientTimeout = 10 * time.Second
	maxAnswer     = 1 << 20
	// maxPause is the longest rate-limit delay that the client waits for. A later answer is of no use to the user.
	maxPause = 5 * time.Second
)

// Client calls Discord's API. The zero value is ready for use.
type Client struct {
	BaseURL string       // "" is [DefaultBaseURL]
	HTTP    *http.Client // nil: http.DefaultClient; each call is limited to clientTimeout
}

// EditOriginal replaces the first answer to an interaction. The interaction's token authorizes it for 15 minutes.
func (c *Client) EditOriginal(ctx context.Context, applicationID, token, text string) error {
	edit := say(text)
	edit.Flags = 0 // the first answer determines whether the message is ephemeral
	path := "/webhooks/" + url.PathEscape(applicationID) + "/" + url.PathEscape(token) + "/messages/@original"
	return c.call(ctx, http.MethodPatch, c.base()+path, "", edit)
}

// Register replaces the application's commands in a guild, effective at once. An empty guild registers them globally.
func (c *Client) Register(ctx context.Context, applicationID, guild, botToken string, commands []Command) error {
	path := "/applications/" + url.PathEscape(applicationID)
	if guild != "" {
		path += "/guilds/" + url.PathEscape(guild)
	}
	return c.call(ctx, http.MethodPut, c.base()+path+"/commands", "Bot "+botToken, commands)
}

// Alert writes text to a channel through its webhook address, which is a secret.
func (c *Client) Alert(ctx context.Context, webhookURL, text string) error {
	alert := say(text)
	alert.Flags = 0
	return c.call(ctx, http.MethodPost, webhookURL, "", alert)
}

func (c *Client) base() string {
	if c.BaseURL == "" {
		return DefaultBaseURL
	}
	return strings.TrimRight(c.BaseURL, "/")
}

// call sends one request. If Discord limits the rate and the delay is short, it waits and tries once more.
func (c *Client) call(ctx context.Context, method, target, authorization string, body any) error {
	b, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("discord: %w", err)
	}
	pause, err := c.once(ctx, method, target, authorization, b)
	if pause <= 0 || pause > maxPause {
		return err
	}
	select {
	case <-ctx.Done():
		return err
	case <-time.After(pause):
	}
	_, err = c.once(ctx, method, target, authorization, b)
	return err
}

// once sends one request. pause is positive if Discord limits the rate.
func (c *Client) once(ctx context.Context, method, target, authorization string, body []byte) (pause time.Duration, err error) {
	ctx, stop := context.WithTimeout(ctx, clientTimeout)
	defer stop()
	req, err := http.NewRequestWithContext(ctx, method, target, bytes.NewReader(body))
	if err != nil {
		return 0, errors.New("discord: the address is not a URL") // err contains the address, which holds a token
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "DiscordBot (https://github.com/yeolda/yeolda, 1)")
	if authorization != "" {
		req.Header.Set("Authorization", authorization)
	}
	httpClient := c.HTTP
	if httpClient == nil {
		httpClient = http.DefaultClient
	}
	resp, err := httpClient.Do(req)
	if err != nil {
		var withURL *url.Error
		if errors.As(err, &withURL) {
			err = withURL.Err // the address holds a token
		}
		return 0, fmt.Errorf("discord: %s: %w", method, err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return 0, fmt.Errorf("discord: %s: read answer: %w", method, err)
	}
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		return 0, nil
	}
	var refusal struct {
		Code       int     `json:"code"`
		Message    string  `json:"message"`
		RetryAfter float64 `json:"retry_after"` // seconds
	}
	_ = json.Unmarshal(answer, &refusal) // if the body has another shape, the details stay empty
	if resp.StatusCode == http.StatusTooManyRequests {
		pause = time.Duration(refusal.RetryAfter * float64(time.Second))
	}
	return pause, fmt.Errorf("discord: %s: HTTP %d, code %d: %s", method, resp.StatusCode, refusal.Code, refusal.Message)
}
