package rollout

import (
	"fmt"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/protocol"
)

// The states of an agent.
const (
	waiting    = "waiting" // for its wave, or for its connection
	asked      = "asked"
	healthy    = "healthy"
	failed     = "failed"
	reverting  = "reverting"
	reverted   = "reverted"
	unreverted = "unreverted" // it keeps the new version: the old one has no package, or was not installed in time
	skipped    = "skipped"    // it failed before the rollout was resumed, or left holds the reason
)

// The states of a rollout.
const (
	running       = "running"
	goingBack     = "reverting"
	stopped, done = "stopped", "done"
)

// advance judges each agent and advances the rollout.
func advance(r *postgres.Rollout, now time.Time) {
	switch r.State {
	case running:
		forward(r, now)
	case goingBack:
		back(r, now)
	}
}

func forward(r *postgres.Rollout, now time.Time) {
	active, failures, begun, later := 0, 0, 0, 0
	reason := ""
	first := false // an agent of the first wave failed
	for i := range r.Members {
		m := &r.Members[i]
		before := m.State
		if judge(m, r, now); m.State == skipped && before != skipped && m.Wave <= r.Wave {
			moveUp(r, m.Wave) // so that the wave still shows something
		}
		switch m.State {
		case asked:
			active++
			begun++
		case healthy:
			begun++
			if unsteady(m, r, now) {
				active++
			}
		case failed:
			begun++
			failures++
			first = first || m.Wave == 1 && m.Failure != lost
			reason = fmt.Sprintf("%s: %s", m.Username, m.Detail)
		case waiting:
			later++
		}
	}
	switch {
	case first || failures*100 > begun*maxFailures:
		revert(r, reason, now)
	case active > 0:
	case r.Wave < len(r.Waves):
		if waitingIn(*r, r.Wave) == 0 || begun > 0 {
			r.Wave++
		}
	case later == 0:
		r.State, r.EndedAt = done, now
	}
}

// waitingIn counts the agents of the waves up to one that have not been asked.
func waitingIn(r postgres.Rollout, wave int) (n int) {
	for _, m := range r.Members {
		if m.Wave <= wave && m.State == waiting {
			n++
		}
	}
	return n
}

// judge advances the state of one agent.
func judge(m *postgres.RolloutMember, r *postgres.Rollout, now time.Time) {
	switch m.State {
	case waiting:
		switch {
		case m.Version == r.Version:
			m.State, m.Detail = healthy, "has the version already"
		case left(m) != "":
			m.State, m.Detail = skipped, left(m)
		case m.Wave <= r.Wave && m.Online && !answering(m, r, now):
			m.State, m.AskedAt, m.BeforeVersion, m.BeforeFailed, m.BeforeFailure = asked, now, m.Version, m.Failed, reportedFailure(m, r)
		}
	case asked:
		m.State, m.Detail = verdict(m, r, now)
	case healthy:
		if received(m) {
			m.State, m.Detail = relapse(m, r, now)
		}
	default:
		return
	}
	if m.State == failed {
		m.Failure = m.Detail
	}
}

// left returns why an agent no longer belongs to the rollout: its branch uses another one, or an administrator has given it settings
// that are later than those of the rollout. It returns "" if the agent belongs to the rollout.
func left(m *postgres.RolloutMember) string {
	switch {
	case !m.Active:
		return "not the active agent of its branch"
	case m.Changed:
		return "it uses later settings"
	}
	return ""
}

// answerTimeout is how long an agent may take for the settings that an administrator has given it before a rollout changes them.
const answerTimeout = 10 * time.Minute

// answering reports whether an agent has not answered settings yet that a rollout of settings would replace by the previous ones, changed.
func answering(m *postgres.RolloutMember, r *postgres.Rollout, now time.Time) bool {
	return r.Kind == postgres.RolloutSettings && now.Sub(m.Pending) < answerTimeout
}

// settles notes since when an agent has been connected with a version without interruption.
func settles(m *postgres.RolloutMember, version string, now time.Time) {
	switch {
	case m.Version != version || !m.Online:
		m.Since = time.Time{}
	case m.Since.IsZero():
		m.Since = now
	}
}

// settled reports whether an agent has been connected with a version for the settle time.
func settled(m *postgres.RolloutMember, r *postgres.Rollout, now time.Time) bool {
	return !m.Since.IsZero() && now.Sub(m.Since) >= r.Settle
}

// verdict judges an agent that was asked. The new version is healthy if it has been connected for the settle time without
// interruption and without more failed self-tests than the old one.
func verdict(m *postgres.RolloutMember, r *postgres.Rollout, now time.Time) (state, detail string) {
	if reported := newFailure(m, r); reported != "" {
		return failed, reported
	}
	if reason := left(m); reason != "" {
		return skipped, reason
	}
	settles(m, r.Version, now)
	var worse string
	limit := 3 * r.Settle
	switch {
	case m.Version != r.Version:
		worse = "the version was not installed in time"
		if u := m.Update; u != nil && u.Version == r.Version && u.State == protocol.UpdateFetching && u.Detail != "" {
			worse += ": " + u.Detail
		}
		if m.BeforeFailure != "" {
			worse += ", and the agent still reports " + m.BeforeFailure
		}
	case !m.Online:
		worse = "not connected with the new version"
	case m.Failed > m.BeforeFailed:
		worse = worseTests(m)
	case settled(m, r, now):
		return healthy, ""
	default: // it may have been installed late, so it gets as long again before it counts as one that loses its connection
		worse, limit = "not connected for the settle time", 6*r.Settle
	}
	// A new version may take a moment to connect, but a failed self-test stays.
	if now.Sub(m.AskedAt) >= limit || m.Failed > m.BeforeFailed && settled(m, r, now) {
		return failed, worse
	}
	return asked, worse
}

// reportedFailure returns the reason that the agent reports if the version could not be installed or did worse, otherwise "".
func reportedFailure(m *postgres.RolloutMember, r *postgres.Rollout) string {
	if u := m.Update; u != nil && u.Version == r.Version && (u.State == protocol.UpdateFailed || u.State == protocol.UpdateRolledBack) {
		return string(u.State) + ": " + u.Detail
	}
	return ""
}

// newFailure returns the failure that the agent reports, unless it is the one that it reported when it was asked: another package of the
// version may have failed before. Once the agent has reported another state, the same failure is a new one.
func newFailure(m *postgres.RolloutMember, r *postgres.Rollout) string {
	reported := reportedFailure(m, r)
	if reported == m.BeforeFailure {
		return ""
	}
	m.BeforeFailure = ""
	return reported
}

// lost is the failure of an agent that was healthy. A branch may lose its network at any time, so such an agent of the first wave counts
// like one of the others.
const lost = "not connected any more"

// relapse judges an agent that was healthy. AskedAt is when it lost its connection.
func relapse(m *postgres.RolloutMember, r *postgres.Rollout, now time.Time) (state, detail string) {
	if reported := newFailure(m, r); reported != "" {
		return failed, reported
	}
	steady := settled(m, r, now)
	settles(m, r.Version, now)
	switch {
	case m.Version != r.Version && m.Online:
		return failed, "it uses version " + m.Version + " again"
	case m.Failed > m.BeforeFailed:
		return failed, worseTests(m)
	case settled(m, r, now):
		return healthy, ""
	case steady:
		m.AskedAt = now
	case now.Sub(m.AskedAt) >= 6*r.Settle:
		return failed, lost
	}
	return healthy, "not connected for the settle time"
}

// unsteady reports whether an agent that was healthy must be connected for the settle time again before the next wave begins.
func unsteady(m *postgres.RolloutMember, r *postgres.Rollout, now time.Time) bool {
	return received(m) && !settled(m, r, now)
}

// received reports whether an agent of the rollout received the version from it and still belongs to it.
func received(m *postgres.RolloutMember) bool { return m.BeforeVersion != "" && left(m) == "" }

func worseTests(m *postgres.RolloutMember) string {
	return fmt.Sprintf("%d failed self-tests, before %d", m.Failed, m.BeforeFailed)
}

// revert ends a rollout: agents that were asked return to the previous version.
func revert(r *postgres.Rollout, reason string, now time.Time) {
	r.State, r.Reason = goingBack, reason
	for i := range r.Members {
		m := &r.Members[i]
		switch {
		case m.State != asked && m.State != healthy && m.State != failed, m.BeforeVersion == "":
		case left(m) != "" && m.State != failed:
			m.State, m.Detail = skipped, left(m)
		case !returns(r, m) && m.Version == r.Version:
			m.State, m.Detail = unreverted, "there is nothing of version "+m.BeforeVersion+" in the service"
		case m.State != failed || m.Version == r.Version:
			m.State, m.AskedAt, m.Since = reverting, now, time.Time{}
		}
	}
}

// returns reports whether the service has what the agent used before.
func returns(r *postgres.Rollout, m *postgres.RolloutMember) bool {
	if r.Kind == postgres.RolloutSettings {
		return m.BeforeVersion != "0"
	}
	return len(r.Packages[m.BeforeVersion]) > 0
}

// back waits until the agents have returned to the previous version.
func back(r *postgres.Rollout, now time.Time) {
	open := 0
	for i := range r.Members {
		m := &r.Members[i]
		if m.State != reverting {
			continue
		}
		settles(m, m.BeforeVersion, now)
		switch {
		case left(m) != "":
			m.State, m.Detail = skipped, left(m)
		case settled(m, r, now):
			m.State, m.Detail = reverted, m.Failure
		case now.Sub(m.AskedAt) < 10*r.Settle:
			open++
		case m.Version == m.BeforeVersion:
			m.State, m.Detail = reverted, "not connected for the settle time"
		default:
			m.State, m.Detail = unreverted, "the version before was not installed in time"
		}
	}
	if open == 0 {
		r.State, r.EndedAt = stopped, now
	}
}
