package toss

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

func TestParseEvent(t *testing.T) {
	t.Parallel()
	for name, body := range inputs(t, "webhook") {
		e, err := ParseEvent(body)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		golden(t, name+".golden", struct {
			Event
			Secret string
		}{e, e.secret})
	}
}

func TestParseEventRefusesWhatIsNoObject(t *testing.T) {
	t.Parallel()
	for _, body := range []string{``, `null`, `[]`, `"x"`, `{`, `{}{}`, strings.Repeat(" ", MaxWebhookBody) + `{}`} {
		if e, err := ParseEvent([]byte(body)); err == nil {
			t.Errorf("%.20q was taken for %+v", body, e)
		}
	}
}

func TestSecretMatches(t *testing.T) {
	t.Parallel()
	e, err := ParseEvent([]byte(`{"orderId":"o","secret":"ps_abc","status":"DONE"}`))
	if err != nil {
		t.Fatal(err)
	}
	for stored, want := range map[string]bool{"ps_abc": true, "ps_abd": false, "ps_ab": false, "": false} {
		if e.SecretMatches(stored) != want {
			t.Errorf("stored %q: %v, want %v", stored, !want, want)
		}
	}
	if (Event{}).SecretMatches("") {
		t.Error("no secret matches no secret")
	}
}

func TestEventKeepsItsSecretOutOfLogs(t *testing.T) {
	t.Parallel()
	e, err := ParseEvent([]byte(`{"orderId":"ord-1","secret":"ps_abc","status":"DONE"}`))
	if err != nil {
		t.Fatal(err)
	}
	var buf bytes.Buffer
	slog.New(slog.NewTextHandler(&buf, nil)).Info("webhook", "event", e)
	if !strings.Contains(buf.String(), "ord-1") || strings.Contains(buf.String(), "ps_abc") {
		t.Errorf("logged %s", buf.String())
	}
}

func FuzzParseEvent(f *testing.F) {
	for _, body := range inputs(f, "webhook") {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		e, err := ParseEvent(body)
		if err == nil && e.Kind != OtherEvent && e.OrderID == "" {
			t.Errorf("an event about no order: %+v", e)
		}
	})
}
