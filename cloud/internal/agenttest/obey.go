package agenttest

import (
	"bytes"
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"time"

	"github.com/eclipse/paho.golang/paho"

	"github.com/yeolda/yeolda/protocol"
)

// note changes the record of events and wakes Until.
func (a *Agent) note(change func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change()
	close(a.changed)
	a.changed = make(chan struct{})
}

func (a *Agent) receive(ctx context.Context, p *paho.Publish) {
	_, kind, ok := protocol.ParseTopic(p.Topic)
	if !ok || !a.agent().MaySubscribe(p.Topic) {
		return
	}
	switch kind {
	case protocol.KindDoorAsk:
		dispatch(p, func(m protocol.Ask) { a.ask(ctx, m) })
	case protocol.KindDoorGrant:
		dispatch(p, a.grant)
	case protocol.KindDoorDeny:
		dispatch(p, a.deny)
	case protocol.KindKeys:
		dispatch(p, a.trust)
	case protocol.KindRekey:
		dispatch(p, a.rekey)
	case protocol.KindSettings:
		dispatch(p, a.use)
	case protocol.KindDiagnostics:
		dispatch(p, a.diagnose)
	case protocol.KindPassList:
		dispatch(p, a.lease)
	case protocol.KindPassAck:
		dispatch(p, func(m protocol.PassAck) { a.note(func() { a.acked = append(a.acked, m) }) })
	case protocol.KindBeacon:
		dispatch(p, func(m protocol.Beacon) { a.note(func() { a.beacons = append(a.beacons, m) }) })
	case protocol.KindClimateCommand:
		dispatch(p, func(m protocol.ClimateCommand) { a.command(p, m) })
	case protocol.KindSensorsRead:
		dispatch(p, func(m protocol.SensorsRead) { a.read(p, m) })
	}
}

// dispatch calls do with a valid message; the agent ignores any other.
func dispatch[M protocol.Message](p *paho.Publish, do func(M)) {
	if m, err := protocol.Decode[M](p.Payload); err == nil {
		do(m)
	}
}

func (a *Agent) deny(m protocol.Deny) {
	a.note(func() {
		a.denied = append(a.denied, m)
		if c := a.claims[m.RequestID]; c.nonce == m.Nonce {
			c.used = true
			a.claims[m.RequestID] = c
		}
	})
}

func (a *Agent) ask(ctx context.Context, m protocol.Ask) {
	a.mu.Lock()
	faults := a.faults
	results := a.results[m.RequestID]
	c, known := a.claims[m.RequestID]
	if !known {
		c = claim{nonce: protocol.NewNonce()}
	}
	a.mu.Unlock()
	a.note(func() { a.asked[m.RequestID]++ })
	if len(results) > 0 {
		a.report(results, faults)
		return
	}
	if faults.IgnoreAsks || c.used {
		return
	}
	if faults.ClaimDelay > 0 {
		select {
		case <-ctx.Done():
			return
		case <-time.After(faults.ClaimDelay):
		}
	}
	a.mu.Lock()
	if earlier, known := a.claims[m.RequestID]; known {
		c = earlier
	} else {
		c.at = time.Now()
		a.claims[m.RequestID] = c
	}
	a.mu.Unlock()
	for range 1 + faults.RepeatClaims {
		_ = a.Publish(protocol.Claim{RequestID: m.RequestID, Nonce: c.nonce})
	}
}

// trust applies a key list and reports the epoch in use, also if the list is an old one.
func (a *Agent) trust(list protocol.KeyList) {
	keys, err := list.PublicKeys()
	a.note(func() {
		if err == nil && list.Epoch > a.epoch && list.Verify(a.keys...) == nil {
			a.keys, a.epoch = keys, list.Epoch
		}
	})
	_ = a.Publish(a.status())
}

// use takes settings without a trial.
func (a *Agent) use(m protocol.Settings) {
	a.note(func() {
		if m.Version > a.settings.Version && m.Verify(a.agent(), a.keys...) == nil {
			a.settings = m
		}
	})
	_ = a.Publish(a.status())
}

// rekey makes new secrets and announces them; the password for other brokers is "new".
func (a *Agent) rekey(m protocol.Rekey) {
	a.note(func() {
		if a.newKey == nil {
			a.newKey = ed25519.NewKeyFromSeed(bytes.Repeat([]byte{9}, ed25519.SeedSize))
		}
	})
	hash := sha256.Sum256([]byte("new"))
	answer := protocol.Rekeyed{Rotation: m.Rotation, PasswordHash: base64.StdEncoding.EncodeToString(hash[:]),
		PublicKey: base64.StdEncoding.EncodeToString(a.NewKey().Public().(ed25519.PublicKey))}
	a.note(func() { a.rekeyed = answer })
	_ = a.Publish(answer)
}

func (a *Agent) grant(m protocol.Grant) {
	a.mu.Lock()
	if m.Branch != a.cfg.Branch || m.Verify(a.keys...) != nil {
		a.mu.Unlock()
		return
	}
	if a.faults.LoseGrants > 0 {
		a.faults.LoseGrants--
		a.mu.Unlock()
		return
	}
	faults := a.faults
	c, known := a.claims[m.RequestID]
	if !known || c.used || c.nonce != m.Nonce {
		a.mu.Unlock()
		return
	}
	c.used = true
	a.claims[m.RequestID] = c
	a.mu.Unlock()
	if faults.ClaimTwice {
		_ = a.Publish(protocol.Claim{RequestID: m.RequestID, Nonce: protocol.NewNonce()})
	}

	outcome := faults.Outcome
	if time.Since(c.at) > cmp.Or(a.cfg.GrantAge, protocol.GrantAge) {
		outcome = protocol.Dropped
	} else if outcome == "" {
		outcome = protocol.Opened
	}
	var results []protocol.Result
	a.note(func() {
		for _, device := range m.Doors {
			if outcome == protocol.Opened {
				a.driven = append(a.driven, Drive{At: time.Now(), RequestID: m.RequestID, Device: device})
			}
			results = append(results, protocol.Result{RequestID: m.RequestID, Nonce: m.Nonce, Device: device, Outcome: outcome, EnergizedMs: 1})
		}
		a.results[m.RequestID] = results
	})
	a.report(results, faults)
}

func (a *Agent) report(results []protocol.Result, faults Faults) {
	if faults.Silent {
		return
	}
	for _, r := range results {
		a.mu.Lock()
		lost := a.faults.LoseResults > 0
		if lost {
			a.faults.LoseResults--
		}
		a.mu.Unlock()
		if lost {
			continue
		}
		for range 1 + faults.SendResults {
			_ = a.Publish(r)
		}
	}
}

func (a *Agent) command(p *paho.Publish, m protocol.ClimateCommand) {
	var faults Faults
	a.note(func() {
		a.commands = append(a.commands, m.AirConditionerID)
		a.last = m.RequestID
		faults = a.faults
	})
	outcome := protocol.ClimateSent
	if faults.Outcome == protocol.Failed {
		outcome = protocol.ClimateFailed
	}
	if !faults.NoAnswer {
		a.answer(p, protocol.ClimateResult{RequestID: m.RequestID, AirConditionerID: m.AirConditionerID, Outcome: outcome})
	}
}

func (a *Agent) read(p *paho.Publish, m protocol.SensorsRead) {
	a.mu.Lock()
	faults := a.faults
	a.mu.Unlock()
	readings := make([]protocol.Reading, 0, len(a.cfg.Readings))
	for _, r := range a.cfg.Readings {
		if !slices.Contains(faults.DeadSensors, r.Location) {
			readings = append(readings, r)
		}
	}
	if !faults.NoAnswer {
		a.answer(p, protocol.SensorsReadings{RequestID: m.RequestID, Readings: readings})
	}
}

// answer publishes to the Response Topic with the Correlation Data.
func (a *Agent) answer(p *paho.Publish, m protocol.Message) {
	payload, err := protocol.Encode(m)
	if err != nil || p.Properties == nil {
		return
	}
	_ = a.send(&paho.Publish{Topic: p.Properties.ResponseTopic, QoS: m.Kind().QoS(), Payload: payload,
		Properties: &paho.PublishProperties{CorrelationData: p.Properties.CorrelationData}})
}
