package main

import (
	"fmt"
	"io"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/config"
	"github.com/yeolda/yeolda/cloud/internal/device"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

const (
	// diagnosticsInterval is how often commands look for the log and the report of an agent.
	diagnosticsInterval = 500 * time.Millisecond
	// extendBefore is how long before its end a window is extended while its log is followed.
	extendBefore = 2 * time.Minute
)

// agentLogsCmd is `yeolda agent logs`.
type agentLogsCmd struct {
	Username string          `arg:"" help:"User name of the credential."`
	Follow   bool            `short:"f" xor:"how" help:"Print what follows until interrupted, instead of the newest lines only."`
	Close    bool            `xor:"how" help:"Have the agent stop sending before the ten minutes are over."`
	Wait     time.Duration   `default:"30s" help:"How long to wait for the first lines."`
	Database config.Database `embed:""`
}

// Run has the agent send its log for ten minutes and prints it, or ends that. The running service sends the request.
func (c *agentLogsCmd) Run(p *program) error {
	return p.withDevices(c.Database, c.Username, func(devices *device.Service) error {
		if c.Close {
			if err := devices.CloseDiagnostics(p.ctx, c.Username, p.by()); err != nil {
				return err
			}
			fmt.Fprintf(p.out, "no window of agent %s is open any more\n", c.Username)
			return nil
		}
		if err := devices.OpenDiagnostics(p.ctx, c.Username, false, p.by()); err != nil {
			return err
		}
		var next int64
		away := p.away(c.Username, c.Wait)
		for late := time.Now().Add(c.Wait); ; {
			found, err := devices.ShowDiagnostics(p.ctx, c.Username, next)
			if err != nil {
				return err
			}
			for _, part := range found.Log {
				printLog(p.out, part)
				next = part.ID
			}
			if next > 0 && !c.Follow {
				return nil
			}
			away(found)
			if next == 0 && time.Now().After(late) {
				return notAnswered(c.Username, found)
			}
			if found.Window == nil || time.Until(found.Window.EndsAt) < extendBefore {
				if err := devices.OpenDiagnostics(p.ctx, c.Username, false, p.by()); err != nil {
					return err
				}
			}
			if !p.pause(diagnosticsInterval) {
				return nil
			}
		}
	})
}

// agentDoctorCmd is `yeolda agent doctor`.
type agentDoctorCmd struct {
	Username string          `arg:"" help:"User name of the credential."`
	Wait     time.Duration   `default:"90s" help:"How long to wait for the report."`
	Database config.Database `embed:""`
}

// Run has the agent examine its machine and prints the report. The running service sends the request.
func (c *agentDoctorCmd) Run(p *program) error {
	return p.withDevices(c.Database, c.Username, func(devices *device.Service) error {
		if err := devices.OpenDiagnostics(p.ctx, c.Username, true, p.by()); err != nil {
			return err
		}
		away := p.away(c.Username, c.Wait)
		for late := time.Now().Add(c.Wait); ; {
			found, err := devices.ShowDiagnostics(p.ctx, c.Username, 0)
			if err != nil {
				return err
			}
			if w := found.Window; w != nil && !w.ReportAt.IsZero() {
				_, err := io.WriteString(p.out, w.Report)
				return err
			}
			away(found)
			if time.Now().After(late) {
				return notAnswered(c.Username, found)
			}
			if !p.pause(diagnosticsInterval) {
				return nil
			}
		}
	})
}

// printLog prints a part of the log of an agent, with the times of its clock.
func printLog(out io.Writer, part postgres.AgentLog) {
	if part.Dropped > 0 {
		fmt.Fprintf(out, "(%d lines were too many to send)\n", part.Dropped)
	}
	for _, l := range part.Lines {
		fmt.Fprintf(out, "%s %-5s %s\n", l.At.UTC().Format("2006-01-02T15:04:05.000Z"), l.Level, l.Text)
	}
}

// away returns a function that reports, at most once, that the agent is not connected while a command waits for it.
func (p *program) away(username string, wait time.Duration) func(device.Diagnostics) {
	reported := wait <= 0
	return func(found device.Diagnostics) {
		if !found.Online && !reported {
			reported = true
			fmt.Fprintf(p.err, "agent %s is not connected; waiting %v for it\n", username, wait)
		}
	}
}

// notAnswered explains why an agent has sent nothing.
func notAnswered(username string, found device.Diagnostics) error {
	switch {
	case !found.Online:
		return fmt.Errorf("agent %s is not connected; if it connects within ten minutes, it answers then", username)
	case !found.Received():
		return fmt.Errorf("agent %s has not accepted the request: is the service running, and does the agent use its grant keys (yeolda agent keys list)?", username)
	}
	return fmt.Errorf("agent %s has accepted the request but not answered yet; repeat the command", username)
}

// pause waits, and reports false if the program was interrupted.
func (p *program) pause(d time.Duration) bool {
	select {
	case <-p.ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
