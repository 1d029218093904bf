package notify

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"io"
	"maps"
	"math/big"
	"mime"
	"mime/quotedprintable"
	"net"
	netmail "net/mail"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
)

// mailbox is an SMTP server that stores accepted messages and fails on request.
type mailbox struct {
	onRcpt, onData error
	cutAfterData   bool // the message is accepted, the reply is lost
	password       string

	mu    sync.Mutex
	mails []received
}

type received struct {
	from string
	to   []string
	raw  string
}

func (b *mailbox) received() []received {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]received(nil), b.mails...)
}

func (b *mailbox) NewSession(c *smtp.Conn) (smtp.Session, error) {
	return &session{box: b, conn: c}, nil
}

type session struct {
	box  *mailbox
	conn *smtp.Conn
	mail received
}

func (s *session) Reset()        { s.mail = received{} }
func (s *session) Logout() error { return nil }
func (s *session) Mail(from string, _ *smtp.MailOptions) error {
	s.mail.from = from
	return nil
}
func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.mail.to = append(s.mail.to, to)
	return s.box.onRcpt
}
func (s *session) Data(r io.Reader) error {
	b, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	if s.box.onData != nil {
		return s.box.onData
	}
	s.mail.raw = string(b)
	s.box.mu.Lock()
	s.box.mails = append(s.box.mails, s.mail)
	s.box.mu.Unlock()
	if s.box.cutAfterData {
		s.conn.Conn().Close()
	}
	return nil
}
func (s *session) AuthMechanisms() []string {
	if s.box.password == "" {
		return nil
	}
	return []string{sasl.Plain}
}
func (s *session) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		if user != "yeolda" || password != s.box.password {
			return smtp.ErrAuthFailed
		}
		return nil
	}), nil
}

// serve starts the mailbox and returns its address.
func serve(t *testing.T, box *mailbox, cert *tls.Certificate) string {
	t.Helper()
	srv := smtp.NewServer(box)
	srv.Domain = "mail.test"
	srv.AllowInsecureAuth = true
	if cert != nil {
		srv.TLSConfig = &tls.Config{Certificates: []tls.Certificate{*cert}}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); _ = srv.Serve(l) }()
	t.Cleanup(func() { _ = srv.Close(); <-done })
	return l.Addr().String()
}

func mailTo(t *testing.T, box *mailbox, sandbox bool) *Mail {
	t.Helper()
	m, err := NewMail(MailConfig{URL: "smtp://" + serve(t, box, nil) + "?tls=none", From: "열다 <no-reply@yeolda.example>", Sandbox: sandbox})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func parse(t *testing.T, raw string) (*netmail.Message, string) {
	t.Helper()
	msg, err := netmail.ReadMessage(strings.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	body := msg.Body
	switch msg.Header.Get("Content-Transfer-Encoding") {
	case "quoted-printable":
		body = quotedprintable.NewReader(body)
	case "base64":
		body = base64.NewDecoder(base64.StdEncoding, body)
	}
	b, err := io.ReadAll(body)
	if err != nil {
		t.Fatal(err)
	}
	return msg, strings.ReplaceAll(string(b), "\r\n", "\n")
}

func subject(t *testing.T, msg *netmail.Message) string {
	t.Helper()
	s, err := new(mime.WordDecoder).DecodeHeader(msg.Header.Get("Subject"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestMailEveryTemplate(t *testing.T) {
	t.Parallel()
	box := &mailbox{}
	sender := mailTo(t, box, false)
	for key := range sources {
		m := Message{ID: "job-17", Template: key.template, Language: key.language, To: Recipient{Email: "Hong@example.com"}, Variables: example}
		receipt, err := sender.Send(context.Background(), m)
		if err != nil {
			t.Fatalf("%v: %v", key, err)
		}
		mails := box.received()
		got := mails[len(mails)-1]
		if got.from != "no-reply@yeolda.example" || len(got.to) != 1 || got.to[0] != "Hong@example.com" {
			t.Errorf("%v: from %s to %v", key, got.from, got.to)
		}
		msg, body := parse(t, got.raw)
		want, err := m.Render()
		if err != nil {
			t.Fatal(err)
		}
		if subject(t, msg) != want.Subject || strings.TrimSpace(body) != want.Body {
			t.Errorf("%v: subject %q, body %q", key, subject(t, msg), body)
		}
		if receipt.Channel != Email || msg.Header.Get("Message-Id") != "<job-17@yeolda.example>" || !strings.Contains(receipt.ProviderID, "job-17@yeolda.example") {
			t.Errorf("%v: receipt %+v, Message-ID %s", key, receipt, msg.Header.Get("Message-Id"))
		}
		for name := range msg.Header {
			if strings.HasPrefix(name, "X-Yeolda") {
				t.Errorf("%v: header %s outside the sandbox", key, name)
			}
		}
	}
}

func TestMailSandboxHeaders(t *testing.T) {
	t.Parallel()
	box := &mailbox{}
	sender := mailTo(t, box, true)
	long := maps.Clone(example)
	long["message"] = strings.Repeat("문의합니다.", 280)
	for template, vars := range map[Template]map[string]string{LoginCode: example, ReservationConfirmed: example, FranchiseInquiry: long} {
		if _, err := sender.Send(context.Background(), Message{Template: template, To: Recipient{Email: "a@example.com"}, Variables: vars}); err != nil {
			t.Fatal(err)
		}
		mails := box.received()
		raw := mails[len(mails)-1].raw
		msg, _ := parse(t, raw)
		encoded := strings.ReplaceAll(msg.Header.Get("X-Yeolda-Variables"), " ", "")
		b, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil {
			t.Fatalf("%s: %v", template, err)
		}
		var got map[string]string
		if err := json.Unmarshal(b, &got); err != nil {
			t.Fatal(err)
		}
		if msg.Header.Get("X-Yeolda-Template") != string(template) || len(got) != len(template.Variables()) {
			t.Errorf("%s: %s %v", template, msg.Header.Get("X-Yeolda-Template"), got)
		}
		for _, name := range template.Variables() {
			if got[name] != vars[name] {
				t.Errorf("%s: %s is %q", template, name, got[name])
			}
		}
		for line := range strings.Lines(raw) {
			if len(line) > 1000 { // RFC 5322, 2.1.1
				t.Errorf("%s: a line of %d bytes", template, len(line))
			}
		}
	}
}

func TestMailHeadersCannotBeInjected(t *testing.T) {
	t.Parallel()
	box := &mailbox{}
	sender := mailTo(t, box, true)
	vars := maps.Clone(example)
	vars["region"] = "부산\r\nBcc: everybody@example.com\r\n\r\n<b>본문</b>"
	if _, err := sender.Send(context.Background(), Message{Template: FranchiseInquiry, To: Recipient{Email: "hq@example.com"}, Variables: vars}); err != nil {
		t.Fatal(err)
	}
	got := box.received()[0]
	msg, _ := parse(t, got.raw)
	if msg.Header.Get("Bcc") != "" || len(got.to) != 1 || !strings.Contains(subject(t, msg), "Bcc: everybody") {
		t.Errorf("sent to %v with headers %v", got.to, msg.Header)
	}
	for _, to := range []string{
		"", "nobody", "a@example.com\r\nRCPT TO:<b@example.com>", "a@example.com, b@example.com", "A <a@example.com>",
		"<a@example.com>", "a b@example.com", `"a"@example.com`, "a@example.com\x00", "@example.com", strings.Repeat("a", 250) + "@example.com",
	} {
		if _, err := sender.Send(context.Background(), Message{Template: LoginCode, To: Recipient{Email: to}, Variables: example}); err == nil || ClassOf(err) != Permanent {
			t.Errorf("%q: %v", to, err)
		}
	}
	if n := len(box.received()); n != 1 {
		t.Errorf("%d mails went out, want 1", n)
	}
}

func TestMailClasses(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		box   *mailbox
		class Class
		taken int
	}{
		"no such user":       {&mailbox{onRcpt: &smtp.SMTPError{Code: 550, Message: "no such user"}}, Permanent, 0},
		"grey-listed":        {&mailbox{onRcpt: &smtp.SMTPError{Code: 451, Message: "later"}}, Retryable, 0},
		"refused as spam":    {&mailbox{onData: &smtp.SMTPError{Code: 554, Message: "spam"}}, Permanent, 0},
		"disk full":          {&mailbox{onData: &smtp.SMTPError{Code: 452, Message: "full"}}, Retryable, 0},
		"taken, answer lost": {&mailbox{cutAfterData: true}, Unknown, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := mailTo(t, tc.box, false).Send(context.Background(), Message{Template: LoginCode, To: Recipient{Email: "hong@example.com"}, Variables: example})
			if err == nil || ClassOf(err) != tc.class {
				t.Errorf("%v is %v, want %v", err, ClassOf(err), tc.class)
			}
			if strings.Contains(err.Error(), "hong@") {
				t.Errorf("the error contains the recipient: %v", err)
			}
			if n := len(tc.box.received()); n != tc.taken {
				t.Errorf("%d mails taken, want %d", n, tc.taken)
			}
		})
	}
}

func TestMailUnreachableIsRetryable(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	sender, err := NewMail(MailConfig{URL: "smtp://" + addr + "?tls=none", From: "a@example.com"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sender.Send(context.Background(), Message{Template: LoginCode, To: Recipient{Email: "b@example.com"}, Variables: example}); ClassOf(err) != Retryable {
		t.Errorf("%v is %v", err, ClassOf(err))
	}
}

func certificate(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

func TestMailStartTLSAndLogin(t *testing.T) {
	t.Parallel()
	cert, pool := certificate(t)
	box := &mailbox{password: "p@ss:word"}
	addr := serve(t, box, &cert)
	send := func(url string, roots *x509.CertPool) error {
		m, err := NewMail(MailConfig{URL: url, From: "a@example.com", TLS: &tls.Config{RootCAs: roots}})
		if err != nil {
			return err
		}
		_, err = m.Send(context.Background(), Message{Template: LoginCode, To: Recipient{Email: "b@example.com"}, Variables: example})
		return err
	}
	if err := send("smtp://yeolda:p%40ss%3Aword@"+addr, pool); err != nil {
		t.Error(err)
	}
	if err := send("smtp://yeolda:wrong@"+addr, pool); err == nil {
		t.Error("logged in with a wrong password")
	}
	if err := send("smtp://yeolda:p%40ss%3Aword@"+addr, x509.NewCertPool()); err == nil {
		t.Error("trusted an unknown certificate")
	}
	plain := serve(t, &mailbox{}, nil)
	if err := send("smtp://"+plain, pool); err == nil {
		t.Error("sent unencrypted to a server without STARTTLS")
	}
	if n := len(box.received()); n != 1 {
		t.Errorf("%d mails taken, want 1", n)
	}
}

func TestNewMailRefusesBadSettings(t *testing.T) {
	t.Parallel()
	for _, cfg := range []MailConfig{
		{URL: "smtp://mail.example.com?tls=none", From: "a@example.com"},
		{URL: "smtp://mail.example.com?tls=perhaps", From: "a@example.com"},
		{URL: "http://mail.example.com", From: "a@example.com"},
		{URL: "smtp://", From: "a@example.com"},
		{URL: "mail.example.com:25", From: "a@example.com"},
		{URL: "smtp://mail.example.com", From: ""},
		{URL: "smtp://mail.example.com", From: "a@example.com\r\nBcc: b@example.com"},
	} {
		if _, err := NewMail(cfg); err == nil {
			t.Errorf("accepted %+v", cfg)
		}
	}
	_, err := NewMail(MailConfig{URL: "smtp://user:topsecret@bad host", From: "a@example.com"})
	if err == nil || strings.Contains(err.Error(), "topsecret") {
		t.Errorf("%v", err)
	}
}
