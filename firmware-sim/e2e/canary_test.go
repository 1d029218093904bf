package e2e

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/yeolda/yeolda/firmware-sim/proof/world"
	"github.com/yeolda/yeolda/firmware-sim/testkit/capture"
)

// TestNoSecretIsLogged uses every secret at the highest log level, also in failing requests. It then searches for the
// secrets in the output of the service and the agents, in the metrics and in the answers to other users.
func TestNoSecretIsLogged(t *testing.T) {
	t.Parallel()
	logs := new(capture.Output)
	s, err := world.StartStack(t.Context(), world.StackOptions{Root: root(), Bin: bin, Dir: dataDir(t), Template: template, Log: logs, Env: map[string]string{
		"YEOLDA_LOG_LEVEL": "debug", "YEOLDA_LOG_FORMAT": "json", "YEOLDA_RATE_LIMITS": "off",
	}})
	if err != nil {
		t.Fatal(err)
	}
	stopped := false
	t.Cleanup(func() {
		if !stopped {
			_ = s.Stop()
		}
	})
	awaitAgents(t, s, "gangnam")
	secrets := map[string]string{}

	// A card payment, a key, doors that open and one that does not.
	guest := newBrowser(t, s)
	key := guest.buy(s, "gangnam", 2, 25000, "01011112222")
	secrets["doorlock key"] = key
	guest.open("gangnam", "room", key)
	fault(t, s, "gangnam", "room_2", "stuck")
	if got, _ := guest.open("gangnam", "room", key); got.FailoverKey != nil {
		secrets["PIN"] = *got.FailoverKey
	}
	requestJSON(t, http.MethodDelete, s.SimAt+"/sim/branches/gangnam/faults", nil, nil)
	guest.call("POST", "/door/v2/unlock", map[string]string{"branch": "gangnam", "doorlockType": "room", "key": "0badbad0-1111-4222-8333-444455556666"}, nil)
	secrets["a wrong key"] = "0badbad0-1111-4222-8333-444455556666"
	guest.send("GET", "/v2/keys/"+key, nil)

	// A login with a correct and a wrong code.
	guest.must("POST", "/account/code", map[string]string{"type": "mobile", "id": "01011112222"}, nil)
	code := variableOf(t, s, "01011112222", "code")
	secrets["login code"] = code
	guest.call("POST", "/account/login", map[string]string{"type": "mobile", "id": "01011112222", "code": "000000"}, nil)
	guest.must("POST", "/account/login", map[string]string{"type": "mobile", "id": "01011112222", "code": code}, nil)

	// A virtual account, paid and refunded to an account of the guest.
	saver := newBrowser(t, s)
	start := currentSlot().Add(5 * time.Hour)
	saver.must("POST", "/reservation", map[string]any{"branch": "gangnam", "room": 5, "startDateTime": wireTime(start), "endDateTime": wireTime(start.Add(time.Hour))}, nil)
	var order struct{ OrderID string }
	saver.must("POST", "/payment", map[string]any{"amount": 15000, "name": "저축왕김", "mobileNum": "01033334444"}, &order)
	var payment struct{ PaymentKey string }
	postJSON(t, s.SandboxAt+"/sandbox/payments", map[string]any{"orderId": order.OrderID, "amount": 15000, "method": "가상계좌", "bank": "20"}, &payment)
	saver.must("POST", "/payment/confirm", map[string]any{"paymentKey": payment.PaymentKey, "orderId": order.OrderID, "amount": 15000}, nil)
	var held struct{ Payments []struct{ Secret string } }
	getJSON(t, s.SandboxAt+"/sandbox/payments?orderId="+order.OrderID, &held)
	if len(held.Payments) == 1 {
		secrets["callback secret"] = held.Payments[0].Secret
	}
	saver.call("POST", "/virtualaccount/webhook", map[string]any{"createdAt": "2026-11-21T10:00:00.000000", "secret": "ps_forged_secret", "status": "DONE", "transactionKey": "x", "orderId": order.OrderID}, nil)
	secrets["forged callback secret"] = "ps_forged_secret"
	postJSON(t, s.SandboxAt+"/sandbox/deposits", map[string]any{"orderId": order.OrderID}, nil)
	saver.must("POST", "/account/code", map[string]string{"type": "mobile", "id": "01033334444"}, nil)
	saver.must("POST", "/account/login", map[string]string{"type": "mobile", "id": "01033334444", "code": variableOf(t, s, "01033334444", "code")}, nil)
	var mine []struct {
		ID int `json:"id"`
	}
	saver.call("GET", "/my-reservations", nil, &mine)
	if len(mine) > 0 {
		saver.call("POST", "/payment/cancel", map[string]any{"id": mine[0].ID, "cancelReason": "x", "refundReceiveAccountBank": "20",
			"refundReceiveAccountNumber": "98765432109876", "refundReceiveAccountHolderName": "저축왕김"}, nil)
	}
	secrets["refund account"] = "98765432109876"
	secrets["name"] = "저축왕김"

	// Administrators with correct and wrong passwords.
	hq := newBrowser(t, s)
	hq.call("POST", "/admin/login", map[string]string{"id": "hq", "password": "wrong-but-secret"}, nil)
	hq.must("POST", "/admin/login", map[string]string{"id": "hq", "password": "hq-demo"}, nil)
	secrets["wrong password"] = "wrong-but-secret"
	secrets["password"] = "hq-demo"
	for who, b := range map[string]*browser{"guest": guest, "saver": saver, "hq": hq} {
		at, err := url.Parse(s.Pages)
		if err != nil {
			t.Fatal(err)
		}
		for _, cookie := range b.http.Jar.Cookies(at) {
			secrets[who+"'s "+cookie.Name] = cookie.Value
		}
	}
	opened := actuations(t, s, "gangnam")[0].RequestID
	metrics := body(t, s.MetricsAt+"/metrics")
	stopped = true
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
	seal, grant := sha256.Sum256([]byte("yeolda demo encryption key")), sha256.Sum256([]byte("yeolda demo grant signing key"))
	secrets["encryption key"] = base64.StdEncoding.EncodeToString(seal[:])
	secrets["grant key"] = base64.StdEncoding.EncodeToString(grant[:])
	secrets["provider's key"] = "test_gsk_yeolda_demo"
	secrets["agent's secret"] = "agent-gangnam-demo"
	secrets["phone number"] = "01011112222"
	secrets["another phone number"] = "01033334444"

	said := logs.String()
	if !strings.Contains(said, `"level":"DEBUG"`) || strings.Count(said, "\n") < 50 {
		t.Fatalf("the log is not at its highest level:\n%s", said)
	}
	t.Logf("%d secrets, %d lines of log", len(secrets), strings.Count(said, "\n"))
	// Ids are not secret: the request's id is in every log line from the request through the agent to its result.
	for _, step := range []string{`"msg":"access: door requested"`, `msg="door request ended" `, `"msg":"access: request ended"`} {
		found := false
		for line := range strings.Lines(said) {
			found = found || strings.Contains(line, step) && strings.Contains(line, opened)
		}
		if !found {
			t.Errorf("no line %q with request %s", step, opened)
		}
	}
	for name, secret := range secrets {
		if len(secret) < 4 {
			t.Fatalf("%s is %q: it was never created", name, secret)
		}
		inHex := hex.EncodeToString([]byte(secret))
		for where, text := range map[string]string{"log": said, "metrics": metrics} {
			for line := range strings.Lines(text) {
				if found := strings.Contains(line, secret) || strings.Contains(line, inHex); found && !public(name, line) {
					t.Errorf("%s in the %s: %s", name, where, strings.ReplaceAll(line, secret, "<"+name+">"))
				}
			}
		}
	}
}

// public reports whether a match in a line is a coincidence: a short number as a part of a longer one.
func public(name, line string) bool {
	return (name == "PIN" || name == "login code") && !strings.Contains(line, "pin") && !strings.Contains(line, "code")
}

// dataDir returns a data directory that the private PostgreSQL's user can read.
func dataDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp(bin, "data-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// variableOf waits for a message and returns one of its variables.
func variableOf(t *testing.T, s *world.Stack, to, name string) string {
	t.Helper()
	value := ""
	until(t, "a message with "+name, func() bool {
		var list struct {
			Messages []struct{ Variables map[string]string }
		}
		getJSON(t, s.SandboxAt+"/sandbox/messages?to="+to, &list)
		for _, m := range list.Messages {
			if m.Variables[name] != "" {
				value = m.Variables[name]
			}
		}
		return value != ""
	})
	return value
}

func body(t *testing.T, address string) string {
	t.Helper()
	response, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
