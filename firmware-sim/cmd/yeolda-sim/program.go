package main

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode"

	"golang.org/x/sync/errgroup"

	"github.com/yeolda/yeolda/firmware-sim/internal/branch"
	"github.com/yeolda/yeolda/firmware-sim/internal/fleetconfig"
	"github.com/yeolda/yeolda/firmware-sim/internal/hardware"
	"github.com/yeolda/yeolda/firmware-sim/internal/panel"
	"github.com/yeolda/yeolda/firmware-sim/internal/stage"
)

// connection holds the settings that all commands share.
type connection struct {
	Addr      string `env:"YEOLDA_SIM_ADDR" default:"127.0.0.1:8070" help:"Address of the panel."`
	MQTTAddr  string `name:"mqtt-addr" env:"YEOLDA_MQTT_ADDR" default:"127.0.0.1:1883" help:"The service's embedded broker; those of a pool with commas."`
	BrokerURL string `env:"YEOLDA_BROKER_URL" help:"External broker (mqtt:// or mqtts://), used in place of the embedded one; those of a pool with commas."`
	GrantKey  string `env:"YEOLDA_GRANT_PUBLIC_KEY" default:"${grantKey}" help:"Public key that signs grants (Ed25519, base64)."`
	ReadyFile string `hidden:"" help:"Written with the panel's address once it listens."`
}

// Timeouts of the panel's server. There is no write timeout: the WebSocket has its own.
const (
	headerLimit   = 5 * time.Second
	idleLimit     = time.Minute
	shutdownLimit = 3 * time.Second
)

// demoGrantKey is the public half of the demo data's signing key. The service derives the private half from the same
// phrase and rejects it in production.
func demoGrantKey() string {
	seed := sha256.Sum256([]byte("yeolda demo grant signing key"))
	public := ed25519.NewKeyFromSeed(seed[:]).Public().(ed25519.PublicKey)
	return base64.StdEncoding.EncodeToString(public)
}

func (c *connection) grantKey() (ed25519.PublicKey, error) {
	key, err := base64.StdEncoding.DecodeString(c.GrantKey)
	if err != nil || len(key) != ed25519.PublicKeySize {
		return nil, errors.New("grant key is not an Ed25519 public key in base64")
	}
	return key, nil
}

// brokers returns the addresses of the brokers of a pool, or of the only broker.
func (c *connection) brokers() (brokers []*url.URL, err error) {
	for _, text := range list(c.BrokerURL) {
		broker, err := url.Parse(text)
		if err != nil {
			return nil, fmt.Errorf("broker address: %w", err)
		}
		brokers = append(brokers, broker)
	}
	if len(brokers) > 0 {
		return brokers, nil
	}
	for _, address := range list(c.MQTTAddr) {
		if _, _, err := net.SplitHostPort(address); err != nil {
			return nil, fmt.Errorf("broker address: %w", err)
		}
		brokers = append(brokers, &url.URL{Scheme: "mqtt", Host: reachable(address)})
	}
	if len(brokers) == 0 {
		return nil, errors.New("broker address is missing")
	}
	return brokers, nil
}

// list returns what a setting lists, separated by commas or spaces.
func list(setting string) []string {
	return strings.FieldsFunc(setting, func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
}

// reachable returns the address at which this machine reaches a listener on addr. Loopback has one name, because browsers keep
// cookies by host.
func reachable(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	if ip, err := netip.ParseAddr(host); host == "" || host == "localhost" || err == nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}

// program is a configured simulator.
type program struct {
	connection
	sites []fleetconfig.Branch
	// startEvery spreads the first connections of the agents.
	startEvery    time.Duration
	settingsTrial time.Duration // 0: that of the agent
	log           *slog.Logger
	agentLog      *slog.Logger
	stage         *stage.Stage // nil: none
}

// run serves the panel and runs the branches until ctx ends.
func (p *program) run(ctx context.Context) error {
	key, err := p.grantKey()
	if err != nil {
		return err
	}
	brokers, err := p.brokers()
	if err != nil {
		return err
	}
	passes, err := os.MkdirTemp("", "yeolda-sim-")
	if err != nil {
		return fmt.Errorf("folder of passes: %w", err)
	}
	defer func() { _ = os.RemoveAll(passes) }()
	feed := panel.NewFeed()
	branches := make([]*branch.Branch, 0, len(p.sites))
	create := func(plan hardware.Plan, c branch.Config) (*branch.Branch, error) {
		c.Brokers, c.Version, c.Logger, c.PassDir = brokers, "1.0.0+sim."+release(), p.agentLog, filepath.Join(passes, c.Branch)
		c.SettingsTrial = p.settingsTrial
		c.Changed = func(change branch.Change) { feed.Publish(c.Branch, change) }
		return branch.New(plan, c)
	}
	for _, s := range p.sites {
		b, err := create(s.Plan, branch.Config{Branch: s.Branch, Password: s.Password, GrantKeys: []ed25519.PublicKey{key}, Settings: s.Settings})
		if err != nil {
			return err
		}
		branches = append(branches, b)
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", p.Addr)
	if err != nil {
		return fmt.Errorf("panel: %w", err)
	}
	address := listener.Addr().String()
	if err := p.ready(address); err != nil {
		listener.Close()
		return err
	}
	p.log.Info("simulator runs", "panel", "http://"+reachable(address), "broker", brokers[0].Redacted(), "branches", len(branches))

	g, ctx := errgroup.WithContext(ctx)
	shown := panel.New(branches, feed)
	shown.Enroll = func(request context.Context, command string, rooms int) (*branch.Branch, error) {
		credential, plan, err := enroll(request, command, rooms)
		if err != nil {
			return nil, err
		}
		if shown.Named(credential.Branch) != nil {
			return nil, fmt.Errorf("%w: the simulator has an agent of %s; its credential stays as it is", panel.ErrEnroll, credential.Branch)
		}
		b, err := create(plan, branch.Config{
			Branch: credential.Branch, Username: credential.Username, Password: credential.Password, Key: credential.Key, GrantKeys: credential.GrantKeys,
		})
		if err != nil {
			return nil, err
		}
		g.Go(func() error { return b.Run(ctx) })
		return b, nil
	}
	handler := p.handler(shown, address)
	g.Go(func() error { return p.serve(ctx, listener, handler, feed) })
	for i, b := range branches {
		g.Go(func() error {
			select {
			case <-time.After(time.Duration(i) * p.startEvery):
			case <-ctx.Done():
				return nil
			}
			return b.Run(ctx)
		})
	}
	err = g.Wait()
	p.log.Info("simulator has stopped")
	return err
}

// handler serves the panel and, if there is one, the stage.
func (p *program) handler(shown *panel.Panel, address string) http.Handler {
	handler := http.NewServeMux()
	handler.Handle("/", shown.Handler())
	if p.stage != nil {
		p.stage.Simulator = "http://" + reachable(address)
		p.stage.Origin = cmp.Or(p.stage.Origin, p.stage.Simulator)
		scenes := p.stage.Handler()
		handler.Handle("/stage", scenes)
		handler.Handle("/stage/", scenes)
	}
	return handler
}

// serve answers requests until ctx ends, and then finishes those in progress.
func (p *program) serve(ctx context.Context, listener net.Listener, handler http.Handler, feed *panel.Feed) error {
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: headerLimit, IdleTimeout: idleLimit,
		BaseContext: func(net.Listener) context.Context { return ctx }, // scenes end with the program
		ErrorLog:    slog.NewLogLogger(p.log.Handler(), slog.LevelWarn),
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	select {
	case err := <-served:
		return fmt.Errorf("panel: %w", err)
	case <-ctx.Done():
	}
	feed.Close() // ends the WebSockets, which Shutdown ignores
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownLimit)
	defer cancel()
	if err := server.Shutdown(limit); err != nil {
		return fmt.Errorf("panel: %w", err)
	}
	return nil
}

// ready writes the panel's address to the ready file, atomically.
func (p *program) ready(address string) error {
	if p.ReadyFile == "" {
		return nil
	}
	text, err := json.Marshal(map[string]string{"http": address})
	if err != nil {
		return fmt.Errorf("ready file: %w", err)
	}
	part := filepath.Join(filepath.Dir(p.ReadyFile), "."+filepath.Base(p.ReadyFile)+".part")
	if err := os.WriteFile(part, append(text, '\n'), 0o600); err != nil {
		return fmt.Errorf("ready file: %w", err)
	}
	if err := os.Rename(part, p.ReadyFile); err != nil {
		return fmt.Errorf("ready file: %w", err)
	}
	return nil
}
