package doctor

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

const (
	// interval leaves the check whether a run is due some minutes, so that there is one every hour.
	interval = 55 * time.Minute
	// settleDelay is how long the service has run before it examines itself: agents and the broker come back first.
	settleDelay = 2 * time.Minute
)

// Hourly examines the installation of a running service. Every field is required.
type Hourly struct {
	Doctor *Doctor
	Log    *slog.Logger
	Began  time.Time // when the service started, by the machine's clock
}

// Due reports whether the installation has to be examined.
func (h *Hourly) Due(ctx context.Context) (bool, error) {
	if time.Since(h.Began) < settleDelay {
		return false, nil
	}
	last, err := postgres.LastSuccesses(ctx, h.Doctor.DB.Pool)
	return h.Doctor.DB.Now().Sub(last[postgres.WorkDoctor]) >= interval, err
}

// RunDue examines the installation if that is due, stores the results and writes failures into the log. At most one replica may
// call it at a time.
func (h *Hourly) RunDue(ctx context.Context) error {
	if due, err := h.Due(ctx); err != nil || !due {
		return err
	}
	return h.run(ctx, ofService())
}

// ofService are the checks of a service. It cannot read the directory of the backups, so their age comes from the database.
func ofService() []Check {
	local := slices.DeleteFunc(Local(), func(c Check) bool { return c.Name == "backup" })
	return slices.Concat(local, Server(), Rows(), Recorded(), Outside())
}

func (h *Hourly) run(ctx context.Context, checks []Check) error {
	states := map[string]string{}
	for _, result := range h.Doctor.Run(ctx, checks) {
		states[result.Check] = string(result.Level())
		for _, f := range result.Findings {
			if f.Level == Fail {
				h.Log.ErrorContext(ctx, "doctor: "+f.Text, "check", result.Check, "subject", f.Subject, "remedy", f.Remedy)
			}
		}
	}
	if ctx.Err() != nil {
		return ctx.Err() // the service stops: an interrupted check is no finding
	}
	db := h.Doctor.DB
	return errors.Join(postgres.PutDoctorChecks(ctx, db.Pool, states, db.Now()), postgres.NoteSuccess(ctx, db.Pool, postgres.WorkDoctor, db.Now()))
}
