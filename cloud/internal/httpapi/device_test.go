package httpapi_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/yeolda/yeolda/cloud/internal/agenttest"
	"github.com/yeolda/yeolda/cloud/internal/servicetest"
	"github.com/yeolda/yeolda/protocol"
)

// unit returns an air conditioner with two selectable options, one of them at the top level.
func unit(name string) protocol.AirConditioner {
	return protocol.AirConditioner{Name: name, Options: []protocol.Option{
		{Name: "전원 끄기"},
		{Name: "냉방", Children: []protocol.Option{{Name: "24도", Children: []protocol.Option{{Name: "강풍", Children: []protocol.Option{{Name: "고정"}}}}}}},
	}}
}

// tree waits until the service returns the wanted inventory of a branch.
func tree(t *testing.T, c *servicetest.Client, branch, want string) {
	t.Helper()
	var got json.RawMessage
	for limit := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		c.Get("/admin/airconditioner/"+branch).OK(t).Into(t, &got)
		if string(got) == want {
			return
		}
		if time.Now().After(limit) {
			t.Fatal(cmp.Diff(want, string(got)))
		}
	}
}

func TestAirConditioner(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	manager, hq := s.Admin(t, "gangnam-manager", "gangnam-demo"), s.Admin(t, "hq", "hq-demo")
	tree(t, manager, "gangnam", `[]`)
	a := connectAgent(t, s, "gangnam", protocol.Inventory{AirConditioners: []protocol.AirConditioner{unit("거실")}})
	off := protocol.LeafID("gangnam", "거실", "전원 끄기")
	cool := protocol.LeafID("gangnam", "거실", "냉방", "24도", "강풍", "고정")
	documented := `[{"name":"전원 끄기","airconditioner_id":"` + off + `","children":null},` +
		`{"name":"냉방","airconditioner_id":null,"children":[{"name":"24도","airconditioner_id":null,"children":[` +
		`{"name":"강풍","airconditioner_id":null,"children":[{"name":"고정","airconditioner_id":"` + cool + `","children":null}]}]}]}]`
	tree(t, manager, "gangnam", documented)

	if answer := manager.Post("/admin/airconditioner/"+cool, nil).OK(t); string(answer.Data) != "null" {
		t.Errorf("data %s", answer.Data)
	}
	if sent := a.Commands(); len(sent) != 1 || sent[0] != cool {
		t.Errorf("sent %v", sent)
	}
	var outcome, by string
	err := s.DB.Pool.QueryRow(t.Context(), `select outcome, requested_by from airconditioner_command where option_id = $1`, cool).Scan(&outcome, &by)
	if err != nil || outcome != "sent" || by != "admin:gangnam-manager" {
		t.Errorf("logged %q by %q, %v", outcome, by, err)
	}

	const unavailable = "지점 장치가 응답하지 않습니다."
	a.Fail(agenttest.Faults{Outcome: protocol.Failed})
	manager.Post("/admin/airconditioner/"+off, nil).Fails(t, 503, "DeviceUnavailableException", unavailable)
	a.Close()
	for online := true; online; time.Sleep(10 * time.Millisecond) { // the broker reports the disconnection asynchronously
		var devices struct{ Online bool }
		manager.Get("/v2/admin/branches/gangnam/devices").OK(t).Into(t, &devices)
		online = devices.Online
	}
	manager.Post("/admin/airconditioner/"+off, nil).Fails(t, 503, "DeviceUnavailableException", unavailable)
	tree(t, manager, "gangnam", documented) // also while the agent is disconnected

	manager.Post("/admin/airconditioner/unknown", nil).Fails(t, 404, "ResourceNotFoundException", "")
	connectAgent(t, s, "hongdae", protocol.Inventory{AirConditioners: []protocol.AirConditioner{
		{Name: "1호", Options: []protocol.Option{{Name: "끄기"}}}, {Name: "2호", Options: []protocol.Option{{Name: "끄기"}}},
	}})
	first, second := protocol.LeafID("hongdae", "1호", "끄기"), protocol.LeafID("hongdae", "2호", "끄기")
	tree(t, hq, "hongdae", `[{"name":"1호","airconditioner_id":null,"children":[{"name":"끄기","airconditioner_id":"`+first+`","children":null}]},`+
		`{"name":"2호","airconditioner_id":null,"children":[{"name":"끄기","airconditioner_id":"`+second+`","children":null}]}]`)
	manager.Post("/admin/airconditioner/"+first, nil).Fails(t, 403, "AuthorizationException", "해당 지점에 접근 권한이 없습니다.")
	manager.Get("/admin/airconditioner/hongdae").Fails(t, 403, "AuthorizationException", "")
	hq.Get("/admin/airconditioner/busan").Fails(t, 404, "ResourceNotFoundException", "")
	hq.Post("/admin/airconditioner/"+second, nil).OK(t)
}

func TestThermoHygrometer(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	manager, hq := s.Admin(t, "gangnam-manager", "gangnam-demo"), s.Admin(t, "hq", "hq-demo")
	const unavailable = "지점 장치가 응답하지 않습니다."
	manager.Post("/admin/thermo-hygrometer/gangnam", nil).Fails(t, 503, "DeviceUnavailableException", unavailable)
	a := connectAgent(t, s, "gangnam", protocol.Inventory{Sensors: []string{"로비", "1번 룸"}},
		protocol.Reading{Location: "로비", Celsius: 21.5, RelativeHumidity: 40}, protocol.Reading{Location: "1번 룸", Celsius: -3, RelativeHumidity: 55.25})
	waitOnline(t, a)
	read := func() string { return string(manager.Post("/admin/thermo-hygrometer/gangnam", nil).OK(t).Data) }
	want := `{"infoList":[{"location":"로비","thermometer":21.5,"hygrometer":40},{"location":"1번 룸","thermometer":-3,"hygrometer":55.25}]}`
	if got := read(); got != want {
		t.Error(cmp.Diff(want, got))
	}
	a.Fail(agenttest.Faults{DeadSensors: []string{"로비"}})
	want = `{"infoList":[{"location":"1번 룸","thermometer":-3,"hygrometer":55.25}]}`
	if got := read(); got != want {
		t.Error(cmp.Diff(want, got))
	}
	a.Fail(agenttest.Faults{DeadSensors: []string{"로비", "1번 룸"}})
	if got := read(); got != `{"infoList":[]}` {
		t.Errorf("got %s", got)
	}
	a.Fail(agenttest.Faults{NoAnswer: true})
	began := time.Now()
	manager.Post("/admin/thermo-hygrometer/gangnam", nil).Fails(t, 503, "DeviceUnavailableException", unavailable)
	if took := time.Since(began); took < protocol.CommandTTL {
		t.Errorf("gave up after %v, want %v", took, protocol.CommandTTL)
	}
	manager.Post("/admin/thermo-hygrometer/hongdae", nil).Fails(t, 403, "AuthorizationException", "")
	hq.Post("/admin/thermo-hygrometer/busan", nil).Fails(t, 404, "ResourceNotFoundException", "")
}
