package protocol

import (
	"iter"
	"strings"
)

const root = "yeolda/v1/"

// Kind is the part of a topic after the branch. It decides the direction, the quality of service and the payload.
type Kind string

// The topics of a branch.
const (
	KindDoorAsk         Kind = "door/ask"
	KindDoorClaim       Kind = "door/claim"
	KindDoorGrant       Kind = "door/grant"
	KindDoorDeny        Kind = "door/deny"
	KindDoorResult      Kind = "door/result"
	KindClimateCommand  Kind = "climate/command"
	KindClimateResult   Kind = "climate/result"
	KindSensorsRead     Kind = "sensors/read"
	KindSensorsReadings Kind = "sensors/readings"
	KindStatus          Kind = "status"
	KindHeartbeat       Kind = "heartbeat"
	KindTelemetry       Kind = "telemetry"
)

type rule struct {
	kind      Kind
	fromAgent bool
	qos       byte
	retained  bool
}

// rules is the one table behind topics, access rules and delivery.
var rules = [...]rule{
	{kind: KindDoorAsk},
	{kind: KindDoorClaim, fromAgent: true, qos: 1},
	{kind: KindDoorGrant},
	{kind: KindDoorDeny},
	{kind: KindDoorResult, fromAgent: true, qos: 1},
	{kind: KindClimateCommand},
	{kind: KindClimateResult, fromAgent: true, qos: 1},
	{kind: KindSensorsRead},
	{kind: KindSensorsReadings, fromAgent: true, qos: 1},
	{kind: KindStatus, fromAgent: true, qos: 1, retained: true},
	{kind: KindHeartbeat, fromAgent: true, qos: 1},
	{kind: KindTelemetry, fromAgent: true, qos: 1},
}

func (k Kind) rule() (rule, bool) {
	for _, r := range rules {
		if r.kind == k {
			return r, true
		}
	}
	return rule{}, false
}

// FromAgent reports whether the agent publishes this kind; the cloud publishes the others.
func (k Kind) FromAgent() bool {
	r, ok := k.rule()
	return ok && r.fromAgent
}

// FromCloud reports whether the cloud publishes this kind.
func (k Kind) FromCloud() bool {
	r, ok := k.rule()
	return ok && !r.fromAgent
}

// QoS is the quality of service this kind is published and subscribed with: 0 towards the agent, where the application
// repeats itself, 1 towards the cloud.
func (k Kind) QoS() byte {
	r, _ := k.rule()
	return r.qos
}

// Retained reports whether the broker keeps the last message of this kind. Only the status is retained.
func (k Kind) Retained() bool {
	r, _ := k.rule()
	return r.retained
}

// Kinds yields every kind in the order of the constants.
func Kinds() iter.Seq[Kind] {
	return func(yield func(Kind) bool) {
		for _, r := range rules {
			if !yield(r.kind) {
				return
			}
		}
	}
}

// ValidBranch reports whether the code can stand in a topic: 1 to 63 of a-z, 0-9 and '-', starting with a letter or digit.
func ValidBranch(branch string) bool {
	if branch == "" || len(branch) > 63 || branch[0] == '-' {
		return false
	}
	for _, c := range []byte(branch) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return true
}

// Topic names the topic of a kind in a branch. It panics on an invalid branch or kind: neither ever comes from outside
// unchecked, and a wildcard smuggled into a topic would cross branches.
func Topic(branch string, kind Kind) string {
	if _, ok := kind.rule(); !ok || !ValidBranch(branch) {
		panic("protocol: no topic for branch " + branch + ", kind " + string(kind))
	}
	return root + branch + "/" + string(kind)
}

// ParseTopic splits a topic into branch and kind. Wildcards, unknown kinds and foreign roots are not ok.
func ParseTopic(topic string) (branch string, kind Kind, ok bool) {
	rest, found := strings.CutPrefix(topic, root)
	if !found {
		return "", "", false
	}
	branch, name, found := strings.Cut(rest, "/")
	if !found || !ValidBranch(branch) {
		return "", "", false
	}
	r, known := Kind(name).rule()
	if !known {
		return "", "", false
	}
	return branch, r.kind, true
}

// AgentID is the MQTT client id and user name of the agent of a branch; a credential made later may append to it
// ("-" and a random word). Client id and user name are the same, and the credential names the branch, so that one branch
// can neither read another's topics nor push its agent off the line.
func AgentID(branch string) string { return "agent-" + branch }

// AgentMayPublish is the broker's rule for a publish, and for the will, of the agent of a branch.
func AgentMayPublish(branch, topic string) bool {
	b, kind, ok := ParseTopic(topic)
	return ok && b == branch && kind.FromAgent()
}

// AgentMaySubscribe is the broker's rule for a subscription of the agent of a branch, and for each delivery. Agents
// subscribe to exact topics; no wildcard and no shared subscription is allowed.
func AgentMaySubscribe(branch, filter string) bool {
	b, kind, ok := ParseTopic(filter)
	return ok && b == branch && kind.FromCloud()
}

// AgentFilters yields what the agent of a branch subscribes to.
func AgentFilters(branch string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for k := range Kinds() {
			if k.FromCloud() && !yield(Topic(branch, k)) {
				return
			}
		}
	}
}

// Filter names the topics of a kind in every branch at once. It is for the cloud's subscriptions and rights.
func Filter(kind Kind) string { return root + "+/" + string(kind) }

// CloudFilters yields what the cloud subscribes to: every kind of message of every agent.
func CloudFilters() iter.Seq2[Kind, string] {
	return func(yield func(Kind, string) bool) {
		for k := range Kinds() {
			if k.FromAgent() && !yield(k, Filter(k)) {
				return
			}
		}
	}
}
