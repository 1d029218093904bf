// Package protocol is the contract between the cloud and the agent of a branch: which MQTT topics there are, who may
// use them, what their payloads hold, and how long anything stays true.
//
// Both programs compile this package, the broker takes its access rules from it, and asyncapi.yaml describes the same
// for people who write a third program. It uses the standard library only and does no I/O.
//
// # Why a door takes four messages
//
// A message that has left the broker can be late by as long as TCP is patient: after a partition commands arrived 12 to
// 27 seconds after they were published, whatever expiry they carried. A message that opens a door when it arrives would
// therefore open doors for people who have left. So the command is split: an ask carries no authority, and the grant
// that does is only worth something to the agent that asked for it a moment ago.
//
//	   cloud                                             agent
//	     │  door/ask {requestId, doors}                    │
//	     ├────────────────────────────────────────────────►│  random nonce; notes its monotonic time m0
//	     │                    door/claim {requestId, nonce}│
//	     │◄────────────────────────────────────────────────┤
//	one  │ request pending, younger than ClaimLimit?       │
//	tx   │ reservation valid now?                          │
//	     │  door/grant {branch, requestId, nonce, doors,   │
//	     │              pulseMs, signature}                │
//	     ├────────────────────────────────────────────────►│  signature right? nonce known and unused?
//	     │    (or door/deny {requestId, nonce, reason})    │  now - m0 <= GrantAge?  then drive the line,
//	     │                                                 │  read it back, and the sense line if there is one
//	     │  door/result {requestId, device, outcome, ...}  │
//	     │◄────────────────────────────────────────────────┤  one per door
//	     │  telemetry {event released, energizedMs}        │
//	     │◄────────────────────────────────────────────────┤  when the pulse has ended
//
// The grant was issued after m0, so its age is at most now - m0, whatever any clock says: a lock is driven at most
// ClaimLimit + GrantAge = 4 seconds after the request was accepted. Nonces live in the agent's memory only, so an agent
// that restarted can replay nothing, and each is good for one drive.
//
// # Delivery
//
// Everything is MQTT v5, clean start, session expiry 0: nothing waits in a broker for an agent that is away. Cloud to
// agent is QoS 0 and the cloud repeats itself with the same ids every [RepeatInterval] while its deadline allows. Agent
// to cloud is QoS 1, from an outbox that the agent keeps in memory: results for [ResultTTL], door events for ten minutes,
// answers to commands for [CommandTTL].
//
//   - A repeated ask gets the same claim, with the same nonce, as long as the nonce can still be used; afterwards a new
//     one, should the first have been lost on the way. Once a grant has been judged it gets the results again.
//   - A repeated claim gets the same answer; a claim with another nonce for a granted request is denied.
//   - A repeated grant drives nothing and gets the results again. A genuine grant whose nonce the agent does not know, or
//     that is too old, gets the outcome dropped.
//   - A repeated climate command or sensor read (same requestId) is carried out once and gets the result again.
//
// The branch is always taken from the topic, never from a payload. The grant names it too, but only so that the
// signature covers it: a grant for one branch is worth nothing to another.
//
// # Presence
//
// The retained [Status] says what the agent is and what hangs on it. Its will is the same message with state offline.
// It is published on connecting and every [StatusInterval]; a [Heartbeat] every [HeartbeatInterval] says that the agent
// still runs. A branch counts as offline when its will arrives or after [OfflineTimeout] without any message. A will can
// overtake: an offline counts only when bootId and connection are those of the last online status or heartbeat.
package protocol
