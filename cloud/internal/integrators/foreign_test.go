package integrators

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/yeolda/yeolda/cloud/client"
)

// foreign are answers that a client receives although the service sends none of them: of a proxy, a load balancer, or the login
// page of a network.
var foreign = []struct {
	name, kind, body string
	status           int
	header           http.Header
	want             string // what the TypeScript client reports: an error of the service, or another one
}{
	{name: "null", status: 500, kind: "application/json", body: "null", want: `rejected 500 "" "Internal Server Error" null null`},
	{name: "number", status: 500, kind: "application/json", body: "42", want: `rejected 500 "" "Internal Server Error" null null`},
	{name: "null-fields", status: 500, kind: "application/json", body: `{"errorType":null,"message":null}`, want: `rejected 500 "" "Internal Server Error" null null`},
	{name: "other-fields", status: 400, kind: "application/json", body: `{"errorType":7,"message":{"a":1},"errorCode":12}`, want: `rejected 400 "" "Bad Request" null null`},
	{name: "empty", status: 502, want: `rejected 502 "" "Bad Gateway" null null`},
	{name: "page", status: 502, kind: "text/html", body: "<html>", header: http.Header{"Retry-After": {"Fri, 27 Nov 2026 00:00:00 GMT"}}, want: `rejected 502 "" "Bad Gateway" null null`},
	{name: "login-page", status: 200, kind: "text/html", body: "<html>", want: `failed, is of type "text/html": it is not a Yeolda service`},
	{name: "nothing", status: 200, want: `failed, is of type "": it is not a Yeolda service`},
	{name: "no-content", status: 204, want: "failed, has no data"},
	{name: "success-null", status: 200, kind: "application/json", body: "null", want: "failed, has no envelope: it is not a Yeolda service"},
	{name: "other-service", status: 200, kind: "application/json", body: `{"status":"ok"}`, want: "failed, has no envelope: it is not a Yeolda service"},
	{name: "error-as-success", status: 200, kind: "application/json", body: `{"status":"error"}`, want: "failed, has no envelope: it is not a Yeolda service"},
	{name: "torn", status: 200, kind: "application/json", body: `{"status":"success","data`, want: "failed, has no envelope: it is not a Yeolda service"},
	{name: "table", status: 200, kind: "text/csv", body: `"id,amount"`, want: "failed, has no data"},
	{name: "cookie", status: 200, kind: "application/json", body: `{"status":"success","data":"kept"}`, header: http.Header{"Set-Cookie": {"nameless", "=x", "route=7; Path=/"}}, want: `data "kept"`},
	{name: "moved", status: 301, header: http.Header{"Location": {"https://yeolda.example/api/v2/hold?key=secret"}}, want: `rejected 301 "" "the service has moved to https://yeolda.example" null null`},
	{name: "moved-nowhere", status: 302, want: `rejected 302 "" "Found" null null`},
	{name: "transformed", status: 203, kind: "application/json", body: `{"status":"success","data":"kept"}`, want: `data "kept"`},
}

// serveForeign answers as the header X-Case says. The case "hang" sends the beginning of an error, and nothing after it.
func serveForeign(t *testing.T) *httptest.Server {
	t.Helper()
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := r.Header.Get("X-Case")
		if name == "hang" {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = w.Write([]byte(`{"errorType":`))
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			return
		}
		for _, a := range foreign {
			if a.name != name {
				continue
			}
			w.Header()["Content-Type"] = nil
			if a.kind != "" {
				w.Header().Set("Content-Type", a.kind)
			}
			for key, values := range a.header {
				w.Header()[key] = values
			}
			w.WriteHeader(a.status)
			_, _ = w.Write([]byte(a.body))
			return
		}
		http.NotFound(w, r)
	}))
	t.Cleanup(proxy.Close)
	return proxy
}

// A program that handles the clients' errors also handles an answer that is not of the service: the status is reported, no request
// fails because of a cookie, and a request that the program aborts ends as aborted.
func TestClientsOfForeignAnswers(t *testing.T) {
	t.Parallel()
	t.Run("TypeScript", func(t *testing.T) {
		t.Parallel()
		var program, want strings.Builder
		program.WriteString(`
			import { dataOf, yeolda, YeoldaError } from "yeolda";
			const stop = new AbortController();
			const get = globalThis.fetch;
			globalThis.fetch = async (...request) => {
				const answer = await get(...request);
				if ((request[0] as Request).headers.get("X-Case") === "hang") setImmediate(() => stop.abort(new Error("stopped")));
				return answer;
			};
			const api = yeolda(process.env.YEOLDA_URL!);
			const ask = (name: string, signal?: AbortSignal) =>
				dataOf(api.GET("/v2/hold", { headers: { "X-Case": name }, signal })).then(
					(data) => console.log(name, "data", JSON.stringify(data)),
					(e) => e instanceof YeoldaError
						? console.log(name, "rejected", e.http, JSON.stringify(e.type), JSON.stringify(e.message), JSON.stringify(e.code), e.retryAfter)
						: console.log(name, "failed,", e.message.replace(/^the answer( of \S+)? /, "")));
			await ask("hang", stop.signal);
		`)
		want.WriteString("hang failed, stopped\n")
		for _, a := range foreign {
			fmt.Fprintf(&program, "await ask(%q);\n", a.name)
			fmt.Fprintf(&want, "%s %s\n", a.name, a.want)
		}
		if got := runNode(t, program.String(), "YEOLDA_URL="+serveForeign(t).URL); got != want.String() {
			t.Errorf("the client reports\n%s\nwant\n%s", got, want.String())
		}
	})
	t.Run("Go", func(t *testing.T) {
		t.Parallel()
		proxy := serveForeign(t)
		for _, a := range foreign {
			name := func(_ context.Context, r *http.Request) error { r.Header.Set("X-Case", a.name); return nil }
			api, err := client.New(proxy.URL, "")
			if err != nil {
				t.Fatal(err)
			}
			api.ClientInterface.(*client.Client).RequestEditors = append(api.ClientInterface.(*client.Client).RequestEditors, name)
			if err := client.Follow(t.Context(), api, "0", func(client.Event) error { return nil }); err == nil {
				t.Errorf("%s: events are followed", a.name)
			} else if rejected := new(client.Error); errors.As(err, &rejected) && (rejected.HTTP != a.status || !strings.Contains(a.want, strconv.Quote(rejected.Message))) {
				t.Errorf("%s: the client returns %+v", a.name, rejected)
			}
		}
	})
}
