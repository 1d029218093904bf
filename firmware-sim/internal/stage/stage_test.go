package stage

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world answers for the service, the sandbox and the simulator.
type world struct {
	t     *testing.T
	stage *Stage
	page  *httptest.Server

	mu      sync.Mutex
	calls   []string          // "METHOD path body", in order
	answers map[string]answer // by "METHOD path"; any other request is answered with 200 and no data
}

type answer struct {
	status int
	body   string
}

// newWorld returns a demo in which a guest can buy room 1 by virtual account.
func newWorld(t *testing.T, changes map[string]answer) *world {
	t.Helper()
	w := &world{t: t, answers: map[string]answer{
		"GET /api/v2/branches/gangnam/reservations": {200, `{"data": {"rooms": [{"roomNo": "1", "enabled": true, "pricing": {"min60": 100}}, {"roomNo": "2", "enabled": true, "pricing": {"min60": 200}}]}}`},
		"POST /api/payment":                         {200, `{"data": {"orderId": "order"}}`},
		"GET /api/v2/admin/reservations":            {200, `{"data": {"reservations": [{"id": "7", "bookingStatus": "waitingForDeposit"}]}}`},
		"DELETE /api/admin/reservation/7":           {503, `{"errorType": "PaymentPendingException", "message": "m"}`},
		"GET /sandbox/messages":                     {200, `{"messages": [{"variables": {"doorlockKey": "key"}}]}`},
		"POST /api/admin/login":                     {200, `{}`},
		"GET /sandbox/faults":                       {200, `{"faults": [{"target": "cancel", "times": 999}]}`},
		"DELETE /sim/branches/gangnam/faults":       {200, `{}`},
		"POST /sandbox/payments":                    {200, `{"paymentKey": "pay"}`},
		"POST /api/payment/confirm":                 {200, `{}`},
		"POST /sandbox/faults":                      {200, `{}`},
		"POST /sandbox/deposits":                    {200, `{}`},
		"DELETE /sandbox/faults":                    {200, `{}`},
		"POST /api/reservation":                     {200, `{}`},
	}}
	for request, a := range changes {
		w.answers[request] = a
	}
	others := httptest.NewServer(w)
	t.Cleanup(others.Close)
	w.stage = &Stage{Service: others.URL, Sandbox: others.URL, Simulator: others.URL, Log: slog.New(slog.NewTextHandler(t.Output(), nil))}
	w.page = httptest.NewServer(w.stage.Handler())
	t.Cleanup(w.page.Close)
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	return w
}

func (w *world) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	var body strings.Builder
	_, _ = bufio.NewReader(r.Body).WriteTo(&body)
	w.mu.Lock()
	w.calls = append(w.calls, strings.TrimSpace(r.Method+" "+r.URL.RequestURI()+" "+body.String()))
	a, ok := w.answers[r.Method+" "+r.URL.Path]
	w.mu.Unlock()
	if !ok {
		a = answer{404, `{}`}
	}
	if r.URL.Path == "/api/admin/login" {
		rw.Header().Add("Set-Cookie", "JSESSIONID=s; Path=/; HttpOnly")
	}
	rw.WriteHeader(a.status)
	fmt.Fprint(rw, a.body)
}

// play plays a scene and returns its last step.
func (w *world) play(scene string) Step {
	w.t.Helper()
	played, err := http.Post(w.page.URL+"/stage/scenes/"+scene, "", nil)
	if err != nil {
		w.t.Fatal(err)
	}
	defer played.Body.Close()
	var last Step
	for lines := bufio.NewScanner(played.Body); lines.Scan(); {
		last = Step{}
		if err := json.Unmarshal(lines.Bytes(), &last); err != nil {
			w.t.Fatalf("%q: %v", lines.Text(), err)
		}
	}
	return last
}

// called returns the requests that begin with a text.
func (w *world) called(prefix string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var found []string
	for _, call := range w.calls {
		if strings.HasPrefix(call, prefix) {
			found = append(found, call)
		}
	}
	return found
}

// TestLateDepositDemandsAnUnknownOutcome checks that the scene ends well only if the cancellation failed as told.
func TestLateDepositDemandsAnUnknownOutcome(t *testing.T) {
	const cancel = "DELETE /api/admin/reservation/7"
	for name, c := range map[string]struct {
		changes map[string]answer
		ends    bool
	}{
		"unknown outcome":     {nil, true},
		"success":             {map[string]answer{cancel: {200, `{}`}}, false},
		"rejected":            {map[string]answer{cancel: {400, `{"errorType": "IllegalArguemntError"}`}}, false},
		"no service":          {map[string]answer{cancel: {503, `{"errorType": "ServiceUnavailableError"}`}}, false},
		"other status":        {map[string]answer{cancel: {500, `{"errorType": "PaymentPendingException"}`}}, false},
		"unused fault":        {map[string]answer{"GET /sandbox/faults": {200, `{"faults": [{"target": "cancel", "times": 1000}]}`}}, false},
		"no fault":            {map[string]answer{"GET /sandbox/faults": {200, `{"faults": []}`}}, false},
		"no such reservation": {map[string]answer{"GET /api/v2/admin/reservations": {200, `{"data": {"reservations": []}}`}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.changes)
			if last := w.play("deposit"); last.Failed == c.ends {
				t.Errorf("last step %+v, want the ending: %t", last, c.ends)
			}
			// However the scene ends, neither the sandbox nor the simulator keeps a fault.
			for _, faults := range []string{"/sandbox/faults", "/sim/branches/gangnam/faults"} {
				if got := w.called("DELETE " + faults); len(got) < 2 {
					t.Errorf("%d removals of %s, want one before and one after the scene", len(got), faults)
				}
			}
		})
	}
}

// TestFaultsAreRemovedFromBoth checks that the sandbox's faults are removed although the simulator does not respond.
func TestFaultsAreRemovedFromBoth(t *testing.T) {
	w := newWorld(t, map[string]answer{"DELETE /sim/branches/gangnam/faults": {500, ``}})
	if last := w.play("deposit"); !last.Failed {
		t.Errorf("last step %+v, want a failed one", last)
	}
	if got := w.called("DELETE /sandbox/faults"); len(got) != 2 {
		t.Errorf("%d removals of the sandbox's faults, want 2", len(got))
	}
}

// TestOnlyTakenMeansTaken checks that a guest tries the next room if the time is taken, and not after any other error.
func TestOnlyTakenMeansTaken(t *testing.T) {
	for status, want := range map[int]struct {
		tries int
		en    string
	}{
		http.StatusConflict:            {2, "No room in Gangnam is free for an hour from"},
		http.StatusBadRequest:          {1, "The scene broke off."},
		http.StatusInternalServerError: {1, "The scene broke off."},
		http.StatusTooManyRequests:     {1, "The scene broke off."},
	} {
		w := newWorld(t, map[string]answer{"POST /api/reservation": {status, `{"errorType": "x", "message": "hush"}`}})
		last := w.play("open")
		if got := w.called("POST /api/reservation"); len(got) != want.tries || !last.Failed || !strings.HasPrefix(last.En, want.en) {
			t.Errorf("%d: %d tries and %q, want %d and %q", status, len(got), last.En, want.tries, want.en)
		}
		if strings.Contains(last.Ko+last.En, "hush") || strings.Contains(last.Ko, "HTTP") {
			t.Errorf("%d: the visitor is shown the error: %q, %q", status, last.Ko, last.En)
		}
	}
}

// TestEarlierRoomsAreReleased checks that a scene first cancels what the previous one has reserved, as the administrator.
func TestEarlierRoomsAreReleased(t *testing.T) {
	w := newWorld(t, nil)
	if last := w.play("deposit"); last.Failed {
		t.Fatalf("last step %+v", last)
	}
	// The provider fails between cancellation and deposit, however slowly visitors read, and no longer.
	deposit := slices.IndexFunc(w.calls, func(call string) bool { return strings.HasPrefix(call, "POST /sandbox/deposits") })
	key := slices.IndexFunc(w.calls, func(call string) bool { return strings.HasPrefix(call, "GET /sandbox/messages") })
	if removed := slices.Index(w.calls[deposit:], "DELETE /sandbox/faults"); removed < 0 || deposit+removed > key {
		t.Errorf("the fault remains after the deposit: %q", w.calls)
	}
	w.mu.Lock()
	w.calls = nil
	w.answers["GET /api/v2/admin/reservations"] = answer{200, `{"data": {"reservations": [{"id": "7", "bookingStatus": "paid"}]}}`}
	w.answers["DELETE /api/admin/reservation/7"] = answer{200, `{}`}
	w.mu.Unlock()
	w.play("race")
	got := w.called("DELETE /api/admin/reservation/7")
	if len(got) != 1 || !strings.Contains(got[0], "?bookingStatus=paid") || !strings.Contains(got[0], `"refundReceiveAccountHolderName":"김하늘"`) {
		t.Errorf("cancellations %q, want one of the paid deposit with an account of the guest", got)
	}
	if holds, cancel := w.called("POST /api/reservation"), slices.Index(w.calls, got[0]); len(holds) == 0 || slices.Index(w.calls, holds[0]) < cancel {
		t.Errorf("the scene holds a room before it releases the earlier one: %q", w.calls)
	}
	if len(w.stage.guests) == 0 {
		t.Error("the guests of the race are not remembered")
	}
	w.play("race") // none of them has an order: they release their holds
	if got := w.called("DELETE /api/admin/reservation/7"); len(got) != 1 {
		t.Errorf("%d cancellations, want no further one", len(got))
	}
}

// TestLoginPassesOnTheSession checks that the visitor's browser receives the session of a login as hq, from the stage only.
func TestLoginPassesOnTheSession(t *testing.T) {
	w := newWorld(t, nil)
	for site, want := range map[string]int{"same-origin": 200, "same-site": 403, "cross-site": 403} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.page.URL+"/stage/login", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Sec-Fetch-Site", site)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		session := strings.HasPrefix(response.Header.Get("Set-Cookie"), "JSESSIONID=s;")
		if response.StatusCode != want || session != (want == 200) {
			t.Errorf("%s: %d and a session: %t, want %d", site, response.StatusCode, session, want)
		}
	}
	if got := w.called("POST /api/admin/login"); len(got) != 1 || !strings.Contains(got[0], `"hq"`) {
		t.Errorf("logins %q, want one of hq", got)
	}
}

// TestErrorsHoldNoKey checks that an error of a call, which is logged, does not contain the address with its key.
func TestErrorsHoldNoKey(t *testing.T) {
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	stop()
	visitor := (&Stage{Service: "http://127.0.0.1:1"}).newPerson()
	if err := visitor.call(ctx, http.MethodGet, "/v2/keys/secret", nil, nil); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v, want an error without the key", err)
	}
}
