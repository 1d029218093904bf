package discord

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	seed = func() ed25519.PrivateKey {
		b := make([]byte, ed25519.SeedSize)
		for i := range b {
			b[i] = byte(i)
		}
		return ed25519.NewKeyFromSeed(b)
	}()
	published = "03a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8"
	signedAt  = time.Unix(1700000000, 0)
)

// backend is a Backend with three branches and configurable results.
type backend struct {
	delay  time.Duration
	err    error
	closed bool // doors do not open

	mu      sync.Mutex
	unlocks []UnlockRequest
	called  int
}

func (d *backend) act(ctx context.Context) error {
	d.mu.Lock()
	d.called++
	d.mu.Unlock()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d.delay):
		return d.err
	}
}

func (d *backend) Branches(ctx context.Context) ([]Branch, error) {
	return []Branch{{"gangnam", "강남점"}, {"hongdae", "홍대점"}, {"jamsil", "잠실점"}}, d.act(ctx)
}

func (d *backend) Reservations(ctx context.Context, branch string) ([]Reservation, error) {
	at := time.Date(2023, 11, 15, 15, 0, 0, 0, time.FixedZone("KST", 9*60*60))
	if branch == "hongdae" {
		return nil, d.act(ctx)
	}
	return []Reservation{
		{2, at, at.Add(time.Hour), "홍길동", "결제 완료"},
		{3, at.Add(-16 * time.Hour), at.Add(10 * time.Hour), "@everyone **<@1>**", "입금 대기"},
	}, d.act(ctx)
}

func (d *backend) Rooms(ctx context.Context, _ string) ([]Room, error) {
	at := time.Date(2023, 11, 15, 16, 0, 0, 0, time.FixedZone("KST", 9*60*60))
	return []Room{{1, true, true, at}, {2, true, false, at}, {3, true, false, time.Time{}}, {4, false, false, at}, {5, true, true, at.AddDate(0, 0, 1)}}, d.act(ctx)
}

func (d *backend) Unlock(ctx context.Context, r UnlockRequest) (bool, error) {
	d.mu.Lock()
	d.unlocks = append(d.unlocks, r)
	d.mu.Unlock()
	return !d.closed, d.act(ctx)
}

func (d *backend) Why(ctx context.Context, _ string, _ int) (string, error) {
	return "지금 1번 룸 문을 열 수 있어요.", d.act(ctx)
}

func (d *backend) Readings(ctx context.Context, _ string) ([]Reading, error) {
	return []Reading{{"로비", 23.46, 41.2}, {"1번 룸", -0.5, 100}}, d.act(ctx)
}

// platform is a fake of Discord's API that records the requests.
type platform struct {
	mu      sync.Mutex
	calls   []string
	answers []func() *http.Response
}

func (p *platform) RoundTrip(r *http.Request) (*http.Response, error) {
	b, _ := io.ReadAll(r.Body)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = append(p.calls, r.Method+" "+r.URL.String()+" "+r.Header.Get("Authorization")+" "+string(b))
	if len(p.answers) > 0 {
		next := p.answers[0]
		p.answers = p.answers[1:]
		return next(), nil
	}
	return reply(200, `{}`)(), nil
}

func reply(status int, body string) func() *http.Response {
	return func() *http.Response {
		return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader(body)), Header: http.Header{}}
	}
}

func newHandler(d *backend, p *platform) *Handler {
	return &Handler{
		PublicKey: seed.Public().(ed25519.PublicKey),
		Users:     Users{"1": {"*"}, "2": {"gangnam"}},
		Backend:   d,
		Client:    &Client{HTTP: &http.Client{Transport: p}},
		Log:       slog.New(slog.DiscardHandler),
		Now:       func() time.Time { return signedAt },
	}
}

func signed(body string, at time.Time) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/discord/interactions", strings.NewReader(body))
	timestamp := fmt.Sprint(at.Unix())
	r.Header.Set("X-Signature-Timestamp", timestamp)
	r.Header.Set("X-Signature-Ed25519", hex.EncodeToString(ed25519.Sign(seed, []byte(timestamp+body))))
	return r
}

func do(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// content sends a command and returns the type and text of the answer.
func content(t *testing.T, h *Handler, body string) (kind int, text string) {
	t.Helper()
	w := do(h, signed(body, signedAt))
	if w.Code != 200 || w.Header().Get("Content-Type") != "application/json" {
		t.Fatalf("%d %s: %s", w.Code, w.Header().Get("Content-Type"), w.Body)
	}
	var answer struct {
		Type int
		Data struct {
			Content         string
			Flags           int
			AllowedMentions struct{ Parse []string } `json:"allowed_mentions"`
		}
	}
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
		t.Fatal(err)
	}
	if answer.Data.Flags != ephemeral || answer.Data.AllowedMentions.Parse == nil || len(answer.Data.AllowedMentions.Parse) != 0 {
		t.Errorf("everybody sees or is pinged by %s", w.Body)
	}
	return answer.Type, answer.Data.Content
}

func ask(user, command, branch, more string) string {
	return fmt.Sprintf(`{"id":"i-%s-%s-%s","application_id":"app","token":"tok","type":2,"guild_id":"g","member":{"user":{"id":%q}},
		"data":{"name":%q,"options":[{"name":"지점","type":3,"value":%q}%s]}}`, user, command, branch, user, command, branch, more)
}

func TestPing(t *testing.T) {
	t.Parallel()
	w := do(newHandler(&backend{}, &platform{}), signed(`{"type":1}`, signedAt))
	if w.Code != 200 || strings.TrimSpace(w.Body.String()) != `{"type":1}` || w.Header().Get("Content-Type") != "application/json" {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
}

func TestOtherRequests(t *testing.T) {
	t.Parallel()
	h := newHandler(&backend{}, &platform{})
	for body, want := range map[string]int{
		`{"type":3,"data":{"custom_id":"x"}}`: 400, `{"type":99}`: 400, `{}`: 400, `[]`: 400, `{"type":"1"}`: 400, ``: 400,
		strings.Repeat(" ", maxBody+1): 413,
	} {
		if w := do(h, signed(body, signedAt)); w.Code != want {
			t.Errorf("%.40q: %d, want %d", body, w.Code, want)
		}
	}
	if w := do(h, httptest.NewRequest(http.MethodGet, "/discord/interactions", nil)); w.Code != 405 || w.Header().Get("Allow") != "POST" {
		t.Errorf("GET: %d", w.Code)
	}
}

func TestCommands(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, body string
		backend    *backend
		want       string
	}{
		{"reservations", ask("2", commandReservations, "gangnam", ""), &backend{},
			"**gangnam** 오늘 예약 2건\n`15:00~16:00` 2번 홍길동 (결제 완료)\n`어제 23:00~내일 01:00` 3번 everyone 1 (입금 대기)"},
		{"no reservations", ask("1", commandReservations, "hongdae", ""), &backend{}, "**hongdae** 오늘 예약이 없습니다."},
		{"rooms", ask("2", commandRooms, "gangnam", ""), &backend{},
			"**gangnam** 룸 상태\n1번: 이용 중, 16:00까지\n2번: 비어 있음, 다음 예약 16:00\n3번: 비어 있음\n4번: 사용 안 함\n5번: 이용 중, 내일 16:00까지"},
		{"readings", ask("2", commandReadings, "gangnam", ""), &backend{}, "**gangnam** 온도와 습도\n로비: 23.5°C, 41%\n1번 룸: -0.5°C, 100%"},
		{"front doors", ask("2", commandUnlock, "gangnam", ""), &backend{}, "**gangnam** 현관 문을 열었습니다."},
		{"room", ask("2", commandUnlock, "gangnam", `,{"name":"룸","type":4,"value":3}`), &backend{}, "**gangnam** 3번 룸 문을 열었습니다."},
		{"stuck", ask("2", commandUnlock, "gangnam", ""), &backend{closed: true}, "**gangnam** 현관 문을 열지 못했습니다. 비상 번호는 관리자 화면에서 확인해 주세요."},
		{"room that is not a number", ask("2", commandUnlock, "gangnam", `,{"name":"룸","type":4,"value":"x"}`), &backend{}, "룸 번호가 올바르지 않습니다."},
		{"room 0", ask("2", commandUnlock, "gangnam", `,{"name":"룸","type":4,"value":0}`), &backend{}, "룸 번호가 올바르지 않습니다."},
		{"unknown command", ask("2", "폭파", "gangnam", ""), &backend{}, "알 수 없는 명령입니다."},
		{"refused", ask("2", commandUnlock, "gangnam", ""), &backend{err: fmt.Errorf("unlock: %w", Refusal("룸을 찾을 수 없습니다."))}, "룸을 찾을 수 없습니다."},
		{"broken", ask("2", commandUnlock, "gangnam", ""), &backend{err: errors.New("pq: password of yeolda")}, "일시적인 오류가 발생했습니다."},
		{"direct message", strings.Replace(ask("2", commandRooms, "gangnam", ""), `"member":{"user":{"id":"2"}}`, `"user":{"id":"2"}`, 1), &backend{}, "**gangnam** 룸 상태\n1번: 이용 중, 16:00까지\n2번: 비어 있음, 다음 예약 16:00\n3번: 비어 있음\n4번: 사용 안 함\n5번: 이용 중, 내일 16:00까지"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			h := newHandler(tc.backend, &platform{})
			if kind, text := content(t, h, tc.body); kind != channelMessage || text != tc.want {
				t.Errorf("%d %q, want %q", kind, text, tc.want)
			}
			h.Wait()
		})
	}
}

func TestUnlockSaysWhoAsked(t *testing.T) {
	t.Parallel()
	d := &backend{}
	h := newHandler(d, &platform{})
	content(t, h, ask("2", commandUnlock, "gangnam", `,{"name":"룸","type":4,"value":3}`))
	if want := (UnlockRequest{"i-2-문열기-gangnam", "discord:2", "gangnam", 3}); len(d.unlocks) != 1 || d.unlocks[0] != want {
		t.Errorf("unlocked %+v", d.unlocks)
	}
	// Discord does not repeat interactions, so a repetition is a replay.
	if _, text := content(t, h, ask("2", commandUnlock, "gangnam", `,{"name":"룸","type":4,"value":3}`)); text != "이미 처리한 요청입니다." {
		t.Errorf("again: %q", text)
	}
	if len(d.unlocks) != 1 {
		t.Errorf("unlocked %d times", len(d.unlocks))
	}
	h.Wait()
}

func TestOnlyListedUsersInTheirBranches(t *testing.T) {
	t.Parallel()
	for _, command := range []string{commandReservations, commandRooms, commandUnlock, commandReadings} {
		for _, body := range []string{
			ask("2", command, "hongdae", ""), ask("2", command, "", ""), ask("2", command, "*", ""),
			ask("3", command, "gangnam", ""), ask("", command, "gangnam", ""),
			strings.Replace(ask("2", command, "gangnam", ""), `"member":{"user":{"id":"2"}},`, "", 1),
			// if both are present, the guild member is the user, not the user field
			strings.Replace(ask("3", command, "gangnam", ""), `"guild_id"`, `"user":{"id":"2"},"guild_id"`, 1),
		} {
			d := &backend{}
			h := newHandler(d, &platform{})
			if _, text := content(t, h, body); text != "이 명령을 사용할 권한이 없습니다." {
				t.Errorf("%s: %q", body, text)
			}
			h.Wait()
			if d.called != 0 {
				t.Errorf("%s: the backend was asked", body)
			}
		}
	}
}

func TestAutocomplete(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		user, typed string
		want        []string
	}{
		{"1", "", []string{"gangnam", "hongdae", "jamsil"}}, {"1", "홍대", []string{"hongdae"}}, {"1", "GANG", []string{"gangnam"}},
		{"2", "", []string{"gangnam"}}, {"2", "hong", nil}, {"3", "", nil},
	} {
		body := strings.Replace(ask(tc.user, commandRooms, tc.typed, ""), `"type":2`, `"type":4`, 1)
		w := do(newHandler(&backend{}, &platform{}), signed(body, signedAt))
		var answer struct {
			Type int
			Data struct{ Choices []choice }
		}
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, c := range answer.Data.Choices {
			got = append(got, c.Value)
		}
		if answer.Type != autocompleteResult || answer.Data.Choices == nil || !slices.Equal(got, tc.want) {
			t.Errorf("%s %q: %s", tc.user, tc.typed, w.Body)
		}
	}
}

// If a command takes longer than patience, the result arrives as a follow-up.
func TestLateAnswers(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		delay  time.Duration
		kind   int
		answer string
	}{
		{patience - time.Millisecond, channelMessage, ""},
		{7 * time.Second, deferredMessage, "**gangnam** 현관 문을 열었습니다."},
		{time.Minute, deferredMessage, "시간이 초과되었습니다. 결과를 확인할 수 없습니다."},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := &platform{}
			h := newHandler(&backend{delay: tc.delay}, p)
			start := time.Now()
			kind, _ := content(t, h, ask("2", commandUnlock, "gangnam", ""))
			if took := time.Since(start); kind != tc.kind || took > patience {
				t.Errorf("%v: kind %d after %v", tc.delay, kind, took)
			}
			h.Wait()
			if tc.answer == "" {
				if len(p.calls) != 0 {
					t.Errorf("%v: followed up %q", tc.delay, p.calls)
				}
				return
			}
			want := `PATCH https://discord.com/api/v10/webhooks/app/tok/messages/@original  {"content":"` + tc.answer + `","allowed_mentions":{"parse":[]}}`
			if len(p.calls) != 1 || p.calls[0] != want {
				t.Errorf("%v: followed up %q\nwant %q", tc.delay, p.calls, want)
			}
		})
	}
}

func TestParseUsers(t *testing.T) {
	t.Parallel()
	u, err := ParseUsers(map[string]string{"100": "*", "200": "gangnam, hongdae"})
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		id, branch string
		want       bool
	}{{"100", "jamsil", true}, {"200", "gangnam", true}, {"200", "hongdae", true}, {"200", "jamsil", false}, {"300", "gangnam", false}, {"", "gangnam", false}, {"100", "", false}} {
		if u.allows(tc.id, tc.branch) != tc.want {
			t.Errorf("%s in %s: %v", tc.id, tc.branch, !tc.want)
		}
	}
	for _, setting := range []map[string]string{{"": "*"}, {"hong": "*"}, {"100": ""}, {"100": "gangnam,"}} {
		if _, err := ParseUsers(setting); err == nil {
			t.Errorf("took %v", setting)
		}
	}
}

func TestLongAnswersAreCut(t *testing.T) {
	t.Parallel()
	if m := say(strings.Repeat("가", 3000)); len([]rune(m.Content)) != maxContent || !strings.HasSuffix(m.Content, "…") {
		t.Errorf("%d characters", len([]rune(m.Content)))
	}
}

func TestLogsHoldNoToken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		p := &platform{answers: []func() *http.Response{reply(404, `{}`)}}
		h := newHandler(&backend{delay: 5 * time.Second}, p)
		h.Log = slog.New(slog.NewTextHandler(&log, nil))
		content(t, h, strings.Replace(ask("2", commandUnlock, "gangnam", ""), `"tok"`, `"secret-token"`, 1))
		h.Wait()
		if !strings.Contains(log.String(), "late answer") || strings.Contains(log.String(), "secret-token") {
			t.Errorf("logged %s", log.String())
		}
	})
}

func FuzzInteraction(f *testing.F) {
	for _, body := range []string{`{"type":1}`, ask("2", commandUnlock, "gangnam", `,{"name":"룸","type":4,"value":3}`),
		strings.Replace(ask("1", commandRooms, "h", ""), `"type":2`, `"type":4`, 1), `{"type":2,"data":{"options":[{"name":"지점","value":{}}]}}`} {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		h := newHandler(&backend{}, &platform{})
		if w := do(h, signed(body, signedAt)); w.Code != 200 && w.Code != 400 && w.Code != 413 {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		h.Wait()
	})
}
