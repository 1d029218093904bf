package events_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/yeolda/yeolda/cloud/internal/events"
)

// nodeReceiver prints its port, and then each event whose signature the library of the convention for Node has verified. It closes
// every connection until it reads the secret from its input.
const nodeReceiver = `
import { createServer } from "node:http";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import { Webhook } from "standardwebhooks";

let verifier; // unset: away
const server = createServer(async (request, answer) => {
  if (!verifier) return request.socket.destroy();
  const body = await text(request);
  try {
    verifier.verify(body, request.headers);
  } catch (problem) {
    return answer.writeHead(401).end(problem.message);
  }
  console.log(body);
  answer.end();
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
createInterface({ input: process.stdin })
  .on("line", (secret) => { verifier = new Webhook(secret); console.log("back"); })
  .on("close", () => process.exit());
`

// A receiver in Node that was away for a day less a minute has verified everything afterwards, in order. Forged and old deliveries
// do not verify.
func TestNodeReceiverAwayForADay(t *testing.T) {
	t.Parallel()
	r := startNode(t)
	f := newFixture(t)
	hook := "http://127.0.0.1:" + r.line() + "/"
	id := f.add(events.NewWebhook{URL: hook, Types: []string{"reservation"}})
	f.reserve(30)
	const away = 24*time.Hour - time.Minute
	for passed := time.Duration(0); passed < away; passed += 10 * time.Minute {
		f.pass(id, min(10*time.Minute, away-passed))
	}
	if list, err := f.List(t.Context()); err != nil || !list[0].Enabled || list[0].Pending != 90 {
		t.Fatalf("webhook %+v, %v", list, err)
	}
	if _, err := fmt.Fprintln(r.input, f.secret); err != nil || r.line() != "back" {
		t.Fatal(err)
	}
	for range 20 {
		f.pass(id, 4*time.Minute)
	}
	forged(t, hook, f.secret)
	if err := r.input.Close(); err != nil {
		t.Fatal(err)
	}
	for r.output.Scan() {
		var e events.Event
		if err := json.Unmarshal(r.output.Bytes(), &e); err != nil {
			t.Fatalf("%s: %v", r.output.Text(), err)
		}
		f.received = append(f.received, e)
	}
	f.ordered(90)
}

// forged sends deliveries that must not verify: another body, another secret, and one that was recorded six minutes ago.
func forged(t *testing.T, hook, secret string) {
	t.Helper()
	const body = `{"id":"1","type":"reservation.done"}`
	other := "whsec_" + strings.Repeat("A", 43) + "="
	for name, c := range map[string]struct {
		secret, sent string
		age          time.Duration
	}{
		"another body":   {secret, strings.Replace(body, "done", "hold", 1), 0},
		"another secret": {other, body, 0},
		"recorded":       {secret, body, 6 * time.Minute},
	} {
		signer, err := standardwebhooks.NewWebhook(c.secret)
		if err != nil {
			t.Fatal(err)
		}
		at := time.Now().Add(-c.age)
		signature, err := signer.Sign("1", at, []byte(body))
		if err != nil {
			t.Fatal(err)
		}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, hook, strings.NewReader(c.sent))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set(standardwebhooks.HeaderWebhookID, "1")
		request.Header.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(at.Unix(), 10))
		request.Header.Set(standardwebhooks.HeaderWebhookSignature, signature)
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		if err := answer.Body.Close(); err != nil || answer.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s: status %d, want 401", name, answer.StatusCode)
		}
	}
}

// node is a running receiver.
type node struct {
	t      *testing.T
	input  io.WriteCloser
	output *bufio.Scanner
}

// startNode starts a receiver. It skips the test without Node or the modules of the TypeScript client, unless they are required.
func startNode(t *testing.T) *node {
	t.Helper()
	const modules = "../../client/typescript"
	_, err := os.Stat(filepath.Join(modules, "node_modules", "standardwebhooks"))
	if _, missing := exec.LookPath("node"); err != nil || missing != nil {
		if os.Getenv("E2E_REQUIRED") == "1" {
			t.Fatal("no node, or no standardwebhooks: run npm install in cloud/client/typescript")
		}
		t.Skip("no node, or no standardwebhooks: run npm install in cloud/client/typescript")
	}
	command := exec.CommandContext(t.Context(), "node", "--input-type=module", "--eval", nodeReceiver)
	command.Dir, command.Stderr = modules, t.Output()
	input, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = input.Close() // the test may have closed it
		_ = command.Wait()
	})
	return &node{t, input, bufio.NewScanner(output)}
}

// line returns the next line that the receiver prints.
func (n *node) line() string {
	n.t.Helper()
	if !n.output.Scan() {
		n.t.Fatalf("the receiver ended: %v", n.output.Err())
	}
	return n.output.Text()
}
