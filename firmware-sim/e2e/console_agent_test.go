package e2e

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eclipse/paho.golang/paho"

	"github.com/yeolda/yeolda/firmware-sim/proof/world"
	"github.com/yeolda/yeolda/protocol"
)

const (
	piBoot         = "00000000-0000-4000-8000-0000000005e7"
	firstSettings  = "[[door]]\ndevice = \"front_1\"\nrelay = { line = \"GPIO17\" }\n"
	secondSettings = firstSettings + "\n[[door]]\ndevice = \"room_1\"\nrelay = { line = \"GPIO99\" }\n"
	otherSettings  = "# 수리 기사\n" + firstSettings
)

// agentSettings edits the settings of the Pi of jamsil, whose reports the test sends: each state is shown without a reload. Nothing that
// is typed in is lost when another administrator comes first.
func agentSettings(t *testing.T, s *world.Stack, p *page) {
	const username, path = "agent-jamsil", "/v2/admin/agents/agent-jamsil/settings"
	p.expect("409")
	p.open("/console/jamsil/devices")
	p.press("설정 " + username)
	p.at("/console/jamsil/devices/" + username)
	p.see("서비스에 저장된 설정이 아직 없어요", "아직 연결된 적이 없어요", "저장된 버전이 없어요")
	c := credential{username, username + "-demo"}
	client := connectPi(t, s, c)
	report := func(status protocol.SettingsStatus) {
		t.Helper()
		publishPi(t, client, username, protocol.Inventory{}, status)
	}
	report(protocol.SettingsStatus{})
	p.see("연결됨")
	p.wait("no warning that moves the page", `!document.body.innerText.includes("고객이 문을 열 수 없어요")`)

	write := func(text string) {
		t.Helper()
		p.wait("the editor", `(() => { const e = document.querySelector("textarea.code"); if (!e) return false;
			e.value = `+quoted(text)+`; e.dispatchEvent(new Event("input", {bubbles: true})); return true })()`)
	}
	send := func() {
		t.Helper()
		p.press("변경 내용 확인", "장치에 보내기")
	}
	ended := func(n uint64, state protocol.SettingsState, detail string) protocol.SettingsStatus {
		return protocol.SettingsStatus{Version: 1, Highest: n, Ended: &protocol.SettingsOutcome{Version: n, State: state, Detail: detail}}
	}
	write(firstSettings)
	send()
	p.see("버전 1 대기", "장치에 보내고 있어요")
	report(protocol.SettingsStatus{Highest: 1, Trial: 1})
	p.see("버전 1 시험 중", "다시 시작했어요")
	report(protocol.SettingsStatus{Version: 1, Highest: 1})
	p.see("버전 1 사용 중")

	write(secondSettings)
	p.press("변경 내용 확인")
	p.see(`+ device = "room_1"`, "열고 있는 문이 없을 때")
	p.survey("console-agent-review")
	p.on(desktop).press("장치에 보내기")
	p.see("버전 2 대기")
	report(ended(2, protocol.SettingsRefused, "door room_1: relay: there is no line GPIO99"))
	p.see("버전 2 거부됨", "잘못을 찾아 쓰지 않았어요", "there is no line GPIO99")

	write(secondSettings + "# 밤 근무\n")
	p.press("변경 내용 확인")
	p.see("+ # 밤 근무")
	staff(t, s).must("PUT", path, map[string]any{"settings": otherSettings, "base": 2}, nil)
	p.press("장치에 보내기")
	p.see("작성하는 동안 다른 변경이 저장됐어요(버전 3, hq", "+ # 수리 기사")
	p.wait("the dialog is closed", `!document.querySelector("dialog[open]")`)
	p.press("내 내용으로 계속")
	send()
	p.see("버전 4 대기")
	report(ended(4, protocol.SettingsRolledBack, "not connected for 10s within 2m0s"))
	p.see("버전 4 되돌림", "제한 시간 안에 서비스에 연결되지 않아서", "not connected for 10s")
	if got := value[string](p, `document.querySelector("textarea.code").value`); got != secondSettings+"# 밤 근무\n" {
		t.Errorf("got %q in the editor, want what was typed in", got)
	}
	value[bool](p, `(scrollTo(0, 0), true)`)
	p.survey("console-agent")

	p.on(desktop).press("다시 쓰기 버전 3")
	p.see("지금 쓰는 버전 1에서 이렇게 바뀌어요", "+ # 수리 기사")
	p.press("장치에 보내기")
	p.see("버전 5 대기")
	p.wait("the version that is used again in the editor", `document.querySelector("textarea.code").value === `+quoted(otherSettings))
}

// replacePi enrols a Pi in the console that replaces the one of jamsil, whose settings it gets.
func replacePi(t *testing.T, s *world.Stack, p *page) {
	p.open("/console/jamsil/devices")
	p.see("고객이 문을 열 수 없어요") // the old one is away
	p.press("새 장치 등록")
	p.choose("교체할 장치", "agent-jamsil")
	p.see("새 장치가 agent-jamsil의 설정을 그대로 받아요")
	p.survey("console-devices-replace")
	p.on(desktop).press("등록 명령 만들기")
	p.see("장치를 기다리고 있어요")
	token := value[string](p, `document.querySelector("dialog pre").textContent.match(/-s -- (\S+)/)[1]`)
	var c struct{ Username, Password string }
	newBrowser(t, s).must("POST", "/v2/agent/enroll", map[string]string{"token": token}, &c)
	client := connectPi(t, s, credential{c.Username, c.Password})
	publishPi(t, client, c.Username, protocol.Inventory{}, protocol.SettingsStatus{})
	p.see(c.Username+" 등록됨", "문이 준비되면 agent-jamsil 대신")
	doors := []protocol.Door{{Device: "front_1", Kind: protocol.DoorFront}, {Device: "room_1", Kind: protocol.DoorRoom}, {Device: "room_2", Kind: protocol.DoorRoom}}
	publishPi(t, client, c.Username, protocol.Inventory{Doors: doors}, protocol.SettingsStatus{Version: 1, Highest: 1})
	p.see("agent-jamsil 교체 완료")
	p.press("닫기")
	p.open("/console/jamsil/devices/" + c.Username)
	p.see("사용 중인 장치", "버전 1 사용 중", "agent-jamsil에서 가져옴")
}

// settingsRollout changes the settings of all Pis that have some, and stops by hand.
func settingsRollout(p *page) {
	p.expect("400")
	p.open("/console/rollout")
	p.press("배포 시작", "설정 변경")
	p.fill("설정에서 바꿀 글", "GPIO44")
	p.fill("대신 쓸 글", "GPIO27")
	p.press("배포 시작")
	p.see("바꿀 글(change.old)이 있는 장치 설정이 없습니다.")
	p.fill("설정에서 바꿀 글", "GPIO17")
	p.press("배포 시작")
	p.see("설정 변경", "배포 중", "1 (1%)", "agent-jamsil-")
	p.press("배포 중지", "배포 중지")
	p.see("배포를 멈췄어요")
}

// agentLog opens the log of a simulated Pi in the console, has its doctor examine it, and closes the log.
func agentLog(p *page) {
	p.open("/console/gangnam/devices/agent-gangnam")
	p.press("로그 보기(10분)")
	p.see("까지 로그를 받아요", "남았어요")
	p.wait("a line of the log", `/ INFO \S/.test(document.querySelector(".log")?.textContent)`)
	p.press("진단")
	p.see("진단 결과", "relay room_1")
	p.press("10분 더 보기")
	p.survey("console-agent-log")
	p.on(desktop)
	if name, content := p.download("파일로 저장"); name != "agent-gangnam.log" || !strings.Contains(content, " INFO ") {
		p.t.Errorf("got the file %s: %.200s", name, content)
	}
	p.press("그만 받기")
	p.see("에 끝났어요", "로그 보기(10분)")
}

// connectPi connects as a Pi of jamsil until the test ends. Its heartbeats keep the connection.
func connectPi(t *testing.T, s *world.Stack, c credential) *paho.Client {
	t.Helper()
	client := connectAgent(t, mqttAddress(t, s), c.username, c, nil)
	began := time.Now()
	ctx, stop := context.WithCancel(t.Context())
	var beating sync.WaitGroup
	t.Cleanup(func() {
		stop()
		beating.Wait()
	})
	beating.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(protocol.HeartbeatInterval):
			}
			m := protocol.Heartbeat{BootID: piBoot, Connection: 1, UptimeMs: time.Since(began).Milliseconds()}
			_ = publishAs(ctx, client, c.username, m, false) // its connection ends when it is replaced
		}
	})
	return client
}

// publishPi publishes the status of a Pi of jamsil.
func publishPi(t *testing.T, client *paho.Client, username string, inventory protocol.Inventory, settings protocol.SettingsStatus) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	m := protocol.Status{State: protocol.Online, BootID: piBoot, Connection: 1, AgentVersion: "1.0.0", StartedAt: time.Now(), Inventory: &inventory, Settings: &settings}
	if err := publishAs(ctx, client, username, m, true); err != nil {
		t.Fatal(err)
	}
}

func publishAs(ctx context.Context, client *paho.Client, username string, m protocol.Message, retain bool) error {
	payload, err := protocol.Encode(m)
	if err != nil {
		return err
	}
	topic := protocol.Agent{Branch: "jamsil", Username: username}.Topic(m.Kind())
	_, err = client.Publish(ctx, &paho.Publish{Topic: topic, QoS: 1, Retain: retain, Payload: payload})
	return err
}
