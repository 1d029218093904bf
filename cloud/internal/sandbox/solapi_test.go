package sandbox_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/sandbox"
)

// sign returns an Authorization header of the message API.
func sign(key, secret string, at time.Time, salt string) string {
	date := at.UTC().Format(time.RFC3339)
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(date + salt))
	return fmt.Sprintf("HMAC-SHA256 apiKey=%s, date=%s, salt=%s, signature=%s", key, date, salt, hex.EncodeToString(mac.Sum(nil)))
}

var salts atomic.Int64

// salt returns a new value for each call, because a signature is valid for one request.
func salt() string { return fmt.Sprintf("salt-%012d", salts.Add(1)) }

func (w *world) send(path string, body any) reply {
	w.t.Helper()
	return w.do("POST", path, encode(body), "Authorization", sign(sandbox.DemoMessageKey, sandbox.DemoMessageSecret, w.clock.Now(), salt()))
}

const detail = "/messages/v4/send-many/detail"

func alimTalk(to string, more ...any) map[string]any {
	m := map[string]any{
		"to": to, "from": "0200000000", "type": "ATA", "text": "인증번호 #{code}", "customFields": map[string]string{"template": "login-code"},
		"kakaoOptions": map[string]any{"pfId": "KA01PF", "templateId": "KA01TP", "variables": map[string]string{"#{code}": "123456"}},
	}
	for i := 0; i < len(more); i += 2 {
		m[more[i].(string)] = more[i+1]
	}
	return m
}

func batch(messages ...map[string]any) map[string]any {
	return map[string]any{"messages": messages, "showMessageList": true}
}

// failedWith returns the status code of the only rejected message, or "" if none was rejected.
func failedWith(t *testing.T, r reply) string {
	t.Helper()
	if r.status != 200 {
		t.Fatalf("%d %s", r.status, r.raw)
	}
	failed := r.body["failedMessageList"].([]any)
	if len(failed) == 0 {
		return ""
	}
	return failed[0].(map[string]any)["statusCode"].(string)
}

func TestAlimTalkArrives(t *testing.T) {
	t.Parallel()
	w := open(t, sandbox.Options{})
	r := w.send(detail, batch(alimTalk("01012345678")))
	if code := failedWith(t, r); code != "" {
		t.Fatalf("refused: %s", r.raw)
	}
	sent := r.body["messageList"].([]any)[0].(map[string]any)
	if sent["statusCode"] != "2000" {
		t.Errorf("messageList: %v", sent)
	}
	w.send(detail, batch(alimTalk("01099998888")))

	for _, to := range []string{"01012345678", "010-1234-5678", "%2B82+10-1234-5678"} {
		list := w.must("GET", "/sandbox/messages?to="+to, "").body["messages"].([]any)
		if len(list) != 1 {
			t.Fatalf("to=%s: %v", to, list)
		}
		m := list[0].(map[string]any)
		for name, want := range map[string]any{
			"channel": "alimtalk", "to": "01012345678", "template": "login-code", "subject": "", "text": "인증번호 123456",
			"at": "2026-11-21T15:00:00+09:00",
		} {
			if m[name] != want {
				t.Errorf("to=%s: %s is %v, want %v", to, name, m[name], want)
			}
		}
		if v := m["variables"].(map[string]any); v["code"] != "123456" || len(v) != 1 {
			t.Errorf("variables: %v", v)
		}
	}
	if all := w.Messages(""); len(all) != 2 || all[1].To != "01099998888" {
		t.Errorf("not newest last: %+v", all)
	}
	id := sent["messageId"].(string)
	list := w.do("GET", "/messages/v4/list?messageId="+id, "", "Authorization",
		sign(sandbox.DemoMessageKey, sandbox.DemoMessageSecret, w.clock.Now(), salt()))
	found := list.body["messageList"].(map[string]any)
	if len(found) != 1 || found[id].(map[string]any)["statusCode"] != "4000" {
		t.Errorf("list: %s", list.raw)
	}
}

// A message to a number that ends in 0000, which has no KakaoTalk, is sent by SMS.
func TestFallbackToSMS(t *testing.T) {
	t.Parallel()
	w := open(t, sandbox.Options{})
	if code := failedWith(t, w.send(detail, batch(alimTalk("01012340000")))); code != "" {
		t.Fatalf("refused with %s", code)
	}
	got := w.Messages("01012340000")
	if len(got) != 1 || got[0].Channel != sandbox.ChannelSMS || got[0].Variables["code"] != "123456" {
		t.Errorf("arrived: %+v", got)
	}
	only := alimTalk("01012340000")
	only["kakaoOptions"].(map[string]any)["disableSms"] = true
	if code := failedWith(t, w.send(detail, batch(only))); code != "3104" {
		t.Errorf("without fallback: %q", code)
	}
}

func TestMessageRefused(t *testing.T) {
	t.Parallel()
	w := open(t, sandbox.Options{})
	for name, test := range map[string]struct {
		messages []map[string]any
		code     string
	}{
		"same number twice": {[]map[string]any{alimTalk("01012345678"), alimTalk("01012345678")}, "1026"},
		"dashes":            {[]map[string]any{alimTalk("010-1234-5678")}, "1025"},
		"no channel":        {[]map[string]any{alimTalk("01012345678", "kakaoOptions", nil)}, "1041"},
		"no template":       {[]map[string]any{alimTalk("01012345678", "kakaoOptions", map[string]any{"pfId": "KA01PF"})}, "1042"},
		"too long":          {[]map[string]any{alimTalk("01012345678", "text", strings.Repeat("가", 1001))}, "1031"},
		"no text":           {[]map[string]any{alimTalk("01012345678", "type", "SMS", "text", "")}, "1025"},
		"type":              {[]map[string]any{alimTalk("01012345678", "type", "FAX")}, "1025"},
	} {
		if code := failedWith(t, w.send(detail, batch(test.messages...))); code != test.code {
			t.Errorf("%s: %q, want %q", name, code, test.code)
		}
	}
	if got := len(w.Messages("")); got != 1 { // only the first message to the same number is accepted
		t.Errorf("%d messages arrived, want 1", got)
	}
	if r := w.send(detail, map[string]any{}); r.status != 400 || r.text("errorCode") != "ValidationError" {
		t.Errorf("no messages: %d %s", r.status, r.raw)
	}
}

func TestSendOne(t *testing.T) {
	t.Parallel()
	w := open(t, sandbox.Options{})
	r := w.send("/messages/v4/send", map[string]any{"message": map[string]any{"to": "01012345678", "from": "0200000000", "text": "안녕"}})
	if r.status != 200 || r.text("statusCode") != "2000" || r.text("type") != "SMS" || r.text("to") != "01012345678" {
		t.Errorf("%d %s", r.status, r.raw)
	}
	if got := w.Messages("01012345678"); len(got) != 1 || got[0].Channel != sandbox.ChannelSMS || got[0].Text != "안녕" {
		t.Errorf("arrived: %+v", got)
	}
}

func TestMessageAuthentication(t *testing.T) {
	t.Parallel()
	w := open(t, sandbox.Options{})
	key, secret := sandbox.DemoMessageKey, sandbox.DemoMessageSecret
	used := sign(key, secret, start, salt())
	if r := w.do("POST", detail, encode(batch(alimTalk("01012345678"))), "Authorization", used); r.status != 200 {
		t.Fatalf("%d %s", r.status, r.raw)
	}
	for name, test := range map[string]struct {
		auth   string
		status int
		code   string
	}{
		"none":             {"", 401, "Unauthorized"},
		"other key":        {sign("NCSOTHER", secret, start, salt()), 403, "InvalidAPIKey"},
		"other secret":     {sign(key, "other", start, salt()), 403, "SignatureDoesNotMatch"},
		"used before":      {used, 403, "DuplicatedSignature"},
		"clock too slow":   {sign(key, secret, start.Add(-15*time.Minute-time.Second), salt()), 403, "RequestTimeTooSkewed"},
		"clock too fast":   {sign(key, secret, start.Add(15*time.Minute+time.Second), salt()), 403, "RequestTimeTooSkewed"},
		"clock just right": {sign(key, secret, start.Add(-15*time.Minute), salt()), 200, ""},
	} {
		r := w.do("POST", detail, encode(batch(alimTalk("01012345678"))), "Authorization", test.auth)
		if r.status != test.status || r.text("errorCode") != test.code {
			t.Errorf("%s: %d %s", name, r.status, r.raw)
		}
	}
	if got := len(w.Messages("")); got != 2 {
		t.Errorf("%d messages arrived, want 2", got)
	}
	// A signature is remembered for as long as its date is accepted.
	w.clock.add(15 * time.Minute)
	if r := w.do("POST", detail, encode(batch(alimTalk("01012345678"))), "Authorization", used); r.text("errorCode") != "DuplicatedSignature" {
		t.Errorf("a quarter of an hour later: %d %s", r.status, r.raw)
	}
}

func TestMessageFaults(t *testing.T) {
	t.Parallel()
	w := open(t, sandbox.Options{})
	w.fault(map[string]any{"target": "messages", "kind": "error", "code": "3104", "message": "카카오톡 미사용자"})
	if code := failedWith(t, w.send(detail, batch(alimTalk("01012345678")))); code != "3104" {
		t.Errorf("message refused with %q", code)
	}
	w.fault(map[string]any{"target": "messages", "kind": "error", "status": 503})
	if r := w.send(detail, batch(alimTalk("01012345678"))); r.status != 503 {
		t.Errorf("%d %s", r.status, r.raw)
	}
	if got := w.Messages(""); len(got) != 0 {
		t.Errorf("arrived: %+v", got)
	}
	w.fault(map[string]any{"target": "messages", "kind": "drop-after-commit"})
	auth := sign(sandbox.DemoMessageKey, sandbox.DemoMessageSecret, start, salt())
	if r, err := w.try("POST", detail, encode(batch(alimTalk("01012345678"))), "Authorization", auth); err == nil {
		t.Errorf("answered: %d %s", r.status, r.raw)
	}
	if got := w.Messages(""); len(got) != 1 {
		t.Errorf("arrived: %+v", got)
	}
}
