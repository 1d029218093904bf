// Command yeolda-sandbox provides the external systems of a development or test stack: payment provider, message
// provider, mail server and partner booking channel. It needs no configuration beside a yeolda in demo mode.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
	"golang.org/x/sync/errgroup"

	"github.com/yeolda/yeolda/cloud/internal/config"
	"github.com/yeolda/yeolda/cloud/internal/sandbox"
)

// settings are the program's flags and environment variables.
type settings struct {
	Addr     string `env:"YEOLDA_SANDBOX_ADDR" default:"127.0.0.1:8090" help:"HTTP address."`
	SMTPAddr string `name:"smtp-addr" env:"YEOLDA_SANDBOX_SMTP_ADDR" default:"127.0.0.1:8025" help:"SMTP address."`

	HTTPAddr   string `name:"http-addr" env:"YEOLDA_HTTP_ADDR" default:"127.0.0.1:8080" help:"Address of the service, for the two URLs below."`
	WebhookURL string `env:"YEOLDA_SANDBOX_WEBHOOK_URL" placeholder:"URL" help:"Receives deposit callbacks (default: http://HTTP-ADDR/api/virtualaccount/webhook)."`
	PartnerURL string `env:"YEOLDA_SANDBOX_PARTNER_URL" placeholder:"URL" help:"Receives bookings of the partner channel (default: http://HTTP-ADDR/partner/v1/events)."`

	WidgetSecretKey string   `env:"YEOLDA_TOSS_WIDGET_SECRET_KEY" placeholder:"KEY" help:"Secret key of the payment widget (default: the demo key)."`
	APISecretKey    string   `name:"api-secret-key" env:"YEOLDA_TOSS_API_SECRET_KEY" placeholder:"KEY" help:"Secret key of the payment API (default: the demo key)."`
	MessageKey      string   `env:"YEOLDA_SOLAPI_API_KEY" placeholder:"KEY" help:"Key of the message API (default: the demo key)."`
	MessageSecret   string   `env:"YEOLDA_SOLAPI_API_SECRET" placeholder:"SECRET" help:"Secret of the message API (default: the demo secret)."`
	PartnerID       string   `name:"partner-id" env:"YEOLDA_PARTNER_ID" placeholder:"ID" help:"Name of the service at the partner channel (default: the demo one)."`
	PartnerSecrets  []string `name:"partner-secret" env:"YEOLDA_PARTNER_SECRET" placeholder:"SECRET" help:"Secret of the partner channel; of several the first one signs (default: the demo secret)."`

	StateFile   string `env:"YEOLDA_SANDBOX_STATE_FILE" type:"path" placeholder:"FILE" help:"Keep payments, messages and bookings over a restart (default: in memory)."`
	StageOrigin string `env:"YEOLDA_STAGE_ORIGIN" placeholder:"ORIGIN" help:"Origin of the simulator, whose stage shows the pages in frames."`
	LogLevel    string `env:"YEOLDA_LOG_LEVEL" default:"info" enum:"debug,info,warn,error" help:"Lowest level that is logged: ${enum}."`
	ReadyFile   string `hidden:"" type:"path" help:"Written with the addresses once both are open."`
}

func main() {
	var cfg settings
	k := parser(&cfg)
	_, err := k.Parse(os.Args[1:])
	k.FatalIfErrorf(err)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	k.FatalIfErrorf(run(ctx, cfg))
}

// parser returns the parser of the program's settings. Empty variables count as absent, as in yeolda.
func parser(cfg *settings) *kong.Kong {
	config.IgnoreEmpty()
	return kong.Must(cfg, kong.Name("yeolda-sandbox"), kong.UsageOnError(),
		kong.Description("The outside world for development and tests: payments, messages, mail and the partner channel."))
}

// run serves until ctx is done.
func run(ctx context.Context, cfg settings) error {
	var level slog.Level
	if err := level.UnmarshalText([]byte(cfg.LogLevel)); err != nil {
		return fmt.Errorf("log level: %w", err)
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
	if cfg.StageOrigin != "" && !config.IsOrigin(cfg.StageOrigin) {
		return &config.Problem{Variable: "YEOLDA_STAGE_ORIGIN", Text: config.NotAnOrigin}
	}
	service := "http://" + config.Reachable(cfg.HTTPAddr)
	if cfg.WebhookURL == "" {
		cfg.WebhookURL = service + "/api/virtualaccount/webhook"
	}
	if cfg.PartnerURL == "" {
		cfg.PartnerURL = service + "/partner/v1/events"
	}

	partnerSecret := ""
	if len(cfg.PartnerSecrets) > 0 {
		partnerSecret = strings.TrimSpace(cfg.PartnerSecrets[0])
	}
	box, err := sandbox.New(sandbox.Options{
		WidgetSecretKey: cfg.WidgetSecretKey, APISecretKey: cfg.APISecretKey,
		MessageKey: cfg.MessageKey, MessageSecret: cfg.MessageSecret,
		PartnerID: cfg.PartnerID, PartnerSecret: partnerSecret,
		WebhookURL: cfg.WebhookURL, PartnerURL: cfg.PartnerURL,
		StateFile: cfg.StateFile, StageOrigin: cfg.StageOrigin, Logger: log,
	})
	if err != nil {
		return err
	}
	defer box.Close()

	web, err := net.Listen("tcp", cfg.Addr)
	if err != nil {
		return fmt.Errorf("listen for HTTP: %w", err)
	}
	defer web.Close()
	mail, err := net.Listen("tcp", cfg.SMTPAddr)
	if err != nil {
		return fmt.Errorf("listen for SMTP: %w", err)
	}
	defer mail.Close()
	server := &http.Server{
		Handler:           logRequests(log, box),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       30 * time.Second,
		WriteTimeout:      3 * time.Minute, // longer than any request is held
		IdleTimeout:       2 * time.Minute,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	fmt.Printf("yeolda-sandbox: http://%s, mail at %s\n", config.Reachable(web.Addr().String()), mail.Addr())
	if err := writeReady(cfg.ReadyFile, web.Addr(), mail.Addr()); err != nil {
		return err
	}

	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		if err := server.Serve(web); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve HTTP: %w", err)
		}
		return nil
	})
	group.Go(func() error { return box.ServeSMTP(ctx, mail) })
	group.Go(func() error {
		<-ctx.Done()
		box.Close() // closes held connections, so that the shutdown does not wait for them
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		return server.Shutdown(ctx) //nolint:contextcheck // ctx is over: the shutdown needs a time of its own
	})
	return group.Wait()
}

// writeReady writes the addresses for the process that started the program.
func writeReady(path string, web, mail net.Addr) error {
	if path == "" {
		return nil
	}
	b, err := json.Marshal(map[string]string{"http": web.String(), "smtp": mail.String()})
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+".tmp", b, 0o600); err != nil {
		return fmt.Errorf("ready file: %w", err)
	}
	return os.Rename(path+".tmp", path)
}

// logRequests writes one line per request; requests that the page repeats only at debug level. Bodies and queries are
// not logged, because they contain codes and keys.
func logRequests(log *slog.Logger, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		rec := &statusRecorder{ResponseWriter: w}
		defer func() { //nolint:contextcheck // r carries the context
			level := slog.LevelInfo
			if r.Method == http.MethodGet && !strings.HasPrefix(r.URL.Path, "/v1/") {
				level = slog.LevelDebug
			}
			log.Log(r.Context(), level, "request", "method", r.Method, "path", r.URL.Path, "status", rec.status, "took", time.Since(start))
		}()
		next.ServeHTTP(rec, r)
	})
}

// statusRecorder records the status; 0 is a connection that was closed without an answer.
type statusRecorder struct {
	http.ResponseWriter
	status int
}

func (r *statusRecorder) WriteHeader(status int) {
	r.status = status
	r.ResponseWriter.WriteHeader(status)
}

func (r *statusRecorder) Write(b []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	return r.ResponseWriter.Write(b)
}

// Unwrap lets [http.ResponseController] reach the connection.
func (r *statusRecorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }
