//go:build debian

package debian

import (
	"archive/tar"
	"bufio"
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/yeolda/yeolda/agent/internal/brokertest"
	"github.com/yeolda/yeolda/protocol"
)

const (
	branch = "gangnam"
	// patience bounds each wait: the processor is emulated, on a host that may be busy.
	patience = 5 * time.Minute
)

var (
	releaseKey = ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize))
	identity   = protocol.Agent{Branch: branch, Username: "agent-" + branch}
)

// machine is a virtual Pi.
type machine struct {
	t        *testing.T // the present subtest
	dir      string
	broker   *brokertest.Broker // of the test as its cloud
	listener net.Listener       // for the shell in the machine
	packages *httptest.Server
	qemu     *exec.Cmd
	shell    *bufio.ReadWriter
	status   protocol.Status
	presses  int
	logged   int64 // bytes in the agent's log since boot
}

// newMachine builds the image of a branch with version 1.0.0 of the package, and the test as its cloud. It is not running yet.
func newMachine(t *testing.T) *machine {
	t.Helper()
	m := emptyMachine(t)
	m.broker = brokertest.Start(t, "127.0.0.1:0")
	m.write("release-keys", base64.StdEncoding.EncodeToString(releaseKey.Public().(ed25519.PublicKey))+"\n")
	m.write("credentials", "YEOLDA_BRANCH="+branch+"\nYEOLDA_AGENT_USERNAME="+identity.Username+"\nYEOLDA_AGENT_PASSWORD="+brokertest.Password+
		"\nYEOLDA_GRANT_PUBLIC_KEYS="+base64.StdEncoding.EncodeToString(brokertest.PublicKeys()[0])+"\n")
	m.build("1.0.0")
	m.image(m.broker.Addr)
	return m
}

// emptyMachine returns a machine without an image.
func emptyMachine(t *testing.T) *machine {
	t.Helper()
	m := &machine{t: t, dir: t.TempDir()}
	var err error
	if m.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.listener.Close() })
	m.packages = httptest.NewServer(http.FileServer(http.Dir(m.dir)))
	t.Cleanup(m.packages.Close)
	return m
}

// image builds the image of a branch whose broker is at an address of the host. Release keys, credentials and version 1.0.0 of the
// package are in the folder.
func (m *machine) image(broker string) {
	m.t.Helper()
	files := m.path("files.tar")
	m.archive(files, broker)
	m.command("cp", "--sparse=always", filepath.Join(os.Getenv("HWTEST_KERNEL"), "debian.ext4"), m.path("disk"))
	boot := exec.Command("./boot.sh", os.Getenv("HWTEST_KERNEL"), m.path("disk"), files, "prepare")
	if out, err := boot.CombinedOutput(); !bytes.Contains(out, []byte("prepared")) {
		m.t.Fatalf("the image was not built: %v\n%s", err, out)
	}
	m.t.Cleanup(m.cut)
}

func (m *machine) path(name string) string { return filepath.Join(m.dir, name) }

func (m *machine) write(name, text string) {
	m.t.Helper()
	if err := os.WriteFile(m.path(name), []byte(text), 0o644); err != nil {
		m.t.Fatal(err)
	}
}

func (m *machine) command(name string, args ...string) string {
	m.t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		m.t.Fatalf("%s: %v\n%s", name, err, out)
	}
	return string(out)
}

// build builds the package with the release's own script.
func (m *machine) build(version string) string {
	m.t.Helper()
	build := exec.Command("../../../deploy/agent/package.sh", m.dir)
	build.Env = append(os.Environ(), "VERSION="+version, "TARGETS=amd64:amd64", "YEOLDA_RELEASE_KEYS="+m.path("release-keys"))
	if out, err := build.CombinedOutput(); err != nil {
		m.t.Fatalf("package.sh: %v\n%s", err, out)
	}
	return fmt.Sprintf("yeolda-agent_%s_amd64.deb", version)
}

// derive builds a package whose program is replaced by another one. The version's own program is yeolda-agent-real.
func (m *machine) derive(version, program string) string {
	m.t.Helper()
	dir, name := m.path("derived-"+version), m.build(version)
	m.command("dpkg-deb", "-R", m.path(name), dir)
	m.command("mv", dir+"/usr/bin/yeolda-agent", dir+"/usr/bin/yeolda-agent-real")
	if err := os.WriteFile(dir+"/usr/bin/yeolda-agent", []byte(program), 0o755); err != nil {
		m.t.Fatal(err)
	}
	m.command("dpkg-deb", "--root-owner-group", "-b", dir, m.path(name))
	return name
}

// archive writes the files of the image.
func (m *machine) archive(name, broker string) {
	m.t.Helper()
	_, port, _ := net.SplitHostPort(broker)
	m.write("settings.toml", fmt.Sprintf(settings, port))
	out, err := os.Create(name)
	if err != nil {
		m.t.Fatal(err)
	}
	defer out.Close()
	w := tar.NewWriter(out)
	for to, from := range map[string]string{
		"prepare.sh": "files/prepare.sh", "opt/shell": "files/shell", "opt/resolver": "files/resolver",
		"opt/yeolda-test-shell.service": "files/yeolda-test-shell.service", "opt/yeolda-test-resolver.service": "files/yeolda-test-resolver.service",
		"opt/settings.toml": m.path("settings.toml"), "opt/credentials": m.path("credentials"), "opt/yeolda-agent.deb": m.path("yeolda-agent_1.0.0_amd64.deb"),
	} {
		text, err := os.ReadFile(from)
		if err != nil {
			m.t.Fatal(err)
		}
		if err := w.WriteHeader(&tar.Header{Name: to, Mode: 0o755, Size: int64(len(text))}); err != nil {
			m.t.Fatal(err)
		}
		if _, err := w.Write(text); err != nil {
			m.t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		m.t.Fatal(err)
	}
}

// boot switches the machine on and waits for its shell.
func (m *machine) boot() {
	m.t.Helper()
	_, port, _ := net.SplitHostPort(m.listener.Addr().String())
	console, err := os.Create(m.path("console"))
	if err != nil {
		m.t.Fatal(err)
	}
	defer console.Close()
	m.qemu = exec.Command("./boot.sh", os.Getenv("HWTEST_KERNEL"), m.path("disk"), m.path("files.tar"), "run", port)
	m.qemu.Stdout, m.qemu.Stderr, m.qemu.Env = console, console, append(os.Environ(), "TMPDIR="+m.dir)
	m.qemu.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := m.qemu.Start(); err != nil {
		m.t.Fatal(err)
	}
	m.connect()
}

// connect waits for the shell of the machine.
func (m *machine) connect() {
	m.t.Helper()
	_ = m.listener.(*net.TCPListener).SetDeadline(time.Now().Add(patience))
	conn, err := m.listener.Accept()
	if err != nil {
		text, _ := os.ReadFile(m.path("console"))
		m.t.Fatalf("the machine did not start: %v\n%s", err, text)
	}
	m.shell = bufio.NewReadWriter(bufio.NewReader(conn), bufio.NewWriter(conn))
}

// cut cuts the power.
func (m *machine) cut() {
	if m.qemu != nil && m.qemu.Process != nil {
		_ = syscall.Kill(-m.qemu.Process.Pid, syscall.SIGKILL)
		_ = m.qemu.Wait()
		m.qemu = nil
	}
}

// send begins a script in the machine; answer waits for its end.
func (m *machine) send(script string) {
	m.t.Helper()
	fmt.Fprintln(m.shell, base64.StdEncoding.EncodeToString([]byte(script)))
	if err := m.shell.Flush(); err != nil {
		m.t.Fatal(err)
	}
}

func (m *machine) answer() (code int, output string) {
	m.t.Helper()
	line, err := m.shell.ReadString('\n')
	if err != nil {
		m.t.Fatal(err)
	}
	status, text, _ := strings.Cut(strings.TrimSpace(line), " ")
	decoded, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		m.t.Fatal(err)
	}
	code, err = strconv.Atoi(status)
	if err != nil {
		m.t.Fatal(err)
	}
	return code, strings.TrimSpace(string(decoded))
}

// run runs a script in the machine, which must succeed.
func (m *machine) run(script string) string {
	m.t.Helper()
	m.send(script)
	code, output := m.answer()
	if code != 0 {
		m.t.Fatalf("%s\nreturned %d: %s", script, code, output)
	}
	return output
}

// awaitStatus waits for a status of the agent.
func (m *machine) awaitStatus(what string, ok func(protocol.Status) bool) {
	m.t.Helper()
	deadline := time.After(patience)
	for {
		select {
		case r := <-m.broker.Messages():
			if r.Kind != protocol.KindStatus {
				continue
			}
			status, err := protocol.Decode[protocol.Status](r.Payload)
			if err != nil {
				m.t.Fatal(err)
			}
			if m.status = status; ok(status) {
				return
			}
		case <-deadline:
			m.t.Fatalf("%s: not within %v; the last status is %+v\n%s", what, patience, m.status, m.journal())
		}
	}
}

// journal returns the end of the log.
func (m *machine) journal() string {
	m.send("journalctl --no-pager -n 60 -o cat -u 'yeolda*'")
	_, log := m.answer()
	return log
}

// online waits until an agent is online that was started after the last one.
func (m *machine) online() {
	m.t.Helper()
	last := m.status.BootID
	m.awaitStatus("a new agent online", func(s protocol.Status) bool { return s.State == protocol.Online && s.BootID != last })
}

// next waits for the next message of type M.
func next[M protocol.Message](m *machine) M {
	m.t.Helper()
	var message M
	deadline := time.After(patience)
	for {
		select {
		case r := <-m.broker.Messages():
			if r.Kind != message.Kind() {
				continue
			}
			message, err := protocol.Decode[M](r.Payload)
			if err != nil {
				m.t.Fatal(err)
			}
			return message
		case <-deadline:
			m.t.Fatalf("no message %s within %v", message.Kind(), patience)
		}
	}
}

// opens presses the buttons of both doors and checks that the kernel's lines are driven, then idle.
func (m *machine) opens() {
	m.t.Helper()
	for door, line := range map[string]string{"front_1": "17", "room_1": "4"} {
		m.presses++
		request := fmt.Sprintf("00000000-0000-4000-8000-%012d", m.presses)
		idle := m.line(line)
		driven := m.watchLine(line, idle)
		m.broker.Send(branch, protocol.Ask{RequestID: request, Doors: []string{door}})
		claim := next[protocol.Claim](m)
		grant := protocol.Grant{Branch: branch, RequestID: request, Nonce: claim.Nonce, Doors: []string{door}, PulseMs: uint32(protocol.MaxPulse.Milliseconds())}
		m.broker.Send(branch, grant.Sign(brokertest.Key))
		result := next[protocol.Result](m)
		if seen := driven(); result.Outcome != protocol.Opened || !seen {
			m.t.Fatalf("%s: got %+v and driven %v, want opened and the line driven", door, result, seen)
		}
		m.awaitLine(line, idle)
	}
}

// watchLine has the machine watch a line, from now on, until it is not idle: on a busy host, a look after the result can miss the pulse.
// driven waits for that.
func (m *machine) watchLine(n, idle string) (driven func() bool) {
	m.t.Helper()
	m.run("rm -f /run/driven; (for i in $(seq 3000); do [ $(cat " + lines + n + "/value) = " + idle + " ] || { touch /run/driven; exit; }; sleep 0.1; done) >/dev/null 2>&1 &")
	return func() bool {
		m.t.Helper()
		m.send("for i in $(seq 100); do [ ! -e /run/driven ] || exit 0; sleep 0.1; done; exit 1")
		code, _ := m.answer()
		return code == 0
	}
}

// awaitLine waits until a line has a level.
func (m *machine) awaitLine(n, level string) {
	m.t.Helper()
	m.run("for i in $(seq 600); do [ $(cat " + lines + n + "/value) != " + level + " ] || exit 0; sleep 0.1; done; exit 1")
}

// lines are the kernel's simulated lines.
const lines = "/sys/devices/platform/gpio-sim.*/gpiochip*/sim_gpio"

func (m *machine) line(n string) string {
	m.t.Helper()
	return m.run("cat " + lines + n + "/value")
}

// update asks the agent to install a package.
func (m *machine) update(version, name string) {
	m.t.Helper()
	content, err := os.ReadFile(m.path(name))
	if err != nil {
		m.t.Fatal(err)
	}
	sum := sha256.Sum256(content)
	_, port, _ := net.SplitHostPort(m.packages.Listener.Addr().String())
	m.broker.SendTo(identity, protocol.Update{Version: version, Packages: []protocol.Package{protocol.SignPackage(releaseKey, version,
		protocol.Package{Architecture: "amd64", URL: "http://10.0.2.2:" + port + "/" + name, SHA256: hex.EncodeToString(sum[:])})}})
}

// volume logs how much the agent has logged since the last call or the boot.
func (m *machine) volume(what string) {
	m.t.Helper()
	total := m.number("journalctl --no-pager -b -o cat -u yeolda-agent | wc -c")
	m.t.Logf("log: %s: %d bytes", what, total-m.logged)
	m.logged = total
}

// number runs a script that prints a number.
func (m *machine) number(script string) int64 {
	m.t.Helper()
	n, err := strconv.ParseInt(m.run(script), 10, 64)
	if err != nil {
		m.t.Fatal(err)
	}
	return n
}

// resting is how long the log of a state is measured in which nothing happens, by default not at all.
func resting() time.Duration {
	d, _ := time.ParseDuration(os.Getenv("HWTEST_REST"))
	return d
}

// rest measures the log of a state in which nothing happens.
func (m *machine) rest(state string) {
	m.t.Helper()
	if d := resting(); d > 0 {
		time.Sleep(d)
		m.volume(fmt.Sprintf("%s, %v at rest", state, d))
	}
}
