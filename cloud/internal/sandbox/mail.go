package sandbox

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"net/textproto"
	"strings"
	"time"

	"github.com/emersion/go-smtp"
)

// Limits of the mail server.
const (
	maxMail       = 1 << 20
	maxRecipients = 50
	maxMailParts  = 100
	maxMailDepth  = 5
	smtpTimeout   = time.Minute
)

// ServeSMTP accepts mail on l without authentication until ctx ends. It closes l.
func (s *Sandbox) ServeSMTP(ctx context.Context, l net.Listener) error {
	server := smtp.NewServer(smtp.BackendFunc(func(c *smtp.Conn) (smtp.Session, error) {
		return &mailSession{sandbox: s, conn: c.Conn()}, nil
	}))
	server.Domain = "sandbox.yeolda.invalid"
	server.MaxMessageBytes = maxMail
	server.MaxRecipients = maxRecipients
	server.ReadTimeout, server.WriteTimeout = smtpTimeout, smtpTimeout
	server.EnableSMTPUTF8 = true
	server.ErrorLog = smtpLog{s}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(l); err != nil && ctx.Err() == nil {
		return fmt.Errorf("serve SMTP: %w", err)
	}
	return nil
}

// smtpLog discards the library's log, for example about disconnected clients.
type smtpLog struct{ s *Sandbox }

func (l smtpLog) Printf(format string, v ...any) {
	l.s.log.Debug("sandbox: smtp: " + fmt.Sprintf(format, v...))
}
func (l smtpLog) Println(v ...any) { l.s.log.Debug("sandbox: smtp: " + fmt.Sprintln(v...)) }

// mailSession is one connection of the service's mailer.
type mailSession struct {
	sandbox *Sandbox
	conn    net.Conn
	to      []string
}

func (m *mailSession) Mail(string, *smtp.MailOptions) error { return nil }

func (m *mailSession) Rcpt(to string, _ *smtp.RcptOptions) error {
	m.to = append(m.to, to)
	return nil
}

// Data accepts one mail unless a fault of the target "messages" applies.
func (m *mailSession) Data(r io.Reader) error {
	mail, err := parseMail(r)
	if err != nil {
		return &smtp.SMTPError{Code: 554, EnhancedCode: smtp.EnhancedCode{5, 6, 0}, Message: err.Error()}
	}
	s := m.sandbox
	fault, timedOut := s.meet(TargetMessages, s.ctx)
	switch {
	case timedOut:
		m.conn.Close()
		return smtp.ErrServerClosed
	case fault.is(FaultError):
		return &smtp.SMTPError{Code: 451, EnhancedCode: smtp.EnhancedCode{4, 3, 0}, Message: "ordered failure"}
	}
	s.mu.Lock()
	for _, to := range m.to {
		mail.ID, mail.To = randomHex(16), to
		s.arrive(mail)
	}
	s.keep()
	s.mu.Unlock()
	if fault.is(FaultDropAfterCommit) {
		m.conn.Close()
	}
	return nil
}

func (m *mailSession) Reset()        { m.to = nil }
func (m *mailSession) Logout() error { return nil }

// parseMail extracts the subject and text of a mail. The service's mailer names the template and variables in two
// headers (X-Yeolda-Template; X-Yeolda-Variables, base64 of a JSON object); mail without them is accepted as well.
func parseMail(r io.Reader) (Message, error) {
	msg, err := mail.ReadMessage(r)
	if err != nil {
		return Message{}, fmt.Errorf("read the mail: %w", err)
	}
	subject, err := new(mime.WordDecoder).DecodeHeader(msg.Header.Get("Subject"))
	if err != nil {
		return Message{}, fmt.Errorf("decode the subject: %w", err)
	}
	text, err := mailText(textproto.MIMEHeader(msg.Header), msg.Body, 0)
	if err != nil {
		return Message{}, err
	}
	m := Message{
		Channel: ChannelMail, Template: msg.Header.Get("X-Yeolda-Template"), Subject: subject,
		Text: strings.TrimRight(strings.ReplaceAll(text, "\r\n", "\n"), "\n"),
	}
	if header := msg.Header.Get("X-Yeolda-Variables"); header != "" {
		encoded := strings.Join(strings.Fields(header), "") // a long header is folded
		b, err := base64.StdEncoding.DecodeString(encoded)
		if err == nil {
			err = json.Unmarshal(b, &m.Variables)
		}
		if err != nil {
			return Message{}, fmt.Errorf("X-Yeolda-Variables: %w", err)
		}
	}
	return m, nil
}

// mailText returns the plain text of a part or of the first of its subparts that has any, otherwise "".
func mailText(header textproto.MIMEHeader, body io.Reader, depth int) (string, error) {
	kind, params, err := mime.ParseMediaType(header.Get("Content-Type"))
	if err != nil {
		kind = "text/plain" // RFC 2045 5.2
	}
	switch {
	case strings.HasPrefix(kind, "multipart/") && depth < maxMailDepth:
		parts := multipart.NewReader(body, params["boundary"])
		for range maxMailParts {
			part, err := parts.NextRawPart()
			if errors.Is(err, io.EOF) {
				return "", nil
			}
			if err != nil {
				return "", fmt.Errorf("read a part: %w", err)
			}
			if text, err := mailText(part.Header, part, depth+1); text != "" || err != nil {
				return text, err
			}
		}
		return "", nil
	case kind != "text/plain":
		return "", nil
	}
	switch strings.ToLower(header.Get("Content-Transfer-Encoding")) {
	case "base64":
		body = base64.NewDecoder(base64.StdEncoding, body)
	case "quoted-printable":
		body = quotedprintable.NewReader(body)
	}
	b, err := io.ReadAll(body)
	if err != nil {
		return "", fmt.Errorf("decode the text: %w", err)
	}
	return strings.ToValidUTF8(string(b), "\uFFFD"), nil
}
