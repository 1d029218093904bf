//go:build debian

package debian

import (
	"net"
	"strings"
	"testing"
)

// TestSettings gives the machine settings from the service: those with which it does not reach the service are tried and rolled back,
// others stay in use. For each restart the agent replaces its process, which systemd does not notice. The doors are pressed by the staff after
// each change.
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
	process := m.process()

	_, port, err := net.SplitHostPort(c.mqtt)
	if err != nil {
		t.Fatal(err)
	}
	set(strings.Replace(text, "broker.test:"+port, "broker.test:9", 1)) // nothing listens there
	c.await("the settings rolled back", `(?m)^2 +rolled-back`, list...)
	c.await("the agent online", `active +yes `, "agent", "list")
	if n := m.restarts(); n != "2" {
		t.Errorf("the agent has started %s times with other settings, want 2: with the new ones, and with the previous ones", n)
	}
	c.opens()

	set(text + "\n# the hall\n")
	c.await("the settings in use", `(?m)^3 +in-use`, list...)
	if n := m.restarts(); n != "3" {
		t.Errorf("the agent has started %s times with other settings, want 3", n)
	}
	if got := m.process(); got != process {
		t.Errorf("systemd has started the agent again: %s, before %s", got, process)
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

// restarts returns how often the agent has started with other settings since the machine was booted.
func (m *machine) restarts() string {
	m.t.Helper()
	return m.run("journalctl --no-pager -b -o cat -u yeolda-agent | grep -c 'starting again with other settings'")
}

// process returns the identity of the agent's process for systemd.
func (m *machine) process() string {
	m.t.Helper()
	return m.run("systemctl show -p ExecMainStartTimestampMonotonic --value yeolda-agent")
}
