package access

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/yeolda/yeolda/cloud/internal/door"
)

var (
	endedTotal = promauto.NewCounterVec(prometheus.CounterOpts{
		Name: "yeolda_door_requests_total", Help: "Door requests that ended at this replica, by state: SUCCESS, FAILED, UNKNOWN, and ERROR for presses that could not be stored.",
	}, []string{"state"})
	openSeconds = promauto.NewHistogram(prometheus.HistogramOpts{
		Name: "yeolda_door_open_seconds", Help: "From an accepted request to its SUCCESS, where both were at this replica.",
		Buckets: []float64{.005, .01, .025, .05, .1, .2, .3, .5, 1, 2, 4, 7},
	})
	stageSeconds = promauto.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "yeolda_door_stage_seconds",
		Help:    "Parts of a request that succeeds: claim (accepted until the agent's claim), grant (deciding about the claim), drive (claim until the report).",
		Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .2, .5, 1, 2.5},
	}, []string{"stage"})
	announcedTotal = promauto.NewCounterVec(prometheus.CounterOpts{
		Name: "yeolda_door_announcements_total",
		Help: "Announced presses: asked (the agent was asked for a claim), refused (the key opens nothing now, or the branch is offline), ignored (repeated, or too many at once); and unused, claims that no press used.",
	}, []string{"outcome"})
	usedTotal = promauto.NewCounter(prometheus.CounterOpts{
		Name: "yeolda_door_announced_grants_total", Help: "Presses that were granted at once with the claim of their announcement.",
	})
	revealedTotal = promauto.NewCounter(prometheus.CounterOpts{
		Name: "yeolda_door_pins_revealed_total", Help: "PINs shown because a door did not open.",
	})
	deniedTotal = promauto.NewCounter(prometheus.CounterOpts{
		Name: "yeolda_door_claims_denied_total", Help: "Claims of agents that were denied.",
	})
)

// countError counts a press that could not be stored. It has no label for the branch, which a client may invent.
func countError() { endedTotal.WithLabelValues("ERROR").Inc() }

// count counts an ended request.
func count(state door.State) { endedTotal.WithLabelValues(string(state)).Inc() }
