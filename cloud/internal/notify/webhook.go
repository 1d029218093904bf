package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"sync/atomic"
	"time"

	"code.dny.dev/ssrf"
)

const (
	hookTimeout  = 10 * time.Second
	hookMaxBody  = 64 << 10
	discordRunes = 2000 // Discord's limit of a message
)

// Hooks sends messages to webhooks: to a Discord channel as text, to any other address as JSON. Addresses that staff have
// entered may not lead into a private network.
type Hooks struct {
	public  *http.Client
	trusted *http.Client
	// own is an address from the settings of the service. It may lead anywhere.
	own string

	guardian *ssrf.Guardian
}

// NewHooks returns a sender. Private networks are refused except those in allow, and except for the address own, which may
// be empty.
func NewHooks(own string, allow ...netip.Prefix) *Hooks {
	var v4, v6 []netip.Prefix
	for _, prefix := range allow {
		if prefix.Addr().Is4() {
			v4 = append(v4, prefix)
		} else {
			v6 = append(v6, prefix)
		}
	}
	guardian := ssrf.New(ssrf.WithAnyPort(), ssrf.WithAllowedV4Prefixes(v4...), ssrf.WithAllowedV6Prefixes(v6...),
		ssrf.WithDeniedV4Prefixes(netip.MustParsePrefix("168.63.129.16/32"))) // the metadata address of Azure
	client := func(dialer *net.Dialer) *http.Client {
		return &http.Client{
			Timeout:       hookTimeout,
			Transport:     &http.Transport{DialContext: dialer.DialContext, ForceAttemptHTTP2: true, DisableKeepAlives: true},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
	}
	return &Hooks{own: own, guardian: guardian, trusted: client(&net.Dialer{Timeout: hookTimeout}),
		public: client(&net.Dialer{Timeout: hookTimeout, Control: guardian.Safe})}
}

// CheckAddress returns an error for a webhook whose address is a literal one to which Send does not connect, so that staff notice
// when they enter it. A name is checked when a message is sent, because its addresses change.
func (h *Hooks) CheckAddress(webhook string) error {
	to, err := url.Parse(webhook)
	if err != nil {
		return errors.New("the address is not a URL")
	}
	literal, err := netip.ParseAddr(to.Hostname())
	if err != nil || webhook == h.own {
		return nil
	}
	network := "tcp6"
	if literal.Unmap().Is4() {
		network = "tcp4"
	}
	return h.guardian.Safe(network, netip.AddrPortFrom(literal.Unmap(), 443).String(), nil)
}

// hookBody is the JSON that a webhook receives.
type hookBody struct {
	ID        string            `json:"id"`
	Template  Template          `json:"template"`
	Subject   string            `json:"subject"`
	Text      string            `json:"text"`
	Variables map[string]string `json:"variables"`
}

// discordBody is a message to a Discord channel. It mentions no user, whatever its text contains.
type discordBody struct {
	Content         string `json:"content"`
	AllowedMentions struct {
		Parse []string `json:"parse"`
	} `json:"allowed_mentions"`
}

// Send implements [Sender].
func (h *Hooks) Send(ctx context.Context, m Message) (Receipt, error) {
	failed := func(class Class, code string, err error) (Receipt, error) {
		return Receipt{}, &Error{Channel: m.To.Medium, Class: class, Code: code, Err: err}
	}
	text, err := m.Render()
	if err != nil {
		return failed(Permanent, "", err)
	}
	body, err := json.Marshal(hookContent(m, text))
	if err != nil {
		return failed(Permanent, "", err)
	}
	var wrote atomic.Bool // whether any byte of the request may have been sent
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { wrote.Store(true) }})
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, m.To.URL, bytes.NewReader(body))
	if err != nil {
		return failed(Permanent, "", errors.New("the address is not a URL")) // err contains the address, which is a secret
	}
	req.Header.Set("Content-Type", "application/json")
	client := h.public
	if h.own != "" && m.To.URL == h.own {
		client = h.trusted
	}
	resp, err := client.Do(req)
	if err != nil {
		var withURL *url.Error
		if errors.As(err, &withURL) {
			err = withURL.Err
		}
		switch {
		case errors.Is(err, ssrf.ErrProhibitedIP):
			return failed(Permanent, "", err)
		case wrote.Load():
			return failed(Unknown, "", err)
		}
		return failed(Retryable, "", err)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, hookMaxBody)) // the answer is its status
	switch status := resp.StatusCode; {
	case status >= 200 && status < 300:
		return Receipt{Channel: m.To.Medium}, nil
	case status == http.StatusRequestTimeout, status == http.StatusTooManyRequests, status >= 500:
		return failed(Retryable, "", fmt.Errorf("status %d", status))
	default:
		return failed(Permanent, "", fmt.Errorf("status %d", status))
	}
}

func hookContent(m Message, text Text) any {
	if m.To.Medium != Discord {
		variables := maps.Clone(m.Variables)
		maps.DeleteFunc(variables, func(_, value string) bool { return value == m.To.URL })
		return hookBody{ID: m.ID, Template: m.Template, Subject: text.Subject, Text: text.Body, Variables: variables}
	}
	content := []rune("**" + text.Subject + "**\n" + text.Body)
	body := discordBody{Content: string(content[:min(len(content), discordRunes)])}
	body.AllowedMentions.Parse = []string{}
	return body
}
