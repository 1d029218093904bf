package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/proof"
	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

// A staging deployment passes every check, whatever share its refund policy returns, and the signature of the report verifies.
func TestVerify(t *testing.T) {
	for _, percent := range []string{"100", "50", "0"} {
		t.Run(percent, func(t *testing.T) { verify(t, percent) })
	}
}

func verify(t *testing.T, percent string) {
	t.Helper()
	stack := servicetest.Start(t)
	if _, err := stack.DB.Pool.Exec(t.Context(), `update branch set refund_policy = jsonb_build_array(jsonb_build_object('untilMinutesBefore', 30, 'percent', $1::int))`, percent); err != nil {
		t.Fatal(err)
	}
	s := newShell(t)
	ended := make(chan struct{})
	var out, errOut string
	var code int
	go func() {
		defer close(ended)
		out, errOut, code = s.run("", "verify", stack.Root, "--guests", "8")
	}()
	// The account of the late deposit ends ten minutes after it was issued.
	for waiting := 0; waiting == 0; {
		select {
		case <-ended:
			t.Fatalf("exit code %d before the late deposit: %s%s", code, out, errOut)
		case <-time.After(20 * time.Millisecond): // polling: the database reports no event
		}
		if err := stack.DB.Pool.QueryRow(t.Context(), `select count(*) from reservation where state = 'WAITING_FOR_DEPOSIT'`).Scan(&waiting); err != nil {
			t.Fatal(err)
		}
	}
	stack.Clock.Advance(11 * time.Minute)
	<-ended
	if code != 0 {
		t.Fatalf("exit code %d: %s%s", code, out, errOut)
	}
	var signed proof.Signed
	if err := json.Unmarshal([]byte(out), &signed); err != nil {
		t.Fatal(err)
	}
	report, err := signed.Open()
	if err != nil || report.Violations != 0 || len(report.Rules) != 3 {
		t.Errorf("report %s, %v", signed.Report, err)
	}
	for _, rule := range report.Rules {
		if rule.Checked == 0 {
			t.Errorf("%s checked nothing", rule.ID)
		}
	}
	file := filepath.Join(t.TempDir(), "report.json")
	if err := os.WriteFile(file, []byte(out), 0o600); err != nil {
		t.Fatal(err)
	}
	if said := s.ok("proof", "verify", file, "--key", strings.TrimSpace(s.ok("proof", "key"))); !strings.Contains(said, "the signature is valid: 0 violations") {
		t.Errorf("proof verify: %s", said)
	}
	// Nothing is left behind: what was bought is cancelled.
	var live int
	if err := stack.DB.Pool.QueryRow(t.Context(), `select count(*) from reservation where state in ('HOLD', 'DONE', 'WAITING_FOR_DEPOSIT')`).Scan(&live); err != nil || live != 0 {
		t.Errorf("%d live reservations are left, %v", live, err)
	}
}

// fakeDeployment answers every hold with success, also of a slot that is taken, and shows a widget of the given provider.
func fakeDeployment(t *testing.T, script string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		data := map[string]any{"status": "success", "data": nil}
		if r.URL.Path == "/api/v2/site" {
			data["data"] = map[string]any{"payment": map[string]string{"clientKey": "k", "scriptUrl": script}}
		}
		_ = json.NewEncoder(w).Encode(data)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestVerifyRefusesProduction(t *testing.T) {
	s := newShell(t)
	notSandbox := fakeDeployment(t, "")
	for _, script := range []string{"https://js.tosspayments.com/v2/standard", notSandbox + "/v2/standard", ""} {
		out, errOut, code := s.run("", "verify", fakeDeployment(t, script))
		if code != 1 || out != "" || !strings.Contains(errOut, "staging deployments only") {
			t.Errorf("%q: exit code %d, %s%s", script, code, out, errOut)
		}
	}
}

func TestVerifyFindsASlotThatIsSoldTwice(t *testing.T) {
	v := &verifier{ctx: t.Context(), address: fakeDeployment(t, ""), branch: "gangnam", guests: 4}
	found, err := v.contention()
	if err != nil || found.Violations != 1 || !strings.Contains(found.Found[0].Detail, "4 guests hold room 1") {
		t.Errorf("contention: %+v, %v", found, err)
	}
}

// The error of a run that finds no slot names the reason.
func TestVerifyNamesWhyNoSlotIsFree(t *testing.T) {
	stack := servicetest.Start(t)
	s := newShell(t)
	if _, said, code := s.run("", "verify", stack.Root, "--guests", "2", "--branch", "nowhere"); code != 1 || !strings.Contains(said, "no slot is free: yeolda: 404 ResourceNotFoundException") {
		t.Errorf("an unknown branch: exit code %d, %s", code, said)
	}
	if _, said, code := s.run("", "verify", stack.Root, "--guests", "1"); code != 1 || !strings.Contains(said, "at least 2 guests") {
		t.Errorf("one guest: exit code %d, %s", code, said)
	}
}
