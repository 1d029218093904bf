// Package proof runs the measurements that support our claims and delivers their results as [part.Part]s:
//
//	world       the service as in production, to be broken
//	soak        people act at random in it while things break     ─► record
//	check       rules held against the record                     ─► part
//	linear      the history of bookings against one calendar      ─► part
//	contend     8 at once for one slot                            ─► part
//	simulation  the deterministic simulations and the model       ─► part
//	report      whatever parts there are, as Markdown and HTML
package proof

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/yeolda/yeolda/firmware-sim/proof/check"
	"github.com/yeolda/yeolda/firmware-sim/proof/linear"
	"github.com/yeolda/yeolda/firmware-sim/proof/part"
	"github.com/yeolda/yeolda/firmware-sim/proof/record"
	"github.com/yeolda/yeolda/firmware-sim/proof/soak"
	"github.com/yeolda/yeolda/firmware-sim/proof/world"
)

// decideTimeout bounds the search for an explanation of one branch's history.
const decideTimeout = 30 * time.Second

// Soak runs a soak in a world and judges it. It returns the record even if the run failed.
func Soak(ctx context.Context, w *world.World, options soak.Options) (part.Part, record.Record, error) {
	began := time.Now()
	seen, latencies, err := soak.Run(ctx, w, options)
	if err != nil {
		return part.Part{}, seen, err
	}
	p := part.Part{
		Name: name(w.Pool), Title: "Random soak, " + w.Pool.String(), Machine: part.Machine(), Began: began.UTC().Truncate(time.Second),
		Repeat: repeat(w.Pool, options),
		Checks: check.All(&seen),
	}
	linearizable(&p, linear.Check(&seen, world.HoldTTL, decideTimeout))
	p.Took = time.Since(began).Seconds()
	p.Figures = slices.Concat(figures(&seen, options), p.Figures, speeds(timed(&seen, latencies)))
	p.Series = series(&seen, latencies)
	p.Notes = notes(&seen, w, options)
	return p, seen, nil
}

// linearizable adds the verdict on the history of bookings.
func linearizable(p *part.Part, r linear.Result) {
	c := part.Check{ID: "L1", Rule: "the history of holds, confirmations, releases, cancellations and moves that clients saw is linearizable (Porcupine; unknown outcomes stay open)",
		Observations: r.Requests, Violations: len(r.Illegal)}
	for _, branch := range r.Illegal {
		c.Examples = append(c.Examples, "no order explains what was answered at "+branch)
	}
	p.Checks = append(p.Checks, c)
	p.Figures = append(p.Figures,
		part.Figure{Name: "histories checked for linearizability, one for each branch", Value: float64(r.Histories)},
		part.Figure{Name: "requests in them whose outcome is unknown", Value: float64(r.Open)},
		part.Figure{Name: "histories not decided within " + decideTimeout.String(), Value: float64(len(r.Undecided)), Bar: "0", Met: len(r.Undecided) == 0},
	)
}

// name returns the name of a soak's part. Soaks of different pools are kept beside each other.
func name(pool world.Pool) string {
	if pool == world.Mosquitto {
		return "soak"
	}
	return "soak-" + string(pool)
}

func repeat(pool world.Pool, options soak.Options) string {
	command := fmt.Sprintf("make proof PARTS= SOAK=%s SEED=%d", options.For, options.Seed)
	if pool != world.Mosquitto {
		command += " POOL=" + string(pool)
	}
	return command
}

// clocks states which machines of replicas are ahead of the database's or behind it.
func clocks(replicas []*world.Replica) string {
	var list []string
	for _, r := range replicas {
		switch ahead := r.Ahead.Round(100 * time.Millisecond); {
		case ahead > 0:
			list = append(list, fmt.Sprintf("that of %s is %s ahead of the database's", r.Name, ahead))
		case ahead < 0:
			list = append(list, fmt.Sprintf("that of %s is %s behind the database's", r.Name, -ahead))
		}
	}
	return strings.Join(list, ", ")
}

func notes(r *record.Record, w *world.World, options soak.Options) []string {
	intruder := "an intruder with the service's password at the broker but without its signing key"
	if w.Pool == world.Embedded {
		intruder = "an intruder with the password of a replica, read from the network, but without its signing key"
	}
	return []string{
		fmt.Sprintf("Seed %d. The service as %s (host clocks in UTC and America/New_York; %s), PostgreSQL, the providers and %d simulated branches, each a process of its own; %d concurrent customers and %d administrators, a partner channel, %s, a Pi without hardware beside the agent of one branch, and a thief with a stolen standby credential of another, who claims and reports every request. Holds expire after %s and deposits are due in %s, so that many of them end. The seed decides what actors intend and when faults occur; threads and sockets do not depend on it, so the same seed does not repeat the history.",
			options.Seed, w.Pool, clocks(w.Replicas), len(w.Branches), options.Customers, options.Admins, intruder, world.HoldTTL, world.DepositDue),
		"Triggers of the proof record the versions of reservations in the transactions that change them; their times are those of the commits. The actors, the provider and the locks share the database's clock, in which every rule is judged. Where a rule compares a moment seen by a client with one of the database, 2 s are allowed for, and what changed in that time is not judged.",
		"Set aside: D4 and D9, presses within one second before a kill of PostgreSQL (door requests and results, all but the grant, are committed without waiting for the disk, so such a crash may lose the newest); D6, locks whose line did not work (relay-dead) when they had to be released; D7, pulses of an agent that lost power before it could report the request; M2, orders that the service itself has marked for manual review; M7, a cancellation that was sent again with an idempotency key to which the provider has already answered, so that it repeats its answer.",
		"Not in this run, and shown by make torture: a full disk, the refund that the customer's bank sends back, and the reversal of a deposit. The exact edges of times (a second before and after) are shown by the tests that the rules name.",
		fmt.Sprintf("All faults were cleared at %s; the probes ended at %s.", r.Quiet.UTC().Format("15:04:05"), r.Ended.UTC().Format("15:04:05")),
	}
}
