// Package protocol is the contract between the cloud and the agent of a branch: the MQTT topics and their access rules,
// the payloads, and how long each message is valid.
//
// Both programs compile this package, the broker derives its access rules from it, and asyncapi.yaml describes it for
// authors of other implementations. It uses the standard library only and does no I/O.
//
// # Why a door takes four messages
//
// A message that has left the broker can arrive as late as TCP keeps retransmitting: after a partition, commands arrived
// 12 to 27 seconds after they were published, whatever expiry they carried. A single command would therefore open doors
// for guests who have left. So the command is split: an ask carries no authority, and a grant is valid only for the agent
// that claimed it a moment ago.
//
//	   cloud                                             agent
//	     │  door/ask {requestId, doors}                    │
//	     ├────────────────────────────────────────────────►│  has all doors? random nonce; monotonic time m0
//	     │                    door/claim {requestId, nonce}│
//	     │◄────────────────────────────────────────────────┤
//	one  │ request pending, younger than ClaimLimit?       │
//	tx   │ reservation valid now? credential active?       │
//	     │  door/grant {branch, requestId, nonce, doors,   │
//	     │              pulseMs, signature}                │
//	     ├────────────────────────────────────────────────►│  signature right? nonce known and unused?
//	     │    (or door/deny {requestId, nonce, reason})    │  now - m0 <= GrantAge?  then drive the line,
//	     │                                                 │  read it back, and the sense line if there is one
//	     │  door/result {requestId, nonce, device, outcome}│
//	     │◄────────────────────────────────────────────────┤  one per door
//	     │  telemetry {event released, energizedMs}        │
//	     │◄────────────────────────────────────────────────┤  when the pulse has ended
//
// The grant was issued after m0, so its age is at most now - m0, whatever any clock shows: a lock is driven at most
// ClaimLimit + GrantAge = 4 seconds after the request was accepted. Nonces exist only in the agent's memory, so an agent
// that has restarted can replay nothing, and each is good for one drive.
//
// The cloud may ask before the request exists, when a guest has announced the press. It keeps the claim in memory and answers it
// when the press comes, or with a deny when it does not. To the agent the exchange is the same, and m0 only lies earlier.
//
// # Several agents of one branch
//
// A branch may have several credentials, for example while its Pi is being replaced. At most one is active; the others
// are standby. The cloud sends asks and commands to the active agent only, sends a grant only to the session that
// claimed, and counts results, presence, readings and events of the active agent only. A standby agent is connected and
// shown to administrators.
//
// Therefore each credential has its own topics, yeolda/v1/{branch}/agent/{username}/{kind}, and no other agent may use
// them. The topics of the branch, yeolda/v1/{branch}/{kind}, serve agents of the previous release and the will:
//
//   - On connecting, the agent subscribes to the topics of its credential, and to those of the branch. If the broker
//     rejects the former (a cloud of the previous release), it uses the topics of the branch for this connection.
//   - The will and the offline status go to the branch's status topic. They name bootId and connection, which identify
//     the connection that ended.
//   - The embedded broker knows the credential of each session, whatever topic it uses. At an external broker, messages
//     on a branch's topics count as those of its only credential; if the branch has several, they are ignored.
//
// Results count only with the nonce that was granted. Agents of the previous release send none: of their results the
// cloud accepts opened and failed from the active credential, but not dropped, which they also send after a restart.
//
// # Delivery
//
// Everything is MQTT v5, clean start, session expiry 0: no broker keeps messages for an agent that is offline. Cloud to
// agent is QoS 0; the cloud repeats messages with the same ids every [RepeatInterval] while the deadline allows. Agent to
// cloud is QoS 1, from an outbox in the agent's memory: results for [ResultTTL], door events for ten minutes, answers to
// commands for [CommandTTL].
//
//   - An agent ignores an ask for a door that it does not have.
//   - A repeated ask gets the same claim while its nonce can still be used, then a claim with a new nonce, in case the
//     first one was lost. After the agent has acted on a grant, it gets the results again.
//   - A repeated claim gets the same answer; a claim with another nonce for a granted request is denied.
//   - A repeated grant drives nothing and gets the results again. A grant that is too old for its nonce gets the outcome
//     dropped. A grant whose nonce the agent does not have gets the outcome unknown: the agent may have driven the line
//     before it restarted.
//   - A repeated climate command or sensor read (same requestId) is executed once and gets the same result.
//
// The branch is always taken from the topic, never from a payload. The grant names it too, so that the signature covers
// it: a grant for one branch is worth nothing to another.
//
// # Presence
//
// The retained [Status] describes the agent and its devices. The will is the same message with state offline. The status
// is published after connecting, again after [FirstStatusAgain], and then every [StatusInterval]. A [Heartbeat] after
// [FirstHeartbeat], and then every [HeartbeatInterval], shows that the agent is running. An agent counts as offline when its
// will arrives or after [OfflineTimeout] without any message. A will can arrive after the next connection's status, so an
// offline status counts only if bootId and connection are those of the last online status or heartbeat.
//
// # Passes
//
// A guest can also type a PIN or a one-time code at a keypad that the agent reads; see [PassList]. Then the agent decides alone,
// with what the cloud has sent it before:
//
//	cloud                                             agent
//	  │                     heartbeat {..., nonce}      │
//	  │◄────────────────────────────────────────────────┤  every HeartbeatInterval
//	  │  beacon {bootId, nonce, time, signature}        │
//	  ├────────────────────────────────────────────────►│  the time, continued by the monotonic clock
//	  │  passes/list {epoch, version, passes, ...}      │
//	  ├────────────────────────────────────────────────►│  signature right? not older? store, then use
//	  │                  passes/applied {epoch, version}│
//	  │◄────────────────────────────────────────────────┤  no earlier list opens a door any more
//	  │                  passes/entry {entry, device...}│
//	  │◄────────────────────────────────────────────────┤  one per attempt, repeated
//	  │  passes/ack {journal, entry}                    │  until acknowledged
//	  ├────────────────────────────────────────────────►│
//
// These kinds exist only on the topics of a credential. The cloud sends lists with passes to the active agent only, and an empty
// list to one that is no longer active: a standby agent has no passes and no key of codes, so it opens nothing by pass.
//
// # Settings
//
// The cloud may replace the settings of an agent. A mistake must not cost the connection, so the agent decides:
//
//	cloud                                             agent
//	  │  settings {version, text, signature}            │
//	  ├────────────────────────────────────────────────►│  signature right? version higher? no mistake? store as a trial
//	  │                 status {settings: {trial: 5}}   │
//	  │◄────────────────────────────────────────────────┤  restart with it
//	  │              status {settings: {version: 5}}    │
//	  │◄────────────────────────────────────────────────┤  connected for a while: in use
//
// If the agent is not connected in time, it returns to the previous settings, and the status then names the version with its reason.
//
// # Several brokers
//
// An agent is set up with the address of one broker. If the cloud has several, it sends the [BrokerList]; the agent then connects to
// the one that its branch prefers, and continues with the next when that is away.
//
// # Diagnostics
//
// An operator may look at the log of an agent for ten minutes, without access to the machine:
//
//	cloud                                             agent
//	  │       status {diagnostics: {nonce}}             │
//	  │◄────────────────────────────────────────────────┤
//	  │  diagnostics {nonce, request, seconds, ...}     │
//	  ├────────────────────────────────────────────────►│  nonce unused? signature right? new nonce, window open
//	  │       status {diagnostics: {nonce, request}}    │
//	  │◄────────────────────────────────────────────────┤
//	  │                 diagnostics/log {lines}         │
//	  │◄────────────────────────────────────────────────┤  the newest lines, then once a second what follows
//	  │                 diagnostics/report {text}       │
//	  │◄────────────────────────────────────────────────┤  if asked for: the report of the doctor
//
// Outside a window the agent sends no line. Lines never displace other messages: they wait while the connection is busy, and
// those that are too many are counted.
//
// # Grant keys
//
// The agent accepts grants signed with the keys of its credential, or of the [KeyList] with the highest epoch that it has
// applied.
package protocol
