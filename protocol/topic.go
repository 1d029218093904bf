package protocol

import (
	"iter"
	"strings"
)

const (
	root = "yeolda/v1/"
	// ofAgent precedes the user name in the topics of one credential. No kind starts with it.
	ofAgent = "agent/"
)

// Kind is the last part of a topic. It decides the direction, the quality of service and the payload.
type Kind string

// The kinds of messages.
const (
	KindDoorAsk           Kind = "door/ask"
	KindDoorClaim         Kind = "door/claim"
	KindDoorGrant         Kind = "door/grant"
	KindDoorDeny          Kind = "door/deny"
	KindDoorResult        Kind = "door/result"
	KindClimateCommand    Kind = "climate/command"
	KindClimateResult     Kind = "climate/result"
	KindSensorsRead       Kind = "sensors/read"
	KindSensorsReadings   Kind = "sensors/readings"
	KindKeys              Kind = "keys"
	KindBrokers           Kind = "brokers"
	KindUpdate            Kind = "update"
	KindRekey             Kind = "credential/rotate"
	KindRekeyed           Kind = "credential/new"
	KindSettings          Kind = "settings"
	KindSettingsFile      Kind = "settings/file"
	KindDiagnostics       Kind = "diagnostics"
	KindDiagnosticsLog    Kind = "diagnostics/log"
	KindDiagnosticsReport Kind = "diagnostics/report"
	KindStatus            Kind = "status"
	KindHeartbeat         Kind = "heartbeat"
	KindTelemetry         Kind = "telemetry"
	KindBeacon            Kind = "beacon"
	KindPassList          Kind = "passes/list"
	KindPassApplied       Kind = "passes/applied"
	KindPassEntry         Kind = "passes/entry"
	KindPassAck           Kind = "passes/ack"
)

type rule struct {
	kind      Kind
	fromAgent bool
	qos       byte
	retained  bool
	own       bool // used with the topics of a credential only, never with those of a branch
}

// rules is the single table from which topics, access rules and delivery are derived.
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
	{kind: KindKeys, own: true},
	{kind: KindBrokers, own: true},
	{kind: KindUpdate, own: true},
	{kind: KindRekey, own: true},
	{kind: KindRekeyed, fromAgent: true, qos: 1, own: true},
	{kind: KindSettings, own: true},
	{kind: KindSettingsFile, fromAgent: true, qos: 1, own: true},
	{kind: KindDiagnostics, own: true},
	{kind: KindDiagnosticsLog, fromAgent: true, qos: 1, own: true},
	{kind: KindDiagnosticsReport, fromAgent: true, qos: 1, own: true},
	{kind: KindStatus, fromAgent: true, qos: 1, retained: true},
	{kind: KindHeartbeat, fromAgent: true, qos: 1},
	{kind: KindTelemetry, fromAgent: true, qos: 1},
	{kind: KindBeacon, own: true},
	{kind: KindPassList, qos: 1, own: true},
	{kind: KindPassApplied, fromAgent: true, qos: 1, own: true},
	{kind: KindPassEntry, fromAgent: true, qos: 1, own: true},
	{kind: KindPassAck, qos: 1, own: true},
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

// QoS is the quality of service of this kind: 0 towards the agent, where the application repeats messages, 1 towards the
// cloud and for pass lists and acknowledgements of entries.
func (k Kind) QoS() byte {
	r, _ := k.rule()
	return r.qos
}

// Retained reports whether the broker keeps the last message of this kind. Only the status is retained.
func (k Kind) Retained() bool {
	r, _ := k.rule()
	return r.retained
}

// OwnTopic reports whether this kind exists only on the topics of a credential. A branch's topics are shared with agents of the
// previous release and with standby agents, which must neither receive nor send it.
func (k Kind) OwnTopic() bool {
	r, _ := k.rule()
	return r.own
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

// ValidBranch reports whether a branch code can be part of a topic: 1 to 63 of a-z, 0-9 and '-', starting with a letter
// or digit.
func ValidBranch(branch string) bool { return validName(branch, 63) }

// ValidUsername reports whether the user name of a credential can be part of a topic: 1 to 100 of a-z, 0-9 and '-',
// starting with a letter or digit.
func ValidUsername(username string) bool { return validName(username, 100) }

func validName(name string, limit int) bool {
	if name == "" || len(name) > limit || name[0] == '-' {
		return false
	}
	for _, c := range []byte(name) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return true
}

// Agent identifies an agent: the branch it serves and the user name of its credential. The user name is empty for an
// agent of the release before credentials had topics of their own; see [Agent.Topic].
type Agent struct {
	Branch   string
	Username string
}

// Peer is an agent as the source or destination of a message. Session identifies one of its connections to a broker that
// knows them; 0 stands for any.
type Peer struct {
	Agent
	Session uint64
}

// AgentID is the default MQTT client id and user name of the agent of a branch. A credential issued later appends "-" and
// a random word. The client id equals the user name and the credential determines the branch, so that no agent can read
// another branch's topics or take over its connection.
func AgentID(branch string) string { return "agent-" + branch }

// Topic returns the topic of a kind in a branch, which all credentials of the branch share. It panics on an invalid branch
// or kind: both are validated on input, and a wildcard in a topic would cross branches. No agent may use the topic of a kind
// that only credentials have; see [Kind.OwnTopic].
func Topic(branch string, kind Kind) string {
	if _, ok := kind.rule(); !ok || !ValidBranch(branch) {
		panic("protocol: no topic for branch " + branch + ", kind " + string(kind))
	}
	return root + branch + "/" + string(kind)
}

// Topic returns the topic of a kind for this credential alone, or the branch's topic if the user name is empty. It panics
// on an invalid agent or kind, like [Topic].
func (a Agent) Topic(kind Kind) string {
	if a.Username == "" {
		return Topic(a.Branch, kind)
	}
	if _, ok := kind.rule(); !ok || !ValidBranch(a.Branch) || !ValidUsername(a.Username) {
		panic("protocol: no topic for agent " + a.Username + " of " + a.Branch + ", kind " + string(kind))
	}
	return root + a.Branch + "/" + ofAgent + a.Username + "/" + string(kind)
}

// ParseAgentTopic splits a topic into agent and kind. The user name is empty for a topic of the whole branch. Wildcards,
// unknown kinds and other roots are not ok.
func ParseAgentTopic(topic string) (a Agent, kind Kind, ok bool) {
	rest, found := strings.CutPrefix(topic, root)
	if !found {
		return Agent{}, "", false
	}
	branch, name, found := strings.Cut(rest, "/")
	if !found || !ValidBranch(branch) {
		return Agent{}, "", false
	}
	username := ""
	if rest, found := strings.CutPrefix(name, ofAgent); found {
		if username, name, found = strings.Cut(rest, "/"); !found || !ValidUsername(username) {
			return Agent{}, "", false
		}
	}
	r, known := Kind(name).rule()
	if !known || r.own && username == "" {
		return Agent{}, "", false
	}
	return Agent{Branch: branch, Username: username}, r.kind, true
}

// ParseTopic is [ParseAgentTopic] for callers that need the branch only.
func ParseTopic(topic string) (branch string, kind Kind, ok bool) {
	a, kind, ok := ParseAgentTopic(topic)
	return a.Branch, kind, ok
}

// MayPublish is the broker's rule for a publish, and for the will, of an agent.
func (a Agent) MayPublish(topic string) bool {
	kind, own := a.owns(topic)
	return own && kind.FromAgent()
}

// MaySubscribe is the broker's rule for a subscription of an agent, and for each delivery. Agents subscribe to exact
// topics; wildcards and shared subscriptions are not allowed.
func (a Agent) MaySubscribe(filter string) bool {
	kind, own := a.owns(filter)
	return own && kind.FromCloud()
}

// owns reports whether a topic belongs to this credential or to its branch as a whole.
func (a Agent) owns(topic string) (Kind, bool) {
	of, kind, ok := ParseAgentTopic(topic)
	return kind, ok && of.Branch == a.Branch && (of.Username == "" || of.Username == a.Username)
}

// Filters yields the topics of this agent that the cloud publishes to: those of its credential, or those of its branch if
// the user name is empty.
func (a Agent) Filters() iter.Seq[string] {
	return func(yield func(string) bool) {
		for k := range Kinds() {
			if k.FromCloud() && a.has(k) && !yield(a.Topic(k)) {
				return
			}
		}
	}
}

// has reports whether the agent has a topic of this kind.
func (a Agent) has(kind Kind) bool { return a.Username != "" || !kind.OwnTopic() }

// Filters returns the topics of a kind in every branch: of branches as a whole, if they have this kind, and of single
// credentials. They are for the cloud's subscriptions and access rules.
func Filters(kind Kind) []string {
	ofCredentials := root + "+/" + ofAgent + "+/" + string(kind)
	if kind.OwnTopic() {
		return []string{ofCredentials}
	}
	return []string{root + "+/" + string(kind), ofCredentials}
}

// CloudFilters yields the cloud's subscriptions: every kind of message of every agent.
func CloudFilters() iter.Seq2[Kind, string] {
	return func(yield func(Kind, string) bool) {
		for k := range Kinds() {
			if !k.FromAgent() {
				continue
			}
			for _, filter := range Filters(k) {
				if !yield(k, filter) {
					return
				}
			}
		}
	}
}
