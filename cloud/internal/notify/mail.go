package notify

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	netmail "net/mail"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/wneessen/go-mail"
)

const mailTimeout = 15 * time.Second

// MailConfig configures a [Mail].
type MailConfig struct {
	// URL of the server: smtp://user:password@host:port?tls=MODE. MODE is starttls (default, port 587), implicit
	// (port 465) or none (port 25, loopback only). User and password are optional.
	URL  string
	From string // "Yeolda <noreply@example.com>" or a bare address
	// Sandbox adds the template's name and variables as headers for development and tests. Variables contain codes
	// and keys, so this must stay off in production.
	Sandbox bool

	TLS *tls.Config // nil means the system's root certificates
}

// Mail sends plain-text mail over SMTP, using one connection per message. It is safe for concurrent use.
type Mail struct {
	client  *mail.Client
	from    *netmail.Address
	sandbox bool
}

// NewMail validates cfg and returns a sender. It does not connect.
func NewMail(cfg MailConfig) (*Mail, error) {
	from, err := netmail.ParseAddress(cfg.From)
	if err != nil {
		return nil, fmt.Errorf("notify: mail sender: %w", err)
	}
	host, options, err := smtpOptions(cfg.URL)
	if err != nil {
		return nil, fmt.Errorf("notify: mail server: %w", err)
	}
	if cfg.TLS != nil {
		c := cfg.TLS.Clone()
		if c.ServerName == "" {
			c.ServerName = host
		}
		options = append(options, mail.WithTLSConfig(c))
	}
	client, err := mail.NewClient(host, options...)
	if err != nil {
		return nil, fmt.Errorf("notify: mail server: %w", err)
	}
	return &Mail{client, from, cfg.Sandbox}, nil
}

func smtpOptions(raw string) (host string, options []mail.Option, err error) {
	u, err := url.Parse(raw)
	if err != nil {
		return "", nil, errors.New("the address is not a URL") // the error would contain the password
	}
	if u.Scheme != "smtp" || u.Hostname() == "" {
		return "", nil, errors.New("the address must be smtp://host:port")
	}
	options = []mail.Option{mail.WithTimeout(mailTimeout)}
	var port int
	switch u.Query().Get("tls") {
	case "", "starttls":
		port = 587
		options = append(options, mail.WithTLSPolicy(mail.TLSMandatory))
	case "implicit":
		port = 465
		options = append(options, mail.WithSSL())
	case "none":
		if !loopback(u.Hostname()) {
			return "", nil, errors.New("tls=none is for loopback only")
		}
		port = 25
		options = append(options, mail.WithTLSPolicy(mail.NoTLS))
	default:
		return "", nil, fmt.Errorf("tls=%q is none of starttls, implicit, none", u.Query().Get("tls"))
	}
	if p := u.Port(); p != "" {
		if port, err = strconv.Atoi(p); err != nil {
			return "", nil, fmt.Errorf("port %q", p)
		}
	}
	options = append(options, mail.WithPort(port))
	if u.User != nil {
		password, _ := u.User.Password()
		options = append(options, mail.WithSMTPAuth(mail.SMTPAuthAutoDiscover),
			mail.WithUsername(u.User.Username()), mail.WithPassword(password))
	}
	return u.Hostname(), options, nil
}

// Send implements [Sender].
func (s *Mail) Send(ctx context.Context, m Message) (Receipt, error) {
	msg, err := s.compose(m)
	if err != nil {
		return Receipt{}, &Error{Channel: Email, Class: Permanent, Err: err}
	}
	err = s.client.DialAndSendWithContext(ctx, msg)
	// The server may accept the message and then fail to answer QUIT.
	if err != nil && !msg.IsDelivered() {
		return Receipt{}, mailError(err)
	}
	return Receipt{Channel: Email, ProviderID: msg.GetMessageID()}, nil
}

func (s *Mail) compose(m Message) (*mail.Msg, error) {
	text, err := m.Render()
	if err != nil {
		return nil, err
	}
	to, err := address(m.To.Email)
	if err != nil {
		return nil, err
	}
	msg := mail.NewMsg()
	msg.FromMailAddress(s.from)
	msg.ToMailAddress(to)
	msg.Subject(text.Subject)
	msg.SetDate()
	if m.ID == "" {
		msg.SetMessageID()
	} else {
		_, domain, _ := strings.Cut(s.from.Address, "@")
		msg.SetMessageIDWithValue(m.ID + "@" + domain)
	}
	msg.SetGenHeader("Auto-Submitted", "auto-generated") // RFC 3834: suppresses automatic replies
	if s.sandbox {
		variables, err := json.Marshal(m.used())
		if err != nil {
			return nil, err
		}
		msg.SetGenHeader("X-Yeolda-Template", string(m.Template))
		msg.SetGenHeader("X-Yeolda-Variables", foldable(base64.StdEncoding.EncodeToString(variables)))
	}
	msg.SetBodyString(mail.TypeTextPlain, text.Body+"\n")
	return msg, nil
}

// foldable inserts spaces into a value that is too long for one header line (998 bytes, RFC 5322 2.1.1), so that the
// library can fold it there. Readers remove the spaces.
func foldable(s string) string {
	const line = 900
	if len(s) <= line {
		return s
	}
	return s[:line] + " " + foldable(s[line:])
}

var errAddress = errors.New("not an e-mail address")

// address accepts bare addresses only, because user input ends up in a header and in the SMTP dialogue.
func address(s string) (*netmail.Address, error) {
	s = strings.TrimSpace(s)
	parsed, err := netmail.ParseAddress(s)
	if err != nil || parsed.Address != s || len(s) > 254 || strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r == 0x7f || strings.ContainsRune(`<>",;:\()[]`, r)
	}) {
		return nil, errAddress
	}
	return parsed, nil
}

// mailError classifies a failure by the stage the SMTP dialogue had reached.
func mailError(err error) *Error {
	var send *mail.SendError
	if !errors.As(err, &send) {
		return &Error{Channel: Email, Class: Retryable, Err: err} // connection, TLS or login failed
	}
	e := &Error{Channel: Email, Class: Retryable, Err: fmt.Errorf("%v", send.Reason)} // the full text contains the recipient
	if code := send.ErrorCode(); code != 0 {
		e.Code = strconv.Itoa(code)
		if code >= 500 {
			e.Class = Permanent
		}
	} else if send.Reason == mail.ErrSMTPDataClose {
		e.Class = Unknown // the server has the whole message, but its reply was lost
	}
	return e
}
