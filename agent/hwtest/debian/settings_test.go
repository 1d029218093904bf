//go:build debian

package debian

import (
	"net"
	"strings"
	"testing"
)

// TestSettings gives the machine settings from the service: those with which it does not reach the service are tried and rolled back,
// others stay in use. The agent ends for each restart and systemd starts it again. The doors are pressed by the staff after each change.
func TestSettings(t *testing.T) {
	m := emptyMachine(t)
	c := newCloud(m)
	m.write("release-keys", c.yeolda("agent", "release", "key", m.path("release.key")))
	m.build("1.0.0")
	c.start()
	c.yeolda("agent", "enroll", branch, "--file", m.path("credentials"))
	m.image(c.mqtt)
	m.boot()
	username := m.run("sed -n s/^YEOLDA_AGENT_USERNAME=//p /etc/yeolda-agent/credentials")
	list := []string{"agent", "settings", "list", username}
	c.await("the settings of the machine in the service", `(?m)^1 +in-use`, list...)
	c.opens()
	text := c.yeolda("agent", "settings", "show", username)
	set := func(changed string) {
		t.Helper()
		m.write("changed.toml", changed)
		c.yeolda("agent", "settings", "set", username, m.path("changed.toml"))
	}
	started := m.started()

	_, port, err := net.SplitHostPort(c.mqtt)
	if err != nil {
		t.Fatal(err)
	}
	set(strings.Replace(text, "broker.test:"+port, "broker.test:9", 1)) // nothing listens there
	c.await("the settings rolled back", `(?m)^2 +rolled-back`, list...)
	c.await("the agent online", `active +yes `, "agent", "list")
	after := m.started()
	if after == started {
		t.Error("systemd has not started the agent again")
	}
	c.opens()

	set(text + "\n# the hall\n")
	c.await("the settings in use", `(?m)^3 +in-use`, list...)
	if m.started() == after {
		t.Error("systemd has not started the agent again with the settings that work")
	}
	c.opens()
	if got := m.run("systemctl show -p Result -p ActiveState --value yeolda-agent"); got != "success\nactive" && got != "active\nsuccess" {
		t.Errorf("the unit is %q, want it active without a failure", got)
	}

	// They outlast a loss of the power.
	m.cut()
	m.boot()
	c.await("the agent online", `active +yes `, "agent", "list")
	c.await("the settings in use", `(?m)^3 +in-use`, list...)
	c.opens()
}

// started returns the identity of the agent's process.
func (m *machine) started() string {
	m.t.Helper()
	return m.run("systemctl show -p ExecMainStartTimestampMonotonic --value yeolda-agent")
}
