package httpapi_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/yeolda/yeolda/cloud/internal/account"
	"github.com/yeolda/yeolda/cloud/internal/contract"
	"github.com/yeolda/yeolda/cloud/internal/httpapi"
	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

const (
	scopeMissing = "토큰에 이 작업의 권한(scope)이 없습니다."
	badToken     = "토큰이 올바르지 않거나 만료되었습니다."
)

// newToken has the headquarters create a token and returns its id and the header of requests with it.
func newToken(t *testing.T, hq *servicetest.Client, scopes, branches []string) (id string, header http.Header) {
	t.Helper()
	var created struct{ ID, Token string }
	hq.Post("/v2/admin/tokens", map[string]any{"name": "erp", "scopes": scopes, "branches": branches}).OK(t).Into(t, &created)
	return created.ID, http.Header{"Authorization": {"Bearer " + created.Token}}
}

// Every route rejects a token without its scope, and a token reaches its branches only. The scopes are those of openapi.yaml.
func TestTokenScopes(t *testing.T) {
	t.Parallel()
	c := newCast(t, servicetest.Start(t))
	table := probes(t, c)
	type bearer struct {
		name   string
		scopes []string
		place  string // empty: all branches
		header http.Header
	}
	all := []string{"read", "book", "money", "doors", "climate"}
	bearers := []*bearer{{name: "all of gangnam", scopes: all, place: "gangnam"}, {name: "all of hongdae", scopes: all, place: "hongdae"}}
	for _, scope := range all {
		bearers = append(bearers, &bearer{name: scope, scopes: []string{scope}})
	}
	for _, b := range bearers {
		var branches []string
		if b.place != "" {
			branches = []string{b.place}
		}
		_, b.header = newToken(t, c.HQ, b.scopes, branches)
	}
	for _, o := range contract.Operations() {
		if o.Access() == "public" || o.Access() == "customer" {
			continue
		}
		scope, _ := o.Extensions["x-scope"].(string)
		if scope == "" && o.Method == http.MethodGet {
			scope = "read"
		}
		if declared, ok := httpapi.ScopeOf(o.Method + " " + route(t, o)); ok != (scope != "none") || ok && string(declared) != scope {
			t.Errorf("%s: scope %q of the router, x-scope %q of the description", o.OperationID, declared, scope)
			continue
		}
		p := table[o.OperationID]
		for _, b := range bearers {
			want := p.want
			switch {
			case o.Access() == "hq" && b.place != "":
				want = notAuthorized
			case o.OperationID == "adminCancel" && b.name == "book": // TestTokenEndsWhatReturnsNoMoney
			case !strings.Contains(strings.Join(b.scopes, " "), scope):
				want = reply{403, "AuthorizationError", scopeMissing}
			case p.scoped && b.place == "hongdae":
				want = outOfScope
			}
			answer := c.Nobody.Send(o.Method, p.path, p.body, b.header)
			got := reply{status: answer.HTTP}
			if want.errorType != "" {
				answer = answer.Envelope(t)
				got.errorType, got.message = answer.ErrorType, answer.Message
			}
			if got != want {
				t.Errorf("%s by %s: %+v, want %+v: %s", o.OperationID, b.name, got, want, answer.Raw)
			}
			challenge := ""
			if got.message == scopeMissing {
				challenge = `Bearer realm="yeolda", error="insufficient_scope"`
				if scope != "none" {
					challenge += fmt.Sprintf(`, scope=%q`, scope)
				}
			}
			if got := answer.Header.Get("WWW-Authenticate"); got != challenge {
				t.Errorf("%s by %s: the challenge %q, want %q", o.OperationID, b.name, got, challenge)
			}
		}
	}
}

// TestTokenEndsWhatReturnsNoMoney: a token with the scope book ends its own hold and its own registration, but needs money to
// refund; one with money ends both.
func TestTokenEndsWhatReturnsNoMoney(t *testing.T) {
	t.Parallel()
	c := newCast(t, servicetest.Start(t))
	_, book := newToken(t, c.HQ, []string{"book"}, []string{"gangnam"})
	_, money := newToken(t, c.HQ, []string{"money"}, nil)
	_, doors := newToken(t, c.HQ, []string{"read", "doors", "climate"}, nil)
	missing := reply{403, "AuthorizationError", scopeMissing}
	program := c.s.Client(t)
	end := func(id, status string, token http.Header) servicetest.Answer {
		return program.Send(http.MethodDelete, "/admin/reservation/"+id+"?bookingStatus="+status, nil, token).Envelope(t)
	}
	for _, token := range []http.Header{book, money} {
		program.Send(http.MethodPost, "/admin/reservation", holdBody(3, c.start, time.Hour), book).Envelope(t).OK(t)
		held := reservationAt(t, c.s, 3, c.start)
		says(t, "a hold without a scope for it", end(held, "beforePaymentTab", doors), missing)
		end(held, "beforePaymentTab", token).OK(t)
	}
	program.Send(http.MethodPost, "/admin/reservation", holdBody(3, c.start, time.Hour), book).Envelope(t).OK(t)
	program.Send(http.MethodPost, "/admin/payment", map[string]any{}, book).Envelope(t).OK(t)
	registered := reservationAt(t, c.s, 3, c.start)
	end(registered, "paid", book).OK(t)

	paid := reservationAt(t, c.s, 1, c.start)
	says(t, "a refund", end(paid, "paid", book), missing)
	end(paid, "paid", money).OK(t)
}

// route returns the router's pattern of an operation, whose parameters may have other names.
func route(t *testing.T, o contract.Operation) string {
	t.Helper()
	for _, served := range patterns(t) {
		if anonymous(served) == o.Method+" "+anonymous(o.Path) {
			return strings.TrimPrefix(served, o.Method+" ")
		}
	}
	t.Fatalf("no route for %s %s", o.Method, o.Path)
	return ""
}

func TestTokenLife(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	replica := &account.Service{DB: s.DB}
	hq, nobody := s.Admin(t, "hq", "hq-demo"), s.Client(t)
	for body, message := range map[string]string{
		`{"name":"a","scopes":[]}`:                                               "권한(scopes)은 read, book, money, doors, climate 중 하나 이상이어야 합니다.",
		`{"name":"a","scopes":["all"]}`:                                          "권한(scopes)은 read, book, money, doors, climate 중 하나 이상이어야 합니다.",
		`{"name":"a\u200eb","scopes":["read"]}`:                                  "이름(name) 값의 형식이 올바르지 않습니다.",
		`{"name":"","scopes":["read"]}`:                                          "이름(name) 값은 필수입니다.",
		`{"name":"` + strings.Repeat("a", 51) + `","scopes":["read"]}`:           "이름(name) 값은 최대 50자까지 입력할 수 있습니다.",
		`{"name":"a","scopes":["read"],"expiresAt":"2020-01-01T00:00:00Z"}`:      "만료 시각(expiresAt)은 현재보다 뒤여야 합니다.",
		`{"name":"a","scopes":["read"],"expiresAt":"0001-01-01T00:00:00Z"}`:      "만료 시각(expiresAt)은 현재보다 뒤여야 합니다.", // a zero time.Time
		`{"name":"a","scopes":["read"],"expiresAt":"tomorrow"}`:                  "만료 시각(expiresAt) 값의 형식이 올바르지 않습니다.",
		`{"name":"a","scopes":["read"],"expiresAt":"9999-12-31T23:59:59-08:00"}`: "만료 시각(expiresAt) 값의 형식이 올바르지 않습니다.", // the year 10000
	} {
		hq.Post("/v2/admin/tokens", body).Fails(t, 400, "IllegalArguemntError", message)
	}
	hq.Post("/v2/admin/tokens", `{"name":"a","scopes":["read"],"branches":["busan"]}`).Fails(t, 404, "ResourceNotFoundException", "")

	id, header := newToken(t, hq, []string{"read", "book"}, nil)
	answer := nobody.Send("GET", "/v2/admin/branches/gangnam/settings", nil, header).Envelope(t).OK(t)
	var settings map[string]any
	answer.Into(t, &settings)
	// The audit log names the token.
	nobody.Send("POST", "/v2/admin/branches/gangnam/exports", map[string]any{"what": "payments"}, header).Envelope(t).OK(t)
	if actor := only(t, s, `select actor from audit where action = 'export.payments' order by id desc limit 1`); actor != "token:"+id+" erp" {
		t.Errorf("actor %q", actor)
	}
	var list struct {
		Tokens []struct {
			ID, Name, CreatedBy   string
			LastUsedAt, ExpiresAt *time.Time
		}
	}
	listed := hq.Get("/v2/admin/tokens").OK(t)
	listed.Into(t, &list)
	if len(list.Tokens) != 1 || list.Tokens[0].ID != id || list.Tokens[0].LastUsedAt == nil || list.Tokens[0].CreatedBy != "admin:hq" {
		t.Errorf("tokens %s", listed.Raw)
	}
	secret := strings.TrimPrefix(header.Get("Authorization"), "Bearer ")
	if strings.Contains(string(listed.Raw), secret) {
		t.Error("the list contains the token")
	}
	if one := hq.Get("/v2/admin/tokens/" + id).OK(t); !strings.Contains(string(listed.Raw), string(one.Data)) {
		t.Errorf("the token alone is %s, in the list %s", one.Raw, listed.Raw)
	}
	if stored := only(t, s, `select count(*)::text from api_token where encode(token_hash, 'escape') like '%yl_%'`); stored != "0" {
		t.Error("the token is stored")
	}

	// A revoked token is rejected at once, on every replica and on public endpoints too.
	if p, err := replica.Token(t.Context(), secret); err != nil || p.Role != account.HQ || !p.Has(account.ScopeBook) || p.Has(account.ScopeDoors) {
		t.Errorf("%+v, %v", p, err)
	}
	hq.Delete("/v2/admin/tokens/"+id, nil).OK(t)
	for _, path := range []string{"/v2/admin/branches/gangnam/settings", "/v2/branches"} {
		answer := nobody.Send("GET", path, nil, header).Envelope(t)
		answer.Fails(t, 401, "AuthenticationError", badToken)
		if got := answer.Header.Get("WWW-Authenticate"); got != `Bearer realm="yeolda", error="invalid_token"` {
			t.Errorf("%s with a revoked token: the challenge %q", path, got)
		}
	}
	for path, want := range map[string]string{
		"/v2/admin/branches/gangnam/settings":             `Bearer realm="yeolda"`,
		"/admin/door/v2/unlock/subscribe?requestId=" + id: `Bearer realm="yeolda"`,
		"/v2/admin/tokens":                                "", // tokens cannot use it
		"/my-reservations":                                "", // of a guest
	} {
		if answer := nobody.Get(path); answer.HTTP != 401 || answer.Header.Get("WWW-Authenticate") != want {
			t.Errorf("%s without a session: %d with the challenge %q, want 401 with %q", path, answer.HTTP, answer.Header.Get("WWW-Authenticate"), want)
		}
	}
	if _, err := replica.Token(t.Context(), secret); !errors.Is(err, account.ErrNoToken) {
		t.Errorf("a replica accepts a revoked token: %v", err)
	}
	hq.Delete("/v2/admin/tokens/"+id, nil).Fails(t, 404, "ResourceNotFoundException", "해당 토큰을 찾을 수 없습니다.")
	hq.Delete("/v2/admin/tokens/x", nil).Fails(t, 404, "ResourceNotFoundException", "해당 토큰을 찾을 수 없습니다.")
	hq.Get("/v2/admin/tokens/"+id).Fails(t, 404, "ResourceNotFoundException", "해당 토큰을 찾을 수 없습니다.")

	// An expired token is rejected.
	var created struct{ Token string }
	until := time.Now().Add(time.Hour)
	hq.Post("/v2/admin/tokens", map[string]any{"name": "b", "scopes": []string{"read"}, "expiresAt": until.Format(time.RFC3339)}).OK(t).Into(t, &created)
	header = http.Header{"Authorization": {"bearer " + created.Token}}
	nobody.Send("GET", "/v2/me", nil, header).Envelope(t).OK(t)
	if _, err := s.DB.Pool.Exec(t.Context(), `update api_token set expires_at = now() - interval '1 second'`); err != nil {
		t.Fatal(err)
	}
	nobody.Send("GET", "/v2/me", nil, header).Envelope(t).Fails(t, 401, "AuthenticationError", badToken)
}

// A connection that was opened with a token ends once the token is revoked or expires. Sessions are checked at each ping, which
// is later.
func TestTokenOfAnOpenConnection(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	hq := s.Admin(t, "hq", "hq-demo")
	end := map[string]func(id string){
		"revoked": func(id string) { hq.Delete("/v2/admin/tokens/"+id, nil).OK(t) },
		"expired": func(id string) {
			if _, err := s.DB.Pool.Exec(t.Context(), `update api_token set expires_at = now() - interval '1 second' where id::text = $1`, id); err != nil {
				t.Fatal(err)
			}
		},
	}
	for how, end := range end {
		id, header := newToken(t, hq, []string{"read"}, []string{"gangnam"})
		address := strings.Replace(s.URL, "http", "ws", 1) + "/v2/admin/live?branch=gangnam&date=2036-11-25"
		conn, answer, err := websocket.DefaultDialer.DialContext(t.Context(), address, header)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		defer conn.Close()
		end(id)
		_ = conn.SetReadDeadline(time.Now().Add(15 * time.Second))
		for err == nil {
			_, _, err = conn.ReadMessage()
		}
		if !websocket.IsCloseError(err, websocket.ClosePolicyViolation) {
			t.Errorf("%s: got %v, want the end of the connection", how, err)
		}
	}
}

// A repeated POST with an Idempotency-Key is executed once; its answer includes the cookie of the hold.
func TestIdempotencyKey(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	hq := s.Admin(t, "hq", "hq-demo")
	_, token := newToken(t, hq, []string{"book"}, nil)
	send := func(key string, body any) servicetest.Answer {
		header := token.Clone()
		header["Idempotency-Key"] = []string{key}
		return s.Client(t).Send("POST", "/admin/reservation", body, header).Envelope(t)
	}
	start := slot(s, 3*time.Hour)
	body := holdBody(2, start, time.Hour)

	// Of concurrent repetitions one is executed; the others receive its answer or 409 while it has none.
	var group sync.WaitGroup
	answers := make([]servicetest.Answer, 8)
	for i := range answers {
		group.Go(func() { answers[i] = send("one", body) })
	}
	group.Wait()
	for _, answer := range answers {
		if answer.HTTP != 200 && answer.ErrorType != "ResourceConflictException" {
			t.Errorf("answer %d: %s", answer.HTTP, answer.Raw)
		}
	}
	first, again := send("one", body).OK(t), send("one", body).OK(t)
	if first.Header.Get("Set-Cookie") == "" || first.Header.Get("Set-Cookie") != again.Header.Get("Set-Cookie") || again.Header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("headers %v and %v", first.Header, again.Header)
	}
	if n := only(t, s, `select count(*)::text from reservation where source = 'ADMIN'`); n != "1" {
		t.Errorf("%s holds", n)
	}
	send("one", holdBody(3, start, time.Hour)).Fails(t, 409, "SettingConflictException", "같은 Idempotency-Key로 다른 요청을 이미 보냈습니다.")
	send("two", body).Fails(t, 409, "ResourceAlreadyExistException", "")
	// A rejected request frees its key.
	send("two", holdBody(3, start, time.Hour)).OK(t)
	send("a key with spaces", body).Fails(t, 400, "IllegalArguemntError", "Idempotency-Key 헤더는 공백 없는 1자에서 255자의 ASCII 문자여야 합니다.")
	// Another principal may use the same key.
	hq.Send("POST", "/admin/reservation", holdBody(4, start, time.Hour), http.Header{"Idempotency-Key": {"one"}}).Envelope(t).OK(t)
	// A guest may use keys too.
	guest := s.Client(t)
	hold := func() servicetest.Answer {
		return guest.Send("POST", "/reservation", holdBody(5, start, time.Hour), http.Header{"Idempotency-Key": {"one"}}).Envelope(t).OK(t)
	}
	if first, again := hold(), hold(); first.Header.Get("Set-Cookie") != again.Header.Get("Set-Cookie") {
		t.Error("the guest's hold was taken twice")
	}
	// A request whose answer was lost is not repeated.
	if _, err := s.DB.Pool.Exec(t.Context(), `update idempotent_request set answer = null where key = $1`, "two"); err != nil {
		t.Fatal(err)
	}
	send("two", holdBody(3, start, time.Hour)).Fails(t, 409, "ResourceConflictException", "")
	// The answers are sealed.
	var stored []byte
	if err := s.DB.Pool.QueryRow(t.Context(), `select answer from idempotent_request where answer is not null limit 1`).Scan(&stored); err != nil || json.Valid(stored) {
		t.Errorf("stored %q, %v", stored, err)
	}
}
