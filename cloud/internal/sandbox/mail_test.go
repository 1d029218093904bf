package sandbox_test

import (
	"context"
	"encoding/base64"
	"net"
	"net/smtp"
	"strings"
	"testing"

	"github.com/yeolda/yeolda/cloud/internal/sandbox"
)

// mailServer returns the SMTP address of w.
func (w *world) mailServer() string {
	w.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.ServeSMTP(ctx, l) }()
	w.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			w.t.Error(err)
		}
	})
	return l.Addr().String()
}

func lines(l ...string) []byte { return []byte(strings.Join(l, "\r\n") + "\r\n") }

func TestMail(t *testing.T) {
	t.Parallel()
	w := open(t, sandbox.Options{})
	addr := w.mailServer()
	variables := base64.StdEncoding.EncodeToString([]byte(`{"code":"123456","doorlockKey":"3f0d"}`))
	for to, data := range map[string][]byte{
		"plain@example.com": lines("Subject: =?utf-8?b?7J247KadIOuyiO2YuA==?=", "X-Yeolda-Template: login-code",
			"X-Yeolda-Variables: "+variables[:10], " "+variables[10:],
			"Content-Type: text/plain; charset=utf-8", "Content-Transfer-Encoding: base64", "",
			base64.StdEncoding.EncodeToString([]byte("인증번호 123456\r\n"))),
		"parts@example.com": lines("Subject: =?utf-8?q?=EC=9D=B8=EC=A6=9D_=EB=B2=88=ED=98=B8?=", "MIME-Version: 1.0",
			"Content-Type: multipart/alternative; boundary=b", "", "--b", "Content-Type: text/html", "", "<p>x</p>",
			"--b", "Content-Type: text/plain; charset=utf-8", "Content-Transfer-Encoding: quoted-printable", "",
			"=EC=9D=B8=EC=A6=9D=EB=B2=88=ED=98=B8 =", "123456", "--b--"),
		"bare@example.com": lines("Subject: =?utf-8?b?7J247KadIOuyiO2YuA==?=", "", "인증번호 123456"),
	} {
		if err := smtp.SendMail(addr, nil, "no-reply@yeolda.example", []string{strings.ToUpper(to)}, data); err != nil {
			t.Fatalf("%s: %v", to, err)
		}
		got := w.Messages(to)
		if len(got) != 1 {
			t.Fatalf("%s: %+v", to, got)
		}
		m := got[0]
		if m.Channel != sandbox.ChannelMail || m.To != to || m.Subject != "인증 번호" || m.Text != "인증번호 123456" {
			t.Errorf("%s: %+v", to, m)
		}
		if to == "plain@example.com" && (m.Template != "login-code" || m.Variables["code"] != "123456" || m.Variables["doorlockKey"] != "3f0d") {
			t.Errorf("%s: template %q, variables %v", to, m.Template, m.Variables)
		}
	}
}

func TestMailFaults(t *testing.T) {
	t.Parallel()
	w := open(t, sandbox.Options{})
	addr := w.mailServer()
	send := func() error {
		return smtp.SendMail(addr, nil, "no-reply@yeolda.example", []string{"a@example.com"}, lines("Subject: x", "", "text"))
	}
	w.fault(map[string]any{"target": "messages", "kind": "error"})
	if err := send(); err == nil || !strings.Contains(err.Error(), "451") {
		t.Errorf("error fault: %v", err)
	}
	if got := w.Messages(""); len(got) != 0 {
		t.Errorf("arrived: %+v", got)
	}
	w.fault(map[string]any{"target": "messages", "kind": "drop-after-commit"})
	if err := send(); err == nil {
		t.Error("the dropped mail was acknowledged")
	}
	if got := w.Messages(""); len(got) != 1 {
		t.Errorf("arrived: %+v", got)
	}
	if err := smtp.SendMail(addr, nil, "a@example.com", []string{"a@example.com"}, lines("no header at all")); err == nil {
		t.Error("a text that is not a mail was accepted")
	}
}
