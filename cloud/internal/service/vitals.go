package service

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

const (
	// vitalsEvery bounds how often the database is asked, however many scrape.
	vitalsEvery = 5 * time.Second
	// vitalsTimeout bounds a scrape while the database is in trouble.
	vitalsTimeout = 3 * time.Second
)

// vitals are the metrics that are read when they are asked for: what the rows say, the pool, the line to the agents.
// What is in the rows is the same at every replica: dashboards take the maximum over replicas, not the sum.
type vitals struct {
	service *Service

	mu   sync.Mutex
	read time.Time
	last postgres.Vitals
	err  error
}

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("yeolda_"+name, help, labels, nil)
}

var (
	reservationsDesc = describe("reservations", "Reservations ahead or running, by state; HOLD are slots that customers have just taken.", "state")
	paymentsDesc     = describe("payments", "Payments that were tried in the last 24 hours, by the state of their reservation.", "state")
	refundsDesc      = describe("refunds_open", "Refunds that are not completed, by state.", "state")
	messagesDesc     = describe("messages", "Messages that are not sent, by state; FAILED of the last 24 hours.", "state")
	jobsDesc         = describe("jobs", "Background jobs that are not finished, by state.", "state")
	oldestDesc       = describe("oldest_seconds", "Age of the oldest thing that waits: job, message, payment without an answer, callback.", "kind")
	differencesDesc  = describe("reconciliation_differences", "Differences between the payment provider's books and ours that nobody has resolved.")
	branchesDesc     = describe("branches", "Branches.")
	onlineDesc       = describe("agents_online", "Branches whose agent is there, as the whole service sees it.")
	scrapedDesc      = describe("vitals_up", "Whether the database answered the questions behind the metrics.")

	connectionsDesc = describe("db_connections", "Connections of this replica's pool, by state.", "state")
	connectionsMax  = describe("db_connections_max", "Connections this replica's pool may open.")
	acquiresDesc    = describe("db_acquires_total", "Connections taken from the pool.")
	waitsDesc       = describe("db_acquire_waits_total", "Connections that had to be waited for.")
	waitDesc        = describe("db_acquire_wait_seconds_total", "Time spent waiting for a connection.")

	connectedDesc = describe("mqtt_connected", "Whether this replica hears the agents.")
	sessionsDesc  = describe("mqtt_sessions", "Agents as this replica sees them.")
)

// Describe implements prometheus.Collector.
func (v *vitals) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{reservationsDesc, paymentsDesc, refundsDesc, messagesDesc, jobsDesc, oldestDesc, differencesDesc,
		branchesDesc, onlineDesc, scrapedDesc, connectionsDesc, connectionsMax, acquiresDesc, waitsDesc, waitDesc, connectedDesc, sessionsDesc} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (v *vitals) Collect(out chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	counter := func(d *prometheus.Desc, value float64) {
		out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, value)
	}
	all, doors := v.service.db.Pool.Stat(), v.service.db.Doors.Stat()
	gauge(connectionsDesc, float64(all.AcquiredConns()+doors.AcquiredConns()), "used")
	gauge(connectionsDesc, float64(all.IdleConns()+doors.IdleConns()), "idle")
	gauge(connectionsMax, float64(all.MaxConns()+doors.MaxConns()))
	counter(acquiresDesc, float64(all.AcquireCount()+doors.AcquireCount()))
	counter(waitsDesc, float64(all.EmptyAcquireCount()+doors.EmptyAcquireCount()))
	counter(waitDesc, (all.EmptyAcquireWaitTime() + doors.EmptyAcquireWaitTime()).Seconds())

	gauge(connectedDesc, truth(v.service.link.Connected()))
	gauge(sessionsDesc, float64(v.service.link.Stats().Sessions))

	rows, err := v.ask()
	gauge(scrapedDesc, truth(err == nil))
	if err != nil {
		return // no figure is better than an old one
	}
	for _, byState := range []struct {
		desc   *prometheus.Desc
		states []string // always there, so that an alert has something to look at
		counts map[string]int
	}{
		{reservationsDesc, []string{"HOLD", "CONFIRMING", "WAITING_FOR_DEPOSIT", "DONE", "CANCELING"}, rows.Reservations},
		{paymentsDesc, []string{"CONFIRMING", "WAITING_FOR_DEPOSIT", "DONE", "CANCELING", "CANCELED", "EXPIRED", "RELEASED", "CONFLICT"}, rows.Payments},
		{refundsDesc, []string{"REQUESTED", "PENDING", "FAILED", "REFUSED"}, rows.Refunds},
		{messagesDesc, []string{"QUEUED", "SENDING", "FAILED"}, rows.Messages},
		{jobsDesc, []string{"available", "pending", "retryable", "running", "scheduled"}, rows.Jobs},
	} {
		for _, state := range byState.states {
			gauge(byState.desc, float64(byState.counts[state]), state)
		}
	}
	for kind, age := range map[string]time.Duration{"job": rows.OldestJob, "message": rows.OldestMessage, "payment": rows.OldestPayment, "callback": rows.OldestCallback} {
		gauge(oldestDesc, age.Seconds(), kind)
	}
	gauge(differencesDesc, float64(rows.Differences))
	gauge(branchesDesc, float64(rows.Branches))
	gauge(onlineDesc, float64(rows.AgentsOnline))
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// ask reads the rows, or returns what was read a moment ago.
func (v *vitals) ask() (postgres.Vitals, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if time.Since(v.read) < vitalsEvery {
		return v.last, v.err
	}
	ctx, cancel := context.WithTimeout(context.Background(), vitalsTimeout)
	defer cancel()
	v.last, v.err = postgres.ReadVitals(ctx, v.service.db.Pool, v.service.now())
	v.read = time.Now()
	if v.err != nil {
		v.service.log.Warn("metrics: the database did not answer", "error", v.err)
	}
	return v.last, v.err
}
