//go:build debian

package debian

import (
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/yeolda/yeolda/agent/internal/brokertest"
	"github.com/yeolda/yeolda/protocol"
)

// settings are those of the branch, with the port of the broker. Its name is known to the machine's name server only. The pulses are
// as long as possible, because the machine is slow to ask.
const settings = `
broker = "mqtt://broker.test:%s"

[[door]]
device = "front_1"
pulse_ms = 10000
relay = { line = "GPIO17" }

[[door]]
device = "room_1"
pulse_ms = 10000
relay = { line = "GPIO4", active_low = true }

[[air_conditioner]]
name = "LG"
codes = "lg2"
transmitter = "rc-loopback"
`

// TestDebian causes the accidents of a Pi one after the other. After each, both doors drive their lines without a hand on the
// machine, beyond what caused the accident and what an administrator does to end it. HWTEST_ACCIDENT limits it to those whose name
// matches the expression; HWTEST_REST=1m measures the log in the states that last.
func TestDebian(t *testing.T) {
	chosen := regexp.MustCompile(os.Getenv("HWTEST_ACCIDENT"))
	m := newMachine(t)
	for i, accident := range []struct {
		name string
		run  func(*machine)
	}{
		{"cold boot of an image", coldBoot},
		{"typing error in the settings", typingError},
		{"vanished chip", vanishedChip},
		{"agent killed and hanging", killed},
		{"no service", noService},
		{"update that the release key has not signed", unsigned},
		{"update that ends at once", badUpdate},
		{"update that does not connect", deafUpdate},
		{"good update", goodUpdate},
		{"dead name server", deadNameServer},
		{"power cut during dpkg", powerCut},
	} {
		if i > 0 && !chosen.MatchString(accident.name) {
			continue
		}
		began := time.Now()
		if !t.Run(accident.name, func(t *testing.T) { m.t = t; accident.run(m) }) {
			m.t = t
			break
		}
		m.t = t
		t.Logf("%s: %v", accident.name, time.Since(began).Round(time.Second))
	}
}

// coldBoot starts the image, in which the package was installed while no systemd was running.
func coldBoot(m *machine) {
	m.boot()
	m.online()
	m.opens()
	if got := m.run("systemctl is-enabled yeolda-agent.service; stat -c '%G %a' /dev/gpiochip0 /dev/lirc0; stat -c '%U %a' /etc/yeolda-agent/credentials"); got !=
		"enabled\ngpio 660\nvideo 660\nyeolda-agent 600" {
		m.t.Errorf("got %q", got)
	}
	for _, test := range m.status.SelfTest {
		if !test.OK && !strings.HasPrefix(test.Name, "machine ") && !strings.HasPrefix(test.Name, "settings broker") {
			m.t.Errorf("self-test %+v", test)
		}
	}
	m.broker.Send(branch, protocol.ClimateCommand{RequestID: "00000000-0000-4000-9000-000000000001",
		AirConditionerID: protocol.LeafID(branch, "LG", "전원 끄기")})
	if result := next[protocol.ClimateResult](m); result.Outcome != protocol.ClimateSent {
		m.t.Errorf("infrared: got %+v", result)
	}
	// A dying SD card delays no pulse: the pages in use are locked, at least the program.
	if locked := m.number("awk '/VmLck/ {print $2}' /proc/$(systemctl show -P MainPID yeolda-agent)/status"); locked < 4096 {
		m.t.Errorf("%d kB of memory are locked", locked)
	}
	m.volume("cold boot and two presses")
	m.rest("cold boot")
}

// typingError restarts the agent with mistakes in a sensor, in a door, and with a file that is no TOML.
func typingError(m *machine) {
	m.run("for i in $(seq 600); do [ -e /var/lib/yeolda-agent/settings.toml ] && exit 0; sleep 0.1; done; exit 1")
	for _, mistake := range []string{
		`printf '[[sensor]]\nlocation = "hall"\nkind = "sht45"\n' >>`,
		`sed -i 's/relay = { line = "GPIO17" }/realy = { line = "GPIO17" }/'`,
		`sed -i 's/^device = "front_1"/device = "front_1/'`,
	} {
		m.run("cp /opt/settings.toml /etc/yeolda-agent/settings.toml && " + mistake + " /etc/yeolda-agent/settings.toml && systemctl restart yeolda-agent")
		m.online()
		if !m.fails("settings") {
			m.t.Errorf("%s: no self-test in %+v", mistake, m.status.SelfTest)
		}
		m.opens()
	}
	m.volume("three typing errors, six presses")
	m.rest("typing error")
	m.run("cp /opt/settings.toml /etc/yeolda-agent/settings.toml && systemctl restart yeolda-agent")
	m.online()
}

// fails reports whether a self-test whose name begins so has failed.
func (m *machine) fails(name string) bool {
	for _, test := range m.status.SelfTest {
		if !test.OK && strings.HasPrefix(test.Name, name) {
			return true
		}
	}
	return false
}

// vanishedChip removes the chip of both relays, as a driver that is bound anew does, for longer than the agent waits.
func vanishedChip(m *machine) {
	const live = "mountpoint -q /sys/kernel/config || mount -t configfs none /sys/kernel/config; echo %s >/sys/kernel/config/gpio-sim/pi/live"
	m.run(strings.Replace(live, "%s", "0", 1))
	m.awaitStatus("a failed self-test", func(protocol.Status) bool { return m.fails("relay front_1") && m.fails("relay room_1") })
	m.run("for i in $(seq 300); do [ $(systemctl show -P NRestarts yeolda-agent) = 0 ] || exit 0; sleep 0.2; done; exit 1")
	m.volume("vanished chip")
	m.rest("vanished chip")
	m.run(strings.Replace(live, "%s", "1", 1))
	m.awaitStatus("the relays", func(s protocol.Status) bool {
		return s.State == protocol.Online && !m.fails("relay")
	})
	m.opens()
	m.volume("chip that returned, two presses")
}

// killed kills the agent while a door is open, and stops it, which the watchdog ends.
func killed(m *machine) {
	m.run("systemctl kill -s KILL yeolda-agent")
	m.online()
	m.opens()
	m.run("systemctl kill -s STOP yeolda-agent")
	m.online()
	m.opens()
}

// noService cuts the network.
func noService(m *machine) {
	before := m.status.Connection
	pause := max(20*time.Second, resting())
	m.run(fmt.Sprintf("ip link set eth0 down; sleep %d; ip link set eth0 up; ip route replace default via 10.0.2.2", int(pause.Seconds())))
	m.awaitStatus("a new connection", func(s protocol.Status) bool { return s.State == protocol.Online && s.Connection > before })
	m.opens()
	m.volume(fmt.Sprint("no network for ", pause, ", two presses"))
}

// unsigned asks for a package that another key has signed.
func unsigned(m *machine) {
	name := m.derive("1.0.1", "#!/bin/sh\nexit 1\n")
	right := releaseKey
	releaseKey = brokertest.Key
	m.update("1.0.1", name)
	releaseKey = right
	m.awaitUpdate("1.0.1", protocol.UpdateFailed)
	m.opens()
	m.installed("1.0.0")
}

// awaitUpdate waits for the state of an update.
func (m *machine) awaitUpdate(version string, state protocol.UpdateState) {
	m.t.Helper()
	m.awaitStatus("the update "+string(state), func(s protocol.Status) bool {
		return s.State == protocol.Online && s.Update != nil && s.Update.Version == version && s.Update.State == state
	})
	m.t.Logf("%+v", *m.status.Update)
}

// installed checks the version that runs.
func (m *machine) installed(version string) {
	m.t.Helper()
	if m.status.AgentVersion != version {
		m.t.Errorf("version %s runs, want %s", m.status.AgentVersion, version)
	}
}

// badUpdate installs a version whose program ends at once.
func badUpdate(m *machine) {
	m.update("1.0.2", m.derive("1.0.2", "#!/bin/sh\nexit 1\n"))
	m.awaitUpdate("1.0.2", protocol.UpdateRolledBack)
	m.installed("1.0.0")
	m.opens()
}

// deafUpdate installs a version that runs but does not connect.
func deafUpdate(m *machine) {
	m.update("1.0.3", m.derive("1.0.3", "#!/bin/sh\nYEOLDA_BROKER_URL=mqtt://10.0.2.77:1 exec /usr/bin/yeolda-agent-real \"$@\"\n"))
	m.awaitUpdate("1.0.3", protocol.UpdateRolledBack)
	m.installed("1.0.0")
	m.opens()
}

// goodUpdate installs a version that works.
func goodUpdate(m *machine) {
	m.update("2.0.0", m.build("2.0.0"))
	m.awaitStatus("version 2.0.0", func(s protocol.Status) bool { return s.State == protocol.Online && s.AgentVersion == "2.0.0" })
	m.opens()
	m.run("for i in $(seq 600); do [ -e /var/lib/yeolda-agent-update/trial ] || exit 0; sleep 0.5; done; exit 1")
	if got := m.run("dpkg-query -W -f '${Version} ${Status}\n' yeolda-agent; /usr/bin/yeolda-agent version"); got != "2.0.0 install ok installed\nyeolda-agent 2.0.0" {
		m.t.Errorf("got %q", got)
	}
	m.opens()
}

// deadNameServer boots with a first name server that does not answer.
func deadNameServer(m *machine) {
	m.run("printf 'nameserver 127.0.0.3\nnameserver 127.0.0.2\n' >/etc/resolv.conf; sync")
	m.cut()
	began := time.Now()
	m.boot()
	m.logged = 0
	m.online()
	m.t.Logf("online %v after the power", time.Since(began).Round(time.Second))
	m.opens()
	m.volume("dead name server, cold boot and two presses")
	m.rest("dead name server")
	m.run("echo nameserver 127.0.0.2 >/etc/resolv.conf; sync")
}

// powerCut cuts the power at a random moment while dpkg installs an update, and boots again. When the cloud repeats its request, the
// version is installed.
func powerCut(m *machine) {
	for _, version := range []string{"3.0.0", "3.0.1"} {
		name := m.build(version)
		m.update(version, name)
		m.run("for i in $(seq 3000); do pidof dpkg >/dev/null && exit 0; sleep 0.05; done; exit 1")
		wait := time.Duration(rand.IntN(4000)) * time.Millisecond
		time.Sleep(wait)
		m.cut()
		m.boot()
		m.online()
		m.run(installerAtRest)
		runs := m.run("/usr/bin/yeolda-agent version")
		m.t.Logf("cut %v after dpkg began: %s runs, update %+v, dpkg: %s", wait, runs, m.status.Update,
			m.run("dpkg-query -W -f '${Version} ${Status}' yeolda-agent"))
		m.opens()
		if runs != "yeolda-agent "+version {
			m.update(version, name)
			m.awaitStatus("version "+version, func(s protocol.Status) bool { return s.State == protocol.Online && s.AgentVersion == version })
			m.opens()
		}
	}
}

// installerAtRest waits until no installation is requested or in progress, as after a power cut that undid the removal of its
// request, and the agent is connected.
const installerAtRest = `update=yeolda-agent-update
for i in $(seq 600); do
	systemctl is-active --quiet $update.path && [ ! -e /var/lib/yeolda-agent/update/request.json ] &&
		[ $(systemctl show -P ActiveState $update.service) != activating ] && grep -q connected=yes /var/lib/yeolda-agent/health && exit 0
	sleep 0.5
done
exit 1`
