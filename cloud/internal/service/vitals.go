package service

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/yeolda/yeolda/cloud/internal/doctor"
	"github.com/yeolda/yeolda/cloud/internal/pgserver"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

const (
	// vitalsInterval bounds how often the database is read, regardless of the number of scrapes.
	vitalsInterval = 5 * time.Second
	// figureTimeout bounds the time of one figure, vitalsTimeout that of a scrape, while the database is slow.
	figureTimeout = time.Second
	vitalsTimeout = 4 * time.Second
)

// vitals are metrics that are read at each scrape: figures of the database, the pools, the connection to the agents, the
// disk. Figures of the database are the same at every replica: dashboards take the maximum over replicas, not the sum.
type vitals struct {
	service *Service

	mu   sync.Mutex
	read time.Time
	last postgres.Vitals
}

// described are the metrics below.
var described []*prometheus.Desc

func describe(name, help string, labels ...string) *prometheus.Desc {
	d := prometheus.NewDesc("yeolda_"+name, help, labels, nil)
	described = append(described, d)
	return d
}

var (
	reservationsDesc = describe("reservations", "Upcoming and running reservations, by state; HOLD are unpaid holds of customers.", "state")
	paymentsDesc     = describe("payments", "Payments attempted in the last 24 hours, by the state of their reservation.", "state")
	refundsDesc      = describe("refunds_open", "Refunds that are not completed, by state.", "state")
	messagesDesc     = describe("messages", "Messages that are not sent, by state; FAILED of the last 24 hours.", "state")
	jobsDesc         = describe("jobs", "Background jobs that are not finished, by state.", "state")
	oldestDesc       = describe("oldest_seconds", "Age of the oldest waiting item: job, message, payment without an answer, callback.", "kind")
	reconciledDesc   = describe("reconciliation_completed_timestamp", "Unix time at which the last complete comparison with the provider's books ended; 0: never.")
	differencesDesc  = describe("reconciliation_differences", "Unresolved discrepancies between the payment provider's books and ours.")
	branchesDesc     = describe("branches", "Branches.")
	onlineDesc       = describe("agents_online", "Branches whose agent is online.")
	scrapedDesc      = describe("vitals_up", "Whether the database returned any figure.")

	figureDesc      = describe("figure_up", "Whether a figure of the database was read.", "figure")
	successDesc     = describe("last_success_timestamp_seconds", "Time of the last success of recurring work: write (canary), sweep, reconciliation, backup, archive (segments), base (backup of the archive), restore-test, head (of the audit log), doctor.", "work")
	checkDesc       = describe("doctor_check", "Last result of each check that the service makes of its installation every hour: 1 for its state (ok, warn or fail).", "check", "state")
	checkedDesc     = describe("doctor_check_timestamp_seconds", "Time of the last run of each check of the installation.", "check")
	branchOnline    = describe("branch_online", "Whether the agent of a branch is online; branches that never had an agent are omitted.", "branch")
	branchDoors     = describe("branch_door_requests", "Ended door requests of a branch in the last 15 minutes and 6 hours, by state.", "branch", "window", "state")
	doorPresses     = describe("door_presses", "Presses at a door in the last 6 hours that opened it or failed, by result; at most 200 doors, those with the most failures first.", "branch", "door", "result")
	settingsDesc    = describe("agent_settings", "Active agents by the state of their last settings; stuck: a connected agent has not answered for ten minutes.", "state")
	writableDesc    = describe("database_writable", "Whether the last canary write of this replica was committed.")
	clockDesc       = describe("database_clock_ahead_seconds", "By how much the database's clock, which decides, is ahead of this replica's machine.")
	diskFreeDesc    = describe("disk_free_bytes", "Free space on the disk of the private database.")
	diskSizeDesc    = describe("disk_size_bytes", "Size of the disk of the private database.")
	certificateDesc = describe("certificate_expiry_timestamp_seconds", "End of the certificate of the MQTT listener.")

	connectionsDesc = describe("db_connections", "Connections of this replica's pools, by state.", "state")
	connectionsMax  = describe("db_connections_max", "Connections that this replica's pools may open.")
	acquiresDesc    = describe("db_acquires_total", "Connections taken from the pools.")
	waitsDesc       = describe("db_acquire_waits_total", "Connections for which a caller had to wait.")
	waitDesc        = describe("db_acquire_wait_seconds_total", "Time spent waiting for a connection.")

	connectedDesc = describe("mqtt_connected", "Whether this replica is connected to the agents.")
	sessionsDesc  = describe("mqtt_sessions", "Agents connected to the embedded broker of this replica, or to any external broker.")
	brokerDesc    = describe("mqtt_broker_connected", "Whether this replica is connected to a broker of its pool.", "broker")
)

// Describe implements prometheus.Collector.
func (v *vitals) Describe(out chan<- *prometheus.Desc) {
	for _, d := range described {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (v *vitals) Collect(out chan<- prometheus.Metric) {
	v.collectReplica(out)
	collectFigures(out, v.readFigures())
}

func gauge(out chan<- prometheus.Metric, d *prometheus.Desc, value float64, labels ...string) {
	out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
}

func counter(out chan<- prometheus.Metric, d *prometheus.Desc, value float64) {
	out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, value)
}

// collectReplica collects what this replica knows without the database.
func (v *vitals) collectReplica(out chan<- prometheus.Metric) {
	all, doors := v.service.db.Pool.Stat(), v.service.db.Doors.Stat()
	gauge(out, connectionsDesc, float64(all.AcquiredConns()+doors.AcquiredConns()), "used")
	gauge(out, connectionsDesc, float64(all.IdleConns()+doors.IdleConns()), "idle")
	gauge(out, connectionsMax, float64(all.MaxConns()+doors.MaxConns()))
	counter(out, acquiresDesc, float64(all.AcquireCount()+doors.AcquireCount()))
	counter(out, waitsDesc, float64(all.EmptyAcquireCount()+doors.EmptyAcquireCount()))
	counter(out, waitDesc, (all.EmptyAcquireWaitTime() + doors.EmptyAcquireWaitTime()).Seconds())

	gauge(out, connectedDesc, truth(v.service.link.Connected()))
	stats := v.service.link.Stats()
	gauge(out, sessionsDesc, float64(stats.Sessions))
	for address, connected := range stats.Brokers {
		gauge(out, brokerDesc, truth(connected), address)
	}

	gauge(out, writableDesc, truth(v.service.canary.ok()))
	gauge(out, clockDesc, v.service.clock.Ahead().Seconds())
	if v.service.database != nil {
		if free, size, err := pgserver.FreeSpace(v.service.databaseDir()); err == nil {
			gauge(out, diskFreeDesc, float64(free))
			gauge(out, diskSizeDesc, float64(size))
		}
	}
	if end := v.service.certificateEnd; !end.IsZero() {
		gauge(out, certificateDesc, float64(end.Unix()))
	}
}

// collectFigures collects the figures of the database. A figure that could not be read has no value.
func collectFigures(out chan<- prometheus.Metric, rows postgres.Vitals) {
	gauge(out, scrapedDesc, truth(len(rows.Failed) < len(postgres.Figures())))
	for _, name := range postgres.Figures() {
		gauge(out, figureDesc, truth(rows.Failed[name] == nil), name)
	}
	for branch, online := range rows.OnlineBranches {
		gauge(out, branchOnline, truth(online), branch)
	}
	for _, doors := range rows.DoorRequests {
		gauge(out, branchDoors, float64(doors.Last15m), doors.Branch, "15m", doors.State)
		gauge(out, branchDoors, float64(doors.Last6h), doors.Branch, "6h", doors.State)
	}
	for _, door := range rows.Doors {
		gauge(out, doorPresses, float64(door.Opened), door.Branch, door.Device, "opened")
		gauge(out, doorPresses, float64(door.Failed), door.Branch, door.Device, "failed")
	}
	for work, at := range rows.LastSuccess {
		gauge(out, successDesc, float64(at.Unix()), work)
	}
	for _, check := range rows.DoctorChecks {
		for _, state := range []doctor.Level{doctor.OK, doctor.Warn, doctor.Fail} {
			gauge(out, checkDesc, truth(check.State == string(state)), check.Name, string(state))
		}
		gauge(out, checkedDesc, float64(check.At.Unix()), check.Name)
	}
	for _, byState := range []struct {
		desc   *prometheus.Desc
		states []string // always exported, so that alerts can compare them
		counts map[string]int
	}{
		{reservationsDesc, []string{"HOLD", "CONFIRMING", "WAITING_FOR_DEPOSIT", "DONE", "CANCELING"}, rows.Reservations},
		{paymentsDesc, []string{"CONFIRMING", "WAITING_FOR_DEPOSIT", "DONE", "CANCELING", "CANCELED", "EXPIRED", "RELEASED", "CONFLICT"}, rows.Payments},
		{refundsDesc, []string{"REQUESTED", "PENDING", "FAILED", "REFUSED"}, rows.Refunds},
		{messagesDesc, []string{"QUEUED", "SENDING", "FAILED"}, rows.Messages},
		{settingsDesc, []string{"asked", "stuck", "in-use", "refused", "rolled-back"}, rows.Settings},
		{jobsDesc, []string{"available", "pending", "retryable", "running", "scheduled"}, rows.Jobs},
	} {
		if byState.counts == nil {
			continue // the figure failed: no value is better than an old one
		}
		for _, state := range byState.states {
			gauge(out, byState.desc, float64(byState.counts[state]), state)
		}
	}
	for kind, age := range rows.Oldest {
		gauge(out, oldestDesc, age.Seconds(), kind)
	}
	if rows.Failed["totals"] != nil {
		return
	}
	gauge(out, differencesDesc, float64(rows.Differences))
	gauge(out, reconciledDesc, float64(max(0, rows.LastSuccess[postgres.WorkReconciliation].Unix())))
	gauge(out, branchesDesc, float64(rows.Branches))
	gauge(out, onlineDesc, float64(rows.AgentsOnline))
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// readFigures reads the figures, or returns those of the last seconds.
func (v *vitals) readFigures() postgres.Vitals {
	v.mu.Lock()
	defer v.mu.Unlock()
	if time.Since(v.read) < vitalsInterval {
		return v.last
	}
	ctx, cancel := context.WithTimeout(context.Background(), vitalsTimeout)
	defer cancel()
	var err error
	if v.last, err = postgres.ReadVitals(ctx, v.service.db.Pool, v.service.now(), figureTimeout); err != nil {
		v.service.log.Warn("metrics: figures of the database were not read", "error", err)
	}
	v.read = time.Now()
	return v.last
}
