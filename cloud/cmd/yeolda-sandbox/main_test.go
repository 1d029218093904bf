package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/smtp"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/sandbox"
)

// The program writes its addresses, serves both protocols, and ends although a request is held.
func TestRun(t *testing.T) {
	t.Parallel()
	ready := filepath.Join(t.TempDir(), "ready")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, settings{
			Addr: "127.0.0.1:0", SMTPAddr: "127.0.0.1:0", HTTPAddr: "127.0.0.1:1", LogLevel: "error", ReadyFile: ready,
		})
	}()
	var addr struct{ HTTP, SMTP string }
	for {
		b, err := os.ReadFile(ready)
		if err == nil {
			if err := json.Unmarshal(b, &addr); err != nil {
				t.Fatalf("ready file %q: %v", b, err)
			}
			break
		}
		select {
		case err := <-ended:
			t.Fatalf("ended: %v", err)
		case <-time.After(5 * time.Millisecond):
		}
	}

	if err := smtp.SendMail(addr.SMTP, nil, "a@example.com", []string{"b@example.com"}, []byte("Subject: x\r\n\r\ntext\r\n")); err != nil {
		t.Errorf("mail: %v", err)
	}
	base := "http://" + addr.HTTP
	res, err := http.Post(base+"/sandbox/faults", "application/json", strings.NewReader(`{"target":"get","kind":"timeout","times":1}`))
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("fault: %v %v", res, err)
	}
	res.Body.Close()
	held := make(chan error, 1)
	go func() {
		req, err := http.NewRequest(http.MethodGet, base+"/v1/payments/none", nil)
		if err == nil {
			req.SetBasicAuth(sandbox.DemoAPISecretKey, "")
			_, err = http.DefaultClient.Do(req)
		}
		held <- err
	}()
	for faults := ""; !strings.Contains(faults, "[]"); { // until the request is being held
		res, err := http.Get(base + "/sandbox/faults")
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		faults = string(b)
	}
	stop()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("ended with %v", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("does not end")
	}
	if err := <-held; err == nil {
		t.Error("the held request was answered")
	}
}

// TestEmptyVariables checks that an empty variable leaves the default: an empty address would be any port of every interface.
func TestEmptyVariables(t *testing.T) {
	t.Setenv("YEOLDA_SANDBOX_ADDR", "")
	t.Setenv("YEOLDA_LOG_LEVEL", "")
	var cfg settings
	if _, err := parser(&cfg).Parse(nil); err != nil || cfg.Addr != "127.0.0.1:8090" || cfg.LogLevel != "info" {
		t.Errorf("got %+v, %v", cfg, err)
	}
}

// TestStageOriginIsValidated checks that the program ends with an error that names the setting.
func TestStageOriginIsValidated(t *testing.T) {
	t.Parallel()
	err := run(t.Context(), settings{
		Addr: "127.0.0.1:0", SMTPAddr: "127.0.0.1:0", HTTPAddr: "127.0.0.1:1", LogLevel: "error", StageOrigin: "http://127.0.0.1:8070/stage",
	})
	if err == nil || !strings.Contains(err.Error(), "YEOLDA_STAGE_ORIGIN") {
		t.Errorf("got %v, want an error that names YEOLDA_STAGE_ORIGIN", err)
	}
}
