package httpapi_test

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/config"
	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

// The headquarters adds a receiver, which receives the events of a purchase from the running service.
func TestWebhooks(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t, func(set *config.Settings) {
		set.Webhooks.Allow = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	})
	received := make(chan string, 100)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { received <- r.Header.Get("webhook-id") }))
	t.Cleanup(receiver.Close)
	hq := s.Admin(t, "hq", "hq-demo")
	for body, message := range map[string]string{
		`{"url":"http://10.0.0.1/"}`:                          "웹훅 주소(url)는 공개된 https 주소여야 합니다.",
		`{"url":"https://127.0.0.1:65536/"}`:                  "웹훅 주소(url)는 공개된 https 주소여야 합니다.",
		`{"url":"` + receiver.URL + `","types":["money.in"]}`: "이벤트 종류(types) 값이 올바르지 않습니다.",
	} {
		hq.Post("/v2/admin/webhooks", body).Fails(t, 400, "IllegalArguemntError", message)
	}
	hq.Post("/v2/admin/webhooks", map[string]any{"url": receiver.URL, "branches": []string{"busan"}}).Fails(t, 404, "ResourceNotFoundException", "")
	var created struct{ ID, Secret string }
	hq.Post("/v2/admin/webhooks", map[string]any{"url": receiver.URL, "types": []string{"reservation.hold"}}).OK(t).Into(t, &created)
	s.Client(t).Post("/reservation", holdBody(1, slot(s, 3*time.Hour), time.Hour)).OK(t)
	event := <-received
	path := "/v2/admin/webhooks/" + created.ID
	hq.Post(path+"/replay", map[string]any{"after": "0"}).OK(t)
	if again := <-received; again != event {
		t.Errorf("replayed %s, want %s", again, event)
	}
	hq.Post(path+"/replay", map[string]any{"after": "x"}).Fails(t, 400, "IllegalArguemntError", "")
	hq.Post(path+"/replay", map[string]any{}).Fails(t, 400, "IllegalArguemntError", "")
	hq.Post(path+"/replay", map[string]any{"after": 1 << 40}).Fails(t, 410, "ResourceValidTimePassedException", "")
	var list struct {
		Deliveries []struct{ Event, Type, State string }
	}
	hq.Get(path+"/deliveries").OK(t).Into(t, &list)
	if len(list.Deliveries) != 1 || list.Deliveries[0].Event != event || list.Deliveries[0].Type != "reservation.hold" {
		t.Errorf("deliveries %+v", list)
	}
	hq.Patch(path, map[string]any{"enabled": false}).OK(t)
	var webhooks struct{ Webhooks []struct{ Enabled bool } }
	hq.Get("/v2/admin/webhooks").OK(t).Into(t, &webhooks)
	if len(webhooks.Webhooks) != 1 || webhooks.Webhooks[0].Enabled {
		t.Errorf("webhooks %+v", webhooks)
	}
	hq.Delete(path, nil).OK(t)
	hq.Get(path+"/deliveries").Fails(t, 404, "ResourceNotFoundException", "해당 웹훅을 찾을 수 없습니다.")
	hq.Delete("/v2/admin/webhooks/x", nil).Fails(t, 404, "ResourceNotFoundException", "")
}

// A token with the scope read adds webhooks and changes those, but not what the headquarters or another token has added. The
// scope book permits that.
func TestWebhooksOfTokens(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	hq, program := s.Admin(t, "hq", "hq-demo"), s.Client(t)
	_, reader := newToken(t, hq, []string{"read"}, nil)
	_, other := newToken(t, hq, []string{"read"}, nil)
	_, booker := newToken(t, hq, []string{"read", "book"}, nil)
	add := func(header http.Header) servicetest.Answer {
		return program.Send("POST", "/v2/admin/webhooks", map[string]any{"url": "https://93.184.216.34/", "types": []string{"refund"}}, header).Envelope(t)
	}
	var foreign, own struct{ ID string }
	hq.Post("/v2/admin/webhooks", map[string]any{"url": "https://93.184.216.34/", "types": []string{"refund"}}).OK(t).Into(t, &foreign)
	add(reader).OK(t).Into(t, &own)
	changes := []struct {
		method, path string
		body         any
	}{
		{"PATCH", "", map[string]any{"enabled": false}},
		{"POST", "/replay", map[string]any{"after": "0"}},
		{"DELETE", "", nil},
	}
	for _, change := range changes {
		send := func(id string, header http.Header) servicetest.Answer {
			return program.Send(change.method, "/v2/admin/webhooks/"+id+change.path, change.body, header).Envelope(t)
		}
		send(foreign.ID, reader).Fails(t, 403, "AuthorizationError", scopeMissing)
		send(own.ID, other).Fails(t, 403, "AuthorizationError", "")
		send("999999", reader).Fails(t, 404, "ResourceNotFoundException", "")
		send(own.ID, reader).OK(t)
		send(foreign.ID, booker).OK(t)
	}
	// Each change goes to every receiver, so their number is limited.
	for range 50 {
		add(reader).OK(t)
	}
	add(reader).Fails(t, 400, "IllegalArguemntError", "웹훅은 50개까지 추가할 수 있습니다.")
}
