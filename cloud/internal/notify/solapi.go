package notify

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
)

// DefaultSolapiURL is the message provider's production address.
const DefaultSolapiURL = "https://api.solapi.com"

const (
	solapiTimeout  = 10 * time.Second
	solapiMaxBody  = 1 << 20
	solapiAttempts = 2
	solapiPause    = 300 * time.Millisecond

	// An SMS holds 90 bytes in the carriers' two-byte Korean encoding. Longer texts are sent as LMS, whose subject
	// holds 40 bytes.
	smsBytes     = 90
	subjectBytes = 40
)

// SolapiConfig configures a [Solapi].
type SolapiConfig struct {
	BaseURL   string // "" means [DefaultSolapiURL]; plain HTTP is allowed for loopback only
	APIKey    string
	APISecret string
	From      string // the registered sender number of SMS
	PfID      string // the KakaoTalk channel
	// Templates lists the approved templates. A message without an approved template in its language is sent as SMS.
	Templates []ApprovedTemplate

	HTTPClient *http.Client     // nil means a client with a time-out of 10 s per call
	Now        func() time.Time // nil means time.Now
	Logger     *slog.Logger     // nil discards log messages
}

// Solapi sends AlimTalk and SMS through Solapi. It is safe for concurrent use.
type Solapi struct {
	cfg      SolapiConfig
	endpoint string
	approved map[sourceKey]ApprovedTemplate
}

// NewSolapi validates cfg and returns a sender. It does not connect.
func NewSolapi(cfg SolapiConfig) (*Solapi, error) {
	if cfg.BaseURL == "" {
		cfg.BaseURL = DefaultSolapiURL
	}
	u, err := url.Parse(cfg.BaseURL)
	if err != nil {
		return nil, fmt.Errorf("notify: solapi base URL: %w", err)
	}
	if u.Host == "" || u.Scheme != "https" && (u.Scheme != "http" || !loopback(u.Hostname())) {
		return nil, fmt.Errorf("notify: solapi base URL %q: https is required outside loopback", u.Redacted())
	}
	if cfg.APIKey == "" || cfg.APISecret == "" {
		return nil, errors.New("notify: solapi needs an API key and an API secret")
	}
	if cfg.From, err = mobile(cfg.From); err != nil {
		return nil, fmt.Errorf("notify: solapi sender number: %w", err)
	}
	approved := make(map[sourceKey]ApprovedTemplate, len(cfg.Templates))
	for _, t := range cfg.Templates {
		key := sourceKey{t.Template, t.Language}
		if _, ok := sources[key]; !ok {
			return nil, fmt.Errorf("notify: no template %q in language %q", t.Template, t.Language)
		}
		if t.PfID == "" {
			t.PfID = cfg.PfID
		}
		if t.TemplateID == "" || t.PfID == "" {
			return nil, fmt.Errorf("notify: template %q needs a template id and a pfId", t.Template)
		}
		approved[key] = t
	}
	if cfg.HTTPClient == nil {
		cfg.HTTPClient = &http.Client{
			Timeout:       solapiTimeout,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Solapi{cfg, strings.TrimRight(cfg.BaseURL, "/") + "/messages/v4/send-many/detail", approved}, nil
}

// Send implements [Sender]. An approved template is sent as AlimTalk, for which the provider falls back to SMS if
// KakaoTalk cannot deliver it. If the provider rejects the template itself, Send sends the text as SMS: a wrong
// setting must not withhold a key from a guest.
func (s *Solapi) Send(ctx context.Context, m Message) (Receipt, error) {
	text, err := m.Render()
	if err != nil {
		return Receipt{}, &Error{Channel: AlimTalk, Class: Permanent, Err: err}
	}
	to, err := mobile(m.To.Mobile)
	if err != nil {
		return Receipt{}, &Error{Channel: AlimTalk, Class: Permanent, Err: err}
	}
	sms := s.sms(m, to, text)
	approved, ok := s.approved[sourceKey{m.Template, m.language()}]
	if !ok || m.To.Medium == SMS {
		return s.send(ctx, SMS, sms)
	}
	receipt, err := s.send(ctx, AlimTalk, alimTalk(approved, m, sms))
	var e *Error
	if errors.As(err, &e) && templateRefused[e.Code] {
		s.cfg.Logger.ErrorContext(ctx, "message provider rejected a template; sent as SMS",
			"template", m.Template, "language", m.language(), "code", e.Code)
		return s.send(ctx, SMS, sms)
	}
	return receipt, err
}

// solapiMessage is one message of a request.
type solapiMessage struct {
	To           string            `json:"to"`
	From         string            `json:"from"`
	Type         string            `json:"type"`
	Subject      string            `json:"subject,omitempty"`
	Text         string            `json:"text"`
	KakaoOptions *kakaoOptions     `json:"kakaoOptions,omitempty"`
	CustomFields map[string]string `json:"customFields,omitempty"`
}

type kakaoOptions struct {
	PfID       string            `json:"pfId"`
	TemplateID string            `json:"templateId"`
	Variables  map[string]string `json:"variables"`
	DisableSMS bool              `json:"disableSms"`
}

func (s *Solapi) sms(m Message, to string, text Text) solapiMessage {
	msg := solapiMessage{
		To: to, From: s.cfg.From, Type: "SMS", Text: text.Body,
		CustomFields: map[string]string{"template": string(m.Template)},
	}
	if m.ID != "" {
		msg.CustomFields["id"] = m.ID
	}
	if carrierBytes(text.Body) > smsBytes {
		msg.Type, msg.Subject = "LMS", cut(text.Subject, subjectBytes)
	}
	return msg
}

// alimTalk converts an SMS to the AlimTalk for which it is the fallback.
func alimTalk(approved ApprovedTemplate, m Message, sms solapiMessage) solapiMessage {
	options := &kakaoOptions{PfID: approved.PfID, TemplateID: approved.TemplateID, Variables: map[string]string{}}
	for name, value := range m.used() {
		options.Variables["#{"+name+"}"] = value
	}
	sms.Type, sms.Subject, sms.KakaoOptions = "ATA", "", options
	return sms
}

// send retries once if the first attempt certainly sent nothing.
func (s *Solapi) send(ctx context.Context, channel Channel, msg solapiMessage) (Receipt, error) {
	body, err := json.Marshal(struct {
		Messages        []solapiMessage `json:"messages"`
		AllowDuplicates bool            `json:"allowDuplicates"`
		ShowMessageList bool            `json:"showMessageList"`
	}{[]solapiMessage{msg}, false, true})
	if err != nil {
		return Receipt{}, &Error{Channel: channel, Class: Permanent, Err: err}
	}
	for attempt := 1; ; attempt++ {
		id, failure := s.post(ctx, body)
		if failure == nil {
			return Receipt{Channel: channel, ProviderID: id}, nil
		}
		failure.Channel = channel
		if attempt == solapiAttempts || failure.Class != Retryable {
			return Receipt{}, failure
		}
		select {
		case <-ctx.Done():
			return Receipt{}, failure
		case <-time.After(solapiPause):
		}
	}
}

// post makes one attempt, with its own signature, and returns the message's id.
func (s *Solapi) post(ctx context.Context, body []byte) (string, *Error) {
	var wrote atomic.Bool // whether any byte of the request may have been sent
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { wrote.Store(true) }})
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.endpoint, bytes.NewReader(body))
	if err != nil {
		return "", &Error{Class: Permanent, Err: err}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", s.authorization(s.cfg.Now(), salt()))
	resp, err := s.cfg.HTTPClient.Do(req)
	if err != nil {
		class := Retryable
		if wrote.Load() {
			class = Unknown
		}
		return "", &Error{Class: class, Err: err}
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, solapiMaxBody))
	if err != nil {
		return "", &Error{Class: Unknown, Err: fmt.Errorf("read answer: %w", err)}
	}
	if resp.StatusCode != http.StatusOK {
		return "", refusal(resp.StatusCode, answer)
	}
	return accepted(answer)
}

// authorization signs one attempt. The provider accepts a signature only once, so a retry needs a new salt.
func (s *Solapi) authorization(now time.Time, salt string) string {
	date := now.UTC().Format(time.RFC3339)
	mac := hmac.New(sha256.New, []byte(s.cfg.APISecret))
	_, _ = io.WriteString(mac, date+salt) // writing to a hash never fails
	return fmt.Sprintf("HMAC-SHA256 apiKey=%s, date=%s, salt=%s, signature=%s",
		s.cfg.APIKey, date, salt, hex.EncodeToString(mac.Sum(nil)))
}

func salt() string {
	b := make([]byte, 16)
	rand.Read(b)
	return hex.EncodeToString(b)
}

func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
