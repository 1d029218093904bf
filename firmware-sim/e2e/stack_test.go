// Package e2e tests the whole system from outside: real processes, real PostgreSQL, real MQTT, real HTTP, and a real
// browser for pages.
package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/yeolda/yeolda/firmware-sim/proof/world"
)

// bin is the directory of the programs under test, and template a data directory with which stacks begin.
var bin, template string

func TestMain(m *testing.M) {
	// Tests here mostly wait for other programs, two minutes in one of them; -parallel on the command line has priority.
	if err := flag.Set("test.parallel", strconv.Itoa(runtime.GOMAXPROCS(0)+1)); err != nil {
		panic(err) // package testing has the flag
	}
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "yeolda-e2e-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer func() { _ = os.RemoveAll(dir) }()
		// The private PostgreSQL runs as another user and must be able to read its data.
		if err := os.Chmod(dir, 0o755); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		bin = dir
		if err := world.Build(context.Background(), root(), dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		template = filepath.Join(dir, "template")
		if err := world.MakeTemplate(context.Background(), dir, template); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer func() { stopBrowser() }()
		return m.Run()
	}())
}

// root returns the root directory of the repository.
func root() string {
	_, here, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(here), "../..")
}

// startStack runs a stack until the test ends.
func startStack(t testing.TB, env map[string]string) *world.Stack {
	t.Helper()
	dir, err := os.MkdirTemp(bin, "data-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s, err := world.StartStack(ctx, world.StackOptions{Root: root(), Bin: bin, Dir: dir, Template: template, Env: env, Log: programLog(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	awaitAgents(t, s, "gangnam", "hongdae")
	return s
}

// programLog returns a file for the output of programs. If the test fails, the file stays, and only its end is printed: it
// would hide the reason, which package testing prints after it if a subtest fails.
func programLog(t testing.TB) *os.File {
	t.Helper()
	const shown = 4096 // bytes
	file, err := os.CreateTemp("", "yeolda-e2e-*.log")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		defer file.Close()
		if !t.Failed() {
			_ = os.Remove(file.Name())
			return
		}
		info, err := file.Stat()
		if err != nil {
			t.Log(err)
			return
		}
		end, err := io.ReadAll(io.NewSectionReader(file, max(0, info.Size()-shown), shown))
		t.Logf("the output of the programs is in %s (%v); its end:\n%s", file.Name(), err, end)
	})
	return file
}

// until polls for an effect of another process, for which there is no event.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %s", what, patience)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func awaitAgents(t testing.TB, s *world.Stack, branches ...string) {
	t.Helper()
	for _, branch := range branches {
		until(t, branch+" online", func() bool {
			var state struct {
				Online bool `json:"online"`
			}
			getJSON(t, s.SimAt+"/sim/branches/"+branch, &state)
			return state.Online
		})
	}
}

// browser is a client with cookies.
type browser struct {
	t    testing.TB
	http *http.Client
	api  string
}

func newBrowser(t testing.TB, s *world.Stack) *browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	// A busy machine takes over 30 seconds to encode a photo.
	return &browser{t, &http.Client{Jar: jar, Timeout: 2 * time.Minute}, s.API}
}

// call sends a request to the API, without a body if body is nil. It decodes the data and returns the status.
func (b *browser) call(method, path string, body, data any) (status int, errorType string) {
	b.t.Helper()
	status, answer := b.send(method, path, body)
	var envelope struct {
		ErrorType string          `json:"errorType"`
		Data      json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(answer, &envelope); err != nil {
		b.t.Fatalf("%s %s: %v", method, path, err)
	}
	if data != nil && status == http.StatusOK {
		if err := json.Unmarshal(envelope.Data, data); err != nil {
			b.t.Fatalf("%s %s: %v", method, path, err)
		}
	}
	return status, envelope.ErrorType
}

// send sends a request with the generated client and returns its answer.
func (b *browser) send(method, path string, body any) (status int, answer []byte) {
	b.t.Helper()
	var sent []byte
	if body != nil {
		var err error
		if sent, err = json.Marshal(body); err != nil {
			b.t.Fatal(err)
		}
	}
	status, answer, err := request(b.t.Context(), b.http, b.api, method, path, sent)
	if err != nil {
		b.t.Fatalf("%s %s: %v", method, path, err)
	}
	return status, answer
}

// must is call for requests that must succeed.
func (b *browser) must(method, path string, body, data any) {
	b.t.Helper()
	if status, errorType := b.call(method, path, body, data); status != http.StatusOK {
		b.t.Fatalf("%s %s: %d %s", method, path, status, errorType)
	}
}

// result is the data of a door-result event.
type result struct {
	Status      string  `json:"status"`
	Device      *string `json:"device"`
	FailoverKey *string `json:"failoverKey"`
}

// open presses a button and waits for the result. It returns the result, or the status of the stream.
func (b *browser) open(branch, kind, key string) (result, int) {
	b.t.Helper()
	var accepted struct {
		RequestID string `json:"requestId"`
	}
	b.must("POST", "/door/v2/unlock", map[string]string{"branch": branch, "doorlockType": kind, "key": key}, &accepted)
	return b.subscribe("/door/v2/unlock/subscribe?requestId=" + accepted.RequestID + "&key=" + key)
}

func (b *browser) subscribe(path string) (result, int) {
	b.t.Helper()
	var r result
	status, stream := b.send("GET", path, nil)
	if status != http.StatusOK {
		return r, status
	}
	lines := bufio.NewScanner(bytes.NewReader(stream))
	event := ""
	for lines.Scan() {
		if name, ok := strings.CutPrefix(lines.Text(), "event:"); ok {
			event = strings.TrimSpace(name)
		}
		if data, ok := strings.CutPrefix(lines.Text(), "data:"); ok {
			if err := json.Unmarshal([]byte(data), &r); err != nil {
				b.t.Fatalf("event %s: %v", data, err)
			}
		}
	}
	if event != "door-result" {
		b.t.Fatalf("event %q", event)
	}
	return r, http.StatusOK
}

// wireTime formats a time as YYYYMMDDHHmm in Seoul.
func wireTime(t time.Time) string { return t.In(time.FixedZone("KST", 9*3600)).Format("200601021504") }

// currentSlot returns the start of the current slot.
func currentSlot() time.Time { return time.Now().Truncate(10 * time.Minute) }

// hold takes a hold. If the slot of its start ends before the service receives the request, the stay moves to the current slot.
func (b *browser) hold(path, branch string, room int, start, end time.Time) {
	b.t.Helper()
	for {
		status, errorType := b.call("POST", path, map[string]any{
			"branch": branch, "room": room, "startDateTime": wireTime(start), "endDateTime": wireTime(end),
		}, nil)
		if status == http.StatusOK {
			return
		}
		late := currentSlot().Sub(start)
		if late <= 0 {
			b.t.Fatalf("POST %s: %d %s", path, status, errorType)
		}
		start, end = start.Add(late), end.Add(late)
	}
}

// buy reserves a room from the current slot and returns the key of the message.
func (b *browser) buy(s *world.Stack, branch string, room, amount int, mobile string) string {
	b.t.Helper()
	start := currentSlot()
	b.hold("/reservation", branch, room, start, start.Add(time.Hour))
	var order struct {
		OrderID string `json:"orderId"`
	}
	b.must("POST", "/payment", map[string]any{"amount": amount, "name": "홍길동", "mobileNum": mobile}, &order)
	var payment struct {
		PaymentKey string `json:"paymentKey"`
	}
	postJSON(b.t, s.SandboxAt+"/sandbox/payments", map[string]any{"orderId": order.OrderID, "amount": amount, "method": "카드"}, &payment)
	before := len(sent(b.t, s, mobile, keyVariable))
	b.must("POST", "/payment/confirm", map[string]any{"paymentKey": payment.PaymentKey, "orderId": order.OrderID, "amount": amount}, nil)
	return sentAfter(b.t, s, mobile, keyVariable, before)
}

// Variables of messages.
const (
	keyVariable  = "doorlockKey"
	codeVariable = "code" // of a login
)

// keyFor waits for the message with the key, for a phone that receives only one.
func keyFor(t testing.TB, s *world.Stack, mobile string) string {
	t.Helper()
	return sentAfter(t, s, mobile, keyVariable, 0)
}

// sent returns the values of a variable in the messages to a phone, the oldest first.
func sent(t testing.TB, s *world.Stack, mobile, variable string) (values []string) {
	t.Helper()
	var list struct {
		Messages []struct {
			Variables map[string]string `json:"variables"`
		} `json:"messages"`
	}
	getJSON(t, s.SandboxAt+"/sandbox/messages?to="+url.QueryEscape(mobile), &list)
	for _, m := range list.Messages {
		if m.Variables[variable] != "" {
			values = append(values, m.Variables[variable])
		}
	}
	return values
}

// sentAfter waits for a message with a variable after the first n of them, and returns the newest value.
func sentAfter(t testing.TB, s *world.Stack, mobile, variable string, n int) string {
	t.Helper()
	var values []string
	until(t, "message with "+variable+" to "+mobile, func() bool {
		values = sent(t, s, mobile, variable)
		return len(values) > n
	})
	return values[len(values)-1]
}

func getJSON(t testing.TB, address string, into any) {
	t.Helper()
	response, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	decode(t, response, into)
}

func postJSON(t testing.TB, address string, body, into any) {
	t.Helper()
	requestJSON(t, http.MethodPost, address, body, into)
}

func requestJSON(t testing.TB, method, address string, body, into any) {
	t.Helper()
	encoded, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), method, address, bytes.NewReader(encoded))
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	decode(t, response, into)
}

func decode(t testing.TB, response *http.Response, into any) {
	t.Helper()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if response.StatusCode >= 300 {
		t.Fatalf("%s: %d %s", response.Request.URL, response.StatusCode, body)
	}
	if into == nil {
		return
	}
	if err := json.Unmarshal(body, into); err != nil {
		t.Fatalf("%s: %v: %s", response.Request.URL, err, body)
	}
}
