package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/config"
)

// healthTimeout is the time in which a service must report that it is ready.
const healthTimeout = 3 * time.Second

// healthcheckCmd is `yeolda healthcheck`, for images without a shell.
type healthcheckCmd struct {
	MetricsAddr string `env:"YEOLDA_METRICS_ADDR" default:"127.0.0.1:9090" help:"Address of the service's health."`
}

// Run requests the readiness of the service.
func (c *healthcheckCmd) Run(p *program) error {
	ctx, cancel := context.WithTimeout(p.ctx, healthTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+config.Reachable(c.MetricsAddr)+"/readyz", nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, 1<<10))
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("not ready: %s %s", answer.Status, strings.TrimSpace(string(text)))
	}
	fmt.Fprintln(p.out, "ready")
	return nil
}
