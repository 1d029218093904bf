// Package recording records the events of a simulated branch and replays them.
//
//	hands, weather, faults ─► hardware ─► changes ─► Recorder ─► Recording (JSON)
//	            ▲                                             │
//	            └───────────── Step by Step ◄── Player ◄──────┘
//
// A recording contains what affects a branch from outside: the air at its sensors, leaves, exit buttons, keypads,
// remote controls and faults. It does not contain the agent's actions: a replay drives no relay and sends no request to
// the cloud. Of a PIN it contains only whether it was right.
package recording
