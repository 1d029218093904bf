package world

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// brokerRules are the access rules of the service and of agents, in the format of Mosquitto.
type brokerRules struct{ service, agents string }

// rulesFrom returns the access rules that a command of the service's program prints.
func rulesFrom(ctx context.Context, command func(context.Context, ...string) (string, error)) (rules brokerRules, err error) {
	if rules.service, err = command(ctx, "agent", "acl", "--service"); err != nil {
		return brokerRules{}, err
	}
	rules.agents, err = command(ctx, "agent", "acl")
	return rules, err
}

// newMosquitto prepares a Mosquitto with deploy/mosquitto/mosquitto.conf, with other ports and files, and without TLS. Its files are
// in dir, which must not exist and whose last element is its name.
func newMosquitto(ctx context.Context, root, dir string, rules brokerRules, agents []Credential, log io.Writer) (Broker, error) {
	program, err := Find("mosquitto", "/usr/sbin/mosquitto")
	if err != nil {
		return Broker{}, err
	}
	passwd, err := Find("mosquitto_passwd", "/usr/bin/mosquitto_passwd")
	if err != nil {
		return Broker{}, err
	}
	raw, err := os.ReadFile(filepath.Join(root, "deploy/mosquitto/mosquitto.conf"))
	if err != nil {
		return Broker{}, err
	}
	listener := func(address string) string {
		host, port, _ := net.SplitHostPort(address) // of FreeAddresses
		return "listener " + port + " " + host
	}
	addresses, err := FreeAddresses(ctx, 2)
	if err != nil {
		return Broker{}, err
	}
	b := Broker{Cloud: addresses[0], Agents: addresses[1]}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return Broker{}, err
	}
	file := func(name string) string { return filepath.Join(dir, name) }
	config := strings.NewReplacer(
		"listener 1883", listener(b.Cloud), "listener 8883", listener(b.Agents),
		"/etc/mosquitto/service-passwd", file("service-passwd"), "/etc/mosquitto/passwd", file("passwd"),
		"/etc/mosquitto/service-acl", file("service-acl"), "/etc/mosquitto/acl", file("acl"),
		"certfile", "#", "keyfile", "#", "tls_version", "#").Replace(string(raw))
	if os.Geteuid() == 0 {
		config += "\nuser root\n" // the files belong to root
	}
	var users strings.Builder
	for _, c := range agents {
		users.WriteString(c.Username + ":" + c.Password + "\n")
	}
	for name, content := range map[string]string{"mosquitto.conf": config, "service-acl": rules.service, "acl": rules.agents,
		"passwd": users.String(), "service-passwd": brokerUser + ":" + brokerSecret + "\n"} {
		if err := os.WriteFile(file(name), []byte(content), 0o600); err != nil {
			return Broker{}, err
		}
	}
	for _, name := range []string{"passwd", "service-passwd"} {
		if out, err := exec.CommandContext(ctx, passwd, "-U", file(name)).CombinedOutput(); err != nil {
			return Broker{}, fmt.Errorf("mosquitto_passwd: %w\n%s", err, out)
		}
	}
	called := filepath.Base(dir)
	b.Process = &Process{Name: called, log: &prefixed{name: called, out: log}, ready: listens(b.Cloud),
		command: func() *exec.Cmd {
			return exec.Command(program, "-c", file("mosquitto.conf")) //nolint:noctx // its owner ends it
		}}
	return b, nil
}

// serviceURL returns the address of a broker with the credential of the service.
func serviceURL(address string) string {
	return fmt.Sprintf("mqtt://%s:%s@%s", brokerUser, brokerSecret, address)
}
