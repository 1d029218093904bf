package main

import (
	"log/slog"
	"os"
	"time"

	"golang.org/x/term"

	"github.com/yeolda/yeolda/cloud/internal/config"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/service"
)

// serveCmd is `yeolda serve`.
type serveCmd struct {
	Settings  config.Settings `embed:""`
	ReadyFile string          `hidden:"" type:"path" help:"Written with the address once the service listens."`
}

// Run serves until ctx is done.
func (c *serveCmd) Run(p *program) error {
	settings := c.Settings.Effective()
	if err := settings.Check(); err != nil {
		return err
	}
	settings.Version = version
	log := p.newLog(settings.Log)
	s, err := service.New(p.ctx, settings, log, postgres.NewClock(time.Now))
	if err != nil {
		return err
	}
	if c.ReadyFile != "" {
		if err := os.WriteFile(c.ReadyFile, []byte(s.Addr()+"\n"), 0o600); err != nil {
			s.Close()
			return err
		}
	}
	return s.Run(p.ctx)
}

// newLog returns the log of the service: text on a terminal, JSON for a log collector.
func (p *program) newLog(l config.Log) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(l.Level)) // one of the four values that the flag allows
	options := &slog.HandlerOptions{Level: level}
	text := l.Format == "text"
	if file, ok := p.err.(*os.File); ok && l.Format == "auto" {
		text = term.IsTerminal(int(file.Fd()))
	}
	if text {
		return slog.New(slog.NewTextHandler(p.err, options))
	}
	return slog.New(slog.NewJSONHandler(p.err, options))
}
