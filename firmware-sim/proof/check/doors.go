package check

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/yeolda/yeolda/firmware-sim/proof/record"
	"github.com/yeolda/yeolda/protocol"
)

var doors = []rule{
	{id: "D1", text: "at most one pulse for a request and a door", check: onePulse},
	{id: "D2", text: "no pulse starts later than 4 s after its request (the rule says 7, the design 2.5 + 1.5)", check: noLatePulse},
	{id: "D3", text: "no pulse for a reservation that is cancelled, moved, over or outside its window at the moment of the grant", check: grantHolds},
	{id: "D4", text: "exactly one final result for a request; every subscriber receives the same", check: oneResult},
	{id: "D5", text: "FAILED is final: after it the door does not open for that request", check: failedIsFinal},
	{id: "D6", text: "a crash or a power cut leaves the lock locked", elsewhere: "between the steps of a pulse, on a Linux kernel: make hwtest", check: locksFall},
	{id: "D7", text: "no door is opened by a message that does not come from the cloud", check: onlyTheCloud},
	{id: "D8", text: "a press at a branch known to be offline gets FAILED with a PIN within 300 ms (99 of 100)", check: offlineAtOnce},
	{id: "D9", text: "every accepted press is on record with its outcome, UNKNOWN included; those of administrators also in the audit log", check: everyPressOnRecord},
	{id: "D10", text: "a press while the branch is offline does nothing after it returns", check: noMemory},
	{id: "D11", text: "a second agent of a branch, without hardware or with a stolen credential, decides no result: SUCCESS was driven, FAILED was not", check: resultsAreTrue},
	{id: "D12", text: "after FAILED the guest receives a reason: the key is not unknown", check: failuresAreExplained},
}

// driveLimit is the maximum age of a request when its last pulse starts.
const driveLimit = protocol.ClaimLimit + protocol.GrantAge

// relaxed is the age of door requests and results that a database crash may lose: all but the grant are committed
// without waiting for the disk, at most three times wal_writer_delay (200 ms).
const relaxed = time.Second

// forgotten reports whether a database crash may have lost the records of a press at a time.
func (b *books) forgotten(t time.Time) bool {
	return near(b.outages["kill postgres"], t, relaxed, 0)
}

// unattributed reports whether a pulse has no request because the agent lost power before it could report one.
func (b *books) unattributed(p record.Pulse) bool {
	return p.Request == "" && near(b.outages["power-off "+p.Branch], p.At, 500*time.Millisecond, 100*time.Millisecond)
}

func onePulse(b *books, f *finding) {
	for _, request := range ordered(b.pulses) {
		seen := map[string]int{}
		for _, p := range b.pulses[request] {
			if request == "" {
				f.expect(b.unattributed(p), "%s %s was driven for no request at %s", p.Branch, p.Device, p.At.Format(clock))
				continue
			}
			seen[p.Device]++
			f.expect(seen[p.Device] == 1, "%s %s was driven %d times for request %s", p.Branch, p.Device, seen[p.Device], request)
		}
	}
}

func noLatePulse(b *books, f *finding) {
	for _, p := range b.Pulses {
		if d, known := b.requests[p.Request]; known {
			f.expect(p.At.Sub(d.Created) <= driveLimit, "%s %s was driven %s after request %s", p.Branch, p.Device, p.At.Sub(d.Created), p.Request)
		}
	}
}

// lead is the time by which the window opens before the start and closes before the end.
const lead = 2 * time.Minute

// inWindow reports whether a version of a reservation allows doors to be opened at a time.
func inWindow(v record.Version, t time.Time) bool {
	return v.State == done && !v.Deleted && !t.Before(v.Slot.Start.Add(-lead)) && t.Before(v.Slot.End.Add(-lead))
}

func grantHolds(b *books, f *finding) {
	for _, p := range b.Pulses {
		d, known := b.requests[p.Request]
		if !known {
			continue
		}
		if d.Granted.IsZero() {
			f.expect(false, "%s %s was driven for request %s, which was never granted", p.Branch, p.Device, p.Request)
			continue
		}
		if d.Reservation == 0 {
			f.expect(p.Branch == d.Branch && slices.Contains(d.Devices, p.Device), "request %s drove %s %s", p.Request, p.Branch, p.Device)
			continue
		}
		ok := false
		b.throughout(d.Reservation, d.Granted, d.Granted, func(v record.Version) {
			// The grant was decided close to the time in its row.
			near := inWindow(v, d.Granted) || inWindow(v, d.Granted.Add(-time.Second))
			room := strings.HasPrefix(p.Device, "front") || p.Device == fmt.Sprintf("room_%d", v.Slot.Room)
			ok = ok || near && room && v.Slot.Branch == p.Branch
		})
		f.expect(ok, "%s %s was driven for request %s at %s, when reservation %d did not hold", p.Branch, p.Device, p.Request, d.Granted.Format(clock), d.Reservation)
	}
}

// finals maps the states of a row to the results that subscribers receive.
var finals = map[string]string{"SUCCESS": "SUCCESS", "FAILED": "FAILED", "UNKNOWN": "TIMEOUT"}

func oneResult(b *books, f *finding) {
	for _, d := range b.DoorRequests {
		f.expect(finals[d.State] != "", "request %s stays %s", d.ID, d.State)
	}
	for _, p := range b.Presses {
		if p.RequestID == "" || len(p.Told) == 0 {
			continue
		}
		d, known := b.requests[p.RequestID]
		for _, told := range p.Told {
			if told.Status == "" {
				continue
			}
			if !known || finals[d.State] != told.Status {
				// A crash may lose what was written without waiting for the disk; with the grant, the row ends as
				// UNKNOWN.
				if b.forgotten(p.Call) || b.forgotten(told.At) || b.forgotten(d.Finished) {
					f.Excused++
					continue
				}
			}
			f.expect(finals[d.State] == told.Status, "a subscriber of request %s received %s at %s, but its row says %q", p.RequestID, told.Status, told.At.Format(clock), d.State)
		}
	}
}

func failedIsFinal(b *books, f *finding) {
	for _, d := range b.DoorRequests {
		if d.State != "FAILED" {
			continue
		}
		f.saw()
		for _, p := range b.pulses[d.ID] {
			if d.Granted.IsZero() {
				f.violated("%s %s was driven for request %s, which failed without a grant", p.Branch, p.Device, d.ID)
			} else if p.At.After(d.Finished) {
				f.violated("%s %s was driven %s after request %s had failed", p.Branch, p.Device, p.At.Sub(d.Finished), d.ID)
			}
		}
	}
	for _, p := range b.Presses {
		for _, told := range p.Told {
			if told.Status != "FAILED" {
				continue
			}
			f.saw()
			for _, pulse := range b.pulses[p.RequestID] {
				if pulse.At.After(told.At) {
					f.violated("%s %s was driven at %s, after a subscriber received FAILED for request %s", pulse.Branch, pulse.Device, pulse.At.Format(clock), p.RequestID)
				}
			}
		}
	}
}

// maxPulse is the maximum length of a pulse: that of the service, and the delay of a busy machine.
const maxPulse = protocol.DefaultPulse + 2*time.Second

func locksFall(b *books, f *finding) {
	for _, cut := range b.PowerCut {
		f.expect(cut.Locked, "%s had an unlocked door without power at %s", cut.Branch, cut.At.Format(clock))
	}
	for _, p := range b.Pulses {
		dead := func(f record.Fault) bool { return f.At.Before(p.At.Add(p.Energized)) && f.Until.After(p.At) }
		if p.Energized > maxPulse && slices.ContainsFunc(b.outages["relay-dead "+p.Branch], dead) {
			f.Excused++ // the line failed, so it cannot be released; the agent retries until it can
			continue
		}
		f.expect(p.Energized <= maxPulse, "%s %s stayed driven for %s", p.Branch, p.Device, p.Energized)
	}
	for _, lock := range ordered(b.Locked) {
		f.expect(b.Locked[lock], "%s is unlocked at the end", lock)
	}
}

func onlyTheCloud(b *books, f *finding) {
	for _, forged := range b.Forged {
		if forged.Kind == "grant" || forged.Kind == "ask" {
			f.saw()
		}
	}
	for _, p := range b.Pulses {
		if _, known := b.requests[p.Request]; known {
			continue
		}
		if b.unattributed(p) {
			f.Excused++
			continue
		}
		f.violated("%s %s was driven for the unknown request %q", p.Branch, p.Device, p.Request)
	}
}

func offlineAtOnce(b *books, f *finding) {
	var slow []time.Duration
	for _, p := range b.Probes {
		if p.What != "offline" {
			continue
		}
		f.saw()
		if !p.OK {
			f.violated("a press at an offline branch did not get FAILED and a PIN")
		}
		if p.Took > 300*time.Millisecond {
			slow = append(slow, p.Took)
		}
	}
	if len(slow)*100 > f.Observations {
		f.violated("%d of %d answers took longer, the slowest %s", len(slow), f.Observations, slices.Max(slow).Round(time.Millisecond))
	}
}

func everyPressOnRecord(b *books, f *finding) {
	audited := map[string]bool{}
	for _, id := range b.StaffUnlocks {
		audited[id] = true
	}
	for _, p := range b.Presses {
		if p.RequestID == "" {
			continue
		}
		d, known := b.requests[p.RequestID]
		if !known && b.forgotten(p.Return) {
			f.Excused++
			continue // its claim was denied: see grantHolds
		}
		f.expect(known && finals[d.State] != "", "request %s was accepted at %s but has no outcome", p.RequestID, p.Return.Format(clock))
		if p.Staff && known {
			f.expect(audited[p.RequestID], "the administrator's request %s is not in the audit log", p.RequestID)
		}
	}
}

func noMemory(b *books, f *finding) {
	for _, d := range b.DoorRequests {
		away := slices.Concat(b.outages["power-off "+d.Branch], b.outages["network-cut "+d.Branch])
		for _, out := range away {
			if d.Created.Before(out.At) || d.Created.After(out.Until) {
				continue
			}
			f.saw()
			for _, p := range b.pulses[d.ID] {
				if p.At.After(d.Created.Add(driveLimit)) || d.State == "FAILED" && d.Granted.IsZero() {
					f.violated("%s %s was driven at %s for request %s, made at %s while the branch was offline", p.Branch, p.Device, p.At.Format(clock), d.ID, d.Created.Format(clock))
				}
			}
		}
	}
}

// resultsAreTrue compares results with pulses. Set aside are pulses of an agent that lost power before it could report the
// request, and failures at a branch with a faulty lock, which is driven without opening.
func resultsAreTrue(b *books, f *finding) {
	for _, d := range b.DoorRequests {
		driven := map[string]bool{}
		for _, p := range b.pulses[d.ID] {
			driven[p.Device] = true
		}
		switch {
		case d.State == "SUCCESS":
			for _, device := range d.Devices {
				if !driven[device] && near(b.outages["power-off "+d.Branch], d.Created, driveLimit, time.Second) {
					f.Excused++
					continue
				}
				f.expect(driven[device], "request %s is SUCCESS, but %s %s was not driven", d.ID, d.Branch, device)
			}
		case d.State == "FAILED" && !d.Granted.IsZero() && d.Finished.Sub(d.Created) < abandonAge:
			faulty := slices.ContainsFunc([]string{"stuck", "slow", "relay-dead"}, func(kind string) bool {
				return near(b.outages[kind+" "+d.Branch], d.Created, driveLimit, time.Second)
			})
			if faulty {
				f.Excused++
				continue
			}
			f.expect(len(driven) < len(d.Devices), "request %s is FAILED, but all its doors at %s were driven", d.ID, d.Branch)
		}
	}
}

func failuresAreExplained(b *books, f *finding) {
	for _, p := range b.Presses {
		if p.Why != "" {
			f.expect(p.Why != "unknown", "request %s FAILED, and the key of %s is unknown", p.RequestID, p.Order)
		}
	}
}

// abandonAge is the age from which a granted request ends without a result.
const abandonAge = 6 * time.Second
