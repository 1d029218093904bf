package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

var toHong = Recipient{Mobile: "010-1234-5678"}

// carrier is a message provider that answers with the given handlers in turn, repeating the last one, and rejects a
// signature it has seen before.
type carrier struct {
	mu      sync.Mutex
	answers []http.HandlerFunc
	bodies  []string
	seen    map[string]bool
}

func (c *carrier) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b, _ := io.ReadAll(r.Body)
	c.mu.Lock()
	next := c.answers[0]
	if len(c.answers) > 1 {
		c.answers = c.answers[1:]
	}
	c.bodies = append(c.bodies, string(b))
	signature := r.Header.Get("Authorization")
	if c.seen[signature] || r.URL.Path != "/messages/v4/send-many/detail" || r.Method != http.MethodPost {
		next = says(403, `{"errorCode":"DuplicatedSignature"}`)
	}
	c.seen[signature] = true
	c.mu.Unlock()
	next(w, r)
}

func (c *carrier) sent() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.bodies...)
}

func says(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func reset(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

const okAnswer = `{"groupInfo":{"groupId":"G1","count":{"total":1}},"failedMessageList":[],"messageList":[{"messageId":"M1","statusCode":"2000"}]}`

func failedWith(code string) http.HandlerFunc {
	return says(200, fmt.Sprintf(`{"groupInfo":{"groupId":"G1"},"failedMessageList":[{"to":"01012345678","messageId":"M1","statusCode":%q,"statusMessage":"거절"}]}`, code))
}

func solapi(t *testing.T, answers ...http.HandlerFunc) (*Solapi, *carrier) {
	t.Helper()
	c := &carrier{answers: answers, seen: map[string]bool{}}
	srv := httptest.NewServer(c)
	t.Cleanup(srv.Close)
	s, err := NewSolapi(SolapiConfig{
		BaseURL: srv.URL, APIKey: "NCS0", APISecret: "secret-for-tests", From: "02-1234-5678", PfID: "KA01PF",
		Templates: []ApprovedTemplate{
			{LoginCode, Korean, "KA01TP-login", ""},
			{ReservationConfirmed, Korean, "KA01TP-confirmed", "KA01PF-other"},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return s, c
}

func TestSolapiSignature(t *testing.T) {
	t.Parallel()
	s, _ := solapi(t, says(200, okAnswer))
	got := s.authorization(time.Date(2026, 11, 21, 12, 4, 5, 0, time.FixedZone("KST", 9*60*60)), "0123456789abcdef0123456789abcdef")
	want := "HMAC-SHA256 apiKey=NCS0, date=2026-11-21T03:04:05Z, salt=0123456789abcdef0123456789abcdef, " +
		"signature=08773a469c7d05ba509541ebaed35b6ff4dc52c9e9fcb05a0e39258fd6cf3ce7"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestSolapiRequests(t *testing.T) {
	t.Parallel()
	for name, m := range map[string]Message{
		"alimtalk":         {ID: "job-17", Template: LoginCode, To: toHong, Variables: example},
		"alimtalk-channel": {Template: ReservationConfirmed, Language: Korean, To: toHong, Variables: example},
		"sms-english":      {ID: "job-18", Template: LoginCode, Language: English, To: toHong, Variables: example},
	} {
		s, c := solapi(t, says(200, okAnswer))
		receipt, err := s.Send(context.Background(), m)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want := AlimTalk
		if strings.HasPrefix(name, "sms") {
			want = SMS
		}
		if receipt != (Receipt{want, "M1"}) {
			t.Errorf("%s: receipt %+v", name, receipt)
		}
		var indented bytes.Buffer
		if err := json.Indent(&indented, []byte(c.sent()[0]), "", "  "); err != nil {
			t.Fatal(err)
		}
		indented.WriteByte('\n')
		path := "testdata/solapi-" + name + ".golden"
		if *update {
			if err := os.WriteFile(path, indented.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		golden, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if indented.String() != string(golden) {
			t.Errorf("%s:\ngot  %s\nwant %s", path, indented.String(), golden)
		}
	}
}

func TestSolapiClasses(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		answers []http.HandlerFunc
		class   Class
		posts   int
	}{
		"rejected at intake":      {[]http.HandlerFunc{failedWith("1025")}, Permanent, 1},
		"sender not registered":   {[]http.HandlerFunc{failedWith("1062")}, Permanent, 1},
		"out of credit":           {[]http.HandlerFunc{failedWith("1030")}, Retryable, 2},
		"platform trouble":        {[]http.HandlerFunc{failedWith("2230")}, Retryable, 2},
		"bad request":             {[]http.HandlerFunc{says(400, `{"errorCode":"ValidationError"}`)}, Permanent, 1},
		"wrong key":               {[]http.HandlerFunc{says(403, `{"errorCode":"InvalidAPIKey"}`)}, Retryable, 2},
		"clock wrong":             {[]http.HandlerFunc{says(403, `{"errorCode":"RequestTimeTooSkewed"}`)}, Retryable, 2},
		"too many":                {[]http.HandlerFunc{says(429, ``)}, Retryable, 2},
		"unavailable":             {[]http.HandlerFunc{says(503, `<html>`)}, Retryable, 2},
		"internal error":          {[]http.HandlerFunc{says(500, `{"errorCode":"InternalError"}`)}, Retryable, 2},
		"error of a proxy":        {[]http.HandlerFunc{says(500, `<html>`)}, Unknown, 1},
		"bad gateway":             {[]http.HandlerFunc{says(502, `<html>`)}, Unknown, 1},
		"redirect":                {[]http.HandlerFunc{says(302, ``)}, Unknown, 1},
		"answer lost":             {[]http.HandlerFunc{reset}, Unknown, 1},
		"unreadable answer":       {[]http.HandlerFunc{says(200, `<html>`)}, Unknown, 1},
		"answer without messages": {[]http.HandlerFunc{says(200, `{}`)}, Unknown, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, c := solapi(t, tc.answers...)
			_, err := s.Send(context.Background(), Message{Template: LoginCode, To: toHong, Variables: example})
			if err == nil || ClassOf(err) != tc.class {
				t.Errorf("%v is %v, want %v", err, ClassOf(err), tc.class)
			}
			if n := len(c.sent()); n != tc.posts {
				t.Errorf("posted %d times, want %d", n, tc.posts)
			}
			for _, private := range []string{"01012345678", "042137", "secret-for-tests"} {
				if strings.Contains(err.Error(), private) {
					t.Errorf("%q is in %v", private, err)
				}
			}
		})
	}
}

func TestSolapiRetriesWithAFreshSignature(t *testing.T) {
	t.Parallel()
	s, c := solapi(t, says(503, ``), says(200, okAnswer))
	receipt, err := s.Send(context.Background(), Message{Template: LoginCode, To: toHong, Variables: example})
	if err != nil || receipt.ProviderID != "M1" {
		t.Errorf("%+v, %v", receipt, err)
	}
	if n := len(c.sent()); n != 2 {
		t.Errorf("posted %d times", n)
	}
}

func TestSolapiNothingSentIsRetryable(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(nil)
	s, err := NewSolapi(SolapiConfig{BaseURL: srv.URL, APIKey: "k", APISecret: "s", From: "0212345678"})
	if err != nil {
		t.Fatal(err)
	}
	srv.Close()
	_, err = s.Send(context.Background(), Message{Template: LoginCode, To: toHong, Variables: example})
	if err == nil || ClassOf(err) != Retryable {
		t.Errorf("%v is %v", err, ClassOf(err))
	}
}

func TestSolapiTimeoutIsUnknown(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	defer close(release)
	ctx, stop := context.WithCancel(context.Background())
	s, _ := solapi(t, func(http.ResponseWriter, *http.Request) {
		stop() // the caller cancels once the provider has the message
		<-release
	})
	_, err := s.Send(ctx, Message{Template: LoginCode, To: toHong, Variables: example})
	if ClassOf(err) != Unknown || !errors.Is(err, context.Canceled) {
		t.Errorf("%v is %v", err, ClassOf(err))
	}
}

// A template that KakaoTalk rejects must not withhold a key from a guest.
func TestSolapiTemplateRefusedGoesAsSMS(t *testing.T) {
	t.Parallel()
	for code := range templateRefused {
		s, c := solapi(t, failedWith(code), says(200, okAnswer))
		var log bytes.Buffer
		s.cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
		receipt, err := s.Send(context.Background(), Message{Template: ReservationConfirmed, To: toHong, Variables: example})
		if err != nil || receipt.Channel != SMS {
			t.Errorf("%s: %+v, %v", code, receipt, err)
		}
		var request struct{ Messages []solapiMessage }
		if err := json.Unmarshal([]byte(c.sent()[1]), &request); err != nil {
			t.Fatal(err)
		}
		m := request.Messages[0]
		if m.Type != "LMS" || m.KakaoOptions != nil || m.Subject == "" || !strings.Contains(m.Text, example["doorlockKey"]) {
			t.Errorf("%s: sent %+v", code, m)
		}
		if !strings.Contains(log.String(), "level=ERROR") || strings.Contains(log.String(), example["doorlockKey"]) {
			t.Errorf("logged %s", log.String())
		}
	}
}

func TestSolapiRefusesWhatCannotBeSent(t *testing.T) {
	t.Parallel()
	s, c := solapi(t, says(200, okAnswer))
	for name, m := range map[string]Message{
		"no variables": {Template: LoginCode, To: toHong},
		"no number":    {Template: LoginCode, Variables: example},
		"no template":  {Template: "x", To: toHong, Variables: example},
	} {
		if _, err := s.Send(context.Background(), m); ClassOf(err) != Permanent || err == nil {
			t.Errorf("%s: %v is %v", name, err, ClassOf(err))
		}
	}
	if n := len(c.sent()); n != 0 {
		t.Errorf("posted %d times", n)
	}
}

func TestNewSolapiRefusesBadSettings(t *testing.T) {
	t.Parallel()
	good := SolapiConfig{APIKey: "k", APISecret: "s", From: "0212345678", PfID: "p"}
	for name, change := range map[string]func(*SolapiConfig){
		"plain http":       func(c *SolapiConfig) { c.BaseURL = "http://api.example.com" },
		"no key":           func(c *SolapiConfig) { c.APIKey = "" },
		"no secret":        func(c *SolapiConfig) { c.APISecret = "" },
		"no sender":        func(c *SolapiConfig) { c.From = "" },
		"unknown template": func(c *SolapiConfig) { c.Templates = []ApprovedTemplate{{"x", Korean, "T", ""}} },
		"no template id":   func(c *SolapiConfig) { c.Templates = []ApprovedTemplate{{LoginCode, Korean, "", ""}} },
		"no channel": func(c *SolapiConfig) {
			c.PfID, c.Templates = "", []ApprovedTemplate{{LoginCode, Korean, "T", ""}}
		},
	} {
		cfg := good
		change(&cfg)
		if _, err := NewSolapi(cfg); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if _, err := NewSolapi(good); err != nil {
		t.Error(err)
	}
}

func TestSaltsDiffer(t *testing.T) {
	t.Parallel()
	a, b := salt(), salt()
	if a == b || !regexp.MustCompile(`^[0-9a-f]{32}$`).MatchString(a) {
		t.Errorf("%s and %s", a, b)
	}
}

func FuzzAccepted(f *testing.F) {
	f.Add([]byte(okAnswer))
	f.Add([]byte(`{"failedMessageList":[{}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		if id, err := accepted(body); err == nil && id == "" {
			t.Error("accepted without an id")
		}
	})
}
