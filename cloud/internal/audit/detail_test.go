package audit

import "testing"

func TestDetailsAboutGuestsHoldNoText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		action string
		detail any
		want   string
	}{
		{"reservation.move", nil, `{}`},
		{"reservation.cancel", map[string]any(nil), `{}`},
		{"reservation.move", map[string]any{"room": 2, "start": "202611221200", "request": "010f0a9c-8a55-4a3f-9d3e-2f4f6a1f4f0d"},
			`{"request":"010f0a9c-8a55-4a3f-9d3e-2f4f6a1f4f0d","room":2,"start":"202611221200"}`},
		{"reservation.move", map[string]any{"reason": "박지울(010-8888-0001) 님 요청"}, `{"reason":"(omitted)"}`},
		{"reservation.move", map[string]any{"reason": "guest asked"}, `{"reason":"(omitted)"}`},
		{"message.resend", map[string]any{"to": []string{"minji@example.com", "010-1234-5678", "+821012345678", "01012345678"}},
			`{"to":["(omitted)","(omitted)","(omitted)","(omitted)"]}`},
		// A request id that begins like a phone number, as one of 410 does.
		{"door.unlock", map[string]any{"requestId": "017fb260-1336-4421-9344-94a7d083d20b"}, `{"requestId":"017fb260-1336-4421-9344-94a7d083d20b"}`},
		{"settings.change", map[string]any{"name": "강남점"}, `{"name":"강남점"}`},
		{"company.change", map[string]any{"nameEn": "Moon room"}, `{"nameEn":"Moon room"}`},
		{"entity.change", map[string]any{"company": map[string]any{"name": "주식회사 서울"}}, `{"company":{"name":"주식회사 서울"}}`},
	} {
		got, err := Entry{Action: c.action, Detail: c.detail}.SafeDetail()
		if err != nil || string(got) != c.want {
			t.Errorf("%s %v: got %s (%v), want %s", c.action, c.detail, got, err, c.want)
		}
	}
}
