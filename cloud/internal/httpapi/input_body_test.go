package httpapi_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/yeolda/yeolda/cloud/internal/contract"
)

// Every operation that takes a body rejects bodies that are not one JSON object or are too long.
func TestBadBodies(t *testing.T) {
	t.Parallel()
	c := newCast(t, unlimited(t))
	malformed := reply{400, "IllegalArguemntError", "요청 본문이 올바른 JSON 형식이 아닙니다."}
	tooLarge := reply{413, "PayloadTooLargeError", "요청 본문이 너무 큽니다."}
	const limit = 64 << 10
	list := append(bodies(t, c), body{"POST", "/virtualaccount/webhook", c.Nobody, map[string]any{"orderId": "a", "status": "DONE", "secret": "a"}, nil,
		reply{404, "ResourceNotFoundException", "해당 주문을 찾을 수 없습니다."}})
	before := contents(t, c.s)
	for _, b := range list {
		valid := encode(t, b.valid, "", nil)
		for _, text := range []string{
			"null", "[]", `"a"`, "1", "true", "{", "}", `{"a":}`, `{'a':1}`, `{"a":1,}`, "{}{}", "{} x", "<a/>", "\x00", "\xff", "\xef\xbb\xbf{}", strings.Repeat(`{"a":`, 9000),
		} {
			check(t, fmt.Sprintf("%s %s with %.20q", b.method, b.path, text), b.client, b.method, probe{path: b.path, body: text}, malformed)
		}
		if b.path != "/admin/payment" && b.method != "DELETE" { // its body is optional
			check(t, b.path+" without a body", b.client, b.method, probe{path: b.path, body: ""}, malformed)
		}
		for _, size := range []int{limit + 1, 1 << 20} {
			check(t, fmt.Sprintf("%s %s with %d bytes", b.method, b.path, size), b.client, b.method, probe{path: b.path, body: pad(valid, size)}, tooLarge)
		}
	}
	for _, o := range contract.Operations() { // including additions
		if o.Responses.Value("413") != nil && o.Extensions["x-envelope"] == nil && o.Access() != "customer" {
			size := limit
			if own, ok := o.Extensions["x-body-limit"].(float64); ok {
				size = int(own)
			}
			check(t, o.OperationID, c.HQ, o.Method, probe{path: anonymousBut(o.Path, ""), body: pad("{}", size+1)}, tooLarge)
		}
	}
	unchanged(t, c.s, before)
	for _, b := range list {
		check(t, b.method+" "+b.path+" with 64 KiB", b.client, b.method, probe{path: b.path, body: pad(valid(t, b), limit)}, b.want)
	}

	// The limit also applies without a Content-Length.
	for size, want := range map[int]int{limit: 401, limit + 1: 413} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.s.URL+"/payment", struct{ *strings.Reader }{strings.NewReader(pad(`{"amount":1,"name":"a","mobileNum":"010-1234-5678"}`, size))})
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != want {
			t.Errorf("%d bytes without a length: %d", size, answer.StatusCode)
		}
	}
}

func valid(t *testing.T, b body) string { return encode(t, b.valid, "", nil) }

// pad returns a body of a given length.
func pad(text string, size int) string { return text + strings.Repeat(" ", size-len(text)) }
